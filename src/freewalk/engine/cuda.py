"""Many walks on a graphics card: a thread a walk while its model fits into registers, else a warp a walk.

One kernel moves all walks from one step to another, a second one measures them. Both are a loop around the scalar
functions of `step.py`. Where a warp shares a walk, each of its threads holds every 32nd coordinate, all of them walk
the same way, and the first one writes down what was counted.
"""

from typing import Any

import numpy as np
from numba import cuda

from freewalk.engine.step import choose, far_move, learn_visit, measure, near_move, place, read, total
from freewalk.rng import HALF, LOW, MOVE, MULTIPLIER_0, MULTIPLIER_1, ROUNDS, STREAM, WEYL_0, WEYL_1

# These are compiled in (`cuda_build.program`).
SHARE = 1  # threads that share a walk
DIM = 1  # coordinates that a thread holds
COORDINATES = 1  # of the whole model
CARRIES = 1  # numbers carried a coordinate, at least 1
STRIDE = 1  # from one row of features to the next
BYTES = 8  # of a number of the model

WARP = 32
FULL = 0xFFFFFFFF


def place_in_warp(j: int) -> Any:
    """Takes the place of `place`."""
    return j * WARP + cuda.threadIdx.x % WARP


def words_by_halves(seed: Any, stream: Any, walk: Any, step: Any, block: Any) -> Any:
    """`rng.word_pair` by arithmetic on 32 bits, as cards have it."""
    c0 = np.uint32((stream << STREAM) | block)
    c1 = np.uint32(walk)
    c2 = np.uint32(step & LOW)
    c3 = np.uint32(step >> HALF)
    k0 = np.uint32(seed & LOW)
    k1 = np.uint32(seed >> HALF)
    for _ in range(ROUNDS):
        one = MULTIPLIER_0 * np.uint64(c0)
        two = MULTIPLIER_1 * np.uint64(c2)
        c0 = np.uint32(two >> HALF) ^ c1 ^ k0
        c1 = np.uint32(two & LOW)
        c2 = np.uint32(one >> HALF) ^ c3 ^ k1
        c3 = np.uint32(one & LOW)
        k0 = np.uint32((np.uint64(k0) + WEYL_0) & LOW)
        k1 = np.uint32((np.uint64(k1) + WEYL_1) & LOW)
    return (np.uint64(c0) << HALF) | np.uint64(c1), (np.uint64(c2) << HALF) | np.uint64(c3)


def read_flat(features: Any, sample: Any, j: int) -> Any:
    """Takes the place of `read`: rows lie one behind the other in an array of one dimension."""
    return features[np.uint32(sample) * np.uint32(STRIDE) + np.uint32(j)]


def read_in_warp(features: Any, sample: Any, j: int) -> Any:
    """Takes the place of `read`: zero beyond the last coordinate."""
    return features[np.int64(sample) * STRIDE + place(j)] if place(j) < COORDINATES else features.dtype.type(0.0)


def predict_in_warp(features: Any, sample: Any, models: Any, walk: Any, dim: int) -> Any:
    """Takes the place of `predict`."""
    products = models.dtype.type(0.0)
    for j in range(dim):
        if place(j) < COORDINATES:  # what a rule makes of the coordinates that do not exist must not count
            products += read(features, sample, j) * models[walk, j]
    return total(products)


def total_in_warp(number: Any) -> Any:
    """Takes the place of `total`: every thread gets the same sum, to the last bit."""
    number += cuda.shfl_xor_sync(FULL, number, 16)
    number += cuda.shfl_xor_sync(FULL, number, 8)
    number += cuda.shfl_xor_sync(FULL, number, 4)
    number += cuda.shfl_xor_sync(FULL, number, 2)
    number += cuda.shfl_xor_sync(FULL, number, 1)
    return number


def total_in_block(number: Any) -> Any:
    """Takes the place of `total` in numba's simulator, which knows no shuffles: a block of one warp there."""
    room = cuda.shared.array(WARP, np.float64)
    room[cuda.threadIdx.x] = number
    cuda.syncthreads()
    result = number * 0
    for lane in range(WARP):
        result += number.dtype.type(room[lane])
    cuda.syncthreads()
    return result


