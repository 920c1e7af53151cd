"""Where the nodes of a graph lie on a page: so that a step can be seen, and at once, whatever the size."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.graphs import Graph
from freewalk.report.layout import MOST_BY_RULE, along, given_places, kind_of, layout, middle
from freewalk.report.nodes import in_words

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Up to so many nodes and edges a graph of no special form is laid out by its edges, which takes a second or two.
_FREE, _FREE_EDGES = 300, 3000
#: More edges than these are a grey disc.
MOST_EDGES = 6000
#: From so many nodes on a circle a step to the next is too small to be seen.
_CROWDED = 60
#: Node numbers follow the graph where at least half of the edges are shorter than this part of the circle.
_SHORT = 0.02
_OPEN = 0.82  # the part of a circle that a path takes


@dataclass(frozen=True, eq=False)
class Places:
    """Nodes with places.

    Attributes
    ----------
    positions
        One row per node, within −1 to 1, the vertical axis upwards.
    pairs
        The edges to draw, as rows of two nodes.
    circle
        Whether the nodes are on a circle, so that what is counted can be drawn towards its middle.
    words
        What a caption has to say about it.
    """

    positions: Floats
    pairs: Integers
    circle: bool
    words: str


def place(graph: Graph | None, heavy: list[int], importance: Floats) -> Places:
    """Place the nodes of a graph.

    Parameters
    ----------
    graph
        The graph, or None where only its nodes are known. Where it says where to draw them, they are drawn there.
    heavy
        The nodes that matter; a circle is magnified near them.
    importance
        One number per node; where edges cannot be shown, the most important node is in the middle.

    Returns
    -------
    Places
        The same for the same arguments.
    """
    none = np.empty((0, 2), dtype=np.int64)
    if graph is None:
        return Places(_spiral(importance), none, False, f"{_SPIRAL} The graph is not known here, so no edge is drawn.")
    given = given_places(graph)
    if given is not None:
        return Places(given, _edges(graph), False, "" if graph.edges <= MOST_EDGES else "Edges are not drawn.")
    kind = kind_of(graph)
    focus = heavy or [int(importance.argmax())]
    if kind in ("ring", "path"):
        return _on_circle(graph, along(graph, _first(graph, kind, focus)), focus, closed=kind == "ring")
    small = graph.n <= _FREE and graph.edges <= _FREE_EDGES
    if small or (kind != "other" and graph.n <= MOST_BY_RULE):
        found = layout(graph, focus, importance)
        words = "" if graph.edges <= MOST_EDGES else "Edges are not drawn."
        return Places(found.positions, _edges(graph), False, words)
    if _follows_numbers(graph):
        words = "Nodes are in the order of their numbers."
        return _on_circle(graph, np.arange(graph.n), focus, closed=True, words=words)
    return Places(_spiral(importance), none, False, f"{_SPIRAL} The {graph.edges:,} edges are not drawn.")


_SPIRAL = "Nodes are on a spiral, the most important in the middle."


def _first(graph: Graph, kind: str, focus: list[int]) -> int:
    return focus[0] if kind == "ring" else int(np.flatnonzero(graph.degrees <= 1)[0])


def _on_circle(graph: Graph, order: Integers, focus: list[int], *, closed: bool, words: str = "") -> Places:
    """Nodes in an order on a circle, magnified near the focus where they are many."""
    gaps = _gaps(order, focus, closed) if graph.n > _CROWDED else np.ones(graph.n if closed else graph.n - 1)
    ends = np.concatenate([[0.0], np.cumsum(gaps)])
    turns = ends[: graph.n] / ends[-1]
    if closed:
        turns = turns - turns[middle(order, focus)]
    else:
        turns = _OPEN * (turns - 0.5)
    positions = np.empty((graph.n, 2))
    positions[order] = np.column_stack([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])
    if graph.n > _CROWDED:
        one = f"{'node ' * (graph.node_names is None)}{in_words(graph, focus[:1])}"
        near = "the heavy nodes" if len(focus) > 1 else one
        words = f"{words} The circle is magnified near {near}: the way from there grows with the root of the distance."
    return Places(positions, _edges(graph), True, words.strip())


def _gaps(order: Integers, focus: list[int], closed: bool) -> Floats:
    """How far apart neighbours on a circle are: √(d + 1) − √d, where d is the number of steps to the focus."""
    n = order.size
    where = np.flatnonzero(np.isin(order, focus))
    places = np.concatenate([where - n, where, where + n]) if closed else where
    after = np.searchsorted(places, np.arange(n))
    before = np.abs(np.arange(n) - places[np.maximum(after - 1, 0)])
    steps = np.minimum(before, np.abs(np.arange(n) - places[np.minimum(after, places.size - 1)]))
    nearest = np.minimum(steps, np.roll(steps, -1)).astype(np.float64)
    gaps = np.sqrt(nearest + 1) - np.sqrt(nearest)
    return gaps if closed else gaps[:-1]


def _follows_numbers(graph: Graph) -> bool:
    """Whether neighbours mostly have neighbouring numbers, as in a Watts–Strogatz graph."""
    pairs = _all_edges(graph)
    distance = np.abs(pairs[:, 0] - pairs[:, 1])
    return bool(np.median(np.minimum(distance, graph.n - distance)) <= max(2.0, _SHORT * graph.n))


def _spiral(importance: Floats) -> Floats:
    """Even places on a disc, the most important node in its middle."""
    n = importance.size
    rank = np.empty(n)
    rank[np.argsort(-importance, kind="stable")] = np.arange(n)
    radius, turns = np.sqrt((rank + 0.5) / n), rank * (3 - np.sqrt(5)) / 2
    return np.column_stack([radius * np.sin(2 * np.pi * turns), radius * np.cos(2 * np.pi * turns)])


def _edges(graph: Graph) -> Integers:
    return _all_edges(graph) if graph.edges <= MOST_EDGES else np.empty((0, 2), dtype=np.int64)


def _all_edges(graph: Graph) -> Integers:
    rows = np.repeat(np.arange(graph.n), graph.degrees)
    once = rows < graph.indices
    return np.column_stack([rows[once], graph.indices[once]]).astype(np.int64)
