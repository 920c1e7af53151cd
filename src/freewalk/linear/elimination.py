"""Linear systems of Markov chains, solved without subtraction.

A chain is given by its rates: the positive probabilities of going from one node to another. The diagonal follows from
them and is never read; 1 − P(v, v) would have lost its digits where a walk seldom leaves. Eliminating a node k adds
rate[i, k] · rate[k, j] / (total rate out of k) to rate[i, j]: sums and products of positive numbers, so every result
has nearly all its digits, whatever the orders of magnitude (Grassmann, Taksar, Heyman 1985; for systems with absorption
Alfa, Xue, Ye 2002). Ordinary elimination computes its pivots as differences, which lose all digits where walks are
entrapped.

Dense matrices are processed block by block, so that nearly all work is matrix products. If nodes can be ordered so that
all moves are short (rings, paths, narrow grids), a compiled banded elimination is used.
"""

from collections.abc import Callable

import numpy as np

from freewalk.linear import deadline
from freewalk.linear.arrays import Floats, Ints, Matrix

_BLOCK = 64  # nodes eliminated one by one
_HUB = 1000  # a node with this many neighbours, and a tenth of all nodes, is a hub
_LARGE = 1e200  # distributions that rise more steeply than floats can hold leave zeros behind, not infinities
#: Number of nodes up to which a dense elimination takes a fraction of a second, and nothing has to be compiled.
PLAIN = 1000
#: Number of multiplications that a banded elimination may take: a few seconds, and at most 2 GB.
ELIMINATION = 2e9


def eliminated(rates: Matrix, absorption: Floats, right: Floats, dense: bool) -> Floats | None:
    """As `absorbed`, for sparse rates: as a dense matrix, or as a narrow one; None if the nodes have no such order."""
    if dense:
        return absorbed(rates.toarray(), absorption, right)
    place, width = narrow_order(rates)
    return narrow_absorbed(rates, place, width, absorption, right) if place.size * width**2 <= ELIMINATION else None


def absorbed(rates: Floats, absorption: Floats, right: Floats) -> Floats:
    """Solve (diag(absorption + rates 1) − rates) X = right ≥ 0; for right = 1, X is the mean time to absorption."""
    n = len(rates)
    if n <= _BLOCK:
        return _absorbed_plain(rates.copy(), absorption.copy(), right.copy())
    deadline.check()
    half = n // 2
    across, back = rates[:half, half:], rates[half:, :half]
    wanted = np.column_stack([back, right[half:], absorption[half:]])
    below = absorbed(rates[half:, half:], absorption[half:] + back.sum(axis=1), wanted)
    back, rest, lost = below[:, :half], below[:, half:-1], below[:, -1]
    above = absorbed(
        rates[:half, :half] + across @ back, absorption[:half] + across @ lost, right[:half] + across @ rest
    )
    return np.concatenate([above, rest + back @ above])


def _absorbed_plain(rates: Floats, absorption: Floats, right: Floats) -> Floats:
    for last in range(len(rates) - 1, -1, -1):
        row, column = rates[last, :last], rates[:last, last]
        total = absorption[last] + row.sum()
        row /= total
        right[last] /= total
        rates[:last, :last] += column[:, None] * row
        absorption[:last] += column * (absorption[last] / total)
        right[:last] += column[:, None] * right[last]
    for node in range(1, len(rates)):
        right[node] += rates[node, :node] @ right[:node]
    return right


