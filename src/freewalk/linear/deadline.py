"""A time limit for a computation: set by the caller, checked inside long loops."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic

from freewalk.errors import FreewalkError

_end: ContextVar[float] = ContextVar("end", default=inf)


class OutOfTime(FreewalkError):
    """The time limit is exceeded; the code that set it catches this and continues without the result."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit a block to this many seconds, or to the rest of an outer limit; the limit ends with the block."""
    token = _end.set(min(_end.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def check() -> None:
    """Raise `OutOfTime` if the time limit is exceeded."""
    if monotonic() > _end.get():
        raise OutOfTime("the time for this is over")
