"""Rate-limited warnings about other nodes and strangers, so that nobody can fill a disk with them."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

_EVERY = 10.0  # seconds between lines about the same culprit
_CULPRITS = 64  # lines in that time, about all culprits
_PATIENCE = 2.0  # seconds for the remaining lines of gRPC at the end


class Complaints:
    """Writes at most one line per culprit and interval, then the number of lines left out."""

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


@contextmanager
def few_lines(log: logging.Logger) -> Iterator[None]:
    """Within the block, failed handshakes, of which gRPC writes a line each, go to the log, rate-limited.

    Strangers could repeat them at will. Everything else on standard error is passed through.
    """
    before = os.dup(2)
    end, start = os.pipe()
    # The writer may hold the lock that the reader needs, so lines that do not fit are dropped instead of blocking.
    os.set_blocking(start, False)
    os.dup2(start, 2)
    os.close(start)
    reader = Thread(target=_pass_on, args=(end, before, Complaints(log)), daemon=True)
    reader.start()
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os.dup2(before, 2)
        reader.join(_PATIENCE)
        if not reader.is_alive():
            os.close(before)


def _pass_on(end: int, before: int, complaints: Complaints) -> None:
    with open(end, "rb") as lines:
        for line in lines:
            words = line.decode(errors="replace")
            if "Handshake failed" in words:
                reason = re.search(r"OPENSSL_internal:(\w+)", words)
                why = "no TLS, or another version" if reason is None else reason[1].lower().replace("_", " ")
                complaints.about(f"handshake: {why}", "refused a connection: its handshake failed (%s)", why)
                continue
            with suppress(OSError):
                os.write(before, line)
