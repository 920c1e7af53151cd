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


def fewer_returns(**notes: Any) -> Claim:
    """A claim that more jumps mean fewer excess visits."""
    text = "as p_J rises, the excess visits to the heavy nodes fall"
    return _trend(text, _excess_visits, -1, "{:,.0f}", "; ", **notes)


def growing_bias(**notes: Any) -> Claim:
    """A claim that more jumps mean more bias."""
    return _trend("as p_J rises, the bias of the stationary distribution grows", _pulls, 1, "{:.3g}", **notes)


def growing_gap(**notes: Any) -> Claim:
    """A claim that more jumps mean a larger gap."""
    return _trend("as p_J rises, the whole error gap grows", _excesses, 1, "{:.3g}", **notes)


def faster_mixing(**notes: Any) -> Claim:
    """A claim that more jumps mean faster mixing."""
    text = "on this graph (not on every one) the mixing time falls as p_J rises"
    return _trend(text, _mixing_times, -1, "{:,.0f}", ", ", " updates", **notes)


def _trend(
    text: str,
    values_of: Callable[[Evidence], list[float]],
    sign: int,
    form: str,
    between: str = ", ",
    after: str = "",
    **notes: Any,
) -> Claim:
    """A claim that a quantity rises (sign 1) or falls (-1) from each walk to the next."""

    def measure(evidence: Evidence) -> Finding:
        values = values_of(evidence)
        number = between.join(form.format(value) for value in values) + after
        return Finding(bool((sign * np.diff(values) > 0).all()), number)

    return Claim(text, measure, **notes)


def _excess_visits(evidence: Evidence) -> list[float]:
    heavy = evidence.record.data.attrs["heavy"]
    return [excess_visits(evidence.plan.walks[label][0].kernel, heavy) for label in evidence.plan.walks]


def _pulls(evidence: Evidence) -> list[float]:
    return [pull(evidence, label) for label in evidence.plan.walks]


def _excesses(evidence: Evidence) -> list[float]:
    return [limit(evidence, label).excess for label in evidence.plan.walks]


def _mixing_times(evidence: Evidence) -> list[float]:
    return [float(mixing_time(evidence.plan.walks[label][0].kernel)) for label in evidence.plan.walks]


def trade_off(evidence: Evidence) -> list[Chart]:
    """The charts of Theorem 1: what jumps cost, and what they gain."""
    phases = [phases[0] for phases in evidence.plan.walks.values()]
    along = {"jump probability": [float(sum(m.probability for m in one.kernel.moves[1:])) for one in phases]}
    found = [limit(evidence, label) for label in evidence.plan.walks]
    # A log axis cannot show the bias of an exact distribution.
    biases = [value if value > 1e-12 else float("nan") for value in _pulls(evidence)]
    curves = {
        "all": [one.excess for one in found],
        "bias of the distribution": biases,
        "variance": [one.variance for one in found],
    }
    price = [Series(label, along, values, kind="other") for label, values in curves.items()]
    excess = Series("excess visits to the heavy nodes", along, _excess_visits(evidence), kind="other")
    return [
        Chart("The price: where the loss settles above the optimum", price, "loss above the optimum", y_log=True),
        Chart("The gain: fewer returns to the heavy nodes", [excess], "excess visits", y_log=True),
    ]
