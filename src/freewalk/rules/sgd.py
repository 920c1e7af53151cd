"""Stochastic gradient descent at the node that the walk visits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from freewalk.rules.rule import Rule, check, check_options
from freewalk.schedules import Schedule


@dataclass(frozen=True)
class SGD(Rule):
    """Stochastic gradient descent: x ← x − γ w_v ∇f_v(x), with the kernel's weight w_v = 1 / (n · target_v).

    Under importance sampling the weight is the paper's L̄ / L_v.

    Parameters
    ----------
    step
        The step size γ, a positive number or a schedule.
    weighted
        Whether to use the weights; without them the walk minimises the mean of f_v under its own distribution.
    local_steps
        The number of gradient steps at a node before the model moves on.
    average
        True reports the mean of all iterates instead of the last one; the mean travels with the model. "half" reports
        the mean of the last half of them or slightly more (of t iterates, those since the power of two between t/4 and
        t/2), which forgets the start; two vectors travel with the model.
    sampled
        Compute each gradient from one random local sample instead of all samples of the node.

    Examples
    --------
    >>> SGD(step=3e-3).rates(np.arange(2))
    array([0.003, 0.003])
    """

    step: float | Schedule
    weighted: bool = True
    local_steps: int = 1
    average: bool | Literal["half"] = False
    sampled: bool = False

    def __post_init__(self) -> None:
        check_options(self)
        if type(self.average) is not bool and not (isinstance(self.average, str) and self.average == "half"):
            raise check.fail("SGD", "average", self.average, 'True, False or "half"')

    @property
    def carries(self) -> tuple[str, ...]:  # type: ignore[override]
        """The means that `average` requires."""
        return ("mean", "recent") if self.average == "half" else ("mean",) if self.average else ()

    @property
    def reports(self) -> str:  # type: ignore[override]
        """The mean, if requested."""
        return "mean" if self.average else "x"

    @property
    def update(self) -> Callable[..., Any]:
        """One gradient step."""
        return _step_and_half if self.average == "half" else _step_and_average if self.average else _step

    def begin(self, models: NDArray[np.floating[Any]]) -> Mapping[str, NDArray[np.floating[Any]]]:
        """The mean of no iterates is the initial model."""
        return dict.fromkeys(self.carries, models)


def _step(visit: Any, numbers: Any, x: Any, gradient: Any) -> Any:
    return x - visit.rate * visit.weight * gradient


def _step_and_average(visit: Any, numbers: Any, x: Any, gradient: Any, mean: Any) -> Any:
    x = x - visit.rate * visit.weight * gradient
    return x, mean + (x - mean) / (visit.count + 1)


def _step_and_half(visit: Any, numbers: Any, x: Any, gradient: Any, mean: Any, recent: Any) -> Any:
    """`recent` is the mean since the largest power of two, `mean` the mean since half of it."""
    x = x - visit.rate * visit.weight * gradient
    count = visit.count + 1
    power = _power_of_two(count)
    before = recent if count == power else mean  # a new power: what was recent is now the older half
    mean = before + (x - before) / (count - max(power // 2, 1) + 1)
    return x, mean, recent + (x - recent) / (count - power + 1)


def _power_of_two(count: int) -> int:
    """The largest power of two that is at most `count`, by filling all bits below the highest."""
    filled = count | (count >> 1)
    filled = filled | (filled >> 2)
    filled = filled | (filled >> 4)
    filled = filled | (filled >> 8)
    filled = filled | (filled >> 16)
    filled = filled | (filled >> 32)
    return (filled + 1) >> 1
