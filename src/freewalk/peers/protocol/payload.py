"""What is sent with a token or stored at a node: named vectors, as the bytes of a safetensors file.

The package safetensors writes these files. It copies what it reads, so files are mapped here instead; and a header may
come from a stranger, so its length is checked before it is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import MissingExtra, PeerError

#: Up to this many bytes, a payload is held in memory and sent within a message.
SMALL = 2**18
#: The bytes of a large payload that are read or sent at a time. Larger chunks may get fresh memory for each copy,
#: depending on earlier allocations; page faults would then cost more than the hash.
CHUNK = 2**18
SUFFIX = ".safetensors"
#: The longest header, in bytes.
LONGEST = 2**16
_LENGTH = 8  # bytes at the start of a file, which hold the length of the header
_HEADERS = 16  # that are kept: all models of a run have the same one
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

_lock = Lock()  # a file is not removed while another is renamed to its name
_numbers = count()
_live: WeakValueDictionary[int, Payload | _Draft] = WeakValueDictionary()  # that have a file


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Payload:
    """Named vectors as the bytes of a safetensors file; two are equal if their bytes are.

    A large payload that has only been announced has neither `data` nor `path`.
    """

    digest: str  # BLAKE2b-256 of the bytes, in hexadecimal
    size: int = field(compare=False)  # in bytes
    data: bytes | None = field(default=None, compare=False)  # the bytes, if there are at most `SMALL`
    path: Path | None = field(default=None, compare=False)  # else the file that holds them, `<digest>.safetensors`

    def __post_init__(self) -> None:
        if self.path is not None:
            _live[id(self)] = self

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], folder: Path, durable: bool = True) -> Payload:
        """The payload of some vectors by name; a large one is written to a folder, and flushed if `durable`."""
        try:
            from safetensors import SafetensorError
            from safetensors.numpy import save, save_file
        except ImportError:
            raise MissingExtra("safetensors", "peers") from None
        dense = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        if sum(array.nbytes for array in dense.values()) <= SMALL:
            data = save(dense)
            if len(data) <= SMALL:
                return cls.holding(data)
        draft = _Draft(folder)
        with draft.unless_failed():
            try:
                save_file(dense, draft.path)
            except SafetensorError as error:  # a full disk, too
                raise OSError(str(error)) from error
            with draft.path.open("r+b") as file:
                digest = hashlib.file_digest(file, _hash).hexdigest()
                return draft.named(digest, os.fstat(file.fileno()).st_size, file.fileno(), durable)

    @classmethod
    def holding(cls, data: bytes) -> Payload:
        """The payload of some bytes, which are not checked; a `Form` checks them."""
        return cls(_hash(data).hexdigest(), len(data), data)

    @property
    def here(self) -> bool:
        """Whether its bytes are here, rather than only announced."""
        return self.data is not None or self.path is not None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The vectors: copies for a small payload, read-only views of the file for a large one."""
        with self.opened() as file:
            found = entries(file.read(_LENGTH + LONGEST), file.seek(0, 2))
            memory = self.data or mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        views = {
            name: np.frombuffer(memory, dtype, math.prod(shape), first).reshape(shape)
            for name, (dtype, shape, first) in found.items()
        }
        return views if self.data is None else {name: view.copy() for name, view in views.items()}

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Its bytes, to be read."""
        if self.data is not None:
            yield BytesIO(self.data)
            return
        if self.path is None:
            raise PeerError(f"payload {self.digest[:12]}… has only been announced, expected its bytes to be here")
        try:
            with self.path.open("rb") as file:
                yield file
        except OSError as error:
            raise PeerError(f"{self.path}: cannot be read ({error.strerror or error})") from error

    def chunks(self, size: int = CHUNK) -> Iterator[bytes]:
        """Its bytes, in pieces."""
        with self.opened() as file:
            while piece := file.read(size):
                yield piece


@dataclass(frozen=True)
class Form:
    """The required form of a payload: the names and shapes of its vectors, and the type of all of them."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtype: Any

    @property
    def bytes(self) -> int:
        """The bytes of the vectors themselves."""
        return int(np.dtype(self.dtype).itemsize * sum(math.prod(shape) for shape in self.shapes))

    def size_fits(self, size: int) -> bool:
        """Whether this size is possible; to be checked before any bytes are accepted."""
        return self.bytes < size <= self.bytes + LONGEST + _LENGTH

    def check(self, payload: Payload, finite: bool = True) -> str | None:
        """The problem of a payload that came from outside, whose values must be `finite`, or None."""
        if not self.size_fits(payload.size):
            return f"it has {payload.size:,} bytes, expected {self.bytes:,} and a header"
        try:
            with payload.opened() as file:
                return self._check(file, payload.size, finite)
        except PeerError as error:
            return str(error)

    def _check(self, file: BinaryIO, size: int, finite: bool) -> str | None:
        """Read it block by block, because a large mapped file would count as memory in use."""
        found = entries(file.read(_LENGTH + LONGEST), size)
        if sorted(found) != sorted(self.names):
            names = ", ".join(name if name.isprintable() else ascii(name) for name in sorted(found))
            return f"its vectors are {names[:200]}; expected {', '.join(sorted(self.names))}"
        for name, shape in zip(self.names, self.shapes, strict=True):
            entry = found[name]
            if entry.shape != shape or entry.dtype != np.dtype(self.dtype):
                return f"{name!r} is {entry.dtype} of shape {entry.shape}, expected {np.dtype(self.dtype)} of {shape}"
            file.seek(entry.first)
            left = math.prod(shape) * entry.dtype.itemsize
            while left > 0:
                data = file.read(min(left, CHUNK))
                if not data:
                    return f"{name!r} is cut off"
                if finite and not np.isfinite(np.frombuffer(data, entry.dtype)).all():
                    return f"{name!r} has values that are not finite"
                left -= len(data)
        return None


