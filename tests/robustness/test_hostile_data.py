"""Whatever is handed to an objective, it answers with a result or with an error of its own, at once."""

import itertools
import time

import numpy as np
import pytest
from scipy.sparse import csr_array

import freewalk as fw
from freewalk.errors import FreewalkError
from freewalk.objectives import LeastSquares, Logistic, Predictor
from freewalk.objectives.synthetic import truth

HOSTILE = {
    "None": None,
    "a text": "x",
    "False as a text": "False",
    "bytes": b"x",
    "a huge integer": 10**30,
    "an integer beyond floats": 10**400,
    "minus a huge integer": -(10**30),
    "10^12": 10**12,
    "2^63 + 5": np.uint64(2**63 + 5),
    "NaN": float("nan"),
    "infinity": np.inf,
    "1e308": 1e308,
    "complex": 1 + 2j,
    "an object": object(),
    "a class": LeastSquares,
    "ragged": [[1.0, 2.0], [3.0]],
    "nested": [[[1.0]]],
    "masked": np.ma.masked_equal([1.0, 2.0, 3.0], 2.0),
    "complex numbers": np.ones((3, 2)) * 1j,
    "unsigned": np.full(3, 2**63 + 5, dtype=np.uint64),
    "huge numbers": [10**400, 1, 2],
    "texts": ["a", "b", "c"],
    "objects": np.array([object(), None, 3], dtype=object),
    "dates": np.array(["2020-01-01"] * 3, dtype="datetime64[D]"),
    "without end": itertools.count(),
    "very long": range(10**12),
    "longer than can be": range(10**30),
    "empty": [],
    "of no dimension": np.array(3.0),
    "sparse": csr_array(np.eye(3)),
    "a dictionary": {"a": 1},
    "a graph": fw.graphs.ring(3),
}
PROBLEM = LeastSquares(np.arange(6.0).reshape(3, 2), np.ones(3), [0, 0, 1], relays=[2])
FIELDS = {"features": np.ones((3, 2)), "targets": np.zeros(3), "nodes": [0, 0, 1], "relays": [2]}
OPTIONS = {
    "n": 5,
    "dim": 2,
    "heavy": 1,
    "heavy_probability": None,
    "adjacent": True,
    "light_variance": 1.0,
    "heavy_variance": 100.0,
    "noise": 0.1,
    "constant": False,
    "distance": 1.0,
    "shift": 0.5,
    "shifted": "all",
    "samples": 1,
    "ridge": 0.0,
    "seed": 0,
}


def answers(call):
    """Call it; the answer, or that it was refused as it should be."""
    began = time.perf_counter()
    try:
        result = call()
    except FreewalkError:
        result = "refused"
    assert time.perf_counter() - began < 10
    return result


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("field", ["features", "targets", "nodes", "ridge", "heavy", "weight_by", "relays", "graph"])
def test_fields(field, what):
    value = HOSTILE[what]
    for kind in (LeastSquares, Logistic):
        problem = answers(lambda kind=kind: kind(**{**FIELDS, "graph": None, field: value}))
        if isinstance(problem, Predictor):  # what was let in can be used
            assert problem.smoothness.shape == problem.node_weights.shape == (problem.n,)
            assert np.isfinite(problem.smoothness).all()
            assert problem.loss(np.zeros(problem.dim)) >= 0
            answers(problem.optimum)
        else:
            assert problem == "refused"


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_drawn_data(option, what):
    for kind in (LeastSquares, Logistic):
        problem = answers(lambda kind=kind: kind.synthetic(**{**OPTIONS, option: HOSTILE[what]}))
        assert problem == "refused" or isinstance(problem, kind)


@pytest.mark.parametrize(
    "options",
    [
        {"n": 10**12},
        {"dim": 10**9},
        {"samples": 10**12},
        {"samples": [2**62] * 5},
        {"constant": "False"},
        {"adjacent": "no"},
        {"heavy_variance": 1e308, "distance": 1e308},
        {"heavy_variance": 1e308, "shift": 1e308},
        {"noise": 1e308, "ridge": 10**400},
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_refused(options):
    assert answers(lambda: LeastSquares.synthetic(**{**OPTIONS, **options})) == "refused"


@pytest.mark.parametrize("what", HOSTILE)
def test_methods(what):
    value, x = HOSTILE[what], np.zeros(2)
    for call in (
        lambda: PROBLEM.samples(value),
        lambda: PROBLEM.gradient(value, x),
        lambda: PROBLEM.gradient(0, value),
        lambda: PROBLEM.loss(value),
        lambda: PROBLEM.mse(value),
        lambda: truth(value),
        lambda: truth(2, value),
        lambda: truth(2, seed=value),
    ):
        answer = answers(call)
        assert isinstance(answer, (int, float, np.ndarray)) or answer == "refused"
    if value is not None:
        assert answers(lambda: PROBLEM.gradient(0, x, value)) == "refused"


def test_an_optimum_of_too_many_features_is_refused_and_the_loss_is_not():
    wide = LeastSquares(np.ones((2, 200_000)), [1.0, 2.0])
    assert answers(wide.optimum) == "refused"
    assert wide.loss(np.zeros(wide.dim)) == 1.25


@pytest.mark.parametrize("curvature", [None, "one", -1.0, np.nan])
def test_a_class_of_a_user_says_how_curved_it_is(curvature):
    class Own(Predictor):
        @staticmethod
        def value(prediction, target):
            return abs(prediction - target)

        @staticmethod
        def slope(prediction, target):
            return 1.0

    if curvature is not None:
        Own.curvature = curvature
    with pytest.raises(FreewalkError, match=r"Own: curvature = .*, expected a finite number >= 0; set it in the class"):
        Own(**FIELDS)
