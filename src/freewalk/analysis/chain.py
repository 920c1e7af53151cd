"""The chain behind a kernel, as the analysis reads it: one sparse matrix that does not change with time."""

from typing import TYPE_CHECKING

from freewalk.errors import AnalysisError
from freewalk.kernel import Kernel

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: The largest number of nodes for which a dense n × n matrix is made (200 MB of floats).
DENSE = 5000


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


def check_dense(who: str, n: int, instead: str) -> None:
    """Raise where a question needs a dense matrix and there are too many nodes for one."""
    if n > DENSE:
        raise AnalysisError(f"{who}: got {n} nodes; it needs dense {n} × {n} matrices and is given up to {DENSE}. {instead}")
