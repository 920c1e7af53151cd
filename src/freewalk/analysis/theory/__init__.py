"""The paper's statements as numbers, for one problem and one kernel: as printed, and corrected where that fails.

`premises.py` reads a problem and a kernel once for all statements, and has the three assumptions. `lemmas.py` has
Lemma 1 and Lemma 2, `perturbation.py` the bias of the stationary distribution, and `theorem.py` combines
them in Theorem 1. `remarks.py` has the quoted rates of centralized learning and the messages of Remark 1. Every result
is a dataclass with the constants; printed, it shows the statement and whether it holds.
"""

from freewalk.analysis.theory.lemmas import (
    AccumulatedError,
    Contraction,
    SmallestConstants,
    accumulated_error,
    lemma_1,
    lemma_2,
    smallest_constant,
)
from freewalk.analysis.theory.perturbation import BiasIdentity, bias_identity
from freewalk.analysis.theory.premises import Assumptions, assumptions
from freewalk.analysis.theory.remarks import ImportanceRates, Overhead, importance_pays, remark_1
from freewalk.analysis.theory.theorem import ErrorBound, Terms, theorem_1

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
