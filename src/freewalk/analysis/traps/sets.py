"""Traps: sets of nodes to which a walk keeps returning, far more often than the uniform walk does."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from freewalk.analysis.chain.chain import check, check_constant
from freewalk.analysis.traps.returns import Returns
from freewalk.compiled.compiler import compile_functions
from freewalk.designs import Metropolis
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.linear import deadline
from freewalk.linear.arrays import Floats, Ints, Matrix
from freewalk.linear.elimination import PLAIN
from freewalk.linear.stationary import flows_of, leaving_rates, totals_of

#: A trap holds the walk at least this many times as long as it holds the uniform walk.
FACTOR = 10.0

_OVERLAPPING, _APART = 30, 60  # candidates that may overlap others, and that do not, on small graphs
_FEW = 12  # candidates on larger ones
_LOOKED_AT = 20  # times the number of nodes: how many nodes of candidates are examined
_EVEN = 1e-9  # rounding, in comparing a share with that of the nodes

# A set of nodes is summarised by six numbers: its mass under the stationary distribution, its share of the target, its
# sum of degrees, the number of edges that leave it, the flow that leaves it, and its number of nodes.
MASS, SHARE, DEGREES, CUT, OUTFLOW, COUNT = range(6)
_NEVER = 2**62  # when a root is merged into another
_ROUNDING = 1e-15  # outflows come from differences: below this fraction of the mass they may be pure rounding
_SHORT = 10.0  # shorter visits count far less


@dataclass(frozen=True)
class Trap:
    """A set of nodes, and how it holds the walk.

    Sets are compared by *memory*: excess / (1 − share), the number of updates after which the walk has forgotten
    whether it was in the set. It is 1 for nodes drawn independently, whatever the set.

    Attributes
    ----------
    nodes
        The set.
    share
        The long-run fraction of the walk's updates in the set.
    excess
        The updates beyond that share which the walk spends there once it is there, including returns: `excess_visits`.
    uniform
        The excess of the uniform walk, `Metropolis(power=0)`.
    memory
        See above.
    factor
        The memory of the walk divided by that of the uniform walk.
    lost
        The memory of the walk minus that of the uniform walk, in updates.
    names
        The names of the nodes; empty if the graph has none.
    """

    nodes: tuple[int, ...]
    share: float
    excess: float
    uniform: float
    memory: float
    factor: float
    lost: float
    names: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The set in words: the names of its nodes, or their numbers."""
        return name_nodes(self.names or self.nodes)

    def __str__(self) -> str:
        """The trap in a sentence."""
        return (
            f"{self.where}: once there, the walk spends {count_of(self.excess)} updates beyond its share "
            f"of {100 * self.share:.3g} %, the uniform walk {count_of(self.uniform)}"
        )


def find_traps(kernel: Kernel, factor: float = FACTOR, least: float | None = None, most: int = 10) -> list[Trap]:
    """Find the sets that hold a walk `factor` times as long as they hold the uniform walk, and `least` updates longer.

    The duration is measured by `excess_visits`, so returns count: on a sparse graph a walk comes back. Any walk leaves
    many sets of a ring slowly; what makes a trap is that the uniform walk on the same graph is not held there. The walk
    must also visit its nodes more often than the average node; otherwise both sides of a border would be traps.

    Candidates are found by the length of single visits, which is fast: among nested sets that arise when nodes join,
    pair by pair, where the target per degree is highest, where single stays are longest, and where the flows are
    strongest relative to the lighter, or the heavier, of the two nodes. The best candidates are then judged.

    Parameters
    ----------
    kernel
        A kernel that does not change with time.
    factor
        The minimum ratio to the memory of the uniform walk, see `Trap`.
    least
        The minimum difference in updates; None means the number of nodes. With the default values, importance sampling
        needs about twice the updates it would need if the graph slowed it down no more than it slows down the uniform
        walk.
    most
        The maximum number of traps to return.

    Returns
    -------
    list
        Traps that do not overlap, the worst first. This is a search, not a proof: the numbers of a trap are exact, but
        another set may be worse. Above a thousand nodes only a dozen candidates are judged.

    Raises
    ------
    AnalysisError, KernelError
        If the kernel changes with time, draws from a distribution, or is reducible, or another argument is invalid.

    Examples
    --------
    >>> import freewalk as fw
    >>> importance = [100.0, 100.0] + 98 * [1.0]
    >>> kernel = fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(100), importance)
    >>> for trap in find_traps(kernel):
    ...     print(trap)
    nodes 0, 1: once there, the walk spends 364 updates beyond its share of 67.1 %, the uniform walk 32
    >>> find_traps(fw.designs.Metropolis(power=1).kernel(fw.graphs.complete(100), importance))
    []
    """
    check_constant("find_traps", kernel, last_node=True)
    factor = check.real("find_traps", "factor", factor, above=1.0)
    least = check.real("find_traps", "least", kernel.graph.n if least is None else least, 1.0)
    most = check.whole("find_traps", "most", most, 1)
    return traps_among(held_sets("find_traps", kernel, most)[0], factor, least, most)


