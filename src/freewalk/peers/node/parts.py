"""One node, assembled: protocol, disk, connections and data."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from freewalk.designs.local import LocalKernel
from freewalk.peers.node.learner import Learner
from freewalk.peers.node.links import Gate, Link, Neighbour
from freewalk.peers.node.server import Handlers, Identity, serve
from freewalk.peers.node.service import Service
from freewalk.peers.node.store import Store
from freewalk.peers.protocol.messages import Settings
from freewalk.peers.protocol.node import Node


@dataclass(frozen=True)
class Parts:
    """The parts of a node.

    Attributes
    ----------
    identity
        Its name and certificate.
    address
        The address at which it listens.
    operator
        The name of the operator.
    neighbours
        The nodes it may communicate with.
    local, settings
        Its share of the kernel, and the settings that all nodes share.
    learner
        Its data.
    store
        Its disk.
    """

    identity: Identity
    address: str
    operator: str
    neighbours: Sequence[Neighbour]
    local: LocalKernel
    settings: Settings
    learner: Learner
    store: Store


async def work(parts: Parts, ready: Callable[[int], Awaitable[None]] | None = None) -> None:
    """Run a node until cancelled; `ready` receives the port as soon as it listens."""
    node = Node(parts.local, parts.settings, parts.store.load())
    links: dict[int, Link] = {}
    service = Service(node, parts.store, parts.learner, links)
    identity = parts.identity
    links.update({one.number: Link(one, identity.channel, identity.metadata, service.tell) for one in parts.neighbours})
    known = {one.name: one for one in parts.neighbours}
    store, form = parts.store, parts.learner.form
    gate = Gate(known, form, store.models, store.durable, service.tell, service.reply, service.unneeded)
    handlers = Handlers(parts.identity, parts.operator, service, gate)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(parts.identity, parts.address, handlers, ready))
        for link in links.values():
            tasks.create_task(link.run())
        tasks.create_task(service.run())
