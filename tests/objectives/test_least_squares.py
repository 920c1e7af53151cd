"""Linear regression: its two error measures and its exact optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freewalk.compiled.compiler import compile_functions
from freewalk.objectives import LeastSquares

moderate = st.floats(-1e6, 1e6)


@settings(derandomize=True, deadline=None, database=None)
@given(moderate, moderate)
def test_slope_is_the_derivative_of_value(prediction, target):
    # The central difference of a square is exact but for rounding.
    width = 1.0
    numeric = (LeastSquares.value(prediction + width, target) - LeastSquares.value(prediction - width, target)) / (
        2 * width
    )
    assert LeastSquares.slope(prediction, target) == pytest.approx(numeric, rel=1e-6, abs=1e-2)


@pytest.mark.parametrize("name", ["value", "slope"])
def test_compiled_functions_agree(name):
    function = getattr(LeastSquares, name)
    compiled = compile_functions({name: function}, name)
    for prediction in (-1e3, -1.5, 0.0, 0.1, 2.0, 1e3):
        for target in (-0.7, 0.0, 3.0):
            assert compiled(prediction, target) == pytest.approx(function(prediction, target), rel=1e-15)


def test_values_at_large_predictions():
    assert LeastSquares.value(1e3, -1e3) == 2e6
    assert LeastSquares.slope(-1e3, 0.0) == -1e3
    assert LeastSquares.value(1e200, 0.0) == np.inf


def test_mse_is_twice_the_loss_without_ridge(uneven, x):
    problem = uneven(LeastSquares, 0.3)
    assert problem.mse(x) == pytest.approx(2 * (problem.loss(x) - 0.15 * x @ x), rel=1e-13)
    by_node = [
        np.mean((problem.targets[rows] - problem.features[rows] @ x) ** 2)
        for rows in (slice(*problem.offsets[node : node + 2]) for node in range(problem.n))
    ]
    assert problem.mse(x) == pytest.approx(np.mean(by_node), rel=1e-13)


def test_excess_of_the_mse_is_quadratic_in_the_distance(x):
    # MSE = MSE* + eᵀ Ĉ e with one sample per node, on which the exact error curves rest.
    problem = LeastSquares.synthetic(50, 3, seed=2)
    error = x - problem.optimum()
    covariance = problem.features.T @ problem.features / 50
    assert problem.mse(x) - problem.mse(problem.optimum()) == pytest.approx(error @ covariance @ error, rel=1e-11)


def test_optimum_solves_the_normal_equations(uneven):
    problem = uneven(LeastSquares, 0.3)
    weighted = problem.sample_weights[:, None] * problem.features
    expected = np.linalg.solve(weighted.T @ problem.features + 0.3 * np.eye(3), weighted.T @ problem.targets)
    assert np.allclose(problem.optimum(), expected, rtol=1e-12)


def test_optimum_of_rank_deficient_data_has_the_smallest_norm():
    fewer_samples_than_features = LeastSquares([[1.0, 1.0, 0.0]], [2.0])
    assert np.allclose(fewer_samples_than_features.optimum(), [1, 1, 0], atol=1e-15)
    twins = LeastSquares([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], [2.0, 4.0, 6.0])
    assert np.allclose(twins.optimum(), [1, 1], atol=1e-14)
    assert LeastSquares(np.zeros((3, 2)), np.ones(3)).optimum().tolist() == [0, 0]


def test_optimum_sees_a_feature_on_a_small_scale():
    draws = np.random.default_rng(0)
    features = draws.standard_normal((20_000, 2)) * np.array([1.0, 1e-12])
    problem = LeastSquares(features, features @ np.array([2.0, 3e12]))
    assert np.allclose(problem.optimum(), [2.0, 3e12], rtol=1e-3)


def test_large_ridge_pulls_to_zero(uneven):
    assert np.linalg.norm(uneven(LeastSquares, 1e9).optimum()) < 1e-8
