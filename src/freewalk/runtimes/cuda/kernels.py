"""Many walks on a GPU: one thread per walk if its model fits into registers, else one warp per walk.

One kernel, `advance`, advances all walks; a second one, `measure_all`, measures them. Both are loops around the scalar
functions of `step/`. If a warp shares a walk, each of its threads holds every 32nd coordinate, all threads make the
same moves, and the first one records the counts.
"""

from typing import Any

import numpy as np
from numba import cuda

from freewalk.rng import HALF, LOW, MOVE, MULTIPLIER_0, MULTIPLIER_1, ROUNDS, STREAM, WEYL_0, WEYL_1
from freewalk.runtimes.step.arrays import DrawKey, FlatKernel, MoveWords, NodeData, Place, TokenAt, Vectors
from freewalk.runtimes.step.memory import NOWHERE, count_visit_of, outcome_back, remembered_move, weight
from freewalk.runtimes.step.moves_and_messages import choose, far_move, near_move
from freewalk.runtimes.step.update import coordinate, learn_visit, measure, read, total

# These are compiled in (`cuda/launch.py`).
SHARE = 1  # threads that share a walk
DIM = 1  # coordinates that a thread holds
COORDINATES = 1  # of the whole model
CARRIES = 0  # carried vectors
STORES = 0  # stored vectors
KEPT, HELD = 1, 1  # the same, but at least 1, because an array needs a row
COUNTS_VISITS = False  # whether the rule needs the visits of the walk to a node
REPORTED = -1  # the carried vector to report as the model; -1: the model itself
COUNTS = False  # whether tokens remember their visits
STRIDE = 1  # from one row of features to the next
BYTES = 8  # of a number of the model

WARP = 32
FULL = 0xFFFFFFFF


def coordinate_in_warp(j: int) -> Any:
    """Replaces `coordinate` at build time."""
    return j * WARP + cuda.threadIdx.x % WARP


def words_by_halves(seed: Any, stream: Any, walk: Any, step: Any, block: Any) -> Any:
    """`rng.word_pair` in 32-bit arithmetic, which is native on GPUs."""
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
    """Replaces `read` at build time: rows are contiguous in a one-dimensional array."""
    return features[np.uint32(sample) * np.uint32(STRIDE) + np.uint32(j)]


def read_in_warp(features: Any, sample: Any, j: int) -> Any:
    """Replaces `read` at build time: zero beyond the last coordinate."""
    return (
        features[np.int64(sample) * STRIDE + coordinate(j)] if coordinate(j) < COORDINATES else features.dtype.type(0.0)
    )


def predict_in_warp(features: Any, sample: Any, models: Any, walk: Any, dim: int) -> Any:
    """Replaces `predict` at build time."""
    products = models.dtype.type(0.0)
    for j in range(dim):
        if coordinate(j) < COORDINATES:  # ignore what a rule computes for padding coordinates
            products += read(features, sample, j) * models[walk, j]
    return total(products)


def total_in_warp(number: Any) -> Any:
    """Replaces `total` at build time: every thread gets the same sum, to the last bit."""
    number += cuda.shfl_xor_sync(FULL, number, 16)
    number += cuda.shfl_xor_sync(FULL, number, 8)
    number += cuda.shfl_xor_sync(FULL, number, 4)
    number += cuda.shfl_xor_sync(FULL, number, 2)
    number += cuda.shfl_xor_sync(FULL, number, 1)
    return number


def total_in_block(number: Any) -> Any:
    """Replaces `total` in numba's simulator, which has no shuffles; a block is one warp there."""
    room = cuda.shared.array(WARP, np.float64)
    room[cuda.threadIdx.x] = number
    cuda.syncthreads()
    result = number * 0
    for lane in range(WARP):
        result += number.dtype.type(room[lane])
    cuda.syncthreads()
    return result


def learn_nothing(data: Any, lesson: Any, vectors: Any, room: Any, at: Any, rate: Any, dim: int) -> None:
    """Replaces `learn_visit` if a walk does not learn."""


