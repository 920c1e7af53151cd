"""Metropolis–Hastings for a target distribution: uniform, importance or any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from freewalk.checks import set_fields
from freewalk.designs.design import Design, Floats, by_degree, check_importance, check_power, power_law
from freewalk.designs.kernel import Move, canonical_rows, check_stochastic
from freewalk.graphs import Graph

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Metropolis(Design):
    """Metropolis–Hastings: propose a neighbour and accept it so that the walk samples the target distribution s.

    P(v, u) = Q(v, u) · min(1, s_u Q(u, v) / (s_v Q(v, u))); with the uniform proposal Q(v, u) = 1 / deg(v), the
    acceptance probability is min(1, (s_u / deg u) / (s_v / deg v)).

    Parameters
    ----------
    power
        The target is s ∝ importance^power: 0 is uniform, 1 is importance sampling.
    target
        Any other target, one positive number per node; it replaces `power`.
    proposal
        A row-stochastic matrix Q on the edges and the diagonal; None proposes a neighbour uniformly.

    References
    ----------
    Ayache, El Rouayheb, *Private weighted random walk stochastic gradient descent*, 2021.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = Metropolis(power=1).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> kernel.matrix().toarray()[0]
    array([0.99 , 0.005, 0.   , 0.   , 0.005])
    """

    power: float
    law: ArrayLike | None
    proposal: Any

    biased: ClassVar[bool] = False  # it samples its target

    # Written out because the parameter `target` and the method `target` of every design share a name.
    def __init__(self, power: float = 0.0, target: ArrayLike | None = None, proposal: Any = None) -> None:
        set_fields(self, power=check_power("Metropolis", power), law=target, proposal=proposal)

    def __repr__(self) -> str:
        """The design as it is written, without its arrays."""
        target = f"power={self.power:g}" if self.law is None else "target=…"
        return f"Metropolis({target}{'' if self.proposal is None else ', proposal=…'})"

    def moves(self, graph: Graph, importance: Floats | None) -> list[Move]:
        """One hop with acceptance, or the Metropolis matrix of the proposal."""
        target = self.target(graph, importance)
        if self.proposal is None:
            return [Move(1.0, hops=1, ratio=by_degree(target, graph))]
        proposal = canonical_rows(self.proposal, "Metropolis", "proposal")
        check_stochastic(f"{self!r}: proposal", proposal, graph)
        return [Move(1.0, hops=1, rows=_metropolis_rows(proposal, target))]

    def target(self, graph: Graph, importance: Floats | None) -> Floats:
        """The given distribution, or importance^power."""
        if self.law is not None:
            return check_importance(repr(self), self.law, graph, "target")
        return power_law(repr(self), importance, self.power, graph.n)


def _metropolis_rows(proposal: csr_array, target: Floats) -> csr_array:
    """P(v, u) = min(Q(v, u), s_u Q(u, v) / s_v) off the diagonal; rejected proposals stay."""
    from scipy.sparse import csr_array, diags_array

    back = diags_array(1.0 / target) @ proposal.T @ diags_array(target)
    rows = csr_array(proposal.minimum(csr_array(back)))
    rows.setdiag(0.0)
    stays = np.maximum(1.0 - np.asarray(rows.sum(axis=1)).ravel(), 0.0)
    return csr_array(rows + diags_array(stays))
