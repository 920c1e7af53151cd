"""Whoever attacks a network, and the network that is attacked: walks under way, disks that must not change."""

import asyncio
import itertools
import logging
import os
import re
import shutil
import sqlite3
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import numpy as np
from networks import nodes, repeated

from freewalk.peers.node import links, process
from freewalk.peers.node.links import METHOD, VERSION
from freewalk.peers.operator import collect
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.token import Generation, Key, Position, Warrant
from freewalk.peers.protocol.wire import pb

ROOM = 200 * 2**20  # bytes that an attack may cost
LINES = 100  # that an attack may write to the log
TARGET, NEIGHBOUR, FAR = 1, 0, 4  # on a ring of six
NUMBERS = itertools.count()


def known(network, node=TARGET):
    """A node, as others know it."""
    return network.nodes[node]


def identity(network, node=NEIGHBOUR):
    """The identity of a node, stolen."""
    return process.identity_of(network.config(node))


async def sent(channel, datas=(), method=METHOD, pause=None, metadata=()):
    """What becomes of a stream of messages; `pause` is waited for before each."""

    async def stream():
        for data in datas:
            if pause is not None:
                await pause()
            yield data

    try:
        await channel.stream_unary(method)(stream(), timeout=60, metadata=(VERSION, *metadata))
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def sent_by_neighbour(network, datas, node=NEIGHBOUR):
    """What becomes of messages from a neighbour."""
    me = identity(network, node)
    async with me.channel(known(network)) as channel:
        return await sent(channel, datas, metadata=me.metadata)


def lies(network, liar, key, points):
    """What a neighbour might say of a walk without having its token, as messages; it signs them itself."""
    own, nodes = process.trust_of(network.config(liar)), len(network.nodes)
    others = [node for node in (liar + 1, liar + nodes // 2) if node < nodes] or [0]
    for number in (0, 1, 2, 9_999):
        for generation in (Generation(number, other) for other in others):
            for proof in (b"", own.sign(key, generation)):
                warrant = Warrant(network.signatures.permit(key, network.starts[key.walk]), proof)
                yield from (say.Known(key, generation, warrant), say.Last(key, generation, None, warrant))
    for point in points:
        later = [point, point._replace(step=point.step + 1), point._replace(hop=point.hop + 1)]
        yield from (say.Release(key, one, digest) for one in later for digest in ("", "00" * 32))
        yield from (say.Received(key, one) for one in later[1:])
    for number in range(20):
        invented = Key(f"invented-{number}", 0)
        generation = Generation(1, liar)
        yield say.Known(invented, generation, Warrant(own.permit(invented, liar), own.sign(invented, generation)))
        yield say.Coming(invented, Position(Generation(0, liar), 1, 1))


class Tap:
    """All messages from one node to another, as they are sent."""

    def __init__(self, monkeypatch, network, sender=NEIGHBOUR, receiver=TARGET):
        self.messages, send = [], links.Link.send
        names = network.nodes[sender].name, network.nodes[receiver].name

        def tapped(link, message):
            if (link.dial.__self__.name, link.neighbour.name) == names:
                self.messages.append(message)
            return send(link, message)

        monkeypatch.setattr(links.Link, "send", tapped)


def disk(network, node=TARGET):
    """All that is on the disk of a node: the rows of its database, and its files."""
    state = network.config(node).state
    with TemporaryDirectory() as folder:
        for file in state.glob("node.sqlite*"):
            shutil.copy(file, folder)
        connection = sqlite3.connect(Path(folder, "node.sqlite"))
        try:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            rows = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}
        finally:
            connection.close()
    return rows, sorted(file.name for file in (state / "models").iterdir())


async def calm(network):
    """Wait until no node owes another anything: with all walks over, nothing is written then."""
    owing = True
    while owing:
        await asyncio.sleep(0.05)
        rows = [row for one in network.nodes for row in disk(network, one.number)[0]["custody"]]
        owing = any(pb.Custody.FromString(state).owed for _, state in rows)


def finish(coroutine):
    """Run something that might never end."""
    return asyncio.run(asyncio.wait_for(coroutine, 300))


def memory():
    """The bytes that this process occupies."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@asynccontextmanager
async def walking(network):
    """Walks under way, one after the other, until the block is over; all are those of a simulation."""
    runs, over = [], asyncio.Event()

    async def walk():
        while not (runs and over.is_set()):
            run = f"walk-{next(NUMBERS)}"
            await collect.launch(network, run)
            await collect.finished(network, run, 300)
            runs.append(run)

    task = asyncio.create_task(walk())
    try:
        yield
        over.set()
        await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    for run in {runs[0], runs[-1]}:
        collected = await collect.collect(network, run)
        assert collected.departures == ()
        same(network, collected)


def same(network, collected):
    """A run is that of `reference`."""
    ours, theirs = collected.record.data, repeated(network, collected).data
    assert np.array_equal(ours.path, theirs.path)
    np.testing.assert_allclose(ours.final, theirs.final, rtol=1e-9, atol=1e-12)


async def refusals(network, node=TARGET):
    """How many calls and messages a node has refused."""
    async with collect.operator_of(network) as operator:
        return (await operator.status(node)).refused


class Log(logging.Handler):
    """What nodes write to their logs."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(self.format(record))

    def check(self, few=LINES):
        """There are few lines, and no secrets or data in them."""
        assert len(self.lines) <= few, self.lines
        for line in self.lines:
            assert line.isprintable(), line
            assert not re.search(r"BEGIN|PRIVATE|-----|array\(|\[ *-?\d+\.\d|[0-9A-Za-z+/]{65}", line), line


@asynccontextmanager
async def attacked(network, log, idle=True, few=LINES):
    """A network to attack in the block, with the walks under way; `idle` gives an attack that comes before any walk."""
    async with nodes(network):
        if idle:
            before = disk(network)
            await idle()
            while disk(network)[1] != before[1]:  # the file of a model that was refused goes soon
                await asyncio.sleep(0.01)
            assert disk(network) == before
        took = memory()
        async with walking(network):
            yield
        assert memory() - took < ROOM
    log.check(few)
