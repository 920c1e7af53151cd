"""The data that the scripts of a page read: plain numbers and texts, with few digits, points and bytes."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.graphs import Graph
from freewalk.linear.arrays import Floats, Ints
from freewalk.report.figures import COLOURS
from freewalk.report.measures import short
from freewalk.report.page.model import Chart, Page, Section, Series, Walks
from freewalk.report.page.places import Places, views

#: More points per curve would look the same on any screen.
MOST_POINTS = 400
#: The animation shows this many updates at most.
MOST_STEPS = 4000
#: Of a larger graph, only the most relevant nodes are shown.
MOST_NODES = 5000
_DIGITS = 5
_SOME = "those on a shown path, the most visited and some others are shown."
_LONGEST = 60  # characters of a node's name
# The same designs as in figures.DASHES are dashed.
_DASHES = ("", "", "", "7 5", "", "2 3", "9 3 2 3")
_MORE_DASHES = ("14 3 3 3", "4 2")
#: A curve that hides another one gets these dashes, so that the lower one shows through.
OVERLAY = "9 9"
# Two curves coincide where they differ by less than this fraction of the height of the chart.
_NEAR = 0.01
# One covers the other if they coincide on this fraction of the width.
_MOSTLY = 0.9


def embedded(page: Page) -> str:
    """The data as JSON that is safe inside a script element, whatever the labels contain."""
    text = json.dumps(payload(page), allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def payload(page: Page) -> list[dict[str, Any]]:
    """One entry per section: its charts and its walks."""
    found: list[dict[str, Any]] = []
    for section in page.sections:
        paints = _paints(section)
        found.append({"charts": [_chart(chart, paints) for chart in section.charts]})
        if section.walks is not None:
            found[-1]["walks"] = _walks(section.walks, paints)
    return found


def _paints(section: Section) -> dict[str, dict[str, Any]]:
    """The colour and the dashes of each design: the colour that was asked for, or one by first appearance."""
    series = [one for chart in section.charts for one in chart.series]
    designs = dict.fromkeys([*(one.label for one in series), *_designs(section.walks)])
    asked = {one.label: one.colour for one in series if one.colour is not None}
    hiding = {upper for chart in section.charts for upper in coinciding(chart)}
    paints = {}
    for number, label in enumerate(designs):
        turn, place = divmod(number, len(_DASHES))
        dash = "" if label in asked else _MORE_DASHES[(turn - 1) % len(_MORE_DASHES)] if turn else _DASHES[place]
        colour = asked.get(label, number % len(COLOURS))
        paints[label] = {"colour": colour, "dash": OVERLAY if label in hiding and not dash else dash}
    return paints


def _designs(walks: Walks | None) -> dict[str, None]:
    return {} if walks is None else dict.fromkeys([*walks.visits, *walks.paths])


def coinciding(chart: Chart) -> dict[str, str]:
    """The designs whose curve covers an earlier one nearly everywhere, each with the design that it covers."""
    means = [one for one in chart.series if one.kind == "mean"]
    heights = [_heights(one, chart.y_log) for one in means]
    known = np.concatenate([one[np.isfinite(one)] for one in heights]) if means else np.empty(0)
    near = _NEAR * float(np.ptp(known)) if known.size else 0.0
    found: dict[str, str] = {}
    for number, upper in enumerate(means):
        for lower, height in zip(means[:number], heights, strict=False):
            axis = next((name for name in upper.x if name in lower.x), None)
            if axis is None or upper.label == lower.label or upper.label in found:
                continue
            where = _across(np.asarray(upper.x[axis]), chart.x_log)
            above = np.interp(where, np.asarray(upper.x[axis]), heights[number])
            below = np.interp(where, np.asarray(lower.x[axis]), height)
            if np.mean(np.abs(above - below) <= near) >= _MOSTLY:
                found[upper.label] = lower.label
    return found


def _across(x: Floats, log: bool) -> Floats:
    """Evenly spaced points of a horizontal axis, as it is drawn."""
    positive = x[x > 0]
    if log and positive.size and positive[0] < x[-1]:
        return np.geomspace(positive[0], x[-1], 100)
    return np.linspace(x[0], x[-1], 100)


def _heights(series: Series, log: bool) -> Floats:
    """Where the values of a curve are drawn, up to a scale."""
    y = np.asarray(series.y, dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.where(y > 0, np.log10(y), np.nan) if log else np.where(np.isfinite(y), y, np.nan)


def _chart(chart: Chart, paints: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "title": chart.title,
        "yLabel": chart.y_label,
        "xLog": chart.x_log,
        "yLog": chart.y_log,
        "lines": [[name, _number(value)] for name, value in chart.lines.items()],
        "axes": list(dict.fromkeys(name for one in chart.series for name in one.x)),
        "series": [_series(one, paints[one.label]) for one in chart.series],
    } | ({"covers": list(covered.items())} if (covered := coinciding(chart)) else {})


def _series(series: Series, paint: dict[str, Any]) -> dict[str, Any]:
    y = np.asarray(series.y)
    kept = thin(y.size)
    found: dict[str, Any] = {
        "label": series.label,
        "kind": series.kind,
        **paint,
        "x": {name: _numbers(np.asarray(values)[kept]) for name, values in series.x.items()},
        "y": _numbers(y[kept]),
    }
    if series.low is not None and series.high is not None:
        found |= {"low": _numbers(np.asarray(series.low)[kept]), "high": _numbers(np.asarray(series.high)[kept])}
    return found | ({"note": series.note} if series.note else {})


def _walks(walks: Walks, paints: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    importance = np.asarray(walks.importance)
    paths = {label: np.asarray(path)[: MOST_STEPS + 1] for label, path in walks.paths.items()}
    nodes = _shown(walks, importance.size, paths)
    where = np.full(importance.size, -1)
    where[nodes] = np.arange(nodes.size)
    places = views(walks.graph, list(walks.heavy), importance)
    shares = {label: _shares(visits) for label, visits in walks.visits.items()}
    heavy = np.unique(np.asarray(walks.heavy, dtype=np.int64))
    first, *others = (_view(one, nodes, where, importance.size) for one in places)
    true = [number for number, one in enumerate(places) if one.true and nodes.size == importance.size]
    return {
        "nodes": nodes.size,
        "names": _names(walks.graph, nodes, importance.size),
        "named": walks.graph is not None and walks.graph.node_names is not None,
        **first,
        "others": [one | {"edges": None} if one["edges"] == first["edges"] else one for one in others],
        "drawing": true[-1] if true else None,
        "graph": "" if walks.graph is None else f"{walks.graph.n:,} nodes, {walks.graph.edges:,} edges",
        "heavy": where[np.asarray(walks.heavy, dtype=np.int64)].tolist(),
        "importance": _pack(importance[nodes], "f4"),
        "designs": [
            {
                "label": label,
                **paints[label],
                "visits": _pack(shares.get(label, np.zeros(importance.size))[nodes], "f4"),
                "heavyShare": float(f"{shares[label][heavy].sum():.4g}") if heavy.size and label in shares else None,
                "path": _pack_indices(where[paths[label]], nodes.size) if label in paths else None,
            }
            for label in _designs(walks)
        ],
        "note": walks.note,
        "length": max((np.asarray(path).size - 1 for path in walks.paths.values()), default=0),
        "steps": max((path.size - 1 for path in paths.values()), default=0),
    }


def _view(places: Places, nodes: Ints, where: Ints, n: int) -> dict[str, Any]:
    """One way to place the nodes."""
    pairs, spots = where[places.pairs], places.positions[nodes]
    return {
        "view": places.name,
        "x": _pack(np.rint(32767 * spots[:, 0]), "i2"),
        "y": _pack(np.rint(32767 * spots[:, 1]), "i2"),
        "spacing": _spacing(spots),
        "height": 1 if places.circle else _height(spots),
        "circle": places.circle,
        "edges": _pack_indices(pairs[(pairs >= 0).all(axis=1)].ravel(), nodes.size),
        "words": places.words if n <= MOST_NODES else f"{places.words} Of {n:,} nodes, {_SOME}".strip(),
    }


def _names(graph: Graph | None, nodes: Ints, n: int) -> list[str] | list[int] | None:
    """The names of the nodes, or their numbers if only some nodes are shown."""
    if graph is not None and graph.node_names is not None:
        return [short(graph.node_name(int(node)), _LONGEST) for node in nodes]
    return None if nodes.size == n else [int(node) for node in nodes]


def _shown(walks: Walks, n: int, paths: dict[str, Ints]) -> Ints:
    """All nodes; of a large graph the heavy ones, those on a path, the most visited, and others at even intervals."""
    if n <= MOST_NODES:
        return np.arange(n)
    total = np.sum([_shares(one) for one in walks.visits.values()], axis=0)
    most = np.argsort(-total, kind="stable")[: MOST_NODES // 2]
    between = np.linspace(0, n - 1, MOST_NODES // 2).astype(np.int64)
    return np.unique(np.concatenate([most, between, np.asarray(walks.heavy, dtype=np.int64), *paths.values()]))


def _shares(visits: ArrayLike) -> Floats:
    counts = np.asarray(visits, dtype=np.float64)
    return counts / max(float(counts.sum()), 1e-300)


def _height(spots: Floats) -> float:
    """The height of a picture of width 1."""
    width, height = np.ptp(spots, axis=0)
    return float(f"{max(height / max(width, 1e-9), 0.2):.4g}")


def _spacing(spots: Floats) -> float:
    """The distance between near neighbours: most dots of that width do not overlap."""
    from scipy.spatial import cKDTree

    if len(spots) < 2:
        return 1.0
    nearest = np.asarray(cKDTree(spots).query(spots, k=2)[0])[:, 1]
    return float(f"{np.quantile(nearest, 0.2):.4g}")


def thin(size: int, most: int = MOST_POINTS) -> Ints:
    """Which points of a curve to keep: half of them evenly spaced, half evenly spaced on a log scale, and both ends."""
    if size <= most:
        return np.arange(size)
    even = np.linspace(0, size - 1, most // 2)
    # A curve changes most at its beginning, which a logarithmic axis shows.
    log = np.geomspace(1, size - 1, most - most // 2)
    return np.unique(np.rint(np.concatenate([even, log])).astype(np.int64))


def _numbers(values: Floats) -> list[float | int | None]:
    return [_number(float(value)) for value in values]


def _number(value: float) -> float | int | None:
    """A number for JSON: an integer unchanged, another rounded, None if it is not finite."""
    if not np.isfinite(value):
        return None
    if value == int(value) and abs(value) < 10**9:
        return int(value)
    return float(f"{value:.{_DIGITS}g}")


def _pack(values: NDArray[Any], kind: str) -> str:
    """An array as base64 of little-endian numbers; `kind` is one of numpy's, such as "u2" or "f4"."""
    if kind == "f4":
        values = np.clip(values, -3e38, 3e38)  # the range of float32
    return base64.b64encode(values.astype(f"<{kind}").tobytes()).decode("ascii")


def _pack_indices(values: Ints, size: int) -> dict[str, str | int]:
    """Indices below `size`, in two or four bytes each."""
    kind = "u2" if size <= 2**16 else "u4"
    return {"bytes": int(kind[1]), "data": _pack(values, kind)}
