"""A Metropolis walk whose target depends on its visits so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from freewalk.designs.memory import VisitCounts
from freewalk.designs.with_memory import WithMemory


@dataclass(frozen=True)
class HistoryDriven(WithMemory):
    """A design whose moves are also accepted or refused by how often the token was at both of their ends.

    A move from i to j is accepted as by Metropolis–Hastings for the target μ_i · (x_i / μ_i)^−alpha, with probability
    min(1, r · (x_i / μ_i)^alpha / (x_j / μ_j)^alpha), where r is the ratio of the design's own acceptance. The shares
    of visits x are those of `SelfRepellent`. Only the present node and the proposed one need to know their counters.
    The walk samples μ.

    Parameters
    ----------
    design
        A reversible design of single hops, such as `Metropolis(power=0.6)`.
    alpha, fading
        The strength of the repulsion and how fast it declines, as in `SelfRepellent`.
    memory_at
        Where the counters are, as in `SelfRepellent`; at the "nodes", a step asks the proposed node only: two probes.

    References
    ----------
    Hu, Ma, Eun, *Beyond self-repellent kernels: history-driven target towards efficient nonlinear MCMC on general
    graphs*, 2025.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = HistoryDriven(fw.designs.Metropolis(), alpha=5).kernel(fw.graphs.ring(100))
    >>> int(fw.walk(kernel, steps=10_000, every=10_000, walks=10).data.visits.std("node").mean())
    17
    """

    alpha: float
    fading: float = 0.6
    memory_at: Literal["token", "nodes"] = "token"

    @property
    def memory(self) -> VisitCounts:
        """Visit counts."""
        return VisitCounts(self.alpha, self.fading, self.memory_at, driven=True)
