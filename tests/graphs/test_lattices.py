"""Graphs without chance, against networkx and by their degrees."""

import networkx
import numpy as np
import pytest

from freewalk.errors import GraphError
from freewalk.graphs import complete, from_networkx, grid, path, ring, star

SAME_AS_NETWORKX = [
    (ring(3), networkx.cycle_graph(3)),
    (ring(10), networkx.cycle_graph(10)),
    (path(2), networkx.path_graph(2)),
    (path(9), networkx.path_graph(9)),
    (grid(3, 4), networkx.grid_2d_graph(3, 4)),
    (grid(2, 2), networkx.grid_2d_graph(2, 2)),
    (complete(2), networkx.complete_graph(2)),
    (complete(7), networkx.complete_graph(7)),
    (star(2), networkx.star_graph(1)),
    (star(8), networkx.star_graph(7)),
]


@pytest.mark.parametrize(("graph", "other"), SAME_AS_NETWORKX, ids=lambda value: getattr(value, "name", ""))
def test_same_as_networkx(graph, other):
    assert graph == from_networkx(other)


def test_degrees_edges_and_names():
    assert ring(10).degrees.tolist() == [2] * 10
    assert path(4).degrees.tolist() == [1, 2, 2, 1]
    assert star(5).degrees.tolist() == [4, 1, 1, 1, 1]
    assert complete(6).degrees.tolist() == [5] * 6
    assert grid(3, 3).degrees.tolist() == [2, 3, 2, 3, 4, 3, 2, 3, 2]
    assert [g.edges for g in (ring(10), path(10), star(10), complete(10), grid(5, 7))] == [10, 9, 9, 45, 58]
    names = [g.name for g in (ring(10), path(10), star(10), complete(10), grid(5, 7))]
    assert names == ["ring(10)", "path(10)", "star(10)", "complete(10)", "grid(5, 7)"]
    assert ring(np.int64(5)).name == "ring(5)"


def test_thin_grids_are_paths():
    assert grid(1, 6) == path(6)
    assert grid(6, 1) == path(6)


@pytest.mark.parametrize("make", [path, complete, star])
@pytest.mark.parametrize("n", [1, 0, -3, 5.0, "5", None, True, 2**31])
def test_two_nodes_at_least(make, n):
    with pytest.raises(GraphError, match=rf"{make.__name__}: n = .*, expected a whole number from 2 to 2\^31 - 1"):
        make(n)


@pytest.mark.parametrize("n", [2, 1, 4.5, float("nan"), np.array([3, 4])])
def test_three_nodes_at_least(n):
    with pytest.raises(GraphError, match=r"ring: n = .*, expected a whole number from 3 .*; path\(2\) joins"):
        ring(n)


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ((0, 5), "grid: rows = 0, expected a whole number from 1"),
        ((5, -1), "grid: cols = -1, expected a whole number from 1"),
        ((2.0, 5), "grid: rows = 2.0"),
        ((1, 1), "grid: rows · cols = 1, expected a whole number from 2"),
        ((2**16, 2**16), r"grid: rows · cols = 4294967296, expected a whole number from 2 to 2\^31 - 1"),
    ],
)
def test_grid_sides(sides, message):
    with pytest.raises(GraphError, match=message):
        grid(*sides)
