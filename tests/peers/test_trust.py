"""What nodes believe: walks that the operator launched, generations that their issuer signed, models that were seen."""

import random as randomness
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from schedules import LARGER, Faults, chance
from world import Model, World

import freewalk as fw
from freewalk.errors import PeerError
from freewalk.peers.network.certificates import Authority, Signatures
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.custody import Node
from freewalk.peers.protocol.messages import Settings
from freewalk.peers.protocol.token import Generation, Key, Position, Token, Trust, Warrant
from freewalk.peers.protocol.wire import pb

KEY = Key("run", 0)
OWN, OTHER = Authority.new("freewalk own"), Authority.new("freewalk other")
KERNEL = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
SETTINGS = Settings(seed=1, steps=100, every=100, nodes=5)


def signatures(number=None, name=None, authority=OWN):
    issued = authority.issue(name or ("operator" if number is None else f"node-{number:04d}"), number=number)
    return Signatures(issued.certificate, issued.key, OWN.certificate, "operator", number)


OPERATOR, NODES = signatures(), [signatures(number) for number in range(5)]


def test_what_the_operator_signs_and_nobody_else():
    here = signatures(0)
    assert not here.permits(KEY, b"")
    assert not here.permits(KEY, b"nonsense")
    for liar in (NODES[1], signatures(name="operator", authority=OTHER)):
        assert not here.permits(KEY, liar.permit(KEY, 2))
    permit = OPERATOR.permit(KEY, 2)
    for other in (Key("run", 1), Key("other", 0)):
        assert not here.permits(other, permit)
    moved = pb.Signed.FromString(permit)
    moved.start = 3
    assert not here.permits(KEY, moved.SerializeToString())
    assert here.permits(KEY, permit)
    assert here.permits(KEY, b"")  # it has been seen
    assert here.proves(KEY, Generation(0, 2), b"")
    assert not here.proves(KEY, Generation(0, 3), b"")


def test_what_the_issuer_of_a_generation_signs_and_nobody_else():
    here, generation = NODES[0], Generation(7, 3)
    proof = NODES[3].sign(KEY, generation)
    assert here.proves(KEY, generation, proof)
    for wrong in (Generation(8, 3), Generation(7, 4)):
        assert not here.proves(KEY, wrong, proof)
    assert not here.proves(Key("run", 1), generation, proof)
    for liar in (NODES[4], OPERATOR, signatures(3, authority=OTHER)):
        assert not here.proves(KEY, generation, liar.sign(KEY, generation))
    for wrong in (b"", b"nonsense", proof[:-1]):
        assert not here.proves(KEY, generation, wrong)


def test_a_certificate_without_a_number_cannot_sign():
    issued = OWN.issue("node-0001")
    with pytest.raises(PeerError, match=r"does not name node 1.* network init --upgrade"):
        Signatures(issued.certificate, issued.key, OWN.certificate, "operator", 1)


# A node that knows the token of a walk, and neighbours (1 and 3) that lie.


def holding(trust=None):
    """Node 2, at work on the first update of a token that was launched there."""
    node = Node(KERNEL.local(2), SETTINGS, trust=trust or signatures(2))
    node.handle(say.Launch(KEY, Model(), OPERATOR.permit(KEY, 2)))
    assert node.custody[KEY].held is not None
    return node


def told(node, *messages, sender=1):
    return [action for message in messages for action in node.handle(say.Packet(sender, message))]


def test_a_launch_that_nobody_signed_is_none():
    node = Node(KERNEL.local(2), SETTINGS, trust=signatures(2))
    assert node.handle(say.Launch(KEY, Model(), OPERATOR.permit(KEY, 3))) == []
    assert not node.custody


