"""Lemma 1: how one update contracts an error. Lemma 2: the gradients at the optimum that a walk collects."""

from __future__ import annotations

from collections.abc import Callable
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
#: The constant of the corrected Lemma 2: valid for every chain, problem, start and number of updates.
PROVEN = 32.0

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Contraction:
    """‖x⁺ − y⁺‖² ≤ rate ‖x − y‖² + constant ‖y − x*‖² at every node, as printed and as corrected.

    Parameters
    ----------
    step
        γ.
    printed_rate, printed_constant
        1 − γμ with μ = min_v μ_v, and γL̄: the lemma in the paper.
    printed_holds
        Whether that inequality holds for all x and y, at every node, for all losses with these μ_v and L_v. On a
        least-squares problem, False means that it fails there. A logistic loss comes near its μ_v but perhaps not near
        its L_v: if the inequality fails only for λ = L_v, it may still hold.
    counterexample
        The node at which it fails by the most, or None.
    weighted_convexity
        μ_w = min_v w_v μ_v.
    rate, constant
        1 − γμ_w, and γ max_v w_v L_v (γL̄ for the paper's weights): the corrected lemma.
    holds
        Whether that inequality holds here; it does for every step up to `largest_step`.
    largest_step
        1 / max_v w_v L_v, the largest step covered by the proof.
    smallest_constant
        The smallest constant that is possible with `rate` for all losses with these μ_v and L_v; infinite if there is
        none. On a least-squares problem no smaller one suffices; on a logistic problem one might.
    smallest_rate
        The smallest rate that is possible with any constant: the largest (1 − γ w_v λ)² over λ = μ_v and λ = L_v.
    """

    step: float
    printed_rate: float
    printed_constant: float
    printed_holds: bool
    counterexample: int | None
    weighted_convexity: float
    rate: float
    constant: float
    holds: bool
    largest_step: float
    smallest_constant: float
    smallest_rate: float

    def __str__(self) -> str:
        """Both forms, with their verdicts."""
        printed = "holds" if self.printed_holds else f"fails at node {self.counterexample}"
        corrected = "holds" if self.holds else f"not for this step (up to {self.largest_step:.4g})"
        return (
            f"Lemma 1 with step {self.step:.4g}\n"
            f"  as printed  rate {self.printed_rate:.8g}, constant {self.printed_constant:.4g}: {printed}\n"
            f"  corrected   rate {self.rate:.8g}, constant {self.constant:.4g}: {corrected}\n"
            f"  exact       the smallest constant for the corrected rate is {self.smallest_constant:.4g}"
        )


def lemma_1(problem: Objective, kernel: Kernel, step: float) -> Contraction:
    """Evaluate the paper's Lemma 1 on a problem: x moves by w_v ∇f_v(x), y by w_v ∇f_v(x*), both at the same node.

    With z = x − y and u = y − x*, one update gives z⁺ = z − γ w_v H (z + u), where H is the mean of the Hessian of f_v
    between x* and x: a symmetric matrix with eigenvalues λ in [μ_v, L_v]. Along an eigenvector, with k = γ w_v λ, the
    inequality reads ((1 − k) z − k u)² ≤ ρ z² + c u², which is true for all z and u if and only if ρ > (1 − k)² and
    c ≥ k² ρ / (ρ − (1 − k)²). The inverse of that number is concave in 1/k, so that it is largest at an end of the
    interval: the smallest c is the largest over λ = μ_v and λ = L_v.

    Parameters
    ----------
    problem
        A least-squares or logistic problem.
    kernel
        Provides the weights w_v.
    step
        The step size γ.

    Raises
    ------
    AnalysisError
        If the problem is neither least squares nor logistic, does not fit the kernel, or the step is not a positive
        number.

    Notes
    -----
    The corrected form is true for all L_v-smooth and μ_v-strongly convex losses and γ ≤ 1 / max_v w_v L_v: expand the
    square, write ⟨∇f(x) − ∇f(x*), x − y⟩ = D(y, x) + D(x, x*) − D(y, x*) with D(a, b) = f(a) − f(b) − ⟨∇f(b), a − b⟩,
    and use D(y, x) ≥ μ/2 ‖x − y‖², D(x, x*) ≥ ‖∇f(x) − ∇f(x*)‖² / 2L and D(y, x*) ≤ L/2 ‖y − x*‖².

    References
    ----------
    Liu, El Rouayheb, Dwyer, 2024, Lemma 1. Title and journal version: `freewalk.designs.MHLJ`.

    Examples
    --------
    >>> import freewalk as fw
    >>> problem = fw.objectives.LeastSquares([[10.0], [1.0], [1.0]], [1.0, 2.0, 3.0])
    >>> kernel = fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(3), problem.smoothness)
    >>> print(lemma_1(problem, kernel, step=0.01))
    Lemma 1 with step 0.01
      as printed  rate 0.99, constant 0.34: holds
      corrected   rate 0.66, constant 0.34: holds
      exact       the smallest constant for the corrected rate is 0.34
    """
    setting = Setting("lemma_1", problem, kernel)
    return contraction_of(setting, check.real("lemma_1", "step", step, above=0.0))


