"""One step of a token that remembers, compiled as those of `moves_and_messages.py` are.

`remembered_move` is replaced at build time by that of the kernel's memory; each returns the end, the outcome there that
leads back, the models sent and the nodes asked for their counters. Powers are products in a fixed order, weights are
added as whole numbers, and no product is added to anything, which a graphics card would round once instead of twice: so
every machine takes the same path. Nothing that a step decides is a branch: nothing could predict it.
"""

from typing import Any

import numpy as np

from freewalk.rng import HALF, LAST, LOW, accepts, scaled
from freewalk.runtimes.step.arrays import RATIO, ROWS
from freewalk.runtimes.step.moves_and_messages import choose, edge_drawn, search, tail_of

NOWHERE = LAST  # no outcome: it is not known where the token came from
ROOTS = True  # compiled in: whether powers are halves, since a processor would compute roots in any case
SHORT = 8  # outcomes that are compared one by one
LONGEST = 16  # outcomes of rows that lanes draw from together; outcomes are followed by as many more
ONE = np.uint64(1)
WHOLE = 2.0**62  # the most that the weights of a row add up to
ALL_WORDS = 2.0**64


def remembered_move(network: Any, route: Any, walkers: Any, scratch: Any, at: Any, decision: Any, first: Any) -> Any:
    """Replaced at build time by one of those below."""
    return at.node, at.back, 0, 0


def no_step_back(network: Any, route: Any, walkers: Any, scratch: Any, at: Any, decision: Any, first: Any) -> Any:
    """A step that avoids the outcome `back`; the formula is in `LocalRow.step`."""
    back, others, draw = at.back, network.others, first
    remembers = (back != NOWHERE) & (decision < route.recalls)
    if remembers:
        low = network.row_starts[back]
        width = network.row_ends[0, back] - low
        draw = scaled(first, LAST - width)
        draw += choose(draw >= low, width, np.uint64(0))
    outcome = drawn(network.row_ends, network.outcomes[at.node], draw)
    if remembers:  # where stepping back is the only outcome, nothing is accepted: 0 / 0 is not a number
        taken = accepts(decision, np.float64(route.recalls), others[outcome], others[back])
        outcome = choose(taken, outcome, back)
    end = network.row_indices[outcome]
    return end, network.back[outcome], np.int64(end != at.node), 0


def self_repellent(network: Any, route: Any, walkers: Any, scratch: Any, at: Any, decision: Any, first: Any) -> Any:
    """A draw from the row, each outcome weighted by (least / relative visits)^alpha, which overflows nowhere."""
    start, count = network.outcomes[at.node] >> HALF, network.outcomes[at.node] & LOW
    least = visited(network, walkers, at, network.row_indices[start])
    for place in range(ONE, count):
        least = min(least, visited(network, walkers, at, network.row_indices[start + place]))
    total = np.uint64(0)
    for place in range(count):
        total += weight(network, route, walkers, at, start + place, least)
        keep(scratch, place, total)
    sought = scaled(first, total)
    chosen, total = start, np.uint64(0)
    for place in range(count - ONE):
        total = total_again(network, route, walkers, scratch, at, start, place, least, total)
        chosen += np.uint64(sought >= total)
    end = network.row_indices[chosen]
    stays = np.int64(network.row_indices[start + count - ONE] == at.node)
    return end, at.back, np.int64(end != at.node), np.int64(count) - stays


def history_driven(network: Any, route: Any, walkers: Any, scratch: Any, at: Any, decision: Any, first: Any) -> Any:
    """A proposal, accepted by the ratio of the design and by the relative visits of both ends."""
    quotient = 1.0
    if network.moves[0, ROWS] >= 0:
        end = network.row_indices[drawn(network.row_ends, network.outcomes[at.node], first)]
    else:
        end = tail_of(network, edge_drawn(network, at.node, first))
        ratio = network.moves[0, RATIO]
        if ratio >= 0:
            quotient = network.ratios[ratio, end] / network.ratios[ratio, at.node]
    visits = visited(network, walkers, at, at.node) / visited(network, walkers, at, end)
    moves = end != at.node
    taken = moves & (np.float64(decision) <= ALL_WORDS * (quotient * power(visits, route.twice_alpha)))
    return choose(taken, end, np.uint32(at.node)), at.back, np.int64(taken), np.int64(moves)


def drawn(ends: Any, span: Any, draw: Any) -> Any:
    """The outcome whose interval contains the draw, among those of a node: the first, and how many there are."""
    start, count = span >> HALF, span & LOW
    if count > SHORT:
        first, last = np.int64(start), np.int64(start + count)
        return np.uint64(search(ends, 0, first, last, draw))  # type: ignore[arg-type]
    outcome = start
    last = start + count - ONE
    for index in range(start, start + np.uint64(3)):  # whatever the count, and without a branch: the ends are padded
        outcome += np.uint64((index < last) & (draw >= ends[0, index]))
    for index in range(start + np.uint64(3), last):
        outcome += np.uint64(draw >= ends[0, index])
    return outcome


def visited(network: Any, walkers: Any, at: Any, node: Any) -> Any:
    """The visits of a node relative to its target; a counter is negative before the first one."""
    return abs(walkers.counters[at.row, node]) * network.rarity[node]


def weight(network: Any, route: Any, walkers: Any, at: Any, outcome: Any, least: Any) -> Any:
    """The weight of an outcome, as a whole number; those of a row add up to at most 2^62."""
    quotient = least / visited(network, walkers, at, network.row_indices[outcome])
    return np.uint64(WHOLE * (network.shares[outcome] * power(quotient, route.twice_alpha)))


def keep(scratch: Any, place: Any, total: Any) -> None:
    """Keep a sum of weights."""
    scratch[place] = total


def total_again(
    network: Any, route: Any, walkers: Any, scratch: Any, at: Any, start: Any, place: Any, least: Any, total: Any
) -> Any:
    """The sum of the weights up to and with an outcome, given the one before."""
    return scratch[place]


def power(base: Any, twice: Any) -> Any:
    """base^(twice / 2) from square roots and products."""
    result = 1.0
    if ROOTS and twice & 1:
        result = np.sqrt(base)
    square, exponent = base, twice >> 1
    while exponent > 0:
        if exponent & 1:
            result *= square
        square *= square
        exponent >>= 1
    return result


def count_visit_of(network: Any, route: Any, walkers: Any, row: Any, node: Any, time: Any) -> None:
    """Count a visit, before the move that follows."""
    counter = walkers.counters[row, node]
    if counter < 0.0:
        walkers.known[row] += 1
        counter = -counter
    walkers.counters[row, node] = counter + route.gains[time]


def outcome_back(network: Any, node: Any, previous: Any) -> Any:
    """The outcome of a node that leads back to the previous one, or nowhere."""
    start, found = network.outcomes[node] >> HALF, NOWHERE
    for outcome in range(start, start + (network.outcomes[node] & LOW)):
        if previous >= 0 and network.row_indices[outcome] == np.uint32(previous):
            found = np.uint64(outcome)
    return found
