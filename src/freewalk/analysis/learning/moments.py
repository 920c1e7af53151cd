"""The second-moment recursion of a walk that learns least squares, as scalar code that is compiled.

With e = x − x*, the state has one row of numbers per node v: p(v) = P(v_t = v), then m(v) = E[e 1_v], then the upper
triangle of S(v) = E[e eᵀ 1_v]. One step maps each row by the update of its node, e ← B e + b, and then spreads the rows
by the moves of the kernel. Everything is linear in the state, so no sample is ever drawn. For a walk that remembers the
node it came from, read "pair of nodes" for "node".
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.analysis.chain.states import Turns
from freewalk.linear.arrays import Floats, Ints

Rows = tuple[NDArray[Any], NDArray[np.int32], Floats]  # where rows begin, columns, values

LANES = 32  # nodes processed side by side in vector registers


class LocalTerms(NamedTuple):
    """The local losses around the optimum."""

    features: Floats  # by sample
    residuals: Floats  # aᵀx* − y, by sample
    offsets: Ints  # the samples of a node
    optimum: Floats
    ridge: float
    hessians: Floats  # by node if a gradient takes several samples at once; otherwise of length 0
    gradients: Floats  # ∇f_v(x*), likewise; the factors of f_v are in the weights


class Spread(NamedTuple):
    """The moves of a kernel: two sparse matrices, powers of the uniform hop, and a law, each with its share by step."""

    first: Rows  # a transposed matrix, as are the others
    rest: Rows
    hop: Rows  # one uniform hop
    law: Floats  # of length 0 if no move draws from one
    messages: Floats  # (first | rest) × node: messages sent by a move from a node
    probes: Floats
    shares: Floats  # steps × (first, rest), or one row for all steps
    hops: Floats  # steps × (0, 1, …, longest): the probability of that many uniform hops
    drawn: Floats  # steps × 1: the probability of a draw from the law
    turns: Turns  # instead of all this but messages and shares, unless of length 0


class Scratch(NamedTuple):
    """Working memory."""

    rows: Floats  # for one node
    lanes: Floats  # for LANES nodes, number by number side by side; of length 0 if nodes are taken one by one


class Tally(NamedTuple):
    """Counts along the way."""

    visits: Floats  # expected visits by node
    sent: Floats  # expected messages and probes so far
    totals: Floats  # by mark: the state summed over the nodes
    traffic: Floats  # by mark: `sent`


def advance(
    terms: LocalTerms,
    weights: Floats,
    rates: Floats,
    local_steps: int,
    spread: Spread,
    tally: Tally,
    marks: Ints,
    states: Floats,
    scratch: Scratch,
    order: int,
) -> None:
    """Make one step for each of `rates`; `marks` counts from here.

    `states` holds the state and three spare arrays; after an even number of steps the state is the first of them, after
    an odd number the second. With `order` 1 the rows end with m, without S.
    """
    mark = 0
    for step in range(rates.size):
        now, later = states[step % 2], states[(step + 1) % 2]
        row = min(step, spread.shares.shape[0] - 1)
        count(spread, tally, row, now)
        together = weights.size // LANES * LANES if order == 2 and scratch.lanes.size > 0 else 0
        for first in range(0, together, LANES):
            learn_together(terms, weights, rates[step], local_steps, first, now, scratch.lanes)
        for v in range(together, weights.size):
            learn(terms, v, rates[step] * weights[v], local_steps, now[v], scratch.rows, order)
        spread_rows(spread, row, now, later, states[2], states[3])
        if mark < marks.size and marks[mark] == step + 1:
            for v in range(weights.size):
                for j in range(later.shape[1]):
                    tally.totals[mark, j] += later[v, j]
            tally.traffic[mark, 0], tally.traffic[mark, 1] = tally.sent[0], tally.sent[1]
            mark += 1


def count(spread: Spread, tally: Tally, row: int, state: Floats) -> None:
    """Add the expected visits, messages and probes of one step."""
    first, rest = spread.shares[row, 0], spread.shares[row, 1]
    for v in range(state.shape[0]):
        tally.visits[v] += state[v, 0]
        tally.sent[0] += state[v, 0] * (first * spread.messages[0, v] + rest * spread.messages[1, v])
        tally.sent[1] += state[v, 0] * (first * spread.probes[0, v] + rest * spread.probes[1, v])


def learn(terms: LocalTerms, v: int, step: float, local_steps: int, state: Floats, scratch: Floats, order: int) -> None:
    """Map the moments of one node by its local steps."""
    begin, end = terms.offsets[v], terms.offsets[v + 1]
    for _ in range(local_steps if end > begin else 0):  # a relay does not learn
        if terms.hessians.shape[0] > 0:
            learn_from_all(terms.hessians[v], terms.gradients[v], step, state, scratch, order)
        elif end - begin == 1:
            learn_from_one(terms, begin, step, state, scratch, order)
        else:
            # One sample, redrawn each time: the moments are the mean over the samples.
            old, mean = scratch[0], scratch[1]
            for j in range(state.size):
                old[j] = state[j]
                mean[j] = 0.0
            for sample in range(begin, end):
                for j in range(state.size):
                    state[j] = old[j]
                learn_from_one(terms, sample, step, state, scratch, order)
                for j in range(state.size):
                    mean[j] += state[j]
            for j in range(state.size):
                state[j] = mean[j] / (end - begin)


def learn_from_one(terms: LocalTerms, sample: int, step: float, state: Floats, scratch: Floats, order: int) -> None:
    """Map the moments by x ← x − step · (a (aᵀx − y) + ridge x): e ← (α I − step · a aᵀ) e + r a + t."""
    a = terms.features[sample]
    d = a.size
    p = state[0]
    alpha = 1.0 - step * terms.ridge
    r = -step * terms.residuals[sample]
    along, half, t = scratch[2], scratch[3], scratch[4]
    if order == 2:
        for i in range(d):
            along[i] = 0.0
        place = 1 + d
        for i in range(d):  # along = S a, where S is stored as its upper triangle
            total = state[place] * a[i]
            for j in range(1, d - i):
                total += state[place + j] * a[i + j]
                along[i + j] += state[place + j] * a[i]
            along[i] += total
            place += d - i
    overlap = 0.0
    for i in range(d):
        overlap += a[i] * state[1 + i]
    for i in range(d):
        t[i] = -step * terms.ridge * terms.optimum[i]
        image = alpha * state[1 + i] - step * overlap * a[i]
        shift = r * a[i] + t[i]
        state[1 + i] = image + p * shift
        half[i] = image + 0.5 * p * shift
    if order == 2:
        overlap = 0.0
        for i in range(d):
            overlap += a[i] * along[i]
        for i in range(d):
            along[i] = -alpha * step * along[i] + 0.5 * step * step * overlap * a[i] + r * half[i]
        place = 1 + d
        for i in range(d):
            for j in range(d - i):
                state[place + j] = alpha * alpha * state[place + j] + a[i] * along[i + j] + along[i] * a[i + j]
            if terms.ridge > 0.0:
                for j in range(d - i):
                    state[place + j] += t[i] * half[i + j] + half[i] * t[i + j]
            place += d - i


def learn_together(
    terms: LocalTerms, weights: Floats, rate: float, local_steps: int, first: int, states: Floats, lanes: Floats
) -> None:
    """Do `learn_from_one` for LANES nodes of one sample each, without ridge: every loop over them is vectorised."""
    d = terms.features.shape[1]
    size = d * (d + 1) // 2
    a, m, along, half = lanes[:d], lanes[d : 2 * d], lanes[2 * d : 3 * d], lanes[3 * d : 4 * d]
    p, step, r, overlap, s = lanes[4 * d], lanes[4 * d + 1], lanes[4 * d + 2], lanes[4 * d + 3], lanes[4 * d + 4 :]
    for lane in range(LANES):
        v = first + lane
        p[lane], step[lane] = states[v, 0], rate * weights[v]
        r[lane] = -step[lane] * terms.residuals[v]
        for i in range(d):
            a[i, lane], m[i, lane] = terms.features[v, i], states[v, 1 + i]
        for k in range(size):
            s[k, lane] = states[v, 1 + d + k]
    for _ in range(local_steps):
        along[:] = 0.0
        place = 0
        for i in range(d):
            multiply(s[place], a[i], along[i])
            for j in range(i + 1, d):
                multiply(s[place + j - i], a[j], along[i])
                multiply(s[place + j - i], a[i], along[j])
            place += d - i
        overlap[:] = 0.0
        for i in range(d):
            multiply(a[i], m[i], overlap)
        for i in range(d):
            for lane in range(LANES):
                image = m[i, lane] - step[lane] * overlap[lane] * a[i, lane]
                shift = p[lane] * r[lane] * a[i, lane]
                m[i, lane] = image + shift
                half[i, lane] = image + 0.5 * shift
        overlap[:] = 0.0
        for i in range(d):
            multiply(a[i], along[i], overlap)
        for i in range(d):
            for lane in range(LANES):
                twice = 0.5 * step[lane] * step[lane] * overlap[lane] * a[i, lane]
                along[i, lane] = twice - step[lane] * along[i, lane] + r[lane] * half[i, lane]
        place = 0
        for i in range(d):
            for j in range(i, d):
                for lane in range(LANES):
                    s[place, lane] += a[i, lane] * along[j, lane] + along[i, lane] * a[j, lane]
                place += 1
    for lane in range(LANES):
        for i in range(d):
            states[first + lane, 1 + i] = m[i, lane]
        for k in range(size):
            states[first + lane, 1 + d + k] = s[k, lane]


def multiply(one: Floats, other: Floats, total: Floats) -> None:
    """Add one · other to the total, lane by lane."""
    for lane in range(LANES):
        total[lane] += one[lane] * other[lane]


def learn_from_all(hessian: Floats, gradient: Floats, step: float, state: Floats, scratch: Floats, order: int) -> None:
    """Map the moments by x ← x − step · ∇f_v(x), with all samples of the node at once."""
    d = gradient.size
    p = state[0]
    image = scratch[3, :d]
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += hessian[i, j] * state[1 + j]
        image[i] = state[1 + i] - step * total
    if order == 2:
        place = 1 + d
        for i in range(d):  # the rows of scratch hold S, then B S
            for j in range(d - i):
                scratch[6 + i, i + j] = state[place + j]
                scratch[6 + i + j, i] = state[place + j]
            place += d - i
        for j in range(d):
            for i in range(d):
                total = 0.0
                for k in range(d):
                    total += hessian[i, k] * scratch[6 + k, j]
                scratch[2, i] = scratch[6 + i, j] - step * total
            for i in range(d):
                scratch[6 + i, j] = scratch[2, i]
        place = 1 + d
        for i in range(d):
            for j in range(i, d):
                total = 0.0
                for k in range(d):
                    total += scratch[6 + i, k] * hessian[k, j]
                value = scratch[6 + i, j] - step * total
                value -= step * (image[i] * gradient[j] + gradient[i] * image[j])
                state[place + j - i] = value + p * step * step * gradient[i] * gradient[j]
            place += d - i
    for i in range(d):
        state[1 + i] = image[i] - p * step * gradient[i]


def spread_rows(spread: Spread, row: int, state: Floats, out: Floats, one: Floats, two: Floats) -> None:
    """out(u) = Σ_v P(v, u) state(v), jumps hop by hop; `one` and `two` are spares."""
    if spread.turns.ahead.size > 0:
        turn(spread.turns, state, out, one[0])
        return
    longest = spread.hops.shape[1] - 1
    # Horner's rule, (((c_r s) W + c_{r−1} s) W + …) W: jumps of all lengths together take as many hops as the longest.
    source, factor = state, spread.hops[row, longest]
    for hop in range(longest, 1, -1):
        target = one if (longest - hop) % 2 == 0 else two
        for u in range(state.shape[0]):
            fill(spread.hops[row, hop - 1], state[u], target[u])
            add(spread.hop, u, factor, source, target[u])
        source, factor = target, 1.0
    for u in range(state.shape[0]):
        fill(spread.hops[row, 0], state[u], out[u])
        add(spread.first, u, spread.shares[row, 0], state, out[u])
        add(spread.rest, u, spread.shares[row, 1], state, out[u])
        if longest > 0:
            add(spread.hop, u, factor, source, out[u])
    if spread.law.size > 0:
        draw(spread.law, spread.drawn[row, 0], state, out)


def turn(turns: Turns, state: Floats, out: Floats, total: Floats) -> None:
    """One step of pairs of nodes: out(i, j) = P_j Σ_{k ≠ j} min(g_k, g_j) state(k, i) + keep_j state(j, i)."""
    begins, ahead, shares, gains, keeps = turns
    for i in range(begins.size - 1):
        fill(0.0, total, total)
        for pair in range(begins[i], begins[i + 1]):  # from those with a smaller g, by their own
            share, gain, keep, now, then = shares[pair], gains[pair], keeps[pair], state[pair], out[ahead[pair]]
            for j in range(total.size):
                then[j] = share * total[j] + keep * now[j]
                total[j] += gain * now[j]
        fill(0.0, total, total)
        for pair in range(begins[i + 1] - 1, begins[i] - 1, -1):  # from those with a larger g, by this one
            share, now, then = shares[pair] * gains[pair], state[pair], out[ahead[pair]]
            for j in range(total.size):
                then[j] += share * total[j]
                total[j] += now[j]


def fill(share: float, source: Floats, target: Floats) -> None:
    """Write share · source."""
    for j in range(source.size):
        target[j] = share * source[j]


def add(matrix: Rows, u: int, share: float, source: Floats, target: Floats) -> None:
    """Add share · (row u of matrix @ source); a matrix without values is 0."""
    begins, columns, values = matrix
    if values.size > 0:
        place, end = begins[u], begins[u + 1]
        while place + 4 <= end:  # four rows at a time: the target is read and written once for all of them
            first, second = source[columns[place]], source[columns[place + 1]]
            third, fourth = source[columns[place + 2]], source[columns[place + 3]]
            one, two = share * values[place], share * values[place + 1]
            three, four = share * values[place + 2], share * values[place + 3]
            for j in range(target.size):
                target[j] += (one * first[j] + two * second[j]) + (three * third[j] + four * fourth[j])
            place += 4
        while place < end:
            v, value = columns[place], share * values[place]
            for j in range(target.size):
                target[j] += value * source[v, j]
            place += 1


def draw(law: Floats, share: float, state: Floats, out: Floats) -> None:
    """Add share · law ⊗ (the sum of state)."""
    for j in range(state.shape[1]):
        total = 0.0
        for v in range(state.shape[0]):
            total += state[v, j]
        for u in range(state.shape[0]):
            out[u, j] += share * law[u] * total
