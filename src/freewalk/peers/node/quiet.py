"""Limit what gRPC writes to standard error: one line per failed handshake, which strangers could repeat at will."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from freewalk.peers.node.complaints import Complaints

_FAILED = "Handshake failed"
_REASON = re.compile(r"OPENSSL_internal:(\w+)")
_PATIENCE = 2.0  # seconds for the remaining lines at the end


@contextmanager
def few_lines(log: logging.Logger) -> Iterator[None]:
    """Within the block, failed handshakes go to the log, rate-limited; everything else is passed through.

    Parameters
    ----------
    log
        Where to write.
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
            if _FAILED in words:
                reason = _REASON.search(words)
                why = "no TLS, or another version" if reason is None else reason[1].lower().replace("_", " ")
                complaints.about(f"handshake: {why}", "refused a connection: its handshake failed (%s)", why)
                continue
            with suppress(OSError):
                os.write(before, line)
