"""Memory-mapped graph files: compressed sparse rows, names and positions."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import GraphError
from freewalk.graphs.structure import MOST_NODES, check, check_count
from freewalk.storage import mapped

if TYPE_CHECKING:
    from freewalk.graphs.graph import Graph

_KIND = "graph"
_TYPES = {"indptr": "i8", "indices": "i4", "positions": "f8", "names": "u1"}


def write(graph: "Graph", path: str | os.PathLike[str]) -> Path:
    """Write a graph to a file atomically, block by block."""
    file = check.path("save", "path", path)
    arrays: dict[str, NDArray[Any]] = {"indptr": graph.indptr, "indices": graph.indices}
    if graph.positions is not None:
        arrays["positions"] = graph.positions
    if graph.node_names is not None:
        arrays["names"] = np.frombuffer("\0".join(graph.node_names).encode(), dtype=np.uint8)
    shapes = {name: (_TYPES[name], array.shape) for name, array in arrays.items()}
    with mapped.writing(file, _KIND, shapes, {"name": graph.name}) as sinks:
        for name, array in arrays.items():
            sinks[name].append(array)
    return file


def opened(path: str | os.PathLike[str], *, verify: bool = True) -> tuple[Any, ...]:
    """Map a graph file: the fields of its graph, in order.

    `verify` reads all of it once to check the checksums and that all rows and edges are within the arrays. Sorted rows,
    reverse edges and connectivity were checked before it was saved.
    """
    table = mapped.opened(path, _KIND, verify=False, check=check)
    arrays, title = table.arrays, table.attributes.get("name")
    shapes = {name: array.shape for name, array in arrays.items()}
    n = shapes.get("indptr", (0,))[0] - 1
    fits = {"indptr", "indices"} <= arrays.keys() <= _TYPES.keys() and all(
        array.dtype == _TYPES[name] and array.ndim == 1 + (name == "positions") for name, array in arrays.items()
    )
    if not fits or n > MOST_NODES:
        raise GraphError(f"{table.path}: holds {', '.join(arrays)}, expected the arrays of a graph; save it again")
    check_count(table.path, n)
    if verify:
        inspect = _within(table.path, n, shapes["indices"][0])
        arrays = mapped.opened(path, _KIND, check=check, inspect=inspect).arrays
    names = tuple(arrays["names"].tobytes().decode().split("\0")) if "names" in arrays else None
    title = check.text("read", "the name in the file", title)
    wrong = names is not None and len(names) != n
    if wrong or shapes.get("positions", (n, 2)) != (n, 2) or int(arrays["indptr"][-1]) != len(arrays["indices"]):
        raise GraphError(f"{table.path}: its arrays do not fit together, expected those of {n} nodes; save it again")
    return arrays["indptr"], arrays["indices"], title, names, arrays.get("positions")


def _within(path: str, n: int, entries: int) -> mapped.Look:
    """Look at the arrays block by block and reject positions outside them, which compiled code does not check."""
    last = 0

    def look(name: str, first: int, block: NDArray[Any]) -> None:
        nonlocal last
        if name == "indptr":
            begins = first > 0 or block[0] == 0
            if not begins or block[0] < last or (np.diff(block) < 0).any() or block[-1] > entries:
                raise GraphError(f"{path}: indptr does not ascend from 0 to {entries}; save the graph again")
            last = int(block[-1])
        elif name == "indices" and (block.min() < 0 or block.max() >= n):
            raise GraphError(f"{path}: an edge leads out of the nodes 0 to {n - 1}; save the graph again")

    return look
