"""Where a token goes from a node: the draws of a step, applied to the node's share of the kernel."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from freewalk import rng
from freewalk.designs.local import LocalKernel

_KEPT = 4096  # cached decisions; each is needed several times


class Mover(NamedTuple):
    """The moves of all tokens from one node: its share of the kernel, and the seed of the random draws."""

    local: LocalKernel
    seed: int

    def hops(self, walk: int, step: int) -> int:
        """The number of hops of the move of a step, the same at every node."""
        return self.local.moves[_chosen(self, walk, step)[0]].hops

    def decision(self, walk: int, step: int) -> Literal["go", "stay", "ask"]:
        """The decision of the node where a move starts: a longer move may have to be accepted at its end."""
        move, offset, width = _chosen(self, walk, step)
        share = self.local.moves[move]
        if share.ratio is None or share.hops == 0:
            return "go"
        if share.neighbour_ratios is None:
            return "ask"
        there = self._hop(walk, step, 0)
        if there == self.local.node:
            return "stay"
        ratio = share.neighbour_ratios[np.searchsorted(self.local.neighbours, there)]
        return "go" if rng.accepts(offset, width, share.ratio, ratio) else "stay"

    def onward(self, walk: int, step: int, hop: int) -> tuple[int | None, int]:
        """The next node of a move and the hop that leads there; None if the move ends here.

        A matrix may keep a token where it is for a hop.
        """
        hops = self.hops(walk, step)
        while hop < hops:
            there, hop = self._hop(walk, step, hop), hop + 1
            if there != self.local.node:
                return there, hop
        return None, hop

    def ratio(self, walk: int, step: int) -> float:
        """The ratio of this node for the move of a step."""
        return self.local.moves[_chosen(self, walk, step)[0]].ratio or 0.0

    def accepts(self, walk: int, step: int, start: float) -> bool:
        """Whether a move that ends here is accepted, given the ratio of its start."""
        _, offset, width = _chosen(self, walk, step)
        return bool(rng.accepts(offset, width, start, self.ratio(walk, step)))

    def _hop(self, walk: int, step: int, hop: int) -> int:
        return self.local.hop(_chosen(self, walk, step)[0], hop, _word(self.seed, walk, step, hop + 1))


@lru_cache(_KEPT)
def _chosen(mover: Mover, walk: int, step: int) -> tuple[int, np.uint64, float]:
    return mover.local.choose(step, _word(mover.seed, walk, step, 0))


def _word(seed: int, walk: int, step: int, index: int) -> np.uint64:
    return _words(seed, walk, step, index // 2)[index % 2]


@lru_cache(_KEPT)
def _words(seed: int, walk: int, step: int, block: int) -> tuple[np.uint64, np.uint64]:
    """Two words at a time, as they are drawn; a move of one hop needs both."""
    numbers = (seed, rng.MOVE, walk, step, block)
    even, odd = rng.word_pair(*(np.uint64(number) for number in numbers))
    return even, odd
