"""Who hears of a run while it is under way: a function that shows progress, and the file that survives a crash."""

import math
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from freewalk import files
from freewalk.checks import Checks, takes
from freewalk.errors import FreewalkError, FreewalkWarning, RecordError
from freewalk.record import Record, with_suffix

#: The parameter by which a function asks for what was measured last.
MEASURES = "measures"
_SHARE = 20  # a run spends at most 1 / (1 + this) of its time on checkpoints
_check = Checks(FreewalkError)


class Measuring(Protocol):
    """A progress function that also gets the means over the walks at the last mark, by name."""

    def __call__(self, step: int, steps: int, /, *, measures: Mapping[str, float]) -> None:
        """Show them."""


Progress = Callable[[int, int], None] | Measuring
#: Called with a partial record, which it may save.
Keep = Callable[[Record], object]


@dataclass
class Watch:
    """What `learn` and the like were asked to do while a run is under way; the defaults ask for nothing.

    Attributes
    ----------
    progress
        Told how far the run is.
    keep
        Called with a partial record from time to time.
    every
        The seconds between two such records, at least.
    path
        The file that gets the last record as well, if there is one.
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
        """What a caller has asked for, checked."""
        _check.function(who, "progress", progress, ("step", "steps"), (MEASURES,))
        seconds = _check.real(who, "checkpoint_every", every, above=0.0, finite=False, expected="seconds > 0")
        if checkpoint is None:
            return Watch(progress)
        if callable(checkpoint):
            return Watch(progress, _check.function(who, "checkpoint", checkpoint, ("record",)), seconds)
        path = with_suffix(who, checkpoint, "checkpoint")
        return Watch(progress, lambda record: record.save(path), seconds, path)

    def begin(self) -> None:
        """Start to count the seconds.

        Raises
        ------
        RecordError
            If there is a file to write to that cannot be written.
        """
        if self.path is not None:
            files.check_writable(self.path)
        self._last = time.perf_counter()

    def tell(self, step: int, steps: int, latest: Callable[[], Mapping[str, float]]) -> None:
        """Tell how far the run is; `latest` gives what was measured, where that is wanted."""
        if self.progress is None:
            return
        if takes(self.progress, MEASURES):
            self.progress(step, steps, measures=latest())  # type: ignore[call-arg]
        else:
            self.progress(step, steps)  # type: ignore[call-arg]

    def checkpoint(self, make: Callable[[], Record]) -> None:
        """Keep the record that `make` gives, if it is time; a file that cannot be written is no reason to stop."""
        began = time.perf_counter()
        if self.keep is None or began - self._last < max(self.every, _SHARE * self._took):
            return
        record = make()
        self._save(record, self.keep)
        # Whoever still has it must not resume from a state that has moved since.
        record.continuation, record.provenance["not_resumable"] = None, "the run went on; load the file of a checkpoint"
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
                words = f"no checkpoint was written, and the run goes on without: {error}"
                warnings.warn(words, FreewalkWarning, stacklevel=2)
            self._warned = True
