"""What a contestant is: a name, what it does, and a run that says how much it did and what it reached."""

import importlib.util
import os
from abc import ABC, abstractmethod

from contestants.task import Task

ALL_CORES = os.cpu_count() or 1


class Contestant(ABC):
    """One row of the table.

    Attributes
    ----------
    name
        Unique in the table.
    task
        What it learns: a function without arguments, so that nothing is drawn for what cannot run.
    does
        What it does, where that is not what all do.
    loop
        The graph of the NumPy loop that it is compared with.
    updates
        Updates of a timed run.
    warm_up
        Updates of the first run, which compiles and is not timed.
    cores
        Cores that it can use; 0 where a core is no measure.
    learns
        Whether it must show that it did.
    """

    name: str
    does: str = ""
    loop: str = "ring"
    updates: int
    warm_up: int = 0
    cores: int = 1
    learns: bool = True

    @abstractmethod
    def task(self) -> Task:
        """What it learns."""

    def available(self) -> str | None:
        """Why it cannot run here, or None."""
        return None

    def prepare(self) -> None:  # noqa: B027 (not every contestant has something to lay out)
        """Lay out the data, outside of the time."""

    @abstractmethod
    def run(self, updates: int) -> tuple[int, float]:
        """Make about that many updates; return how many they were, and the mean squared error that they reached."""


def missing(*packages: str) -> str | None:
    """Which of the packages is not installed, in words, or None."""
    absent = [package for package in packages if importlib.util.find_spec(package) is None]
    return f"not installed: {', '.join(absent)}" if absent else None
