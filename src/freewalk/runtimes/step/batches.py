"""The samples that a visit learns from: minibatches, drawn for many visits at once.

A batch of b out of m samples uses the words local · b + k of the stream `BATCH`, k = 0..b−1, at local step `local`.
They are drawn without replacement by Floyd's algorithm: for j = m − b, …, m − 1 take pick(word, j + 1), or j itself if
that was already taken.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.rng import BATCH, SAMPLE, pick, word, word_of_use

Ints = NDArray[np.int64]


def draw_batch(seed: Any, row: Any, step: Any, local: int, size: int, chosen: Ints) -> None:
    """Fill `chosen` with distinct numbers below `size`, which is at least its length.

    Examples
    --------
    >>> chosen = np.empty(3, dtype=np.int64)
    >>> draw_batch(np.uint64(1), np.uint64(0), np.uint64(5), 0, 4, chosen)
    >>> chosen.tolist()
    [1, 0, 3]
    """
    count = chosen.size
    for place in range(count):
        last = size - count + place
        draw = word_of_use(seed, BATCH, row, step, np.uint64(local * count + place))
        drawn = np.int64(pick(draw, np.uint64(last + 1)))
        for earlier in range(place):
            if chosen[earlier] == drawn:
                drawn = np.int64(last)
                break
        chosen[place] = drawn


def draw_batches(
    seed: Any, first: Any, start: Any, path: NDArray[np.int32], offsets: Ints, single: bool, numbers: Any, counts: Any
) -> None:
    """Fill `numbers` (steps × rows × local steps × batch) with samples of the nodes of a path, and `counts`.

    A node with fewer samples than a batch contributes all of them; the rest of the batch is its first sample. With
    `single`, batches have one sample each, from the stream `SAMPLE`, as for a `sampled` rule.
    """
    steps, rows, locals_, batch = numbers.shape
    for t in range(steps):
        step = np.uint64(start + t)
        for r in range(rows):
            node = path[t, r]
            begin = offsets[node]
            size = offsets[node + 1] - begin
            row = np.uint64(first + r)
            for local in range(locals_):
                counts[t, r, local] = min(size, batch)
                if size <= batch and not single:
                    for place in range(batch):
                        numbers[t, r, local, place] = begin + (place if place < size else 0)
                elif single:
                    draw = word(seed, SAMPLE, row, step, np.uint64(local))
                    numbers[t, r, local, 0] = begin + np.int64(pick(draw, np.uint64(size)))
                else:
                    draw_batch(seed, row, step, local, size, numbers[t, r, local])
                    for place in range(batch):
                        numbers[t, r, local, place] += begin


@cache
def compiled() -> Callable[..., None]:
    """`draw_batches`, compiled."""
    from freewalk.compiled.compiler import compile_functions

    found: Callable[..., None] = compile_functions({"draw_batches": draw_batches}, "draw_batches")
    return found
