"""Join the few nodes that a random graph leaves outside its one large component."""

import numpy as np
from numpy.typing import NDArray

from freewalk.graphs.structure import component_labels

_MAIN_PERCENT = 99


def join_strays(
    first: NDArray[np.int64], second: NDArray[np.int64], n: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Join each stray component to the main one by one edge, between a uniform node of each.

    Nothing is joined if the largest component has less than 99 % of the nodes: then the graph does not just have a few
    strays, it is disconnected, and joining its pieces would make a different kind of graph.

    Parameters
    ----------
    first, second
        The two ends of each edge, without duplicates.
    n
        The number of nodes.
    random
        Chooses the ends of the new edges.

    Returns
    -------
    tuple
        The ends of all edges, and the number of strays joined.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> first, second, joined = join_strays(np.arange(198), np.arange(1, 199), 200, random)
    >>> int(second[-1]), joined
    (199, 1)
    """
    from scipy.sparse import coo_array

    matrix = coo_array((np.ones(len(first)), (first, second)), shape=(n, n)).tocsr()
    labels = component_labels(matrix)
    sizes = np.bincount(labels)
    main = int(np.argmax(sizes))
    strays = len(sizes) - 1
    if strays == 0 or 100 * int(sizes[main]) < _MAIN_PERCENT * n:
        return first, second, 0
    outside = np.flatnonzero(labels != main)
    by_component = outside[np.argsort(labels[outside], kind="stable")]
    stray_sizes = np.delete(sizes, main)
    starts = np.cumsum(stray_sizes) - stray_sizes
    stray_ends = by_component[starts + random.integers(stray_sizes)]
    main_nodes = np.flatnonzero(labels == main)
    main_ends = main_nodes[random.integers(len(main_nodes), size=strays)]
    return np.concatenate([first, main_ends]), np.concatenate([second, stray_ends]), strays
