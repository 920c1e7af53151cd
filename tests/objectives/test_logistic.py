"""Logistic regression: stable at any prediction, and an optimum where there is one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from freewalk.compiled.compiler import compile_functions
from freewalk.errors import ProblemError
from freewalk.objectives import Logistic

labels = st.sampled_from([0.0, 1.0])


def gradient(problem, x):
    return np.mean([problem.gradient(node, x) for node in range(problem.n)], axis=0)


def separable(problem):
    """Whether some direction has no label on its wrong side and one on its right, by linear programming."""
    signed = (2 * problem.targets - 1)[:, None] * problem.features
    found = linprog(-signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=(-1, 1))
    return found.fun < -1e-7


@settings(derandomize=True, deadline=None, database=None)
@given(st.floats(-30, 30), labels)
def test_slope_is_the_derivative_of_value(prediction, target):
    width = 1e-4
    numeric = (Logistic.value(prediction + width, target) - Logistic.value(prediction - width, target)) / (2 * width)
    assert Logistic.slope(prediction, target) == pytest.approx(numeric, rel=1e-6, abs=1e-9)


@settings(derandomize=True, deadline=None, database=None)
@given(st.floats(-30, 30), labels)
def test_against_the_textbook(prediction, target):
    assert Logistic.slope(prediction, target) == pytest.approx(1 / (1 + math.exp(-prediction)) - target, abs=1e-15)
    expected = math.log(1 + math.exp(prediction)) - target * prediction
    assert Logistic.value(prediction, target) == pytest.approx(expected, abs=1e-14)


@settings(derandomize=True, deadline=None, database=None)
@given(st.floats(-700, 700))
def test_swapping_label_and_sign_changes_nothing_and_tails_keep_their_digits(prediction):
    assert Logistic.value(prediction, 1.0) == Logistic.value(-prediction, 0.0)
    assert Logistic.slope(prediction, 1.0) == -Logistic.slope(-prediction, 0.0)
    if prediction > 40:
        assert Logistic.slope(prediction, 1.0) == pytest.approx(-math.exp(-prediction), rel=1e-15)
        assert Logistic.value(prediction, 1.0) == pytest.approx(math.exp(-prediction), rel=1e-15)


def test_far_predictions():
    assert (Logistic.value(1e3, 1.0), Logistic.value(1e3, 0.0)) == (0.0, 1e3)
    assert (Logistic.value(-1e3, 1.0), Logistic.value(-1e3, 0.0)) == (1e3, 0.0)
    assert (Logistic.slope(1e3, 1.0), Logistic.slope(1e3, 0.0)) == (0.0, 1.0)
    assert (Logistic.slope(-1e3, 1.0), Logistic.slope(-1e3, 0.0)) == (-1.0, 0.0)


@pytest.mark.parametrize("name", ["value", "slope"])
def test_compiled_functions_agree(name):
    function = getattr(Logistic, name)
    compiled = compile_functions({name: function}, name)
    for prediction in (-1e3, -30.0, -1.5, 0.0, 0.1, 2.0, 30.0, 1e3):
        for target in (0.0, 1.0):
            assert compiled(prediction, target) == pytest.approx(function(prediction, target), rel=1e-14)


def test_optimum_of_a_single_feature_is_the_log_odds():
    problem = Logistic(np.ones((10, 1)), [1] * 9 + [0])
    assert problem.optimum()[0] == pytest.approx(math.log(9), rel=1e-13)


def test_optimum_weighs_nodes_and_not_samples():
    # Node 0 says one in two, node 1 three in four, from more samples: five in eight together.
    problem = Logistic(np.ones((6, 1)), [1, 0, 1, 1, 1, 0], nodes=[0, 0, 1, 1, 1, 1])
    assert problem.optimum()[0] == pytest.approx(math.log(5 / 3), rel=1e-13)


@pytest.mark.parametrize(
    "options",
    [
        {"heavy": 2},
        {"heavy": 5, "heavy_variance": 1e6},
        {"heavy": 5, "heavy_variance": 1e4, "noise": 0.1},
        {"distance": 100.0},
        {"distance": 1e4, "noise": 0.01},
        {"ridge": 1e-10, "distance": 1e6},
        {"light_variance": 1e-12, "constant": True},
        {"light_variance": 1e4, "ridge": 10.0},
    ],
    ids=str,
)
def test_optimum_on_hard_data(options):
    problem = Logistic.synthetic(400, 4, seed=4, **options)
    scale = problem.sample_weights @ np.linalg.norm(problem.features, axis=1)
    assert np.linalg.norm(gradient(problem, problem.optimum())) < 1e-13 * max(scale, 1)


def test_optimum_of_rank_deficient_data_has_the_smallest_norm():
    single = Logistic(np.ones((3, 1)), [1, 1, 0]).optimum()[0]
    double = Logistic(np.ones((3, 2)), [1, 1, 0]).optimum()
    assert np.allclose(double, single / 2, rtol=1e-13)
    assert Logistic(np.zeros((3, 2)), [1, 1, 0]).optimum().tolist() == [0, 0]


@pytest.mark.parametrize(
    ("features", "targets"),
    [
        ([[1.0], [2.0]], [1, 1]),
        ([[-1.0], [2.0]], [0, 1]),
        ([[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 1.0]], [0, 0, 1, 1]),  # some samples on the plane
        (1e-9 * np.array([[-1.0], [2.0]]), [0, 1]),
        ([[1.0, 1e-9], [1.0, 0.0], [1.0, 0.0]], [1, 1, 0]),  # held back in one direction, free in a faint one
    ],
)
def test_separable_labels_have_no_optimum(features, targets):
    with pytest.raises(ProblemError, match=r"no finite optimum with ridge = 0, .*separates.*add ridge, for example"):
        Logistic(features, targets).optimum()
    held = Logistic(features, targets, ridge=1e-3)
    assert np.linalg.norm(gradient(held, held.optimum())) < 1e-12


def test_no_optimum_is_reported_exactly_where_a_plane_separates():
    verdicts = []
    for seed in range(40):
        problem = Logistic.synthetic(8, 3, seed=seed)
        try:
            problem.optimum()
            verdicts.append(False)
        except ProblemError:
            verdicts.append(True)
        assert verdicts[-1] == separable(problem)
    assert 5 < sum(verdicts) < 35  # both kinds occur


def test_large_ridge_pulls_to_zero(uneven):
    assert np.linalg.norm(uneven(Logistic, 1e9).optimum()) < 1e-8
