"""A parked token: it never leaves its node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from freewalk.designs.design import Design, Floats
from freewalk.designs.kernel import Move
from freewalk.graphs import Graph


@dataclass(frozen=True)
class Stay(Design):
    """Never move: one parked token per node, with an exchange, is gossip or federated learning.

    All weights are 1: with tokens="nodes" every node takes part in every step.

    Examples
    --------
    >>> import freewalk as fw
    >>> Stay().kernel(fw.graphs.ring(3)).matrix().toarray()[0]
    array([1., 0., 0.])
    """

    biased: ClassVar[bool] = False  # the uniform distribution is stationary

    def moves(self, graph: Graph, importance: Floats | None) -> list[Move]:
        """One move without hops."""
        return [Move(1.0, hops=0)]

    def target(self, graph: Graph, importance: Floats | None) -> Floats:
        """Uniform."""
        return np.ones(graph.n)
