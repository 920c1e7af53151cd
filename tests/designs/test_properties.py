"""What must hold for every design, on random graphs with random importance."""

import numpy as np
import pytest
from catalogue import designs_on
from chains import FIXED, connected_graphs, random_rows, stationary, weighted_graphs
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import freewalk as fw
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk, Stay

POWERS = st.floats(-1.0, 2.0)


def one_of_each(graph, importance, power, jumps):
    """Every listed design, with parameters of its own, or as it is in the catalogue."""
    jump, stop, hops = jumps
    made = [
        SimpleWalk(),
        Metropolis(power=power),
        Metropolis(target=importance**power),
        Metropolis(power=power, proposal=random_rows(graph, 1)),
        Metropolis(power=power, proposal=random_rows(graph, 2, lazy=False)),
        MHLJ(jump, stop, hops, power),
        MHLJ(jump, stop, hops, power, corrected=True),
        ClosedFormMHLJ(jump, stop, hops, power),
        Decaying(MHLJ(jump, stop, hops, power), fw.schedules.Inverse(1.0, scale=5)),
        FromMatrix(random_rows(graph, 3)),
        Centralized(power),
        Centralized(power, uniform=0.3),
        Stay(),
    ]
    return made + [example for example in designs_on(graph).values() if type(example) not in set(map(type, made))]


JUMPS = st.tuples(st.floats(0, 1), st.floats(0.01, 1), st.integers(1, 4))


@FIXED
@given(weighted_graphs(), POWERS, JUMPS)
def test_rows_of_listed_designs_are_probabilities_on_reachable_nodes(example, power, jumps):
    graph, importance = example
    for design in one_of_each(graph, importance, power, jumps):
        kernel = design.kernel(graph, importance)
        for step in (0, 7):
            matrix = kernel.without_memory().matrix(step)
            assert matrix.data.min() >= 0, design
            assert np.abs(matrix.sum(axis=1) - 1).max() <= 1e-12, design
        assert kernel.target.min() > 0
        assert kernel.target.sum() == pytest.approx(1)
        assert kernel.weights == pytest.approx(1 / (graph.n * kernel.target))
        assert kernel.probabilities([0, 3]).min() >= 0


@FIXED
@given(weighted_graphs(), POWERS, JUMPS, st.integers(0, 2**32 - 1))
def test_metropolis_chains_satisfy_detailed_balance(example, power, jumps, seed):
    """s_v P(v, u) = s_u P(u, v) to 1e-12, for any target, any proposal, and for corrected jumps."""
    graph, importance = example
    law = np.random.default_rng(seed).uniform(0.01, 1.0, graph.n)
    chains = [
        Metropolis(power=power),
        Metropolis(target=law),
        Metropolis(power=power, proposal=random_rows(graph, seed)),
        Metropolis(target=law, proposal=random_rows(graph, seed, lazy=False)),
        MHLJ(*jumps, power, corrected=True),
        Decaying(MHLJ(*jumps, power, corrected=True), fw.schedules.Exponential(1.0, 3.0)),
    ]
    for design in chains:
        kernel = design.kernel(graph, importance)
        for step in (0, 4):
            flow = kernel.target[:, None] * kernel.matrix(step).toarray()
            assert np.abs(flow - flow.T).max() <= 1e-12, design


@FIXED
@given(weighted_graphs(span=2.0))
def test_uncorrected_jumps_do_not_sample_the_target(example):
    """The check of detailed balance has teeth: the paper's own jumps break it wherever importance is not degree."""
    graph, importance = example
    importance = importance * np.where(np.arange(graph.n) == 0, 50.0, 1.0)
    assume(np.ptp(importance / graph.degrees) > 1.0)
    kernel = MHLJ(0.5, 0.5, 1).kernel(graph, importance)
    flow = kernel.target[:, None] * kernel.matrix().toarray()
    assert np.abs(flow - flow.T).max() > 1e-6


@FIXED
@given(connected_graphs(), st.integers(0, 2**32 - 1))
def test_a_matrix_brings_its_own_law(graph, seed):
    matrix = random_rows(graph, seed)
    kernel = FromMatrix(matrix).kernel(graph)
    assert kernel.target @ matrix == pytest.approx(kernel.target, abs=1e-13)
    assert kernel.target == pytest.approx(stationary(matrix), rel=1e-8)


def test_a_periodic_matrix_has_a_law_too():
    assert FromMatrix([[0, 1], [1, 0]]).kernel(fw.graphs.path(2)).target == pytest.approx([0.5, 0.5])
    graph = fw.graphs.star(5)
    simple = graph.adjacency() / graph.degrees[:, None]
    assert FromMatrix(simple).kernel(graph).target == pytest.approx([0.5, *[0.125] * 4])


def test_a_given_target_takes_the_place_of_the_law():
    graph = fw.graphs.ring(4)
    assert FromMatrix(np.eye(4), target=[1, 2, 3, 4]).kernel(graph).target == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_importance_gives_the_weights_of_the_paper():
    """Mean importance over importance."""
    graph, importance = fw.graphs.ring(5), np.array([100.0, 1, 1, 2, 1])
    for design in (Metropolis(power=1), MHLJ(0.1, 0.5, 3), Centralized(power=1)):
        assert design.kernel(graph, importance).weights == pytest.approx(importance.mean() / importance)
    assert SimpleWalk().kernel(graph).weights == pytest.approx(np.ones(5))
    star = fw.graphs.star(4)
    assert SimpleWalk().kernel(star).target == pytest.approx(star.degrees / (2 * star.edges))


@pytest.mark.parametrize(
    "graph", [fw.graphs.ring(12), fw.graphs.star(7), fw.graphs.barabasi_albert(30, 2, seed=1)], ids=repr
)
def test_importance_ratios_of_1e12_leave_chains_of_listed_designs_connected(graph):
    importance = np.ones(graph.n)
    importance[[0, 3]] = 1e12
    for design in one_of_each(graph, importance, 1.0, (1e-9, 0.5, 3)):
        kernel = design.kernel(graph, importance)
        parts = graph.n if isinstance(design, Stay) else 1
        matrix = kernel.without_memory().matrix()
        assert connected_components(matrix, directed=True, connection="strong")[0] == parts, design
        assert np.isfinite(kernel.weights).all()


def test_large_powers_do_not_overflow():
    kernel = Metropolis(power=20).kernel(fw.graphs.ring(4), [1e15, 1e14, 1e15, 1e14])
    assert kernel.target == pytest.approx([0.5, 0.5e-20, 0.5, 0.5e-20])
