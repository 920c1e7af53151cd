"""How far nodes are from those that matter, and what they are called."""

import numpy as np
import pytest
import xarray

import freewalk as fw
from freewalk.graphs import Graph
from freewalk.report.measures import in_words
from freewalk.report.visits import surroundings


def record(graph: Graph | None, n: int, *, smoothness=None, visits=None, heavy=()) -> fw.Record:
    data = xarray.Dataset({"visits": ("node", np.ones(n) if visits is None else visits)}, attrs={"heavy": list(heavy)})
    if smoothness is not None:
        data["smoothness"] = ("node", smoothness)
    return fw.Record(data, graph=graph)


def found(*arguments, **options):
    one = record(*arguments, **options)
    return surroundings(one, {"a": one.data})


LIGHT = np.ones(6)
HEAVY = np.array([1.0, 9.0, 8.0, 1.0, 1.0, 1.0])


def test_a_ring_counts_both_ways_from_the_heaviest() -> None:
    for graph in (fw.graphs.ring(6), None):  # one that is not known is taken for a ring
        near = found(graph, 6, smoothness=HEAVY, heavy=[1, 2])
        assert near.places.tolist() == [-1, 0, 1, 2, -3, -2]
        assert (near.line, near.closed, near.focus, near.words) == (True, True, (1,), "heaviest node")


def test_a_path_has_two_ends() -> None:
    near = found(fw.graphs.path(6), 6, smoothness=HEAVY)
    assert near.places.tolist() == [-1, 0, 1, 2, 3, 4]
    assert (near.line, near.closed) == (True, False)


def test_the_numbers_of_a_ring_need_not_go_around_it() -> None:
    graph = fw.graphs.from_edges([[0, 3], [3, 1], [1, 4], [4, 2], [2, 5], [5, 0]])
    near = found(graph, 6, smoothness=HEAVY)
    assert near.places[[4, 3]].tolist() in ([-1, 1], [1, -1])  # the neighbours of node 1
    assert sorted(near.places) == [-3, -2, -1, 0, 1, 2]


def test_elsewhere_hops_from_the_heavy_nodes_count() -> None:
    graph = fw.graphs.grid(2, 3)
    near = found(graph, 6, smoothness=HEAVY, heavy=[0, 2])
    assert near.places.tolist() == [0, 1, 0, 1, 2, 1]
    assert (near.line, near.focus, near.words) == (False, (0, 2), "nearest heavy node")
    assert found(graph, 6, smoothness=HEAVY, heavy=[0]).words == "heavy node"


def test_which_nodes_matter_where_none_is_known_as_heavy() -> None:
    graph = fw.graphs.star(6)
    near = found(graph, 6, smoothness=HEAVY)
    assert (near.focus, near.words, near.places.tolist()) == ((1,), "heaviest node", [1, 0, 2, 2, 2, 2])
    near = found(graph, 6, visits=[0, 1, 2, 3, 9, 1])
    assert (near.focus, near.words) == ((4,), "most visited node")


def test_a_large_ring_takes_no_time() -> None:
    n = 200_000
    near = found(fw.graphs.ring(n), n, smoothness=np.arange(n))
    assert near.places[[0, n - 2]].tolist() == [1, -1]


@pytest.mark.parametrize(
    ("count", "words"), [(1, "a"), (2, "a and b"), (4, "a, b, c and d"), (6, "a, b, c, d and 2 more")]
)
def test_nodes_in_words(count: int, words: str) -> None:
    ring = fw.graphs.ring(6)
    graph = Graph(ring.indptr, ring.indices, node_names=tuple("abcdef"))
    assert in_words(graph, range(count)) == words


def test_a_long_name_is_cut() -> None:
    graph = Graph(np.array([0, 1, 2]), np.array([1, 0]), node_names=("x" * 1000, "y"))
    assert len(in_words(graph, [0, 1])) < 50
