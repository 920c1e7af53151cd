"""Many walks on a processor, in two halves: one writes the nodes that are visited, the other learns at them.

The path never depends on the model. So the walk half knows no objective and the learning half no graph; each is
compiled by itself, and handed slabs of walks × steps. Inside a slab, blocks of walks take turns step by step: while one
waits for memory or for a sum, the others compute.
"""

from typing import Any, NamedTuple

import numpy as np

from freewalk.engine.step import learn_at, make_move, value
from freewalk.rng import MOVE, SAMPLE, pick, word, word_pair

LANES = 16  # walks that take turns
BLOCK = 128  # steps whose words are drawn ahead


class Walkers(NamedTuple):
    """Where the walks are and what they have counted, each by walk."""

    nodes: Any
    messages: Any
    probes: Any
    visits: Any  # by walk and node, or by thread and node
    path_of: Any  # the row in `paths`, or -1
    paths: Any


class Route(NamedTuple):
    """How the walks move from a step on, and when to write the counts down."""

    seed: Any
    step: Any
    ends: Any  # where the intervals of the moves end: one row, or one a step
    marks: Any
    messages: Any  # by walk and mark
    probes: Any


class Data(NamedTuple):
    """An objective's samples, padded with zero features to a multiple of four, and the weights of the nodes."""

    features: Any
    targets: Any
    offsets: Any
    sample_weights: Any
    weights: Any
    ridge: Any
    optimum: Any


class Lesson(NamedTuple):
    """How the walks learn from a step on, and when to measure."""

    seed: Any
    step: Any
    rates: Any  # the step sizes: one, or one a step
    counted_from: Any  # the step at which the rule began
    local_steps: Any
    sampled: Any
    reported: Any
    marks: Any
    loss: Any  # by walk and mark, without the ridge term
    penalty: Any  # the ridge term
    distance: Any


class Words(NamedTuple):
    """Room for the words of a block."""

    decisions: Any
    firsts: Any


class Sums(NamedTuple):
    """Room for what is computed from the models of a block."""

    gradient: Any
    reported: Any
    prediction: Any
    losses: Any


def words() -> Words:
    """Room for the words of a block."""
    return Words(*(np.empty((BLOCK, LANES), dtype=np.uint64) for _ in range(2)))


def sums(width: int, precision: str) -> Sums:
    """Room for what is computed from models `width` wide."""
    return Sums(
        gradient=np.empty(width, dtype=precision),
        reported=np.empty((width, LANES), dtype=precision),
        prediction=np.empty(LANES, dtype=precision),
        losses=np.empty(LANES),
    )


def walk_slab(
    table: Any,
    route: Any,
    walkers: Any,
    room: Any,
    path: Any,
    visit_row: int,
    first: int,
    last: int,
    start: int,
    stop: int,
    mark: int,
) -> None:
    """Walk the walks first..last-1 from step `start` to `stop`; path[t, w]: where walk first + w is at step start + t.

    `mark` is the first of the marks to write down. Visits are counted in row `visit_row`, or in each walk's own row
    where that is -1.
    """
    for base in range(first, last, LANES):
        lanes = min(LANES, last - base)
        now = start
        at = mark
        while now < stop:
            end = min(stop, now + BLOCK)
            if at < route.marks.size:
                end = min(end, route.marks[at])
            draw_block(route, room, base, lanes, now, end - now)
            walk_block(
                table, route, walkers, room, path, visit_row, base, lanes, base - first, now - start, now, end - now
            )
            now = end
            if at < route.marks.size and now == route.marks[at]:
                for walk in range(base, base + lanes):
                    route.messages[walk, at] = walkers.messages[walk]
                    route.probes[walk, at] = walkers.probes[walk]
                at += 1


def draw_block(route: Any, room: Any, base: int, lanes: int, now: int, count: int) -> None:
    """Words 0 and 1 of every step and lane: the words that nearly every step needs."""
    decisions, firsts, seed = room.decisions, room.firsts, route.seed
    for t in range(count):
        step = np.uint64(now + t)
        for lane in range(lanes):
            even, odd = word_pair(seed, MOVE, np.uint64(base + lane), step, np.uint64(0))
            decisions[t, lane] = even
            firsts[t, lane] = odd


