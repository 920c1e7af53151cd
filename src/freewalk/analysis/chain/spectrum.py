"""The second eigenvalue of a walk: how fast it forgets its start."""

from collections.abc import Callable
from typing import Any

import numpy as np

from freewalk import rng
from freewalk.analysis.chain.chain import Chain, chain_of, check, period_of
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.linear.arrays import Floats, Matrix, Vectors
from freewalk.linear.elimination import narrow_order
from freewalk.linear.krylov import operator_of
from freewalk.linear.stationary import Flows, totals_of

#: Up to this many nodes all eigenvalues of a dense matrix are computed.
ALL = 1500

_NARROW = 5e8  # multiplications of a banded factorisation, above which the iteration works without it
_SEVERAL = 3  # eigenvalues requested if the extreme one is not known to be first
_BASIS, _FEW = 40, 20  # vectors that ARPACK keeps; the inverse needs few, and each is expensive
_RESTARTS = 100


def second_eigenvalue(kernel: Kernel, modulus: bool = False) -> float | complex:
    """Compute the eigenvalue of P with the second largest real part, or the second largest modulus.

    Uses a dense matrix for up to 1500 nodes. Beyond, ARPACK: Lanczos if P is in detailed balance with its stationary
    distribution, otherwise Arnoldi, each on the inverse of I − P if the walk is slow.

    Parameters
    ----------
    kernel
        The walk. If it remembers the last node, P is that between pairs of nodes.
    modulus
        Return the second largest modulus (SLEM) instead; it is 1 for a periodic walk.

    Returns
    -------
    float or complex
        Complex only if the eigenvalue is not real; a modulus is always a float.

    Raises
    ------
    KernelError, AnalysisError
        If the kernel is reducible, changes with time, or the iteration does not converge.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> round(fw.analysis.second_eigenvalue(kernel), 4), round(fw.analysis.second_eigenvalue(kernel, modulus=True), 4)
    (0.8018, 0.809)
    """
    check.flag("second_eigenvalue", "modulus", modulus)
    return second_of("second_eigenvalue", chain_of("second_eigenvalue", kernel), modulus)


def spectral_gap(kernel: Kernel, absolute: bool = False) -> float:
    """Compute the spectral gap 1 − Re λ₂; with `absolute` the absolute gap, 1 − max |λ| over all λ ≠ 1.

    Its inverse is the relaxation time. The two gaps of Levin and Peres differ if the walk nearly alternates: that does
    not affect averages along the walk, which the gap governs, but prevents mixing, which the absolute gap governs.

    Parameters
    ----------
    kernel
        The walk.
    absolute
        Also count eigenvalues near −1, and complex ones near the unit circle.

    References
    ----------
    Levin, Peres, *Markov chains and mixing times*, 2nd edition, 2017, section 12.2.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(6))
    >>> round(fw.analysis.spectral_gap(kernel), 9), round(fw.analysis.spectral_gap(kernel, absolute=True), 9)
    (0.5, 0.0)
    """
    check.flag("spectral_gap", "absolute", absolute)
    return float(1.0 - np.real(second_of("spectral_gap", chain_of("spectral_gap", kernel), absolute)))


def second_of(who: str, chain: Chain, modulus: bool) -> float | complex:
    """The second eigenvalue, or modulus, of a chain."""
    if len(chain.classes) > 1 or (modulus and period_of(chain.matrix, chain.leaving, chain.classes) > 1):
        return 1.0
    return (_symmetric if chain.reversible else _general)(who, chain, modulus)


def symmetrised(chain: Chain) -> Matrix:
    """D^½ P D^−½ with D = diag(ν): it has the eigenvalues of P, and is symmetric if P is reversible."""
    from scipy.sparse import csr_array, diags_array

    root = np.sqrt(chain.law)
    return csr_array(diags_array(root) @ chain.matrix @ diags_array(1.0 / root))


