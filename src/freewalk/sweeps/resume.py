"""How a sweep resumes: results are stored under the hash (`hashes.py`) of all that they depend on, if not yet there.

A result is complete or absent, so what is there is never computed again. Whoever computes one holds its lock, a file
that the system unlocks when its holder dies: several processes can share a folder, and no result is computed twice.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from freewalk.errors import FreewalkError
from freewalk.run.loop import Progress
from freewalk.storage.files import Stop, held, replacing
from freewalk.storage.locks import Lock, claim, holder
from freewalk.sweeps.crews import Crew, Look, Lost, Stopped, Work

LOCKS = "locks"
_WAKE = 0.1  # seconds between checks for signals, and of results that other processes are computing


@dataclass(frozen=True)
class Results:
    """A folder of results, each in a file named by its key; a result never changes."""

    folder: Path
    suffix: str = ".npz"

    def path(self, key: str) -> Path:
        """The file of a result."""
        return self.folder / f"{key}{self.suffix}"

    def has(self, key: str) -> bool:
        """Whether a result is stored."""
        return self.path(key).is_file()

    def write(self, key: str, content: bytes) -> None:
        """Store a result, completely or not at all."""
        with replacing(self.path(key)) as temporary:
            temporary.write_bytes(content)

    def lock(self, key: str) -> Lock | None:
        """Claim a result for this process; None if another process has it. After claiming it, check `has` again."""
        return claim(self.folder / LOCKS / key)

    def held(self) -> dict[str, str]:
        """The results being computed at this moment, and by whom."""
        found = {file.name: holder(file) for file in sorted((self.folder / LOCKS).glob("*"))}
        return {key: words for key, words in found.items() if words}

    def tidy(self) -> None:
        """Remove the locks that killed processes left behind."""
        for file in (self.folder / LOCKS).glob("*"):
            lock = self.lock(file.name)
            if lock is not None:
                lock.release()


def compute(
    works: Iterable[Work], results: Results, crew: Crew, tell: Progress | None = None
) -> tuple[list[str], dict[str, FreewalkError]]:
    """Compute the missing results, each once, and store each as soon as it is finished.

    Returned are the keys computed here and the errors of work that failed, by key. `tell` is called with the number of
    finished results, their total, the amount of work done, and its total.

    Results that another process is computing are left to it and checked again later; if that process has died, they are
    computed here. A piece of work that fails is noted, and the others continue. A result that cannot be written and a
    worker that is lost end it. Ctrl-C and SIGTERM soon end the current work: then KeyboardInterrupt is raised, with the
    name of the signal.
    """
    with held() as stop:
        leader = _Leader(works, results, crew, tell)
        try:
            leader.work(stop)
        finally:
            leader.dismiss()
    if stop:
        raise KeyboardInterrupt(stop.name)
    return leader.made, leader.failed


class _Leader:
    """Hands out work, stores results, and tracks progress."""

    def __init__(self, works: Iterable[Work], results: Results, crew: Crew, tell: Progress | None) -> None:
        self.results, self.crew, self.tell = results, crew, tell
        self.waiting: deque[Work] = deque()
        self.running: dict[Future[bytes], tuple[Work, Lock]] = {}
        self.shares: dict[str, float] = {}  # progress of the current work
        self.ending = threading.Event()
        self.made: list[str] = []  # the keys, in the order in which they finished
        self.failed: dict[str, FreewalkError] = {}
        self.there = self.done = 0  # results, and their amount of work
        distinct = {work.key: work for work in works}
        self.total, self.whole = len(distinct), sum(work.size for work in distinct.values())
        for work in distinct.values():
            if results.has(work.key):
                self._count(work)
            else:
                self.waiting.append(work)

    def work(self, stop: Stop) -> None:
        """Work until everything is done, or until a signal."""
        self._tell()
        while (self.waiting or self.running) and not stop:
            self._hand_out()
            if self.running:
                for future in wait(self.running, _WAKE, FIRST_COMPLETED).done:
                    self._keep(future)
            elif self.waiting:
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
            with suppress(FreewalkError):  # report the first error only
                for future in list(self.running):
                    self._keep(future)
        finally:
            for _, lock in self.running.values():
                lock.release()

    def _hand_out(self) -> None:
        """Give work to free workers; what another process is computing is tried again later."""
        for _ in range(len(self.waiting)):
            if len(self.running) == self.crew.size:
                return
            work = self.waiting.popleft()
            lock = self.results.lock(work.key)
            if lock is None:
                self.waiting.append(work)
            elif self.results.has(work.key):  # finished by another process in the meantime
                lock.release()
                self._count(work)
            else:
                try:
                    future = self.crew.submit(work, self._look(work))
                except BaseException:
                    lock.release()
                    raise
                self.running[future] = (work, lock)

    def _keep(self, future: "Future[bytes]") -> None:
        """Store a result, or note an error."""
        work, lock = self.running.pop(future)
        try:
            error = future.exception()
            if isinstance(error, (Stopped, Lost)):
                if self.ending.is_set():
                    return
                raise Lost(f"{work.words or work.key}: {error}; run it again, perhaps with fewer workers")
            if isinstance(error, FreewalkError):
                self.failed[work.key] = error
            else:
                self.results.write(work.key, future.result())
                self.made.append(work.key)
            self._count(work)
        finally:
            lock.release()

    def _count(self, work: Work) -> None:
        self.there += work.key not in self.failed
        self.done += work.size
        self.shares.pop(work.key, None)

    def _look(self, work: Work) -> Look:
        def look(done: int, total: int) -> None:
            if self.ending.is_set():
                raise Stopped
            self.shares[work.key] = work.size * done / max(total, 1)

        return look

    def _tell(self) -> None:
        if self.tell is not None:
            self.tell(self.there, self.total, int(self.done + sum(list(self.shares.values()))), self.whole)
