"""One step of one walk, written once as scalar functions: a move, a prediction, an update.

Nothing here runs as it stands: `freewalk.compiling` gathers these functions, an objective's `slope` and `value` and a
rule's `update` into compiled modules. All words are unsigned 64-bit integers, and numba turns a signed and an
unsigned integer into a float: hence the conversions.
"""

from typing import Any

import numpy as np

from freewalk import rng
from freewalk.engine.table import HOPS, LAW, PLAIN, RATIO, ROWS, ROWS_A_HOP

# These are compiled in (`build.functions_of`).
RIDGE = True  # whether the objective has a ridge term
FACTORS = True  # whether the losses of the nodes have factors other than 1, as they do where there are relays
MOVE = rng.MOVE
SAMPLE = rng.SAMPLE
HALF = rng.HALF
LOW = rng.LOW
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


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """One of two numbers. On a processor a compiler intrinsic takes this place, which never becomes a branch."""
    return yes if condition else no


def edge_drawn(spans: Any, node: Any, draw: Any) -> Any:
    """An edge of the node, uniformly. A span holds the first edge and the number of edges: one load."""
    span = spans[node]
    return (span >> HALF) + pick(draw, span & LOW)


def near_move(spans: Any, tails: Any, limits: Any, free: Any, node: Any, decision: Any, first: Any) -> Any:
    """One uniform hop, the move that is made nearly always, and whether its end is taken.

    `limits` holds the largest word that accepts an edge: a comparison of integers instead of `accepts`. Words from
    `free` on belong to hops that nothing refuses.
    """
    edge = edge_drawn(spans, node, first)
    taken = (decision <= limits[edge]) | (decision >= free)
    return choose(taken, tails[edge], node), taken


def far_move(
    spans: Any,
    tails: Any,
    moves: Any,
    ratios: Any,
    row_indptr: Any,
    row_indices: Any,
    row_ends: Any,
    law_ends: Any,
    ends: Any,
    time: Any,
    seed: Any,
    walk: Any,
    step: Any,
    node: Any,
    decision: Any,
    first: Any,
    second: Any,
    third: Any,
) -> Any:
    """Any move from a node: where it ends, the models sent and the probes sent on the way.

    `decision` is word 0 of the step and decides between the moves (whose intervals end at `ends[time]`) and on the
    acceptance; `first`, `second` and `third` are words 1 to 3 and make the hops. Further hops draw their own words.
    """
    move = 0
    start = np.uint64(0)
    while move < ends.shape[1] - 1 and decision >= ends[time, move]:
        start = ends[time, move]
        move += 1
    hops = moves[move, HOPS]
    if moves[move, PLAIN]:
        end = node
        if hops > 0:
            end = tails[edge_drawn(spans, node, first)]
        if hops > 1:
            end = tails[edge_drawn(spans, end, second)]
        if hops > 2:
            end = tails[edge_drawn(spans, end, third)]
        for index in range(3, hops):
            draw = word(seed, MOVE, walk, step, np.uint64(index + 1))
            end = tails[edge_drawn(spans, end, draw)]
        return end, hops, 0  # a uniform hop always leaves its node
    law = moves[move, LAW]
    if law >= 0:
        drawn = np.uint32(search(law_ends, law, 0, law_ends.shape[1], first))
        return drawn, int(drawn != node), 0
    matrix = moves[move, ROWS]
    end = node
    if matrix >= 0:
        sent = 0
        for index in range(hops):
            draw = word_of_hop(seed, walk, step, index, first, second, third)
            entry = search(row_ends, 0, row_indptr[matrix, end], row_indptr[matrix, end + 1], draw)
            sent += int(row_indices[entry] != end)
            end = row_indices[entry]
            matrix += moves[move, ROWS_A_HOP]
        return end, sent, 0
    for index in range(hops):
        end = tails[edge_drawn(spans, end, word_of_hop(seed, walk, step, index, first, second, third))]
    # A single hop is decided at its start, which knows its neighbours' ratios. A longer one sends a probe along the
    # way and its answer back, and only then the model.
    left = int(end != node)
    probes = 0
    if hops > 1:
        probes = hops + hops * left
    width = np.float64(ends[time, move] - start)
    ratio = moves[move, RATIO]
    taken = left * int(accepts(decision - start, width, ratios[ratio, node], ratios[ratio, end]))
    return choose(taken > 0, end, node), taken * hops, probes


