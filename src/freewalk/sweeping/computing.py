"""Compute what is missing in a store, with a crew; others may be at it at the same time."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from freewalk.errors import FreewalkError, RecordError
from freewalk.signals import Stop, held
from freewalk.sweeping.crews import Crew, Lost, Stopped, Work
from freewalk.sweeping.store import Lock, Store

_WAKE = 0.1  # seconds after which somebody looks for signals
_AGAIN = 0.25  # seconds after which results that others had are asked for again


@dataclass(frozen=True)
class Task:
    """A result to compute.

    Attributes
    ----------
    key
        Under which it is kept.
    work
        What makes it.
    words
        What messages call it.
    size
        How much work it is, in the unit of all tasks: what progress is measured in.
    """

    key: str
    work: Work = field(repr=False)
    words: str = ""
    size: int = 1


#: Told how many results are there, of how many, how much of the work that is, and of how much.
Tell = Callable[[int, int, int, int], None]


@dataclass
class Computed:
    """What came of it.

    Attributes
    ----------
    made
        The keys that were computed here, in the order in which they were finished.
    failed
        By key: what a piece of work has objected to.
    """

    made: list[str] = field(default_factory=list)
    failed: dict[str, FreewalkError] = field(default_factory=dict)


def compute(tasks: Iterable[Task], store: Store, crew: Crew, tell: Tell | None = None) -> Computed:
    """Compute the results that are missing, each once, and keep each as soon as it is there.

    What another process has begun is left to it, and asked for again later: once that is done it is there, and if its
    process has died it is computed here. A piece of work that fails is noted, and the others go on. Ctrl-C and SIGTERM
    end what is under way soon.

    Parameters
    ----------
    tasks
        What to compute; of two with the same key, the first.
    store
        Where results are kept.
    crew
        Who computes.
    tell
        Told about the progress.

    Raises
    ------
    RecordError
        If a result cannot be written.
    Lost
        If whoever was at work has ended before its time.
    KeyboardInterrupt
        After Ctrl-C or SIGTERM, with the name of the signal; what is finished is kept.
    """
    with held() as stop:
        leader = _Leader(store, crew, list({task.key: task for task in tasks}.values()), tell)
        try:
            leader.work(stop)
        finally:
            leader.dismiss()
    if stop:
        raise KeyboardInterrupt(stop.name)
    return leader.found


class _Leader:
    """Hands out tasks, keeps results, and knows how far everything is."""

    def __init__(self, store: Store, crew: Crew, tasks: list[Task], tell: Tell | None) -> None:
        self.store, self.crew, self.tell = store, crew, tell
        self.total, self.whole = len(tasks), sum(task.size for task in tasks)
        there = [task for task in tasks if store.has(task.key)]
        self.there, self.done = len(there), sum(task.size for task in there)
        known = {task.key for task in there}
        self.waiting = deque(task for task in tasks if task.key not in known)
        self.elsewhere: deque[Task] = deque()  # others have them
        self.asked = 0.0  # when the others were asked last
        self.running: dict[Future[bytes], tuple[Task, Lock]] = {}
        self.shares: dict[str, float] = {}  # of what is under way
        self.ending = threading.Event()
        self.found = Computed()

    def work(self, stop: Stop) -> None:
        """Go through all tasks, or up to a signal."""
        self._tell()
        while (self.waiting or self.elsewhere or self.running) and not stop:
            self._ask_again()
            self._hand_out()
            if self.running:
                finished, _ = wait(self.running, _WAKE, FIRST_COMPLETED)
                for future in finished:
                    self._keep(future)
            elif self.elsewhere:
                time.sleep(_WAKE)
            self._tell()

    def dismiss(self) -> None:
        """End what is under way; what is finished by then is kept, unless keeping is what failed."""
        self.ending.set()
        if not self.running:
            return
        self.crew.stop()
        wait(self.running)
        try:
            for future in list(self.running):
                self._keep(future)
        except FreewalkError:  # the first error is the one to hear of
            pass
        finally:
            for _, lock in self.running.values():
                lock.release()

    def _hand_out(self) -> None:
        while self.waiting and len(self.running) < self.crew.size:
            task = self.waiting.popleft()
            lock = self.store.lock(task.key)
            if lock is None:
                self.elsewhere.append(task)
            elif self.store.has(task.key):  # finished by another since we last looked
                lock.release()
                self._count(task)
            else:
                try:
                    future = self.crew.submit(task.work, self._look(task))
                except BaseException:
                    lock.release()
                    raise
                self.running[future] = (task, lock)

    def _ask_again(self) -> None:
        """What others had is free where they have finished it, or died."""
        if not self.waiting and self.elsewhere and time.monotonic() - self.asked > _AGAIN:
            self.asked = time.monotonic()
            self.waiting, self.elsewhere = self.elsewhere, deque()

    def _keep(self, future: "Future[bytes]") -> None:
        task, lock = self.running[future]
        try:
            try:
                self.store.write(task.key, future.result())
            except (Stopped, Lost) as error:
                if not self.ending.is_set():
                    raise Lost(f"{task.words or task.key}: {error}; run it again, perhaps with fewer workers") from None
                return
            except RecordError as error:
                if future.exception() is None:  # not the work: there is no room for its result
                    raise
                self.found.failed[task.key] = error
            except FreewalkError as error:
                self.found.failed[task.key] = error
            else:
                self.found.made.append(task.key)
            self._count(task)
        finally:
            self.running.pop(future)
            lock.release()

    def _count(self, task: Task) -> None:
        self.there += task.key not in self.found.failed
        self.done += task.size
        self.shares.pop(task.key, None)

    def _look(self, task: Task) -> Callable[[int, int], None]:
        def look(done: int, total: int) -> None:
            if self.ending.is_set():
                raise Stopped
            self.shares[task.key] = task.size * done / max(total, 1)

        return look

    def _tell(self) -> None:
        if self.tell is not None:
            under_way = sum(list(self.shares.values()))
            self.tell(self.there, self.total, int(self.done + under_way), self.whole)
