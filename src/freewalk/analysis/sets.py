"""Traps: sets of nodes that hold the walk far longer than their share of the target warrants."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from freewalk.analysis import components
from freewalk.analysis.chain import matrix_of
from freewalk.analysis.components import COUNT, DEGREES, OUTFLOW, Floats, Ints
from freewalk.analysis.law import stationary
from freewalk.analysis.times import escape_time
from freewalk.compiling import compile_functions
from freewalk.errors import AnalysisError
from freewalk.kernel import Kernel
from freewalk.stationary import flows_of, leaving_rates, totals_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BEST = 30  # candidates that may overlap others
_APART = 60  # and at least this many that do not
_SIDES = 2.0  # how much longer than its other side more than half of the nodes must hold the walk
_LOOKED_AT = 20  # times all nodes: as many nodes of candidates are looked at
_PATIENCE = 24  # moves for the worse before a set is as good as it gets
_WORK = 20_000_000  # trials for one set


@dataclass(frozen=True)
class Trap:
    """A set of nodes that the walk is slow to leave.

    Attributes
    ----------
    nodes
        The set.
    stay
        The mean length of a visit, in updates: from the step that enters the set to the one that leaves it.
    escape
        The mean number of updates until a walk that is somewhere in the set, by the stationary law, leaves it.
    share
        The share of the target that the set has.
    warranted
        How long a visit would be if the nodes were drawn independently from the target, or if the walk took a plain
        step each time, whichever is longer.
    factor
        stay / warranted.
    """

    nodes: tuple[int, ...]
    stay: float
    escape: float
    share: float
    warranted: float
    factor: float

    def __str__(self) -> str:
        """The trap in a sentence."""
        return (
            f"{name_nodes(self.nodes)}: a visit lasts {self.stay:.3g} updates, {self.factor:.3g} times what "
            f"{100 * self.share:.3g} % of the target would warrant"
        )


def find_traps(kernel: Kernel, factor: float = 3.0, least: float = 10.0, most: int = 10) -> list[Trap]:
    """The sets that hold the walk at least `factor` times as long as they would be warranted to, and `least` updates.

    Drawn independently, a set of share π(S) is kept for 1/(1 − π(S)) draws, and a plain walk stays in S for
    (sum of degrees)/(edges that leave S) steps; a visit of this walk lasts ν(S)/Σ_{v∈S, u∉S} ν_v P(v, u) updates.
    Single nodes miss a trap of several: next to each other, they hand the walk to and fro. So sets are tried of four
    families, in each of which nodes join into ever larger sets, pair by pair: where the target per degree is highest,
    where single stays are longest, and where the flows are strongest in comparison to the lighter, and to the heavier
    of the two nodes. The best of them are improved by nodes that go in or out, one at a time.

    A border that is seldom crossed has two sides, and by the measure above both may hold the walk. More than half of
    the nodes count as a trap only if their factor is at least twice that of the rest.

    Parameters
    ----------
    kernel
        A kernel that does not change with time.
    factor
        How much longer than warranted a visit must be.
    least
        How many updates a visit must last.
    most
        How many traps to return.

    Returns
    -------
    list
        Traps that do not overlap, the largest factor first. A search, not a proof: the numbers of a trap are exact, but
        another set may be worse, or a trap be missed, above all one that is just about a trap, has a shape that no
        family passes through, or lies among more than about a hundred that are worse. On small graphs, where all sets
        can be tried, it finds the worst one nearly always. Sets of any size are tried; a very large one is improved
        only as far as some ten million trials go.

    Raises
    ------
    AnalysisError, KernelError
        If the kernel changes with time, draws from a law, or is reducible, or another argument is not as above.

    Examples
    --------
    >>> import freewalk as fw
    >>> importance = [400.0, 400.0] + 98 * [1.0]
    >>> kernel = fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(100), importance)
    >>> for trap in find_traps(kernel):
    ...     print(trap)
    nodes 0, 1: a visit lasts 800 updates, 87.3 times what 89.1 % of the target would warrant
    """
    matrix = matrix_of("find_traps", kernel)
    if not kernel.is_local:
        raise AnalysisError(
            f"find_traps: {kernel.label} draws from a law over all nodes; expected a walk, which has traps"
        )
    _check_numbers(factor, least, most)
    search = _Search(kernel, leaving_rates(matrix), stationary(kernel, who="find_traps"), float(least))
    found: dict[bytes, Trap] = {}
    for nodes in search.candidates(int(most)):
        for members in (nodes, *search.connected(search.improved(nodes))):
            if members.tobytes() not in found:
                found[members.tobytes()] = search.trap(members)
    kept: list[Trap] = []
    taken = np.zeros(kernel.graph.n, dtype=np.bool_)
    for trap in sorted(found.values(), key=lambda trap: (-trap.factor, len(trap.nodes), trap.nodes[0])):
        if len(kept) == most or trap.factor < factor:
            break
        nodes = np.array(trap.nodes)
        if trap.stay >= least and not taken[nodes].any() and not search.is_side(trap):
            taken[nodes] = True
            shares = search.law[nodes]
            kept.append(replace(trap, escape=escape_time(kernel, nodes, shares / shares.sum())))
    return kept


def _check_numbers(factor: float, least: float, most: int) -> None:
    numbers = all(isinstance(value, Real) and isfinite(value) for value in (factor, least))
    if not (numbers and isinstance(most, Integral) and factor > 1 and least >= 1 and most >= 1):
        raise AnalysisError(
            f"find_traps: got factor = {factor!r}, least = {least!r}, most = {most!r}; expected a finite number above "
            "1, a finite number of at least 1, and a whole number of at least 1"
        )


class _Tree(NamedTuple):
    """Sets that contain each other or do not meet: set s has the nodes order[begin[s] : end[s]]."""

    scores: Floats
    begin: Ints
    end: Ints
    order: Ints


class _Search:
    """Candidates, and what their visits last."""

    def __init__(self, kernel: Kernel, leaving: "csr_array", law: Floats, least: float) -> None:
        from scipy.sparse import csr_array

        self.graph, self.law, self.least = kernel.graph, law, least
        self.target = np.asarray(kernel.target)
        self.flows, self.adjacency = flows_of(leaving, law), self.graph.adjacency()
        out = law * totals_of(leaving)
        # One pattern for flows and edges: flows in both directions are the real parts, edges the imaginary ones.
        pairs = csr_array(self.flows + self.flows.T + self.adjacency * np.complex128(1j))
        self.rows = np.repeat(np.arange(law.size), np.diff(pairs.indptr))
        self.indptr, self.indices = pairs.indptr.astype(np.int64), pairs.indices.astype(np.int64)
        self.both, self.ties = pairs.data.real.copy(), pairs.data.imag.copy()
        degrees = self.graph.degrees.astype(np.float64)
        self.nodes = np.column_stack([law, self.target, degrees, degrees, out, np.ones(law.size)])
        flags, floats, ints = (np.zeros((3, law.size), dtype=kind) for kind in (np.bool_, np.float64, np.int64))
        self.scratch = (np.zeros(6), np.zeros(6), *flags, *floats[:2], *ints)

    def candidates(self, most: int) -> list[Ints]:
        """The sets that score best in several families, and the best of those that do not overlap."""
        half = np.flatnonzero(self.rows < self.indices)
        ends = self.rows[half], self.indices[half]
        half_both, half_ties = self.both[half], self.ties[half]
        trees = []
        for strengths in self._strengths(*ends, half_both, half_ties):
            trees.append(self._tree(strengths, *ends, half_both, half_ties))
        scores = np.concatenate([tree.scores for tree in trees])
        offsets = np.cumsum([0, *(tree.scores.size for tree in trees)])
        ranked = np.flatnonzero(scores > 0)
        ranked = ranked[np.argsort(-scores[ranked], kind="stable")]
        taken = np.zeros(self.law.size, dtype=np.bool_)
        chosen: dict[bytes, Ints] = {}
        apart, budget = 0, _LOOKED_AT * self.law.size + 10**6
        for place in ranked:
            which = int(np.searchsorted(offsets, place, side="right")) - 1
            tree, s = trees[which], place - offsets[which]
            budget -= int(tree.end[s] - tree.begin[s])
            if budget < 0 or apart >= max(_APART, 3 * most):
                break
            nodes = tree.order[tree.begin[s] : tree.end[s]]
            alone = not taken[nodes].any()
            if alone or len(chosen) - apart < _BEST:
                nodes = np.sort(nodes)
                if nodes.tobytes() not in chosen:
                    chosen[nodes.tobytes()] = nodes
                    apart += alone
                    taken[nodes] = True
        return list(chosen.values())

    def _strengths(self, first: Ints, second: Ints, both: Floats, ties: Floats) -> Iterator[Floats]:
        """By family: along which pairs sets merge first; 0 where never."""
        height = self.target / self.nodes[:, DEGREES]
        yield np.minimum(height[first], height[second]) * ties
        height = self.law / self.nodes[:, OUTFLOW]
        yield np.minimum(height[first], height[second]) * (both > 0)
        yield both / np.minimum(self.law[first], self.law[second])
        yield both / np.maximum(self.law[first], self.law[second])

    def _tree(self, strengths: Floats, first: Ints, second: Ints, both: Floats, ties: Floats) -> _Tree:
        """The sets that arise when pairs merge, the strongest first, and their scores where they are peaks."""
        n = self.law.size
        parts, exponents = np.frexp(strengths)
        strengths = np.ldexp(np.round(parts * 2.0**40) / 2.0**40, exponents)  # ties must not hang on rounding
        used = np.flatnonzero(strengths > 0)
        used = used[np.argsort(-strengths[used], kind="stable")]
        up, when, size, name, edge, order = np.zeros((6, n), dtype=np.int64)
        above, begin = np.zeros((2, 2 * n), dtype=np.int64)
        sums, scores = np.zeros((2 * n, 6)), np.zeros(2 * n)
        sums[:n] = self.nodes
        merged = (up, when, size, name, np.zeros((n, 2), dtype=np.int64), edge)
        build = compile_functions({"build": components.build}, "build")
        pairs = (first, second, both, ties)
        sets = build(
            first[used], second[used], strengths[used], *pairs, self.least, *merged, sums, scores, above, begin, order
        )
        scores, above, begin = scores[:sets], above[:sets], begin[:sets]
        below = np.zeros(sets + 1)
        np.maximum.at(below, above, scores)  # above = -1 goes to the last place, which nobody asks for
        peaks = (scores > below[:-1]) & (scores >= np.append(scores, 0.0)[above])
        return _Tree(np.where(peaks, scores, 0.0), begin, begin + sums[:sets, COUNT].astype(np.int64), order)

    def improved(self, nodes: Ints) -> Ints:
        """The set after single nodes went in and out as long as that helped."""
        members = self.scratch[-1]
        members[: nodes.size] = nodes
        climb = compile_functions({"climb": components.climb}, "climb")
        pairs = (self.indptr, self.indices, self.both, self.ties)
        count = climb(*pairs, self.nodes, self.least, _PATIENCE, _WORK, *self.scratch, nodes.size)
        return np.sort(members[:count])

    def connected(self, nodes: Ints) -> list[Ints]:
        """The parts of a set between which the walk goes without leaving it: stray nodes are no part of a trap."""
        from scipy.sparse.csgraph import connected_components

        inside = self.adjacency[nodes][:, nodes] + self.flows[nodes][:, nodes]
        count, part = connected_components(inside, directed=False)
        return [nodes[part == number] for number in range(count)]

    def is_side(self, trap: Trap) -> bool:
        """Whether it is more than half of the nodes, and what it leaves out holds the walk about as long."""
        if 2 * len(trap.nodes) <= self.law.size:
            return False
        rest = np.delete(np.arange(self.law.size), np.array(trap.nodes))
        return trap.factor < _SIDES * self.trap(rest).factor

    def trap(self, nodes: Ints) -> Trap:
        """The set with its numbers, from sums without differences; without its time to escape."""
        inside = np.zeros(self.law.size, dtype=np.bool_)
        inside[nodes] = True
        rows, edges = self.flows[nodes], self.adjacency[nodes]
        stay = float(self.law[nodes].sum() / rows.data[~inside[rows.indices]].sum())
        cut = int((~inside[edges.indices]).sum())
        share, rest = float(self.target[nodes].sum()), float(self.target[~inside].sum())
        warranted = float(max((share + rest) / rest, edges.nnz / cut))
        return Trap(tuple(nodes.tolist()), stay, np.nan, share, warranted, stay / warranted)


def name_nodes(nodes: tuple[int, ...], most: int = 6) -> str:
    """Some nodes in words.

    Examples
    --------
    >>> name_nodes((3,)), name_nodes((0, 1)), name_nodes(tuple(range(9)))
    ('node 3', 'nodes 0, 1', 'nodes 0, 1, 2, 3, 4, 5, … (9 in all)')
    """
    listed = ", ".join(map(str, nodes[:most]))
    more = f", … ({len(nodes)} in all)" if len(nodes) > most else ""
    return f"node{'s' if len(nodes) > 1 else ''} {listed}{more}"
