"""Engines made of two halves: a walker writes its path, and a learner follows and learns along it.

The path never depends on the model, so any walker can be combined with any learner.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from freewalk.exchanges import Exchange
from freewalk.jobs.job import Job, Measures, State
from freewalk.jobs.phase import Passage
from freewalk.runtimes.base import Engine
from freewalk.runtimes.cpu.loops import LANES
from freewalk.runtimes.step.arrays import Stretch

_TASKS_PER_THREAD = 4  # smaller tasks balance unequally loaded cores
_STRETCH = 2**16  # nodes walked before learning at them, so that they stay in the cache
_NARROW, _WIDEST = 2**6, 2**12  # rows in a stretch

Path = NDArray[np.int32]


class Course(ABC):
    """The work of a walker or a learner along one passage; threads may do several stretches at once."""

    measures: Measures  #: Walks × marks, by name, summed over tokens; complete when all stretches are done.

    @abstractmethod
    def do(self, stretch: Stretch, path: Path) -> None:
        """Walk a stretch, writing path[t, r], where row first + r is at step start + t; or learn along that path."""


def counts_at(state: State, passage: Passage) -> Measures:
    """The messages and probes of each walk at the marks of a passage, if no more are sent."""
    counts = {name: state.summed(getattr(state, name)) for name in ("messages", "probes")}
    return {name: np.repeat(count[:, None], passage.marks.size, axis=1) for name, count in counts.items()}


class Walker(ABC):
    """One half of an engine: it advances tokens and writes their path and counters, independent of the objective."""

    threads: int = 1  #: The number of threads that walk at the same time.

    @abstractmethod
    def along(self, state: State, passage: Passage) -> Course:
        """Prepare to walk a passage."""

    def settle(self, state: State) -> None:  # noqa: B027
        """Bring the counters of a state up to date."""


class Learner(ABC):
    """The other half: it learns along a path and measures at the marks, independent of the graph."""

    together: bool = False  #: Whether it takes all rows at once.
    how: str = ""  #: How it learned, for the record.

    @abstractmethod
    def along(self, state: State, passage: Passage) -> Course:
        """Prepare to learn along a passage."""

    def settle(self, state: State) -> None:  # noqa: B027
        """Bring the models of a state up to date."""


class StepwiseLearning(Course):
    """Learning along a passage step by step, in Python: visits and, when due, exchanges and measures."""

    def __init__(self, job: Job, state: State, passage: Passage) -> None:
        if passage.phase.rule is None:
            raise ValueError("a passage without a rule cannot be learned along")
        self.job, self.state, self.passage, self.rule = job, state, passage, passage.phase.rule
        floats = [name for name, kind in job.measured.items() if kind == "float64"]
        self.measures = {name: np.full((state.walks, passage.marks.size), np.nan) for name in floats}
        if passage.phase.exchange is not None:
            self.measures["exchanged"] = np.repeat(state.exchanged[:, None], passage.marks.size, axis=1)

    def do(self, stretch: Stretch, path: Path) -> None:
        """Learn along a stretch."""
        exchange, tokens = self.passage.phase.exchange, self.state.tokens
        walks = slice(stretch.first // tokens, stretch.last // tokens)
        for now in range(stretch.start, stretch.stop + 1):
            for mark in np.flatnonzero(self.passage.marks == now):
                if mark >= stretch.mark:  # earlier marks were measured at the end of the previous stretch
                    self.measure(stretch, int(mark))
                    if exchange is not None:
                        self.measures["exchanged"][walks, mark] = self.state.exchanged[walks]
            if now < stretch.stop:
                nodes = path[now - stretch.start]
                self.visit(stretch, nodes, now)
                if exchange is not None and (now + 1) % exchange.every == 0:
                    self.exchange(exchange, stretch, now + 1, nodes)

    @abstractmethod
    def measure(self, stretch: Stretch, mark: int) -> None:
        """Measure the walks of a stretch as they are."""

    @abstractmethod
    def visit(self, stretch: Stretch, nodes: Path, now: int) -> None:
        """Learn at the nodes of a step."""

    @abstractmethod
    def exchange(self, exchange: Exchange, stretch: Stretch, step: int, nodes: Path) -> None:
        """Mix the tokens, which are on these nodes after update number `step`."""


class HalvesEngine(Engine):
    """A walker and, if there is something to learn, a learner; ranges of walks are divided among threads."""

    def __init__(self, job: Job, walker: Walker, learner: Learner | None, threads: int) -> None:
        self.job = job
        self.walker = walker
        self.learner = learner
        self.threads = threads

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
        ranges = [(0, state.rows)]
        if self.learner is None or not self.learner.together:
            ranges = _ranges(state.rows, passage.until - passage.start, self.threads, state.tokens)
        if len(ranges) > 1:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(partial(_follow, walking, learning, passage), ranges))
        elif self.threads > 1 and learning is not None:
            with ThreadPoolExecutor(1) as ahead:  # a walk does not depend on learning, so it runs ahead
                _follow(walking, learning, passage, ranges[0], ahead)
        else:
            _follow(walking, learning, passage, ranges[0])
        return walking.measures | ({} if learning is None else learning.measures)


def _follow(
    walking: Course, learning: Course | None, passage: Passage, rows: tuple[int, int], ahead: Executor | None = None
) -> None:
    """Walk and learn along a passage, in stretches whose path stays in the cache; at least one, which may be empty.

    With an executor, the next stretch is walked while learning from this one.
    """
    (first, last), start, until = rows, passage.start, passage.until
    length = max(1, min(_STRETCH // (last - first), until - start))
    stretches = []
    for now in range(start, max(until, start + 1), length):
        mark = int(np.searchsorted(passage.marks, now, side="right")) if now > start else 0
        stretches.append(Stretch(first, last, now, min(now + length, until), mark))
    path = np.empty((length, last - first), dtype=np.int32)
    if ahead is None or learning is None:
        for stretch in stretches:
            walking.do(stretch, path)
            if learning is not None:
                learning.do(stretch, path)
        return
    walked, other = ahead.submit(walking.do, stretches[0], path), np.empty_like(path)
    for number, stretch in enumerate(stretches, 1):
        walked.result()
        if number < len(stretches):
            walked = ahead.submit(walking.do, stretches[number], other)
        learning.do(stretch, path)
        path, other = other, path


def _ranges(rows: int, steps: int, threads: int, tokens: int = 1) -> list[tuple[int, int]]:
    """The rows in ranges of whole blocks: narrow, so that the data of a row stay in the cache.

    Ranges are wide enough that stretches of few steps are not tiny, and numerous enough for all threads. Tokens of one
    walk stay together.
    """
    unit = LANES if tokens == 1 else tokens
    width = max(_NARROW, min(_WIDEST, _STRETCH // max(steps, 1)))
    units = -(-rows // unit)
    parts = min(units, max(_TASKS_PER_THREAD * threads if threads > 1 else 1, -(-rows // width)))
    edges = np.linspace(0, units, parts + 1).astype(int) * unit
    return [(int(a), int(min(b, rows))) for a, b in pairwise(edges)]
