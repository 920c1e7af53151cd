"""Gradient descent with one adaptive step size per coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from freewalk.rules.rule import Rule, check, check_options
from freewalk.schedules import Schedule

Keeper = Literal["token", "node"]


@dataclass(frozen=True)
class AdaGrad(Rule):
    """AdaGrad: s ← s + (w_v ∇f_v(x))², x ← x − γ w_v ∇f_v(x) / (floor + √s), coordinate by coordinate.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    floor
        Prevents division by zero in the first steps.
    keeper
        Where the sum s of squared gradients is kept: the "token" carries it, or each "node" has its own. With "node",
        only the model is sent, but each node scales its own steps to the same size, so that on data that differ between
        nodes the limit is not the optimum.
    weighted, local_steps, sampled
        As for `SGD`.

    References
    ----------
    Duchi, Hazan, Singer, *Adaptive subgradient methods for online learning and stochastic optimization*, 2011.

    Examples
    --------
    >>> AdaGrad(step=0.1).carries, AdaGrad(step=0.1, keeper="node").stores
    (('squares',), ('squares',))
    """

    step: float | Schedule
    floor: float = 1e-8
    keeper: Keeper = "token"
    weighted: bool = True
    local_steps: int = 1
    sampled: bool = False

    def __post_init__(self) -> None:
        check_options(self)
        check.real("AdaGrad", "floor", self.floor, above=0.0)
        check.choice("AdaGrad", "keeper", self.keeper, get_args(Keeper))

    @property
    def carries(self) -> tuple[str, ...]:  # type: ignore[override]
        """The sum, if the token keeps it."""
        return ("squares",) if self.keeper == "token" else ()

    @property
    def stores(self) -> tuple[str, ...]:  # type: ignore[override]
        """The sum, if the nodes keep it."""
        return ("squares",) if self.keeper == "node" else ()

    @staticmethod
    def update(visit: Any, numbers: Any, x: Any, gradient: Any, squares: Any) -> Any:
        """One step."""
        gradient = visit.weight * gradient
        squares = squares + gradient * gradient
        return x - visit.rate * gradient / (numbers.floor + squares**0.5), squares
