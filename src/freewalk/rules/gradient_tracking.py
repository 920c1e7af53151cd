"""Gradient tracking: parked tokens that follow the gradient of the global loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from freewalk.rules.rule import Rule, check_options
from freewalk.schedules import Schedule


@dataclass(frozen=True)
class GradientTracking(Rule):
    """Gradient tracking for one parked token per node: y ← y + ∇f_v(x) − g_v, g_v ← ∇f_v(x), x ← x − γ y.

    The tokens mix x and y. If mixing preserves sums, as `fw.exchanges.Gossip` does, the mean of y over the tokens is
    the mean of the nodes' last gradients. So all tokens reach the optimum with a constant step; each message holds two
    vectors.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.

    References
    ----------
    Di Lorenzo, Scutari, *NEXT: in-network nonconvex optimization*, 2016. Nedić, Olshevsky, Shi, *Achieving geometric
    convergence for distributed optimization over time-varying graphs*, 2017.

    Examples
    --------
    >>> GradientTracking(step=0.01).carries, GradientTracking(step=0.01).stores
    (('direction',), ('last',))
    """

    step: float | Schedule

    carries: ClassVar[tuple[str, ...]] = ("direction",)  # type: ignore[misc]
    stores: ClassVar[tuple[str, ...]] = ("last",)  # type: ignore[misc]
    shared: ClassVar[bool] = True  # type: ignore[misc]
    weighted: ClassVar[bool] = False  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_options(self)

    @staticmethod
    def update(visit: Any, numbers: Any, x: Any, gradient: Any, direction: Any, last: Any) -> Any:
        """One step."""
        direction = direction + gradient - last
        return x - visit.rate * direction, direction, gradient
