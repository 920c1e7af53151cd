"""Memory-mapped arrays: read in place, shared by all processes on a machine, never copied.

A file of arrays begins with 24 bytes: a signature, the format version, and the length and CRC-32 of a header. The
header, a JSON text, lists the arrays with their dtypes, shapes, offsets and checksums; each array begins at a multiple
of 4096 bytes. `writing` creates such a file block by block, `opened` maps its arrays. A `Mapped` array has a reference
to its location in the file; it is pickled as that reference, so it is cheap to send to another process on the same
machine.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.blocks import read_only
from freewalk.checks import Checks, show
from freewalk.errors import FreewalkError
from freewalk.storage.files import regular, replacing

SIGNATURE = b"\x8aFWMAP\r\n"  # no text begins like this, and a transfer in text mode damages it
_VERSION = 1
_PRELUDE = struct.Struct("<8sIIII")
_LONGEST_HEADER = 2**24  # bytes
_PAGE = 4096  # arrays begin at multiples of it
_BLOCK = 2**22  # bytes read or written at a time
_KINDS = "biuf"
_AGAIN = "copy or save it again"
_check = Checks(FreewalkError)
#: Called with the name of an array, the index of the first number of a block, and the numbers of the block.
Look = Callable[[str, int, NDArray[Any]], None]


@dataclass(frozen=True)
class Source:
    """The location of a mapped array, and its content when it was mapped."""

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    checksum: str = ""  # the CRC-32 of its bytes as eight hexadecimal digits; empty if not known yet
    # Size and modification time of the file; if both are unchanged, the content is assumed to be unchanged.
    stamp: tuple[int, int] = (0, 0)

    @property
    def size(self) -> int:
        """The size of the array in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


class Mapped(np.ndarray):
    """A read-only array mapped from a file; see `opened` and `adopted`.

    Results computed from it, such as a slice or a sum, are ordinary arrays. A pickle of it contains only its `source`.
    """

    source: Source | None = None

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __copy__(self) -> Mapped:
        return self

    def __deepcopy__(self, memo: Any) -> Mapped:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self).__reduce_ex__(protocol) if self.source is None else (reopened, (self.source,))


def is_mapped(array: Any) -> bool:
    """Whether an array is mapped from a file with a known location."""
    return isinstance(array, Mapped) and array.source is not None


def adopted(array: Any) -> Any:
    """Convert an array that numpy has mapped read-only, whole or in part, to `Mapped`; return others unchanged."""
    if not isinstance(array, np.memmap) or array.flags.writeable or not array.flags.c_contiguous:
        return array
    root: Any = array
    while isinstance(root.base, np.memmap):
        root = root.base
    # A slice of a memmap reports the offset of the whole.
    if not isinstance(root.base, mmap.mmap) or root.filename is None or array.dtype.kind not in _KINDS:
        return array
    offset = root.offset + array.ctypes.data - root.ctypes.data
    try:
        stamp = _stamp(os.stat(root.filename))
    except OSError:  # the file was removed and cannot be found again
        return array
    result = array.view(Mapped)
    result.source = Source(os.path.abspath(root.filename), offset, array.dtype.str, array.shape, stamp=stamp)
    return result


def reopened(source: Source, *, verify: bool = False, check: Checks = _check) -> Mapped:
    """Map an array again, in this process or another one.

    Its checksum is computed if the file is not the one that was mapped, or to `verify` it. Errors are those of `check`.
    """
    with _read(source.path, check) as (file, status):
        end = source.offset + source.size
        if status.st_size < end:
            raise _truncated(source.path, status.st_size, f"at least {end:,}", check)
        if verify or not source.checksum or _stamp(status) != source.stamp:
            found = _checksum(file, source) if source.checksum else ""
            if found != source.checksum or (not found and _stamp(status) != source.stamp):
                words = "was changed since it was mapped, expected the same content"
                raise check.error(f"{source.path}: {words}; restore it, or start a new run with the current file")
        return _map(file, source, status)


def with_checksum(array: Mapped, check: Checks = _check) -> Source:
    """The source of a mapped array with a known checksum, which is computed once."""
    source = array.source
    if source is None:
        raise check.error("mapping: got an array that is not in a file")
    if not source.checksum:
        with _read(source.path, check) as (file, status):
            if _stamp(status) != source.stamp:
                raise check.error(f"{source.path}: was changed since it was mapped, expected it to stay unchanged")
            source = array.source = replace(source, checksum=_checksum(file, source))
    return source


