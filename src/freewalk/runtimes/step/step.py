"""One step of one walk, written once as scalar functions: a move, a prediction, an update.

Nothing here runs as written: `freewalk.compiled` combines these functions, an objective's `slope` and `value` and a
rule's `update` into compiled modules. All words are unsigned 64-bit integers; numba converts mixed signed and unsigned
integers to floats, hence the explicit conversions.
"""

from typing import Any

import numpy as np

from freewalk import rng
from freewalk.runtimes.step.arrays import HOPS, LAW, PLAIN, RATIO, ROWS, ROWS_A_HOP, Visit

# These are compiled in (`inputs.functions_of`).
RIDGE = True  # whether the objective has a ridge term
FACTORS = True  # whether the losses of the nodes have factors other than 1, as with relays
STORES = 0  # vectors stored at each node
COUNTS_VISITS = False  # whether the rule needs the visits of the walk to a node
MOVE = rng.MOVE
SAMPLE = rng.SAMPLE
HALF = rng.HALF
LOW = rng.LOW
accepts = rng.accepts
pick = rng.pick
word = rng.word


# Replaced by the functions of an objective and a rule at build time (`inputs.functions_of`).


def slope(prediction: float, target: float) -> float:
    """Derivative of the loss in its first argument."""
    return prediction - target


def value(prediction: float, target: float) -> float:
    """Loss of one sample."""
    return 0.5 * (prediction - target) ** 2


def update(visit: Any, numbers: Any, x: float, gradient: float) -> Any:
    """Update of one coordinate."""
    return x - visit.rate * visit.weight * gradient


def apply(visit: Any, numbers: Any, vectors: Any, at: Any, j: int, gradient: Any) -> None:
    """Update one coordinate of all vectors; generated for the vectors of the rule (`inputs.functions_of`)."""
    vectors.models[at.row, j] = update(visit, numbers, vectors.models[at.row, j], gradient)


def numbers_of(values: Any) -> Any:
    """The rule's own parameters by name; generated for the rule (`inputs.functions_of`)."""
    return values


def evaluated(vectors: Any, at: Any) -> Any:
    """The vector at which the gradient is taken, as an array and a row; some rules use one of the next two instead."""
    return vectors.models, at.row


EVALUATED = 0  # the index of that carried or stored vector


def evaluated_carried(vectors: Any, at: Any) -> Any:
    """Replaces `evaluated` at build time."""
    return vectors.carried[EVALUATED], at.row


def evaluated_stored(vectors: Any, at: Any) -> Any:
    """Replaces `evaluated` at build time."""
    return vectors.stored, at.memory + np.uint64(EVALUATED)


# The walking half.


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


def near_move(network: Any, free: Any, node: Any, decision: Any, first: Any) -> Any:
    """One uniform hop, by far the most frequent move, and whether it is accepted.

    `limits` holds the largest word that accepts an edge: an integer comparison instead of `accepts`. Words from `free`
    on belong to hops that are always accepted.
    """
    edge = edge_drawn(network, node, first)
    taken = (decision <= network.limits[edge]) | (decision >= free)
    return choose(taken, network.tails[edge], node), taken


def far_move(network: Any, ends: Any, time: Any, key: Any, node: Any, draws: Any) -> Any:
    """Any move from a node: its end, the models sent and the probes sent.

    The decision word chooses the move (whose intervals end at `ends[time]`) and its acceptance; the other words choose
    the hops. Hops beyond the third draw their own words.
    """
    decision, tails, moves = draws.decision, network.tails, network.moves
    move = 0
    start = np.uint64(0)
    while move < ends.shape[1] - 1 and decision >= ends[time, move]:
        start = ends[time, move]
        move += 1
    hops = moves[move, HOPS]
    if moves[move, PLAIN]:
        end = node
        if hops > 0:
            end = tails[edge_drawn(network, node, draws.first)]
        if hops > 1:
            end = tails[edge_drawn(network, end, draws.second)]
        if hops > 2:
            end = tails[edge_drawn(network, end, draws.third)]
        for index in range(3, hops):
            end = tails[edge_drawn(network, end, word_of_hop(key, draws, index))]
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
        end = tails[edge_drawn(network, end, word_of_hop(key, draws, index))]
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


# The learning half. Several threads can share a walk, each with some coordinates of its model; `cuda/launch.py` then
# replaces `coordinate` and `total`.


def coordinate(j: int) -> int:
    """The coordinate of the whole model that is number j here."""
    return j


def total(number: Any) -> Any:
    """The sum over all threads that share a walk."""
    return number


def read(features: Any, sample: Any, j: int) -> Any:
    """A feature. On a CPU, replaced at build time by an intrinsic that marks features as constant."""
    return features[sample, j]


def fetch(array: Any, row: Any) -> None:
    """Prefetch a row. On a CPU, replaced at build time by an intrinsic."""


def predict(features: Any, sample: Any, models: Any, walk: Any, dim: int) -> Any:
    """aᵀx. On a CPU, replaced at build time by an intrinsic that sums in vector registers, in its own order."""
    products = models.dtype.type(0.0)
    for j in range(dim):
        products += read(features, sample, j) * models[walk, j]
    return products


