"""Local means local: isolated nodes that talk to their neighbours alone visit the nodes that `reference` visits.

What runs here is the protocol of the real peers, `freewalk.peers.protocol`, in a world without faults. A node holds
`kernel.local(node)` and hands messages to its neighbours; it has never seen a graph or a kernel.
"""

import numpy as np
import pytest
from catalogue import DESIGNS, GRAPHS, begin, job_of, kernel_of
from world import World

from freewalk.errors import FreewalkError
from freewalk.peers.protocol import messages as say
from freewalk.peers.protocol.custody import Node
from freewalk.peers.protocol.messages import Settings
from freewalk.peers.protocol.token import Generation, Key, Position
from freewalk.runtimes import Reference

SEED, WALKS, STEPS = 21, 4, 40
LOCAL = [(design, graph) for design in DESIGNS for graph in GRAPHS if kernel_of(design, graph).is_local]


class Counting(World):
    """A world that counts what it carries along edges, and refuses all else."""

    def does(self, node, actions):
        for action in actions:
            if isinstance(action, say.Send):
                assert action.peer in self.locals[node].neighbours, f"{node} sends to {action.peer}"
                if isinstance(action.message, (say.Transfer, say.Probe, say.Answer)):
                    kind = "models" if isinstance(action.message, say.Transfer) else "probes"
                    self.carried[kind][action.message.key.walk] += 1
        super().does(node, actions)


@pytest.mark.parametrize(("design", "graph"), LOCAL, ids=[" on ".join(names) for names in LOCAL])
def test_peers_walk_as_reference_does(design, graph):
    kernel = kernel_of(design, graph)
    job = job_of(None, kernel, seed=SEED)
    state = begin(job, WALKS, STEPS)
    starts = state.nodes.tolist()
    Reference().engine(job).advance(state, STEPS, np.array([STEPS]))

    Counting.carried = {kind: np.zeros(WALKS, int) for kind in ("models", "probes")}
    settings = Settings(seed=SEED, steps=STEPS, every=STEPS, nodes=kernel.graph.n)
    world = Counting(kernel, settings, starts)
    world.settle()
    world.verify()

    for walk, key in enumerate(world.keys):
        (end,) = [node for node in range(kernel.graph.n) if key in world.disks[node] and world.disks[node][key].held]
        token = world.nodes[end].custody[key].held
        path = [*(node for _, node in token.payload[0]), end]
        assert path == state.paths[walk].tolist()
        assert (token.messages, token.probes) == (state.messages[walk], state.probes[walk])
        assert not [line for journal in world.journals for line in journal if line.kind == "departure"]
    assert np.array_equal(world.carried["models"], state.messages)
    assert np.array_equal(world.carried["probes"], state.probes)


def test_corrected_jumps_are_really_probed_and_refused():
    """The catalogue's corrected walk meets every case: accepted, refused, and come home."""
    kernel = kernel_of("MHLJ, corrected", "random")
    state = begin(job_of(None, kernel, seed=SEED), WALKS, STEPS)
    engine = Reference().engine(job_of(None, kernel, seed=SEED))
    cases = set()
    for step in range(STEPS):
        before = {name: getattr(state, name).copy() for name in ("nodes", "messages", "probes")}
        engine.advance(state, step + 1, np.array([], dtype=np.int64))
        for walk in np.flatnonzero(state.probes > before["probes"]):
            hops = state.messages[walk] - before["messages"][walk]
            probes = state.probes[walk] - before["probes"][walk]
            moved = state.nodes[walk] != before["nodes"][walk]
            assert (hops > 0) == moved
            if moved:
                assert probes == 2 * hops
            cases.add("accepted" if moved else "refused or home")
    assert cases == {"accepted", "refused or home"}


def test_strangers_and_nonsense_change_nothing():
    """From one that is no neighbour, of a generation that cannot be, or of a step that no walk has."""
    node = Node(kernel_of("SimpleWalk", "ring").local(0), Settings(seed=1, steps=10, every=1, nodes=12, generations=5))
    key, good = Key("run", 0), Position(Generation(0, 3), 2, 1)
    strange = [
        (5, say.Offer(key, good)),
        (1, say.Offer(key, good._replace(generation=Generation(2**63, 1)))),
        (1, say.Offer(key, good._replace(generation=Generation(1, 12)))),
        (1, say.Offer(key, good._replace(step=11))),
        (1, say.Offer(key, good._replace(hop=7))),
        (1, say.Known(key, Generation(6, 1))),
        (1, say.Answer(key, good, True, ())),
        (1, say.Probe(key, good, 1.0, (1, 1, 1, 1))),
    ]
    for sender, message in strange:
        assert node.handle(say.Packet(sender, message)) == []
        assert not node.custody
    assert [type(action.message) for action in node.handle(say.Packet(1, say.Offer(key, good)))] == [say.Accept]


def test_no_peer_can_be_made_of_a_global_law():
    with pytest.raises(FreewalkError, match="no node can act on its own"):
        kernel_of("Centralized, uniform", "ring").local(0)
