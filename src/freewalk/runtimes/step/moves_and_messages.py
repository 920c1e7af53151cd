"""One move of one walk, and the messages and probes that it sends: all compiled runtimes count them here.

Nothing here runs as written: these scalar functions become part of compiled modules, like those of `update.py`. They
return what one move sends; the loops around them (`cpu/loops.py`, `cuda/kernels.py`) only add it up. `reference.py` has
the same in plain Python, and `mixer.py` adds what exchanges between tokens send.

All words are unsigned 64-bit integers; numba converts mixed signed and unsigned integers to floats, hence the explicit
conversions.
"""

from typing import Any

import numpy as np

from freewalk.rng import HALF, LOW, MOVE, accepts, pick, word
from freewalk.runtimes.step.arrays import HOPS, LAW, PLAIN, RATIO, ROWS, ROWS_A_HOP


def search(ends: Any, row: int, first: int, last: int, draw: Any) -> int:
    """The outcome in first..last-1 of a row whose interval of words contains the draw."""
    last -= 1
    while first < last:
        middle = (first + last) >> 1
        if draw < ends[row, middle]:
            last = middle
        else:
            first = middle + 1
    return first


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """One of two numbers. On a CPU, replaced at build time by an intrinsic that never becomes a branch."""
    return yes if condition else no


def edge_drawn(network: Any, node: Any, draw: Any) -> Any:
    """A uniformly drawn edge of the node. A span holds the first edge and the number of edges, in one load."""
    span = network.spans[node]
    return (span >> HALF) + pick(draw, span & LOW)


def tail_of(network: Any, edge: Any) -> Any:
    """The node at the end of an edge."""
    return np.uint32(network.edges[edge] & LOW)


def near_move(network: Any, free: Any, node: Any, decision: Any, first: Any) -> Any:
    """One uniform hop, by far the most frequent move, and whether it is accepted, so that it sends one message."""
    edge = network.edges[edge_drawn(network, node, first)]
    taken = is_taken(decision, free, edge)
    if is_close(decision, edge):
        taken = is_taken_exactly(network, free, node, decision, edge)
    return choose(taken, np.uint32(edge & LOW), node), taken


def is_taken(decision: Any, free: Any, edge: Any) -> Any:
    """Whether an edge is taken, unless the decision `is_close`: an integer comparison instead of `accepts`.

    Words from `free` on belong to hops that are always accepted.
    """
    return (decision >> HALF < edge >> HALF) | (decision >= free)


def is_close(decision: Any, edge: Any) -> Any:
    """Whether the upper half of the largest word that takes the edge, all that is kept of it, does not decide."""
    return decision >> HALF == edge >> HALF


def is_taken_exactly(network: Any, free: Any, node: Any, decision: Any, edge: Any) -> Any:
    """Whether an edge is taken: needed once in 2^32 steps."""
    ratio = network.moves[0, RATIO]
    if ratio < 0 or decision >= free:
        return True
    start, end = network.ratios[ratio, node], network.ratios[ratio, edge & LOW]
    return accepts(decision, np.float64(free), start, end)


def far_move(network: Any, ends: Any, time: Any, key: Any, node: Any, draws: Any) -> Any:
    """Any move from a node: its end, the models sent and the probes sent.

    The decision word chooses the move (whose intervals end at `ends[time]`) and its acceptance; the other words choose
    the hops. Hops beyond the third draw their own words.
    """
    decision, moves = draws.decision, network.moves
    move = 0
    start = np.uint64(0)
    while move < ends.shape[1] - 1 and decision >= ends[time, move]:
        start = ends[time, move]
        move += 1
    hops = moves[move, HOPS]
    if moves[move, PLAIN]:
        end = node
        if hops > 0:
            end = tail_of(network, edge_drawn(network, node, draws.first))
        if hops > 1:
            end = tail_of(network, edge_drawn(network, end, draws.second))
        if hops > 2:
            end = tail_of(network, edge_drawn(network, end, draws.third))
        for index in range(3, hops):
            end = tail_of(network, edge_drawn(network, end, word_of_hop(key, draws, index)))
        return end, hops, 0  # a uniform hop always leaves its node
    law = moves[move, LAW]
    if law >= 0:
        drawn = np.uint32(search(network.law_ends, law, 0, network.law_ends.shape[1], draws.first))
        return drawn, int(drawn != node), 0
    matrix = moves[move, ROWS]
    end = node
    if matrix >= 0:
        sent = 0
        for index in range(hops):
            first, last = network.row_indptr[matrix, end], network.row_indptr[matrix, end + 1]
            entry = search(network.row_ends, 0, first, last, word_of_hop(key, draws, index))
            sent += int(network.row_indices[entry] != end)
            end = network.row_indices[entry]
            matrix += moves[move, ROWS_A_HOP]
        return end, sent, 0
    for index in range(hops):
        end = tail_of(network, edge_drawn(network, end, word_of_hop(key, draws, index)))
    # A single hop is accepted or rejected at its start, which knows its neighbours' ratios. A longer one first sends a
    # probe along its path, waits for the answer, and only then sends the model.
    left = int(end != node)
    probes = 0
    if hops > 1:
        probes = hops + hops * left
    width = np.float64(ends[time, move] - start)
    ratio = moves[move, RATIO]
    taken = left * int(accepts(decision - start, width, network.ratios[ratio, node], network.ratios[ratio, end]))
    return choose(taken > 0, end, node), taken * hops, probes


def word_of_hop(key: Any, draws: Any, index: int) -> Any:
    """The word of a hop: one of those already drawn, or a new one."""
    if index == 0:
        return draws.first
    if index == 1:
        return draws.second
    if index == 2:
        return draws.third
    return word(key.seed, MOVE, key.walk, key.now, np.uint64(index + 1))