def learn_visit(data: Any, lesson: Any, vectors: Any, room: Any, at: Any, rate: Any, dim: int) -> None:
    """The local steps of one visit; `room` is a buffer for a gradient."""
    number = vectors.models.dtype.type
    numbers = numbers_of(lesson.numbers)
    visits = counted(vectors, at)
    done = (at.now - lesson.counted_from) * lesson.local_steps
    weight = number(data.weights[at.node])
    for local in range(lesson.local_steps):
        visit = Visit(number(rate), weight, done + local, lesson.nodes, visits)
        sample = np.uint64(at.node)
        if not data.alone:
            sample = np.uint64(data.offsets[at.node])
            last = np.uint64(data.offsets[at.node + np.uint64(1)])
            if FACTORS and sample == last:
                learn_at_relay(visit, numbers, vectors, at, dim)
                continue
            if lesson.sampled:
                draw = word(lesson.seed, SAMPLE, np.uint64(at.walk), np.uint64(at.now), np.uint64(local))
                sample += pick(draw, last - sample)
            elif last - sample != np.uint64(1):
                learn_from_all(visit, numbers, data, vectors, room, at, last - sample, dim)
                continue
        learn_from_one(visit, numbers, data, vectors, at, sample, dim)


def counted(vectors: Any, at: Any) -> Any:
    """The visits of the walk to the node, including this one; 0 if the rule does not need them."""
    visits = 0
    if COUNTS_VISITS:
        vectors.seen[at.cell] += 1
        visits = vectors.seen[at.cell]
    return visits


def factor_of(data: Any, vectors: Any, at: Any) -> Any:
    """The factor of the loss of the node."""
    factor = vectors.models.dtype.type(1.0)
    if FACTORS:
        factor = vectors.models.dtype.type(data.factors[at.node])
    return factor


def ridge_of(data: Any, vectors: Any, at: Any) -> Any:
    """The strength of the ridge term at the node."""
    ridge = vectors.models.dtype.type(data.ridge)
    if FACTORS:
        ridge *= factor_of(data, vectors, at)
    return ridge


def learn_from_one(visit: Any, numbers: Any, data: Any, vectors: Any, at: Any, sample: Any, dim: int) -> None:
    """One step along the gradient of one sample."""
    point, row = evaluated(vectors, at)
    pull = slope(predict(data.features, sample, point, row, dim), data.targets[sample])
    if FACTORS:
        pull *= factor_of(data, vectors, at)
    descend(visit, numbers, data, vectors, at, sample, pull, dim)


def descend(visit: Any, numbers: Any, data: Any, vectors: Any, at: Any, sample: Any, pull: Any, dim: int) -> None:
    """One step along the gradient of one sample, whose slope is known."""
    point, row = evaluated(vectors, at)
    ridge = ridge_of(data, vectors, at)
    for j in range(dim):
        gradient = pull * read(data.features, sample, j)
        if RIDGE:
            gradient += ridge * point[row, j]
        apply(visit, numbers, vectors, at, j, gradient)


def learn_from_all(
    visit: Any, numbers: Any, data: Any, vectors: Any, room: Any, at: Any, samples: Any, dim: int
) -> None:
    """One step along the gradient of the mean over the samples of the node."""
    point, row = evaluated(vectors, at)
    for j in range(dim):
        room[j] = 0.0
    share = room.dtype.type(samples)
    first = np.uint64(data.offsets[at.node])
    for sample in range(first, first + samples):
        pull = slope(predict(data.features, sample, point, row, dim), data.targets[sample]) / share
        if FACTORS:
            pull *= factor_of(data, vectors, at)
        for j in range(dim):
            room[j] += pull * read(data.features, sample, j)
    ridge = ridge_of(data, vectors, at)
    for j in range(dim):
        apply(visit, numbers, vectors, at, j, room[j] + ridge * point[row, j])


def learn_at_relay(visit: Any, numbers: Any, vectors: Any, at: Any, dim: int) -> None:
    """A step at a node without data: it has no gradient, and the model stays unchanged.

    Carried vectors are updated with a step size of 0. A rule that stores vectors at the nodes relies on all of them
    taking part: for it, a relay is a node whose loss is 0.
    """
    zero = vectors.models.dtype.type(0.0)
    if STORES > 0:
        for j in range(dim):
            apply(visit, numbers, vectors, at, j, zero)
    else:
        still = Visit(zero, visit.weight, visit.count, visit.nodes, visit.visits)
        for j in range(dim):
            x = vectors.models[at.row, j]
            apply(still, numbers, vectors, at, j, zero)
            vectors.models[at.row, j] = x


def measure(data: Any, models: Any, walk: Any, differences: Any, row: Any, dim: int) -> Any:
    """The loss of a model without its ridge term, the ridge term, and its squared distance from the optimum.

    `differences` has a row for the difference between the model and the optimum.
    """
    squared = 0.0
    distance = 0.0
    for j in range(dim):
        if coordinate(j) < data.optimum.size:
            x = np.float64(models[walk, j])
            difference = x - data.optimum[coordinate(j)]
            differences[row, j] = difference
            squared += x * x
            distance += difference * difference
    squared = total(squared)
    distance = total(distance)
    if data.curvature.size > 0:
        fit = quadratic_loss(data, differences, row, dim)
    else:
        fit = sum_of_losses(data, models, walk, dim)
    return fit, 0.5 * data.ridge * squared, distance


def quadratic_loss(data: Any, differences: Any, row: Any, dim: int) -> Any:
    """A quadratic loss from its value and derivatives at the optimum, which determine it: d² numbers, not n·d."""
    loss = data.least
    for i in range(data.pull.size):
        loss += (data.pull[i] + 0.5 * predict(data.curvature, i, differences, row, dim)) * differences[row, i]
    return loss


def sum_of_losses(data: Any, models: Any, walk: Any, dim: int) -> Any:
    """A loss sample by sample, in a fixed order."""
    loss = 0.0
    for sample in range(data.targets.size):
        loss += data.sample_weights[sample] * value(
            predict(data.features, sample, models, walk, dim), data.targets[sample]
        )
    return loss