@pytest.mark.parametrize("issuer", range(5))
@pytest.mark.parametrize("number", [0, 1, 5000])
def test_a_generation_that_its_issuer_did_not_sign_ends_no_walk(number, issuer):
    """One `Known` with a number was enough to end a walk for good."""
    generation, permit = Generation(number, issuer), OPERATOR.permit(KEY, 2)
    node, liar = holding(), NODES[1]
    before = dict(node.custody)
    proofs = [b""] if issuer == 1 and number > 0 else [b"", liar.sign(KEY, generation)]
    for warrant in [Warrant(permit, proof) for proof in proofs]:
        point = Position(generation, 9, 1)
        lineage = (point,) if number else ()
        token = Token(point, Model(), False, Generation(0, 2 if number else issuer), lineage)
        lies = [say.Known(KEY, generation, warrant), say.Last(KEY, generation, None, warrant)]
        if generation != Generation(0, 2):
            lies.append(say.Transfer(KEY, token, warrant=warrant))
        assert not [one for one in told(node, *lies) if isinstance(one, (say.Save, say.Journal))]
    assert node.custody == before


def test_invented_walks_leave_nothing():
    node = Node(KERNEL.local(2), SETTINGS, trust=signatures(2))
    for walk in range(200):
        key = Key("invented", walk)
        generation = Generation(walk % 2, 1)
        warrant = Warrant(NODES[1].permit(key, 1), NODES[1].sign(key, generation))
        point = Position(generation, 3, 1)
        token = Token(point, Model(), False, Generation(0, 1), (point,) if generation.number else ())
        lies = [say.Known(key, generation, warrant), say.Last(key, generation, point, warrant), say.Coming(key, point)]
        actions = told(node, *lies, say.Transfer(key, token, warrant=warrant), say.Released(key, point))
        assert not [one for one in actions if isinstance(one, (say.Save, say.Timer, say.Journal))]
    assert not node.custody
    assert not node.ahead
    assert not node.stages


def restarted(custody):
    """The node after a crash: it asks its neighbours whether its token is still its own."""
    node = Node(KERNEL.local(2), SETTINGS, custody, signatures(2))
    node.restart()
    assert node.stages[KEY].name == "doubt"
    return node


def test_a_guessed_release_erases_nothing():
    """A neighbour that has never had the token said, after a restart, that it is safe elsewhere: and it was gone."""
    held = holding()
    for guess in (Position(Generation(0, 2), 1, 1), Position(Generation(0, 2), 50, 1)):
        for first in ((), (say.Received(KEY, guess),), (say.Last(KEY, Generation(0, 2), guess),)):
            for digest in ("", "00" * 32):
                node = restarted(held.custody)
                told(node, *first, say.Release(KEY, guess, digest), say.Release(KEY, guess, digest))
                assert node.custody[KEY].token == held.custody[KEY].token
                assert node.stages[KEY].name == "kept"
    told(node, say.Release(KEY, guess, held.custody[KEY].token.payload.digest))  # who knows the model has had it
    assert node.custody[KEY].token is None


def test_a_neighbour_that_acknowledges_no_release_is_owed_one():
    """The debts are written with each hop."""
    node = Node(KERNEL.local(2), SETTINGS, trust=signatures(2))
    warrant, launched = Warrant(OPERATOR.permit(KEY, 1)), Generation(0, 1)
    for step in range(1, 20):
        token = Token(Position(launched, step, 1), Model(), False, launched)
        told(node, say.Transfer(KEY, token, warrant=warrant))
    assert [loan.point.step for loan in node.custody[KEY].owed] == [18]


def test_nobody_has_received_what_was_not_sent():
    node = holding()
    point = node.custody[KEY].token.point
    node.handle(say.Computed(KEY, point, Model(((0, 2),)), None, finite=True))
    stage = node.stages[KEY]
    assert stage.name == "offering"
    model = node.custody[KEY].token.payload.digest
    for lie in (say.Received(KEY, stage.point), say.Renew(KEY, stage.point), say.Release(KEY, stage.point, model)):
        told(node, lie, sender=stage.peer)
        assert node.custody[KEY].held is not None
        assert node.stages[KEY] == stage


