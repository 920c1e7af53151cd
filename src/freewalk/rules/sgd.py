"""Stochastic gradient descent on the node that the walk visits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import FreewalkError
from freewalk.rules.rule import Rule
from freewalk.schedules import Schedule, schedule, values_at


@dataclass(frozen=True)
class SGD(Rule):
    """x ← x − γ w_v ∇f_v(x), with the weight w_v = 1 / (n · target_v) of the kernel.

    Under importance sampling the weight is the paper's L̄ / L_v.

    Parameters
    ----------
    step
        γ, a positive number or a schedule.
    weighted
        Whether to use the weights; without them the walk minimises the mean of f_v under its own law.
    local_steps
        Gradient steps at a node before the model moves on.
    average
        Report the running mean of the iterates instead of the last one; the mean travels with the model.
    sampled
        Take each gradient from one random local sample instead of all samples of the node.

    Raises
    ------
    FreewalkError
        If the step is not positive or the number of local steps is below 1.

    Examples
    --------
    >>> SGD(step=3e-3).rates(np.arange(2))
    array([0.003, 0.003])
    """

    step: float | Schedule
    weighted: bool = True
    local_steps: int = 1
    average: bool = False
    sampled: bool = False

    def __post_init__(self) -> None:
        schedule(self.step, "SGD")
        check = Checks(FreewalkError)
        check.whole("SGD", "local_steps", self.local_steps, 1)
        for name in ("weighted", "average", "sampled"):
            check.flag("SGD", name, getattr(self, name))

    @property
    def update(self) -> Callable[..., Any]:
        """One gradient step of one coordinate."""
        return _step_and_average if self.average else _step

    @property
    def constant(self) -> bool:
        """Whether the step is a number."""
        own = type(self).rates is not SGD.rates  # a class of a user's may have rates of its own
        return not own and not isinstance(self.step, Schedule)

    @property
    def carries(self) -> int:
        """The running mean, where it is asked for."""
        return int(self.average)

    @property
    def reported(self) -> int:
        """The running mean, where it is asked for."""
        return 0 if self.average else -1

    def begin(self, models: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """The mean of no iterate is the first model."""
        return np.repeat(models[None], self.carries, axis=0)

    def rates(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The step size γ at each of the given steps."""
        return values_at(schedule(self.step, "SGD"), steps, "SGD: step")


def _step(x: float, gradient: float, step: float, count: int) -> float:
    return x - step * gradient


def _step_and_average(x: float, gradient: float, step: float, count: int, mean: float) -> tuple[float, float]:
    x = x - step * gradient
    return x, mean + (x - mean) / (count + 1)