def traps_among(found: list[Trap], factor: float, least: float, most: int) -> list[Trap]:
    """Of sets sorted from the worst, those that are traps and do not overlap a worse one."""
    kept: list[Trap] = []
    taken: set[int] = set()
    for trap in found:
        if len(kept) < most and trap.factor >= factor and trap.lost >= least and taken.isdisjoint(trap.nodes):
            kept.append(trap)
            taken.update(trap.nodes)
    return kept


def held_sets(who: str, kernel: Kernel, most: int = 10) -> tuple[list[Trap], int]:
    """The sets that may hold a walk, the worst first, traps or not; and how many there was no time to judge."""
    if not kernel.is_local:
        raise AnalysisError(f"{who}: {kernel.label} draws from a distribution over all nodes, expected a walk")
    walk = Returns(who, kernel, many=True)
    uniform = Returns(who, Metropolis(power=0.0).kernel(kernel.graph), many=True)
    # The flows between nodes, by which candidates are found, are those of the walk without memory.
    search = _Search(kernel, leaving_rates(kernel.without_memory().matrix()), walk.law)
    found: list[Trap] = []
    candidates = search.candidates(3 * most)
    for place, nodes in enumerate(candidates):
        try:
            deadline.check()
            found.append(judged(walk, uniform, nodes))
        except AnalysisError:  # a set whose excess has no digits left cannot be judged
            continue
        except deadline.OutOfTime:
            if not found:
                raise
            return sorted(found, key=_rank), len(candidates) - place
    return sorted(found, key=_rank), 0


def judged(walk: Returns, uniform: Returns, nodes: Ints) -> Trap:
    """A set with its numbers, whether or not it is a trap; errors are those of `excess_visits`."""
    excess, even, graph = walk.excess(nodes), uniform.excess(nodes), walk.kernel.graph
    memory, plain = (value / float(np.delete(one.law, nodes).sum()) for value, one in ((excess, walk), (even, uniform)))
    return Trap(
        nodes=tuple(nodes.tolist()),
        share=float(walk.law[nodes].sum()),
        excess=excess,
        uniform=even,
        memory=memory,
        factor=memory / plain if plain > 0 else np.inf,
        lost=memory - plain,
        names=() if graph.node_names is None else tuple(graph.node_name(node) for node in nodes),
    )


def _rank(trap: Trap) -> tuple[bool, float, int, int]:
    """The worst first. Nodes that also hold the uniform walk add to what is lost, but are hardly part of a trap."""
    caused = trap.factor >= FACTOR
    plain = trap.memory - trap.lost if caused else 0.0
    return not caused, (FACTOR - 1.0) * plain - trap.lost, len(trap.nodes), trap.nodes[0]


class Links(NamedTuple):
    """The edges along which sets merge, strongest first."""

    first: Ints
    second: Ints
    strengths: Floats


class Pairs(NamedTuple):
    """All pairs of nodes with a flow or an edge between them."""

    first: Ints
    second: Ints
    flows: Floats  # sum of both directions
    ties: Floats  # 1.0 for an edge of the graph


class Forest(NamedTuple):
    """How n nodes merge: by node, by merge, and by set (the nodes, then one set per merge)."""

    up: Ints  # by node: the node into whose set it was merged
    when: Ints  # by node: the merge in which this happened
    size: Ints  # by node: the number of nodes in its set
    name: Ints  # by node: the number of its set
    edge: Ints  # by merge: its link
    children: Ints  # by merge: the two sets it joins
    sums: Floats  # by set: the six numbers; those of its node for the first n, 0 for the others
    scores: Floats  # by set
    above: Ints  # by set: the next larger complete set
    begin: Ints  # by set: where its nodes begin in `order`
    order: Ints


