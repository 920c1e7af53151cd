"""Trees of dataclasses, arrays and plain values as JSON and named arrays, which .npz files hold; no pickles."""

import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from freewalk.blocks import constant, is_constant
from freewalk.checks import Checks, show
from freewalk.errors import FreewalkError, RecordError
from freewalk.storage.files import regular
from freewalk.storage.mapped import Mapped, Source, is_mapped, reopened, with_checksum


class AbsentFile(RecordError):
    """A file to which a record refers is missing, truncated or modified."""


_check = Checks(RecordError)
_absent = Checks(AbsentFile)
_NOTHING: Mapping[str, Any] = MappingProxyType({})
# Keys that mark a mapping in a tree as a placeholder for something else.
_MARKS = ("array", "csr", "texts", "given", "type", "mapped", "repeated")
_MANY = 1000  # this many strings are stored as an array
_TEXT_BYTES = 64  # minimum memory that Python takes for a short string
_KINDS = "biufcmMUS"  # numbers, times and strings; no objects, no structures
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_RATIO = 1032  # the maximum expansion of a deflated byte


@dataclass
class Packed:
    """A tree as a JSON value that names arrays, the arrays, and objects stored elsewhere."""

    tree: Any
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)


def plain(value: Any) -> Any:
    """A value that JSON can hold: arrays as lists, numpy numbers as Python numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    raise RecordError(f"archive: cannot store a {type(value).__name__}; expected dataclasses, arrays and plain values")


def pack(value: Any, given: Mapping[str, Any] = _NOTHING) -> Packed:
    """Serialize a tree; an array that occurs several times is stored once, a mapped array by its location in the file.

    Objects that are stored elsewhere are `given` by name: each is replaced by its name.
    """
    packed = Packed(None, given=given)
    names: dict[int, str] = {}  # by id: `packed.arrays` keeps the arrays alive
    elsewhere = {id(item): name for name, item in given.items()}

    def store(array: NDArray[Any]) -> str:
        name = names.setdefault(id(array), f"a{len(packed.arrays)}")
        packed.arrays[name] = array
        return name

    def visit(item: Any) -> Any:
        if id(item) in elsewhere:
            return {"given": elsewhere[id(item)]}
        if isinstance(item, Mapped) and is_mapped(item):
            return {"mapped": plain(asdict(with_checksum(item, _absent)))}
        if isinstance(item, np.ndarray):
            if item.size > 1 and is_constant(item):
                return {"repeated": store(item[:1].copy()), "count": item.size}
            return {"array": store(item)}
        if isinstance(item, (list, tuple)):
            if len(item) >= _MANY and all(isinstance(part, str) and "\0" not in part for part in item):
                joined = "\0".join(item).encode(errors="surrogatepass")
                return {"texts": store(np.frombuffer(joined, dtype=np.uint8))}
            return [visit(part) for part in item]
        if isinstance(item, Mapping):
            if set(_MARKS) & set(item):
                raise RecordError(f"archive: cannot store a mapping with the keys {show(list(item))}")
            return {str(name): visit(part) for name, part in item.items()}
        if is_dataclass(item) and not isinstance(item, type):
            parts = {part.name: visit(getattr(item, part.name)) for part in fields(item) if part.init}
            return {"type": name_of(type(item)), "fields": parts}
        if type(item).__name__ == "csr_array":
            stored = [store(part) for part in (item.data, item.indices, item.indptr)]
            return {"csr": stored, "shape": list(item.shape)}
        return plain(item)

    packed.tree = visit(value)
    return packed


def same(one: Any, other: Any) -> bool:
    """Whether two trees would be stored alike; False if one of them cannot be stored."""
    try:
        first, second = pack(one), pack(other)
    except RecordError:
        return False
    return bool(first.tree == second.tree) and all(
        np.array_equal(array, second.arrays[name]) for name, array in first.arrays.items()
    )


def _split(joined: NDArray[Any]) -> list[str]:
    _check.room("record", "its strings", _TEXT_BYTES * (1.0 + np.count_nonzero(joined == 0)))
    return joined.tobytes().decode(errors="surrogatepass").split("\0")


def name_of(kind: type) -> str:
    """The name under which a class is stored: a user's class never replaces one of the package with the same name."""
    return kind.__qualname__ if kind.__module__.partition(".")[0] == "freewalk" else f"own {kind.__qualname__}"


