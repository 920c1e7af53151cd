"""Centralized SGD as a walk: every step draws its node from a distribution over all nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from freewalk.designs.design import Design, Floats, check, check_power, power_law
from freewalk.designs.kernel import Move
from freewalk.graphs import Graph


@dataclass(frozen=True)
class Centralized(Design):
    """Draw every node independently, ∝ importance^power: a centralized baseline.

    Not local: it stands for a server that can reach every node. One message is counted whenever the node changes.

    Parameters
    ----------
    power
        0 is uniform sampling, 1 is importance sampling (Needell, Srebro, Ward, 2014).
    uniform
        The fraction of draws that are uniform, regardless of importance; 0.5 is their partially biased sampling.

    Examples
    --------
    >>> import freewalk as fw
    >>> Centralized(power=1).kernel(fw.graphs.ring(3), [2, 1, 1]).matrix().toarray()[0]
    array([0.5 , 0.25, 0.25])
    """

    power: float = 0.0
    uniform: float = 0.0

    biased: ClassVar[bool] = False  # it samples its target

    def __post_init__(self) -> None:
        check_power("Centralized", self.power)
        check.probability("Centralized", "uniform", self.uniform)

    def __repr__(self) -> str:
        """The design, without default values."""
        return f"Centralized(power={self.power!r}{f', uniform={self.uniform!r}' if self.uniform else ''})"

    def moves(self, graph: Graph, importance: Floats | None) -> list[Move]:
        """One draw from the target."""
        return [Move(1.0, hops=1, law=self.target(graph, importance))]

    def target(self, graph: Graph, importance: Floats | None) -> Floats:
        """importance^power, or uniform."""
        law = power_law(repr(self), importance, self.power, graph.n)
        return law if self.uniform == 0 else np.asarray(self.uniform / graph.n + (1 - self.uniform) * law)
