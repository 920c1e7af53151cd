"""The Graph itself: what it promises, and what it refuses."""

import copy
import dataclasses
import itertools
import pickle
import subprocess
import sys

import networkx
import numpy as np
import pytest

from freewalk import graphs
from freewalk.errors import FreewalkError, GraphError
from freewalk.graphs import Graph


def path_of_three(name="path(3)"):
    return Graph(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), name)


def test_counts_and_neighbours():
    graph = path_of_three()
    assert (graph.n, graph.edges) == (3, 2)
    assert type(graph.n) is int
    assert type(graph.edges) is int
    assert graph.degrees.dtype == np.int64
    assert graph.degrees.tolist() == [1, 2, 1]
    assert [graph.neighbours(node).tolist() for node in range(3)] == [[1], [0, 2], [1]]
    assert graph.neighbours(np.int32(1)).dtype == np.int32
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.int32)


def test_repr_is_short():
    assert repr(graphs.ring(1000)) == "Graph(ring(1000): 1000 nodes, 1000 edges)"
    assert repr(Graph(np.array([0, 1, 2]), np.array([1, 0]))) == "Graph(graph: 2 nodes, 1 edges)"


@pytest.mark.parametrize("node", [-1, 3, 1.0, True, None, "1"])
def test_no_such_node(node):
    with pytest.raises(GraphError, match=r"path\(3\): node = .*, expected a whole number from 0 to 2"):
        path_of_three().neighbours(node)


