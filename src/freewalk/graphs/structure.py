"""Checks that a pair of CSR arrays is a walkable graph; each is O(n + edges) and works block by block.

The arrays may be mapped from a file: a check needs 12 additional bytes of memory per node.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk.blocks import ascends, blocks, constant
from freewalk.checks import Checks, Floats, Ints, show
from freewalk.errors import GraphError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

check = Checks(GraphError)
MOST_NODES = 2**31 - 1  # a node is an int32 in `Graph.indices`
# Peak memory while building a graph, as measured; the graph itself keeps a tenth of it.
_NODE_BYTES = 60
_EDGE_BYTES = 120
_EDGE_NUMBERS = 32  # computed for each edge of a block
_SIZES_SHOWN = 5

Names = tuple[str, ...] | None


def check_size(owner: str, n: int, edges: float, edge_bytes: int = _EDGE_BYTES) -> None:
    """Raise a GraphError unless there is enough memory to build a graph of this size."""
    size = _NODE_BYTES * n + edge_bytes * edges
    check.room(owner, f"making a graph of {n:,} nodes and {edges:,.0f} edges", size, "make a smaller one")


def pattern(
    indptr: Ints, indices: NDArray[np.int32], ones: Floats | None = None
) -> "csr_array[np.float64, tuple[int, int]]":
    """Return the arrays as a scipy matrix of ones that shares `indices`."""
    from scipy.sparse import csr_array

    # scipy requires one type: 32 bits halve its memory and suffice for most graphs.
    fits = len(indices) < 2**31
    starts: NDArray[Any] = indptr.astype(np.int32 if fits else np.int64)
    ends: NDArray[Any] = np.asarray(indices) if fits else indices.astype(np.int64)
    entries = np.ones(len(indices)) if ones is None else ones
    return csr_array((entries, ends, starts), shape=(len(indptr) - 1, len(indptr) - 1))


def check_structure(owner: str, indptr: Ints, indices: NDArray[np.int32], names: Names = None) -> None:
    """Raise a GraphError unless the arrays form a connected graph in the canonical form of `Graph`."""
    check_bounds(owner, indptr, indices)
    _check_rows(owner, indptr, indices, names)
    missing = one_way(indptr, indices)
    if missing is not None:
        edge = " -> ".join(_called(end, names) for end in missing)
        words = f"the edge {edge} has no reverse, expected an undirected graph"
        raise GraphError(f"{owner}: {words}; use from_edges, which adds it")
    check_connected(owner, indptr, indices, names)


def check_bounds(owner: str, indptr: Ints, indices: NDArray[np.int32]) -> None:
    """Raise a GraphError unless all rows and edges lie within the arrays, which compiled code relies on."""
    if indptr[0] != 0 or indptr[-1] != len(indices) or not ascends(indptr):
        words = f"indptr does not ascend from 0 to len(indices) = {len(indices)}"
        raise GraphError(f"{owner}: {words}; use from_edges, which makes both arrays")
    n = len(indptr) - 1
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < n:
        place = int(np.argmax((indices < 0) | (indices >= n)))
        raise GraphError(f"{owner}: indices[{place}] = {indices[place]}, expected nodes from 0 to {n - 1}")


def _edge_blocks(indptr: Ints) -> Iterator[tuple[slice, Ints]]:
    """Yield the positions in `indices` of some ten thousand edges at a time, and the start node of each."""
    for edges in blocks(int(indptr[-1]), _EDGE_NUMBERS):
        first = int(np.searchsorted(indptr, edges.start, side="right")) - 1
        last = int(np.searchsorted(indptr, edges.stop, side="left"))
        ends = np.clip(indptr[first : last + 1], edges.start, edges.stop)
        yield edges, np.repeat(np.arange(first, last), np.diff(ends))


def check_count(owner: str, n: int) -> None:
    """Raise a GraphError unless there are at least two nodes."""
    if n < 2:
        got = "1 node" if n == 1 else "no nodes"
        raise GraphError(f"{owner}: got {got}, a walk needs at least 2 nodes; give the graph more edges")


def _called(node: int, names: Names) -> str:
    return str(node) if names is None else show(names[node])


def _check_rows(owner: str, indptr: Ints, indices: NDArray[np.int32], names: Names) -> None:
    before = -1, -1  # the last edge of the previous block
    for edges, rows in _edge_blocks(indptr):
        ends = indices[edges]
        loops = np.flatnonzero(rows == ends)
        if loops.size:
            node = _called(rows[loops[0]], names)
            raise GraphError(f"{owner}: node {node} has an edge to itself, expected none; from_edges drops it")
        unsorted = np.flatnonzero((rows[1:] == rows[:-1]) & (ends[1:] <= ends[:-1]))
        across = rows[0] == before[0] and ends[0] <= before[1]
        if unsorted.size or across:
            node = _called(rows[0 if across else unsorted[0]], names)
            words = f"the neighbours of node {node} are not strictly ascending"
            raise GraphError(f"{owner}: {words}; use from_edges, which sorts them and merges duplicates")
        before = int(rows[-1]), int(ends[-1])


def one_way(indptr: NDArray[Any], indices: NDArray[Any]) -> tuple[int, int] | None:
    """Find an edge whose reverse is missing, or None if there is none; rows must be strictly ascending."""
    upwards = 0
    for edges, rows in _edge_blocks(indptr):
        chosen = np.flatnonzero(rows < indices[edges])
        upwards += chosen.size
        if not _has_reverse(indptr, indices, rows[chosen], indices[edges][chosen]).all():
            break
    else:
        # Every edge to a later node has a reverse, and there are equally many other edges: they are these reverses.
        if 2 * upwards == len(indices):
            return None
    for edges, rows in _edge_blocks(indptr):
        alone = np.flatnonzero(~_has_reverse(indptr, indices, rows, indices[edges]))
        if alone.size:
            return int(rows[alone[0]]), int(indices[edges][alone[0]])
    return None


def _has_reverse(indptr: NDArray[Any], indices: NDArray[Any], starts: Ints, ends: NDArray[Any]) -> NDArray[np.bool_]:
    """Per edge: whether its start is among the neighbours of its end, by a binary search in all rows at once."""
    low, stop = indptr[ends].astype(np.int64), indptr[ends + np.int64(1)].astype(np.int64)
    length = stop - low
    while length.max(initial=0) > 0:
        half = length >> 1
        middle = np.minimum(low + half, len(indices) - 1)
        below = (indices[middle] < starts) & (length > 0)
        low = np.where(below, middle + 1, low)
        length = np.where(below, length - half - 1, half)
    return np.asarray((low < stop) & (indices[np.minimum(low, len(indices) - 1)] == starts))


def check_connected(owner: str, indptr: Ints, indices: NDArray[np.int32], names: Names = None) -> None:
    """Raise a GraphError that counts the components, unless there is only one."""
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    # The search does not read the entries, so they need no memory.
    reached = breadth_first_order(pattern(indptr, indices, constant(1.0, len(indices))), 0, return_predecessors=False)
    if len(reached) == len(indptr) - 1:
        return
    labels = connected_components(pattern(indptr, indices), directed=False)[1]
    counts = np.bincount(labels)
    sizes = np.sort(counts)[::-1]
    shown = ", ".join([*map(str, sizes[:_SIZES_SHOWN]), *["…"] * (len(sizes) > _SIZES_SHOWN)])
    alone = np.flatnonzero(counts[labels] == 1)
    apart = int(np.argmax(labels != labels[0]))
    example = f"no path from node {_called(0, names)} to node {_called(apart, names)}"
    if alone.size:
        example = f"node {_called(int(alone[0]), names)} has no edge"
    got = f"{len(sizes)} components of {shown} nodes ({example})"
    largest = "from_networkx(g.subgraph(max(networkx.connected_components(g), key=len)))"
    remedy = f"add edges, or take the largest component, with networkx: {largest}"
    raise GraphError(f"{owner}: disconnected, {got}, expected 1: no walk would reach them all; {remedy}")
