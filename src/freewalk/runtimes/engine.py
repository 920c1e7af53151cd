"""The interface of a runtime, whose engine advances a state of many walks, and engines made of two halves.

The path never depends on the model, so any walker, which writes a path, can be combined with any learner, which follows
it and learns.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Ints
from freewalk.designs.memory import VisitCounts
from freewalk.exchanges import Exchange
from freewalk.exchanges.exchange import gathering_of, sent_by, weights_of
from freewalk.jobs.job import Job, Measures, State
from freewalk.jobs.phase import Passage
from freewalk.runtimes.cpu.loops import LANES, TEAM
from freewalk.runtimes.step.arrays import Stretch

WALKS, MARKS = 0, 1  # the axes of measures
_PARTS_PER_THREAD = 2  # a thread that is fast takes more
_STRETCH = 2**16  # nodes walked before learning at them, so that they stay in the cache
_NARROW, _WIDEST = 2**6, 2**12  # rows in a stretch

Path = NDArray[np.int32]
Follow = Callable[[Stretch, Path], None]


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
            if state.begins_phase(self.job):
                self.settle(state)
                state.recall(self.job)
            if isinstance(memory := passage.phase.kernel.memory, VisitCounts):
                passage = self._within_epoch(memory, state, passage)
            parts.append(self._run_and_count(state, passage))
            state.step = passage.until
        return joined(parts, MARKS)

    def measure(self, state: State) -> Measures:
        """The measures of a state as it is, walks × 1."""
        return self._run_and_count(state, self.job.passage(state.step, state.step, np.array([state.step])))

    def _within_epoch(self, memory: VisitCounts, state: State, passage: Passage) -> Passage:
        """The part of a passage that is within one epoch of the counters, which a new one divides."""
        n, counted = state.counters.shape[1], state.step - state.counted_from
        epoch = memory.epoch(n, counted)
        if epoch != state.epoch:
            self.settle(state)
            state.begin_epoch(epoch)
        until = min(passage.until, state.counted_from + memory.end_of_epoch(n, counted))
        return self.job.passage(passage.start, until, passage.marks)

    def _run_and_count(self, state: State, passage: Passage) -> Measures:
        measures = self._run(state, passage)
        if not passage.marks.size:
            return {}
        freight = measures.pop("freight", state.summed(state.freight)[:, None])
        exchanged = measures.pop("exchanged", state.exchanged[:, None])
        if exchanged.any():
            measures["messages"] = measures["messages"] + exchanged
        if self.job.objective is not None:
            measures["bytes"] = state.bytes_sent(self.job, measures["messages"], measures["probes"])
            if freight.any():
                measures["bytes"] = measures["bytes"] + freight
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


def joined(parts: Sequence[Measures], axis: int) -> Measures:
    """Concatenate measures of consecutive `WALKS` or at consecutive `MARKS`; some may be empty."""
    found = list(filter(None, parts))
    if len(found) <= 1:
        return dict(found[0]) if found else {}
    return {name: np.concatenate([part[name] for part in found], axis=axis) for name in found[0]}


class Runtime(ABC):
    """A place where walks run. All runtimes visit the same nodes; `reference` defines the correct result."""

    portable: ClassVar[bool] = False  #: Whether its engines can be pickled: built once, then mapped by many processes.
    threaded: ClassVar[bool] = False  #: Whether its engines can use several cores.
    cards: int = 0  #: The number of GPUs it needs.

    @abstractmethod
    def engine(self, job: Job) -> Engine:
        """Prepare a job, or say why this runtime cannot run it."""


# Two halves.


class Course(ABC):
    """The work of a walker or a learner along one passage; threads may do several stretches at once."""

    measures: Measures  #: Walks × marks, by name, summed over tokens; complete when all stretches are done.

    @abstractmethod
    def do(self, stretch: Stretch, path: Path) -> None:
        """Walk a stretch, writing path[t, r], where row first + r is at step start + t; or learn along that path."""

    def jointly(self, learning: "Course | None") -> Follow | None:
        """For a walker: a function that walks and learns along a stretch of any length in one call, if there is one.

        It uses the path again and again, and needs no interpreter meanwhile.
        """
        return None


def counts_at(state: State, passage: Passage) -> Measures:
    """The messages and probes of each walk at the marks of a passage, if no more are sent."""
    counts = {name: state.summed(getattr(state, name)) for name in counted(passage)}
    return {name: np.repeat(count[:, None], passage.marks.size, axis=1) for name, count in counts.items()}


def counted(passage: Passage) -> tuple[str, ...]:
    """What is counted while tokens walk; bytes of counters only if there can be such."""
    memory = passage.phase.kernel.memory
    return ("messages", "probes", *(["freight"] if memory is not None and memory.counts else []))


class Half:
    """One half of an engine: a walker or a learner."""

    along: Callable[[State, Passage], Course]  #: Prepares to walk a passage, or to learn along it.

    def settle(self, state: State) -> None:
        """Bring the counters, or the models, of a state up to date."""


class Walker(Half):
    """The half that advances tokens and writes their path and counters, independent of the objective."""

    threads: int = 1  #: The number of threads that walk at the same time.


class Learner(Half):
    """The half that learns along a path and measures at the marks, independent of the graph."""

    together: bool = False  #: Whether it takes all rows at once.
    how: str = ""  #: How it learned, for the record.


class StoppingLearning(Course):
    """Learning along a passage that stops for measures and exchanges, which are made in Python."""

    def __init__(self, job: Job, state: State, passage: Passage) -> None:
        assert passage.phase.rule is not None
        self.job, self.state, self.passage, self.rule = job, state, passage, passage.phase.rule
        self.exchange = passage.phase.exchange  #: The one to stop for.
        #: The messages of exchanges at the marks, walks × marks.
        self.exchanged = np.repeat(state.exchanged[:, None], passage.marks.size, axis=1)

    def unmeasured(self) -> Measures:
        """The measures of the objective, to be filled in, and the messages of exchanges."""
        floats = [name for name, kind in self.job.measured.items() if kind == "float64"]
        found: Measures = {name: np.full(self.exchanged.shape, np.nan) for name in floats}
        return found if self.exchange is None else found | {"exchanged": self.exchanged}

    def do(self, stretch: Stretch, path: Path) -> None:
        """Learn along a stretch."""
        exchange, marks, now, mark = self.exchange, self.passage.marks, stretch.start, stretch.mark
        walks = slice(stretch.first // self.state.tokens, stretch.last // self.state.tokens)
        while True:
            here = stretch._replace(start=now, stop=now, mark=mark)
            if mark < marks.size and marks[mark] == now:
                self.measure(here)
                if exchange is not None:
                    self.exchanged[walks, mark] = self.state.exchanged[walks]
                mark += 1
            if now >= stretch.stop:
                return
            stop = min(stretch.stop, int(marks[mark])) if mark < marks.size else stretch.stop
            if exchange is not None:
                stop = min(stop, (now // exchange.every + 1) * exchange.every)
            self.learn(here._replace(stop=stop), path[now - stretch.start :])
            if exchange is not None and stop % exchange.every == 0:
                self.mix(exchange, stretch, stop, path[stop - 1 - stretch.start])
            now = stop

    @abstractmethod
    def measure(self, here: Stretch) -> None:
        """Measure walks as they are, at the mark of a stretch without steps."""

    @abstractmethod
    def learn(self, stretch: Stretch, path: Path) -> None:
        """Learn at the nodes of a path, without any stop."""

    def mix(self, exchange: Exchange, stretch: Stretch, step: int, nodes: Path) -> None:
        """Mix the tokens of each walk, which are on these nodes after update number `step`."""
        for rows, weights in self.mixtures(exchange, stretch, step, nodes):
            for vectors in (self.state.models, *self.state.carried):
                own = vectors[rows].astype(np.float64)
                with np.errstate(all="ignore"):  # one may have diverged
                    vectors[rows] = own.mean(axis=0) if weights is None else weights @ own

    def mixtures(self, exchange: Exchange, stretch: Stretch, step: int, nodes: Path) -> Iterator[tuple[slice, Any]]:
        """For each walk of a stretch, the rows of its tokens and their weights; None means the average of all.

        Walks whose tokens do not mix are left out; the messages of the others are counted.
        """
        tokens, first = self.state.tokens, self.state.first // self.state.tokens
        for walk in range(stretch.first // tokens, stretch.last // tokens):
            rows = slice(walk * tokens, (walk + 1) * tokens)
            at = nodes[rows.start - stretch.first : rows.stop - stretch.first]
            gathering = gathering_of(self.job.seed, first + walk, step, at, self.job.kernel.graph)
            everyone = exchange.means == "all"  # explicit weights would need one number per pair of tokens
            weights = None if everyone else weights_of(exchange, gathering)
            if weights is not None or everyone:
                yield rows, weights
                self.state.exchanged[walk] += sent_by(exchange, gathering, weights)


class HalvesEngine(Engine):
    """A walker and, if there is something to learn, a learner; ranges of walks are divided among threads."""

    def __init__(self, job: Job, walker: Walker, learner: Learner | None, threads: int) -> None:
        self.job, self.walker, self.learner, self.threads = job, walker, learner, threads

    def use(self, cores: int) -> None:
        """Use this many threads."""
        self.threads = self.walker.threads = cores

    def settle(self, state: State) -> None:
        """Bring a state up to date; see `Engine.settle`."""
        self.walker.settle(state)
        if self.learner is not None:
            self.learner.settle(state)

    @property
    def story(self) -> dict[str, str]:
        """How the learner learned."""
        return {"learned": self.learner.how} if self.learner is not None and self.learner.how else {}

    def _run(self, state: State, passage: Passage) -> Measures:
        walking = self.walker.along(state, passage)
        learning = None if self.learner is None else self.learner.along(state, passage)
        stretches = [Stretch(0, state.rows, passage.start, passage.until, 0)]
        if self.learner is None or not self.learner.together:
            stretches = _divided(stretches[0], self.threads, state.tokens)
        if len(stretches) == 1 and self.threads > 1 and learning is not None:
            _walk_ahead(walking, learning, stretches[0], passage.marks)
        else:
            follow = walking.jointly(learning) or partial(_in_turn, walking, learning, passage.marks)
            _share(follow, stretches, passage.marks, self.threads)
        return walking.measures | ({} if learning is None else learning.measures)


def _share(follow: Follow, stretches: Sequence[Stretch], marks: Ints, threads: int) -> None:
    """Threads take stretches in turns, half of what is left of one at a time, so that they end together."""
    waiting = deque(stretches)

    def work() -> None:
        while True:
            try:
                whole = waiting.popleft()
            except IndexError:
                return
            path = _path(whole)
            half = -(-(whole.stop - whole.start) // 2) if len(stretches) > 1 else whole.stop
            stretch, rest = _cut(whole, max(half, len(path)), marks)
            follow(stretch, path)
            if rest is not None:
                waiting.append(rest)

    if len(stretches) == 1:
        work()
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(min(threads, len(stretches)))]:
            done.result()


def _path(stretch: Stretch) -> Path:
    """Room for a path that stays in the cache."""
    rows = stretch.last - stretch.first
    length = min(_STRETCH // rows, stretch.stop - stretch.start)
    return np.empty((max(length, 1), rows), dtype=np.int32)


def _cut(whole: Stretch, steps: int, marks: Ints) -> tuple[Stretch, Stretch | None]:
    """The first steps of a stretch, with a mark at their end, and the rest, if there is any."""
    stop = min(whole.start + steps, whole.stop)
    rest = whole._replace(start=stop, mark=int(np.searchsorted(marks, stop, side="right")))
    return whole._replace(stop=stop), rest if stop < whole.stop else None


def _in_turn(walking: Course, learning: Course | None, marks: Ints, whole: Stretch, path: Path) -> None:
    """Walk a stretch and learn along it, in pieces as long as the path."""
    rest: Stretch | None = whole
    while rest is not None:
        stretch, rest = _cut(rest, len(path), marks)
        walking.do(stretch, path)
        if learning is not None:
            learning.do(stretch, path)


def _walk_ahead(walking: Course, learning: Course, whole: Stretch, marks: Ints) -> None:
    """Walk one piece of a stretch while learning from the one before, since a walk does not depend on learning."""
    path, other = _path(whole), _path(whole)
    stretch, rest = _cut(whole, len(path), marks)
    with ThreadPoolExecutor(1) as ahead:
        walked = ahead.submit(walking.do, stretch, path)
        while True:
            walked.result()
            here = stretch
            if rest is not None:
                stretch, rest = _cut(rest, len(path), marks)
                walked = ahead.submit(walking.do, stretch, other)
            learning.do(here, path)
            if here is stretch:
                return
            path, other = other, path


def _divided(whole: Stretch, threads: int, tokens: int) -> list[Stretch]:
    """Stretches of some rows, in whole blocks: narrow, so that the data of a row stay in the cache.

    They are wide enough that those of few steps are not tiny, and numerous enough for all threads. Tokens of one walk
    stay together.
    """
    rows, parts = whole.last, _PARTS_PER_THREAD * threads if threads > 1 else 1
    unit = tokens if tokens > 1 else TEAM if rows >= parts * TEAM else LANES
    width = max(_NARROW, min(_WIDEST, _STRETCH // max(whole.stop - whole.start, 1)))
    units = -(-rows // unit)
    parts = min(units, max(parts, -(-rows // width)))
    edges = np.linspace(0, units, parts + 1).astype(int) * unit
    return [whole._replace(first=int(a), last=int(min(b, rows))) for a, b in pairwise(edges)]
