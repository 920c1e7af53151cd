"""A walk with an arbitrary transition matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from freewalk.checks import set_fields
from freewalk.designs.design import Design, Floats, check, check_importance
from freewalk.designs.kernel import Move, canonical_rows, check_stochastic
from freewalk.errors import AnalysisError, KernelError
from freewalk.graphs import Graph
from freewalk.linear.stationary import stationary_law


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FromMatrix(Design):
    """Walk with a row-stochastic matrix P on the edges and the diagonal of the graph.

    Parameters
    ----------
    P
        The matrix, dense or sparse.
    target
        The distribution for the weights, one positive number per node; None uses the stationary distribution of P.
    biased
        Whether it is known to differ from the stationary distribution, so that `learn` does not warn.

    Examples
    --------
    >>> import numpy as np
    >>> import freewalk as fw
    >>> lazy = 0.5 * np.eye(3) + 0.25 * fw.graphs.ring(3).adjacency()
    >>> FromMatrix(lazy).kernel(fw.graphs.ring(3)).target.round(6)
    array([0.333333, 0.333333, 0.333333])
    """

    P: Any
    law: ArrayLike | None
    declared: bool | None

    # Written out because the parameter `target` and the method `target` of every design share a name.
    def __init__(self, P: Any, target: ArrayLike | None = None, biased: bool | None = None) -> None:
        if biased is not None:
            biased = check.flag("FromMatrix", "biased", biased)
        set_fields(self, P=canonical_rows(P, "FromMatrix", "P"), law=target, declared=biased)

    @property
    def biased(self) -> bool | None:
        """As declared; without a given target, P samples its target by definition."""
        return False if self.law is None else self.declared

    def __repr__(self) -> str:
        """The design without its arrays."""
        return "FromMatrix(P)" if self.law is None else "FromMatrix(P, target=…)"

    def moves(self, graph: Graph, importance: Floats | None) -> list[Move]:
        """One hop by the rows of P."""
        return [Move(1.0, hops=1, rows=self.P)]

    def target(self, graph: Graph, importance: Floats | None) -> Floats:
        """The given distribution, or the stationary distribution of P."""
        if self.law is not None:
            return check_importance(repr(self), self.law, graph, "target")
        check_stochastic(repr(self), self.P, graph)
        try:
            return stationary_law(self.P, "FromMatrix")
        except (KernelError, AnalysisError) as error:
            raise type(error)(f"{error}, or pass target=...") from None
