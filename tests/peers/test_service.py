"""The loop around the protocol: what is written when, and what waits for it."""

import asyncio
from collections import Counter

import numpy as np
import pytest

import freewalk as fw
from freewalk.peers.node import service as module
from freewalk.peers.node.data import Updater
from freewalk.peers.node.service import Service
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.custody import Node
from freewalk.peers.protocol.messages import Settings
from freewalk.peers.protocol.payload import Payload
from freewalk.peers.protocol.token import Generation, Key, Position, Token
from freewalk.peers.protocol.wire import OLDEST, decode, encode

KEY = Key("run", 0)
KERNEL = fw.designs.SimpleWalk().kernel(fw.graphs.path(2))
PROBLEM = fw.objectives.LeastSquares.synthetic(2, dim=3, samples=2, seed=1)


class Notes:
    """A disk and a wire that write down what they are given, in one list."""

    def __init__(self):
        self.all, self.sent = [], {}

    def head(self, run):
        return b""

    def write(self, actions, time, now, sent):
        self.sent |= sent
        self.all.append([type(action).__name__ for action in actions])

    def send(self, message):
        self.all.append(type(message).__name__)
        return 0


def service(notes, path, kernel=KERNEL):
    node = Node(kernel.local(0), Settings(seed=1, steps=100, every=100, nodes=kernel.graph.n))
    updater = Updater(PROBLEM.local(0), fw.SGD(step=0.01), 1.0, node.settings, 3, "float64", path)
    return Service(node, notes, updater, dict.fromkeys(node.neighbours, notes))


def token(step, path):
    point = Position(Generation(0, 1), step, 1)
    return Token(point, Payload.of({"x": np.zeros(3)}, path), False, point.generation)


async def events(at_work, *several):
    for event in several:
        at_work.tell(say.Packet(1, event))
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_hand_over_takes_one_write(tmp_path):
    async def run():
        notes = Notes()
        at_work = service(notes, tmp_path)
        task = asyncio.create_task(at_work.run())
        first = token(1, tmp_path)
        await events(at_work, say.Transfer(KEY, first))
        offer = at_work.node.stages[KEY].point
        writes = [one for one in notes.all if isinstance(one, list)]
        assert len(writes) == 1
        assert "Journal" in writes[0]
        assert notes.all.index(writes[0]) < notes.all.index("Received")
        notes.all.clear()
        # It goes on, the copy is dropped later, and the token comes back: all of that is one write.
        await events(at_work, say.Accept(KEY, offer), say.Received(KEY, offer), say.Released(KEY, first.point))
        await events(at_work, say.Release(KEY, offer))
        assert notes.all == ["Transfer", "Release"]
        await events(at_work, say.Transfer(KEY, token(3, tmp_path)))
        writes = [one for one in notes.all if isinstance(one, list)]
        assert len(writes) == 1
        place = notes.all.index(writes[0])
        assert all(one in notes.all[place:] and one not in notes.all[:place] for one in ("Received", "Released"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_the_age_of_a_token_is_one_that_its_receiver_believes(tmp_path):
    """Whatever a neighbour said of it."""

    async def run():
        notes = Notes()
        at_work = service(notes, tmp_path)
        notes.send = lambda message: notes.all.append(message) or 0
        at_work.reply(1, say.Transfer(KEY, token(1, tmp_path)._replace(began=-1e10)))
        assert decode(encode(notes.all[0])).token.began == OLDEST

    asyncio.run(run())


def test_what_nobody_waits_for_is_written_soon_and_at_the_end(tmp_path):
    async def run(wait):
        notes = Notes()
        at_work = service(notes, tmp_path)
        task = asyncio.create_task(at_work.run())
        at_work.tell(say.Launch(KEY, Payload.of({"x": np.zeros(3)}, tmp_path)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert notes.all == ["Offer", "Coming"]
        await wait(at_work, notes)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert [one for one in notes.all if isinstance(one, list)] == [["Save", "Save", "Journal"]]

    async def a_while(at_work, notes):
        while len(notes.all) < 3:
            await asyncio.sleep(0.01)

    async def until_settled(at_work, notes):
        await at_work.settled()
        assert len(notes.all) == 3

    async def not_at_all(at_work, notes):
        pass

    for wait in (a_while, until_settled, not_at_all):
        asyncio.run(run(wait))


def test_timers_ring_when_they_were_set_for_the_last_time(tmp_path):
    async def run():
        at_work = service(Notes(), tmp_path)
        rung = []
        at_work.tell = lambda event: rung.append(event.name)
        for name, seconds in [("a", 0.01), ("b", 0.01), ("c", 30.0), ("d", 0.01)]:
            at_work._set(say.Timer(KEY, name, seconds))
        at_work._set(say.Timer(KEY, "b", None))  # stopped
        at_work._set(say.Timer(KEY, "c", 0.02))  # earlier than before
        at_work._set(say.Timer(KEY, "d", 0.05))  # later
        while len(rung) < 3:
            await asyncio.sleep(0.01)
        assert rung == ["a", "c", "d"]
        assert not at_work._due
        assert not at_work._timers

    asyncio.run(run())


@pytest.mark.parametrize("signs", [False, True])
def test_each_neighbour_has_a_quota_of_walks(tmp_path, monkeypatch, signs):
    """Where nothing is signed; one that uses up its own takes nothing from the others, or from the operator."""
    monkeypatch.setattr(module, "_WALKS", 3)

    async def run():
        at_work = service(Notes(), tmp_path, fw.designs.SimpleWalk().kernel(fw.graphs.ring(3)))
        monkeypatch.setattr(at_work.node.trust, "signs", signs)
        task = asyncio.create_task(at_work.run())
        await asyncio.sleep(0)

        def told(peer, run):
            for walk in range(10):
                at_work.tell(say.Packet(peer, say.Known(Key(run, walk), Generation(1, peer))))

        for peer in (1, 2):
            told(peer, f"of-{peer}")
        at_work.tell(say.Launch(KEY, Payload.of({"x": np.zeros(3)}, tmp_path)))
        most = 10 if signs else 3  # what is signed is limited by the operator
        assert Counter(key.run for key in at_work.node.custody) == {"of-1": most, "of-2": most, "run": 1}
        at_work.tell(say.Forget("of-1"))
        told(1, "again")
        assert Counter(key.run for key in at_work.node.custody) == {"again": most, "of-2": most, "run": 1}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_bytes_of_runs_that_nobody_knows_are_counted_for_few(tmp_path, monkeypatch):
    """A neighbour could invent names, which are written to the disk and told to the operator."""

    async def run():
        notes = Notes()
        at_work = service(notes, tmp_path)
        monkeypatch.setattr(notes, "send", lambda _: 7)
        task = asyncio.create_task(at_work.run())
        await events(at_work, *(say.Ask(Key(f"invented-{number}", 0)) for number in range(2000)))
        await events(at_work, say.Transfer(KEY, token(1, tmp_path)))
        counted = {*at_work.sent, *notes.sent}
        assert KEY.run in counted
        assert len(counted) <= 1001
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
