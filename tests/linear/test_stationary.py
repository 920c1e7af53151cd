"""The stationary law: exact in every component, the same by every way, and never wrong in silence."""

import time

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import spsolve

import freewalk as fw
from freewalk.analysis.chain import chain as laws
from freewalk.analysis.chain.unrolled import Hops, samples_its_target, unrolled
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import AnalysisError, KernelError
from freewalk.linear import stationary
from freewalk.linear.aggregation import Hierarchy
from freewalk.linear.elimination import dense_law, narrow_law, narrow_order
from freewalk.linear.krylov import minimise
from freewalk.linear.stationary import Flows, leaving_rates, settled, stationary_law


def importance(n, heavy=20):
    """Squared norms in ten dimensions, and some heavy nodes."""
    numbers = np.random.default_rng(n)
    values = numbers.chisquare(10, n)
    values[numbers.choice(n, heavy, replace=False)] *= 100
    return values


def steep_cycle(n, span):
    """A chain on a ring with a current around it, and its law over `span` orders of magnitude."""
    law = 10.0 ** np.random.default_rng(n).uniform(-span, 0, n)
    law[:2] = 10.0**-span, 1.0
    after = np.roll(law, -1)
    both, current = np.minimum(law, after) / 8, law.min() / 4
    nodes, following = np.arange(n), (np.arange(n) + 1) % n
    rates = np.concatenate([(both + current) / law, both / after])
    places = (np.concatenate([nodes, following]), np.concatenate([following, nodes]))
    return csr_array((rates, places), shape=(n, n)), law / law.sum()


def residual(matrix, law):
    return np.abs(matrix.T @ law - law).sum()


@pytest.mark.parametrize("n", [3, 60, 200, 900, 30_000])
def test_a_law_over_twelve_orders_of_magnitude_has_all_its_digits(n):
    matrix, law = steep_cycle(n, span=12)
    assert stationary_law(matrix, "a steep cycle") == pytest.approx(law, rel=1e-11)


def test_the_law_of_two_nodes():
    assert stationary_law(csr_array([[0.9, 0.1], [0.3, 0.7]]), "two") == pytest.approx([0.75, 0.25], rel=1e-15)


def test_a_law_in_detailed_balance_is_returned_to_the_bit():
    kernel = Metropolis(power=1).kernel(fw.graphs.grid(50, 50), importance(2500))
    target = np.asarray(kernel.target)
    assert np.array_equal(stationary_law(kernel.matrix(), "grid", target), target / target.sum())
    off = target * np.random.default_rng(0).uniform(1, 1 + 1e-9, target.size)
    assert stationary_law(kernel.matrix(), "grid", off) == pytest.approx(target, rel=1e-12)


def test_all_ways_agree():
    """Dense and narrow elimination, and the iteration, on a chain that is not reversible."""
    kernel = MHLJ(0.3, 0.5, 3).kernel(fw.graphs.watts_strogatz(400, 4, 0.2, seed=1), importance(400))
    leaving = leaving_rates(kernel.matrix())
    dense = dense_law(leaving.toarray())
    narrow = narrow_law(leaving, *narrow_order(leaving))
    iterated = settled(Flows(leaving), np.asarray(kernel.target), "small world")
    assert narrow == pytest.approx(dense, rel=1e-12)
    assert iterated == pytest.approx(dense, rel=1e-11)


