"""Figures of where walks go, relative to the heavy nodes: their paths, and the share of visits to each node."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.errors import RecordError
from freewalk.linear.arrays import Ints
from freewalk.report import figures
from freewalk.report.figures import DOTTED, Where
from freewalk.report.layout import along, kind_of
from freewalk.report.measures import Parts, by_design, check, graph_of, heavy_of, in_words, paths_of, visits_of
from freewalk.run.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 12  # heights


def escape(record: Record, path: Where, *, designs: Sequence[str] | None = None, updates: int | None = None) -> Path:
    """Draw the paths of walks, update by update: whether they keep returning to the heavy nodes or get away.

    On a ring or a path, the vertical axis is the position relative to the heaviest node. On any other graph, it is the
    number of hops from the nearest heavy node (if no nodes are marked as heavy, from the heaviest node; if nothing was
    learned, from the most visited one).

    Parameters
    ----------
    record
        A record with paths: made with `fw.learn(..., paths=5)`, or `paths = 5` in a spec.
    path
        The image to write; its suffix is the format.
    designs
        The designs to show, one panel each. Default: all.
    updates
        The number of updates to show. Default: all.
    """
    from matplotlib.ticker import MaxNLocator

    target, parts = figures.check_format(path), by_design(record)
    if "path" not in record.data or not record.data.sizes["kept"]:
        expected = "one made with learn(..., paths=5), or with paths = 5 under [run] in a spec"
        raise RecordError(f"escape: the record has no paths, expected {expected}")
    last = None if updates is None else check.whole("escape", "updates", updates, 1) + 1
    shown = list(parts) if designs is None else designs
    known = issubclass(type(shown), (list, tuple)) and all(isinstance(one, str) and one in parts for one in shown)
    if not known or not shown:
        raise check.fail("escape", "designs", designs, f"some of {', '.join(map(repr, parts))}, in a list")
    around, heavy = surroundings(record, parts), heavy_of(record)
    with figures.drawing(target, max(4.2, 3.7 * len(shown)), 3.9) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(shown), sharey=True, sharex=True))
        for axes, label in zip(panels, shown, strict=True):
            nodes = paths_of(parts[label])
            nodes = nodes[:, np.isfinite(nodes).all(axis=0)][:, :last]
            if not nodes.size:
                raise RecordError(f"escape: the paths of {label!r} in the record are empty, expected at least a start")
            colour = figures.line_of(list(parts).index(label))["color"]
            _draw_paths(axes, nodes.astype(np.int64), around, heavy, colour)
            share = f"\n{100 * np.isin(nodes, heavy).mean():.0f} % of updates on a heavy node" if heavy else ""
            axes.set_title(f"{label}{share}", parse_math=False)
            axes.set_xlabel("updates")
            figures.axis_of_counts(axes)
        first = panels[0]
        if around.line:  # nodes on both sides of the heaviest
            reach = max(abs(limit) for limit in first.get_ylim())
            first.set(ylim=(-reach, reach), ylabel=f"node, counted from the {around.words}")
        else:
            first.set(ylim=(-0.3, None), ylabel=f"hops from the {around.words}")
            first.yaxis.set_major_locator(MaxNLocator(8, integer=True))
        _explain(figure, record, around, "at each height, one row per walk" if around.flat else "")
    return target


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The positions of nodes relative to the nodes of interest."""

    focus: tuple[int, ...]  # the nodes of interest
    words: str  # the origin: "heavy node", "nearest heavy node", "heaviest node" or "most visited node"
    #: By node. On a ring or a path: its position along the graph, counted from the heaviest node. On other graphs: the
    #: number of hops from the nearest node of the focus.
    places: Ints
    line: bool  # whether the graph is a ring or a path; an unknown graph is taken for a ring
    closed: bool  # whether the last position is beside the first

    @property
    def flat(self) -> bool:
        """Whether no node is many hops away."""
        return not self.line and int(self.places.max()) < _FEW


