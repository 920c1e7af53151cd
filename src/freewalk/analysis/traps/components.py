"""Merging sets of nodes and the lengths of their visits: the compiled part of the search for traps.

The caller allocates all arrays, since compiled functions do not allocate. A set is summarised by six numbers: its mass
under the stationary distribution, its share of the target, its sum of degrees, the number of edges that leave it, the
flow that leaves it, and its number of nodes.
"""

from typing import NamedTuple

from freewalk.linear.arrays import Floats, Ints

MASS, SHARE, DEGREES, CUT, OUTFLOW, COUNT = range(6)
_NEVER = 2**62  # when a root is merged into another
_ROUNDING = 1e-15  # outflows come from differences: below this fraction of the mass they may be pure rounding
_SHORT = 10.0  # shorter visits count far less


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
