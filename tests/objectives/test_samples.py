"""Every refusal, by its words; and sums and eigenvalues by node."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from freewalk.errors import ProblemError
from freewalk.objectives import LeastSquares, Logistic
from freewalk.objectives.samples import by_node, largest_eigenvalues

A = np.ones((3, 2))
Y = np.zeros(3)


def with_entry(array, index, value):
    changed = array.copy()
    changed[index] = value
    return changed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (with_entry(A, (1, 0), np.nan), Y),
            r"LeastSquares: features\[1, 0\] = nan, expected a finite number; give one row",
        ),
        ((with_entry(A, slice(1, 3), np.inf), Y), r"features\[1, 0\] = inf \(and 3 more\), expected a finite number"),
        ((A, with_entry(Y, 2, np.nan)), r"targets\[2\] = nan, expected a finite number"),
        ((np.ones(3), Y), r"features has shape \(3,\), expected \(any, any\).*features.reshape\(-1, 1\)"),
        ((np.ones((3, 2, 1)), Y), r"features has shape \(3, 2, 1\), expected \(any, any\)"),
        ((np.ones((0, 2)), np.zeros(0)), r"features has shape \(0, 2\), expected at least one sample"),
        ((np.ones((3, 0)), Y), r"features has shape \(3, 0\), expected at least one sample and one feature"),
        ((A, np.zeros(4)), r"targets has shape \(4,\), expected \(3,\); give one finite number for each row"),
        ((A, np.zeros((3, 1))), r"targets has shape \(3, 1\), expected \(3,\).*targets.reshape\(-1\)"),
        ((A * 1j, Y), r"features = an array of complex128 of shape \(3, 2\), expected an array of real numbers"),
        (([["a", "b"]], Y), r"features = \[\['a', 'b'\]\], expected an array of real numbers"),
        (([[1.0, 2.0], [1.0]], Y), "features cannot be read as an array of real numbers"),
        ((np.ma.masked_equal(np.eye(3), 1), Y), "features has masked entries"),
        ((csr_array(A), Y), r"features is a sparse matrix, .* give features.toarray\(\)"),
        ((1e160 * A, Y), r"features holds numbers up to 1e\+160 in size, expected at most 1e\+150, .* rescale them"),
        ((A, Y - 1e200), r"targets holds numbers up to 1e\+200 in size"),
        ((A, Y, [0, 1]), r"nodes has shape \(2,\), expected \(3,\), the node of each row"),
        ((A, Y, [[0, 1, 2]]), r"nodes has shape \(1, 3\), expected \(any,\)"),
        ((A, Y, np.zeros((1, 3), dtype=int)), r"nodes = an array of int64 of shape \(1, 3\), expected a list of nodes"),
        ((A, Y, [0.0, 1.0, 2.0]), r"nodes is an array of float64, expected whole numbers; number the nodes from 0"),
        ((A, Y, [True, False, True]), "nodes is an array of bool, expected whole numbers"),
        ((A, Y, [0, -1, 1]), "nodes holds -1, expected whole numbers >= 0"),
        (
            (A, Y, ["a", "b", "c"]),
            r"nodes = \['a', 'b', 'c'\], .*; number the nodes from 0, or name them together with graph=",
        ),
        ((A, Y, np.array([0, 1, 2**63 + 5], dtype=np.uint64)), f"nodes holds {2**63 + 5}, expected whole numbers >= 0"),
        ((A, Y, np.ma.masked_equal([0, 1, 2], 1)), "nodes has masked entries"),
        (
            (A, Y, [0, 1, 3]),
            r"no data at 1 of 4 nodes \(2\), expected a sample or more at every node; pass relays=True and graph=",
        ),
        ((A, Y, [0, 1, 10]), r"no data at 8 of 11 nodes \(2, 3, 4, 5, 6, \.\.\.\)"),
        (
            (A, Y, [1, 2, 10**15]),
            r"no data at 999999999999998 of 1000000000000001 nodes \(0, 3, 4, 5, 6, \.\.\.\)",
        ),
        ((A, Y, None, -0.1), "ridge = -0.1, expected a finite number >= 0"),
        ((A, Y, None, np.nan), "ridge = nan, expected a finite number >= 0"),
        ((A, Y, None, np.inf), "ridge = inf, expected a finite number >= 0"),
        ((A, Y, None, "much"), "ridge = 'much', expected a finite number >= 0"),
        ((A, Y, None, 10**400), "ridge = a whole number of 1329 bits, expected a finite number >= 0"),
        ((A, Y, None, 0.0, (0, 3)), "heavy holds 3, expected whole numbers from 0 to 2"),
        ((A, Y, None, 0.0, (-1, 2)), "heavy holds -1, expected whole numbers from 0 to 2"),
        ((A, Y, None, 0.0, (0.5,)), "heavy is an array of float64, expected whole numbers"),
        ((A, Y, None, 0.0, 2), r"heavy = 2, expected a list of nodes"),
        ((A, Y, None, 0.0, (), "nodes"), r"weight_by = 'nodes', expected 'node' or 'sample'; did you mean 'node'"),
        ((A, Y, None, 0.0, (), None), r"weight_by = None, expected 'node' or 'sample'"),
    ],
)
def test_data(arguments, message):
    with pytest.raises(ProblemError, match=message):
        LeastSquares(*arguments)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (
            [-1, 1, 1],
            r"Logistic: targets has the values -1, 1, expected 0 and 1 only; .*\(targets \+ 1\) / 2",
        ),
        ([0, 1, 2], "targets has the values 0, 1, 2, expected 0 and 1 only$"),
        ([0.5, 1, 0], "targets has the values 0, 0.5, 1, expected 0 and 1 only$"),
    ],
)
def test_labels(targets, message):
    with pytest.raises(ProblemError, match=message):
        Logistic(A, targets)


def test_labels_are_listed_up_to_five():
    with pytest.raises(ProblemError, match=r"values 0, 1, 2, 3, 4, \.\.\., expected"):
        Logistic(np.ones((9, 1)), np.arange(9))


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((2, 1)), 0.0])
def test_model_of_the_wrong_size(x):
    problem = LeastSquares(A, Y)
    for use in (problem.loss, problem.mse, lambda model: problem.gradient(0, model)):
        with pytest.raises(ProblemError, match=r"LeastSquares: x has shape .*, expected \(2,\)"):
            use(x)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (3, "node = 3, expected a whole number from 0 to 2"),
        (-1, "node = -1, expected a whole number from 0 to 2"),
        (0.5, "node = 0.5, expected a whole number"),
    ],
)
def test_node_outside(node, message):
    problem = LeastSquares(A, Y)
    with pytest.raises(ProblemError, match=message):
        problem.gradient(node, np.zeros(2))
    with pytest.raises(ProblemError, match=message):
        problem.samples(node)


@pytest.mark.parametrize("sample", [2, -1])
def test_sample_outside(sample):
    problem = LeastSquares(A, Y, [0, 0, 1])
    with pytest.raises(ProblemError, match=f"sample of node 0 = {sample}, expected a whole number from 0 to 1"):
        problem.gradient(0, np.zeros(2), sample)


def test_whole_numbers_that_pandas_has_made_floats_are_names_too():
    given = np.array([1.0, 3.0, 2.0])
    assert LeastSquares(A, Y, given, graph=["1", "2", "3"]).nodes.tolist() == [0, 1, 2]
    assert LeastSquares(A, Y, list(given), graph=["3.0", "1.0", "2.0"]).targets.tolist() == [Y[1], Y[0], Y[2]]
    with pytest.raises(ProblemError, match=r"nodes\[1\] = .*1\.5.*, expected one of 3 names"):
        LeastSquares(A, Y, [1.0, 1.5, 2.0], graph=["1", "2", "3"])


def test_what_is_accepted():
    assert LeastSquares([[True, False]], [3]).targets.dtype == np.float64
    assert LeastSquares(A, Y, np.array([1, 0, 0], dtype=np.uint8)).n == 2
    assert LeastSquares(A, Y, heavy=[2, 0, 2]).heavy == (0, 2)
    assert LeastSquares(A, Y, heavy={1}).heavy == (1,)
    assert Logistic(A, [True, False, True]).targets.tolist() == [1, 0, 1]
    assert LeastSquares(A, Y).gradient(np.int32(1), [0, 0]).tolist() == [0, 0]


@pytest.mark.parametrize("block", [1, 40, 2**21])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_largest_eigenvalues_against_singular_values(dim, block):
    draws = np.random.default_rng(dim)
    counts = draws.integers(1, 9, size=60)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    features = draws.standard_normal((offsets[-1], dim))
    expected = [
        np.linalg.svd(features[begin:end], compute_uv=False)[0] ** 2 / (end - begin) for begin, end in pairwise(offsets)
    ]
    assert np.allclose(largest_eigenvalues(features, offsets, block), expected, rtol=1e-12)


def test_largest_eigenvalues_of_zero_features():
    assert largest_eigenvalues(np.zeros((3, 2)), np.array([0, 1, 3])).tolist() == [0, 0]


def test_sums_by_node_are_zero_at_a_relay():
    assert by_node(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 1, 3])).tolist() == [[1.0], [0.0], [6.0]]
