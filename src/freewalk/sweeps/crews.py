"""Crews of workers: threads, processes, or a cluster. A crew is given one piece of work after another."""

import os
import signal
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Literal, NamedTuple, get_args

from freewalk.checks import Checks
from freewalk.errors import FreewalkError, FreewalkWarning
from freewalk.runtimes.ray.cluster import cores

On = Literal["threads", "processes", "ray"]
#: Called with the progress of a piece of work; raises `Stopped` to end it.
Look = Callable[[int, int], None]

KINDS: tuple[str, ...] = get_args(On)
_THREADS = "OPENBLAS_NUM_THREADS"  # read by a process when it loads numpy
_MOST = 1024
_check = Checks(FreewalkError)


class Stopped(BaseException):
    """Raised in a thread that is asked to stop; not an error, so that no `except Exception` catches it."""


class Lost(FreewalkError):
    """A worker ended unexpectedly."""


class Work(ABC):
    """A piece of work: a frozen dataclass, so that it can be sent to another process."""

    @abstractmethod
    def run(self, look: Look | None = None) -> bytes:
        """Do it; `look`, if given, is called a few times per second."""

    def shipped(self) -> "Work":
        """The same work, for a machine that has none of the user's files."""
        return self

    def needs(self) -> tuple[int, int]:
        """The numbers of cores and GPUs that it needs."""
        return 1, 0


class Seen(NamedTuple):
    """The result of another process, and its warnings."""

    made: bytes
    warned: list[FreewalkWarning]


def observed(work: Work) -> Seen:
    """Do a piece of work in another process, and return its warnings to the leading process."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = work.run()
    said = [warning.message for warning in caught if isinstance(warning.message, FreewalkWarning)]
    return Seen(made, said)


def forwarded(
    theirs: "Future[Seen]", original: Callable[[BaseException], BaseException] = lambda error: error
) -> "Future[bytes]":
    """The future result of another process, whose warnings are issued here."""
    ours: Future[bytes] = Future()

    def take(done: "Future[Seen]") -> None:
        try:
            seen = done.result()
            for warning in seen.warned:
                warnings.warn(warning, stacklevel=1)
            ours.set_result(seen.made)
        except BaseException as error:
            ours.set_exception(original(error))

    theirs.add_done_callback(take)
    return ours


class Crew(ABC):
    """Computes several pieces of work at the same time.

    Attributes
    ----------
    size
        The number of pieces.
    """

    size: int

    @abstractmethod
    def submit(self, work: Work, look: Look) -> "Future[bytes]":
        """Start a piece of work."""

    def stop(self) -> None:  # noqa: B027  # most do nothing: their work ends when `look` raises
        """Stop the current work soon."""


class Threads(Crew):
    """Threads of this process: for compiled work, which holds the GIL only briefly."""

    def __init__(self, pool: ThreadPoolExecutor, size: int) -> None:
        self.pool, self.size = pool, size

    def submit(self, work: Work, look: Look) -> "Future[bytes]":
        """Start a piece of work in a thread."""
        return self.pool.submit(work.run, look)


class Processes(Crew):
    """Processes on this machine: for work that holds the GIL."""

    def __init__(self, pool: ProcessPoolExecutor, size: int, lifeline: Connection) -> None:
        self.pool, self.size, self.lifeline = pool, size, lifeline

    def submit(self, work: Work, look: Look) -> "Future[bytes]":
        """Start a piece of work in a process, without progress reports."""
        try:
            with _ctrl_c_blocked():  # processes started here inherit the blocked signal
                return forwarded(self.pool.submit(observed, work), _ended)
        except BrokenProcessPool as error:
            raise _ended(error) from None

    def stop(self) -> None:
        """End the processes."""
        self.lifeline.close()


@contextmanager
def crew_of(on: str = "threads", workers: int | None = None, address: str | None = None) -> Iterator[Crew]:
    """A crew that exists until the end of the block.

    Parameters
    ----------
    on
        "threads", "processes" or "ray".
    workers
        The number of pieces of work at a time. Default: one per core.
    address
        The address of a Ray cluster.

    Raises
    ------
    FreewalkError
        If there is no such crew.

    Examples
    --------
    >>> with crew_of("threads", 2) as crew:
    ...     crew.size
    2
    """
    size = check_crew(on, workers, address)
    if on == "threads":
        with ThreadPoolExecutor(size) as pool:
            yield Threads(pool, size)
    elif on == "processes":
        with processes(size) as crew:
            yield crew
    else:
        from freewalk.sweeps.cluster import cluster

        with cluster(address, workers) as crew:
            yield crew


def check_crew(on: str, workers: int | None, address: str | None) -> int:
    """The number of workers.

    Raises
    ------
    FreewalkError
        If there is no such crew.
    """
    _check.choice("sweep", "on", on, KINDS)
    if address is not None and on != "ray":
        raise _check.fail("sweep", "address", address, f"None with on = {on!r}", "an address is that of a Ray cluster")
    remedy = "None: one per core"
    return cores() if workers is None else _check.whole("sweep", "workers", workers, 1, _MOST, remedy=remedy)


@contextmanager
def processes(size: int) -> Iterator[Processes]:
    """Processes that end with this one, however it ends; each has one linear-algebra thread, to avoid contention."""
    # Not forked: a status line has its own thread, and a forked process would inherit our locks.
    context = get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        with ProcessPoolExecutor(size, mp_context=context, initializer=_follow, initargs=(theirs,)) as pool:
            try:
                yield Processes(pool, size, ours)
            except BaseException:
                ours.close()  # do not wait for the current work
                raise
    finally:
        ours.close()
        theirs.close()
        if before is None:
            os.environ.pop(_THREADS, None)
        else:
            os.environ[_THREADS] = before


def _ended(error: BaseException) -> BaseException:
    if isinstance(error, BrokenProcessPool):
        return Lost("the process that computed it ended unexpectedly, perhaps because memory ran out")
    return error


def _follow(lifeline: Connection) -> None:
    """In each process: end as soon as the other end of a pipe is closed, by its owner or because its owner died."""

    def wait() -> None:
        lifeline.poll(None)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on systems where it cannot be blocked


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Block Ctrl-C, which a terminal sends to all processes and only the leading one handles, during the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
