"""What compiled code is handed, and hands on within itself: groups of arrays and numbers.

Compiled modules import this file, and are named by its text.
"""

from pathlib import Path
from typing import Any, NamedTuple

from freewalk.rules.rule import Visit as Visit

SOURCE = Path(__file__).read_bytes()  # as it is imported: compiled code is named by it


# What is walked.


class Network(NamedTuple):
    """The graph and the moves; the probabilities of the moves travel apart, since they may change with the step."""

    spans: Any  # the graph, by node: its first edge (upper half) and how many it has
    tails: Any  # by edge: where it leads
    limits: Any  # by edge: the largest word 0 that takes it by the first move, if that is a near one
    moves: Any  # by move: its hops, and where its ratio, first matrix and distribution are (-1: nowhere)
    ratios: Any
    row_indptr: Any  # by matrix and node; matrices lie one behind the other
    row_indices: Any
    row_ends: Any  # one row, searched like `law_ends`
    law_ends: Any


class Route(NamedTuple):
    """How the walks move from a step on, and when to write the counts down."""

    seed: Any
    first: Any  # the number of the token in row 0
    tokens: Any  # rows of each walk
    start: Any
    ends: Any  # where the intervals of the moves end: one row, or one per step
    near: Any  # by row: words 0 below this make a `near_move`
    free: Any  # by row: from this word 0 on, such a hop is always accepted
    far: Any  # by row: words 0 from this on may need words 2 and 3
    marks: Any
    messages: Any  # by walk and mark
    probes: Any


class Walkers(NamedTuple):
    """Where the tokens are and what they have counted, each by row."""

    nodes: Any
    messages: Any
    probes: Any
    visits: Any  # by row and node, or one row by node
    path_of: Any  # the row in `paths`, or -1
    paths: Any


class Key(NamedTuple):
    """What the draws of one step depend on."""

    seed: Any
    walk: Any
    now: Any


class Draws(NamedTuple):
    """Words 0 to 3 of a step: the decision, and the first hops."""

    decision: Any
    first: Any
    second: Any
    third: Any


# What is learned.


class Data(NamedTuple):
    """An objective's samples and the weights of the nodes."""

    features: Any
    targets: Any
    offsets: Any  # by node: its first sample
    alone: Any  # whether every node has one sample, its own number
    sample_weights: Any
    weights: Any
    factors: Any  # by node: that of its loss; empty where all of them are 1
    ridge: Any
    optimum: Any
    curvature: Any  # a quadratic loss: its second derivative, else empty
    pull: Any  # its derivative at the optimum
    least: Any  # its value there


class Lesson(NamedTuple):
    """How the walks learn from a step on, and when to measure."""

    seed: Any
    first: Any  # the number of the token in row 0
    tokens: Any  # rows of each walk
    start: Any
    rates: Any  # the step sizes: one, or one per step
    numbers: Any  # the rule's own parameters
    counted_from: Any  # the step at which the rule began
    local_steps: Any
    sampled: Any
    nodes: Any  # how many there are
    marks: Any
    fit: Any  # by walk and mark: the loss without the ridge term
    penalty: Any  # the ridge term
    distance: Any
    consensus: Any  # of the tokens of a walk


class Vectors(NamedTuple):
    """What learning changes."""

    models: Any  # by row
    carried: Any  # by vector and row
    stored: Any  # one row for each row (or walk, where tokens share it), node and vector, in this order
    seen: Any  # by row and node, one behind the other: the visits, where the rule asks for them


class Mixing(NamedTuple):
    """How the tokens of a walk mix."""

    how: Any  # one of those in `engine/mixing.py`
    every: Any
    indptr: Any  # the weights, in compressed sparse rows by token
    indices: Any
    weights: Any


class Place(NamedTuple):
    """Where one update happens."""

    row: Any  # of the model
    cell: Any  # of this token and node, in `seen`
    memory: Any  # the first row of what is stored for this token at this node
    walk: Any
    node: Any
    now: Any  # the step


# Pieces of work on a processor.


class Stretch(NamedTuple):
    """The rows first..last-1 from step `start` to `stop`; `mark` is the number of the first mark to write down."""

    first: Any
    last: Any
    start: Any
    stop: Any
    mark: Any


class Block(NamedTuple):
    """Rows that take turns: `count` steps from `now` on, found in the path from (row, column) on."""

    base: Any
    lanes: Any
    column: Any
    row: Any
    now: Any
    count: Any


class Words(NamedTuple):
    """Room for the words of a block: one of each per step and lane, and the few that a longer move needs."""

    decisions: Any
    firsts: Any
    steps: Any  # of the longer moves
    lanes: Any
    seconds: Any
    thirds: Any


class Sums(NamedTuple):
    """Room for what is computed from the models of a block."""

    gradient: Any
    pulls: Any  # by lane
    differences: Any


class Gathered(NamedTuple):
    """Room for what is computed from all tokens of a walk."""

    mixed: Any  # by token and coordinate
    mean: Any  # one row
    total: Any  # by coordinate
    leaders: Any  # by token: the first one that stands on the same node
    counts: Any  # by token that is first: how many stand there
    turns: Any  # by node: when a token was last found there
    heads: Any  # by node: the first token that was