def contraction_of(setting: Setting, step: float) -> Contraction:
    """Lemma 1 in a setting that has already been read, only from the two ends of the curvatures."""
    curvatures, plain = setting.curvatures, setting.losses.curvatures
    printed = step * float(plain.min())
    printed_constant = step * float(plain[:, -1].mean())
    needed = _needed(step * curvatures, printed).max(axis=1)
    fails = needed > printed_constant * (1 + _ROUNDING)
    sharpest, flattest = float(curvatures.max()), float(curvatures.min())
    smallest = float(_needed(step * curvatures, step * flattest).max())
    return Contraction(
        step=step,
        printed_rate=1.0 - printed,
        printed_constant=printed_constant,
        printed_holds=not fails.any(),
        counterexample=int(np.argmax(needed)) if fails.any() else None,
        weighted_convexity=flattest,
        rate=1.0 - step * flattest,
        constant=step * sharpest,
        holds=smallest <= step * sharpest * (1 + _ROUNDING),
        largest_step=1.0 / sharpest if sharpest > 0 else np.inf,
        smallest_constant=smallest,
        smallest_rate=float(((1.0 - step * curvatures) ** 2).max()),
    )


def _needed(pulls: Floats, shrink: float) -> Floats:
    """The smallest c with ((1 − k) z − k u)² ≤ (1 − shrink) z² + c u² for all z, u, for each k; infinite if none."""
    rate = max(1.0 - shrink, 0.0) if shrink <= 1 + _ROUNDING else 1.0 - shrink
    # Two ways to write rate − (1 − k)²: the one without cancellation is used.
    room = np.where(pulls > 0.5, rate - (1.0 - pulls) ** 2, pulls * (2.0 - pulls) - shrink)
    needed = np.full(pulls.shape, np.inf)
    inside = room > 0
    needed[inside] = pulls[inside] ** 2 * rate / room[inside]
    # If x⁺ − y⁺ does not depend on x − y, or nothing moves at all, no constant is needed.
    if 0 <= rate <= _ROUNDING:
        needed[np.abs(pulls - 1.0) <= _ROUNDING] = 1.0
    if shrink == 0:
        needed[pulls == 0] = 0.0
    return needed


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
        return (
            f"Lemma 2 over {self.updates} updates: exactly {self.exact:.4g}\n"
            f"  as printed  C · {self.printed_variance:.4g} + {self.printed_gap:.4g}, "
            f"true for C ≥ {self.printed_constant:.4g}\n"
            f"  corrected   C · {self.variance:.4g} + {self.gap:.4g}, true for C ≥ {self.constant:.4g}, "
            f"always for C = {PROVEN:g}"
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
    Liu, El Rouayheb, Dwyer, 2024, Lemma 2. Title and journal version: `freewalk.designs.MHLJ`.

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
    return _bounds_of(setting, mixing)(length, float(_errors(setting, length, start)[-1]))


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
    bounds = _bounds_of(setting, mixing)
    found = [bounds(updates, float(exact)) for updates, exact in enumerate(_errors(setting, longest, start), start=1)]
    printed = [each.printed_constant for each in found[1:]]
    corrected = [each.constant for each in found]
    return SmallestConstants(
        longest=longest,
        printed=max(printed, default=np.nan),
        printed_updates=2 + int(np.argmax(printed)) if printed else 0,
        corrected=max(corrected),
        corrected_updates=1 + int(np.argmax(corrected)),
    )


def _bounds_of(setting: Setting, mixing: float | None) -> Callable[[int, float], AccumulatedError]:
    """Both bounds, as a function of the number of updates and the exact error."""
    pieces, tau = pieces_of(setting.who, setting.kernel), float(setting.mixing_time(mixing))
    sigma, largest = setting.losses.gradient_bound, setting.largest

    def bounds(updates: int, exact: float) -> AccumulatedError:
        printed = (updates - 1) * tau * sigma if updates > 1 else 0.0
        printed_gap = 2.0 * ((updates - 1) * pieces.jump * pieces.distance) ** 2 * largest
        variance, gap = updates * tau * largest, 2.0 * updates**2 * setting.bias
        return AccumulatedError(
            updates=updates,
            exact=exact,
            mixing_time=tau,
            printed_variance=printed,
            printed_gap=printed_gap,
            printed_constant=_least(exact, printed, printed_gap),
            variance=variance,
            gap=gap,
            constant=_least(exact, variance, gap),
            bound=PROVEN * variance + gap,
        )

    return bounds


def _errors(setting: Setting, length: int, start: str | ArrayLike) -> Floats:
    """The accumulated error over 1, 2, …, `length` updates."""
    length = check.whole(setting.who, "length", length, 1, LONGEST)
    law = setting.first_law(start)
    return np.array([over_starts(errors, law) for _, errors in islice(setting.sums(), length)])


def _least(exact: float, unit: float, gap: float) -> float:
    """The smallest C ≥ 0 with exact ≤ C · unit + gap; NaN if the unit is infinite, which bounds nothing."""
    if np.isinf(unit):
        return np.nan
    if exact <= gap:
        return 0.0
    return (exact - gap) / unit if unit > 0 else np.inf
