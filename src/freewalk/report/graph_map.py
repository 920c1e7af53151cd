"""The graph of a diagnosis: nodes coloured by the mean stay of the importance walk, traps ringed and labelled."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.analysis.traps.sets import count_of, name_nodes
from freewalk.linear.arrays import Flags, Floats, Ints
from freewalk.report.figures import COLOURS, INK
from freewalk.report.layout import GraphLayout, along, layout, middle
from freewalk.report.measures import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    from freewalk.analysis.diagnosis.findings import Diagnosis
    from freewalk.analysis.traps.sets import Trap


TRAP, OTHER = COLOURS[1], "#edb98f"
LABELLED = 4  # traps
_CROWDED = 60  # on a ring with more nodes, neighbours cannot be told apart
_BROAD = 20  # a trap of this many nodes can be seen without enlarging it
_ANCHORS = 6  # nodes of a trap at which the line from its label may end
_LETTERS = 14  # letters of a name in the close-up
_NAMED = 50  # up to this many nodes, all names are written
_HALO = 3.4  # points from the rim of a node to that of the ring around it
_RING, _LINK = 2.0, 2.6  # widths, in points, of the ring around a node of a trap and of the edges between two


@dataclass(frozen=True, eq=False)
class _Dots:
    """Nodes as they are drawn: their numbers, positions, radii in points, and the edges between them."""

    nodes: Ints
    places: Floats
    radii: Floats
    pairs: Ints


def scale_of_stays(stays: Floats) -> "ScalarMappable":
    """Colours for stays, on a log scale; pale means short."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    finite = stays[np.isfinite(stays)] if np.isfinite(stays).any() else np.ones(1)
    low = float(finite.min())
    high = max(float(finite.max()), 1.5 * low)
    colours = LinearSegmentedColormap.from_list("stays", ["#dceaf4", "#8fc1de", "#2f7fb8", "#08306b"])
    return ScalarMappable(LogNorm(low, high, clip=True), colours)


def shown_traps(found: "Diagnosis") -> "tuple[Trap, ...]":
    """The worst trap, and those that are nearly as bad."""
    return tuple(trap for trap in found.traps if trap.lost >= 0.1 * found.traps[0].lost)


def draw_map(figure: "Figure", axes: "Axes", found: "Diagnosis") -> None:
    """Draw the graph into axes whose layout is final, because sizes and labels are in points."""
    focus = found.traps[0].nodes if found.traps else (int(found.stays.argmax()),)
    placed = layout(found.graph, focus, found.importance)
    around = "the worst trap" if found.traps else "the longest stay"
    part = f"\n(the {placed.nodes.size} nodes around {around}, of {found.graph.n:,})"
    axes.set_title(f"Where does the importance walk stay?{'' if placed.whole else part}", loc="left")
    axes.set_axis_off()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    unit = _fit(axes, placed)

    dots = _Dots(placed.nodes, placed.positions, _radii(found, placed, unit), placed.pairs)
    _draw_dots(axes, found, dots)
    named = found.graph.node_names is not None and dots.nodes.size <= _NAMED
    taken = _draw_names(axes, found, dots) if named else []
    crowded = placed.kind in ("ring", "path") and placed.nodes.size > _CROWDED
    if crowded and found.traps and len(found.traps[0].nodes) <= _BROAD:
        taken.append(_draw_close_up(axes, found, dots, unit))
    for trap in shown_traps(found)[:LABELLED]:
        if np.isin(trap.nodes, dots.nodes).any():
            name = "" if named or not trap.names else f" at {name_nodes(trap.names, most=2)}"
            taken += _label(axes, found, dots, trap, name, taken)


def _fit(axes: "Axes", placed: GraphLayout) -> float:
    """Set limits with equal units on both axes that leave room beside the graph; returns the points per unit."""
    # Labels stand outside a ring; in other graphs they find room between the nodes.
    margin = 0.2 if placed.kind in ("ring", "path", "star") else 0.12
    panel = np.array(axes.get_window_extent().size)
    unit = float((panel / (np.abs(placed.positions).max(axis=0) + margin)).min() / 2)
    width, height = panel / unit / 2
    axes.set(xlim=(-width, width), ylim=(-height, height))
    return unit / _pixel(axes)


