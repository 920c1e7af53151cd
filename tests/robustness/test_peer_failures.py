"""An update that raises stops its walk and not the node; a full disk closes a node, and custody is not broken."""

import asyncio

import pytest
from attackers import NUMBERS, Log, finish, same
from networks import nodes, written

from freewalk.errors import PeerError
from freewalk.peers.node import process, service
from freewalk.peers.node.data import Updater
from freewalk.peers.node.store import Store
from freewalk.peers.operator import collect, watch
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Key


@pytest.fixture
def network(tmp_path):
    return written(tmp_path, steps=40, every=20, lease=60)


@pytest.fixture
def log():
    handler, before = Log(), (process.log.level, list(process.log.handlers))
    process.log.addHandler(handler)
    process.log.setLevel("INFO")
    yield handler
    process.log.setLevel(before[0])
    process.log.handlers[:] = before[1]


@pytest.mark.parametrize("quick", [2e-3, -1.0])
def test_an_update_that_raises(network, log, monkeypatch, quick):
    """In the loop of the node, or beside it."""
    monkeypatch.setattr(service, "_QUICK", quick)
    update = Updater.update

    def raising(updater, asked):
        if asked.token.point.step == 7:
            raise ValueError("the row [0.123, 4.567] is secret")
        return update(updater, asked)

    async def fails():
        async with nodes(network):
            await collect.launch(network, "run")
            with pytest.raises(PeerError, match=r"an update raised ValueError \(test_peer_failures.py, line \d+\)"):
                await collect.finished(network, "run", 120)
            async with collect.operator_of(network) as operator:
                seen = await watch.glance(operator, network, "run")
            assert seen.over
            assert None not in seen.statuses.values()
            assert "raised ValueError" in watch.as_json(network, "run", seen)

    async def goes_on():
        async with nodes(network):
            await collect.finished(network, "run", 120)
            return await collect.collect(network, "run")

    monkeypatch.setattr(Updater, "update", raising)
    finish(fails())
    monkeypatch.setattr(Updater, "update", update)
    collected = finish(goes_on())
    assert collected.departures == ()
    same(network, collected)
    log.check()
    assert any("an update raised ValueError" in line for line in log.lines)
    assert not any("secret" in line for line in log.lines)


async def launched(network, operator, number, payload):
    """Launch other walks at a node until it refuses: it tries its disk again now and then."""
    while True:
        key = Key(f"other-{next(NUMBERS)}", 0)
        await operator.launch(number, key, payload, network.signatures.permit(key, number))


class Disk:
    """The disk of whichever node makes update number nine: from then on it is full, until there is room again."""

    def __init__(self, monkeypatch, where):
        self.victim, self.room = None, False
        write, update = Store.write, Updater.update

        def object_to(name):
            if name == self.victim and not self.room:
                raise PeerError("/somewhere: cannot be written (No space left on device); is the disk full?")

        def writing(store, *what):
            object_to(store.folder.parent.name)
            write(store, *what)

        def updating(updater, asked):
            name = updater.folder.parent.parent.name
            if asked.token.point.step == 8 and self.victim is None:
                self.victim = name
            if where == "model":
                object_to(name)
            return update(updater, asked)

        monkeypatch.setattr(service, "_AGAIN", 0.05)
        monkeypatch.setattr(Updater, "update", updating)
        if where == "store":
            monkeypatch.setattr(Store, "write", writing)

    async def closed(self, network, operator):
        """Wait until the node says that it is closed; returns its number."""
        while self.victim is None:
            await asyncio.sleep(0.01)
        number = next(one.number for one in network.nodes if one.folder == self.victim)
        while not (await operator.status(number)).closed:
            await asyncio.sleep(0.01)
        return number


@pytest.mark.parametrize("where", ["store", "model"])
def test_a_full_disk(network, log, monkeypatch, where):
    """The node that holds the token takes no others and says why; with room again the walk goes on."""
    disk = Disk(monkeypatch, where)

    async def play():
        async with nodes(network), collect.operator_of(network) as operator:
            await collect.launch(network, "run")
            number = await disk.closed(network, operator)
            payload = Payload.of(network.vectors()[0], network.folder)
            with pytest.raises(PeerError, match="No space left on device"):
                await launched(network, operator, number, payload)
            seen = await watch.glance(operator, network, "run")
            assert "No space left" in watch.as_json(network, "run", seen)
            disk.room = True
            await collect.finished(network, "run", 120)
            assert not (await operator.status(number)).closed
            return await collect.collect(network, "run")

    same(network, finish(play()))
    log.check()
    assert any("takes no tokens until its disk can be written" in line for line in log.lines)


def test_a_disk_that_stays_full(tmp_path, log, monkeypatch):
    """Whoever had the token before re-issues it, and the walk ends elsewhere; the node then hears of it."""
    network, disk = written(tmp_path, steps=40, every=20, lease=1.0), Disk(monkeypatch, "store")

    async def play():
        async with nodes(network), collect.operator_of(network) as operator:
            await collect.launch(network, "run")
            number = await disk.closed(network, operator)
            await collect.finished(network, "run", 300)
            assert (await operator.status(number)).closed
            disk.room = True
            while True:
                status = await operator.status(number)
                if not status.closed and not any(walk.held for walk in status.walks):
                    break
                await asyncio.sleep(0.05)
            return await collect.collect(network, "run")

    collected = finish(play())
    assert collected.stories[0].reissues > 0
    same(network, collected)
    log.check()
