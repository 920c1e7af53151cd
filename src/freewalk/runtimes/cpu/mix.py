"""Mixing of the tokens of a walk on a CPU: models and what they carry become weighted means.

Here `path` holds the nodes of the tokens of the walk, and `base` is the row of the first one.
"""

from typing import Any

import numpy as np

from freewalk.runtimes.step.arrays import Gathered

NOT, ALL, NODE, WEIGHTS = 0, 1, 2, 3  # over which tokens means are taken
DIM = 0  # the number of coordinates if it is small and compiled in, else 0


def gathered(tokens: int, dim: int, nodes: int, precision: str) -> Gathered:
    """Buffers for tokens that can meet on this many nodes."""
    return Gathered(
        mixed=np.empty((tokens, dim), dtype=precision),
        mean=np.empty((1, dim), dtype=precision),
        total=np.empty(dim),
        leaders=np.empty(tokens, dtype=np.int64),
        counts=np.empty(tokens, dtype=np.int64),
        turns=np.zeros(nodes, dtype=np.int64),
        heads=np.empty(nodes, dtype=np.int64),
    )


def mix(vectors: Any, mixing: Any, gathered: Any, path: Any, base: int, tokens: int, turn: int) -> None:
    """Mix the models of a walk and everything that is carried with them."""
    if mixing.how == NODE and not find_meetings(gathered, path, tokens, turn):
        return
    mix_rows(vectors.models, mixing, gathered, base, tokens)
    for index in range(vectors.carried.shape[0]):
        mix_rows(vectors.carried[index], mixing, gathered, base, tokens)


def mix_rows(rows: Any, mixing: Any, gathered: Any, base: int, tokens: int) -> None:
    """Mix the rows of a walk."""
    dim = DIM if DIM > 0 else rows.shape[1]
    if mixing.how == ALL:
        mean_of(rows, gathered, base, tokens)
        for row in range(base, base + tokens):
            for j in range(dim):
                rows[row, j] = gathered.mean[0, j]
    elif mixing.how == NODE:
        mean_by_node(rows, gathered, base, tokens)
    else:
        weigh(rows, mixing, gathered, base, tokens)


def mean_of(rows: Any, gathered: Any, base: int, tokens: int) -> None:
    """The mean of the rows of a walk, summed up in their order in double precision."""
    dim = DIM if DIM > 0 else rows.shape[1]
    total, mean = gathered.total, gathered.mean
    for j in range(dim):
        total[j] = 0.0
    for row in range(base, base + tokens):
        for j in range(dim):
            total[j] += rows[row, j]
    for j in range(dim):
        mean[0, j] = total[j] / tokens


def find_meetings(gathered: Any, path: Any, tokens: int, turn: int) -> bool:
    """Find tokens on the same node; returns whether there are any. `turn` is a number not used before."""
    met = False
    for token in range(tokens):
        node = path[token]
        if gathered.turns[node] == turn:
            head = gathered.heads[node]
            gathered.counts[head] += 1
            met = True
        else:
            head = token
            gathered.turns[node] = turn
            gathered.heads[node] = token
            gathered.counts[token] = 1
        gathered.leaders[token] = head
    return met


def mean_by_node(rows: Any, gathered: Any, base: int, tokens: int) -> None:
    """Means over the tokens on one node; single tokens stay unchanged, to the last bit."""
    dim = DIM if DIM > 0 else rows.shape[1]
    leaders, counts = gathered.leaders, gathered.counts
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


def weigh(rows: Any, mixing: Any, gathered: Any, base: int, tokens: int) -> None:
    """Weighted means over the tokens that have a weight. Unsigned indices, never negative, help vectorizing."""
    dim = DIM if DIM > 0 else rows.shape[1]
    mixed, indptr, indices, weights = gathered.mixed, mixing.indptr, mixing.indices, mixing.weights
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
