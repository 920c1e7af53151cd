"""A running node: the protocol, with a disk, a clock, connections and data."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from freewalk.errors import PeerError
from freewalk.peers.node.complaints import Complaints
from freewalk.peers.node.data import Updater
from freewalk.peers.node.links import Link
from freewalk.peers.node.store import Store
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.custody import Node
from freewalk.peers.protocol.messages import Event, Message
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Key
from freewalk.peers.protocol.wire import OLDEST

log = logging.getLogger("freewalk.peers")

_QUICK = 2e-3  # seconds: faster updates are made before waiting for the disk
_TOGETHER = 32  # updates between writes
_SOON = 0.05  # seconds that a write waits if it is not urgent
_AGAIN = 1.0  # seconds until a failed disk is tried again
_IN_USE = 0.1  # seconds until a file that is in use is checked again
_WAITING = 10_000  # messages that wait for a failed disk; further ones are lost, and repeated later
_WALKS = 1_000  # that one neighbour can make a node know of, where nobody signs them; and runs
_FULL = "its disk cannot be written"


class Service:
    """Runs a node: events are handled as they come, and one write stores everything up to the first urgent message.

    Actions are performed in order, except for messages that must wait for the disk: they are sent after the next write,
    which includes everything before it. The message that a copy has been dropped is not urgent: it waits for the next
    write, so that a hand-over takes only one.
    """

    def __init__(self, node: Node, store: Store, updater: Updater, links: Mapping[int, Link]) -> None:
        self.node, self.store, self.updater, self.links = node, store, updater, links
        self.failures: dict[Key, str] = {}
        self.updates = 0
        self.refused = 0  # messages
        self.sent: Counter[str] = Counter()  # bytes by run that are not on disk yet
        self._learnt: dict[Key, int] = {}  # the neighbour that told of a walk
        #: Why nothing can be written at present; "" if it can.
        self.closed = ""
        self._broken: Exception | None = None
        self._writes: list[say.Save | say.Journal | say.Erase] = []
        self._waiting: list[say.Send] = []
        self._written = asyncio.Event()  # the next write
        self._urgent = False  # whether a message waits for a write
        self._soon: asyncio.TimerHandle | None = None  # a write that is not urgent
        self._works: deque[say.Compute] = deque()
        self._working: asyncio.Task[say.Computed | say.Raised | None] | None = None
        self._due: dict[tuple[Key | None, str], float] = {}
        self._timers: dict[tuple[Key | None, str], asyncio.TimerHandle] = {}
        self._more = asyncio.Event()
        self._cost = 0.0  # seconds of an update, a moving average
        self._leaving: set[str] = set()
        self._complaints = Complaints(log)
        self._later = 0.0  # when a failed disk is tried again
        self._do(node.restart())

    def tell(self, event: Event) -> None:
        """Pass an event to the node; the updates and writes that follow are made soon."""
        try:
            self._handle(event)
        except Exception as error:  # a bug, which the source of the event cannot handle
            self._broken = self._broken or error
        if self._works or self._urgent or self.closed or self._broken is not None:
            self._more.set()

    def reply(self, peer: int, message: Message) -> None:
        """Send a message; a token goes with its age instead of its launch, and with the end of the journal here."""
        if isinstance(message, say.Transfer):
            token, head = message.token, self.store.head(message.key.run)
            seconds = min(max(time.monotonic() - token.began, 0.0), OLDEST)
            message = message._replace(token=token._replace(began=seconds, witness=head))
        more = self.links[peer].send(message) if peer in self.links else 0
        if more and (message.key in self.node.custody or len(self.store.sent) + len(self.sent) < _WALKS):
            self.sent[message.key.run] += more

    async def settled(self) -> None:
        """Wait until all earlier events are on disk."""
        written = self._written
        self._hurry()
        await written.wait()

    async def run(self) -> None:
        """Work until cancelled.

        While the disk cannot be written, the node is closed: it makes no updates and accepts no tokens, and durable
        messages wait. To its neighbours it appears slow or silent.
        """
        try:
            while True:
                if self._broken is not None:
                    raise self._broken
                self._work()
                if self._urgent or self.closed:
                    self._write()
                if self._works and self._working is None and not self.closed:
                    await asyncio.sleep(0)
                    continue
                self._more.clear()
                if not self.closed:
                    await self._more.wait()
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(self._later - time.monotonic(), 0.0)):
                        await self._more.wait()
        except asyncio.CancelledError:
            self._write()
            raise

    def _hurry(self) -> None:
        self._urgent = True
        self._more.set()

    def _handle(self, event: Event) -> None:
        if not isinstance(event, say.Packet):
            self._do(self.node.handle(event))
            return
        (sender, message), custody = event, self.node.custody
        new = message.key not in custody and not self.node.trust.signs  # or else the operator says how many there are
        full = new and sum(who == sender for key, who in self._learnt.items() if key in custody) >= _WALKS
        actions = [] if full else self.node.handle(event)
        self._do(actions)
        if new and message.key in custody:
            self._learnt[message.key] = sender
        if full or (not actions and not self.node.believes(sender, message)):
            self.refused += 1
            words = "refused what node %d sent: a %s that is not true, or not signed as it must be, or a walk too many"
            self._complaints.about(f"node {sender}", words, sender, type(message).__name__)
        if isinstance(message, say.Transfer) and message.token.payload.path is not None:
            self.unneeded(message.token.payload)

    def unneeded(self, payload: Payload) -> None:
        """Remove the file of a model, if it has one, that was not accepted, once it is no longer in use."""
        if payload.path is not None and payload.digest not in self._leaving:
            self._leaving.add(payload.digest)
            asyncio.get_running_loop().call_soon(self._leave, payload.digest)

    def _leave(self, digest: str) -> None:
        with suppress(PeerError):  # otherwise it is removed by a later sweep
            if not self.store.unneeded(digest):  # a thread may still be using it
                asyncio.get_running_loop().call_later(_IN_USE, self._leave, digest)
                return
        self._leaving.discard(digest)

    def _do(self, actions: list[Any]) -> None:
        for action in actions:
            if isinstance(action, say.Send):
                if action.durable and self._writes:
                    # While the disk fails, requests are repeated: one of each waits.
                    if not self.closed or (len(self._waiting) < _WAITING and action not in self._waiting):
                        self._waiting.append(action)
                    self._urgent = self._urgent or not isinstance(action.message, say.Released)
                else:
                    self.reply(action.peer, action.message)
            elif isinstance(action, say.Timer):
                self._set(action)
            elif isinstance(action, say.Compute):
                self._works.append(action)
            elif isinstance(action, say.Fail):
                self.failures[action.key] = action.why
                log.error("walk %d of run %s stops here: %s", action.key.walk, action.key.run, action.why)
            else:
                self._writes.append(action)
                if self._soon is None:
                    self._soon = asyncio.get_running_loop().call_later(_SOON, self._hurry)

    def _set(self, timer: say.Timer) -> None:
        """Record when a timer is due; most are reset or stopped before, so the event loop is rarely involved."""
        mark = (timer.key, timer.name)
        if timer.seconds is None:
            self._due.pop(mark, None)
            return
        loop = asyncio.get_running_loop()
        due = self._due[mark] = loop.time() + timer.seconds
        handle = self._timers.get(mark)
        if handle is None or handle.when() > due:
            if handle is not None:
                handle.cancel()
            self._timers[mark] = loop.call_at(due, self._ring, mark)

    def _ring(self, mark: tuple[Key | None, str]) -> None:
        del self._timers[mark]
        due, loop = self._due.get(mark), asyncio.get_running_loop()
        if due is not None and due > loop.time():
            self._timers[mark] = loop.call_at(due, self._ring, mark)
        elif due is not None:
            del self._due[mark]
            self.tell(say.Alarm(*mark))

    def _work(self) -> None:
        """Make updates in the order of the requests: fast ones at once, slow ones in the background."""
        for _ in range(_TOGETHER):
            if self.closed or not self._works or self._working is not None:
                return
            asked = self._works.popleft()
            if self._cost > _QUICK:
                self._working = asyncio.create_task(asyncio.to_thread(self._update, asked))
                self._working.add_done_callback(self._worked)
            elif (result := self._update(asked)) is not None:
                self._do(self.node.handle(result))

    def _update(self, asked: say.Compute) -> say.Computed | say.Raised | None:
        """Make an update; None if its result does not fit on the disk, so that it must be repeated."""
        began = time.perf_counter()
        try:
            result = self.updater.update(asked)
        except PeerError as error:
            self._works.appendleft(asked)
            self._close(str(error))
            return None
        except Exception as error:  # for example, from user code
            return say.Raised(asked.key, asked.token.point, _raised(error))
        took = time.perf_counter() - began
        self._cost = took if self.updates == 0 else 0.9 * self._cost + 0.1 * took
        self.updates += 1
        return result

    def _worked(self, task: asyncio.Task[say.Computed | say.Raised | None]) -> None:
        self._working = None
        self._more.set()
        if not task.cancelled() and (result := task.result()) is not None:
            self.tell(result)

    def _close(self, why: str) -> None:
        """The disk cannot be written: wait, and try again."""
        said = "this node takes no tokens until its disk can be written: %s"
        self._complaints.about("closed", said, why, level=logging.ERROR)
        self.closed, self.node.closed = why, _FULL
        self._later = time.monotonic() + _AGAIN

    def _write(self) -> None:
        """Write all changes to disk, then send the messages that waited for it."""
        if self.closed and time.monotonic() < self._later:
            return
        self._urgent = False
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        writes, self._writes = self._writes, []
        try:
            if writes or self.sent:
                self.store.write(writes, time.time(), time.monotonic(), self.sent)
                self.sent.clear()
        except PeerError as error:
            latest = {write.key: write for write in writes if isinstance(write, say.Save)}
            self._writes = [*latest.values(), *(write for write in writes if not isinstance(write, say.Save))]
            self._close(str(error))
            return
        if self.closed:
            self._complaints.about("open", "this node tries its disk again, and takes tokens")
            self.closed = self.node.closed = ""
        waiting, self._waiting = self._waiting, []
        for send in waiting:
            self.reply(send.peer, send.message)
        self._written.set()
        self._written = asyncio.Event()


def _raised(error: Exception) -> str:
    """The error of an update, without its message, which may quote data."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return f"an update raised {type(error).__name__} ({where}); fix it and restart this node"
