"""What the paper states in passing: when importance sampling pays, and the cost of jumps in messages (Remark 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import check, check_constant, stationary
from freewalk.analysis.chain.traffic import messages_per_visit
from freewalk.designs.kernel import Kernel, Move


@dataclass(frozen=True)
class ImportanceRates:
    """The two rates, their quotient, and the condition under which the paper expects a gain.

    Parameters
    ----------
    uniform
        L_max: the rate of uniform sampling is of the order of L_max / T.
    importance
        L̄² / L_min, likewise for importance sampling.
    gain
        uniform / importance: above 1, these rates promise that importance sampling is faster.
    mean_over_smallest, largest_over_mean
        L̄ / L_min and L_max / L̄. The paper's condition L_min ≈ L̄ ≪ L_max means that the first is near 1 and the
        second large. The gain is the second divided by the first.
    verdict
        One sentence.
    """

    uniform: float
    importance: float
    gain: float
    mean_over_smallest: float
    largest_over_mean: float
    verdict: str

    def __str__(self) -> str:
        """The verdict."""
        return self.verdict


def importance_pays(importance: ArrayLike) -> ImportanceRates:
    """Compare the rates that the paper quotes for centralized learning: L_max / T and L̄² / (L_min T).

    Parameters
    ----------
    importance
        L_v by node, such as `problem.smoothness`.

    Raises
    ------
    AnalysisError
        If it is not an array of positive numbers.

    References
    ----------
    Needell, Srebro, Ward, *Stochastic gradient descent, weighted sampling, and the randomized Kaczmarz algorithm*,
    2014.

    Examples
    --------
    >>> print(importance_pays([100, 1, 1, 1, 1]))
    no gain is promised: uniform sampling is 4.33 times as fast by these rates (mean/min = 20.8, max/mean = 4.81)
    >>> print(importance_pays([100] + 999 * [1]))
    importance sampling is promised to be 82.8 times as fast (mean/min = 1.1, max/mean = 91)
    """
    expected = "one positive number per node, such as problem.smoothness"
    values = check.floats("importance_pays", "importance", importance, (None,), positive=True, remedy=expected)
    if not values.size:
        raise check.fail("importance_pays", "importance", importance, expected)
    low, high = float(values.min()), float(values.max())
    mean = float(high * np.mean(values / high))  # the sum itself may overflow
    spread, peak = mean / low, high / mean
    gain = peak / spread
    numbers = f"(mean/min = {spread:.3g}, max/mean = {peak:.3g})"
    if high == low:
        verdict = "all nodes are alike: importance sampling is uniform sampling"
    elif gain > 1:
        verdict = f"importance sampling is promised to be {gain:.3g} times as fast {numbers}"
    else:
        verdict = f"no gain is promised: uniform sampling is {spread / peak:.3g} times as fast by these rates {numbers}"
    return ImportanceRates(high, mean * spread, gain, spread, peak, verdict)


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

    Raises
    ------
    AnalysisError
        If it is not a kernel, or changes with the step.

    References
    ----------
    Liu, El Rouayheb, Dwyer, 2024, Remark 1. Title and journal version: `freewalk.designs.MHLJ`.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> print(remark_1(kernel))
    messages for each update: 0.4276 sent (0 probes); Remark 1 counts 1.057 and bounds it by 1.1
    """
    check_constant("remark_1", kernel)
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