def learn_nothing(
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
    """Takes the place of `learn_visit` where a walk does not learn."""


def measure_nothing(data: Any, models: Any, walk: Any, differences: Any, row: Any, dim: int) -> Any:
    """Takes the place of `measure` where a walk does not learn."""
    return 0.0, 0.0, 0.0


def stage(table: Any, data: Any, walkers: Any) -> Any:
    """The arrays that every step reads, and room to count visits in."""
    return table[0], table[1], table[2], data.features, data.targets, data.weights, walkers.visits[0]


def stage_graph(table: Any, data: Any, walkers: Any) -> Any:
    """Takes the place of `stage` where a walk does not learn."""
    return table[0], table[1], table[2], 0, 0, 0, walkers.visits[0]


def stage_in_shared(table: Any, data: Any, walkers: Any) -> Any:
    """Takes the place of `stage` where all of it fits into the memory that a block shares: copies of it there."""
    nodes, edges = table[0].size, table[1].size
    words = cuda.shared.array(0, table[0].dtype)
    doubles = cuda.shared.array(0, data.weights.dtype)
    numbers = cuda.shared.array(0, data.features.dtype)
    halves = cuda.shared.array(0, table[1].dtype)
    in_words = nodes + table[2].size + nodes
    first = in_words * (8 // BYTES)
    spans = words[:nodes]
    limits = words[nodes : nodes + table[2].size]
    weights = doubles[nodes + table[2].size : in_words]
    features = numbers[first : first + data.features.size]
    targets = numbers[first + data.features.size : first + data.features.size + data.targets.size]
    behind = (first + data.features.size + data.targets.size) * (BYTES // 4)
    tails = halves[behind : behind + edges]
    counts = halves[behind + edges : behind + edges + nodes]
    for index in range(cuda.threadIdx.x, nodes, cuda.blockDim.x):
        spans[index] = table[0][index]
        weights[index] = data.weights[index]
        counts[index] = 0
    for index in range(cuda.threadIdx.x, edges, cuda.blockDim.x):
        tails[index] = table[1][index]
    for index in range(cuda.threadIdx.x, table[2].size, cuda.blockDim.x):
        limits[index] = table[2][index]
    for index in range(cuda.threadIdx.x, data.features.size, cuda.blockDim.x):
        features[index] = data.features[index]
    for index in range(cuda.threadIdx.x, data.targets.size, cuda.blockDim.x):
        targets[index] = data.targets[index]
    cuda.syncthreads()
    return spans, tails, limits, features, targets, weights, counts


def unstage(walkers: Any, counts: Any) -> None:
    """What is left to do with the counts: nothing, they were counted where they belong."""


def unstage_counts(walkers: Any, counts: Any) -> None:
    """Takes the place of `unstage`: add the visits of a block to those of all."""
    cuda.syncthreads()
    if walkers.visits.shape[0] != walkers.nodes.size:
        for index in range(cuda.threadIdx.x, counts.size, cuda.blockDim.x):
            cuda.atomic.add(walkers.visits, (0, index), np.int64(counts[index]))


def advance(table: Any, route: Any, walkers: Any, data: Any, lesson: Any, models: Any, carried: Any, span: Any) -> None:
    """Move all walks from step span[1] to span[2]; span[0] is the number of the first of them."""
    spans, tails, limits, features, targets, weights, counts = stage(table, data, walkers)
    row = cuda.grid(1) // SHARE
    if row < walkers.nodes.size:
        leads = cuda.grid(1) % SHARE == 0
        walk = np.uint64(span[0] + row)
        x = cuda.local.array((1, DIM), dtype=models.dtype)
        kept = cuda.local.array((CARRIES, 1, DIM), dtype=models.dtype)
        gradient = cuda.local.array(DIM, dtype=models.dtype)
        for j in range(DIM):
            x[0, j] = models[row, place(j)] if place(j) < COORDINATES else models.dtype.type(0.0)
            for index in range(carried.shape[0]):
                kept[index, 0, j] = carried[index, row, place(j)] if place(j) < COORDINATES else models.dtype.type(0.0)
        node = np.uint32(walkers.nodes[row])
        path = walkers.path_of[row]
        near, free, far, rate = route.near[0], route.free[0], route.far[0], lesson.rates[0]
        decision, first = np.uint64(0), np.uint64(0)
        sent, probed = np.int64(0), np.int64(0)
        # A round is one pair of words, and nearly always one step. A move that needs a second pair waits for the next
        # round, while the other threads go on to their next step: drawing it at once would hold up all of them. The
        # conditions are arithmetic, not branches, so that the threads of a warp stay together.
        waits = np.uint64(0)
        now = np.int64(span[1])
        while now < span[2]:
            fresh = waits == np.uint64(0)
            if fresh:
                if route.near.size > 1:
                    time = now - route.step
                    near, free, far = route.near[time], route.free[time], route.far[time]
                if lesson.rates.size > 1:
                    rate = lesson.rates[now - lesson.step]
                if leads:
                    count_visit(walkers, counts, row, node)
                learn_visit(
                    features,
                    targets,
                    weights,
                    data,
                    lesson,
                    rate,
                    (now - lesson.counted_from) * lesson.local_steps,
                    x,
                    kept,
                    gradient,
                    0,
                    walk,
                    np.uint64(node),
                    now,
                    DIM,
                )
            even, odd = words_by_halves(route.seed, MOVE, walk, np.uint64(now), waits)
            decision = choose(fresh, even, decision)
            first = choose(fresh, odd, first)
            beyond = decision >= near
            waits = np.uint64(fresh & beyond & (decision >= far))
            end, taken = near_move(spans, tails, limits, free, node, decision, first)
            hops = np.int64(taken & (not beyond))
            end = choose(hops > 0, end, node)
            if beyond & (waits == np.uint64(0)):
                end, hops, probes = far_move(
                    spans,
                    tails,
                    table[3],
                    table[4],
                    table[5],
                    table[6],
                    table[7],
                    table[8],
                    route.ends,
                    min(now - route.step, route.ends.shape[0] - 1),
                    route.seed,
                    walk,
                    np.uint64(now),
                    node,
                    decision,
                    first,
                    even,
                    odd,
                )
                probed += np.int64(probes)
            node = np.uint32(end)
            sent += np.int64(hops)
            now += np.int64(1) - np.int64(waits)
            if path >= 0 and leads:
                walkers.paths[path, now] = node
        for j in range(DIM):
            if place(j) < COORDINATES:
                models[row, place(j)] = x[0, j]
                for index in range(carried.shape[0]):
                    carried[index, row, place(j)] = kept[index, 0, j]
        if leads:
            walkers.nodes[row] = node
            walkers.messages[row] += sent
            walkers.probes[row] += probed
    unstage(walkers, counts)


def count_visit(walkers: Any, counts: Any, row: int, node: Any) -> None:
    """Count a visit, in the walk's own row or in the counts that walks share."""
    if walkers.visits.shape[0] == walkers.nodes.size:
        walkers.visits[row, node] += 1
    else:
        cuda.atomic.add(counts, node, 1)


def measure_all(
    data: Any, lesson: Any, walkers: Any, models: Any, carried: Any, differences: Any, counts: Any, mark: int
) -> None:
    """Write down what there is to know about every walk at a mark."""
    row = cuda.grid(1) // SHARE
    if row >= walkers.nodes.size:
        return
    x = cuda.local.array((1, DIM), dtype=models.dtype)
    for j in range(DIM):
        x[0, j] = models.dtype.type(0.0)
        if place(j) < COORDINATES:
            x[0, j] = models[row, place(j)] if lesson.reported < 0 else carried[lesson.reported, row, place(j)]
    loss, penalty, distance = measure(data, x, 0, differences, row, DIM)
    if cuda.grid(1) % SHARE == 0:
        counts[0, mark, row] = walkers.messages[row]
        counts[1, mark, row] = walkers.probes[row]
        lesson.loss[mark, row] = loss
        lesson.penalty[mark, row] = penalty
        lesson.distance[mark, row] = distance
