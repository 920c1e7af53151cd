"""The plain loop: one walk, as a researcher would write it in an afternoon."""

from collections.abc import Sequence

import numpy as np

from contestants.contestant import Contestant
from contestants.task import DESIGN, Task, least_squares

UPDATES = 30_000
MEASURE_EVERY = 1000


class NumpyLoop(Contestant):
    """The measure of speed: what the others are divided by."""

    def __init__(self, kind: str) -> None:
        self.name, self.loop, self.updates = f"NumPy loop, {kind}", kind, UPDATES

    def task(self) -> Task:
        return least_squares(self.loop)

    def run(self, updates: int) -> tuple[int, float]:
        task = self.task()
        return updates, walk(task, updates)


def walk(task: Task, updates: int) -> float:
    """Walk and learn; the error of one walk is noisy, so return its mean over the second half."""
    generator = np.random.default_rng(0)
    problem, graph = task.problem, task.kernel.graph
    importance, degrees = problem.smoothness, graph.degrees
    neighbours = [graph.neighbours(node) for node in range(graph.n)]
    features, targets = problem.features, problem.targets
    rate = task.rates()
    lengths = np.cumsum(np.array([4, 2, 1]) / 7)
    x, node = np.zeros(problem.dim), 0
    errors = []
    for update in range(updates):
        a = features[node]
        x = x - rate[node] * (a @ x - targets[node]) * a
        if generator.random() < DESIGN.jump:
            for _ in range(1 + int(np.searchsorted(lengths, generator.random()))):
                node = neighbours[node][int(generator.random() * degrees[node])]
        else:
            end = neighbours[node][int(generator.random() * degrees[node])]
            ratio = importance[end] * degrees[node] / (importance[node] * degrees[end])
            if generator.random() < ratio:
                node = end
        if update >= updates // 2 and update % MEASURE_EVERY == 0:
            errors.append(problem.mse(x))
    return float(np.mean(errors))


def contestants(walks: int, steps: int) -> Sequence[Contestant]:
    """The loop on both graphs."""
    return [NumpyLoop("ring"), NumpyLoop("Watts–Strogatz")]
