"""The stationary distribution of a walk, its distance from the target, and its period."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freewalk.analysis.chain.chain import DENSE, check_constant, matrix_of
from freewalk.analysis.chain.unrolled import Hops, is_crowded, samples_its_target, takes_all_edges, unrolled
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.linear.elimination import dense_law
from freewalk.linear.stationary import PLAIN, check_irreducible, leaving_rates, settled, stationary_law

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]


def stationary(kernel: Kernel, *, who: str = "stationary") -> Floats:
    """Compute the stationary distribution ν of a walk: ν P = ν.

    The result is exact to rounding in every component for up to about a thousand nodes, for long narrow graphs
    (elimination), and for walks that sample their target. Other chains are iterated to ‖ν P − ν‖₁ ≤ 1e-13, which takes
    about a minute for a million nodes.

    Parameters
    ----------
    kernel
        The walk.
    who
        The caller's name, for error messages.

    Returns
    -------
    NDArray
        One number per node; they add up to 1.

    Raises
    ------
    KernelError
        If the kernel is reducible: its long-run behaviour then depends on the start.
    AnalysisError
        If the kernel changes with time, or the iteration does not converge.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> fw.analysis.stationary(kernel).round(4)
    array([0.7065, 0.0677, 0.0791, 0.0791, 0.0677])
    """
    check_constant(who, kernel)
    target, name, n = np.asarray(kernel.target), f"{who}: {kernel.label}", kernel.graph.n
    if samples_its_target(kernel):
        return np.asarray(target / target.sum())
    if n <= PLAIN:
        return stationary_law(kernel.matrix(), name, target)
    chain = None if is_crowded(kernel) else unrolled(kernel)
    if not takes_all_edges(kernel):
        check_irreducible(kernel.matrix() if chain is None else chain.leaving, name)
    try:
        if chain is None:
            return settled(Hops(kernel), target, name)
        law = stationary_law(chain.leaving, name, chain.law(target))[:n]
        return np.asarray(law / law.sum())
    except AnalysisError:
        if n > DENSE:
            raise
        return dense_law(leaving_rates(kernel.matrix()).toarray())


def distance_to_target(kernel: Kernel) -> float:
    """Compute the total variation distance between the stationary distribution and the target, ½ Σ |ν − target|.

    Parameters
    ----------
    kernel
        The walk.

    Returns
    -------
    float
        From 0 (the walk samples its target, as the gradient weights assume) to 1.

    Raises
    ------
    KernelError, AnalysisError
        As for `stationary`.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> round(fw.analysis.distance_to_target(kernel), 4)
    0.255
    """
    law = stationary(kernel, who="distance_to_target")
    return float(np.abs(law - np.asarray(kernel.target)).sum() / 2)


def period(kernel: Kernel) -> int:
    """Compute the period of a walk: the greatest common divisor of all return lengths; 1 means aperiodic.

    A stay counts only if its probability exceeds the rounding of its row.

    Parameters
    ----------
    kernel
        The walk.

    Raises
    ------
    KernelError
        If the kernel is reducible.
    AnalysisError
        If the kernel changes with time.

    Examples
    --------
    On a ring of even length, a simple walk is at even nodes either at even times only or at odd times only.

    >>> import freewalk as fw
    >>> fw.analysis.period(fw.designs.SimpleWalk().kernel(fw.graphs.ring(6)))
    2
    >>> fw.analysis.period(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)))
    1
    """
    matrix = matrix_of("period", kernel)
    leaving = leaving_rates(matrix)
    check_irreducible(leaving, f"period: {kernel.label}")
    return period_of(matrix, leaving)


def period_of(matrix: csr_array, leaving: csr_array) -> int:
    """The period of an irreducible matrix, given also its off-diagonal part."""
    # A Metropolis matrix has 1 − Σ accepted on its diagonal: 1e-16 there may be pure rounding.
    if (matrix.diagonal() > np.finfo(float).eps * np.diff(matrix.indptr)).any():
        return 1
    levels = _levels(leaving)
    result = 0
    for first in range(0, levels.size, 100_000):  # in parts, to save memory
        part = slice(leaving.indptr[first], leaving.indptr[min(first + 100_000, levels.size)])
        counts = np.diff(leaving.indptr[first : first + 100_001])
        excess = np.repeat(levels[first : first + 100_000], counts) + 1 - levels[leaving.indices[part]]
        result = int(np.gcd(result, np.gcd.reduce(excess)))
        if result == 1:
            break
    return result


def _levels(leaving: csr_array) -> NDArray[np.int64]:
    """The number of steps from node 0 to each node."""
    from scipy.sparse.csgraph import breadth_first_order

    _, before = breadth_first_order(leaving, 0, directed=True)
    before[0] = 0
    levels, jump = np.ones(before.size, dtype=np.int64), before
    levels[0] = 0
    while jump.any():  # each round doubles how far back `jump` reaches
        levels += levels[jump]
        jump = jump[jump]
    return levels
