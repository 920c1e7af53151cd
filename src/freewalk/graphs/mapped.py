"""Memory-mapped graph files: compressed sparse rows, names and positions."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import GraphError
from freewalk.graphs.structure import MOST_NODES, Names, check, check_count
from freewalk.storage import mapped

_KIND = "graph"
_TYPES = {"indptr": "i8", "indices": "i4", "positions": "f8", "names": "u1"}


class Parts(NamedTuple):
    """The parts of a graph."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    name: str
    node_names: Names
    positions: NDArray[np.float64] | None


def write(parts: Parts, path: str | os.PathLike[str]) -> Path:
    """Write a graph to a file atomically, block by block."""
    file = check.path("save", "path", path)
    arrays: dict[str, NDArray[Any]] = {"indptr": parts.indptr, "indices": parts.indices}
    if parts.positions is not None:
        arrays["positions"] = parts.positions
    if parts.node_names is not None:
        arrays["names"] = np.frombuffer("\0".join(parts.node_names).encode(), dtype=np.uint8)
    shapes = {name: (_TYPES[name], array.shape) for name, array in arrays.items()}
    with mapped.writing(file, _KIND, shapes, {"name": parts.name}) as sinks:
        for name, array in arrays.items():
            sinks[name].append(array)
    return file


def opened(path: str | os.PathLike[str], *, verify: bool = True) -> Parts:
    """Map a graph file.

    `verify` reads all of it once to check the checksums and that all rows and edges are within the arrays. Sorted rows,
    reverse edges and connectivity were checked before it was saved.

    Raises
    ------
    GraphError
        If the file is missing, truncated, modified or not a graph file.
    """
    table = mapped.opened(path, _KIND, verify=False, check=check)
    arrays, title = table.arrays, table.attributes.get("name")
    shapes = {name: array.shape for name, array in arrays.items()}
    n = shapes.get("indptr", (0,))[0] - 1
    fits = {"indptr", "indices"} <= arrays.keys() <= _TYPES.keys()
    fits = fits and all(array.dtype == np.dtype(_TYPES[name]) for name, array in arrays.items())
    ranks = {"positions": 2}
    if not fits or any(len(shape) != ranks.get(name, 1) for name, shape in shapes.items()) or n > MOST_NODES:
        raise GraphError(f"{table.path}: holds {', '.join(arrays)}, expected the arrays of a graph; save it again")
    check_count(table.path, n)
    if verify:
        limits = _Limits(table.path, n, shapes["indices"][0])
        arrays = mapped.opened(path, _KIND, check=check, inspect=limits.look).arrays
    names = tuple(arrays["names"].tobytes().decode().split("\0")) if "names" in arrays else None
    title = check.text("read", "the name in the file", title)
    wrong = names is not None and len(names) != n
    if wrong or shapes.get("positions", (n, 2)) != (n, 2) or int(arrays["indptr"][-1]) != len(arrays["indices"]):
        raise GraphError(f"{table.path}: its arrays do not fit together, expected those of {n} nodes; save it again")
    return Parts(arrays["indptr"], arrays["indices"], title, names, arrays.get("positions"))


class _Limits:
    """Rejects positions outside the arrays, which compiled code does not check."""

    def __init__(self, path: str, n: int, entries: int) -> None:
        self.path, self.n, self.entries, self.last = path, n, entries, 0

    def look(self, name: str, first: int, block: NDArray[Any]) -> None:
        if name == "indptr":
            self._rows(first, block)
        elif name == "indices":
            self._edges(block)

    def _rows(self, first: int, block: NDArray[np.int64]) -> None:
        begins = first > 0 or block[0] == 0
        if not begins or block[0] < self.last or (np.diff(block) < 0).any() or block[-1] > self.entries:
            raise GraphError(f"{self.path}: indptr does not ascend from 0 to {self.entries}; save the graph again")
        self.last = int(block[-1])

    def _edges(self, block: NDArray[np.int32]) -> None:
        if block.min() < 0 or block.max() >= self.n:
            raise GraphError(f"{self.path}: an edge leads out of the nodes 0 to {self.n - 1}; save the graph again")