class _Draft:
    """The file of a payload that is being written."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f".{os.getpid()}-{next(_numbers)}.tmp"
        self.file: BinaryIO | None = None  # if it is open
        _live[id(self)] = self

    @contextmanager
    def unless_failed(self) -> Iterator[None]:
        """Remove the file if the block fails."""
        try:
            yield
        except OSError as error:
            self.close()
            raise PeerError(f"{self.path.parent}: a model cannot be written ({error.strerror or error})") from error
        except BaseException:
            self.close()
            raise

    def named(self, digest: str, size: int, handle: int, durable: bool) -> Payload:
        """The payload of the finished file, which gets its name."""
        if durable:
            os.fsync(handle)
        path = self.path.with_name(digest + SUFFIX)
        with _lock:
            os.replace(self.path, path)
            return Payload(digest, size, None, path)

    def close(self) -> None:
        """Remove the file, unless it is already finished."""
        with suppress(OSError):  # the rest of its buffer may not fit on the disk
            if self.file is not None:
                self.file.close()
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


class Incoming(_Draft):
    """A large payload that arrives in pieces, written to a temporary file that is renamed at the end.

    If it is not what was announced, or cannot be written, the file is removed.
    """

    def __init__(self, folder: Path, digest: str, size: int, durable: bool = True) -> None:
        if not is_digest(digest) or not SMALL < size < 2**63:
            raise PeerError(f"a payload of {size:,} bytes is announced as {digest[:80]!r}, expected more and a digest")
        super().__init__(folder)
        self.digest, self.size, self.durable = digest, size, durable
        self.received, self._hash = 0, _hash()
        with self.unless_failed():
            self._file = self.file = self.path.open("wb")

    def write(self, chunk: bytes | memoryview) -> None:
        """Add the next piece."""
        with self.unless_failed():
            self.received += len(chunk)
            if self.received > self.size:
                raise PeerError(f"payload {self.digest[:12]}… is longer than the {self.size:,} bytes announced")
            self._hash.update(chunk)
            self._file.write(chunk)

    def finish(self) -> Payload:
        """The payload, once it is complete."""
        with self.unless_failed(), self._file:
            self._file.flush()
            if (self.received, self._hash.hexdigest()) != (self.size, self.digest):
                words = f"{self.received:,} bytes, not the {self.size:,} announced"
                raise PeerError(f"payload {self.digest[:12]}…: {words}")
            return self.named(self.digest, self.size, self._file.fileno(), self.durable)


def is_digest(text: str) -> bool:
    """Whether a text can be the digest of a payload."""
    return re.fullmatch("[0-9a-f]{64}", text) is not None


def discard(path: Path) -> bool:
    """Remove a file unless a payload of this process uses it, or it is being written; returns whether it is gone."""
    with _lock:
        if path.name in {one.path.name for one in list(_live.values()) if one.path is not None}:
            return False
        path.unlink(missing_ok=True)
        return True


def _hash(data: bytes = b"") -> Any:
    return hashlib.blake2b(data, digest_size=32)


# The header of a safetensors file.


class Entry(NamedTuple):
    """One array of a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int  # its first byte in the file


def entries(start: bytes, size: int) -> dict[str, Entry]:
    """The arrays in the header at the start of a file, which must fill the file without gaps or overlaps."""
    length = int.from_bytes(start[:_LENGTH], "little")
    if len(start) < _LENGTH or length > LONGEST or _LENGTH + length > min(size, len(start)):
        raise PeerError(f"a safetensors file of {size:,} bytes: its header is cut off or over {LONGEST:,} bytes")
    return dict(_entries(start[_LENGTH : _LENGTH + length], size))


@lru_cache(_HEADERS)
def _entries(words: bytes, size: int) -> dict[str, Entry]:
    begin = _LENGTH + len(words)
    try:
        header = json.loads(words.decode(), object_pairs_hook=_unique)
        found = [(name, *_entry(value)) for name, value in header.items()]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise PeerError(f"a safetensors file of {size:,} bytes: its header cannot be read") from None
    place, result = 0, {}
    for name, dtype, shape, first, last in sorted(found, key=lambda one: one[3:]):
        if first != place or last - first != dtype.itemsize * math.prod(shape):
            raise PeerError(f"a safetensors file of {size:,} bytes: an array has another size than its shape")
        result[name], place = Entry(dtype, shape, begin + first), last
    if begin + place != size:
        raise PeerError(f"a safetensors file of {size:,} bytes, expected {begin + place:,} by its header")
    return result


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
