"""The server of a node: who may call it, and what they may request."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import grpc

from freewalk._version import __version__
from freewalk.errors import PeerError
from freewalk.peers.network.config import PeerTable, read
from freewalk.peers.node.links import HELLO, METHOD, STREAMS, VERSION, Gate
from freewalk.peers.node.service import Service
from freewalk.peers.node.store import CHAIN, COLUMNS, WITNESS
from freewalk.peers.operator import operator_pb2 as ask
from freewalk.peers.protocol import wire
from freewalk.peers.protocol.messages import Ask, Collect, Forget, Launch, Settings
from freewalk.peers.protocol.payload import SMALL, Incoming, Payload, is_digest
from freewalk.peers.protocol.token import Key, Position, Stage, Token
from freewalk.peers.protocol.wire import from_point, to_point

log = logging.getLogger("freewalk.peers")

OPERATE = "/freewalk.Operator/"
#: The calls of the operator: how they stream, what they send, and what they return.
CALLS: dict[str, tuple[str, Any, Any]] = {
    "Launch": ("stream_unary", ask.Launch, ask.Done),
    "Status": ("unary_unary", ask.Ask, ask.Status),
    "Journal": ("unary_stream", ask.Lines, ask.Page),
    "Fetch": ("unary_stream", ask.Fetch, ask.Piece),
    "Collect": ("unary_unary", ask.Collect, ask.Done),
    "Forget": ("unary_unary", ask.Forget, ask.Done),
}
_NAME = "freewalk-name"  # the caller's name, if there are no certificates
_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.max_send_message_length", 4 << 20),
    ("grpc.max_concurrent_streams", 64),
    ("grpc.so_reuseport", 0),
    ("grpc.enable_retries", 0),
    # A connection whose other end has disappeared silently is closed.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
]
_STRANGERS = [
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 60_000),  # without a call; connections of neighbours have one
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
]
_CALLS = 256  # at the same time, besides those of neighbours
_OWN_CALLS = 32  # of the operator
_MANY = 2**14  # open files, where the system allows it
_FILES = 256  # reserved for the node itself, however many connect
_PATIENCE = 60.0  # seconds for the next piece of a model
_LONGEST = 1024  # bytes of a greeting
_LONG_PAGE = 2**20  # bytes of a page of the journal, beyond which it is halved


@dataclass(frozen=True)
class Identity:
    """The identity of a process, by which it connects to others and recognizes them."""

    name: str  # as in its certificate
    certificate: bytes | None = None  # PEM, as the two that follow; all None for plain connections on one machine
    key: bytes | None = None
    authority: bytes | None = None

    @staticmethod
    def read(name: str, files: tuple[Path, Path, Path] | None) -> Identity:
        """The identity of a certificate, a key and an authority; without files, of plain connections."""
        return Identity(name, *map(read, files or ()))

    def channel(self, neighbour: PeerTable) -> Any:
        """A channel to a node, whose certificate must bear its name."""
        options = [*_OPTIONS, ("grpc.max_reconnect_backoff_ms", 1000), ("grpc.initial_reconnect_backoff_ms", 100)]
        if self.certificate is None:
            return grpc.aio.insecure_channel(neighbour.address, options=options)
        credentials = grpc.ssl_channel_credentials(self.authority, self.key, self.certificate)
        options.append(("grpc.ssl_target_name_override", neighbour.name))
        return grpc.aio.secure_channel(neighbour.address, credentials, options=options)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of each call: the name, if there is no certificate."""
        return ((_NAME, self.name),) if self.certificate is None else ()

    def listen(self, server: Any, address: str) -> None:
        """Let a server listen."""
        if self.certificate is None:
            server.add_insecure_port(address)
            return
        pair = [(self.key, self.certificate)]
        credentials = grpc.ssl_server_credentials(pair, self.authority, require_client_auth=True)
        server.add_secure_port(address, credentials)

    def caller(self, context: Any) -> str:
        """The name of the caller."""
        if self.certificate is None:
            return str(dict(context.invocation_metadata() or ()).get(_NAME, ""))
        names = context.auth_context().get("x509_common_name", [])
        return names[0].decode("utf-8", "replace") if len(names) == 1 else ""


