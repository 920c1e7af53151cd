"""One visit of a token to a node, in Python and NumPy, for `reference` and for peers, and the samples that visits draw.

A batch of b out of m samples uses the words local · b + k of the stream `BATCH`, k = 0..b−1, at local step `local`.
They are drawn without replacement by Floyd's algorithm: for j = m − b, …, m − 1 take pick(word, j + 1), or j itself if
that was already taken.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.compiled.compiler import compile_functions
from freewalk.objectives.objective import Share
from freewalk.rng import BATCH, SAMPLE, pick, word, word_of_use
from freewalk.rules import Rule
from freewalk.rules.rule import Visit

Vectors = Mapping[str, NDArray[Any]]
Apply = Callable[[Rule, Any, Visit, list[NDArray[Any]], NDArray[Any], bool], None]


class Occasion(NamedTuple):
    """When a token visits a node; seed, walk and step are the key of the draws."""

    seed: int
    walk: int
    step: int
    rate: float
    began: int  # the step at which the rule began
    nodes: int  # their number
    weight: float  # 1 / (n · target) of the node
    visits: int  # of this token to this node, including this one; 0 unless the rule needs them


def visit(rule: Rule, numbers: Any, share: Share, vectors: Vectors, occasion: Occasion, apply: Apply) -> None:
    """Make the local steps of one visit, in place, on the model "x", what is carried and what is stored, by name.

    `numbers` are `numbers_of(rule, precision)`, and the rule is applied `by_coordinate` or `at_once`.
    """
    weight, relay = occasion.weight if rule.weighted else 1.0, share.samples == 0
    idle = relay and not rule.proximal  # it counts as a node whose loss is 0
    still = idle and not rule.stores  # it leaves the model unchanged
    every, rate = list(vectors.values()), 0.0 if still else occasion.rate
    for local in range(rule.local_steps):
        count = (occasion.step - occasion.began) * rule.local_steps + local
        now, model = Visit(rate, weight, count, occasion.nodes, occasion.visits), every[0].copy()
        gradient = np.zeros(model.size) if idle else _gradient(rule, numbers, now, share, vectors, occasion, local)
        apply(rule, numbers, now, every, gradient, relay)
        if still:
            every[0][...] = model


def numbers_of(rule: Rule, precision: str) -> Any:
    """The parameters of a rule in the precision of the model."""
    names: Any = type(rule.numbers)
    return names(*(float(np.dtype(precision).type(value)) for value in rule.numbers))


def _gradient(
    rule: Rule, numbers: Any, now: Visit, share: Share, vectors: Vectors, occasion: Occasion, local: int
) -> NDArray[np.float64]:
    """What the rule requests from the node: a gradient, or the solution of its local problem near a point."""
    with np.errstate(all="ignore"):
        if rule.proximal:
            point, penalty = rule.point(now, numbers, *vectors.values())
            return share.proximal(point, penalty)
        at = vectors[rule.evaluates]
        if rule.sampled:
            key = occasion.seed, SAMPLE, occasion.walk, occasion.step, local
            draw = word(*(np.uint64(number) for number in key))
            return share.gradient(at, int(pick(draw, np.uint64(share.samples))))
        if share.objective.batch is None:  # only sampling rules need an objective with samples
            return share.gradient(at)
        chosen = np.arange(min(share.samples, share.objective.batch))  # all samples if the node has no more
        if chosen.size < share.samples:
            seed, walk, step = (np.uint64(number) for number in (occasion.seed, occasion.walk, occasion.step))
            draw_batch(seed, walk, step, local, share.samples, chosen)
        return share.gradient(at, chosen)


def by_coordinate(
    rule: Rule, numbers: Any, now: Visit, vectors: list[NDArray[Any]], gradient: NDArray[Any], relay: bool
) -> None:
    """Update coordinate by coordinate, as compiled runtimes do."""
    for j in range(vectors[0].size):
        x, *others = (float(vector[j]) for vector in vectors)
        try:
            with np.errstate(all="ignore"):
                result = rule.update(now, numbers, x, float(gradient[j]), *others)
        except ArithmeticError:  # Python raises where compiled code continues with values that are not finite
            lost = others if relay else [np.nan] * len(others)
            result = (np.nan, *lost) if others else np.nan
        for vector, number in zip(vectors, result if len(vectors) > 1 else (result,), strict=True):
            vector[j] = np.nan if isinstance(number, complex) else number  # a power of a negative number


def at_once(
    rule: Rule, numbers: Any, now: Visit, vectors: list[NDArray[Any]], gradient: NDArray[Any], relay: bool
) -> None:
    """Update whole vectors; the result is the same except for rounding."""
    with np.errstate(all="ignore"):
        result = rule.update(now, numbers, vectors[0], gradient, *vectors[1:])
    values = [np.array(value) for value in (result if len(vectors) > 1 else (result,))]
    for vector, value in zip(vectors, values, strict=True):
        vector[...] = value


# The samples of minibatches; compiled, for many visits at once.


def draw_batch(seed: Any, row: Any, step: Any, local: int, size: int, chosen: NDArray[np.int64]) -> None:
    """Fill `chosen` with distinct numbers below `size`, which is at least its length."""
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
    seed: Any, first: Any, start: Any, path: Any, offsets: Any, single: bool, numbers: Any, counts: Any
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
def batches_code() -> Callable[..., None]:
    """`draw_batches`, compiled."""
    return compile_functions({"draw_batches": draw_batches}, "draw_batches")
