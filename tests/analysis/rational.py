"""A small chain in exact rational arithmetic, each result rounded once at the end.

The chain is the one that the package reads: the floats off the diagonal of its matrix, and a diagonal that follows
from them. Everything comes straight from its definition: subtractions do no harm here. Numerators and denominators
are whole numbers of thousands of digits that are never reduced, which takes longer than all the rest.
"""

from fractions import Fraction
from functools import cached_property
from math import inf

import numpy as np

from freewalk.linear.stationary import leaving_rates


class Exact:
    """The quantities of an irreducible chain as the nearest floats, given its rates; their diagonal is not read."""

    def __init__(self, rates):
        nodes = self._nodes = range(len(rates))
        fractions = [[Fraction(float(rates[v][u])) if u != v else Fraction() for u in nodes] for v in nodes]
        # All rates are multiples of 1 / unit.
        unit = self._unit = max(rate.denominator for row in fractions for rate in row)
        self._rates = [[int(rate * unit) for rate in row] for row in fractions]
        # (I − P + 1 w)⁻¹, with w the first unit vector, has the stationary law as its first row.
        balance = [[one + unit * (u == 0) for u, one in enumerate(row)] for row in self._balance(nodes)]
        self._inverse, self._det = solved(balance, [[unit * (u == v) for u in nodes] for v in nodes])
        self._law = self._inverse[0]

    @classmethod
    def of(cls, kernel):
        return cls(leaving_rates(kernel.matrix()).toarray())

    def _balance(self, nodes):
        """The rows and columns of I − P, times the unit."""
        return [[(sum(self._rates[v]) if u == v else 0) - self._rates[v][u] for u in nodes] for v in nodes]

    @cached_property
    def law(self):
        return np.array([quotient(one, self._det) for one in self._law])

    @cached_property
    def hitting(self):
        """H[i, j], from i to j."""
        inverse, law = self._inverse, self._law
        return np.array([[quotient(inverse[j][j] - inverse[i][j], law[j]) for j in self._nodes] for i in self._nodes])

    @cached_property
    def _deviations(self):
        """Σ_t (P^t − 1 ν), times the square of the determinant."""
        means = [sum(self._law[k] * self._inverse[k][j] for k in self._nodes) for j in self._nodes]
        return [[self._inverse[i][j] * self._det - means[j] for j in self._nodes] for i in self._nodes]

    @cached_property
    def fundamental(self):
        """Z = (I − P + 1 ν)⁻¹."""
        return np.array(
            [
                [quotient(one + law * self._det, self._det**2) for one, law in zip(row, self._law, strict=True)]
                for row in self._deviations
            ]
        )

    @cached_property
    def kemeny(self):
        return quotient(sum(self._deviations[v][v] for v in self._nodes), self._det**2)

    def excess(self, nodes):
        """ν z / ν(S) within S, where (I − P) z = 1_S − ν(S) and ν z = 0."""
        total = sum(self._law[i] * sum(self._deviations[i][j] for j in nodes) for i in nodes)
        return quotient(total, self._det**2 * sum(self._law[i] for i in nodes))

    def escape(self, nodes, start=None):
        """The mean time to leave a set, from its law, or (`start="entry"`) from where visits begin."""
        times, det = solved(self._balance(nodes), [[self._unit] for _ in nodes])
        shares = [self._law[v] for v in nodes]
        if start == "entry":
            others = [v for v in self._nodes if v not in nodes]
            shares = [sum(self._law[u] * self._rates[u][v] for u in others) for v in nodes]
        return quotient(sum(share * time[0] for share, time in zip(shares, times, strict=True)), det * sum(shares))


def solved(matrix, right):
    """Whole numbers X and d with matrix · X = d · right, for whole numbers; no pivot may be 0 (Bareiss 1968)."""
    rows, before = [[*row, *more] for row, more in zip(matrix, right, strict=True)], 1
    for k in range(len(rows)):
        pivot, *others = rows[k]
        rows = [
            others if i == k else [(pivot * x - first * y) // before for x, y in zip(row, others, strict=True)]
            for i, (first, *row) in enumerate(rows)
        ]
        before = pivot
    return rows, before


def quotient(numerator, denominator):
    """The nearest float, or ± ∞ where there is none."""
    try:
        return numerator / denominator
    except OverflowError:
        return inf if numerator > 0 else -inf


def relative_errors(got, exact):
    """By component; 0 where both are equal, and infinite where `got` is no number."""
    got, exact = np.asarray(got, dtype=float), np.asarray(exact, dtype=float)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        errors = np.where(got == exact, 0.0, np.abs(got - exact) / np.abs(exact))
    return np.where(np.isfinite(got), errors, np.inf)
