"""The base class of all objectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.errors import ProblemError


class Objective(ABC):
    """The function that a walk minimises: f(x) = (1/n) Σ_v f_v(x), where only node v knows f_v.

    A loss that depends on its data only through aᵀx is better written as a `Predictor`, which compiled runtimes can
    run. Any other loss subclasses this class and runs on the `reference` runtime.

    Attributes
    ----------
    heavy
        The nodes known to be heavy, that is, with a much larger constant L_v than the others: set by `synthetic`,
        otherwise empty.

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

    #: The measures of a model, by name; "loss" is always among them.
    measures: tuple[str, ...] = ("loss",)
    #: The measure that reports show.
    primary: str = "loss"
    #: The measures for which higher is better, such as an accuracy.
    rising: tuple[str, ...] = ()
    heavy: tuple[int, ...] = ()
    #: The default runtime and the default precision of the models.
    runtime: str = "reference"
    precision: str = "float64"
    #: Whether a record can contain it; an objective that is code has a `fingerprint` instead, and is passed to
    #: `fw.resume` again.
    stored: bool = True
    #: Whether its gradients draw random numbers of their own, as dropout does.
    random: bool = False
    #: The number of samples per gradient, redrawn at each visit; None uses all samples of the node.
    batch: int | None = None
    #: The node names that were used to assign the data, or None; a kernel on a graph with other names is rejected.
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
        """The number of parameters that rules update; the rest only travel, such as the buffers of a module."""
        return self.dim

    @property
    @abstractmethod
    def smoothness(self) -> NDArray[np.float64]:
        """L_v, the smallest constant with ‖∇f_v(x) − ∇f_v(x')‖ ≤ L_v ‖x − x'‖, by node."""

    @property
    def known_smoothness(self) -> NDArray[np.float64] | None:
        """`smoothness`, or None if it would have to be estimated first and has not been requested."""
        return self.smoothness

    @abstractmethod
    def loss(self, x: ArrayLike) -> float:
        """Return f(x), the mean over the nodes."""

    @abstractmethod
    def gradient(self, node: int, x: ArrayLike, sample: Any = None) -> NDArray[np.float64]:
        """Return ∇f_v(x) at a node, or the gradient of its sample number `sample` only (with ridge).

        An objective with a `batch` receives the numbers of several samples.
        """

    def losses(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return f_v(x) by node, if the objective implements it."""
        raise ProblemError(f"{type(self).__name__}: does not give the loss of each node; give it a method losses(x)")

    def zero_loss(self) -> float:
        """Return the loss of the zero model, which helps to detect divergence; NaN if it is not informative."""
        return self.loss(np.zeros(self.dim))

    def admit(self, model: NDArray[np.floating[Any]]) -> None:  # noqa: B027 (most have nothing to object to)
        """Reject, with a ProblemError, an initial model for which something cannot be computed."""

    @property
    def fingerprint(self) -> str:
        """What an objective passed to `fw.resume` must have in common with the original one."""
        return ""

    def story(self) -> dict[str, Any]:
        """Return plain values that a record should contain in addition to the `repr`."""
        return {}

    def measure(self, x: ArrayLike) -> Mapping[str, float]:
        """Return all `measures` of a model, by name."""
        return {"loss": self.loss(x)}

    def assess(self, x: ArrayLike) -> Mapping[str, float]:
        """Return everything known about a final model: its measures, and those not computed during a run."""
        return measured(self, x)

    def on(self, features: ArrayLike, targets: ArrayLike) -> Objective:
        """Return the same loss, without ridge, on other samples, which belong to a single node."""
        who = type(self).__name__
        raise ProblemError(f"{who}: cannot be computed on other samples; give it a method on(features, targets)")

    def initial(self, walks: int, seed: int) -> NDArray[np.floating[Any]]:
        """Return the initial model of each walk, walks × dim: zeros unless the objective defines something else.

        Random numbers come from `rng.word_of_use` with `rng.INITIAL`, so that walk w has the same model whatever the
        number of walks.
        """
        return np.zeros((walks, self.dim))

    def local(self, node: int) -> Share:
        """Return the share of one node: everything it needs of the objective, besides `kernel.local(node)`."""
        return Share(self, node, node, 1.0)

    def proximal(self, node: int, point: ArrayLike, penalty: float) -> NDArray[np.float64]:
        """Return the y that minimises f_v(y) + penalty/2 ‖y − point‖², if the objective implements it."""
        remedy = "take a rule that uses gradients, or give it a method proximal(node, point, penalty)"
        raise ProblemError(f"{type(self).__name__}: has no proximal form; {remedy}")

    def optimum(self) -> NDArray[np.float64]:
        """Return the model that minimises f, the mean over all nodes; without it no distance is measured."""
        raise ProblemError(f"{type(self).__name__}: does not give its optimum; give it a method optimum()")

    def samples(self, node: int) -> int:
        """Return the number of local samples of a node; 1 if f_v is not a mean over samples, 0 at a relay.

        A relay forwards the model unchanged, except under a rule that stores vectors at the nodes: there it is a node
        whose loss is 0.
        """
        return 1


def measured(objective: Objective, x: ArrayLike) -> Mapping[str, float]:
    """All measures of a model, as the objective names them, or an error if `measure` does not return one of them."""
    values, who = objective.measure(x), type(objective).__name__
    if not isinstance(values, Mapping):
        raise ProblemError(f"{who}: measure() gives a {type(values).__name__}, expected a mapping of names to numbers")
    if missing := ", ".join(name for name in objective.measures if name not in values):
        expected = f"{missing} as well: `measures` names what is measured"
        raise ProblemError(f"{who}: measure() gives {', '.join(values)}, expected {expected}")
    for name in objective.measures:
        if np.ndim(values[name]) or not isinstance(values[name], (int, float, np.number)):
            raise ProblemError(f"{who}: measure() gives a {type(values[name]).__name__} for {name}, expected a number")
    return values


@dataclass(frozen=True)
class Share:
    """The part of an objective that one node needs: its own loss f_v.

    Attributes
    ----------
    objective
        The objective as far as the node knows it; for a `Predictor`, only the samples of this node.
    node
        The number of the node in the whole objective.
    place
        Its number in `objective`.
    factor
        c_v, the factor applied to the gradients of `objective`.
    """

    objective: Objective = field(repr=False)
    node: int
    place: int
    factor: float

    @property
    def samples(self) -> int:
        """The number of samples of the node; 0 at a relay."""
        return self.objective.samples(self.place) if self.factor > 0 else 0

    def gradient(self, x: ArrayLike, sample: Any = None) -> NDArray[np.float64]:
        """Return ∇f_v(x), or the gradient of one or several samples."""
        chosen = () if sample is None else (sample,)  # an objective that is never sampled need not accept a sample
        return np.multiply(self.factor, self.objective.gradient(self.place, x, *chosen))

    def proximal(self, point: ArrayLike, penalty: float) -> NDArray[np.float64]:
        """Return the y that minimises f_v(y) + penalty/2 ‖y − point‖²."""
        if self.factor == 0:
            return np.array(point, dtype=np.float64)
        return self.objective.proximal(self.place, point, penalty / self.factor)
