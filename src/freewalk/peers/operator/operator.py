"""The operator's calls to the nodes of a network: launch walks, get the status of nodes, fetch journals and models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import grpc

from freewalk.errors import PeerError
from freewalk.peers.network.config import PeerTable
from freewalk.peers.network.init import Network
from freewalk.peers.node.server import CALLS, OPERATE, Identity
from freewalk.peers.node.store import CHAIN, WITNESS, Line
from freewalk.peers.operator import operator_pb2 as ask
from freewalk.peers.protocol.payload import SMALL, Incoming, Payload
from freewalk.peers.protocol.token import Generation, Key, Position, Token
from freewalk.peers.protocol.wire import from_point, to_point

_PATIENCE = 10.0  # seconds for an answer
_START = "`freewalk network up` starts all nodes on this machine"


def operator_of(network: Network) -> Operator:
    """The operator, who may call all nodes of a network."""
    return Operator(Identity.read(network.table.operator, network.credentials), network.nodes)


class Operator:
    """Calls the nodes of a network; whatever a node does not answer is a `PeerError`."""

    def __init__(self, identity: Identity, nodes: Sequence[PeerTable]) -> None:
        self.identity, self.nodes = identity, {node.number: node for node in nodes}
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
        try:
            yield
        except grpc.aio.AioRpcError as error:
            known, why = self.nodes[node], str(error.details())[:200]
            remedy = f"; {_START}" if error.code() == grpc.StatusCode.UNAVAILABLE else ""
            raise PeerError(f"node {known.name} at {known.address} does not answer: {why}{remedy}") from None

    async def status(self, node: int, patience: float = _PATIENCE) -> Any:
        """The status of a node; None if it does not answer."""
        try:
            return await self._call(node, "Status", ask.Ask(), patience)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.PERMISSION_DENIED:
                raise PeerError(f"node {self.nodes[node].name} rejects {self.identity.name!r}") from None
            return None

    async def statuses(self, patience: float = 2.0) -> dict[int, Any]:
        """The status of all nodes; None for those that do not answer."""
        found = await asyncio.gather(*(self.status(node, patience) for node in self.nodes))
        return dict(zip(self.nodes, found, strict=True))

    async def launch(self, node: int, key: Key, payload: Payload, permit: bytes = b"") -> bool:
        """Hand a new token to a node; returns False if it knows the walk already, and does not launch it again."""
        with self._reaching(node):
            done = await self._call(node, "Launch", _launch(key, payload, permit), _PATIENCE + payload.size / 1e6)
        if done.problem:
            raise PeerError(f"node {self.nodes[node].name} does not launch walk {key.walk}: {done.problem}")
        return not done.known

    async def journal(self, node: int, run: str) -> list[Line]:
        """The lines of a run in the journal of a node; models that they keep are only announced."""
        with self._reaching(node):
            return [
                line
                async for page in self._call(node, "Journal", ask.Lines(run=run))
                for line in _lines(node, run, page)
            ]

    async def fetch(self, node: int, digest: str, size: int, folder: Path) -> Payload:
        """A model that a node holds or that its journal kept; a large one is written to a folder."""
        call = self._call(node, "Fetch", ask.Fetch(digest=digest))
        with self._reaching(node):
            if size <= SMALL:
                return Payload.holding(b"".join([piece.data async for piece in call]))
            with closing(Incoming(folder, digest, size)) as incoming:
                async for piece in call:
                    incoming.write(piece.data)
                return incoming.finish()

    async def collect(self, node: int, key: Key, point: Position) -> None:
        """Tell a node that its finished token is safe here."""
        asked = ask.Collect(run=key.run, walk=key.walk, point=to_point(point, ask.Point))
        with self._reaching(node):
            await self._call(node, "Collect", asked, _PATIENCE)


async def _launch(key: Key, payload: Payload, permit: bytes) -> AsyncIterator[Any]:
    data, (run, walk) = payload.data or b"", key
    yield ask.Launch(run=run, walk=walk, digest=payload.digest, size=payload.size, data=data, permit=permit)
    if payload.data is None:
        for data in payload.chunks():
            yield ask.Launch(data=data)


def _lines(node: int, run: str, page: Any) -> list[Line]:
    """The lines of a page."""
    kept, found = {one.place: one for one in page.kept}, []
    for place, number in enumerate(page.numbers):
        generation = Generation(page.generations[place], page.issuers[place])
        point, note, token = Position(generation, page.steps[place], page.hops[place]), "", None
        if (more := kept.get(place)) is not None:
            note = more.note
            if more.digest:
                lineage = tuple(from_point(one) for one in more.lineage)
                token = Token(point, Payload(more.digest, more.size), True, from_point(more.origin).generation, lineage)
        key, kind = Key(run, page.walks[place]), page.names[page.kinds[place]]
        counts = (page.messages[place], page.probes[place])
        chain, witness = (
            data[place * size : (place + 1) * size] for data, size in ((page.chains, CHAIN), (page.witnesses, WITNESS))
        )
        last = (page.seconds[place], witness, chain)
        found.append(Line(number, page.times[place], key, kind, point, token, note, *counts, node, *last))
    return found


class Whereabouts(NamedTuple):
    """The position of a token, as reported by the nodes."""

    key: Key
    point: Position
    node: int | None  # that holds it; None if no answering node does
    told: Any  # what its holder says of it: `ask.Walk`


def whereabouts(run: str, statuses: dict[int, Any]) -> list[Whereabouts]:
    """The positions of the tokens of a run: of each, the newest that any node holds."""
    found: dict[Key, Whereabouts] = {}
    for node, status in statuses.items():
        for walk in () if status is None else status.walks:
            if walk.run != run or not walk.HasField("point"):
                continue
            here = Whereabouts(Key(run, walk.walk), from_point(walk.point), node if walk.held else None, walk)
            known = found.get(here.key)
            if known is None or (here.point, here.node is not None) > (known.point, known.node is not None):
                found[here.key] = here
    return [found[key] for key in sorted(found)]
