"""Traps: found where they are, of the right nodes, with the right lengths, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import freewalk as fw
from freewalk.analysis import escape_time, find_traps, stationary
from freewalk.designs import MHLJ, Centralized, Decaying, Metropolis, SimpleWalk
from freewalk.errors import AnalysisError


def heavy(n, nodes, value=100.0):
    importance = np.ones(n)
    importance[list(nodes)] = value
    return importance


@pytest.mark.parametrize(
    ("graph", "nodes"),
    [
        (fw.graphs.ring(1000), (0, 1)),
        (fw.graphs.ring(50), (7,)),
        (fw.graphs.path(80), (30, 31, 32)),
        (fw.graphs.grid(12, 12), (0, 1, 12, 13)),
        (fw.graphs.watts_strogatz(100, 4, 0.0, seed=1), (10, 11, 12)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_heavy_nodes_are_the_trap(graph, nodes):
    traps = find_traps(Metropolis(1.0).kernel(graph, heavy(graph.n, nodes)))
    assert [trap.nodes for trap in traps] == [nodes]


def test_neighbours_that_send_the_walk_back_belong_to_the_trap():
    graph = fw.graphs.barabasi_albert(100, 2, seed=1)
    kernel = Metropolis(1.0).kernel(graph, heavy(100, (60,)))
    (trap,) = find_traps(kernel)
    assert {60} < set(trap.nodes)
    assert set(graph.neighbours(60).tolist()) & set(trap.nodes)
    assert trap.stay > max(fw.analysis.sojourn_times(kernel))


def test_several_traps_come_worst_first_and_do_not_overlap():
    importance = heavy(200, (10, 11), 300.0) + heavy(200, (100,), 50.0) - 1
    traps = find_traps(Metropolis(1.0).kernel(fw.graphs.ring(200), importance))
    assert [trap.nodes for trap in traps] == [(10, 11), (100,)]
    assert traps[0].factor > traps[1].factor
    assert len(find_traps(Metropolis(1.0).kernel(fw.graphs.ring(200), importance), most=1)) == 1


def test_single_nodes_and_hitting_times_miss_what_the_set_shows():
    """Row 14 of the notes: two adjacent heavy nodes hand the walk to and fro; only their set holds it."""
    problem = fw.objectives.LeastSquares.synthetic(1000, dim=10, heavy=2, seed=1)
    graph = fw.graphs.ring(1000)
    importance, jumps, uniform = (
        design.kernel(graph, problem.smoothness) for design in (Metropolis(1.0), MHLJ(0.1, 0.5, 3), Metropolis(0.0))
    )
    trap = find_traps(importance)[0]
    assert trap.nodes == (0, 1)
    assert fw.analysis.sojourn_times(importance)[0] < 0.1 * trap.stay
    assert trap.stay > 15 * escape_time(jumps, trap.nodes, "entry")
    assert escape_time(uniform, trap.nodes, "entry") == pytest.approx(2.0)


def test_uniform_and_simple_walks_are_not_entrapped():
    for graph in (fw.graphs.ring(300), fw.graphs.grid(15, 15), fw.graphs.barabasi_albert(200, 3, seed=2)):
        assert find_traps(Metropolis(0.0).kernel(graph)) == []
        assert find_traps(SimpleWalk().kernel(graph)) == []


def test_jumps_free_the_walk():
    kernel = MHLJ(0.9, 0.5, 3).kernel(fw.graphs.ring(200), heavy(200, (0, 1)))
    assert find_traps(kernel) == []


@given(seed=st.integers(0, 10_000), exponent=st.floats(0.5, 4.0), kind=st.sampled_from(["MH", "MHLJ"]))
@settings(derandomize=True, deadline=None, database=None, max_examples=25)
def test_the_numbers_of_a_trap_are_those_of_the_chain(seed, exponent, kind):
    graph = fw.graphs.watts_strogatz(40, 4, 0.2, seed=seed)
    importance = np.exp(exponent * np.random.default_rng(seed).standard_normal(graph.n))
    design = Metropolis(1.0) if kind == "MH" else MHLJ(0.02, 0.5, 3)
    kernel = design.kernel(graph, importance)
    law, matrix = stationary(kernel), kernel.matrix().toarray()
    for trap in find_traps(kernel):
        inside = np.isin(np.arange(graph.n), trap.nodes)
        flow = law[inside] @ matrix[np.ix_(inside, ~inside)].sum(axis=1)
        assert trap.stay == pytest.approx(law[inside].sum() / flow, rel=1e-9)
        assert trap.stay == pytest.approx(escape_time(kernel, trap.nodes, "entry"), rel=1e-6)
        assert trap.escape == pytest.approx(escape_time(kernel, trap.nodes), rel=1e-9)
        assert trap.share == pytest.approx(kernel.target[inside].sum())
        cut = graph.adjacency().toarray()[np.ix_(inside, ~inside)].sum()
        assert trap.warranted == pytest.approx(max(1 / (1 - trap.share), graph.degrees[inside].sum() / cut))
        assert trap.factor == pytest.approx(trap.stay / trap.warranted)
        assert trap.factor >= 3
        assert trap.stay >= 10


def test_a_large_graph_takes_seconds():
    graph = fw.graphs.grid(150, 150)
    traps = find_traps(Metropolis(1.0).kernel(graph, heavy(graph.n, (5000, 5001, 12_345), 500.0)))
    assert sorted(trap.nodes for trap in traps) == [(5000, 5001), (12_345,)]


def test_bad_input_says_what_is_wrong():
    graph = fw.graphs.ring(10)
    kernel = Metropolis(1.0).kernel(graph, heavy(10, (0,)))
    with pytest.raises(AnalysisError, match=r"factor = 0\.5"):
        find_traps(kernel, factor=0.5)
    with pytest.raises(AnalysisError, match="expected a walk"):
        find_traps(Centralized().kernel(graph))
    with pytest.raises(AnalysisError, match=r"kernel\.at\(step\)"):
        find_traps(Decaying(MHLJ(0.1, 0.5, 3), fw.schedules.Inverse(1.0, scale=10)).kernel(graph, heavy(10, (0,))))
    with pytest.raises(AnalysisError, match="expected a kernel"):
        find_traps(graph)
