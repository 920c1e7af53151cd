"""Gradient descent with momentum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from freewalk.rules.rule import Rule, check, check_options
from freewalk.schedules import Schedule


@dataclass(frozen=True)
class Momentum(Rule):
    """Heavy-ball momentum: v ← m v + γ w_v ∇f_v(x), x ← x − v; the velocity travels with the model.

    On a walk, where gradients are noise around a mean, a momentum m acts like a step size of γ / (1 − m): use (1 − m)
    times the step of `SGD`. At a relay, which has no data, the model stays unchanged and the velocity decays.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    momentum
        m, the fraction of its velocity that the model keeps, at least 0 and below 1.
    weighted, local_steps, sampled
        As for `SGD`.

    References
    ----------
    Polyak, *Some methods of speeding up the convergence of iteration methods*, 1964.

    Examples
    --------
    >>> Momentum(step=3e-4, momentum=0.9).numbers
    Numbers(momentum=0.9)
    """

    step: float | Schedule
    momentum: float = 0.9
    weighted: bool = True
    local_steps: int = 1
    sampled: bool = False

    carries: ClassVar[tuple[str, ...]] = ("velocity",)  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_options(self)
        most, expected = math.nextafter(1.0, 0.0), "a number from 0 to below 1"
        check.real("Momentum", "momentum", self.momentum, 0.0, most, expected=expected)

    @staticmethod
    def update(visit: Any, numbers: Any, x: Any, gradient: Any, velocity: Any) -> Any:
        """One step."""
        velocity = numbers.momentum * velocity + visit.rate * visit.weight * gradient
        return x - velocity, velocity
