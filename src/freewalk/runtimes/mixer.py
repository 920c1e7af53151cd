"""The exchanges of a run: their effect on a state, and their form for compiled code."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.exchanges import Exchange
from freewalk.exchanges.exchange import exchanges_in, gathering_of, is_parked, sent_by, weights_of
from freewalk.jobs.job import Job, State
from freewalk.jobs.phase import Passage
from freewalk.runtimes.step.arrays import Mixing, Stretch


def mixtures(
    exchange: Exchange, job: Job, state: State, stretch: Stretch, step: int, nodes: NDArray[np.int32]
) -> Iterator[tuple[slice, Any]]:
    """For each walk of a stretch, the rows of its tokens (on these nodes after update number `step`) and weights.

    Weights None mean the average of all. Walks whose tokens do not mix are left out; the messages of the others are
    counted.
    """
    tokens = state.tokens
    for walk in range(stretch.first // tokens, stretch.last // tokens):
        rows = slice(walk * tokens, (walk + 1) * tokens)
        at = nodes[rows.start - stretch.first : rows.stop - stretch.first]
        gathering = gathering_of(job.seed, state.first // tokens + walk, step, at, job.kernel.graph)
        everyone = exchange.means == "all"  # explicit weights would need one number per pair of tokens
        weights = None if everyone else weights_of(exchange, gathering)
        if weights is not None or everyone:
            yield rows, weights
            state.exchanged[walk] += sent_by(exchange, gathering, weights)


def exchange_by(
    exchange: Exchange, job: Job, state: State, stretch: Stretch, step: int, nodes: NDArray[np.int32]
) -> None:
    """Mix the tokens of each walk of a stretch, which are on these nodes after update number `step`."""
    for rows, weights in mixtures(exchange, job, state, stretch, step, nodes):
        for vectors in (state.models, *state.carried):
            own = vectors[rows].astype(np.float64)
            with np.errstate(all="ignore"):  # one may have diverged
                vectors[rows] = own.mean(axis=0) if weights is None else weights @ own


#: The form for compiled code and the messages of one exchange, by phase and nodes of the tokens.
Kept = dict[tuple[int, bytes], tuple[Mixing, int]]


class Mixer:
    """The exchanges of a passage: in compiled code if they are means or have constant weights.

    Attributes
    ----------
    compiled
        Whether compiled code performs them; if not, `exchange_by` must be called when one is due.
    mixing
        The form for compiled code, built once per phase.
    exchanged
        The messages of exchanges so far, by walk and mark.
    """

    def __init__(self, job: Job, state: State, passage: Passage, exchange: Exchange, kept: Kept) -> None:
        from freewalk.runtimes.step import inputs

        self.exchange, kernel, first = exchange, passage.phase.kernel, state.nodes[: state.tokens]
        alike = is_parked(kernel) and bool((state.nodes.reshape(-1, state.tokens) == first).all())
        self.compiled = bool(exchange.means) or (exchange.constant and alike)
        self.mixing, sent = inputs.mixing(None, None, job.precision), 0
        if self.compiled:
            key = (
                id(passage.phase),
                b"" if exchange.means else first.tobytes(),
            )  # means do not depend on where tokens are
            if key not in kept:
                kept[key] = _constant(exchange, job, passage, first)
            self.mixing, sent = kept[key]
        self.exchanged = state.exchanged[:, None] + sent * exchanges_in(exchange, passage.start, passage.marks)
        state.exchanged += sent * exchanges_in(exchange, passage.start, passage.until)


def _constant(exchange: Exchange, job: Job, passage: Passage, nodes: NDArray[np.int32]) -> tuple[Mixing, int]:
    """The effect and the messages of an exchange, for tokens on these nodes."""
    from freewalk.runtimes.step import inputs

    gathering = gathering_of(job.seed, 0, exchange.every, nodes, passage.phase.kernel.graph)
    weights = None if exchange.means else weights_of(exchange, gathering)
    if weights is None and not exchange.means:
        return inputs.mixing(None, None, job.precision), 0
    return inputs.mixing(exchange, weights, job.precision), sent_by(exchange, gathering, weights)
