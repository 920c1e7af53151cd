"""Send values to workers: arrays are stored once and mapped there; user code is sent with its source.

The arrays of a job are views of each other (a graph and its table, samples and an engine's view of them). Pickled one
by one, they would be stored several times; here a view is sent as a view. Classes of a script, a notebook or a local
module are sent by value, since workers cannot import them, and with their source, since they are compiled from it.
"""

import io
import linecache
import pickle
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.storage.mapped import is_mapped


class Shipment(NamedTuple):
    """A pickled value, with its arrays and the source of code sent by value kept separately."""

    pickled: bytes
    arrays: list[NDArray[np.uint8]]
    sources: dict[str, str]

    @property
    def bytes(self) -> int:
        """Its size."""
        return len(self.pickled) + sum(array.nbytes for array in self.arrays)


def pack(value: Any) -> Shipment:
    """Prepare a value for sending."""
    room, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
    with _own_modules_by_value():
        pickler = _pickler_class()(room, buffers)
        pickler.dump(value)
    sources = {file: "".join(linecache.getlines(file)) for file in pickler.files}
    arrays = [np.frombuffer(buffer.raw(), dtype=np.uint8) for buffer in buffers]
    return Shipment(room.getvalue(), arrays, {file: text for file, text in sources.items() if text})


def unpack(sent: Shipment) -> Any:
    """The value; its arrays are those of the shipment, read-only if these are."""
    for file, text in sent.sources.items():
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    return pickle.loads(sent.pickled, buffers=sent.arrays)


def _pickler_class() -> Any:
    from ray import cloudpickle

    class Pickler(cloudpickle.Pickler):
        """Sends views as views, and records the files of code sent by value."""

        def __init__(self, room: io.BytesIO, buffers: list[pickle.PickleBuffer]) -> None:
            super().__init__(room, protocol=5, buffer_callback=buffers.append)
            self.files: set[str] = set()
            self.roots: dict[int, NDArray[Any]] = {}  # the arrays being sent, kept alive here

        def reducer_override(self, item: Any) -> Any:
            if isinstance(item, CodeType):
                self.files.add(item.co_filename)
            elif type(item) is np.ndarray and not item.dtype.hasobject:
                root = _root(item)
                if root is not item and (id(root) in self.roots or is_mapped(root) or 2 * item.nbytes >= root.nbytes):
                    self.roots[id(root)] = root
                    offset = item.__array_interface__["data"][0] - root.__array_interface__["data"][0]
                    return np.ndarray, (item.shape, item.dtype, root, offset, item.strides)
                self.roots[id(item)] = item
            return super().reducer_override(item)

    return Pickler


def _root(array: NDArray[Any]) -> NDArray[Any]:
    """The array that owns this one's memory, if it can be sent as it is; a mapped array is sent by its location."""
    root: Any = array
    while type(root.base) is np.ndarray or is_mapped(root.base):
        root = root.base
    return root if root.flags.c_contiguous and not root.dtype.hasobject else array


@contextmanager
def _own_modules_by_value() -> Iterator[None]:
    """Send classes and functions of modules that are not installed by value."""
    from ray import cloudpickle

    known = {str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    chosen = [module for name, module in list(sys.modules.items()) if _is_own(name, module, known)]
    for module in chosen:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in chosen:
            cloudpickle.unregister_pickle_by_value(module)


def _is_own(name: str, module: ModuleType | None, known: set[str]) -> bool:
    file = getattr(module, "__file__", None)
    if file is None or name == "__main__" or name != getattr(module, "__name__", None):
        return False
    if name.partition(".")[0] == "freewalk" or "site-packages" in file or "dist-packages" in file:
        return False
    return not any(str(Path(file).resolve()).startswith(folder) for folder in known)
