"""The walks on all cores, compiled."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import FreewalkError
from freewalk.objectives import LeastSquares, Predictor
from freewalk.runtimes.runtime import Engine, Job, Measures, Phase, Runtime, State, known_optimum

_TASKS_A_THREAD = 4  # smaller tasks even out cores that are not equally free


@dataclass(frozen=True)
class CPU(Runtime):
    """Compiled walks, in blocks over threads.

    Parameters
    ----------
    threads
        How many threads; None takes $FREEWALK_THREADS, else all cores.

    Raises
    ------
    FreewalkError
        If the number of threads is below 1.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise FreewalkError(f"CPU: threads = {self.threads!r}, expected a whole number >= 1, or None for all cores")

    def engine(self, job: Job) -> "CPUEngine":
        """Make a job ready; an objective must give a slope."""
        if job.problem is not None and not isinstance(job.problem, Predictor):
            raise FreewalkError(
                f"cpu: {type(job.problem).__name__} gives a gradient but no slope, so it cannot be compiled; "
                "pass runtime='reference'"
            )
        return CPUEngine(job, self.threads or int(os.environ.get("FREEWALK_THREADS", 0)) or os.cpu_count() or 1)


class CPUEngine(Engine):
    """A job on the CPU runtime: its samples laid out, its kernels flattened, its code compiled."""

    def __init__(self, job: Job, threads: int) -> None:
        from freewalk.engine import build

        self.job = job
        self.threads = threads
        problem = job.problem if isinstance(job.problem, Predictor) else None
        optimum = np.zeros(0) if problem is None else known_optimum(problem)
        self.programs = {
            id(phase): build.program(problem, phase.kernel, phase.rule, optimum, job.precision) for phase in job.phases
        }

    def advance(self, state: State, until: int, marks: NDArray[np.int64]) -> Measures:
        """Move a state forward; see `Engine.advance`."""
        phase, _, began = self.job.phase_at(state.step)
        return self._run(phase, state, until, marks, began)

    def measure(self, state: State) -> Measures:
        """The measures of a state; see `Engine.measure`."""
        phase, _, _ = self.job.phase_at(max(state.step - 1, 0))
        return self._run(phase, state, state.step, np.array([state.step]), state.step)

    def _run(self, phase: Phase, state: State, until: int, marks: NDArray[np.int64], began: int) -> Measures:
        from freewalk.engine import build, cpu

        program = self.programs[id(phase)]
        plan = build.plan(self.job.seed, phase.kernel, phase.rule, state.step, until, marks, began)
        shape = (state.walks, marks.size)
        measures = cpu.Measures(
            *(np.empty(shape) for _ in range(3)), *(np.empty(shape, dtype=np.int64) for _ in range(2))
        )
        summed = state.visits_are_summed
        tasks = _ranges(state.walks, cpu.LANES, self.threads * _TASKS_A_THREAD if self.threads > 1 else 1)
        visits = np.zeros((len(tasks), state.visits.shape[1]), dtype=np.int64) if summed else state.visits
        walkers = cpu.Walkers(
            nodes=state.nodes,
            models=state.models,
            carried=state.carried,
            messages=state.messages,
            probes=state.probes,
            visits=visits,
            path_of=state.path_of,
            paths=state.paths,
        )

        def work(task: int) -> None:
            first, last = tasks[task]
            program.run(program.table, program.data, plan, walkers, measures, first, last, task if summed else -1)

        if len(tasks) == 1:
            work(0)
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(work, range(len(tasks))))
        if summed:
            state.visits += visits.sum(axis=0, keepdims=True)
        state.step = until
        return self._named(measures)

    def _named(self, measures: Any) -> Measures:
        columns: Measures = {"messages": measures.messages, "probes": measures.probes}
        if self.job.problem is not None:
            columns |= {"loss": measures.loss + measures.penalty, "distance": measures.distance}
            if isinstance(self.job.problem, LeastSquares):
                columns["mse"] = 2.0 * measures.loss
        return columns


def _ranges(walks: int, lanes: int, parts: int) -> list[tuple[int, int]]:
    """The walks in at most `parts` ranges of whole blocks."""
    blocks = -(-walks // lanes)
    edges = np.linspace(0, blocks, min(parts, blocks) + 1).astype(int) * lanes
    return [(int(a), int(min(b, walks))) for a, b in zip(edges, edges[1:], strict=False)]
