"""freewalk on a GPU: a million walks, and a graph of a million nodes."""

from collections.abc import Sequence
from functools import cache, partial

import freewalk as fw
from contestants.contestant import Contestant
from contestants.freewalk_cpu import Learn
from contestants.task import DESIGN, least_squares
from freewalk.errors import FreewalkError

WALKS = 2**20
# So many steps take seconds: what it costs to begin, and to bring back ten checkpoints of a million walks, is included.
STEPS = {("ring", 10): 2**18, ("ring", 32): 2**17, ("Watts–Strogatz", 10): 2**18, ("Watts–Strogatz", 32): 2**17}
STEPS_ON_A_MILLION = 2**15


@cache
def no_device() -> str | None:
    """What `runtime="cuda"` says against running here, or None."""
    graph = fw.graphs.ring(4)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, seed=1)
    kernel = DESIGN.kernel(graph, problem.smoothness)
    try:
        fw.learn(problem, kernel, fw.SGD(step=1e-3), steps=2, walks=2, runtime="cuda")
    except FreewalkError as error:
        return str(error)
    return None


class LearnOnGPU(Learn):
    """`fw.learn(..., runtime="cuda")`; the time includes the way to the device and back."""

    def __init__(self, kind: str, n: int, dim: int, steps: int, precision: str) -> None:
        size = "" if n == 1000 else f", n = {n:,}"
        name = f"freewalk cuda, {kind}{size}, d = {dim}, {precision}"
        task = partial(least_squares, kind, n, dim)
        super().__init__(name, task, WALKS, steps, precision=precision, kind=kind, runtime="cuda")
        self.cores = 0
        self.warm_up = WALKS * self.checkpoints  # enough to compile
        self.does = f"{WALKS:,} walks"

    def available(self) -> str | None:
        return no_device()


def contestants(walks: int, steps: int) -> Sequence[Contestant]:
    """Small graphs with many walks, then the large graph; a device has its own sizes, whatever the CPU gets."""
    precisions = ("float32", "float64")
    small = [
        LearnOnGPU(kind, 1000, dim, length, precision)
        for (kind, dim), length in STEPS.items()
        for precision in precisions
    ]
    large = [LearnOnGPU("Watts–Strogatz", 10**6, 10, STEPS_ON_A_MILLION, precision) for precision in precisions]
    return [*small, *large]
