"""The mixing time of a walk: the number of steps after which it has forgotten its start."""

import bisect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from freewalk.analysis.chain.chain import Chain, chain_of, check, period_of
from freewalk.analysis.chain.spectrum import converged, second_of, symmetrised
from freewalk.blocks import blocks
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.linear.arrays import Floats
from freewalk.linear.krylov import operator_of

#: Up to this many nodes the mixing time is exact: powers of a dense matrix.
EXACT = 3000
#: Smaller distances are rounding errors.
LEAST_TOLERANCE = 1e-13

_ROUNDING = "less is rounding; each factor of e takes about 1 / spectral_gap(kernel, absolute=True) steps"
_FEW = 500
_STEEP = 1e8
_DOUBLINGS = 40  # a walk is followed for at most 2^40 steps


class MixingTime(float):
    """A number of steps, and how accurately it is known.

    Parameters
    ----------
    value
        The mixing time, or an upper bound.
    exact
        Whether it is the mixing time itself.
    at_least
        A lower bound; the value itself if it is exact.
    period
        The period of the walk. A periodic walk never mixes: the value is infinite.

    Examples
    --------
    >>> MixingTime(8), MixingTime(float("inf"), period=2), MixingTime(13400, exact=False, at_least=512)
    (8, inf (periodic, period 2), ≤ 13400 (a bound; at least 512))
    """

    exact: bool
    at_least: float
    period: int

    def __new__(cls, value: float, exact: bool = True, at_least: float | None = None, period: int = 1) -> "MixingTime":
        """Make a float with additional attributes."""
        result = super().__new__(cls, check.real("MixingTime", "value", value, 0.0, finite=False))
        result.exact = exact
        known = value if at_least is None else at_least
        result.at_least = check.real("MixingTime", "at_least", known, 0.0, finite=False)
        result.period = period
        return result

    def __getnewargs__(self) -> Any:
        """The arguments to copy it."""
        return float(self), self.exact, self.at_least, self.period

    def __repr__(self) -> str:
        """The number, with remarks."""
        if self.exact:
            remark = f" (periodic, period {self.period})" if self.period > 1 else ""
            return f"{_short(self)}{remark}"
        return f"≤ {_short(self)} (a bound; at least {_short(self.at_least)})"

    __str__ = __repr__


def mixing_time(kernel: Kernel, tolerance: float = 0.25) -> MixingTime:
    """Compute the mixing time: the steps until the walk is near its stationary distribution from every start.

    A walk that remembers the last node starts at a node, from a node: it has mixed when both are forgotten.

    The mixing time is the smallest t with d(t) = max_v ½ Σ_u |P^t(v, u) − ν(u)| ≤ tolerance. The result is exact for up
    to 3000 nodes. Beyond, it is an upper bound from d(t) ≤ ½ ν_min^(−½) σ^t, where σ is the second largest eigenvalue
    modulus of a walk in detailed balance, or the second singular value of D^½ P D^−½ otherwise (Fill 1991); and a lower
    bound from d(t) ≥ ½ |λ|^t.

    Parameters
    ----------
    kernel
        The walk.
    tolerance
        The total variation distance, from 1e-13 (smaller values are rounding) to 1.

    Returns
    -------
    MixingTime
        A float that knows whether it is exact; infinite for a periodic walk, with its period, if no bound is found, and
        for a walk without backtracking that keeps its direction for ever.

    Raises
    ------
    KernelError, AnalysisError
        If the kernel is reducible or changes with time, the tolerance is out of range, or the walk is too slow.

    References
    ----------
    Levin, Peres, *Markov chains and mixing times*, 2nd edition, 2017, sections 4.5 and 12.2; Fill, *Eigenvalue bounds
    on convergence to stationarity for nonreversible Markov chains*, 1991.

    Examples
    --------
    >>> import freewalk as fw
    >>> fw.analysis.mixing_time(fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1]))
    8
    >>> fw.analysis.mixing_time(fw.designs.Metropolis().kernel(fw.graphs.ring(6)))
    inf (periodic, period 2)
    """
    return mixing_time_of("mixing_time", kernel, tolerance)


def mixing_time_of(who: str, kernel: Kernel, tolerance: float = 0.25) -> MixingTime:
    """The mixing time, computed for the caller `who`, whom errors name."""
    tolerance = check.real(who, "tolerance", tolerance, LEAST_TOLERANCE, 1.0, remedy=_ROUNDING)
    chain = chain_of(who, kernel)
    period = period_of(chain.matrix, chain.leaving, chain.classes)
    if 1.0 - chain.law.min() <= tolerance + _tie(tolerance):
        return MixingTime(0, period=period)
    # A periodic walk is spread over one of its `period` classes at a time, each with an equal share of the
    # distribution; so is one of several closed classes, all with one period, but these may have different shares.
    share = min(float(chain.law[one].sum()) for one in chain.classes) if len(chain.classes) > 1 else 1.0
    if tolerance < 1.0 - share / period - _tie(tolerance):
        return MixingTime(math.inf, period=period)
    if chain.law.size > EXACT:
        return _bound(who, chain, tolerance, period)
    # Eigenvectors lose digits where the distribution is steep, and save time if there are many nodes.
    even = chain.law.max() <= _STEEP * chain.law.min()
    if chain.law.size > _FEW and chain.reversible and even and period == 1:
        return _from_spectrum(who, chain, tolerance, period)
    return _from_powers(who, chain, tolerance, period)


