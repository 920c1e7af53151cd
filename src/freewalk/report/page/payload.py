"""What the scripts of a page read: plain numbers and texts, as small as they can be."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.graphs import Graph
from freewalk.report.figures import COLOURS
from freewalk.report.nodes import short
from freewalk.report.page.encode import numbers, pack, pack_indices, thin
from freewalk.report.page.model import Chart, Page, Section, Series, Walks
from freewalk.report.page.places import place

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Colours = dict[str, str | int]

#: The animation shows the first so many updates.
MOST_STEPS = 4000
#: Of a larger graph only the nodes that matter are shown.
MOST_NODES = 5000
_LONGEST = 60  # letters of the name of a node
# The same designs as in figures.DASHES are dashed, so that one that coincides with another lets it show through.
_DASHES = ("", "", "", "7 5", "", "2 3", "9 3 2 3")
_MORE_DASHES = ("14 3 3 3", "4 2")


def payload(page: Page) -> list[dict[str, Any]]:
    """One entry per section: its charts and its walks."""
    return [_section(section) for section in page.sections]


def _section(section: Section) -> dict[str, Any]:
    colours = _colours(section)
    found: dict[str, Any] = {"charts": [_chart(chart, colours) for chart in section.charts]}
    if section.walks is not None:
        found["walks"] = _walks(section.walks, colours)
    return found


def _colours(section: Section) -> Colours:
    """The colour of each design: the one that was asked for, or a number in the palette, by first appearance."""
    series = [one for chart in section.charts for one in chart.series]
    labels = [one.label for one in series]
    if section.walks is not None:
        labels += [*section.walks.visits, *section.walks.paths]
    found: Colours = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return found | {one.label: one.colour for one in series if one.colour is not None}


def _chart(chart: Chart, colours: Colours) -> dict[str, Any]:
    return {
        "title": chart.title,
        "yLabel": chart.y_label,
        "xLog": chart.x_log,
        "yLog": chart.y_log,
        "lines": [[name, numbers(np.array([value]))[0]] for name, value in chart.lines.items()],
        "axes": axes_of(chart.series),
        "series": [_series(one, colours[one.label]) for one in chart.series],
    }


def axes_of(series: Sequence[Series]) -> list[str]:
    """The horizontal axes of a chart, by first appearance."""
    return list(dict.fromkeys(name for one in series for name in one.x))


def _series(series: Series, colour: str | int) -> dict[str, Any]:
    y = np.asarray(series.y)
    kept = thin(y.size)
    found: dict[str, Any] = {
        "label": series.label,
        "kind": series.kind,
        **_paint(colour),
        "x": {name: numbers(np.asarray(values)[kept]) for name, values in series.x.items()},
        "y": numbers(y[kept]),
    }
    if series.low is not None and series.high is not None:
        found |= {"low": numbers(np.asarray(series.low)[kept]), "high": numbers(np.asarray(series.high)[kept])}
    return found | ({"note": series.note} if series.note else {})


def _paint(colour: str | int) -> dict[str, Any]:
    if isinstance(colour, str):
        return {"colour": colour, "dash": ""}
    count = len(_DASHES)
    dash = _DASHES[colour] if colour < count else _MORE_DASHES[(colour // count - 1) % len(_MORE_DASHES)]
    return {"colour": colour % len(COLOURS), "dash": dash}


def _walks(walks: Walks, colours: Colours) -> dict[str, Any]:
    importance = np.asarray(walks.importance)
    paths = {label: np.asarray(path)[: MOST_STEPS + 1] for label, path in walks.paths.items()}
    nodes = _shown(walks, importance.size, paths)
    where = np.full(importance.size, -1)
    where[nodes] = np.arange(nodes.size)
    places = place(walks.graph, list(walks.heavy), importance)
    pairs = where[places.pairs]
    pairs = pairs[(pairs >= 0).all(axis=1)] if pairs.size else pairs
    spots = places.positions[nodes]
    return {
        "nodes": nodes.size,
        "names": _names(walks.graph, nodes, importance.size),
        "named": walks.graph is not None and walks.graph.node_names is not None,
        "x": pack(np.rint(32767 * spots[:, 0]), "i2"),
        "y": pack(np.rint(32767 * spots[:, 1]), "i2"),
        "spacing": _spacing(spots),
        "height": 1 if places.circle else _height(spots),
        "circle": places.circle,
        "edges": pack_indices(pairs.ravel(), nodes.size),
        "heavy": where[np.asarray(walks.heavy, dtype=np.int64)].tolist(),
        "importance": pack(importance[nodes], "f4"),
        "designs": [
            {
                "label": label,
                **_paint(colours[label]),
                "visits": pack(_shares(walks.visits.get(label), importance.size)[nodes], "f4"),
                "heavyShare": _heavy_share(walks, label),
                "path": pack_indices(where[paths[label]], nodes.size) if label in paths else None,
            }
            for label in dict.fromkeys([*walks.visits, *walks.paths])
        ],
        "words": _words(places.words, importance.size),
        "length": max((np.asarray(path).size - 1 for path in walks.paths.values()), default=0),
        "steps": max((path.size - 1 for path in paths.values()), default=0),
    }


def _names(graph: Graph | None, nodes: Integers, n: int) -> list[str] | list[int] | None:
    """What nodes are called: by name, or by number where that is not their place in the list."""
    if graph is not None and graph.node_names is not None:
        return [short(graph.node_name(int(node)), _LONGEST) for node in nodes]
    return None if nodes.size == n else [int(node) for node in nodes]


def _words(words: str, n: int) -> str:
    if n <= MOST_NODES:
        return words
    return f"{words} Of {n:,} nodes those on a shown path, the most visited and some between them are shown.".strip()


def _shown(walks: Walks, n: int, paths: dict[str, Integers]) -> Integers:
    """All nodes, or of a large graph the heavy ones, those on a path, the most visited, and others evenly between."""
    if n <= MOST_NODES:
        return np.arange(n)
    total = np.sum([_shares(one, n) for one in walks.visits.values()], axis=0)
    most = np.argsort(-total, kind="stable")[: MOST_NODES // 2]
    between = np.linspace(0, n - 1, MOST_NODES // 2).astype(np.int64)
    return np.unique(np.concatenate([most, between, np.asarray(walks.heavy, dtype=np.int64), *paths.values()]))


def _shares(visits: Any, n: int) -> Floats:
    if visits is None:
        return np.zeros(n)
    counts = np.asarray(visits, dtype=np.float64)
    return counts / max(float(counts.sum()), 1e-300)


def _heavy_share(walks: Walks, label: str) -> float | None:
    if not walks.heavy or label not in walks.visits:
        return None
    shares = _shares(walks.visits[label], np.asarray(walks.importance).size)
    return float(f"{shares[np.unique(walks.heavy)].sum():.4g}")


def _height(spots: Floats) -> float:
    """The height of a picture that is 1 wide."""
    width, height = np.ptp(spots, axis=0)
    return float(f"{max(height / max(width, 1e-9), 0.2):.4g}")


def _spacing(spots: Floats) -> float:
    """How far apart near neighbours are: most dots of that width do not overlap."""
    from scipy.spatial import cKDTree

    if len(spots) < 2:
        return 1.0
    nearest = np.asarray(cKDTree(spots).query(spots, k=2)[0])[:, 1]
    return float(f"{np.quantile(nearest, 0.2):.4g}")
