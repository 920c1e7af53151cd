"""Connections: an outgoing stream to each neighbour, reopened when it breaks, and the incoming streams."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from freewalk.errors import PeerError
from freewalk.peers.network.config import PeerTable
from freewalk.peers.node.complaints import Complaints
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol import wire
from freewalk.peers.protocol.messages import Event, Message
from freewalk.peers.protocol.payload import Form, Incoming, Payload

if TYPE_CHECKING:
    from freewalk.peers.node.service import Service

log = logging.getLogger("freewalk.peers")

METHOD = "/freewalk.Peer/Link"
HELLO = "/freewalk.Peer/Hello"
_QUEUED = 10_000  # messages queued for one neighbour
_ROOM = 2**24  # their total bytes
VERSION = ("freewalk-protocol", str(wire.PROTOCOL))  # in the metadata of a stream, from both ends
STREAMS = 4  # per neighbour at the same time: newer streams end those of a connection that broke unnoticed
_BUNDLE = 2**20  # bytes sent together
#: Messages that are not urgent: they go with the next one, since each that is sent wakes threads on both sides.
_PATIENT = (say.Received, say.Release, say.Released)
_WHILE = 0.01  # seconds after which they are sent by themselves
_SHORTEST, _LONGEST = 0.05, 2.0  # seconds between attempts to reach a neighbour


class Link:
    """The connection to one neighbour; messages that cannot be sent are lost, and the protocol repeats them."""

    def __init__(
        self,
        neighbour: PeerTable,
        dial: Callable[..., Any],
        metadata: Any,
        tell: Callable[[Event], None],
        patience: float,
    ) -> None:
        self.neighbour, self.dial, self.metadata, self.tell = neighbour, dial, metadata, tell
        self.patience = patience
        self.up = False
        self.sent = 0  # bytes
        self._small: deque[bytes] = deque()
        self._patient: list[bytes] = []  # sent with the next message, or after a while
        self._later: asyncio.TimerHandle | None = None
        self._room = _ROOM
        self._complaints = Complaints(log)
        self._large: dict[tuple[Any, ...], Iterator[bytes]] = {}  # announcements, each followed by its bytes
        self._more = asyncio.Event()

    def send(self, message: Message) -> int:
        """Send a message as soon as possible, and return its bytes; other messages may overtake a large model."""
        if not self.up:
            return 0
        if isinstance(message, say.Transfer) and message.token.payload.path is not None:
            mark = (message.key, message.token.point)
            if mark in self._large:
                return 0
            chunks: Iterator[Any] = map(wire.Chunk, message.token.payload.chunks())
            self._large[mark] = map(wire.encode, chain([message], chunks))
            self._more.set()
            return int(message.token.payload.size)
        data = wire.encode(message)
        if len(self._small) + len(self._patient) >= _QUEUED or len(data) > self._room:
            return 0
        self._room -= len(data)
        if isinstance(message, _PATIENT):
            self._patient.append(data)
            if self._later is None:
                self._later = asyncio.get_running_loop().call_later(_WHILE, self._hurry)
        else:
            self._small.append(data)
            self._more.set()
        return len(data)

    def _hurry(self) -> None:
        """Send the messages that are not urgent, since nothing else was sent for a while."""
        self._later = None
        if self._patient:
            self._more.set()
            self._small.extend(self._patient)
            self._patient.clear()

    async def run(self) -> None:
        """Keep a stream open until cancelled; tell when it has been broken for as long as an offer waits."""
        clock = asyncio.get_running_loop().time
        wait, since = _SHORTEST, clock()  # since when it has been down, until that is told
        async with self.dial(self.neighbour) as channel:
            while True:
                try:
                    await self._stream(channel)
                except Exception as error:
                    if self.up or isinstance(error, PeerError):
                        name, level = self.neighbour.name, logging.INFO
                        self._complaints.about(f"lost node {name}", "lost node %s: %s", name, _said(error), level=level)
                finally:
                    if self.up:
                        wait, since = _SHORTEST, clock()
                    self.up = False
                    self._room = _ROOM
                    for queue in (self._small, self._patient, self._large):
                        queue.clear()
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST)
                if clock() - since > self.patience:
                    since = math.inf
                    self.tell(say.Disconnected(self.neighbour.number))

    async def _stream(self, channel: Any) -> None:
        call = channel.stream_unary(METHOD)(metadata=(*self.metadata, VERSION))
        told = await call.initial_metadata()
        if call.done():  # it failed, but the above does not raise
            await call
            return
        if VERSION not in tuple(told):
            call.cancel()
            raise PeerError("it speaks another version of the protocol; install the same freewalk at both")
        call.add_done_callback(lambda _: self._more.set())
        self.up = True
        self.tell(say.Connected(self.neighbour.number))
        while not call.done():
            if self._small:
                data = self._together()
            elif self._large:
                mark, pieces = next(iter(self._large.items()))
                data = await asyncio.to_thread(next, pieces, b"")
                if not data:
                    del self._large[mark]
                    continue
            else:
                self._more.clear()
                await self._more.wait()
                continue
            await call.write(data)
            self.sent += len(data)
        await call

    def _together(self) -> bytes:
        """The queued messages as one, since each message that is sent wakes threads and loops on both sides."""
        self._small.extend(self._patient)
        self._patient.clear()
        several, size = [self._small.popleft()], 0
        while self._small and len(several) < wire.TOGETHER and size < _BUNDLE:
            several.append(self._small.popleft())
            size = sum(map(len, several))
        if size >= _BUNDLE and len(several) > 1:
            self._small.appendleft(several.pop())
        self._room += sum(map(len, several))
        return wire.together(several)


class Gate:
    """The entry for the streams of neighbours."""

    def __init__(self, neighbours: Sequence[PeerTable], service: Service) -> None:
        self.neighbours = {one.name: one for one in neighbours}
        self.service, self.store, self.form = service, service.store, service.updater.form
        self.received = 0  # bytes
        self.refused = 0  # messages
        self.complaints = Complaints(log)
        self._open: dict[int, list[asyncio.Task[Any]]] = {}

    async def read(self, name: str, stream: AsyncIterator[bytes]) -> None:
        """Receive messages of a neighbour until the stream ends, or the same neighbour has too many streams."""
        peer = self.neighbours[name].number
        task = asyncio.current_task()
        assert task is not None  # a task reads a stream
        streams = self._open.setdefault(peer, [])
        streams.append(task)
        if len(streams) > STREAMS:
            streams.pop(0).cancel()
        try:
            await self._take(peer, name, stream)
        except asyncio.CancelledError:
            if task in streams:  # not removed above
                raise
            task.uncancel()
        finally:
            if task in streams:
                streams.remove(task)

    async def _take(self, peer: int, name: str, stream: AsyncIterator[bytes]) -> None:
        coming: _Coming | None = None
        try:
            async for data in stream:
                self.received += len(data)
                message = wire.decode(data)
                if isinstance(message, wire.Chunk):
                    if coming is None:
                        raise PeerError(f"node {name} sends a piece of a model that it has not announced")
                    if await coming.add(message.data):
                        payload, wrong = await coming.whole(self.form)
                        self._arrived(peer, name, coming.transfer, payload, wrong)
                        coming = None
                        del payload  # its file is in use as long as the object exists
                    continue
                for one in message.messages if isinstance(message, wire.Bundle) else (message,):
                    if isinstance(one, say.Transfer):
                        if coming is not None:
                            raise PeerError(f"node {name} sends two models at once")
                        coming = self._begin(peer, name, one)
                    elif coming is None or one != say.Offer(coming.transfer.key, coming.transfer.token.point):
                        # Otherwise an offer of a model that is already arriving would be accepted and sent again.
                        self.service.tell(say.Packet(peer, one))
        except PeerError:
            self.refused += 1
            raise
        finally:
            if coming is not None:
                await coming.abandon()

    def _begin(self, peer: int, name: str, transfer: say.Transfer) -> _Coming | None:
        """A model arrives: a small one is complete, a large one follows in pieces."""
        token = transfer.token
        payload, witness = token.payload, peer.to_bytes(8, "little") + token.witness
        began = time.monotonic() - token.began
        transfer = transfer._replace(token=token._replace(began=began, witness=witness if token.witness else b""))
        if not self.form.size_fits(payload.size):
            raise PeerError(f"node {name} announces a model of {payload.size:,} bytes")
        if payload.data is None:
            return _Coming(transfer, Incoming(self.store.models, payload.digest, payload.size, self.store.durable))
        self._arrived(peer, name, transfer, payload, self.form.check(payload))
        return None

    def _arrived(self, peer: int, name: str, transfer: say.Transfer, payload: Payload, wrong: str | None) -> None:
        if wrong is not None:
            self.refused += 1
            self.complaints.about(f"models from node {name}", "refused a model from node %s: %s", name, wrong)
            self.service.reply(peer, say.Refuse(transfer.key, transfer.token.point, wrong[:200]))
            return self.service.unneeded(payload)
        self.service.tell(say.Packet(peer, transfer._replace(token=transfer.token._replace(payload=payload))))


class _Coming:
    """A large model that is arriving; slow work is done by a thread while the next piece arrives."""

    def __init__(self, transfer: say.Transfer, incoming: Incoming) -> None:
        self.transfer, self.incoming = transfer, incoming
        self._left = incoming.size
        self._writing: asyncio.Future[None] | None = None

    async def add(self, data: bytes | memoryview) -> bool:
        """Add a piece once the previous one is written; returns whether it was the last one."""
        await self._written()
        self._left -= len(data)
        self._writing = asyncio.ensure_future(asyncio.to_thread(self.incoming.write, data))
        return self._left <= 0

    async def whole(self, form: Form) -> tuple[Payload, str | None]:
        """The model, and its problem, if any."""
        await self._written()
        payload = await asyncio.to_thread(self.incoming.finish)
        return payload, await asyncio.to_thread(form.check, payload)

    async def abandon(self) -> None:
        with suppress(PeerError, asyncio.CancelledError):
            await self._written()
        self.incoming.close()

    async def _written(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing


def _said(error: Exception) -> str:
    """The error of a stream, in a few words."""
    details = getattr(error, "details", None)
    return str(details() if callable(details) else error)[:200]
