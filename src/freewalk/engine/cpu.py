"""Many walks on a processor, in two halves: one writes the nodes that are visited, the other learns at them.

The path never depends on the model. So the walk half knows no objective and the learning half no graph; each is
compiled by itself, and handed slabs of walks × steps. Inside a slab, blocks of walks take turns step by step: while one
waits for memory or for a sum, the others compute.
"""

from typing import Any

import numpy as np

from freewalk.engine.arrays import Sums, Words
from freewalk.engine.step import descend, far_move, fetch, learn_visit, measure, near_move, predict, slope
from freewalk.rng import LOW, MOVE, word_pair

DIM = 0  # the number of coordinates where it is small and compiled in (`build.program`), else 0
SPLIT = False  # whether a slope takes so long that those of all lanes are computed together; compiled in as well
LANES = 16  # walks that take turns
BLOCK = 128  # steps whose words are drawn ahead
AHEAD = 4  # steps from now, what they read is fetched


def words() -> Words:
    """Room for the words of a block."""
    return Words(*(np.empty(BLOCK * LANES + 1, dtype=np.uint64) for _ in range(6)))


def sums(dim: int, precision: str) -> Sums:
    """Room for what is computed from models of `dim` coordinates."""
    return Sums(
        gradient=np.empty(dim, dtype=precision), pulls=np.empty(LANES, dtype=precision), differences=np.empty((1, dim))
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
    """Words 0 and 1 of every step and lane, which nearly every step needs, and words 2 and 3 of those that may."""
    decisions, firsts, seed = room.decisions, room.firsts, route.seed
    if lanes == LANES:  # one long loop fills vector registers best
        for index in range(count * LANES):
            draw_pair(decisions, firsts, seed, base, index % LANES, now, index // LANES, index)
    else:
        for lane in range(lanes):
            for t in range(count):
                draw_pair(decisions, firsts, seed, base, lane, now, t, t * lanes + lane)
    steps, lanes_of, seconds, thirds, far = room.steps, room.lanes, room.seconds, room.thirds, route.far
    found = np.uint64(0)
    for t in range(count):
        least = far[min(now + t - route.step, far.size - 1)]
        for lane in range(lanes):  # no branch: what does not count is overwritten
            steps[found] = np.uint64(now + t)
            lanes_of[found] = np.uint64(base + lane)
            found += np.uint64(decisions[t * lanes + lane] >= least)
    for index in range(found):
        even, odd = word_pair(seed, MOVE, lanes_of[index], steps[index], np.uint64(1))
        seconds[index] = even
        thirds[index] = odd


def draw_pair(decisions: Any, firsts: Any, seed: Any, base: int, lane: int, now: int, t: int, index: int) -> None:
    """Words 0 and 1 of one step and lane."""
    # Told that the number of the walk has 32 bits, the compiler multiplies by those alone.
    even, odd = word_pair(seed, MOVE, np.uint64(base + lane) & LOW, np.uint64(now + t), np.uint64(0))
    decisions[index] = even
    firsts[index] = odd


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
    spans, tails, limits, moves, ratios, row_indptr, row_indices, row_ends, law_ends = table
    nodes, messages, probes, visits = walkers.nodes, walkers.messages, walkers.probes, walkers.visits
    decisions, firsts, seconds, thirds = room.decisions, room.firsts, room.seconds, room.thirds
    ends, seed, chunk_start = route.ends, route.seed, route.step
    longer = np.uint64(0)
    node = np.uint32(nodes[base])
    for t in range(count):
        time = np.uint64(min(now + t - chunk_start, ends.shape[0] - 1))
        near = route.near[time]
        free = route.free[time]
        far = route.far[time]
        for lane in range(lanes):
            walk = np.uint64(base + lane)
            if lanes > 1:  # a walk alone goes on from where it is, without a detour through memory
                node = np.uint32(nodes[walk])
            path[np.uint64(row + t), np.uint64(column + lane)] = node
            visits[walk if visit_row < 0 else np.uint64(visit_row), node] += 1
            decision = decisions[t * lanes + lane]
            first = firsts[t * lanes + lane]
            if decision < near:
                end, taken = near_move(spans, tails, limits, free, node, decision, first)
                messages[walk] += taken
            else:
                second = seconds[longer]
                third = thirds[longer]
                longer += np.uint64(decision >= far)
                end, sent, probed = far_move(
                    spans,
                    tails,
                    moves,
                    ratios,
                    row_indptr,
                    row_indices,
                    row_ends,
                    law_ends,
                    ends,
                    time,
                    seed,
                    walk,
                    np.uint64(now + t),
                    node,
                    decision,
                    first,
                    second,
                    third,
                )
                messages[walk] += sent
                probes[walk] += probed
            node = np.uint32(end)
            nodes[walk] = node
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
    features, targets, weights = data.features, data.targets, data.weights
    rates, chunk_start, gradient = lesson.rates, lesson.step, room.gradient
    dim = DIM if DIM > 0 else data.features.shape[1]
    split = SPLIT and data.alone and lesson.local_steps == 1
    for t in range(count):
        rate = rates[min(now + t - chunk_start, rates.size - 1)]
        done = (now + t - lesson.counted_from) * lesson.local_steps
        if split:
            learn_together(
                data, rate, done, models, carried, room.pulls, path, base, lanes, np.uint64(row + t), column, dim
            )
            continue
        ahead = np.uint64(row + min(t + AHEAD, count - 1))
        for lane in range(lanes):
            walk = np.uint64(base + lane)
            if data.alone:  # where the walk will be is known already
                coming = np.uint64(path[ahead, np.uint64(column + lane)])
                fetch(features, coming)
                fetch(targets, coming)
                fetch(weights, coming)
            node = np.uint64(path[np.uint64(row + t), np.uint64(column + lane)])
            learn_visit(
                features,
                targets,
                weights,
                data,
                lesson,
                rate,
                done,
                models,
                carried,
                gradient,
                walk,
                walk,
                node,
                now + t,
                dim,
            )


def learn_together(
    data: Any,
    rate: Any,
    done: Any,
    models: Any,
    carried: Any,
    pulls: Any,
    path: Any,
    base: int,
    lanes: int,
    row: Any,
    column: int,
    dim: int,
) -> None:
    """One step of all lanes, in three passes: a slope that calls the mathematical library waits for no other."""
    features, targets, weights, ridge = data.features, data.targets, data.weights, models.dtype.type(data.ridge)
    for lane in range(lanes):
        node = np.uint64(path[row, np.uint64(column + lane)])
        pulls[lane] = predict(features, node, models, np.uint64(base + lane), dim)
    for lane in range(lanes):
        pulls[lane] = slope(pulls[lane], targets[np.uint64(path[row, np.uint64(column + lane)])])
    for lane in range(lanes):
        node = np.uint64(path[row, np.uint64(column + lane)])
        step = models.dtype.type(rate * weights[node])
        descend(features, ridge, dim, node, pulls[lane], step, done, models, carried, np.uint64(base + lane))


def measure_block(
    data: Any, lesson: Any, models: Any, carried: Any, room: Any, base: int, lanes: int, mark: int
) -> None:
    """Losses and distances of the models that are reported."""
    dim = DIM if DIM > 0 else data.features.shape[1]
    for walk in range(base, base + lanes):
        reported = models if lesson.reported < 0 else carried[lesson.reported]
        loss, penalty, distance = measure(data, reported, walk, room.differences, 0, dim)
        lesson.loss[walk, mark] = loss
        lesson.penalty[walk, mark] = penalty
        lesson.distance[walk, mark] = distance
