"""Compute the missing results of a store with a crew; other processes may do so at the same time."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from freewalk.errors import FreewalkError, RecordError
from freewalk.storage.signals import Stop, held
from freewalk.sweeps.crews import Crew, Lost, Stopped, Work
from freewalk.sweeps.store import Lock, Store

_WAKE = 0.1  # seconds between checks for signals
_AGAIN = 0.25  # seconds between checks of results that other processes are computing


@dataclass(frozen=True)
class Task:
    """A result to compute.

    Attributes
    ----------
    key
        The key of the result in the store.
    work
        The work that computes it.
    words
        Its name in messages.
    size
        The amount of work, in the unit of all tasks, for progress.
    """

    key: str
    work: Work = field(repr=False)
    words: str = ""
    size: int = 1


#: Called with the number of finished results, their total, the amount of work done, and its total.
Tell = Callable[[int, int, int, int], None]


@dataclass
class Computed:
    """The outcome of a computation.

    Attributes
    ----------
    made
        The keys computed here, in the order in which they finished.
    failed
        The error of each failed piece of work, by key.
    """

    made: list[str] = field(default_factory=list)
    failed: dict[str, FreewalkError] = field(default_factory=dict)


def compute(tasks: Iterable[Task], store: Store, crew: Crew, tell: Tell | None = None) -> Computed:
    """Compute the missing results, each once, and store each as soon as it is finished.

    Results that another process is computing are left to it and checked again later; if that process has died, they are
    computed here. A piece of work that fails is noted, and the others continue. Ctrl-C and SIGTERM soon end the
    current work.

    Parameters
    ----------
    tasks
        The tasks; of two with the same key, the first is used.
    store
        Where results are stored.
    crew
        The workers.
    tell
        Called with the progress.

    Raises
    ------
    RecordError
        If a result cannot be written.
    Lost
        If a worker ended unexpectedly.
    KeyboardInterrupt
        After Ctrl-C or SIGTERM, with the name of the signal; finished results are kept.
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
    """Hands out tasks, stores results, and tracks progress."""

    def __init__(self, store: Store, crew: Crew, tasks: list[Task], tell: Tell | None) -> None:
        self.store, self.crew, self.tell = store, crew, tell
        self.total, self.whole = len(tasks), sum(task.size for task in tasks)
        there = [task for task in tasks if store.has(task.key)]
        self.there, self.done = len(there), sum(task.size for task in there)
        known = {task.key for task in there}
        self.waiting = deque(task for task in tasks if task.key not in known)
        self.elsewhere: deque[Task] = deque()  # computed by other processes
        self.asked = 0.0  # when these were last checked
        self.running: dict[Future[bytes], tuple[Task, Lock]] = {}
        self.shares: dict[str, float] = {}  # progress of the current work
        self.ending = threading.Event()
        self.found = Computed()

    def work(self, stop: Stop) -> None:
        """Work through all tasks, or until a signal."""
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
        """Stop the current work; results finished by then are stored, unless storing is what failed."""
        self.ending.set()
        if not self.running:
            return
        self.crew.stop()
        wait(self.running)
        try:
            for future in list(self.running):
                self._keep(future)
        except FreewalkError:  # report the first error only
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
            elif self.store.has(task.key):  # finished by another process in the meantime
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
        """Take back tasks that other processes have finished, or whose processes died."""
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
                if future.exception() is None:  # the work succeeded, but its result cannot be stored
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
