"""Build a graph from pairs of nodes in any order."""

import numpy as np
from numpy.typing import NDArray

from freewalk.blocks import read_only
from freewalk.graphs.graph import Graph
from freewalk.graphs.structure import Names, check_count


def from_pairs(
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    n: int,
    name: str,
    node_names: Names = None,
    positions: NDArray[np.float64] | None = None,
) -> Graph:
    """Build the graph of n nodes with an edge between first[e] and second[e] for each e.

    Self-loops are dropped and duplicates in either direction merged: O(n + edges), apart from sorting each row.

    Parameters
    ----------
    first, second
        The two ends of each edge, from 0 to n - 1.
    n
        The number of nodes.
    name, node_names, positions
        As for `Graph`.

    Raises
    ------
    GraphError
        If there are fewer than two nodes, or more than one component.

    Examples
    --------
    >>> from_pairs(np.array([2, 0, 1, 1]), np.array([1, 1, 0, 1]), n=3, name="path(3)")
    Graph(path(3): 3 nodes, 2 edges)
    """
    from scipy.sparse import coo_array

    check_count(name, n)
    different = first != second
    first = first[different].astype(np.int32)
    second = second[different].astype(np.int32)
    both_ways = (np.concatenate([first, second]), np.concatenate([second, first]))
    ones = np.ones(2 * len(first), dtype=np.bool_)  # a sum of booleans cannot overflow
    matrix = coo_array((ones, both_ways), shape=(n, n)).tocsr()
    matrix.sum_duplicates()  # also sorts the rows
    return Graph(read_only(matrix.indptr.astype(np.int64)), read_only(matrix.indices), name, node_names, positions)
