"""Walks that avoid to step back, as chains on pairs of nodes: target, variances, times, and two classes on a ring."""

import numpy as np
import pytest
from pairs import importance_of, kernels_on, small_graph, written_out, written_out_like

import freewalk as fw
from freewalk.analysis import (
    escape_time,
    excess_visits,
    hitting_times,
    messages_per_visit,
    mixing_time,
    period,
    second_eigenvalue,
    sojourn_times,
    spectral_gap,
    stationary,
)
from freewalk.analysis.chain import states as module
from freewalk.analysis.chain.chain import chain_of, states_and_matrix
from freewalk.designs import FromMatrix, Metropolis, NonBacktracking, SimpleWalk
from freewalk.errors import AnalysisError, KernelError

RING = NonBacktracking(SimpleWalk()).kernel(fw.graphs.ring(6))
GRAPH = fw.graphs.barabasi_albert(12, 2, seed=4)
TEMPERED = NonBacktracking(Metropolis(power=0.5)).kernel(GRAPH, importance_of(GRAPH, 1, 3))
FORGETFUL = NonBacktracking(SimpleWalk(), 0.2).kernel(fw.graphs.ring(6))
TREE = NonBacktracking(Metropolis(power=1)).kernel(fw.graphs.star(7), importance_of(fw.graphs.star(7), 2, 2))
SMALL = {"ring": RING, "tempered": TEMPERED, "forgetful": FORGETFUL, "star": TREE}


@pytest.mark.quick(*map(str, range(40)))
@pytest.mark.parametrize("seed", range(200))
def test_pairs_and_nodes_keep_the_target(seed):
    graph = small_graph(seed)
    for kernel in kernels_on(graph, seed):
        states, matrix = states_and_matrix("test", kernel)
        law = states.lifted(np.asarray(kernel.target))
        found, shares = written_out_like(states, kernel)
        assert np.abs(matrix.toarray() - found).max() < 1e-12
        assert np.array_equal(states.shares, shares)
        assert np.abs(np.asarray(matrix.sum(axis=1)).ravel() - 1).max() < 1e-12
        assert np.abs(law @ matrix - law).max() < 1e-12
        assert states.gathered(law) == pytest.approx(np.asarray(kernel.target), rel=1e-12)
        # The first step is one by P: pairs that begin without a past go to each node as the walk without memory does.
        begin = np.random.default_rng(seed).dirichlet(np.ones(graph.n))
        first = states.gathered(states.lifted(begin) @ matrix)
        assert first == pytest.approx(begin @ kernel.without_memory().matrix(), abs=1e-12)


def variance(matrix, law, values):
    """The asymptotic variance of the mean of some values along a walk."""
    centred = values - law @ values
    solved = np.linalg.lstsq(np.eye(law.size) - matrix, centred, rcond=1e-12)[0]
    return 2 * (law * centred) @ solved - (law * centred) @ centred


@pytest.mark.quick(*map(str, range(16)))
@pytest.mark.parametrize("seed", range(40))
def test_no_mean_has_a_larger_asymptotic_variance_than_without_memory(seed):
    graph, random = small_graph(seed), np.random.default_rng(seed)
    for kernel in kernels_on(graph, seed, span=2.0):
        base, law = kernel.without_memory().matrix().toarray(), np.asarray(kernel.target)
        states, matrix = states_and_matrix("test", kernel)
        for values in random.normal(size=(5, graph.n)):
            plain = variance(base, law, values)
            turning = variance(matrix.toarray(), states.lifted(law), values[states.nodes])
            assert turning <= plain * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("kernel", SMALL.values(), ids=SMALL)
def test_times_equal_those_of_the_matrix_written_out(kernel):
    states, _ = states_and_matrix("test", kernel)
    matrix, shares = written_out_like(states, kernel)
    law, n = shares * np.asarray(kernel.target)[states.nodes], kernel.graph.n
    times = hitting_times(kernel)
    for node in range(n):
        away = states.nodes != node
        spent = np.zeros(law.size)
        spent[away] = np.linalg.solve(np.eye(away.sum()) - matrix[np.ix_(away, away)], np.ones(away.sum()))
        assert times[:, node] == pytest.approx(np.bincount(states.nodes, shares * spent), rel=1e-10)
    nodes = [0, 2]
    inside = np.isin(states.nodes, nodes)
    stay = np.linalg.solve(np.eye(inside.sum()) - matrix[np.ix_(inside, inside)], np.ones(inside.sum()))
    assert escape_time(kernel, nodes) == pytest.approx(law[inside] @ stay / law[inside].sum(), rel=1e-10)
    at_2 = states.nodes[inside] == 2
    assert escape_time(kernel, nodes, start=2) == pytest.approx(shares[inside][at_2] @ stay[at_2], rel=1e-10)
    flow = law[inside] @ matrix[np.ix_(inside, ~inside)].sum(axis=1)
    assert escape_time(kernel, nodes, start="entry") == pytest.approx(law[inside].sum() / flow, rel=1e-10)
    solved = np.linalg.lstsq(np.eye(law.size) - matrix, inside - law[inside].sum(), rcond=1e-12)[0]
    classes = chain_of("test", kernel).classes
    for one in classes:  # the solution that has mean 0 on each
        solved[one] -= law[one] @ solved[one] / law[one].sum()
    assert excess_visits(kernel, nodes) == pytest.approx((law * inside) @ solved / law[inside].sum(), rel=1e-9)


