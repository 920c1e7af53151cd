"""Excess visits: the number of updates beyond its share that a walk spends in a set of nodes once it is there.

What entraps a walk is not the length of one visit but how often it returns. With the set S, the stationary distribution
ν, and (I − P) z = 1_S − ν(S), ν z = 0,

    excess(S) = Σ_{v∈S} ν_v z_v / ν(S).

Solved directly, this system loses all digits if there are two deep traps. Observed until it first reaches some node j,
a walk makes a_v visits to S and b_v to the rest, depending on its start node v. Both come from an elimination without
subtraction, and with p = ν(S) and q = 1 − p

    excess(S) = (q²/p) Σ_{v∈S} ν_v a_v + p Σ_{v∉S} ν_v b_v − q (Σ_{v∈S} ν_v b_v + Σ_{v∉S} ν_v a_v).

One difference is left, and none for a single node. Its loss of digits is known, so a result is either accurate or
rejected. Large graphs that cannot be eliminated are iterated; there, too, results with too large an error are rejected.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import DENSE, Chain, chain_of, check_constant, check_nodes, stationary
from freewalk.analysis.chain.states import states_of
from freewalk.analysis.chain.unrolled import Hops, is_crowded, unrolled
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.linear.arrays import Flags, Floats, Ints, Matrix, Vectors
from freewalk.linear.elimination import PLAIN, eliminated, times_between
from freewalk.linear.stationary import Flows, Steps, leaving_rates

#: The maximum relative error of a result, on small graphs and on large ones.
PRECISION, ITERATED = 1e-10, 1e-8

_ROUNDS = 10
_ROUNDING = float(np.finfo(float).eps)
_MARGIN = 20.0  # between the estimated error of an iteration and the promised one: the distribution has an error too


def excess_visits(kernel: Kernel, nodes: ArrayLike) -> float:
    """Compute the updates beyond its share that a walk spends in a set of nodes once it is there, including returns.

    In a large number T of updates, a walk that begins in the set (by the stationary distribution ν within it) visits it
    ν(S) · T + excess times. Nodes drawn independently have an excess of 1 − ν(S); a walk that stays long, or returns
    often, has a larger one.

    Parameters
    ----------
    kernel
        The walk, on any number of nodes. If it remembers the last node, it begins as it is in the set in the long run.
    nodes
        The set: distinct nodes, by number or name, but not all nodes.

    Returns
    -------
    float
        The excess, with a relative error of at most 1e-10 up to a thousand nodes, or pairs of nodes if the walk
        remembers the last one, and 1e-8 beyond; usually far less.

    Raises
    ------
    KernelError, AnalysisError
        If the kernel is reducible or changes with time, the set is invalid, or rounding leaves fewer digits than
        promised, which can happen for a set with parts of several deep traps.

    References
    ----------
    Kemeny, Snell, *Finite Markov chains*, 1960, chapter IV: a mean of Z[i, j] − ν[j] over the set.

    Examples
    --------
    A walk that samples by importance keeps returning to the heavy nodes of a ring, but hardly on a complete graph.

    >>> import freewalk as fw
    >>> importance = [100.0, 100.0] + 98 * [1.0]
    >>> design = fw.designs.Metropolis(power=1)
    >>> for graph in (fw.graphs.ring(100), fw.graphs.complete(100)):
    ...     print(round(excess_visits(design.kernel(graph, importance), [0, 1]), 1))
    364.2
    10.9
    """
    check_constant("excess_visits", kernel, last_node=True)
    return Returns("excess_visits", kernel).excess(check_nodes("excess_visits", nodes, kernel.graph))


class Excess(NamedTuple):
    """An excess, and its maximum relative error."""

    value: float
    error: float


class Returns:
    """The excess visits of any number of sets; of `many`, on a small graph, from the times between all nodes."""

    def __init__(self, who: str, kernel: Kernel, many: bool = False) -> None:
        self._who, self._many = who, many
        self.kernel = kernel
        self.law = stationary(kernel, who=who)

    def excess(self, nodes: Ints) -> float:
        """The excess of a valid set, or an error if rounding or an iteration leaves too few digits."""
        if self.kernel.memory is None:
            return self._excess(np.isin(np.arange(self.law.size), nodes))
        inside = np.isin(states_of(self.kernel).nodes, nodes)
        # Each closed class of pairs visits every node by its share.
        return float(sum(share * part._excess(inside[states]) for share, states, part in self._classes))

    @cached_property
    def _classes(self) -> list[tuple[float, Ints, _Pairs]]:
        """Of a walk that remembers the last node: the closed classes of its pairs of nodes, with their shares."""
        chain = chain_of(self._who, self.kernel)
        shares = [float(chain.law[one].sum()) for one in chain.classes]
        parts = [_Pairs(self._who, self.kernel, chain, one, self._many) for one in chain.classes]
        return list(zip(shares, chain.classes, parts, strict=True))

    def _excess(self, inside: Flags) -> float:
        n = self.law.size
        if not (self.law[inside].sum() > 0 and self.law[~inside].sum() > 0):
            raise AnalysisError(
                f"{self._who}: {self.kernel.label}: the share of these nodes, or of all others, is below 1e-308"
            )
        limit = PRECISION if n <= PLAIN else ITERATED
        found = self._from_times(inside) if self._many and n <= PLAIN else Excess(0.0, np.inf)
        if not found.error <= limit:
            direct = self._eliminated(inside)
            found = direct or self._iterated(inside)
            if direct is None and not found.error <= limit and n <= DENSE:
                found = self._eliminated(inside, dense=True) or found
        if not found.error <= limit:
            raise AnalysisError(
                f"{self._who}: {self.kernel.label}: the excess of {inside.sum()} nodes would have a relative error of "
                f"{found.error:.1e}, expected at most {limit:.0e}: it is small against the visits it is a difference "
                "of, as if the walk seldom goes between some of them. Ask for each of these places separately"
            )
        return found.value

    @cached_property
    def _leaving(self) -> Matrix:
        """The rates between the nodes of a small graph, or between the states of a large one."""
        return self._dense_leaving() if self.law.size <= PLAIN else unrolled(self.kernel).leaving

    def _dense_leaving(self) -> Matrix:
        return leaving_rates(self.kernel.matrix())

    @cached_property
    def times(self) -> Floats:
        """The mean number of steps between all pairs of nodes of a small graph."""
        return times_between(self._leaving)

    @cached_property
    def _solving(self) -> tuple[Steps, Floats, Vectors]:
        """The steps of a large chain, its distribution over all states (1 over the nodes), and a balance solver."""
        if is_crowded(self.kernel):
            steps: Steps = Hops(self.kernel)
            law = self.law
        else:
            chain = unrolled(self.kernel)
            steps, law = Flows(chain.leaving), chain.law(self.law)
        return steps, law, steps.solver(law / law.sum())

    def _from_times(self, inside: Flags) -> Excess:
        """From Σ_{j∈S} ν_j (Σ_{i∉S} ν_i H_ij − (q/p) Σ_{i∈S} ν_i H_ij), which one side of a border or the other has."""
        found = []
        for part in (inside, ~inside):
            share, rest = float(self.law[part].sum()), float(self.law[~part].sum())
            arrivals = self.times[:, part] @ self.law[part]
            more, less = float(self.law[~part] @ arrivals[~part]), float(self.law[part] @ arrivals[part])
            one = _excess(more, rest / share * less, self.law.size)
            # Both sides of a border have the same excess up to a factor: ν(S) excess(S) = ν(rest) excess(rest).
            found.append(one if part is inside else Excess(one.value * share / rest, one.error))
        return min(found, key=lambda one: (np.isnan(one.error), one.error))

    def _eliminated(self, inside: Flags, dense: bool = False) -> Excess | None:
        """By elimination; None if there are too many nodes for that and they cannot be ordered well."""
        if not dense and self.law.size > PLAIN and is_crowded(self.kernel):
            return None
        leaving = self._dense_leaving() if dense else self._leaving
        size, n = leaving.shape[0], inside.size
        found: list[Excess] = []
        # A walk observed until it reaches a heavy node has little time to lose digits. In the set, or outside.
        for part in (inside, ~inside):
            node = int(np.argmax(np.where(part, self.law, -1.0)))
            rest = np.delete(np.arange(size), node)
            visits = np.zeros((size, 2))
            visits[:n, 0], visits[:n, 1] = inside, ~inside
            rates, absorption = leaving[rest][:, rest], leaving[rest][:, [node]].toarray()[:, 0]
            solved = eliminated(rates, absorption, visits[rest], dense or size <= PLAIN)
            if solved is None:
                continue
            visits[rest], visits[node] = solved, 0.0
            share, other = float(self.law[inside].sum()), float(self.law[~inside].sum())
            within, without = self.law[inside] @ visits[:n][inside], self.law[~inside] @ visits[:n][~inside]
            more = other * (other / share * within[0]) + share * without[1]
            found.append(_excess(more, other * (within[1] + without[0]), size))
            if found[-1].error <= PRECISION:
                break
        return min(found, key=lambda one: (np.isnan(one.error), one.error), default=None)

    def _iterated(self, inside: Flags) -> Excess:
        """From c − c P = r with r = ν 1_S − ν(S) ν, solved again for the residual as long as that helps.

        The residual ρ changes the result by ρ z / ν(S), where z = c / ν are the deviations of the time-reversed walk,
        which has the same excess. The result also equals Σ ν_i P_ij (z_i − z_j)² / 2 ν(S).
        """
        best = Excess(0.0, np.inf)
        try:
            steps, law, solve = self._solving
        except AnalysisError:  # an iteration that cannot even begin
            return best
        n, share = inside.size, float(self.law[inside].sum())
        right = np.zeros(law.size)
        right[:n] = self.law * inside - share * self.law
        right[:n] -= self.law * right[:n].sum()
        solution, lacking = np.zeros(law.size), right
        for _ in range(_ROUNDS):
            solution = solution + solve(lacking)
            solution = solution - law * solution[:n].sum()
            lacking = right + steps.change(solution)
            deviations = solution / law
            value = float(solution[:n][inside].sum())
            wrong = float((np.abs(lacking) + 2 * _ROUNDING * np.abs(solution)) @ np.abs(deviations))
            wrong = max(wrong, abs(value - steps.energy(law, deviations)))
            found = Excess(value / share, _MARGIN * wrong / abs(value) if value else np.inf)
            if not found.error < 0.5 * best.error:
                break
            best = found
        return best


class _Pairs(Returns):
    """The excess of sets of pairs of nodes, in a closed class of them."""

    def __init__(self, who: str, kernel: Kernel, chain: Chain, states: Ints, many: bool) -> None:
        self._who, self._many, self.kernel = who, many, kernel
        self._rates, self.law = chain.leaving[states][:, states], chain.law[states] / chain.law[states].sum()

    @cached_property
    def _leaving(self) -> Matrix:
        return self._rates

    def _dense_leaving(self) -> Matrix:
        return self._rates

    @cached_property
    def _solving(self) -> tuple[Steps, Floats, Vectors]:
        steps = Flows(self._rates)
        return steps, self.law, steps.solver(self.law)


def _excess(more: float, less: float, size: int) -> Excess:
    """A difference of two sums of positive numbers, with their rounding errors and a margin."""
    rounding = 4 * np.sqrt(size) * _ROUNDING
    value = float(more - less)
    return Excess(value, float(rounding * (more + less) / value) if value > 0 else np.inf)
