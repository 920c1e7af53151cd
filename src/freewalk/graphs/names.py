"""Node names from other libraries and files, and the node numbers they map to."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import GraphError
from freewalk.graphs.structure import check

# Usual names of the two columns that hold the ends of an edge, in files and tables.
_HEADS = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("u", "v"),
    ("node1", "node2"),
    ("node_1", "node_2"),
)


def distinct(names: Sequence[Any]) -> bool:
    """Whether these are different strings, none of them blank.

    Examples
    --------
    >>> distinct(["a", "b"]), distinct(["a", "a"]), distinct(["a", " "]), distinct(["a", 1])
    (True, False, False, False)
    """
    try:
        return len({check.text("", "", name) for name in names}) == len(names)
    except GraphError:
        return False


def names_of(owner: str, nodes: Iterable[Any]) -> tuple[str, ...]:
    """Name nodes of any type: by `str` or, if that makes two names equal or one blank, all by `repr`.

    Raises
    ------
    GraphError
        If `repr` does not distinguish them either.

    Examples
    --------
    >>> names_of("here", ["Berlin", (0, 1)]), names_of("here", [1, "1"])
    (('Berlin', '(0, 1)'), ('1', "'1'"))
    """
    listed = list(nodes)
    for spell in (str, repr):
        try:
            names = tuple(spell(node) for node in listed)
        except Exception:  # an object that raises anything
            continue
        if distinct(names):
            return names
    raise GraphError(
        f"{owner}: the nodes have no names that differ, neither by str nor by repr; relabel them, with networkx: "
        "networkx.convert_node_labels_to_integers(g)"
    )


def first_seen(words: Iterable[str]) -> tuple[list[str], NDArray[np.int64]]:
    """List the distinct words in order of first appearance, and the position of each word in that list.

    Examples
    --------
    >>> first_seen(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    places: dict[str, int] = {}
    ends = np.fromiter((places.setdefault(word, len(places)) for word in words), dtype=np.int64)
    return list(places), ends


def by_size(names: list[str], ends: NDArray[np.int64]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Sort names numerically if all are whole numbers; otherwise leave the order unchanged.

    Parameters
    ----------
    names, ends
        As returned by `first_seen`.

    Returns
    -------
    tuple
        The same, in the new order.

    Examples
    --------
    >>> by_size(["10", "9"], np.array([0, 1, 0]))
    (('9', '10'), array([1, 0, 1]))
    """
    if not all(map(is_whole, names)):
        return tuple(names), ends
    digits = [name.lstrip("0") for name in names]
    # Compared by length, then digit by digit: int() rejects thousands of digits.
    order = sorted(range(len(names)), key=lambda place: (len(digits[place]), digits[place], names[place]))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return tuple(names[place] for place in order), rank[ends]


def is_whole(word: str) -> bool:
    """Whether a word is a whole number: digits only.

    Examples
    --------
    >>> is_whole("12"), is_whole("-1"), is_whole("²")
    (True, False, False)
    """
    return word.isascii() and word.isdigit()


def unless_numbers(names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names, or None if they equal the node numbers.

    Examples
    --------
    >>> unless_numbers(("0", "1")), unless_numbers(("1", "0"))
    (None, ('1', '0'))
    """
    return None if all(name == str(place) for place, name in enumerate(names)) else names


def end_columns(heads: Sequence[str]) -> tuple[int, int] | None:
    """Find the columns of the two ends of an edge by their headers; None if no usual header is present.

    Examples
    --------
    >>> end_columns(["id", "Source", "Target"]), end_columns(["Berlin", "Hamburg"])
    ((1, 2), None)
    """
    lowered = [head.strip().lower() for head in heads]
    for first, second in _HEADS:
        if first in lowered and second in lowered:
            return lowered.index(first), lowered.index(second)
    return None
