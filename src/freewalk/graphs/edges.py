"""Graphs from edge lists, with nodes given by number or by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.blocks import read_only
from freewalk.checks import LARGEST, Floats, Ints, show
from freewalk.errors import GraphError
from freewalk.graphs.graph import Graph
from freewalk.graphs.structure import MOST_NODES, Names, check, check_count, check_size

_WHO = "from_edges"
_PAIRS = "give pairs of whole numbers or of strings, such as [(0, 1), (1, 2)]"
# Usual names of the two columns that hold the ends of an edge, in files and tables.
_HEADS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2"), ("node_1", "node_2"))
Ends = NDArray[np.integer]


def from_edges(
    edges: ArrayLike | Iterable[tuple[Any, Any]], n: int | None = None, names: Sequence[Any] | bool | None = None
) -> Graph:
    """Build a graph from a list of edges.

    The order of the edges and of their two ends does not matter; self-loops are dropped and duplicates, in either
    direction, are merged.

    Parameters
    ----------
    edges
        Pairs of nodes: an array-like of shape (E, 2), an iterable of pairs, or a pandas table, whose columns `source`
        and `target` are read (or `src, dst`; `from, to`; `u, v`; `node1, node2`), otherwise its first two columns.
        Nodes are whole numbers from 0 without gaps. If there are strings, nodes are names, numbered in order of first
        appearance or, if all are whole numbers, in numerical order.
    n
        The number of nodes; by default one more than the largest node number.
    names
        True treats whole numbers in `edges` as names. A list of names fixes the order of the nodes: `edges` then
        contains these names; if the names are strings, it may also contain whole numbers, which are positions in the
        list.

    Raises
    ------
    GraphError
        If the list does not consist of such pairs, there are fewer than two nodes, or the graph is disconnected.

    Examples
    --------
    >>> from_edges([(0, 1), (2, 1), (1, 0), (2, 2)])
    Graph(from_edges: 3 nodes, 2 edges)
    >>> from_edges([("Kiel", "Hamburg"), ("Hamburg", "Berlin")]).node_names
    ('Kiel', 'Hamburg', 'Berlin')
    >>> from_edges([(0, 1), (1, 2)], names=["Kiel", "Hamburg", "Berlin"]).node("Berlin")
    2
    >>> from_edges([(20, 7), (7, 4)], names=True).node_names
    ('4', '7', '20')
    """
    pairs = _pairs(edges)
    wanted: list[Any] | None = None
    if names is not None and not isinstance(names, bool):
        wanted = check.items(_WHO, "names", names, "a list of names, True or None")
    node_names: Names = None
    if isinstance(pairs, list) or names is True or (wanted and not all(isinstance(name, str) for name in wanted)):
        node_names, pairs = _numbered(pairs, wanted)
    elif wanted is not None:
        node_names = tuple(wanted)
    count = _count(pairs, n, node_names)
    check_size(_WHO, count, len(pairs))
    return from_pairs(pairs[:, 0], pairs[:, 1], count, _WHO, node_names)


def _pairs(edges: Any) -> Ints | list[Any]:
    """Return pairs of whole numbers as an array, and pairs that include strings as a list."""
    if hasattr(edges, "iloc") and hasattr(edges, "columns"):  # a pandas table
        heads = list(map(str, edges.columns))
        if len(heads) < 2:
            raise GraphError(f"{_WHO}: got a table of {len(heads)} columns, expected two: the ends of each edge")
        edges = np.column_stack([edges.iloc[:, column].to_numpy() for column in end_columns(heads) or (0, 1)])
    if hasattr(edges, "__array__") and getattr(getattr(edges, "dtype", None), "kind", "") not in ("O", "T", "U"):
        numbers = edges
    else:
        remedy = "read(path) reads a file" if isinstance(edges, (str, os.PathLike)) else _PAIRS
        numbers = check.items(_WHO, "edges", edges, "a list of pairs of nodes", remedy=remedy)
        if any(isinstance(end, str) for row in numbers if _is_row(row) for end in row):
            return numbers
    if (len(numbers) if isinstance(numbers, list) else getattr(numbers, "size", None)) == 0:
        return np.empty((0, 2), dtype=np.int64)
    return check.integers(_WHO, "edges", numbers, (None, 2), remedy=_PAIRS)


def _numbered(pairs: Ints | list[Any], wanted: list[Any] | None) -> tuple[tuple[str, ...], Ints]:
    """Return the names of all nodes, and the pairs with each name replaced by its number."""
    rows = pairs if isinstance(pairs, list) else pairs.tolist()
    for place, row in enumerate(rows):
        if not _is_row(row) or len(row) != 2:
            raise check.fail(_WHO, f"edge {place} of the list", row, "a pair of nodes", _PAIRS)
    called, ends = first_seen(_word(place, end) for place, row in enumerate(rows) for end in row)
    if wanted is None:
        names, ends = by_size(called, ends)
    else:
        names = tuple(_word(None, name) for name in wanted)
        number = {name: place for place, name in enumerate(names)}
        unknown = next((name for name in called if name not in number), None)
        if unknown is not None:
            raise GraphError(f"{_WHO}: an edge names {show(unknown)}, expected one of the {len(names)} given names")
        ends = np.array([number[name] for name in called], dtype=np.int64)[ends]
    return names, ends.reshape(-1, 2)


def _is_row(row: Any) -> bool:
    return isinstance(row, (list, tuple)) or (isinstance(row, np.ndarray) and row.ndim == 1)


def _word(edge: int | None, label: Any) -> str:
    is_whole = isinstance(label, (int, np.integer)) and not isinstance(label, bool) and abs(int(label)) <= LARGEST
    if not (isinstance(label, str) or is_whole):
        what = "a name" if edge is None else f"a node of edge {edge} of the list"
        raise check.fail(_WHO, what, label, "a string or a whole number")
    return str(label)


def _count(pairs: Ints, n: int | None, names: Names) -> int:
    """Return the number of nodes, after checking that the pairs refer to existing nodes."""
    given = None if n is None else check.whole(_WHO, "n", n, 0, MOST_NODES)
    if names is not None and given not in (None, len(names)):
        raise check.fail(_WHO, "n", n, f"{len(names)}, the number of names")
    least, largest = (int(pairs.min()), int(pairs.max())) if pairs.size else (0, -1)
    count = len(names) if names is not None else largest + 1 if given is None else given
    if least < 0 or largest >= count:
        wrong = int(np.argmax(np.any((pairs < 0) | (pairs >= count), axis=1)))
        edge = tuple(pairs[wrong].tolist())
        raise GraphError(f"{_WHO}: edge {wrong} of the list is {edge}, expected nodes from 0 on, below n = {count}")
    if names is None and given is None:
        few = largest < pairs.size  # before allocating memory for that many nodes
        used = np.count_nonzero(np.bincount(pairs.ravel())) if few else len(np.unique(pairs))
        if used != count:
            got = f"the largest node is {largest} but there are only {used} different ones"
            remedy = "from_edges(edges, names=True) treats the numbers as names"
            raise GraphError(f"{_WHO}: {got}, expected nodes numbered from 0 without gaps; {remedy}")
    return count


def from_pairs(
    first: Ends, second: Ends, n: int, name: str, node_names: Names = None, positions: Floats | None = None
) -> Graph:
    """Build the graph of n nodes with an edge between first[e] and second[e] for each e, from 0 to n - 1.

    Self-loops are dropped and duplicates in either direction merged: O(n + edges), apart from sorting each row.
    """
    from scipy.sparse import coo_array

    check_count(name, n)
    different = first != second
    first = first[different].astype(np.int32)
    second = second[different].astype(np.int32)
    both_ways = (np.concatenate([first, second]), np.concatenate([second, first]))
    ones = np.ones(2 * len(first), dtype=np.bool_)  # a sum of booleans cannot overflow
    matrix = coo_array((ones, both_ways), shape=(n, n)).tocsr()
    matrix.sum_duplicates()  # also sorts the rows
    return Graph(read_only(matrix.indptr.astype(np.int64)), read_only(matrix.indices), name, node_names, positions)


def first_seen(words: Iterable[str]) -> tuple[list[str], Ints]:
    """List the distinct words in order of first appearance, and the position of each word in that list."""
    places: dict[str, int] = {}
    ends = np.fromiter((places.setdefault(word, len(places)) for word in words), dtype=np.int64)
    return list(places), ends


def by_size(names: list[str], ends: Ints) -> tuple[tuple[str, ...], Ints]:
    """Sort names from `first_seen` numerically if all are whole numbers; otherwise leave the order unchanged."""
    if not all(map(is_whole, names)):
        return tuple(names), ends
    digits = [name.lstrip("0") for name in names]
    # Compared by length, then digit by digit: int() rejects thousands of digits.
    order = sorted(range(len(names)), key=lambda place: (len(digits[place]), digits[place], names[place]))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return tuple(names[place] for place in order), rank[ends]


def is_whole(word: str) -> bool:
    """Whether a word is a whole number: digits only."""
    return word.isascii() and word.isdigit()


def unless_numbers(names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names, or None if they equal the node numbers."""
    return None if all(name == str(place) for place, name in enumerate(names)) else names


def end_columns(heads: Sequence[str]) -> tuple[int, int] | None:
    """Find the columns of the two ends of an edge by their headers; None if no usual header is present."""
    lowered = [head.strip().lower() for head in heads]
    known = ((lowered.index(one), lowered.index(two)) for one, two in _HEADS if one in lowered and two in lowered)
    return next(known, None)
