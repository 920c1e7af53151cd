"""The compiled loop: the same walk under `numba.njit(parallel=True)`, as a good researcher would write it."""

# ruff: noqa: NPY002 (the generator that numba keeps for each thread is the old one)

from collections.abc import Sequence

import numba
import numpy as np

from contestants.contestant import ALL_CORES, Contestant
from contestants.task import DESIGN, Task, least_squares


@numba.njit(parallel=True, fastmath=True)
def walk(walks, steps, seed, jump, offsets, targets_of, importance, features, answers, rates):
    """Models after `steps` updates; a walk a turn of the parallel loop, drawing from numba's own generator."""
    dim = features.shape[1]
    models = np.zeros((walks, dim), features.dtype)
    for w in numba.prange(walks):
        np.random.seed(seed + w)
        x = models[w]
        node = 0
        for _ in range(steps):
            a = features[node]
            error = -answers[node]
            for j in range(dim):
                error += a[j] * x[j]
            error *= rates[node]
            for j in range(dim):
                x[j] -= error * a[j]
            if np.random.random() < jump:
                u = np.random.random()
                for _ in range(1 + (u >= 4 / 7) + (u >= 6 / 7)):
                    degree = offsets[node + 1] - offsets[node]
                    node = targets_of[offsets[node] + int(np.random.random() * degree)]
            else:
                degree = offsets[node + 1] - offsets[node]
                end = targets_of[offsets[node] + int(np.random.random() * degree)]
                ratio = importance[end] * degree / (importance[node] * (offsets[end + 1] - offsets[end]))
                if np.random.random() < ratio:
                    node = end
    return models


class NumbaLoop(Contestant):
    """Many walks over the cores; visits and messages are not counted, and there are no checkpoints."""

    cores = ALL_CORES
    does = "no counts, no checkpoints"

    def __init__(self, kind: str, precision: str, walks: int, steps: int) -> None:
        self.name = f"numba loop, {kind}, {precision}"
        self.loop, self.precision, self.walks, self.updates = kind, precision, walks, walks * steps

    def task(self) -> Task:
        return least_squares(self.loop)

    def prepare(self) -> None:
        task = self.task()
        problem, graph = task.problem, task.kernel.graph
        offsets = np.concatenate([[0], np.cumsum(graph.degrees)])
        ends = np.concatenate([graph.neighbours(node) for node in range(graph.n)])
        reals = (problem.features, problem.targets, task.rates())
        self.arguments = (offsets, ends, problem.smoothness, *(values.astype(self.precision) for values in reals))

    def run(self, updates: int) -> tuple[int, float]:
        steps = updates // self.walks
        models = walk(self.walks, steps, 7, DESIGN.jump, *self.arguments)
        problem = self.task().problem
        return steps * self.walks, float(((problem.features @ models.T - problem.targets[:, None]) ** 2).mean())


def contestants(walks: int, steps: int) -> Sequence[Contestant]:
    """Both graphs in float64, the ring in float32."""
    cases = [("ring", "float64"), ("ring", "float32"), ("Watts–Strogatz", "float64")]
    return [NumbaLoop(kind, precision, walks, steps // 4) for kind, precision in cases]
