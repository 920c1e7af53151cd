"""Lemma 1: how one update contracts the distance between the walk's model and an auxiliary sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freewalk.analysis.chain.chain import check
from freewalk.analysis.theory.premises import Setting
from freewalk.designs.kernel import Kernel
from freewalk.linear.arrays import Floats
from freewalk.objectives import Objective

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
        return "\n".join(
            [
                f"Lemma 1 with step {self.step:.4g}",
                f"  as printed  rate {self.printed_rate:.8g}, constant {self.printed_constant:.4g}: {printed}",
                f"  corrected   rate {self.rate:.8g}, constant {self.constant:.4g}: {corrected}",
                f"  exact       the smallest constant for the corrected rate is {self.smallest_constant:.4g}",
            ]
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
    Liu, El Rouayheb, Dwyer, *The entrapment problem in random walk decentralized learning*, 2024, Lemma 1.

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
