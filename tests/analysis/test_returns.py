"""Excess visits, and the times that they are made of: against rational arithmetic where chains are steep, against the
definition where they are not, and by all ways that large graphs take.
"""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rational import Exact, relative_errors
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import cg
from walks import FIXED, directed_rows, random_graph, weighted_graphs

import freewalk as fw
from freewalk.analysis.chain.chain import stationary
from freewalk.analysis.chain.times import escape_time, fundamental_matrix, hitting_times, kemeny_constant
from freewalk.analysis.chain.unrolled import Hops
from freewalk.analysis.traps import returns
from freewalk.analysis.traps.returns import Returns, excess_visits
from freewalk.designs import MHLJ, Centralized, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import AnalysisError, KernelError
from freewalk.linear import elimination
from freewalk.linear.elimination import absorbed
from freewalk.linear.stationary import flows_of, leaving_rates, totals_of

ERROR = 1e-10


# Chains over hundreds of orders of magnitude.


def small_graph(numbers):
    n, kind = int(numbers.integers(3, 9)), int(numbers.integers(4))
    if kind < 3:
        return (fw.graphs.ring, fw.graphs.path, fw.graphs.star)[kind](n)
    tree = {(int(numbers.integers(v)), v) for v in range(1, n)}
    pairs = numbers.integers(n, size=(int(numbers.integers(n)), 2))
    return fw.graphs.from_edges(sorted(tree | {(int(min(pair)), int(max(pair))) for pair in pairs if np.ptp(pair)}))


def steep_rows(graph, numbers):
    """Rows that are in detailed balance with nothing; a walk may leave nodes often, or hardly ever."""
    weights = graph.adjacency().toarray() * 10.0 ** numbers.uniform(-60, 0, (graph.n, graph.n))
    sums = weights.sum(axis=1, keepdims=True)
    rows = weights / (np.maximum(sums, 1.0) if numbers.random() < 0.5 else sums.max() * graph.n)
    return rows + np.diag(np.maximum(1.0 - rows.sum(axis=1), 0.0))


def steep_kernel(seed):
    numbers = np.random.default_rng(seed)
    graph = small_graph(numbers)
    exponents = numbers.uniform(-150, 150, graph.n)
    if numbers.random() < 0.3:
        exponents = numbers.choice([-150.0, 0.0, 150.0], graph.n)
    jump = float(10.0 ** numbers.uniform(-6, 0))
    designs = [
        Metropolis(power=1),
        Metropolis(power=0.5),
        Metropolis(power=-0.5),
        MHLJ(jump, 0.5, 3),
        MHLJ(jump, 0.5, 3, corrected=True),
        FromMatrix(steep_rows(graph, numbers), target=np.ones(graph.n)),
    ]
    return designs[seed % len(designs)].kernel(graph, 10.0**exponents)


@cache
def steep_chains():
    """Chains that no float can tell from each other at their diagonals, and their exact quantities."""
    kernels = [steep_kernel(seed) for seed in range(300)]
    return [(seed, kernel, Exact.of(kernel)) for seed, kernel in enumerate(kernels)]


def random_sets(seed, n, count=2):
    numbers = np.random.default_rng(seed)
    return [numbers.choice(n, int(numbers.integers(1, n)), replace=False) for _ in range(count)]


def test_the_exact_values_are_those_of_two_nodes():
    """Left with probabilities a and b: ν = (b, a) / (a + b), and the powers of P decay by 1 − a − b."""
    a, b = 1 / 4, 1 / 32
    exact = Exact([[0, a], [b, 0]])
    assert exact.law.tolist() == pytest.approx([b / (a + b), a / (a + b)], rel=1e-15)
    assert exact.hitting.tolist() == [[0, 4], [32, 0]]
    assert exact.kemeny == pytest.approx(1 / (a + b), rel=1e-15)
    assert exact.excess([0]) == pytest.approx(a / (a + b) ** 2, rel=1e-15)
    assert [exact.escape([1]), exact.escape([1], "entry")] == [32, 32]
    assert exact.fundamental == pytest.approx(
        np.linalg.inv([[a + exact.law[0], exact.law[1] - a], [exact.law[0] - b, b + exact.law[1]]]), rel=1e-14
    )


