"""The reference runtime: plain, slow and obvious. Every other runtime is tested against it."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.engine.arrays import Stretch
from freewalk.engine.batches import draw_batch
from freewalk.errors import FreewalkError
from freewalk.kernel import Kernel, Move
from freewalk.local import choose, outcome
from freewalk.objectives import Objective
from freewalk.objectives.objective import measured
from freewalk.phases import Passage
from freewalk.rules import Rule
from freewalk.rules.rule import Visit, check_runs_on
from freewalk.runtimes.exchanging import exchange_by
from freewalk.runtimes.halves import Course, HalvesEngine, Learner, Path, Walker
from freewalk.runtimes.runtime import Runtime
from freewalk.runtimes.state import Job, State


@dataclass(frozen=True)
class Reference(Runtime):
    """One walk after the other, one step after the other, in Python and NumPy; any objective that has a gradient."""

    def engine(self, job: Job) -> HalvesEngine:
        """Make a job ready; this runtime runs them all, but for what only another one knows."""
        if job.objective is not None:
            check_runs_on((phase.rule for phase in job.phases), "reference")
            if job.objective.trained < job.dim:
                raise FreewalkError(
                    f"reference: {job.objective!r} has buffers that change as it learns; leave `runtime` out"
                )
            if job.objective.random:
                raise FreewalkError(
                    f"reference: {job.objective!r} draws random numbers as it learns, as dropout does; leave `runtime` "
                    "out"
                )
        learner = None if job.objective is None else ReferenceLearner(job, job.objective)
        return HalvesEngine(job, ReferenceWalker(job), learner, threads=1)


# The walking half.


@dataclass(frozen=True)
class ReferenceWalker(Walker):
    """A kernel's table, read move by move."""

    job: Job

    def along(self, state: State, passage: Passage) -> "Walking":
        """Get ready to walk a passage."""
        return Walking(self.job, state, passage)


