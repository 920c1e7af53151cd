"""Crews of workers: threads, processes, or a Ray cluster. A crew is given one piece of work after another."""

import os
import signal
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Self

from freewalk.checks import Checks, cores
from freewalk.errors import FreewalkError, FreewalkWarning

#: Called with the progress of a piece of work; raises `Stopped` to end it.
Look = Callable[[int, int], None]
#: The result of another process, and its warnings.
Seen = tuple[bytes, list[FreewalkWarning]]

KINDS = ("threads", "processes", "ray")
_THREADS = "OPENBLAS_NUM_THREADS"  # read by a process when it loads numpy
_MOST = 1024
_check = Checks(FreewalkError)


class Stopped(BaseException):
    """Raised in a thread that is asked to stop; not an error, so that no `except Exception` catches it."""


class Lost(FreewalkError):
    """A worker ended unexpectedly."""


@dataclass(frozen=True, kw_only=True)
class Work(ABC):
    """A piece of work, which can be sent to another process, and the key under which its result is stored."""

    key: str
    words: str = ""  # its name in messages
    size: int = 1  # the amount of work, in the unit of all pieces, for progress

    @abstractmethod
    def run(self, look: Look | None = None) -> bytes:
        """Do it; `look`, if given, is called a few times per second."""

    def shipped(self) -> Self:
        """The same work, for a machine that has none of the user's files."""
        return self

    def needs(self) -> tuple[int, int]:
        """The numbers of cores and GPUs that it needs."""
        return 1, 0


class Crew(ABC):
    """Computes several pieces of work, at most `size`, at the same time."""

    size: int

    @abstractmethod
    def submit(self, work: Work, look: Look) -> "Future[bytes]":
        """Start a piece of work; only threads call `look`."""

    def stop(self) -> None:  # noqa: B027  # threads end when `look` raises
        """Stop the current work soon."""

    def close(self) -> None:
        """Dismiss the workers."""
        self.stop()


class Threads(Crew):
    """Threads of this process: for compiled work, which holds the GIL only briefly."""

    def __init__(self, size: int) -> None:
        self.size, self.pool = size, ThreadPoolExecutor(size)

    def submit(self, work: Work, look: Look) -> "Future[bytes]":
        """Start a piece of work in a thread."""
        return self.pool.submit(work.run, look)

    def close(self) -> None:
        """Wait for the threads."""
        self.pool.shutdown()


class Processes(Crew):
    """Processes on this machine, for work that holds the GIL; they end with this one, however it ends."""

    def __init__(self, size: int) -> None:
        # Not forked: a status line has its own thread, and a forked process would inherit our locks.
        context = get_context("spawn")
        self.followed, self.lifeline = context.Pipe(duplex=False)
        self.size = size
        self.pool = ProcessPoolExecutor(size, mp_context=context, initializer=_follow, initargs=(self.followed,))

    def submit(self, work: Work, look: Look) -> "Future[bytes]":
        """Start a piece of work in a process."""
        try:
            with _inherited():
                return _forwarded(self.pool.submit(_observed, work), _ended)
        except BrokenProcessPool as error:
            raise _ended(error) from None

    def stop(self) -> None:
        """End the processes."""
        self.lifeline.close()

    def close(self) -> None:
        """Wait for the processes; work that was stopped is not waited for."""
        self.pool.shutdown()
        self.lifeline.close()
        self.followed.close()


def _follow(lifeline: Connection) -> None:
    """In each process: end as soon as the other end of a pipe is closed, by its owner or because its owner died."""

    def wait() -> None:
        lifeline.poll(None)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on systems where it cannot be blocked


@contextmanager
def _inherited() -> Iterator[None]:
    """What processes that are started in the block inherit: one thread for linear algebra, and Ctrl-C blocked.

    A terminal sends Ctrl-C to all processes, and only the leading one handles it.
    """
    before = os.environ.get(_THREADS)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        os.environ.pop(_THREADS)
        if before is not None:
            os.environ[_THREADS] = before
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _ended(error: BaseException) -> BaseException:
    if isinstance(error, BrokenProcessPool):
        return Lost("the process that computed it ended unexpectedly, perhaps because memory ran out")
    return error


