"""The alternating direction method of multipliers (ADMM), carried by a walk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.designs.kernel import Kernel
from freewalk.objectives import Objective
from freewalk.rules.rule import Rule, Visit, check

_TIMES_SMOOTHNESS = 3.0


@dataclass(frozen=True)
class Walkman(Rule):
    """ADMM along a walk: nodes keep models y_v and prices z_v; the token x is the mean of y_v − z_v/β over the nodes.

    At node v, in the gradient form: y ← x + z/β − ∇f_v(y)/β, z ← z + β(x − y), and x moves by the change of y − z/β
    divided by n. In the proximal form, y minimises f_v(y) + β/2 ‖y − x − z/β‖². It reaches the optimum whatever the
    distribution of the walk, as long as it visits every node; only the model is sent.

    Parameters
    ----------
    penalty
        β. The gradient form diverges below about twice the largest smoothness L; above, the number of updates it needs
        is proportional to β. None uses 3 L. The proximal form converged with every penalty we tried on least squares;
        None uses the mean smoothness divided by the number of parameters.
    proximal
        Whether a node solves its own problem instead of computing a gradient: on `runtime="reference"`, for objectives
        with a method `proximal`, such as `LeastSquares`.

    References
    ----------
    Mao, Yuan, Hu, Gu, Sayed, Yin, *Walkman: a communication-efficient random-walk algorithm for decentralized
    optimization*, 2020.

    Examples
    --------
    >>> Walkman(penalty=30.0).stores
    ('y', 'z')
    """

    penalty: float | None = None
    proximal: bool = False

    stores: ClassVar[tuple[str, ...]] = ("y", "z")  # type: ignore[misc]
    evaluates: ClassVar[str] = "y"  # type: ignore[misc]
    weighted: ClassVar[bool] = False  # type: ignore[misc]
    needs_every_node: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.penalty is not None:
            check.real("Walkman", "penalty", self.penalty, above=0.0)
        check.flag("Walkman", "proximal", self.proximal)

    def fitted(self, objective: Objective, kernel: Kernel) -> Walkman:
        """The rule with the penalty that follows from the smoothness, unless one was given."""
        if self.penalty is not None:
            return self
        smoothness = np.asarray(objective.smoothness)
        chosen = smoothness.mean() / objective.dim if self.proximal else _TIMES_SMOOTHNESS * smoothness.max()
        return replace(self, penalty=float(chosen))

    @property
    def update(self) -> Callable[..., Any]:
        """One update."""
        return _solved if self.proximal else _step

    def point(self, visit: Visit, numbers: Any, x: Any, *vectors: Any) -> tuple[Any, float]:
        """The proximal form asks for a model near x + z/β."""
        _, z = vectors
        return x + z / numbers.penalty, numbers.penalty

    def begin(self, models: NDArray[np.floating[Any]]) -> Mapping[str, NDArray[np.floating[Any]]]:
        """Every node starts with the initial model and price zero."""
        return {"y": models}


def _step(visit: Any, numbers: Any, x: Any, gradient: Any, y: Any, z: Any) -> Any:
    return _solved(visit, numbers, x, x + (z - gradient) / numbers.penalty, y, z)


def _solved(visit: Any, numbers: Any, x: Any, solution: Any, y: Any, z: Any) -> Any:
    new_z = z + numbers.penalty * (x - solution)
    change = (solution - new_z / numbers.penalty) - (y - z / numbers.penalty)
    return x + change / visit.nodes, solution, new_z
