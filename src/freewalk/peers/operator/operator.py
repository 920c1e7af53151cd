"""The operator's calls to a network: launch walks, get the status of nodes, collect results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from freewalk.errors import PeerError
from freewalk.peers.node.links import Neighbour
from freewalk.peers.node.server import OPERATE, Identity, point_of
from freewalk.peers.operator import operator_pb2 as ask
from freewalk.peers.operator.journal import Line
from freewalk.peers.protocol.payload import SMALL, Incoming, Payload
from freewalk.peers.protocol.token import Key, Position

_PATIENCE = 10.0  # seconds for an answer
_START = "`freewalk network up` starts all nodes on this machine"


class Operator:
    """Calls the nodes of a network.

    Parameters
    ----------
    identity
        The identity of the operator.
    nodes
        All nodes, by number.
    """

    def __init__(self, identity: Identity, nodes: Sequence[Neighbour]) -> None:
        self.identity, self.nodes = identity, {node.number: node for node in nodes}
        self._channels: dict[int, Any] = {}

    async def __aenter__(self) -> Self:
        """Prepare to call."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all channels."""
        for channel in self._channels.values():
            await channel.close()

    def _channel(self, node: int) -> Any:
        if node not in self._channels:
            self._channels[node] = self.identity.channel(self.nodes[node])
        return self._channels[node]

    async def status(self, node: int, patience: float = _PATIENCE) -> Any:
        """The status of a node; None if it does not answer.

        Raises
        ------
        PeerError
            If it rejects the operator.
        """
        call = self._channel(node).unary_unary(OPERATE + "Status", ask.Ask.SerializeToString, ask.Status.FromString)
        try:
            return await call(ask.Ask(), timeout=patience, metadata=self.identity.metadata)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.PERMISSION_DENIED:
                raise PeerError(f"node {self.nodes[node].name} rejects {self.identity.name!r}") from None
            return None

    async def statuses(self, patience: float = 2.0) -> dict[int, Any]:
        """The status of all nodes; None for those that do not answer."""
        found = await asyncio.gather(*(self.status(node, patience) for node in self.nodes))
        return dict(zip(self.nodes, found, strict=True))

    async def launch(self, node: int, key: Key, payload: Payload) -> None:
        """Hand a new token to a node; a token that it already knows is not launched again.

        Raises
        ------
        PeerError
            If it is refused, or the node does not answer.
        """
        call = self._channel(node).stream_unary(OPERATE + "Launch", ask.Launch.SerializeToString, ask.Done.FromString)
        patience = _PATIENCE + payload.size / 1e6
        asked = call(_launch(key, payload), timeout=patience, metadata=self.identity.metadata)
        done = await self._answered(node, asked)
        if done.problem:
            raise PeerError(f"node {self.nodes[node].name} does not launch walk {key.walk}: {done.problem}")

    async def journal(self, node: int, after: int = 0) -> list[Line]:
        """The lines of a node's journal after a given number.

        Raises
        ------
        PeerError
            If the node does not answer.
        """
        call = self._channel(node).unary_stream(OPERATE + "Journal", ask.Lines.SerializeToString, ask.Line.FromString)
        try:
            return [_line(node, told) async for told in call(ask.Lines(after=after), metadata=self.identity.metadata)]
        except grpc.aio.AioRpcError as error:
            raise self._unreachable(node, error) from None

    async def fetch(self, line: Line, folder: Path) -> Payload:
        """The model that a line of a journal kept; a large one is written to a folder.

        Raises
        ------
        PeerError
            If the node no longer has it, or does not answer.
        """
        stub = self._channel(line.node).unary_stream(
            OPERATE + "Fetch", ask.Fetch.SerializeToString, ask.Piece.FromString
        )
        call = stub(ask.Fetch(digest=line.digest), metadata=self.identity.metadata)
        try:
            if line.size <= SMALL:
                return Payload.holding(b"".join([piece.data async for piece in call]))
            incoming = Incoming(folder, line.digest, line.size)
            try:
                async for piece in call:
                    incoming.write(piece.data)
                return incoming.finish()
            finally:
                incoming.abandon()
        except grpc.aio.AioRpcError as error:
            raise self._unreachable(line.node, error) from None

    async def collect(self, node: int, key: Key, point: Position) -> None:
        """Tell a node that its finished token is safe here."""
        call = self._channel(node).unary_unary(OPERATE + "Collect", ask.Collect.SerializeToString, ask.Done.FromString)
        asked = ask.Collect(run=key.run, walk=key.walk)
        asked.point.number, asked.point.issuer = point.generation
        asked.point.step, asked.point.hop = point.place
        await self._answered(node, call(asked, timeout=_PATIENCE, metadata=self.identity.metadata))

    async def _answered(self, node: int, call: Any) -> Any:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise self._unreachable(node, error) from None

    def _unreachable(self, node: int, error: Any) -> PeerError:
        known, why = self.nodes[node], str(error.details())[:200]
        remedy = f"; {_START}" if error.code() == grpc.StatusCode.UNAVAILABLE else ""
        return PeerError(f"node {known.name} at {known.address} does not answer: {why}{remedy}")


async def _launch(key: Key, payload: Payload) -> AsyncIterator[Any]:
    data = payload.data or b""
    yield ask.Launch(run=key.run, walk=key.walk, digest=payload.digest, size=payload.size, data=data)
    if payload.data is None:
        for data in payload.chunks():
            yield ask.Launch(data=data)


def _line(node: int, told: Any) -> Line:
    return Line(
        node,
        told.number,
        told.time,
        Key(told.run, told.walk),
        told.kind,
        point_of(told.point),
        told.note,
        told.digest,
        told.size,
        told.messages,
        told.probes,
        point_of(told.origin).generation,
        tuple(point_of(point) for point in told.lineage),
    )
