"""What one node knows: its share of the table, and nothing else."""

import numpy as np
import pytest

import freewalk as fw
from freewalk import rng
from freewalk.designs.local import choose, outcome
from freewalk.errors import FreewalkError, KernelError

GRAPH = fw.graphs.star(5)
IMPORTANCE = np.array([8.0, 1.0, 2.0, 3.0, 4.0])


def test_a_node_knows_its_neighbours_and_its_weight():
    kernel = fw.designs.Metropolis(power=1).kernel(GRAPH, IMPORTANCE)
    centre, leaf = kernel.local(0), kernel.local(2)
    assert (centre.node, centre.neighbours.tolist()) == (0, [1, 2, 3, 4])
    assert (leaf.node, leaf.neighbours.tolist()) == (2, [0])
    assert leaf.weight == pytest.approx(IMPORTANCE.mean() / IMPORTANCE[2])
    assert leaf.probabilities == (1.0,)
    assert leaf.fade is None


def test_a_single_hop_is_decided_by_the_neighbours_ratios():
    kernel = fw.designs.Metropolis(power=1).kernel(GRAPH, IMPORTANCE)
    move = kernel.local(0).moves[0]
    ratios = kernel.moves[0].ratio
    assert move.ratio == ratios[0]
    assert np.array_equal(move.neighbour_ratios, ratios[1:])


def test_a_longer_move_knows_its_own_ratio_only():
    moves = fw.designs.MHLJ(0.5, 0.5, 3, corrected=True).kernel(GRAPH, IMPORTANCE).local(3).moves
    assert [move.hops for move in moves] == [1, 1, 2, 3]
    assert all(move.ratio is not None for move in moves)
    assert [move.neighbour_ratios is None for move in moves] == [False, False, True, True]


def test_a_move_without_a_ratio_knows_none():
    move = fw.designs.SimpleWalk().kernel(GRAPH).local(1).moves[0]
    assert (move.ratio, move.neighbour_ratios, move.rows) == (None, None, None)


def test_rows_are_the_nodes_own():
    matrix = 0.5 * np.eye(5) + 0.5 * GRAPH.adjacency().toarray() / GRAPH.degrees[:, None]
    local = fw.designs.FromMatrix(matrix).kernel(GRAPH).local(2)
    ((nodes, ends),) = local.moves[0].rows
    assert nodes.tolist() == [0, 2]
    assert np.array_equal(ends, rng.ends([0.5, 0.5]))
    assert local.hop(0, 0, np.uint64(0)) == 0
    assert local.hop(0, 0, np.uint64(2**64 - 1)) == 2


def test_uniform_hops_go_to_the_picked_neighbour():
    local = fw.designs.SimpleWalk().kernel(GRAPH).local(0)
    quarter = 2**62
    assert [local.hop(0, 0, np.uint64(k * quarter)) for k in range(4)] == [1, 2, 3, 4]


def test_nodes_choose_as_the_kernel_does():
    design = fw.designs.Decaying(fw.designs.MHLJ(0.9, 0.5, 2), fw.schedules.Inverse(1.0, scale=3))
    kernel = design.kernel(GRAPH, IMPORTANCE)
    for step in (0, 1, 50):
        ends = rng.ends(kernel.probabilities(step))[0]
        for draw in np.random.default_rng(step).integers(0, 2**64 - 1, 50, dtype=np.uint64):
            assert kernel.local(4).choose(step, draw) == choose(ends, draw)


def test_choose_gives_the_place_in_the_interval():
    ends = rng.ends([0.25, 0.0, 0.75])
    assert choose(ends, np.uint64(5)) == (0, 5, float(2**62))
    assert choose(ends, np.uint64(2**62)) == (2, 0, float(3 * 2**62))
    assert choose(ends, np.uint64(2**62 + 9)) == (2, 9, float(3 * 2**62))


def test_the_last_word_belongs_to_the_last_outcome():
    assert outcome(rng.ends([0.5, 0.5]), np.uint64(2**64 - 1)) == 1


def test_no_node_can_act_on_a_global_law():
    kernel = fw.designs.Centralized().kernel(GRAPH, label="the server")
    with pytest.raises(KernelError, match=r"the server: draws from a distribution over all nodes; no node can act"):
        kernel.local(0)


@pytest.mark.parametrize("node", [-1, 5])
def test_there_must_be_such_a_node(node):
    with pytest.raises(FreewalkError, match="node"):
        fw.designs.SimpleWalk().kernel(GRAPH).local(node)
