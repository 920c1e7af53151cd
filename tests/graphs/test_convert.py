"""From networkx, scipy and lists of edges, and back."""

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from freewalk import graphs
from freewalk.errors import GraphError
from freewalk.graphs import complete, from_edges, from_networkx, from_scipy, path, ring

EXAMPLES = [
    ring(7),
    path(5),
    graphs.grid(3, 5),
    complete(6),
    graphs.star(9),
    graphs.watts_strogatz(60, 4, 0.3, seed=1),
    graphs.erdos_renyi(60, 0.2, seed=1),
]


def pairs(graph):
    return np.column_stack([np.repeat(np.arange(graph.n), graph.degrees), graph.indices])


@pytest.mark.parametrize("graph", EXAMPLES, ids=repr)
def test_round_trips(graph):
    assert from_networkx(graph.to_networkx()) == graph
    assert from_networkx(graph.to_networkx()).name == graph.name
    assert from_scipy(graph.adjacency()) == graph
    assert from_scipy(graph.adjacency().toarray()) == graph
    assert from_edges(pairs(graph)) == graph


# --- lists of edges ---


@st.composite
def connected_edges(draw):
    """The number of nodes, the edges of a random tree with some more, and the same list in disguise."""
    n = draw(st.integers(2, 25))
    tree = [(node, draw(st.integers(0, node - 1))) for node in range(1, n)]
    more = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30))
    edges = tree + more
    again = draw(st.lists(st.sampled_from(edges), max_size=10))
    loops = [(node, node) for node in draw(st.lists(st.integers(0, n - 1), max_size=5))]
    disguised = draw(st.permutations(edges + again + loops))
    flips = draw(st.lists(st.booleans(), min_size=len(disguised), max_size=len(disguised)))
    return n, edges, [edge[::-1] if flip else edge for edge, flip in zip(disguised, flips, strict=True)]


@settings(derandomize=True, deadline=None, max_examples=150, database=None)
@given(connected_edges())
def test_canonical_whatever_the_list(example):
    n, edges, disguised = example
    graph = from_edges(edges)
    assert from_edges(disguised) == graph
    assert graph.n == n
    expected = {frozenset(edge) for edge in edges if edge[0] != edge[1]}
    assert graph.edges == len(expected)
    assert {frozenset(edge) for edge in pairs(graph).tolist()} == expected
    for node in range(n):
        assert np.all(np.diff(graph.neighbours(node)) > 0)
        assert node not in graph.neighbours(node)
    plain = networkx.Graph([edge for edge in edges if edge[0] != edge[1]])
    assert graph.degrees.tolist() == [plain.degree[node] for node in range(n)]


def test_what_counts_as_a_list_of_edges():
    expected = path(3)
    assert from_edges(((0, 1), (1, 2))) == expected
    assert from_edges(iter([[0, 1], [1, 2]])) == expected
    assert from_edges({(0, 1), (1, 2)}) == expected
    assert from_edges(networkx.path_graph(3).edges) == expected
    assert from_edges(np.array([[0, 1], [1, 2]], dtype=np.uint64)) == expected
    assert from_edges([(0, 1), (1, 2)], n=3) == expected
    assert from_edges([(0, 1), (1, 2)]).name == "from_edges"


@pytest.mark.parametrize(
    ("edges", "n", "message"),
    [
        ([], None, "from_edges: got no nodes, a walk needs at least 2 nodes"),
        ([(0, 0)], None, "got 1 node, a walk needs at least 2 nodes"),
        ([(0, 0)], 1, "got 1 node, a walk needs at least 2 nodes"),
        ([], 3, "disconnected, 3 components of 1, 1, 1 nodes"),
        ([(0, 1), (2, 3)], None, "disconnected, 2 components of 2, 2 nodes"),
        ([(1, 2), (2, 3)], None, r"disconnected, 2 components of 3, 1 nodes \(node 0 has no edge\)"),
        ([(0, 1)], 3, r"disconnected, 2 components of 2, 1 nodes \(node 2 has no edge\)"),
        ([(0, 1), (1, -2)], None, r"edge 1 of the list is \(1, -2\), expected nodes from 0 on"),
        ([(0, 1), (1, 2)], 2, r"edge 1 of the list is \(1, 2\), expected nodes from 0 on, below n = 2"),
        ([(0, 1), (1, 10**12)], None, "largest node is 1000000000000 but 2 edges join at most 4 .*renumber"),
        ([(0.0, 1.0)], None, r"got an array of float64 of shape \(1, 2\), expected pairs of whole numbers"),
        ([(0, 1, 2)], None, r"got an array of int64 of shape \(1, 3\)"),
        ([0, 1], None, r"got an array of int64 of shape \(2,\)"),
        ([(True, False)], None, "got an array of bool"),
        ([("a", "b")], None, "got an array of <U1"),
        ([(0, 1), (1,)], None, "got what is not an array"),
        (5, None, r"got an array of int64 of shape \(\)"),
        (None, None, "got an array of object"),
        ([(0, 1)], 2.0, "n = 2.0, expected a whole number"),
        ([(0, 1)], -1, "n = -1, expected a whole number from 0"),
        ([(0, 1)], 2**40, "n = 1099511627776, expected a whole number from 0 to 2147483647"),
    ],
)
def test_bad_edges(edges, n, message):
    with pytest.raises(GraphError, match=message):
        from_edges(edges, n)


