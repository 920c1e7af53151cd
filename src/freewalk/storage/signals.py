"""Hold back Ctrl-C and SIGTERM during work that must not be interrupted half-way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

_STOPPING = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Stop:
    """The signal that was received, if any."""

    signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    @property
    def name(self) -> str:
        """Its name, or an empty string."""
        return "" if self.signal is None else self.signal.name

    def act(self) -> None:
        """Do now what the signal would have done: raise KeyboardInterrupt, or end the process."""
        if self.signal is not None:
            signal.raise_signal(self.signal)


@contextmanager
def held() -> Iterator[Stop]:
    """Note the first Ctrl-C or SIGTERM instead of acting on it; a second one takes effect immediately.

    A SIGTERM that the process ignores stays ignored. Outside the main thread nothing is held, since signals never
    arrive there.
    """
    stop = Stop()
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in _STOPPING}
        if before[signal.SIGTERM] is signal.SIG_IGN:  # on purpose; SIGINT is ignored in any background job of a script
            del before[signal.SIGTERM]
        before = {number: handler for number, handler in before.items() if handler is not None}  # not set by Python

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        stop.signal = signal.Signals(number)
        restore()

    try:
        for number in before:
            signal.signal(number, note)
        yield stop
    finally:
        restore()
