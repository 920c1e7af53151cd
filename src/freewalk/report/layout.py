"""Where to put the nodes of a graph in a picture, and which of them."""

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

#: A picture of more nodes is a cloud. Rings, paths and grids are drawn by rule, and stay readable for longer.
MOST, MOST_BY_RULE = 500, 2500
#: What is shown of a larger graph: so many nodes, the nearest to where the matter is.
NEARBY = 150

_STRESSED = 150  # nodes below which the better and slower layout is used


@dataclass(frozen=True, eq=False)
class Layout:
    """Nodes with places.

    Attributes
    ----------
    nodes
        Those that are shown, by number.
    positions
        Their places, one row each, within −1 to 1.
    pairs
        The edges between them, as rows of two indices into `nodes`.
    kind
        What the shown part is.
    whole
        Whether that is the whole graph.
    """

    nodes: Integers
    positions: Floats
    pairs: Integers
    kind: Kind
    whole: bool


def layout(graph: Graph, focus: Iterable[int], importance: Floats) -> Layout:
    """Place a graph, or what is near the focus where there is too much of it.

    Parameters
    ----------
    graph
        The graph; where it says where to draw its nodes, they are drawn there.
    focus
        The nodes that matter: at the top of a ring, or amid the part that is shown.
    importance
        One number per node; of equally near nodes the more important are shown.

    Returns
    -------
    Layout
        The same for the same arguments.
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
    """Where the graph says that its nodes are, in the proportions that it says; None where that is in one point."""
    places = None if graph.positions is None else _scaled(graph.positions)
    return places if places is not None and places.any() else None


def kind_of(graph: Graph) -> Kind:
    """What a connected graph is, by its degrees; a grid by its name.

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
    """The nodes of a ring or a path in the order in which a walker meets them who never turns."""
    order, before = [first], -1
    while len(order) < graph.n:
        ahead = [int(node) for node in graph.neighbours(order[-1]) if node != before]
        before = order[-1]
        order.append(ahead[0])
    return np.array(order)


def middle(order: Integers, focus: Iterable[int]) -> int:
    """Where on a ring the middle of some nodes is, as a place in the order; they may lie across its first node.

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
    """The nodes nearest to the focus, up to `most` of them; of the farthest, the most important."""
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
        # An open ring: a straight line would leave no room for anything but itself.
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
    """The place of each node of a graph of no special form."""
    import networkx

    if graph.edges == graph.n * (graph.n - 1) // 2:
        return _arc(np.arange(graph.n) / graph.n)
    drawn = graph.to_networkx()
    if graph.n < _STRESSED:
        found = networkx.kamada_kawai_layout(drawn)
    else:
        # More room than the default between nodes, so that the middle does not become a ball.
        found = networkx.spring_layout(drawn, seed=1, k=2.2 / np.sqrt(graph.n), iterations=120)
    return np.array([found[node] for node in drawn], dtype=np.float64)


def _arc(turns: Floats) -> Floats:
    """Points on a circle, clockwise from the top."""
    return np.column_stack([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])


def _scaled(places: Floats) -> Floats:
    """The same picture around 0, its longer side from −1 to 1."""
    places = places / max(float(np.abs(places).max()), 1e-300)  # no sum or difference of them overflows then
    low, high = places.min(axis=0), places.max(axis=0)
    return np.asarray((places - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12))


def _shape(graph: Graph) -> tuple[int, int] | None:
    """Rows and columns, where the graph says that it is a grid and has as many nodes and edges as one."""
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
    """The graph between some nodes, numbered anew."""
    adjacency = graph.adjacency()[nodes][:, nodes].tocsr()
    adjacency.sort_indices()
    return Graph(adjacency.indptr.astype(np.int64), adjacency.indices, name=f"part of {graph.name}")