def arrays_in(tree: Any) -> Iterator[str]:
    """The names of the arrays that a tree refers to, with repetitions; a value that is not a tree has none."""
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, dict):
            named = [item.get(mark) for mark in ("array", "texts", "repeated")]
            named += item["csr"] if isinstance(item.get("csr"), list) else []
            yield from (name for name in named if isinstance(name, str))
            waiting.extend(item.values())


def unpack(packed: Packed, types: Mapping[str, type], files: Sequence[str | os.PathLike[str]] = ()) -> Any:
    """Rebuild a tree. It may come from an untrusted file, so everything is checked.

    Only the dataclasses in `types` are ever constructed, and nothing is imported. The attribute `formerly` of a class
    maps fields in files of earlier versions to current fields, or to None. Files that the tree refers to are looked for
    among `files` if they have moved: they are identified by their content.
    """
    # Anything that takes an array may copy it: a tree that names a large one many times must not fill the memory.
    sizes = (packed.arrays[name].nbytes for name in arrays_in(packed.tree) if name in packed.arrays)
    _check.room("record", "the state to resume", sum(sizes))

    def array(name: Any) -> NDArray[Any]:
        if not isinstance(name, str) or name not in packed.arrays:
            raise _check.fail("record", "array", name, "the name of one of its arrays")
        return packed.arrays[name]

    def make(name: Any, parts: Any) -> Any:
        if not isinstance(name, str) or not isinstance(parts, dict):
            raise _check.fail("record", "type", name, "a class and its fields")
        if name not in types:
            bare = name.removeprefix("own ")
            word = bare if bare.isidentifier() and len(bare) < 80 else "YourClass"
            words = f"it was made with your own class {show(bare)}"
            raise RecordError(f"record: {words}; pass it: fw.resume(record, types=[{word}])")
        kind = types[name]
        known = {part.name for part in fields(kind) if part.init}
        names = {part: getattr(kind, "formerly", {}).get(part, part) for part in parts}
        renamed = {str(names[part]): value for part, value in parts.items() if names[part] is not None}
        if unknown := renamed.keys() - known:
            raise _check.fail("record", "field", sorted(unknown)[0], f"the fields of {name}")
        return kind(**{part: visit(value) for part, value in renamed.items()})

    marked: dict[str, Callable[[dict[str, Any]], Any]] = {
        "array": lambda item: array(item["array"]),
        "mapped": lambda item: _mapped(item["mapped"], files),
        "repeated": lambda item: _repeated(array(item["repeated"]), item.get("count")),
        "texts": lambda item: _split(array(item["texts"])),
        "csr": lambda item: _matrix([array(name) for name in item["csr"]], item.get("shape")),
        "given": lambda item: _given(packed, item["given"]),
        "type": lambda item: make(item["type"], item.get("fields")),
    }

    def visit(item: Any) -> Any:
        if isinstance(item, list):
            return [visit(part) for part in item]
        if not isinstance(item, dict):
            return item
        for mark, read in marked.items():
            if mark in item:
                return read(item)
        return {name: visit(part) for name, part in item.items()}

    try:
        return visit(packed.tree)
    except RecordError:
        raise
    except FreewalkError as error:
        raise RecordError(f"record: {error}") from error
    except Exception as error:  # classes of the user, missing fields, trees that are too deep
        raise RecordError(f"record: it does not fit together ({type(error).__name__}: {show(str(error))})") from error


def _mapped(said: Any, files: Sequence[str | os.PathLike[str]]) -> Mapped:
    """A mapped array, from its original file or one of the given ones; its content must be unchanged."""
    try:
        dtype = np.dtype(str(said["dtype"]))
        shape = tuple(_check.integers("record", "shape of a mapped array", said["shape"], low=0).tolist())
        offset = _check.whole("record", "offset of a mapped array", said["offset"])
        path, checksum = (_check.text("record", name, said[name]) for name in ("path", "checksum"))
    except (KeyError, TypeError) as error:
        raise RecordError(f"record: it does not give the location of an array ({show(said)})") from error
    if dtype.kind not in "biuf" or not dtype.isnative:
        raise _check.fail("record", "type of a mapped array", dtype.str, "numbers of this machine")
    source = Source(path, offset, dtype.str, shape, checksum)
    first: AbsentFile | None = None
    for place in (path, *map(os.path.abspath, files)):
        try:
            return reopened(replace(source, path=str(place)), verify=True, check=_absent)
        except AbsentFile as error:
            first = first or error
    raise AbsentFile(f"record: {first}; if it has moved, use fw.resume(record, files=[its path])") from first