def _symmetric(who: str, chain: Chain, modulus: bool) -> float:
    """For chains in detailed balance: all eigenvalues are real."""
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import eigsh

    matrix, root = symmetrised(chain), np.sqrt(chain.law)
    matrix = csr_array((matrix + matrix.T) / 2)
    if matrix.shape[0] <= ALL:
        values = np.linalg.eigvalsh(matrix.toarray())
        return float(max(values[-2], -values[0]) if modulus else values[-2])

    def inverted(inverse: Vectors) -> float:
        operator = operator_of(matrix.shape[0], lambda x: inverse(root * x) / root)
        return 1.0 - 1.0 / float(converged(who, eigsh, operator, 1, "LA", _FEW)[0])

    second = float(_slowest(chain, inverted, lambda: min(converged(who, eigsh, matrix, 2, "LA"))))
    return max(second, -float(converged(who, eigsh, matrix, 1, "SA")[0])) if modulus else second


def _general(who: str, chain: Chain, modulus: bool) -> float | complex:
    """For any chain."""
    from scipy.sparse.linalg import eigs

    n = chain.law.size

    def inverted(inverse: Vectors) -> Any:
        return 1.0 - 1.0 / converged(who, eigs, operator_of(n, inverse), _SEVERAL, "LM", _FEW)

    if n <= ALL:
        values = _without_one(np.linalg.eigvals(chain.matrix.toarray()))
    elif modulus:
        values = _without_one(converged(who, eigs, chain.matrix, _SEVERAL, "LM"))
    else:  # the largest real part need not be nearest to 1, but is among the nearest few
        values = _slowest(chain, inverted, lambda: _without_one(converged(who, eigs, chain.matrix, _SEVERAL, "LR")))
    if modulus:
        return float(np.abs(values).max())
    second = values[np.argmax(values.real)]
    # Rounding alone splits a double real eigenvalue into a pair, apart by the square root of the rounding.
    return float(second.real) if abs(second.imag) <= 1e-7 * abs(1.0 - second) else complex(second)


def _without_one(values: Any) -> Any:
    return np.delete(values, np.argmin(np.abs(values - 1.0)))


def _slowest(chain: Chain, inverted: Callable[[Vectors], Any], plain: Callable[[], Any]) -> Any:
    """Eigenvalues near 1 by a factorised inverse, if there is one, or plainly; if that fails, by an iterated one."""
    inverse = _factored(chain)
    try:
        return inverted(inverse) if inverse else plain()
    except AnalysisError:
        return inverted(_projected(chain.law, Flows(chain.leaving).solver(chain.law, accuracy=1e-10)))


def _factored(chain: Chain) -> Vectors | None:
    """The group inverse of I − Pᵀ as a function, if the nodes can be ordered so that it is cheap to factorise.

    Its eigenvalues are 1 / (1 − λ) for all λ ≠ 1, and 0: those with λ near 1, which are hard to distinguish, are far
    from each other.
    """
    from scipy.sparse import csc_array, diags_array
    from scipy.sparse.linalg import splu

    place, width = narrow_order(chain.leaving)
    if place.size * width**2 > _NARROW:
        return None
    order = np.argsort(place)
    equations = csc_array(diags_array(totals_of(chain.leaving)) - chain.leaving.T)[order][:, order]
    factors = splu(equations[:-1, :-1], permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def solve(right: Floats) -> Floats:
        result = np.zeros_like(right)
        result[order[:-1]] = factors.solve(right[order[:-1]])
        return result

    return _projected(chain.law, solve)


def _projected(law: Floats, solve: Vectors) -> Vectors:
    def inverse(right: Floats) -> Floats:
        result = solve(right - law * right.sum())
        return np.asarray(result - law * result.sum())

    return inverse


def converged(who: str, solver: Any, matrix: Any, count: int, which: str, basis: int = _BASIS) -> Any:
    """Eigenvalues from ARPACK, with a fixed start vector so that every call gives the same result; or an error."""
    from scipy.sparse.linalg import ArpackNoConvergence

    start = rng.generator(0).standard_normal(matrix.shape[0])
    try:
        return solver(
            matrix, count, which=which, v0=start, ncv=basis, maxiter=_RESTARTS, tol=1e-11, return_eigenvectors=False
        )
    except ArpackNoConvergence:
        raise AnalysisError(
            f"{who}: the iteration for the eigenvalues of {matrix.shape[0]} nodes does not converge: the walk is slow. "
            f"Up to {ALL} nodes nothing is iterated; spectral_gap without absolute=True and sojourn_times take less"
        ) from None