@pytest.mark.long
def test_laws_and_hitting_times_of_steep_chains():
    for seed, kernel, exact in steep_chains():
        assert np.isfinite(exact.hitting).all()
        assert relative_errors(stationary(kernel), exact.law).max() <= ERROR, seed
        assert relative_errors(hitting_times(kernel), exact.hitting).max() <= ERROR, seed


def or_refused(function, *arguments):
    """What a function returns; None where it refuses."""
    try:
        return function(*arguments)
    except AnalysisError:
        return None


@pytest.mark.long
def test_kemeny_constants_and_fundamental_matrices_of_steep_chains():
    """Z[i, j] can be nothing but the difference of two larger numbers: then it is refused, and no other is."""
    refused = 0
    for seed, kernel, exact in steep_chains():
        assert relative_errors(kemeny_constant(kernel), exact.kemeny) <= ERROR, seed
        found = or_refused(fundamental_matrix, kernel)
        if found is None:
            refused += 1
            assert np.diag(exact.fundamental).max() > 1e4, seed
        else:
            wrong = np.abs(found - exact.fundamental)
            assert (wrong <= 1e-8 * np.maximum(np.abs(exact.fundamental), 1.0)).all(), seed
    assert 0 < refused < 200


@pytest.mark.quick("False")
@pytest.mark.parametrize("many", [False, True])
def test_the_excess_of_single_nodes_of_steep_chains_is_never_refused(many):
    for seed, kernel, exact in steep_chains():
        several = Returns("test", kernel, many)
        found = [several.excess(np.array([node])) for node in range(kernel.graph.n)]
        expected = [exact.excess([node]) for node in range(kernel.graph.n)]
        assert relative_errors(found, expected).max() <= ERROR, seed


@pytest.mark.quick("True")
@pytest.mark.parametrize("many", [False, True])
def test_the_excess_of_sets_of_steep_chains_is_right_or_refused(many):
    refused, asked = 0, 0
    for seed, kernel, exact in steep_chains():
        several = Returns("test", kernel, many)
        for nodes in random_sets(seed, kernel.graph.n):
            asked += 1
            try:
                found = several.excess(nodes)
            except AnalysisError:
                refused += 1
            else:
                assert relative_errors(found, exact.excess(nodes.tolist())) <= ERROR, (seed, nodes)
    print(f"refused: {refused} of {asked}")
    assert refused <= asked / 100


@pytest.mark.long
def test_escape_times_of_steep_chains():
    for seed, kernel, exact in steep_chains():
        (nodes,) = random_sets(seed, kernel.graph.n, 1)
        for start in (None, "entry"):
            found, expected = escape_time(kernel, nodes, start), exact.escape(nodes.tolist(), start)
            assert relative_errors(found, expected) <= ERROR, (seed, nodes)


def two_pairs(heavy):
    """A ring with two traps, each of two neighbours: nodes 2 and 3, and nodes 5 and 0."""
    return Metropolis(power=1).kernel(fw.graphs.ring(6), [heavy, 1, heavy, heavy, 1, heavy])


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("heavy", 10.0 ** np.arange(1, 31))
def test_half_of_each_of_two_traps_is_right_or_refused(heavy, many):
    """The set has the same share of both traps, so that all but ½ of what is added up cancels."""
    several, exact = Returns("test", two_pairs(heavy), many), Exact.of(two_pairs(heavy))
    assert several.excess(np.array([2, 3])) == pytest.approx(exact.excess([2, 3]), rel=1e-14)
    try:
        found = several.excess(np.array([0, 2]))
    except AnalysisError:
        assert heavy > 1e4
    else:
        assert found == pytest.approx(exact.excess([0, 2]), rel=ERROR)


