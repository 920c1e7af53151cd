"""The main loop of a run: advance chunk by chunk, measure, save, stop cleanly on request, and make the record."""

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from freewalk.checks import Checks, takes
from freewalk.errors import FreewalkError, FreewalkWarning, RecordError
from freewalk.jobs.phase import marks_in
from freewalk.run.checkpoint import Continuation
from freewalk.run.record import Record, with_suffix
from freewalk.runtimes import Engine
from freewalk.storage import files
from freewalk.storage.files import Stop, held

#: Called with what is done and what there is to do in all, after a label if there are several parts. A parameter
#: named `measures` asks for the latest measurements, averaged over the walks, by name.
Progress = Callable[..., None]
#: Called with a partial record, which it may save.
Keep = Callable[[Record], object]
#: The parameter by which a progress function asks for the latest measurements.
MEASURES = "measures"

_CHUNK_STEPS = 2**20  # bounds arrays with one number per step
_SHARE = 20  # a run spends at most 1 / (1 + this) of its time on checkpoints
_check = Checks(FreewalkError)


@dataclass
class Watch:
    """What the caller wants during a run: progress, and a partial record at least `every` so many seconds."""

    progress: Progress | None = None
    keep: Keep | None = None
    every: float = math.inf
    path: Path | None = None  # the file to which the last record is written too
    _last: float = field(default_factory=lambda: time.perf_counter())
    _took: float = 0.0
    _warned: bool = False

    @staticmethod
    def of(
        who: str, progress: Progress | None, checkpoint: str | os.PathLike[str] | Keep | None, every: float
    ) -> "Watch":
        """Check what a caller has requested."""
        _check.function(who, "progress", progress, ("step", "steps"), (MEASURES,))
        seconds = _check.real(who, "checkpoint_every", every, above=0.0, finite=False, expected="seconds > 0")
        if checkpoint is None:
            return Watch(progress)
        if callable(checkpoint):
            return Watch(progress, _check.function(who, "checkpoint", checkpoint, ("record",)), seconds)
        path = with_suffix(who, checkpoint, "checkpoint")
        return Watch(progress, lambda record: record.save(path), seconds, path)

    def checkpoint(self, make: Callable[[], Record]) -> None:
        """Keep the record returned by `make`, if it is time."""
        began = time.perf_counter()
        if began - self._last < max(self.every, _SHARE * self._took):
            return
        record = make()
        self.save(record)
        # Code that still holds the record must not resume from a state that has since advanced.
        record.continuation, record.provenance["not_resumable"] = None, "the run continued; load the checkpoint file"
        self._last = time.perf_counter()
        self._took = self._last - began

    def save(self, record: Record) -> None:
        """Keep a record; a file that cannot be written does not stop the run."""
        try:
            if self.keep is not None:
                self.keep(record)
        except RecordError as error:
            if not self._warned:
                words = f"no checkpoint was written, and the run continues without: {error}"
                warnings.warn(words, FreewalkWarning, stacklevel=2)
            self._warned = True


def run_to_end(run: Continuation, watch: Watch) -> Record:
    """Advance a run to its end, or to the first Ctrl-C or SIGTERM; the record contains everything up to then."""
    if watch.path is not None:
        files.check_writable(watch.path)
    clock = time.perf_counter()
    with held() as stop:  # also during compilation and while the record is made: nothing is lost
        engine = run.runtime.engine(run.job)
        if not run.measures:
            run.append(engine.measure(run.state))
        _advance(run, engine, watch, stop, clock)
        data = run.data()
    run.seconds += time.perf_counter() - clock
    run.interruptions += bool(stop)  # also in the last chunk: a caller with more runs must know
    story = run.story() | engine.story | ({"interrupted_by": stop.name} if stop else {})
    record = Record(data, story, None if run.over else run, run.job.kernel.graph)
    if watch.path is not None:
        watch.save(record)
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
            if watch.progress is not None:
                more = {MEASURES: run.latest()} if takes(watch.progress, MEASURES) else {}
                watch.progress(state.step, state.step if run.over else run.steps, **more)  # a goal may end it early
            if watch.keep is not None and not run.over and not stop:  # the final state is saved elsewhere
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
        if marks.size:
            run.append(measures)
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
    now = run.at(run.seconds + time.perf_counter() - clock)
    return Record(now.data(), now.story() | engine.story, now, run.job.kernel.graph)