def _pixel(axes: "Axes") -> float:
    """The pixels per point."""
    return axes.figure.dpi / 72.0


def _radii(found: "Diagnosis", placed: GraphLayout, unit: float) -> Floats:
    """Radii in points: areas grow with the square root of the importance, so that a hundredfold one still fits."""
    from scipy.spatial import cKDTree

    distances = np.asarray(cKDTree(placed.positions).query(placed.positions, k=2)[0])
    gap = float(np.median(distances[:, 1])) * unit
    usual = float(np.clip(0.27 * gap, 0.9, 5.5))
    # A heavy node must not cover its neighbours, but must stand out among a thousand.
    return _grown(found, placed.nodes, usual, float(np.clip(0.5 * gap, 5.0, 14.0)))


def _grown(found: "Diagnosis", nodes: Ints, usual: float, most: float) -> Floats:
    relative = found.importance[nodes] / np.median(found.importance)
    return np.asarray(np.clip(usual * relative**0.25, 0.6 * usual, most))


def _draw_dots(axes: "Axes", found: "Diagnosis", dots: _Dots) -> None:
    """Edges, rings around the nodes of traps, nodes."""
    if dots.pairs.size:
        alpha = float(np.clip(2.2 * dots.nodes.size / len(dots.pairs), 0.06, 0.9))
        _draw_edges(axes, dots, dots.pairs, colors="#b5b5b5", linewidths=0.8, alpha=alpha, zorder=1)
    for trap in reversed(shown_traps(found)):
        _mark(axes, dots, np.flatnonzero(np.isin(dots.nodes, trap.nodes)), TRAP if trap is found.traps[0] else OTHER)
    shades = scale_of_stays(found.stays).to_rgba(found.stays[dots.nodes])
    order = np.argsort(found.stays[dots.nodes], kind="stable")  # long stays on top
    (x, y), radii = dots.places[order].T, dots.radii[order]
    rims = np.minimum(0.5, radii / 6).tolist()
    axes.scatter(x, y, s=(2 * radii) ** 2, c=shades[order], edgecolors="#5b6f80", linewidths=rims, zorder=4)


def _mark(axes: "Axes", dots: _Dots, members: Ints, colour: str) -> None:
    """Rings around the nodes of a trap and broad edges between them; one outline could enclose other nodes too."""
    if not members.size:
        return
    inside = dots.pairs[np.isin(dots.pairs, members).all(axis=1)]
    if inside.size:
        width = _LINK * float(np.clip(np.sqrt(30 / len(inside)), 0.4, 1.0))  # many would cover what they cross
        _draw_edges(axes, dots, inside, colors=colour, linewidths=width, zorder=2)
    reach = dots.radii[members] + _HALO - _RING / 2
    x, y = dots.places[members].T
    axes.scatter(x, y, s=(2 * reach) ** 2, facecolors="white", edgecolors=colour, linewidths=_RING, zorder=3)


def _draw_edges(axes: "Axes", dots: _Dots, pairs: Ints, **look: Any) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection(list(dots.places[pairs]), **look), autolim=False)


