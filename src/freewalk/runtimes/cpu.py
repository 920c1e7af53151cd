"""The walks on all cores, compiled."""

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import FreewalkError
from freewalk.objectives import LeastSquares, Predictor
from freewalk.phases import Phase
from freewalk.runtimes.runtime import Job, Measures, PhaseEngine, Runtime, State, known_optimum, not_compiled

_TASKS_A_THREAD = 4  # smaller tasks even out cores that are not equally free
_SLAB = 2**16  # nodes that are walked before they are learned at: they stay in the cache
_NARROW, _WIDEST = 2**6, 2**12  # walks in a slab
_MOST_THREADS = 1024
_check = Checks(FreewalkError)


@dataclass(frozen=True)
class CPU(Runtime):
    """Compiled walks, in blocks over threads.

    Parameters
    ----------
    threads
        How many threads, up to 1024; None takes $FREEWALK_THREADS, else all cores.

    Raises
    ------
    FreewalkError
        If that is no such number.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            _check.whole("CPU", "threads", self.threads, 1, _MOST_THREADS, remedy="None takes all cores")

    def engine(self, job: Job) -> "CPUEngine":
        """Make a job ready; an objective must give a slope."""
        if job.problem is not None and not isinstance(job.problem, Predictor):
            raise FreewalkError(
                f"cpu: {type(job.problem).__name__} gives a gradient but no slope, so it cannot be compiled; "
                "pass runtime='reference'"
            )
        given = os.environ.get("FREEWALK_THREADS") or "0"
        if not given.isdecimal() or len(given) > 4 or int(given) > _MOST_THREADS:
            expected = f"a whole number from 1 to {_MOST_THREADS}, or 0 for all cores"
            raise _check.fail("cpu", "FREEWALK_THREADS", given, expected)
        return CPUEngine(job, self.threads or int(given) or min(os.cpu_count() or 1, _MOST_THREADS))


class CPUEngine(PhaseEngine):
    """A job on the CPU runtime: its samples laid out, its kernels flattened, its code compiled."""

    def __init__(self, job: Job, threads: int) -> None:
        from freewalk.engine import build

        self.job = job
        self.threads = threads
        self.counted: tuple[State, list[NDArray[np.int64]]] | None = None
        problem = job.problem if isinstance(job.problem, Predictor) else None
        optimum = np.zeros(0) if problem is None else known_optimum(problem)
        self.programs = {
            id(phase): build.program(problem, phase.kernel, phase.rule, optimum, job.precision) for phase in job.phases
        }

    def settle(self, state: State) -> None:
        """Add up the visits that threads have counted apart."""
        if self.counted is not None and self.counted[0] is state:
            for visits in self.counted[1]:
                state.visits += visits
            self.counted = None

    def _visit_rows(self, state: State) -> list[NDArray[np.int64]]:
        """Counts of visits for each thread, the first being those of the state; the others stay until it is settled."""
        if self.counted is None or self.counted[0] is not state:
            if self.counted is not None:
                self.settle(self.counted[0])
            self.counted = state, [np.zeros_like(state.visits) for _ in range(self.threads - 1)]
        return [state.visits, *self.counted[1]]

    def _run(self, phase: Phase, state: State, until: int, marks: NDArray[np.int64], began: int) -> Measures:
        from numba.core.errors import NumbaError

        from freewalk.engine import arrays, build, cpu

        program, seed, walks = self.programs[id(phase)], self.job.seed, state.walks
        route = build.route(seed, phase.kernel, program.table, state.step, until, marks, walks)
        route.messages[:], route.probes[:] = state.messages[:, None], state.probes[:, None]
        summed = state.visits_are_summed
        rows = self._visit_rows(state) if summed else [state.visits]
        walkers = [
            arrays.Walkers(state.nodes, state.messages, state.probes, visits, state.path_of, state.paths)
            for visits in rows
        ]
        lesson = None
        if program.data is not None and phase.rule is not None:
            lesson = build.lesson(seed, phase.rule, state.step, until, marks, walks, began)
            state.models, state.carried = build.aligned(state.models), build.aligned(state.carried)
        free_rows: SimpleQueue[int] = SimpleQueue()  # where visits are summed, each thread counts in a row of its own
        for number in range(self.threads):
            free_rows.put(number if summed else 0)

        def work(task: tuple[int, int], ahead: Executor | None = None) -> None:
            row = free_rows.get()
            try:
                advance_walks(*task, row, ahead)
            finally:  # a task that fails (code that cannot be compiled) must not keep the others waiting for its row
                free_rows.put(row)

        def advance_walks(first: int, last: int, row: int, ahead: Executor | None) -> None:
            length = max(1, min(_SLAB // (last - first), until - state.step))
            starts = range(state.step, max(until, state.step + 1), length)
            paths = [np.empty((length, last - first), dtype=np.int32) for _ in range(1 if ahead is None else 2)]
            words, sums = cpu.words(), cpu.sums(state.models.shape[1], self.job.precision)

            def span(index: int) -> tuple[int, int, int, int, int]:
                start = starts[index]
                mark = int(np.searchsorted(marks, start, side="right")) if index else 0
                return first, last, start, min(start + length, until), mark

            def walk(index: int) -> None:
                path = paths[index % len(paths)]
                program.walk(program.table, route, walkers[row], words, path, 0 if summed else -1, *span(index))

            def learn(index: int) -> None:
                path = paths[index % len(paths)]
                if program.learn is not None:
                    program.learn(program.data, lesson, state.models, state.carried, sums, path, *span(index))

            if ahead is None:
                for index in range(len(starts)):
                    walk(index)
                    learn(index)
                return
            walked = ahead.submit(walk, 0)
            for index in range(len(starts)):
                walked.result()
                if index + 1 < len(starts):
                    walked = ahead.submit(walk, index + 1)
                learn(index)

        tasks = _ranges(walks, until - state.step, cpu.LANES, self.threads)
        try:
            if len(tasks) == 1 and self.threads > 1 and program.learn is not None:
                with ThreadPoolExecutor(1) as ahead:  # a walk does not wait for what is learned: it goes ahead
                    work(tasks[0], ahead)
            elif len(tasks) == 1:
                work(tasks[0])
            else:
                with ThreadPoolExecutor(self.threads) as pool:
                    list(pool.map(work, tasks))
        except NumbaError as error:
            raise not_compiled("cpu", self.job, phase, error) from error
        state.step = until
        columns: Measures = {"messages": route.messages, "probes": route.probes}
        if lesson is not None:
            columns |= {"loss": lesson.loss + lesson.penalty, "distance": lesson.distance}
            if isinstance(self.job.problem, LeastSquares):
                columns["mse"] = 2.0 * lesson.loss
        return columns


def _ranges(walks: int, steps: int, lanes: int, threads: int) -> list[tuple[int, int]]:
    """The walks in ranges of whole blocks: narrow, since what belongs to a walk should stay in the cache for long.

    But not so narrow that a few steps make a slab of next to nothing, and enough of them for all threads.
    """
    width = max(_NARROW, min(_WIDEST, _SLAB // max(steps, 1)))
    blocks = -(-walks // lanes)
    parts = min(blocks, max(_TASKS_A_THREAD * threads if threads > 1 else 1, -(-walks // width)))
    edges = np.linspace(0, blocks, parts + 1).astype(int) * lanes
    return [(int(a), int(min(b, walks))) for a, b in pairwise(edges)]
