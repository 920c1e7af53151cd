"""The numbers that a graph is made from, checked where they enter."""

import operator
from typing import Any

import numpy as np

from freewalk.errors import GraphError

# A node is an int32 in `Graph.indices`.
MOST_NODES = 2**31 - 1
_LAST_SEED = 2**64 - 1


def whole(owner: str, name: str, value: Any, least: int, most: int = MOST_NODES, remedy: str = "") -> int:
    """Check a whole number from `least` to `most`.

    Parameters
    ----------
    owner, name
        Whose argument it is, and its name.
    value
        What the user gave; a float is refused even when it is whole.
    least, most
        The bounds, both allowed.
    remedy
        What to do instead, appended to the message.

    Raises
    ------
    GraphError
        If it is not a whole number in that range.

    Examples
    --------
    >>> whole("ring", "n", np.int32(5), least=3)
    5
    """
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        end = f"; {remedy}" if remedy else ""
        raise GraphError(f"{owner}: {name} = {value!r}, expected a whole number from {least} to {most}{end}")
    return number


def probability(owner: str, name: str, value: Any) -> float:
    """Check a number from 0 to 1.

    Raises
    ------
    GraphError
        If it is not a number, is NaN or lies outside.

    Examples
    --------
    >>> probability("erdos_renyi", "p", 1)
    1.0
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not (is_number and 0 <= value <= 1):
        raise GraphError(f"{owner}: {name} = {value!r}, expected a probability: a number from 0 to 1")
    return float(value)


def key(owner: str, seed: Any) -> int:
    """Check a seed: a whole number of 64 bits.

    Raises
    ------
    GraphError
        If it is not one.

    Examples
    --------
    >>> key("erdos_renyi", 7)
    7
    """
    return whole(owner, "seed", seed, least=0, most=_LAST_SEED)