def surroundings(record: Record, parts: Parts) -> Surroundings:
    """Find the nodes of interest in a record, and the positions of the others.

    The nodes of interest are those marked as heavy in the record, else the one with the largest smoothness, else the
    most visited one.
    """
    graph, n, heavy = graph_of(record), record.data.sizes["node"], heavy_of(record)
    first = next(iter(parts.values()))
    if "smoothness" in first:
        centre, words = int(np.asarray(first.smoothness.values, dtype=np.float64).argmax()), "heaviest node"
    else:
        centre = int(np.sum([visits_of(part) for part in parts.values()], axis=0).argmax())
        words = "most visited node"
    kind = "ring" if graph is None else kind_of(graph)
    if graph is not None and kind not in ("ring", "path"):
        if heavy:
            words = "heavy node" if len(heavy) == 1 else "nearest heavy node"
        focus = tuple(heavy) or (centre,)
        return Surroundings(focus, words, graph.distances(focus), False, False)
    order = np.arange(n)
    if graph is not None:
        gaps = np.abs(np.repeat(order, graph.degrees) - graph.indices)
        if not np.isin(gaps, [1, n - 1] if kind == "ring" else [1]).all():
            order = along(graph, 0)  # otherwise there is no need to walk along a million nodes
    places = np.argsort(order)
    places -= places[centre]
    if kind == "ring":
        places = (places + n // 2) % n - n // 2
    return Surroundings((centre,), words, places, True, kind == "ring")


def _draw_paths(axes: "Axes", nodes: Ints, around: Surroundings, heavy: list[int], colour: str) -> None:
    """Every kept path of a design, in front of the positions of the heavy nodes."""
    places = around.places[nodes].astype(np.float64)
    if around.closed:
        # A step across the far side of the ring must not draw a line across the picture.
        places[:, 1:][np.abs(np.diff(places, axis=1)) > around.places.size / 2] = np.nan
    for level in sorted({int(around.places[node]) for node in heavy or around.focus}):
        axes.axhline(level, color="#bbbbbb", linewidth=2.5, zorder=0)
    # With few heights, lines between them would cover everything: dots show where a walk is and for how long.
    look: dict[str, Any] = {"linewidth": 1.1, "alpha": 0.8}
    if around.flat:
        look = {"marker": "|", "markersize": 4, "linestyle": "none", "rasterized": True}
        if len(places) > 1:
            places += np.linspace(-0.18, 0.18, len(places))[:, None]
    axes.plot(places.T, color=colour, **look)
    axes.set_xlim(right=1.03 * max(places.shape[1] - 1, 1))


def occupancy(record: Record, path: Where, *, around: int = 12) -> Path:
    """Draw the share of visits to each node near the heavy nodes.

    On a ring or a path, the horizontal axis is the position relative to the heaviest node. On any other graph, a point
    is the mean over all nodes at the same number of hops from the nearest heavy node. Heavy nodes are chosen as in
    `escape`.

    Parameters
    ----------
    record
        Of one run, or several side by side.
    path
        The image to write; its suffix is the format.
    around
        How many nodes to show on either side of the heaviest node, or how many hops.
    """
    from matplotlib.ticker import MaxNLocator

    target, parts = figures.check_format(path), by_design(record)
    reach = check.whole("occupancy", "around", around, 1)
    near = surroundings(record, parts)
    n, least = near.places.size, int(near.places.min())
    nodes_at = np.bincount(near.places - least)
    shown = np.arange(max(-reach, least), min(reach, int(near.places.max())) + 1)
    with figures.drawing(target, 7.2, 4.2) as figure:
        axes = figure.subplots()
        for number, (label, part) in enumerate(parts.items()):
            visits = visits_of(part)
            total = np.bincount(near.places - least, weights=visits) / max(float(visits.sum()), 1.0)
            share = (total / nodes_at)[shown - least]
            points: dict[str, Any] = {"marker": "o", "markersize": 3.5, "label": label, **figures.line_of(number)}
            axes.plot(shown, np.where(share > 0, share, np.nan), **points)
        axes.axhline(1 / n, label="uniform share", **DOTTED)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        words = ""
        if near.line:
            axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
            axes.set(xlabel=f"node, counted from the {near.words}", ylabel="share of visits")
        else:
            axes.set_xticks(shown[:: -(-shown.size // 13)])
            axes.set(xlabel=f"hops from the {near.words}", ylabel="share of visits per node")
            words = f"nodes at 0, 1, … hops: {', '.join(f'{count:,}' for count in nodes_at[shown])}"
        _explain(figure, record, near, words)
        figures.legend(figure, axes)
    return target


def _explain(figure: "Figure", record: Record, around: Surroundings, words: str) -> None:
    """Write below a figure which nodes are the origin, and further remarks."""
    graph, letters, origin = graph_of(record), int(figure.get_figwidth() / 0.075), ""
    if not around.line or (graph is not None and graph.node_names is not None):
        origin = f"{'heavy nodes' if len(around.focus) > 1 else around.words}: {in_words(graph, around.focus)}"
    figures.footnote(figure, "\n".join(textwrap.fill(line, letters) for line in (origin, words) if line))
