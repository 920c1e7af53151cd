"""The chain behind a kernel, as the analysis reads it: one sparse matrix that does not change with time."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import AnalysisError
from freewalk.kernel import Kernel
from freewalk.stationary import is_reversible, leaving_rates, stationary_law

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: The largest number of nodes for which a dense n × n matrix is made (200 MB of floats).
DENSE = 5000

_BALANCED = 1e-10


def matrix_of(who: str, kernel: Kernel) -> "csr_array":
    """The transition matrix of a kernel that does not change with time.

    Raises
    ------
    AnalysisError
        If it is no kernel, or one whose probabilities change with the step.
    """
    if not isinstance(kernel, Kernel):
        raise AnalysisError(f"{who}: got {kernel!r}, expected a kernel, as design.kernel(graph, importance) makes it")
    if kernel.fade is not None:
        raise AnalysisError(
            f"{who}: {kernel.label} changes with the step, so it has no law and no times of its own; expected a kernel "
            "that does not: kernel.at(step) is what it is at one step"
        )
    return kernel.matrix()


class Chain(NamedTuple):
    """A chain with its law: P, its entries off the diagonal, ν, and whether P is in detailed balance with ν."""

    matrix: "csr_array"
    leaving: "csr_array"
    law: NDArray[np.float64]
    reversible: bool


def chain_of(who: str, kernel: Kernel) -> Chain:
    """The chain of an irreducible kernel that does not change with time.

    Raises
    ------
    KernelError
        If the kernel is reducible.
    AnalysisError
        If it is no kernel, or one that changes with time, or its law cannot be found.
    """
    matrix = matrix_of(who, kernel)
    law = stationary_law(matrix, f"{who}: {kernel.label}", np.asarray(kernel.target))
    leaving = leaving_rates(matrix)
    return Chain(matrix, leaving, law, is_reversible(leaving, law, _BALANCED))


def check_dense(who: str, n: int, instead: str) -> None:
    """Raise where a question needs a dense matrix and there are too many nodes for one."""
    if n > DENSE:
        raise AnalysisError(f"{who}: got {n} nodes, expected at most {DENSE}: it needs dense matrices. {instead}")
