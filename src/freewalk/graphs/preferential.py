"""Preferential attachment graphs."""

import numpy as np
from numpy.typing import NDArray

from freewalk.graphs.edges import from_pairs
from freewalk.graphs.graph import Graph
from freewalk.graphs.structure import MOST_NODES, check, check_size
from freewalk.rng import MORE, pick, word_pair

# Word k of step v is the k-th draw of node v, in a stream apart from those of the walks; this must never change.
# An edge end is picked with 32-bit arithmetic.
_MOST_EDGES = 2**31 - 1


def barabasi_albert(n: int, m: int, seed: int = 0) -> Graph:
    """Build a graph with hubs: each new node is joined to m distinct nodes, in proportion to their degrees.

    It starts as a star of m + 1 nodes, as in networkx, and has m(n - m) edges. In a large graph the fraction of nodes
    with degree d >= m is 2m(m + 1) / (d(d + 1)(d + 2)).

    Parameters
    ----------
    n
        The number of nodes, at least 2.
    m
        The number of nodes that each new node is joined to, from 1 to n - 1.
    seed
        The same seed gives the same graph.

    Raises
    ------
    GraphError
        If a parameter is out of range, or the graph does not fit into memory.

    References
    ----------
    A.-L. Barabási and R. Albert, *Emergence of scaling in random networks*, Science 286, 1999.

    Examples
    --------
    >>> barabasi_albert(1000, 3, seed=1)
    Graph(barabasi_albert(1000, 3, seed=1): 1000 nodes, 2991 edges)
    """
    from freewalk.compiled.compiler import compile_functions

    who = "barabasi_albert"
    n = check.whole(who, "n", n, 2, MOST_NODES)
    m = check.whole(who, "m", m, 1, n - 1)
    edges = check.whole(who, "the number of edges m · (n - m)", m * (n - m), 1, _MOST_EDGES)
    seed = check.seed(who, seed)
    check_size(who, n, edges)
    ends = np.empty(2 * edges, dtype=np.int32)
    compile_functions({"attach": attach}, "attach")(n, m, np.uint64(seed), ends, np.zeros(n, dtype=np.int32))
    return from_pairs(ends[0::2], ends[1::2], n, f"barabasi_albert({n}, {m}, seed={seed})")


def attach(n: int, m: int, seed: np.uint64, ends: NDArray[np.int32], last_met: NDArray[np.int32]) -> None:
    """Write the two ends of each edge to `ends`, edge after edge; `last_met` is a buffer of n zeros.

    A uniform entry of that list is a node drawn in proportion to its degree. A new node draws from the edges that
    existed before it, and draws again if it hits a node to which it is already joined.
    """
    for leaf in range(1, m + 1):
        ends[2 * leaf - 2] = 0
        ends[2 * leaf - 1] = leaf
    filled = 2 * m
    for node in range(m + 1, n):
        choices = np.uint64(filled)
        complete = filled + 2 * m
        block = np.uint64(0)
        while filled < complete:
            even, odd = word_pair(seed, MORE, np.uint64(0), np.uint64(node), block)
            block = block + np.uint64(1)
            for draw in (even, odd):
                met = ends[pick(draw, choices)]
                if last_met[met] != node and filled < complete:
                    last_met[met] = node
                    ends[filled] = met
                    ends[filled + 1] = node
                    filled = filled + 2