def test_what_a_refusal_says():
    expected = (
        r"^excess_visits: Metropolis\(power=1\): the excess of 2 nodes would have a relative error of .*, expected "
        r"at most 1e-10: it is small against the visits .* Ask for each of these places separately$"
    )
    with pytest.raises(AnalysisError, match=expected):
        excess_visits(two_pairs(1e16), [0, 2])


def test_traps_in_a_set_and_outside():
    """Six traps on a ring of 18 nodes, all choices of them, at depths at which 1 − P(v, v) is nothing."""
    for heavy in (1e16, 1e30, 1e150):
        importance = np.where(np.arange(18) % 3, 1.0, heavy)
        kernel = Metropolis(power=1).kernel(fw.graphs.ring(18), importance)
        several, exact = Returns("test", kernel, many=True), Exact.of(kernel)
        for chosen in range(1, 63):
            nodes = [3 * place for place in range(6) if chosen >> place & 1]
            assert relative_errors(several.excess(np.array(nodes)), exact.excess(nodes)) <= ERROR, nodes


# Moderate chains.


def from_definition(matrix, nodes):
    """ν, and z with (I − P) z = 1_S − ν(S), ν z = 0."""
    n = len(matrix)
    law = np.linalg.solve(np.vstack([(np.eye(n) - matrix.T)[1:], np.ones(n)]), np.append(np.zeros(n - 1), 1.0))
    inside = np.isin(np.arange(n), nodes)
    return law, np.linalg.solve(np.eye(n) - matrix + law, inside - law[inside].sum())


@pytest.mark.long
def test_moderate_chains_from_the_definition():
    """Also as a sum of squares, which says that an excess is never negative."""
    for seed in range(500):
        numbers = np.random.default_rng(seed)
        kind = ["ring", "path", "grid", "small world", "hubs"][seed % 5]
        graph = random_graph(kind, int(numbers.integers(5, 61)), seed)
        importance = np.exp(numbers.standard_normal(graph.n))
        design = (
            Metropolis(power=1),
            MHLJ(float(numbers.random()), 0.5, int(numbers.integers(1, 4))),
            FromMatrix(directed_rows(graph, seed), target=np.ones(graph.n)),
        )[seed % 3]
        kernel = design.kernel(graph, importance)
        matrix = kernel.matrix().toarray()
        (nodes,) = random_sets(seed, graph.n, 1)
        law, z = from_definition(matrix, nodes)
        found = Returns("test", kernel, many=seed % 2 == 0).excess(nodes)
        assert found == pytest.approx(law[nodes] @ z[nodes] / law[nodes].sum(), rel=1e-8), seed
        squares = law @ (matrix * np.subtract.outer(z, z) ** 2).sum(axis=1) / 2
        assert found == pytest.approx(squares / law[nodes].sum(), rel=1e-8), seed


TABLE = {
    "importance": (Metropolis(power=1), ["29905", "1074", "394", "72", "64"]),
    "uniform": (Metropolis(), ["332", "13", "5.3", "1.2", "1.0"]),
    "some jumps": (MHLJ(0.1, 0.5, 3), ["2288", "115", "43", "8.6", "8.5"]),
    "many jumps": (MHLJ(0.9, 0.5, 3), ["240", "6.8", "4.1", "1.1", "1.1"]),
}


@cache
def from_ring_to_complete():
    return [
        fw.graphs.ring(1000),
        fw.graphs.grid(25, 40),
        fw.graphs.watts_strogatz(1000, 4, 0.1, seed=1),
        fw.graphs.erdos_renyi(1000, 0.1, seed=1),
        fw.graphs.complete(1000),
    ]


@pytest.mark.quick("importance", "uniform")
@pytest.mark.parametrize("name", TABLE)
def test_two_heavy_nodes_among_a_thousand(name):
    """The better a graph is connected, the fewer returns there are."""
    design, expected = TABLE[name]
    problem = fw.objectives.LeastSquares.synthetic(1000, dim=10, heavy=2, seed=33)
    pair = np.argsort(-problem.smoothness)[:2]
    found = [excess_visits(design.kernel(graph, problem.smoothness), pair) for graph in from_ring_to_complete()]
    digits = [len(text.partition(".")[2]) for text in expected]
    assert [f"{value:.{places}f}" for value, places in zip(found, digits, strict=True)] == expected


