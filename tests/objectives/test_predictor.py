"""Linear predictors: how data are kept, and that loss, gradient and smoothness belong together."""

import dataclasses

import numpy as np
import pytest

from freewalk.objectives import LeastSquares, Logistic


def local_loss(problem, node, x):
    """f_v(x) spelled out."""
    rows = range(problem.offsets[node], problem.offsets[node + 1])
    values = [problem.value(float(problem.features[row] @ x), float(problem.targets[row])) for row in rows]
    return np.mean(values) + problem.ridge / 2 * x @ x


def differences(function, x, width=1e-5):
    return np.array([(function(x + width * e) - function(x - width * e)) / (2 * width) for e in np.eye(len(x))])


def test_gradient_is_the_derivative_of_the_local_loss(problem, x):
    for node in range(problem.n):
        expected = differences(lambda point, node=node: local_loss(problem, node, point), x)
        assert np.allclose(problem.gradient(node, x), expected, rtol=1e-8, atol=1e-9)


def test_sample_gradient_is_the_derivative_of_the_sample_loss(problem, x):
    row = int(problem.offsets[3]) + 5
    features, target = problem.features[row], float(problem.targets[row])
    expected = differences(
        lambda point: problem.value(float(features @ point), target) + problem.ridge / 2 * point @ point, x
    )
    assert np.allclose(problem.gradient(3, x, sample=5), expected, rtol=1e-8, atol=1e-9)


def test_gradient_is_the_mean_over_samples(problem, x):
    for node in range(problem.n):
        parts = [problem.gradient(node, x, sample) for sample in range(problem.samples(node))]
        assert np.allclose(np.mean(parts, axis=0), problem.gradient(node, x), rtol=1e-13, atol=1e-14)


def test_loss_is_the_mean_over_nodes_whatever_their_counts(problem, x):
    expected = np.mean([local_loss(problem, node, x) for node in range(problem.n)])
    assert problem.loss(x) == pytest.approx(expected, rel=1e-13)
    # What averaging over samples would give is far away: the test can tell.
    over_samples = np.average(
        [local_loss(problem, node, x) for node in range(problem.n)], weights=np.diff(problem.offsets)
    )
    assert abs(problem.loss(x) - over_samples) > 1e-3


def test_sample_weights_make_the_loss(problem, x):
    values = [problem.value(float(a @ x), float(y)) for a, y in zip(problem.features, problem.targets, strict=True)]
    assert problem.sample_weights.sum() == pytest.approx(1.0)
    assert problem.loss(x) == pytest.approx(problem.sample_weights @ values + problem.ridge / 2 * x @ x)


def test_smoothness_is_the_largest_eigenvalue(problem):
    for node in range(problem.n):
        rows = problem.features[problem.offsets[node] : problem.offsets[node + 1]]
        largest = np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1]
        assert problem.smoothness[node] == pytest.approx(problem.curvature * largest + problem.ridge, rel=1e-12)


def test_smoothness_bounds_gradient_differences_and_is_reached(problem):
    draws = np.random.default_rng(0)
    for node in range(problem.n):
        ratios = []
        for _ in range(50):
            first, second = draws.standard_normal((2, 3)) * draws.choice([1e-3, 1.0, 30.0])
            moved = problem.gradient(node, first) - problem.gradient(node, second)
            ratios.append(np.linalg.norm(moved) / np.linalg.norm(first - second))
        assert max(ratios) <= problem.smoothness[node] * (1 + 1e-9)
        rows = problem.features[problem.offsets[node] : problem.offsets[node + 1]]
        step = 1e-4 * np.linalg.eigh(rows.T @ rows)[1][:, -1]
        moved = problem.gradient(node, step) - problem.gradient(node, -step)  # at 0 a logistic is at its steepest
        assert np.linalg.norm(moved) / np.linalg.norm(2 * step) == pytest.approx(problem.smoothness[node], rel=1e-6)


