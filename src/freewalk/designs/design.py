"""The base class of designs: a choice of moves and of the distribution they are meant to sample.

A new design is one file like `simple_walk.py`, made of `Move`s (`kernel.py`), and its name in `__init__.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from freewalk.blocks import LARGE, blocks, constant, read_only
from freewalk.checks import Checks
from freewalk.checks import Floats as Floats
from freewalk.designs.kernel import Kernel, Move, check_graph, per_node
from freewalk.designs.memory import Memory
from freewalk.errors import KernelError
from freewalk.graphs import Graph
from freewalk.schedules import Schedule

check = Checks(KernelError)


class Design(ABC):
    """A transition design: a frozen dataclass that turns a graph and its node importances into moves.

    To define your own design, implement `moves` and `target`; everything else reads the resulting kernel. Moves have
    no memory; `NonBacktracking`, `SelfRepellent` and `HistoryDriven` give one to a design of single hops.
    """

    @property
    def biased(self) -> bool | None:
        """Whether the walk samples a distribution other than its target; None means unknown, so kernels are checked."""
        return None

    @abstractmethod
    def moves(self, graph: Graph, importance: Floats | None) -> Sequence[Move]:
        """The table of moves."""

    @abstractmethod
    def target(self, graph: Graph, importance: Floats | None) -> ArrayLike:
        """The distribution that the walk is meant to sample, up to a factor; it determines the gradient weights."""

    @property
    def memory(self) -> Memory | None:
        """What a token remembers; None means nothing."""
        return None

    def fade(self) -> Schedule | None:
        """How all moves except the first lose probability over time; None means they do not."""
        return None

    def kernel(self, graph: Graph, importance: ArrayLike | None = None, label: str | None = None) -> Kernel:
        """Compile the design for a graph.

        Parameters
        ----------
        graph
            The graph to walk on.
        importance
            One positive number per node, such as `problem.smoothness`; not needed if the design does not use it.
        label
            The name of the kernel in tables and figures; by default the repr of the design.
        """
        check_graph(repr(self), graph)
        values = None if importance is None else check_importance(repr(self), importance, graph)
        return Kernel(
            graph,
            self.moves(graph, values),
            self.target(graph, values),
            label=repr(self) if label is None else label,
            fade=self.fade(),
            biased=self.biased,
            memory=self.memory,
        )


def check_importance(owner: str, importance: ArrayLike, graph: Graph, name: str = "importance") -> Floats:
    """An importance as an array with one positive number per node, or an error that names the node."""
    if hasattr(importance, "smoothness"):
        raise KernelError(f"{owner}: got a problem as {name}, expected one number per node; pass problem.smoothness")
    ridge = " (a little ridge makes every smoothness positive)" if name == "importance" else ""
    return per_node(owner, name, importance, graph, remedy=f"a node without {name} would never be visited{ridge}")


def check_power(owner: str, power: float) -> float:
    """Check a power of the importance."""
    return check.real(owner, "power", power, remedy="0 is uniform, 1 is importance")


def power_law(owner: str, importance: Floats | None, power: float, n: int) -> Floats:
    """importance^power as a distribution over the nodes; power 0 needs no importance."""
    if power == 0:
        return np.full(n, 1.0 / n) if n <= LARGE else constant(1.0 / n, n)
    if importance is None:
        raise KernelError(f"{owner}: needs the importance of the nodes; pass it: .kernel(graph, problem.smoothness)")
    # The largest entry is 1, so nothing overflows; a power of 1 is exact, because no logarithm is rounded.
    law = (importance / importance.max() if power > 0 else importance.min() / importance) ** abs(power)
    if law.min() < np.finfo(np.float64).tiny:
        words = f"the range of importance^{power:g} exceeds floating-point precision, so some nodes are never visited"
        raise KernelError(f"{owner}: {words}; expected a smaller power")
    return np.asarray(law / law.sum())


def by_degree(target: Floats, graph: Graph) -> Floats:
    """Target / degree, by node: the ratio used to accept a uniform hop."""
    ratio = np.empty(graph.n)
    for part in blocks(graph.n):  # for a large graph there may be no memory for all degrees
        np.divide(target[part], np.diff(graph.indptr[part.start : part.stop + 1]), out=ratio[part])
    return read_only(ratio)
