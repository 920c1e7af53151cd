"""A design whose jumps die out over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from freewalk.designs.design import Design, Floats, check
from freewalk.designs.kernel import Move
from freewalk.errors import KernelError
from freewalk.graphs import Graph
from freewalk.schedules import Schedule


@dataclass(frozen=True)
class Decaying(Design):
    """A design in which all moves except the first lose probability over time, in favour of the first.

    For `MHLJ` this is a decaying jump probability, p_J(t) = jump · schedule(t), which the paper suggests to remove the
    error gap.

    Parameters
    ----------
    design
        The design at full strength; its first move is the one that remains.
    schedule
        A factor per step; values above 1 count as 1.

    Examples
    --------
    >>> import freewalk as fw
    >>> design = Decaying(fw.designs.MHLJ(0.5, 0.5, 1), fw.schedules.Inverse(1.0, scale=100))
    >>> design.kernel(fw.graphs.ring(4), [9, 1, 1, 1]).probabilities([0, 100, 300])
    array([[0.5  , 0.5  ],
           [0.75 , 0.25 ],
           [0.875, 0.125]])
    """

    design: Design
    schedule: Schedule

    def __post_init__(self) -> None:
        expected = "a {}, as in Decaying(MHLJ(0.1, 0.5, 3), schedules.Inverse(1.0, scale=1000))"
        check.instance("Decaying", "design", self.design, Design, expected.format("design"))
        check.instance("Decaying", "schedule", self.schedule, Schedule, expected.format("schedule"))
        if self.design.fade() is not None:
            raise KernelError("Decaying: the design decays already; multiply the schedules instead")

    @property
    def biased(self) -> bool | None:
        """As in the wrapped design."""
        return self.design.biased

    def moves(self, graph: Graph, importance: Floats | None) -> Sequence[Move]:
        """The moves of the wrapped design."""
        return self.design.moves(graph, importance)

    def target(self, graph: Graph, importance: Floats | None) -> ArrayLike:
        """The target of the wrapped design."""
        return self.design.target(graph, importance)

    def fade(self) -> Schedule:
        """The schedule."""
        return self.schedule
