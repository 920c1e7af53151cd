"""Checks of a node before it starts, with remedies; the last one asks its neighbours."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import TYPE_CHECKING, Any

from freewalk._version import __version__
from freewalk.errors import FreewalkError, PeerError, install_line
from freewalk.peers.network.config import Address, NeighbourTable, NodeConfig
from freewalk.peers.network.init import listening
from freewalk.peers.node.database import in_use
from freewalk.peers.node.process import exposed, identity_of

if TYPE_CHECKING:
    from freewalk.peers.node.server import Identity

#: The packages that a node needs, and their minimum versions.
PACKAGES = {"grpcio": (1, 80), "protobuf": (6, 31), "safetensors": (0, 4), "cryptography": (44,)}
_PATIENCE = 5.0  # seconds for an answer of a neighbour
_TOGETHER = 64  # neighbours that are asked at the same time

Found = tuple[str, list[str]]  # the result in words, and the problems with their remedies


def findings(config: NodeConfig) -> dict[str, Found]:
    """Check everything that a node needs; nothing is changed, and messages go only to its neighbours."""
    found = {}
    for check in (_packages, _certificate, _port, _data, _rule, _state, _neighbours):
        name = check.__name__.removeprefix("_")
        try:
            found[name] = check(config)
        except FreewalkError as error:
            found[name] = "", [str(error)]
    return found


def _packages(config: NodeConfig) -> Found:
    found, wrong = [f"freewalk {__version__}"], []
    for name, first in PACKAGES.items():
        try:
            there = version(name)
        except PackageNotFoundError:
            wrong.append(f"{name} is not installed; install it with: {install_line('peers')}")
            continue
        found.append(f"{name} {there}")
        if tuple(int(part) for part in re.findall(r"\d+", there)[:3]) < first:
            needed = ".".join(map(str, first))
            wrong.append(f"{name} is {there}, expected {needed} or newer; {install_line('peers')}")
    if config.run.version not in (None, __version__):
        wanted = config.run.version
        remedy = "pip install . (in a checkout of that version)"
        wrong.append(f"freewalk is {__version__}, but the network needs {wanted}; {remedy}")
    return ", ".join(found), wrong


def _certificate(config: NodeConfig) -> Found:
    if config.credentials is None:
        return "none: connections are plain, on this machine only", []
    from freewalk.peers.network import certificates

    if wrong := certificates.problems(*config.credentials, config.node.name):
        return "", wrong
    described = certificates.describe(config.credentials[0].read_bytes())
    return f"{described.name}, signed by {described.issuer}, valid until {described.ends:%Y-%m-%d}", []


def _port(config: NodeConfig) -> Found:
    address = Address.of(config.node.listen)
    try:
        listening(address.host, address.port).close()
    except OSError as error:
        if in_use(config.state):
            return f"{address}, where this node is running", []
        remedy = "stop the process that listens there, or give [node] another address and tell its neighbours"
        return "", [f"cannot listen at {address} ({error.strerror or error}); {remedy}"]
    return f"{address} is free", []


def _data(config: NodeConfig) -> Found:
    share, wrong = config.share(), []
    if config.node.data.file is not None and exposed(file := config.folder / config.node.data.file):
        wrong.append(f"{file}: others than its owner may read it; chmod 600 {file}")
    count, numbers = share.samples, f"models of {config.run.dim:,} numbers"
    if count == 0:
        return f"none: this node is a relay for {numbers}", wrong
    return f"{type(share.objective).__name__}: {count:,} sample{'s' * (count != 1)}, {numbers}", wrong


def _rule(config: NodeConfig) -> Found:
    tokens = config.run.tokens
    return f"{config.rule}, {config.run.steps:,} updates of {tokens:,} token{'s' * (tokens != 1)}", []


def _state(config: NodeConfig) -> Found:
    place = config.state
    home = next(one for one in (place, *place.parents) if one.exists())
    try:
        if not home.is_dir():
            raise NotADirectoryError(20, "it is not a folder")
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return "", [f"{place}: cannot be written ({error.strerror or error}); give [node] another folder `state`"]
    if mode := exposed(place):
        return "", [f"{place}: others than its owner may open it (mode {mode}), expected 0700; chmod 700 {place}"]
    return f"{place} {'exists' if place.exists() else 'can be created'}", []


def _neighbours(config: NodeConfig) -> Found:
    many = len(config.neighbour)
    return f"{many}, and all answer" if many else "none", reach(config)


def reach(config: NodeConfig) -> list[str]:
    """The problems with the neighbours: whether they answer, admit this node, and agree on the edge and the run."""
    return asyncio.run(_reach(config))


async def _reach(config: NodeConfig) -> list[str]:
    identity, few = identity_of(config), asyncio.Semaphore(_TOGETHER)
    asked = (_asked(config, identity, few, one) for one in config.neighbour)
    return list(chain.from_iterable(await asyncio.gather(*asked)))


async def _asked(config: NodeConfig, identity: Identity, few: asyncio.Semaphore, one: NeighbourTable) -> list[str]:
    """The problems with one neighbour."""
    import grpc

    from freewalk.peers.node.links import HELLO
    from freewalk.peers.node.server import hello
    from freewalk.peers.operator import operator_pb2

    who = f"{one.name} at {one.address}"
    try:
        async with few, identity.channel(one) as channel:
            call = channel.unary_unary(HELLO, None, operator_pb2.Hello.FromString)
            asked = hello(config.node.name, config.node.number, config.settings())
            told = await call(asked, timeout=_PATIENCE, metadata=identity.metadata)
    except grpc.aio.AioRpcError as error:
        return [f"{who} {await _silent(config, one, error.code().name)}"]
    except ValueError as error:  # gRPC cannot use the key or the certificate, and gives no details
        raise PeerError(f"{config.source}: [security]: the certificate or its key cannot be used ({error})") from None
    return [f"{who} {wrong}" for wrong in _differences(config, one, told)]


def _differences(config: NodeConfig, neighbour: NeighbourTable, told: Any) -> Iterator[str]:
    """The differences between both configurations."""
    if (told.name, told.number) != (neighbour.name, neighbour.number):
        known = f"node {neighbour.number}, {neighbour.name!r}"
        yield f"is node {told.number}, {told.name!a}, expected {known}; correct [[neighbour]] here, or [node] there"
    if told.version != __version__:
        other = ascii(told.version)[1:-1]
        yield f"runs freewalk {other}, but this node {__version__}, expected the same at all nodes; install one version"
    settings = config.settings()
    for name, place in {"nodes": "n in [walk]", "seed": "seed in [run]", "steps": "steps in [run]"}.items():
        here, there = getattr(settings, name), getattr(told, name)
        if here != there:
            yield f"has {place} = {there}, but this node {here}, expected the same at all nodes of a network"
    if not told.known:
        me = f"{config.node.name!r} under a number other than {config.node.number}"
        yield f"has {me}; correct [[neighbour]] there, or [node] here"


async def _silent(config: NodeConfig, neighbour: NeighbourTable, code: str) -> str:
    """Why a neighbour gave no answer."""
    if code == "PERMISSION_DENIED":
        edge = "the edge is configured on this side only; add [[neighbour]] there, or remove it here"
        return f"does not list {config.node.name!r} as a neighbour: {edge}"
    if code == "UNIMPLEMENTED":
        return f"cannot answer: it runs another version of freewalk; install {__version__} there"
    if reached := await _listens(Address.of(neighbour.address)):
        return f"does not answer ({reached}); start that node, or correct its address"
    if config.credentials is None:
        return "gives an unreadable answer; is it a node, and does it also use plain connections?"
    return (
        "answers, but the two do not accept each other's certificates: the one at the other end is not that of "
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
