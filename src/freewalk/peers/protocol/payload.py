"""What is sent with a token or stored at a node: named vectors, as the bytes of a safetensors file."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, TypeVar
from weakref import WeakSet, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import MissingExtra, PeerError
from freewalk.peers.protocol import tensors

#: Up to this many bytes, a payload is held in memory and sent within a message.
SMALL = 2**18
#: The bytes of a large payload that are read or sent at a time. Larger chunks may get fresh memory for each copy,
#: depending on earlier allocations; page faults would then cost more than the hash.
CHUNK = 2**18
SUFFIX = ".safetensors"
Result = TypeVar("Result")
_DIGEST = re.compile("[0-9a-f]{64}")

_lock = Lock()  # a file is not removed while another is renamed to its name
_numbers = count()
_drafts: WeakSet[_Draft] = WeakSet()
_live: WeakValueDictionary[int, Payload] = WeakValueDictionary()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Payload:
    """Named vectors as the bytes of a safetensors file; two are equal if their bytes are.

    A large payload that has only been announced has neither `data` nor `path`.

    Attributes
    ----------
    digest
        BLAKE2b-256 of the bytes, in hexadecimal.
    size
        The number of bytes.
    data
        The bytes, if there are at most `SMALL`.
    path
        Else the file that holds them, `<digest>.safetensors`.

    Examples
    --------
    >>> payload = Payload.of({"x": np.ones(2)}, Path("not needed here"))
    >>> payload.size, payload.arrays()
    (80, {'x': array([1., 1.])})
    """

    digest: str
    size: int
    data: bytes | None = None
    path: Path | None = None

    def __post_init__(self) -> None:
        if self.path is not None:
            _live[id(self)] = self

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Payload) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], folder: Path, durable: bool = True) -> Payload:
        """The payload of some vectors.

        Parameters
        ----------
        arrays
            The vectors by name.
        folder
            Where the file of a large payload is written.
        durable
            Whether that file is flushed to disk.

        Raises
        ------
        PeerError
            If the file cannot be written.
        """
        numpy = _safetensors()
        dense = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        if sum(array.nbytes for array in dense.values()) <= SMALL:
            data = numpy.save(dense)
            if len(data) <= SMALL:
                return cls.holding(data)
        draft = _Draft(folder)
        return draft.doing(lambda: _written(draft, lambda: numpy.save_file(dense, draft.path), durable))

    @classmethod
    def holding(cls, data: bytes) -> Payload:
        """The payload of some bytes, which are not checked; a `Form` checks them."""
        return cls(_hash(data).hexdigest(), len(data), data)

    @property
    def here(self) -> bool:
        """Whether its bytes are here, rather than only announced."""
        return self.data is not None or self.path is not None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The vectors: copies for a small payload, read-only views of the file for a large one.

        Raises
        ------
        PeerError
            If its bytes are not here, or are not a safetensors file.
        """
        if self.data is None:
            return tensors.mapped(self._file())
        return {
            name: np.frombuffer(self.data, dtype, math.prod(shape), first).reshape(shape).copy()
            for name, (dtype, shape, first) in tensors.entries(self.data, self.size).items()
        }

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Its bytes, to be read.

        Raises
        ------
        PeerError
            If they are not here, or cannot be read.
        """
        if self.data is not None:
            yield BytesIO(self.data)
            return
        try:
            with self._file().open("rb") as file:
                yield file
        except OSError as error:
            raise PeerError(f"{self.path}: cannot be read ({error.strerror or error})") from error

    def chunks(self, size: int = CHUNK) -> Iterator[bytes]:
        """Its bytes, in pieces.

        Raises
        ------
        PeerError
            If its bytes are not here, or cannot be read.
        """
        with self.opened() as file:
            while piece := file.read(size):
                yield piece

    def _file(self) -> Path:
        if self.path is None:
            raise PeerError(f"payload {self.digest[:12]}… has only been announced, expected its bytes to be here")
        return self.path


class Incoming:
    """A large payload that arrives in pieces, written to a temporary file that is renamed at the end.

    Parameters
    ----------
    folder
        Where the file is written.
    digest, size
        What was announced.
    durable
        Whether the file is flushed to disk at the end.

    Raises
    ------
    PeerError
        If the digest is not valid, the size is that of a small payload, or the file cannot be written.
    """

    def __init__(self, folder: Path, digest: str, size: int, durable: bool = True) -> None:
        if _DIGEST.fullmatch(digest) is None or not SMALL < size < 2**63:
            raise PeerError(f"a payload of {size:,} bytes is announced as {digest[:80]!r}, expected more and a digest")
        self.digest, self.size, self.durable = digest, size, durable
        self.received, self._hash = 0, _hash()
        self._draft = _Draft(folder)
        self._file = self._draft.doing(lambda: self._draft.path.open("wb"))

    def write(self, chunk: bytes | memoryview) -> None:
        """Add the next piece.

        Raises
        ------
        PeerError
            If there are more bytes than announced, or they cannot be written; the file is removed then.
        """
        if self.received + len(chunk) > self.size:
            self.abandon()
            raise PeerError(f"payload {self.digest[:12]}… is longer than the {self.size:,} bytes that were announced")
        self.received += len(chunk)
        self._hash.update(chunk)
        self._do(lambda: self._file.write(chunk))

    def finish(self) -> Payload:
        """The payload, once it is complete.

        Raises
        ------
        PeerError
            If it is not what was announced, or cannot be written; the file is removed then.
        """
        self._do(self._file.flush)
        if (self.received, self._hash.hexdigest()) != (self.size, self.digest):
            self.abandon()
            raise PeerError(f"payload {self.digest[:12]}…: {self.received:,} bytes, not the {self.size:,} announced")
        payload = self._do(lambda: self._draft.named(self.digest, self.size, self._file.fileno(), self.durable))
        self._file.close()
        return payload

    def abandon(self) -> None:
        """Remove the file, unless it is already finished."""
        with suppress(OSError):  # the rest of its buffer may not fit on the disk
            self._file.close()
        self._draft.abandon()

    def _do(self, work: Callable[[], Result]) -> Result:
        try:
            return self._draft.doing(work)
        except BaseException:
            self.abandon()
            raise


@dataclass(frozen=True)
class Form:
    """The required form of a payload.

    Parameters
    ----------
    names, shapes
        The names and shapes of its vectors.
    dtype
        The type of all of them.

    Examples
    --------
    >>> form = Form(("x",), ((2,),), np.float64)
    >>> form.check(Payload.of({"x": np.ones(2)}, Path("not needed here")))
    >>> form.check(Payload.of({"x": np.array([1.0, np.nan])}, Path("not needed here")))
    "'x' has values that are not finite"
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtype: Any

    @property
    def bytes(self) -> int:
        """The bytes of the vectors themselves."""
        return int(np.dtype(self.dtype).itemsize * sum(math.prod(shape) for shape in self.shapes))

    def size_fits(self, size: int) -> bool:
        """Whether this size is possible; to be checked before any bytes are accepted."""
        return self.bytes < size <= self.bytes + tensors.LONGEST + 8

    def check(self, payload: Payload) -> str | None:
        """The problem of a payload that came from outside, or None."""
        if not self.size_fits(payload.size):
            return f"it has {payload.size:,} bytes, expected {self.bytes:,} and a header"
        try:
            with payload.opened() as file:
                return self._check(file, payload.size)
        except PeerError as error:
            return str(error)

    def _check(self, file: BinaryIO, size: int) -> str | None:
        """Read it block by block, because a large mapped file would count as memory in use."""
        entries = tensors.entries(file.read(tensors.START), size)
        if sorted(entries) != sorted(self.names):
            found = ", ".join(name if name.isprintable() else ascii(name) for name in sorted(entries))
            return f"its vectors are {found[:200]}; expected {', '.join(sorted(self.names))}"
        for name, shape in zip(self.names, self.shapes, strict=True):
            entry = entries[name]
            if entry.shape != shape or entry.dtype != np.dtype(self.dtype):
                return f"{name!r} is {entry.dtype} of shape {entry.shape}, expected {np.dtype(self.dtype)} of {shape}"
            file.seek(entry.first)
            left = math.prod(shape) * entry.dtype.itemsize
            while left > 0:
                data = file.read(min(left, CHUNK))
                if not data:
                    return f"{name!r} is cut off"
                if not np.isfinite(np.frombuffer(data, entry.dtype)).all():
                    return f"{name!r} has values that are not finite"
                left -= len(data)
        return None


