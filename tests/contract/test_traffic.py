"""The expected messages and probes of a move are those that the walks of every design count."""

import numpy as np
import pytest
from catalogue import DESIGNS, GRAPHS, kernel_of

import freewalk as fw
from freewalk.analysis.chain.traffic import messages_per_visit
from freewalk.errors import AnalysisError

REPLICAS = 4000
NAMES = [(design, graph) for design in DESIGNS for graph in GRAPHS]
ON_EVERY_GRAPH = pytest.mark.parametrize(("design", "graph"), NAMES, ids=[" on ".join(names) for names in NAMES])


def counted(kernel, step=0):
    """Mean messages and probes of one move from each node, over many walks."""
    starts = np.repeat(np.arange(kernel.graph.n), REPLICAS)
    data = fw.walk(kernel, steps=1, walks=starts.size, start=starts, seed=11).data
    return [data[name].values[:, -1].reshape(kernel.graph.n, REPLICAS).mean(axis=1) for name in ("messages", "probes")]


def slack(expected, largest):
    """By Bernstein's inequality (the variance is at most largest · mean), exceeded once in 10⁵ comparisons at most."""
    return np.sqrt(2 * 12 * largest * expected / REPLICAS) + 2 * 12 * largest / (3 * REPLICAS)


def off(found, expected, largest):
    return bool((np.abs(found - expected) > slack(expected, largest)).any())


@ON_EVERY_GRAPH
def test_what_a_move_sends(design, graph):
    kernel = kernel_of(design, graph).at(0)
    if kernel.memory is not None and kernel.memory.counts:
        with pytest.raises(AnalysisError, match="VisitCounts"):
            messages_per_visit(kernel)
        return
    messages, probes = counted(kernel)
    longest = max(1, *(move.hops for move in kernel.moves if move.probability > 0))
    expected, asked = messages_per_visit(kernel)
    assert not off(messages, expected, longest)
    assert not off(probes, asked, 2 * longest)


def test_mistakes_would_be_seen():
    """Power: a refused step counted as a message, a jump of one hop too many, no answer to a probe."""
    kernel = kernel_of("MHLJ", "ring")
    messages, _ = counted(kernel)
    expected, _ = messages_per_visit(kernel)
    mean = sum(move.probability * move.hops for move in kernel.moves)
    assert off(messages, np.full(kernel.graph.n, mean), 3)
    assert off(messages, expected + 0.3, 4)
    corrected = kernel_of("MHLJ, corrected", "star")
    asked = sum(move.probability * move.hops for move in corrected.moves if move.hops > 1)
    assert off(counted(corrected)[1], np.full(corrected.graph.n, asked), 8)


def test_five_ring_by_hand():
    """At the heavy node .9 · 1/100 + .1 · 11/7, elsewhere .9 + .1 · 11/7."""
    kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    messages, probes = messages_per_visit(kernel)
    np.testing.assert_allclose(messages, [0.009 + 1.1 / 7, *[0.9 + 1.1 / 7] * 4], rtol=1e-12)
    assert not probes.any()


def test_corrected_jumps_of_two_hops_by_hand():
    """On a ring of 4, two hops come home half of the time: 2 probes, else 4."""
    kernel = fw.Kernel(fw.graphs.ring(4), [fw.Move(1.0, hops=2, ratio=[4.0, 1.0, 1.0, 1.0])], np.ones(4))
    messages, probes = messages_per_visit(kernel)
    np.testing.assert_allclose(probes, 3.0)
    np.testing.assert_allclose(messages, [2 * 0.5 * 0.25, 1.0, 1.0, 1.0])


def test_small_chances_are_not_lost():
    kernel = fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(5), [1e20, 1, 1, 1, 1])
    assert messages_per_visit(kernel)[0][0] == pytest.approx(1e-20)


def test_what_it_refuses():
    with pytest.raises(AnalysisError, match=r"kernel\.at\(step\)"):
        messages_per_visit(kernel_of("Decaying", "ring"))
    with pytest.raises(AnalysisError, match="expected a kernel"):
        messages_per_visit(np.eye(3))
