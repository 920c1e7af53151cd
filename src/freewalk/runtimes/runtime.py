"""What a runtime is: something that moves a state of many walks forward."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk import entering
from freewalk.checks import Checks
from freewalk.errors import FreewalkError, ProblemError, RecordError
from freewalk.kernel import Kernel
from freewalk.objectives import LeastSquares, Objective
from freewalk.phases import Phase, phase_at
from freewalk.rules import Rule

_check = Checks(RecordError)
_MOST_LOCAL_STEPS = 10**6  # a visit cannot be interrupted


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

    @property
    def measured(self) -> dict[str, str]:
        """What its engines measure, and the types of the arrays."""
        counts, losses = {"messages": "int64", "probes": "int64"}, {"loss": "float64", "distance": "float64"}
        if self.problem is None:
            return counts
        return counts | losses | ({"mse": "float64"} if isinstance(self.problem, LeastSquares) else {})

    def checked(self, steps: int) -> "Job":
        """The same job, of which everything is known to fit together; it may come from a file.

        Raises
        ------
        FreewalkError
            If something does not fit, or it cannot run so many steps.
        """
        problem = None if self.problem is None else entering.problem("record", self.problem)
        phases = entering.phases(self.phases, None, problem, "record")
        entering.phases_cover(phases, steps)
        entering.schedules(phases, steps)
        for phase in phases:
            begin(phase.rule, np.zeros((1, 0 if problem is None else problem.dim)))
        precision = _check.choice("record", "precision", self.precision, entering.PRECISIONS)
        return Job(problem, phases, _check.seed("record", self.seed), precision)

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

    def checked(self, job: Job, steps: int) -> "State":
        """A copy in arrays of exactly the types, shapes and ranges that engines trust.

        Raises
        ------
        RecordError
            If one of them is something else; it may come from a file.
        """
        n, dim = job.kernel.graph.n, 0 if job.problem is None else job.problem.dim
        step = _check.whole("record", "step", self.step, 0, steps)
        rule = job.phase_at(max(step - 1, 0))[0].rule
        walks = max(np.size(self.nodes), 1)
        hops = max(move.hops for phase in job.phases for move in phase.kernel.moves)
        most = min(step * max(hops, 1), 2**62)  # models that a walk can have sent by now
        path_of = _exactly("path_of", self.path_of, "int64", (walks,), -1, walks - 1)
        rows = np.sort(path_of[path_of >= 0])
        if not np.array_equal(rows, np.arange(rows.size)):
            raise _check.fail("record", "path_of", path_of, f"each of {rows.size} rows once")
        summed = walks > 1 and np.shape(self.visits)[:1] == (1,)
        vectors = 0 if rule is None else carries(rule)
        return State(
            step=step,
            nodes=_exactly("nodes", self.nodes, "int32", (walks,), 0, n - 1),
            models=_exactly("models", self.models, job.precision, (walks, dim)),
            carried=_exactly("carried", self.carried, job.precision, (vectors, walks, dim)),
            messages=_exactly("messages", self.messages, "int64", (walks,), 0, most),
            probes=_exactly("probes", self.probes, "int64", (walks,), 0, 2 * most),
            visits=_exactly(
                "visits", self.visits, "int64", (1 if summed else walks, n), 0, step * (walks if summed else 1)
            ),
            path_of=path_of,
            paths=_exactly("paths", self.paths, "int32", (rows.size, steps + 1 if rows.size else 1), 0, n - 1),
        )


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


def _exactly(
    name: str, values: Any, kind: str, shape: tuple[int, ...], low: int | None = None, high: int | None = None
) -> NDArray[Any]:
    """A copy of an array that has this type, up to the order of bytes, and shape; and, if given, this range."""
    fits = isinstance(values, np.ndarray) and values.dtype.newbyteorder("=") == kind and values.shape == shape
    if not fits:
        raise _check.fail("record", name, values, f"an array of {kind} of shape {shape}")
    if low is not None and high is not None:
        _check.integers("record", name, values, shape, low=low, high=high)
    return np.array(values, dtype=kind, order="C")


def carries(rule: Rule) -> int:
    """How many numbers per coordinate a rule carries; what engines trust of a rule of the user's is checked first."""
    who = type(rule).__name__
    count = entering.check.whole(who, "carries", rule.carries, 0, 2)
    entering.check.whole(who, "reported", rule.reported, -1, count - 1)
    entering.check.whole(who, "local_steps", rule.local_steps, 1, _MOST_LOCAL_STEPS)
    return count


def begin(rule: Rule | None, models: NDArray[Any]) -> NDArray[Any]:
    """What travels with the models where a rule begins, in an array of its own and of the type of the models.

    Engines trust its shape, so a rule of the user's is checked.

    Raises
    ------
    FreewalkError
        If the rule makes something else than it says.
    """
    if rule is None:
        return np.zeros((0, *models.shape), dtype=models.dtype)
    carried, shape = rule.begin(models), (carries(rule), *models.shape)
    if not isinstance(carried, np.ndarray) or carried.shape != shape or carried.dtype not in ("float64", "float32"):
        raise entering.check.fail(type(rule).__name__, "begin()", carried, f"an array of floats of shape {shape}")
    return np.array(carried, dtype=models.dtype, order="C")


def known_optimum(problem: Objective) -> NDArray[np.float64]:
    """The optimum from which distances are measured; NaN where the problem has none."""
    try:
        found = problem.optimum()
    except (ProblemError, NotImplementedError, np.linalg.LinAlgError):
        found = None
    if found is None or np.isnan(found).any():
        return np.full(problem.dim, np.nan)
    return entering.check.floats(type(problem).__name__, "optimum()", found, (problem.dim,), finite=False)