def test_walks_that_are_over_are_not_talked_about():
    node = holding()
    node._reissue(KEY)
    node._taken()
    known = [one for one in node.handle(say.Alarm(None, "gossip")) if isinstance(one, say.Send)]
    assert {type(one.message) for one in known} == {say.Known}
    ended = node.custody[KEY].token._replace(diverged=True)
    node.custody[KEY] = node.custody[KEY]._replace(token=ended)
    node.handle(say.Collect(KEY, ended.point))
    assert node.custody[KEY].collected
    assert node.handle(say.Alarm(None, "gossip")) == []
    assert node.handle(say.Connected(1)) == []
    again = Node(KERNEL.local(2), SETTINGS, node.custody, signatures(2))
    assert not [one for one in again.restart() if isinstance(one, say.Timer)]


@pytest.mark.parametrize("step", [0, 100])
def test_a_walk_that_goes_on_is_not_collected(step):
    """Whatever end the operator was told of: the token here has not finished."""
    node = holding()
    held = node.custody[KEY].token
    node.handle(say.Collect(KEY, held.point._replace(step=step)))
    assert node.custody[KEY].held == held
    assert not node.custody[KEY].collected


def test_a_walk_that_is_re_issued_is_not_collected_any_more():
    node = holding()
    token = node.custody[KEY].token
    there = token.point._replace(step=1, hop=1)
    node._lend(KEY, 1, there)
    node.handle(say.Collect(KEY, there))
    assert node.custody[KEY].collected
    node.handle(say.Alarm(KEY, "deadline"))
    node.handle(say.Alarm(KEY, "deadline"))
    assert node.custody[KEY].held.point.generation == Generation(1, 2)
    assert not node.custody[KEY].collected


def test_what_was_forgotten_stays_forgotten():
    node = holding()
    token = node.custody[KEY].token
    actions = node.handle(say.Forget("run"))
    assert say.Erase("run") in actions
    assert [node.custody, node.stages, node.ahead, node.timers] == [{}, {}, {}, set()]
    moved = token._replace(point=Position(Generation(0, 2), 3, 1))
    warrant = Warrant(OPERATOR.permit(KEY, 2))
    assert told(node, say.Transfer(KEY, moved, warrant=warrant), say.Offer(KEY, moved.point), say.Ask(KEY)) == []
    assert node.handle(say.Launch(KEY, Model(), warrant.permit)) == []
    again = Node(KERNEL.local(2), SETTINGS, {}, signatures(2), ["run"])
    assert told(again, say.Transfer(KEY, moved, warrant=warrant)) == []


def test_a_neighbour_that_is_down_is_not_waited_for():
    node = holding(Trust())
    peer, _ = node._onward(KEY, node.custody[KEY].token.point)
    node.handle(say.Disconnected(peer))
    update = say.Computed(KEY, node.custody[KEY].token.point, Model(((0, 2),)), None, finite=True)
    lines = [one for one in node.handle(update) if isinstance(one, say.Journal)]
    assert [line.kind for line in lines] == ["update", "departure"]
    assert lines[1].note == f"node {peer} is down"
    while True:  # the next updates, until one is to leave again
        there, _ = node._onward(KEY, node.custody[KEY].token.point)
        if there is not None:
            break
        token = node.custody[KEY].token
        node.handle(say.Computed(KEY, token.point, token.payload, None, finite=True))
    node.handle(say.Connected(peer))
    token = node.custody[KEY].token
    node.handle(say.Computed(KEY, token.point, token.payload, None, finite=True))
    assert node.stages[KEY].name == "offering"
    assert any(one.kind == "departure" for one in node.handle(say.Disconnected(there)) if isinstance(one, say.Journal))


