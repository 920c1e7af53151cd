"""Where a page draws the nodes of a graph, so that single steps of a walk are visible whatever its size."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.graphs import Graph
from freewalk.report.layout import MOST_BY_RULE, along, given_places, kind_of, layout, middle
from freewalk.report.nodes import in_words
from freewalk.report.page.forces import by_forces

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A general graph of at most this many nodes and edges is laid out by its edges alone.
_FREE, _FREE_EDGES = 300, 3000
#: A larger one, up to this size, gets a drawing by its edges as a second view; a denser one shows no structure.
MOST_DRAWN, _MOST_DRAWN_EDGES = 1500, 20_000
#: A larger graph has one view only.
_MOST_VIEWED = 20_000
#: More edges than this would be a grey disc.
MOST_EDGES = 6000
#: On a circle of more nodes, a step to the next is too small to see.
_CROWDED = 60
#: Node numbers follow the graph if at least half of the edges are shorter than this fraction of the circle.
_SHORT = 0.02
_OPEN = 0.82  # the fraction of a circle that a path covers


@dataclass(frozen=True, eq=False)
class Places:
    """Nodes and their positions.

    Attributes
    ----------
    positions
        One row per node, from −1 to 1, with the vertical axis upwards.
    pairs
        The edges to draw, as rows of two nodes.
    circle
        Whether the nodes are on a circle, so that counts can be drawn as bars towards its middle.
    words
        What the caption says about the positions.
    name
        The label of the button that shows this view.
    true
        Whether this is a drawing of the graph itself: all edges have a place, and no distance is distorted.
    """

    positions: Floats
    pairs: Integers
    circle: bool
    words: str
    name: str = "graph"
    true: bool = True


def place(graph: Graph | None, heavy: list[int], importance: Floats) -> Places:
    """Place the nodes of a graph for the first view of it.

    Parameters
    ----------
    graph
        The graph, or None if only its nodes are known. If it has positions for its nodes, they are used.
    heavy
        The nodes of interest; a crowded circle is magnified near them.
    importance
        One number per node; if edges cannot be shown, the most important node is in the middle.

    Returns
    -------
    Places
        The positions; the same arguments give the same ones.
    """
    none = np.empty((0, 2), dtype=np.int64)
    if graph is None:
        words = f"{_SPIRAL} The record does not contain the graph, so no edges are drawn."
        return Places(_spiral(importance), none, False, words, "spiral", true=False)
    given = given_places(graph)
    if given is not None:
        words = _GIVEN if graph.edges <= MOST_EDGES else f"{_GIVEN} {_no_edges(graph)}"
        return Places(given, _edges(graph), False, words, true=graph.n <= MOST_BY_RULE)
    kind = kind_of(graph)
    focus = heavy or [int(importance.argmax())]
    if kind in ("ring", "path"):
        return _on_circle(graph, along(graph, _first(graph, kind, focus)), focus, closed=kind == "ring")
    small = graph.n <= _FREE and graph.edges <= _FREE_EDGES
    if small or (kind != "other" and graph.n <= MOST_BY_RULE):
        found = layout(graph, focus, importance)
        words = "" if graph.edges <= MOST_EDGES else _no_edges(graph)
        return Places(found.positions, _edges(graph), False, words)
    if _follows_numbers(graph):
        return _on_circle(graph, np.arange(graph.n), focus, closed=True, words=_BY_NUMBER)
    return Places(_spiral(importance), none, False, f"{_SPIRAL} {_no_edges(graph)}", "spiral", true=False)


def views(graph: Graph | None, heavy: list[int], importance: Floats) -> list[Places]:
    """All views of a graph: the first as `place` gives it, then those without its distortion.

    Parameters
    ----------
    graph, heavy, importance
        As for `place`.

    Returns
    -------
    list of Places
        At most one of them is `true`, the last.
    """
    first = place(graph, heavy, importance)
    if graph is None or first.true or graph.n > _MOST_VIEWED:
        return [first]
    found = [first]
    kind, focus = kind_of(graph), heavy or [int(importance.argmax())]
    if first.circle:
        line = kind in ("ring", "path")
        order = along(graph, _first(graph, kind, focus)) if line else np.arange(graph.n)
        plain = _on_circle(graph, order, focus, closed=kind != "path", words="" if line else _BY_NUMBER, evenly=True)
        found.append(plain)
        if line:
            return found
    if graph.n <= MOST_DRAWN and graph.edges <= _MOST_DRAWN_EDGES:
        pairs = _all_edges(graph)
        some = pairs[:: -(-len(pairs) // MOST_EDGES)]
        words = "" if len(some) == len(pairs) else f" {len(some):,} of the {len(pairs):,} edges are drawn."
        found.append(Places(by_forces(graph), some, False, f"{_BY_FORCES}{words}"))
    return found


_GIVEN = "Nodes are at the positions that the graph gives."
_BY_NUMBER = "Nodes are in the order of their numbers."
_BY_FORCES = "Nodes are placed by a force-directed layout: neighbours attract each other, all nodes repel each other."
_SPIRAL = "Nodes are on a spiral, with the most important in the middle."


def _no_edges(graph: Graph) -> str:
    return f"The {graph.edges:,} edges are too many to draw."


def _first(graph: Graph, kind: str, focus: list[int]) -> int:
    return focus[0] if kind == "ring" else int(np.flatnonzero(graph.degrees <= 1)[0])


def _on_circle(
    graph: Graph, order: Integers, focus: list[int], *, closed: bool, words: str = "", evenly: bool = False
) -> Places:
    """Nodes in an order on a circle; a crowded one is magnified near the focus unless they are to be spaced evenly."""
    magnified = graph.n > _CROWDED and not evenly
    gaps = _gaps(order, focus, closed) if magnified else np.ones(graph.n if closed else graph.n - 1)
    ends = np.concatenate([[0.0], np.cumsum(gaps)])
    turns = ends[: graph.n] / ends[-1]
    if closed:
        turns = turns - turns[middle(order, focus)]
    else:
        turns = _OPEN * (turns - 0.5)
    positions = np.empty((graph.n, 2))
    positions[order] = np.column_stack([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)])
    if magnified:
        one = f"{'node ' * (graph.node_names is None)}{in_words(graph, focus[:1])}"
        near = "the heavy nodes" if len(focus) > 1 else one
        words = f"{words} The circle is magnified near {near}: distances from there are drawn on a square-root scale."
    elif graph.n > _CROWDED:
        words = f"{words} All steps along the circle have the same length."
    name = "magnified" if magnified else "true distances"
    true = not magnified and graph.n <= MOST_BY_RULE and kind_of(graph) != "other"
    return Places(positions, _edges(graph), True, words.strip(), name, true)


def _gaps(order: Integers, focus: list[int], closed: bool) -> Floats:
    """The gaps between neighbours on a circle: √(d + 1) − √d, where d is the number of steps to the focus."""
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
    """Evenly spaced positions on a disc, with the most important node in the middle."""
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
