"""A walk that is repelled by the nodes that it has visited often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from freewalk.designs.memory import VisitCounts
from freewalk.designs.with_memory import WithMemory


@dataclass(frozen=True)
class SelfRepellent(WithMemory):
    """A design whose token avoids the nodes where it has been more often than the target says.

    At node i the walk draws its next node j, or to stay, in proportion to P(i, j) · (x_j / μ_j)^−alpha, where P is the
    transition matrix of the design, μ its target, and x the share of visits of this token to j. Earlier visits count
    less: x ← x + γ_t (δ_v − x) at each visit, with γ_t = (1/n)(1 + t/n)^−fading, beginning at μ. The walk samples μ.

    Parameters
    ----------
    design
        A reversible design of single hops, such as `Metropolis(power=0.6)`.
    alpha
        The strength of the repulsion: 0, or a multiple of ½ up to 1000.
    fading
        How fast the weight of a visit declines, above ½ and at most 1. With 1, all visits count alike; with less, the
        later ones count more, so that the repulsion persists.
    memory_at
        Where the counters are. "token": they travel with the token, 12 bytes for each node that it has visited, added
        to the bytes of every message. "nodes": each node keeps its counter, and at each step the token asks all
        neighbours for theirs, which counts as two probes for each, there and back.

    References
    ----------
    Doshi, Hu, Eun, *Self-repellent random walks on general graphs: achieving minimal sampling variance via nonlinear
    Markov chains*, 2023.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(100)
    >>> for design in (fw.designs.SimpleWalk(), SelfRepellent(fw.designs.SimpleWalk(), alpha=10)):
    ...     visits = fw.walk(design.kernel(graph), steps=10_000, every=10_000, walks=10).data.visits
    ...     print(int(visits.std("node").mean()))
    57
    5
    """

    alpha: float
    fading: float = 0.6
    memory_at: Literal["token", "nodes"] = "token"

    @property
    def memory(self) -> VisitCounts:
        """Visit counts."""
        return VisitCounts(self.alpha, self.fading, self.memory_at, driven=False)
