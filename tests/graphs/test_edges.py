"""Lists of edges, between numbers and between names."""

import networkx
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freewalk.errors import GraphError
from freewalk.graphs import from_edges, path


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
    assert {frozenset(edge) for edge in graph.to_networkx().edges} == expected
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
        (
            [(1, 2), (2, 3)],
            None,
            "largest node is 3 but there are only 3 different .*, names=True\\) treats the numbers",
        ),
        ([(0, 1)], 3, r"disconnected, 2 components of 2, 1 nodes \(node 2 has no edge\)"),
        ([(0, 1), (1, -2)], None, r"edge 1 of the list is \(1, -2\), expected nodes from 0 on"),
        ([(0, 1), (1, 2)], 2, r"edge 1 of the list is \(1, 2\), expected nodes from 0 on, below n = 2"),
        ([(0, 1), (1, 10**12)], None, "largest node is 1000000000000 but .* only 3 .* without gaps"),
        ([(0.0, 1.0)], None, "edges is an array of float64, expected whole numbers; give pairs"),
        ([(0, 1, 2)], None, r"edges has shape \(1, 3\), expected \(any, 2\); give pairs"),
        ([0, 1], None, r"edges has shape \(2,\), expected \(any, 2\)"),
        ([(True, False)], None, "edges is an array of bool"),
        ([("a", None)], None, "a node of edge 0 of the list = None, expected a string or a whole number"),
        ([("a", "b"), ("b", 1.5)], None, "a node of edge 1 of the list = 1.5, expected a string or a whole number"),
        ([("a", "b"), ("a", "b", "c")], None, "edge 1 of the list = .*, expected a pair of nodes"),
        (["ab", ("a", "b")], None, "edge 0 of the list = 'ab', expected a pair of nodes"),
        ([("a", "")], None, "a name of a node = '', expected a string"),
        ([("a", "b")], 3, "n = 3, expected 2, the number of names"),
        ([("a", "b"), ("c", "d")], None, r"2 components of 2, 2 nodes \(no path from node 'a' to node 'c'\)"),
        ([(0, 1), (1,)], None, "edges cannot be read as an array of whole numbers"),
        (5, None, "edges = 5, expected a list"),
        (None, None, "edges = None, expected a list"),
        ("edges.csv", None, r"edges = 'edges.csv', expected a list of pairs of nodes; read\(path\) reads a file"),
        (np.ma.array([[0, 1]], mask=[[True, False]]), None, "edges has masked entries"),
        ([(0, 1)], 2.0, "n = 2.0, expected a whole number"),
        ([(0, 1)], -1, "n = -1, expected a whole number from 0"),
        ([(0, 1)], 2**40, r"n = 1099511627776, expected a whole number from 0 to 2\^31 - 1"),
    ],
)
def test_bad_edges(edges, n, message):
    with pytest.raises(GraphError, match=message):
        from_edges(edges, n)


def test_the_remedy_for_gaps_works():
    edges = np.array([(10**12, 7), (7, 10**9)])
    with pytest.raises(GraphError, match="names=True"):
        from_edges(edges)
    graph = from_edges(edges, names=True)
    assert graph.node_names == ("7", "1000000000", "1000000000000")
    assert graph.degrees.tolist() == [2, 1, 1]


def test_texts_are_names_in_the_order_of_their_first_appearance():
    expected = ("Kiel", "Hamburg", "Berlin")
    roads = [("Kiel", "Hamburg"), ("Hamburg", "Berlin"), ("Berlin", "Hamburg")]
    for edges in (
        roads,
        iter(roads),
        np.array(roads),
        np.array(roads, dtype=object),
        [np.array(road) for road in roads],
    ):
        graph = from_edges(edges)
        assert graph == path(3)
        assert graph.node_names == expected
    assert from_edges([("b", 1), (1, "a")]).node_names == ("b", "1", "a")
    assert from_edges([("10", "9"), ("9", "08")]).node_names == ("08", "9", "10")  # all whole numbers: by size
    assert from_edges([("0", "1")]).node_names == ("0", "1")


def test_names_fix_the_order():
    names = ["Berlin", "Hamburg", "Kiel"]
    by_name = from_edges([("Kiel", "Berlin"), ("Kiel", "Hamburg")], names=names)
    by_place = from_edges([(2, 0), (2, 1)], names=names)
    assert by_name == by_place
    assert by_name.node_names == by_place.node_names == tuple(names)
    assert by_name.degrees.tolist() == [1, 1, 2]
    by_number = from_edges([(30, 10), (30, 20)], names=[30, 10, 20])
    assert by_number.node_names == ("30", "10", "20")
    assert by_number.degrees.tolist() == [2, 1, 1]


@pytest.mark.parametrize(
    ("edges", "names", "message"),
    [
        ([("a", "b")], ["a", "c"], "an edge names 'b', expected one of the 2 given names"),
        ([(0, 2)], ["a", "b"], r"edge 0 of the list is \(0, 2\), expected nodes from 0 on, below n = 2"),
        ([("a", "b")], ["a", "b", "c"], r"2 components of 2, 1 nodes \(node 'c' has no edge\)"),
        ([("a", "b")], ["a", "b", "b"], "node_names has 3 names, 2 of them different"),
        ([("a", "b")], ["a", None], "a name = None, expected a string or a whole number"),
        ([("a", "b")], "ab", "names = 'ab', expected a list"),
        ([(0, 1)], 5, "names = 5, expected a list"),
    ],
)
def test_bad_names(edges, names, message):
    with pytest.raises(GraphError, match=message):
        from_edges(edges, names=names)


def test_tables_of_pandas():
    roads = pandas.DataFrame({"from": ["Kiel", "Hamburg"], "to": ["Hamburg", "Berlin"], "km": [97.0, 289.0]})
    assert from_edges(roads).node_names == ("Kiel", "Hamburg", "Berlin")
    assert from_edges(roads.astype("category")).node_names == ("Kiel", "Hamburg", "Berlin")
    assert from_edges(roads.rename(columns={"from": "a", "to": "b"})).node_names == ("Kiel", "Hamburg", "Berlin")
    swapped = pandas.DataFrame({"id": [7, 8], "Target": [1, 2], "weight": [0.5, 0.5], "Source": [0, 1]})
    assert from_edges(swapped) == path(3)
    assert from_edges(swapped).node_names is None
    assert from_edges(pandas.DataFrame([[1, 2], [2, 3]]), names=True).node_names == ("1", "2", "3")
    with pytest.raises(GraphError, match="a node of edge 1 of the list = nan, expected a string"):
        from_edges(pandas.DataFrame({"a": ["x", "y"], "b": ["y", None]}, dtype=object).fillna(np.nan))
    with pytest.raises(GraphError, match="got a table of 1 columns, expected two"):
        from_edges(pandas.DataFrame({"a": [0, 1]}))
