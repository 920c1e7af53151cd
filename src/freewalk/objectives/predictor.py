"""Losses of a linear prediction: the family that compiled runtimes support."""

from __future__ import annotations

import math
import os
import reprlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.blocks import LARGE, ascends, blocks, constant, read_only
from freewalk.checks import Floats, set_fields
from freewalk.errors import ProblemError
from freewalk.graphs import Graph
from freewalk.objectives import files
from freewalk.objectives.objective import Objective, Share
from freewalk.objectives.samples import Nodes, by_node, check, largest_eigenvalues, table
from freewalk.storage.mapped import is_mapped

WeightBy = Literal["node", "sample"]
_KEPT = ("features", "targets", "nodes", "ridge", "heavy", "weight_by", "relays", "node_names", "_optimum")


@dataclass(frozen=True, eq=False, repr=False)
class Predictor(Objective):
    """Base class of losses of a linear prediction aᵀx.

    Each node has the loss f_v(x) = c_v · (the mean over its samples (a, y) of value(aᵀx, y), plus ridge/2 ‖x‖²), and
    the objective is f(x) = (1/n) Σ_v f_v(x). The factors c_v, `node_weights`, determine how much a node counts and add
    up to n; f_v, its gradient and its constant L_v scale together. They are all 1 unless `weight_by` or `relays` is
    given.

    A subclass defines two plain scalar functions and a constant. The functions are compiled from their source: they may
    use arithmetic, the `math` module, module constants and other such functions, and nothing else.

    Parameters
    ----------
    features
        The feature matrix, one row per sample.
    targets
        The targets, one number per sample.
    nodes
        The node of each sample, as a number or, together with `graph`, a name. By default every sample is its own node,
        in order.
    ridge
        The strength of the ridge term, the same at every node.
    heavy
        The nodes known to be heavy, if any, by number or, together with `graph`, by name.
    weight_by
        What has equal weight in f. "node": every node with data, however many samples (c_v = 1; with relays, c_v = n /
        the number of nodes with data). "sample": every sample, so that f is the mean over all N samples wherever they
        are (c_v = n m_v / N for m_v samples).
    relays
        The nodes without data: True for all nodes of `graph` that have none, or a list of nodes. A relay forwards the
        model unchanged (a rule that stores vectors at the nodes, such as `SAG`, treats it as a node whose loss is 0).
        It counts as one of the n nodes; its f_v is 0 (c_v = 0). Its entry in `smoothness` is the smallest L_v of the
        nodes with data, although its true constant is 0: a design cannot give a node no visits, so it gives a relay no
        more than the least important of the other nodes.
    graph
        The graph, or a list of its node names in order: it determines the number of nodes and their names. It is used
        to read the other arguments and is not stored.

    Notes
    -----
    The arrays are stored as read-only copies, sorted by node; samples of one node stay in the given order. float64
    arrays that are mapped read-only from a file, as by `numpy.load(file, mmap_mode="r")`, are not copied; they must be
    sorted by node, and the field `nodes` stays None if it is not given. `nodes`, `heavy` and `relays` are stored as
    numbers.
    All fields can be passed to the class again to rebuild the same problem.

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

    The same data with equally weighted samples, at two of three named nodes:

    >>> cities = ["Bonn", "Kiel", "Ulm"]
    >>> rows, answers, places = problem.features, problem.targets, ["Bonn", "Ulm", "Ulm"]
    >>> pooled = LogCosh(rows, answers, places, weight_by="sample", relays=True, graph=cities)
    >>> pooled
    LogCosh(n=3, dim=2, samples=3, ridge=0.0, heavy=(), weight_by='sample', relays=(1,))
    >>> pooled.node_weights, pooled.smoothness
    (array([1., 0., 2.]), array([1., 1., 5.]))
    """

    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    nodes: NDArray[np.int64] | None = None
    ridge: float = 0.0
    heavy: tuple[int, ...] = ()
    weight_by: WeightBy = "node"
    relays: tuple[int, ...] = ()
    graph: InitVar[Graph | Sequence[str] | None] = None

    runtime: ClassVar[str] = "cpu"  # type: ignore[misc]
    curvature: ClassVar[float]
    """The largest derivative of the slope: the smoothness of `value` in the prediction."""

    def __post_init__(self, graph: Graph | Sequence[str] | None) -> None:
        who = type(self).__name__
        remedy = "set it in the class to the largest derivative of its slope"
        check.real(who, "curvature", getattr(self, "curvature", None), 0.0, remedy=remedy)
        check.choice(who, "weight_by", self.weight_by, get_args(WeightBy))
        ridge = check.real(who, "ridge", self.ridge, 0.0)
        features, targets = table(who, self.features, self.targets)
        known, nodes, relays = Nodes.of(who, graph), None, tuple[int, ...]()
        alone = self.nodes is None and is_mapped(features) and not np.size(self.relays)
        if not (alone and known.n in (None, len(targets))):  # else every sample is its own node, as in its file
            nodes = known.owners(self.nodes, len(targets))
            if not ascends(nodes):
                if is_mapped(features):
                    given = "features are in a file and nodes are not in ascending order"
                    expected = "the samples of each node to be contiguous; write them to the file in this order"
                    raise ProblemError(f"{who}: {given}, expected {expected}")
                order = np.argsort(nodes, kind="stable")
                features, targets, nodes = features[order], targets[order], nodes[order]
            known, relays = known.relays(self.relays, nodes)
            # Indexing keeps the memory order, and engines read rows.
            features = features if features.flags.c_contiguous else np.ascontiguousarray(features)
            features, targets, nodes = read_only(features), read_only(targets), read_only(nodes)
        heavy = known.members("heavy", self.heavy)
        set_fields(self, features=features, targets=targets, nodes=nodes, ridge=ridge, heavy=heavy)
        set_fields(self, relays=relays, node_names=known.names)

    @classmethod
    def _of_fields(cls, fields: dict[str, Any], *, checked: bool) -> Self:
        """A problem from its fields; unless they are to be checked, they come from an existing problem."""
        if checked:
            return cls(graph=fields.pop("node_names"), **fields)
        problem = object.__new__(cls)
        set_fields(problem, **fields)
        return problem

    def __getstate__(self) -> dict[str, Any]:
        # What was computed from data in a file is recomputed from there, except small results that take long.
        state = dict(self.__dict__)
        return {name: state[name] for name in _KEPT if name in state} if self.is_mapped else state

    @property
    def is_mapped(self) -> bool:
        """Whether the samples are mapped from a file instead of held in memory."""
        return is_mapped(self.features)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the problem to a binary file, which `fw.objectives.read` maps into memory instead of loading it.

        The path may have any name, such as `prices.data`; an existing file is replaced. The write is atomic: the file
        is complete or absent.
        """
        return files.write(self, path)

    def __repr__(self) -> str:
        chosen = "" if self.weight_by == "node" else f", weight_by={self.weight_by!r}"
        chosen += f", relays={reprlib.repr(self.relays)}" if self.relays else ""
        return (
            f"{type(self).__name__}(n={self.n}, dim={self.dim}, samples={len(self.targets)}, "
            f"ridge={self.ridge!r}, heavy={reprlib.repr(self.heavy)}{chosen})"
        )

    @staticmethod
    @abstractmethod
    def value(prediction: float, target: float) -> float:
        """Return the loss of one prediction."""

    @staticmethod
    @abstractmethod
    def slope(prediction: float, target: float) -> float:
        """Return the derivative of `value` with respect to the prediction."""

    @property
    def n(self) -> int:
        """The number of nodes, relays included."""
        return len(self.targets) if self.nodes is None else len(self.offsets) - 1

    @property
    def dim(self) -> int:
        """The number of features, and of parameters of the model."""
        return int(self.features.shape[1])

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The samples of node v are the rows offsets[v]:offsets[v+1]."""
        if self.nodes is None:
            return read_only(np.arange(len(self.targets) + 1, dtype=np.int64))
        counts = np.bincount(np.asarray(self.nodes), minlength=max(self.relays, default=-1) + 1)
        return read_only(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

    @cached_property
    def node_weights(self) -> NDArray[np.float64]:
        """c_v, the factor of each node's loss: they add up to n, and a relay has 0."""
        if self.nodes is None:
            return constant(1.0, self.n)
        counts = np.diff(self.offsets)
        if self.weight_by == "sample":
            return read_only(self.n * counts / len(self.targets))
        return read_only(np.where(counts > 0, self.n / np.count_nonzero(counts), 0.0))

    @cached_property
    def sample_weights(self) -> NDArray[np.float64]:
        """c_v/(n m_v), the weight of each sample in f: they add up to 1."""
        if self.nodes is None:
            return constant(1.0 / self.n, self.n)
        counts = np.diff(self.offsets)
        if self.weight_by == "sample":
            return read_only(np.full(len(self.targets), 1.0 / len(self.targets)))
        return read_only(1.0 / (np.count_nonzero(counts) * np.repeat(counts, counts)))

    @cached_property
    def smoothness(self) -> NDArray[np.float64]:
        """L_v = c_v · (curvature · λ_max(A_vᵀA_v / m_v) + ridge), by node; at a relay the smallest of the others."""
        constants = largest_eigenvalues(self.features, None if self.nodes is None else self.offsets)
        constants *= self.curvature
        constants += self.ridge
        constants *= self.node_weights
        if self.relays:
            constants[list(self.relays)] = np.delete(constants, list(self.relays)).min()
        return read_only(constants)

    @property
    def known_smoothness(self) -> NDArray[np.float64] | None:
        """`smoothness`, or None for mapped samples at millions of nodes, where it is computed only on request."""
        return None if self.n > LARGE and is_mapped(self.features) else self.smoothness

    def measures_of(self, fit: Floats, penalty: Floats) -> dict[str, Floats]:
        """Return measures from the sums that compiled code computes: the loss without ridge, and the ridge term.

        Measures missing here are computed by `measure`, model by model.
        """
        return {"loss": fit + penalty}

    def expansion(self, optimum: Floats) -> tuple[Floats, Floats, float]:
        """Return second derivative, derivative and value of the loss without ridge, if they determine it.

        They are taken at the optimum, and are empty for a loss that is not quadratic.
        """
        return np.empty((0, 0)), np.empty(0), 0.0

    def on(self, features: ArrayLike, targets: ArrayLike) -> Predictor:
        """Return the same loss, without ridge, on other samples, which belong to a single node."""
        who = type(self).__name__
        rows, answers = table(who, features, targets)
        if rows.shape[1] != self.dim:
            raise ProblemError(f"{who}: the other samples have {rows.shape[1]} features, expected {self.dim}")
        return type(self)(rows, answers, np.zeros(len(answers), dtype=np.int64))

    def local(self, node: int) -> Share:
        """Return the share of one node: its samples and their weight."""
        first, last = self._rows(node)
        features, targets = self.features[first:last].copy(), self.targets[first:last].copy()
        if first == last:  # a relay: it must not see the sample of another node, and its factor is 0
            features, targets = np.zeros((1, self.dim)), np.zeros(1)
        alone = type(self)(features, targets, np.zeros(len(targets), dtype=np.int64), self.ridge)
        return Share(alone, int(node), 0, float(self.node_weights[node]))

    def samples(self, node: int) -> int:
        """Return the number of local samples of a node; 0 at a relay."""
        begin, end = self._rows(node)
        return end - begin

    def loss(self, x: ArrayLike) -> float:
        """Return f(x) = Σ_samples sample_weights · value(aᵀx, y) + ridge/2 ‖x‖²; not finite if x has diverged."""
        model = self._model(x)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self._mean(model, self._values) + 0.5 * self.ridge * (model @ model))

    def _mean(self, model: Floats, values: Callable[[Floats, Floats], Floats]) -> Any:
        """The mean of values computed from predictions and targets, always in the same blocks."""
        total: Any = None
        for part in blocks(len(self.targets), numbers=LARGE):
            found = values(self.features[part] @ model, self.targets[part])
            summed = np.ascontiguousarray(self.sample_weights[part]) @ found
            total = summed if total is None else total + summed
        return total

    def losses(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return f_v(x) by node; 0 at a relay."""
        model = self._model(x)
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.n * self.sample_weights * self._values(self.features[:] @ model, self.targets[:])
            penalty = 0.5 * self.ridge * (model @ model) * self.node_weights
            return np.asarray(by_node(values[:, None], self.offsets)[:, 0] + penalty)

    def gradient(self, node: int, x: ArrayLike, sample: int | None = None) -> NDArray[np.float64]:
        """Return the gradient of f_v at x, or that of one of the node's samples only; 0 at a relay.

        The gradient of a sample has the ridge term and the factor c_v: the mean over the samples is that of f_v.
        """
        who, model = type(self).__name__, self._model(x)
        begin, end = self._rows(node)
        if sample is not None:
            if begin == end:
                raise check.fail(who, "sample", sample, f"None: node {node} is a relay and has no samples")
            begin += check.whole(who, f"sample of node {node}", sample, 0, end - begin - 1)
            end = begin + 1
        if begin == end:
            return np.zeros(self.dim)
        rows, targets = self.features[begin:end], self.targets[begin:end]
        with np.errstate(over="ignore", invalid="ignore"):
            pairs = zip((rows @ model).tolist(), targets.tolist(), strict=True)
            slopes = np.array([_or_nan(self.slope)(prediction, target) for prediction, target in pairs])
            return np.asarray(self.node_weights[node] * (slopes @ rows / (end - begin) + self.ridge * model))

    def _rows(self, node: int) -> tuple[int, int]:
        place = check.whole(type(self).__name__, "node", node, 0, self.n - 1)
        if self.nodes is None:
            return place, place + 1
        return int(self.offsets[place]), int(self.offsets[place + 1])

    def _model(self, x: ArrayLike) -> NDArray[np.float64]:
        return check.floats(type(self).__name__, "x", x, (self.dim,), finite=False)  # a model may have diverged

    def _values(self, predictions: Floats, targets: Floats) -> Floats:
        """`value` of some samples; a subclass may vectorize it for large data."""
        return np.asarray(np.frompyfunc(_or_nan(self.value), 2, 1)(predictions, targets), dtype=np.float64)


def _or_nan(function: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """Return NaN where plain Python raises but compiled code does not: divergence is a status, not an error."""

    def safe(prediction: float, target: float) -> float:
        try:
            return function(prediction, target)
        except ArithmeticError:
            return math.nan

    return safe
