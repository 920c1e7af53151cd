"""How the designs hang together: limits, special cases, and the paper's closed form."""

import numpy as np
import pytest
from chains import FIXED, connected_graphs, weighted_graphs
from hypothesis import given
from hypothesis import strategies as st

import freewalk as fw
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.designs.mhlj import truncated_geometric

JUMPS = st.tuples(st.floats(0, 1), st.floats(0.05, 1), st.integers(1, 5))


def dense(design, graph, importance=None, step=0):
    return design.kernel(graph, importance).matrix(step).toarray()


def hop(graph):
    return graph.adjacency().toarray() / graph.degrees[:, None]


def levy(graph, stop, hops):
    weights = truncated_geometric(stop, hops)
    return sum(w * np.linalg.matrix_power(hop(graph), i) for i, w in enumerate(weights, 1))


@FIXED
@given(weighted_graphs(), JUMPS)
def test_mhlj_mixes_importance_sampling_and_jumps(example, jumps):
    graph, importance = example
    jump, stop, hops = jumps
    expected = (1 - jump) * dense(Metropolis(power=1), graph, importance) + jump * levy(graph, stop, hops)
    assert np.allclose(dense(MHLJ(jump, stop, hops), graph, importance), expected, atol=1e-14)


@FIXED
@given(weighted_graphs(), JUMPS)
def test_no_jumps_is_importance_sampling_and_only_jumps_is_levy(example, jumps):
    graph, importance = example
    _, stop, hops = jumps
    plain = dense(Metropolis(power=1), graph, importance)
    assert np.array_equal(dense(MHLJ(0.0, stop, hops), graph, importance), plain)
    assert np.allclose(dense(MHLJ(0.0, stop, hops, corrected=True), graph, importance), plain, atol=1e-15)
    assert np.allclose(dense(MHLJ(1.0, stop, hops), graph, importance), levy(graph, stop, hops), atol=1e-14)


@FIXED
@given(weighted_graphs(), st.floats(0.05, 1), st.integers(1, 6))
def test_jumps_of_one_hop_are_the_simple_walk(example, stop, hops):
    graph, importance = example
    simple = dense(SimpleWalk(), graph)
    assert np.allclose(dense(MHLJ(1.0, 1.0, hops), graph, importance), simple, atol=1e-15)
    assert np.allclose(dense(MHLJ(1.0, stop, 1), graph, importance), simple, atol=1e-15)
    assert np.allclose(simple, hop(graph), atol=1e-15)


@FIXED
@given(connected_graphs())
def test_metropolis_for_the_degrees_is_the_simple_walk(graph):
    assert np.allclose(dense(Metropolis(target=graph.degrees), graph), hop(graph), atol=1e-15)


@FIXED
@given(weighted_graphs())
def test_the_uniform_proposal_may_be_spelled_out(example):
    graph, importance = example
    spelled = dense(Metropolis(power=1, proposal=hop(graph)), graph, importance)
    assert np.allclose(spelled, dense(Metropolis(power=1), graph, importance), atol=1e-14)


@FIXED
@given(weighted_graphs())
def test_a_power_is_a_target(example):
    graph, importance = example
    by_target = dense(Metropolis(target=importance**0.5), graph)
    assert np.allclose(dense(Metropolis(power=0.5), graph, importance), by_target, rtol=1e-9, atol=1e-14)


def closed_form(graph, stop, hops):
    """Σ w_i diag(A^i 1)⁻¹ A^i, as the paper prints it."""
    adjacency = graph.adjacency().toarray()
    powers = [np.linalg.matrix_power(adjacency, i) for i in range(1, hops + 1)]
    weights = truncated_geometric(stop, hops)
    return sum(w * power / power.sum(axis=1, keepdims=True) for w, power in zip(weights, powers, strict=True))


@FIXED
@given(weighted_graphs(), JUMPS)
def test_the_closed_form_is_the_papers_matrix(example, jumps):
    graph, importance = example
    jump, stop, hops = jumps
    expected = (1 - jump) * dense(Metropolis(power=1), graph, importance) + jump * closed_form(graph, stop, hops)
    assert np.allclose(dense(ClosedFormMHLJ(jump, stop, hops), graph, importance), expected, atol=1e-13)


@pytest.mark.parametrize("graph", [fw.graphs.ring(9), fw.graphs.complete(6)], ids=repr)
def test_on_regular_graphs_the_closed_form_is_mhlj(graph):
    importance = np.arange(1.0, graph.n + 1)
    both = [dense(design(0.4, 0.5, 4), graph, importance) for design in (MHLJ, ClosedFormMHLJ)]
    assert np.allclose(*both, atol=1e-14)


def test_on_irregular_graphs_the_closed_form_differs():
    """The largest distance between rows is that of two different walks, not a rounding."""
    graph = fw.graphs.barabasi_albert(100, 2, seed=1)
    both = [dense(design(1.0, 0.5, 3), graph, np.ones(100)) for design in (MHLJ, ClosedFormMHLJ)]
    assert 0.05 < np.abs(both[0] - both[1]).sum(axis=1).max() / 2 < 0.5
    assert np.allclose(both[1].sum(axis=1), 1)


@FIXED
@given(weighted_graphs(), st.floats(0, 2))
def test_centralized_draws_from_its_target(example, power):
    graph, importance = example
    kernel = Centralized(power).kernel(graph, importance)
    law = importance**power / np.sum(importance**power)
    assert np.allclose(kernel.matrix().toarray(), np.tile(law, (graph.n, 1)), rtol=1e-9, atol=1e-15)
    assert np.allclose(kernel.target, law, rtol=1e-9)


def test_decaying_jumps_follow_the_schedule():
    graph, importance = fw.graphs.star(6), np.array([9.0, 1, 2, 3, 4, 5])
    kernel = Decaying(MHLJ(0.8, 0.5, 3), fw.schedules.Exponential(1.0, half_life=10)).kernel(graph, importance)
    for step, jump in ((0, 0.8), (10, 0.4), (20, 0.2)):
        assert np.allclose(
            kernel.matrix(step).toarray(), dense(MHLJ(jump, 0.5, 3), graph, importance), rtol=0, atol=1e-15
        )
    assert np.allclose(kernel.matrix(2000).toarray(), dense(Metropolis(power=1), graph, importance), atol=1e-15)
    assert np.array_equal(kernel.target, MHLJ(0.8, 0.5, 3).kernel(graph, importance).target)


def test_jumps_alone_can_decay():
    """p_J = 1 leaves nothing for the first move: no rounding may give it more than that."""
    graph, importance = fw.graphs.ring(8), np.arange(1.0, 9.0)
    for stop in (0.05, 0.1, 0.3, 0.7):
        for hops in range(1, 12):
            kernel = Decaying(MHLJ(1.0, stop, hops), fw.schedules.Inverse(1.0, scale=10)).kernel(graph, importance)
            assert (kernel.probabilities(np.arange(5)) >= 0).all()
            assert np.allclose(kernel.matrix(0).toarray(), levy(graph, stop, hops), atol=1e-14)
            assert float(fw.rng.ends(kernel.probabilities(0))[0, 0]) < 2.0**64 * 1e-15


def test_matrices_walk_as_they_are():
    graph = fw.graphs.grid(3, 3)
    matrix = 0.3 * np.eye(9) + 0.7 * hop(graph)
    assert np.array_equal(dense(FromMatrix(matrix), graph), matrix)
