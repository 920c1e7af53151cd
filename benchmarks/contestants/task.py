"""What is learned: graph, data, law and step, and the interval in which a loss counts as the one that all reach."""

from dataclasses import dataclass
from functools import cache

import numpy as np

import freewalk as fw

DESIGN = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3)
STEP = 3e-3
LOGISTIC_STEP = 1e-3

# Everyone who walks by the law ends at its steady state, known exactly; a quarter of it covers one walk's noise.
TOLERANCE = 0.25
# Where it is not known, this much of the way from the zero model to the optimum may be left.
LEFT = 0.02
# The slopes of logistic regression are bounded, so that a heavy node is left slowly: more is left.
LEFT_LOGISTIC = 0.2


@dataclass(frozen=True)
class Task:
    """A problem on a graph, walked by a law.

    Parameters
    ----------
    problem, kernel, rule
        What `fw.learn` takes.
    least, most
        Between these a contestant has learned.
    """

    problem: fw.objectives.LeastSquares | fw.objectives.Logistic
    kernel: fw.Kernel
    rule: fw.SGD
    least: float
    most: float

    @property
    def measure(self) -> str:
        """The measure of a record that is held between the two."""
        return "mse" if isinstance(self.problem, fw.objectives.LeastSquares) else "loss"

    def rates(self) -> np.ndarray:
        """The step at each node: that of the rule times the weight of the node."""
        return self.rule.step * self.kernel.weights


@cache
def graph(kind: str, n: int = 1000) -> fw.Graph:
    """A ring, or a Watts–Strogatz graph: irregular degrees, short ways."""
    return fw.graphs.ring(n) if kind == "ring" else fw.graphs.watts_strogatz(n, 4, 0.1, seed=1)


@cache
def least_squares(kind: str, n: int = 1000, dim: int = 10) -> Task:
    """Two heavy nodes, which the walk starts at: the problem of the paper."""
    problem = fw.objectives.LeastSquares.synthetic(n, dim=dim, heavy=2, seed=1)
    kernel, rule = DESIGN.kernel(graph(kind, n), problem.smoothness), fw.SGD(step=STEP)
    if n * dim <= 10_000:
        steady = 2 * fw.analysis.steady_state(problem, kernel, rule).loss
        return Task(problem, kernel, rule, (1 - TOLERANCE) * steady, (1 + TOLERANCE) * steady)
    return Task(problem, kernel, rule, *way_left(problem.mse(problem.optimum()), problem.mse(np.zeros(dim)), LEFT))


@cache
def logistic(kind: str, n: int = 1000, dim: int = 10) -> Task:
    """The same features; labels that are clear enough to be learned."""
    problem = fw.objectives.Logistic.synthetic(n, dim=dim, heavy=2, distance=10, ridge=1e-3, seed=1)
    kernel = DESIGN.kernel(graph(kind, n), problem.smoothness)
    bounds = way_left(problem.loss(problem.optimum()), problem.loss(np.zeros(dim)), LEFT_LOGISTIC)
    return Task(problem, kernel, fw.SGD(step=LOGISTIC_STEP), *bounds)


@cache
def normalised(kind: str, n: int, step: float) -> tuple[Task, np.ndarray, np.ndarray]:
    """For frameworks that cannot walk by a law: the same data, each node's sample scaled to length one.

    One step for all nodes has to be stable at the heavy ones. All samples share one truth, so the scale hardly moves
    what is learned. The loss is that of the samples as they were.
    """
    problem = fw.objectives.LeastSquares.synthetic(n, dim=10, heavy=2, seed=1)
    bounds = way_left(problem.mse(problem.optimum()), problem.mse(np.zeros(problem.dim)), LEFT)
    task = Task(problem, fw.designs.SimpleWalk().kernel(graph(kind, n)), fw.SGD(step=step), *bounds)
    scale = 1 / np.sqrt(problem.smoothness)
    return task, problem.features * scale[:, None], problem.targets * scale


def way_left(optimum: float, first: float, share: float) -> tuple[float, float]:
    """From the optimum, rounding aside, to where that share of the way to it is left."""
    return optimum * (1 - 1e-6), optimum + share * (first - optimum)
