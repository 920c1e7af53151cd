"""The table of moves: what a kernel computes from it, and what it refuses."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import freewalk as fw
from freewalk.designs.kernel import Kernel, Move
from freewalk.errors import KernelError

RING = fw.graphs.ring(5)
STAR = fw.graphs.star(4)
UNIFORM = [1.0] * 5
LAZY = 0.5 * np.eye(5) + 0.25 * RING.adjacency().toarray()


def kernel(*moves, graph=RING, target=None, **others):
    return Kernel(graph, moves, np.ones(graph.n) if target is None else target, **others)


def simple(graph):
    return graph.adjacency().toarray() / graph.degrees[:, None]


# What a kernel computes.


def test_a_move_of_several_hops_is_a_power():
    made = kernel(Move(1.0, hops=3), graph=STAR)
    assert np.allclose(made.matrix().toarray(), np.linalg.matrix_power(simple(STAR), 3))


def test_a_move_without_hops_stays():
    assert np.array_equal(kernel(Move(1.0, hops=0)).matrix().toarray(), np.eye(5))


def test_moves_are_mixed_by_their_probabilities():
    both = kernel(Move(0.3, hops=0), Move(0.7, hops=2))
    expected = 0.3 * np.eye(5) + 0.7 * simple(RING) @ simple(RING)
    assert np.allclose(both.matrix().toarray(), expected, atol=1e-15)


def test_a_ratio_accepts_the_end_of_all_hops_or_stays():
    ratio = np.array([4.0, 1.0, 2.0, 0.5])
    walked = np.linalg.matrix_power(simple(STAR), 2)
    expected = walked * np.minimum(1.0, ratio[None, :] / ratio[:, None])
    expected += np.diag(1 - expected.sum(axis=1))
    assert np.allclose(kernel(Move(1.0, hops=2, ratio=ratio), graph=STAR).matrix().toarray(), expected, atol=1e-15)


def test_one_matrix_serves_all_hops_or_each_hop_has_its_own():
    other = 0.9 * LAZY + 0.1 * np.eye(5)
    assert np.allclose(kernel(Move(1.0, hops=2, rows=LAZY)).matrix().toarray(), LAZY @ LAZY)
    assert np.allclose(kernel(Move(1.0, hops=2, rows=[LAZY, other])).matrix().toarray(), LAZY @ other)


def test_rows_may_be_sparse_and_untidy():
    """Duplicates are added up, zeros dropped, columns sorted: the draws depend on the order of the entries."""
    rows, columns = np.nonzero(LAZY)
    values = LAZY[rows, columns]
    untidy = coo_array((np.tile(values / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))), shape=(5, 5))
    stored = kernel(Move(1.0, rows=untidy)).moves[0].rows[0]
    assert np.array_equal(stored.toarray(), LAZY)
    assert stored.has_sorted_indices
    assert stored.nnz == 15
    zeros = csr_array((np.zeros(25), (np.repeat(range(5), 5), np.tile(range(5), 5))), shape=(5, 5)) + csr_array(LAZY)
    assert kernel(Move(1.0, rows=zeros)).moves[0].rows[0].nnz == 15


def test_a_law_is_the_same_from_everywhere():
    matrix = kernel(Move(1.0, law=[1, 2, 3, 4, 0])).matrix().toarray()
    assert np.allclose(matrix, np.tile([0.1, 0.2, 0.3, 0.4, 0.0], (5, 1)))


def test_target_is_normalised_and_weights_are_its_inverse():
    made = kernel(Move(1.0), target=[4, 1, 1, 1, 1], biased=True)
    assert made.target == pytest.approx([0.5, 0.125, 0.125, 0.125, 0.125])
    assert made.weights == pytest.approx([0.4, 1.6, 1.6, 1.6, 1.6])
    assert made.weights == pytest.approx(1 / (5 * made.target))


def test_a_kernel_is_immutable():
    made = kernel(Move(1.0, ratio=UNIFORM))
    for array in (made.target, made.weights, made.moves[0].ratio):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2.0


def test_a_kernel_keeps_copies_of_what_it_was_given():
    ratio, target = np.ones(5), np.ones(5)
    made = kernel(Move(1.0, ratio=ratio), target=target)
    ratio[0] = target[0] = 100.0
    assert made.moves[0].ratio[0] == 1.0
    assert made.target[0] == pytest.approx(0.2)


def test_fading_moves_give_their_probability_to_the_first():
    made = kernel(Move(0.5, hops=0), Move(0.3), Move(0.2, hops=2), fade=fw.schedules.Inverse(1.0, scale=10))
    assert made.probabilities([0, 10, 30]) == pytest.approx(
        np.array([[0.5, 0.3, 0.2], [0.75, 0.15, 0.1], [0.875, 0.075, 0.05]])
    )
    assert np.allclose(made.matrix(step=10).diagonal(), 0.75 + 0.1 * 0.5)
    assert np.allclose(made.matrix().toarray(), made.matrix(step=0).toarray())


def test_a_fade_above_one_counts_as_one():
    made = kernel(Move(0.5, hops=0), Move(0.5), fade=fw.schedules.Inverse(4.0, scale=1))
    assert made.probabilities([0, 1, 7]) == pytest.approx(np.array([[0.5, 0.5], [0.5, 0.5], [0.75, 0.25]]))


def test_faded_probabilities_are_never_negative():
    """The moves that fade may add up to a rounding more than 1: the first must get nothing, not less."""
    weights = fw.designs.mhlj.truncated_geometric(0.05, 7)
    assert weights.sum() > 1 or np.__version__ < "2"  # which adds up in another order
    made = kernel(Move(0.0), *(Move(w, hops=i) for i, w in enumerate(weights, 1)), fade=fw.schedules.Constant(1.0))
    assert made.probabilities(0)[0, 0] == max(1 - weights.sum(), 0)
    ends = fw.rng.ends(made.probabilities(0))[0]
    assert (ends[0] == 0) == (weights.sum() >= 1)
    assert (np.diff(ends.astype(float)) >= 0).all()


def test_without_a_fade_probabilities_stay():
    assert kernel(Move(0.25, hops=0), Move(0.75)).probabilities([0, 10**6]) == pytest.approx(
        np.array([[0.25, 0.75], [0.25, 0.75]])
    )


def test_repr_says_what_the_moves_do():
    made = kernel(Move(0.5, ratio=UNIFORM), Move(0.25, rows=LAZY), Move(0.25, law=UNIFORM), label="mine")
    assert repr(made) == (
        "Kernel(mine on ring(5): Move(0.5, hops=1, ratio=…), Move(0.25, hops=1, rows=…), Move(0.25, hops=1, law=…))"
    )


def test_locality():
    assert kernel(Move(0.5, rows=LAZY), Move(0.5, hops=3)).is_local
    assert not kernel(Move(0.9), Move(0.1, law=UNIFORM)).is_local


def test_a_dense_matrix_is_given_up_to_a_size():
    big = fw.graphs.ring(5001)
    made = kernel(Move(1.0, law=np.ones(big.n)), graph=big)
    with pytest.raises(KernelError, match=r"its matrix is dense, 5001 × 5001; it is available up to n = 5000"):
        made.matrix()


# What a move refuses.


@pytest.mark.parametrize("probability", [-0.1, 1.1, np.nan, np.inf, "half", None, [0.5]], ids=repr)
def test_probabilities_are_from_0_to_1(probability):
    with pytest.raises(KernelError, match=r"Move: probability = .*, expected a probability from 0 to 1"):
        Move(probability)


@pytest.mark.parametrize("hops", [-1, 1.5, np.nan, True, "two", None], ids=repr)
def test_hops_are_whole_and_not_negative(hops):
    with pytest.raises(KernelError, match=r"Move: hops = .*, expected a whole number from 0 to 10000; 0 stays"):
        Move(1.0, hops=hops)


def test_ratio_does_not_go_with_rows():
    with pytest.raises(KernelError, match=r"Move: got both ratio and rows; ratio requires uniform hops"):
        Move(1.0, ratio=UNIFORM, rows=LAZY)


@pytest.mark.parametrize("other", [{"ratio": UNIFORM}, {"rows": LAZY}], ids=["ratio", "rows"])
def test_a_law_goes_with_nothing_else(other):
    with pytest.raises(KernelError, match=r"Move: got law together with ratio or rows"):
        Move(1.0, law=UNIFORM, **other)


def test_matrices_are_one_or_one_a_hop():
    with pytest.raises(KernelError, match=r"Move: got 2 matrices for 3 hops; expected one, or one per hop"):
        Move(1.0, hops=3, rows=[LAZY, LAZY])


def test_rows_are_a_matrix():
    with pytest.raises(KernelError, match=r"Move: rows.* has shape \(5,\), expected a square matrix"):
        Move(1.0, rows=np.array(UNIFORM))


# What a kernel refuses.


@pytest.mark.parametrize("probabilities", [[0.5, 0.4], [0.6, 0.6], [], [0.0]], ids=repr)
def test_moves_add_up_to_1(probabilities):
    with pytest.raises(KernelError, match=r"mine: the probabilities of its moves add up to .*, expected 1"):
        kernel(*(Move(p) for p in probabilities), label="mine")


def test_moves_are_moves():
    with pytest.raises(KernelError, match=r"kernel: a move = \(1.0, 1\), expected fw.Move"):
        kernel((1.0, 1))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([1, 1, 1], r"target has shape \(3,\), expected \(5,\): one number per node"),
        ([1, 1, 0, 1, 1], r"target of node 2 is 0(\.0)?, expected a finite number > 0"),
        ([1, 1, 1, -1, 1], r"target of node 3 is -1(\.0)?, expected a finite number > 0"),
        ([1, np.nan, 1, 1, 1], r"target of node 1 is nan, expected a finite number > 0"),
        ([np.inf, 1, 1, 1, 1], r"target of node 0 is inf, expected a finite number > 0"),
        ([5e-324, 1, 1, 1, 1], r"target ranges from 4.9\d+e-324 to 1, expected numbers whose shares"),
        ([1e308] * 5, r"target ranges from 1e\+308 to 1e\+308, expected numbers whose shares"),
    ],
)
def test_targets(target, message):
    with pytest.raises(KernelError, match=message):
        kernel(Move(1.0), target=target)


@pytest.mark.parametrize(
    ("ratio", "message"),
    [
        ([1, 1, 1], r"ratio has shape \(3,\), expected \(5,\)"),
        ([1, 1, 0, 1, 1], r"ratio of node 2 is 0(\.0)?, expected a finite number > 0"),
        ([1, 1, 1, 1, np.inf], r"ratio of node 4 is inf, expected a finite number > 0"),
    ],
)
def test_ratios(ratio, message):
    with pytest.raises(KernelError, match=message):
        kernel(Move(1.0, ratio=ratio))


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ([1, 1, 1], r"law has shape \(3,\), expected \(5,\)"),
        ([1, 1, -1, 1, 1], r"law of node 2 is -1(\.0)?, expected a finite number >= 0"),
        ([0, 0, 0, 0, 0], r"law of node 0 is 0(\.0)?, expected a finite number >= 0, and one above"),
    ],
)
def test_laws(law, message):
    with pytest.raises(KernelError, match=message):
        kernel(Move(1.0, law=law))


def leaving():
    matrix = LAZY.copy()
    matrix[1, 2], matrix[1, 3] = 0.0, 0.25
    return matrix


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.eye(4), r"got a matrix of shape \(4, 4\), expected \(5, 5\) as the graph"),
        (LAZY[:, :4], r"rows has shape \(5, 4\), expected a square matrix"),
        (LAZY + 1e-6 * np.eye(5), r"row 0 of its matrix adds up to 1.000001, expected 1; divide each row by its sum"),
        (0.5 * LAZY, r"row 0 of its matrix adds up to 0.5, expected 1; divide each row by its sum"),
        (2 * simple(RING) - LAZY, r"entries that are negative or not finite"),
        (np.where(LAZY > 0, np.nan, 0), r"entries that are negative or not finite; expected probabilities"),
        (leaving(), r"goes from node 1 to node 3, which is not an edge of ring\(5\)"),
    ],
    ids=["small", "not square", "sum", "half", "negative", "nan", "leaves"],
)
def test_matrices(rows, message):
    with pytest.raises(KernelError, match=message):
        kernel(Move(1.0, rows=rows))


def test_every_matrix_of_a_move_is_checked():
    with pytest.raises(KernelError, match=r"goes from node 1 to node 3"):
        kernel(Move(1.0, hops=2, rows=[LAZY, leaving()]))
