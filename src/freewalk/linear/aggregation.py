"""Approximate solutions of the balance of flows of a large Markov chain, by multilevel aggregation.

A chain with stationary distribution ν has balanced flows: with x near ν and F[i, j] = x[i] P[i, j] for i ≠ j, the
factors y of ν = x · y solve (diag(F 1) − Fᵀ) y = 0. Nodes that exchange much have nearly the same y, so they are
merged, again and again, until few are left; errors that the coarse levels cannot represent are local, and Jacobi sweeps
on each level remove them (Stewart, *Introduction to the numerical solution of Markov chains*, 1994; De Sterck and
others, *Multilevel adaptive aggregation for Markov chains*, 2008).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.errors import AnalysisError
from freewalk.linear.arrays import Floats, Matrix

_COARSEST = 90  # solved directly, with a dense inverse; small enough for one thread
_DAMPING = 0.8  # of a Jacobi sweep
_OVERSHOOT = 1.3  # a correction that is constant on each aggregate is too small; Stüben 2001, section 9


class _Level(NamedTuple):
    """The flows between the nodes of a level, and the node of the next level (of `size`) to which each belongs."""

    inflow: Matrix
    out: Floats
    parts: NDArray[np.int32]
    size: int

    def residual(self, right: Floats, y: Floats) -> Floats:
        return np.asarray(right - self.out * y + self.inflow @ y)


class Hierarchy:
    """The flows F of a distribution x on many levels, and one cycle through them as an approximate solution."""

    def __init__(self, flows: Matrix, mass: Floats) -> None:
        from scipy.sparse import csr_array

        self._levels: list[_Level] = []
        # Aggregates use random weights so that equal flows do not all point in the same direction; any draws will do.
        draws = rng.generator(0)
        while flows.shape[0] > _COARSEST or not self._levels:
            inflow, out = csr_array(flows.T), np.asarray(flows.sum(axis=1), dtype=np.float64).ravel()
            count, parts = _aggregates(csr_array(flows + inflow), draws)
            self._levels.append(_Level(inflow, out, parts, count))
            flows, mass = _merge(flows, parts, count), _sums(parts, mass, count)
        dense = flows.toarray()
        # The equations are singular, as expected. The rank-one term selects the correction that preserves the mass; any
        # other would add a multiple of the distribution, and a large one would swamp the correction.
        equations = np.diag(dense.sum(axis=1)) - dense.T
        self._shares = mass / mass.sum()
        shift = np.outer(self._shares, self._shares) * (np.trace(equations) or 1.0)
        try:
            self._inverse = np.linalg.inv(equations + shift)
        except np.linalg.LinAlgError:
            raise AnalysisError("an iteration cannot begin: rates span too many orders of magnitude") from None

    def balance(self, y: Floats) -> Floats:
        """(diag(F 1) − Fᵀ) y: outflow minus inflow of each node, for the distribution x · y."""
        return -self._levels[0].residual(np.zeros_like(y), y)

    def cycle(self, right: Floats, depth: int = 0) -> Floats:
        """An approximate y with (diag(F 1) − Fᵀ) y = right, for a right side that adds up to 0."""
        if depth == len(self._levels):
            # A sum that should be 0 but for rounding would come back as a large multiple of the distribution.
            return np.asarray(self._inverse @ (right - self._shares * right.sum()))
        level = self._levels[depth]
        y = _DAMPING * right / level.out
        coarse = _sums(level.parts, level.residual(right, y), level.size)
        correction = self.cycle(coarse, depth + 1)
        below = self._levels[depth + 1] if depth + 1 < len(self._levels) else None
        # Twice if two visits cost less than one here; long edges do not merge, and keep the next level costly.
        if below is not None and 3 * below.inflow.nnz <= level.inflow.nnz:
            correction += self.cycle(below.residual(coarse, correction), depth + 1)
        y += _OVERSHOOT * correction[level.parts]
        return np.asarray(y + _DAMPING * level.residual(right, y) / level.out)


def _aggregates(strength: Matrix, draws: np.random.Generator) -> tuple[int, NDArray[np.int32]]:
    """Join each node to the neighbour with which it exchanges most; connected nodes form a part."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = np.repeat(np.arange(strength.shape[0], dtype=np.int32), np.diff(strength.indptr))
    weights = strength.data * draws.uniform(0.5, 1.0, strength.nnz)
    strongest = np.maximum.reduceat(weights, strength.indptr[:-1])
    chosen = np.flatnonzero(weights == strongest[rows])
    joins = coo_array((np.ones(chosen.size, dtype=np.int8), (rows[chosen], strength.indices[chosen])), strength.shape)
    count, parts = connected_components(joins, directed=False)
    return int(count), parts


def _sums(parts: NDArray[np.int32], values: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(parts, values, minlength=count), dtype=np.float64)


def _merge(flows: Matrix, parts: NDArray[np.int32], count: int) -> Matrix:
    """The flows between parts; flows within a part are dropped."""
    from scipy.sparse import coo_array, csr_array

    rows = np.repeat(parts, np.diff(flows.indptr))
    columns = parts[flows.indices]
    across = rows != columns
    return csr_array(coo_array((flows.data[across], (rows[across], columns[across])), (count, count)))