def test_optimum_has_zero_gradient_and_beats_its_neighbours(problem):
    best = problem.optimum()
    gradient = np.mean([problem.gradient(node, best) for node in range(problem.n)], axis=0)
    assert np.linalg.norm(gradient) < 1e-12
    draws = np.random.default_rng(1)
    for size in (1e-3, 0.1, 3.0):
        for direction in draws.standard_normal((10, 3)):
            assert problem.loss(best + size * direction) > problem.loss(best)
    assert problem.optimum() is best
    assert not best.flags.writeable


@pytest.mark.parametrize("kind", [LeastSquares, Logistic])
def test_order_of_samples_is_irrelevant(uneven, kind, x):
    problem = uneven(kind, 0.1)
    order = np.random.default_rng(0).permutation(len(problem.targets))
    other = kind(problem.features[order], problem.targets[order], problem.nodes[order], 0.1)
    assert np.array_equal(other.nodes, problem.nodes)
    assert np.array_equal(other.offsets, problem.offsets)
    assert other.loss(x) == pytest.approx(problem.loss(x), rel=1e-14)
    assert np.allclose(other.smoothness, problem.smoothness, rtol=1e-13)
    for node in range(problem.n):
        assert np.allclose(other.gradient(node, x), problem.gradient(node, x), rtol=1e-12, atol=1e-14)


def test_sorting_keeps_the_order_within_a_node():
    problem = LeastSquares([[1.0], [2.0], [3.0], [4.0]], [1, 2, 3, 4], nodes=[1, 0, 1, 0])
    assert problem.targets.tolist() == [2, 4, 1, 3]
    assert problem.features[:, 0].tolist() == [2, 4, 1, 3]
    assert problem.nodes.tolist() == [0, 0, 1, 1]
    assert problem.offsets.tolist() == [0, 2, 4]


@pytest.mark.parametrize("kind", [LeastSquares, Logistic])
def test_fields_rebuild_the_problem(kind):
    problem = kind.synthetic(7, 3, heavy=[2, 5], samples=[1, 3, 2, 1, 1, 4, 1], ridge=0.2, seed=5)
    fields = {field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)}
    assert list(fields) == ["features", "targets", "nodes", "ridge", "heavy", "weight_by", "relays"]
    again = kind(**fields)
    assert (again.ridge, again.heavy) == (0.2, (2, 5))
    for name in ("features", "targets", "nodes", "offsets", "sample_weights", "smoothness"):
        assert np.array_equal(getattr(again, name), getattr(problem, name))
    assert np.array_equal(again.optimum(), problem.optimum())


def test_replace_changes_one_field(uneven):
    problem = dataclasses.replace(uneven(LeastSquares), ridge=2.0)
    assert problem.ridge == 2.0
    assert problem.smoothness.min() > 2.0


def test_without_nodes_every_sample_is_a_node():
    problem = LeastSquares([[1, 2], [3, 4], [5, 6]], [1, 2, 3])
    assert (problem.n, problem.dim) == (3, 2)
    assert problem.nodes.tolist() == [0, 1, 2]
    assert problem.smoothness.tolist() == [5, 25, 61]
    assert [problem.samples(node) for node in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("layout", ["C", "F"])
def test_arrays_are_contiguous_read_only_copies(layout):
    features, targets = np.ones((3, 2), order=layout), np.ones(3)
    problem = LeastSquares(features, targets)
    features[0], targets[0] = 9, 9
    assert problem.features[0, 0] == problem.targets[0] == 1
    for array in (problem.features, problem.targets, problem.nodes, problem.offsets):
        assert array.flags.c_contiguous
        assert not array.flags.writeable
    assert problem.features.dtype == problem.targets.dtype == np.float64
    assert problem.nodes.dtype == problem.offsets.dtype == np.int64
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.ridge = 1.0


@pytest.mark.parametrize("size", [1e200, np.inf, np.nan])
def test_diverged_models_give_values_that_are_not_finite(problem, size):
    x = np.array([size, -size, size])
    assert not np.isfinite(problem.loss(x)) or size == 1e200
    assert problem.gradient(3, x).shape == (3,)


def test_repr_is_short():
    problem = LeastSquares.synthetic(100, 2, heavy=50)
    assert repr(problem) == ("LeastSquares(n=100, dim=2, samples=100, ridge=0.0, heavy=(0, 1, 2, 3, 4, 5, ...))")
