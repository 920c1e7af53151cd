"""From networkx and scipy, and back."""

import networkx
import numpy as np
import pytest
import scipy.sparse

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


@pytest.mark.parametrize("graph", EXAMPLES, ids=repr)
def test_round_trips(graph):
    assert from_networkx(graph.to_networkx()) == graph
    assert from_networkx(graph.to_networkx()).name == graph.name
    assert from_scipy(graph.adjacency()) == graph
    assert from_scipy(graph.adjacency().toarray()) == graph
    assert from_edges(np.column_stack([np.repeat(np.arange(graph.n), graph.degrees), graph.indices])) == graph


# --- networkx ---


def test_nodes_keep_their_order():
    other = networkx.Graph()
    other.add_nodes_from(["c", "a", "b"])
    other.add_edges_from([("a", "b"), ("a", "c"), ("a", "a")], weight=0.0)
    graph = from_networkx(other)
    assert graph.name == "from_networkx"
    assert graph.degrees.tolist() == [1, 2, 1]


def test_names_survive_both_ways():
    other = networkx.Graph([("b", "a"), ("a", (1, 2))])
    graph = from_networkx(other)
    assert graph.node_names == ("b", "a", "(1, 2)")
    back = graph.to_networkx()
    assert list(back) == ["b", "a", "(1, 2)"]
    assert set(back.edges) == {("b", "a"), ("a", "(1, 2)")}
    again = from_networkx(back)
    assert (again, again.node_names) == (graph, graph.node_names)


def test_only_numbers_in_order_are_no_names():
    assert from_networkx(networkx.path_graph(3)).node_names is None
    assert from_networkx(networkx.path_graph(np.arange(3))).node_names is None
    assert from_networkx(networkx.path_graph([1, 2, 3])).node_names == ("1", "2", "3")
    assert from_networkx(networkx.path_graph([1, 0, 2])).node_names == ("1", "0", "2")
    assert from_networkx(networkx.path_graph("012")).node_names == ("0", "1", "2")


def test_nodes_that_look_alike():
    assert from_networkx(networkx.path_graph([1, "1", ""])).node_names == ("1", "'1'", "''")

    class Same:
        def __repr__(self):
            return "same"

    with pytest.raises(GraphError, match=r"from_networkx: the nodes have no names that differ.*convert_node_labels"):
        from_networkx(networkx.path_graph([Same(), Same()]))


def test_positions_survive_both_ways():
    places = np.array([[0.1, 2.0], [-3.0, 1e-9], [4.0, 4.0]])
    other = networkx.path_graph("abc")
    networkx.set_node_attributes(other, dict(zip("abc", places, strict=True)), "pos")
    graph = from_networkx(other)
    assert graph.positions.tolist() == places.tolist()
    assert from_networkx(graph.to_networkx()).positions.tolist() == places.tolist()
    apart = networkx.path_graph(3)
    networkx.set_node_attributes(apart, dict(enumerate(places[:, 0])), "x")
    assert from_networkx(apart).positions is None  # no y
    networkx.set_node_attributes(apart, dict(enumerate(places[:, 1])), "y")
    assert from_networkx(apart).positions.tolist() == places.tolist()


@pytest.mark.parametrize("place", [None, (1.0,), (1.0, 2.0, 3.0), (1.0, np.nan), "here", (1, 10**400), {}])
def test_a_node_without_a_place(place):
    other = networkx.path_graph(3)
    networkx.set_node_attributes(other, {0: (0, 0), 1: (1, 1), 2: place}, "pos")
    assert from_networkx(other).positions is None


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
        (networkx.Graph([("a", "b"), ("c", "d")]), r"nodes \(no path from node 'a' to node 'c'\), expected 1"),
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
        ([[0, 1, 1], [1, 0, 1], [0, 1, 0]], r"entry \(0, 2\) is not zero .* pass matrix \+ matrix.T"),
        ([[0.0, np.nan], [np.nan, 0.0]], "= nan .*, expected a finite number; put 0 where there is no edge"),
        ([[0.0, np.inf], [np.inf, 0.0]], "= inf .*, expected a finite number; put 0 where there is no edge"),
        ([[0.0, 1j], [1j, 0.0]], "matrix = .*, expected an array of real numbers"),
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
        ([["a", "b"], ["c", "d"]], "the matrix = .*, expected an array of real numbers"),
        ([[0, 1], [1]], "the matrix cannot be read as an array of real numbers"),
        (np.ma.array(np.ones((2, 2)), mask=np.eye(2)), "the matrix has masked entries"),
        (scipy.sparse.coo_array((10**10, 10**10)), "the number of rows = 10000000000, expected"),
        (None, "the matrix = None, expected an array of real numbers"),
        (5.0, r"got a matrix of shape \(\)"),
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
