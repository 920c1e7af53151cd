"""The header of a safetensors file, which may come from a stranger: its length is checked before it is read.

The package safetensors writes these files and reads small ones. It copies what it reads, so large ones are mapped here.
"""

from __future__ import annotations

import json
import math
import mmap
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import PeerError

#: The longest header, in bytes.
LONGEST = 2**16
#: The first bytes of a file that are enough to hold its header.
START = 8 + LONGEST
_KEPT = 16  # headers
_START = 8  # bytes, which hold the length of the header
_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "U64": "<u8",
    "U8": "|u1",
    "BOOL": "|b1",
}


class Entry(NamedTuple):
    """One array of a file.

    Attributes
    ----------
    dtype, shape
        Its type and shape.
    first
        Its first byte in the file.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int


def entries(start: bytes, size: int) -> dict[str, Entry]:
    """The arrays in a header, which must fill the file without gaps or overlaps.

    Parameters
    ----------
    start
        The first bytes of the file: `LONGEST` and a few more, or all of it.
    size
        The size of the file.

    Raises
    ------
    PeerError
        If the header is too long, cannot be read, or does not fit the file.

    Examples
    --------
    >>> from safetensors.numpy import save
    >>> data = save({"x": np.zeros(3)})
    >>> entries(data, len(data))
    {'x': Entry(dtype=dtype('float64'), shape=(3,), first=64)}
    """
    length = int.from_bytes(start[:_START], "little")
    if len(start) < _START or length > LONGEST or _START + length > min(size, len(start)):
        raise PeerError(f"a safetensors file of {size:,} bytes: its header is cut off or over {LONGEST:,} bytes")
    return dict(_entries(start[_START : _START + length], size))


@lru_cache(_KEPT)  # all models of a run have the same header
def _entries(words: bytes, size: int) -> dict[str, Entry]:
    length = len(words)
    try:
        header = json.loads(words.decode(), object_pairs_hook=_unique)
        found = [(name, *_entry(value)) for name, value in header.items()]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise PeerError(f"a safetensors file of {size:,} bytes: its header cannot be read") from None
    place, result = 0, {}
    for name, dtype, shape, first, last in sorted(found, key=lambda one: one[3:]):
        if first != place or last - first != dtype.itemsize * math.prod(shape):
            raise PeerError(f"a safetensors file of {size:,} bytes: an array has another size than its shape")
        result[name], place = Entry(dtype, shape, _START + length + first), last
    if _START + length + place != size:
        raise PeerError(f"a safetensors file of {size:,} bytes, expected {_START + length + place:,} by its header")
    return result


def mapped(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file, mapped read-only: they take no memory until they are read.

    Raises
    ------
    PeerError
        If it does not exist, or is not a safetensors file.
    """
    try:
        with path.open("rb") as file:
            start = file.read(START)
            size = file.seek(0, 2)
            found = entries(start, size)
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise PeerError(f"{path}: cannot be read ({error.strerror or error})") from error
    return {
        name: np.ndarray(shape, dtype, memory, first) if math.prod(shape) else np.zeros(shape, dtype)
        for name, (dtype, shape, first) in found.items()
    }


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name twice")
    return dict(pairs)


def _entry(value: dict[str, Any]) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    """Type, shape, first and last byte of an array, from its entry in a header."""
    first, last = value["data_offsets"]
    shape = tuple(value["shape"])
    if len(value) != 3 or not all(type(number) is int and 0 <= number < 2**63 for number in (first, last, *shape)):
        raise ValueError("no line of a header")
    return np.dtype(_TYPES[value["dtype"]]), shape, first, last
