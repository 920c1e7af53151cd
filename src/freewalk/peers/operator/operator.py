"""The operator's calls to the nodes of a network: launch walks, get the status of nodes, fetch journals and models."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any, NamedTuple

import grpc
import numpy as np

from freewalk.errors import PeerError
from freewalk.peers.network.init import Network
from freewalk.peers.node.server import CALLS, OPERATE, Identity
from freewalk.peers.node.store import Line
from freewalk.peers.operator import operator_pb2 as ask
from freewalk.peers.operator.journal import Book, copy_of
from freewalk.peers.protocol.messages import LINEAGE, SENT
from freewalk.peers.protocol.payload import Form, Payload, is_digest
from freewalk.peers.protocol.token import Generation, Key, Position, Trust
from freewalk.peers.protocol.wire import from_point, printable, require, to_point

_PATIENCE = 10.0  # seconds for an answer, or for a page of a journal
_PIECE = 60.0  # seconds for the next piece of a model
_SLOWEST = 1e5  # bytes of a model a second
_SLOW = 1e3  # lines of a journal a second
_AGAIN, _TRIES = 0.5, 10  # seconds after which a token that nobody seemed to hold is looked for again, and how often
_START = "`freewalk network up` starts all nodes on this machine"
_MOVING = ("due", "probing", "offering", "sent", "lent", "asking", "doubt")


class SilentNode(PeerError):
    """A node does not answer."""


def operator_of(network: Network) -> Operator:
    """The operator, who may call all nodes of a network."""
    return Operator(Identity.read(network.table.operator, network.credentials), network)


class Operator(AsyncExitStack):
    """Calls the nodes of a network; whatever a node does not answer, or answers wrongly, is a `PeerError`."""

    def __init__(self, identity: Identity, network: Network) -> None:
        super().__init__()
        self.identity, self.network = identity, network
        self.nodes = {node.number: node for node in network.nodes}
        self._channels: dict[int, Any] = {}

    def _channel(self, node: int) -> Any:
        if node not in self._channels:
            channel = self._channels[node] = self.identity.channel(self.nodes[node])
            self.push_async_callback(channel.close)
        return self._channels[node]

    def _call(self, node: int, name: str, asked: Any, patience: float | None = None) -> Any:
        """Call a node as the server's table of calls says."""
        shape, request, answer = CALLS[name]
        call = getattr(self._channel(node), shape)(OPERATE + name, request.SerializeToString, answer.FromString)
        return call(asked, timeout=patience, metadata=self.identity.metadata)

    @contextmanager
    def _reaching(self, node: int) -> Iterator[None]:
        where = f"node {self.nodes[node].name} at {self.nodes[node].address}"
        try:
            yield
        except grpc.aio.AioRpcError as error:
            remedy = f"; {_START}" if error.code() == grpc.StatusCode.UNAVAILABLE else ""
            raise SilentNode(f"{where} does not answer: {printable(str(error.details()))}{remedy}") from None
        except TimeoutError:
            raise SilentNode(f"{where} does not answer: it takes too long") from None
        except PeerError as error:
            raise PeerError(f"what {where} says is wrong: {printable(str(error))}") from None

    async def _parts(self, node: int, name: str, asked: Any, each: float, whole: float) -> AsyncIterator[Any]:
        """What a node streams, which must come in time."""
        call = self._call(node, name, asked, whole)  # which is cancelled when nobody has it any more
        while True:
            async with asyncio.timeout(each):
                part = await call.read()
            if part is grpc.aio.EOF:
                return
            yield part

    async def status(self, node: int, patience: float = _PATIENCE, run: str = "") -> Any:
        """The status of a node, with the walks of a run or of all; None if it does not answer."""
        try:
            status = await self._call(node, "Status", ask.Ask(run=run), patience)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.PERMISSION_DENIED:
                raise PeerError(f"node {self.nodes[node].name} rejects {self.identity.name!r}") from None
            return None
        walks = [walk for walk in status.walks if self._possible(walk)]
        del status.walks[:]
        status.walks.extend(walks)
        status.closed = printable(status.closed)
        for walk in status.walks:
            walk.stage, walk.failure = printable(walk.stage), printable(walk.failure)
        return status

    def _possible(self, walk: Any) -> bool:
        """Whether what a status says of a walk can be true."""
        run, nodes, points = self.network.table.run, len(self.nodes), (walk.point, walk.floor, walk.seen, walk.origin)
        within = all(
            -1 <= one.issuer < nodes and one.number <= LINEAGE and one.step <= run.steps and one.hop < 2**31
            for one in (*points, *walk.lineage)
        )
        named = is_digest(walk.digest) or not walk.HasField("point")
        counted = max(walk.messages, walk.probes) <= SENT * (run.steps + 1)
        return within and named and counted and walk.walk < run.tokens and len(walk.lineage) <= LINEAGE

    async def statuses(self, patience: float = 2.0, run: str = "") -> dict[int, Any]:
        """The status of all nodes; None for those that do not answer."""
        found = await asyncio.gather(*(self.status(node, patience, run) for node in self.nodes))
        return dict(zip(self.nodes, found, strict=True))

    async def located(self, run: str) -> tuple[dict[int, Any], list[Whereabouts]]:
        """All statuses, and the tokens of a run; one that seems lost may have moved while they answered."""
        before: list[Whereabouts] = []
        for _ in range(_TRIES):
            statuses = await self.statuses(run=run)
            here = whereabouts(run, statuses, self.network.trust)
            lost = [one._replace(told=None, copy=None) for one in here if one.state == "lost"]
            if lost == before or not lost:
                return statuses, here
            before = lost
            await asyncio.sleep(_AGAIN)
        return statuses, [one._replace(state="moving") if one.state == "lost" else one for one in here]

    async def launch(self, node: int, key: Key, payload: Payload, permit: bytes = b"") -> bool:
        """Hand a new token to a node; returns False if it knows the walk already, and does not launch it again."""
        with self._reaching(node):
            done = await self._call(node, "Launch", _launch(key, payload, permit), _PATIENCE + payload.size / 1e6)
        if done.problem:
            raise PeerError(f"node {self.nodes[node].name} does not launch walk {key.walk}: {printable(done.problem)}")
        return not done.known

    async def journal(self, node: int, run: str) -> Book:
        """The lines of a run in the journal of a node; models that they keep are only announced."""
        book, table = Book(self.network, node, run), self.network.table.run
        whole = _PIECE + table.steps * table.tokens / _SLOW
        with self._reaching(node):
            async for page in self._parts(node, "Journal", ask.Lines(run=run), _PATIENCE, whole):
                book.add(page)
        return book.finish()

    async def fetch(self, node: int, digest: str, size: int, diverged: bool = False) -> dict[str, Any]:
        """The vectors of a model that a node holds or its journal kept: finite, unless the token has `diverged`."""
        task, data = self.network.task, bytearray()
        names = ("x", *task.rule.carries)
        form = Form(names, ((task.objective.dim,),) * len(names), np.dtype(task.job.precision))
        with self._reaching(node):
            require(form.size_fits(size), f"a model of {size:,} bytes")
            async for piece in self._parts(node, "Fetch", ask.Fetch(digest=digest), _PIECE, _PIECE + size / _SLOWEST):
                data += piece.data
                require(len(data) <= size, f"a model is longer than the {size:,} bytes announced")
            payload = Payload.holding(bytes(data))
            require(payload.digest == digest, "a model is another one than was announced")
            wrong = form.check(payload, finite=not diverged)
            require(wrong is None, f"a model, since {wrong}")
        return payload.arrays()

    async def collect(self, node: int, ends: Sequence[tuple[Key, Position]]) -> None:
        """Tell a node that finished tokens are safe here."""
        with self._reaching(node):
            for (run, walk), point in ends:
                asked = ask.Collect(run=run, walk=walk, point=to_point(point, ask.Point))
                await self._call(node, "Collect", asked, _PATIENCE)

    async def forget(self, node: int, run: str) -> None:
        """Tell a node to remove all that it has of a run."""
        with self._reaching(node):
            await self._call(node, "Forget", ask.Forget(run=run), _PATIENCE)


