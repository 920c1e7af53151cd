"""Losses of a linear prediction: the family that the compiled runtimes know."""

import math
import reprlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.errors import ProblemError
from freewalk.objectives import checks
from freewalk.objectives.checks import read_only
from freewalk.objectives.objective import Objective
from freewalk.objectives.spectra import largest_eigenvalues


@dataclass(frozen=True, eq=False, repr=False)
class Predictor(Objective):
    """f_v(x) = mean over the samples (a, y) of node v of value(aᵀx, y), plus ridge/2 ‖x‖².

    A subclass gives two plain scalar functions and a constant. The functions are compiled from their source:
    they may use arithmetic, the `math` module, module constants and other such functions, and nothing else.

    Parameters
    ----------
    features
        One row a sample.
    targets
        One number a sample.
    nodes
        The node of each sample; every node from 0 to the largest has at least one. Without it every sample is
        a node, in order.
    ridge
        Strength of the ridge term, the same at every node.
    heavy
        The nodes known to be heavy, if any.

    Raises
    ------
    ProblemError
        If the data have gaps, NaN or infinities, do not fit together, or leave a node without any.

    Notes
    -----
    The arrays are kept as read-only copies, sorted by node; samples of one node stay in the order given. All
    fields can be handed to the class again to rebuild the same problem.

    Examples
    --------
    A loss that grows linearly for large errors:

    >>> import math
    >>> class LogCosh(Predictor):
    ...     curvature = 1.0
    ...
    ...     @staticmethod
    ...     def value(prediction, target):
    ...         size = abs(prediction - target)
    ...         return size + math.log1p(math.exp(-2.0 * size)) - math.log(2.0)
    ...
    ...     @staticmethod
    ...     def slope(prediction, target):
    ...         return math.tanh(prediction - target)
    >>> problem = LogCosh([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]], [1.0, 2.0, 3.0], nodes=[0, 1, 1])
    >>> problem
    LogCosh(n=2, dim=2, samples=3, ridge=0.0, heavy=())
    >>> problem.smoothness
    array([1. , 2.5])
    >>> problem.gradient(1, [0.0, 1.0], sample=0)
    array([0., 0.])
    """

    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    nodes: NDArray[np.int64] | None = None
    ridge: float = 0.0
    heavy: tuple[int, ...] = ()

    curvature: ClassVar[float]
    """The largest derivative of the slope: the smoothness of value in the prediction."""

    def __post_init__(self) -> None:
        who = type(self).__name__
        if not hasattr(self, "curvature"):
            raise ProblemError(f"{who}: has no curvature; set it in the class to the largest derivative of its slope")
        features, targets = checks.table(who, self.features, self.targets)
        nodes = checks.owners(who, self.nodes, len(targets))
        if (np.diff(nodes) < 0).any():
            order = np.argsort(nodes, kind="stable")
            features, targets, nodes = features[order], targets[order], nodes[order]
        # `checks` has copied what was given. Indexing keeps the memory order, and engines read rows.
        object.__setattr__(self, "features", read_only(np.ascontiguousarray(features)))
        object.__setattr__(self, "targets", read_only(targets))
        object.__setattr__(self, "nodes", read_only(np.array(nodes)))
        object.__setattr__(self, "ridge", checks.real(who, "ridge", self.ridge))
        object.__setattr__(self, "heavy", checks.members(who, "heavy", self.heavy, self.n))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n={self.n}, dim={self.dim}, samples={len(self.targets)}, "
            f"ridge={self.ridge!r}, heavy={reprlib.repr(self.heavy)})"
        )

    @staticmethod
    @abstractmethod
    def value(prediction: float, target: float) -> float:
        """Return the loss of one prediction."""

    @staticmethod
    @abstractmethod
    def slope(prediction: float, target: float) -> float:
        """Return the derivative of `value` in the prediction."""

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.offsets) - 1

    @property
    def dim(self) -> int:
        """The number of features, and of parameters of the model."""
        return int(self.features.shape[1])

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The samples of node v are the rows offsets[v]:offsets[v+1]."""
        counts = np.bincount(np.asarray(self.nodes))
        return read_only(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

    @cached_property
    def sample_weights(self) -> NDArray[np.float64]:
        """1/(n m_v) for each sample: every node weighs the same in f, however many samples m_v it has."""
        counts = np.diff(self.offsets)
        return read_only(np.repeat(1.0 / (self.n * counts), counts))

    @cached_property
    def smoothness(self) -> NDArray[np.float64]:
        """L_v = curvature · λ_max(A_vᵀA_v / m_v) + ridge, by node."""
        return read_only(self.curvature * largest_eigenvalues(self.features, self.offsets) + self.ridge)

    def samples(self, node: int) -> int:
        """Return how many local samples a node has."""
        begin, end = self._rows(node)
        return end - begin

    def loss(self, x: ArrayLike) -> float:
        """Return f(x) = Σ_samples value(aᵀx, y)/(n m_v) + ridge/2 ‖x‖²; not finite if x has diverged."""
        model = self._model(x)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._values(self.features @ model)
            return float(self.sample_weights @ values + 0.5 * self.ridge * (model @ model))

    def gradient(self, node: int, x: ArrayLike, sample: int | None = None) -> NDArray[np.float64]:
        """Return the gradient of f_v at x.

        Parameters
        ----------
        node
            The node v.
        x
            The model.
        sample
            The number of one of the node's samples: the gradient of that sample alone, with the ridge term.
            The mean over the samples is the gradient of f_v.

        Returns
        -------
        NDArray
            A vector of the model's size.
        """
        model = self._model(x)
        begin, end = self._rows(node)
        if sample is not None:
            begin += checks.whole(type(self).__name__, f"sample of node {node}", sample, 0, end - begin - 1)
            end = begin + 1
        rows, targets = self.features[begin:end], self.targets[begin:end]
        with np.errstate(over="ignore", invalid="ignore"):
            pairs = zip((rows @ model).tolist(), targets.tolist(), strict=True)
            slopes = np.array([_or_nan(self.slope)(prediction, target) for prediction, target in pairs])
            return np.asarray(slopes @ rows / (end - begin) + self.ridge * model)

    def _rows(self, node: int) -> tuple[int, int]:
        place = checks.whole(type(self).__name__, "node", node, 0, self.n - 1)
        return int(self.offsets[place]), int(self.offsets[place + 1])

    def _model(self, x: ArrayLike) -> NDArray[np.float64]:
        model = checks.numbers(type(self).__name__, "x", x)
        if model.shape != (self.dim,):
            raise ProblemError(f"{type(self).__name__}: x has shape {model.shape}, expected ({self.dim},)")
        return model

    def _values(self, predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """`value` of every sample; a subclass may do it at once, for large data."""
        return self._each(self.value, predictions)

    def _each(self, function: Callable[[float, float], float], predictions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply a scalar function to every prediction and its target."""
        return np.asarray(np.frompyfunc(_or_nan(function), 2, 1)(predictions, self.targets), dtype=np.float64)


def _or_nan(function: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """NaN where plain Python raises and compiled code does not: a model that diverges is a status, not an error."""

    def safe(prediction: float, target: float) -> float:
        try:
            return function(prediction, target)
        except ArithmeticError:
            return math.nan

    return safe