def excess_of_arc(n, m):
    """Of m neighbours on a ring of n nodes, for the simple walk."""
    return (1 - m / n) * (m * (n - m) + 2) / 6


@pytest.mark.parametrize(("n", "m"), [(5, 1), (6, 3), (1000, 1), (1000, 300), (3000, 300), (100_000, 300)])
def test_an_arc_of_a_ring_without_any_heavy_node(n, m):
    """300 of 1000 nodes have an excess of 24 500 visits: long arcs are hard to leave, and nobody is heavy."""
    arc = np.arange(7, 7 + m) % n
    assert excess_visits(Metropolis().kernel(fw.graphs.ring(n)), arc) == pytest.approx(excess_of_arc(n, m), rel=1e-9)


# Identities.


@FIXED
@given(weighted_graphs(most=60), st.floats(0, 1), st.integers(0, 999), st.booleans())
def test_both_sides_of_a_border(weighted, jump, seed, many):
    graph, importance = weighted
    kernel = MHLJ(jump, 0.5, 2).kernel(graph, importance)
    several, (nodes,) = Returns("test", kernel, many), random_sets(seed, graph.n, 1)
    others = np.setdiff1d(np.arange(graph.n), nodes)
    one, other = (several.law[part].sum() * several.excess(part) for part in (nodes, others))
    assert one == pytest.approx(other, rel=ERROR)


@FIXED
@given(weighted_graphs(most=60), st.floats(-1, 1), st.integers(0, 999))
def test_independent_draws_have_an_excess_of_what_is_outside(weighted, power, seed):
    graph, importance = weighted
    kernel, (nodes,) = Centralized(power).kernel(graph, importance), random_sets(seed, graph.n, 1)
    assert excess_visits(kernel, nodes) == pytest.approx(1 - np.asarray(kernel.target)[nodes].sum(), rel=ERROR)


@FIXED
@given(weighted_graphs(most=60), st.floats(0, 1), st.integers(0, 99))
def test_one_node_in_hitting_times(weighted, jump, seed):
    graph, importance = weighted
    kernel = MHLJ(jump, 0.5, 3).kernel(graph, importance)
    law, times, node = stationary(kernel), hitting_times(kernel), seed % graph.n
    assert excess_visits(kernel, [node]) == pytest.approx(law[node] * (law @ times[:, node]), rel=1e-12)
    assert law @ (law @ times) == pytest.approx(kemeny_constant(kernel), rel=1e-12)


@FIXED
@given(weighted_graphs(most=60, span=8.0), st.floats(0, 1), st.integers(0, 999))
def test_the_numbers_of_nodes_do_not_matter(weighted, jump, seed):
    graph, importance = weighted
    order, (nodes,) = np.random.default_rng(seed).permutation(graph.n), random_sets(seed, graph.n, 1)
    renumbered = fw.graphs.from_scipy(csr_array(graph.adjacency())[order][:, order])
    design = MHLJ(jump, 0.5, 3)
    one = excess_visits(design.kernel(graph, importance), order[nodes])
    other = excess_visits(design.kernel(renumbered, importance[order]), nodes)
    assert one == pytest.approx(other, rel=ERROR)


def test_the_order_in_which_nodes_are_given_does_not_matter():
    kernel = MHLJ(0.1, 0.5, 3).kernel(fw.graphs.ring(9), np.arange(1.0, 10.0))
    assert (
        excess_visits(kernel, (4, 1, 3))
        == excess_visits(kernel, np.array([1, 3, 4]))
        == excess_visits(kernel, [3, 4, 1])
    )


# Many nodes.


