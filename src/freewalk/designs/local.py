"""The local information a node needs for a walk: its neighbours, their ratios and the move probabilities."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.schedules import Schedule, values_at


@dataclass(frozen=True, eq=False)
class LocalMove:
    """The part of a move that concerns one node."""

    #: The number of steps of the move.
    hops: int
    #: The node's own ratio; None if the move always accepts.
    ratio: float | None
    #: The ratios of its neighbours, for moves of a single hop, which need no message to decide. A longer move carries
    #: the ratio of its start node, and its end node decides.
    neighbour_ratios: NDArray[np.float64] | None
    #: For each matrix of the move: the possible next nodes, and the ends of their intervals of words.
    rows: tuple[tuple[NDArray[np.int32], NDArray[np.uint64]], ...] | None


class LocalRow(NamedTuple):
    """The outcomes of a step from one node, for a token that remembers where it came from."""

    #: The neighbours in ascending order, then the node itself if it may stay.
    nodes: NDArray[np.int32]
    #: The ends of their intervals of words.
    ends: NDArray[np.uint64]
    #: For each, the probability of all others.
    others: NDArray[np.float64]
    #: Words 0 below this remember where the walk came from.
    recalls: np.uint64

    def step(self, previous: int, decision: np.uint64, draw: np.uint64) -> int:
        """The next node of a walk that came from `previous` (-1: unknown), given words 0 and 1 of the step.

        Another outcome j than k = `previous` is drawn with P_j / (1 − P_k) and accepted with (1 − P_k) / (1 − P_j).
        """
        back = int(np.flatnonzero(self.nodes == previous)[0]) if previous >= 0 and decision < self.recalls else -1
        if back < 0:
            return int(self.nodes[outcome(self.ends, draw)])
        low = self.ends[back - 1] if back > 0 else np.uint64(0)
        width = self.ends[back] - low
        if width == rng.LAST:  # there is no other
            return previous
        draw = rng.scaled(draw, rng.LAST - width)
        other = outcome(self.ends, draw + width if draw >= low else draw)
        taken = rng.accepts(decision, float(self.recalls), self.others[other], self.others[back])
        return int(self.nodes[other]) if taken else previous


@dataclass(frozen=True, eq=False)
class LocalKernel:
    """Everything one node needs to act: `choose` a move, then make its `hop`s one by one."""

    #: The node itself.
    node: int
    #: Its neighbours, in ascending order.
    neighbours: NDArray[np.int32]
    #: The factor applied to its gradients, 1 / (n · target).
    weight: float
    #: Its part of each move.
    moves: tuple[LocalMove, ...]
    #: The probability of each move, the same at every node.
    probabilities: tuple[float, ...]
    #: How the probabilities change with the step, or None.
    fade: Schedule | None
    #: Its outcomes, if tokens remember where they came from.
    row: LocalRow | None = None

    def choose(self, step: int, draw: np.uint64) -> tuple[int, np.uint64, float]:
        """The move that a step's first word chooses, the word's position in its interval, and the interval's width."""
        if self.fade is None:
            return choose(self._ends, draw)
        return choose(rng.ends(faded(self.probabilities, self.fade, np.array([step])))[0], draw)

    @cached_property
    def _ends(self) -> NDArray[np.uint64]:
        """The ends of the word intervals of all moves, if they do not change with the step."""
        return rng.ends(self.probabilities)

    def hop(self, move: int, hop: int, draw: np.uint64) -> int:
        """The node to which hop number `hop` (0, 1, …) of a move goes from here."""
        rows = self.moves[move].rows
        if rows is None:
            return int(self.neighbours[int(rng.pick(draw, np.uint64(self.neighbours.size)))])
        nodes, ends = rows[hop if len(rows) > 1 else 0]
        return int(nodes[outcome(ends, draw)])


def faded(probabilities: tuple[float, ...], fade: Schedule, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """The probability of each move (columns) at each step (rows): all but the first fade; the first takes the rest."""
    table = np.tile(np.array(probabilities, dtype=np.float64), (steps.size, 1))
    table[:, 1:] *= np.minimum(values_at(fade, steps, "fade"), 1.0)[:, None]
    # Rounding can make the others add up to slightly more than 1; a negative probability would own nearly all words.
    table[:, 0] = np.maximum(1.0 - table[:, 1:].sum(axis=1), 0.0)
    return table


def choose(ends: NDArray[np.uint64], draw: np.uint64) -> tuple[int, np.uint64, float]:
    """The interval that contains the draw, the draw's position in it, and the interval's width."""
    index = outcome(ends, draw)
    start = ends[index - 1] if index else np.uint64(0)
    return index, draw - start, float(ends[index] - start)


def outcome(ends: NDArray[np.uint64], draw: np.uint64) -> int:
    """The outcome whose interval of words contains the draw."""
    return min(int(np.searchsorted(ends, draw, side="right")), ends.size - 1)
