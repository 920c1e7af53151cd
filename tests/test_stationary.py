"""The stationary law: exact in every component, the same by every way, and never wrong in silence."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import spsolve

import freewalk as fw
from freewalk import stationary
from freewalk.aggregation import Hierarchy
from freewalk.designs import MHLJ, FromMatrix, Metropolis
from freewalk.elimination import dense_law, narrow_law, narrow_order
from freewalk.errors import AnalysisError, KernelError
from freewalk.krylov import minimise
from freewalk.stationary import Flows, leaving_rates, settled, stationary_law


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