GRAPHS = {
    "ring": lambda: fw.graphs.ring(40_000),
    "grid": lambda: fw.graphs.grid(150, 150),
    "small world": lambda: fw.graphs.watts_strogatz(20_000, 4, 0.1, seed=1),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_large_walks_that_are_reversible_have_their_target_as_law_even_if_nobody_says_so(kind):
    graph = GRAPHS[kind]()
    kernel = Metropolis(power=1).kernel(graph, importance(graph.n))
    assert stationary_law(kernel.matrix(), kind) == pytest.approx(np.asarray(kernel.target), rel=1e-10)


@pytest.mark.quick("ring", "small world")
@pytest.mark.parametrize("kind", GRAPHS)
def test_large_walks_with_jumps(kind):
    graph = GRAPHS[kind]()
    kernel = MHLJ(0.1, 0.5, 3).kernel(graph, importance(graph.n))
    matrix = kernel.matrix()
    law = stationary_law(matrix, kind, np.asarray(kernel.target))
    assert residual(matrix, law) < 1e-14
    assert law.min() > 0
    assert law.sum() == pytest.approx(1, abs=1e-13)
    if kind == "small world":  # fills in when it is factored: another start must come to the same
        other = stationary_law(matrix, kind)
    else:
        equations = csc_array(eye_array(graph.n) - matrix.T)
        other = np.append(1.0, spsolve(equations[1:, 1:], -equations[1:, [0]].toarray().ravel()))
        other /= other.sum()
    assert np.abs(law - other).sum() < (1e-8 if kind == "ring" else 1e-10)


def test_the_ways_that_were_meant_are_taken():
    """The ring is eliminated, grid and small world are iterated."""
    for kind, iterated in [("ring", False), ("grid", True), ("small world", True)]:
        leaving = leaving_rates(MHLJ(0.1, 0.5, 3).kernel(GRAPHS[kind](), np.ones(GRAPHS[kind]().n)).matrix())
        _, width = narrow_order(leaving)
        assert (leaving.shape[0] * width**2 > stationary.ELIMINATION) is iterated


def test_hubs_that_merge_everything_do_no_harm():
    kernel = MHLJ(0.9, 0.5, 3).kernel(fw.graphs.barabasi_albert(2000, 3, seed=1), importance(2000))
    matrix = kernel.matrix()
    assert residual(matrix, stationary_law(matrix, "hubs", np.asarray(kernel.target))) < 1e-13


def test_a_cycle_through_the_hierarchy_makes_the_balance_easy_to_solve():
    """GMRES needs a few dozen cycles where it would need thousands of steps of the walk."""
    kernel = Metropolis(power=1).kernel(fw.graphs.grid(60, 60), importance(3600))
    law = np.asarray(kernel.target)
    flows = stationary.flows_of(leaving_rates(kernel.matrix()), law)
    out, hierarchy, calls = np.asarray(flows.sum(axis=1)).ravel(), Hierarchy(flows, law), []
    right = np.random.default_rng(0).standard_normal(3600) * law
    right -= law * right.sum()

    def apply(values):
        calls.append(1)
        y = hierarchy.cycle(values)
        return out * y - flows.T @ y

    unknown = minimise(apply, right, accuracy=1e-8, rounds=4)
    assert len(calls) < 60
    assert np.linalg.norm(apply(unknown) - right) < 2e-8 * np.linalg.norm(right)
    assert not hierarchy.cycle(np.zeros(3600)).any()


def test_gmres_solves_and_starts_anew():
    numbers = np.random.default_rng(0)
    matrix = np.eye(80) + 0.08 * numbers.standard_normal((80, 80))
    right = numbers.standard_normal(80)
    result = minimise(lambda x: matrix @ x, right, accuracy=1e-12, rounds=20)
    assert result == pytest.approx(np.linalg.solve(matrix, right), rel=1e-9, abs=1e-10)
    assert not minimise(lambda x: matrix @ x, np.zeros(80), accuracy=1e-12, rounds=20).any()
    assert minimise(lambda x: 2 * x, right, accuracy=1e-12, rounds=2) == pytest.approx(right / 2)


def test_an_iteration_that_does_not_settle_is_an_error():
    graph = fw.graphs.watts_strogatz(20_000, 4, 0.1, seed=1)
    steep = 10.0 ** np.random.default_rng(0).uniform(0, 12, graph.n)
    matrix = Metropolis(power=1).kernel(graph, steep).matrix()
    with pytest.raises(AnalysisError, match=r"^steep: after \d+ corrections .* still changes by .* expected 1e-07"):
        stationary_law(matrix, "steep")


def test_reducible_chains_are_errors():
    one_way = csr_array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    with pytest.raises(
        KernelError, match=r"walk: P is reducible \(2 strongly connected parts\).* from node 0 to node 1 but"
    ):
        stationary_law(one_way, "walk")
    with pytest.raises(KernelError, match=r"\(3 strongly connected parts\).* never goes from node 0 to node 1"):
        stationary_law(csr_array(np.eye(3)), "walk")


def test_a_matrix_of_many_nodes_gets_its_law():
    """`FromMatrix` used to stop at 5000."""
    kernel = Metropolis(power=1).kernel(fw.graphs.grid(100, 100), importance(10_000))
    assert FromMatrix(kernel.matrix()).kernel(kernel.graph).target == pytest.approx(kernel.target, rel=1e-10)
    with pytest.raises(KernelError, match=r"pass target="):
        FromMatrix(np.eye(6)).kernel(fw.graphs.ring(6))


# Jumps hop by hop: hubs connect everything, and as a matrix on the nodes jumps would fill memory.


def random_tree(n):
    children = np.arange(1, n)
    return fw.graphs.from_edges(
        np.stack([np.floor(np.random.default_rng(n).random(n - 1) * children).astype(int), children], axis=1)
    )


def binary_tree(n):
    children = np.arange(1, n)
    return fw.graphs.from_edges(np.stack([(children - 1) // 2, children], axis=1))


def wheel(n):
    rim = np.arange(1, n)
    spokes, around = np.stack([0 * rim, rim], axis=1), np.stack([rim, rim % (n - 1) + 1], axis=1)
    return fw.graphs.from_edges(np.concatenate([spokes, around]))


def barbell(m):
    """Two cliques of m nodes, and an edge."""
    clique = np.stack(np.triu_indices(m, 1), axis=1)
    return fw.graphs.from_edges(np.concatenate([clique, clique + m, [[0, m]]]))


HUBS = {
    "star": fw.graphs.star,
    "wheel": wheel,
    "preferential tree": lambda n: fw.graphs.barabasi_albert(n, 1, seed=1),
    "preferential": lambda n: fw.graphs.barabasi_albert(n, 3, seed=1),
    "random tree": random_tree,
    "binary tree": binary_tree,
}


def jumping(graph):
    return MHLJ(0.5, 0.5, 3).kernel(graph, np.exp(np.random.default_rng(graph.n).standard_normal(graph.n)))


def unkept(kernel, law):
    return np.abs(Hops(kernel).spread(law) - law).sum()


@pytest.mark.quick("star", "preferential")
@pytest.mark.parametrize("kind", HUBS)
def test_jumps_from_hubs(kind):
    large = jumping(HUBS[kind](10_000))
    assert unkept(large, laws.stationary(large)) < 1e-12
    small = jumping(HUBS[kind](1500))
    expected = dense_law(leaving_rates(small.matrix()).toarray())
    assert laws.stationary(small) == pytest.approx(expected, rel=1e-9)


def test_jumps_on_a_star_of_many_nodes():
    kernel = jumping(fw.graphs.star(100_000))
    law = laws.stationary(kernel)
    assert unkept(kernel, law) < 1e-12
    assert law.min() > 0
    assert law.sum() == pytest.approx(1, abs=1e-13)


def test_jumps_between_two_cliques(monkeypatch):
    kernel = jumping(barbell(300))
    law = laws.stationary(kernel)
    assert unkept(kernel, law) < 1e-12
    assert settled(Hops(kernel), np.asarray(kernel.target), "cliques") == pytest.approx(law, rel=1e-9)
    monkeypatch.setattr(laws, "PLAIN", 10)
    assert laws.stationary(kernel) == pytest.approx(law, rel=1e-9)
    monkeypatch.setattr(laws, "is_crowded", lambda kernel: True)
    assert laws.stationary(kernel) == pytest.approx(law, rel=1e-9)


def test_an_iteration_that_fails_is_eliminated_where_that_is_possible(monkeypatch):
    kernel = jumping(fw.graphs.watts_strogatz(1500, 6, 0.3, seed=1))
    law = laws.stationary(kernel)
    monkeypatch.setattr(stationary, "_ROUNDS", 1)
    assert laws.stationary(kernel) == pytest.approx(law, rel=1e-10)
    monkeypatch.setattr(laws, "DENSE", 10)
    with pytest.raises(AnalysisError, match=r"^stationary: MHLJ.*: after 1 corrections its stationary distr"):
        laws.stationary(kernel)


def test_a_matrix_that_would_fill_memory_is_refused_at_once():
    kernel = jumping(fw.graphs.star(20_000))
    before = time.perf_counter()
    with pytest.raises(KernelError, match=r"^MHLJ.*: the matrix of its jumps on 20000 nodes would have up to 4.0e\+08"):
        kernel.matrix()
    assert time.perf_counter() - before < 2
    assert laws.stationary(kernel).sum() == pytest.approx(1, abs=1e-13)


def random_rows(graph, seed):
    rows = (graph.adjacency().toarray() + np.eye(graph.n)) * np.random.default_rng(seed).uniform(0.1, 1, (graph.n,) * 2)
    return rows / rows.sum(axis=1, keepdims=True)


def mixed(graph, importance):
    """All kinds of moves in one table."""
    ratio = importance / graph.degrees
    moves = [
        fw.Move(0.1, hops=0),
        fw.Move(0.2, hops=1, ratio=ratio),
        fw.Move(0.1, hops=2, ratio=ratio),
        fw.Move(0.1, hops=4),
        fw.Move(0.15, hops=3, rows=random_rows(graph, 1)),
        fw.Move(0.15, hops=2, rows=[random_rows(graph, 2), random_rows(graph, 3)]),
        fw.Move(0.05, hops=1, law=importance),
        fw.Move(0.0, hops=9),
        fw.Move(0.15, hops=1),
    ]
    return fw.Kernel(graph, moves, importance, "mixed")


SMALL = {
    "ring": fw.graphs.ring(10),
    "star": fw.graphs.star(8),
    "triangle": fw.graphs.ring(3),
    "wheel": wheel(9),
    "preferential": fw.graphs.barabasi_albert(16, 2, seed=4),
}
DESIGNS = {
    "simple": lambda graph: SimpleWalk(),
    "importance": lambda graph: Metropolis(power=1),
    "proposal": lambda graph: Metropolis(power=0.5, proposal=random_rows(graph, 5)),
    "MHLJ": lambda graph: MHLJ(0.3, 0.5, 3),
    "MHLJ without jumps": lambda graph: MHLJ(0.0, 0.5, 3),
    "MHLJ, jumps of one hop": lambda graph: MHLJ(0.3, 0.5, 1),
    "MHLJ, jumps only": lambda graph: MHLJ(1.0, 0.3, 5),
    "corrected": lambda graph: MHLJ(0.6, 0.4, 4, corrected=True),
    "closed form": lambda graph: ClosedFormMHLJ(0.5, 0.5, 3),
    "any matrix": lambda graph: FromMatrix(random_rows(graph, 6)),
    "independent": lambda graph: Centralized(power=1),
}


@pytest.mark.parametrize("graph", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("design", [*DESIGNS, "mixed"])
def test_hop_by_hop_is_the_same_walk(design, graph):
    numbers, n = np.random.default_rng(graph.n), graph.n
    values = np.exp(numbers.standard_normal(n))
    kernel = mixed(graph, values) if design == "mixed" else DESIGNS[design](graph).kernel(graph, values)
    matrix, measure = kernel.matrix().toarray(), numbers.standard_normal(n)
    hops, chain = Hops(kernel), unrolled(kernel)
    assert hops.spread(measure) == pytest.approx(measure @ matrix, rel=1e-12, abs=1e-14)
    assert hops.change(measure) == pytest.approx(measure @ matrix - measure, rel=1e-12, abs=1e-14)
    # Watched at the nodes alone, the chain of all states is that of the kernel.
    rates = chain.leaving.toarray()
    assert chain.nodes == n
    assert rates[n:].sum(axis=1) == pytest.approx(np.ones(len(rates) - n), rel=1e-13)
    watched = rates[:n, :n] + rates[:n, n:] @ np.linalg.solve(np.eye(len(rates) - n) - rates[n:, n:], rates[n:, :n])
    off = ~np.eye(n, dtype=bool)
    assert watched[off] == pytest.approx(matrix[off], rel=1e-12, abs=1e-15)
    law = laws.stationary(kernel)
    states = chain.law(law)
    assert np.array_equal(states[:n], law)
    assert states[n:] == pytest.approx((states @ rates)[n:], rel=1e-12)


def test_jumps_on_a_star_stay_sparse():
    chain = unrolled(MHLJ(0.5, 0.5, 3).kernel(fw.graphs.star(1000), np.arange(1.0, 1001.0)))
    assert chain.leaving.shape == (3000, 3000)
    assert chain.leaving.nnz == 9990


def two_hops_only(graph):
    return fw.Kernel(graph, [fw.Move(1.0, hops=2)], graph.degrees, "two hops")


def test_tables_that_show_their_balance():
    graph, values = SMALL["preferential"], np.exp(np.random.default_rng(0).standard_normal(16))
    balanced = [SimpleWalk(), Metropolis(), Metropolis(power=1), MHLJ(0.0, 0.5, 3), MHLJ(0.3, 0.5, 3, corrected=True)]
    for design in balanced:
        kernel = design.kernel(graph, values)
        assert samples_its_target(kernel), design
        law = np.asarray(kernel.target)
        assert law @ kernel.matrix().toarray() == pytest.approx(law, rel=1e-12)
    other = [
        MHLJ(0.3, 0.5, 3),
        MHLJ(1e-9, 0.5, 1),
        ClosedFormMHLJ(0.3, 0.5, 3),
        FromMatrix(random_rows(graph, 0)),
        Centralized(power=1),
        Metropolis(power=1, proposal=random_rows(graph, 1)),
    ]
    for design in other:
        assert not samples_its_target(design.kernel(graph, values)), design
    # Where all degrees are equal, jumps sample the uniform law; no others do.
    assert samples_its_target(MHLJ(0.3, 0.5, 3, power=0).kernel(SMALL["ring"], np.ones(10)))
    assert not samples_its_target(MHLJ(0.3, 0.5, 3, power=0).kernel(graph, values))
    # A target that is off by more than rounding is none, and two hops alone may not come everywhere.
    off = np.where(np.arange(10) == 3, 1 + 1e-9, 1.0)
    assert not samples_its_target(fw.Kernel(SMALL["ring"], [fw.Move(1.0, hops=1)], off, "off"))
    assert not samples_its_target(two_hops_only(SMALL["ring"]))
    with pytest.raises(KernelError, match=r"two hops: P is reducible \(2 strongly connected parts\)"):
        laws.stationary(two_hops_only(SMALL["ring"]))
