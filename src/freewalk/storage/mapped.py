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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.checks import Checks, show
from freewalk.errors import FreewalkError
from freewalk.storage.files import replacing

SIGNATURE = b"\x8aFWMAP\r\n"  # no text begins like this, and a transfer in text mode damages it
_VERSION = 1
_PRELUDE = struct.Struct("<8sIIII")
_LONGEST_HEADER = 2**24  # bytes
_PAGE = 4096  # arrays begin at multiples of it
_BLOCK = 2**22  # bytes read or written at a time
_KINDS = "biuf"
_AGAIN = "copy or save it again"
_check = Checks(FreewalkError)


@dataclass(frozen=True)
class Source:
    """The location of a mapped array, and its content when it was mapped.

    Attributes
    ----------
    path
        The file.
    offset, dtype, shape
        The offset of the array in the file, its dtype and its shape.
    checksum
        The CRC-32 of its bytes as eight hexadecimal digits; empty if not known yet.
    stamp
        Size and modification time of the file; if both are unchanged, the content is assumed to be unchanged.
    """

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    checksum: str = ""
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

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__() if self.source is None else (reopened, (self.source,))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self).__reduce_ex__(protocol) if self.source is None else self.__reduce__()


def is_mapped(array: Any) -> bool:
    """Whether an array is mapped from a file with a known location.

    Examples
    --------
    >>> is_mapped(np.zeros(3))
    False
    """
    return isinstance(array, Mapped) and array.source is not None


