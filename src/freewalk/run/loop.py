"""The main loop of a run: advance chunk by chunk, measure, stop cleanly on request, and make the record."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.run.checkpoint import Continuation, marks_in
from freewalk.run.measurements import data_of, story_of
from freewalk.run.record import Record
from freewalk.run.watch import Watch
from freewalk.runtimes import Engine, Job
from freewalk.storage.signals import Stop, held

_CHUNK_STEPS = 2**20  # bounds arrays with one number per step


def run_to_end(run: Continuation, watch: Watch) -> Record:
    """Advance a run to its end, or to the first Ctrl-C or SIGTERM; the record contains everything up to then."""
    watch.begin()
    clock = time.perf_counter()
    with held() as stop:  # also during compilation and while the record is made: nothing is lost
        engine = run.runtime.engine(run.job)
        if not run.measures:
            _append(run, np.array([0]), engine.measure(run.state))
        _advance(run, engine, watch, stop, clock)
        data = data_of(run)
    run.seconds += time.perf_counter() - clock
    run.interruptions += bool(stop)  # also in the last chunk: a caller with more runs must know
    story = story_of(run) | engine.story | ({"interrupted_by": stop.name} if stop else {})
    record = Record(data, story, None if run.over else run, run.job.kernel.graph)
    watch.end(record)
    return record


def _advance(run: Continuation, engine: Engine, watch: Watch, stop: Stop, clock: float) -> None:
    state, chunk, most = run.state, 1.0, _CHUNK_STEPS * engine.stages
    while not run.over and not stop:
        first, began = state.step, time.perf_counter()
        with _rescued(run, engine, watch, clock, engine.whole):
            _proceed(run, engine, min(first + min(int(chunk), most), run.steps))
        length, spent = state.step - first, time.perf_counter() - began
        # The speed of a step is unknown at first, and the first chunk may have to compile: grow gradually.
        chunk = max(1.0, length * min(16.0, engine.pace / max(spent, 1e-6)))
        with _rescued(run, engine, watch, clock, whole=True):
            watch.tell(state.step, state.step if run.over else run.steps, run.latest)  # a goal may end it early
            if not run.over and not stop:  # the final state is saved elsewhere
                watch.checkpoint(lambda: _checkpoint(run, engine, clock))
    engine.settle(state)


def _proceed(run: Continuation, engine: Engine, until: int) -> None:
    """Advance up to a step or, mark by mark, to the first mark at which the goal is reached, if there is one."""
    state, every = run.state, run.every
    while True:
        end = min(until, (state.step // every + 1) * every) if run.goal else until
        marks = marks_in(state.step, end, every, run.steps)
        first = state.step
        try:
            measures = engine.advance(state, end, marks)
        except Exception:
            state.step = first  # the last step with measurements
            raise
        _append(run, marks, measures)
        if end == until or run.reached:
            return


@contextmanager
def _rescued(run: Continuation, engine: Engine, watch: Watch, clock: float, whole: bool) -> Iterator[None]:
    """If user code fails, attach the measurements so far to the error as `record`, with a note.

    Between two steps the state is `whole`, and the run can be resumed. If a step fails, walks may be ahead of what was
    learned: their positions and visits are then left out.
    """
    try:
        yield
    except Exception as error:
        with suppress(Exception):  # the first error is the one to report
            record = _checkpoint(run, engine, clock)
            record.provenance["failed"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            how = "fw.resume completes it" if whole else "it cannot be resumed"
            if run.over:
                record.continuation, how = None, "it is complete"
            elif not whole:
                record.continuation, record.data = None, record.data.drop_vars(["visits", "at"])
                record.provenance["not_resumable"] = "it failed in the middle of a step"
                if watch.path is not None and watch.path.exists():
                    how += f", but the last checkpoint can: fw.resume(fw.load({str(watch.path)!r}))"
            error.record = record  # type: ignore[attr-defined]
            error.add_note(f"freewalk: error.record holds what was measured up to step {run.state.step}; {how}")
        raise


def _checkpoint(run: Continuation, engine: Engine, clock: float) -> Record:
    """A running run as a partial record; resuming from it counts as an interruption."""
    engine.settle(run.state)
    run.outside()  # computes the fingerprint once and keeps it
    spent = run.seconds + time.perf_counter() - clock
    now = replace(run, seconds=spent, interruptions=run.interruptions + 1)
    return Record(data_of(now), story_of(now) | engine.story, now, run.job.kernel.graph)


def _append(run: Continuation, marks: NDArray[np.int64], measures: dict[str, NDArray[Any]]) -> None:
    if marks.size:
        _mark_as_infinite(run.job, measures)
        for name, values in measures.items():
            run.measures.setdefault(name, []).append(values)


def _mark_as_infinite(job: Job, measures: dict[str, NDArray[Any]]) -> None:
    """Replace NaN by ∞ in diverged walks: means in xarray skip NaN, and such walks must not silently drop out."""
    if job.objective is not None:
        diverged = ~np.isfinite(measures["loss"])
        others = [name for name in ("distance", "consensus") if name in measures]
        for name in (*job.objective.measures, *others):
            worst = -np.inf if name in job.objective.rising else np.inf
            measures[name][diverged & np.isnan(measures[name])] = worst
