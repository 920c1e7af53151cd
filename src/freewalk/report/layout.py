"""Which nodes of a graph to draw, and where."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from freewalk.graphs import Graph
from freewalk.linear.arrays import Floats, Ints

Shape = Literal["ring", "path", "grid", "star", "other"]

#: More nodes than this are drawn as a blur. Rings, paths and grids are regular and stay readable for longer.
MOST, MOST_BY_RULE = 500, 2500
#: How many nodes of a larger graph are shown: those nearest to the focus.
NEARBY = 150

_STRESSED = 150  # nodes below which the better and slower layout is used
_ROUNDS = 60  # in which forces move nodes


@dataclass(frozen=True, eq=False)
class GraphLayout:
    """Nodes and their positions."""

    nodes: Ints  # the numbers of those that are shown
    positions: Floats  # one row each, from −1 to 1
    pairs: Ints  # the edges between them, as rows of two indices into `nodes`
    kind: Shape  # of the part that is shown
    whole: bool  # whether that is the whole graph


def layout(graph: Graph, focus: Iterable[int], importance: Floats) -> GraphLayout:
    """Place the nodes of a graph, or those near the focus if there are too many.

    The focus is at the top of a ring, or in the middle of the part that is shown. Among equally near nodes, the more
    important are shown. If the graph has positions for its nodes, they are used.
    """
    around, given = [int(node) for node in focus], given_places(graph)
    kind = kind_of(graph) if given is None else "other"
    whole = graph.n <= (MOST if kind == "other" and given is None else MOST_BY_RULE)
    nodes = np.arange(graph.n) if whole else _nearest(graph, around, importance)
    part = graph if whole else _part(graph, nodes)
    if given is not None:
        places = given[nodes]
    elif whole or kind == "grid":
        places = _places(graph, kind, around)[nodes]
    else:
        kind = kind_of(part)
        places = _places(part, kind, np.flatnonzero(np.isin(nodes, around)).tolist())
    return GraphLayout(nodes, _scaled(places), edges_of(part), kind, whole)


def given_places(graph: Graph) -> Floats | None:
    """The positions that the graph gives for its nodes, in their own proportions; None if they are all in one point."""
    places = None if graph.positions is None else _scaled(graph.positions)
    return places if places is not None and places.any() else None


def kind_of(graph: Graph) -> Shape:
    """The kind of a connected graph, by its degrees; that of a grid, by its name."""
    degrees = np.sort(graph.degrees)
    if graph.n >= 3 and (degrees == 2).all():
        return "ring"
    if graph.edges == graph.n - 1 and degrees[-1] <= 2:
        return "path"
    if graph.edges == graph.n - 1 and degrees[-1] == graph.n - 1:
        return "star"
    return "other" if min(_sides(graph)) < 2 else "grid"


def along(graph: Graph, first: int) -> Ints:
    """The nodes of a ring in order from `first`, or those of a path from one of its ends."""
    ends = np.flatnonzero(graph.degrees <= 1)
    order, before = [int(ends[0]) if ends.size else first], -1
    while len(order) < graph.n:
        ahead = next(int(node) for node in graph.neighbours(order[-1]) if node != before)
        before = order[-1]
        order.append(ahead)
    return np.array(order)


def middle(order: Ints, focus: Iterable[int]) -> int:
    """The middle of some nodes on a ring, as a position in the order; they may lie across its first node."""
    where = np.flatnonzero(np.isin(order, list(focus)))
    if not where.size:
        return 0
    half = order.size // 2
    offsets = (where - where[0] + half) % order.size - half
    return int(where[0] + np.floor(offsets.mean())) % order.size


def _nearest(graph: Graph, focus: list[int], importance: Floats) -> Ints:
    """The nodes nearest to the focus, as many as are shown; among equally near ones, the most important.

    They grow from the most important node of the focus, each time by the best neighbour of those found, because the
    part that is drawn must be connected even if the focus is not.
    """
    order = np.lexsort((-importance, graph.distances(focus)))
    ranks = np.argsort(order)
    shown, waiting, seen = list[int](), [0], {0}
    while len(shown) < NEARBY:
        shown.append(int(order[heappop(waiting)]))
        for rank in np.sort(ranks[graph.neighbours(shown[-1])])[:NEARBY].tolist():  # more of a hub are never shown
            if rank not in seen:
                seen.add(rank)
                heappush(waiting, rank)
    return np.sort(shown)


def _places(graph: Graph, kind: Shape, focus: list[int]) -> Floats:
    places = np.zeros((graph.n, 2))
    if kind == "ring":
        order = along(graph, focus[0] if focus else 0)
        places[order] = on_circle((np.arange(graph.n) - middle(order, focus)) / graph.n)
    elif kind == "path":
        # An open ring, because a straight line would waste the picture.
        places[along(graph, 0)] = on_circle(np.linspace(-0.41, 0.41, graph.n))
    elif kind == "star":
        leaves = np.flatnonzero(graph.degrees == 1)
        places[leaves] = on_circle(np.arange(leaves.size) / leaves.size)
    elif kind == "grid":
        rows, columns = np.divmod(np.arange(graph.n), _sides(graph)[1])
        places = np.column_stack([columns, -rows]).astype(np.float64)
    else:
        places = _free(graph)
    return places


def _free(graph: Graph) -> Floats:
    """The positions of the nodes of a general graph."""
    import networkx

    if graph.edges == graph.n * (graph.n - 1) // 2:
        return on_circle(np.arange(graph.n) / graph.n)
    drawn = graph.to_networkx()
    if graph.n < _STRESSED:
        found = networkx.kamada_kawai_layout(drawn)
    else:
        # More space between nodes than the default, so that the middle is not a ball.
        found = networkx.spring_layout(drawn, seed=1, k=2.2 / np.sqrt(graph.n), iterations=120)
    return np.array([found[node] for node in drawn], dtype=np.float64)


def by_forces(graph: Graph) -> Floats:
    """Positions of the nodes, from −1 to 1: neighbours attract each other, and all nodes repel each other.

    Starts from the spectral layout, so that the result depends on the graph alone. Needs memory for all pairs of nodes.
    `networkx.spring_layout` loops over the nodes in Python, which takes ten times as long.
    """
    places = _spectral(graph)
    heads = np.repeat(np.arange(graph.n), graph.degrees)
    ideal = np.float32(1 / np.sqrt(graph.n))
    for heat in np.linspace(0.1, 0.002, _ROUNDS, dtype=np.float32):
        across = places[:, None, 0] - places[None, :, 0]
        up = places[:, None, 1] - places[None, :, 1]
        push = ideal**2 / (across * across + up * up + np.float32(1e-6))
        moves = np.column_stack([(across * push).sum(axis=1), (up * push).sum(axis=1)])
        spans = places[graph.indices] - places[heads]
        pull = spans * (np.linalg.norm(spans, axis=1) / ideal)[:, None]
        for axis in (0, 1):
            moves[:, axis] += np.bincount(heads, pull[:, axis], minlength=graph.n)
        lengths = np.linalg.norm(moves, axis=1, keepdims=True)
        places = (places + moves / np.maximum(lengths, 1e-6) * np.minimum(lengths, heat)).astype(np.float32)
    return _centred(places)


def _spectral(graph: Graph) -> NDArray[np.float32]:
    """Positions by the two smoothest vectors on the graph, with a little noise to separate nodes that coincide."""
    from scipy.sparse import diags
    from scipy.sparse.linalg import eigsh

    scale = 1 / np.sqrt(np.maximum(graph.degrees, 1))
    walk = diags(scale) @ graph.adjacency().astype(np.float64) @ diags(scale)
    values, vectors = eigsh(walk, k=3, which="LA", v0=np.ones(graph.n))
    smooth = vectors[:, np.argsort(values)[::-1][1:]] * scale[:, None]
    signs = np.sign(smooth[np.abs(smooth).argmax(axis=0), [0, 1]])  # the sign of an eigenvector is arbitrary
    smooth = smooth * signs / np.maximum(np.abs(smooth).max(axis=0), 1e-12)
    return np.asarray(smooth + np.random.default_rng(1).normal(0, 0.01, smooth.shape), dtype=np.float32)


def on_circle(turns: Floats) -> Floats:
    """Points on a circle, clockwise from the top."""
    return np.column_stack([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])


def _scaled(places: Floats) -> Floats:
    """Positions centred on 0, with the longer side from −1 to 1."""
    return _centred(places / max(float(np.abs(places).max()), 1e-300))  # then no sum or difference overflows


def _centred(places: NDArray[Any]) -> Floats:
    low, high = places.min(axis=0), places.max(axis=0)
    return np.asarray((places - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12), dtype=np.float64)


def _sides(graph: Graph) -> tuple[int, int]:
    """Rows and columns, if the graph is named a grid and has the nodes and edges of one; else (0, 0)."""
    named = re.fullmatch(r"grid\((\d+), ?(\d+)\)", graph.name)
    rows, columns = (int(named[1]), int(named[2])) if named else (0, 0)
    fits = graph.n == rows * columns and graph.edges == rows * (columns - 1) + columns * (rows - 1)
    return (rows, columns) if fits else (0, 0)


def edges_of(graph: Graph) -> Ints:
    """The edges of a graph, as rows of two nodes."""
    rows = np.repeat(np.arange(graph.n), graph.degrees)
    once = rows < graph.indices
    return np.column_stack([rows[once], graph.indices[once]]).astype(np.int64)


def _part(graph: Graph, nodes: Ints) -> Graph:
    """The subgraph of some nodes, renumbered."""
    adjacency = graph.adjacency()[nodes][:, nodes].tocsr()
    adjacency.sort_indices()
    return Graph(adjacency.indptr.astype(np.int64), adjacency.indices, name=f"part of {graph.name}")
