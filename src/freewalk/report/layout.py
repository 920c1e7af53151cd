"""Which nodes of a graph to draw, and where."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from freewalk.graphs import Graph

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Kind = Literal["ring", "path", "grid", "star", "other"]

#: More nodes than this are drawn as a blur. Rings, paths and grids are regular and stay readable for longer.
MOST, MOST_BY_RULE = 500, 2500
#: How many nodes of a larger graph are shown: those nearest to the focus.
NEARBY = 150

_STRESSED = 150  # nodes below which the better and slower layout is used


@dataclass(frozen=True, eq=False)
class Layout:
    """Nodes and their positions.

    Attributes
    ----------
    nodes
        The numbers of the nodes that are shown.
    positions
        Their positions, one row each, from −1 to 1.
    pairs
        The edges between them, as rows of two indices into `nodes`.
    kind
        The kind of graph that the shown part is.
    whole
        Whether the whole graph is shown.
    """

    nodes: Integers
    positions: Floats
    pairs: Integers
    kind: Kind
    whole: bool


def layout(graph: Graph, focus: Iterable[int], importance: Floats) -> Layout:
    """Place the nodes of a graph, or those near the focus if there are too many.

    Parameters
    ----------
    graph
        The graph; if it has positions for its nodes, they are used.
    focus
        The nodes of interest: at the top of a ring, or in the middle of the part that is shown.
    importance
        One number per node; among equally near nodes, the more important are shown.

    Returns
    -------
    Layout
        The layout; the same arguments give the same one.
    """
    around = [int(node) for node in focus]
    given = given_places(graph)
    if given is not None:
        nodes = np.arange(graph.n) if graph.n <= MOST_BY_RULE else nearest(graph, around, importance)
        pairs = _pairs(graph if nodes.size == graph.n else _part(graph, nodes))
        return Layout(nodes, _scaled(given[nodes]), pairs, "other", whole=nodes.size == graph.n)
    kind = kind_of(graph)
    if graph.n <= (MOST if kind == "other" else MOST_BY_RULE):
        return Layout(np.arange(graph.n), _scaled(_places(graph, kind, around)), _pairs(graph), kind, whole=True)
    nodes = nearest(graph, around, importance)
    part = _part(graph, nodes)
    if kind == "grid":
        return Layout(nodes, _scaled(_places(graph, kind, around)[nodes]), _pairs(part), kind, whole=False)
    kind = kind_of(part)
    inside = np.flatnonzero(np.isin(nodes, around)).tolist()
    return Layout(nodes, _scaled(_places(part, kind, inside)), _pairs(part), kind, whole=False)


def given_places(graph: Graph) -> Floats | None:
    """The positions that the graph gives for its nodes, in their own proportions; None if they are all in one point."""
    places = None if graph.positions is None else _scaled(graph.positions)
    return places if places is not None and places.any() else None


def kind_of(graph: Graph) -> Kind:
    """The kind of a connected graph, by its degrees; that of a grid, by its name.

    Examples
    --------
    >>> import freewalk as fw
    >>> [kind_of(graph) for graph in (fw.graphs.ring(5), fw.graphs.path(5), fw.graphs.grid(3, 3), fw.graphs.star(5))]
    ['ring', 'path', 'grid', 'star']
    """
    degrees = np.sort(graph.degrees)
    if graph.n >= 3 and (degrees == 2).all():
        return "ring"
    if graph.edges == graph.n - 1 and degrees[-1] <= 2:
        return "path"
    if graph.edges == graph.n - 1 and degrees[-1] == graph.n - 1:
        return "star"
    shape = _shape(graph)
    return "other" if shape is None or min(shape) < 2 else "grid"


def along(graph: Graph, first: int) -> Integers:
    """The nodes of a ring or a path in order, from `first`."""
    order, before = [first], -1
    while len(order) < graph.n:
        ahead = [int(node) for node in graph.neighbours(order[-1]) if node != before]
        before = order[-1]
        order.append(ahead[0])
    return np.array(order)


def middle(order: Integers, focus: Iterable[int]) -> int:
    """The middle of some nodes on a ring, as a position in the order; they may lie across its first node.

    Examples
    --------
    >>> middle(np.arange(10), [9, 0, 1]), middle(np.arange(10), [4, 5])
    (0, 4)
    """
    where = np.flatnonzero(np.isin(order, list(focus)))
    if not where.size:
        return 0
    half = order.size // 2
    offsets = (where - where[0] + half) % order.size - half
    return int(where[0] + np.floor(offsets.mean())) % order.size


def nearest(graph: Graph, focus: list[int], importance: Floats, most: int = NEARBY) -> Integers:
    """Up to `most` nodes nearest to the focus; among the farthest, the most important."""
    seen = np.zeros(graph.n, dtype=bool)
    found = np.array(focus[:most], dtype=np.int64)
    front = found
    seen[front] = True
    while front.size and found.size < most:
        reached = np.unique(np.concatenate([graph.neighbours(int(node)) for node in front])).astype(np.int64)
        reached = reached[~seen[reached]]
        front = reached[np.argsort(-importance[reached], kind="stable")][: most - found.size]
        seen[front] = True
        found = np.concatenate([found, front])
    return np.sort(found)


def _places(graph: Graph, kind: Kind, focus: list[int]) -> Floats:
    places = np.zeros((graph.n, 2))
    if kind == "ring":
        order = along(graph, focus[0] if focus else 0)
        places[order] = _arc((np.arange(graph.n) - middle(order, focus)) / graph.n)
    elif kind == "path":
        # An open ring, because a straight line would waste the picture.
        first = int(np.flatnonzero(graph.degrees <= 1)[0]) if graph.n > 1 else 0
        places[along(graph, first)] = _arc(np.linspace(-0.41, 0.41, graph.n))
    elif kind == "star":
        leaves = np.flatnonzero(graph.degrees == 1)
        places[leaves] = _arc(np.arange(leaves.size) / leaves.size)
    elif kind == "grid" and (shape := _shape(graph)) is not None:
        rows, cols = np.divmod(np.arange(graph.n), shape[1])
        places = np.column_stack([cols, -rows]).astype(np.float64)
    else:
        places = _free(graph)
    return places


def _free(graph: Graph) -> Floats:
    """The positions of the nodes of a general graph."""
    import networkx

    if graph.edges == graph.n * (graph.n - 1) // 2:
        return _arc(np.arange(graph.n) / graph.n)
    drawn = graph.to_networkx()
    if graph.n < _STRESSED:
        found = networkx.kamada_kawai_layout(drawn)
    else:
        # More space between nodes than the default, so that the middle is not a ball.
        found = networkx.spring_layout(drawn, seed=1, k=2.2 / np.sqrt(graph.n), iterations=120)
    return np.array([found[node] for node in drawn], dtype=np.float64)


def _arc(turns: Floats) -> Floats:
    """Points on a circle, clockwise from the top."""
    return np.column_stack([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])


def _scaled(places: Floats) -> Floats:
    """Positions centred on 0, with the longer side from −1 to 1."""
    places = places / max(float(np.abs(places).max()), 1e-300)  # then no sum or difference of them overflows
    low, high = places.min(axis=0), places.max(axis=0)
    return np.asarray((places - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12))


def _shape(graph: Graph) -> tuple[int, int] | None:
    """Rows and columns, if the graph is named a grid and has the nodes and edges of one."""
    named = re.fullmatch(r"grid\((\d+), ?(\d+)\)", graph.name)
    if named is None:
        return None
    rows, cols = int(named[1]), int(named[2])
    fits = graph.n == rows * cols and graph.edges == rows * (cols - 1) + cols * (rows - 1)
    return (rows, cols) if fits else None


def _pairs(graph: Graph) -> Integers:
    rows = np.repeat(np.arange(graph.n), graph.degrees)
    once = rows < graph.indices
    return np.column_stack([rows[once], graph.indices[once]]).astype(np.int64)


def _part(graph: Graph, nodes: Integers) -> Graph:
    """The subgraph of some nodes, renumbered."""
    adjacency = graph.adjacency()[nodes][:, nodes].tocsr()
    adjacency.sort_indices()
    return Graph(adjacency.indptr.astype(np.int64), adjacency.indices, name=f"part of {graph.name}")
