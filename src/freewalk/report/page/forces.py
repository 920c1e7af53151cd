"""Force-directed positions of the nodes of a graph, from its edges alone."""

import numpy as np
from numpy.typing import NDArray

from freewalk.graphs import Graph

Floats = NDArray[np.float64]

_ROUNDS = 60


def by_forces(graph: Graph) -> Floats:
    """Positions of the nodes, from −1 to 1: neighbours attract each other, and all nodes repel each other.

    Starts from the spectral layout, so that the result depends on the graph alone. Needs memory for all pairs of nodes.
    `networkx.spring_layout` loops over the nodes in Python, which takes several times as long.

    Examples
    --------
    >>> import freewalk as fw
    >>> found = by_forces(fw.graphs.ring(12))
    >>> found.shape, bool(abs(found).max() <= 1)
    ((12, 2), True)
    """
    places = _spectral(graph)
    heads = np.repeat(np.arange(graph.n), graph.degrees)
    ideal = np.float32(1 / np.sqrt(graph.n))
    for heat in np.linspace(0.1, 0.002, _ROUNDS, dtype=np.float32):
        across = places[:, None, 0] - places[None, :, 0]
        up = places[:, None, 1] - places[None, :, 1]
        push = ideal**2 / (across * across + up * up + np.float32(1e-6))
        moves = np.column_stack([(across * push).sum(axis=1), (up * push).sum(axis=1)])
        spans = places[graph.indices] - places[heads]
        pull = spans * (np.linalg.norm(spans, axis=1) / ideal)[:, None]
        for axis in (0, 1):
            moves[:, axis] += np.bincount(heads, pull[:, axis], minlength=graph.n)
        lengths = np.linalg.norm(moves, axis=1, keepdims=True)
        places = (places + moves / np.maximum(lengths, 1e-6) * np.minimum(lengths, heat)).astype(np.float32)
    low, high = places.min(axis=0), places.max(axis=0)
    return np.asarray((places - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12), dtype=np.float64)


def _spectral(graph: Graph) -> NDArray[np.float32]:
    """Positions by the two smoothest vectors on the graph, with a little noise to separate nodes that coincide."""
    from scipy.sparse import diags
    from scipy.sparse.linalg import eigsh

    scale = 1 / np.sqrt(np.maximum(graph.degrees, 1))
    walk = diags(scale) @ graph.adjacency().astype(np.float64) @ diags(scale)
    values, vectors = eigsh(walk, k=3, which="LA", v0=np.ones(graph.n))
    smooth = vectors[:, np.argsort(values)[::-1][1:]] * scale[:, None]
    signs = np.sign(smooth[np.abs(smooth).argmax(axis=0), [0, 1]])  # the sign of an eigenvector is arbitrary
    smooth = smooth * signs / np.maximum(np.abs(smooth).max(axis=0), 1e-12)
    return np.asarray(smooth + np.random.default_rng(1).normal(0, 0.01, smooth.shape), dtype=np.float32)
