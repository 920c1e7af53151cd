"""tvopt: its distributed gradient method, in which every node updates a model of its own in every round.

No model walks, and a round costs two messages over every edge, so this is not the work of the others. What is counted
is updates of a node: one gradient, and the average over its neighbours that goes with it.
"""

from collections.abc import Sequence

import numpy as np

from contestants.contestant import Contestant, missing
from contestants.task import Task, normalised

NODES = 1000
STEP = 0.5
ROUNDS = 10
ROUNDS_TO_LEARN = 200


class TvoptGradient(Contestant):
    """Goes on from run to run: the first one learns, the timed ones stay where it came to."""

    name = "tvopt, distributed gradient"
    does = "not comparable: every node updates at every round"
    loop = "Watts–Strogatz"
    updates = ROUNDS * NODES
    warm_up = ROUNDS_TO_LEARN * NODES

    def available(self) -> str | None:
        return missing("tvopt")

    def task(self) -> Task:
        return normalised(self.loop, NODES, STEP)[0]

    def prepare(self) -> None:
        from tvopt import costs, networks

        task, features, targets = normalised(self.loop, NODES, STEP)
        local = [costs.LinearRegression(a[None, :], np.array([[y]])) for a, y in zip(features, targets, strict=True)]
        network = networks.Network(task.kernel.graph.adjacency().toarray())
        self.problem = {"f": costs.SeparableCost(local), "network": network}
        self.models = np.zeros((task.problem.dim, 1, NODES))

    def run(self, updates: int) -> tuple[int, float]:
        from tvopt.distributed_solvers import dpgm

        rounds = updates // NODES
        self.models = dpgm(self.problem, STEP, x_0=self.models, num_iter=rounds)
        problem = self.task().problem
        error = (problem.features @ self.models[:, 0, :] - problem.targets[:, None]) ** 2
        return rounds * NODES, float(error.mean())


def contestants(walks: int, steps: int) -> Sequence[Contestant]:
    """One method: the plain one."""
    return [TvoptGradient()]
