"""Ask neighbours, before a node starts, whether they belong to the same network."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from freewalk._version import __version__
from freewalk.errors import PeerError
from freewalk.peers.network.config import NodeConfig
from freewalk.peers.network.tables import Address
from freewalk.peers.node.links import HELLO, Neighbour
from freewalk.peers.node.process import identity_of
from freewalk.peers.node.server import Identity, greeting
from freewalk.peers.operator import operator_pb2 as ask
from freewalk.peers.protocol.messages import Settings

_PATIENCE = 5.0  # seconds for an answer
_TOGETHER = 64  # neighbours that are asked at the same time


def greet(config: NodeConfig) -> list[str]:
    """The problems with the neighbours of a node, each with a remedy.

    Parameters
    ----------
    config
        The configuration of the node, which may be running or not.

    Raises
    ------
    PeerError
        If its own certificate cannot be read.
    """
    return asyncio.run(_greet(config))


async def _greet(config: NodeConfig) -> list[str]:
    identity, settings, few = identity_of(config), config.settings(), asyncio.Semaphore(_TOGETHER)

    async def one(neighbour: Neighbour) -> list[str]:
        async with few:
            return await _asked(config, identity, settings, neighbour)

    neighbours = [Neighbour(one.number, one.name, one.address) for one in config.neighbours]
    return [wrong for found in await asyncio.gather(*map(one, neighbours)) for wrong in found]


async def _asked(config: NodeConfig, identity: Identity, settings: Settings, neighbour: Neighbour) -> list[str]:
    """The problems with one neighbour."""
    own, number = config.node.name, config.node.number
    try:
        async with identity.channel(neighbour) as channel:
            call = channel.unary_unary(HELLO, None, ask.Hello.FromString)
            asked = greeting(own, number, settings)
            told = await call(asked, timeout=_PATIENCE, metadata=identity.metadata)
    except grpc.aio.AioRpcError as error:
        return [await _silent(config, neighbour, error)]
    except ValueError as error:  # gRPC cannot use the key or the certificate, and gives no details
        raise PeerError(f"{config.source}: [security]: the certificate or its key cannot be used ({error})") from None
    return _differences(config, settings, neighbour, told)


def _differences(config: NodeConfig, settings: Settings, neighbour: Neighbour, told: Any) -> list[str]:
    """The differences between both configurations."""
    who, wrong = f"{neighbour.name} at {neighbour.address}", []
    if (told.name, told.number) != (neighbour.name, neighbour.number):
        wrong.append(
            f"{who} says that it is node {told.number}, {told.name!a}, expected node {neighbour.number}, "
            f"{neighbour.name!r}; correct [[neighbour]] here, or [node] there"
        )
    if told.version != __version__:
        wrong.append(
            f"{who} runs freewalk {ascii(told.version)[1:-1]}, but this node {__version__}, expected the same at all "
            "nodes; install the same version at both"
        )
    here = {"nodes": settings.nodes, "seed": settings.seed, "steps": settings.steps}
    places = {"nodes": "n in [walk]", "seed": "seed in [run]", "steps": "steps in [run]"}
    for name, value in here.items():
        other = getattr(told, name)
        if other != value:
            wrong.append(
                f"{who} has {places[name]} = {other}, but this node {value}, expected the same at all nodes; use "
                "configurations of the same network"
            )
    if not told.known:
        wrong.append(
            f"{who} has {config.node.name!r} under a number other than {config.node.number}; correct [[neighbour]] "
            "there, or [node] here"
        )
    return wrong


async def _silent(config: NodeConfig, neighbour: Neighbour, error: Any) -> str:
    """Why a neighbour gave no answer."""
    who, code = f"{neighbour.name} at {neighbour.address}", error.code()
    if code == grpc.StatusCode.PERMISSION_DENIED:
        return (
            f"{who} does not list {config.node.name!r} as a neighbour: the edge is configured on this side only; add "
            "[[neighbour]] there, or remove it here"
        )
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return f"{who} cannot answer: it runs another version of freewalk; install {__version__} there"
    reached = await _listens(Address.of(neighbour.address))
    if reached:
        return f"{who} does not answer ({reached}); start that node, or correct its address"
    if config.credentials is None:
        return f"{who} gives an unreadable answer; is it a node, and does it also use plain connections?"
    return (
        f"{who} answers, but the two do not accept each other's certificates: the one at the other end is not that of "
        f"{neighbour.name!r}, is signed by another authority, or is expired; check the address, compare authority.pem "
        "and run `freewalk node check` there"
    )


async def _listens(address: Address) -> str:
    """Why an address cannot be reached, or "" if something listens there."""
    try:
        opening = asyncio.open_connection(address.host, address.port)
        _, writer = await asyncio.wait_for(opening, _PATIENCE)
    except TimeoutError:
        return f"nothing within {_PATIENCE:g} seconds"
    except OSError as error:
        return str(error.strerror or error)
    writer.close()
    return ""
