"""A walk that avoids to step back."""

from __future__ import annotations

from dataclasses import dataclass

from freewalk.designs.memory import LastNode
from freewalk.designs.with_memory import WithMemory


@dataclass(frozen=True)
class NonBacktracking(WithMemory):
    """A design that steps back to the node it came from as rarely as its target allows.

    At node i, having come from k (k = i after a stay), the walk moves to another outcome j with probability
    P(i, j) · min(1 / (1 − P(i, k)), 1 / (1 − P(i, j))), where P is the transition matrix of the design, and steps back
    to k with the rest. It samples the same target as the design, and no mean along its path has a larger asymptotic
    variance. A token needs to know only the node that it came from, so nothing more is sent. The first step of a run or
    a phase uses P itself.

    On some graphs the walk is not ergodic: on a ring with a uniform target it keeps its direction for ever.

    Parameters
    ----------
    design
        A reversible design of single hops: `SimpleWalk`, `Metropolis`, or `FromMatrix` with a reversible matrix.
    forget
        The probability that a step uses P itself, which keeps the target and makes the walk ergodic wherever that of
        the design is.

    References
    ----------
    Neal, *Improving asymptotic variance of MCMC estimators: non-reversible chains are better*, 2004. Alon, Benjamini,
    Lubetzky, Sodin, *Non-backtracking random walks mix faster*, 2007.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = NonBacktracking(fw.designs.SimpleWalk()).kernel(fw.graphs.ring(6))
    >>> fw.walk(kernel, steps=6, start=0, paths=1, seed=1).data.path.values.tolist()
    [[0, 5, 4, 3, 2, 1, 0]]
    """

    forget: float = 0.0

    @property
    def memory(self) -> LastNode:
        """The last node."""
        return LastNode(self.forget)
