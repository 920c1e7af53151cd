"""What an objective accepts, and the words in which it refuses the rest."""

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import ProblemError

Scalar = TypeVar("Scalar", bound=np.generic)


def whole(who: str, name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return a whole number from `low` to `high`.

    Examples
    --------
    >>> whole("LeastSquares", "dim", np.int64(3), 1)
    3
    """
    expected = f"expected a whole number of at least {low}" if high is None else f"expected {low} to {high}"
    try:
        number = operator.index(value)
    except TypeError:
        raise ProblemError(f"{who}: {name} = {value!r}, expected a whole number") from None
    if isinstance(value, (bool, np.bool_)) or number < low or (high is not None and number > high):
        raise ProblemError(f"{who}: {name} = {value!r}, {expected}")
    return number


def real(who: str, name: str, value: Any, high: float = np.inf) -> float:
    """Return a finite number from 0 to `high`."""
    expected = "expected a finite number >= 0" if high == np.inf else f"expected a number from 0 to {high:g}"
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ProblemError(f"{who}: {name} = {value!r}, {expected}") from None
    if not (np.isfinite(number) and 0 <= number <= high):
        raise ProblemError(f"{who}: {name} = {value!r}, {expected}")
    return number


def numbers(who: str, name: str, values: Any) -> NDArray[np.float64]:
    """Return an array of float64, not looked at further."""
    if np.ma.is_masked(values):
        raise ProblemError(f"{who}: {name} has masked entries, expected data without gaps; drop those rows")
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise TypeError("complex numbers")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ProblemError(
            f"{who}: {name} cannot be read as an array of real numbers ({error}); "
            "give a numpy array, and a sparse matrix as .toarray()"
        ) from None


def integers(who: str, name: str, values: Any) -> NDArray[np.int64]:
    """Return a one-dimensional array of integers."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ProblemError(f"{who}: {name} has shape {array.shape}, expected one dimension")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ProblemError(f"{who}: {name} has dtype {array.dtype}, expected integers: 0, 1, 2, …")
    return array.astype(np.int64)


def finite(who: str, name: str, array: NDArray[np.float64]) -> None:
    """Refuse the first row that holds a NaN or an infinity."""
    bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise ProblemError(
            f"{who}: row {row} of {name} is {array[row]} ({int(bad.sum())} such rows in all), "
            "expected finite numbers; drop or repair the rows with NaN or infinity"
        )


def table(who: str, features: Any, targets: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features (N, d) and targets (N,) that belong together."""
    rows, answers = numbers(who, "features", features), numbers(who, "targets", targets)
    if rows.ndim != 2:
        remedy = "; a single feature a sample is features.reshape(-1, 1)" if rows.ndim == 1 else ""
        raise ProblemError(f"{who}: features has shape {rows.shape}, expected (samples, dim){remedy}")
    if rows.size == 0:
        raise ProblemError(f"{who}: features has shape {rows.shape}, expected at least one sample and one feature")
    if answers.shape != (len(rows),):
        remedy = "; flatten it with targets.reshape(-1)" if answers.size == len(rows) else ""
        raise ProblemError(
            f"{who}: targets has shape {answers.shape}, expected ({len(rows)},), one for each row of features{remedy}"
        )
    finite(who, "features", rows)
    finite(who, "targets", answers)
    return rows, answers


def owners(who: str, nodes: Any, count: int) -> NDArray[np.int64]:
    """Return the node of each of `count` samples, with no node left out; None: every sample is a node."""
    if nodes is None:
        return np.arange(count, dtype=np.int64)
    if np.shape(nodes) != (count,):
        raise ProblemError(
            f"{who}: nodes has shape {np.shape(nodes)}, expected ({count},), the node of each row of features"
        )
    array = integers(who, "nodes", nodes)
    if array.min() < 0:
        raise ProblemError(f"{who}: nodes has the entry {array.min()}, expected numbers from 0 to n - 1")
    n = int(array.max()) + 1
    missing = n - len(np.unique(array))
    if missing:
        # Of the first count + 5 numbers at least five are no node's: a stray huge number costs no memory.
        first = np.setdiff1d(np.arange(min(n, count + 5)), array)[:5]
        names = ", ".join(map(str, first)) + (", ..." if missing > 5 else "")
        raise ProblemError(
            f"{who}: no data at {missing} of {n} nodes ({names}), expected a sample or more at every node; "
            "renumber the nodes that have data, or leave the others out of the graph"
        )
    return array


def members(who: str, name: str, nodes: Any, n: int) -> tuple[int, ...]:
    """Return some of the nodes 0..n-1, in order and each once."""
    array = np.unique(integers(who, name, list(nodes) if isinstance(nodes, Iterable) else nodes))
    if array.size and not 0 <= array[0] <= array[-1] < n:
        stray = array[0] if array[0] < 0 else array[-1]
        raise ProblemError(f"{who}: {name} names node {stray}, expected nodes from 0 to {n - 1}")
    return tuple(int(node) for node in array)


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Close an array to changes: what is cached must stay what it was."""
    array.flags.writeable = False
    return array
