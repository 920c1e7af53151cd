"""Observers of a running run: a progress function, and the checkpoint file that survives a crash."""

import math
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from freewalk.checks import Checks, takes
from freewalk.errors import FreewalkError, FreewalkWarning, RecordError
from freewalk.run.record import Record, with_suffix
from freewalk.storage import files

#: The parameter by which a progress function asks for the latest measurements.
MEASURES = "measures"
_SHARE = 20  # a run spends at most 1 / (1 + this) of its time on checkpoints
_check = Checks(FreewalkError)


class Measuring(Protocol):
    """A progress function that also receives the means over the walks at the last mark, by name."""

    def __call__(self, step: int, steps: int, /, *, measures: Mapping[str, float]) -> None:
        """Show progress and measures."""


Progress = Callable[[int, int], None] | Measuring
#: A function called with a partial record, which it may save.
Keep = Callable[[Record], object]


@dataclass
class Watch:
    """What to do during a run, as requested by the caller; nothing by default.

    Attributes
    ----------
    progress
        Called with the progress of the run.
    keep
        Called with a partial record from time to time.
    every
        The minimum number of seconds between two such records.
    path
        The file to which the last record is also written, if any.
    """

    progress: Progress | None = None
    keep: Keep | None = None
    every: float = math.inf
    path: Path | None = None
    _last: float = field(default_factory=time.perf_counter)
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

    def begin(self) -> None:
        """Start the clock.

        Raises
        ------
        RecordError
            If there is a file that cannot be written.
        """
        if self.path is not None:
            files.check_writable(self.path)
        self._last = time.perf_counter()

    def tell(self, step: int, steps: int, latest: Callable[[], Mapping[str, float]]) -> None:
        """Report progress; `latest` gives the latest measurements, if requested."""
        if self.progress is None:
            return
        if takes(self.progress, MEASURES):
            self.progress(step, steps, measures=latest())  # type: ignore[call-arg]
        else:
            self.progress(step, steps)  # type: ignore[call-arg]

    def checkpoint(self, make: Callable[[], Record]) -> None:
        """Keep the record returned by `make`, if it is time; a file that cannot be written does not stop the run."""
        began = time.perf_counter()
        if self.keep is None or began - self._last < max(self.every, _SHARE * self._took):
            return
        record = make()
        self._save(record, self.keep)
        # Code that still holds the record must not resume from a state that has since advanced.
        record.continuation, record.provenance["not_resumable"] = None, "the run continued; load the checkpoint file"
        self._last = time.perf_counter()
        self._took = self._last - began

    def end(self, record: Record) -> None:
        """Write the last record, complete or not, to the file."""
        if self.path is not None and self.keep is not None:
            self._save(record, self.keep)

    def _save(self, record: Record, keep: Keep) -> None:
        try:
            keep(record)
        except RecordError as error:
            if not self._warned:
                words = f"no checkpoint was written, and the run continues without: {error}"
                warnings.warn(words, FreewalkWarning, stacklevel=2)
            self._warned = True
