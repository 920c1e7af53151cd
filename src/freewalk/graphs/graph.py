"""The graph that walks live on: undirected, connected and immutable."""

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.checks import Checks, show, suggestion
from freewalk.errors import GraphError
from freewalk.graphs.arguments import MOST_NODES, whole
from freewalk.graphs.structure import check_structure, pattern

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MOST_ENDS = 2**63 - 1
_check = Checks(GraphError)


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected connected graph of n >= 2 nodes 0..n-1, in compressed sparse rows.

    The neighbours of node v are `indices[indptr[v]:indptr[v + 1]]`, in ascending order. That order is part of
    the reproducibility contract: a walk that draws k goes to the k-th of them, on every runtime. There are no
    self-loops and no duplicates: neither degrees nor hops ever count a node as its own neighbour, and whether
    a walk may hold at a node is for its design to say.

    The generators and `from_edges`, `from_networkx`, `from_scipy` and `read` make the arrays; given directly,
    they are copied and checked.

    Parameters
    ----------
    indptr
        Where the neighbours of each node start in `indices`: n + 1 numbers from 0 to twice the edges.
    indices
        The neighbours of node 0, then of node 1, and so on.
    name
        What messages and records call the graph; it does not count when graphs are compared, and neither do the next
        two.
    node_names
        One text per node, all different, or None: nodes are then called by their numbers.
    positions
        Where to draw each node, one row (x, y) per node, or None.

    Raises
    ------
    GraphError
        If the arrays are not such a graph; the message says how.

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
        indptr = _whole_numbers(self.name, "indptr", self.indptr, _MOST_ENDS).astype(np.int64, order="C")
        indices = _whole_numbers(self.name, "indices", self.indices, MOST_NODES).astype(np.int32, order="C")
        check_structure(self.name, indptr, indices)
        for field, array in (("indptr", indptr), ("indices", indices)):
            array.flags.writeable = False
            object.__setattr__(self, field, array)
        object.__setattr__(self, "node_names", self._checked_names())
        if self.positions is not None:
            positions = _check.floats(self.name, "positions", self.positions, (self.n, 2))
            positions.flags.writeable = False
            object.__setattr__(self, "positions", positions)

    def _checked_names(self) -> tuple[str, ...] | None:
        if self.node_names is None:
            return None
        names = tuple(_check.text(self.name, "a name of a node", name) for name in self.node_names)
        if len(names) != self.n or len(set(names)) != self.n:
            raise GraphError(
                f"{self.name}: node_names has {len(names)} names, {len(set(names))} of them different, expected "
                f"{self.n} different ones, one per node"
            )
        return names

    def node_name(self, node: int) -> str:
        """What messages, tables and figures call a node: its name, or else its number.

        Examples
        --------
        >>> from freewalk.graphs import path
        >>> path(3).node_name(2)
        '2'
        """
        return str(int(node)) if self.node_names is None else self.node_names[int(node)]

    def node(self, name: Any) -> int:
        """Return the number of a node, given its name, or its number where nodes have no names.

        Raises
        ------
        GraphError
            If there is no such node.
        """
        if self.node_names is None:
            return _check.whole(self.name, "node", name, 0, self.n - 1)
        number = self._numbers.get(str(name))
        if number is None:
            close = suggestion(name, self.node_names[:1000], "")
            guess = close if close.startswith("did") else f"such as {self.node_names[0]!r}"
            raise GraphError(f"{self.name}: there is no node {show(name)}, expected one of its {self.n} names, {guess}")
        return number

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
        degrees = np.diff(self.indptr)
        degrees.flags.writeable = False
        return degrees

    def neighbours(self, node: int) -> NDArray[np.int32]:
        """Return the neighbours of a node, in ascending order: a read-only view.

        Raises
        ------
        GraphError
            If there is no such node.
        """
        row = whole(self.name, "node", node, least=0, most=self.n - 1)
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def adjacency(self) -> "csr_array[np.float64, tuple[int, int]]":
        """Return the adjacency matrix, 1.0 for each edge and direction, in arrays of its own.

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
        """Return the graph as a `networkx.Graph`, its nodes 0..n-1 in that order.

        Examples
        --------
        >>> from freewalk.graphs import path
        >>> list(path(3).to_networkx().edges)
        [(0, 1), (1, 2)]
        """
        import networkx

        rows = np.repeat(np.arange(self.n), self.degrees)
        once = rows < self.indices
        graph = networkx.Graph(name=self.name)
        graph.add_nodes_from(range(self.n))
        graph.add_edges_from(zip(rows[once].tolist(), self.indices[once].tolist(), strict=True))
        return graph

    def __repr__(self) -> str:
        return f"Graph({self.name}: {self.n} nodes, {self.edges} edges)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return np.array_equal(self.indptr, other.indptr) and np.array_equal(self.indices, other.indices)

    def __hash__(self) -> int:
        return self._checksum

    @cached_property
    def _checksum(self) -> int:
        return zlib.crc32(self.indices.data, zlib.crc32(self.indptr.data))

    def __reduce__(self) -> tuple[type["Graph"], tuple[Any, ...]]:
        # Arrays come out of a pickle writeable: only the constructor makes a graph immutable.
        return Graph, (self.indptr, self.indices, self.name, self.node_names, self.positions)


def _whole_numbers(owner: str, field: str, values: ArrayLike, most: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise GraphError(
            f"{owner}: {field} is an array of {array.dtype} of shape {array.shape}, expected whole numbers "
            "in one dimension; use from_edges, which makes both arrays"
        )
    if array.size and not (array.min() >= 0 and array.max() <= most):
        raise GraphError(f"{owner}: {field} holds numbers from {array.min()} to {array.max()}, expected 0 to {most}")
    return array
