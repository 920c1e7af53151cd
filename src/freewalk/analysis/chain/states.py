"""The states of a walk as a Markov chain: its nodes or, if it remembers where it came from, pairs of nodes.

A walk that avoids to step back is a chain on the pairs (k, i): at i, having come from k, where k = i after a stay. In
the long run, a walk at i by a reversible P came from k with probability P(i, k). That is also how a walk without a past
begins: P(i, ·) is stationary for the turns at i, so that its first step is one by P.

With P_1 ≤ P_2 ≤ … at a node, from k to j ≠ k the walk turns with probability P_j · min(g_k, g_j), where g_j = 1 / (1 −
P_j) grows with P_j; forgetting with probability φ makes that (1 − φ) g_j + φ. So one step of all pairs at a node takes
two running sums (`moments.turn`), and all that is added is positive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from freewalk.designs.kernel import Kernel
from freewalk.designs.memory import LastNode
from freewalk.errors import AnalysisError
from freewalk.linear.arrays import Floats, Ints, Matrix
from freewalk.linear.stationary import check_irreducible

_MOST = 30_000_000  # entries of a matrix between pairs, about 1 GB while it is made
_EVEN = 1e-9  # relative difference of two sums of probabilities that are equal up to rounding


class Turns(NamedTuple):
    """The pairs of nodes, ordered by their present node and there by P, and how a walk goes on from each."""

    begins: Ints  # by node, and the end
    ahead: Ints  # by pair (k, i): the pair (i, k) in which a step from i to k ends
    shares: Floats  # P(i, k)
    gains: Floats  # g
    keeps: Floats  # the probability to go back to k


class States(NamedTuple):
    """The states of a constant kernel."""

    nodes: Ints  # by state: the node where the walk is
    shares: Floats  # by state: the probability of it, given the node, for a walk without a past
    turns: Turns | None  # None if the states are the nodes

    def lifted(self, values: Floats) -> Floats:
        """Numbers or rows by node, divided among the states."""
        return np.asarray((self.shares * values[self.nodes].T).T)

    def gathered(self, values: Floats) -> Floats:
        """Numbers or rows by state, added up by node."""
        return np.asarray(np.add.reduceat(values, np.flatnonzero(np.diff(self.nodes, prepend=-1))))

    def at(self, nodes: Ints) -> Ints:
        """The states of some nodes."""
        return np.flatnonzero(np.isin(self.nodes, nodes))


def states_of(kernel: Kernel) -> States:
    """The states of a kernel that remembers nothing or the last node."""
    if not isinstance(kernel.memory, LastNode):
        return States(np.arange(kernel.graph.n), np.ones(kernel.graph.n), None)
    rows, lengths = kernel.rows, np.diff(kernel.rows.indptr)
    nodes = np.repeat(np.arange(kernel.graph.n), lengths)
    order = np.lexsort((rows.shares, nodes))  # nodes keep their places
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    shares, others = rows.shares[order], rows.others[order]
    gains = np.divide(1.0, others, out=np.zeros(order.size), where=others > 0)  # the only outcome has no other
    keeps = np.ones(order.size)
    for length in np.unique(lengths[lengths > 1]):
        pairs = rows.indptr[:-1][lengths == length][:, None] + np.arange(length)
        # The part of P_j that min(g_k, g_j) leaves of g_k, for all j below k: as a sum of what each g adds.
        rises = np.cumsum(shares[pairs], axis=1)[:, :-1] * np.diff(shares[pairs], axis=1)
        rises *= gains[pairs][:, 1:] * gains[pairs][:, :-1]
        keeps[pairs] = np.column_stack([np.zeros(len(pairs)), np.cumsum(rises, axis=1)])
        keeps[pairs] *= keeps[pairs] > length * np.finfo(float).eps  # less is rounding
    forget = kernel.memory.forget
    gains, keeps = (1.0 - forget) * gains + forget, (1.0 - forget) * keeps + forget * shares
    gains[others == 0], keeps[others == 0] = 0.0, 1.0
    return States(nodes, shares, Turns(rows.indptr, place[rows.back[order]], shares, gains, keeps))


def matrix_between(who: str, kernel: Kernel, states: States) -> Matrix:
    """The transition matrix between the states of a constant kernel."""
    from scipy.sparse import csr_array

    if states.turns is None:
        return kernel.matrix()
    begins, ahead, shares, gains, keeps = states.turns
    counts = np.diff(begins)[states.nodes]  # of outcomes, by state
    if counts.sum() > _MOST:
        got = f"{counts.sum():,} transitions between pairs of nodes"
        raise AnalysisError(
            f"{who}: {kernel.label}: has {got}, expected at most {_MOST:,}; stationary and exact_curve need no matrix"
        )
    ends = np.append(0, np.cumsum(counts))
    now = np.repeat(np.arange(counts.size), counts)
    then = np.arange(ends[-1]) + np.repeat(begins[states.nodes] - ends[:-1], counts)
    data = np.where(now == then, keeps[then], shares[then] * np.minimum(gains[now], gains[then]))
    matrix = csr_array((data, ahead[then], ends), shape=(counts.size, counts.size))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def classes_of(who: str, kernel: Kernel, states: States, leaving: Matrix) -> list[Ints]:
    """The closed classes of the states: one, or an error; of pairs of nodes several that share every node alike.

    On a ring with a uniform target these are the two directions. Then all limits over time are means over the classes,
    from whatever node a walk starts.
    """
    from scipy.sparse.csgraph import connected_components

    name = f"{who}: {kernel.label}"
    if states.turns is None:
        check_irreducible(leaving, name)
        return [np.arange(states.nodes.size)]
    # Every state has a positive share of a stationary distribution, so that no class leads to another.
    count, parts = connected_components(leaving, directed=True, connection="strong")
    classes = [np.flatnonzero(parts == part) for part in range(count)]
    for one in classes if count > 1 else []:
        share = np.bincount(states.nodes[one], states.shares[one], kernel.graph.n)
        if np.ptp(share) > _EVEN * share.max():
            remedy = "NonBacktracking(…, forget=0.01) connects them, where the walk without memory gets everywhere"
            raise AnalysisError(f"{name}: has {count} closed classes of pairs, which visit nodes unequally; {remedy}")
    return classes