def some_heavy(graph, count=20, seed=0):
    """An importance, and the nodes that are heavy."""
    heavy = np.random.default_rng(seed).choice(graph.n, count, replace=False)
    return np.where(np.isin(np.arange(graph.n), heavy), 100.0, 1.0), heavy


@pytest.mark.quick("design0-hubs", "design1-small world", "design2-grid")
@pytest.mark.parametrize("kind", ["small world", "hubs", "grid"])
@pytest.mark.parametrize("design", [Metropolis(power=1), MHLJ(0.1, 0.5, 3), MHLJ(0.3, 0.5, 3, corrected=True)])
def test_all_ways_agree(kind, design, monkeypatch):
    graph = random_graph(kind, 400, seed=1)
    importance, heavy = some_heavy(graph)
    inside = np.isin(np.arange(graph.n), heavy)
    kernel = design.kernel(graph, importance)
    expected = Returns("test", kernel).excess(heavy)
    assert Returns("test", kernel, many=True).excess(heavy) == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr(returns, "PLAIN", 10)
    monkeypatch.setattr(elimination, "ELIMINATION", math.inf)
    large = Returns("test", kernel)
    assert large._leaving.shape[0] == (3 * graph.n if design == MHLJ(0.1, 0.5, 3) else graph.n)
    assert large._eliminated(inside).value == pytest.approx(expected, rel=1e-11)
    assert large._eliminated(inside, dense=True).value == pytest.approx(expected, rel=1e-11)
    monkeypatch.setattr(elimination, "ELIMINATION", 0)
    assert large._eliminated(inside) is None
    assert large._iterated(inside).value == pytest.approx(expected, rel=1e-9)
    assert large.excess(heavy) == pytest.approx(expected, rel=1e-9)
    monkeypatch.setattr(returns, "is_crowded", lambda kernel: True)
    crowded = Returns("test", kernel)
    assert crowded._eliminated(inside) is None
    assert isinstance(crowded._solving[0], Hops)
    assert crowded.excess(heavy) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("design", [Metropolis(power=1), MHLJ(0.1, 0.5, 3)])
def test_a_ring_of_many_nodes_is_eliminated(design):
    """On the arcs between heavy nodes a ring is as any other: numbering it anew changes how it is eliminated."""
    graph = fw.graphs.ring(100_000)
    importance, heavy = some_heavy(graph)
    found = [
        excess_visits(design.kernel(graph, np.roll(importance, shift)), (heavy + shift) % graph.n)
        for shift in (0, 33_333)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-10)


def test_a_small_world_of_many_nodes():
    """A reversible walk is solved by conjugate gradients just as well."""
    graph = fw.graphs.watts_strogatz(20_000, 4, 0.1, seed=1)
    importance, heavy = some_heavy(graph)
    kernel = Metropolis(power=1).kernel(graph, importance)
    law, inside = np.asarray(kernel.target), np.isin(np.arange(graph.n), heavy)
    flows = flows_of(leaving_rates(kernel.matrix()), law)
    flows = csr_array((flows + flows.T) / 2)
    scale = diags_array(1 / np.sqrt(totals_of(flows)))
    symmetric = scale @ (diags_array(totals_of(flows)) - flows) @ scale
    right = law * (inside - law[inside].sum())
    solution, status = cg(symmetric, scale @ right, rtol=1e-12)
    assert status == 0
    z = scale @ solution
    z -= law @ z
    expected = law[inside] @ z[inside] / law[inside].sum()
    assert excess_visits(kernel, heavy) == pytest.approx(expected, rel=1e-8)
    others = np.flatnonzero(~inside)
    share = law[inside].sum()
    assert excess_visits(kernel, others) == pytest.approx(expected * share / (1 - share), rel=1e-8)


def test_a_small_world_of_many_nodes_with_jumps(monkeypatch):
    graph = fw.graphs.watts_strogatz(20_000, 4, 0.1, seed=1)
    importance, heavy = some_heavy(graph)
    kernel = MHLJ(0.1, 0.5, 3).kernel(graph, importance)
    unrolled = excess_visits(kernel, heavy)
    assert 10 < unrolled < excess_visits(Metropolis(power=1).kernel(graph, importance), heavy) / 5
    monkeypatch.setattr(returns, "is_crowded", lambda kernel: True)
    assert excess_visits(kernel, heavy) == pytest.approx(unrolled, rel=1e-9)