def word_of_hop(seed: Any, walk: Any, step: Any, index: int, first: Any, second: Any, third: Any) -> Any:
    """The word of a hop: one of those at hand, or drawn for it."""
    if index == 0:
        return first
    if index == 1:
        return second
    if index == 2:
        return third
    return word(seed, MOVE, walk, step, np.uint64(index + 1))


# Several threads can share a walk, each with some coordinates of its model (`cuda.py`). They take these two places.


def place(j: int) -> int:
    """Which coordinate of the whole model number j is here."""
    return j


def total(number: Any) -> Any:
    """The sum over all that share a walk."""
    return number


def read(features: Any, sample: Any, j: int) -> Any:
    """A feature. On a processor an intrinsic takes this place that promises the compiler that features never change."""
    return features[sample, j]


def fetch(array: Any, row: Any) -> None:
    """Say that a row will be read soon. On a processor an intrinsic takes this place."""


def predict(features: Any, sample: Any, models: Any, walk: Any, dim: int) -> Any:
    """aᵀx. On a processor an intrinsic takes this place that sums in vector registers, in an order of its own."""
    total = models.dtype.type(0.0)
    for j in range(dim):
        total += read(features, sample, j) * models[walk, j]
    return total


def apply_alone(models: Any, carried: Any, walk: Any, j: int, gradient: Any, step: Any, count: Any) -> None:
    """Update one coordinate by a rule that carries nothing."""
    models[walk, j] = update(models[walk, j], gradient, step, count)


def apply_with_one(models: Any, carried: Any, walk: Any, j: int, gradient: Any, step: Any, count: Any) -> None:
    """Update one coordinate by a rule that carries one number."""
    x, first = update(models[walk, j], gradient, step, count, carried[0, walk, j])  # type: ignore[call-arg]
    models[walk, j] = x
    carried[0, walk, j] = first


def apply_with_two(models: Any, carried: Any, walk: Any, j: int, gradient: Any, step: Any, count: Any) -> None:
    """Update one coordinate by a rule that carries two numbers."""
    x, first, second = update(  # type: ignore[call-arg]
        models[walk, j], gradient, step, count, carried[0, walk, j], carried[1, walk, j]
    )
    models[walk, j] = x
    carried[0, walk, j] = first
    carried[1, walk, j] = second


apply = apply_alone  # the one that fits the rule takes this place (`build.program`)


def learn_from_one(
    features: Any,
    targets: Any,
    factor: Any,
    ridge: Any,
    dim: int,
    sample: Any,
    step: Any,
    count: Any,
    models: Any,
    carried: Any,
    walk: Any,
) -> None:
    """One gradient step on one sample."""
    pull = slope(predict(features, sample, models, walk, dim), targets[sample])
    if FACTORS:
        pull *= factor
    descend(features, ridge, dim, sample, pull, step, count, models, carried, walk)


def descend(
    features: Any,
    ridge: Any,
    dim: int,
    sample: Any,
    pull: Any,
    step: Any,
    count: Any,
    models: Any,
    carried: Any,
    walk: Any,
) -> None:
    """One step along the gradient of one sample, whose slope is known."""
    for j in range(dim):
        gradient = pull * read(features, sample, j)
        if RIDGE:
            gradient += ridge * models[walk, j]
        apply(models, carried, walk, j, gradient, step, count)


