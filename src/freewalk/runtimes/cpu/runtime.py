"""Compiled walks on all cores."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.blocks import add_counts, no_counts
from freewalk.checks import Checks
from freewalk.compiled.compiler import address_of, compile_functions
from freewalk.designs.kernel import Kernel
from freewalk.designs.memory import VisitCounts
from freewalk.errors import FreewalkError
from freewalk.jobs.job import Job, State
from freewalk.jobs.phase import Passage, Phase
from freewalk.objectives import Objective, Predictor
from freewalk.objectives.objective import measured
from freewalk.rules import Rule
from freewalk.rules.rule import check_runs_on
from freewalk.runtimes.cpu import loops
from freewalk.runtimes.engine import (
    Course,
    Follow,
    HalvesEngine,
    Learner,
    Path,
    Runtime,
    StoppingLearning,
    Walker,
    counted,
    counts_at,
)
from freewalk.runtimes.mixer import Kept, Mixer
from freewalk.runtimes.step import arrays, inputs
from freewalk.runtimes.step.memory import LONGEST

_MOST_THREADS = 1024
_UNROLLED = 32  # up to this many coordinates, their number is compiled in
_CALLS = (
    "draw_pairs",
    "draw_others",
    "walk_block",
    "remember_block",
    "learn_block",
    "measure_rows",
    "mix_rows",
    "word",
)
_NOT_WALKING = arrays.Walking(0, np.empty(0, dtype=np.uint64))
_check = Checks(FreewalkError)
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class CPU(Runtime):
    """Compiled walks on the CPU, divided among threads.

    Parameters
    ----------
    threads
        The number of threads, up to 1024. Default: $FREEWALK_THREADS if set, else all cores.

    Raises
    ------
    FreewalkError
        If `threads` is not such a number.
    """

    threads: int | None = None

    portable = threaded = True

    def __post_init__(self) -> None:
        if self.threads is not None:
            _check.whole("CPU", "threads", self.threads, 1, _MOST_THREADS, remedy="None takes all cores")

    def engine(self, job: Job) -> HalvesEngine:
        """Prepare a job; its objective must have a slope."""
        objective = predictor("cpu", job)
        given = os.environ.get("FREEWALK_THREADS") or "0"
        if not given.isdecimal() or len(given) > 4 or int(given) > _MOST_THREADS:
            expected = f"a whole number from 1 to {_MOST_THREADS}, or 0 for all cores"
            raise _check.fail("cpu", "FREEWALK_THREADS", given, expected)
        threads = self.threads or int(given) or min(os.cpu_count() or 1, _MOST_THREADS)
        learner = None if objective is None else CPULearner(job, objective)
        return HalvesEngine(job, CPUWalker(job, threads), learner, threads)


def predictor(who: str, job: Job) -> Predictor | None:
    """The objective of a job; None if the job does not learn, and an error if compiled code cannot learn it."""
    objective: Objective | None = job.objective
    if objective is None:
        return None
    check_runs_on((phase.rule for phase in job.phases), who)
    if not isinstance(objective, Predictor):
        lacking = f"{type(objective).__name__} has a gradient but no slope, so it cannot be compiled"
        raise FreewalkError(f"{who}: {lacking}; pass runtime={objective.runtime!r}")
    for phase in job.phases:
        if phase.rule is not None and phase.rule.proximal:
            solving = f"{type(phase.rule).__name__} solves a problem at each node, which cannot be compiled"
            raise FreewalkError(f"{who}: {solving}; pass runtime='reference'")
    return objective


def not_compiled(who: str, job: Job, phase: Phase, error: Exception) -> FreewalkError:
    """The error if a function of an objective or a rule cannot be compiled."""
    names = f"value and slope of {type(job.objective).__name__} or update of {type(phase.rule).__name__}"
    remedy = "plain arithmetic and the math module can, and runtime='reference' runs anything"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    why = " ".join(lines[1:3]) or " ".join(lines) or type(error).__name__
    return FreewalkError(f"{who}: {names} cannot be compiled; {remedy}. numba says: {why}")


def measured_in_python(objective: Predictor) -> list[str]:
    """The measures of an objective that cannot be derived from the sums of compiled code."""
    none, kind = np.empty((0, 0)), type(objective)
    measures, sums = (next(one for one in kind.__mro__ if name in vars(one)) for name in ("measure", "measures_of"))
    if measures is not sums and issubclass(measures, sums):  # a class that overrides how to measure overrides all of it
        return list(objective.measures)
    return [name for name in objective.measures if name not in objective.measures_of(none, none)]


@cache
def walking_code(memory: str = "") -> Callable[..., None]:
    """The walking half, the same for all kernels with this kind of memory."""
    from freewalk.compiled import native

    functions = {"walk_stretch": loops.walk_stretch, "choose": native.choose, "fetch": native.fetch}
    if memory:
        functions |= {"scaled": native.scaled, **inputs.functions_of_memory(memory)}
        together = loops.repel_together if memory.startswith("self") else loops.drive_together
        functions |= {"step_together": together} if functions["COUNTS"] else {}
    return compile_functions(functions, "walk_stretch", calls=_CALLS)


def learning_code(objective: Predictor, rule: Rule, tokens: int = 1) -> Callable[..., None]:
    """The learning half, for walks with one or several tokens; it calls the walking half if it gets its address."""
    from freewalk.compiled import native

    functions = {
        "walk_and_learn": loops.walk_and_learn,
        "TOKENS": tokens > 1,
        "SHARED": bool(rule.shared and tokens > 1),
        "DIM": objective.dim if objective.dim <= _UNROLLED else 0,
        "SPLIT": "math" in getattr(getattr(type(objective).slope, "__code__", None), "co_names", ()),
        "read": native.read,
        "predict": native.predict,
        "fetch": native.fetch,
        "walk_at": native.walk_at,
        **inputs.functions_of(objective, rule),
    }
    return compile_functions(functions, "walk_and_learn", calls=_CALLS)


class CPUWalker(Walker):
    """The walking half: kernels as flat arrays, which other processes map instead of rebuilding them."""

    def __init__(self, job: Job, threads: int) -> None:
        self.job, self.threads = job, threads
        kernels = dict.fromkeys(phase.kernel for phase in job.phases)
        self.networks = dict(zip(kernels, map(inputs.flattened, kernels), strict=True))
        self.apart: tuple[State, list[tuple[Counts, NDArray[np.uint16]]]] | None = None  # visits, by thread

    def along(self, state: State, passage: Passage) -> Course:
        """Prepare to walk a passage."""
        if passage.phase.kernel.is_parked:
            return Parking(state, passage)
        network = self.networks[passage.phase.kernel]
        route = inputs.route(self.job, state, passage, network)
        counts = {name: np.zeros((state.walks, passage.marks.size), dtype=np.int64) for name in counted(passage)}
        visits = [(state.visits, np.empty(0, dtype=np.uint16))] * self.threads
        if state.visits_are_summed:
            visits = self._visits(state)
        return CPUWalk(network, route._replace(**counts), state, visits, passage.phase.kernel)

    def settle(self, state: State) -> None:
        """Add up the visits that threads have counted separately."""
        if self.apart is not None and self.apart[0] is state:
            for visits, counts in self.apart[1]:
                add_counts(state.visits[0], counts)
                if visits is not state.visits:
                    add_counts(state.visits[0], visits[0])
            self.apart = None

    def _visits(self, state: State) -> list[tuple[Counts, NDArray[np.uint16]]]:
        """Visit counts for each thread, to be added up when the state is settled; nearly all are in the narrow ones."""
        if self.apart is None or self.apart[0] is not state:
            if self.apart is not None:
                self.settle(self.apart[0])
            wide = [state.visits, *(no_counts(state.visits) for _ in range(self.threads - 1))]
            self.apart = state, [(visits, np.zeros(visits.size, dtype=np.uint16)) for visits in wide]
        return self.apart[1]


class CPUWalk(Course):
    """The walk along a passage."""

    def __init__(
        self,
        network: arrays.FlatKernel,
        route: arrays.Route,
        state: State,
        visits: list[tuple[Counts, NDArray[np.uint16]]],
        kernel: Kernel,
    ) -> None:
        self.run, self.network, self.route = walking_code(inputs.kind_of_memory(kernel)), network, route
        self.measures = {"messages": route.messages, "probes": route.probes}
        outcomes, staged = 0, 0
        if isinstance(kernel.memory, VisitCounts):
            self.measures["freight"] = route.freight
            outcomes = 1 if kernel.memory.driven else int(np.diff(kernel.rows.indptr).max())
            staged = outcomes if outcomes <= LONGEST else 0
        remembered = state.previous, state.counters, state.known, state.freight
        self.free: SimpleQueue[tuple[arrays.Walkers, arrays.Words]] = SimpleQueue()  # buffers of threads
        for wide, narrow in visits:
            counts = (state.nodes, state.messages, state.probes, wide, state.path_of, state.paths, *remembered)
            of_steps = (np.empty(loops.WORDS + 1, dtype=np.uint64) for _ in range(6))
            of_lanes = (np.empty(loops.TEAM, dtype=kind) for kind in (np.uint32, np.uint64))
            of_memory = np.full(loops.TEAM, rng.LAST), np.empty(outcomes, dtype=np.uint64)
            together = (np.empty((staged, loops.TEAM), dtype=kind) for kind in ("float64", "float64", "uint64"))
            words = arrays.Words(*of_steps, *of_lanes, narrow, *of_memory, *together)  # type: ignore[call-arg]
            self.free.put((arrays.Walkers(*counts), words))

    def jointly(self, learning: Course | None) -> Follow | None:
        """Walk stretches of any length, and learn along them if that is compiled, too; see `Course.jointly`."""
        if learning is None:
            return self.do
        if not isinstance(learning, CPULearning) or learning.stops:
            return None
        waiting: SimpleQueue[tuple[Any, arrays.Walking]] = SimpleQueue()
        while not self.free.empty():
            mine = self.free.get()
            waiting.put((mine, self.called(*mine)))  # whose addresses are those of buffers that have to stay alive

        def follow(stretch: arrays.Stretch, path: Path) -> None:
            mine = waiting.get()
            try:
                learning.run(learning.lesson, stretch, path, mine[1])
            finally:
                waiting.put(mine)

        return follow

    def called(self, *mine: arrays.Walkers | arrays.Words) -> arrays.Walking:
        """How the learning half calls this one."""
        from freewalk.compiled.native import words_of

        given = self.network, self.route, *mine
        address = address_of(self.run, *given, np.empty((1, 1), dtype=np.int32), arrays.Stretch(0, 0, 0, 0, 0))
        words = np.array(words_of(given), dtype=np.uint64)
        assert words.size == loops.WALKING
        return arrays.Walking(address, words)

    def do(self, stretch: arrays.Stretch, path: Path) -> None:
        """Walk a stretch."""
        mine = self.free.get()
        try:
            self.run(self.network, self.route, *mine, path, stretch)
        finally:
            self.free.put(mine)


class Parking(Course):
    """A passage of tokens that never leave their nodes: nothing is drawn, and all counts are known in advance."""

    def __init__(self, state: State, passage: Passage) -> None:
        self.nodes = state.nodes
        row = 0 if state.visits_are_summed else np.arange(state.rows)
        np.add.at(state.visits, (row, state.nodes), passage.until - passage.start)  # type: ignore[arg-type]
        kept = state.path_of >= 0
        state.paths[state.path_of[kept], passage.start + 1 : passage.until + 1] = state.nodes[kept, None]
        self.measures = counts_at(state, passage)

    def do(self, stretch: arrays.Stretch, path: Path) -> None:
        """Write where the tokens are."""
        path[: stretch.stop - stretch.start] = self.nodes[stretch.first : stretch.last]


class CPULearner(Learner):
    """The learning half: the layout of the samples, and the code that learns from them, by phase."""

    def __init__(self, job: Job, objective: Predictor, data: dict[Phase, arrays.NodeData] | None = None) -> None:
        self.job, self.objective = job, objective
        self.kept: Kept = {}
        rules = {phase: phase.rule for phase in job.phases if phase.rule is not None}
        self.code = {phase: learning_code(objective, rule, job.tokens) for phase, rule in rules.items()}
        self.data = data or {phase: inputs.samples(job, objective, phase.kernel, rules[phase]) for phase in rules}

    def __reduce__(self) -> tuple[Any, ...]:
        """What is independent of the process: compiled code is not."""
        return CPULearner, (self.job, self.objective, self.data)

    def along(self, state: State, passage: Passage) -> "CPULearning":
        """Prepare to learn along a passage."""
        return CPULearning(self, state, passage)


class CPULearning(StoppingLearning):
    """Learning along a passage; it stops only for what is not compiled."""

    def __init__(self, learner: CPULearner, state: State, passage: Passage) -> None:
        super().__init__(learner.job, state, passage)
        job, objective, phase = learner.job, learner.objective, passage.phase
        self.objective, self.code, self.data = objective, learner.code[phase], learner.data[phase]
        state.models, state.carried = inputs.aligned(state.models), inputs.aligned(state.carried)
        stored, seen = state.stored.reshape(-1, state.dim), state.seen.reshape(-1)
        self.vectors = arrays.Vectors(state.models, state.carried, stored, seen)
        names = ("fit", "penalty", "distance", *(["consensus"] if state.tokens > 1 else []))
        found = {name: np.empty((state.walks, passage.marks.size)) for name in names}
        self.lesson = inputs.lesson(job, state, passage)._replace(**found)
        self.own = {name: np.empty_like(found["fit"]) for name in measured_in_python(objective)}
        self.mixing = inputs.no_mixing(job.precision)
        if phase.exchange is not None:
            mixer = Mixer(job, state, passage, phase.exchange, learner.kept)
            self.mixing, self.exchanged = mixer.mixing, mixer.exchanged
            self.exchange = None if mixer.compiled else phase.exchange
        self.stops = bool(self.own) or self.exchange is not None

    @property
    def measures(self) -> dict[str, NDArray[Any]]:  # type: ignore[override]
        """The measures of the objective, the distance from its optimum, and those for several tokens."""
        lesson = self.lesson
        with np.errstate(all="ignore"):  # a walk may have diverged
            compiled = self.objective.measures_of(lesson.fit, lesson.penalty)
        found: dict[str, NDArray[Any]] = {**compiled, **self.own, "distance": lesson.distance}
        if self.state.tokens > 1:
            found["consensus"] = lesson.consensus
        return found if self.passage.phase.exchange is None else found | {"exchanged": self.exchanged}

    def do(self, stretch: arrays.Stretch, path: Path) -> None:
        """Learn along a stretch."""
        if self.stops:
            super().do(stretch, path)
        else:
            self.run(self.lesson, stretch, path)

    def run(
        self, lesson: arrays.Lesson, stretch: arrays.Stretch, path: Path, walking: arrays.Walking | None = None
    ) -> None:
        """Learn along a stretch in compiled code, which walks it, too, if it is told how."""
        from numba.core.errors import NumbaError

        meeting = lesson.nodes if self.mixing.how == arrays.NODE else 0
        room = loops.buffers(self.state.tokens, self.state.dim, meeting, self.job.precision)
        try:
            self.code(walking or _NOT_WALKING, self.data, lesson, self.vectors, self.mixing, room, path, stretch)
        except (NumbaError, AssertionError) as error:  # before 0.66, numba asserts what it cannot compile
            raise not_compiled("cpu", self.job, self.passage.phase, error) from error

    def learn(self, stretch: arrays.Stretch, path: Path) -> None:
        """Learn without measuring."""
        self.run(self.lesson._replace(marks=self.lesson.marks[:0]), stretch, path)

    def measure(self, here: arrays.Stretch) -> None:
        """The measures that are compiled, and those that are not."""
        self.run(self.lesson, here, np.empty((0, 0), dtype=np.int32))
        tokens, models = self.state.tokens, self.state.reported(self.rule)
        for walk in range(here.first // tokens, here.last // tokens) if self.own else ():
            with np.errstate(all="ignore"):  # a walk may have diverged
                model = models[walk]
                if tokens > 1:
                    model = models[walk * tokens : (walk + 1) * tokens].mean(axis=0, dtype=np.float64)
                values = measured(self.objective, model)
            for name, column in self.own.items():
                column[walk, here.mark] = values[name]
