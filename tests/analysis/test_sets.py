"""Traps: found where importance keeps the walk coming back, with the right numbers, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import diags_array

import freewalk as fw
from freewalk.analysis import escape_time, excess_visits, find_traps, stationary
from freewalk.analysis.traps.sets import count_of, held_sets, name_nodes
from freewalk.designs import MHLJ, Centralized, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import AnalysisError
from freewalk.linear.elimination import times_between
from freewalk.linear.stationary import leaving_rates


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


@pytest.mark.long
def test_the_same_heavy_nodes_are_a_trap_on_sparse_graphs_alone():
    """The walk stays as long at them everywhere; on a sparse graph it comes back."""
    problem = fw.objectives.LeastSquares.synthetic(1000, dim=10, heavy=2, seed=33)
    stays, lost = [], []
    for graph in (
        fw.graphs.ring(1000),
        fw.graphs.grid(25, 40),
        fw.graphs.watts_strogatz(1000, 4, 0.1, seed=1),
        fw.graphs.erdos_renyi(1000, 0.1, seed=1),
    ):
        kernel = Metropolis(1.0).kernel(graph, problem.smoothness)
        traps = find_traps(kernel)
        assert [trap.nodes for trap in traps] == ([(0, 1)] if graph.name.startswith(("ring", "grid")) else [])
        worst = held_sets("test", kernel)[0][0]
        assert 0 in worst.nodes
        stays.append(escape_time(kernel, worst.nodes, "entry"))
        lost.append(worst.lost / graph.n)
    assert max(stays) < 2 * min(stays)
    assert lost == pytest.approx([33.9, 1.22, 0.446, 0.103], rel=0.01)


def test_several_traps_come_worst_first_and_do_not_overlap():
    importance = heavy(200, (10, 11), 300.0) + heavy(200, (100,), 50.0) - 1
    traps = find_traps(Metropolis(1.0).kernel(fw.graphs.ring(200), importance))
    assert [trap.nodes for trap in traps] == [(10, 11), (100,)]
    assert traps[0].lost > traps[1].lost
    assert len(find_traps(Metropolis(1.0).kernel(fw.graphs.ring(200), importance), most=1)) == 1


def test_arcs_of_a_ring_and_halves_of_a_barbell_are_no_traps_of_importance():
    """Any walk is slow to leave them, so that their excess is large; the uniform walk's is as large."""
    spread = np.random.default_rng(1).chisquare(10, 1000)
    kernel = Metropolis(1.0).kernel(fw.graphs.ring(1000), spread)
    assert excess_visits(kernel, range(300)) > 20_000
    assert find_traps(kernel) == []
    clique = [(i, j) for i in range(30) for j in range(i)]
    barbell = fw.graphs.from_edges([*clique, *((i + 30, j + 30) for i, j in clique), (0, 30)])
    kernel = Metropolis(1.0).kernel(barbell, np.random.default_rng(2).chisquare(10, 60))
    assert excess_visits(kernel, range(30)) > 100
    assert find_traps(kernel) == []
    assert find_traps(Metropolis(1.0).kernel(barbell, heavy(60, range(30), 10.0))) == []


def test_uniform_and_simple_walks_are_not_entrapped():
    for graph in (fw.graphs.ring(300), fw.graphs.grid(15, 15), fw.graphs.barabasi_albert(200, 3, seed=2)):
        assert find_traps(Metropolis(0.0).kernel(graph)) == []
        assert find_traps(SimpleWalk().kernel(graph)) == []


def test_dense_graphs_have_no_traps():
    assert find_traps(Metropolis(1.0).kernel(fw.graphs.complete(400), np.ones(400))) == []
    assert find_traps(Metropolis(1.0).kernel(fw.graphs.complete(400), heavy(400, (0, 1)))) == []


def test_jumps_free_the_walk():
    kernel = MHLJ(0.9, 0.5, 3).kernel(fw.graphs.ring(200), heavy(200, (0, 1)))
    assert find_traps(kernel) == []


@pytest.mark.long
@given(seed=st.integers(0, 10_000), exponent=st.floats(0.5, 4.0), kind=st.sampled_from(["MH", "MHLJ"]))
@settings(derandomize=True, deadline=None, database=None, max_examples=25)
def test_the_numbers_of_a_trap_are_those_of_the_chain(seed, exponent, kind):
    graph = fw.graphs.watts_strogatz(40, 4, 0.2, seed=seed)
    importance = np.exp(exponent * np.random.default_rng(seed).standard_normal(graph.n))
    kernel = (Metropolis(1.0) if kind == "MH" else MHLJ(0.02, 0.5, 3)).kernel(graph, importance)
    uniform = Metropolis(0.0).kernel(graph)
    sets, unjudged = held_sets("test", kernel)
    assert unjudged == 0
    for trap in sets:
        share, size = stationary(kernel)[list(trap.nodes)].sum(), len(trap.nodes)
        assert trap.share == pytest.approx(share, rel=1e-12)
        assert trap.excess == pytest.approx(excess_visits(kernel, trap.nodes), rel=1e-9)
        assert trap.uniform == pytest.approx(excess_visits(uniform, trap.nodes), rel=1e-9)
        memory, plain = trap.excess / (1 - trap.share), trap.uniform / (1 - size / 40)
        assert (trap.memory, trap.factor) == pytest.approx((memory, memory / plain), rel=1e-6)
        assert trap.lost == pytest.approx(memory - plain, rel=1e-6)
        assert share >= size / 40 - 1e-12
    traps = find_traps(kernel)
    assert {trap.nodes for trap in traps} <= {trap.nodes for trap in sets}
    assert all(trap.factor >= 10 and trap.lost >= 40 for trap in traps)