def learn_from_all(
    features: Any,
    targets: Any,
    factor: Any,
    ridge: Any,
    dim: int,
    first: Any,
    last: Any,
    step: Any,
    count: Any,
    models: Any,
    carried: Any,
    walk: Any,
    gradient: Any,
) -> None:
    """One gradient step on the mean over the samples first..last-1; `gradient` is room for it."""
    for j in range(dim):
        gradient[j] = 0.0
    share = gradient.dtype.type(last - first)
    for sample in range(first, last):
        pull = slope(predict(features, sample, models, walk, dim), targets[sample]) / share
        if FACTORS:
            pull *= factor
        for j in range(dim):
            gradient[j] += pull * read(features, sample, j)
    for j in range(dim):
        apply(models, carried, walk, j, gradient[j] + ridge * models[walk, j], step, count)


def pass_through(models: Any, carried: Any, walk: Any, dim: int, count: Any) -> None:
    """A step at a relay: the model stays as it is, and what a rule carries sees a gradient and a step of 0."""
    zero = models.dtype.type(0.0)
    for j in range(dim):
        x = models[walk, j]
        apply(models, carried, walk, j, zero, zero, count)
        models[walk, j] = x


def learn_visit(
    features: Any,
    targets: Any,
    weights: Any,
    data: Any,
    lesson: Any,
    rate: Any,
    done: Any,
    models: Any,
    carried: Any,
    gradient: Any,
    row: Any,
    walk: Any,
    node: Any,
    now: Any,
    dim: int,
) -> None:
    """The local steps of one visit: the walk, whose model is in `row`, learns at the node at step `now`."""
    step = models.dtype.type(rate * weights[node])
    ridge = models.dtype.type(data.ridge)
    factor = models.dtype.type(1.0)
    if FACTORS:
        factor = models.dtype.type(data.factors[node])
        ridge *= factor
    for local in range(lesson.local_steps):
        first = np.uint64(node)
        count = done + local
        if not data.alone:
            first = np.uint64(data.offsets[node])
            last = np.uint64(data.offsets[node + np.uint64(1)])
            if FACTORS and first == last:  # a relay
                pass_through(models, carried, row, dim, count)
                continue
            if lesson.sampled:
                draw = word(lesson.seed, SAMPLE, np.uint64(walk), np.uint64(now), np.uint64(local))
                first += pick(draw, last - first)
            elif last - first != np.uint64(1):
                learn_from_all(
                    features, targets, factor, ridge, dim, first, last, step, count, models, carried, row, gradient
                )
                continue
        learn_from_one(features, targets, factor, ridge, dim, first, step, count, models, carried, row)


def measure(data: Any, models: Any, walk: Any, differences: Any, row: Any, dim: int) -> Any:
    """The loss of a model without its ridge term, the ridge term, and its squared distance from the optimum.

    `differences` has a row of room for what separates the model from the optimum.
    """
    squared = 0.0
    distance = 0.0
    for j in range(dim):
        if place(j) < data.optimum.size:
            x = np.float64(models[walk, j])
            difference = x - data.optimum[place(j)]
            differences[row, j] = difference
            squared += x * x
            distance += difference * difference
    squared = total(squared)
    distance = total(distance)
    if data.curvature.size > 0:
        loss = quadratic_loss(data.curvature, data.pull, data.least, differences, row, dim)
    else:
        loss = sum_of_losses(data.features, data.targets, data.sample_weights, models, walk, dim)
    return loss, 0.5 * data.ridge * squared, distance


def quadratic_loss(curvature: Any, pull: Any, least: Any, differences: Any, row: Any, dim: int) -> Any:
    """A loss from its value and derivatives at the optimum, which are the whole of it: d² numbers, not n·d."""
    loss = least
    for i in range(pull.size):
        loss += (pull[i] + 0.5 * predict(curvature, i, differences, row, dim)) * differences[row, i]
    return loss


def sum_of_losses(features: Any, targets: Any, sample_weights: Any, models: Any, walk: Any, dim: int) -> Any:
    """A loss sample by sample, in a fixed order."""
    loss = 0.0
    for sample in range(targets.size):
        loss += sample_weights[sample] * value(predict(features, sample, models, walk, dim), targets[sample])
    return loss