def test_an_iteration_that_does_not_settle_is_eliminated_or_refused(monkeypatch):
    graph = fw.graphs.watts_strogatz(400, 4, 0.1, seed=1)
    importance, heavy = some_heavy(graph)
    kernel = Metropolis(power=1).kernel(graph, importance)
    expected = excess_visits(kernel, heavy)
    monkeypatch.setattr(returns, "PLAIN", 10)
    monkeypatch.setattr(elimination, "ELIMINATION", 0)
    monkeypatch.setattr(returns, "_ROUNDS", 1)
    assert excess_visits(kernel, heavy) == pytest.approx(expected, rel=1e-11)
    monkeypatch.setattr(returns, "DENSE", 10)
    with pytest.raises(AnalysisError, match=r"^excess_visits: .* the excess of 20 nodes .* expected at most 1e-08"):
        excess_visits(kernel, heavy)


def test_moves_that_stay_count_on_crowded_graphs_whatever_they_carry():
    graph, target = fw.graphs.complete(1100), np.append(50.0, np.ones(1099))
    found = [
        excess_visits(fw.Kernel(graph, [stay, fw.Move(0.5, 1, ratio=target)], target), [0])
        for stay in (fw.Move(0.5, 0), fw.Move(0.5, 0, ratio=np.ones(1100)))
    ]
    assert found == pytest.approx(2 * [91.486], rel=1e-4)


@pytest.mark.parametrize("span", [20, 100, 150])
def test_importance_that_no_iteration_can_begin_with_is_eliminated_or_refused(span):
    graph = fw.graphs.erdos_renyi(1200, 0.008, seed=1)
    kernel = Metropolis(power=1).kernel(graph, 10.0 ** np.random.default_rng(0).uniform(-span, span, graph.n))
    heaviest = int(np.argmax(kernel.target))
    others = np.delete(np.arange(graph.n), heaviest)
    times = absorbed(
        leaving_rates(kernel.matrix())[others][:, others].toarray(),
        leaving_rates(kernel.matrix())[others][:, [heaviest]].toarray()[:, 0],
        np.ones((graph.n - 1, 1)),
    )
    expected = kernel.target[heaviest] * (kernel.target[others] @ times[:, 0])
    assert excess_visits(kernel, [heaviest]) == pytest.approx(expected, rel=1e-8)


def two_parts(edges, m, bridge):
    """Two copies of a graph of m nodes, one node between them, and how important it is."""
    edges = np.asarray(edges)
    graph = fw.graphs.from_edges(np.concatenate([edges, edges + m, [[0, 2 * m], [m, 2 * m]]]))
    return graph, np.append(np.exp(np.random.default_rng(0).standard_normal(2 * m)), bridge)


@pytest.mark.parametrize("crowded", [False, True])
def test_iterated_results_are_right_or_refused(crowded, monkeypatch):
    """The walk seldom goes from one part to the other: 3 to 8 orders of magnitude."""
    small_world, wrong = fw.graphs.watts_strogatz(100, 6, 0.3, seed=1), []
    first, second = small_world.adjacency().nonzero()
    edges, nodes = np.stack([first, second], axis=1)[first < second], np.array([1, 2, 3, 101])
    for exponent in (3, 4, 4.5, 5, 5.5, 6, 8):
        graph, importance = two_parts(edges, 100, 10.0**-exponent)
        kernel = Metropolis(power=1).kernel(graph, importance)
        expected = excess_visits(kernel, nodes)
        with monkeypatch.context() as patch:
            patch.setattr(returns, "PLAIN", 10)
            patch.setattr(returns, "DENSE", 10)
            patch.setattr(elimination, "ELIMINATION", 0)
            patch.setattr(returns, "is_crowded", lambda kernel: crowded)
            try:
                error = abs(excess_visits(kernel, nodes) / expected - 1)
            except AnalysisError:
                continue
        if error > 1e-9:
            wrong.append((exponent, error))
    assert not wrong


