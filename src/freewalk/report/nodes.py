"""The nodes of a record: their names, which of them are of interest, and the distances of the others from those."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import RecordError
from freewalk.graphs import Graph
from freewalk.report.layout import along, kind_of
from freewalk.report.measures import Floats, Parts
from freewalk.run.record import Record

if TYPE_CHECKING:
    import xarray

Integers = NDArray[np.int64]

_NAMED = 4  # nodes that a caption names; others are counted
_LONGEST = 30  # letters of a name in a caption


def graph_of(record: Record, graph: Graph | None = None) -> Graph | None:
    """The given graph, else that of the record, which must fit its nodes; None for old records."""
    found, n = graph if graph is not None else record.graph, _size(record)
    if found is not None and found.n != n:
        raise RecordError(f"report: the graph has {found.n} nodes, expected {n}; pass the graph of the recorded run")
    return found


def _size(record: Record) -> int:
    """The number of nodes."""
    if "visits" not in record.data or "node" not in record.data.sizes:
        raise RecordError("report: the record has no visits, expected a record made by fw.learn or a spec")
    return record.data.sizes["node"]


def heavy_of(record: Record) -> list[int]:
    """The nodes that the record calls heavy."""
    heavy, n = record.data.attrs.get("heavy", ()), _size(record)
    try:
        found = [int(node) for node in heavy]
    except (TypeError, ValueError):
        found = [-1]
    if not all(0 <= node < n for node in found):
        raise RecordError(f"report: the attribute 'heavy' of the record does not hold nodes from 0 to {n - 1}")
    return found


def in_words(graph: Graph | None, nodes: Iterable[int]) -> str:
    """Nodes by name, or by number if they have none; of many nodes, the first few."""
    some = list(nodes)
    names = [str(node) if graph is None else short(graph.node_name(node)) for node in some[:_NAMED]]
    if len(some) > _NAMED:
        names.append(f"{len(some) - _NAMED:,} more")
    return joined(names)


def joined(words: Sequence[str]) -> str:
    """Words as a sentence lists them: with commas, and "and" before the last."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def short(name: str, most: int = _LONGEST) -> str:
    """A name, cut if it is too long."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The positions of nodes relative to the nodes of interest."""

    focus: tuple[int, ...]  # the nodes of interest
    words: str  # the origin: "heavy node", "nearest heavy node", "heaviest node" or "most visited node"
    #: By node. On a ring or a path: its position along the graph, counted from the heaviest node. On other graphs: the
    #: number of hops from the nearest node of the focus.
    places: Integers
    line: bool  # whether the graph is a ring or a path; an unknown graph is taken for a ring
    closed: bool  # whether the last position is beside the first


def surroundings(record: Record, parts: Parts) -> Surroundings:
    """Find the nodes of interest in a record, and the positions of the others.

    The nodes of interest are those marked as heavy in the record, else the one with the largest smoothness, else the
    most visited one.
    """
    graph, n, heavy = graph_of(record), _size(record), heavy_of(record)
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
    where = np.empty(n, dtype=np.int64)
    where[_in_order(graph, n, kind)] = np.arange(n)
    places = where - where[centre]
    if kind == "ring":
        places = (places + n // 2) % n - n // 2
    return Surroundings((centre,), words, places, True, kind == "ring")


def _in_order(graph: Graph | None, n: int, kind: str) -> Integers:
    """The nodes of a ring or a path, in order."""
    if graph is None:
        return np.arange(n)
    gaps = np.abs(np.repeat(np.arange(n), graph.degrees) - graph.indices)
    if ((gaps == 1) | (gaps == n - 1)).all() and (kind == "ring" or (gaps == 1).all()):
        return np.arange(n)  # numbered in order: no need to walk along a million nodes
    return along(graph, 0)


def visits_of(part: "xarray.Dataset") -> Floats:
    """How often each node was visited, by all walks of a design."""
    counts = part.visits.astype(np.float64)  # before they are added: sums of integers would overflow
    return np.asarray(counts.sum([name for name in counts.dims if name != "node"]).values)


def paths_of(part: "xarray.Dataset") -> Floats:
    """The nodes on the kept paths of a design, one row per path; NaN after the end of an interrupted path.

    There may be none: in a record of several designs, one that kept fewer paths is padded with NaN.
    """
    nodes = np.asarray(part.path.transpose("kept", "time").values, dtype=np.float64)
    if not (np.isnan(nodes) | ((nodes >= 0) & (nodes < part.sizes["node"]) & (nodes == np.floor(nodes)))).all():
        raise RecordError(f"report: a path in the record leaves the nodes from 0 to {part.sizes['node'] - 1}")
    return nodes[~np.isnan(nodes).all(axis=1)]
