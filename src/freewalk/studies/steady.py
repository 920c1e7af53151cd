"""Where a design of a study settles, and how much of that is bias."""

from collections.abc import Mapping

from freewalk.analysis import SteadyState, steady_state
from freewalk.errors import SpecError
from freewalk.learning import SGD
from freewalk.objectives import LeastSquares
from freewalk.studies.claims import Claim, Finding
from freewalk.studies.evidence import Evidence
from freewalk.studies.files import Variant


def limit(evidence: Evidence, label: str) -> SteadyState:
    """Where a design settles in the end, split into bias and variance."""
    problem, phase = evidence.plan.problem, evidence.plan.walks[label][-1]
    if not isinstance(problem, LeastSquares) or not isinstance(phase.rule, SGD):
        raise SpecError(f"{label}: got {problem!r} and {phase.rule!r}, expected least squares and SGD")
    return steady_state(problem, phase.kernel, phase.rule)


def mostly_bias(label: str, text: str, why: Mapping[Variant, str] | None = None) -> Claim:
    """A claim that at least half of what a design settles at above the optimum is bias."""

    def measure(evidence: Evidence) -> Finding:
        found = limit(evidence, label)
        share = f"{100 * found.bias / found.excess:.2g} % of {found.excess:.3g} (loss)"
        return Finding(found.bias >= found.excess / 2, share)

    return Claim(text, measure, why=why or {})
