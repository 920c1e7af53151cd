"""Lemma 2: the gradients at the optimum that a walk collects, exactly and by the paper's bound."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import check
from freewalk.analysis.theory.perturbation import pieces_of
from freewalk.analysis.theory.premises import Setting, over_starts
from freewalk.designs.kernel import Kernel
from freewalk.linear.arrays import Floats
from freewalk.objectives import Objective

LONGEST = 10**6  # maximum number of updates that a bound looks back: they are summed one by one
#: The constant of the corrected lemma: valid for every chain, problem, start and number of updates.
PROVEN = 32.0


@dataclass(frozen=True)
class AccumulatedError:
    """E‖Σ w_v ∇f_v(x*)‖² over consecutive updates, with the bounds C · variance + gap.

    Parameters
    ----------
    updates
        The number of gradients that are summed: t − s + 1 in the paper.
    exact
        The expectation itself.
    mixing_time
        τ_mix(1/4) of the chain.
    printed_variance, printed_gap
        (t − s) τ σ_*², to be multiplied by C, and 2 (t − s)² p_J² ‖P_IS − P_Lévy‖² σ_*² w_max²: the terms in the
        paper's appendix (its main text has L_v/L̄ for the weight L̄/L_v).
    printed_constant
        The smallest C for which the printed bound holds here; infinite if none does, as for a single update.
    variance, gap
        updates · τ w_max² σ_*², to be multiplied by C, and 2 · updates² ‖E_ν[w_v ∇f_v(x*)]‖²: the corrected terms.
    constant
        The smallest C for which the corrected bound holds here.
    bound
        32 · variance + gap, which is never below `exact`.
    """

    updates: int
    exact: float
    mixing_time: float
    printed_variance: float
    printed_gap: float
    printed_constant: float
    variance: float
    gap: float
    constant: float
    bound: float

    def __str__(self) -> str:
        """The exact value, and the two bounds."""
        return "\n".join(
            [
                f"Lemma 2 over {self.updates} updates: exactly {self.exact:.4g}",
                f"  as printed  C · {self.printed_variance:.4g} + {self.printed_gap:.4g}, "
                f"true for C ≥ {self.printed_constant:.4g}",
                f"  corrected   C · {self.variance:.4g} + {self.gap:.4g}, true for C ≥ {self.constant:.4g}, "
                f"always for C = {PROVEN:g}",
            ]
        )


@dataclass(frozen=True)
class SmallestConstants:
    """The smallest C for which Lemma 2 holds for all numbers of updates up to a limit, and where it is needed.

    Parameters
    ----------
    longest
        The largest number of updates considered.
    printed, printed_updates
        For the bound as printed, from 2 updates on (for one it never holds), and the number of updates that needs it.
    corrected, corrected_updates
        For the corrected bound, from 1 update on.
    """

    longest: int
    printed: float
    printed_updates: int
    corrected: float
    corrected_updates: int

    def __str__(self) -> str:
        """Both constants."""
        return (
            f"smallest C up to {self.longest} updates: {self.printed:.4g} as printed (needed for "
            f"{self.printed_updates}), {self.corrected:.4g} corrected (needed for {self.corrected_updates})"
        )


def accumulated_error(problem: Objective, kernel: Kernel, length: int, start: str | ArrayLike = "stationary") -> Floats:
    """Compute E‖Σ_{i=1}^{k} w_v ∇f_v(x*)‖² over k consecutive updates, for k = 1 … length, exactly.

    With G_v = w_v ∇f_v(x*), M_k(v) = E[Σ G | v_1 = v] and B_k(v) = E[‖Σ G‖² | v_1 = v]:
    M_{k+1} = G + P M_k and B_{k+1} = ‖G‖² + 2 G · P M_k + P B_k.

    Parameters
    ----------
    problem, kernel
        A least-squares or logistic problem, and any kernel that does not change with the step.
    length
        The largest number of updates.
    start
        The distribution of the first node: "stationary", "uniform", "heaviest", a node, nodes, probabilities, or
        "worst", which uses for each k the node with the largest value.

    Returns
    -------
    NDArray
        `length` numbers, in O(length · entries of P · d).

    Raises
    ------
    AnalysisError
        If the problem is neither least squares nor logistic or does not fit the kernel, or the length or the start is
        not valid.

    Examples
    --------
    >>> import freewalk as fw
    >>> problem = fw.objectives.LeastSquares([[1.0], [1.0]], [1.0, -1.0])
    >>> kernel = fw.designs.SimpleWalk().kernel(fw.graphs.path(2))
    >>> accumulated_error(problem, kernel, 5)
    array([1., 0., 1., 0., 1.])
    """
    return _errors(Setting("accumulated_error", problem, kernel), length, start)


def lemma_2(
    problem: Objective,
    kernel: Kernel,
    length: int,
    start: str | ArrayLike = "stationary",
    mixing: float | None = None,
) -> AccumulatedError:
    """Evaluate the paper's Lemma 2 on a problem: the accumulated error over `length` updates, and its bounds.

    Parameters
    ----------
    problem
        A least-squares or logistic problem.
    kernel
        A Metropolis hop, and jumps that are always accepted.
    length
        The number of updates.
    start
        As in `accumulated_error`.
    mixing
        The mixing time, if known; None computes it (above 3000 nodes, an upper bound).

    Raises
    ------
    AnalysisError
        If an argument is invalid; for kernels of other forms use `accumulated_error`.

    Notes
    -----
    The corrected bound with C = 32 holds for every start. Let M = w_max σ_* bound ‖G‖, Ḡ = E_ν[G], and d(k) be the
    distance from stationarity after k steps, in total variation and from the worst node. Then ‖E[G_j | v_i] − Ḡ‖ ≤ 2
    d(j − i) M (the 1-norm is twice the total variation), and Σ_{k≥1} d(k) ≤ 2τ − 1, as d(k) ≤ 2^−⌊k/τ⌋. So over ℓ
    updates E‖Σ(G − Ḡ)‖² ≤ ℓ (4 + 8 (2τ − 1)) M² ≤ 16 ℓ τ M², and ‖a + b‖² ≤ 2‖a‖² + 2‖b‖² doubles both terms. For a
    stationary start nothing needs to be doubled, and C = 8 suffices.

    References
    ----------
    Liu, El Rouayheb, Dwyer, *The entrapment problem in random walk decentralized learning*, 2024, Lemma 2.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(5)
    >>> problem = fw.objectives.LeastSquares.synthetic(5, dim=2, heavy=1, ridge=0.1, seed=1)
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, problem.smoothness)
    >>> found = lemma_2(problem, kernel, length=100)
    >>> found.exact <= found.bound
    True
    """
    setting = Setting("lemma_2", problem, kernel)
    bounds = _Bounds(setting, mixing)
    return bounds.at(length, float(_errors(setting, length, start)[-1]))


def smallest_constant(
    problem: Objective,
    kernel: Kernel,
    longest: int,
    start: str | ArrayLike = "stationary",
    mixing: float | None = None,
) -> SmallestConstants:
    """Compute the smallest C for which Lemma 2 holds on a problem for every number of updates up to `longest`.

    Parameters
    ----------
    problem, kernel, start, mixing
        As in `lemma_2`.
    longest
        The largest number of updates.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(5)
    >>> problem = fw.objectives.LeastSquares.synthetic(5, dim=2, heavy=1, ridge=0.1, seed=1)
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, problem.smoothness)
    >>> smallest_constant(problem, kernel, 200, start="worst").corrected < 32
    True
    """
    setting = Setting("smallest_constant", problem, kernel)
    longest = check.whole("smallest_constant", "longest", longest, 1, LONGEST)
    bounds = _Bounds(setting, mixing)
    errors = _errors(setting, longest, start)
    found = [bounds.at(updates, float(exact)) for updates, exact in enumerate(errors, start=1)]
    printed = [each.printed_constant for each in found[1:]]
    corrected = [each.constant for each in found]
    return SmallestConstants(
        longest=longest,
        printed=max(printed, default=np.nan),
        printed_updates=2 + int(np.argmax(printed)) if printed else 0,
        corrected=max(corrected),
        corrected_updates=1 + int(np.argmax(corrected)),
    )


class _Bounds:
    """Both bounds for any number of updates."""

    def __init__(self, setting: Setting, mixing: float | None) -> None:
        pieces = pieces_of(setting.who, setting.kernel)
        self._jumps = pieces.jump, pieces.distance
        self._mixing = float(setting.mixing_time(mixing))
        self._sigma, self._largest, self._bias = setting.losses.gradient_bound, setting.largest, setting.bias

    def at(self, updates: int, exact: float) -> AccumulatedError:
        """Both bounds for this many updates."""
        jump, distance = self._jumps
        printed = (updates - 1) * self._mixing * self._sigma if updates > 1 else 0.0
        printed_gap = 2.0 * ((updates - 1) * jump * distance) ** 2 * self._largest
        variance, gap = updates * self._mixing * self._largest, 2.0 * updates**2 * self._bias
        return AccumulatedError(
            updates=updates,
            exact=exact,
            mixing_time=self._mixing,
            printed_variance=printed,
            printed_gap=printed_gap,
            printed_constant=_least(exact, printed, printed_gap),
            variance=variance,
            gap=gap,
            constant=_least(exact, variance, gap),
            bound=PROVEN * variance + gap,
        )


def _errors(setting: Setting, length: int, start: str | ArrayLike) -> Floats:
    """The accumulated error over 1, 2, …, `length` updates."""
    length = check.whole(setting.who, "length", length, 1, LONGEST)
    law = setting.first_law(start)
    return np.array([over_starts(errors, law) for _, errors in islice(setting.sums(), length)])


def _least(exact: float, unit: float, gap: float) -> float:
    """The smallest C ≥ 0 with exact ≤ C · unit + gap; NaN if the unit is infinite, which bounds nothing."""
    missing = exact - gap
    if np.isinf(unit):
        return np.nan
    if missing <= 0:
        return 0.0
    return missing / unit if unit > 0 else np.inf
