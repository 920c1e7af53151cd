"""Deterministic graphs: ring, path, grid, complete and star; a GraphError if one does not fit into memory."""

import numpy as np

from freewalk.blocks import read_only
from freewalk.graphs.edges import from_pairs
from freewalk.graphs.graph import Graph
from freewalk.graphs.structure import MOST_NODES, check, check_size

_COMPLETE_EDGE_BYTES = 60  # there are no pairs to sort
_RING_EDGE_BYTES = 0  # only memory per node: its rows are written directly


def ring(n: int) -> Graph:
    """Build a cycle: node v is joined to v - 1 and v + 1 modulo n.

    Parameters
    ----------
    n
        The number of nodes, at least 3.

    Examples
    --------
    >>> ring(1000)
    Graph(ring(1000): 1000 nodes, 1000 edges)
    >>> ring(5).neighbours(0)
    array([1, 4], dtype=int32)
    """
    n = check.whole("ring", "n", n, 3, MOST_NODES, "path(2) joins two nodes")
    check_size("ring", n, n, _RING_EDGE_BYTES)
    indices = np.empty(2 * n, dtype=np.int32)
    indices[0::2] = np.arange(-1, n - 1, dtype=np.int32)
    indices[1::2] = np.arange(1, n + 1, dtype=np.int32) if n < MOST_NODES else np.arange(1, n + 1)
    indices[:2], indices[-2:] = (1, n - 1), (0, n - 2)
    return Graph(read_only(np.arange(0, 2 * n + 1, 2, dtype=np.int64)), read_only(indices), f"ring({n})")


def path(n: int) -> Graph:
    """Build a path: node v is joined to v - 1 and v + 1 where they exist.

    Parameters
    ----------
    n
        The number of nodes, at least 2.

    Examples
    --------
    >>> path(4).degrees
    array([1, 2, 2, 1])
    """
    n = check.whole("path", "n", n, 2, MOST_NODES)
    check_size("path", n, n - 1)
    return from_pairs(np.arange(n - 1), np.arange(1, n), n, f"path({n})")


def grid(rows: int, cols: int) -> Graph:
    """Build a rectangular grid: the node in row r, column c is r · cols + c, joined to its direct neighbours.

    Parameters
    ----------
    rows, cols
        The side lengths, each at least 1, with at least 2 nodes in total. The border does not wrap around.

    Examples
    --------
    >>> grid(2, 3).neighbours(1)
    array([0, 2, 4], dtype=int32)
    """
    rows = check.whole("grid", "rows", rows, 1, MOST_NODES)
    cols = check.whole("grid", "cols", cols, 1, MOST_NODES)
    n = check.whole("grid", "rows · cols", rows * cols, 2, MOST_NODES)
    check_size("grid", n, 2 * n)
    nodes = np.arange(n).reshape(rows, cols)
    first = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    second = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    return from_pairs(first, second, n, f"grid({rows}, {cols})")


def complete(n: int) -> Graph:
    """Build a complete graph: every pair of nodes is joined, n(n - 1) / 2 edges in total.

    Parameters
    ----------
    n
        The number of nodes, at least 2.

    Examples
    --------
    >>> complete(4).neighbours(2)
    array([0, 1, 3], dtype=int32)
    """
    n = check.whole("complete", "n", n, 2, MOST_NODES)
    check_size("complete", n, n * (n - 1) // 2, _COMPLETE_EDGE_BYTES)
    others = np.arange(n - 1, dtype=np.int32)[None, :]
    skipped_self = others + (others >= np.arange(n)[:, None])
    return Graph(read_only(np.arange(n + 1, dtype=np.int64) * (n - 1)), skipped_self.ravel(), f"complete({n})")


def star(n: int) -> Graph:
    """Build a star: node 0 is the centre, joined to each of the n - 1 others.

    Parameters
    ----------
    n
        The number of nodes including the centre, at least 2 (networkx does not count the centre).

    Examples
    --------
    >>> star(5).degrees
    array([4, 1, 1, 1, 1])
    """
    n = check.whole("star", "n", n, 2, MOST_NODES)
    check_size("star", n, n - 1)
    return from_pairs(np.zeros(n - 1, dtype=np.int64), np.arange(1, n), n, f"star({n})")
