"""The stationary distribution of a sparse Markov chain: ν with ν P = ν, Σ ν = 1.

Only the probabilities of leaving a node are used. The diagonal follows from them; where a walk seldom leaves,
1 − P(v, v) would have lost its digits. There are three methods, each used where it is best:

- a distribution in detailed balance with P is the answer and only needs to be checked;
- few nodes, or nodes that can be ordered so that all moves are short (rings, paths, narrow grids): elimination without
  subtraction, exact in every component (Grassmann, Taksar, Heyman, *Regenerative analysis and steady state
  distributions for Markov chains*, 1985);
- all others: corrections from the balance of flows by GMRES on a hierarchy of aggregates, checked at the end.
"""

from typing import Protocol

import numpy as np

from freewalk.errors import AnalysisError, KernelError
from freewalk.linear.aggregation import Hierarchy
from freewalk.linear.arrays import Floats, Matrix, Vectors
from freewalk.linear.elimination import ELIMINATION, PLAIN, dense_law, narrow_law, narrow_order
from freewalk.linear.krylov import minimise


class Steps(Protocol):
    """The steps of a chain, as the iterations use them."""

    def change(self, measure: Floats) -> Floats:
        """The change of a measure in one step: x P − x."""

    def energy(self, law: Floats, deviations: Floats) -> float:
        """Σ ν_i P_ij (z_i − z_j)² / 2 for a stationary ν and any z; this equals (x − x P) z with x = ν z."""

    def swept(self, law: Floats) -> Floats:
        """A better estimate of the stationary distribution."""

    def solver(self, law: Floats) -> Vectors:
        """A function that nearly solves c − c P = r for c, given r with Σ r = 0 and a near-stationary `law`."""


#: The largest residual ‖ν P − ν‖₁ of a returned distribution.
RESIDUAL = 1e-13

_BALANCED = 1e-13  # relative difference of two opposite flows that are equal up to rounding
_SWEEPS = 25
_ROUNDS = 12
_ACCURACY = 1e-5  # of one correction
_CORRECTED = 1e-7  # a correction this small, and this accurate, is the last
_REBUILT = 0.5  # a larger one changes the flows so much that the hierarchy is rebuilt


def stationary_law(matrix: Matrix, who: str, guess: Floats | None = None) -> Floats:
    """The stationary distribution of an irreducible row-stochastic matrix, which a guess may already be near."""
    leaving = leaving_rates(matrix)
    check_irreducible(leaving, who)
    n = leaving.shape[0]
    start = np.full(n, 1.0 / n) if guess is None else np.asarray(guess / guess.sum(), dtype=np.float64)
    if is_reversible(leaving, start):
        return start
    if n <= PLAIN:
        return dense_law(leaving.toarray())
    place, width = narrow_order(leaving)
    if n * width**2 <= ELIMINATION:
        return narrow_law(leaving, place, width)
    return settled(Flows(leaving), start, who)