class _Draft:
    """The file of a payload that is being written."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f".{os.getpid()}-{next(_numbers)}.tmp"
        _drafts.add(self)

    def doing(self, work: Callable[[], Result]) -> Result:
        """Do something with the file, and remove it if that fails."""
        try:
            return work()
        except OSError as error:
            self.abandon()
            raise PeerError(f"{self.path.parent}: a model cannot be written ({error.strerror or error})") from error
        except BaseException:
            self.abandon()
            raise

    def named(self, digest: str, size: int, handle: int, durable: bool) -> Payload:
        """The payload of the finished file, which gets its name."""
        if durable:
            os.fsync(handle)
        path = self.path.with_name(digest + SUFFIX)
        with _lock:
            os.replace(self.path, path)
            return Payload(digest, size, None, path)

    def abandon(self) -> None:
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def is_digest(text: str) -> bool:
    """Whether a text can be the digest of a payload."""
    return _DIGEST.fullmatch(text) is not None


def discard(path: Path) -> bool:
    """Remove a file unless a payload of this process uses it, or it is being written; returns whether it is gone."""
    with _lock:
        names = {draft.path.name for draft in list(_drafts)}
        names.update(one.path.name for one in list(_live.values()) if one.path is not None)
        if path.name in names:
            return False
        path.unlink(missing_ok=True)
        return True


def _written(draft: _Draft, save: Callable[[], None], durable: bool) -> Payload:
    from safetensors import SafetensorError

    try:
        save()
    except SafetensorError as error:  # a full disk, too
        raise OSError(str(error)) from error
    with draft.path.open("r+b") as file:
        digest = hashlib.file_digest(file, _hash).hexdigest()
        return draft.named(digest, os.fstat(file.fileno()).st_size, file.fileno(), durable)


def _hash(data: bytes = b"") -> Any:
    return hashlib.blake2b(data, digest_size=32)


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise MissingExtra("safetensors", "peers") from None
    return safetensors.numpy
