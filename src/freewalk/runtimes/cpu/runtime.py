"""Compiled walks on all cores."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk.blocks import add_counts, no_counts
from freewalk.checks import Checks
from freewalk.errors import FreewalkError
from freewalk.exchanges.exchange import is_parked
from freewalk.jobs.job import Job, State
from freewalk.jobs.phase import Passage
from freewalk.objectives import Objective, Predictor
from freewalk.objectives.objective import measured
from freewalk.rules.rule import check_runs_on
from freewalk.runtimes.base import Runtime, not_compiled
from freewalk.runtimes.cpu import loops, mix
from freewalk.runtimes.cpu.mix import NODE
from freewalk.runtimes.halves import Course, HalvesEngine, Learner, Path, Walker
from freewalk.runtimes.mixer import Kept, Mixer, exchange_by
from freewalk.runtimes.step import arrays
from freewalk.runtimes.step.network import flattened

if TYPE_CHECKING:
    from freewalk.runtimes.step.inputs import Compiled

_MOST_THREADS = 1024
_check = Checks(FreewalkError)


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
    """The objective of a job if compiled code can learn it; None if the job does not learn.

    Raises
    ------
    FreewalkError
        If the objective or a rule cannot be compiled.
    """
    objective: Objective | None = job.objective
    if objective is None:
        return None
    check_runs_on((phase.rule for phase in job.phases), who)
    if not isinstance(objective, Predictor):
        raise FreewalkError(
            f"{who}: {type(objective).__name__} has a gradient but no slope, so it cannot be compiled; "
            f"pass runtime={objective.runtime!r}"
        )
    for phase in job.phases:
        if phase.rule is not None and phase.rule.proximal:
            raise FreewalkError(
                f"{who}: {type(phase.rule).__name__} solves a problem at each node, which cannot be compiled; pass "
                "runtime='reference'"
            )
    return objective


def measured_in_python(objective: Predictor) -> list[str]:
    """The measures of an objective that cannot be derived from the sums of compiled code."""
    none, kind = np.empty((0, 0)), type(objective)
    measures, sums = (next(one for one in kind.__mro__ if name in vars(one)) for name in ("measure", "measures_of"))
    if measures is not sums and issubclass(measures, sums):  # a class that overrides how to measure overrides all of it
        return list(objective.measures)
    return [name for name in objective.measures if name not in objective.measures_of(none, none)]


class CPUWalker(Walker):
    """The walking half: kernels as flat arrays, and the code that walks them."""

    def __init__(self, job: Job, threads: int) -> None:
        kernels = {id(phase.kernel): phase.kernel for phase in job.phases}
        self.__setstate__((job, threads, [flattened(kernel) for kernel in kernels.values()]))

    def __getstate__(self) -> tuple[Job, int, list[arrays.Network]]:
        """The state independent of the process; receivers map the networks instead of rebuilding them."""
        return self.job, self.threads, list(self.networks.values())

    def __setstate__(self, state: tuple[Job, int, list[arrays.Network]]) -> None:
        from freewalk.runtimes.step import inputs

        self.job, self.threads, networks = state
        self.run = inputs.walker()
        kernels = dict.fromkeys(id(phase.kernel) for phase in self.job.phases)
        self.networks = dict(zip(kernels, networks, strict=True))
        self.apart: tuple[State, list[NDArray[np.int64]]] | None = None  # visits counted separately by each thread

    def along(self, state: State, passage: Passage) -> Course:
        """Prepare to walk a passage."""
        from freewalk.runtimes.step import inputs

        if is_parked(passage.phase.kernel):
            return Parking(state, passage)
        network = self.networks[id(passage.phase.kernel)]
        route = inputs.route(passage, network, self.job.seed, state.first, state.tokens)
        messages, probes = (np.zeros((state.walks, passage.marks.size), dtype=np.int64) for _ in range(2))
        rows = self._visits(state) if state.visits_are_summed else [state.visits] * self.threads
        return Walking(self.run, network, route._replace(messages=messages, probes=probes), state, rows)

    def settle(self, state: State) -> None:
        """Add up the visits that threads have counted separately."""
        if self.apart is not None and self.apart[0] is state:
            for visits in self.apart[1]:
                add_counts(state.visits[0], visits[0])
            self.apart = None

    def _visits(self, state: State) -> list[NDArray[np.int64]]:
        """Visit counts for each thread; the first are those of the state, the others are kept until it is settled."""
        if self.apart is None or self.apart[0] is not state:
            if self.apart is not None:
                self.settle(self.apart[0])
            self.apart = state, [no_counts(state.visits) for _ in range(self.threads - 1)]
        return [state.visits, *self.apart[1]]


class Walking(Course):
    """The walk along a passage."""

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
        self.free: SimpleQueue[tuple[arrays.Walkers, arrays.Words]] = SimpleQueue()  # buffers of threads
        for visits in rows:
            counts = (state.nodes, state.messages, state.probes, visits, state.path_of, state.paths)
            self.free.put((arrays.Walkers(*counts), loops.words()))

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
        steps, marks = passage.until - passage.start, passage.marks.size
        row = 0 if state.visits_are_summed else np.arange(state.rows)
        np.add.at(state.visits, (row, state.nodes), steps)  # type: ignore[arg-type]
        kept = state.path_of >= 0
        state.paths[state.path_of[kept], passage.start + 1 : passage.until + 1] = state.nodes[kept, None]
        counts = {name: state.summed(getattr(state, name)) for name in ("messages", "probes")}
        self.measures = {name: np.repeat(count[:, None], marks, axis=1) for name, count in counts.items()}

    def do(self, stretch: arrays.Stretch, path: Path) -> None:
        """Write where the tokens are."""
        path[: stretch.stop - stretch.start] = self.nodes[stretch.first : stretch.last]


class CPULearner(Learner):
    """The learning half: the layout of the samples, and the code that learns from them, by phase."""

    def __init__(self, job: Job, objective: Predictor) -> None:
        from freewalk.runtimes.step import inputs

        parts = [(phase.kernel, phase.rule) for phase in job.phases if phase.rule is not None]
        data = [inputs.samples(objective, *part, job.optimum, job.precision) for part in parts]
        self.__setstate__((job, objective, data))

    def __getstate__(self) -> tuple[Job, Predictor, list[arrays.Data]]:
        """The state independent of the process, as for a walker."""
        return self.job, self.objective, [data for _, data in self.ready.values()]

    def __setstate__(self, state: tuple[Job, Predictor, list[arrays.Data]]) -> None:
        from freewalk.runtimes.step import inputs

        self.job, self.objective, samples = state
        self.kept: Kept = {}
        rules = [(phase, phase.rule) for phase in self.job.phases if phase.rule is not None]
        self.ready: dict[int, tuple[Compiled, arrays.Data]] = {
            id(phase): (inputs.learner(self.objective, rule, self.job.tokens), data)
            for (phase, rule), data in zip(rules, samples, strict=True)
        }

    def along(self, state: State, passage: Passage) -> "Learning":
        """Prepare to learn along a passage."""
        return Learning(self, state, passage)


class Learning(Course):
    """Learning along a passage."""

    def __init__(self, learner: CPULearner, state: State, passage: Passage) -> None:
        from freewalk.runtimes.step import inputs

        job, objective = learner.job, learner.objective
        self.job, self.objective, self.phase, self.state = job, objective, passage.phase, state
        run, data = learner.ready[id(passage.phase)]
        state.models, state.carried = inputs.aligned(state.models), inputs.aligned(state.carried)
        self.vectors = arrays.Vectors(
            state.models, state.carried, state.stored.reshape(-1, state.dim), state.seen.reshape(-1)
        )
        found = {name: np.empty((state.walks, passage.marks.size)) for name in ("fit", "penalty", "distance")}
        if state.tokens > 1:
            found["consensus"] = np.empty_like(found["fit"])
        self.lesson = inputs.lesson(passage, job.seed, state.first, job.precision, state.tokens)._replace(**found)
        self.own = {name: np.empty_like(found["fit"]) for name in measured_in_python(objective)}
        exchange = passage.phase.exchange
        self.mixer = None if exchange is None else Mixer(job, state, passage, exchange, learner.kept)
        if state.tokens == 1:
            self.learn: Callable[..., None] = partial(run, data)
        else:
            self.mixing = inputs.mixing(None, None, job.precision) if self.mixer is None else self.mixer.mixing
            self.learn = self._with_tokens(run, data)

    def _with_tokens(self, run: "Compiled", data: arrays.Data) -> "Callable[..., None]":
        """The compiled code for several tokens, called like that for one."""
        state = self.state

        def learn(lesson: Any, vectors: Any, room: Any, path: Any, stretch: Any) -> None:
            nodes = self.lesson.nodes if self.mixing.how == NODE else 0
            gathered = mix.gathered(state.tokens, state.dim, nodes, self.job.precision)
            run(data, lesson, vectors, self.mixing, room, gathered, path, stretch)

        return learn

    @property
    def measures(self) -> dict[str, NDArray[Any]]:  # type: ignore[override]
        """The measures of the objective, the distance from its optimum, and those for several tokens."""
        lesson = self.lesson
        with np.errstate(all="ignore"):  # a walk may have diverged
            compiled = self.objective.measures_of(lesson.fit, lesson.penalty)
        found: dict[str, NDArray[Any]] = {**compiled, **self.own, "distance": lesson.distance}
        if self.state.tokens > 1:
            found["consensus"] = lesson.consensus
        return found if self.mixer is None else found | {"exchanged": self.mixer.exchanged}

    def do(self, stretch: arrays.Stretch, path: Path) -> None:
        """Learn along a stretch, stopping for measures and exchanges that are not compiled."""
        from numba.core.errors import NumbaError

        room = loops.sums(self.state.dim, self.job.precision)
        try:
            if not self.own and (self.mixer is None or self.mixer.compiled):
                self.learn(self.lesson, self.vectors, room, path, stretch)
            else:
                self._stop_and_go(room, path, stretch)
        except NumbaError as error:
            raise not_compiled("cpu", self.job, self.phase, error) from error

    def _stop_and_go(self, room: arrays.Sums, path: Path, stretch: arrays.Stretch) -> None:
        marks, now, mark = self.lesson.marks, stretch.start, stretch.mark
        blind = self.lesson._replace(marks=marks[:0])
        exchange = None if self.mixer is None or self.mixer.compiled else self.mixer.exchange
        while True:
            here = stretch._replace(start=now, stop=now, mark=mark)
            if mark < marks.size and marks[mark] == now:
                self.learn(self.lesson, self.vectors, room, path, here)
                self._measure(here)
                mark += 1
            if now >= stretch.stop:
                return
            stop = min(stretch.stop, int(marks[mark])) if mark < marks.size else stretch.stop
            if exchange is not None:
                stop = min(stop, (now // exchange.every + 1) * exchange.every)
            self.learn(blind, self.vectors, room, path[now - stretch.start :], here._replace(stop=stop))
            if exchange is not None and stop % exchange.every == 0:
                exchange_by(exchange, self.job, self.state, stretch, stop, path[stop - 1 - stretch.start])
            now = stop

    def _measure(self, here: arrays.Stretch) -> None:
        """The measures that are not compiled, at a mark."""
        tokens, models = self.state.tokens, self.state.reported(self.phase.rule)
        for walk in range(here.first // tokens, here.last // tokens):
            if self.own:
                with np.errstate(all="ignore"):  # a walk may have diverged
                    model = models[walk]
                    if tokens > 1:
                        model = models[walk * tokens : (walk + 1) * tokens].mean(axis=0, dtype=np.float64)
                    values = measured(self.objective, model)
                for name, column in self.own.items():
                    column[walk, here.mark] = values[name]
            if self.mixer is not None and not self.mixer.compiled:
                self.mixer.exchanged[walk, here.mark] = self.state.exchanged[walk]
