"""Theorem 1: the error after T updates, as printed, as its proof gives it, and as corrected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import check, matrix_of
from freewalk.analysis.chain.mixing_time import EXACT, MixingTime
from freewalk.analysis.learning.model import first_model
from freewalk.analysis.theory.lemmas import LONGEST, Contraction, contraction_of
from freewalk.analysis.theory.perturbation import pieces_of
from freewalk.analysis.theory.premises import Setting, assumptions_of, over_starts
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.linear.arrays import Floats
from freewalk.objectives import Objective

#: The constants of the corrected theorem; the notes of `theorem_1` derive them.
VARIANCE, GAP = 56.0, 7.0


@dataclass(frozen=True)
class Terms:
    """A bound of the form rate + C · (variance + gap). Undefined terms are NaN.

    Parameters
    ----------
    step
        The step that the bound's own rule gives for this problem and T; NaN if T is too small for the bound to promise
        anything.
    rate
        The remainder of the first error.
    variance
        The noise of the updates.
    gap
        The error that the bias of the walk leaves permanently.
    constant
        The smallest C for which the bound holds, if the exact error was given.
    """

    step: float
    rate: float
    variance: float
    gap: float
    constant: float

    def __str__(self) -> str:
        """The terms."""
        needed = "" if np.isnan(self.constant) else f", true for C ≥ {self.constant:.4g}"
        return f"{self.rate:.4g} + C · ({self.variance:.4g} + {self.gap:.4g}){needed}"


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
    Liu, El Rouayheb, Dwyer, 2024, Theorem 1. Title and journal version: `freewalk.designs.MHLJ`.

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
    setting = Setting(who, problem, kernel)
    updates = check.whole(who, "steps", steps, 1, LONGEST)
    given = None if step is None else check.real(who, "step", step, above=0.0)
    if getattr(exact, "shape", None) == ():  # such as one point of a curve
        exact = np.asarray(exact).item()
    truth = np.nan if exact is None else check.real(who, "exact", exact, 0.0, finite=False)
    forms = Forms(setting, updates, initial, mixing)
    law = setting.first_law(start)
    gamma = forms.corrected_step() if given is None else given
    certified, reasons = np.nan, forms.reasons
    if not np.isnan(gamma):
        contraction = contraction_of(setting, gamma)
        certified = forms.certified(contraction, law)
        if not forms.covers(gamma):
            reasons.append(f"step: {gamma:.4g} > {contraction.largest_step:.4g}, the largest that the proof covers")
    elif forms.flat > 0 and np.isfinite(forms.mixing):
        reasons.append(f"step: {steps} updates are too few for the corrected bound to promise anything; pass a step")
    corrected = forms.corrected(gamma, truth)
    return ErrorBound(
        steps=updates,
        step=gamma,
        distance=forms.distance,
        mixing_time=forms.mixing,
        applies=not reasons,
        reasons=tuple(reasons),
        printed=forms.printed(truth),
        proof=forms.proof(gamma, truth),
        corrected=corrected,
        bound=corrected.rate + corrected.variance + corrected.gap,
        certified=certified,
        exact=truth,
    )


class Forms:
    """The theorem in its three forms, for T updates in one setting, and the assumptions that do not hold there."""

    def __init__(self, setting: Setting, steps: int, initial: ArrayLike | None, mixing: float | None) -> None:
        self.setting, self.steps = setting, steps
        self.known = assumptions_of(setting.losses)
        self.reasons = list(self.known.failures)
        self.jumps = np.nan  # p_J ‖P_IS − P_Lévy‖; NaN if the kernel is not of that form
        try:
            pieces = pieces_of(setting.who, setting.kernel)
            self.jumps = pieces.jump * pieces.distance
        except AnalysisError as error:
            self.reasons.append(str(error))
        tau = setting.mixing_time(mixing)
        if np.isinf(tau):
            self.reasons.append(f"mixing: {_why_endless(tau, setting.kernel, mixing)}")
        self.mixing = float(tau)  # infinite for a periodic walk, and if no bound is known
        self.offset = first_model(setting.who, initial, setting.problem.dim) - setting.losses.optimum  # x_0 − x*
        self.distance = float(self.offset @ self.offset)
        self.sharp, self.flat = float(setting.curvatures.max()), float(setting.curvatures.min())  # Λ and μ_w

    def covers(self, step: float) -> bool:
        """Whether the corrected proof covers this step."""
        return step * self.sharp <= 1 + 1e-12

    def corrected_step(self) -> float:
        """The step that minimises the corrected rate + variance."""
        noise = 0.5 * VARIANCE * self.sharp * self.mixing * self.setting.largest
        return _balanced(self.sharp, self.flat, self.steps, self.steps * self.distance * self.flat**3, noise)

    def printed(self, exact: float) -> Terms:
        """The theorem as printed; its constant is understood to hide logarithms and μ."""
        known = self.known
        mean, mu = known.mean_smoothness, known.convexity
        noise = self.mixing * known.gradient_bound * mean
        step = _balanced(mean, mu, self.steps, self.steps * self.distance * mu**2, noise)
        variance = _over(mean * noise, known.smallest_smoothness * self.steps)
        return _terms(step, 0.0, variance, self.jumps**2, exact)

    def proof(self, step: float, exact: float) -> Terms:
        """The result of the paper's proof, for a step."""
        known = self.known
        mean, low, mu = known.mean_smoothness, known.smallest_smoothness, known.convexity
        rate = _left(step, mu, self.steps, self.distance)
        variance = _over(step * mean * self.mixing * known.gradient_bound, mu**2)
        gap = _over(self.jumps**2 * known.gradient_bound * mean**3, mu**3 * low**2)
        return _terms(self.printed(exact).step, rate, variance, gap, exact)

    def corrected(self, step: float, exact: float) -> Terms:
        """The corrected theorem, valid with C = 1, for a step that its proof covers."""
        fine = step if self.covers(step) else np.nan
        rate = _left(fine, self.flat, self.steps, self.distance)
        variance = _over(VARIANCE * fine * self.sharp * self.mixing * self.setting.largest, self.flat**2)
        gap = _over(GAP * self.sharp * self.setting.bias, self.flat**3) if self.covers(step) else np.nan
        return _terms(self.corrected_step(), rate, variance, gap, exact)

    def certified(self, contraction: Contraction, law: Floats | None) -> float:
        """Sum up ρ^T E‖x_0 − y_0‖² + c γ² Σ_t ρ^(T−1−t) E‖S_t‖², from the last update: for all first nodes at once."""
        if np.isinf(contraction.smallest_constant):
            return np.inf
        gamma, rate = contraction.step, contraction.rate
        matrix, sums = matrix_of(self.setting.who, self.setting.kernel), self.setting.sums()
        means, errors = next(sums)
        total, discount = errors, rate
        for _ in range(self.steps - 1):
            means, errors = next(sums)
            total = matrix @ total + discount * errors
            discount *= rate
        first = self.distance - 2.0 * gamma * means @ self.offset + gamma**2 * errors
        return over_starts(discount * first + contraction.smallest_constant * gamma**2 * total, law)


