"""Large arrays: processed block by block, kept without a copy, or stored as one number."""

import mmap
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

BLOCK = 2**20  # numbers processed together
_SPARSE = 2**14  # counts processed together
LARGE = 2**22  # above this number of nodes, a value that is the same at all nodes is stored once


def blocks(count: int, width: int = 1, numbers: int = BLOCK) -> Iterator[slice]:
    """Slices that cover `count` rows of `width` numbers each, about a million numbers at a time."""
    size = max(1, numbers // max(1, width))
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def is_fixed(values: Any, kind: Any) -> bool:
    """Whether values are a read-only array of the given dtype, contiguous or constant.

    Such an array need not be copied: it is read-only and owns its memory, or is mapped read-only from a file.
    """
    if not issubclass(type(values), np.ndarray) or isinstance(values, (np.ma.MaskedArray, np.matrix)):
        return False
    if values.dtype != kind or not (values.flags.c_contiguous or is_constant(values)):
        return False
    owner: Any = values
    while isinstance(owner.base, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    return not owner.flags.writeable and (owner.base is None or isinstance(owner.base, mmap.mmap))


def is_constant(values: NDArray[Any]) -> bool:
    """Whether an array repeats a single number, as arrays made by `constant` do."""
    return values.ndim == 1 and values.strides == (0,)


def constant(value: Any, count: int) -> NDArray[Any]:
    """A read-only array that repeats a number `count` times but stores it once."""
    return np.broadcast_to(read_only(np.array(value)), (count,))


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Make an array read-only: cached values must not change."""
    array.flags.writeable = False
    return array


def ascends(numbers: NDArray[Any]) -> bool:
    """Whether no number is less than the previous one."""
    parts = (numbers[part.start : part.stop + 1] for part in blocks(len(numbers)))
    return all(bool((part[1:] >= part[:-1]).all()) for part in parts)


def no_counts(like: NDArray[Any]) -> NDArray[Any]:
    """Zeros with the shape and type of other counts; memory is used only when written to (np.zeros_like writes)."""
    return np.zeros(like.shape, dtype=like.dtype)


def copy_of_counts(counts: NDArray[Any]) -> NDArray[Any]:
    """A copy of rows of counts in which zeros take no memory."""
    copy = no_counts(counts)
    for row, other in zip(copy, counts, strict=True):
        add_counts(row, other)
    return copy


def add_counts(total: NDArray[Any], counts: NDArray[Any]) -> None:
    """Add counts to others without writing unchanged entries: memory never written to takes no space."""
    for part in blocks(len(counts), numbers=_SPARSE):
        if counts[part].any():
            total[part] += counts[part]