def test_a_node_that_is_alone_waits():
    """Otherwise it would make all updates of the walk itself, as fast as it can."""
    node = holding(Trust())
    peer, _ = node._onward(KEY, node.custody[KEY].token.point)
    other = next(one for one in node.neighbours if one != peer)
    update = say.Computed(KEY, node.custody[KEY].token.point, Model(((0, 2),)), None, finite=True)
    node.handle(say.Disconnected(peer))
    node.handle(say.Disconnected(other))
    node.handle(update)
    assert node.stages[KEY].name == "offering"
    lines = [one for one in node.handle(say.Alarm(KEY, "deadline")) if isinstance(one, say.Journal)]
    assert [line.note for line in lines] == [f"no answer from node {peer}"]


# What travels with a token.

LAUNCHED = Generation(0, 1)


def handed(step=1, **more):
    return Token(Position(LAUNCHED, step, 1), Model(), False, **{"origin": LAUNCHED} | more)


def issued(generation, step=1, hop=1):
    """A token that was re-issued in a way that cannot be."""
    return {"lineage": (Position(Generation(1, 0), step, hop), Position(generation, 1, 1))}


IMPOSSIBLE = {
    "more of memory than nodes": {"kept": tuple((node, 1) for node in range(700_000))},
    "memory at no node": {"kept": ((5, 1),)},
    "memory of what is to come": {"kept": ((3, 2),)},
    "messages": {"messages": 2**63 - 1},
    "probes": {"probes": 2**63 - 1},
    "launched by nobody": {"origin": Generation(0, 10**6)},
    "issued by nobody": issued(Generation(2, 10**6)),
    "issued too late": issued(Generation(2, 0), step=10**9),
    "issued too far": issued(Generation(2, 0), hop=10**9),
}