def test_two_cliques_that_the_walk_hardly_ever_changes(monkeypatch):
    """2 · 10¹² visits; a change of nothing is not an error of nothing."""
    monkeypatch.setattr(returns, "is_crowded", lambda kernel: True)
    graph, _ = two_parts(np.stack(np.triu_indices(150, 1), axis=1), 150, 1.0)
    kernel = Metropolis(power=1).kernel(graph, np.append(np.ones(300), 1e-12))
    expected = excess_visits(kernel, [1, 2])
    monkeypatch.setattr(returns, "PLAIN", 10)
    assert excess_visits(kernel, [1, 2]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("design", [Metropolis(power=1), MHLJ(0.1, 0.5, 3)])
def test_heavy_nodes_at_equal_distances_on_a_large_ring(design):
    """By symmetry a ring of 5000 nodes with one of them: its numbers say what those of a large ring are."""
    graph = fw.graphs.ring(100_000)
    heavy = np.arange(0, graph.n, 5000)
    importance = np.where(np.arange(graph.n) % 5000, 1.0, 100.0)
    expected = excess_visits(design.kernel(fw.graphs.ring(5000), importance[:5000]), [0])
    assert excess_visits(design.kernel(graph, importance), heavy) == pytest.approx(expected, rel=1e-8)


# What is refused.


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], r"nodes = \[\], expected a list of at least one node"),
        (3, r"nodes = 3, expected a list"),
        ("12", r"nodes = '12', expected a list"),
        ([0.5], r"nodes is an array of float64, expected whole numbers; give a list"),
        ([[0, 1]], r"nodes = \[\[0, 1\]\], expected a list"),
        ([[0], [1, 2]], r"nodes cannot be read as an array .* give a list"),
        ([True, False], r"nodes is an array of bool, expected whole numbers"),
        ([0, 5], r"nodes holds 5, expected whole numbers from 0 to 4"),
        ([-1], r"nodes holds -1, expected whole numbers from 0 to 4"),
        ([1, 2, 1], r"nodes holds 1 twice, expected different nodes"),
        (range(5), r"nodes are all 5 nodes of the graph, .* leave at least one out"),
    ],
)
def test_sets_that_are_none(nodes, message):
    with pytest.raises(AnalysisError, match=f"^excess_visits: {message}"):
        excess_visits(SimpleWalk().kernel(fw.graphs.ring(5)), nodes)


def test_kernels_that_have_no_excess():
    with pytest.raises(AnalysisError, match=r"^excess_visits: kernel = None, expected a kernel"):
        excess_visits(None, [0])
    fading = Decaying(MHLJ(0.5, 0.5, 1), fw.schedules.Inverse(1.0, scale=100)).kernel(fw.graphs.ring(4), [9, 1, 1, 1])
    with pytest.raises(AnalysisError, match=r"^excess_visits: .* changes with the step.* kernel.at\(step\)"):
        excess_visits(fading, [0])
    assert excess_visits(fading.at(100), [0]) > 0


@pytest.mark.parametrize("n", [4, 2000])
def test_reducible_kernels_have_no_excess(n):
    rows = np.eye(n, k=1) / 2 + np.eye(n) / 2
    rows[-1, -2:] = 0.5
    kernel = FromMatrix(rows, target=np.ones(n)).kernel(fw.graphs.path(n))
    expected = rf"^excess_visits: FromMatrix.* P is reducible \({n - 1} strongly .* from node 0 to node 1 but cannot"
    with pytest.raises(KernelError, match=expected):
        excess_visits(kernel, [0])


def test_a_set_that_has_no_room_is_refused():
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    with pytest.raises(fw.FreewalkError, match=r"nodes would take .*, expected less than the"):
        excess_visits(kernel, np.broadcast_to(1.0, 2**45))
