"""The groups of arrays and numbers that compiled code receives and passes on.

Compiled modules import this file; its text is part of their names.
"""

from pathlib import Path
from typing import Any, NamedTuple

from freewalk.rules.rule import Visit as Visit

SOURCE = Path(__file__).read_bytes()  # as imported: part of the name of compiled code


# For walking.

# The columns of `FlatKernel.moves`: the hops of a move, the indices of its ratio, of its first matrix and of its
# distribution (-1: none), whether it has one matrix per hop, and whether it consists of uniform hops alone.
HOPS, RATIO, ROWS, ROWS_A_HOP, LAW, PLAIN = range(6)


class FlatKernel(NamedTuple):
    """The graph and the moves; the probabilities of the moves are separate, since they may change with the step."""

    spans: Any  # the graph, by node: its first edge (upper half) and its number of edges
    edges: Any  # where it leads (lower half), and the upper half of the largest word 0 that takes it in a near move
    moves: Any  # by move: the columns above
    ratios: Any
    row_indptr: Any  # by matrix and node; matrices are contiguous
    row_indices: Any
    row_ends: Any  # one row, searched like `law_ends`
    law_ends: Any
    # With a memory, the only matrix has the outcomes of the steps without it, the stay last, and:
    outcomes: Any  # by node: its first outcome (upper half) and their number
    row_starts: Any  # by outcome: the start of its interval
    shares: Any  # its probability
    others: Any  # that of all others
    back: Any  # the outcome at the other end that leads back
    rarity: Any  # by node: 1 / target


class Route(NamedTuple):
    """How the walks move from a given step, and when to record the counts."""

    seed: Any
    first: Any  # the number of the token in row 0
    tokens: Any  # rows of each walk
    start: Any
    ends: Any  # the ends of the intervals of the moves: one row, or one per step
    near: Any  # by row: words 0 below this lead to a `near_move`
    free: Any  # by row: from this word 0, such a hop is always accepted
    far: Any  # by row: from this word 0, words 2 and 3 may be needed
    marks: Any
    messages: Any  # by walk and mark
    probes: Any
    freight: Any
    recalls: Any  # words 0 below this remember where a token came from
    gains: Any  # by step: what a visit adds to a counter
    twice_alpha: Any
    probing: Any  # the probes that ask a node for its counter, or 0
    carrying: Any  # the bytes of a counter that travels, or 0


class Walkers(NamedTuple):
    """The positions and counts of the tokens, by row."""

    nodes: Any
    messages: Any
    probes: Any
    visits: Any  # by row and node, or one row by node
    path_of: Any  # the row in `paths`, or -1
    paths: Any
    previous: Any  # the node that a token came from, or -1
    counters: Any  # by row and node: weighted visits, negative before the first
    known: Any  # the nodes visited
    freight: Any  # bytes of counters sent


class TokenAt(NamedTuple):
    """Where a token is, and the outcome there that leads back to where it came from."""

    row: Any
    node: Any
    back: Any


class DrawKey(NamedTuple):
    """The key of the draws of one step."""

    seed: Any
    walk: Any
    now: Any


class MoveWords(NamedTuple):
    """Words 0 to 3 of a step: the decision, and the first hops."""

    decision: Any
    first: Any
    second: Any
    third: Any


# For learning.


class NodeData(NamedTuple):
    """An objective's samples, node by node, and the weights of the nodes."""

    features: Any
    targets: Any
    offsets: Any  # by node: its first sample
    alone: Any  # whether every node has one sample, with the number of the node
    sample_weights: Any
    weights: Any
    factors: Any  # by node: the factor of its loss; empty if all are 1
    ridge: Any
    optimum: Any
    curvature: Any  # a quadratic loss: its second derivative, else empty
    pull: Any  # its derivative at the optimum
    least: Any  # its value there


class Lesson(NamedTuple):
    """How the walks learn from a given step, and when to measure."""

    seed: Any
    first: Any  # the number of the token in row 0
    tokens: Any  # rows of each walk
    start: Any
    rates: Any  # the step sizes: one, or one per step
    numbers: Any  # the rule's own parameters
    counted_from: Any  # the step at which the rule started
    local_steps: Any
    sampled: Any
    nodes: Any  # their number
    marks: Any
    fit: Any  # by walk and mark: the loss without the ridge term
    penalty: Any  # the ridge term
    distance: Any
    consensus: Any  # of the tokens of a walk


class Vectors(NamedTuple):
    """What learning changes."""

    models: Any  # by row
    carried: Any  # by vector and row
    stored: Any  # one row for each row (or walk, if tokens share it), node and vector, in this order
    seen: Any  # by row and node, contiguous: the visits, if the rule needs them


NOT, ALL, NODE, WEIGHTS = range(4)  # over which tokens means are taken


class Mixing(NamedTuple):
    """How the tokens of a walk mix."""

    how: Any  # one of those above
    every: Any
    indptr: Any  # the weights, in compressed sparse rows by token
    indices: Any
    weights: Any


class Place(NamedTuple):
    """The location of one update."""

    row: Any  # of the model
    cell: Any  # of this token and node, in `seen`
    memory: Any  # the first row of the storage of this token at this node
    walk: Any
    node: Any
    now: Any  # the step


# Pieces of work on a CPU.


class Stretch(NamedTuple):
    """The rows first..last-1 from step `start` to `stop`; `mark` is the number of the first mark to record."""

    first: Any
    last: Any
    start: Any
    stop: Any
    mark: Any


class Block(NamedTuple):
    """Interleaved rows: `count` steps from `now`, found in the path from (row, column)."""

    base: Any
    lanes: Any
    column: Any
    row: Any
    now: Any
    count: Any


class Words(NamedTuple):
    """Buffers for a block: its words, one of each per step and lane; the few that other moves need; its walks."""

    decisions: Any
    firsts: Any
    steps: Any  # of the other moves
    lanes: Any
    seconds: Any
    thirds: Any
    here: Any  # by lane: the node
    picked: Any  # the edge of the step under way
    counts: Any  # by node, in 16 bits: visits to add to the one row of visits, which gets 2^16 when a count wraps
    backs: Any  # by lane: the outcome that leads back, if it is remembered
    scratch: Any  # the sums of the weights of the outcomes of one node
    visits: Any  # by outcome and lane, if all rows are short: relative visits
    powers: Any  # of them
    sums: Any  # of the weights


class Walking(NamedTuple):
    """Where the walking half is, 0 for nowhere, and what it is called with, as words: unpacking costs compile time."""

    address: Any
    words: Any


class Buffers(NamedTuple):
    """Buffers for what is computed from the models of a block and, if walks have several tokens, from all of them."""

    gradient: Any
    pulls: Any  # by lane
    differences: Any  # one row
    mixed: Any  # by token and coordinate
    mean: Any  # one row
    total: Any  # by coordinate
    leaders: Any  # by token: the first token on the same node
    counts: Any  # by first token: the number of tokens on that node
    turns: Any  # by node: when a token was last found there
    heads: Any  # by node: the first token that was