async def _launch(key: Key, payload: Payload, permit: bytes) -> AsyncIterator[Any]:
    data, (run, walk) = payload.data or b"", key
    yield ask.Launch(run=run, walk=walk, digest=payload.digest, size=payload.size, data=data, permit=permit)
    for data in payload.chunks() if payload.data is None else ():
        yield ask.Launch(data=data)


class Whereabouts(NamedTuple):
    """The position of a token, as reported by the nodes."""

    key: Key
    point: Position  # the newest that is known
    node: int | None  # that holds it; None if no answering node does
    told: Any  # what its holder says of it, or whoever knew it last: `ask.Walk`
    state: str  # "held", "moving", "collected", "silent" (nobody has it, but not all nodes answer) or "lost"
    last: int  # the node that had it last
    floor: Generation  # the newest that a node has proved; if none has, nobody issued it
    unproven: list[int]  # the nodes that have no proof of what they tell, which counts if nobody has
    copy: Line | None  # the newest one that a node has

    @property
    def finished(self) -> bool:
        """Whether it made all its updates, or diverged."""
        return bool(self.told.finished or self.state == "collected")

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to it."""
        return bool(self.finished or self.told.failure or self.state == "lost")

    def words(self, network: Network) -> str:
        """Where it is, in words."""
        name, update = network.nodes[self.last].name, f"update {self.point.step:,} of {network.table.run.steps:,}"
        walk = f"walk {self.key.walk}"
        if self.state == "lost":
            known = f"the last one known was at {name} ({update}); collect --partial gets the newest copy"
            return f"no node holds the token of {walk}: {known}"
        if self.told.failure:
            return f"{walk} is stuck at {name} ({update}): {self.told.failure}"
        if self.finished:
            return f"{walk} has finished at {name}" + (", and is collected" if self.state == "collected" else "")
        doing = {"moving": "was last seen at", "silent": "was last seen by the nodes that answer at"}
        return f"{walk} {doing.get(self.state, 'is at')} {name} ({update})"


def whereabouts(run: str, statuses: dict[int, Any], trust: Trust) -> list[Whereabouts]:
    """The positions of the tokens of a run: of each, the newest that any node holds."""
    found: dict[int, dict[int, Any]] = defaultdict(dict)
    for node, status in statuses.items():
        for walk in () if status is None else status.walks:
            if walk.run == run:
                found[walk.walk][node] = walk
    return [_whereabouts(Key(run, walk), found[walk], trust, None in statuses.values()) for walk in sorted(found)]


def _proves(key: Key, walk: Any, trust: Trust) -> bool:
    """Whether a node has proof of a walk, and of the newest generation in what it tells of it."""
    floor, *others = (from_point(one).generation for one in (walk.floor, walk.point, walk.seen))
    return trust.permits(key, walk.permit) and trust.proves(key, floor, walk.proof) and floor >= max(others)


def _whereabouts(key: Key, heard: dict[int, Any], trust: Trust, silent: bool) -> Whereabouts:
    def newest(pair: tuple[int, Any]) -> tuple[bool, Position, bool]:
        has = pair[1].HasField("point")
        return has, from_point(pair[1].point if has else pair[1].seen), pair[1].held

    proven = {node: walk for node, walk in heard.items() if _proves(key, walk, trust)}
    told = (proven or heard).items()
    node, best = max(told, key=newest)
    has, point, held = newest((node, best))
    floor, collected = max((from_point(walk.floor).generation, walk.collected) for _, walk in told)
    moving = any((walk.held or walk.stage in _MOVING) and not walk.collected for _, walk in told)
    keeper, seen = max(((one, from_point(walk.seen)) for one, walk in told), key=lambda pair: pair[1])
    # Whoever holds it knows better than one that says that it is collected.
    state = "held" if held else "moving" if moving else "collected" if collected else "silent" if silent else "lost"
    counts = ("diverged" if best.diverged else "", best.messages, best.probes, node)
    copy = Line(0, 0.0, key, "copy", point, copy_of(point, best), *counts) if has else None
    here, last = (node, node) if held else (None, keeper)
    newest_floor, unproven = floor if proven else Generation(0, -1), sorted(heard.keys() - proven.keys())
    return Whereabouts(key, max(point, seen), here, best, state, last, newest_floor, unproven, copy)
