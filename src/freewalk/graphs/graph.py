"""The graph class: undirected, connected and immutable."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.blocks import read_only
from freewalk.checks import guess, set_fields, show
from freewalk.errors import GraphError
from freewalk.graphs import mapped
from freewalk.graphs.structure import MOST_NODES, check, check_bounds, check_count, check_structure, pattern
from freewalk.storage.mapped import adopted, is_mapped

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected connected graph of n >= 2 nodes 0..n-1, in compressed sparse rows.

    The neighbours of node v are `indices[indptr[v]:indptr[v + 1]]`, in ascending order. That order is part of the
    reproducibility contract: a walk that draws k moves to the k-th neighbour, on every runtime. There are no self-loops
    and no duplicates: neither degrees nor hops count a node as its own neighbour; whether a walk may stay at a node is
    up to its design.

    The generators and `from_edges`, `from_networkx`, `from_scipy` and `read` build the arrays. Arrays passed directly
    are checked and, unless they are mapped read-only from a file, copied.

    A graph written by `save` and mapped by `read` stays in its file: all processes on a machine share it, and a pickle
    of it contains only the path of the file.

    Parameters
    ----------
    indptr
        Where the neighbours of each node start in `indices`: n + 1 numbers from 0 to twice the number of edges.
    indices
        The neighbours of node 0, then of node 1, and so on.
    name
        The name used in messages and records. It is ignored when graphs are compared, as are the next two parameters.
    node_names
        One string per node, all different; or None, in which case nodes are called by their numbers.
    positions
        Where to draw each node: one row (x, y) per node, or None.

    Raises
    ------
    GraphError
        If the arrays do not form such a graph; the message says why.

    Examples
    --------
    >>> graph = Graph(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), name="path(3)")
    >>> graph
    Graph(path(3): 3 nodes, 2 edges)
    >>> graph.neighbours(1)
    array([0, 2], dtype=int32)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    name: str = "graph"
    node_names: tuple[str, ...] | None = None
    positions: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        name = check.text("Graph", "name", self.name)
        remedy = "use from_edges, which makes both arrays"
        given = adopted(self.indptr), adopted(self.indices)
        indptr = check.integers(name, "indptr", given[0], low=0, remedy=remedy, keep=np.int64)
        numbers = check.integers(name, "indices", given[1], low=0, high=MOST_NODES, remedy=remedy, keep=np.int32)
        indices: NDArray[np.int32] = numbers.astype(np.int32, copy=False)
        n = len(indptr) - 1
        check_count(name, n)
        names = None if self.node_names is None else _checked_names(name, self.node_names, n)
        if _was_checked(indptr) and _was_checked(indices):
            check_bounds(name, indptr, indices)
        else:
            check_structure(name, indptr, indices, names)
        set_fields(self, indptr=read_only(indptr), indices=read_only(indices), node_names=names)
        if self.positions is not None:
            set_fields(self, positions=read_only(check.floats(name, "positions", self.positions, (n, 2))))

    @classmethod
    def _as_saved(cls, *parts: Any) -> Graph:
        """A graph from the arrays of an existing graph, which need no check."""
        graph = object.__new__(cls)
        set_fields(graph, **{field.name: value for field, value in zip(fields(cls), parts, strict=True)})
        return graph

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the graph to a binary file, which `fw.graphs.read` maps into memory instead of loading it.

        The path may have any name, such as `roads.graph`; an existing file is replaced. The write is atomic: the file
        is complete or absent.

        Examples
        --------
        >>> import tempfile
        >>> from freewalk.graphs import read, ring
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph = read(ring(5).save(f"{folder}/ring.graph"))
        >>> graph
        Graph(ring(5): 5 nodes, 5 edges)
        """
        return mapped.write(self, path)

    @property
    def is_mapped(self) -> bool:
        """Whether the edges are mapped from a file instead of held in memory."""
        return is_mapped(self.indptr) and is_mapped(self.indices)

    def node_name(self, node: int) -> str:
        """The name of a node in messages, tables and figures: its own name, or its number if it has none.

        Examples
        --------
        >>> from freewalk.graphs import path
        >>> path(3).node_name(2)
        '2'
        """
        number = self._number(node)
        return str(number) if self.node_names is None else self.node_names[number]

    def node(self, name: Any) -> int:
        """Return the number of a node, given its name, or its number if nodes have no names.

        Examples
        --------
        >>> from freewalk.graphs import from_edges
        >>> from_edges([("Berlin", "Hamburg"), ("Hamburg", "Kiel")]).node("Kiel")
        2
        """
        if self.node_names is None:
            return self._number(name)
        try:
            text = str(name)
        except Exception:  # an object that raises anything
            text = ""
        number = self._numbers.get(text)
        if number is None:
            close = guess(text, self.node_names[:1000]) or f"such as {self.node_names[0]!r}"
            raise GraphError(f"{self.name}: there is no node {show(name)}, expected one of its {self.n} names, {close}")
        return number

    def _number(self, node: int) -> int:
        remedy = "" if self.node_names is None else "node(name) gives the number of a name"
        return check.whole(self.name, "node", node, 0, self.n - 1, remedy)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.node_names or ())}

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.indptr) - 1

    @property
    def edges(self) -> int:
        """The number of edges, each counted once."""
        return len(self.indices) // 2

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """The number of neighbours of each node."""
        return read_only(np.diff(self.indptr))

    def neighbours(self, node: int) -> NDArray[np.int32]:
        """Return the neighbours of a node in ascending order, as a read-only view."""
        row = self._number(node)
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def distances(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Return the number of hops from each node to the nearest of `nodes`, a number or several.

        Examples
        --------
        >>> from freewalk.graphs import ring
        >>> ring(8).distances([0, 2])
        array([0, 1, 0, 1, 2, 3, 2, 1])
        """
        from scipy.sparse.csgraph import dijkstra

        chosen = check.integers(self.name, "nodes", nodes, None, low=0, high=self.n - 1)
        if chosen.ndim > 1 or not chosen.size:
            raise check.fail(self.name, "nodes", nodes, "a node, or a list of at least one")
        edges, ends = pattern(self.indptr, self.indices), np.atleast_1d(chosen)
        hops: NDArray[np.float64] = dijkstra(edges, indices=ends, unweighted=True, min_only=True)
        return hops.astype(np.int64)

    def adjacency(self) -> csr_array[np.float64, tuple[int, int]]:
        """Return the adjacency matrix, with 1.0 for each edge in both directions, as a new matrix.

        Examples
        --------
        >>> from freewalk.graphs import path
        >>> path(3).adjacency().toarray()
        array([[0., 1., 0.],
               [1., 0., 1.],
               [0., 1., 0.]])
        """
        return pattern(self.indptr, self.indices.copy())

    def to_networkx(self) -> Any:
        """Convert to a `networkx.Graph` with nodes 0..n-1 in that order, or their names if they have names.

        Positions become the node attribute `pos`, where networkx expects them. `from_networkx` converts the result back
        to the same graph.

        Examples
        --------
        >>> from freewalk.graphs import path
        >>> list(path(3).to_networkx().edges)
        [(0, 1), (1, 2)]
        """
        import networkx

        nodes = range(self.n) if self.node_names is None else self.node_names
        rows = np.repeat(np.arange(self.n), self.degrees)
        once = rows < self.indices
        graph = networkx.Graph(name=self.name)
        graph.add_nodes_from(nodes)
        ends = zip(rows[once].tolist(), self.indices[once].tolist(), strict=True)
        graph.add_edges_from((nodes[first], nodes[second]) for first, second in ends)
        if self.positions is not None:
            places = map(tuple, self.positions.tolist())
            networkx.set_node_attributes(graph, dict(zip(nodes, places, strict=True)), "pos")
        return graph

    def __repr__(self) -> str:
        return f"Graph({self.name}: {self.n} nodes, {self.edges} edges)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        pairs = (self.indptr, other.indptr), (self.indices, other.indices)
        return self is other or all(_same(one, two) for one, two in pairs)

    def __hash__(self) -> int:
        return self._checksum

    @cached_property
    def _checksum(self) -> int:
        return zlib.crc32(self.indices.data, zlib.crc32(self.indptr.data))

    def __reduce__(self) -> tuple[type[Graph], tuple[Any, ...]]:
        # Unpickled arrays are writeable unless they are mapped; only the constructor makes a graph immutable.
        parts = self.indptr, self.indices, self.name, self.node_names, self.positions
        return (Graph._as_saved if self.is_mapped else Graph), parts  # type: ignore[return-value]


def _was_checked(array: Any) -> bool:
    """Whether an array is mapped from a file with a known checksum: that of a saved graph."""
    return is_mapped(array) and bool(array.source.checksum)


def _same(one: Any, two: Any) -> bool:
    in_one_file = is_mapped(one) and is_mapped(two) and one.source == two.source
    return one is two or in_one_file or np.array_equal(one, two)


def _checked_names(owner: str, given: Any, n: int) -> tuple[str, ...]:
    items = check.items(owner, "node_names", given, f"{n} different strings, one per node", most=n + 1)
    names = tuple(check.text(owner, "a name of a node", name) for name in items)
    if len(names) != n or len(set(names)) != n:
        got = f"{f'more than {n}' if len(names) > n else len(names)} names, {len(set(names))} of them different"
        raise GraphError(f"{owner}: node_names has {got}, expected {n} different ones, one per node")
    return names
