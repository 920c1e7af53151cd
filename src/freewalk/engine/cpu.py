"""Blocks of walks on a processor: write a block of nodes, then learn over it.

The path never depends on the model, so a block of steps is first walked and then learned from. The walks of a block take
turns, step by step: while one waits for memory or for a sum, the others compute.
"""

from typing import Any, NamedTuple

import numpy as np

from freewalk.engine.step import learn_at, make_move, value
from freewalk.rng import MOVE, SAMPLE, pick, word, word_pair

LANES = 16
BLOCK = 128


class Data(NamedTuple):
    """An objective's samples, padded with zero features to a multiple of four, and the weights of the nodes."""

    features: Any
    targets: Any
    offsets: Any
    sample_weights: Any
    weights: Any
    ridge: Any
    optimum: Any


class Walkers(NamedTuple):
    """The state of all walks."""

    nodes: Any
    models: Any
    carried: Any
    messages: Any
    probes: Any
    visits: Any
    path_of: Any  # by walk: its row in `paths`, or -1
    paths: Any


class Plan(NamedTuple):
    """What to do between two steps."""

    seed: Any
    step: Any
    until: Any
    marks: Any  # the steps at which to measure
    ends: Any  # where the intervals of the moves end: one row, or one a step
    rates: Any  # the step sizes: one, or one a step
    counted_from: Any  # the step at which the rule began
    learning: Any
    local_steps: Any
    sampled: Any
    reported: Any


class Measures(NamedTuple):
    """What is measured, by walk and mark."""

    loss: Any  # without the ridge term
    penalty: Any  # the ridge term
    distance: Any
    messages: Any
    probes: Any


def advance(table: Any, data: Any, plan: Any, walkers: Any, measures: Any, first: int, last: int, visit_row: int) -> None:
    """Move the walks first..last-1 from plan.step to plan.until.

    Visits are counted in row `visit_row`, or in each walk's own row where that is -1.
    """
    width = data.features.shape[1]
    path = np.empty((BLOCK, LANES), dtype=np.int32)
    decisions = np.empty((BLOCK, LANES), dtype=np.uint64)
    firsts = np.empty((BLOCK, LANES), dtype=np.uint64)
    total = np.empty(width, dtype=data.features.dtype)
    model = np.zeros((LANES, width), dtype=data.features.dtype)
    carried = np.zeros((walkers.carried.shape[0], LANES, width), dtype=data.features.dtype)
    reported = np.empty((width, LANES), dtype=data.features.dtype)
    prediction = np.empty(LANES, dtype=data.features.dtype)
    losses = np.empty(LANES)
    dim = walkers.models.shape[1]
    for base in range(first, last, LANES):
        lanes = min(LANES, last - base)
        for lane in range(lanes):
            for j in range(dim):
                model[lane, j] = walkers.models[base + lane, j]
                for k in range(carried.shape[0]):
                    carried[k, lane, j] = walkers.carried[k, base + lane, j]
        now = plan.step
        mark = 0
        while True:
            if mark < plan.marks.size and now == plan.marks[mark]:
                for walk in range(base, base + lanes):
                    measures.messages[walk, mark] = walkers.messages[walk]
                    measures.probes[walk, mark] = walkers.probes[walk]
                if plan.learning:
                    measure(data, plan, base, lanes, model, carried, reported, prediction, losses, measures, mark)
                mark += 1
            if now >= plan.until:
                break
            stop = plan.until
            if mark < plan.marks.size:
                stop = plan.marks[mark]
            count = min(BLOCK, stop - now)
            draw_block(plan, base, lanes, now, count, decisions, firsts)
            walk_block(table, plan, walkers, base, lanes, now, count, decisions, firsts, path, visit_row)
            if plan.learning:
                learn_block(data, plan, base, lanes, now, count, path, model, carried, total)
            now += count
        for lane in range(lanes):
            for j in range(dim):
                walkers.models[base + lane, j] = model[lane, j]
                for k in range(carried.shape[0]):
                    walkers.carried[k, base + lane, j] = carried[k, lane, j]


def draw_block(plan: Any, base: int, lanes: int, now: int, count: int, decisions: Any, firsts: Any) -> None:
    """Words 0 and 1 of every step and lane: the words that nearly every step needs."""
    for t in range(count):
        step = np.uint64(now + t)
        for lane in range(lanes):
            even, odd = word_pair(plan.seed, MOVE, np.uint64(base + lane), step, np.uint64(0))
            decisions[t, lane] = even
            firsts[t, lane] = odd


def walk_block(
    table: Any,
    plan: Any,
    walkers: Any,
    base: int,
    lanes: int,
    now: int,
    count: int,
    decisions: Any,
    firsts: Any,
    path: Any,
    visit_row: int,
) -> None:
    """Walk `count` steps, writing the node of every step and lane."""
    # Arrays are taken out of their tuples once: inside the loop each access would count a reference.
    indptr, indices, moves, ratios, row_indptr, row_indices, row_ends, law_ends = table
    nodes, messages, probes, visits = walkers.nodes, walkers.messages, walkers.probes, walkers.visits
    ends, seed, began = plan.ends, plan.seed, plan.step
    for t in range(count):
        time = min(now + t - began, ends.shape[0] - 1)
        step = np.uint64(now + t)
        for lane in range(lanes):
            walk = base + lane
            node = np.int64(nodes[walk])
            path[t, lane] = node
            visits[walk if visit_row < 0 else visit_row, node] += 1
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
    path_of, paths = walkers.path_of, walkers.paths
    for lane in range(lanes):
        row = path_of[base + lane]
        if row >= 0:
            for t in range(count):
                paths[row, now + t] = path[t, lane]
            paths[row, now + count] = nodes[base + lane]


def learn_block(
    data: Any, plan: Any, base: int, lanes: int, now: int, count: int, path: Any, model: Any, carried: Any, total: Any
) -> None:
    """Learn at the nodes of a walked block."""
    features, targets, offsets, weights, ridge = data.features, data.targets, data.offsets, data.weights, data.ridge
    rates, began, seed, sampled = plan.rates, plan.step, plan.seed, plan.sampled
    local_steps, counted_from = plan.local_steps, plan.counted_from
    for t in range(count):
        rate = rates[min(now + t - began, rates.size - 1)]
        done = (now + t - counted_from) * local_steps
        for lane in range(lanes):
            node = path[t, lane]
            step = rate * weights[node]
            for local in range(local_steps):
                first = offsets[node]
                last = offsets[node + 1]
                if sampled:
                    draw = word(seed, SAMPLE, np.uint64(base + lane), np.uint64(now + t), np.uint64(local))
                    first += np.int64(pick(draw, np.uint64(last - first)))
                    last = first + 1
                learn_at(features, targets, ridge, first, last, step, done + local, model, carried, lane, total)


def measure(
    data: Any,
    plan: Any,
    base: int,
    lanes: int,
    model: Any,
    carried: Any,
    reported: Any,
    prediction: Any,
    losses: Any,
    measures: Any,
    mark: int,
) -> None:
    """Loss and distance of every lane, sample by sample in a fixed order, with the lanes side by side."""
    features, targets, sample_weights, optimum = data.features, data.targets, data.sample_weights, data.optimum
    for lane in range(lanes):
        losses[lane] = 0.0
        for j in range(features.shape[1]):
            reported[j, lane] = model[lane, j] if plan.reported < 0 else carried[plan.reported, lane, j]
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
        measures.loss[base + lane, mark] = losses[lane]
        measures.penalty[base + lane, mark] = 0.5 * data.ridge * squared
        measures.distance[base + lane, mark] = distance
