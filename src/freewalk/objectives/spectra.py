"""The largest eigenvalue of the second moment of each node's data, without a loop over nodes."""

import numpy as np
from numpy.typing import NDArray

from freewalk.blocks import blocks

_BLOCK = 2**21
"""The number of floats that a block of nodes may take at a time: 16 MB."""


def largest_eigenvalues(
    features: NDArray[np.float64], offsets: NDArray[np.int64] | None, block: int = _BLOCK
) -> NDArray[np.float64]:
    """Compute λ_max(A_vᵀA_v / m_v) for every node v.

    The nodes are grouped by their number of samples m, and each group is solved at once, in blocks, from the smaller of
    A_vᵀA_v and A_vA_vᵀ, which share their largest eigenvalue.

    Parameters
    ----------
    features
        All samples; those of a node are contiguous.
    offsets
        The samples of node v are the rows offsets[v]:offsets[v+1]; None means one sample per node, in order.
    block
        The number of floats to hold at a time.

    Returns
    -------
    NDArray
        One value per node; 0 at a node without samples.

    Examples
    --------
    >>> largest_eigenvalues(np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 3]))
    array([25. ,  0.5])
    """
    dim = features.shape[1]
    if offsets is None:
        result = np.empty(len(features))
        for some in blocks(len(features), dim, block):
            rows = features[some][:, None]
            result[some] = np.einsum("vsi,vsi->v", rows, rows)
        return result
    counts = np.diff(offsets)
    result = np.zeros(len(counts))
    for count in np.unique(counts[counts > 0]):
        nodes = np.flatnonzero(counts == count)
        side = min(int(count), dim)
        size = max(1, block // (int(count) * dim + side * side))
        for begin in range(0, len(nodes), size):
            part = nodes[begin : begin + size]
            rows = features[offsets[part, None] + np.arange(count)]
            if count == 1:
                result[part] = np.einsum("vsi,vsi->v", rows, rows)
            else:
                turned = rows.transpose(0, 2, 1)
                gram = rows @ turned if count <= dim else turned @ rows
                result[part] = np.linalg.eigvalsh(gram)[:, -1] / count
    return result
