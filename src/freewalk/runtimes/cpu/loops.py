"""Many walks on a CPU, in two halves: one writes the visited nodes, the other learns at them.

The path never depends on the model, so the walking half is independent of the objective and the learning half of the
graph. Each is compiled separately and processes stretches of walks × steps. Within a stretch, the walks of a block are
interleaved step by step: while one waits for memory or for a sum, the others compute.
"""

from typing import Any

import numpy as np

from freewalk.rng import HALF, LAST, LOW, MOVE, scaled, word_pair
from freewalk.runtimes.mixer import mean_of, mix
from freewalk.runtimes.step.arrays import (
    NOT,
    RATIO,
    ROWS,
    Block,
    Buffers,
    DrawKey,
    MoveWords,
    Place,
    Stretch,
    TokenAt,
    Visit,
)
from freewalk.runtimes.step.memory import (
    ALL_WORDS,
    ONE,
    ROOTS,
    WHOLE,
    count_visit_of,
    drawn,
    outcome_back,
    remembered_move,
)
from freewalk.runtimes.step.moves_and_messages import (
    choose,
    edge_drawn,
    far_move,
    is_close,
    is_taken,
    near_move,
    tail_of,
)
from freewalk.runtimes.step.update import (
    COUNTS_VISITS,
    STORES,
    counted,
    descend,
    evaluated,
    fetch,
    learn_visit,
    measure,
    numbers_of,
    predict,
    slope,
)

# These are compiled in (`cpu/runtime.py`, `walking_code` and `learning_code`).
REMEMBERS = False  # whether tokens remember
COUNTS = False  # whether they remember their visits
DIM = 0  # the number of coordinates if it is small, else 0
SPLIT = False  # whether a slope is so slow that those of all lanes are computed together
REPORTED = -1  # the carried vector to report as the model; -1: the model itself
TOKENS = False  # whether walks have several tokens
SHARED = False  # whether the tokens of a walk share what is stored at the nodes

LANES = 16  # interleaved walks
AHEAD = 4  # steps ahead for which data are prefetched
LARGE = 2**16  # nodes or edges whose arrays do not fit into the cache
WRAP = 2**16  # a count of 16 bits begins again
TEAM = 128  # walks that move together
FEW = 8  # walks that do not fill a vector register
WORDS = 4096  # steps of a team whose words are drawn in advance, times its walks
WALKING = 367  # words that the walking half gets beside the path and the stretch


def buffers(tokens: int, dim: int, nodes: int, precision: str) -> Buffers:
    """Buffers for models of `dim` coordinates, and for several tokens, which can meet on this many nodes."""
    tokens = tokens if tokens > 1 else 0
    return Buffers(
        gradient=np.empty(dim, dtype=precision),
        pulls=np.empty(LANES, dtype=precision),
        differences=np.empty((1, dim)),
        mixed=np.empty((tokens, dim), dtype=precision),
        mean=np.empty((1, dim), dtype=precision),
        total=np.empty(dim),
        leaders=np.empty(tokens, dtype=np.int64),
        counts=np.empty(tokens, dtype=np.int64),
        turns=np.zeros(nodes, dtype=np.int64),
        heads=np.empty(nodes, dtype=np.int64),
    )


# The walking half.