def counted_after(vectors: Any, at: Any) -> Any:
    """Replaces `counted`: threads that share a walk all read the count before one of them writes it."""
    visits = 0
    if COUNTS_VISITS:
        visits = vectors.seen[at.cell] + 1
    return visits


def together() -> None:
    """Wait for all threads that share a walk; here there is only one."""


def together_in_warp() -> None:
    """Replaces `together` at build time."""
    cuda.syncwarp()


def together_in_block() -> None:
    """Replaces `together` in numba's simulator."""
    cuda.syncthreads()


def measure_nothing(data: Any, models: Any, walk: Any, differences: Any, row: Any, dim: int) -> Any:
    """Replaces `measure` if a walk does not learn."""
    return 0.0, 0.0, 0.0


def stage(network: Any, data: Any, walkers: Any) -> Any:
    """Network and data as every step reads them, and an array to count visits in."""
    return network, data, walkers.visits[0]


def stage_in_shared(network: Any, data: Any, walkers: Any) -> Any:
    """Replaces `stage` if everything fits into shared memory: returns copies there."""
    nodes, edges = network.spans.size, network.edges.size
    words = cuda.shared.array(0, network.spans.dtype)
    doubles = cuda.shared.array(0, data.weights.dtype)
    numbers = cuda.shared.array(0, data.features.dtype)
    halves = cuda.shared.array(0, walkers.nodes.dtype)
    in_words = nodes + edges + nodes
    first = in_words * (8 // BYTES)
    spans = words[:nodes]
    ends = words[nodes : nodes + edges]
    weights = doubles[nodes + edges : in_words]
    features = numbers[first : first + data.features.size]
    targets = numbers[first + data.features.size : first + data.features.size + data.targets.size]
    behind = (first + data.features.size + data.targets.size) * (BYTES // 4)
    counts = halves[behind : behind + nodes]
    for index in range(cuda.threadIdx.x, nodes, cuda.blockDim.x):
        spans[index] = network.spans[index]
        weights[index] = data.weights[index]
        counts[index] = 0
    for index in range(cuda.threadIdx.x, edges, cuda.blockDim.x):
        ends[index] = network.edges[index]
    for index in range(cuda.threadIdx.x, data.features.size, cuda.blockDim.x):
        features[index] = data.features[index]
    for index in range(cuda.threadIdx.x, data.targets.size, cuda.blockDim.x):
        targets[index] = data.targets[index]
    cuda.syncthreads()
    near = FlatKernel(
        spans,
        ends,
        network.moves,
        network.ratios,
        network.row_indptr,
        network.row_indices,
        network.row_ends,
        network.law_ends,
        network.outcomes,
        network.row_starts,
        network.shares,
        network.others,
        network.back,
        network.rarity,
    )
    here = NodeData(
        features,
        targets,
        data.offsets,
        data.alone,
        data.sample_weights,
        weights,
        data.factors,
        data.ridge,
        data.optimum,
        data.curvature,
        data.pull,
        data.least,
    )
    return near, here, counts


def unstage(walkers: Any, counts: Any) -> None:
    """Finish the counts: nothing to do, since they were counted in place."""


def unstage_counts(walkers: Any, counts: Any) -> None:
    """Replaces `unstage`: adds the visits of a block to the total."""
    cuda.syncthreads()
    if walkers.visits.shape[0] != walkers.nodes.size:
        for index in range(cuda.threadIdx.x, counts.size, cuda.blockDim.x):
            cuda.atomic.add(walkers.visits, (0, index), np.int64(counts[index]))


def keep_nothing(scratch: Any, place: Any, total: Any) -> None:
    """Replaces `keep` at build time: a thread has no room for many sums."""


def total_computed_again(
    network: Any, route: Any, walkers: Any, scratch: Any, at: Any, start: Any, place: Any, least: Any, total: Any
) -> Any:
    """Replaces `total_again` at build time."""
    return total + weight(network, route, walkers, at, start + place, least)


def advance(network: Any, route: Any, walkers: Any, data: Any, lesson: Any, vectors: Any, span: Any) -> None:
    """Move all walks from step span[0] to span[1]."""
    near_network, near_data, counts = stage(network, data, walkers)
    row = cuda.grid(1) // SHARE
    if row < walkers.nodes.size:
        leads = cuda.grid(1) % SHARE == 0
        walk = np.uint64(route.first + row)
        x = cuda.local.array((1, DIM), dtype=vectors.models.dtype)
        kept = cuda.local.array((KEPT, 1, DIM), dtype=vectors.models.dtype)
        held = cuda.local.array((HELD, DIM), dtype=vectors.models.dtype)
        gradient = cuda.local.array(DIM, dtype=vectors.models.dtype)
        load_walk(vectors, row, x, kept)
        mine = Vectors(x, kept, held, vectors.seen)
        node = np.uint32(walkers.nodes[row])
        path = walkers.path_of[row]
        near, free, far, rate = route.near[0], route.free[0], route.far[0], lesson.rates[0]
        decision, first = np.uint64(0), np.uint64(0)
        sent, probed = np.int64(0), np.int64(0)
        # A round is one pair of words, and nearly always one step. A move that needs a second pair waits for the next
        # round, while the other threads continue with their next step: drawing it at once would delay all of them. The
        # conditions are arithmetic, not branches, so that the threads of a warp do not diverge.
        waits = np.uint64(0)
        now = np.int64(span[0])
        while now < span[1]:
            fresh = waits == np.uint64(0)
            if fresh:
                if route.near.size > 1:
                    time = now - route.start
                    near, free, far = route.near[time], route.free[time], route.far[time]
                if lesson.rates.size > 1:
                    rate = lesson.rates[now - lesson.start]
                count_visit(walkers, counts, row, node, leads)
                cell = np.uint64(row) * np.uint64(lesson.nodes) + np.uint64(node)
                at = Place(0, cell, np.uint64(0), walk, np.uint64(node), now)
                learn_at(near_data, lesson, vectors, mine, gradient, at, rate, leads)
            even, odd = words_by_halves(route.seed, MOVE, walk, np.uint64(now), waits)
            decision = choose(fresh, even, decision)
            first = choose(fresh, odd, first)
            beyond = decision >= near
            waits = np.uint64(fresh & beyond & (decision >= far))
            end, taken = near_move(near_network, free, node, decision, first)
            hops = np.int64(taken & (not beyond))
            end = choose(hops > 0, end, node)
            if beyond & (waits == np.uint64(0)):
                time = min(now - route.start, route.ends.shape[0] - 1)
                key = DrawKey(route.seed, walk, np.uint64(now))
                draws = MoveWords(decision, first, even, odd)
                end, hops, probes = far_move(near_network, route.ends, time, key, node, draws)
                probed += np.int64(probes)
            node = np.uint32(end)
            sent += np.int64(hops)
            now += np.int64(1) - np.int64(waits)
            if path >= 0 and leads:
                walkers.paths[path, now] = node
        save_walk(vectors, row, x, kept)
        together()  # all threads that share the walk have read where it started
        if leads:
            walkers.nodes[row] = node
            walkers.messages[row] += sent
            walkers.probes[row] += probed
    unstage(walkers, counts)


def advance_remembering(
    network: Any, route: Any, walkers: Any, data: Any, lesson: Any, vectors: Any, span: Any
) -> None:
    """Move all walks of tokens that remember from step span[0] to span[1]."""
    near_network, near_data, counts = stage(network, data, walkers)
    row = cuda.grid(1) // SHARE
    if row < walkers.nodes.size:
        leads = cuda.grid(1) % SHARE == 0
        walk = np.uint64(route.first + row)
        x = cuda.local.array((1, DIM), dtype=vectors.models.dtype)
        kept = cuda.local.array((KEPT, 1, DIM), dtype=vectors.models.dtype)
        held = cuda.local.array((HELD, DIM), dtype=vectors.models.dtype)
        gradient = cuda.local.array(DIM, dtype=vectors.models.dtype)
        load_walk(vectors, row, x, kept)
        mine = Vectors(x, kept, held, vectors.seen)
        node = np.uint32(walkers.nodes[row])
        path, rate = walkers.path_of[row], lesson.rates[0]
        back = came_by(near_network, walkers, row, node)
        sent, probed, carried = np.int64(0), np.int64(0), np.int64(0)
        for now in range(np.int64(span[0]), np.int64(span[1])):
            if lesson.rates.size > 1:
                rate = lesson.rates[now - lesson.start]
            count_visit(walkers, counts, row, node, leads)
            cell = np.uint64(row) * np.uint64(lesson.nodes) + np.uint64(node)
            at = Place(0, cell, np.uint64(0), walk, np.uint64(node), now)
            learn_at(near_data, lesson, vectors, mine, gradient, at, rate, leads)
            decision, first = words_by_halves(route.seed, MOVE, walk, np.uint64(now), np.uint64(0))
            here = TokenAt(np.uint64(row), np.uint64(node), back)
            end, back, hops, asked = remember(near_network, route, walkers, here, now, decision, first, leads)
            node = np.uint32(end)
            sent += np.int64(hops)
            probed += np.int64(asked) * route.probing
            carried += np.int64(hops) * walkers.known[row] * route.carrying
            if path >= 0 and leads:
                walkers.paths[path, now + 1] = node
        save_walk(vectors, row, x, kept)
        together()  # all threads that share the walk have read where it started
        if leads:
            walkers.messages[row] += sent
            walkers.probes[row] += probed
            put_back(near_network, walkers, row, node, back, carried)
    unstage(walkers, counts)


def remember(network: Any, route: Any, walkers: Any, at: Any, now: Any, decision: Any, first: Any, leads: Any) -> Any:
    """One step of a token that remembers; if threads share it, one of them counts its visit."""
    if COUNTS:
        together()  # no thread still reads the counters for the step before
        if leads:
            count_visit_of(network, route, walkers, at.row, at.node, now - route.start)
        together()
    return remembered_move(network, route, walkers, network.shares, at, decision, first)


def came_by(network: Any, walkers: Any, row: int, node: Any) -> Any:
    """The outcome at a node that leads back to where a token came from, if it remembers that."""
    back = NOWHERE
    if not COUNTS:
        back = outcome_back(network, node, walkers.previous[row])
    return back


def put_back(network: Any, walkers: Any, row: int, node: Any, back: Any, carried: Any) -> None:
    """Write back where a token is and what it remembers of its way."""
    walkers.nodes[row] = node
    if COUNTS:
        walkers.freight[row] += carried
    elif back != NOWHERE:
        walkers.previous[row] = np.int32(network.row_indices[back])


def load_walk(vectors: Any, row: int, x: Any, kept: Any) -> None:
    """Read the model of a walk, and what it carries, into registers."""
    zero = vectors.models.dtype.type(0.0)
    for j in range(DIM):
        x[0, j] = vectors.models[row, coordinate(j)] if coordinate(j) < COORDINATES else zero
        for index in range(CARRIES):
            kept[index, 0, j] = vectors.carried[index, row, coordinate(j)] if coordinate(j) < COORDINATES else zero


def save_walk(vectors: Any, row: int, x: Any, kept: Any) -> None:
    """Write the model of a walk, and what it carries, back to memory."""
    for j in range(DIM):
        if coordinate(j) < COORDINATES:
            vectors.models[row, coordinate(j)] = x[0, j]
            for index in range(CARRIES):
                vectors.carried[index, row, coordinate(j)] = kept[index, 0, j]


def learn_at(data: Any, lesson: Any, vectors: Any, mine: Any, gradient: Any, at: Any, rate: Any, leads: Any) -> None:
    """One visit, with what is stored at the node for this walk; one of its threads counts the visit."""
    bring(vectors.stored, mine.stored, at.cell)
    learn_visit(data, lesson, mine, gradient, at, rate, DIM)
    take_back(vectors.stored, mine.stored, at.cell)
    if COUNTS_VISITS:
        together()
        if leads:
            vectors.seen[at.cell] += 1
        together()


def bring(stored: Any, held: Any, cell: Any) -> None:
    """Read what is stored for a walk at a node."""
    for index in range(STORES):
        for j in range(DIM):
            if coordinate(j) < COORDINATES:
                held[index, j] = stored[cell * np.uint64(STORES) + np.uint64(index), coordinate(j)]


def take_back(stored: Any, held: Any, cell: Any) -> None:
    """Write what is stored for a walk at a node."""
    for index in range(STORES):
        for j in range(DIM):
            if coordinate(j) < COORDINATES:
                stored[cell * np.uint64(STORES) + np.uint64(index), coordinate(j)] = held[index, j]


def count_visit(walkers: Any, counts: Any, row: int, node: Any, leads: Any) -> None:
    """Count a visit once, in the walk's own row or in the counts that walks share."""
    if leads:
        if walkers.visits.shape[0] == walkers.nodes.size:
            walkers.visits[row, node] += 1
        else:
            cuda.atomic.add(counts, node, 1)


def measure_all(data: Any, lesson: Any, walkers: Any, vectors: Any, differences: Any, counts: Any, mark: int) -> None:
    """Record the counts and measures of every walk at a mark."""
    row = cuda.grid(1) // SHARE
    if row >= walkers.nodes.size:
        return
    x = cuda.local.array((1, DIM), dtype=vectors.models.dtype)
    for j in range(DIM):
        x[0, j] = vectors.models.dtype.type(0.0)
        if coordinate(j) < COORDINATES:
            x[0, j] = (
                vectors.models[row, coordinate(j)] if REPORTED < 0 else vectors.carried[REPORTED, row, coordinate(j)]
            )
    fit, penalty, distance = measure(data, x, 0, differences, row, DIM)
    if cuda.grid(1) % SHARE == 0:
        counts[0, mark, row] = walkers.messages[row]
        counts[1, mark, row] = walkers.probes[row]
        counts[2, mark, row] = walkers.freight[row]
        lesson.fit[mark, row] = fit
        lesson.penalty[mark, row] = penalty
        lesson.distance[mark, row] = distance


# All tokens of a walk: one thread per walk and coordinate loops over them.


def average_tokens(rows: Any, tokens: int) -> None:
    """Replace all tokens of a walk by their mean."""
    thread = cuda.grid(1)
    dim = rows.shape[1]
    if thread >= rows.shape[0] // tokens * dim:
        return
    base, j = thread // dim * tokens, thread % dim
    mean = 0.0
    for token in range(tokens):
        mean += np.float64(rows[base + token, j])
    mean /= tokens
    for token in range(tokens):
        rows[base + token, j] = mean


def gather_tokens(rows: Any, tokens: int, means: Any, squares: Any) -> None:
    """The mean over the tokens of a walk, and the squared distances from it, coordinate by coordinate."""
    thread = cuda.grid(1)
    dim = rows.shape[1]
    if thread >= means.shape[0] * dim:
        return
    walk, j = thread // dim, thread % dim
    mean = 0.0
    for token in range(tokens):
        mean += np.float64(rows[walk * tokens + token, j])
    means[walk, j] = mean / tokens
    mean = np.float64(means[walk, j])
    square = 0.0
    for token in range(tokens):
        away = np.float64(rows[walk * tokens + token, j]) - mean
        square += away * away
    squares[walk, j] = square


def total_of_tokens(walkers: Any, tokens: int, squares: Any, counts: Any, spread: Any, mark: int) -> None:
    """The messages of a walk, and the distance of its tokens from their mean."""
    walk = cuda.grid(1)
    if walk >= counts.shape[1]:
        return
    sent, probed, carried, square = np.int64(0), np.int64(0), np.int64(0), 0.0
    for token in range(tokens):
        sent += walkers.messages[walk * tokens + token]
        probed += walkers.probes[walk * tokens + token]
        carried += walkers.freight[walk * tokens + token]
    for j in range(squares.shape[1]):
        square += squares[walk, j]
    counts[0, walk] = sent
    counts[1, walk] = probed
    counts[2, walk] = carried
    spread[mark, walk] = square / tokens