def hitting(rates: Floats, costs: Floats, ends: Ints | None = None) -> Floats:
    """H[i, j], the mean cost until a walk from i first reaches j, where each visit to v costs costs[v].

    With `ends`, j is a part: the nodes are ordered by part, and these are the ends of the parts.
    """
    ends = np.arange(1, len(rates) + 1) if ends is None else ends
    n, parts = len(rates), len(ends)
    if parts == 1:
        return np.zeros((n, 1))
    # Divide and conquer: the walk observed only at one half of the nodes is also a chain, with the cost of what happens
    # elsewhere added, and has the same H. The values for the other half then follow.
    result = np.empty((n, parts))
    middle = int(ends[parts // 2 - 1])
    first = slice(0, middle), slice(0, parts // 2), ends[: parts // 2]
    second = slice(middle, n), slice(parts // 2, parts), ends[parts // 2 :] - middle
    for (here, mine, inner), (there, _, _) in ((first, second), (second, first)):
        across, back = rates[here, there], rates[there, here]
        solved = absorbed(rates[there, there], back.sum(axis=1), np.column_stack([back, costs[there]]))
        back, spent = solved[:, :-1], solved[:, -1:]
        result[here, mine] = hitting(rates[here, here] + across @ back, costs[here] + (across @ spent)[:, 0], inner)
        result[there, mine] = spent + back @ result[here, mine]
    return result


def times_between(leaving: Matrix, ends: Ints | None = None) -> Floats:
    """The mean number of steps from every node to every other, or part; infinite beyond the range of floats."""
    # From the nodes that a walk changes to, with the durations of its stays as costs: long stays must not make rates so
    # small that they lose digits.
    rates = leaving.toarray()
    left = rates.sum(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        return hitting(rates / left[:, None], 1.0 / left, ends)


def dense_law(rates: Floats) -> Floats:
    """The stationary distribution of a chain, given its rates, which are overwritten."""
    n = len(rates)
    totals = np.ones(n)
    for end in range(n, 0, -_BLOCK):
        deadline.check()
        begin = max(end - _BLOCK, 0)
        for last in range(end - 1, max(begin, 1) - 1, -1):
            totals[last] = rates[last, :last].sum()
            share = rates[:last, last] / totals[last]
            rates[:last, begin:last] += share[:, None] * rates[last, begin:last]
            rates[begin:last, :begin] += share[begin:, None] * rates[last, :begin]
        # The rest of the matrix is updated with the whole block at once.
        shares = rates[:begin, begin:end] / totals[begin:end]
        rates[:begin, :begin] += shares @ rates[begin:end, :begin]
    law = np.ones(n)
    with np.errstate(over="ignore", invalid="ignore"):
        for node in range(1, n):
            law[node] = law[:node] @ rates[:node, node] / totals[node]
            if law[node] > _LARGE:
                law[: node + 1] /= _LARGE
    return _scaled(law, lambda node: rates[:node, node], totals)


def _scaled(law: Floats, column: Callable[[int], Floats], totals: Floats) -> Floats:
    """The distribution with this direction; where a part under- or overflowed, `column` has the rates to each node."""
    with np.errstate(over="ignore", invalid="ignore"):
        law = law / law.sum()
    if np.isfinite(law).all() and law.min() > 0:
        return np.asarray(law)
    # Everything after a valley that no float can hold is lost: once more, node by node with one exponent each.
    n = law.size
    mantissas, exponents = np.ones(n), np.zeros(n, dtype=np.int64)
    for node in range(1, n):
        parts, powers = np.frexp(column(node))  # from the first node with a rate to this one
        first = node - parts.size
        powers = powers + exponents[first:node]
        parts = parts * mantissas[first:node]
        highest = int(powers[parts > 0].max())
        total = float(np.ldexp(parts, np.maximum(powers - highest, -2000)).sum())
        one, power = np.frexp(totals[node])
        two, more = np.frexp(total / one)
        mantissas[node], exponents[node] = two, highest - power + more
    law = np.ldexp(mantissas, np.maximum(exponents - exponents.max(), -2000))
    return np.asarray(law / law.sum())


def narrow_order(leaving: Matrix) -> tuple[Ints, int]:
    """The positions of the nodes in an order with short moves, and the length of the longest move."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n, most = leaving.shape[0], int(np.diff(leaving.indptr).max(initial=0))
    if most > max(_HUB, n // 10):  # no order helps, and finding one takes long
        return np.arange(n), n - 1
    place = np.argsort(reverse_cuthill_mckee(leaving, symmetric_mode=True))
    longest = np.abs(np.repeat(place, np.diff(leaving.indptr)) - place[leaving.indices]).max(initial=0)
    return place, int(longest)


def narrow_law(leaving: Matrix, place: Ints, width: int) -> Floats:
    """The stationary distribution of a chain whose nodes have these positions."""
    law = np.ones(place.size)
    band, totals = _eliminate_narrow(leaving, place, width, np.zeros(place.size), np.zeros((place.size, 0)), law)

    def column(node: int) -> Floats:
        before = np.arange(max(0, node - width), node)
        return np.asarray(band[before, width + node - before])

    return np.asarray(_scaled(law, column, totals)[place])


def narrow_absorbed(leaving: Matrix, place: Ints, width: int, absorption: Floats, right: Floats) -> Floats:
    """As `absorbed`, for nodes with these positions."""
    sorted_absorption, sorted_right = np.empty_like(absorption), np.empty_like(right)
    sorted_absorption[place], sorted_right[place] = absorption, right
    _eliminate_narrow(leaving, place, width, sorted_absorption, sorted_right, np.zeros(0))
    return np.asarray(sorted_right[place])


def _eliminate_narrow(
    leaving: Matrix, place: Ints, width: int, absorption: Floats, right: Floats, law: Floats
) -> tuple[Floats, Floats]:
    """Eliminate; return the band and the total rate out of each node."""
    from freewalk.compiled.compiler import compile_functions

    band = np.zeros((place.size, 2 * width + 1))
    rows = np.repeat(place, np.diff(leaving.indptr))
    band[rows, place[leaving.indices] - rows + width] = leaving.data
    totals = np.ones(place.size)
    eliminate = compile_functions({"eliminate_band": eliminate_band}, "eliminate_band")
    eliminate(band, width, absorption, right, totals, law)
    return band, totals


def eliminate_band(band: Floats, width: int, absorption: Floats, right: Floats, totals: Floats, law: Floats) -> None:
    """Eliminate in place; band[i, width + j − i] is the rate from node i to node j. An empty `law` is not computed."""
    n, count = right.shape
    for last in range(n - 1, -1, -1):
        first = max(0, last - width)
        total = absorption[last]
        for to in range(first, last):
            total += band[last, width + to - last]
        if total > 0.0 or last > 0:  # all but the last node of a chain without absorption
            totals[last] = total
        for column in range(count):
            right[last, column] /= totals[last]
        for node in range(first, last):
            share = band[node, width + last - node] / totals[last]
            if share > 0.0:
                for to in range(first, last):
                    band[node, width + to - node] += share * band[last, width + to - last]
                absorption[node] += share * absorption[last]
                for column in range(count):
                    right[node, column] += band[node, width + last - node] * right[last, column]
    for node in range(1, n):
        first = max(0, node - width)
        for column in range(count):
            total = 0.0
            for before in range(first, node):
                total += band[node, width + before - node] * right[before, column]
            right[node, column] += total / totals[node]
        if law.size > 0:
            total = 0.0
            for before in range(first, node):
                total += law[before] * band[before, width + node - before]
            law[node] = total / totals[node]
            if law[node] > _LARGE:
                for before in range(node + 1):
                    law[before] /= _LARGE
