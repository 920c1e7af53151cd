"""A limit on the time that a computation may take: set where it is called, asked for inside its long loops."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic

from freewalk.errors import FreewalkError

_end: ContextVar[float] = ContextVar("end", default=inf)


class OutOfTime(FreewalkError):
    """The time is over; whoever set the limit catches this and goes on without the result."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give what runs inside so many seconds, or what is left of an outer limit; the end of a block ends its limit.

    Examples
    --------
    >>> with within(60.0):
    ...     check()
    >>> with within(60.0), within(0.0):
    ...     check()
    Traceback (most recent call last):
    freewalk.deadline.OutOfTime: the time for this is over
    """
    token = _end.set(min(_end.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def check() -> None:
    """Raise `OutOfTime` where the time is over."""
    if monotonic() > _end.get():
        raise OutOfTime("the time for this is over")
