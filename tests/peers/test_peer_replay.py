"""Without faults real peers visit the nodes of `reference` and end with its model."""

import random
import time

import numpy as np
import pytest
from networks import MHLJ, REMEMBERS, assert_same, patient, play, repeated, written

from freewalk.peers.node.store import Store
from freewalk.peers.protocol.custody import Node

WORLD = 'kind = "watts_strogatz"\nn = 20\nk = 4\np = 0.1\nseed = 1'
SGD = 'rule = { kind = "SGD", step = 3e-3 }'
WALKS = {
    "Metropolis": 'design = { kind = "Metropolis", power = 1.0 }\n' + SGD,
    "MHLJ": MHLJ,
    "corrected": 'design = { kind = "MHLJ", jump = 0.3, stop = 0.5, hops = 3, corrected = true }\n' + SGD,
    "NonBacktracking": REMEMBERS,
    "SAG": 'design = { kind = "SimpleWalk" }\nrule = { kind = "SAG", step = 1e-3 }',
}


def test_durations_do_not_depend_on_what_time_the_nodes_think_it_is(tmp_path, monkeypatch):
    """Their clocks may be years apart, and may be set while a token is there."""
    hours, write = random.Random(1), Store.write
    monkeypatch.setattr(
        Store, "write", lambda store, actions, time, *more: write(store, actions, time + 3.6e7 * hours.random(), *more)
    )
    began = time.monotonic()
    record = play(written(tmp_path, steps=60, every=5)).record
    seconds = record.data.seconds.values[0]
    assert (np.diff(seconds) >= 0).all()
    assert 0 < seconds[-1] <= time.monotonic() - began


QUICK = [("Metropolis", 1), ("MHLJ", 1), ("corrected", 3), ("NonBacktracking", 3), ("SAG", 3)]
CASES = [(walk, tokens) for walk in WALKS for tokens in (1, 3)]


@pytest.mark.parametrize(
    ("walk", "tokens"), [pytest.param(*one, marks=[] if one in QUICK else [pytest.mark.long]) for one in CASES]
)
def test_twenty_nodes_walk_as_reference_does(walk, tokens, tmp_path):
    network = written(tmp_path, graph=WORLD, walk=f"{WALKS[walk]}\ntokens = {tokens}", steps=60, every=20)
    patient(network)
    collected = play(network)
    reference = repeated(network, collected)
    assert collected.departures == ()
    assert_same(collected, reference)
    for name in ("messages", "probes", "bytes", *(("consensus",) if tokens > 1 else ())):
        np.testing.assert_allclose(collected.record.data[name], reference.data[name], rtol=1e-9)
    assert (np.diff(collected.record.data.seconds) >= 0).all()
    assert collected.record.provenance["wire_bytes"] > 0


def test_six_nodes_remember_where_a_token_comes_from(tmp_path, monkeypatch):
    """Some offers are refused, and a model is lost for good: departures and a re-issue, and the replay is exact."""
    offer, transfer = Node._on_offer, Node._on_transfer

    def offered(node, sender, message):
        refused = message.point.step % 9 == 4
        node.closed = "not today" if refused else ""
        offer(node, sender, message)
        node.closed = ""

    def sent(node, sender, message):
        if message.token.point.step not in (20, 21) or message.token.point.generation.number > 0:
            transfer(node, sender, message)

    monkeypatch.setattr(Node, "_on_offer", offered)
    monkeypatch.setattr(Node, "_on_transfer", sent)
    network = written(tmp_path, walk=REMEMBERS, steps=100, every=20, lease=1.0)
    collected = play(network)
    (story,) = collected.stories
    assert len(story.departures) > 3
    assert story.reissues > 0
    ours, theirs = collected.record.data, repeated(network, collected).data
    assert np.array_equal(ours.path, theirs.path)
    assert ours.final.values.tobytes() == theirs.final.values.tobytes()
