"""Rate-limited warnings about other nodes, so that nobody can fill a disk with them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_EVERY = 10.0  # seconds between lines about the same culprit
_CULPRITS = 64  # lines in that time, about all culprits


class Complaints:
    """Writes at most one line per culprit and interval, then the number of lines left out.

    Parameters
    ----------
    log
        Where to write.
    clock
        The time in seconds.

    Examples
    --------
    >>> import sys
    >>> log = logging.Logger("example")
    >>> log.addHandler(logging.StreamHandler(sys.stdout))
    >>> complaints = Complaints(log)
    >>> for _ in range(1000):
    ...     complaints.about("a stranger", "turned away %s", "a stranger")
    turned away a stranger
    """

    def __init__(self, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self.log, self.clock = log, clock
        self._since = clock()
        self._times: dict[str, int] = {}
        self._others = 0

    def about(self, culprit: str, words: str, *details: object, level: int = logging.WARNING) -> None:
        """Write a line, unless there was a recent one about the same culprit."""
        if self.clock() - self._since >= _EVERY:
            self._begin()
        if culprit in self._times:
            self._times[culprit] += 1
        elif len(self._times) < _CULPRITS:
            self._times[culprit] = 0
            self.log.log(level, words, *details)
        else:
            self._others += 1

    def _begin(self) -> None:
        """Write how many lines were left out, and restart the count."""
        times, others = self._times, self._others
        self._since, self._times, self._others = self.clock(), {}, 0
        for culprit, more in times.items():
            if more:
                self.log.warning("%s: %s more times within %d seconds", culprit, f"{more:,}", _EVERY)
        if others:
            self.log.warning("%s more refusals, of others", f"{others:,}")
