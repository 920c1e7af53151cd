"""Remark 1: the cost of jumps in messages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freewalk.analysis.chain.law import stationary
from freewalk.analysis.chain.traffic import messages_per_visit
from freewalk.designs.kernel import Kernel, Move


@dataclass(frozen=True)
class Overhead:
    """Messages per update, as the paper counts them and as they are sent.

    Parameters
    ----------
    jump
        p_J: the total probability of all moves except the first.
    mean_hops
        E[d]: the mean length of a jump; NaN without jumps.
    printed
        (1 − p_J) · 1 + p_J E[d], which counts a rejected step as a message.
    stop
        p_d, derived from the probabilities of jumps of 1, 2, … hops; NaN if they do not determine it.
    printed_bound
        1 + p_J (1/p_d − 1); NaN if p_d is.
    messages
        The long-run mean number of models that actually leave a node per update.
    probes
        The mean number of scalar packets that corrected jumps send.
    """

    jump: float
    mean_hops: float
    printed: float
    stop: float
    printed_bound: float
    messages: float
    probes: float

    def __str__(self) -> str:
        """The three counts."""
        return (
            f"messages for each update: {self.messages:.4g} sent ({self.probes:.4g} probes); Remark 1 counts "
            f"{self.printed:.4g} and bounds it by {self.printed_bound:.4g}"
        )


def remark_1(kernel: Kernel) -> Overhead:
    """Compute the messages that a walk sends per update, and the paper's count of them.

    Parameters
    ----------
    kernel
        Any kernel that does not change with the step; its first move is taken as the step, the others as jumps.

    Returns
    -------
    Overhead
        The counts.

    Raises
    ------
    AnalysisError
        If it is not a kernel, or changes with the step.

    References
    ----------
    Liu, El Rouayheb, Dwyer, *The entrapment problem in random walk decentralized learning*, 2024, Remark 1.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> print(remark_1(kernel))
    messages for each update: 0.4276 sent (0 probes); Remark 1 counts 1.057 and bounds it by 1.1
    """
    sent, asked = messages_per_visit(kernel, who="remark_1")
    law = stationary(kernel, who="remark_1")
    jumps = kernel.moves[1:]
    jump = float(sum(move.probability for move in jumps))
    hops = float(sum(move.probability * move.hops for move in jumps))
    stop = _stop(jumps)
    return Overhead(
        jump=jump,
        mean_hops=hops / jump if jump > 0 else np.nan,
        printed=(1.0 - jump) + hops,
        stop=stop,
        printed_bound=1.0 + jump * (1.0 / stop - 1.0) if jump > 0 else 1.0,
        messages=float(law @ sent),
        probes=float(law @ asked),
    )


def _stop(jumps: Sequence[Move]) -> float:
    """p_d of jumps of 1, 2, …, r hops whose probabilities are geometric; NaN for others."""
    shares = np.array([move.probability for move in jumps], dtype=np.float64)
    if len(jumps) < 2 or shares[0] == 0 or [move.hops for move in jumps] != list(range(1, len(jumps) + 1)):
        return np.nan
    ratio = shares[1] / shares[0]
    geometric = np.allclose(shares[1:], ratio * shares[:-1], rtol=1e-9, atol=0.0)
    return float(1.0 - ratio) if geometric and ratio < 1 else np.nan