@pytest.mark.parametrize("change", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_comes_with_a_token_is_possible(change):
    node = Node(KERNEL.local(2), replace(SETTINGS, stores=True), trust=Trust())
    assert told(node, say.Transfer(KEY, handed(**change))) == []
    assert not node.custody
    assert told(node, say.Transfer(KEY, handed(kept=((0, 1), (4, 1)))))


def test_a_rule_that_stores_nothing_has_no_memory():
    """A node where something was said to be stopped the walk."""
    node = Node(KERNEL.local(2), SETTINGS, trust=Trust())
    assert told(node, say.Transfer(KEY, handed(kept=((2, 1),)))) == []
    assert not node.custody


def test_a_token_within_the_bounds_stays_there():
    """However much it is said to have sent, all nodes accept it on its way."""
    token, sender, here = handed(messages=say.SENT + 1, probes=say.SENT + 1), 1, 2
    for _ in range(30):
        node = Node(KERNEL.local(here), SETTINGS, trust=Trust())
        actions = told(node, say.Transfer(KEY, token), sender=sender)
        assert actions
        while node.stages[KEY].name != "offering":
            due = node.custody[KEY].token
            node.handle(say.Computed(KEY, due.point, Model(), None, finite=True))
        stage = node.stages[KEY]
        (sent,) = [
            one for one in told(node, say.Accept(KEY, stage.point), sender=stage.peer) if isinstance(one, say.Send)
        ]
        token, sender, here = sent.message.token, here, stage.peer
        assert token.messages > say.SENT


@pytest.mark.parametrize("design", [fw.designs.SimpleWalk(), fw.designs.MHLJ(0.5, 0.5, 3, corrected=True)], ids=repr)
def test_a_probe_whose_start_has_no_ratio_is_not_answered(design):
    """One was enough to stop a node: the end of a jump divides by the ratio of its start."""
    node = Node(design.kernel(fw.graphs.ring(5), [1.0, 5.0, 1.0, 1.0, 1.0]).local(2), SETTINGS, trust=Trust())
    for step in range(1, 50):
        assert told(node, say.Probe(KEY, Position(LAUNCHED, step, 0), 0.0, (1,))) == []


REMEMBERS = fw.designs.NonBacktracking(fw.designs.SimpleWalk()).kernel(fw.graphs.ring(5))


@pytest.mark.parametrize("claimed", [0, 2, 3, 10**6, 2**62])
@pytest.mark.parametrize("kernel", [KERNEL, REMEMBERS], ids=["without memory", "with memory"])
def test_nobody_says_where_a_token_comes_from(kernel, claimed):
    """It comes from who sends it, and a message that says more is none of ours."""
    node = Node(kernel.local(2), SETTINGS, trust=Trust())
    assert told(node, say.Transfer(KEY, handed(previous=claimed))) == []
    assert not node.custody
    assert told(node, say.Transfer(KEY, handed()))
    assert node.custody[KEY].token.previous == (1 if kernel is REMEMBERS else -1)


def test_a_walk_that_remembers_comes_only_from_where_it_can():
    """Not along an edge that the matrix never takes: there would be no way back."""
    ring, matrix = fw.graphs.ring(5), np.eye(5) / 2
    for one, other in ((0, 1), (1, 2), (3, 4), (4, 0)):
        matrix[one, other] = matrix[other, one] = 0.25
    matrix[range(5), range(5)] += 1 - matrix.sum(axis=1)
    kernel = fw.designs.NonBacktracking(fw.designs.FromMatrix(matrix)).kernel(ring)
    node = Node(kernel.local(2), SETTINGS, trust=Trust())
    point = handed().point
    for lie in (say.Offer(KEY, point), say.Coming(KEY, point), say.Transfer(KEY, handed())):
        assert told(node, lie, sender=3) == []
        assert not node.believes(3, lie)
    assert not node.custody
    assert told(node, say.Offer(KEY, point), sender=1)


# Whole worlds.


class Signed(World):
    """A world in which everything is signed, and a node, besides its duties, lies to its neighbours."""

    liar, lies = 3, 0

    def __init__(self, kernel, settings, starts):
        super().__init__(kernel, settings, starts, signing)

    def permit(self, key, start):
        return OPERATOR.permit(key, start)

    def lie(self, random):
        """Something that the liar cannot know, or cannot sign, about a token that others have."""
        key = random.choice(self.keys)
        known = [custody for disk in self.disks if (custody := disk.get(key)) and custody.seen]
        seen = random.choice(known).seen
        point = random.choice([seen, seen._replace(step=seen.step + 1), seen._replace(hop=seen.hop + 1)])
        number = seen.generation.number + random.randrange(3)
        forged = Generation(number, random.choice([one for one in range(len(self.nodes)) if one != self.liar]))
        warrant = Warrant(OPERATOR.permit(key, 0), NODES[self.liar].sign(key, forged))
        there = random.choice(self.locals[self.liar].neighbours)
        lies = [say.Known(key, forged, warrant), say.Last(key, forged, None, warrant), say.Release(key, point)]
        lies += [say.Query(key, point), say.Known(Key("invented", 1), forged, warrant), say.Ask(key)]
        node = self.nodes[there]
        if node is not None and (key not in node.stages or node.stages[key].name != "doubt"):
            self.handle(there, say.Packet(self.liar, random.choice(lies)))
            Signed.lies += 1


def signing(local, settings, custody=None):
    return Node(local, settings, custody, NODES[local.node])


@pytest.mark.parametrize("seed", range(12))
def test_whoever_is_honest_is_believed_and_lies_change_nothing(seed):
    """Schedules of faults in a world of signatures: no walk ends early, no update is lost or made twice."""
    random, before = randomness.Random(seed), Signed.lies

    class Lying(Signed):
        def deliver(self, index, keep=False):
            super().deliver(index, keep)
            if random.random() < 0.2:
                self.lie(random)

    settings = Settings(seed=seed, steps=8, every=5, nodes=5, stores=seed % 2 == 0)
    faults = Faults(crash=4, drop=4, twice=4, deadline=3, retry=20)
    make = partial(Lying, LARGER[seed % 4], settings, [0, 2][: 1 + seed % 2])
    world = chance(random, make, faults, 200, aim=0.5)
    assert world.over()
    assert Signed.lies > before
