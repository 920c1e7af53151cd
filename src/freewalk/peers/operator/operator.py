"""The operator's calls to the nodes of a network: launch walks, get the status of nodes, fetch journals and models."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, Self

import grpc
import numpy as np

from freewalk.errors import PeerError
from freewalk.peers.network.init import Network
from freewalk.peers.node.server import CALLS, OPERATE, Identity
from freewalk.peers.operator import operator_pb2 as ask
from freewalk.peers.operator.journal import Book
from freewalk.peers.protocol.messages import LINEAGE
from freewalk.peers.protocol.payload import SMALL, Form, Incoming, Payload, is_digest
from freewalk.peers.protocol.token import Key, Position
from freewalk.peers.protocol.wire import from_point, require, to_point

_PATIENCE = 10.0  # seconds for an answer, or for a page of a journal
_PIECE = 60.0  # seconds for the next piece of a model
_SLOWEST = 1e5  # bytes of a model a second
_LONGEST = 3600.0  # seconds for a journal
_AGAIN = 0.5  # seconds after which a token that nobody seemed to hold is looked for again
_LETTERS = 300  # of what a node says
_START = "`freewalk network up` starts all nodes on this machine"
_MOVING = ("due", "probing", "offering", "sent", "lent", "asking", "doubt")


class SilentNode(PeerError):
    """A node does not answer."""


def operator_of(network: Network) -> Operator:
    """The operator, who may call all nodes of a network."""
    return Operator(Identity.read(network.table.operator, network.credentials), network)


class Operator:
    """Calls the nodes of a network; whatever a node does not answer, or answers wrongly, is a `PeerError`."""

    def __init__(self, identity: Identity, network: Network) -> None:
        self.identity, self.network = identity, network
        self.nodes = {node.number: node for node in network.nodes}
        self._channels: dict[int, Any] = {}

    async def __aenter__(self) -> Self:
        """Prepare to call."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all channels."""
        for channel in self._channels.values():
            await channel.close()

    def _channel(self, node: int) -> Any:
        if node not in self._channels:
            self._channels[node] = self.identity.channel(self.nodes[node])
        return self._channels[node]

    def _call(self, node: int, name: str, asked: Any, patience: float | None = None) -> Any:
        """Call a node as the server's table of calls says."""
        shape, request, answer = CALLS[name]
        call = getattr(self._channel(node), shape)(OPERATE + name, request.SerializeToString, answer.FromString)
        return call(asked, timeout=patience, metadata=self.identity.metadata)

    @contextmanager
    def _reaching(self, node: int) -> Iterator[None]:
        known = self.nodes[node]
        where = f"node {known.name} at {known.address}"
        try:
            yield
        except grpc.aio.AioRpcError as error:
            remedy = f"; {_START}" if error.code() == grpc.StatusCode.UNAVAILABLE else ""
            raise SilentNode(f"{where} does not answer: {plain(str(error.details()))}{remedy}") from None
        except TimeoutError:
            raise SilentNode(f"{where} does not answer: it takes too long") from None
        except PeerError as error:
            raise PeerError(f"what {where} says is wrong: {plain(str(error))}") from None

    async def _parts(self, call: Any, each: float, whole: float) -> AsyncIterator[Any]:
        """What a node streams, which must come in time."""
        until = time.monotonic() + whole
        try:
            while True:
                async with asyncio.timeout(min(each, max(until - time.monotonic(), 0.0))):
                    part = await call.read()
                if part is grpc.aio.EOF:
                    return
                yield part
        finally:
            call.cancel()

    async def status(self, node: int, patience: float = _PATIENCE) -> Any:
        """The status of a node; None if it does not answer."""
        try:
            return self._believed(await self._call(node, "Status", ask.Ask(), patience))
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.PERMISSION_DENIED:
                raise PeerError(f"node {self.nodes[node].name} rejects {self.identity.name!r}") from None
            return None

    def _believed(self, status: Any) -> Any:
        """A status without what cannot be true, and without letters that a terminal would obey."""
        run, status.closed = self.network.table.run, plain(status.closed)
        walks = [walk for walk in status.walks if walk.walk < run.tokens and all(map(self._possible, points_of(walk)))]
        del status.walks[:]
        status.walks.extend(walks)
        for walk in status.walks:
            walk.stage, walk.failure = plain(walk.stage), plain(walk.failure)
        return status

    def _possible(self, point: Any) -> bool:
        """Whether a point can be one of this network."""
        few = point.number <= LINEAGE and point.step <= self.network.table.run.steps and point.hop < 2**31
        return bool(few and -1 <= point.issuer < len(self.nodes))

    async def statuses(self, patience: float = 2.0) -> dict[int, Any]:
        """The status of all nodes; None for those that do not answer."""
        found = await asyncio.gather(*(self.status(node, patience) for node in self.nodes))
        return dict(zip(self.nodes, found, strict=True))

    async def located(self, run: str) -> tuple[dict[int, Any], list[Whereabouts]]:
        """All statuses, and the tokens of a run; one that seems lost may have moved while they answered."""
        before: list[Whereabouts] = []
        while True:
            statuses = await self.statuses()
            here = whereabouts(run, statuses)
            lost = [one._replace(told=None) for one in here if one.state == "lost"]
            if lost == before or not lost:
                return statuses, here
            before = lost
            await asyncio.sleep(_AGAIN)

    async def launch(self, node: int, key: Key, payload: Payload, permit: bytes = b"") -> bool:
        """Hand a new token to a node; returns False if it knows the walk already, and does not launch it again."""
        with self._reaching(node):
            done = await self._call(node, "Launch", _launch(key, payload, permit), _PATIENCE + payload.size / 1e6)
        if done.problem:
            raise PeerError(f"node {self.nodes[node].name} does not launch walk {key.walk}: {plain(done.problem)}")
        return not done.known

    async def journal(self, node: int, run: str) -> Book:
        """The lines of a run in the journal of a node; models that they keep are only announced."""
        with self._reaching(node), TemporaryFile() as file:
            book = Book(self.network, node, run, file)
            async for page in self._parts(self._call(node, "Journal", ask.Lines(run=run)), _PATIENCE, _LONGEST):
                book.add(page)
            return book.finish()

    async def fetch(self, node: int, digest: str, size: int, folder: Path, diverged: bool = False) -> dict[str, Any]:
        """The vectors of a model that a node holds or that its journal kept; a large one is written to a folder.

        They are finite, unless the token has `diverged`.
        """
        task = self.network.task
        names = ("x", *task.rule.carries)
        form = Form(names, ((task.objective.dim,),) * len(names), np.dtype(task.job.precision))
        with self._reaching(node):
            require(is_digest(digest) and form.size_fits(size), f"a model of {size:,} bytes")
            call = self._call(node, "Fetch", ask.Fetch(digest=digest))
            parts = self._parts(call, _PIECE, _PIECE + size / _SLOWEST)
            payload = await _received(parts, digest, size, folder)
            wrong = await asyncio.to_thread(form.check, payload)
            require(not wrong or diverged, f"a model: {wrong}")
            found = payload.arrays()
            shapes = {name: (vector.shape, vector.dtype) for name, vector in found.items()}
            require(shapes == dict.fromkeys(names, (form.shapes[0], form.dtype)), f"a model: {wrong}")
        return found

    async def collect(self, node: int, key: Key, point: Position) -> None:
        """Tell a node that a finished token is safe here."""
        asked = ask.Collect(run=key.run, walk=key.walk, point=to_point(point, ask.Point))
        with self._reaching(node):
            await self._call(node, "Collect", asked, _PATIENCE)

    async def forget(self, node: int, run: str) -> None:
        """Tell a node to remove all that it has of a run."""
        with self._reaching(node):
            await self._call(node, "Forget", ask.Forget(run=run), _PATIENCE)


