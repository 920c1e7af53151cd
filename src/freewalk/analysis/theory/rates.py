"""When importance sampling pays, according to the rates of centralized learning that the paper quotes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import check


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

    Returns
    -------
    ImportanceRates
        Both, and a verdict.

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
