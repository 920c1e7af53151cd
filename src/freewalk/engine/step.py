"""One step of one walk, written once as scalar functions: a move, a prediction, an update.

Nothing here runs as it stands: `freewalk.compiling` gathers these functions, an objective's `slope` and `value` and a
rule's `update` into compiled modules. All words are unsigned 64-bit integers, and numba turns a signed and an
unsigned integer into a float: hence the conversions.
"""

from typing import Any

import numpy as np

from freewalk import rng
from freewalk.engine.table import HOPS, LAW, RATIO, ROWS, ROWS_A_HOP

MOVE = rng.MOVE
accepts = rng.accepts
pick = rng.pick
word = rng.word


def slope(prediction: float, target: float) -> float:
    """Derivative of the loss in its first argument; the objective's own takes this place (`build.program`)."""
    return prediction - target


def value(prediction: float, target: float) -> float:
    """Loss of one sample; the objective's own takes this place (`build.program`)."""
    return 0.5 * (prediction - target) ** 2


def update(x: float, gradient: float, step: float, count: int) -> Any:
    """Update of one coordinate; the rule's own takes this place (`build.program`)."""
    return x - step * gradient


def search(ends: Any, row: int, first: int, last: int, draw: Any) -> int:
    """The outcome in first..last-1 of a row whose interval of words holds the draw."""
    last -= 1
    while first < last:
        middle = (first + last) >> 1
        if draw < ends[row, middle]:
            last = middle
        else:
            first = middle + 1
    return first


def uniform_hop(indptr: Any, indices: Any, node: int, draw: Any) -> Any:
    """A neighbour, uniformly."""
    first = indptr[node]
    return np.int64(indices[first + np.int64(pick(draw, np.uint64(indptr[node + 1] - first)))])


def make_move(
    indptr: Any,
    indices: Any,
    moves: Any,
    ratios: Any,
    row_indptr: Any,
    row_indices: Any,
    row_ends: Any,
    law_ends: Any,
    ends: Any,
    time: int,
    seed: Any,
    walk: Any,
    step: Any,
    node: int,
    decision: Any,
    first: Any,
) -> tuple[int, int, int]:
    """One move from a node: where it ends, the models sent and the probes sent on the way.

    `decision` and `first` are words 0 and 1 of the step: the one decides between the moves (whose intervals end at
    `ends[time]`) and on the acceptance, the other makes the first hop. Further hops draw their own words.
    """
    move = 0
    start = np.uint64(0)
    while move < ends.shape[1] - 1 and decision >= ends[time, move]:
        start = ends[time, move]
        move += 1
    law = moves[move, LAW]
    if law >= 0:
        drawn = search(law_ends, law, 0, law_ends.shape[1], first)
        return drawn, int(drawn != node), 0
    hops = moves[move, HOPS]
    matrix = moves[move, ROWS]
    end: Any = node
    sent = hops  # a uniform hop always leaves its node
    if matrix >= 0:
        sent = 0
        for index in range(hops):
            draw = first if index == 0 else word(seed, MOVE, walk, step, np.uint64(index + 1))
            entry = search(row_ends, 0, row_indptr[matrix, end], row_indptr[matrix, end + 1], draw)
            sent += int(row_indices[entry] != end)
            end = np.int64(row_indices[entry])
            matrix += moves[move, ROWS_A_HOP]
    elif hops > 0:
        end = uniform_hop(indptr, indices, node, first)
        for index in range(1, hops):
            end = uniform_hop(indptr, indices, end, word(seed, MOVE, walk, step, np.uint64(index + 1)))
    ratio = moves[move, RATIO]
    if ratio < 0:
        return end, sent, 0
    # A single hop is decided at its start, which knows its neighbours' ratios. A longer one sends a probe along the
    # way and its answer back, and only then the model.
    probes = 0
    if hops > 1:
        probes = hops + hops * int(end != node)
    width = np.float64(ends[time, move] - start)
    taken = int(accepts(decision - start, width, ratios[ratio, node], ratios[ratio, end])) * int(end != node)
    return node + taken * (end - node), taken * sent, probes  # no branch: whether it is taken cannot be foreseen


def predict(features: Any, sample: int, models: Any, walk: int) -> float:
    """aᵀx in four partial sums: a fixed order that vector registers can follow."""
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    for j in range(0, features.shape[1], 4):
        a += features[sample, j] * models[walk, j]
        b += features[sample, j + 1] * models[walk, j + 1]
        c += features[sample, j + 2] * models[walk, j + 2]
        d += features[sample, j + 3] * models[walk, j + 3]
    return (a + b) + (c + d)


def apply_alone(models: Any, carried: Any, walk: int, j: int, gradient: float, step: float, count: int) -> None:
    """Update one coordinate by a rule that carries nothing."""
    models[walk, j] = update(models[walk, j], gradient, step, count)


def apply_with_one(models: Any, carried: Any, walk: int, j: int, gradient: float, step: float, count: int) -> None:
    """Update one coordinate by a rule that carries one number."""
    x, first = update(models[walk, j], gradient, step, count, carried[0, walk, j])  # type: ignore[call-arg]
    models[walk, j] = x
    carried[0, walk, j] = first


def apply_with_two(models: Any, carried: Any, walk: int, j: int, gradient: float, step: float, count: int) -> None:
    """Update one coordinate by a rule that carries two numbers."""
    x, first, second = update(  # type: ignore[call-arg]
        models[walk, j], gradient, step, count, carried[0, walk, j], carried[1, walk, j]
    )
    models[walk, j] = x
    carried[0, walk, j] = first
    carried[1, walk, j] = second


apply = apply_alone  # the one that fits the rule takes this place (`build.program`)


def learn_at(
    features: Any,
    targets: Any,
    ridge: float,
    dim: int,
    first: int,
    last: int,
    step: float,
    count: int,
    models: Any,
    carried: Any,
    walk: int,
    gradient: Any,
) -> None:
    """One gradient step on the samples first..last-1; `gradient` is room for their mean.

    A rule sees the `dim` coordinates that exist; the zeros behind them are for `predict` alone.
    """
    if last - first == 1:
        pull = slope(predict(features, first, models, walk), targets[first])
        for j in range(dim):
            apply(models, carried, walk, j, pull * features[first, j] + ridge * models[walk, j], step, count)
        return
    for j in range(dim):
        gradient[j] = 0.0
    for sample in range(first, last):
        pull = slope(predict(features, sample, models, walk), targets[sample]) / (last - first)
        for j in range(dim):
            gradient[j] += pull * features[sample, j]
    for j in range(dim):
        apply(models, carried, walk, j, gradient[j] + ridge * models[walk, j], step, count)
