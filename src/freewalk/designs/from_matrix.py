"""A walk by any transition matrix."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from freewalk.designs.design import Design, Floats, check_importance
from freewalk.errors import KernelError
from freewalk.graphs import Graph
from freewalk.kernel import Move, canonical_rows, check_stochastic

if TYPE_CHECKING:
    from scipy.sparse import csr_array


_LARGEST = 5000  # a sparse factorisation fills in on random graphs: seconds here, minutes at twice the size


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FromMatrix(Design):
    """Walk by a row-stochastic matrix P on the edges and the diagonal of the graph.

    Parameters
    ----------
    P
        The matrix, dense or sparse.
    target
        The law for the weights, a positive number a node; None takes the stationary law of P, for up to 5000 nodes.

    Examples
    --------
    >>> import freewalk as fw
    >>> lazy = 0.5 * np.eye(3) + 0.25 * fw.graphs.ring(3).adjacency()
    >>> FromMatrix(lazy).kernel(fw.graphs.ring(3)).target.round(6)
    array([0.333333, 0.333333, 0.333333])
    """

    P: Any
    law: ArrayLike | None

    # Written out because the parameter `target` and the method `target` of every design share a name.
    def __init__(self, P: Any, target: ArrayLike | None = None) -> None:
        object.__setattr__(self, "P", canonical_rows(P, "FromMatrix", "P"))
        object.__setattr__(self, "law", target)

    def __repr__(self) -> str:
        """The design without its arrays."""
        return "FromMatrix(P)" if self.law is None else "FromMatrix(P, target=…)"

    def moves(self, graph: Graph, importance: Floats | None) -> list[Move]:
        """One hop by the rows of P."""
        return [Move(1.0, hops=1, rows=self.P)]

    def target(self, graph: Graph, importance: Floats | None) -> Floats:
        """The given law, or the stationary law of P."""
        if self.law is not None:
            return check_importance(repr(self), self.law, graph.n, "target")
        check_stochastic(repr(self), self.P, graph)
        return _stationary(self.P)


def _stationary(matrix: "csr_array") -> Floats:
    """Solve π P = π, Σ π = 1 with π_0 fixed to 1 first: a sparse linear system of n − 1 equations."""
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import spsolve

    count, _ = connected_components(matrix, directed=True, connection="strong")
    if count > 1:
        raise KernelError(
            f"FromMatrix: P is reducible ({count} strongly connected parts), so it has no law of its own to take the "
            "weights from; pass target=..."
        )
    if matrix.shape[0] > _LARGEST:
        raise KernelError(
            f"FromMatrix: P has {matrix.shape[0]} nodes; its stationary law is solved for up to {_LARGEST}; beyond "
            "that pass it as target=..."
        )
    equations = csc_array(eye_array(matrix.shape[0]) - matrix.T)
    rest = spsolve(equations[1:, 1:], -equations[1:, [0]].toarray().ravel())
    law = np.maximum(np.concatenate([[1.0], np.atleast_1d(rest)]), np.finfo(float).tiny)
    return np.asarray(law / law.sum(), dtype=np.float64)