def leaving_rates(matrix: Matrix) -> Matrix:
    """The positive off-diagonal entries of a matrix, columns sorted."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(matrix.shape[0], dtype=matrix.indices.dtype), np.diff(matrix.indptr))
    kept = (rows != matrix.indices) & (matrix.data > 0)
    ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr].astype(matrix.indptr.dtype)
    leaving = csr_array((matrix.data[kept], matrix.indices[kept], ends), shape=matrix.shape)
    leaving.sort_indices()
    return leaving


def check_irreducible(leaving: Matrix, who: str) -> None:
    """Raise unless every node can be reached from every other node."""
    from scipy.sparse.csgraph import connected_components

    count, parts = connected_components(leaving, directed=True, connection="strong")
    if count == 1:
        return
    rows = np.repeat(np.arange(leaving.shape[0]), np.diff(leaving.indptr))
    across = np.flatnonzero(parts[rows] != parts[leaving.indices])
    if across.size:
        example = f"it goes from node {rows[across[0]]} to node {leaving.indices[across[0]]} but cannot return"
    else:
        example = f"it never goes from node 0 to node {int(np.argmax(parts != parts[0]))}"
    what = f"P is reducible ({count} strongly connected parts), so its stationary distribution is not unique: {example}"
    raise KernelError(f"{who}: {what}; expected one part. Give every edge a positive probability in both directions")


def totals_of(leaving: Matrix) -> Floats:
    """The row sums: the probability of leaving each node."""
    return row_sums(leaving, leaving.data)


def row_sums(matrix: Matrix, values: Floats) -> Floats:
    """The sums of `values`, one per matrix entry, by row; sums of many terms keep their last digits.

    A product with a sparse matrix adds term by term, which for a hub of 10⁵ neighbours loses five digits.
    """
    filled = np.diff(matrix.indptr) > 0
    result = np.zeros(matrix.shape[0])
    if values.size:
        result[filled] = np.add.reduceat(values, matrix.indptr[:-1][filled])  # adds pairwise
    return result


def flows_of(leaving: Matrix, law: Floats) -> Matrix:
    """The flow from node to node in one step: law[i] P[i, j]."""
    from scipy.sparse import csr_array

    data = leaving.data * np.repeat(law, np.diff(leaving.indptr))
    return csr_array((data, leaving.indices, leaving.indptr), shape=leaving.shape)


def is_reversible(leaving: Matrix, law: Floats, tolerance: float = _BALANCED) -> bool:
    """Whether `law` is in detailed balance with a chain: law[i] P[i, j] = law[j] P[j, i], relative to either."""
    from scipy.sparse import csr_array

    flows = flows_of(leaving, law)
    back = csr_array(flows.T)  # its columns are sorted, like those of `leaving`
    if not (np.array_equal(flows.indptr, back.indptr) and np.array_equal(flows.indices, back.indices)):
        return False
    return bool((np.abs(flows.data - back.data) <= tolerance * flows.data).all())


class Flows:
    """The steps of a chain, from the rates between its nodes."""

    def __init__(self, leaving: Matrix) -> None:
        from scipy.sparse import csr_array

        self.leaving, self.rates = leaving, totals_of(leaving)
        self._arriving = csr_array(leaving.T)

    def change(self, measure: Floats) -> Floats:
        """The change of a measure in one step: x P − x."""
        arrived = row_sums(self._arriving, self._arriving.data * measure[self._arriving.indices])
        return np.asarray(arrived - measure * self.rates)

    def energy(self, law: Floats, deviations: Floats) -> float:
        """Σ ν_i P_ij (z_i − z_j)² / 2 for a stationary ν and any z; this equals (x − x P) z with x = ν z."""
        counts = np.diff(self.leaving.indptr)
        differences = np.repeat(deviations, counts) - deviations[self.leaving.indices]
        return float(np.repeat(law, counts) @ (self.leaving.data * differences**2) / 2)

    def swept(self, law: Floats) -> Floats:
        """An estimate of the stationary distribution, smoothed at nodes that differ much from their neighbours."""
        for _ in range(_SWEEPS):
            law = 0.3 * law + 0.7 * (self._arriving @ law) / self.rates
        return law

    def solver(self, law: Floats, accuracy: float = _ACCURACY) -> Vectors:
        """A function that approximately solves c − c P = r for c, given Σ r = 0; r = ν P − ν corrects ν."""
        hierarchy = Hierarchy(flows_of(self.leaving, law), law)
        # In this norm each node counts by its own weight, not by that of the heaviest node.
        scale = np.sqrt(law * self.rates)

        def cycle(right: Floats) -> Floats:
            # Factors that add nothing to the distribution: a multiple of it corrects nothing, and may be huge.
            factors = hierarchy.cycle(right * scale)
            return np.asarray(factors - law @ factors)

        def apply(right: Floats) -> Floats:
            return hierarchy.balance(cycle(right)) / scale

        rounding = float(np.finfo(float).eps * np.linalg.norm(scale))

        def solve(residual: Floats) -> Floats:
            right = residual / scale
            # Accuracy below the rounding of the residual itself gains nothing.
            least = rounding / max(float(np.linalg.norm(right)), rounding)
            return law * cycle(minimise(apply, right, max(accuracy, least), rounds=4))

        return solve


def settled(steps: Steps, law: Floats, who: str) -> Floats:
    """Correct a positive distribution by its imbalance until it no longer changes."""
    law = steps.swept(law)
    law = law / law.sum()
    solve = steps.solver(law)
    for _ in range(_ROUNDS):
        correction = solve(steps.change(law))
        change = float(np.max(np.abs(correction) / law))
        law = np.maximum(law + correction, 0.01 * law)
        law = law / law.sum()
        residual = float(np.abs(steps.change(law)).sum())
        # Both conditions, since the residual of a walk that hardly moves is always small.
        if change <= _CORRECTED and residual <= RESIDUAL:
            return law
        if change > _REBUILT:
            solve = steps.solver(law)
    raise AnalysisError(
        f"{who}: after {_ROUNDS} corrections its stationary distribution still changes by {change:.1e} (relative), "
        f"with residual {residual:.1e}; expected {_CORRECTED:.0e} and {RESIDUAL:.0e}. Try a nearer target, fewer nodes"
    )
