"""Theorem 1: the error after T updates, as printed, as its proof gives it, and as corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import check, check_fit, matrix_of
from freewalk.analysis.theory.accumulation import LONGEST, conditional_errors, first_law, over_starts
from freewalk.analysis.theory.contraction import Contraction, contraction_of
from freewalk.analysis.theory.losses import Floats
from freewalk.analysis.theory.terms import Setting, Terms, setting_of
from freewalk.designs.kernel import Kernel
from freewalk.objectives import Objective

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class ErrorBound:
    """Bounds on E‖x_T − x*‖².

    Parameters
    ----------
    steps, step, distance
        T, the step γ to which the bounds apply, and ‖x_0 − x*‖².
    mixing_time
        τ_mix(1/4) of the chain.
    applies, reasons
        Whether all assumptions of the theorem hold here, and those that do not.
    printed
        L̄² τ σ_*² / (L_min T) and p_J² ‖P_IS − P_Lévy‖², as in the theorem; its step is
        min{1/L̄, ln(T ‖x_0 − x*‖² μ² / (τ σ_*² L̄)) / (T μ)}.
    proof
        2 (1 − γμ)^T ‖x_0 − x*‖², γ L̄ τ σ_*² / μ² and p_J² ‖P_IS − P_Lévy‖² σ_*² L̄³ / (μ³ L_min²): the result of the
        paper's proof.
    corrected
        2 (1 − γμ_w)^T ‖x_0 − x*‖², 56 γ Λ τ M² / μ_w² and 7 Λ ‖E_ν[w_v ∇f_v(x*)]‖² / μ_w³, with Λ = max w_v L_v,
        μ_w = min w_v μ_v and M = w_max σ_*. Its C is 1, and its step minimises rate + variance: min{1/Λ, ln(T ‖x_0 −
        x*‖² μ_w³ / (28 Λ τ M²)) / (T μ_w)}.
    bound
        The sum of the corrected terms; never below the true error.
    certified
        The same proof with every quantity computed instead of bounded: below `bound`, and never below the true error.
    exact
        E‖x_T − x*‖², if it was given.
    """

    steps: int
    step: float
    distance: float
    mixing_time: float
    applies: bool
    reasons: tuple[str, ...]
    printed: Terms
    proof: Terms
    corrected: Terms
    bound: float
    certified: float
    exact: float

    def __str__(self) -> str:
        """The bounds, from the loosest to the exact value."""
        lines = [
            f"Theorem 1 after {self.steps} updates, step {self.step:.4g}, from squared distance {self.distance:.4g}",
            f"  as printed  {self.printed}",
            f"  its proof   {self.proof}",
            f"  corrected   {self.corrected}, with C = 1: {self.bound:.4g}",
            f"  certified   {self.certified:.4g}",
        ]
        if not np.isnan(self.exact):
            lines.append(f"  exact       {self.exact:.4g}")
        if not self.applies:
            lines.append("  does not apply: " + "; ".join(self.reasons))
        return "\n".join(lines)


def theorem_1(
    problem: Objective,
    kernel: Kernel,
    steps: int,
    initial: ArrayLike | None = None,
    *,
    step: float | None = None,
    start: str | ArrayLike = "stationary",
    exact: float | None = None,
    mixing: float | None = None,
) -> ErrorBound:
    """Evaluate the paper's Theorem 1 on a problem: its step, its terms, and valid bounds on E‖x_T − x*‖².

    Parameters
    ----------
    problem
        A least-squares or logistic problem.
    kernel
        How the walk moves. The paper's terms apply to a Metropolis hop with jumps that are always accepted; the
        corrected and the certified bound apply to any kernel.
    steps
        T, the number of updates.
    initial
        The initial model; None means the zero model.
    step
        The step size γ; None uses the corrected step.
    start
        The distribution of the first node: "stationary", "uniform", "heaviest", a node, nodes, probabilities, or
        "worst", the node with the largest value.
    exact
        E‖x_T − x*‖² for this step and start, if known, for example from `exact_curve` (least squares only) or a mean
        over walks; it is used to compute the smallest constants.
    mixing
        The mixing time, if known; None computes it (above 3000 nodes, an upper bound).

    Returns
    -------
    ErrorBound
        `applies` is False, with the reasons, if an assumption of the theorem does not hold.

    Raises
    ------
    AnalysisError
        If the problem is neither least squares nor logistic, does not fit the kernel, or a number is invalid.

    Notes
    -----
    Set y_T = x*, so that y_t = x* + γ S_t with S_t the sum of w ∇f(x*) over the updates t … T − 1. By the corrected
    Lemma 1, for γ ≤ 1/Λ and ρ = 1 − γμ_w,

        E‖x_T − x*‖² ≤ ρ^T E‖x_0 − y_0‖² + c γ² Σ_t ρ^(T−1−t) E‖S_t‖²,

    which is `certified`, with the smallest c and all expectations computed. Then c ≤ γΛ,
    ‖x_0 − y_0‖² ≤ 2‖x_0 − x*‖² + 2γ²‖S_0‖², Lemma 2 with C = 32, Σ ℓ ρ^(ℓ−1) ≤ 1/(1−ρ)², Σ ℓ² ρ^(ℓ−1) ≤ 2/(1−ρ)³,
    T ρ^T ≤ 1/(e(1−ρ)) and T² ρ^T ≤ 4/(e(1−ρ))² give `bound`: 32 + 64/e < 56 and 4 + 16/e² < 7.

    Both are valid, but mostly vacuous: above the distance ‖x_0 − x*‖² from which the walk began. Over 20 ridge problems
    on a ring of ten nodes, one of them with 100 times the variance, after 1000 updates, the median of `bound`/exact is
    6.4e11 with one sample per node and 5.6e5 with twenty; that of `certified`/exact is 2.1e5 and 12. Only the last is
    below the initial distance. Use `exact_curve` or `fw.learn` to predict an error.

    References
    ----------
    Liu, El Rouayheb, Dwyer, *The entrapment problem in random walk decentralized learning*, 2024, Theorem 1.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(5)
    >>> problem = fw.objectives.LeastSquares.synthetic(5, dim=2, samples=20, noise=1e-3, seed=1)
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, problem.smoothness)
    >>> found = theorem_1(problem, kernel, steps=5000)
    >>> found.applies, found.certified < found.bound < found.distance
    (True, True)
    """
    who = "theorem_1"
    check_fit(who, problem, kernel)
    updates = check.whole(who, "steps", steps, 1, LONGEST)
    given = None if step is None else check.real(who, "step", step, above=0.0)
    if getattr(exact, "shape", None) == ():  # such as one point of a curve
        exact = np.asarray(exact).item()
    truth = np.nan if exact is None else check.real(who, "exact", exact, 0.0, finite=False)
    setting, reasons = setting_of(who, problem, kernel, updates, initial, mixing)
    law = first_law(who, problem, kernel, start)
    gamma = setting.corrected_step() if given is None else given
    certified = np.nan
    if not np.isnan(gamma):
        contraction = contraction_of(setting.losses, kernel.weights, gamma)
        certified = _certified(matrix_of(who, kernel), setting, contraction, law)
        if not setting.covers(gamma):
            reasons.append(
                f"step: {gamma:.4g} is above {contraction.largest_step:.4g}, the largest that the proof covers"
            )
    elif setting.flat > 0 and np.isfinite(setting.mixing):
        reasons.append(f"step: {steps} updates are too few for the corrected bound to promise anything; pass a step")
    corrected = setting.corrected(gamma, truth)
    return ErrorBound(
        steps=setting.steps,
        step=gamma,
        distance=setting.distance,
        mixing_time=setting.mixing,
        applies=not reasons,
        reasons=tuple(reasons),
        printed=setting.printed(truth),
        proof=setting.proof(gamma, truth),
        corrected=corrected,
        bound=corrected.rate + corrected.variance + corrected.gap,
        certified=certified,
        exact=truth,
    )


def _certified(matrix: csr_array, setting: Setting, contraction: Contraction, law: Floats | None) -> float:
    """Sum up ρ^T E‖x_0 − y_0‖² + c γ² Σ_t ρ^(T−1−t) E‖S_t‖².

    It goes from the last update to the first, and so handles all first nodes at once.
    """
    gamma, rate = contraction.step, contraction.rate
    if np.isinf(contraction.smallest_constant):
        return np.inf
    sums = conditional_errors(matrix, setting.pulls)
    means, errors = next(sums)
    total, discount = errors, rate
    for _ in range(setting.steps - 1):
        means, errors = next(sums)
        total = matrix @ total + discount * errors
        discount *= rate
    first = setting.distance - 2.0 * gamma * means @ setting.offset + gamma**2 * errors
    return over_starts(discount * first + contraction.smallest_constant * gamma**2 * total, law)
