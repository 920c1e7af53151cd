"""Where a page draws the nodes of a graph, so that single steps of a walk are visible whatever its size."""

from dataclasses import dataclass

import numpy as np

from freewalk.graphs import Graph, ring
from freewalk.linear.arrays import Floats, Ints
from freewalk.report import layout
from freewalk.report.layout import edges_of, kind_of
from freewalk.report.measures import in_words

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
_LINES = ("ring", "path")
_GIVEN = "Nodes are at the positions that the graph gives."
_BY_NUMBER = "Nodes are in the order of their numbers."
_BY_FORCES = "Nodes are placed by a force-directed layout: neighbours attract each other, all nodes repel each other."
_SPIRAL = "Nodes are on a spiral, with the most important in the middle."


@dataclass(frozen=True, eq=False)
class Places:
    """Nodes and their positions."""

    positions: Floats  # one row per node, from −1 to 1, with the vertical axis upwards
    pairs: Ints  # the edges to draw, as rows of two nodes
    circle: bool  # whether the nodes are on a circle, so that counts can be drawn as bars towards its middle
    words: str  # what the caption says about the positions
    name: str = "graph"  # the label of the button that shows this view
    true: bool = True  # whether this is the graph itself: all edges have a place, and no distance is distorted


def place(graph: Graph | None, heavy: list[int], importance: Floats) -> Places:
    """Place the nodes of a graph for the first view of it.

    If the graph has positions for its nodes, they are used. A crowded circle is magnified near the heavy nodes. If
    edges cannot be shown, or the graph is not known, the most important node is in the middle.
    """
    if graph is None:
        return _spiral(importance, "The record does not contain the graph, so no edges are drawn.")
    too_many = f"The {graph.edges:,} edges are too many to draw."
    pairs, words = _drawn(graph), "" if graph.edges <= MOST_EDGES else too_many
    given = layout.given_places(graph)
    if given is not None:
        return Places(given, pairs, False, f"{_GIVEN} {words}".strip(), true=graph.n <= layout.MOST_BY_RULE)
    kind, focus = kind_of(graph), heavy or [int(importance.argmax())]
    if kind in _LINES:
        return _circle(graph, focus)
    small = graph.n <= _FREE and graph.edges <= _FREE_EDGES
    if small or (kind != "other" and graph.n <= layout.MOST_BY_RULE):
        return Places(layout.layout(graph, focus, importance).positions, pairs, False, words)
    if _follows_numbers(graph):
        return _circle(graph, focus)
    return _spiral(importance, too_many)


def _drawn(graph: Graph) -> Ints:
    """The edges to draw: none if they are too many."""
    return edges_of(graph) if graph.edges <= MOST_EDGES else np.empty((0, 2), dtype=np.int64)


def views(graph: Graph | None, heavy: list[int], importance: Floats) -> list[Places]:
    """All views of a graph: the first as `place` gives it, then those without its distortion."""
    first = place(graph, heavy, importance)
    found = [first]
    if graph is None or first.true or graph.n > _MOST_VIEWED:
        return found
    if first.circle:
        found.append(_circle(graph, heavy or [int(importance.argmax())], evenly=True))
    drawable = graph.n <= MOST_DRAWN and graph.edges <= _MOST_DRAWN_EDGES
    if drawable and not (first.circle and kind_of(graph) in _LINES):
        pairs = edges_of(graph)
        some = pairs[:: -(-len(pairs) // MOST_EDGES)]
        words = "" if len(some) == len(pairs) else f" {len(some):,} of the {len(pairs):,} edges are drawn."
        found.append(Places(layout.by_forces(graph), some, False, f"{_BY_FORCES}{words}"))
    return found


def _circle(graph: Graph, focus: list[int], *, evenly: bool = False) -> Places:
    """Nodes on a circle, in the order of a ring or a path, else by number.

    A crowded circle is magnified near the focus unless nodes are to be spaced evenly.
    """
    kind = kind_of(graph)
    closed, line = kind != "path", kind in _LINES
    order = layout.along(graph, focus[0]) if line else np.arange(graph.n)
    magnified = graph.n > _CROWDED and not evenly
    gaps = np.ones(graph.n)  # to the next node
    if magnified:
        steps = (graph if line else ring(graph.n)).distances(focus)[order]
        nearest = np.minimum(steps, np.roll(steps, -1))
        gaps = np.sqrt(nearest + 1) - np.sqrt(nearest)
    ends = np.concatenate([[0.0], np.cumsum(gaps if closed else gaps[:-1])])
    turns = ends[: graph.n] / ends[-1]
    turns = turns - turns[layout.middle(order, focus)] if closed else _OPEN * (turns - 0.5)
    positions = np.empty((graph.n, 2))
    positions[order] = layout.on_circle(turns)
    words = "" if line else _BY_NUMBER
    if magnified:
        one = f"{'node ' * (graph.node_names is None)}{in_words(graph, focus[:1])}"
        near = "the heavy nodes" if len(focus) > 1 else one
        words = f"{words} The circle is magnified near {near}: distances from there are drawn on a square-root scale."
    elif graph.n > _CROWDED:
        words = f"{words} All steps along the circle have the same length."
    name = "magnified" if magnified else "true distances"
    true = not magnified and graph.n <= layout.MOST_BY_RULE and kind != "other"
    return Places(positions, _drawn(graph), True, words.strip(), name, true)


def _follows_numbers(graph: Graph) -> bool:
    """Whether neighbours mostly have neighbouring numbers, as in a Watts–Strogatz graph."""
    pairs = edges_of(graph)
    distance = np.abs(pairs[:, 0] - pairs[:, 1])
    return bool(np.median(np.minimum(distance, graph.n - distance)) <= max(2.0, _SHORT * graph.n))


def _spiral(importance: Floats, words: str) -> Places:
    """Evenly spaced positions on a disc, with the most important node in the middle."""
    n = importance.size
    rank = np.empty(n)
    rank[np.argsort(-importance, kind="stable")] = np.arange(n)
    radius, turns = np.sqrt((rank + 0.5) / n), rank * (3 - np.sqrt(5)) / 2
    positions, none = radius[:, None] * layout.on_circle(turns), np.empty((0, 2), dtype=np.int64)
    return Places(positions, none, False, f"{_SPIRAL} {words}", "spiral", true=False)