def _why_endless(tau: MixingTime, kernel: Kernel, given: float | None) -> str:
    """Why no finite mixing time is known."""
    if tau.period > 1:
        return f"the walk is periodic (period {tau.period}) and never mixes; its mixing time is infinite"
    if given is not None:
        return f"the mixing time was given as {given!r}, which bounds nothing; None computes it"
    size = f"{kernel.graph.n} nodes (it is computed for up to {EXACT})"
    return f"no bound on the mixing time of {kernel.label} was found, for {size}; pass mixing=... if one is known"


def _terms(step: float, rate: float, variance: float, gap: float, exact: float) -> Terms:
    return Terms(step, rate, variance, gap, 0.0 if exact <= rate else _over(exact - rate, variance + gap))


def _balanced(sharp: float, flat: float, steps: int, signal: float, noise: float) -> float:
    """min{1/sharp, ln(signal / noise) / (steps · flat)}; NaN if the logarithm is not above 0."""
    if flat == 0 or not np.isfinite(noise):
        return np.nan
    if noise == 0:
        return 1.0 / sharp
    return min(1.0 / sharp, float(np.log(signal / noise)) / (steps * flat)) if signal > noise else np.nan


def _left(step: float, flat: float, steps: int, distance: float) -> float:
    """2 (1 − step · flat)^steps · distance; NaN without a step, or strong convexity, where nothing need be lost."""
    return float(2.0 * max(1.0 - step * flat, 0.0) ** steps * distance) if flat > 0 else np.nan


def _over(a: float, b: float) -> float:
    return float(a / b) if b > 0 else np.nan
