"""The interface of a runtime, which advances a state of many walks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import FreewalkError
from freewalk.jobs.job import Job, Measures, State
from freewalk.jobs.phase import Passage, Phase


class Engine(ABC):
    """A job prepared on a runtime: it advances states."""

    job: Job
    pace: float = 0.15  #: Seconds that a call of `advance` should take: the delay of Ctrl-C and of progress bars.
    stages: int = 1  #: How many times as many steps it may take per call as engines that do not divide them.
    whole: bool = False  #: Whether a state is unchanged if `advance` fails.

    def advance(self, state: State, until: int, marks: NDArray[np.int64]) -> Measures:
        """Advance a state in place to step `until`; returns what the job measures (`Job.measured`), walks × marks.

        Counts are summed over the tokens of a walk, and losses are those of their mean model.
        """
        parts = []
        while state.step < until:
            passage = self.job.passage(state.step, until, marks[marks > state.step])
            if state.entered != passage.began:
                self.settle(state)
                state.enter(self.job)
            measures = self._run_and_count(state, passage)
            if measures:
                parts.append(measures)
            state.step = passage.until
        return side_by_side(parts)

    def measure(self, state: State) -> Measures:
        """The measures of a state as it is, walks × 1."""
        return self._run_and_count(state, self.job.passage(state.step, state.step, np.array([state.step])))

    def _run_and_count(self, state: State, passage: Passage) -> Measures:
        measures = self._run(state, passage)
        if not passage.marks.size:
            return {}
        exchanged = measures.pop("exchanged", state.exchanged[:, None])
        if exchanged.any():
            measures["messages"] = measures["messages"] + exchanged
        if self.job.objective is not None:
            measures["bytes"] = state.bytes_sent(self.job, measures["messages"], measures["probes"])
        return measures

    @abstractmethod
    def _run(self, state: State, passage: Passage) -> Measures:
        """Advance the walks of a state along a passage, which may have no step, and measure them at its marks.

        Messages of exchanges, if any, are counted separately, as "exchanged".
        """

    @property
    def story(self) -> dict[str, str]:
        """What a record stores about how this engine worked; may be empty."""
        return {}

    def use(self, cores: int) -> None:  # noqa: B027 (most engines use one)
        """Use this many cores."""

    def settle(self, state: State) -> None:  # noqa: B027 (most engines have nothing to do)
        """Bring a state up to date; before that, `advance` may keep everything but `state.step` elsewhere."""


def side_by_side(parts: Sequence[Measures]) -> Measures:
    """Concatenate measures at consecutive marks; some may be empty."""
    found = list(filter(None, parts))
    if len(found) <= 1:
        return dict(found[0]) if found else {}
    return {name: np.concatenate([part[name] for part in found], axis=1) for name in found[0]}


class Runtime(ABC):
    """A place where walks run. All runtimes visit the same nodes; `reference` defines the correct result."""

    portable: ClassVar[bool] = False  #: Whether its engines can be pickled: built once, then mapped by many processes.
    threaded: ClassVar[bool] = False  #: Whether its engines can use several cores.

    @property
    def cards(self) -> int:
        """The number of GPUs it needs."""
        return 0

    @abstractmethod
    def engine(self, job: Job) -> Engine:
        """Prepare a job, or say why this runtime cannot run it."""


def not_compiled(where: str, job: Job, phase: Phase, error: Exception) -> FreewalkError:
    """The error if a function of an objective or a rule cannot be compiled."""
    names = f"value and slope of {type(job.objective).__name__} or update of {type(phase.rule).__name__}"
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    return FreewalkError(
        f"{where}: {names} cannot be compiled; plain arithmetic and the math module can, and runtime='reference' "
        f"runs anything. numba says: {' '.join(said[1:3]) or said[0]}"
    )
