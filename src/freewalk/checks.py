"""All input checks in one place: invalid input is rejected where it enters, with messages of one form.

Every message says who objects, what it got, what it expected and, if there is one, the remedy. A package creates its
checks once, with the error class that it raises: `check = Checks(GraphError)`.
"""

import difflib
import inspect
import math
import numbers
import operator
import os
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from freewalk.blocks import blocks, is_fixed
from freewalk.errors import FreewalkError

Thing = TypeVar("Thing")
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shape = Sequence[int | None] | None  # None allows any size

LARGEST = 2**63 - 1  # the largest whole number
LAST_SEED = 2**64 - 1
_LONGEST = 80  # characters of a wrong value that a message shows
_REPR = reprlib.Repr()
_REPR.maxother = 2 * _LONGEST
_LONGEST_PATH = 4096  # characters: no system takes more


def show(value: Any) -> str:
    """Format a value for a message: short, on one line, and without addresses in memory."""
    kind: Any = type(value)  # an object may lie about its `__class__`, and so deceive isinstance
    if issubclass(kind, np.ndarray) and (value.ndim > 1 or value.size > 4):
        return f"an array of {value.dtype} of shape {value.shape}"
    if issubclass(kind, int) and value.bit_length() > 256:
        return f"a whole number of {value.bit_length()} bits"
    try:
        plain = kind.__repr__ is object.__repr__  # which only shows the memory address
        text = "" if plain else " ".join(without_addresses(_REPR.repr(value)).split())
    except Exception:  # an object whose repr fails must not hide what is wrong with it
        text = ""
    text = text or "something of type " + f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def without_addresses(text: str) -> str:
    """What repr says, without where functions and objects lie in memory, which differs from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def guess(given: Any, names: Iterable[str]) -> str:
    """The end of a message: the name that was probably meant; empty if none is similar."""
    lowered = {name.lower(): name for name in names}
    close = difflib.get_close_matches(str(given)[:100].lower(), lowered, n=1)
    return f"did you mean {lowered[close[0]]!r}?" if close else ""


def suggestion(given: Any, names: Iterable[str], otherwise: str) -> str:
    """The end of a message: the name that was probably meant, or all possible names."""
    known = list(names)
    return guess(given, known) or f"{otherwise} {', '.join(known)}"


def set_fields(owner: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass to their checked values."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def takes(function: Any, name: str) -> bool:
    """Whether a function has a parameter that can be passed by this name."""
    try:
        found = inspect.signature(function).parameters.get(name)
    except (TypeError, ValueError):  # not a function, or a builtin without a signature
        return False
    return found is not None and found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY)


@dataclass(frozen=True)
class Checks:
    """Checks that raise one class of error."""

    error: type[FreewalkError]

    def fail(self, who: str, name: str, value: Any, expected: str, remedy: str = "") -> FreewalkError:
        """The error to raise, in the common form."""
        return self._error(who, f"{name} = {show(value)}, expected {expected}", remedy)

    def _error(self, who: str, words: str, remedy: str) -> FreewalkError:
        return self.error(f"{who}: {words}" + (f"; {remedy}" if remedy else ""))

    @contextmanager
    def attempt(self, words: str, remedy: str = "") -> Iterator[None]:
        """If the user's code fails within the block, an error that says so and quotes its own."""
        try:
            yield
        except Exception as error:
            raise self.error(f"{words}: {said(error)}" + (f"; {remedy}" if remedy else "")) from error

    def whole(self, who: str, name: str, value: Any, low: int = 0, high: int = LARGEST, remedy: str = "") -> int:
        """A whole number from `low` to `high`; a float is rejected even if it is integral."""
        try:
            number = None if isinstance(value, (bool, np.bool_, np.ndarray)) else operator.index(value)
        except Exception:  # a TypeError, or whatever a foreign object raises
            number = None
        if number is None or not low <= number <= high:
            raise self.fail(who, name, value, f"a whole number {_span(low, high, number)}", remedy)
        return number

    def real(
        self,
        who: str,
        name: str,
        value: Any,
        low: float = -math.inf,
        high: float = math.inf,
        *,
        above: float | None = None,
        finite: bool = True,
        expected: str = "",
        remedy: str = "",
    ) -> float:
        """A number from `low` (or above `above`) to `high`; never NaN, and infinite only without `finite`."""
        is_real = isinstance(value, (numbers.Real, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
        try:
            number = float(value) if is_real else math.nan
        except (OverflowError, TypeError, ValueError):
            number = math.nan
        fine = math.isfinite(number) if finite else not math.isnan(number)
        if not (fine and low <= number <= high and (above is None or number > above)):
            lower = f" > {above:g}" if above is not None else f" >= {low:g}" if low > -math.inf else ""
            upper = "" if high == math.inf else f" and up to {high:g}" if lower else f" <= {high:g}"
            raise self.fail(who, name, value, expected or f"a {'finite ' * finite}number{lower}{upper}", remedy)
        return number

    def probability(self, who: str, name: str, value: Any, *, positive: bool = False) -> float:
        """A number from 0 to 1, or above 0."""
        expected = "a probability above 0 and up to 1" if positive else "a probability from 0 to 1"
        return self.real(who, name, value, 0.0, 1.0, above=0.0 if positive else None, expected=expected)

    def seed(self, who: str, value: Any) -> int:
        """A seed: a 64-bit whole number."""
        return self.whole(who, "seed", value, 0, LAST_SEED)

    def flag(self, who: str, name: str, value: Any) -> bool:
        """True or False; strings and numbers are rejected."""
        if not issubclass(type(value), (bool, np.bool_)):
            raise self.fail(who, name, value, "True or False")
        return bool(value)

    def choice(self, who: str, name: str, value: Any, choices: Collection[str]) -> str:
        """One of the given names."""
        if not issubclass(type(value), str) or value not in choices:
            known = [repr(one) for one in choices]
            words = " or ".join([", ".join(known[:-1]), known[-1]] if len(known) > 1 else known)
            raise self.fail(who, name, value, words, guess(value, choices) if isinstance(value, str) else "")
        return cast("str", value)

    def text(self, who: str, name: str, value: Any, remedy: str = "") -> str:
        """A string that can be printed and written to a file."""
        try:
            fine = issubclass(type(value), str) and bool(value.strip()) and "\0" not in value and bool(value.encode())
        except UnicodeEncodeError:  # half of a surrogate pair
            fine = False
        if not fine:
            raise self.fail(who, name, value, "a string", remedy)
        return str(value)

    def path(self, who: str, name: str, value: Any) -> Path:
        """The path of a file or folder."""
        try:
            words = os.fspath(value)
            os.fsencode(words)  # fails for half a pair, which no file system has
        except Exception:  # a TypeError, or whatever a foreign object raises
            words = b""
        if not isinstance(words, str) or not words or "\0" in words:
            raise self.fail(who, name, value, "the path of a file")
        if len(words) > _LONGEST_PATH:  # messages show others whole
            raise self.fail(who, name, words, f"the path of a file, of up to {_LONGEST_PATH:,} characters")
        return Path(words)

    def function(
        self, who: str, name: str, value: Any, arguments: Sequence[str], optional: Sequence[str] = ()
    ) -> Callable[..., Any] | None:
        """A function that accepts these arguments, or None; it may ask for `optional` ones by name."""
        try:
            if value is not None:
                inspect.signature(value).bind(*arguments, **{one: one for one in optional if takes(value, one)})
        except Exception as error:  # a TypeError, or whatever a foreign object raises
            if type(error) is ValueError and not issubclass(type(value), type):
                return cast("Callable[..., Any]", value)  # a builtin without a signature: calling it will tell
            forms = [f"{name}({', '.join([*arguments, *more])})" for more in ((), optional)[: 1 + bool(optional)]]
            raise self.fail(who, name, value, f"a function {' or '.join(forms)}") from None
        return cast("Callable[..., Any] | None", value)

    def instance(self, who: str, name: str, value: Any, kind: type[Thing] | tuple[type, ...], expected: str) -> Thing:
        """An instance of a type, or of one of several."""
        if not issubclass(type(value), kind):
            raise self.fail(who, name, value, expected)
        return cast("Thing", value)

    def items(
        self, who: str, name: str, values: Any, expected: str, *, most: int | None = None, remedy: str = ""
    ) -> list[Any]:
        """The items of a list or another iterable, or the first `most` of them; a string is not a list."""
        try:
            if isinstance(values, (str, bytes)):
                raise TypeError("a string")
            self.room(who, name, 64.0 * operator.length_hint(values))
            return list(islice(values, most))
        except self.error:
            raise
        except Exception:  # it is not iterable, or fails during iteration
            raise self.fail(who, name, values, expected, remedy) from None

    def floats(
        self,
        who: str,
        name: str,
        values: Any,
        shape: Shape = None,
        *,
        positive: bool = False,
        low: float = -math.inf,
        finite: bool = True,
        remedy: str = "",
        keep: bool = False,
    ) -> Floats:
        """Real numbers as a new float64 array; None in `shape` allows any size.

        `low` and `positive` bound the values; NaN and infinities are rejected if the values must be `finite`. Masked,
        complex, ragged and string arrays are always rejected. With `keep`, an array that `is_fixed` is not copied.
        """
        kept = keep and is_fixed(values, np.float64)
        array = values if kept else self.array(who, name, values, "real numbers", remedy)
        self._shaped(who, name, array, shape, remedy)
        with np.errstate(over="ignore"):
            result: Floats = array if kept else np.array(array, dtype=np.float64, order="C")

        def fits(part: Any) -> Any:
            bounded = part > 0 if positive else part >= low
            return bounded & np.isfinite(part) if finite else bounded

        if not (finite or positive or low > -math.inf):
            return result
        parts: Iterable[Any] = blocks(len(result), result[:1].size) if result.ndim else [...]
        if not all(fits(result[part]).all() for part in parts):
            fine = fits(result)
            place = np.unravel_index(int(np.argmin(fine)), fine.shape)
            where = "" if not place else f"[{', '.join(map(str, place))}]"
            more = f" (and {int((~fine).sum()) - 1} more)" if (~fine).sum() > 1 else ""
            words = " > 0" if positive else f" >= {low:g}" if low > -math.inf else ""
            words = f"expected a {'finite ' * finite}number{words}"
            raise self._error(who, f"{name}{where} = {float(result[place])!r}{more}, {words}", remedy)
        return result

    def integers(
        self,
        who: str,
        name: str,
        values: Any,
        shape: Shape = (None,),
        *,
        low: int = -(2**63),
        high: int = LARGEST,
        remedy: str = "",
        keep: Any = None,
    ) -> Ints:
        """Whole numbers from `low` to `high` as a new int64 array; a single number is accepted if `shape` is None.

        An array of dtype `keep` that `is_fixed` is not copied.
        """
        several = isinstance(values, Sized) or (hasattr(values, "__array__") and not isinstance(values, np.generic))
        if shape is None and (isinstance(values, str) or not several):
            return np.array(self.whole(who, name, values, low, high, remedy), dtype=np.int64)
        kept = keep is not None and is_fixed(values, keep)
        array = values if kept else self.array(who, name, values, "whole numbers", remedy)
        if array.size and array.dtype.kind not in "iu":
            raise self._error(who, f"{name} is an array of {array.dtype}, expected whole numbers", remedy)
        self._shaped(who, name, array, shape, remedy)
        if array.size and not (low <= int(array.min()) and int(array.max()) <= high):
            stray = int(array.min()) if int(array.min()) < low else int(array.max())
            raise self._error(who, f"{name} holds {stray}, expected whole numbers {_span(low, high, stray)}", remedy)
        return array if kept else np.array(array, dtype=np.int64, order="C")

    def room(self, who: str, what: str, size: float, remedy: str = "") -> None:
        """Reject what does not fit into the memory of this machine; `size` is in bytes."""
        if size > memory():
            here = f"expected less than the {in_bytes(memory())} of memory here"
            raise self._error(who, f"{what} would take {in_bytes(size)}, {here}", remedy)

    def array(self, who: str, name: str, values: Any, of: str, remedy: str = "") -> NDArray[Any]:
        """Values as an array of numbers of any kind."""
        if np.ma.is_masked(values):
            raise self._error(who, f"{name} has masked entries, expected {of} without gaps; drop them", remedy)
        if hasattr(values, "toarray"):
            raise self._error(who, f"{name} is a sparse matrix, expected an array of {of}", f"give {name}.toarray()")
        try:
            array = np.asarray(values)
            if array.dtype.kind == "O" and array.size and all(isinstance(one, numbers.Real) for one in array.flat):
                array = array.astype(np.float64)  # fractions and similar objects
        except Exception as error:  # rows of unequal length, or a foreign object that raises anything
            said = " ".join(str(error).split())[:_LONGEST]
            why = "its rows differ in length" if "inhomogeneous" in str(error) else said or type(error).__name__
            words = f"{name} cannot be read as an array of {of} ({why})"
            raise self._error(who, words, remedy or "give a numpy array") from None
        if array.dtype.kind not in "biuf":
            raise self.fail(who, name, values, f"an array of {of}", remedy)
        self.room(who, name, 8.0 * array.size)  # of the copy; a view may have more numbers than fit into memory
        return array

    def _shaped(self, who: str, name: str, array: NDArray[Any], shape: Shape, remedy: str) -> None:
        if shape is None:
            return
        pairs = zip(shape, array.shape, strict=False)
        if len(shape) != array.ndim or any(want not in (None, got) for want, got in pairs):
            sizes = ["any" if size is None else str(size) for size in shape]
            words = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
            raise self._error(who, f"{name} has shape {array.shape}, expected {words}", remedy)


def _span(low: int, high: int, given: int | None = None) -> str:
    """A range of whole numbers in words; the limit of 63 bits is mentioned only if it is exceeded."""
    if high != LARGEST:
        is_power = high > 2**20 and not high & (high + 1)
        return f"from {low} to " + (f"2^{high.bit_length()} - 1" if is_power else str(high))
    if low == -(2**63):
        return "from -2^63 to 2^63 - 1"
    return f">= {low}{' (and below 2^63)' if given is not None and given > high else ''}"


def said(error: BaseException) -> str:
    """The type and the message of an error, on one line, for messages that quote it."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def memory() -> float:
    """The memory of this machine in bytes; infinite if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_bytes(size: float) -> str:
    """Format a size for humans."""
    for unit, letter in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {letter}"
    return f"{size:.0f} bytes"