def test_arrays_cannot_be_changed():
    indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], dtype=np.int32)
    graph = Graph(indptr, indices)
    for array in (graph.indptr, graph.indices, graph.degrees, graph.neighbours(1)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    for field in ("indptr", "indices", "name", "degrees"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(graph, field, None)
    indices[:] = 0  # the caller's array is the caller's
    assert graph == path_of_three()
    assert indptr.flags.writeable


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_copies_are_graphs_too(twin):
    graph = path_of_three()
    hash(graph)
    other = twin(graph)
    assert other == graph
    assert other.name == graph.name
    assert hash(other) == hash(graph)
    assert not other.indices.flags.writeable
    assert not other.degrees.flags.writeable


def test_equality_is_structure():
    graph = path_of_three()
    assert graph == path_of_three(name="another name")
    assert hash(graph) == hash(path_of_three(name="another name"))
    assert graph != graphs.complete(3)
    assert graph != graphs.star(3)
    assert graph != "path(3)"
    assert len({graph, path_of_three(), graphs.ring(3), graphs.complete(3)}) == 2


def test_accepts_any_whole_numbers_in_any_layout():
    backwards = np.array([1, 2, 0, 1], dtype=np.uint64)[::-1]
    graph = Graph([0, 1, 3, 4], backwards)
    assert graph == path_of_three()
    assert hash(graph) == hash(path_of_three())


def test_adjacency_belongs_to_the_caller():
    graph = path_of_three()
    matrix = graph.adjacency()
    assert matrix.format == "csr"
    assert matrix.dtype == np.float64
    assert matrix.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    matrix.indices[:] = 0
    matrix.data[:] = 5
    assert graph == path_of_three()


def test_to_networkx():
    converted = graphs.grid(3, 4).to_networkx()
    assert list(converted) == list(range(12))
    assert converted.name == "grid(3, 4)"
    assert type(converted) is networkx.Graph
    plain = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(3, 4))
    assert {frozenset(edge) for edge in converted.edges} == {frozenset(edge) for edge in plain.edges}


REFUSED = {
    "no nodes, a walk needs at least 2 nodes": ([0], []),
    "got no nodes": ([], []),
    "1 node, a walk needs at least 2 nodes": ([0, 0], []),
    "indptr is an array of float64": ([0.0, 1.0, 2.0], [1, 0]),
    r"indices has shape \(1, 2\), expected \(any,\); use from_edges": ([0, 1, 2], [[1, 0]]),
    "indices is an array of bool": ([0, 1, 2], [True, False]),
    r"indices holds -4294967296, expected whole numbers from 0 to": ([0, 1, 2], [1, -(2**32)]),
    "indices holds 4294967296, expected": ([0, 1, 2], [1, 2**32]),
    r"indptr does not ascend from 0 to len\(indices\) = 2": ([0, 1, 3], [1, 0]),
    "indptr does not ascend from 0": ([1, 1, 2], [1, 0]),
    "indptr does not ascend": ([0, 2, 1, 2], [1, 0]),
    r"indices\[1\] = 2, expected nodes from 0 to 1": ([0, 1, 2], [1, 2]),
    "node 1 has an edge to itself": ([0, 1, 3], [1, 0, 1]),
    "neighbours of node 1 are not strictly ascending": ([0, 1, 3, 4], [1, 2, 0, 1]),
    "neighbours of node 0 are not strictly ascending; use from_edges": ([0, 2, 4], [1, 1, 0, 0]),
    "edge 2 -> 0 has no reverse, expected an undirected graph": ([0, 1, 3, 5], [1, 0, 2, 0, 1]),
    r"disconnected, 2 components of 2, 2 nodes \(no path from node 0 to node 2\), expected 1": (
        [0, 1, 2, 3, 4],
        [1, 0, 3, 2],
    ),
    r"disconnected, 2 components of 2, 1 nodes \(node 2 has no edge\)": ([0, 1, 2, 2], [1, 0]),
    r"disconnected, 7 components of 1, 1, 1, 1, 1, … nodes": (np.zeros(8, dtype=int), []),
    r"largest component, with networkx: from_networkx\(g.subgraph\(max\(networkx.connected": ([0, 0, 0], []),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    with pytest.raises(GraphError, match=message) as caught:
        Graph(*REFUSED[message], name="mine")
    assert str(caught.value).startswith("mine: ")
    assert isinstance(caught.value, FreewalkError)


def test_refused_by_name():
    """The same messages call nodes by their names."""
    refused = {
        "the edge 'z' -> 'x' has no reverse": ([0, 1, 3, 5], [1, 0, 2, 0, 1]),
        "node 'y' has an edge to itself": ([0, 1, 3, 4], [1, 0, 1, 1]),
        "neighbours of node 'y' are not strictly ascending": ([0, 1, 3, 4], [1, 2, 0, 1]),
        r"\(node 'z' has no edge\)": ([0, 1, 2, 2], [1, 0]),
    }
    for message, arrays in refused.items():
        with pytest.raises(GraphError, match=f"mine: .*{message}"):
            Graph(*arrays, "mine", ("x", "y", "z"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node_names": 5}, "path: node_names = 5, expected 3 different strings, one per node"),
        ({"node_names": "xyz"}, "path: node_names = 'xyz', expected 3 different strings"),
        ({"node_names": ["x", "y"]}, "path: node_names has 2 names, 2 of them different, expected 3 different ones"),
        ({"node_names": map(str, itertools.count())}, "path: node_names has more than 3 names"),
        ({"node_names": ["x", "y", "x"]}, "path: node_names has 3 names, 2 of them different"),
        ({"node_names": ["x", "y", 5]}, "path: a name of a node = 5, expected a string"),
        ({"positions": [[0, 0], [1, 1]]}, r"path: positions has shape \(2, 2\), expected \(3, 2\)"),
        ({"positions": [[0, 0], [1, 1], [2, np.inf]]}, r"path: positions\[2, 1\] = inf"),
        ({"name": 5}, "Graph: name = 5, expected a string"),
    ],
)
def test_bad_names_and_positions(options, message):
    with pytest.raises(GraphError, match=message):
        Graph([0, 1, 3, 4], [1, 0, 2, 1], **{"name": "path", **options})


def test_names_and_numbers():
    graph = Graph([0, 1, 3, 4], [1, 0, 2, 1], "roads", ["Kiel", "Hamburg", "(0, 1)"])
    assert [graph.node_name(node) for node in range(3)] == ["Kiel", "Hamburg", "(0, 1)"]
    assert [graph.node(name) for name in ("Kiel", "Hamburg", (0, 1))] == [0, 1, 2]
    with pytest.raises(GraphError, match=r"roads: there is no node 'Hamborg', .* did you mean 'Hamburg'\?"):
        graph.node("Hamborg")
    with pytest.raises(GraphError, match=r"roads: node = 'Kiel', expected .* node\(name\) gives the number"):
        graph.neighbours("Kiel")
    for node in (-1, 3, None):
        with pytest.raises(GraphError, match=r"roads: node = .*, expected a whole number from 0 to 2"):
            graph.node_name(node)


# --- hops ---


@pytest.mark.parametrize(
    "graph", [graphs.ring(9), graphs.grid(4, 5), graphs.star(6), graphs.watts_strogatz(60, 4, 0.2)], ids=repr
)
@pytest.mark.parametrize("nodes", [[0], [5, 2], np.array([1, 1, 3], dtype=np.uint8)], ids=str)
def test_distances(graph, nodes):
    hops = graph.distances(nodes)
    assert hops.dtype == np.int64
    found = networkx.multi_source_dijkstra_path_length(
        graph.to_networkx(), set(np.asarray(nodes).tolist()), weight=None
    )
    assert hops.tolist() == [found[node] for node in range(graph.n)]


def test_distances_from_one_node():
    assert graphs.path(4).distances(3).tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize("nodes", [[], None, "0", [0, 9], [-1], [0.0], [True], np.uint64(2**63 + 5), [[0], [1, 2]]])
def test_no_such_nodes(nodes):
    with pytest.raises(GraphError, match=r"path\(3\): nodes"):
        path_of_three().distances(nodes)


def test_the_remedy_for_a_disconnected_graph_works():
    g = networkx.disjoint_union(networkx.cycle_graph(5), networkx.path_graph(3))
    with pytest.raises(GraphError, match="components of 5, 3 nodes"):
        graphs.from_networkx(g)
    largest = graphs.from_networkx(g.subgraph(max(networkx.connected_components(g), key=len)))
    assert largest == graphs.ring(5)


def test_the_public_names():
    assert graphs.__all__ == [
        "Graph",
        *["barabasi_albert", "complete", "erdos_renyi", "from_edges", "from_networkx", "from_scipy", "grid"],
        *["path", "read", "ring", "star", "topologies", "topology", "watts_strogatz"],
    ]
    assert all(callable(getattr(graphs, name)) for name in graphs.__all__)


def test_the_import_is_light():
    code = (
        "import sys, freewalk; before = set(sys.modules); import freewalk.graphs; "
        "print(*{'numba', 'scipy', 'networkx'} & (set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