class Walking(Course):
    """A passage that is walked."""

    def __init__(self, job: Job, state: State, passage: Passage) -> None:
        self.job, self.state, self.passage = job, state, passage
        counts = {name: state.summed(getattr(state, name)) for name in ("messages", "probes")}
        self.measures = {name: np.repeat(count[:, None], passage.marks.size, axis=1) for name, count in counts.items()}

    def do(self, stretch: Stretch, path: Path) -> None:
        """Walk a stretch."""
        state, kernel = self.state, self.passage.phase.kernel
        for now in range(stretch.start, stretch.stop):
            ends = rng.ends(kernel.probabilities(now))[0]
            for row in range(stretch.first, stretch.last):
                node = int(state.nodes[row])
                path[now - stretch.start, row - stretch.first] = node
                state.visits[0 if state.visits_are_summed else row, node] += 1
                end, messages, probes = _move(kernel, ends, self.job.seed, state.first + row, now, node)
                state.nodes[row] = end
                state.messages[row] += messages
                state.probes[row] += probes
                if state.path_of[row] >= 0:
                    state.paths[state.path_of[row], now + 1] = end
            for mark in np.flatnonzero(self.passage.marks == now + 1):
                walks = slice(stretch.first // state.tokens, stretch.last // state.tokens)
                for name, column in self.measures.items():
                    column[walks, mark] = state.summed(getattr(state, name))[walks]


def _move(kernel: Kernel, ends: NDArray[np.uint64], seed: int, walk: int, step: int, node: int) -> tuple[int, int, int]:
    """One move: where it ends, the models sent and the probes sent."""

    def draw(index: int) -> np.uint64:
        key = (np.uint64(seed), rng.MOVE, np.uint64(walk), np.uint64(step), np.uint64(index))
        return np.uint64(rng.word(*key))

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


def _hop(kernel: Kernel, move: Move, hop: int, node: int, draw: np.uint64) -> int:
    if move.rows is None:
        neighbours = kernel.graph.neighbours(node)
        return int(neighbours[int(rng.pick(draw, np.uint64(neighbours.size)))])
    matrix = move.matrix_of_hop(hop)
    row = slice(matrix.indptr[node], matrix.indptr[node + 1])
    return int(matrix.indices[row][outcome(rng.ends(matrix.data[row]), draw)])


# The learning half.


@dataclass(frozen=True)
class ReferenceLearner(Learner):
    """An objective's gradients, handed to a rule's update."""

    job: Job
    objective: Objective

    def along(self, state: State, passage: Passage) -> "Learning":
        """Get ready to learn along a passage."""
        if passage.phase.rule is None:
            raise ValueError("a passage without a rule cannot be learned along")
        return Learning(self.job, self.objective, passage.phase.rule, state, passage)


class Learning(Course):
    """A passage that is learned along."""

    def __init__(self, job: Job, objective: Objective, rule: Rule, state: State, passage: Passage) -> None:
        self.job, self.objective, self.rule, self.state, self.passage = job, objective, rule, state, passage
        names: Any = type(rule.numbers)
        self.numbers = names(*(float(np.dtype(job.precision).type(value)) for value in rule.numbers))
        floats = [name for name, kind in job.measured.items() if kind == "float64"]
        self.measures = {name: np.empty((state.walks, passage.marks.size)) for name in floats}
        if passage.phase.exchange is not None:
            self.measures["exchanged"] = np.repeat(state.exchanged[:, None], passage.marks.size, axis=1)

    def do(self, stretch: Stretch, path: Path) -> None:
        """Learn along a stretch."""
        for now in range(stretch.start, stretch.stop + 1):
            for mark in np.flatnonzero(self.passage.marks == now):
                if mark >= stretch.mark:  # the others were measured at the end of the stretch before
                    self._measure(stretch, int(mark))
            if now < stretch.stop:
                nodes = path[now - stretch.start]
                for row in range(stretch.first, stretch.last):
                    self._visit(row, int(nodes[row - stretch.first]), now)
                exchange = self.passage.phase.exchange
                if exchange is not None and (now + 1) % exchange.every == 0:
                    exchange_by(exchange, self.job, self.state, stretch, now + 1, nodes)

    def _measure(self, stretch: Stretch, mark: int) -> None:
        models, tokens = self.state.reported(self.rule).astype(np.float64, copy=False), self.state.tokens
        with np.errstate(all="ignore"):
            for walk in range(stretch.first // tokens, stretch.last // tokens):
                own = models[walk * tokens : (walk + 1) * tokens]
                model = own.mean(axis=0)
                values = measured(self.objective, model)
                for name in self.objective.measures:
                    self.measures[name][walk, mark] = values[name]
                self.measures["distance"][walk, mark] = np.sum((model - self.job.optimum) ** 2)
                if tokens > 1:
                    self.measures["consensus"][walk, mark] = np.mean(np.sum((own - model) ** 2, axis=1))
                if "exchanged" in self.measures:
                    self.measures["exchanged"][walk, mark] = self.state.exchanged[walk]

    def _visit(self, row: int, node: int, now: int) -> None:
        """The local steps of one visit."""
        rule, state, kernel = self.rule, self.state, self.passage.phase.kernel
        visits = 0
        if rule.counts_visits:
            state.seen[row, node] += 1
            visits = int(state.seen[row, node])
        rate = float(rule.rates(np.array([now]))[0])
        weight = float(kernel.weights[node]) if rule.weighted else 1.0
        for local in range(rule.local_steps):
            count = (now - self.passage.began) * rule.local_steps + local
            visit = Visit(rate, weight, count, kernel.graph.n, visits)
            if self.objective.samples(node) > 0 or rule.proximal:
                self._update(visit, row, node, self._gradient(visit, row, node, now, local))
            elif rule.stores:  # a relay, which counts as a node whose loss is 0
                self._update(visit, row, node, np.zeros(state.dim))
            else:  # a relay, which leaves the model as it is
                model = state.models[row].copy()
                self._update(visit._replace(rate=0.0), row, node, np.zeros(state.dim))
                state.models[row] = model

    def _vectors(self, row: int, node: int) -> dict[str, NDArray[Any]]:
        """The model and the vectors of the rule, by name; writing into them changes the state."""
        keeper = row // self.state.tokens if self.rule.shared else row
        carried = {name: self.state.carried[index, row] for index, name in enumerate(self.rule.carries)}
        stored = {name: self.state.stored[keeper, node, index] for index, name in enumerate(self.rule.stores)}
        return {"x": self.state.models[row], **carried, **stored}

    def _gradient(self, visit: Visit, row: int, node: int, now: int, local: int) -> NDArray[np.float64]:
        """What the rule asks of the node: a gradient, or the solution of its own problem near a point."""
        rule, vectors = self.rule, self._vectors(row, node)
        with np.errstate(all="ignore"):
            if rule.proximal:
                point, penalty = rule.point(visit, self.numbers, *vectors.values())
                return self.objective.proximal(node, point, penalty)
            if not rule.sampled and self.objective.batch is None:  # only what samples needs an objective that can
                return self.objective.gradient(node, vectors[rule.evaluates])
            if not rule.sampled:
                return self.objective.gradient(node, vectors[rule.evaluates], self._batch(row, node, now, local))
            key = (self.job.seed, rng.SAMPLE, self.state.first + row, now, local)
            draw = rng.word(*(np.uint64(number) for number in key))
            sample = int(rng.pick(draw, np.uint64(self.objective.samples(node))))
            return self.objective.gradient(node, vectors[rule.evaluates], sample)

    def _batch(self, row: int, node: int, now: int, local: int) -> NDArray[np.int64]:
        """The samples of a minibatch: all of the node where it has no more."""
        size = self.objective.samples(node)
        chosen = np.arange(min(size, self.objective.batch or size))
        if chosen.size < size:
            seed, number, step = np.uint64(self.job.seed), np.uint64(self.state.first + row), np.uint64(now)
            draw_batch(seed, number, step, local, size, chosen)
        return chosen

    def _update(self, visit: Visit, row: int, node: int, gradient: NDArray[np.float64]) -> None:
        """Update every coordinate by the rule's function, as compiled runtimes do."""
        vectors = list(self._vectors(row, node).values())
        for j in range(self.state.dim):
            x, *others = (float(vector[j]) for vector in vectors)
            try:
                with np.errstate(all="ignore"):
                    result = self.rule.update(visit, self.numbers, x, float(gradient[j]), *others)
            except ArithmeticError:  # plain Python raises where compiled code goes on with what is not finite
                lost = others if self.objective.samples(node) == 0 else [np.nan] * len(others)
                result = (np.nan, *lost) if others else np.nan
            for vector, number in zip(vectors, result if len(vectors) > 1 else (result,), strict=True):
                vector[j] = np.nan if isinstance(number, complex) else number  # a power of a negative number
