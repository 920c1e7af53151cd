"""A crew on a Ray cluster: work is prepared here, so that workers do not need the user's files, and done there."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from freewalk.errors import FreewalkError
from freewalk.runtimes.ray.cluster import connect, ray_module
from freewalk.runtimes.ray.shipment import pack, unpack
from freewalk.runtimes.ray.tasks import cause_of, slots, task_options
from freewalk.sweeps.crews import Crew, Look, Lost, Seen, Work, forwarded, observed


class Cluster(Crew):
    """The workers of a cluster.

    Parameters
    ----------
    address
        The address of the cluster. Default: see `freewalk.runtimes.ray.cluster.connect`.
    size
        The number of pieces of work at a time. Default: one per core of the cluster.
    """

    def __init__(self, address: str | None, size: int | None) -> None:
        self.machines = connect(address)
        self.ray = ray_module()
        self.size = size or max(1, sum(machine.cpus for machine in self.machines))
        self.task = self.ray.remote(_do)
        self.references: set[Any] = set()

    def submit(self, work: Work, look: Look) -> "Future[bytes]":
        """Start a piece of work on the cluster, without progress reports; its errors are in the future."""
        try:
            ready = work.shipped()
            slots(self.machines, *ready.needs())
            reference = self.task.options(**task_options(*ready.needs())).remote(pack(ready))
        except FreewalkError as error:
            failed: Future[bytes] = Future()
            failed.set_exception(error)
            return failed
        self.references.add(reference)
        found = forwarded(reference.future(), _original)
        found.add_done_callback(lambda _: self.references.discard(reference))
        return found

    def stop(self) -> None:
        """Cancel the current work."""
        for reference in list(self.references):
            with suppress(Exception):  # it may have finished by now
                self.ray.cancel(reference, force=True)


@contextmanager
def cluster(address: str | None, size: int | None) -> Iterator[Cluster]:
    """The workers of a cluster; work that is unfinished at the end of the block is cancelled."""
    crew = Cluster(address, size)
    try:
        yield crew
    finally:
        crew.stop()


def _do(sent: Any) -> Seen:
    """On a worker."""
    return observed(unpack(sent))


def _original(error: BaseException) -> BaseException:
    """The error raised on a worker; errors of Ray itself end the sweep."""
    from ray.exceptions import RayError, RayTaskError, TaskCancelledError

    if isinstance(error, TaskCancelledError):
        return Lost("the work was cancelled")
    found = cause_of(error)
    return Lost(str(found)) if isinstance(error, RayError) and not isinstance(error, RayTaskError) else found