def test_the_remedy_for_gaps_works():
    edges = np.array([(10**12, 7), (7, 10**9)])
    with pytest.raises(GraphError, match="renumber"):
        from_edges(edges)
    assert from_edges(np.unique(edges, return_inverse=True)[1].reshape(-1, 2)).degrees.tolist() == [2, 1, 1]


# --- networkx ---


def test_nodes_keep_their_order():
    other = networkx.Graph()
    other.add_nodes_from(["c", "a", "b"])
    other.add_edges_from([("a", "b"), ("a", "c"), ("a", "a")], weight=0.0)
    graph = from_networkx(other)
    assert graph.name == "from_networkx"
    assert graph.degrees.tolist() == [1, 2, 1]


def test_direction_is_ignored_and_parallel_edges_are_merged():
    assert from_networkx(networkx.DiGraph([(0, 1), (1, 0), (2, 1)])) == path(3)
    assert from_networkx(networkx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2)])) == path(3)
    assert from_networkx(networkx.MultiDiGraph([(0, 1), (0, 1), (2, 1)])) == path(3)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (networkx.Graph(), "from_networkx: got no nodes, a walk needs at least 2 nodes"),
        (networkx.path_graph(1), "got 1 node, a walk needs at least 2 nodes"),
        (networkx.empty_graph(3), "disconnected, 3 components of 1, 1, 1 nodes"),
        ([(0, 1)], "from_networkx: got a list, expected a networkx graph; from_scipy takes matrices"),
    ],
)
def test_bad_networkx(other, message):
    with pytest.raises(GraphError, match=message):
        from_networkx(other)


# --- scipy ---


def test_only_the_pattern_counts():
    weights = np.array([[9.0, -2.0, 0.0], [0.5, 0.0, 1e-300], [0.0, 3.0, 0.0]])
    assert from_scipy(weights) == path(3)
    assert from_scipy(weights.tolist()) == path(3)
    assert from_scipy(weights != 0) == path(3)
    assert from_scipy(weights.astype(np.complex128)) == path(3)
    for form in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr"):
        assert from_scipy(scipy.sparse.csr_array(weights).asformat(form)) == path(3)
        assert from_scipy(scipy.sparse.csr_matrix(weights).asformat(form)) == path(3)
    assert from_scipy(weights).name == "from_scipy"


def test_stored_zeros_are_no_edges_and_the_matrix_is_left_alone():
    entries = ([1.0, 1.0, 1.0, 1.0, 0.0, 2.0, -2.0], ([0, 1, 1, 2, 0, 2, 2], [1, 0, 2, 1, 2, 0, 0]))
    matrix = scipy.sparse.coo_array(entries, shape=(3, 3))
    assert from_scipy(matrix) == path(3)
    assert matrix.nnz == 7
    rows = scipy.sparse.csr_array(([1.0, 0.0, 1.0], [1, 0, 0], [0, 2, 3]), shape=(2, 2))
    assert from_scipy(rows) == path(2)
    assert rows.indices.tolist() == [1, 0, 0]


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1, 0], [1, 0, 1]], r"from_scipy: got a matrix of shape \(2, 3\), expected a square one"),
        ([[1.0]], "from_scipy: got 1 node, a walk needs at least 2 nodes"),
        ([[0, 1, 1], [1, 0, 1], [0, 1, 0]], r"entry \(0, 2\) is not zero .* give it matrix \+ matrix.T"),
        ([[0.0, np.nan], [np.nan, 0.0]], "holds NaN or infinity, expected finite numbers"),
        ([[0.0, np.inf], [np.inf, 0.0]], "holds NaN or infinity, expected finite numbers"),
        ([[1.0, 0.0], [0.0, 1.0]], "disconnected, 2 components of 1, 1 nodes"),
    ],
)
def test_bad_matrices(make, rows, message):
    with pytest.raises(GraphError, match=message):
        from_scipy(make(rows))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((0, 0)), "got no nodes, a walk needs at least 2 nodes"),
        ([1, 2, 3], r"got a matrix of shape \(3,\), expected a square one"),
        ([["a", "b"], ["c", "d"]], "got a matrix of <U1, expected numbers"),
        ([[0, 1], [1]], "got what is not an array"),
        (None, r"got a matrix of shape \(\)"),
    ],
)
def test_not_a_matrix(matrix, message):
    with pytest.raises(GraphError, match=message):
        from_scipy(matrix)


def test_the_remedy_for_one_way_matrices_works():
    matrix = scipy.sparse.csr_array(np.triu(np.ones((4, 4)), k=1))
    with pytest.raises(GraphError, match=r"matrix \+ matrix.T"):
        from_scipy(matrix)
    assert from_scipy(matrix + matrix.T) == complete(4)
