"""The exchanges of a run in the form that compiled code needs, followed by that code."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.exchanges import Exchange
from freewalk.exchanges.exchange import exchanges_in, gathering_of, sent_by, weights_of
from freewalk.jobs.job import Job, State
from freewalk.jobs.phase import Passage
from freewalk.runtimes.step import inputs
from freewalk.runtimes.step.arrays import ALL, NODE, WEIGHTS, Mixing

DIM = 0  # the number of coordinates if it is small and compiled in, else 0


#: The form for compiled code and the messages of one exchange, by phase and nodes of the tokens.
Kept = dict[tuple[int, bytes], tuple[Mixing, int]]


class Mixer:
    """The exchanges of a passage: in compiled code (`mixing`) if they are means or have constant weights.

    For all others, learning stops when one is due. `exchanged` are the messages so far, by walk and
    mark.
    """

    def __init__(self, job: Job, state: State, passage: Passage, exchange: Exchange, kept: Kept) -> None:
        kernel, first = passage.phase.kernel, state.nodes[: state.tokens]
        alike = kernel.is_parked and bool((state.nodes.reshape(-1, state.tokens) == first).all())
        self.compiled = bool(exchange.means) or (exchange.constant and alike)
        self.mixing, sent = inputs.no_mixing(job.precision), 0
        if self.compiled:
            key = id(passage.phase), b"" if exchange.means else first.tobytes()  # means do not depend on the nodes
            if key not in kept:
                kept[key] = _constant(exchange, job, passage, first)
            self.mixing, sent = kept[key]
        self.exchanged = state.exchanged[:, None] + sent * exchanges_in(exchange, passage.start, passage.marks)
        state.exchanged += sent * exchanges_in(exchange, passage.start, passage.until)


def _constant(exchange: Exchange, job: Job, passage: Passage, nodes: NDArray[np.int32]) -> tuple[Mixing, int]:
    """The effect and the messages of an exchange, for tokens on these nodes."""
    mixing, every = inputs.no_mixing(job.precision), int(exchange.every)
    gathering = gathering_of(job.seed, 0, every, nodes, passage.phase.kernel.graph)
    if exchange.means:
        how = ALL if exchange.means == "all" else NODE
        return mixing._replace(how=how, every=every), sent_by(exchange, gathering, None)
    weights = weights_of(exchange, gathering)
    if weights is None:
        return mixing, 0
    parts = weights.indptr.astype(np.uint64), weights.indices.astype(np.uint64), weights.data.astype(job.precision)
    return Mixing(WEIGHTS, every, *parts), sent_by(exchange, gathering, weights)


# Compiled for a CPU: `path` holds the nodes of the tokens of one walk, and `base` is the row of the first one.


def mix(vectors: Any, mixing: Any, room: Any, path: Any, base: int, tokens: int, turn: int) -> None:
    """Mix the models of a walk and everything that is carried with them."""
    if mixing.how == NODE and not find_meetings(room, path, tokens, turn):
        return
    mix_rows(vectors.models, mixing, room, base, tokens)
    for index in range(vectors.carried.shape[0]):
        mix_rows(vectors.carried[index], mixing, room, base, tokens)


def mix_rows(rows: Any, mixing: Any, room: Any, base: int, tokens: int) -> None:
    """Mix the rows of a walk."""
    dim = DIM if DIM > 0 else rows.shape[1]
    if mixing.how == ALL:
        mean_of(rows, room, base, tokens)
        for row in range(base, base + tokens):
            for j in range(dim):
                rows[row, j] = room.mean[0, j]
    elif mixing.how == NODE:
        mean_by_node(rows, room, base, tokens)
    else:
        weigh(rows, mixing, room, base, tokens)


def mean_of(rows: Any, room: Any, base: int, tokens: int) -> None:
    """The mean of the rows of a walk, summed up in their order in double precision."""
    dim = DIM if DIM > 0 else rows.shape[1]
    total, mean = room.total, room.mean
    for j in range(dim):
        total[j] = 0.0
    for row in range(base, base + tokens):
        for j in range(dim):
            total[j] += rows[row, j]
    for j in range(dim):
        mean[0, j] = total[j] / tokens


def find_meetings(room: Any, path: Any, tokens: int, turn: int) -> bool:
    """Find tokens on the same node; returns whether there are any. `turn` is a number not used before."""
    met = False
    for token in range(tokens):
        node = path[token]
        if room.turns[node] == turn:
            head = room.heads[node]
            room.counts[head] += 1
            met = True
        else:
            head = token
            room.turns[node] = turn
            room.heads[node] = token
            room.counts[token] = 1
        room.leaders[token] = head
    return met


def mean_by_node(rows: Any, room: Any, base: int, tokens: int) -> None:
    """Means over the tokens on one node; single tokens stay unchanged, to the last bit."""
    dim = DIM if DIM > 0 else rows.shape[1]
    leaders, counts = room.leaders, room.counts
    for token in range(tokens):
        if leaders[token] != token:
            for j in range(dim):
                rows[base + leaders[token], j] += rows[base + token, j]
    for token in range(tokens):  # a leader comes before its followers
        head = leaders[token]
        if head != token:
            for j in range(dim):
                rows[base + token, j] = rows[base + head, j]
        elif counts[token] > 1:
            for j in range(dim):
                rows[base + token, j] /= counts[token]


def weigh(rows: Any, mixing: Any, room: Any, base: int, tokens: int) -> None:
    """Weighted means over the tokens that have a weight. Unsigned indices, never negative, help vectorizing."""
    dim = DIM if DIM > 0 else rows.shape[1]
    mixed, indptr, indices, weights = room.mixed, mixing.indptr, mixing.indices, mixing.weights
    first = np.uint64(base)
    for token in range(np.uint64(tokens)):
        entry = indptr[token]
        weight, row = weights[entry], first + indices[entry]
        for j in range(dim):
            mixed[token, j] = weight * rows[row, j]
        for other in range(entry + np.uint64(1), indptr[token + np.uint64(1)]):
            weight, row = weights[other], first + indices[other]
            for j in range(dim):
                mixed[token, j] += weight * rows[row, j]
    for token in range(np.uint64(tokens)):
        for j in range(dim):
            rows[first + token, j] = mixed[token, j]
