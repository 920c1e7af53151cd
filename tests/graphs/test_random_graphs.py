"""Erdős–Rényi and Watts–Strogatz graphs.

The seeds are fixed: a passing test keeps passing. For another seed each comparison below fails with a chance
of about 1e-6 (five standard deviations, or a chi-square at 1e-6), and each law is shown to catch a planted
mistake.
"""

import networkx
import numpy as np
import pytest
from scipy import stats

from freewalk.errors import GraphError
from freewalk.graphs import complete, erdos_renyi, from_networkx, ring, watts_strogatz
from freewalk.graphs.random_graphs import _chosen_pairs, join_strays, pair_of
from freewalk.rng import generator

RARE = 1e-6
SIGMAS = 5.0


def edge_set(graph):
    rows = np.repeat(np.arange(graph.n), graph.degrees)
    return {(u, v) for u, v in zip(rows.tolist(), graph.indices.tolist(), strict=True) if u < v}


def sigmas(count, trials, probability):
    return abs(count - trials * probability) / np.sqrt(trials * probability * (1 - probability))


def uniformity(counts):
    return stats.chisquare(counts).pvalue


def degree_fit(degrees, n, p):
    """The chi-square level of degrees against Binomial(n - 1, p), tails pooled to expect 20 or more."""
    law = stats.binom(n - 1, p)
    values = np.arange(n)
    inner = values[n * law.pmf(values) >= 20]
    low, high = inner[0], inner[-1]
    expected = n * np.array([law.cdf(low), *law.pmf(inner[1:-1]), law.sf(high - 1)])
    observed = np.bincount(np.clip(degrees, low, high) - low, minlength=len(inner))
    return stats.chisquare(observed, expected).pvalue


# --- which pair has which number ---


def test_pairs_are_counted_in_order():
    expected = [(u, v) for v in range(1, 60) for u in range(v)]
    first, second = pair_of(np.arange(len(expected)))
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected


def test_pairs_of_large_graphs_are_exact():
    random = np.random.default_rng(1)
    larger = np.concatenate(
        [[10**6, 10**7, 94906267, 2**31 - 1], random.integers(1, 2**31, size=20_000), 2 ** np.arange(31)]
    )
    base = larger * (larger - 1) // 2
    for smaller in (np.zeros_like(larger), larger - 1, random.integers(larger)):
        first, second = pair_of(base + smaller)
        np.testing.assert_array_equal(first, smaller)
        np.testing.assert_array_equal(second, larger)


# --- Erdős–Rényi ---


def test_each_pair_has_the_same_chance_and_they_are_independent():
    repeats, total, p = 4000, 15, 0.3
    random = generator(5, 0)
    chosen = np.zeros((repeats, total))
    for row in chosen:
        row[_chosen_pairs(total, p, random)] = 1
    assert sigmas(chosen.sum(), repeats * total, p) < SIGMAS
    assert np.all(sigmas(chosen.sum(axis=0), repeats, p) < SIGMAS)
    products = (chosen[:, :-1] * chosen[:, 1:]).sum(axis=0)
    assert np.all(sigmas(products, repeats, p * p) < SIGMAS)


def test_edge_count():
    n, p = 2000, 0.05
    pairs = n * (n - 1) // 2
    assert sigmas(erdos_renyi(n, p, seed=1).edges, pairs, p) < SIGMAS
    planted = np.cumsum(generator(1, 0).geometric(p, size=pairs) + 1)  # skips one pair too many
    assert sigmas(np.sum(planted < pairs), pairs, p) > 2 * SIGMAS


def test_degree_distribution():
    n, p = 5000, 0.004
    graph = erdos_renyi(n, p, seed=2)
    assert degree_fit(graph.degrees, n, p) > RARE
    assert degree_fit(graph.degrees, n, p * 1.05) < RARE
    assert degree_fit(watts_strogatz(n, 20, 1.0, seed=2).degrees, n, p) < RARE  # the right mean, another law


