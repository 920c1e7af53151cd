"""Numbers that change with the step: a learning rate that decays, jumps that die out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import FreewalkError

__all__ = ["Constant", "Exponential", "Inverse"]


class Schedule(ABC):
    """A positive number for each step of the run (a phase that begins later does not start it anew).

    A schedule of your own is a frozen dataclass with this one method.
    """

    @abstractmethod
    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value at each of the given steps."""


def _is_positive(value: object) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return bool(number and np.isfinite(value) and value > 0)  # type: ignore[call-overload,operator]


def _require_positive(owner: object, **values: float) -> None:
    for name, value in values.items():
        if not _is_positive(value):
            raise FreewalkError(f"{type(owner).__name__}: {name} = {value!r}, expected a finite number > 0")


@dataclass(frozen=True)
class Constant(Schedule):
    """The same value at every step.

    Examples
    --------
    >>> Constant(0.1)(np.arange(3))
    array([0.1, 0.1, 0.1])
    """

    value: float

    def __post_init__(self) -> None:
        _require_positive(self, value=self.value)

    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value at each of the given steps."""
        return np.full(np.shape(steps), float(self.value))


@dataclass(frozen=True)
class Inverse(Schedule):
    """initial / (1 + step / scale)^power: half of `initial` at step = scale when power is 1.

    Examples
    --------
    >>> Inverse(0.1, scale=100)(np.array([0, 100, 300]))
    array([0.1  , 0.05 , 0.025])
    """

    initial: float
    scale: float
    power: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(self, initial=self.initial, scale=self.scale, power=self.power)

    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value at each of the given steps."""
        return np.asarray(self.initial / (1.0 + np.asarray(steps) / self.scale) ** self.power, dtype=np.float64)


@dataclass(frozen=True)
class Exponential(Schedule):
    """initial · 2^(−step / half_life).

    Examples
    --------
    >>> Exponential(0.1, half_life=100)(np.array([0, 100, 200]))
    array([0.1  , 0.05 , 0.025])
    """

    initial: float
    half_life: float

    def __post_init__(self) -> None:
        _require_positive(self, initial=self.initial, half_life=self.half_life)

    def __call__(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value at each of the given steps."""
        return np.asarray(self.initial * 0.5 ** (np.asarray(steps) / self.half_life), dtype=np.float64)


def values_at(schedule: Schedule, steps: NDArray[np.int64], owner: str) -> NDArray[np.float64]:
    """The values of a schedule, or an error where one is negative or not finite; one that has died out may be 0."""
    values = np.broadcast_to(np.asarray(schedule(steps), dtype=np.float64), steps.shape)
    fine = np.isfinite(values) & (values >= 0)
    if not fine.all():
        first = int(np.argmin(fine))
        raise FreewalkError(
            f"{owner}: {schedule!r} is {values[first]:g} at step {steps[first]}, expected a finite number >= 0"
        )
    return values


def schedule(value: "float | Schedule", owner: str) -> Schedule:
    """A number as a constant schedule; a schedule as it is."""
    if isinstance(value, Schedule):
        return value
    if not _is_positive(value):
        raise FreewalkError(
            f"{owner}: got {value!r}, expected a finite number > 0 or a schedule such as Inverse(0.1, scale=100)"
        )
    return Constant(float(value))
