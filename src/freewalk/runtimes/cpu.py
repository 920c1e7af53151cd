"""The walks on all cores, compiled."""

import os
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.engine import arrays, cpu
from freewalk.engine.network import flattened
from freewalk.errors import FreewalkError
from freewalk.objectives import Objective, Predictor
from freewalk.objectives.objective import measured
from freewalk.phases import Passage
from freewalk.runtimes.halves import Course, HalvesEngine, Learner, Path, Walker
from freewalk.runtimes.runtime import Runtime, not_compiled
from freewalk.runtimes.state import Job, State

if TYPE_CHECKING:
    from freewalk.engine.build import Compiled

_MOST_THREADS = 1024
_check = Checks(FreewalkError)


@dataclass(frozen=True)
class CPU(Runtime):
    """Compiled walks, in blocks over threads.

    Parameters
    ----------
    threads
        How many threads, up to 1024; None takes $FREEWALK_THREADS, else all cores.

    Raises
    ------
    FreewalkError
        If that is no such number.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            _check.whole("CPU", "threads", self.threads, 1, _MOST_THREADS, remedy="None takes all cores")

    def engine(self, job: Job) -> HalvesEngine:
        """Make a job ready; an objective must give a slope."""
        objective = predictor("cpu", job)
        given = os.environ.get("FREEWALK_THREADS") or "0"
        if not given.isdecimal() or len(given) > 4 or int(given) > _MOST_THREADS:
            expected = f"a whole number from 1 to {_MOST_THREADS}, or 0 for all cores"
            raise _check.fail("cpu", "FREEWALK_THREADS", given, expected)
        threads = self.threads or int(given) or min(os.cpu_count() or 1, _MOST_THREADS)
        learner = None if objective is None else CPULearner(job, objective)
        return HalvesEngine(job, CPUWalker(job, threads), learner, threads)


def predictor(who: str, job: Job) -> Predictor | None:
    """What a compiled runtime can learn, or nothing.

    Raises
    ------
    FreewalkError
        If the objective or a rule cannot be compiled.
    """
    objective: Objective | None = job.objective
    if objective is None:
        return None
    if not isinstance(objective, Predictor):
        raise FreewalkError(
            f"{who}: {type(objective).__name__} gives a gradient but no slope, so it cannot be compiled; "
            "pass runtime='reference'"
        )
    for phase in job.phases:
        if phase.rule is not None and phase.rule.proximal:
            raise FreewalkError(
                f"{who}: {type(phase.rule).__name__} solves a problem at each node, which cannot be compiled; pass "
                "runtime='reference'"
            )
    return objective


def measured_in_python(objective: Predictor) -> list[str]:
    """The measures of an objective that do not follow from what compiled code sums up."""
    none, kind = np.empty((0, 0)), type(objective)
    measures, sums = (next(one for one in kind.__mro__ if name in vars(one)) for name in ("measure", "measures_of"))
    if measures is not sums and issubclass(measures, sums):  # a class that says anew how to measure means all of it
        return list(objective.measures)
    return [name for name in objective.measures if name not in objective.measures_of(none, none)]


class CPUWalker(Walker):
    """The walking half: kernels as flat arrays, and the code that walks them."""

    def __init__(self, job: Job, threads: int) -> None:
        from freewalk.engine import build

        self.job = job
        self.threads = threads
        self.run = build.walker()
        kernels = {id(phase.kernel): phase.kernel for phase in job.phases}
        self.networks = {key: flattened(kernel) for key, kernel in kernels.items()}
        self.apart: tuple[State, list[NDArray[np.int64]]] | None = None  # visits that threads count apart

    def along(self, state: State, passage: Passage) -> "Walking":
        """Get ready to walk a passage."""
        from freewalk.engine import build

        network = self.networks[id(passage.phase.kernel)]
        route = build.route(passage, network, self.job.seed, state.first)
        counts = (np.repeat(count[:, None], passage.marks.size, axis=1) for count in (state.messages, state.probes))
        messages, probes = counts
        rows = self._visits(state) if state.visits_are_summed else [state.visits] * self.threads
        return Walking(self.run, network, route._replace(messages=messages, probes=probes), state, rows)

    def settle(self, state: State) -> None:
        """Add up the visits that threads have counted apart."""
        if self.apart is not None and self.apart[0] is state:
            for visits in self.apart[1]:
                state.visits += visits
            self.apart = None

    def _visits(self, state: State) -> list[NDArray[np.int64]]:
        """Counts of visits for each thread, the first being those of the state; the others stay until it is settled."""
        if self.apart is None or self.apart[0] is not state:
            if self.apart is not None:
                self.settle(self.apart[0])
            self.apart = state, [np.zeros_like(state.visits) for _ in range(self.threads - 1)]
        return [state.visits, *self.apart[1]]


class Walking(Course):
    """A passage that is walked."""

    def __init__(
        self,
        run: "Compiled",
        network: arrays.Network,
        route: arrays.Route,
        state: State,
        rows: list[NDArray[np.int64]],
    ) -> None:
        self.run, self.network, self.route = run, network, route
        self.measures = {"messages": route.messages, "probes": route.probes}
        self.free: SimpleQueue[tuple[arrays.Walkers, arrays.Words]] = SimpleQueue()  # what one thread uses at a time
        for visits in rows:
            counts = (state.nodes, state.messages, state.probes, visits, state.path_of, state.paths)
            self.free.put((arrays.Walkers(*counts), cpu.words()))

    def do(self, stretch: arrays.Stretch, path: Path) -> None:
        """Walk a stretch."""
        mine = self.free.get()
        try:
            self.run(self.network, self.route, *mine, path, stretch)
        finally:
            self.free.put(mine)


class CPULearner(Learner):
    """The learning half: samples laid out, and the code that learns from them, by phase."""

    def __init__(self, job: Job, objective: Predictor) -> None:
        from freewalk.engine import build

        self.job = job
        self.objective = objective
        self.ready: dict[int, tuple[Compiled, arrays.Data]] = {}
        for phase in job.phases:
            if phase.rule is not None:
                data = build.samples(objective, phase.kernel, phase.rule, job.optimum, job.precision)
                self.ready[id(phase)] = build.learner(objective, phase.rule), data

    def along(self, state: State, passage: Passage) -> "Learning":
        """Get ready to learn along a passage."""
        return Learning(self, state, passage)


class Learning(Course):
    """A passage that is learned along."""

    def __init__(self, learner: CPULearner, state: State, passage: Passage) -> None:
        from freewalk.engine import build

        job, objective = learner.job, learner.objective
        self.job, self.objective, self.phase, self.state = job, objective, passage.phase, state
        self.run, self.data = learner.ready[id(passage.phase)]
        state.models, state.carried = build.aligned(state.models), build.aligned(state.carried)
        self.vectors = arrays.Vectors(
            state.models, state.carried, state.stored.reshape(-1, state.dim), state.seen.reshape(-1)
        )
        fit, penalty, distance = (np.empty((state.walks, passage.marks.size)) for _ in range(3))
        lesson = build.lesson(passage, job.seed, state.first, job.precision)
        self.lesson = lesson._replace(fit=fit, penalty=penalty, distance=distance)
        self.own = {name: np.empty_like(fit) for name in measured_in_python(objective)}

    @property
    def measures(self) -> dict[str, NDArray[np.float64]]:  # type: ignore[override]
        """The measures of the objective, and the distance from its optimum."""
        lesson = self.lesson
        with np.errstate(all="ignore"):  # a walk may have diverged
            compiled = self.objective.measures_of(lesson.fit, lesson.penalty)
        return {**compiled, **self.own, "distance": lesson.distance}

    def do(self, stretch: arrays.Stretch, path: Path) -> None:
        """Learn along a stretch; measures that only Python knows make it stop at each mark."""
        from numba.core.errors import NumbaError

        room = cpu.sums(self.state.dim, self.job.precision)
        try:
            if not self.own:
                self.run(self.data, self.lesson, self.vectors, room, path, stretch)
                return
            for piece in _between_marks(stretch, self.lesson.marks):
                self.run(self.data, self.lesson, self.vectors, room, path[piece.start - stretch.start :], piece)
                if piece.mark < self.lesson.marks.size and self.lesson.marks[piece.mark] == piece.stop:
                    self._measure(piece)
        except NumbaError as error:
            raise not_compiled("cpu", self.job, self.phase, error) from error

    def _measure(self, piece: arrays.Stretch) -> None:
        models = self.state.reported(self.phase.rule)
        for walk in range(piece.first, piece.last):
            with np.errstate(all="ignore"):  # a walk may have diverged
                values = measured(self.objective, models[walk])
            for name, column in self.own.items():
                column[walk, piece.mark] = values[name]


def _between_marks(stretch: arrays.Stretch, marks: NDArray[np.int64]) -> list[arrays.Stretch]:
    """A stretch in pieces that end at the marks in it."""
    pieces, start, mark = [], stretch.start, stretch.mark
    while True:
        stop = min(stretch.stop, int(marks[mark])) if mark < marks.size else stretch.stop
        pieces.append(stretch._replace(start=start, stop=stop, mark=mark))
        if stop >= stretch.stop:
            return pieces
        start, mark = stop, mark + 1
