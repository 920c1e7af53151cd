"""Metropolis–Hastings with Lévy jumps: the paper's algorithm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freewalk.designs.design import Design, Floats, by_degree, check, check_power, power_law
from freewalk.designs.kernel import MOST_HOPS, Move
from freewalk.graphs import Graph


@dataclass(frozen=True)
class LevyJumps(Design):
    """What all designs with Lévy jumps have in common; `MHLJ` explains the parameters."""

    jump: float
    stop: float
    hops: int
    power: float = 1.0

    def __post_init__(self) -> None:
        who = type(self).__name__
        check.probability(who, "jump", self.jump)
        check.probability(who, "stop", self.stop, positive=True)
        check.whole(who, "hops", self.hops, 1, MOST_HOPS, remedy="jump=0 makes no jumps")
        check_power(who, self.power)

    @property
    def biased(self) -> bool:
        """True for uncorrected jumps, which take the walk away from its target by design."""
        return self.jump > 0

    def target(self, graph: Graph, importance: Floats | None) -> Floats:
        """importance^power."""
        return power_law(type(self).__name__, importance, self.power, graph.n)


@dataclass(frozen=True)
class MHLJ(LevyJumps):
    """Metropolis steps for the target mixed with Lévy jumps, which ignore it.

    With probability `jump`, the walk makes d uniform hops, where d follows the geometric distribution with parameter
    `stop`, truncated at `hops`; otherwise it makes a Metropolis step:
    P = (1 − p_J) P_Metropolis + p_J Σ_i w_i (D⁻¹A)^i, w_i ∝ p_d (1 − p_d)^(i−1), i = 1..r.

    Parameters
    ----------
    jump
        The probability p_J of a jump.
    stop
        The parameter p_d of the geometric distribution: the probability that a jump ends after each hop.
    hops
        The maximum number of hops r of a jump.
    power
        The target is importance^power.
    corrected
        Accept or reject each jump as a Metropolis proposal: the walk then samples its target exactly, for every `jump`.

    References
    ----------
    Liu, El Rouayheb, Dwyer, *The entrapment problem in random walk decentralized learning*, 2024. Journal version: Liu,
    Dwyer, El Rouayheb, *Decentralized learning via random walk with jumps*, arXiv 2604.12260, 2026.

    Examples
    --------
    >>> import freewalk as fw
    >>> MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1]).moves
    (Move(0.9, hops=1, ratio=…), Move(0.0571429, hops=1), Move(0.0285714, hops=2), Move(0.0142857, hops=3))
    """

    corrected: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check.flag("MHLJ", "corrected", self.corrected)

    @property
    def biased(self) -> bool:
        """Whether there are jumps that are not corrected."""
        return super().biased and not self.corrected

    def moves(self, graph: Graph, importance: Floats | None) -> list[Move]:
        """The Metropolis hop, then the jumps of 1, 2, …, `hops` hops."""
        ratio = by_degree(self.target(graph, importance), graph)
        lengths = truncated_geometric(self.stop, self.hops)
        accept = ratio if self.corrected else None
        jumps = [Move(self.jump * w, hops=i, ratio=accept) for i, w in enumerate(lengths, start=1)]
        return [Move(1.0 - self.jump, hops=1, ratio=ratio), *jumps]


def truncated_geometric(stop: float, longest: int) -> Floats:
    """P(d = i) ∝ stop (1 − stop)^(i−1) for i = 1..longest."""
    weights = (1.0 - stop) ** np.arange(longest)
    return np.asarray(weights / weights.sum(), dtype=np.float64)
