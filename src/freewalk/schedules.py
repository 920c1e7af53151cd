"""Numbers that change with the step: a decaying learning rate, or jumps that die out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks, show
from freewalk.errors import FreewalkError

__all__ = ["Constant", "Exponential", "Inverse"]

_check = Checks(FreewalkError)


class Schedule(ABC):
    """A positive number per step of the run; a phase that begins later does not restart it.

    To define your own schedule, write a frozen dataclass with this one method.
    """

    @abstractmethod
    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value at each of the given steps."""


class _Positive(Schedule):
    """A schedule whose fields are all positive numbers."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            _check.real(type(self).__name__, name, value, above=0.0)


@dataclass(frozen=True)
class Constant(_Positive):
    """A constant value.

    Parameters
    ----------
    value
        The value.

    Examples
    --------
    >>> Constant(0.1)(np.arange(3))
    array([0.1, 0.1, 0.1])
    """

    value: float

    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value at each of the given steps."""
        return np.full(np.shape(steps), float(self.value))


@dataclass(frozen=True)
class Inverse(_Positive):
    """Inverse decay: initial / (1 + step / scale)^power, half of `initial` at step = scale if power is 1.

    Parameters
    ----------
    initial
        The value at step 0.
    scale
        The number of steps after which the value has fallen to initial / 2^power.
    power
        The rate of decay at late steps: as step^(−power).

    Examples
    --------
    >>> Inverse(0.1, scale=100)(np.array([0, 100, 300]))
    array([0.1  , 0.05 , 0.025])
    """

    initial: float
    scale: float
    power: float = 1.0

    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value at each of the given steps."""
        return np.asarray(self.initial / (1.0 + np.asarray(steps) / self.scale) ** self.power, dtype=np.float64)


@dataclass(frozen=True)
class Exponential(_Positive):
    """Exponential decay: initial · 2^(−step / half_life).

    Parameters
    ----------
    initial
        The value at step 0.
    half_life
        The number of steps in which the value halves.

    Examples
    --------
    >>> Exponential(0.1, half_life=100)(np.array([0, 100, 200]))
    array([0.1  , 0.05 , 0.025])
    """

    initial: float
    half_life: float

    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value at each of the given steps."""
        return np.asarray(self.initial * 0.5 ** (np.asarray(steps) / self.half_life), dtype=np.float64)


def values_at(schedule: Schedule, steps: NDArray[np.int64], owner: str) -> NDArray[np.float64]:
    """The values of a schedule, or an error if one is negative or not finite; a schedule that died out may be 0."""
    given = _check.floats(owner, "its schedule", schedule(steps), finite=False)
    if given.shape not in ((), steps.shape):
        raise FreewalkError(f"{owner}: {show(schedule)} has shape {given.shape}, expected {steps.shape}: one per step")
    values = np.broadcast_to(given, steps.shape)
    fine = np.isfinite(values) & (values >= 0)
    if not fine.all():
        first = int(np.argmin(fine))
        got = f"{show(schedule)} is {values[first]:g} at step {steps[first]}"
        raise FreewalkError(f"{owner}: {got}, expected a finite number >= 0")
    return values