def _is_far(rows: Callable[[slice], Floats], n: int, tolerance: float) -> bool:
    """Whether half the sum of a row of differences exceeds the tolerance; the rows are computed 500 at a time."""
    far = tolerance + _tie(tolerance)
    return any(np.abs(rows(part)).sum(axis=1).max() / 2 > far for part in blocks(n, numbers=500))


def _from_powers(who: str, chain: Chain, tolerance: float, period: int) -> MixingTime:
    """Square P until it is near its limit, then bisect; distances never rise, so this finds the first step."""

    def far(power: Floats) -> bool:
        return _is_far(lambda part: power[part] - chain.law, len(power), tolerance)

    powers = [chain.matrix.toarray()]
    while far(powers[-1]):
        if len(powers) > _DOUBLINGS:
            if period > 1:
                return MixingTime(math.inf, period=period)
            limit = f"{tolerance:g} of its stationary distribution after 2^{_DOUBLINGS} steps, the limit of rounding"
            raise AnalysisError(f"{who}: the walk is not within {limit}; sojourn_times shows where it stays")
        powers.append(_normalised(powers[-1] @ powers[-1]))
    steps, current = 0, None
    powers.pop()
    while powers:
        power = powers.pop()
        longer = power if current is None else _normalised(current @ power)
        if far(longer):
            steps, current = steps + 2 ** len(powers), longer
    return MixingTime(steps + 1, period=period)


def _normalised(power: Floats) -> Floats:
    """Rescale the rows to add up to 1: otherwise rounding errors double with each squaring."""
    power /= power.sum(axis=1, keepdims=True)
    return power


def _from_spectrum(who: str, chain: Chain, tolerance: float, period: int) -> MixingTime:
    """For chains in detailed balance: at late times few eigenvectors remain, and each step is cheap to check."""
    matrix = symmetrised(chain).toarray()
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    del matrix
    values, vectors, root = values[:-1], vectors[:, :-1], np.sqrt(chain.law)
    least, most = _bounds(float(np.abs(values).max()), chain, tolerance)
    if math.isinf(most):  # the gap is lost in rounding
        return _from_powers(who, chain, tolerance, period)

    def far(steps: int) -> bool:
        powers = values**steps
        left = np.abs(powers) > 1e-16 * chain.law.min()
        starts = vectors[:, left] / root[:, None]
        ends = (vectors[:, left] * powers[left] * root[:, None]).T
        return _is_far(lambda part: starts[part] @ ends, root.size, tolerance)

    first = bisect.bisect_left(range(int(most)), True, lo=int(least), key=lambda steps: not far(steps))
    return MixingTime(first, period=period)


def _bounds(modulus: float, chain: Chain, tolerance: float) -> tuple[float, float]:
    """Steps before and after the mixing time of a chain in detailed balance, from its second largest modulus."""
    if modulus >= 1.0:
        return 0.0, math.inf
    fading = -math.log(modulus) if modulus > 0 else math.inf
    before = math.log(1.0 / (2.0 * tolerance)) / fading
    after = math.log(1.0 / (2.0 * tolerance * math.sqrt(chain.law.min()))) / fading
    return math.floor(max(before, 0.0)), math.ceil(max(after, 1.0))


def _bound(who: str, chain: Chain, tolerance: float, period: int) -> MixingTime:
    # Any eigenvalue bounds the time from below; the largest modulus is hard to find if P is not symmetric.
    second = abs(second_of(who, chain, modulus=chain.reversible))
    before, after = _bounds(second, chain, tolerance)
    if not chain.reversible:
        try:
            _, after = _bounds(_second_singular(who, chain), chain, tolerance)
        except AnalysisError:  # too close to 1 to be distinguished
            after = math.inf
    return MixingTime(after, exact=False, at_least=max(1.0, before), period=period)


def _second_singular(who: str, chain: Chain) -> float:
    """The second singular value of D^½ P D^−½; the first is 1, with √ν on either side."""
    from scipy.sparse.linalg import eigsh

    matrix, root = symmetrised(chain), np.sqrt(chain.law)

    def apply(x: Floats) -> Floats:
        x = x - root * (root @ x)
        y = matrix.T @ (matrix @ x)
        return np.asarray(y - root * (root @ y))

    square = converged(who, eigsh, operator_of(root.size, apply), 1, "LA")[0]
    return float(np.sqrt(min(1.0, square)))


def _tie(tolerance: float) -> float:
    """A distance above the tolerance by less than this equals it up to rounding."""
    return min(1e-12, 1e-3 * tolerance)


def _short(value: float) -> str:
    return f"{float(value):.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{float(value):.4g}"