async def _received(parts: AsyncIterator[Any], digest: str, size: int, folder: Path) -> Payload:
    """A model that arrives in pieces, if it is the one that was announced."""
    if size > SMALL:
        with closing(Incoming(folder, digest, size)) as incoming:
            async for piece in parts:
                incoming.write(piece.data)
            return incoming.finish()
    data = b""
    async for piece in parts:
        data += piece.data
        require(len(data) <= size, f"a model is longer than the {size:,} bytes announced")
    payload = Payload.holding(data)
    require(payload.digest == digest, "a model is another one than was announced")
    return payload


async def _launch(key: Key, payload: Payload, permit: bytes) -> AsyncIterator[Any]:
    data, (run, walk) = payload.data or b"", key
    yield ask.Launch(run=run, walk=walk, digest=payload.digest, size=payload.size, data=data, permit=permit)
    if payload.data is None:
        for data in payload.chunks():
            yield ask.Launch(data=data)


def plain(text: str) -> str:
    """What a node says, for a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LETTERS])


def points_of(walk: Any) -> list[Any]:
    """The points in what a status says of a walk."""
    return [walk.point, walk.floor, walk.seen, walk.origin, *walk.lineage]


class Whereabouts(NamedTuple):
    """The position of a token, as reported by the nodes."""

    key: Key
    point: Position  # the newest that is known
    node: int | None  # that holds it; None if no answering node does
    told: Any  # what its holder says of it, or whoever knew it last: `ask.Walk`
    state: str  # "held", "moving", "collected", "silent" (nobody has it, but not all nodes answer) or "lost"
    last: int  # the node that had it last

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to it."""
        return bool(self.told.finished or self.told.failure or self.state in ("collected", "lost"))

    def words(self, network: Network) -> str:
        """Where it is, in words."""
        name, update = network.nodes[self.last].name, f"update {self.point.step:,} of {network.table.run.steps:,}"
        walk = f"walk {self.key.walk}"
        if self.state == "lost":
            known = f"the last one known was at {name} ({update}); collect --partial gets the newest copy"
            return f"no node holds the token of {walk}: {known}"
        if self.told.failure:
            return f"{walk} is stuck at {name} ({update}): {self.told.failure}"
        doing = {"moving": "was last seen at", "silent": "was last seen by the nodes that answer at"}
        if self.state == "collected" or self.told.finished:
            return f"{walk} has finished at {name}" + (", and is collected" if self.state == "collected" else "")
        return f"{walk} {doing.get(self.state, 'is at')} {name} ({update})"