def _draw_close_up(axes: "Axes", found: "Diagnosis", dots: _Dots, unit: float) -> Floats:
    """Draw the worst trap and its neighbours in a row, in the middle of a ring; returns the box that it takes."""
    trap, wide = found.traps[0].nodes, 0.66
    row = _around(found, trap, max(11, len(trap) + 6))
    places = np.column_stack([np.linspace(-wide, wide, row.size), np.zeros(row.size)])
    gap = 2 * wide / (row.size - 1) * unit
    usual = float(np.clip(0.26 * gap, 1.5, 6.0))
    radii = _grown(found, row, usual, 0.42 * gap)
    order = np.arange(row.size - 1)
    members = np.flatnonzero(np.isin(dots.nodes, trap))
    origin = dots.places[members[members.size // 2]]
    ends = sorted((places[0], places[-1]), key=lambda end: float(np.linalg.norm(end - origin)))
    # A line from the side to the far end would cross the row.
    for end in ends if origin[1] > 0.5 else ends[:1]:
        axes.plot(*np.column_stack([origin, end]), color="#dddddd", linewidth=0.8, zorder=0.5)
    _draw_dots(axes, found, _Dots(row, places, radii, np.column_stack([order, order + 1])))
    high = (float(radii.max()) + _HALO + 10.0) / unit
    below = -high
    named = found.graph.node_names is not None
    style: dict[str, Any] = {"ha": "center", "va": "center", "color": "#555555"}
    upright: dict[str, Any] = {**style, "rotation": 90, "va": "top"} if named else style
    names = [short(found.graph.node_name(int(node)), _LETTERS) for node in row]
    for name, place in list(zip(names, places, strict=True))[:: -(-row.size // 11)]:
        axes.text(place[0], below, name, fontsize=7.5, parse_math=False, **upright)
    below -= (16.0 + (4.6 * max(map(len, names)) if named else 0.0)) / unit
    words = f"close-up of the worst trap, with node {'names' if named else 'numbers'}"
    axes.text(0, below, words, fontsize=8.5, **style)
    corners = axes.transData.transform([(-wide - 0.1, below - 8 / unit), (wide + 0.1, high)])
    return np.asarray(corners.ravel(), dtype=np.float64)


def _around(found: "Diagnosis", trap: tuple[int, ...], shown: int) -> Ints:
    """Consecutive nodes of a ring or a path, centred on the trap."""
    graph = found.graph
    ends = np.flatnonzero(graph.degrees == 1)
    order = along(graph, int(ends[0]) if ends.size else int(trap[0]))
    if ends.size:
        where = np.flatnonzero(np.isin(order, trap))
        first = int(np.clip(round(where.mean()) - shown // 2, 0, max(order.size - shown, 0)))
        return order[first : first + shown]
    return order[(middle(order, trap) - (shown - 1) // 2 + np.arange(shown)) % order.size]


def _draw_names(axes: "Axes", found: "Diagnosis", dots: _Dots) -> list[Floats]:
    """Write the name of each node on the side where it hides least; returns the boxes of the names."""
    pixel, taken, frame = _pixel(axes), list[Floats](), np.array(axes.get_window_extent().extents)
    nodes = axes.transData.transform(dots.places)
    first, last = nodes[dots.pairs.T][:, :, None]
    lines: Floats = first + np.linspace(0, 1, 40)[:, None] * (last - first)
    reach = (dots.radii[:, None] + _HALO) * pixel
    middle_of_all = nodes.mean(axis=0)
    away = np.linalg.norm(nodes - middle_of_all, axis=1) + pixel
    for place, (node, home) in enumerate(zip(dots.nodes, nodes, strict=True)):
        words = short(found.graph.node_name(int(node)), 16)
        text = axes.text(0, 0, words, ha="center", va="center", fontsize=8, color=INK, zorder=5, parse_math=False)
        half = np.array(text.get_window_extent().size) / 2
        tried = []
        for direction in _directions(16):
            centre = home + direction * (reach[place] + half + pixel)
            box = np.concatenate([centre - half, centre + half])
            crossed = ((lines > box[:2]) & (lines < box[2:])).all(axis=-1).any(axis=-1).sum()
            cost = 5.0 * _covered(nodes, reach, box).sum() + crossed + 20.0 * _sticks_out(box, frame)
            cost += 10.0 * sum(_overlap(box, other) for other in taken)
            cost -= 0.2 * float(direction @ (home - middle_of_all)) / away[place]
            tried.append((cost, centre, box))
        _, best, box = min(tried, key=lambda one: one[0])
        text.set_position(tuple(axes.transData.inverted().transform(best)))
        text.set_in_layout(False)
        taken.append(box)
    return taken


def _label(axes: "Axes", found: "Diagnosis", dots: _Dots, trap: "Trap", name: str, taken: list[Floats]) -> list[Floats]:
    """Label a trap with its excess visits where there is room; returns the boxes of the label and its line."""
    members = np.flatnonzero(np.isin(dots.nodes, trap.nodes))
    centre = dots.places[members].mean(axis=0)
    inner = members[np.argsort(np.linalg.norm(dots.places[members] - centre, axis=1), kind="stable")][:_ANCHORS]
    colour = TRAP if trap is found.traps[0] else OTHER
    text: Any = axes.annotate(
        f"{'worst trap' if trap is found.traps[0] else 'trap'}{name}: {count_of(trap.excess)} updates",
        (0, 0),
        xytext=(0, 0),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=9,
        color=INK,
        zorder=6,
        annotation_clip=False,
        bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": colour, "linewidth": 0.8, "alpha": 0.93},
        arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.9, "shrinkA": 0.0},
    )
    pixel = _pixel(axes)
    half = np.array(text.get_window_extent().size) / 2 + 4 * pixel
    tried = [(anchor, *_room(axes, found, dots, anchor, half, taken)) for anchor in inner]
    anchor, place, _ = min(tried, key=lambda one: one[2])
    home = axes.transData.transform(dots.places[anchor])
    text.xy = tuple(dots.places[anchor])
    text.arrow_patch.shrinkB = float(dots.radii[anchor]) + _HALO
    text.set_position(tuple((place - home) / pixel))
    text.set_in_layout(False)
    points = home + np.linspace(0.25, 0.9, 5)[:, None] * (place - home)
    return [np.concatenate([place - half, place + half]), *np.hstack([points - pixel, points + pixel])]


def _room(
    axes: "Axes", found: "Diagnosis", dots: _Dots, anchor: int, half: Floats, taken: list[Floats]
) -> tuple[Floats, float]:
    """The position near a node, in pixels, at which a box and its line hide least, and how much they hide."""
    nodes, pixel = axes.transData.transform(dots.places), _pixel(axes)
    home, near = nodes[anchor], (float(dots.radii[anchor]) + _HALO + 2) * pixel
    held = np.isin(dots.nodes, np.concatenate([trap.nodes for trap in shown_traps(found)]))
    radii = (dots.radii + np.where(held, _HALO + 2.0, 0.0))[:, None] * pixel
    weights = np.where(held, 8.0, 2.0)
    marked = np.flatnonzero(held & (np.arange(held.size) != anchor))
    frame = np.array(axes.get_window_extent().extents)
    outward = (home - nodes.mean(axis=0)) / max(float(np.linalg.norm(home - nodes.mean(axis=0))), 1e-9)
    tried = []
    for distance in (9.0, 20.0, 34.0, 52.0, 75.0, 110.0):
        for direction in _directions(24):
            place = home + direction * (near + distance * pixel + half * np.abs(direction))
            box = np.concatenate([place - half, place + half])
            points = home + np.linspace(0.1, 0.9, 9)[:, None] * (place - home)
            line = np.hstack([points, points])
            hidden = weights[_covered(nodes, radii, box)].sum()
            crossed = np.linalg.norm(nodes[marked] - points[:, None], axis=2) < radii[marked, 0]
            cost = hidden + 4.0 * crossed.any(axis=0).sum() + distance / 25.0 - 0.6 * float(direction @ outward)
            cost += 40.0 * sum(_overlap(box, other) for other in taken)
            cost += 20.0 * sum(any(_overlap(point, other) for point in line) for other in taken)
            cost += 60.0 * _sticks_out(box, frame)
            tried.append((place, float(cost)))
    return min(tried, key=lambda one: one[1])


def _directions(count: int) -> Floats:
    """Unit vectors to all sides, the first to the right."""
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _covered(nodes: Floats, reach: Floats, box: Floats) -> Flags:
    """Which nodes, drawn this far around their positions, a box would cover."""
    return np.asarray(((nodes + reach > box[:2]) & (nodes - reach < box[2:])).all(axis=1))


def _sticks_out(box: Floats, frame: Floats) -> bool:
    return bool((box[:2] < frame[:2]).any() or (box[2:] > frame[2:]).any())


def _overlap(one: Floats, other: Floats) -> bool:
    """Whether two boxes, given as left, bottom, right and top, overlap."""
    return bool((np.minimum(one[2:], other[2:]) >= np.maximum(one[:2], other[:2])).all())
