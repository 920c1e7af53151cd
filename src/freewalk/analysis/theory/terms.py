"""The terms of Theorem 1 in three forms: as printed, as its proof gives them, and corrected."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.law import stationary
from freewalk.analysis.chain.mixing_time import EXACT, MixingTime
from freewalk.analysis.learning.model import first_model
from freewalk.analysis.theory.accumulation import bias_of, mixing_of, pulls_of
from freewalk.analysis.theory.assumptions import Assumptions, assumptions_of
from freewalk.analysis.theory.losses import Floats, Losses, losses_of
from freewalk.analysis.theory.perturbation import pieces_of
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
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


@dataclass(frozen=True, eq=False)
class Setting:
    """The inputs of Theorem 1 from a problem, a kernel and a number of updates."""

    losses: Losses
    known: Assumptions
    pulls: Floats  # w_v ∇f_v(x*) by node
    offset: Floats  # x_0 − x*
    steps: int
    mixing: float  # τ; infinite for a periodic walk, and if no bound is known
    jumps: float  # p_J ‖P_IS − P_Lévy‖; NaN if the kernel is not of that form
    sharp: float  # Λ = max w_v L_v
    flat: float  # μ_w = min w_v μ_v
    largest: float  # M² = w_max² σ_*²
    bias: float  # ‖E_ν[w_v ∇f_v(x*)]‖²

    @property
    def distance(self) -> float:
        """‖x_0 − x*‖²."""
        return float(self.offset @ self.offset)

    def covers(self, step: float) -> bool:
        """Whether the corrected proof covers this step."""
        return step * self.sharp <= 1 + 1e-12

    def corrected_step(self) -> float:
        """The step that minimises the corrected rate + variance."""
        noise = 0.5 * VARIANCE * self.sharp * self.mixing * self.largest
        return _balanced(self.sharp, self.flat, self.steps, self.steps * self.distance * self.flat**3, noise)

    def printed(self, exact: float) -> Terms:
        """The theorem as printed; its constant is understood to hide logarithms and μ."""
        known = self.known
        mean, mu = known.mean_smoothness, known.convexity
        noise = self.mixing * known.gradient_bound * mean
        return _terms(
            step=_balanced(mean, mu, self.steps, self.steps * self.distance * mu**2, noise),
            rate=0.0,
            variance=_over(mean * noise, known.smallest_smoothness * self.steps),
            gap=self.jumps**2,
            exact=exact,
        )

    def proof(self, step: float, exact: float) -> Terms:
        """The result of the paper's proof, for a step."""
        known = self.known
        mean, low, mu = known.mean_smoothness, known.smallest_smoothness, known.convexity
        return _terms(
            step=self.printed(exact).step,
            rate=_left(step, mu, self.steps, self.distance),
            variance=_over(step * mean * self.mixing * known.gradient_bound, mu**2),
            gap=_over(self.jumps**2 * known.gradient_bound * mean**3, mu**3 * low**2),
            exact=exact,
        )

    def corrected(self, step: float, exact: float) -> Terms:
        """The corrected theorem, valid with C = 1, for a step that its proof covers."""
        fine = np.nan if np.isnan(step) or not self.covers(step) else step
        return _terms(
            step=self.corrected_step(),
            rate=_left(fine, self.flat, self.steps, self.distance),
            variance=_over(VARIANCE * fine * self.sharp * self.mixing * self.largest, self.flat**2),
            gap=_over(GAP * self.sharp * self.bias, self.flat**3) if not np.isnan(fine) else np.nan,
            exact=exact,
        )


def setting_of(
    who: str, problem: Objective, kernel: Kernel, steps: int, initial: ArrayLike | None, mixing: float | None
) -> tuple[Setting, list[str]]:
    """Read a problem and a kernel, and list the assumptions of the theorem that do not hold."""
    losses = losses_of(who, problem)
    known = assumptions_of(losses)
    reasons = list(known.failures)
    jumps = np.nan
    try:
        pieces = pieces_of(who, kernel)
        jumps = pieces.jump * pieces.distance
    except AnalysisError as error:
        reasons.append(str(error))
    tau = mixing_of(who, kernel, mixing)
    if np.isinf(tau):
        reasons.append(f"mixing: {_why_endless(tau, kernel, mixing)}")
    pulls = pulls_of(kernel, losses.gradients)
    curvatures = kernel.weights[:, None] * losses.curvatures
    setting = Setting(
        losses=losses,
        known=known,
        pulls=pulls,
        offset=first_model(who, initial, problem.dim) - losses.optimum,
        steps=steps,
        mixing=float(tau),
        jumps=jumps,
        sharp=float(curvatures.max()),
        flat=float(curvatures.min()),
        largest=float(kernel.weights.max()) ** 2 * known.gradient_bound,
        bias=bias_of(stationary(kernel, who=who), pulls),
    )
    return setting, reasons


def _why_endless(tau: MixingTime, kernel: Kernel, given: float | None) -> str:
    """Why no finite mixing time is known."""
    if tau.period > 1:
        return f"the walk is periodic (period {tau.period}) and never mixes; its mixing time is infinite"
    if given is not None:
        return f"the mixing time was given as {given!r}, which bounds nothing; None computes it"
    return (
        f"no bound on the mixing time of {kernel.label} was found, for {kernel.graph.n} nodes (it is computed for up "
        f"to {EXACT}); pass mixing=... if one is known"
    )


def _terms(step: float, rate: float, variance: float, gap: float, exact: float) -> Terms:
    missing = max(exact - rate, 0.0) if not np.isnan(exact - rate) else np.nan
    return Terms(step, rate, variance, gap, 0.0 if missing == 0 else _over(missing, variance + gap))


def _balanced(sharp: float, flat: float, steps: int, signal: float, noise: float) -> float:
    """min{1/sharp, ln(signal / noise) / (steps · flat)}; NaN if the logarithm is not above 0."""
    if flat == 0 or not np.isfinite(noise):
        return np.nan
    if noise == 0:
        return 1.0 / sharp
    return min(1.0 / sharp, float(np.log(signal / noise)) / (steps * flat)) if signal > noise else np.nan


def _left(step: float, flat: float, steps: int, distance: float) -> float:
    """2 (1 − step · flat)^steps · distance; NaN without strong convexity, where nothing need be lost."""
    if np.isnan(step) or flat == 0:
        return np.nan
    return float(2.0 * max(1.0 - step * flat, 0.0) ** steps * distance)


def _over(a: float, b: float) -> float:
    return float(a / b) if b > 0 else np.nan