def test_mixing_time_and_period_of_a_chain_on_pairs():
    _, matrix = states_and_matrix("test", TEMPERED)
    law, power, steps = chain_of("test", TEMPERED).law, np.eye(matrix.shape[0]), 0
    while np.abs(power - law).sum(axis=1).max() / 2 > 0.1:
        power, steps = power @ matrix, steps + 1
    assert (mixing_time(TEMPERED, 0.1), period(TEMPERED)) == (steps, 1)
    values = sorted(np.linalg.eigvals(matrix.toarray()), key=lambda value: value.real)
    assert spectral_gap(TEMPERED) == pytest.approx(1 - values[-2].real)


def test_on_a_ring_with_a_uniform_target_directions_are_closed_classes():
    assert stationary(RING) == pytest.approx(np.full(6, 1 / 6), rel=1e-15)
    assert [one.size for one in chain_of("test", RING).classes] == [6, 6]
    assert period(RING) == 6
    assert (float(mixing_time(RING)), mixing_time(RING).period) == (np.inf, 6)
    assert (second_eigenvalue(RING), spectral_gap(RING)) == (1.0, 0.0)
    assert hitting_times(RING)[0].tolist() == [0.0, 3.0, 3.0, 3.0, 3.0, 3.0]  # by one direction or the other
    # In the set {0, 1} two of six steps; of those who begin there half see it twice, and half must go round first.
    assert excess_visits(RING, [0, 1]) == pytest.approx(1 / 3)
    assert float(mixing_time(FORGETFUL)) == np.inf  # it forgets, but by an even ring's simple walk
    assert period(FORGETFUL) == 2
    assert mixing_time(NonBacktracking(SimpleWalk(), 0.2).kernel(fw.graphs.ring(7))) < 100


def test_within_a_far_tolerance_even_two_directions_mix():
    # From a pair, a walk on a ring of three nodes is at one of six pairs for ever.
    kernel = NonBacktracking(SimpleWalk()).kernel(fw.graphs.ring(3))
    assert mixing_time(kernel, 0.83) == np.inf
    assert mixing_time(kernel, 0.84) == 0


def test_a_path_of_two_nodes():
    kernel = NonBacktracking(SimpleWalk()).kernel(fw.graphs.path(2))
    assert (period(kernel), hitting_times(kernel).tolist()) == (2, [[0.0, 1.0], [1.0, 0.0]])
    # At the heavier of two nodes it stays once, and then cannot stay again: 0, 1, 1, 0, 1, 1, …
    kernel = NonBacktracking(Metropolis(target=[1, 2])).kernel(fw.graphs.path(2))
    assert (period(kernel), float(mixing_time(kernel))) == (3, np.inf)
    assert stationary(kernel) == pytest.approx([1 / 3, 2 / 3])
    assert hitting_times(kernel) == pytest.approx(np.array([[0, 1], [1.5, 0]]))


@pytest.mark.parametrize("kernel", SMALL.values(), ids=SMALL)
def test_stays_and_messages_in_the_long_run_are_those_without_memory(kernel):
    base = kernel.without_memory()
    assert np.array_equal(sojourn_times(kernel), sojourn_times(base))
    assert np.array_equal(messages_per_visit(kernel), messages_per_visit(base))
    matrix, pairs, shares = written_out(kernel)
    law = shares * np.asarray(kernel.target)[[i for i, _ in pairs]]
    away = np.array([[i != j for j, _ in pairs] for i, _ in pairs])
    leaving = law * (matrix * away).sum(axis=1)
    found = np.bincount([i for i, _ in pairs], leaving) / np.asarray(kernel.target)
    assert messages_per_visit(kernel)[0] == pytest.approx(found, abs=1e-12)


def test_walks_that_are_not_connected_are_refused():
    halves = np.kron(np.eye(2), np.full((2, 2), 0.5))
    kernel = NonBacktracking(FromMatrix(halves, target=[1, 1, 1, 1])).kernel(fw.graphs.path(4))
    for function in (stationary, mixing_time, period):
        with pytest.raises((AnalysisError, KernelError), match=r"reducible|closed classes"):
            function(kernel)


def test_a_matrix_that_is_too_large_is_refused_and_what_needs_none_is_not(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 100)
    with pytest.raises(
        AnalysisError, match=r"mixing_time: .* transitions between pairs of nodes, expected at most 100;"
    ):
        mixing_time(TEMPERED)
    assert stationary(TEMPERED) == pytest.approx(np.asarray(TEMPERED.target))
    problem = fw.objectives.LeastSquares.synthetic(GRAPH.n, dim=2, seed=1)
    assert np.isfinite(fw.analysis.exact_curve(problem, TEMPERED, fw.SGD(1e-4), steps=3).loss).all()
