"""When a mean curve reaches a level, with a confidence interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 1000
_LEVELS = (0.025, 0.975)
_HUGE = 1e300  # instead of infinity, whose product with a weight of 0 is not a number


class Span(NamedTuple):
    """A number and its 95 % confidence interval; the ends are NaN if there is none, and infinite if unknown."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


def crossings(means: Floats, level: float) -> Floats:
    """Per row: the position of the first checkpoint that is at most `level`, interpolated on a logarithmic scale.

    Infinite if there is none.

    Examples
    --------
    >>> crossings(np.array([[4.0, 2.0, 0.5], [4.0, 3.0, 2.0], [1.0, 1.0, 1.0]]), 1.0)
    array([1.5, inf, 0. ])
    """
    below = means <= level
    place = below.argmax(axis=1)
    rows = np.arange(len(means))
    before, after = means[rows, np.maximum(place - 1, 0)], means[rows, place]
    with np.errstate(all="ignore"):
        part = np.log(before / level) / np.log(before / np.maximum(after, 1e-300))
    part = np.where(np.isfinite(part) & (before < _HUGE), part, 1.0)
    found = np.where(place == 0, 0.0, place - 1 + part)
    return np.where(below.any(axis=1), found, np.inf)


def spans(values: Floats, level: float, counts: Mapping[str, Floats], seed: int) -> dict[str, Span | None]:
    """By axis: what it takes until the mean over the walks is at most `level`, with a bootstrap over the walks.

    Parameters
    ----------
    values
        The measured values, walks × checkpoints.
    level
        The level to reach.
    counts
        By axis, checkpoints or walks × checkpoints.
    seed
        The seed of the resampling.

    Returns
    -------
    dict
        None for all axes if the level is not reached.
    """
    walks = len(values)
    bounded = np.where(np.isfinite(values), np.minimum(values, _HUGE), _HUGE)
    whole = crossings(bounded.mean(axis=0)[None], level)
    if not np.isfinite(whole[0]):
        return dict.fromkeys(counts)
    by_walk = {axis: np.broadcast_to(one, values.shape) for axis, one in counts.items()}
    found = {axis: float(_at(one.mean(axis=0)[None], whole)[0]) for axis, one in by_walk.items()}
    if walks < 2:
        return {axis: Span(value) for axis, value in found.items()}
    shares = np.random.default_rng(seed).multinomial(walks, np.full(walks, 1 / walks), size=RESAMPLES) / walks
    places = crossings(shares @ bounded, level)
    ends: dict[str, Span | None] = {}
    for axis, one in by_walk.items():
        drawn = _at(shares @ one, places)
        low, high = np.quantile(drawn, _LEVELS[0], method="lower"), np.quantile(drawn, _LEVELS[1], method="higher")
        ends[axis] = Span(found[axis], float(low), float(high))
    return ends


def _at(counts: Floats, places: Floats) -> Floats:
    """The counts of each row at a position between two checkpoints; infinite at an infinite position."""
    known = np.isfinite(places)
    before = np.where(known, np.floor(places), 0).astype(np.int64)
    after = np.minimum(before + 1, counts.shape[1] - 1)
    rows = np.arange(len(counts))
    part = np.where(known, places - before, 0.0)
    return np.where(known, (1 - part) * counts[rows, before] + part * counts[rows, after], np.inf)
