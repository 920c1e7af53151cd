"""Offers that are made ahead: nobody waits for an answer that is here already, and nothing else changes."""

import pytest
from schedules import LARGER
from world import World

import freewalk as fw
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.custody import Node
from freewalk.peers.protocol.messages import Settings
from freewalk.peers.protocol.token import Generation, Key, Position

KEY = Key("run", 0)


class Waiting(Node):
    """Counts how often a token could go, and had to wait for an answer."""

    moves = waits = 0

    def _carry(self, key, token):
        super()._carry(key, token)
        if self.stages[key].name in ("offering", "sent"):
            Waiting.moves += 1
            Waiting.waits += self.stages[key].name == "offering"


class InTime(World):
    """A world in which messages arrive before updates are made."""

    def settle(self, patience=100_000):
        for _ in range(patience):
            if self.wires:
                self.deliver(0)
            elif any(self.works):
                node = next(node for node, works in enumerate(self.works) if works)
                self.compute(node)
                self.commit(node)
            elif any(self.pending):
                self.commit(next(node for node, pending in enumerate(self.pending) if pending))
            else:
                return


@pytest.mark.parametrize(
    "kernel", [*LARGER[:2], fw.designs.SimpleWalk().kernel(fw.graphs.ring(7)), LARGER[3]], ids=range(4)
)
def test_where_updates_take_longer_than_messages_no_token_waits(kernel):
    """But for the second hop of a jump, and those after it: a relay has no update to make, and asks when it has to."""
    Waiting.moves = Waiting.waits = 0
    world = InTime(kernel, Settings(seed=3, steps=30, every=30, nodes=kernel.graph.n), [0], Waiting)
    world.settle()
    world.verify()
    assert world.over()
    relayed = sum(max(0, node.mover.hops(0, step) - 2) for node in world.nodes[:1] for step in range(30))
    assert Waiting.moves > 15
    assert Waiting.waits <= relayed


def begun():
    """A node at work on an update, with an offer under way; returns both and what the node asked for."""
    node = Node(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)).local(2), Settings(1, 100, 100, 5))
    sent = [action for action in node.handle(say.Launch(KEY, "model")) if isinstance(action, say.Send)]
    (offer, coming) = sent
    assert isinstance(offer.message, say.Offer)
    assert coming.message == say.Coming(*offer.message)
    return node, offer.peer, offer.message.point


def updated(node):
    """What is sent, by kind, once the update has been made."""
    token = node.custody[KEY].token
    actions = node.handle(say.Computed(KEY, token.point, "better", None, finite=True))
    return [type(action.message).__name__ for action in actions if isinstance(action, say.Send)]


def test_an_answer_that_is_there_is_used_at_once():
    node, peer, point = begun()
    assert node.handle(say.Packet(peer, say.Accept(KEY, point))) == []
    assert updated(node) == ["Transfer"]


def test_an_answer_that_is_on_its_way_is_waited_for():
    node, peer, point = begun()
    assert updated(node) == []
    actions = node.handle(say.Packet(peer, say.Accept(KEY, point)))
    assert [action.message.token.payload for action in actions if isinstance(action, say.Send)] == ["better"]


@pytest.mark.parametrize("agreed", [False, True])
def test_an_old_answer_is_asked_for_again(agreed):
    node, peer, point = begun()
    if agreed:
        node.handle(say.Packet(peer, say.Accept(KEY, point)))
    node.handle(say.Alarm(KEY, "ahead"))
    assert updated(node) == ["Offer"]


def test_a_refusal_ahead_is_no_departure():
    node, peer, point = begun()
    node.handle(say.Packet(peer, say.Refuse(KEY, point, "its disk cannot be written")))
    assert updated(node) == ["Offer"]
    actions = node.handle(say.Packet(peer, say.Refuse(KEY, point, "its disk cannot be written")))
    assert "departure" in [action.kind for action in actions if isinstance(action, say.Journal)]


def test_an_answer_that_was_meant_for_another_hand_over_is_not_used():
    node, peer, point = begun()
    for other in (
        point._replace(generation=Generation(1, 4)),
        point._replace(step=2),
        Position(point.generation, 1, 2),
    ):
        node.handle(say.Packet(peer, say.Accept(KEY, other)))
    node.handle(say.Packet(4 - peer, say.Accept(KEY, point)))
    assert updated(node) == []


def test_who_is_told_of_a_token_asks_where_it_goes_next_and_keeps_nothing():
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    node = Node(kernel.local(3), Settings(1, 100, 100, 5))
    point = Position(Generation(0, 2), 1, 1)
    actions = node.handle(say.Packet(2, say.Coming(KEY, point)))
    (offer,) = [action for action in actions if isinstance(action, say.Send)]
    assert offer.message == say.Offer(KEY, Position(Generation(0, 2), 2, 1))
    assert offer.peer in (2, 4)
    assert not node.custody
    assert node.handle(say.Packet(2, say.Coming(KEY, point))) == []  # it has been asked
    node.handle(say.Alarm(KEY, "ahead"))
    assert not node.ahead
    last = Position(Generation(0, 2), 100, 1)
    assert node.handle(say.Packet(2, say.Coming(KEY, last))) == []  # it ends there


def test_who_is_told_of_a_token_that_remembers_asks_as_who_comes_from_there():
    """On a ring it goes on in its direction, whatever is drawn: the node to ask depends on who tells."""
    kernel = fw.designs.NonBacktracking(fw.designs.SimpleWalk()).kernel(fw.graphs.ring(5))
    for step in range(1, 20):
        for sender in (2, 4):
            node = Node(kernel.local(3), Settings(1, 100, 100, 5))
            actions = node.handle(say.Packet(sender, say.Coming(KEY, Position(Generation(0, sender), step, 1))))
            (offer,) = [action for action in actions if isinstance(action, say.Send)]
            assert (offer.peer, offer.message.point.step) == (6 - sender, step + 1)
