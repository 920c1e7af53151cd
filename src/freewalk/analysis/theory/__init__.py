"""The paper's statements as numbers: its assumptions, lemmas and theorem evaluated for one problem and one kernel."""

from freewalk.analysis.theory.accumulation import (
    AccumulatedError,
    SmallestConstants,
    accumulated_error,
    lemma_2,
    smallest_constant,
)
from freewalk.analysis.theory.assumptions import Assumptions, assumptions
from freewalk.analysis.theory.contraction import Contraction, lemma_1
from freewalk.analysis.theory.overhead import Overhead, remark_1
from freewalk.analysis.theory.perturbation import BiasIdentity, bias_identity
from freewalk.analysis.theory.rates import ImportanceRates, importance_pays
from freewalk.analysis.theory.terms import Terms
from freewalk.analysis.theory.theorem import ErrorBound, theorem_1

__all__ = [
    "AccumulatedError",
    "Assumptions",
    "BiasIdentity",
    "Contraction",
    "ErrorBound",
    "ImportanceRates",
    "Overhead",
    "SmallestConstants",
    "Terms",
    "accumulated_error",
    "assumptions",
    "bias_identity",
    "importance_pays",
    "lemma_1",
    "lemma_2",
    "remark_1",
    "smallest_constant",
    "theorem_1",
]