def whereabouts(run: str, statuses: dict[int, Any]) -> list[Whereabouts]:
    """The positions of the tokens of a run: of each, the newest that any node holds."""
    found: dict[Key, list[tuple[int, Any]]] = defaultdict(list)
    for node, status in statuses.items():
        for walk in () if status is None else status.walks:
            if walk.run == run:
                found[Key(run, walk.walk)].append((node, walk))
    return [_whereabouts(key, found[key], None in statuses.values()) for key in sorted(found)]


def _whereabouts(key: Key, told: list[tuple[int, Any]], silent: bool) -> Whereabouts:
    def newest(pair: tuple[int, Any]) -> tuple[bool, Position, bool]:
        walk = pair[1]
        return walk.HasField("point"), from_point(walk.point if walk.HasField("point") else walk.seen), walk.held

    node, best = max(told, key=newest)
    _, point, held = newest((node, best))
    floor = max((walk.floor.number, walk.floor.issuer) for _, walk in told)
    collected = any(walk.collected and (walk.floor.number, walk.floor.issuer) == floor for _, walk in told)
    moving = any(walk.held or walk.stage in _MOVING for _, walk in told)
    seen = max(told, key=lambda pair: from_point(pair[1].seen))
    last = node if held else seen[0]
    state = "collected" if collected else "held" if held else "moving" if moving else "silent" if silent else "lost"
    return Whereabouts(key, max(point, from_point(seen[1].seen)), node if held else None, best, state, last)