class Handlers(grpc.GenericRpcHandler):
    """The remote procedures of a node."""

    def __init__(self, identity: Identity, operator: str, service: Service, gate: Gate) -> None:
        self.identity, self.operator, self.at_work, self.gate = identity, operator, service, gate
        self.started = time.time()
        self._calls = asyncio.Semaphore(_OWN_CALLS)  # of the operator
        self._methods: dict[str, Any] = {
            METHOD: grpc.stream_unary_rpc_method_handler(self.link),
            HELLO: grpc.unary_unary_rpc_method_handler(self.hello),
        }
        for name, (shape, request, answer) in CALLS.items():
            handler, method = getattr(grpc, f"{shape}_rpc_method_handler"), getattr(self, name.lower())
            self._methods[OPERATE + name] = handler(method, request.FromString, answer.SerializeToString)

    def service(self, details: Any) -> Any:
        """The handler of a call, if there is one."""
        return self._methods.get(details.method)

    async def _admit(self, context: Any, operator: bool) -> str:
        """The name of the caller; strangers are rejected."""
        name = self.identity.caller(context)
        if (name == self.operator) if operator else (name in self.gate.neighbours):
            return name
        self.gate.refused += 1
        known, what = ascii(name[:64]), "operator" if operator else "neighbour"
        words = "turned away %s from %s: no %s"
        self.gate.complaints.about(f"{known} turned away", words, known, context.peer(), what)
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "you are not known here")
        raise PeerError("turned away")

    async def link(self, stream: AsyncIterator[bytes], context: Any) -> bytes:
        """The stream of a neighbour."""
        name = await self._admit(context, operator=False)
        await context.send_initial_metadata((VERSION,))
        if VERSION not in tuple(context.invocation_metadata() or ()):
            words = "it speaks another version of the protocol; install the same freewalk at both"
            self.gate.complaints.about(f"the version of node {name}", "refused node %s: %s", name, words)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, words)
        try:
            await self.gate.read(name, stream)
        except PeerError as error:
            self.gate.complaints.about(f"what node {name} sent", "refused what node %s sent: %s", name, error)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error)[:200])
        return b""

    async def hello(self, request: bytes, context: Any) -> bytes:
        """The identity of this node, for a neighbour that checks whether both belong to the same network."""
        name = await self._admit(context, operator=False)
        try:
            wire.require(len(request) <= _LONGEST, "a long greeting")
            asked = wire.parsed(ask.Hello, request, "a greeting")
        except PeerError:
            self.gate.refused += 1
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a greeting cannot be read")  # raises
        known = (asked.name, asked.number) == (name, self.gate.neighbours[name].number)
        return hello(self.identity.name, self.at_work.node.me, self.at_work.node.settings, known)

    @asynccontextmanager
    async def _operator(self, context: Any) -> AsyncIterator[None]:
        """Admit only the operator, with a limited number of calls."""
        await self._admit(context, operator=True)
        if self._calls.locked():
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"more than {_OWN_CALLS} calls at once")
        async with self._calls:
            yield

    async def launch(self, stream: AsyncIterator[Any], context: Any) -> Any:
        """Launch a new token, which is on disk when this returns."""
        async with self._operator(context):
            try:
                if self.at_work.closed:
                    raise PeerError(f"its disk cannot be written: {self.at_work.closed}")
                key, permit, payload = await self._received(stream)
                wire.decode(wire.encode(Ask(key)))  # check that its name can be sent
                node = self.at_work.node
                if key in node.custody or key.run in node.forgotten:
                    return ask.Done(known=True)
                wrong, event = await asyncio.to_thread(self.gate.form.check, payload), Launch(key, payload, permit)
                if wrong or not node.permitted(event):
                    self.at_work.unneeded(payload)
                    raise PeerError(wrong or "it is not signed by the operator, as this network demands")
                self.at_work.tell(event._replace(began=time.monotonic()))
                await asyncio.wait_for(self.at_work.settled(), _PATIENCE)
            except PeerError as error:
                return ask.Done(problem=str(error))
            except TimeoutError:
                return ask.Done(problem=f"nothing came, or was written, for {_PATIENCE:g} seconds")
            return ask.Done()

    async def _received(self, stream: AsyncIterator[Any]) -> tuple[Key, bytes, Payload]:
        """A model from the operator."""
        parts = aiter(stream)
        first = await asyncio.wait_for(anext(parts, None), _PATIENCE)
        if first is None or not self.gate.form.size_fits(first.size):
            raise PeerError(f"a model of {0 if first is None else first.size:,} bytes was announced")
        key = Key(first.run, first.walk)
        if first.size <= SMALL:
            return key, first.permit, Payload.holding(first.data)
        with closing(Incoming(self.at_work.store.models, first.digest, first.size)) as incoming:
            while (part := await asyncio.wait_for(anext(parts, None), _PATIENCE)) is not None:
                incoming.write(part.data)
            return key, first.permit, await asyncio.to_thread(incoming.finish)

    async def status(self, request: Any, context: Any) -> Any:
        """The status of the node."""
        async with self._operator(context):
            work = self.at_work
            status = ask.Status(number=work.node.me, name=self.identity.name, version=__version__, process=os.getpid())
            status.started, status.updates, status.closed = self.started, work.updates, work.closed
            status.received, status.refused = self.gate.received, self.gate.refused + work.refused
            status.sent.update(work.store.sent + work.sent)
            status.forgotten.extend(sorted(work.store.forgotten))
            for number, link in work.links.items():
                status.edges.add(number=number, up=link.up, sent=link.sent)
            for key, custody in work.node.custody.items():
                if request.run not in ("", key.run):
                    continue
                stage, token = work.node.stages.get(key, Stage("")), custody.token
                walk = status.walks.add(run=key.run, walk=key.walk, stage=stage.name, peer=stage.peer)
                walk.floor.CopyFrom(_point(Position(custody.floor, 0, 0)))
                walk.failure = work.failures.get(key, "") if stage.name == "failed" else ""
                walk.collected, (walk.permit, walk.proof) = custody.collected, custody.warrant
                if custody.seen is not None:
                    walk.seen.CopyFrom(_point(custody.seen))
                if token is not None:
                    walk.point.CopyFrom(_point(token.point))
                    walk.held, walk.messages, walk.probes = custody.held is not None, token.messages, token.probes
                    walk.finished, walk.diverged = stage.name == "finished", token.diverged
                    walk.digest, walk.size = token.payload.digest, token.payload.size
                    _descent(walk, token)
            return status

    async def journal(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """The journal of a run, many lines at a time."""
        async with self._operator(context):
            await self.at_work.settled()
            rows = self.at_work.store.rows(request.after, request.run)
            pages = (page for several in rows for page in _pages(several))
            while (page := await asyncio.to_thread(next, pages, None)) is not None:
                yield page

    async def fetch(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """The bytes of a model that is here or that the journal names."""
        async with self._operator(context):
            held = (one.token.payload for one in self.at_work.node.custody.values() if one.token is not None)
            payload = next((one for one in held if one.digest == request.digest), None)
            if payload is None and is_digest(request.digest):
                payload = self.at_work.store.payload(request.digest)
            if payload is None:
                await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such model")
                return
            for data in payload.chunks():
                yield ask.Piece(data=data)

    async def collect(self, request: Any, context: Any) -> Any:
        """The operator has a finished token: it need not be kept any more."""
        return await self._noted(Collect(Key(request.run, request.walk), from_point(request.point)), context)

    async def forget(self, request: Any, context: Any) -> Any:
        """The operator has no use for a run any more."""
        return await self._noted(Forget(request.run), context)

    async def _noted(self, event: Collect | Forget, context: Any) -> Any:
        async with self._operator(context):
            self.at_work.tell(event)
            await self.at_work.settled()
            return ask.Done()


def hello(name: str, number: int, settings: Settings, known: bool = False) -> bytes:
    """A node's description of itself for a neighbour, as bytes."""
    told = ask.Hello(number=number, name=name, version=__version__, known=known)
    told.nodes, told.seed, told.steps = settings.nodes, settings.seed, settings.steps
    return bytes(told.SerializeToString())


def _pages(rows: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """Rows of the journal, for the operator: one page, or more if their lineages are long."""
    page = _page(rows)
    if page.ByteSize() > _LONG_PAGE and len(rows) > 1:
        half = len(rows) // 2
        yield from chain(_pages(rows[:half]), _pages(rows[half:]))
    else:
        yield page


def _page(rows: Sequence[tuple[Any, ...]]) -> Any:
    columns: dict[str, Any] = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    states, notes, _ = (columns.pop(name) for name in ("states", "notes", "runs"))
    names = {kind: place for place, kind in enumerate(dict.fromkeys(columns["kinds"]))}
    columns["kinds"] = [names[kind] for kind in columns["kinds"]]
    for name, size in (("chains", CHAIN), ("witnesses", WITNESS)):
        columns[name] = b"".join([one.ljust(size, b"\0") for one in columns[name]])
    page = ask.Page(names=list(names), **columns)
    for place, (state, note) in enumerate(zip(states, notes, strict=True)):
        if note or state is not None:
            kept = page.kept.add(place=place, note=note)
            if state is not None:  # a model that is broken is missed when it is fetched
                token = wire.from_token(wire.pb.Token.FromString(state), Payload)
                kept.digest, kept.size = token.payload.digest, token.payload.size
                _descent(kept, token)
    return page


def _descent(told: Any, token: Token) -> None:
    told.lineage.extend(_point(point) for point in token.lineage)
    told.origin.CopyFrom(_point(Position(token.origin, 0, 0)))


def _point(point: Position) -> Any:
    return to_point(point, ask.Point)


async def serve(identity: Identity, address: str, handlers: Handlers) -> None:
    """Listen until cancelled."""
    options = [*_OPTIONS, *_STRANGERS, ("grpc.max_allowed_incoming_connections", _connections())]
    calls = _CALLS + STREAMS * len(handlers.gate.neighbours)
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=calls)
    server.add_generic_rpc_handlers((handlers,))
    try:
        identity.listen(server, address)
    except RuntimeError:
        raise PeerError(f"node {identity.name}: {address} cannot be bound; is another process using it?") from None
    await server.start()
    try:
        await server.wait_for_termination()
    finally:
        await server.stop(grace=0)


def _connections() -> int:
    """The maximum number of connections that leaves files for the node itself, after raising the system limit."""
    try:
        import resource
    except ImportError:  # Windows
        return 4096
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY if hard == resource.RLIM_INFINITY else min(hard, _MANY)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(_MANY if soft == resource.RLIM_INFINITY else soft - _FILES, 64)
