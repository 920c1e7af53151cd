"""MHLJ with the paper's closed form of the jump matrix, for comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freewalk.designs.design import Floats, by_degree
from freewalk.designs.kernel import Move
from freewalk.designs.mhlj import LevyJumps, truncated_geometric
from freewalk.graphs import Graph


@dataclass(frozen=True)
class ClosedFormMHLJ(LevyJumps):
    """MHLJ whose jumps choose uniformly among *paths*: P_Lévy = Σ_i w_i diag(A^i 1)⁻¹ A^i.

    The paper prints this matrix next to an algorithm that hops uniformly; the two agree if the neighbours of every node
    have equal degrees. The first hop of a jump of i hops goes from v to u with probability c_(i−1)(u) / c_i(v), and so
    on, where c_k = A^k 1 counts the paths of k hops. This gives one matrix per hop, each on the edges of the graph, but
    its entries require global knowledge.

    Parameters
    ----------
    jump, stop, hops, power
        As in `MHLJ`.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.star(4)
    >>> ClosedFormMHLJ(1.0, 0.5, 1).kernel(graph, graph.degrees).matrix().toarray()[1]
    array([1., 0., 0., 0.])
    """

    def moves(self, graph: Graph, importance: Floats | None) -> list[Move]:
        """The Metropolis hop of MHLJ, then jumps with one matrix per hop."""
        from scipy.sparse import csr_array, diags_array

        metropolis = Move(1.0 - self.jump, hops=1, ratio=by_degree(self.target(graph, importance), graph))
        adjacency = graph.adjacency()
        # Only ratios of neighbouring counts matter, so counts are rescaled: they would overflow for long jumps.
        counts = np.ones(graph.n)
        hop_matrices = []
        for _ in range(self.hops):
            onward = csr_array(adjacency @ diags_array(counts))
            totals = np.asarray(onward.sum(axis=1), dtype=np.float64)
            hop_matrices.append(csr_array(diags_array(1.0 / totals) @ onward))
            counts = totals / totals.max()
        lengths = truncated_geometric(self.stop, self.hops)
        # The first hop of a jump of i hops looks i − 1 hops ahead, the last one none.
        jumps = [Move(self.jump * w, hops=i, rows=hop_matrices[i - 1 :: -1]) for i, w in enumerate(lengths, start=1)]
        return [metropolis, *jumps]
