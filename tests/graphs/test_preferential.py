"""Barabási–Albert graphs.

The seeds are fixed. For another seed each statistical test fails with a chance of at most about 1e-6, and
each is shown to catch a planted mistake.
"""

import networkx
import numpy as np
import pytest
from scipy import stats

from freewalk.compiled.compiler import compile_functions
from freewalk.errors import GraphError
from freewalk.graphs import barabasi_albert, from_edges, star
from freewalk.graphs.random_graphs import attach

RARE = 1e-6


def attached(n, m, seed, function=attach):
    ends = np.empty(2 * m * (n - m), dtype=np.int32)
    function(n, m, seed, ends, np.zeros(n, dtype=np.int32))
    return ends


@pytest.fixture(scope="module")
def compiled():
    function = compile_functions({"attach": attach}, "attach")
    return lambda n, m, seed: attached(n, m, seed, function)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (10, 1), (10, 3), (10, 9), (300, 5)])
def test_structure(n, m):
    graph = barabasi_albert(n, m, seed=1)
    assert graph.n == n
    assert graph.edges == m * (n - m)  # so that each node found m distinct ones
    assert graph.edges == networkx.barabasi_albert_graph(n, m, seed=1).number_of_edges()
    assert np.all(graph.degrees[m + 1 :] >= m)
    assert [np.sum(graph.neighbours(node) < node) for node in range(m + 1, n)] == [m] * (n - m - 1)
    assert graph.name == f"barabasi_albert({n}, {m}, seed=1)"


def test_it_starts_as_a_star():
    assert barabasi_albert(6, 5) == star(6)
    assert np.all(np.isin([1, 2, 3], barabasi_albert(50, 3).neighbours(0)))


def test_compiled_and_plain_draw_the_same(compiled):
    for m, seed in [(1, 0), (4, 2**64 - 1)]:
        np.testing.assert_array_equal(compiled(60, m, np.uint64(seed)), attached(60, m, np.uint64(seed)))


def test_law_of_trees(compiled):
    """Node 2 goes to 0 or 1; node 3 to the node of degree 2 with chance 1/2, to the others with 1/4 each."""
    repeats = 8000
    outcomes = np.zeros((2, 3), dtype=np.int64)
    for seed in range(repeats):
        ends = compiled(4, 1, np.uint64(seed))
        outcomes[ends[2], ends[4]] += 1
    law = np.array([[2, 1, 1], [1, 2, 1]]) / 8
    assert stats.chisquare(outcomes.ravel(), repeats * law.ravel()).pvalue > RARE
    assert stats.chisquare(outcomes.ravel(), np.full(6, repeats / 6)).pvalue < RARE  # not uniform attachment


def test_law_of_distinct_nodes(compiled):
    """Node 3 meets degrees 2, 1, 1 and draws until two differ: {0, 1}, {0, 2} have 5/12 each, {1, 2} 1/6."""
    repeats = 8000
    left_out = np.zeros(3, dtype=np.int64)
    for seed in range(repeats):
        left_out[3 - compiled(4, 2, np.uint64(seed))[4::2].sum()] += 1
    assert stats.chisquare(left_out, repeats * np.array([2, 5, 5]) / 12).pvalue > RARE
    both_at_once = repeats * np.array([1, 2, 2]) / 5  # both thrown away when they are equal
    assert stats.chisquare(left_out, both_at_once).pvalue < RARE


def degree_shares(graph, m, top):
    return np.bincount(np.minimum(graph.degrees, top), minlength=top + 1)[m:]


def test_degree_tail():
    """Shares 2m(m + 1) / (d(d + 1)(d + 2)): counts vary less than binomial ones, the level is below 1e-6."""
    n, m, top = 50_000, 2, 30
    degrees = np.arange(m, top)
    law = 2 * m * (m + 1) / (degrees * (degrees + 1) * (degrees + 2))
    expected = n * np.append(law, 1 - law.sum())
    graph = barabasi_albert(n, m, seed=3)
    assert stats.chisquare(degree_shares(graph, m, top), expected).pvalue > RARE
    random = np.random.default_rng(3)
    later = np.repeat(np.arange(m + 1, n), m)
    uniform = from_edges(np.column_stack([later, random.integers(later)]), n)
    planted = degree_shares(uniform, 1, top)[m - 1 :]
    assert stats.chisquare(planted, expected * planted.sum() / n).pvalue < RARE


def test_hubs_grow_as_the_square_root():
    """The largest degree is of the order m √n: ten seeds gave 1 to 4 times √n, well inside the bounds."""
    for n in (1000, 10_000, 100_000):
        largest = max(barabasi_albert(n, 3, seed=seed).degrees.max() for seed in range(3))
        assert 0.5 < largest / np.sqrt(n) < 30
    assert largest > 5 * 3 * np.log2(n)  # uniform attachment would stay near m · log2(n)


def test_a_seed_is_a_graph():
    assert barabasi_albert(300, 3, seed=5) == barabasi_albert(300, 3, seed=5)
    assert len({barabasi_albert(300, 3, seed=seed) for seed in [*range(20), 2**64 - 1]}) == 21


def test_known_answer():
    """The graph of a seed is a contract: a change here breaks the records of users."""
    assert hash(barabasi_albert(1000, 3, seed=1)) == 3479713498


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 1), "n = 1, expected a whole number from 2"),
        ((10.0, 1), "n = 10.0, expected a whole number"),
        ((10, 0), "m = 0, expected a whole number from 1 to 9"),
        ((10, 10), "m = 10, expected a whole number from 1 to 9"),
        ((10, 2.0), "m = 2.0, expected a whole number from 1 to 9"),
        ((10, 2, -1), r"seed = -1, expected a whole number from 0 to 2\^64 - 1"),
        ((10, 2, None), "seed = None, expected"),
        ((2**31 - 1, 2), r"the number of edges m · \(n - m\) = 4294967290, expected .* to 2\^31 - 1"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(GraphError, match=f"barabasi_albert: {message}"):
        barabasi_albert(*arguments)
