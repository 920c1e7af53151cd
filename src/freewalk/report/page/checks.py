"""What enters a page: every objection says who, what it got, what it expected and what to do."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.errors import RecordError

_PNG = b"\x89PNG\r\n\x1a\n"


def floats(owner: str, name: str, values: ArrayLike, size: int | None = None) -> NDArray[np.float64]:
    """Numbers in one dimension, in an array of their own; `size` is how many there must be.

    Raises
    ------
    RecordError
        If they are not numbers, not in one dimension, none, or not so many.
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RecordError(f"{owner}: {name} holds no numbers ({error}), expected a list of numbers") from error
    if array.ndim != 1 or not array.size:
        raise RecordError(f"{owner}: {name} has the shape {array.shape}, expected numbers in one dimension, at least 1")
    if size is not None:
        check_counts(owner, name, array.size, size, "numbers; give as many as there are values")
    return array


def check_counts(owner: str, name: str, got: int, expected: int, of: str) -> None:
    """Object to a wrong number of things.

    Raises
    ------
    RecordError
        If the numbers differ.
    """
    if got != expected:
        raise RecordError(f"{owner}: {name} has {got}, expected {expected} {of}")


def check_finite(owner: str, name: str, values: NDArray[np.float64], *, ascending: bool = False) -> None:
    """Object to values that are not finite, or that go back.

    Raises
    ------
    RecordError
        If one is, or does.
    """
    if not np.isfinite(values).all():
        raise RecordError(f"{owner}: {name} holds {values[~np.isfinite(values)][0]}, expected finite numbers; drop it")
    if ascending and (np.diff(values) < 0).any():
        raise RecordError(f"{owner}: {name} goes back, expected ascending numbers; sort the points")


def check_nodes(owner: str, name: str, nodes: ArrayLike, n: int, *, empty: bool = False) -> NDArray[np.int64]:
    """Nodes of a graph of n, as whole numbers.

    Raises
    ------
    RecordError
        If one does not exist; if there is none, where there must be.
    """
    array = np.asarray(nodes)
    if empty and array.size == 0:
        return np.empty(0, dtype=np.int64)
    numbers = floats(owner, name, array)
    strays = numbers[~((numbers >= 0) & (numbers < n) & (numbers == np.floor(numbers)))]
    if strays.size:
        raise RecordError(f"{owner}: {name} holds {strays[0]:g}, expected nodes from 0 to {n - 1}")
    return numbers.astype(np.int64)


def check_choice(owner: str, name: str, got: Any, expected: Iterable[str]) -> None:
    """Object to what is none of the choices.

    Raises
    ------
    RecordError
        If it is none of them.
    """
    choices = list(expected)
    if got not in choices:
        raise RecordError(f"{owner}: {name} is {got!r}, expected one of {', '.join(map(repr, choices))}")


def check_colour(owner: str, colour: str | None) -> None:
    """Object to a colour that is not written as six digits: it goes into a style as it is.

    Raises
    ------
    RecordError
        If it is written otherwise.
    """
    if colour is not None and not (isinstance(colour, str) and re.fullmatch(r"#[0-9a-fA-F]{6}", colour)):
        raise RecordError(f"{owner}: colour is {colour!r}, expected six hexadecimal digits such as '#0072B2', or None")


def check_items(
    owner: str, name: str, items: Any, expected: str, of: type | None = None, *, empty: bool = True
) -> None:
    """Object to what is no list or mapping, or holds something else; a single text is no list of paragraphs.

    Raises
    ------
    RecordError
        If it is not what was expected.
    """
    kind = Collection if of is not None else Mapping
    if isinstance(items, (str, bytes)) or not isinstance(items, kind):
        raise RecordError(f"{owner}: {name} is of type {type(items).__name__}, expected {expected}")
    stray = next((item for item in items if of is not None and not isinstance(item, of)), None)
    if stray is not None:
        raise RecordError(f"{owner}: {name} holds something of type {type(stray).__name__}, expected {expected}")
    if not empty and not len(items):
        raise RecordError(f"{owner}: {name} is empty, expected {expected}")


def check_image(owner: str, content: bytes) -> str:
    """The media type of an image.

    Raises
    ------
    RecordError
        If it is neither PNG nor SVG.

    Examples
    --------
    >>> check_image("example", b"<svg></svg>")
    'image/svg+xml'
    """
    if isinstance(content, bytes):
        if content.startswith(_PNG):
            return "image/png"
        start = content[:4000].lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith((b"<?xml", b"<svg", b"<!DOCTYPE svg")) and b"<svg" in start:
            return "image/svg+xml"
    raise RecordError(f"{owner} is no image that a page can hold, expected the bytes of a PNG or SVG file")