class _Search:
    """Candidates, by the length of their visits."""

    def __init__(self, kernel: Kernel, leaving: Matrix, law: Floats) -> None:
        from scipy.sparse import csr_array

        self.law, self.target = law, np.asarray(kernel.target)
        flows = flows_of(leaving, law)
        # One pattern for flows and edges: flows in both directions are the real parts, edges the imaginary ones.
        pairs = csr_array(flows + flows.T + kernel.graph.adjacency() * np.complex128(1j))
        rows = np.repeat(np.arange(law.size), np.diff(pairs.indptr))
        half = rows < pairs.indices
        ends = rows[half].astype(np.int64), pairs.indices[half].astype(np.int64)
        self.pairs = Pairs(*ends, pairs.data.real[half].copy(), pairs.data.imag[half].copy())
        degrees = kernel.graph.degrees.astype(np.float64)
        self.nodes = np.column_stack([law, self.target, degrees, degrees, law * totals_of(leaving), np.ones(law.size)])

    def candidates(self, most: int) -> list[Ints]:
        """The best sets of several families, and the best of those that do not overlap."""
        n = self.law.size
        most_overlapping, most_apart = (_OVERLAPPING, max(_APART, most)) if n <= PLAIN else (_FEW // 3, _FEW)
        forests = [self._forest(strengths) for strengths in self._strengths()]
        scores = np.concatenate([forest.scores for forest in forests])
        offsets = np.cumsum([0, *(forest.scores.size for forest in forests)])
        ranked = np.flatnonzero(scores > 0)
        taken = np.zeros(n, dtype=np.bool_)
        chosen: dict[bytes, Ints] = {}
        apart, budget = 0, _LOOKED_AT * n + 10**6
        for place in ranked[np.argsort(-scores[ranked], kind="stable")]:
            which = int(np.searchsorted(offsets, place, side="right")) - 1
            forest, s = forests[which], place - offsets[which]
            count = int(forest.sums[s, COUNT])
            budget -= count
            if budget < 0 or apart >= most_apart:
                break
            nodes = np.sort(forest.order[forest.begin[s] : forest.begin[s] + count])
            alone = not taken[nodes].any()
            if (alone or len(chosen) - apart < most_overlapping) and nodes.tobytes() not in chosen:
                chosen[nodes.tobytes()] = nodes
                apart += alone
                taken[nodes] = True
        return list(chosen.values())

    def _strengths(self) -> Iterator[Floats]:
        """By family: the pairs along which sets merge first; 0 means never."""
        first, second, both, ties = self.pairs
        height = self.target / self.nodes[:, DEGREES]
        yield np.minimum(height[first], height[second]) * ties
        height = self.law / self.nodes[:, OUTFLOW]
        yield np.minimum(height[first], height[second]) * (both > 0)
        yield both / np.minimum(self.law[first], self.law[second])
        yield both / np.maximum(self.law[first], self.law[second])

    def _forest(self, strengths: Floats) -> Forest:
        """The sets that arise when pairs merge, the strongest first; only peaks that can be traps keep their scores."""
        n = self.law.size
        parts, exponents = np.frexp(strengths)
        strengths = np.ldexp(np.round(parts * 2.0**40) / 2.0**40, exponents)  # ties must not depend on rounding
        used = np.flatnonzero(strengths > 0)
        used = used[np.argsort(-strengths[used], kind="stable")]
        up, when, size, name, edge, order = np.zeros((6, n), dtype=np.int64)
        above, begin = np.zeros((2, 2 * n), dtype=np.int64)
        children, sums, scores = np.zeros((n, 2), dtype=np.int64), np.zeros((2 * n, 6)), np.zeros(2 * n)
        sums[:n] = self.nodes
        forest = Forest(up, when, size, name, edge, children, sums, scores, above, begin, order)
        links = Links(self.pairs.first[used], self.pairs.second[used], strengths[used])
        sets = compile_functions({"build": build}, "build")(links, self.pairs, forest)
        scores, above = scores[:sets], above[:sets]
        below = np.zeros(sets + 1)
        np.maximum.at(below, above, scores)  # above = -1 writes to the last place, which is never read
        peaks = (scores > below[:-1]) & (scores >= np.append(scores, 0.0)[above])
        # The relevant side of a border is the one with more than its share, or the smaller one.
        shares, counts = sums[:sets, MASS], sums[:sets, COUNT]
        even = np.where(2 * counts > n, 1.0 + _EVEN, 1.0 - _EVEN)
        relevant = (shares * n >= even * counts) & (counts < n)
        return forest._replace(scores=np.where(peaks & relevant, scores, 0.0))


# Compiled: the caller allocates all arrays.


def rate(sums: Floats) -> float:
    """Visit length relative to what the set's share of the target, or its edges, would warrant; 0 if nothing leaves."""
    if sums[CUT] <= 0.0:
        return 0.0
    stay = sums[MASS] / max(sums[OUTFLOW], _ROUNDING * sums[MASS])
    warranted = max(1.0 / max(1.0 - sums[SHARE], _ROUNDING), sums[DEGREES] / sums[CUT])
    value: float = stay / warranted * min(1.0, stay / _SHORT) ** 4
    return value


def merge(links: Links, forest: Forest) -> int:
    """Join the ends of one link after another; merge k makes the set n + k from two sets. Returns the number of merges.

    Paths are not compressed: sets join by size, so they are short, and the path up from a node shows when it joined
    whom.
    """
    up, when, size, name = forest.up, forest.when, forest.size, forest.name
    n, merges = up.size, 0
    for v in range(n):
        up[v], when[v], size[v], name[v] = v, _NEVER, 1, v
    for e in range(links.first.size):
        a, b = links.first[e], links.second[e]
        while up[a] != a:
            a = up[a]
        while up[b] != b:
            b = up[b]
        if a != b:
            if size[a] < size[b]:
                a, b = b, a
            up[b], when[b] = a, merges
            size[a] += size[b]
            forest.children[merges, 0], forest.children[merges, 1] = name[a], name[b]
            name[a], forest.edge[merges] = n + merges, e
            merges += 1
    return merges


def build(links: Links, pairs: Pairs, forest: Forest) -> int:
    """Merge, sum and score all sets on the way; those in the middle of a tie score 0. Returns the number of sets."""
    up, when, children, sums = forest.up, forest.when, forest.children, forest.sums
    above, begin = forest.above, forest.begin
    n, merges = up.size, merge(links, forest)
    for i in range(pairs.first.size):
        a, b, joined = pairs.first[i], pairs.second[i], -1
        while a != b:  # climb until they meet: the last step up is the merge that joined them
            if when[a] > when[b]:
                a, b = b, a
            joined = when[a]
            if joined == _NEVER:
                break
            a = up[a]
        if joined != _NEVER:
            sums[n + joined, OUTFLOW] -= pairs.flows[i]
            sums[n + joined, CUT] -= 2.0 * pairs.ties[i]
    for k in range(merges):
        for column in range(6):
            sums[n + k, column] += sums[children[k, 0], column] + sums[children[k, 1], column]
    for s in range(n + merges):
        forest.scores[s], above[s], begin[s] = rate(sums[s]), -1, -1
    free = 0
    for k in range(merges - 1, -1, -1):
        s = n + k
        if begin[s] < 0:
            begin[s] = free
            free += int(sums[s, COUNT])
        # A plateau is one set: its intermediate states depend on the numbering of the nodes.
        whole = above[s] < 0 or links.strengths[forest.edge[k]] > links.strengths[forest.edge[above[s] - n]]
        a, b = children[k, 0], children[k, 1]
        begin[a], begin[b] = begin[s], begin[s] + int(sums[a, COUNT])
        above[a] = above[b] = s
        if not whole:
            forest.scores[s] = 0.0
            above[a] = above[b] = above[s]
    for v in range(n):
        if begin[v] < 0:
            begin[v] = free
            free += 1
        forest.order[begin[v]] = v
    return n + merges


def count_of(updates: float) -> str:
    """A number of updates as people write it, such as 29,905 or 8.6."""
    return f"{updates:,.0f}" if updates >= 10 else f"{updates:.2g}"


def name_nodes(nodes: Sequence[int] | Sequence[str], most: int = 6) -> str:
    """Some nodes in words, given by number or by name: "nodes 0, 1, 2, … (9 in all)"."""
    listed = ", ".join(textwrap.shorten(str(node), 40, placeholder=" …") for node in nodes[:most])
    more = f", … ({len(nodes)} in all)" if len(nodes) > most else ""
    return f"node{'s' if len(nodes) > 1 else ''} {listed}{more}"
