"""Logistic regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from freewalk import rng
from freewalk.blocks import read_only
from freewalk.checks import Floats
from freewalk.errors import ProblemError
from freewalk.graphs import Graph
from freewalk.objectives.predictor import Predictor
from freewalk.objectives.samples import check
from freewalk.objectives.synthetic import LABELS, NOISE, Draw, Shifted

_ITERATIONS = 500  # of Newton's method
# The curvature starts between 1/4 and 1 in every direction. Once it has lost fourteen digits, predictions have grown
# beyond 30: towards a minimum at infinity, or one that float64 cannot represent.
_FLAT = 1e-14
# A change of the predictions so small that the next one, about its square, is below rounding.
_SETTLED = 1e-8


@final
class Logistic(Predictor):
    """Logistic regression: f_v(x) = c_v · (mean over the samples of node v of the log-loss, plus ridge/2 ‖x‖²).

    The log-loss log(1 + exp(aᵀx)) − y aᵀx is the negative log-likelihood of P(y = 1) = 1/(1 + exp(−aᵀx)). The objective
    is f(x) = (1/n) Σ_v f_v(x). The factors c_v are 1 unless `weight_by` or `relays` is given. The smoothness constants
    are L_v = c_v · (¼ λ_max(A_vᵀA_v / m_v) + ridge).

    Parameters
    ----------
    features, nodes, graph
        As for `LeastSquares`.
    targets
        The label of each sample, 0 or 1.
    ridge
        The strength of the ridge term. Without it, linearly separable labels have no optimum.
    heavy
        The nodes known to be heavy, if any.
    weight_by
        What has equal weight in f: "node", every node with data, or "sample", every sample (c_v = n m_v / N).
    relays
        The nodes without data: True for all nodes of `graph` that have none, or a list of nodes. A relay forwards the
        model unchanged. It is one of the n nodes, with f_v = 0, and its importance is the smallest L_v of the others.

    Examples
    --------
    >>> problem = Logistic([[1.0], [1.0], [1.0]], [1, 1, 0])
    >>> float(problem.optimum()[0])  # log 2, the log-odds of two to one
    0.693147...
    >>> problem.smoothness
    array([0.25, 0.25, 0.25])

    References
    ----------
    Liu, El Rouayheb, Dwyer, 2024, Section II-B (here with the sign that makes it a loss). Title and journal version:
    `freewalk.designs.MHLJ`.
    """

    curvature: ClassVar[float] = 0.25

    def __post_init__(self, graph: Graph | Sequence[str] | None) -> None:
        super().__post_init__(graph)
        found = np.unique(self.targets)
        if not np.isin(found, (0.0, 1.0)).all():
            signs = bool(np.isin(found, (-1.0, 1.0)).all())
            remedy = "; convert -1 and +1 with (targets + 1) / 2" if signs else ""
            values = ", ".join(f"{value:g}" for value in found[:5]) + (", ..." if len(found) > 5 else "")
            raise ProblemError(f"Logistic: targets has the values {values}, expected 0 and 1 only{remedy}")

    @staticmethod
    def value(prediction: float, target: float) -> float:
        """Return log(1 + exp(prediction)) − target · prediction, without overflow."""
        # The sign of a prediction is unpredictable, so there is no branch on it. log1p, by a logarithm that is twice as
        # fast.
        small = math.exp(-abs(prediction))
        above = 1.0 + small
        tail = small if above == 1.0 else math.log(above) * (small / (above - 1.0))
        return tail + (max(prediction, 0.0) - target * prediction)

    @staticmethod
    def slope(prediction: float, target: float) -> float:
        """Return 1/(1 + exp(−prediction)) − target, without overflow or cancellation."""
        small = math.exp(-abs(prediction))
        yes = 1.0 if prediction >= 0.0 else small
        no = small if prediction >= 0.0 else 1.0
        return ((1.0 - target) * yes - target * no) / (1.0 + small)

    # `value` and `slope` of all samples at once: the optimum needs many of them.

    def _values(self, predictions: Floats, targets: Floats) -> Floats:
        linear = np.where(predictions >= 0.0, 1.0 - targets, -targets) * predictions
        return np.asarray(np.log1p(np.exp(-np.abs(predictions))) + linear)

    def _slopes(self, predictions: Floats) -> Floats:
        small = np.exp(-np.abs(predictions))
        above = (1.0 - self.targets) - self.targets * small
        below = (1.0 - self.targets) * small - self.targets
        return np.asarray(np.where(predictions >= 0.0, above, below) / (1.0 + small))

    def assess(self, x: ArrayLike) -> dict[str, float]:
        """Return the measures of a model and its accuracy, the fraction of samples whose label is the likelier one.

        Examples
        --------
        >>> Logistic([[1.0], [1.0], [-1.0], [1.0]], [1, 1, 0, 0]).assess([2.0])["accuracy"]
        0.75
        """
        right = (self.features @ self._model(x) > 0) == (self.targets > 0)
        return {**self.measure(x), "accuracy": float(right.mean())}

    def optimum(self) -> Floats:
        """Return the minimiser of the loss, up to rounding; if there are several, the one with the smallest norm.

        It is read-only, and computed only once. There is none, a ProblemError, without ridge if a plane separates the
        labels (entirely, or with some samples on the plane).
        """
        return self._optimum

    @cached_property
    def _optimum(self) -> Floats:
        size = 8.0 * self.dim * (3 * len(self.targets) + 6 * self.dim)
        check.room("Logistic", f"the optimum of {self.dim} features", size, "use fewer features")
        model = self._minimiser()
        if model is None:
            why = "because a plane (almost) separates the labels; add ridge, for example ridge=1e-3"
            raise ProblemError(f"Logistic: the loss has no finite optimum with ridge = {self.ridge:g}, {why}")
        return read_only(model)

    def _minimiser(self) -> Floats | None:
        """Newton's method: the minimiser with the smallest norm; None if there is none at a finite distance.

        The loss is convex with |value'''| ≤ value'', so a move that changes no prediction by more than β lowers it at
        least up to the fraction log(1 + β)/β of the move; a larger fraction is used if a trial shows that it helps.

        The method works in coordinates in which the data are white: a direction in which the curvature has almost
        vanished is then one along which no sample restrains the model, whatever the scale of the features.
        """
        weights, basis = self.sample_weights, _whitening(self.features, self.sample_weights, self.ridge)
        rows = self.features @ basis
        penalty = self.ridge * basis.T @ basis

        def loss(point: Floats) -> float:
            return float(weights @ self._values(rows @ point, self.targets) + 0.5 * point @ penalty @ point)

        model = np.zeros(rows.shape[1])
        for _ in range(_ITERATIONS if len(model) else 0):
            slopes = self._slopes(rows @ model)
            # For either label, |slope| is the probability p of the other one, and value'' = p(1 − p).
            bends = np.abs(slopes) * (1.0 - np.abs(slopes))
            gradient = rows.T @ (weights * slopes) + penalty @ model
            curvatures, axes = np.linalg.eigh(rows.T @ ((weights * bends)[:, None] * rows) + penalty)
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
        return None if len(model) else np.zeros(self.dim)

    @classmethod
    def synthetic(
        cls,
        n: int,
        dim: int = 10,
        *,
        heavy: int | Sequence[int] = 0,
        heavy_probability: float | None = None,
        adjacent: bool = True,
        light_variance: float = 1.0,
        heavy_variance: float = 100.0,
        noise: float = 0.0,
        constant: bool = False,
        distance: float = 1.0,
        shift: float = 0.0,
        shifted: Shifted = "heavy",
        samples: int | ArrayLike = 1,
        ridge: float = 0.0,
        seed: int = 0,
    ) -> Logistic:
        """Draw labels with P(y = 1) = 1/(1 + exp(−aᵀ(x + s_v))).

        The features are those of `LeastSquares.synthetic` with the same seed and options.

        Parameters
        ----------
        n, dim, heavy, heavy_probability, adjacent, light_variance, heavy_variance
            As for `LeastSquares.synthetic`.
        noise
            The probability that a label, once drawn, is flipped.
        constant, distance, shift, shifted, samples, ridge, seed
            As for `LeastSquares.synthetic`.

        Notes
        -----
        The true model is `freewalk.objectives.synthetic.truth(dim, distance, seed)`; the optimum approaches it as the
        number of samples grows. With few samples relative to `dim`, a plane separates the labels: add some ridge in
        that case.

        Examples
        --------
        >>> problem = Logistic.synthetic(1000, heavy=2, ridge=1e-3, seed=1)
        >>> problem
        Logistic(n=1000, dim=10, samples=1000, ridge=0.001, heavy=(0, 1))
        >>> problem.loss(problem.optimum()) < problem.loss(np.zeros(10))
        True
        """
        options, who = locals(), f"{cls.__name__}.synthetic"
        probability, ridge = check.probability(who, "noise", noise), check.real(who, "ridge", ridge, 0.0)
        draw = Draw.of(who, options)
        data = draw.whole()
        # A score plus standard logistic noise is positive with exactly the probability of the model.
        labels = data.scores + rng.generator(seed, LABELS).logistic(size=len(data.scores)) > 0
        flipped = rng.generator(seed, NOISE).random(len(labels)) < probability
        return cls(data.features, (labels ^ flipped).astype(np.float64), data.nodes, ridge, draw.heavy)


def _whitening(features: Floats, weights: Floats, ridge: float) -> Floats:
    """Return T, with as many columns as the rank of the data, such that Tᵀ(Σ_s weights_s a_s a_sᵀ + ridge I)T = I."""
    rows = np.vstack([np.sqrt(weights)[:, None] * features, np.sqrt(ridge) * np.eye(features.shape[1])])
    _, scales, directions = np.linalg.svd(np.linalg.qr(rows, mode="r"))
    kept = scales > scales[0] * np.finfo(np.float64).eps * len(scales)
    return np.asarray(directions[kept].T / scales[kept])
