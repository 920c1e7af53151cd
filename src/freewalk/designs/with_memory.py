"""The base class of designs that give another design a memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from freewalk.designs.design import Design, Floats, check
from freewalk.designs.kernel import Move
from freewalk.designs.memory import Memory
from freewalk.errors import KernelError
from freewalk.graphs import Graph


@dataclass(frozen=True)
class WithMemory(Design):
    """A design whose moves are those of another, changed by what the token remembers.

    The other design is reversible, and all its moves are single hops.
    """

    design: Design

    biased: ClassVar[bool] = False  # it samples the target of its design

    def __post_init__(self) -> None:
        name = type(self).__name__
        check.instance(name, "design", self.design, Design, f"a design, as in {name}(Metropolis(power=0.5), …)")
        if isinstance(self.design, WithMemory):
            raise KernelError(f"{name}: got {self.design!r}, which has a memory already; expected a design without one")
        self.memory  # noqa: B018 (its parameters are checked)

    def moves(self, graph: Graph, importance: Floats | None) -> Sequence[Move]:
        """The moves of the other design."""
        if self.design.fade() is not None:
            raise KernelError(f"{self!r}: its moves change with the step; a memory needs a design whose moves do not")
        return self.design.moves(graph, importance)

    def target(self, graph: Graph, importance: Floats | None) -> ArrayLike:
        """The target of the other design."""
        return self.design.target(graph, importance)

    @property
    @abstractmethod
    def memory(self) -> Memory:
        """What a token remembers."""
