"""Sets of nodes that merge and grow, with what their visits last: the compiled part of the search for traps.

All arrays are made by the caller, since compiled functions do not allocate. A set is summed up by six numbers: its mass
under the stationary law, its share of the target, its sum of degrees, the edges that leave it, the flow that leaves it,
and its number of nodes.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MASS, SHARE, DEGREES, CUT, OUTFLOW, COUNT = range(6)
_NEVER = 2**62  # when a root is merged into another
_ROUNDING = 1e-15  # outflows come from differences: less than this part of the mass may be nothing but rounding


def rate(sums: Floats, least: float) -> float:
    """The factor of a set, far less where a visit lasts less than `least`; 0 for a set that nothing leaves."""
    if sums[CUT] <= 0.0:
        return 0.0
    stay = sums[MASS] / max(sums[OUTFLOW], _ROUNDING * sums[MASS])
    warranted = max(1.0 / max(1.0 - sums[SHARE], _ROUNDING), sums[DEGREES] / sums[CUT])
    value: float = stay / warranted * min(1.0, stay / least) ** 4
    return value


def merge(
    first: Ints,
    second: Ints,
    up: Ints,
    when: Ints,
    size: Ints,
    name: Ints,
    children: Ints,
    edge: Ints,
) -> int:
    """Join the ends of one edge after another; merge k makes the set n + k of two sets. Returns how many merges.

    Paths are not compressed: sets join by size, so they are short, and the way from a node up says when it joined whom.
    """
    n, merges = up.size, 0
    for e in range(first.size):
        a, b = first[e], second[e]
        while up[a] != a:
            a = up[a]
        while up[b] != b:
            b = up[b]
        if a != b:
            if size[a] < size[b]:
                a, b = b, a
            up[b], when[b] = a, merges
            size[a] += size[b]
            children[merges, 0], children[merges, 1] = name[a], name[b]
            name[a], edge[merges] = n + merges, e
            merges += 1
    return merges


def build(
    first: Ints,  # the edges along which sets merge, strongest first
    second: Ints,
    strengths: Floats,
    rows: Ints,  # all pairs of nodes with a flow or an edge between them
    columns: Ints,
    flows: Floats,  # both ways together
    ties: Floats,  # 1.0 for an edge of the graph
    least: float,
    up: Ints,
    when: Ints,
    size: Ints,
    name: Ints,
    children: Ints,
    edge: Ints,
    sums: Floats,  # by set: of its node for the first n, 0 for the others
    scores: Floats,
    above: Ints,  # by set: the next larger one that is complete
    begin: Ints,  # by set: where its nodes begin in `order`
    order: Ints,
) -> int:
    """Merge, sum up and score all sets on the way; those in the middle of a tie score 0. Returns how many sets."""
    n = up.size
    for v in range(n):
        up[v], when[v], size[v], name[v] = v, _NEVER, 1, v
    merges = merge(first, second, up, when, size, name, children, edge)
    for i in range(rows.size):
        a, b, joined = rows[i], columns[i], -1
        while a != b:  # climb until they meet: the last step up is the merge that joined them
            if when[a] > when[b]:
                a, b = b, a
            joined = when[a]
            if joined == _NEVER:
                break
            a = up[a]
        if joined != _NEVER:
            sums[n + joined, OUTFLOW] -= flows[i]
            sums[n + joined, CUT] -= 2.0 * ties[i]
    for k in range(merges):
        for column in range(6):
            sums[n + k, column] += sums[children[k, 0], column] + sums[children[k, 1], column]
    for s in range(n + merges):
        scores[s], above[s], begin[s] = rate(sums[s], least), -1, -1
    free = 0
    for k in range(merges - 1, -1, -1):
        s = n + k
        if begin[s] < 0:
            begin[s] = free
            free += int(sums[s, COUNT])
        # A plateau is one set: what it is halfway depends on how the nodes are numbered.
        whole = above[s] < 0 or strengths[edge[k]] > strengths[edge[above[s] - n]]
        a, b = children[k, 0], children[k, 1]
        begin[a], begin[b] = begin[s], begin[s] + int(sums[a, COUNT])
        above[a] = above[b] = s
        if not whole:
            scores[s] = 0.0
            above[a] = above[b] = above[s]
    for v in range(n):
        if begin[v] < 0:
            begin[v] = free
            free += 1
        order[begin[v]] = v
    return n + merges


def move(
    v: int,
    indptr: Ints,
    indices: Ints,
    flows: Floats,
    ties: Floats,
    nodes: Floats,
    sums: Floats,
    inside: Flags,
    pull: Floats,
    tied: Floats,
    seen: Flags,
    touched: Ints,
    number: int,
) -> int:
    """Put a node into the set, or out of it; returns how many nodes are in the set or next to it."""
    sign = -1.0 if inside[v] else 1.0
    trial(v, nodes, sums, inside, pull, tied, sums)
    inside[v] = not inside[v]
    if not seen[v]:
        seen[v], touched[number] = True, v
        number += 1
    for i in range(indptr[v], indptr[v + 1]):
        u = indices[i]
        pull[u] += sign * flows[i]
        tied[u] += sign * ties[i]
        if not seen[u]:
            seen[u], touched[number] = True, u
            number += 1
    return number


def trial(v: int, nodes: Floats, sums: Floats, inside: Flags, pull: Floats, tied: Floats, result: Floats) -> None:
    """The sums of the set with a node put into it, or out of it."""
    sign = -1.0 if inside[v] else 1.0
    for column in range(6):
        result[column] = sums[column] + sign * nodes[v, column]
    result[OUTFLOW] -= sign * pull[v]
    result[CUT] -= sign * 2.0 * tied[v]


def climb(
    indptr: Ints,
    indices: Ints,
    flows: Floats,
    ties: Floats,
    nodes: Floats,  # the sums of single nodes
    least: float,
    patience: int,
    work: int,
    sums: Floats,
    other: Floats,
    inside: Flags,  # the scratch: all False or 0 before and after
    seen: Flags,
    locked: Flags,
    pull: Floats,
    tied: Floats,
    touched: Ints,
    moved: Ints,
    members: Ints,
    count: int,
) -> int:
    """Improve a set by single nodes that go in or out; returns how many nodes the result has, in `members`.

    As Kernighan and Lin do: always the best move, even for the worse, no node twice, until nothing better came for
    `patience` moves; then back to the best, and again while that helps.
    """
    number = 0
    sums[:] = 0.0
    for i in range(count):
        number = move(members[i], indptr, indices, flows, ties, nodes, sums, inside, pull, tied, seen, touched, number)
    best, better, n = rate(sums, least), True, inside.size
    while better and work > 0:
        better, moves, kept = False, 0, 0
        while moves - kept < patience and work > 0:
            work -= number
            chosen, highest = -1, 0.0
            for i in range(number):
                v = touched[i]
                after = sums[COUNT] + (-1.0 if inside[v] else 1.0)
                if locked[v] or after < 0.5 or after > n - 0.5:
                    continue
                trial(v, nodes, sums, inside, pull, tied, other)
                value = rate(other, least)
                if value > highest:
                    chosen, highest = v, value
            if chosen < 0:
                break
            number = move(chosen, indptr, indices, flows, ties, nodes, sums, inside, pull, tied, seen, touched, number)
            locked[chosen], moved[moves] = True, chosen
            moves += 1
            if highest > best * (1.0 + 1e-9):
                best, better, kept = highest, True, moves
        for i in range(moves - 1, -1, -1):
            locked[moved[i]] = False
            if i >= kept:
                number = move(
                    moved[i], indptr, indices, flows, ties, nodes, sums, inside, pull, tied, seen, touched, number
                )
    count = 0
    for i in range(number):
        v = touched[i]
        if inside[v]:
            members[count] = v
            count += 1
        inside[v], seen[v], pull[v], tied[v] = False, False, 0.0, 0.0
    return count
