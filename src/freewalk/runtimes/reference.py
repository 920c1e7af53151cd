"""The reference runtime: plain, slow and obvious. Every other runtime is tested against it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.checks import Checks
from freewalk.designs.kernel import Kernel, Move
from freewalk.designs.local import choose, outcome
from freewalk.designs.memory import ENTRY, LastNode, VisitCounts
from freewalk.errors import FreewalkError
from freewalk.graphs.structure import check_bounds
from freewalk.jobs.job import Job, State
from freewalk.jobs.phase import Passage
from freewalk.objectives import Objective
from freewalk.objectives.objective import Share, measured
from freewalk.rules.rule import check_runs_on
from freewalk.runtimes.engine import Course, HalvesEngine, Learner, Path, Runtime, StoppingLearning, Walker, counts_at
from freewalk.runtimes.step.arrays import Stretch
from freewalk.runtimes.step.memory import power
from freewalk.runtimes.visit import Occasion, by_coordinate, numbers_of, visit


@dataclass(frozen=True, repr=False)
class Reference(Runtime):
    """One walk and one step at a time, in Python and NumPy, for any objective that has a gradient.

    Parameters
    ----------
    departures
        Moves that ended elsewhere than drawn, as (walk, step, node). A network of real peers records them when a
        neighbour cannot be reached; with them, its run can be repeated.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    >>> run = {"steps": 4, "walks": 1, "start": 0, "seed": 1, "paths": 1}
    >>> fw.walk(kernel, runtime=Reference(), **run).data.path.values.tolist()
    [[0, 4, 0, 1, 2]]
    >>> fw.walk(kernel, runtime=Reference(departures=((0, 1, 4),)), **run).data.path.values.tolist()
    [[0, 4, 4, 0, 4]]
    """

    departures: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        check, remedy = Checks(FreewalkError), "give (walk, step, node) for each"
        values = check.items("Reference", "departures", self.departures, "a list", remedy=remedy)
        given = values or np.zeros((0, 3), dtype=np.int64)
        rows = check.integers("Reference", "departures", given, (None, 3), low=0, remedy=remedy)
        object.__setattr__(self, "departures", tuple(map(tuple, rows.tolist())))  # a record from a file contains lists

    def __repr__(self) -> str:
        """The departures, if there are any."""
        return f"Reference({f'departures={self.departures}' if self.departures else ''})"

    def engine(self, job: Job) -> HalvesEngine:
        """Prepare a job; this runtime runs everything except modules with changing buffers or random numbers."""
        for graph in (phase.kernel.graph for phase in job.phases):
            if graph.is_mapped:  # another process may have written to its file since it was opened
                check_bounds(graph.name, graph.indptr, graph.indices)
        departures = {(walk, step): node for walk, step, node in self.departures}
        walker, learner, objective = Walker(), Learner(), job.objective
        walker.along = partial(ReferenceWalk, job, departures)
        if objective is None:
            return HalvesEngine(job, walker, None, threads=1)
        check_runs_on((phase.rule for phase in job.phases), "reference")
        buffers = "has buffers that change as it learns" if objective.trained < job.dim else ""
        if why := buffers or ("draws random numbers as it learns, as dropout does" if objective.random else ""):
            raise FreewalkError(f"reference: {objective!r} {why}; leave `runtime` out")
        learner.along = partial(ReferenceLearning, job, objective)
        return HalvesEngine(job, walker, learner, threads=1)


# The walking half.


class ReferenceWalk(Course):
    """The walk along a passage: a kernel's table, read move by move."""

    def __init__(self, job: Job, departures: Mapping[tuple[int, int], int], state: State, passage: Passage) -> None:
        self.job, self.departures, self.state, self.passage = job, departures, state, passage
        self.measures = counts_at(state, passage)

    def do(self, stretch: Stretch, path: Path) -> None:
        """Walk a stretch."""
        state, kernel = self.state, self.passage.phase.kernel
        for now in range(stretch.start, stretch.stop):
            ends = rng.ends(kernel.probabilities(now))[0]
            for row in range(stretch.first, stretch.last):
                node = int(state.nodes[row])
                path[now - stretch.start, row - stretch.first] = node
                state.visits[0 if state.visits_are_summed else row, node] += 1
                if kernel.memory is None:
                    end, messages, probes = self._move(ends, state.first + row, now, node)
                else:
                    end, messages, probes = self._remember(row, now, node)
                state.nodes[row] = end
                state.messages[row] += messages
                state.probes[row] += probes
                if state.path_of[row] >= 0:
                    state.paths[state.path_of[row], now + 1] = end
            for mark in np.flatnonzero(self.passage.marks == now + 1):
                walks = slice(stretch.first // state.tokens, stretch.last // state.tokens)
                for name, column in self.measures.items():
                    column[walks, mark] = state.summed(getattr(state, name))[walks]

    def _draw(self, walk: int, step: int, index: int) -> np.uint64:
        """A word of a step."""
        key = (self.job.seed, rng.MOVE, walk, step, index)
        return np.uint64(rng.word(*(np.uint64(number) for number in key)))

    def _remember(self, row: int, step: int, node: int) -> tuple[int, int, int]:
        """One step of a token that remembers: where it ends, the models sent and the probes sent."""
        state, kernel, walk = self.state, self.passage.phase.kernel, self.state.first + row
        memory, words = kernel.memory, (self._draw(walk, step, 0), self._draw(walk, step, 1))
        if isinstance(memory, LastNode):
            row_of_node, end = kernel.local(node).row, self.departures.get((walk, step), -1)
            assert row_of_node is not None
            previous, state.previous[row] = int(state.previous[row]), node if end < 0 else -1
            if end < 0:
                end = row_of_node.step(previous, *words)
            return end, int(end != node), 0
        assert isinstance(memory, VisitCounts)
        counters, since = state.counters[row], state.counted_from
        if counters[node] < 0:
            counters[node] *= -1.0
            state.known[row] += 1
        gain = memory.gains(counters.size, step - since, step - since + 1)[0]
        counters[node] += gain
        move = _driven if memory.driven else _repelled
        visits = np.abs(counters) * (1.0 / np.asarray(kernel.target))
        end, asked = move(kernel, visits, memory.twice_alpha, node, words)
        if memory.kept == "token" and end != node:
            state.freight[row] += ENTRY * state.known[row]
        return end, int(end != node), 2 * asked if memory.kept == "nodes" else 0

    def _move(self, ends: NDArray[np.uint64], walk: int, step: int, node: int) -> tuple[int, int, int]:
        """One move, or its recorded departure: where it ends, the models sent and the probes sent."""
        draw = partial(self._draw, walk, step)
        if (end := self.departures.get((walk, step), -1)) >= 0:
            return end, int(end != node), 0
        kernel = self.passage.phase.kernel
        index, offset, width = choose(ends, draw(0))
        move = kernel.moves[index]
        if move.law is not None:
            law = np.asarray(move.law)
            end = outcome(rng.ends(law / law.sum()), draw(1))
            return end, int(end != node), 0
        trail = [node]
        for hop in range(move.hops):
            trail.append(_hop(kernel, move, hop, trail[-1], draw(hop + 1)))
        end = trail[-1]
        sent = sum(here != there for here, there in pairwise(trail))
        if move.ratio is None:
            return end, sent, 0
        probes = 0 if move.hops < 2 else move.hops * (2 if end != node else 1)
        ratio = np.asarray(move.ratio)
        if end != node and rng.accepts(offset, width, ratio[node], ratio[end]):
            return end, sent, probes
        return node, 0, probes


def _repelled(
    kernel: Kernel, visits: NDArray[np.float64], twice_alpha: int, node: int, words: tuple[np.uint64, np.uint64]
) -> tuple[int, int]:
    """A draw from the row, weighted by relative visits, and the number of neighbours asked for them."""
    own = kernel.rows.of(node)
    nodes, shares = kernel.rows.nodes[own].tolist(), kernel.rows.shares[own].tolist()
    least = min(float(visits[one]) for one in nodes)
    ends = [0]
    for one, share in zip(nodes, shares, strict=True):
        ends.append(ends[-1] + int(2.0**62 * (share * power(least / float(visits[one]), twice_alpha))))
    sought = int(words[1]) * ends[-1] >> 64
    chosen = next((one for one, end in zip(nodes, ends[1:], strict=True) if sought < end), nodes[-1])
    return chosen, len(nodes) - (nodes[-1] == node)


def _driven(
    kernel: Kernel, visits: NDArray[np.float64], twice_alpha: int, node: int, words: tuple[np.uint64, np.uint64]
) -> tuple[int, int]:
    """A proposal, accepted by the design's ratio and the relative visits; whether its end was asked for them."""
    move, quotient = kernel.moves[0], 1.0
    if len(kernel.moves) > 1 or move.rows is not None or move.hops == 0:
        own = kernel.rows.of(node)
        end = int(kernel.rows.nodes[own][outcome(kernel.rows.ends[own], words[1])])
    else:
        end = _hop(kernel, move, 0, node, words[1])
        if move.ratio is not None:
            ratio = np.asarray(move.ratio)
            quotient = float(ratio[end] / ratio[node])
    likely = quotient * power(float(visits[node]) / float(visits[end]), twice_alpha)
    taken = end != node and float(words[0]) <= 2.0**64 * likely
    return end if taken else node, int(end != node)


def _hop(kernel: Kernel, move: Move, hop: int, node: int, draw: np.uint64) -> int:
    if move.rows is None:
        neighbours = kernel.graph.neighbours(node)
        return int(neighbours[int(rng.pick(draw, np.uint64(neighbours.size)))])
    matrix = move.matrix_of_hop(hop)
    row = slice(matrix.indptr[node], matrix.indptr[node + 1])
    return int(matrix.indices[row][outcome(rng.ends(matrix.data[row]), draw)])


# The learning half.


class ReferenceLearning(StoppingLearning):
    """Learning along a passage: the gradients of an objective, passed to the update of a rule."""

    def __init__(self, job: Job, objective: Objective, state: State, passage: Passage) -> None:
        super().__init__(job, state, passage)
        self.objective, self.numbers = objective, numbers_of(self.rule, job.precision)
        self.measures = self.unmeasured()

    def measure(self, here: Stretch) -> None:
        """Measure the mean model of each walk."""
        models, tokens = self.state.reported(self.rule).astype(np.float64, copy=False), self.state.tokens
        with np.errstate(all="ignore"):
            for walk in range(here.first // tokens, here.last // tokens):
                own = models[walk * tokens : (walk + 1) * tokens]
                model = own.mean(axis=0)
                values = measured(self.objective, model)
                for name in self.objective.measures:
                    self.measures[name][walk, here.mark] = values[name]
                self.measures["distance"][walk, here.mark] = np.sum((model - self.job.optimum) ** 2)
                if tokens > 1:
                    self.measures["consensus"][walk, here.mark] = np.mean(np.sum((own - model) ** 2, axis=1))

    def learn(self, stretch: Stretch, path: Path) -> None:
        """Learn step by step, at the node of each row."""
        for now in range(stretch.start, stretch.stop):
            for row in range(stretch.first, stretch.last):
                self._visit(row, int(path[now - stretch.start, row - stretch.first]), now)

    def _visit(self, row: int, node: int, now: int) -> None:
        """The local steps of one visit."""
        state, kernel = self.state, self.passage.phase.kernel
        visits = 0
        if self.rule.counts_visits:
            state.seen[row, node] += 1
            visits = int(state.seen[row, node])
        weight, began = float(kernel.weights[node]), self.passage.began
        rate = float(self.rule.rates(np.array([now]))[0])
        occasion = Occasion(self.job.seed, state.first + row, now, rate, began, kernel.graph.n, weight, visits)
        share = Share(self.objective, node, node, 1.0)
        stored = state.stored[row // state.tokens if self.rule.shared else row, node] if self.rule.stores else ()
        names = ("x", *self.rule.carries, *self.rule.stores)
        views = dict(zip(names, (state.models[row], *state.carried[:, row], *stored), strict=True))
        visit(self.rule, self.numbers, share, views, occasion, by_coordinate)
