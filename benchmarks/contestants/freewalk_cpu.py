"""freewalk by its public API: `fw.learn` and `fw.walk`, visits and messages counted, ten checkpoints."""

from collections.abc import Callable, Sequence
from functools import partial

import freewalk as fw
from contestants.contestant import ALL_CORES, Contestant
from contestants.task import Task, least_squares, logistic

LONGER = 10  # than others run: so much is done before what a run costs by itself no longer shows
SINGLE_STEPS = 10_000_000


class Learn(Contestant):
    """`fw.learn`.

    Parameters
    ----------
    name, task, walks, steps, precision
        What is run.
    checkpoints
        How often it measures.
    kind
        The graph.
    runtime
        Where it runs.
    """

    def __init__(
        self,
        name: str,
        task: Callable[[], Task],
        walks: int,
        steps: int,
        *,
        precision: str = "float64",
        checkpoints: int = 10,
        kind: str = "ring",
        runtime: str = "cpu",
    ) -> None:
        self.name, self.loop, self._task, self.runtime = name, kind, task, runtime
        self.walks, self.precision, self.checkpoints = walks, precision, checkpoints
        self.updates = walks * steps
        self.cores = min(walks, ALL_CORES)

    def task(self) -> Task:
        return self._task()

    def run(self, updates: int) -> tuple[int, float]:
        task, steps = self.task(), updates // self.walks
        record = fw.learn(
            task.problem,
            task.kernel,
            task.rule,
            walks=self.walks,
            steps=steps,
            every=steps // self.checkpoints,
            start=0,
            seed=7,
            precision=self.precision,
            runtime=self.runtime,
        )
        values = record.data[task.measure].mean("walk").values
        # A single walk is noisy at any one checkpoint: its mean over the second half.
        return steps * self.walks, float(values[-1] if self.walks > 1 else values[len(values) // 2 :].mean())


class Walk(Contestant):
    """`fw.walk`: the same walks, nothing learned; what the walking half costs."""

    cores = ALL_CORES
    learns = False
    does = "walks, learns nothing"

    def __init__(self, name: str, walks: int, steps: int, kind: str = "ring") -> None:
        self.name, self.loop, self.walks, self.updates = name, kind, walks, walks * steps

    def task(self) -> Task:
        return least_squares(self.loop)

    def run(self, updates: int) -> tuple[int, float]:
        steps = updates // self.walks
        record = fw.walk(self.task().kernel, walks=self.walks, steps=steps, every=steps // 10, start=0, seed=7)
        return int(record.data.visits.sum()), float("nan")


def contestants(walks: int, steps: int) -> Sequence[Contestant]:
    """The figures of the package."""
    ring, irregular, steps = "ring", "Watts–Strogatz", LONGER * steps
    wide, curved = partial(least_squares, ring, dim=64), partial(logistic, ring)
    learners = [
        Learn(
            f"freewalk, {kind}, {precision}", partial(least_squares, kind), walks, steps, precision=precision, kind=kind
        )
        for kind in (ring, irregular)
        for precision in ("float64", "float32")
    ]
    return [
        *learners,
        Learn("freewalk, ring, logistic", curved, walks, steps),
        Learn("freewalk, ring, d = 64", wide, walks, steps),
        Learn("freewalk, ring, one walk", partial(least_squares, ring), 1, SINGLE_STEPS, checkpoints=100),
        Walk("freewalk, ring, walk only", walks, steps),
        Walk("freewalk, Watts–Strogatz, walk only", walks, steps, irregular),
    ]
