"""Bias: where a design settles, how much of that comes from its distribution, and Theorem 1's trade-off in p_J."""

from collections.abc import Callable
from typing import Any

import numpy as np

from freewalk.analysis import SteadyState, excess_visits, mixing_time, stationary, steady_state
from freewalk.errors import SpecError
from freewalk.objectives import LeastSquares
from freewalk.paper.claims import Claim, Finding
from freewalk.paper.evidence import Evidence
from freewalk.report.page import Chart, Series
from freewalk.rules import SGD


def limit(evidence: Evidence, label: str) -> SteadyState:
    """Where a design settles in the end, split into bias and variance."""
    problem, phase = evidence.plan.problem, evidence.plan.walks[label][-1]
    if not isinstance(problem, LeastSquares) or not isinstance(phase.rule, SGD):
        raise SpecError(f"{label}: got {problem!r} and {phase.rule!r}, expected least squares and SGD")
    return steady_state(problem, phase.kernel, phase.rule)


def pull(evidence: Evidence, label: str) -> float:
    """The cost of a walk's stationary distribution ν: the excess loss of the model that is optimal under ν.

    That is argmin Σ ν_v w_v f_v.

    It is 0 if ν is the target. The bias of a steady state can be larger: the steps of a walk are correlated, and with a
    large step size that is a bias in itself, even if the distribution is right.
    """
    problem, kernel = evidence.plan.problem, evidence.plan.walks[label][-1].kernel
    if not isinstance(problem, LeastSquares) or len(problem.targets) != problem.n or problem.ridge:
        raise SpecError(f"{label}: got {problem!r}, expected least squares with one sample per node and no ridge")
    scales = np.sqrt(stationary(kernel) * kernel.weights)
    model = np.linalg.lstsq(scales[:, None] * problem.features, scales * problem.targets, rcond=None)[0]
    return max(0.0, float(problem.loss(model) - problem.loss(problem.optimum())))  # removes rounding errors around 0


def mostly_bias(label: str, **notes: Any) -> Claim:
    """A claim that at least half of what a design settles at above the optimum comes from its distribution."""

    def measure(evidence: Evidence) -> Finding:
        cost, whole = pull(evidence, label), limit(evidence, label).excess
        percent = 100 * cost / whole
        return Finding(percent >= 50, f"{percent:.2g} % of {whole:.3g} (loss)", value=percent)

    text = f"at least half of what {label} settles at above the optimum is the bias of its stationary distribution"
    return Claim(text, measure, 50, "%", ("fraction",), **notes)


# Theorem 1: walks that differ in p_J alone, from the least to the largest.


def trend(text: str, of: str, rises: bool, form: str, between: str = ", ", after: str = "", **notes: Any) -> Claim:
    """A claim that a quantity rises or falls from each walk to the next; `form` formats one of its values."""

    def measure(evidence: Evidence) -> Finding:
        values = [_QUANTITIES[of](evidence, label) for label in evidence.plan.walks]
        number = between.join(form.format(value) for value in values) + after
        return Finding(bool((np.diff(values if rises else values[::-1]) > 0).all()), number)

    return Claim(text, measure, **notes)


def _excess_visits(evidence: Evidence, label: str) -> float:
    return excess_visits(evidence.plan.walks[label][0].kernel, evidence.record.data.attrs["heavy"])


_QUANTITIES: dict[str, Callable[[Evidence, str], float]] = {
    "excess visits": _excess_visits,
    "bias": pull,
    "gap": lambda evidence, label: limit(evidence, label).excess,
    "mixing time": lambda evidence, label: mixing_time(evidence.plan.walks[label][0].kernel),
}


def trade_off(evidence: Evidence) -> list[Chart]:
    """The charts of Theorem 1: what jumps cost, and what they gain."""
    kernels = [phases[0].kernel for phases in evidence.plan.walks.values()]
    along = {"jump probability": [float(sum(move.probability for move in one.moves[1:])) for one in kernels]}
    found = [limit(evidence, label) for label in evidence.plan.walks]
    biases = np.array([pull(evidence, label) for label in evidence.plan.walks])
    curves = {
        "all": [one.excess for one in found],
        # A log axis cannot show the bias of an exact distribution.
        "bias of the distribution": np.where(biases > 1e-12, biases, np.nan).tolist(),
        "variance": [one.variance for one in found],
    }
    price = [Series(label, along, values, kind="other") for label, values in curves.items()]
    visits = [_excess_visits(evidence, label) for label in evidence.plan.walks]
    excess = Series("excess visits to the heavy nodes", along, visits, kind="other")
    return [
        Chart("The price: where the loss settles above the optimum", price, "loss above the optimum", y_log=True),
        Chart("The gain: fewer returns to the heavy nodes", [excess], "excess visits", y_log=True),
    ]