def _repeated(value: NDArray[Any], count: Any) -> NDArray[Any]:
    number = _check.whole("record", "count of a repeated number", count, 1, 2**31)
    if value.shape != (1,) or value.dtype.kind not in "biuf":
        raise _check.fail("record", "repeated number", value, "one number")
    return constant(value[0], number)


def _given(packed: Packed, name: Any) -> Any:
    """An object that the tree does not contain: it is code, or is elsewhere in the record."""
    if name not in packed.given:
        word = "rule" if str(name).startswith("rule ") else "objective"
        raise RecordError(f"record: it does not contain the {word}, which is code; pass fw.resume(record, {word}=...)")
    return packed.given[name]


def _matrix(parts: list[NDArray[Any]], shape: Any) -> Any:
    """A sparse matrix; scipy does not check its indices, so they are checked first."""
    from scipy.sparse import csr_array

    rows, columns = _check.integers("record", "shape of a matrix", shape, (2,), low=0, high=2**31 - 1).tolist()
    data, indices, indptr = parts
    ends = _check.integers("record", "indptr of a matrix", indptr, (rows + 1,), low=0, high=data.size)
    places = _check.integers("record", "indices of a matrix", indices, data.shape, low=0, high=max(columns - 1, 0))
    if data.ndim != 1 or data.dtype.kind not in "biuf" or ends[0] != 0 or ends[-1] != data.size:
        raise RecordError("record: a matrix in it has entries that do not fit its rows")
    kind = np.int32 if data.size < 2**31 else np.int64
    entries = data.astype(data.dtype.newbyteorder("=")), places.astype(kind), ends.astype(kind)
    matrix = csr_array(entries, shape=(rows, columns))
    matrix.check_format(full_check=True)
    return matrix


# Files of arrays. One may be damaged or malicious: only requested arrays are decompressed, their types and shapes are
# known in advance, and nothing is ever unpickled.


def write_arrays(target: Path | IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays like np.savez_compressed, at a lower level: the default takes twice as long for 3 % of the size."""
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            raise RecordError(f"save: {name} is an array of {array.dtype}, expected numbers, strings or times; drop it")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as part:
                npy.write_array(part, np.asanyarray(array), allow_pickle=False)


class ArrayReader:
    """An open archive of arrays, of so many bytes."""

    def __init__(self, file: zipfile.ZipFile, size: int) -> None:
        self.file = file
        self.entries = {entry.filename: entry for entry in file.infolist()}
        if len(self.entries) != len(file.infolist()):
            raise RecordError("it has two entries of the same name")
        self.left = size

    def look(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The dtype and shape of an array, before it is read; an error if a record cannot contain it."""
        with self._opened(name) as (part, entry):
            version = npy.read_magic(part)
            if version not in ((1, 0), (2, 0)):
                raise RecordError(f"{name} is written in version {version} of its format")
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read(part)
            length = part.tell()
        if dtype.kind not in _KINDS or any(size < 0 for size in shape):
            raise RecordError(f"{name} is an array of {dtype} of shape {shape}, expected numbers, strings or times")
        size = dtype.itemsize * math.prod(shape)
        if entry.file_size != length + size:
            raise RecordError(f"{name} takes {entry.file_size} bytes, expected {length + size}")
        return dtype, shape

    def read(self, name: str) -> NDArray[Any]:
        """Read an array."""
        self.look(name)
        with self._opened(name) as (part, entry):
            self.left -= entry.compress_size
            if self.left < 0:  # overlapping entries
                raise RecordError("its entries are larger than the file")
            return npy.read_array(part, allow_pickle=False)

    @contextmanager
    def _opened(self, name: str) -> "Iterator[tuple[IO[bytes], zipfile.ZipInfo]]":
        entry = self.entries.get(f"{name}.npy")
        if entry is None:
            raise RecordError(f"it has no array {name!r}")
        encrypted = bool(entry.flag_bits & 1)
        if encrypted or entry.compress_type not in _COMPRESSIONS or entry.file_size > _RATIO * entry.compress_size:
            raise RecordError(f"{name} is encrypted, or not compressed as record.save does it")
        with self.file.open(entry) as part:
            yield part, entry


@contextmanager
def reading_arrays(path: Path) -> Iterator[ArrayReader]:
    """Open an archive of arrays; zipfile raises several errors for files that are not archives."""
    with regular(path).open("rb") as stream, zipfile.ZipFile(stream) as file:
        yield ArrayReader(file, os.fstat(stream.fileno()).st_size)
