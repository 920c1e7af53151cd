"""One update of one model at one node, and the measures of a model, written once as scalar functions.

Nothing here runs as written: `freewalk.compiled` combines these functions, those of `moves_and_messages.py`, an
objective's `slope` and `value` and a rule's `update` into compiled modules.
"""

from typing import Any

import numpy as np

from freewalk.rng import SAMPLE, pick, word
from freewalk.runtimes.step.arrays import Visit

# These are compiled in (`inputs.functions_of`).
RIDGE = True  # whether the objective has a ridge term
FACTORS = True  # whether the losses of the nodes have factors other than 1, as with relays
STORES = 0  # vectors stored at each node
COUNTS_VISITS = False  # whether the rule needs the visits of the walk to a node


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


# Several threads can share a walk, each with some coordinates of its model; `cuda/launch.py` then replaces `coordinate`
# and `total`.


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