def adopted(array: Any) -> Any:
    """Convert an array that numpy has mapped read-only, whole or in part, to `Mapped`; return others unchanged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.arange(6.0))
    ...     rows = adopted(np.load(f"{folder}/rows.npy", mmap_mode="r")[2:])
    >>> is_mapped(rows), rows.source.offset, rows.sum()
    (True, 144, np.float64(14.0))
    """
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

    Parameters
    ----------
    source
        Its location.
    verify
        Whether to always compute its checksum; otherwise only if the file is not the one that was mapped.
    check
        Creates the error to raise.

    Raises
    ------
    FreewalkError
        If the file is missing, truncated or has different content.
    """
    with _read(source.path, check) as (file, status):
        end = source.offset + source.size
        if status.st_size < end:
            raise _truncated(source.path, status.st_size, f"at least {end:,}", check)
        if verify or not source.checksum or _stamp(status) != source.stamp:
            found = _checksum(file, source) if source.checksum else ""
            if found != source.checksum or (not found and _stamp(status) != source.stamp):
                raise check.error(
                    f"{source.path}: was changed since it was mapped, expected the same content; restore it, or "
                    "start a new run with the current file"
                )
        result = _map(file, source.offset, source.dtype, source.shape)
    result.source = replace(source, stamp=_stamp(status))
    return result


def with_checksum(array: Mapped, check: Checks = _check) -> Source:
    """The source of a mapped array with a known checksum, which is computed once.

    Raises
    ------
    FreewalkError
        If the file cannot be read, or was changed since it was mapped.
    """
    source = array.source
    if source is None:
        raise check.error("mapping: got an array that is not in a file")
    if not source.checksum:
        with _read(source.path, check) as (file, status):
            if _stamp(status) != source.stamp:
                raise check.error(f"{source.path}: was changed since it was mapped, expected it to stay unchanged")
            array.source = replace(source, checksum=_checksum(file, source))
    return array.source or source


# Files of arrays.


@dataclass(frozen=True, eq=False)
class Sink:
    """One array of a file that is being written, block by block."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    file: IO[bytes]
    done: list[int]  # bytes written, and their CRC-32

    @property
    def size(self) -> int:
        """The size of the whole array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def append(self, block: ArrayLike) -> None:
        """Write the next rows or numbers of the array."""
        rows = np.asarray(block)
        count = max(1, _BLOCK // max(1, rows[:1].nbytes))  # convert only little at a time
        for first in range(0, len(rows), count):
            data = memoryview(np.ascontiguousarray(rows[first : first + count], self.dtype)).cast("B")  # type: ignore[arg-type]
            self.file.seek(self.offset + self.done[0])
            self.file.write(data)
            self.done[:] = self.done[0] + len(data), zlib.crc32(data, self.done[1])


@contextmanager
def writing(
    path: str | os.PathLike[str],
    kind: str,
    shapes: Mapping[str, tuple[Any, tuple[int, ...]]],
    attributes: Mapping[str, Any],
) -> Iterator[dict[str, Sink]]:
    """Write a file of arrays, block by block; it appears under its name once complete.

    Parameters
    ----------
    path
        The file. An existing one is replaced; processes that have mapped it keep seeing the old content.
    kind
        What the arrays represent together, such as "graph".
    shapes
        The dtype and the shape of each array.
    attributes
        Additional plain values.

    Yields
    ------
    dict
        By name, where to `append` the blocks of each array, in order.

    Raises
    ------
    RecordError
        If the file cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with writing(f"{folder}/rows.fwmap", "rows", {"rows": ("f8", (4,))}, {"step": 2}) as sinks:
    ...         for first in (0, 2):
    ...             sinks["rows"].append([first, first + 1])
    ...     file = opened(f"{folder}/rows.fwmap", "rows")
    >>> file.arrays["rows"], file.attributes
    (array([0., 1., 2., 3.]), {'step': 2})
    """
    types = {name: (np.dtype(dtype), tuple(map(int, shape))) for name, (dtype, shape) in shapes.items()}

    def header(places: Mapping[str, int], sums: Mapping[str, int]) -> bytes:
        arrays = {
            name: {"dtype": dtype.str, "shape": shape, "offset": places[name], "crc32": f"{sums[name]:08x}"}
            for name, (dtype, shape) in types.items()
        }
        return json.dumps({"kind": kind, "arrays": arrays, "attributes": attributes}).encode()

    nothing = dict.fromkeys(types, 0)
    end = _PRELUDE.size + len(header(nothing, nothing)) + 20 * len(types)  # offsets take up to 20 digits
    places = {}
    for name, (dtype, shape) in types.items():
        places[name] = -(-end // _PAGE) * _PAGE
        end = places[name] + math.prod(shape) * dtype.itemsize
    with replacing(path) as temporary, open(temporary, "r+b") as file:
        file.truncate(end)
        sinks = {name: Sink(name, *types[name], places[name], file, [0, 0]) for name in types}
        yield sinks
        for sink in sinks.values():
            if sink.done[0] != sink.size:
                raise FreewalkError(f"{path}: {sink.name} has {sink.done[0]} bytes, expected {sink.size}")
        text = header(places, {name: sink.done[1] for name, sink in sinks.items()})
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
    path: str | os.PathLike[str],
    kind: str,
    *,
    verify: bool = True,
    check: Checks = _check,
    inspect: Callable[[str, int, NDArray[Any]], None] | None = None,
) -> Opened:
    """Map the arrays of a file made by `writing`.

    Parameters
    ----------
    path
        The file.
    kind
        What its arrays are expected to represent.
    verify
        Whether to read all of it and compare the checksums; the header and the size are always checked.
    check
        Creates the error to raise.
    inspect
        Called with the name, the index of the first number and the numbers of each block that is read for `verify`.

    Raises
    ------
    FreewalkError
        If the file is missing, truncated, modified, of another version or kind, or not such a file at all.
    """
    where = os.path.abspath(path)
    with _read(where, check) as (file, status):
        table, attributes = _header(where, file, status.st_size, kind, check)
        arrays = {}
        for name, source in table.items():
            if verify and _checksum(file, source, inspect and _named(inspect, name)) != source.checksum:
                raise check.error(
                    f"{where}: the checksum of {name} differs from that in the header, expected "
                    f"{source.checksum}: the file was changed; {_AGAIN}"
                )
            arrays[name] = _map(file, source.offset, source.dtype, source.shape)
            arrays[name].source = replace(source, stamp=_stamp(status))
    return Opened(where, arrays, attributes)


def _named(inspect: Callable[[str, int, NDArray[Any]], None], name: str) -> Callable[[int, NDArray[Any]], None]:
    return lambda first, block: inspect(name, first, block)


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
        raise check.error(
            f"{path}: is written in version {version} of its format, expected {_VERSION}; save it again with this "
            "version of freewalk, or read it with the one that wrote it"
        )
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
            raise check.error(
                f"{path}: {name} is of type {source.dtype}, whose byte order differs from that of this machine; "
                "expected a file saved on a machine with the same byte order"
            )
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
        if Path(path).exists() and not Path(path).is_file():
            raise OSError("it is a folder or a device")
        with open(path, "rb") as file:
            yield file, os.fstat(file.fileno())
    except OSError as error:
        reason = error.strerror or str(error)
        raise check.error(
            f"{path}: cannot be read ({reason}), expected the file that was saved there; restore it, or pass its "
            "new path"
        ) from error


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _checksum(file: IO[bytes], source: Source, inspect: Callable[[int, NDArray[Any]], None] | None = None) -> str:
    """The CRC-32 of an array, read block by block: truncating the file meanwhile does not kill the process."""
    file.seek(source.offset)
    room, item = bytearray(_BLOCK), np.dtype(source.dtype).itemsize
    found, left = 0, source.size
    while left:
        view = memoryview(room)[: min(left, _BLOCK)]
        count = _filled(file, view)
        if count < len(view):
            return ""
        found = zlib.crc32(view, found)
        if inspect is not None:
            inspect((source.size - left) // item, np.frombuffer(view, dtype=source.dtype))
        left -= count
    return f"{found:08x}"


def _filled(file: IO[bytes], view: memoryview) -> int:
    done = 0
    while done < len(view):
        count = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            break
        done += count
    return done


def _map(file: IO[bytes], offset: int, dtype: str, shape: tuple[int, ...]) -> Mapped:
    if not math.prod(shape):
        empty = np.empty(shape, dtype=dtype)
        empty.setflags(write=False)
        return empty.view(Mapped)
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.ndarray.__new__(Mapped, shape, dtype=dtype, buffer=memory, offset=offset)
