"""Small problems on which every check is cheap."""

from collections.abc import Callable

import numpy as np
import pytest

from freewalk.objectives import LeastSquares, Logistic, Predictor


def make_uneven(kind: type[Predictor], ridge: float = 0.0) -> Predictor:
    """Make a problem whose nodes have fewer than, as many as and more than the three features in samples."""
    draws = np.random.default_rng(3)
    counts = np.array([1, 4, 2, 7, 1, 3])
    features = draws.standard_normal((counts.sum(), 3)) * np.array([1.0, 2.0, 0.5])
    targets = draws.standard_normal(len(features))
    if kind is Logistic:
        targets = (draws.random(len(features)) < 0.5).astype(float)
    return kind(features, targets, np.repeat(np.arange(6), counts), ridge)


@pytest.fixture
def uneven() -> Callable[..., Predictor]:
    return make_uneven


@pytest.fixture(params=[(LeastSquares, 0.0), (LeastSquares, 0.3), (Logistic, 0.0), (Logistic, 0.3)], ids=str)
def problem(request: pytest.FixtureRequest) -> Predictor:
    return make_uneven(*request.param)


@pytest.fixture
def x() -> np.ndarray:
    return np.array([0.3, -0.7, 1.1])
