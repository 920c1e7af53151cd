"""What makes a pair of CSR arrays a graph that can be walked; each check is O(n + edges)."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks, show
from freewalk.errors import GraphError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

check = Checks(GraphError)
MOST_NODES = 2**31 - 1  # a node is an int32 in `Graph.indices`
# What making a graph takes at its peak, measured; the graph itself keeps a tenth of it.
_NODE_BYTES = 60
_EDGE_BYTES = 120
_SIZES_SHOWN = 5

Names = tuple[str, ...] | None


def check_size(owner: str, n: int, edges: float, edge_bytes: int = _EDGE_BYTES) -> None:
    """Raise a GraphError unless there is memory to make a graph of that size.

    Examples
    --------
    >>> check_size("ring(1000)", 1000, 1000)
    """
    size = _NODE_BYTES * n + edge_bytes * edges
    check.room(owner, f"making a graph of {n:,} nodes and {edges:,.0f} edges", size, "make a smaller one")


def pattern(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> "csr_array[np.float64, tuple[int, int]]":
    """Return the arrays as a scipy matrix of ones, which shares `indices` with them.

    Examples
    --------
    >>> pattern(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32)).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    from scipy.sparse import csr_array

    n = len(indptr) - 1
    # scipy wants one index type: 32 bits halve its memory, and hold all but the largest graphs.
    fits = len(indices) < 2**31
    starts: NDArray[Any] = indptr.astype(np.int32 if fits else np.int64)
    ends: NDArray[Any] = indices if fits else indices.astype(np.int64)
    return csr_array((np.ones(len(indices)), ends, starts), shape=(n, n))


def check_structure(owner: str, indptr: NDArray[np.int64], indices: NDArray[np.int32], names: Names = None) -> None:
    """Raise a GraphError unless the arrays are a connected graph in the canonical form of `Graph`.

    Parameters
    ----------
    owner
        Who objects, the first word of the message.
    indptr, indices
        The arrays of the CSR form.
    names
        What messages call the nodes.

    Raises
    ------
    GraphError
        If the arrays do not fit together, a row is not strictly ascending or holds its own node, an edge has no
        reverse, or the graph falls into components.

    Examples
    --------
    >>> check_structure("path(2)", np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32))
    """
    counts = np.diff(indptr)
    if indptr[0] != 0 or indptr[-1] != len(indices) or np.any(counts < 0):
        raise GraphError(
            f"{owner}: indptr does not ascend from 0 to len(indices) = {len(indices)}; "
            "use from_edges, which makes both arrays"
        )
    _check_rows(owner, counts, indices, names)
    matrix = pattern(indptr, indices)
    missing = one_way(matrix)
    if missing is not None:
        raise GraphError(
            f"{owner}: the edge {_called(missing[0], names)} -> {_called(missing[1], names)} has no reverse, expected "
            "an undirected graph; use from_edges, which adds it"
        )
    check_connected(owner, component_labels(matrix), names)


def check_count(owner: str, n: int) -> None:
    """Raise a GraphError unless there are at least two nodes.

    Examples
    --------
    >>> check_count("path(2)", 2)
    """
    if n < 2:
        got = "1 node" if n == 1 else "no nodes"
        raise GraphError(f"{owner}: got {got}, a walk needs at least 2 nodes; give the graph more edges")


def _called(node: int, names: Names) -> str:
    return str(node) if names is None else show(names[node])


def _check_rows(owner: str, counts: NDArray[np.int64], indices: NDArray[np.int32], names: Names) -> None:
    n = len(counts)
    outside = np.flatnonzero(indices >= n)
    if outside.size:
        raise GraphError(f"{owner}: indices[{outside[0]}] = {indices[outside[0]]}, expected nodes from 0 to {n - 1}")
    rows = np.repeat(np.arange(n, dtype=np.int32), counts)
    loops = np.flatnonzero(rows == indices)
    if loops.size:
        raise GraphError(
            f"{owner}: node {_called(rows[loops[0]], names)} has an edge to itself, expected none; use from_edges, "
            "which drops it"
        )
    unsorted = np.flatnonzero((rows[1:] == rows[:-1]) & (indices[1:] <= indices[:-1]))
    if unsorted.size:
        raise GraphError(
            f"{owner}: the neighbours of node {_called(rows[unsorted[0]], names)} are not strictly ascending; "
            "use from_edges, which sorts them and merges duplicates"
        )


def one_way(matrix: "csr_array[np.float64, tuple[int, int]]") -> tuple[int, int] | None:
    """Find an entry of a matrix of ones whose mirror image is missing, or None when the matrix is symmetric.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> one_way(csr_array([[0.0, 1.0], [0.0, 0.0]]))
    (0, 1)
    """
    columns = matrix.tocsc()  # the CSR form of the transpose, in linear time
    if np.array_equal(columns.indptr, matrix.indptr) and np.array_equal(columns.indices, matrix.indices):
        return None
    difference = (matrix - matrix.T).tocoo()
    alone = int(np.argmax(difference.data > 0))
    return int(difference.row[alone]), int(difference.col[alone])


def component_labels(matrix: "csr_array[np.float64, tuple[int, int]]") -> NDArray[np.int32]:
    """Label the component of each node from 0 on; an edge counts both ways.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> component_labels(csr_array(np.diag([1.0, 0.0], k=1)))
    array([0, 0, 1], dtype=int32)
    """
    from scipy.sparse.csgraph import connected_components

    labels: NDArray[np.int32] = connected_components(matrix, directed=False)[1]
    return labels


def check_connected(owner: str, labels: NDArray[np.int32], names: Names = None) -> None:
    """Raise a GraphError that counts the components, unless there is one.

    Examples
    --------
    >>> check_connected("path(2)", np.array([0, 0], dtype=np.int32))
    """
    counts = np.bincount(labels)
    if len(counts) == 1:
        return
    sizes = np.sort(counts)[::-1]
    shown = ", ".join(str(size) for size in sizes[:_SIZES_SHOWN])
    more = ", …" if len(sizes) > _SIZES_SHOWN else ""
    alone = np.flatnonzero(counts[labels] == 1)
    apart = int(np.argmax(labels != labels[0]))
    example = (
        f"node {_called(int(alone[0]), names)} has no edge"
        if alone.size
        else f"no path from node {_called(0, names)} to node {_called(apart, names)}"
    )
    raise GraphError(
        f"{owner}: disconnected, {len(sizes)} components of {shown}{more} nodes ({example}), expected 1: no "
        "walk would reach them all; add edges, or take the largest, with networkx: "
        "from_networkx(g.subgraph(max(networkx.connected_components(g), key=len)))"
    )


def hop_distances(matrix: "csr_array[np.float64, tuple[int, int]]", nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the hops from each node of a connected graph to the nearest of some, in O((n + edges) log n).

    Examples
    --------
    >>> from freewalk.graphs import path
    >>> hop_distances(path(5).adjacency(), np.array([0, 3]))
    array([0, 1, 1, 0, 1])
    """
    from scipy.sparse.csgraph import dijkstra

    hops: NDArray[np.float64] = dijkstra(matrix, indices=nodes, unweighted=True, min_only=True)
    return hops.astype(np.int64)
