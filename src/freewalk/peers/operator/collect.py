"""Launch the walks of a network, wait for them, and collect the results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from freewalk.errors import PeerError
from freewalk.peers.network.init import Network
from freewalk.peers.node.links import Neighbour
from freewalk.peers.node.server import Identity, point_of
from freewalk.peers.operator.journal import Collected, Line, Story, join, tell
from freewalk.peers.operator.operator import Operator
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Key, Position

_GLANCE = 0.2  # seconds between polls of a run


class Whereabouts(NamedTuple):
    """The position of a token, as reported by the nodes.

    Attributes
    ----------
    key
        The token.
    node
        The node that holds it; None if no answering node does.
    point
        Its progress.
    stage
        What its holder is doing with it.
    messages, probes
        The messages and probes it has sent.
    finished, diverged
        Whether it has finished, and whether it diverged.
    failure
        Why it cannot continue, or "".
    digest, size
        Digest and size of its model.
    """

    key: Key
    node: int | None
    point: Position
    stage: str
    messages: int
    probes: int
    finished: bool
    diverged: bool
    failure: str
    digest: str
    size: int


def operator_of(network: Network) -> Operator:
    """The operator, who may call all nodes of a network."""
    certificate, key, authority = [path.read_bytes() for path in network.credentials or ()] or (None, None, None)
    identity = Identity(network.table.operator, certificate, key, authority)
    return Operator(identity, [Neighbour(one.number, one.name, one.address) for one in network.nodes])


def keys(network: Network, run: str) -> list[Key]:
    """The tokens of a run."""
    return [Key(run, walk) for walk in range(network.table.run.tokens)]


async def launch(network: Network, run: str) -> None:
    """Launch all tokens of a run; those already launched are left alone.

    Raises
    ------
    PeerError
        If a node does not answer, or refuses.
    """
    with TemporaryDirectory() as folder:
        async with operator_of(network) as operator:
            for key, start, vectors in zip(keys(network, run), network.starts, network.vectors(), strict=True):
                await operator.launch(start, key, Payload.of(vectors, Path(folder)))


def whereabouts(run: str, statuses: dict[int, Any]) -> list[Whereabouts]:
    """The positions of the tokens of a run: of each, the newest that any node holds."""
    found: dict[Key, Whereabouts] = {}
    for node, status in statuses.items():
        for walk in () if status is None else status.walks:
            key = Key(walk.run, walk.walk)
            if walk.run != run or not walk.HasField("point"):
                continue
            here = Whereabouts(
                key,
                node if walk.held else None,
                point_of(walk.point),
                walk.stage,
                walk.messages,
                walk.probes,
                walk.finished,
                walk.diverged,
                walk.failure,
                walk.digest,
                walk.size,
            )
            known = found.get(key)
            if known is None or (here.point, here.node is not None) > (known.point, known.node is not None):
                found[key] = here
    return [found[key] for key in sorted(found)]


async def finished(
    network: Network, run: str, patience: float | None, look: Callable[[Any], None] | None = None
) -> None:
    """Wait until all tokens of a run have finished.

    Raises
    ------
    PeerError
        If that takes longer than `patience` seconds, or a token cannot continue.
    """
    until = None if patience is None else time.monotonic() + patience
    async with operator_of(network) as operator:
        while True:
            statuses = await operator.statuses()
            here = whereabouts(run, statuses)
            if look is not None:
                look(here)
            failed = [one for one in here if one.failure]
            if failed:
                raise PeerError(f"walk {failed[0].key.walk} is stuck at node {failed[0].node}: {failed[0].failure}")
            if len(here) == network.table.run.tokens and all(one.finished for one in here):
                return
            if until is not None and time.monotonic() > until:
                waiting = [one.key.walk for one in here if not one.finished]
                raise PeerError(f"run {run!r} has not finished after {patience:g} s: walks {waiting} are still running")
            await asyncio.sleep(_GLANCE)


async def collect(network: Network, run: str, release: bool = True) -> Collected:
    """Collect a finished run: its models, and the record assembled from all journals.

    Parameters
    ----------
    network
        The network.
    run
        The name of the run.
    release
        Whether the nodes may release the finished tokens afterwards.

    Raises
    ------
    PeerError
        If a node does not answer, a walk has not finished, or the journals are inconsistent.
    """
    task, table = network.task, network.table
    async with operator_of(network) as operator:
        journals = await asyncio.gather(*(operator.journal(node.number) for node in network.nodes))
        lines = [line for journal in journals for line in journal if line.key.run == run]
        stories = [tell(key, lines, table.run.steps) for key in keys(network, run)]
        with TemporaryDirectory() as folder:
            models = await _models(operator, stories, table.run.every, Path(folder))
            launched = min(line.time for line in lines)
            collected = join(
                task.job, task.start.steps, task.start.every, task.models, stories, launched, models.__getitem__
            )
        statuses = await operator.statuses()
        sent = sum(edge.sent for status in statuses.values() if status is not None for edge in status.edges)
        collected.record.provenance["wire_bytes"] = int(sent)
        if release:
            for key, story in zip(keys(network, run), stories, strict=True):
                await operator.collect(story.end.node, key, story.end.point)
    return collected


async def _models(operator: Operator, stories: list[Story], every: int, folder: Path) -> dict[Line, Any]:
    """The vectors that the journals kept at the marks."""
    found = {}
    for story in stories:
        for line in story.updates:
            if line.digest:
                payload = await operator.fetch(line, folder)
                found[line] = {name: np.array(vector) for name, vector in payload.arrays().items()}
    return found
