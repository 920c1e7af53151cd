"""What every objective offers, whatever its form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.errors import ProblemError


class Objective(ABC):
    """The function that a walk minimises: f(x) = (1/n) Σ_v f_v(x), where f_v is known to node v alone.

    A loss that depends on its data only through aᵀx is better written as a `Predictor`, which compiled
    runtimes can run. Any other subclasses this class and runs on the `reference` runtime.

    Attributes
    ----------
    heavy
        The nodes known to be heavy, that is, with a much larger constant L_v than the others: set by
        `synthetic`, else empty.

    Examples
    --------
    Each node wants the model to be near its own point, f_v(x) = ½‖x − c_v‖²:

    >>> class Centres(Objective):
    ...     def __init__(self, centres):
    ...         self.centres = np.asarray(centres, dtype=np.float64)
    ...
    ...     @property
    ...     def n(self):
    ...         return len(self.centres)
    ...
    ...     @property
    ...     def dim(self):
    ...         return self.centres.shape[1]
    ...
    ...     @property
    ...     def smoothness(self):
    ...         return np.ones(self.n)
    ...
    ...     def loss(self, x):
    ...         return float(0.5 * np.mean(np.sum((x - self.centres) ** 2, axis=1)))
    ...
    ...     def gradient(self, node, x, sample=None):
    ...         return np.asarray(x - self.centres[node])
    ...
    ...     def optimum(self):
    ...         return self.centres.mean(axis=0)
    >>> problem = Centres([[0.0, 0.0], [2.0, 4.0]])
    >>> problem.optimum(), problem.loss(problem.optimum())
    (array([1., 2.]), 2.5)
    """

    #: What is measured of a model, by name; "loss" is always among them.
    measures: tuple[str, ...] = ("loss",)
    #: The measure that reports show.
    primary: str = "loss"
    #: Those of the measures for which higher is better, such as an accuracy.
    rising: tuple[str, ...] = ()
    heavy: tuple[int, ...] = ()
    #: The runtime that suits it, and the precision of its models, where none is asked for.
    runtime: str = "reference"
    precision: str = "float64"
    #: Whether a record can hold it; one that is code has a `fingerprint` instead, and is handed to `fw.resume` again.
    stored: bool = True
    #: Whether its gradients draw random numbers of their own, as dropout does.
    random: bool = False
    #: How many samples of a node a gradient is taken from, drawn anew at each visit; None: all of them.
    batch: int | None = None
    #: What the nodes were called when the data were given to them, or None; a kernel on a graph with others is refused.
    node_names: tuple[str, ...] | None = None

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of nodes."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of parameters of the model."""

    @property
    def trained(self) -> int:
        """How many of the parameters rules update; those behind them only travel, such as the buffers of a module."""
        return self.dim

    @property
    @abstractmethod
    def smoothness(self) -> NDArray[np.float64]:
        """L_v, the smallest constant with ‖∇f_v(x) − ∇f_v(x')‖ ≤ L_v ‖x − x'‖, by node."""

    @property
    def known_smoothness(self) -> NDArray[np.float64] | None:
        """`smoothness`, or None where it would have to be estimated first and nobody has asked for it."""
        return self.smoothness

    @abstractmethod
    def loss(self, x: ArrayLike) -> float:
        """Return f(x), the mean over the nodes."""

    @abstractmethod
    def gradient(self, node: int, x: ArrayLike, sample: Any = None) -> NDArray[np.float64]:
        """Return ∇f_v(x) at a node, or the gradient of its sample number `sample` alone (with ridge).

        An objective with a `batch` is handed the numbers of several samples.
        """

    def losses(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return f_v(x) by node.

        Raises
        ------
        ProblemError
            If the objective does not offer it.
        """
        raise ProblemError(f"{type(self).__name__}: does not say the loss of each node; give it a method losses(x)")

    def zero_loss(self) -> float:
        """Return the loss of the zero model, beside which a walk is judged to diverge; NaN if that says nothing."""
        return self.loss(np.zeros(self.dim))

    def admit(self, model: NDArray[np.floating[Any]]) -> None:  # noqa: B027 (most have nothing to object to)
        """Refuse, with a ProblemError, a first model on which something cannot be computed."""

    @property
    def fingerprint(self) -> str:
        """What an objective that is handed to `fw.resume` must have in common with the one that began."""
        return ""

    def story(self) -> dict[str, Any]:
        """Return what a record should say about it beside its `repr`, as plain values."""
        return {}

    def measure(self, x: ArrayLike) -> Mapping[str, float]:
        """Return all `measures` of a model, by name."""
        return {"loss": self.loss(x)}

    def assess(self, x: ArrayLike) -> Mapping[str, float]:
        """Return all that is known of a final model: its measures, and what is not measured while walks run."""
        return measured(self, x)

    def on(self, features: ArrayLike, targets: ArrayLike) -> Objective:
        """Return the same loss, without any ridge, on other samples, which belong to one node.

        Raises
        ------
        ProblemError
            If the objective does not offer it, or they do not fit.
        """
        raise ProblemError(
            f"{type(self).__name__}: cannot be computed on other samples; give it a method on(features, targets)"
        )

    def initial(self, walks: int, seed: int) -> NDArray[np.floating[Any]]:
        """Return the first model of each walk, walks × dim: zeros unless the objective says otherwise.

        Randomness comes from `rng.word_of_use` with `rng.INITIAL`, so that walk number w has the same model whatever
        the number of walks.
        """
        return np.zeros((walks, self.dim))

    def local(self, node: int) -> Share:
        """Return the share of one node: all that it has to know of the objective, beside `kernel.local(node)`."""
        return Share(self, node, node, 1.0)

    def proximal(self, node: int, point: ArrayLike, penalty: float) -> NDArray[np.float64]:
        """Return the y that minimises f_v(y) + penalty/2 ‖y − point‖².

        Raises
        ------
        ProblemError
            If the objective does not offer it.
        """
        raise ProblemError(
            f"{type(self).__name__}: has no proximal form; take a rule that uses gradients, or give it a method "
            "proximal(node, point, penalty)"
        )

    def optimum(self) -> NDArray[np.float64]:
        """Return the model that minimises f, the mean over all nodes; without it there is no distance to measure.

        Raises
        ------
        ProblemError
            If there is none, or the objective does not say.
        """
        raise ProblemError(f"{type(self).__name__}: does not say what its optimum is; give it a method optimum()")

    def samples(self, node: int) -> int:
        """Return how many local samples a node has; 1 where f_v is not a mean over samples, 0 at a relay.

        A relay forwards the model and leaves it as it is, except under a rule that stores vectors at the nodes: there
        it is a node whose loss is 0.
        """
        return 1


def measured(objective: Objective, x: ArrayLike) -> Mapping[str, float]:
    """All measures of a model, as the objective names them.

    Raises
    ------
    ProblemError
        If `measure` does not give one of them.
    """
    values, who = objective.measure(x), type(objective).__name__
    if not isinstance(values, Mapping):
        raise ProblemError(f"{who}: measure() gives a {type(values).__name__}, expected a mapping of names to numbers")
    missing = [name for name in objective.measures if name not in values]
    if missing:
        raise ProblemError(
            f"{who}: measure() gives {', '.join(values)}, expected {', '.join(missing)} as well: its `measures` name "
            "what is measured"
        )
    for name in objective.measures:
        if np.ndim(values[name]) or not isinstance(values[name], (int, float, np.number)):
            raise ProblemError(f"{who}: measure() gives a {type(values[name]).__name__} for {name}, expected a number")
    return values


@dataclass(frozen=True)
class Share:
    """What one node has to know of an objective: its own loss f_v.

    Attributes
    ----------
    objective
        The objective as far as the node knows it; of a `Predictor`, the samples of this node alone.
    node
        The number of the node in the whole objective.
    place
        Its number in `objective`.
    factor
        c_v, by which the gradients of `objective` are multiplied.
    """

    objective: Objective = field(repr=False)
    node: int
    place: int
    factor: float

    @property
    def samples(self) -> int:
        """How many samples the node has; 0 at a relay."""
        return self.objective.samples(self.place) if self.factor > 0 else 0

    def gradient(self, x: ArrayLike, sample: Any = None) -> NDArray[np.float64]:
        """Return ∇f_v(x), or the gradient of one sample, or of several."""
        chosen = () if sample is None else (sample,)  # an objective that is never sampled need not know how
        return np.multiply(self.factor, self.objective.gradient(self.place, x, *chosen))

    def proximal(self, point: ArrayLike, penalty: float) -> NDArray[np.float64]:
        """Return the y that minimises f_v(y) + penalty/2 ‖y − point‖²."""
        if self.factor == 0:
            return np.array(point, dtype=np.float64)
        return self.objective.proximal(self.place, point, penalty / self.factor)
