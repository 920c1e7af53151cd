"""What compiled code is handed: groups of arrays. numba's cache knows their classes by this file."""

from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).read_bytes()  # as it is imported: compiled code is named by it


class Table(NamedTuple):
    """The graph and the moves; the probabilities of the moves travel apart, since they may change with the step."""

    spans: Any  # the graph, by node: its first edge (upper half) and how many it has
    tails: Any  # by edge: where it leads
    limits: Any  # by edge: the largest word 0 that takes it by the first move, if that is a near one
    moves: Any  # by move: its hops, where its ratio, its first matrix and its law are found (or -1), if none of them
    ratios: Any
    row_indptr: Any  # by matrix and node; matrices lie one behind the other
    row_indices: Any
    row_ends: Any  # one row, searched like `law_ends`
    law_ends: Any


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
    near: Any  # by row: words 0 below this make a `near_move`
    free: Any  # by row: words 0 from this on do so freely
    far: Any  # by row: words 0 from this on may need words 2 and 3
    marks: Any
    messages: Any  # by walk and mark
    probes: Any


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
    """Room for the words of a block: one of each a step and lane, and the few that a longer move needs."""

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