@pytest.mark.long
def test_a_large_graph_takes_seconds():
    graph = fw.graphs.grid(150, 150)
    kernel = Metropolis(1.0).kernel(graph, heavy(graph.n, (5000, 5001, 12_345), 500.0))
    assert find_traps(kernel) == []
    assert sorted(trap.nodes for trap in find_traps(kernel, least=1000)) == [(5000, 5001), (12_345,)]


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


@pytest.mark.parametrize(
    "arguments",
    [
        {"factor": "a"},
        {"factor": np.array([3.0, 4.0])},
        {"factor": np.nan},
        {"factor": None},
        {"least": "a"},
        {"least": np.inf},
        {"most": "a"},
        {"most": 1.5},
        {"most": 0},
    ],
    ids=str,
)
def test_bad_numbers_are_named(arguments):
    kernel = Metropolis(1.0).kernel(fw.graphs.ring(10), heavy(10, (0,)))
    ((name, value),) = arguments.items()
    with pytest.raises(AnalysisError) as caught:
        find_traps(kernel, **arguments)
    assert str(caught.value).startswith(f"find_traps: {name} = {value!r}, expected a ")


@pytest.mark.parametrize("at", [100, 1500, 2985])
def test_weak_borders_are_found_under_a_flat_target_wherever_they_are(at):
    n = 3000
    right = np.full(n, 0.5)
    right[[at - 1, at + 9]] = 1e-5
    matrix = diags_array([right[:-1], right[:-1], right[-1:], right[-1:]], offsets=[1, -1, n - 1, 1 - n])
    matrix = matrix + diags_array(1.0 - matrix.sum(axis=1))
    (trap,) = find_traps(FromMatrix(matrix.tocsr(), target=np.ones(n)).kernel(fw.graphs.ring(n)))
    assert trap.nodes == tuple(range(at, at + 10))
    assert trap.lost > 100_000


def small_kernel(seed):
    """Metropolis, MHLJ or any matrix, on a tree with some more edges or on a small world of 4 to 9 nodes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 10))
    if rng.random() < 0.5:
        edges = [(i, int(rng.integers(i))) for i in range(1, n)]
        edges += [sorted(rng.choice(n, 2, replace=False).tolist(), reverse=True) for _ in range(rng.integers(n))]
        graph = fw.graphs.from_edges(sorted(set(map(tuple, edges))))
    else:
        graph = fw.graphs.watts_strogatz(n, 4 if n > 5 else 2, rng.random(), seed=seed)
    importance = np.exp(rng.uniform(0.5, 4.0) * rng.standard_normal(n))
    if seed % 3 == 0:
        return Metropolis(1.0).kernel(graph, importance)
    if seed % 3 == 1:
        return MHLJ(rng.uniform(0.005, 0.2), 0.5, 3).kernel(graph, importance)
    rows = graph.adjacency().toarray() * np.exp(rng.uniform(0.5, 5.0) * rng.standard_normal((n, n)))
    rows += np.diag(rng.random(n) * rows.sum(axis=1))
    design = FromMatrix(rows / rows.sum(axis=1, keepdims=True), target=importance if rng.random() < 0.5 else None)
    return design.kernel(graph)


def memories(kernel):
    """Of all sets of nodes: how many nodes they have, their share of the walk, and its memory."""
    n, law = kernel.graph.n, stationary(kernel)
    sets = ((np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1).astype(float)
    times = times_between(leaving_rates(kernel.matrix()))
    share = sets @ law
    together = ((sets @ (law[:, None] * times * law)) * sets).sum(axis=1)
    return sets.sum(axis=1), share, (sets @ (law * (law @ times)) - together / share) / (1 - share)


def most_lost(kernel):
    """The most that any set loses which is a trap (see `find_traps`); 0 where there is none."""
    n = kernel.graph.n
    count, share, memory = memories(kernel)
    plain = memories(Metropolis(0.0).kernel(kernel.graph))[2]
    meant = share * n >= np.where(2 * count > n, 1 + 1e-9, 1 - 1e-9) * count
    return float(np.where(meant & (memory >= 10 * plain) & (memory - plain >= n), memory - plain, 0.0).max())


@pytest.mark.long
def test_the_search_finds_a_trap_where_there_is_one_mostly_and_never_where_there_is_none():
    """Among all sets, connected or not: found for at least 80 % of the chains with one, nearly as bad as the worst."""
    found = []
    for seed in range(300):
        kernel = small_kernel(seed)
        worst, traps = most_lost(kernel), find_traps(kernel)
        if worst > 0:
            found.append(traps[0].lost / worst if traps else 0.0)
        else:
            assert traps == []
    assert len(found) > 40
    assert max(found) < 1 + 1e-6
    assert np.mean(np.array(found) > 0) >= 0.8, sorted(found)[:20]
    assert np.median([one for one in found if one > 0]) > 0.9


def test_sets_and_counts_in_words():
    assert name_nodes((3,)) == "node 3"
    assert name_nodes(("Pazzi", "Salviati")) == "nodes Pazzi, Salviati"
    assert name_nodes(tuple(range(9))) == "nodes 0, 1, 2, 3, 4, 5, … (9 in all)"
    assert [count_of(updates) for updates in (29905.3, 331.7, 8.62)] == ["29,905", "332", "8.6"]