def walk_stretch(network: Any, route: Any, walkers: Any, room: Any, path: Any, stretch: Any) -> None:
    """Walk a stretch; path[t, w]: where walk first + w is at step start + t. A shorter path is written over."""
    for base in range(stretch.first, stretch.last, TEAM):
        lanes = min(TEAM, stretch.last - base)
        now = stretch.start
        mark = stretch.mark
        while True:
            if mark < route.marks.size and now == route.marks[mark]:
                for row in range(base, base + lanes):
                    route.messages[row // route.tokens, mark] += walkers.messages[row]
                    route.probes[row // route.tokens, mark] += walkers.probes[row]
                    if COUNTS:
                        route.freight[row // route.tokens, mark] += walkers.freight[row]
                mark += 1
            if now >= stretch.stop:
                break
            row = (now - stretch.start) % path.shape[0]
            end = min(stretch.stop, now + min(WORDS // lanes, path.shape[0] - row))
            if mark < route.marks.size:
                end = min(end, route.marks[mark])
            block = Block(base, lanes, base - stretch.first, row, now, end - now)
            draw_pairs(route, room, block)
            if REMEMBERS:
                remember_block(network, route, walkers, room, path, block)
            else:
                draw_others(route, room, block)
                walk_block(network, route, walkers, room, path, block)
            count_block(walkers, room, path, block)
            now = end


def draw_pairs(route: Any, room: Any, block: Any) -> None:
    """Words 0 and 1 of every step and lane, which nearly every step needs."""
    seed, lanes, first = route.seed, block.lanes, route.first + block.base
    if lanes >= FEW:  # the inner loop is the one that fills vector registers
        for t in range(block.count):
            for lane in range(lanes):
                draw_pair(room, seed, first + lane, block.now + t, t * lanes + lane)
    else:
        for lane in range(lanes):
            for t in range(block.count):
                draw_pair(room, seed, first + lane, block.now + t, t * lanes + lane)


def draw_others(route: Any, room: Any, block: Any) -> None:
    """A list of the steps and lanes that make other moves than near ones, and words 2 and 3 for those.

    If no move is near, only those that may need these words are listed.
    """
    seed, lanes, first, decisions = route.seed, block.lanes, route.first + block.base, room.decisions
    steps, walks = room.steps, room.lanes
    found, largest = np.uint64(0), np.uint64(0)
    for index in range(block.count * lanes):
        largest = decisions[index] if decisions[index] > largest else largest
    for t in range(block.count):
        time = min(block.now + t - route.start, route.far.size - 1)
        least = route.near[time]
        if least == 0:
            least = route.far[time]
        for lane in range(lanes if least <= largest else 0):  # no branch: invalid entries are overwritten
            steps[found] = np.uint64(block.now + t)
            walks[found] = np.uint64(lane)
            found += np.uint64(decisions[t * lanes + lane] >= least)
    for index in range(found):
        even, odd = word_pair(seed, MOVE, np.uint64(first) + walks[index], steps[index], np.uint64(1))
        room.seconds[index] = even
        room.thirds[index] = odd
    steps[found] = LAST  # no step


def draw_pair(room: Any, seed: Any, walk: int, now: int, index: int) -> None:
    """Words 0 and 1 of one step of one walk."""
    # If the compiler knows that the walk number has 32 bits, it uses a narrower multiplication.
    even, odd = word_pair(seed, MOVE, np.uint64(walk) & LOW, np.uint64(now), np.uint64(0))
    room.decisions[index] = even
    room.firsts[index] = odd


def walk_block(network: Any, route: Any, walkers: Any, room: Any, path: Any, block: Any) -> None:
    """Walk the steps of a block, writing the node of every step and lane."""
    base, lanes, column, row, now = block.base, block.lanes, block.column, block.row, block.now
    here = room.here
    for lane in range(lanes):
        here[lane] = np.uint32(walkers.nodes[base + lane])
    others = np.uint64(0)
    for t in range(block.count):
        for lane in range(lanes):
            path[np.uint64(row + t), np.uint64(column + lane)] = here[lane]
        time = min(now + t - route.start, route.near.size - 1)
        near = route.near[time]
        if near > 0:
            step_near(network, walkers, room, near, route.free[time], base, t * lanes, lanes)
        turn = 0
        while turn < lanes:  # those that the list names, or all
            mover: Any = turn
            if near > 0:
                if room.steps[others] != np.uint64(now + t):
                    break
                mover = np.int64(room.lanes[others])
            walk, index = np.uint64(base + mover), t * lanes + mover
            draws = MoveWords(room.decisions[index], room.firsts[index], room.seconds[others], room.thirds[others])
            key = DrawKey(route.seed, np.uint64(route.first) + walk, np.uint64(now + t))
            end, left, probed = far_move(network, route.ends, np.uint64(time), key, here[mover], draws)
            here[mover] = np.uint32(end)
            walkers.messages[walk] += left
            walkers.probes[walk] += probed
            others += np.uint64((near > 0) | (draws.decision >= route.far[time]))
            turn += 1
    for lane in range(lanes):
        walkers.nodes[base + lane] = here[lane]


def remember_block(network: Any, route: Any, walkers: Any, room: Any, path: Any, block: Any) -> None:
    """Walk the steps of a block with a memory."""
    base, lanes, column, row, now = block.base, block.lanes, block.column, block.row, block.now
    here, backs = room.here, room.backs
    for lane in range(lanes):
        here[lane] = np.uint32(walkers.nodes[base + lane])
        if not COUNTS:
            backs[lane] = outcome_back(network, here[lane], walkers.previous[base + lane])
    for t in range(block.count):
        for lane in range(lanes):
            path[np.uint64(row + t), np.uint64(column + lane)] = here[lane]
            if COUNTS:
                count_visit_of(network, route, walkers, base + lane, here[lane], now + t - route.start)
        if COUNTS and lanes >= FEW and room.visits.shape[0] > 0:
            step_together(network, route, walkers, room, base, t * lanes, lanes)
            continue
        for lane in range(lanes):
            node, token, index = here[lane], base + lane, t * lanes + lane
            at = TokenAt(np.uint64(token), np.uint64(node), backs[lane])
            decision, first = room.decisions[index], room.firsts[index]
            end, back, left, asked = remembered_move(network, route, walkers, room.scratch, at, decision, first)
            here[lane] = np.uint32(end)
            backs[lane] = back
            walkers.messages[np.uint64(token)] += left
            if COUNTS:
                walkers.probes[token] += asked * route.probing
                walkers.freight[token] += left * walkers.known[token] * route.carrying
    for lane in range(lanes):
        walkers.nodes[base + lane] = here[lane]
        if not COUNTS and block.count > 0:
            walkers.previous[base + lane] = np.int32(network.row_indices[backs[lane]])


def step_together(network: Any, route: Any, walkers: Any, room: Any, base: int, offset: int, lanes: int) -> None:
    """Replaced at build time by one of those below, if tokens count their visits."""


def repel_together(network: Any, route: Any, walkers: Any, room: Any, base: int, offset: int, lanes: int) -> None:
    """One step of all lanes, as `self_repellent` makes it, in stages that fill vector registers.

    Rows are short. All lanes have as many outcomes as one of them; those too many weigh nothing.
    """
    here, visits, sums = room.here, room.visits, room.sums
    most = ONE
    for lane in range(lanes):
        most = max(most, network.outcomes[here[lane]] & LOW)
    for place in range(most):
        for lane in range(lanes):
            span = network.outcomes[here[lane]]
            node = network.row_indices[(span >> HALF) + min(place, (span & LOW) - ONE)]
            counter = walkers.counters[np.uint64(base + lane), np.uint64(node)]
            visits[place, lane] = abs(counter) * network.rarity[node]
    for lane in range(lanes):
        least = visits[0, lane]
        for place in range(ONE, most):
            least = min(least, visits[place, lane])
        room.powers[0, lane] = least
    for place in range(most):
        for lane in range(lanes):
            visits[place, lane] = room.powers[0, lane] / visits[place, lane]
    powers_of(room, route.twice_alpha, most, lanes)
    for place in range(most):
        for lane in range(lanes):
            span = network.outcomes[here[lane]]
            weight = np.uint64(WHOLE * (network.shares[(span >> HALF) + place] * room.powers[place, lane]))
            before = sums[place - ONE, lane] if place > 0 else np.uint64(0)
            sums[place, lane] = before + (weight if place < (span & LOW) else np.uint64(0))
    for lane in range(lanes):
        sought, chosen = scaled(room.firsts[offset + lane], sums[most - ONE, lane]), np.uint64(0)
        for place in range(most):
            chosen += np.uint64(sought >= sums[place, lane])
        span = network.outcomes[here[lane]]
        last = (span >> HALF) + (span & LOW) - ONE
        asked = (span & LOW) - np.uint64(network.row_indices[last] == here[lane])
        end = network.row_indices[min((span >> HALF) + chosen, last)]
        arrive(route, walkers, here, base, lane, end, np.int64(asked))


def drive_together(network: Any, route: Any, walkers: Any, room: Any, base: int, offset: int, lanes: int) -> None:
    """One step of all lanes, as `history_driven` makes it, in stages that fill vector registers."""
    here, visits, ends = room.here, room.visits, room.picked
    for lane in range(lanes):
        if network.moves[0, ROWS] >= 0:
            ends[lane] = network.row_indices[
                drawn(network.row_ends, network.outcomes[here[lane]], room.firsts[offset + lane])
            ]
        else:
            ends[lane] = tail_of(network, edge_drawn(network, here[lane], room.firsts[offset + lane]))
    for lane in range(lanes):
        row, node, end = np.uint64(base + lane), np.uint64(here[lane]), ends[lane]
        own = abs(walkers.counters[row, node]) * network.rarity[node]
        visits[0, lane] = own / (abs(walkers.counters[row, end]) * network.rarity[end])
    powers_of(room, route.twice_alpha, ONE, lanes)
    ratio = network.moves[0, RATIO] if network.moves[0, ROWS] < 0 else np.int64(-1)
    for lane in range(lanes):
        quotient, node, end = 1.0, here[lane], np.uint32(ends[lane])
        if ratio >= 0:
            quotient = network.ratios[ratio, end] / network.ratios[ratio, node]
        bound = ALL_WORDS * (quotient * room.powers[0, lane])
        taken = np.float64(room.decisions[offset + lane]) <= bound
        arrive(route, walkers, here, base, lane, choose(taken, end, node), np.int64(end != node))


def powers_of(room: Any, twice: Any, most: Any, lanes: int) -> None:
    """`power` of the first rows of `room.visits`, which it uses up, into `room.powers`."""
    for place in range(most):
        squares, powers = room.visits[place], room.powers[place]
        for lane in range(lanes):
            powers[lane] = 1.0
            if ROOTS and twice & 1:
                powers[lane] = np.sqrt(squares[lane])
        exponent = twice >> 1
        while exponent > 0:
            if exponent & 1:
                for lane in range(lanes):
                    powers[lane] *= squares[lane]
            for lane in range(lanes):
                squares[lane] *= squares[lane]
            exponent >>= 1


def arrive(route: Any, walkers: Any, here: Any, base: int, lane: int, end: Any, asked: Any) -> None:
    """A token of a lane goes on to its end."""
    token = np.uint64(base + lane)
    left = np.int64(end != here[lane])
    here[lane] = end
    walkers.messages[token] += left
    walkers.probes[token] += asked * route.probing
    walkers.freight[token] += left * walkers.known[token] * route.carrying


def step_near(network: Any, walkers: Any, room: Any, near: Any, free: Any, base: int, offset: int, lanes: int) -> None:
    """One step of all lanes, as `near_move` makes it, in stages; lanes that make other moves stay where they are.

    In each stage, all lanes wait for memory together. The next stage finds what this one has asked for.
    """
    here, picked, decisions = room.here, room.picked, room.decisions
    large = network.edges.size > LARGE
    close = lanes < FEW
    if not close:
        for lane in range(lanes):
            picked[lane] = edge_drawn(network, here[lane], room.firsts[offset + lane])
        for lane in range(lanes if large else 0):
            fetch(network.edges, picked[lane])
        for lane in range(lanes):
            edge = network.edges[picked[lane]]
            picked[lane] = edge
            close |= is_close(decisions[offset + lane], edge)
    for lane in range(0 if close else lanes):
        edge, decision = picked[lane], decisions[offset + lane]
        taken = is_taken(decision, free, edge) & (decision < near)
        walkers.messages[np.uint64(base + lane)] += taken
        here[lane] = choose(taken, np.uint32(edge & LOW), here[lane])
    for lane in range(lanes if close else 0):
        decision = decisions[offset + lane]
        if decision < near:
            end, taken = near_move(network, free, here[lane], decision, room.firsts[offset + lane])
            here[lane] = end
            walkers.messages[np.uint64(base + lane)] += taken
    for lane in range(lanes if large else 0):
        fetch(network.spans, np.uint64(here[lane]))


def count_block(walkers: Any, room: Any, path: Any, block: Any) -> None:
    """Count the visits of a block, and keep the paths that are asked for."""
    visits, counts = walkers.visits, room.counts
    for t in range(block.count):
        row = np.uint64(block.row + t)
        later = np.uint64(block.row + min(t + 1, block.count - 1))
        for lane in range(block.lanes if counts.size > LARGE else 0):
            fetch(counts, np.uint64(path[later, np.uint64(block.column + lane)]))
        for lane in range(block.lanes):
            node = np.uint64(path[row, np.uint64(block.column + lane)])
            if counts.size > 0:
                counts[node] += np.uint16(1)
                if counts[node] == 0:
                    visits[0, node] += WRAP
            else:
                visits[np.uint64(block.base + lane), node] += 1
    for lane in range(block.lanes):
        kept = walkers.path_of[block.base + lane]
        if kept >= 0:
            for t in range(block.count):
                walkers.paths[kept, block.now + t] = path[block.row + t, block.column + lane]
            walkers.paths[kept, block.now + block.count] = walkers.nodes[block.base + lane]


# The learning half.


def walk_at(address: Any, words: Any, count: int, path: Any, stretch: Any) -> None:
    """Call `walk_stretch`. Replaced at build time by an intrinsic that calls it at its address."""


def walk_and_learn(
    walking: Any, data: Any, lesson: Any, vectors: Any, mixing: Any, room: Any, path: Any, stretch: Any
) -> None:
    """Walk and learn along a stretch, in pieces as long as the path, which stays in the cache.

    Without the address of the walking half, the stretch is one piece, which has been walked already.
    """
    first, last, now, stop, mark = stretch
    while True:
        end = stop
        if walking.address != 0:
            end = min(now + path.shape[0], stop)
        piece = Stretch(first, last, now, end, mark)
        if walking.address != 0:
            walk_at(walking.address, walking.words, WALKING, path, piece)
        learn_stretch(data, lesson, vectors, mixing, room, path, piece)
        if end >= stop:
            break
        now = end
        while mark < lesson.marks.size and lesson.marks[mark] <= now:
            mark += 1


def learn_stretch(data: Any, lesson: Any, vectors: Any, mixing: Any, room: Any, path: Any, stretch: Any) -> None:
    """Learn at the nodes of a walked stretch, mix tokens when due, and measure at the marks in it.

    A group of rows takes all steps before the next group: a block of walks, or all tokens of one walk.
    """
    width = lesson.tokens if TOKENS else LANES
    turn = 0
    for base in range(stretch.first, stretch.last, width):
        rows = min(width, stretch.last - base)
        now = stretch.start
        mark = stretch.mark
        while True:
            if mark < lesson.marks.size and now == lesson.marks[mark]:
                measure_rows(data, lesson, vectors, room, base, rows, mark)
                mark += 1
            if now >= stretch.stop:
                break
            end = stretch.stop
            if mark < lesson.marks.size:
                end = min(end, lesson.marks[mark])
            if TOKENS and mixing.how != NOT:
                end = min(end, (now // mixing.every + 1) * mixing.every)
            if SHARED:  # in the same step, a token finds what an earlier one has stored at the node
                end = now + 1
            for first in range(base, base + rows, LANES):  # one block, unless a walk has more tokens than lanes
                lanes = min(LANES, base + rows - first)
                block = Block(first, lanes, first - stretch.first, now - stretch.start, now, end - now)
                learn_block(data, lesson, vectors, room, path, block)
            if TOKENS and mixing.how != NOT and end % mixing.every == 0:
                turn += 1
                last = path[end - 1 - stretch.start]
                mix(vectors, mixing, room, last[base - stretch.first :], base, lesson.tokens, turn)
            now = end


def learn_block(data: Any, lesson: Any, vectors: Any, room: Any, path: Any, block: Any) -> None:
    """Learn at the nodes of every lane of a block."""
    dim = DIM if DIM > 0 else data.features.shape[1]
    split = SPLIT and data.alone and lesson.local_steps == 1 and not SHARED
    for t in range(block.count):
        rate = lesson.rates[min(block.now + t - lesson.start, lesson.rates.size - 1)]
        if split:
            learn_together(data, lesson, vectors, room, path, block, t, rate, dim)
            continue
        ahead = min(t + AHEAD, block.count - 1)
        later = np.uint64(block.row + ahead)
        for lane in range(block.lanes):
            if data.alone:  # the next nodes are already known
                coming = np.uint64(path[later, np.uint64(block.column + lane)])
                fetch(data.features, coming)
                fetch(data.targets, coming)
                fetch(data.weights, coming)
            if STORES > 0:
                fetch(vectors.stored, place_of(lesson, path, block, ahead, lane).memory)
            learn_visit(data, lesson, vectors, room.gradient, place_of(lesson, path, block, t, lane), rate, dim)


def place_of(lesson: Any, path: Any, block: Any, t: int, lane: int) -> Any:
    """The place of a walk at the t-th step of a block."""
    row = np.uint64(block.base + lane)
    node = np.uint64(path[np.uint64(block.row + t), np.uint64(block.column + lane)])
    cell = np.uint64(0)
    if STORES > 0 or COUNTS_VISITS:
        cell = row * np.uint64(lesson.nodes) + node
    memory = cell * np.uint64(STORES)
    if SHARED:
        memory = (row // np.uint64(lesson.tokens) * np.uint64(lesson.nodes) + node) * np.uint64(STORES)
    return Place(row, cell, memory, lesson.first + block.base + lane, node, block.now + t)


def learn_together(
    data: Any, lesson: Any, vectors: Any, room: Any, path: Any, block: Any, t: int, rate: Any, dim: int
) -> None:
    """One step of all lanes, in three passes, so that slopes that call the math library do not wait for each other.

    Every node has one sample, so all factors are 1.
    """
    number, pulls = vectors.models.dtype.type, room.pulls
    numbers = numbers_of(lesson.numbers)
    for lane in range(block.lanes):
        at = place_of(lesson, path, block, t, lane)
        point, row = evaluated(vectors, at)
        pulls[lane] = predict(data.features, at.node, point, row, dim)
    for lane in range(block.lanes):
        pulls[lane] = slope(pulls[lane], data.targets[place_of(lesson, path, block, t, lane).node])
    for lane in range(block.lanes):
        at = place_of(lesson, path, block, t, lane)
        visits = counted(vectors, at)
        done = at.now - lesson.counted_from
        visit = Visit(number(rate), number(data.weights[at.node]), done, lesson.nodes, visits)
        descend(visit, numbers, data, vectors, at, at.node, pulls[lane], dim)


def measure_rows(data: Any, lesson: Any, vectors: Any, room: Any, base: int, rows: int, mark: int) -> None:
    """Loss and distance of the reported model of each walk or, if it has several tokens, of their mean model."""
    dim = DIM if DIM > 0 else data.features.shape[1]
    reported = vectors.models if REPORTED < 0 else vectors.carried[REPORTED]
    for walk in range(base // lesson.tokens, (base + rows) // lesson.tokens):
        models, row = reported, walk
        if TOKENS:
            mean_of(reported, room, base, rows)
            spread = 0.0
            for token in range(base, base + rows):
                for j in range(dim):
                    away = np.float64(reported[token, j]) - np.float64(room.mean[0, j])
                    spread += away * away
            lesson.consensus[walk, mark] = spread / rows
            models, row = room.mean, 0
        fit, penalty, distance = measure(data, models, row, room.differences, 0, dim)
        lesson.fit[walk, mark] = fit
        lesson.penalty[walk, mark] = penalty
        lesson.distance[walk, mark] = distance
