"""Divide whole samples in fractional shares."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import ProblemError

check = Checks(ProblemError)


def class_names(who: str, given: Any) -> tuple[str, ...]:
    """Check class names.

    Raises
    ------
    ProblemError
        If they are not different strings.

    Examples
    --------
    >>> class_names("digits", ["0", "1"])
    ('0', '1')
    """
    items = check.items(who, "classes", given, "different strings, one per class, or None for regression")
    names = tuple(check.text(who, "a name of a class", one) for one in items)
    if not names or len(set(names)) != len(names):
        raise check.fail(who, "classes", given, "different strings, at least one")
    return names


def apportion(
    total: int, shares: NDArray[np.float64], most: NDArray[np.int64] | None = None, least: int = 0
) -> NDArray[np.int64]:
    """Divide a whole number in proportion to shares, by largest remainders; ties go to the first.

    Parameters
    ----------
    total
        The number to divide.
    shares
        Numbers >= 0, one per part; if all of them are 0, the parts are equal.
    most
        The maximum of each part; together they must hold the total.
    least
        The number each part gets before the rest is divided.

    Examples
    --------
    >>> apportion(10, np.array([0.5, 0.3, 0.2])), apportion(4, np.array([1.0, 0.0, 0.0]), least=1)
    (array([5, 3, 2]), array([2, 1, 1]))
    >>> apportion(4, np.array([1.0, 1.0]), most=np.array([1, 9]))
    array([1, 3])
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
    """Divide a whole number into parts that differ by at most one, the larger ones first.

    Examples
    --------
    >>> even_sizes(10, 3)
    array([4, 3, 3])
    """
    return total // parts + (np.arange(parts) < total % parts).astype(np.int64)