# Files of arrays.


@dataclass(frozen=True, eq=False)
class Sink:
    """One array of a file that is being written, block by block."""

    source: Source
    file: IO[bytes]
    done: list[int] = field(default_factory=lambda: [0, 0])  # bytes written, and their CRC-32

    def append(self, block: ArrayLike) -> None:
        """Write the next rows or numbers of the array."""
        rows = np.asarray(block)
        count = max(1, _BLOCK // max(1, rows[:1].nbytes))  # convert only little at a time
        for first in range(0, len(rows), count):
            part = np.ascontiguousarray(rows[first : first + count], self.source.dtype)
            data = memoryview(part).cast("B")  # type: ignore[arg-type]
            self.file.seek(self.source.offset + self.done[0])
            self.file.write(data)
            self.done[:] = self.done[0] + len(data), zlib.crc32(data, self.done[1])


@contextmanager
def writing(
    path: str | os.PathLike[str],
    kind: str,
    shapes: Mapping[str, tuple[Any, tuple[int, ...]]],
    attributes: Mapping[str, Any],
) -> Iterator[dict[str, Sink]]:
    """Write a file of arrays of these dtypes and shapes, block by block: `append` them to the sinks, in order.

    `kind` is what the arrays represent together, such as "graph". The file appears under its name once complete;
    processes that have mapped an existing one keep seeing the old content.
    """

    def header() -> bytes:
        arrays = {
            name: {"dtype": one.dtype, "shape": one.shape, "offset": one.offset, "crc32": one.checksum}
            for name, one in sources.items()
        }
        return json.dumps({"kind": kind, "arrays": arrays, "attributes": attributes}).encode()

    sources = {
        name: Source("", 0, np.dtype(dtype).str, tuple(map(int, shape)), "0" * 8)
        for name, (dtype, shape) in shapes.items()
    }
    end = _PRELUDE.size + len(header()) + 20 * len(sources)  # offsets take up to 20 digits
    for name, source in sources.items():
        sources[name] = replace(source, offset=-(-end // _PAGE) * _PAGE)
        end = sources[name].offset + source.size
    with replacing(path) as temporary, open(temporary, "r+b") as file:
        file.truncate(end)
        sinks = {name: Sink(source, file) for name, source in sources.items()}
        yield sinks
        for name, sink in sinks.items():
            size, checksum = sink.done
            if size != sink.source.size:
                raise FreewalkError(f"{path}: {name} has {size} bytes, expected {sink.source.size}")
            sources[name] = replace(sink.source, checksum=f"{checksum:08x}")
        text = header()
        file.seek(0)
        file.write(_PRELUDE.pack(SIGNATURE, _VERSION, len(text), zlib.crc32(text), 0) + text)


@dataclass(frozen=True, eq=False)
class Opened:
    """A file of arrays: its attributes, and its mapped arrays."""

    path: str
    arrays: dict[str, Mapped]
    attributes: dict[str, Any]


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like those of `writing`, or is the rest of one; False if it cannot be read."""
    try:
        with _read(os.fspath(path), _check) as (file, _):
            begin = file.read(len(SIGNATURE))
    except (FreewalkError, ValueError):
        return False
    return begin == SIGNATURE or (begin != b"" and SIGNATURE.startswith(begin))


def opened(
    path: str | os.PathLike[str], kind: str, *, verify: bool = True, check: Checks = _check, inspect: Look | None = None
) -> Opened:
    """Map the arrays of a file of this kind made by `writing`; errors are those of `check`.

    The header and the size are always checked. To `verify` it, all of it is read and the checksums are compared; then
    `inspect` is called with the name, the index of the first number and the numbers of each block.
    """
    where = os.path.abspath(path)
    with _read(where, check) as (file, status):
        table, attributes = _header(where, file, status.st_size, kind, check)
        arrays = {}
        for name, source in table.items():
            if verify and _checksum(file, source, inspect and partial(inspect, name)) != source.checksum:
                words = f"the checksum of {name} differs from that in the header, expected {source.checksum}"
                raise check.error(f"{where}: {words}: the file was changed; {_AGAIN}")
            arrays[name] = _map(file, source, status)
    return Opened(where, arrays, attributes)


def _header(
    path: str, file: IO[bytes], size: int, kind: str, check: Checks
) -> tuple[dict[str, Source], dict[str, Any]]:
    """The content of the header, checked against the file."""
    prelude = file.read(_PRELUDE.size)
    if not prelude.startswith(SIGNATURE) and not (prelude and SIGNATURE.startswith(prelude)):
        raise check.error(f"{path}: begins with {show(prelude[:8])}, expected a file written by save ({kind})")
    if len(prelude) < _PRELUDE.size:
        raise _truncated(path, size, f"at least {_PRELUDE.size}", check)
    _, version, length, checksum, _ = _PRELUDE.unpack(prelude)
    if version != _VERSION:
        remedy = "save it again with this version of freewalk, or read it with the one that wrote it"
        raise check.error(f"{path}: is written in version {version} of its format, expected {_VERSION}; {remedy}")
    if length > _LONGEST_HEADER:
        raise check.error(f"{path}: its header has {length:,} bytes, expected at most {_LONGEST_HEADER:,}; {_AGAIN}")
    text = file.read(length)
    if len(text) < length:
        raise _truncated(path, size, f"at least {_PRELUDE.size + length:,}", check)
    if zlib.crc32(text) != checksum:
        raise check.error(f"{path}: its header was changed, expected another checksum of it; {_AGAIN}")
    try:
        header = json.loads(text)
        found, attributes = header["kind"], dict(header["attributes"])
        table = {str(name): _entry(path, entry) for name, entry in header["arrays"].items()}
    except Exception as error:
        raise check.error(f"{path}: its header does not describe the arrays ({show(str(error))}); {_AGAIN}") from error
    if found != kind:
        raise check.error(f"{path}: holds {show(found)}, expected {kind!r}; read it with what wrote it")
    for name, source in table.items():
        if not np.dtype(source.dtype).isnative:
            words = f"{name} is of type {source.dtype}, whose byte order differs from that of this machine"
            raise check.error(f"{path}: {words}; expected a file saved on a machine with the same byte order")
    end = max((source.offset + source.size for source in table.values()), default=0)
    if size < end:
        raise _truncated(path, size, f"{end:,}", check)
    if size > end:
        raise check.error(f"{path}: has {size:,} bytes, expected {end:,}: something was added to it; {_AGAIN}")
    return table, attributes


def _entry(path: str, entry: Any) -> Source:
    dtype, shape, offset = np.dtype(str(entry["dtype"])), tuple(entry["shape"]), entry["offset"]
    whole = all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in (*shape, offset))
    fits = whole and math.prod(max(extent, 1) for extent in shape) * dtype.itemsize < 2**62 and len(shape) <= 8
    if not fits or dtype.kind not in _KINDS or offset % _PAGE:
        raise ValueError(f"an array of {dtype} of shape {shape} at {offset}")
    return Source(path, offset, dtype.str, shape, str(entry["crc32"]))


def _truncated(path: str, size: int, expected: str, check: Checks) -> FreewalkError:
    return check.error(f"{path}: is truncated: it has {size:,} bytes, expected {expected}; {_AGAIN}")


@contextmanager
def _read(path: str, check: Checks) -> Iterator[tuple[IO[bytes], os.stat_result]]:
    """An open file, and its status."""
    try:
        with regular(path).open("rb") as file:
            yield file, os.fstat(file.fileno())
    except OSError as error:
        words = f"cannot be read ({error.strerror or error}), expected the file that was saved there"
        raise check.error(f"{path}: {words}; restore it, or pass its new path") from error


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _checksum(file: IO[bytes], source: Source, inspect: Callable[[int, NDArray[Any]], None] | None = None) -> str:
    """The CRC-32 of an array, read block by block: truncating the file meanwhile does not kill the process."""
    file.seek(source.offset)
    room, item = bytearray(_BLOCK), np.dtype(source.dtype).itemsize
    found, left = 0, source.size
    while left:
        view = memoryview(room)[: min(left, _BLOCK)]
        if file.readinto(view) < len(view):  # type: ignore[attr-defined]
            return ""
        found = zlib.crc32(view, found)
        if inspect is not None:
            inspect((source.size - left) // item, np.frombuffer(view, dtype=source.dtype))
        left -= len(view)
    return f"{found:08x}"


def _map(file: IO[bytes], source: Source, status: os.stat_result) -> Mapped:
    if source.size:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        result = np.ndarray.__new__(Mapped, source.shape, dtype=source.dtype, buffer=memory, offset=source.offset)
    else:
        result = read_only(np.empty(source.shape, dtype=source.dtype)).view(Mapped)
    result.source = replace(source, stamp=_stamp(status))
    return result