def test_many_batches_and_extreme_probabilities():
    assert _chosen_pairs(1000, 1.0, generator(0)).tolist() == list(range(1000))
    assert _chosen_pairs(1000, 0.0, generator(0)).size == 0
    assert _chosen_pairs(2**61, 1e-320, generator(0)).size == 0
    random = generator(1)
    assert sigmas(sum(_chosen_pairs(1, 0.3, random).size for _ in range(2000)), 2000, 0.3) < SIGMAS
    places = _chosen_pairs(2**61 - 1, 1e-15, generator(3))
    assert np.all(np.diff(places) > 0)
    assert 0 <= places[0] < places[-1] < 2**61 - 1
    assert sigmas(len(places), 2**61 - 1, 1e-15) < SIGMAS
    assert erdos_renyi(2, 1.0) == complete(2)
    assert erdos_renyi(30, 1) == complete(30)


def test_strays_are_joined_and_counted_in_the_name():
    graph = erdos_renyi(1000, 0.0055, seed=0)
    random_part = pair_of(_chosen_pairs(1000 * 999 // 2, 0.0055, generator(0, 101)))
    before = networkx.Graph()
    before.add_nodes_from(range(1000))
    before.add_edges_from(np.transpose(random_part).tolist())
    components = list(networkx.connected_components(before))
    strays = len(components) - 1
    assert strays > 1
    assert graph.name == f"erdos_renyi(1000, 0.0055, seed=0), {strays} strays joined"
    assert graph.edges == before.number_of_edges() + strays
    added = edge_set(graph) - {tuple(sorted(edge)) for edge in before.edges}
    main = max(components, key=len)
    assert all(len({u, v} & main) == 1 for u, v in added)  # one end in the main component, one in a stray


def test_strays_are_joined_by_uniform_nodes():
    first, second = np.arange(990), np.arange(1, 991)  # a path of 991 nodes
    chain = np.arange(991, 999)  # and a stray one of 9
    first, second = np.concatenate([chain, first]), np.concatenate([chain + 1, second])
    random = generator(4)
    ends = [join_strays(first, second, 1000, random) for _ in range(1500)]
    assert {joined for _, _, joined in ends} == {1}
    main_ends = np.array([u[-1] for u, _, _ in ends])
    stray_ends = np.array([v[-1] for _, v, _ in ends])
    assert uniformity(np.bincount(stray_ends - 991, minlength=9)) > RARE
    assert uniformity(np.bincount(np.maximum(stray_ends - 991, 1), minlength=9)[1:]) < RARE
    assert main_ends.max() <= 990
    assert uniformity(np.bincount(main_ends * 10 // 990, minlength=11)[:10]) > RARE
    assert uniformity(np.bincount(main_ends[main_ends > 50] * 10 // 990, minlength=11)[:10]) < RARE


def test_one_stray_is_singular_and_too_many_are_an_error():
    names = {erdos_renyi(500, 0.012, seed=seed).name for seed in range(12)}
    assert any(name.endswith("), 1 stray joined") for name in names)
    assert any(name.endswith(")") for name in names)
    with pytest.raises(GraphError, match=r"erdos_renyi\(1000, 0.001, seed=0\): disconnected, \d+ components of"):
        erdos_renyi(1000, 0.001)
    with pytest.raises(GraphError, match="3 components of 1, 1, 1 nodes"):
        erdos_renyi(3, 0.0)


# --- Watts–Strogatz ---


@pytest.mark.parametrize(("n", "k"), [(3, 2), (10, 2), (10, 4), (11, 10), (50, 6)])
def test_without_rewiring_it_is_the_lattice_of_networkx(n, k):
    assert watts_strogatz(n, k, 0.0) == from_networkx(networkx.watts_strogatz_graph(n, k, 0.0))


@pytest.mark.parametrize(("n", "k", "p"), [(200, 4, 0.1), (200, 4, 1.0), (30, 20, 1.0), (12, 10, 1.0), (7, 4, 1)])
def test_rewiring_keeps_the_number_of_edges_and_the_near_ends(n, k, p):
    for seed in range(5):
        graph = watts_strogatz(n, k, p, seed=seed)
        assert graph.edges == n * k // 2  # so that none was lost as a duplicate or a self-loop
        assert graph.degrees.min() >= k // 2


def test_a_complete_lattice_has_nowhere_to_go():
    assert watts_strogatz(5, 4, 1.0) == complete(5)


def rewired(graph, k):
    edges = np.array(sorted(edge_set(graph)))
    gap = edges[:, 1] - edges[:, 0]
    return edges[np.minimum(gap, graph.n - gap) > k // 2]


@pytest.mark.parametrize("p", [0.02, 0.3])
def test_rewired_fraction(p):
    n, k = 20_000, 6
    count = len(rewired(watts_strogatz(n, k, p, seed=3), k))
    # An edge may be rewired to a place on the lattice that another has left: a chance of k / n.
    assert sigmas(count, n * k // 2, p) < SIGMAS
    assert sigmas(count, n * k // 2, p * p) > 2 * SIGMAS
    assert sigmas(len(rewired(watts_strogatz(n, k, p * 1.2, seed=3), k)), n * k // 2, p) > SIGMAS


def test_far_ends_are_uniform():
    n, k = 2000, 10
    graph = watts_strogatz(n, k, 1.0, seed=4)
    # All edges are rewired: a degree is k/2 near ends and a Binomial(n · k/2, 1/n) number of far ends.
    far_ends = graph.degrees - k // 2
    law = stats.binom(n * k // 2, 1 / n)
    observed = np.bincount(np.minimum(far_ends, 11), minlength=12)
    expected = n * np.array([*law.pmf(np.arange(11)), law.sf(10)])
    assert stats.chisquare(observed, expected).pvalue > RARE
    shifted = np.bincount(np.minimum(far_ends + (np.arange(n) % 2 == 0), 11), minlength=12)
    assert stats.chisquare(shifted, expected).pvalue < RARE


def test_rewiring_may_cut_a_ring():
    with pytest.raises(GraphError, match=r"watts_strogatz\(100, 2, 0.5, seed=0\): disconnected"):
        watts_strogatz(100, 2, 0.5)
    assert watts_strogatz(100, 2, 0.0) == ring(100)


# --- both ---


@pytest.mark.parametrize(
    "make", [lambda seed: erdos_renyi(300, 0.03, seed), lambda seed: watts_strogatz(300, 6, 0.2, seed)]
)
def test_a_seed_is_a_graph(make):
    assert make(0) == make(0)
    assert make(0).name == make(0).name
    assert len({make(seed) for seed in [*range(20), 2**64 - 1]}) == 21


def test_known_answers():
    """The graph of a seed is a contract: a change here breaks the records of users."""
    assert hash(erdos_renyi(1000, 0.01, seed=1)) == 606218744
    assert hash(erdos_renyi(1000, 0.0055, seed=0)) == 475325614
    assert hash(watts_strogatz(1000, 4, 0.1, seed=1)) == 3744468567


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "one", None, True])
@pytest.mark.parametrize(
    "make", [lambda seed: erdos_renyi(50, 0.5, seed), lambda seed: watts_strogatz(50, 4, 0.1, seed)]
)
def test_bad_seed(make, seed):
    with pytest.raises(GraphError, match=r"seed = .*, expected a whole number from 0 to 2\^64 - 1"):
        make(seed)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), float("inf"), "0.5", None, True])
@pytest.mark.parametrize("make", [lambda p: erdos_renyi(50, p), lambda p: watts_strogatz(50, 4, p)])
def test_bad_probability(make, p):
    with pytest.raises(GraphError, match=r"p = .*, expected a probability from 0 to 1"):
        make(p)


@pytest.mark.parametrize("n", [1, 0, 10.0, None])
def test_bad_size(n):
    with pytest.raises(GraphError, match=r"erdos_renyi: n = .*, expected a whole number from 2"):
        erdos_renyi(n, 0.5)
    with pytest.raises(GraphError, match=r"watts_strogatz: n = .*, expected a whole number from 3"):
        watts_strogatz(n, 2, 0.5)


@pytest.mark.parametrize("k", [0, 1, -2, 10, 12, 4.0])
def test_bad_number_of_nearest(k):
    with pytest.raises(GraphError, match=r"watts_strogatz: k = .*, expected a whole number from 2 to 9"):
        watts_strogatz(10, k, 0.5)


def test_odd_number_of_nearest():
    with pytest.raises(GraphError, match="watts_strogatz: k = 3, expected an even number"):
        watts_strogatz(10, 3, 0.5)
