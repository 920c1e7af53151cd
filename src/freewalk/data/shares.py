"""Divide whole samples in fractional shares."""

import numpy as np
from numpy.typing import NDArray


def apportion(
    total: int, shares: NDArray[np.float64], most: NDArray[np.int64] | None = None, least: int = 0
) -> NDArray[np.int64]:
    """Divide a whole number in proportion to shares, by largest remainders; ties go to the first.

    A part has at least `least` before the rest is divided and at most `most`, which must hold the total; if all shares
    are 0, the parts are equal.
    """
    room = np.full(len(shares), total) if most is None else most
    parts = np.minimum(least, room).astype(np.int64)
    while parts.sum() < total:
        free = parts < room
        weights = np.where(free, shares, 0.0)
        if weights.sum() <= 0:
            weights = free.astype(np.float64)
        rest = total - parts.sum()
        wanted = rest * weights / weights.sum()
        whole = np.minimum(np.floor(wanted).astype(np.int64), room - parts)
        parts = parts + whole
        spare = int(total - parts.sum())
        # A full part leaves its remainder to the others, in the next round.
        order = np.argsort(-(wanted - np.floor(wanted)), kind="stable")
        order = order[(parts[order] < room[order]) & free[order]]
        parts[order[:spare]] += 1
    return parts


def even_sizes(total: int, parts: int) -> NDArray[np.int64]:
    """Divide a whole number into parts that differ by at most one, the larger ones first."""
    return total // parts + (np.arange(parts) < total % parts).astype(np.int64)
