"""What a runtime is: something that moves a state of many walks forward."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import FreewalkError, ProblemError
from freewalk.kernel import Kernel
from freewalk.objectives import Objective
from freewalk.phases import Phase, phase_at


@dataclass(frozen=True, eq=False)
class Job:
    """All that determines a run, except how long it is."""

    problem: Objective | None
    phases: tuple[Phase, ...]
    seed: int
    precision: str = "float64"

    @property
    def kernel(self) -> Kernel:
        """The kernel of the first phase; all phases share its graph."""
        return self.phases[0].kernel

    def phase_at(self, step: int) -> tuple[Phase, int | None, int]:
        """The phase of a step, where it ends (None: never), and the step at which its rule began."""
        return phase_at(self.phases, step)

    def reported(self, state: "State") -> NDArray[np.floating[Any]]:
        """The models to report: those of the walks, or what the rule of the last step reports instead."""
        rule = self.phase_at(max(state.step - 1, 0))[0].rule
        return state.models if rule is None or rule.reported < 0 else state.carried[rule.reported]


@dataclass(eq=False)
class State:
    """Where every walk is, what it carries and what it has counted: all that is needed to go on."""

    step: int
    nodes: NDArray[np.int32]
    models: NDArray[np.floating[Any]]  # walks × dim
    carried: NDArray[np.floating[Any]]  # vectors × walks × dim
    messages: NDArray[np.int64]
    probes: NDArray[np.int64]
    visits: NDArray[np.int64]  # walks × nodes, or 1 × nodes: summed over the walks
    path_of: NDArray[np.int64]  # by walk: its row in `paths`, or -1
    paths: NDArray[np.int32]

    @property
    def walks(self) -> int:
        """How many walks there are."""
        return self.nodes.size

    @property
    def visits_are_summed(self) -> bool:
        """Whether visits are counted over all walks together."""
        return bool(self.visits.shape[0] != self.walks)


Measures = dict[str, NDArray[Any]]


class Engine(ABC):
    """A job made ready on a runtime: it moves states forward."""

    @abstractmethod
    def advance(self, state: State, until: int, marks: NDArray[np.int64]) -> Measures:
        """Move a state forward in place, inside one phase.

        Parameters
        ----------
        state
            The state to move, from state.step to `until`.
        until
            The step to reach, not beyond the phase of state.step.
        marks
            The steps in (state.step, until] at which to measure.

        Returns
        -------
        Measures
            `messages` and `probes`, and where the job learns `loss`, `distance` and, for least squares, `mse`: each
            walks × marks.
        """

    @abstractmethod
    def measure(self, state: State) -> Measures:
        """The measures of a state as it is, walks × 1."""

    def settle(self, state: State) -> None:  # noqa: B027 (most engines have nothing to do)
        """Bring a state up to date; until then `advance` may keep its walks elsewhere, all but `state.step`."""


class PhaseEngine(Engine):
    """An engine for which to measure is to advance by no step and to mark where it is."""

    job: Job

    def advance(self, state: State, until: int, marks: NDArray[np.int64]) -> Measures:
        """Move a state forward; see `Engine.advance`."""
        phase, _, began = self.job.phase_at(state.step)
        return self._run(phase, state, until, marks, began)

    def measure(self, state: State) -> Measures:
        """The measures of a state; see `Engine.measure`."""
        phase, _, _ = self.job.phase_at(max(state.step - 1, 0))
        return self._run(phase, state, state.step, np.array([state.step]), state.step)

    @abstractmethod
    def _run(self, phase: Phase, state: State, until: int, marks: NDArray[np.int64], began: int) -> Measures:
        """Move a state to `until` by a phase whose rule began at `began`, and measure it at the marks."""


class Runtime(ABC):
    """A place where walks run. Every runtime visits the same nodes; `reference` is the truth."""

    @abstractmethod
    def engine(self, job: Job) -> Engine:
        """Make a job ready.

        Raises
        ------
        FreewalkError
            If this runtime cannot run it.
        """


def not_compiled(where: str, job: Job, phase: Phase, error: Exception) -> FreewalkError:
    """What to say where a function of an objective or a rule cannot be compiled."""
    names = f"value and slope of {type(job.problem).__name__} or update of {type(phase.rule).__name__}"
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    return FreewalkError(
        f"{where}: {names} cannot be compiled; plain arithmetic and the math module can, and runtime='reference' "
        f"runs anything. numba says: {' '.join(said[1:3]) or said[0]}"
    )


def known_optimum(problem: Objective) -> NDArray[np.float64]:
    """The optimum from which distances are measured; NaN where the problem has none."""
    try:
        found = problem.optimum()
    except (ProblemError, NotImplementedError):
        found = None
    return np.full(problem.dim, np.nan) if found is None else np.asarray(found, dtype=np.float64).reshape(problem.dim)
