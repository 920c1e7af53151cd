"""The simple random walk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from freewalk.designs.design import Design, Floats
from freewalk.designs.kernel import Move
from freewalk.graphs import Graph


@dataclass(frozen=True)
class SimpleWalk(Design):
    """Move to a uniformly chosen neighbour: P(v, u) = 1 / deg(v), target deg(v) / 2E.

    Examples
    --------
    >>> import freewalk as fw
    >>> SimpleWalk().kernel(fw.graphs.star(4)).target
    array([0.5       , 0.16666667, 0.16666667, 0.16666667])
    """

    biased: ClassVar[bool] = False  # it samples its target

    def moves(self, graph: Graph, importance: Floats | None) -> list[Move]:
        """One uniform hop."""
        return [Move(1.0, hops=1)]

    def target(self, graph: Graph, importance: Floats | None) -> Floats:
        """The degrees."""
        return graph.degrees.astype(float)
