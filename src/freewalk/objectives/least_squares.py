"""Linear regression."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk import rng
from freewalk.blocks import blocks, read_only
from freewalk.checks import Floats
from freewalk.objectives import files
from freewalk.objectives.predictor import Predictor
from freewalk.objectives.samples import check, table
from freewalk.objectives.synthetic import NOISE, Draw, Shifted, Unlabelled

_ROWS, _BLOCK = 2**16, 2**14


@final
class LeastSquares(Predictor):
    """Linear regression: f_v(x) = c_v · (mean over the samples of node v of ½(aᵀx − y)², plus ridge/2 ‖x‖²).

    The objective is f(x) = (1/n) Σ_v f_v(x). The factors c_v are 1 unless `weight_by` or `relays` is given. The
    smoothness constants are L_v = c_v · (λ_max(A_vᵀA_v / m_v) + ridge), which is ‖a‖² for one sample per node and no
    ridge.

    Parameters
    ----------
    features
        The feature matrix, one row per sample.
    targets
        The targets, one number per sample.
    nodes
        The node of each sample, as a number or, together with `graph`, a name (if names are themselves numbers, only
        names are accepted). By default every sample is its own node, in order.
    ridge
        The strength of the ridge term.
    heavy
        The nodes known to be heavy, if any.
    weight_by
        What has equal weight in f: "node", every node with data, or "sample", every sample (c_v = n m_v / N; the loss
        is then the mean over all N samples, and `mse` the pooled mean squared error).
    relays
        The nodes without data: True for all nodes of `graph` that have none, or a list of nodes. A relay forwards the
        model unchanged. It is one of the n nodes, with f_v = 0, and its importance (its entry in `smoothness`) is the
        smallest L_v of the nodes with data.
    graph
        The graph, or a list of its node names in order; it is not stored.

    Examples
    --------
    >>> problem = LeastSquares([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0])
    >>> problem.smoothness
    array([1., 4.])
    >>> problem.optimum()
    array([3., 2.])
    >>> problem.loss([0.0, 0.0]), problem.mse([0.0, 0.0])
    (6.25, 12.5)

    Two cities with data, one of them with more samples, and a third without data, which forwards the model:

    >>> cities = ["Bonn", "Kiel", "Ulm"]
    >>> rows, answers, places = [[1.0], [1.0], [1.0]], [1.0, 4.0, 4.0], ["Bonn", "Ulm", "Ulm"]
    >>> LeastSquares(rows, answers, places, relays=True, graph=cities).optimum()
    array([2.5])
    >>> LeastSquares(rows, answers, places, weight_by="sample", relays=["Kiel"], graph=cities).optimum()
    array([3.])

    References
    ----------
    Liu, El Rouayheb, Dwyer, 2024, Section II-B. Title and journal version: `freewalk.designs.MHLJ`.
    """

    curvature: ClassVar[float] = 1.0
    measures: ClassVar[tuple[str, ...]] = ("loss", "mse")  # type: ignore[misc]
    primary: ClassVar[str] = "mse"  # type: ignore[misc]

    @staticmethod
    def value(prediction: float, target: float) -> float:
        """Return ½(prediction − target)²."""
        return 0.5 * (prediction - target) * (prediction - target)

    @staticmethod
    def slope(prediction: float, target: float) -> float:
        """Return the error, prediction − target."""
        return prediction - target

    def measure(self, x: ArrayLike) -> dict[str, float]:
        """Return the loss and mean squared error of a model."""
        return {"loss": self.loss(x), "mse": self.mse(x)}

    def measures_of(self, fit: Floats, penalty: Floats) -> dict[str, Floats]:
        """Return the loss and mean squared error from the sums that compiled code computes."""
        return {"loss": fit + penalty, "mse": 2.0 * fit}

    def expansion(self, optimum: Floats) -> tuple[Floats, Floats, float]:
        """Return second derivative, derivative and value at the optimum, if they are fewer numbers than the data."""
        dim = self.dim
        if dim > self.targets.size or np.isnan(optimum).any():
            return super().expansion(optimum)
        curvature, pull, least = np.zeros((dim, dim)), np.zeros(dim), 0.0
        for rows in blocks(self.targets.size, numbers=_BLOCK):  # there may be no memory for a second copy
            features, weights = self.features[rows], self.sample_weights[rows, None]
            errors = features @ optimum - self.targets[rows]
            curvature += features.T @ (weights * features)
            pull += features.T @ (weights[:, 0] * errors)
            least += float(0.5 * weights[:, 0] @ errors**2)
        return curvature, pull, least

    def proximal(self, node: int, point: ArrayLike, penalty: float) -> Floats:
        """Return the y that minimises f_v(y) + penalty/2 ‖y − point‖².

        Examples
        --------
        >>> LeastSquares([[1.0], [2.0]], [3.0, 4.0]).proximal(0, [1.0], penalty=1.0)
        array([2.])
        """
        near, strength = self._model(point), check.real("LeastSquares", "penalty", penalty, above=0.0)
        first, last = self._rows(node)
        if first == last:
            return near.copy()
        rows, share = self.features[first:last], float(self.node_weights[node]) / (last - first)
        # With as many unknowns as the node has samples: usually far fewer than features.
        stiffness = strength + float(self.node_weights[node]) * self.ridge
        errors = self.targets[first:last] - rows @ near * (strength / stiffness)
        pulls = np.linalg.solve(stiffness * np.eye(last - first) + share * (rows @ rows.T), share * errors)
        return np.asarray(near * (strength / stiffness) + rows.T @ pulls)

    def _values(self, predictions: Floats, targets: Floats) -> Floats:
        return np.asarray(0.5 * (predictions - targets) ** 2)

    def mse(self, x: ArrayLike) -> float:
        """Return the mean over the nodes (or the samples: `weight_by`) of (y − aᵀx)²: twice the loss without ridge.

        It is not finite for a diverged model.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self._mean(self._model(x), lambda predictions, targets: (targets - predictions) ** 2))

    def optimum(self) -> NDArray[np.float64]:
        """Return the exact minimiser of the loss, with the smallest norm if there are several; computed only once."""
        return self._optimum

    @cached_property
    def _optimum(self) -> NDArray[np.float64]:
        size = 8.0 * self.dim * (min(len(self.targets), _ROWS) + 3 * self.dim)
        check.room("LeastSquares", f"the optimum of {self.dim} features", size, "use fewer features")
        # Reduced to triangular form first, because lstsq treats values that are small relative to its number of rows as
        # zero. Block by block, because there may be no memory for a second copy.
        triangle = np.hstack([np.sqrt(self.ridge) * np.eye(self.dim), np.zeros((self.dim, 1))])
        for block in blocks(len(self.targets), numbers=_ROWS):
            samples = np.column_stack([self.features[block], self.targets[block]])
            rows = np.vstack([np.sqrt(self.sample_weights[block])[:, None] * samples, triangle])
            triangle = np.asarray(np.linalg.qr(rows, mode="r"))
        model = np.linalg.lstsq(triangle[:, :-1], triangle[:, -1], rcond=None)[0]
        return read_only(model.astype(np.float64, copy=False))

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
        noise: float = 0.1,
        constant: bool = False,
        distance: float = 1.0,
        shift: float = 0.0,
        shifted: Shifted = "heavy",
        samples: int | ArrayLike = 1,
        ridge: float = 0.0,
        seed: int = 0,
        path: str | os.PathLike[str] | None = None,
    ) -> LeastSquares:
        """Draw data as in the paper: y = aᵀ(x + s_v) + noise · N(0, 1), with a ~ N(0, variance · I).

        Parameters
        ----------
        n
            The number of nodes.
        dim
            The number of features.
        heavy
            The nodes with the larger variance: their number, or a list.
        heavy_probability
            Makes each node heavy independently, instead of `heavy`. A draw can have no heavy node: for n = 1000 and
            .002, 13.5 % of draws do.
        adjacent
            If `heavy` is a number: whether the heavy nodes are 0, 1, 2, …, which are adjacent on a ring, a path and the
            first row of a grid, or drawn at random.
        light_variance, heavy_variance
            The variance of the features at light and at heavy nodes.
        noise
            The standard deviation of the noise.
        constant
            Whether the first feature of every sample is 1.
        distance
            ‖x‖² of the true model x, whose direction is random: its squared distance from the zero model.
        shift
            The norm of s_v, the distance of a shifted node's own optimum from the true model; with 0 all nodes share
            one.
        shifted
            "heavy" shifts the heavy nodes, all in the same direction, so that the shifts do not average out; "all"
            shifts every node, each in its own direction.
        samples
            The number of samples per node, or a list with one number per node.
        ridge
            The strength of the ridge term.
        seed
            Features, true model, heavy nodes, shifts and noise are drawn independently: changing an option of one keeps
            the others.
        path
            A file to which the same data are written block by block, for problems larger than memory; the problem is
            then mapped from it, as with `fw.objectives.read`. An existing file is replaced.

        Notes
        -----
        The true model is `freewalk.objectives.synthetic.truth(dim, distance, seed)`. It is also the optimum if noise,
        shift and ridge are 0 and there are at least `dim` samples in total.

        Examples
        --------
        >>> problem = LeastSquares.synthetic(1000, heavy=2, seed=1)
        >>> problem
        LeastSquares(n=1000, dim=10, samples=1000, ridge=0.0, heavy=(0, 1))
        >>> bool(problem.smoothness[:2].min() > problem.smoothness[2:].max())
        True
        """
        options, who = locals(), f"{cls.__name__}.synthetic"
        deviation, ridge = check.real(who, "noise", noise, 0.0), check.real(who, "ridge", ridge, 0.0)
        draw = Draw.of(who, options)
        noises = rng.generator(seed, NOISE)

        def answers(data: Unlabelled) -> Floats:
            with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are rejected with the data
                return np.asarray(data.scores + deviation * noises.standard_normal(len(data.scores)))

        if path is None:
            data = draw.whole()
            return cls(data.features, answers(data), data.nodes, ridge, draw.heavy)
        total = int(draw.counts.sum())
        several = bool((draw.counts != 1).any())
        others = {"ridge": ridge, "heavy": draw.heavy, "weight_by": "node", "relays": (), "node_names": None}
        with files.writing(path, cls, (total, dim), several, others) as sinks:
            for data in draw.parts(draw.pieces()):
                features, targets = table(who, data.features, answers(data))
                sinks["features"].append(features)
                sinks["targets"].append(targets)
                if several:
                    sinks["nodes"].append(data.nodes)
        return cls._of_fields(files.opened(path, verify=False)[1], checked=several)
