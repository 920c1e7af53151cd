"""Parked tokens mix with those of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import set_fields
from freewalk.designs.kernel import Kernel, canonical_rows, check_stochastic
from freewalk.errors import FreewalkError
from freewalk.exchanges.exchange import ROUNDING, Exchange, Gathering, check, check_options
from freewalk.graphs import Graph

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Gossip(Exchange):
    """Mix with the neighbours: x_i ← Σ_j W_ij x_j over the neighbours j of node i, one message per directed edge.

    Every node has one parked token: use tokens="nodes" and `fw.designs.Stay`.

    Parameters
    ----------
    matrix
        W, doubly stochastic, on the edges and the diagonal of the graph, dense or sparse. None uses Metropolis weights,
        1 / (1 + max(deg i, deg j)) off the diagonal (Xiao, Boyd, 2004).
    every
        Exchange after each update whose number is a multiple of this.

    Examples
    --------
    >>> import freewalk as fw
    >>> Gossip().on(fw.graphs.path(3)).toarray().round(3)
    array([[0.667, 0.333, 0.   ],
           [0.333, 0.333, 0.333],
           [0.   , 0.333, 0.667]])
    """

    matrix: Any = field(default=None, repr=False)
    every: int = 1

    constant: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.matrix is not None:
            set_fields(self, matrix=canonical_rows(self.matrix, "Gossip", "matrix"))
        check_options(self)

    def __repr__(self) -> str:
        """The exchange, without its matrix."""
        return f"Gossip({'' if self.matrix is None else 'matrix=…, '}every={self.every})"

    def on(self, graph: Graph) -> csr_array:
        """W on a graph, by node; an error if the given matrix does not fit the graph or is not doubly stochastic."""
        check.instance("Gossip", "graph", graph, Graph, "a graph such as fw.graphs.ring(100)")
        if self.matrix is None:
            return _metropolis_weights(graph)
        check_stochastic("Gossip", self.matrix, graph)
        columns = np.asarray(self.matrix.sum(axis=0))
        worst = int(np.argmax(np.abs(columns - 1.0)))
        if abs(columns[worst] - 1.0) > ROUNDING:
            given = f"column {worst} of the matrix adds up to {columns[worst]:.6g}"
            why = "or the mean over the nodes is not preserved"
            raise FreewalkError(f"Gossip: {given}, expected 1 as of each row, {why}; None uses Metropolis weights")
        found: csr_array = self.matrix
        return found

    def weights(self, gathering: Gathering) -> csr_array:
        """W, by token."""
        nodes = gathering.nodes
        found: csr_array = self.on(gathering.graph)[nodes][:, nodes]
        return found

    def admit(self, kernel: Kernel, nodes: NDArray[np.int32] | None) -> None:
        """Accept only one parked token on each node."""
        if not kernel.is_parked:
            remedy = "use fw.designs.Stay(), or fw.exchanges.Meet or Average for tokens that move"
            raise FreewalkError(f"Gossip: tokens move by {kernel.label}, expected parked ones; {remedy}")
        if nodes is None:
            raise FreewalkError("Gossip: an earlier phase moves the tokens, expected one parked on each node always")
        found = np.unique(nodes).size
        if found < nodes.size or found != kernel.graph.n:
            where = f"{nodes.size} tokens start on {found} of {kernel.graph.n} nodes"
            raise FreewalkError(f'Gossip: {where}, expected one on each; pass tokens="nodes"')
        self.on(kernel.graph)


def _metropolis_weights(graph: Graph) -> csr_array:
    from scipy.sparse import csr_array, diags_array

    rows = np.repeat(np.arange(graph.n), graph.degrees)
    shares = 1.0 / (1.0 + np.maximum(graph.degrees[rows], graph.degrees[graph.indices]))
    away = csr_array((shares, graph.indices, graph.indptr), shape=(graph.n, graph.n))
    found = csr_array(away + diags_array(1.0 - away.sum(axis=1)))
    found.sort_indices()
    return found