class Cluster(Crew):
    """The workers of a Ray cluster: work is prepared here, so that they do not need the user's files."""

    def __init__(self, address: str | None, size: int | None) -> None:
        from freewalk.runtimes.ray.cluster import connect, ray_module

        self.machines = connect(address)
        self.ray = ray_module()
        self.size = size or max(1, sum(machine.cpus for machine in self.machines))
        self.task = self.ray.remote(_unpacked)
        self.references: set[Any] = set()

    def submit(self, work: Work, look: Look) -> "Future[bytes]":
        """Start a piece of work on the cluster; its errors are in the future."""
        from freewalk.runtimes.ray.cluster import slots, task_options
        from freewalk.runtimes.ray.shipment import pack

        try:
            ready = work.shipped()
            slots(self.machines, *ready.needs())
            reference = self.task.options(**task_options(*ready.needs())).remote(pack(ready))
        except FreewalkError as error:
            failed: Future[bytes] = Future()
            failed.set_exception(error)
            return failed
        self.references.add(reference)
        found = _forwarded(reference.future(), _original)
        found.add_done_callback(lambda _: self.references.discard(reference))
        return found

    def stop(self) -> None:
        """Cancel the current work."""
        for reference in list(self.references):
            with suppress(Exception):  # it may have finished by now
                self.ray.cancel(reference, force=True)


def _unpacked(sent: Any) -> Seen:
    """On a worker of a cluster."""
    from freewalk.runtimes.ray.shipment import unpack

    return _observed(unpack(sent))


def _original(error: BaseException) -> BaseException:
    """The error raised on a worker; errors of Ray itself end the sweep."""
    from ray.exceptions import RayError, RayTaskError, TaskCancelledError

    from freewalk.runtimes.ray.cluster import cause_of

    if isinstance(error, TaskCancelledError):
        return Lost("the work was cancelled")
    found = cause_of(error)
    return Lost(str(found)) if isinstance(error, RayError) and not isinstance(error, RayTaskError) else found


def _observed(work: Work) -> Seen:
    """Do a piece of work in another process, and return its warnings to the leading process."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = work.run()
    return made, [warning.message for warning in caught if isinstance(warning.message, FreewalkWarning)]


def _forwarded(theirs: "Future[Seen]", original: Callable[[BaseException], BaseException]) -> "Future[bytes]":
    """The future result of another process, whose warnings are issued here."""
    ours: Future[bytes] = Future()

    def take(done: "Future[Seen]") -> None:
        try:
            made, warned = done.result()
            for warning in warned:
                warnings.warn(warning, stacklevel=1)
            ours.set_result(made)
        except BaseException as error:
            ours.set_exception(original(error))

    theirs.add_done_callback(take)
    return ours


@contextmanager
def crew_of(on: str = "threads", workers: int | None = None, address: str | None = None) -> Iterator[Crew]:
    """A crew that exists until the end of the block: "threads", "processes", or the workers of a "ray" cluster."""
    size = check_crew(on, workers, address)
    crew = Threads(size) if on == "threads" else Processes(size) if on == "processes" else Cluster(address, workers)
    try:
        yield crew
    except BaseException:
        crew.stop()  # do not wait for the current work
        raise
    finally:
        crew.close()


def check_crew(on: str, workers: int | None, address: str | None) -> int:
    """The number of workers, by default one per core; an error if there is no such crew."""
    _check.choice("sweep", "on", on, KINDS)
    if address is not None and on != "ray":
        raise _check.fail("sweep", "address", address, f"None with on = {on!r}", "an address is that of a Ray cluster")
    remedy = "None: one per core"
    return cores() if workers is None else _check.whole("sweep", "workers", workers, 1, _MOST, remedy=remedy)
