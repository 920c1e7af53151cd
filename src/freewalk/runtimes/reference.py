"""The reference runtime: plain, slow and obvious. Every other runtime is tested against it."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.kernel import Kernel, Move
from freewalk.local import choose, outcome
from freewalk.objectives import LeastSquares, Objective
from freewalk.rules import Rule
from freewalk.runtimes.runtime import Engine, Job, Measures, Runtime, State, known_optimum


@dataclass(frozen=True)
class Reference(Runtime):
    """One walk after the other, one step after the other, in Python and NumPy; any objective that has a gradient."""

    def engine(self, job: Job) -> "ReferenceEngine":
        """Make a job ready; this runtime runs them all."""
        return ReferenceEngine(job, np.zeros(0) if job.problem is None else known_optimum(job.problem))


@dataclass(frozen=True, eq=False)
class ReferenceEngine(Engine):
    """A job on the reference runtime."""

    job: Job
    optimum: NDArray[np.float64]

    def advance(self, state: State, until: int, marks: NDArray[np.int64]) -> Measures:
        """Move a state forward; see `Engine.advance`."""
        job = self.job
        phase, _, began = job.phase_at(state.step)
        measured = []
        while state.step < until:
            ends = rng.ends(phase.kernel.probabilities(state.step))[0]
            for walk in range(state.walks):
                node = int(state.nodes[walk])
                state.visits[0 if state.visits_are_summed else walk, node] += 1
                if job.problem is not None and phase.rule is not None:
                    _update(job.problem, phase.kernel, phase.rule, job.seed, state, walk, node, began)
                end, messages, probes = _move(phase.kernel, ends, job.seed, walk, state.step, node)
                state.nodes[walk] = end
                state.messages[walk] += messages
                state.probes[walk] += probes
                if state.path_of[walk] >= 0:
                    state.paths[state.path_of[walk], state.step + 1] = end
            state.step += 1
            if state.step in marks:
                measured.append(self.measure(state))
        if not measured:
            return {}
        return {name: np.concatenate([part[name] for part in measured], axis=1) for name in measured[0]}

    def measure(self, state: State) -> Measures:
        """The measures of a state; see `Engine.measure`."""
        columns: Measures = {"messages": state.messages[:, None].copy(), "probes": state.probes[:, None].copy()}
        problem = self.job.problem
        if problem is None:
            return columns
        models = self.job.reported(state)
        with np.errstate(all="ignore"):
            columns["loss"] = np.array([[problem.loss(x)] for x in models])
            columns["distance"] = np.array([[np.sum((x - self.optimum) ** 2)] for x in models])
            if isinstance(problem, LeastSquares):
                columns["mse"] = np.array([[problem.mse(x)] for x in models])
        return columns


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


def _update(
    problem: Objective, kernel: Kernel, rule: Rule, seed: int, state: State, walk: int, node: int, began: int
) -> None:
    """The local steps of one visit; at a relay the model stays as it is, and the rule sees a gradient of 0."""
    relay = problem.samples(node) == 0
    step = 0.0 if relay else float(rule.rates(np.array([state.step]))[0])
    if rule.weighted:
        step *= float(kernel.weights[node])
    for local in range(rule.local_steps):
        count = (state.step - began) * rule.local_steps + local
        with np.errstate(all="ignore"):
            if relay:
                gradient = np.zeros(problem.dim)
            elif rule.sampled:  # only a rule that samples needs an objective that can
                key = (np.uint64(seed), rng.SAMPLE, np.uint64(walk), np.uint64(state.step), np.uint64(local))
                sample = int(rng.pick(rng.word(*key), np.uint64(problem.samples(node))))
                gradient = problem.gradient(node, state.models[walk], sample)
            else:
                gradient = problem.gradient(node, state.models[walk])
            for j in range(problem.dim):
                x, *carried = (float(number) for number in (state.models[walk, j], *state.carried[:, walk, j]))
                try:
                    updated = rule.update(x, float(gradient[j]), step, count, *carried)
                except ArithmeticError:  # plain Python raises where compiled code goes on with what is not finite
                    lost = carried if relay else [np.nan] * len(carried)
                    updated = (np.nan, *lost) if carried else np.nan
                first, *rest = updated if carried else (updated,)
                state.models[walk, j] = x if relay else first
                state.carried[:, walk, j] = rest
