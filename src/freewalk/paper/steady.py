"""Where a design of a study settles, and how much of that is bias."""

from collections.abc import Mapping

import numpy as np

from freewalk.analysis import SteadyState, stationary, steady_state
from freewalk.errors import SpecError
from freewalk.objectives import LeastSquares
from freewalk.paper.claims import Claim, Finding
from freewalk.paper.evidence import Evidence
from freewalk.paper.files import Variant
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


def mostly_bias(label: str, quote: str = "", why: Mapping[Variant, str] | None = None) -> Claim:
    """A claim that at least half of what a design settles at above the optimum comes from its distribution."""

    def measure(evidence: Evidence) -> Finding:
        cost, whole = pull(evidence, label), limit(evidence, label).excess
        percent = 100 * cost / whole
        return Finding(percent >= 50, f"{percent:.2g} % of {whole:.3g} (loss)", value=percent)

    text = f"at least half of what {label} settles at above the optimum is the bias of its stationary distribution"
    return Claim(text, measure, quote, 50, "%", ("fraction",), why=why or {})
