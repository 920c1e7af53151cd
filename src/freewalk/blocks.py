"""Arrays that are large: gone through block by block, kept without a copy, or held as one number."""

import mmap
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

BLOCK = 2**20  # numbers that are looked at together
_SPARSE = 2**14  # counts that are looked at together
LARGE = 2**22  # above so many nodes, what is the same at all of them is held as one number


def blocks(count: int, width: int = 1, numbers: int = BLOCK) -> Iterator[slice]:
    """Slices that cover `count` rows of `width` numbers each, about a million numbers at a time.

    Examples
    --------
    >>> list(blocks(1_500_000))
    [slice(0, 1048576, None), slice(1048576, 1500000, None)]
    """
    size = max(1, numbers // max(1, width))
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def is_fixed(values: Any, kind: Any) -> bool:
    """Whether values are an array of a type, one number behind the other or all the same, that nobody can write to.

    Such an array need not be copied: one that owns its memory and is read-only, or lies in a file that is mapped so.

    Examples
    --------
    >>> numbers = np.arange(3.0)
    >>> is_fixed(numbers, np.float64), is_fixed(constant(1.0, 3), np.float64)
    (False, True)
    """
    if not isinstance(values, np.ndarray) or isinstance(values, (np.ma.MaskedArray, np.matrix)):
        return False
    if values.dtype != kind or not (values.flags.c_contiguous or is_constant(values)):
        return False
    owner: Any = values
    while isinstance(owner.base, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    return not owner.flags.writeable and (owner.base is None or isinstance(owner.base, mmap.mmap))


def is_constant(values: NDArray[Any]) -> bool:
    """Whether an array is one number that is shown many times, as `constant` makes them."""
    return values.ndim == 1 and values.strides == (0,)


def constant(value: Any, count: int) -> NDArray[Any]:
    """The same number `count` times, in the memory of one: a read-only array.

    Examples
    --------
    >>> constant(0.5, 3)
    array([0.5, 0.5, 0.5])
    """
    return np.broadcast_to(read_only(np.array(value)), (count,))


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Close an array to changes: what is cached must stay what it was."""
    array.flags.writeable = False
    return array


def ascends(numbers: NDArray[Any]) -> bool:
    """Whether no number is less than the one before it.

    Examples
    --------
    >>> ascends(np.array([1, 1, 3])), ascends(np.array([1, 3, 2]))
    (True, False)
    """
    parts = (numbers[part.start : part.stop + 1] for part in blocks(len(numbers)))
    return all(bool((part[1:] >= part[:-1]).all()) for part in parts)


def no_counts(like: NDArray[Any]) -> NDArray[Any]:
    """Zeros of the shape and type of other counts; they take room where they are written to (np.zeros_like writes)."""
    return np.zeros(like.shape, dtype=like.dtype)


def add_counts(total: NDArray[Any], counts: NDArray[Any]) -> None:
    """Add counts to others, and leave alone what stays as it is: memory that was never written to takes no room.

    Examples
    --------
    >>> total = np.zeros(3, dtype=np.int64)
    >>> add_counts(total, np.array([0, 2, 0]))
    >>> total
    array([0, 2, 0])
    """
    for part in blocks(len(counts), numbers=_SPARSE):
        if counts[part].any():
            total[part] += counts[part]
