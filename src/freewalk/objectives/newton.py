"""Newton's method for losses of linear predictions: it finds the minimum, or reports that there is none."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_ITERATIONS = 500
# The curvature starts between 1/4 and 1 in every direction. Once it has lost fourteen digits, predictions have grown
# beyond 30: towards a minimum at infinity, or one that float64 cannot represent.
_FLAT = 1e-14
# A change of the predictions so small that the next one, about its square, is below rounding.
_SETTLED = 1e-8


def minimise(
    features: Vector,
    weights: Vector,
    ridge: float,
    *,
    values: Callable[[Vector], Vector],
    slopes: Callable[[Vector], Vector],
    bends: Callable[[Vector], Vector],
) -> Vector | None:
    """Minimise Σ_s weights_s · value_s(a_sᵀx) + ridge/2 ‖x‖².

    The value must be convex with |value'''| ≤ value'', as the logistic loss is. Then a move that changes no prediction
    by more than β lowers the loss at least up to the fraction log(1 + β)/β of it; a larger fraction is used if a trial
    shows that it helps.

    The method works in coordinates in which the data are white: a direction in which the curvature has almost vanished
    is then one along which no sample restrains the model, whatever the scale of the features.

    `values` and `slopes` give the value of every sample and its derivative for predictions a_sᵀx, `bends` the second
    derivatives for slopes. Returns the minimiser with the smallest norm; None if there is none at a finite distance.
    """
    basis = _whitening(features, weights, ridge)
    rows = features @ basis
    penalty = ridge * basis.T @ basis

    def loss(point: Vector) -> float:
        return float(weights @ values(rows @ point) + 0.5 * point @ penalty @ point)

    model = np.zeros(rows.shape[1])
    for _ in range(_ITERATIONS if len(model) else 0):
        slope = slopes(rows @ model)
        gradient = rows.T @ (weights * slope) + penalty @ model
        curvatures, axes = np.linalg.eigh(rows.T @ ((weights * bends(slope))[:, None] * rows) + penalty)
        if curvatures[0] < _FLAT:
            return None
        step = -axes @ ((axes.T @ gradient) / curvatures)
        change = float(np.abs(rows @ step).max())
        if change < _SETTLED:
            return np.asarray(basis @ (model + step))
        share, safe, before = 1.0, math.log1p(change) / change, loss(model)
        while share > safe and loss(model + share * step) > before + 0.25 * share * float(gradient @ step):
            share = max(share / 2, safe)
        model = model + share * step
    return None if len(model) else np.zeros(features.shape[1])


def _whitening(features: Vector, weights: Vector, ridge: float) -> Vector:
    """Return T, with as many columns as the rank of the data, such that Tᵀ(Σ_s weights_s a_s a_sᵀ + ridge I)T = I."""
    rows = np.vstack([np.sqrt(weights)[:, None] * features, np.sqrt(ridge) * np.eye(features.shape[1])])
    _, scales, directions = np.linalg.svd(np.linalg.qr(rows, mode="r"))
    kept = scales > scales[0] * np.finfo(np.float64).eps * len(scales)
    return np.asarray(directions[kept].T / scales[kept])