def walk_block(
    table: Any,
    route: Any,
    walkers: Any,
    room: Any,
    path: Any,
    visit_row: int,
    base: int,
    lanes: int,
    column: int,
    row: int,
    now: int,
    count: int,
) -> None:
    """Walk `count` steps, writing the node of every step and lane."""
    indptr, indices, moves, ratios, row_indptr, row_indices, row_ends, law_ends = table
    nodes, messages, probes, visits = walkers.nodes, walkers.messages, walkers.probes, walkers.visits
    decisions, firsts = room.decisions, room.firsts
    ends, seed, chunk_start = route.ends, route.seed, route.step
    for t in range(count):
        time = min(now + t - chunk_start, ends.shape[0] - 1)
        step = np.uint64(now + t)
        for lane in range(lanes):
            walk = base + lane
            node: Any = np.int64(nodes[walk])
            path[row + t, column + lane] = node
            end, sent, probed = make_move(
                indptr,
                indices,
                moves,
                ratios,
                row_indptr,
                row_indices,
                row_ends,
                law_ends,
                ends,
                time,
                seed,
                np.uint64(walk),
                step,
                node,
                decisions[t, lane],
                firsts[t, lane],
            )
            nodes[walk] = end
            messages[walk] += sent
            probes[walk] += probed
    for t in range(count):
        for lane in range(lanes):
            visits[base + lane if visit_row < 0 else visit_row, path[row + t, column + lane]] += 1
    path_of, paths = walkers.path_of, walkers.paths
    for lane in range(lanes):
        kept = path_of[base + lane]
        if kept >= 0:
            for t in range(count):
                paths[kept, now + t] = path[row + t, column + lane]
            paths[kept, now + count] = nodes[base + lane]


def learn_slab(
    data: Any,
    lesson: Any,
    models: Any,
    carried: Any,
    room: Any,
    path: Any,
    first: int,
    last: int,
    start: int,
    stop: int,
    mark: int,
) -> None:
    """Learn at the nodes of a walked slab, and measure at the marks from number `mark` on."""
    for base in range(first, last, LANES):
        lanes = min(LANES, last - base)
        now = start
        at = mark
        while True:
            if at < lesson.marks.size and now == lesson.marks[at]:
                measure_block(data, lesson, models, carried, room, base, lanes, at)
                at += 1
            if now >= stop:
                break
            end = stop
            if at < lesson.marks.size:
                end = min(end, lesson.marks[at])
            learn_block(
                data, lesson, models, carried, room, path, base, lanes, base - first, now - start, now, end - now
            )
            now = end


def learn_block(
    data: Any,
    lesson: Any,
    models: Any,
    carried: Any,
    room: Any,
    path: Any,
    base: int,
    lanes: int,
    column: int,
    row: int,
    now: int,
    count: int,
) -> None:
    """Learn at `count` nodes of every lane."""
    features, targets, offsets, weights, ridge = data.features, data.targets, data.offsets, data.weights, data.ridge
    rates, chunk_start, seed, sampled = lesson.rates, lesson.step, lesson.seed, lesson.sampled
    dim = data.optimum.size
    local_steps, counted_from, gradient = lesson.local_steps, lesson.counted_from, room.gradient
    for t in range(count):
        rate = rates[min(now + t - chunk_start, rates.size - 1)]
        done = (now + t - counted_from) * local_steps
        for lane in range(lanes):
            walk = base + lane
            node = path[row + t, column + lane]
            step = rate * weights[node]
            for local in range(local_steps):
                first = offsets[node]
                last = offsets[node + 1]
                if sampled:
                    draw = word(seed, SAMPLE, np.uint64(walk), np.uint64(now + t), np.uint64(local))
                    first += np.int64(pick(draw, np.uint64(last - first)))
                    last = first + 1
                learn_at(
                    features, targets, ridge, dim, first, last, step, done + local, models, carried, walk, gradient
                )


def measure_block(
    data: Any, lesson: Any, models: Any, carried: Any, room: Any, base: int, lanes: int, mark: int
) -> None:
    """Losses and distances; the samples go in a fixed order, with the lanes side by side."""
    features, targets, sample_weights, optimum = data.features, data.targets, data.sample_weights, data.optimum
    reported, prediction, losses = room.reported, room.prediction, room.losses
    for lane in range(lanes):
        losses[lane] = 0.0
        for j in range(features.shape[1]):
            if lesson.reported < 0:
                reported[j, lane] = models[base + lane, j]
            else:
                reported[j, lane] = carried[lesson.reported, base + lane, j]
    for sample in range(features.shape[0]):
        for lane in range(lanes):
            prediction[lane] = 0.0
        for j in range(features.shape[1]):
            for lane in range(lanes):
                prediction[lane] += features[sample, j] * reported[j, lane]
        for lane in range(lanes):
            losses[lane] += sample_weights[sample] * value(prediction[lane], targets[sample])
    for lane in range(lanes):
        squared = 0.0
        distance = 0.0
        for j in range(optimum.size):
            squared += reported[j, lane] ** 2
            distance += (reported[j, lane] - optimum[j]) ** 2
        lesson.loss[base + lane, mark] = losses[lane]
        lesson.penalty[base + lane, mark] = 0.5 * data.ridge * squared
        lesson.distance[base + lane, mark] = distance
