"""Operations on all tokens of a walk, on a GPU: one thread per walk and coordinate loops over them."""

from functools import cache
from typing import Any

import numpy as np
from numba import cuda
from numba.core import config

from freewalk.compiled import compiler

_REGISTERS = 64


@cache
def kernels() -> dict[str, Any]:
    """The kernels, by name."""
    target = compiler.SIMULATOR if config.ENABLE_CUDASIM else compiler.cuda_target(_REGISTERS)
    return {
        entry.__name__: compiler.compile_functions({entry.__name__: entry}, entry.__name__, (), target)
        for entry in (average, gather, total)
    }


def average(rows: Any, tokens: int) -> None:
    """Replace all tokens of a walk by their mean."""
    thread = cuda.grid(1)
    dim = rows.shape[1]
    if thread >= rows.shape[0] // tokens * dim:
        return
    base, j = thread // dim * tokens, thread % dim
    mean = 0.0
    for token in range(tokens):
        mean += np.float64(rows[base + token, j])
    mean /= tokens
    for token in range(tokens):
        rows[base + token, j] = mean


def gather(rows: Any, tokens: int, means: Any, squares: Any) -> None:
    """The mean over the tokens of a walk, and the squared distances from it, coordinate by coordinate."""
    thread = cuda.grid(1)
    dim = rows.shape[1]
    if thread >= means.shape[0] * dim:
        return
    walk, j = thread // dim, thread % dim
    mean = 0.0
    for token in range(tokens):
        mean += np.float64(rows[walk * tokens + token, j])
    means[walk, j] = mean / tokens
    mean = np.float64(means[walk, j])
    square = 0.0
    for token in range(tokens):
        away = np.float64(rows[walk * tokens + token, j]) - mean
        square += away * away
    squares[walk, j] = square


def total(walkers: Any, tokens: int, squares: Any, counts: Any, spread: Any, mark: int) -> None:
    """The messages of a walk, and the distance of its tokens from their mean."""
    walk = cuda.grid(1)
    if walk >= counts.shape[1]:
        return
    sent, probed, square = np.int64(0), np.int64(0), 0.0
    for token in range(tokens):
        sent += walkers.messages[walk * tokens + token]
        probed += walkers.probes[walk * tokens + token]
    for j in range(squares.shape[1]):
        square += squares[walk, j]
    counts[0, walk] = sent
    counts[1, walk] = probed
    spread[mark, walk] = square / tokens
