"""Local means local: isolated nodes that talk to their neighbours alone visit the nodes that `reference` visits.

A peer holds `kernel.local(node)` and the end of a wire to each neighbour; it has never seen a graph or a kernel. What
travels is a small packet of plain numbers. Its kinds are

- `model`: the walk itself, at the start of a step or on the way through a jump;
- `probe`: a jump that must be accepted at its end, with the ratio of its start;
- `answer`: what the end decided, sent back over the same way.

The words of a step are drawn anew by whoever needs them: they depend on the seed, the walk and the step alone.
"""

from collections import deque

import numpy as np
import pytest
from catalogue import DESIGNS, GRAPHS, begin, job_of, kernel_of

from freewalk import rng
from freewalk.errors import FreewalkError
from freewalk.runtimes import Reference

SEED, WALKS, STEPS = 21, 4, 40
LOCAL = [(design, graph) for design in DESIGNS for graph in GRAPHS if not design.startswith("Centralized")]


class NotANeighbour(Exception):
    pass


class Network:
    """Delivers packets along edges, refuses all others, and counts what it has carried."""

    def __init__(self):
        self.peers = {}
        self.waiting = deque()
        self.carried = {"model": np.zeros(WALKS, int), "probe": np.zeros(WALKS, int)}

    def add(self, local):
        def send(there, packet):
            if there not in local.neighbours:
                raise NotANeighbour(f"{local.node} sends to {there}")
            if not all(type(value) in (int, float, str, bool) for value in packet.values()):
                raise TypeError(f"only plain numbers travel: {packet}")
            kind = "model" if packet["kind"] == "model" else "probe"
            self.carried[kind][packet["walk"]] += 1
            self.waiting.append((local.node, there, packet))

        self.peers[local.node] = Peer(local, send)

    def run(self):
        while self.waiting:
            here, there, packet = self.waiting.popleft()
            self.peers[there].receive(here, dict(packet))


class Peer:
    """One node: its share of the kernel, a way to send, and a note of whom each probe came from."""

    def __init__(self, local, send):
        self.local = local
        self.send = send
        self.came_from = {}
        self.log = []  # (walk, step) of every visit

    def receive(self, sender, packet):
        kind = packet.pop("kind")
        if kind == "model":
            self.carry(**packet)
        elif kind == "probe":
            self.came_from[packet["walk"], packet["step"], packet["hop"]] = sender
            self.probe(**packet)
        else:
            self.answer(**packet)

    def word(self, walk, step, index):
        return rng.word(np.uint64(SEED), rng.MOVE, np.uint64(walk), np.uint64(step), np.uint64(index))

    def hop(self, walk, step, move, hop):
        return self.local.hop(move, hop, self.word(walk, step, hop + 1))

    def visit(self, walk, step):
        """The model is here at this step, and the next move begins."""
        self.log.append((walk, step))
        if step == STEPS:
            return
        move, offset, width = self.local.choose(step, self.word(walk, step, 0))
        share = self.local.moves[move]
        if share.ratio is None or share.hops == 0:
            self.carry(walk, step, move, 0)
        elif share.hops == 1:
            there = self.hop(walk, step, move, 0)
            ratio = share.neighbour_ratios[np.searchsorted(self.local.neighbours, there)]
            if rng.accepts(offset, width, share.ratio, ratio):
                self.carry(walk, step, move, 0)
            else:
                self.visit(walk, step + 1)
        else:
            self.probe(walk, step, 0, self.local.node, share.ratio)

    def carry(self, walk, step, move, hop):
        """Hand the model on, hop after hop; a row may keep it here for a hop."""
        while hop < self.local.moves[move].hops:
            there = self.hop(walk, step, move, hop)
            hop += 1
            if there != self.local.node:
                self.send(there, {"kind": "model", "walk": walk, "step": step, "move": move, "hop": hop})
                return
        self.visit(walk, step + 1)

    def probe(self, walk, step, hop, start, ratio):
        """Send a probe on, or decide where it ends."""
        move, offset, width = self.local.choose(step, self.word(walk, step, 0))
        share = self.local.moves[move]
        if hop < share.hops:
            packet = {"kind": "probe", "walk": walk, "step": step, "hop": hop + 1, "start": start, "ratio": ratio}
            self.send(self.hop(walk, step, move, hop), packet)
        elif start == self.local.node:
            self.visit(walk, step + 1)  # the probe came home: whatever the answer, the model stays
        else:
            self.answer(walk, step, hop, bool(rng.accepts(offset, width, ratio, share.ratio)))

    def answer(self, walk, step, hop, accepted):
        """Send the answer back to where the probe came from; at its start the model follows the probe, or stays."""
        if hop > 0:
            back = self.came_from.pop((walk, step, hop))
            self.send(back, {"kind": "answer", "walk": walk, "step": step, "hop": hop - 1, "accepted": accepted})
        elif accepted:
            move, _, _ = self.local.choose(step, self.word(walk, step, 0))
            self.carry(walk, step, move, 0)
        else:
            self.visit(walk, step + 1)


@pytest.mark.parametrize(("design", "graph"), LOCAL, ids=[" on ".join(names) for names in LOCAL])
def test_peers_walk_as_reference_does(design, graph):
    kernel = kernel_of(design, graph)
    job = job_of(None, kernel, seed=SEED)
    state = begin(job, WALKS, STEPS)
    starts = state.nodes.tolist()
    Reference().engine(job).advance(state, STEPS, np.array([STEPS]))

    network = Network()
    for node in range(kernel.graph.n):
        network.add(kernel.local(node))
    for walk, node in enumerate(starts):
        network.peers[node].visit(walk, 0)
    network.run()

    paths = np.full((WALKS, STEPS + 1), -1)
    for node, peer in network.peers.items():
        for walk, step in peer.log:
            assert paths[walk, step] == -1, "a walk was at two nodes at once"
            paths[walk, step] = node
    assert np.array_equal(paths, state.paths)
    assert np.array_equal(network.carried["model"], state.messages)
    assert np.array_equal(network.carried["probe"], state.probes)


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


def test_a_peer_can_reach_its_neighbours_only():
    network = Network()
    network.add(kernel_of("SimpleWalk", "ring").local(0))
    with pytest.raises(NotANeighbour):
        network.peers[0].send(5, {"kind": "model", "walk": 0})
    with pytest.raises(TypeError, match="only plain numbers travel"):
        network.peers[0].send(1, {"kind": "model", "walk": 0, "graph": GRAPHS["ring"]})


def test_no_peer_can_be_made_of_a_global_law():
    with pytest.raises(FreewalkError, match="no node can act on its own"):
        kernel_of("Centralized, uniform", "ring").local(0)
