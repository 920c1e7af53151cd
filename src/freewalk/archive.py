"""Trees of dataclasses, arrays and plain values as JSON and named arrays, and back; no pickles."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import RecordError


@dataclass
class Packed:
    """A tree as a JSON value that names arrays, and the arrays."""

    tree: Any
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


def pack(value: Any) -> Packed:
    """Take a tree apart.

    Raises
    ------
    RecordError
        If it holds something that is neither plain, an array, a sparse matrix nor a dataclass of such.

    Examples
    --------
    >>> pack({"step": 3, "nodes": np.arange(2)})
    Packed(tree={'step': 3, 'nodes': {'array': 'a0'}}, arrays={'a0': array([0, 1])})
    """
    packed = Packed(None)

    def store(array: NDArray[Any]) -> str:
        name = f"a{len(packed.arrays)}"
        packed.arrays[name] = array
        return name

    def visit(item: Any) -> Any:
        if item is None or isinstance(item, (bool, int, float, str)):
            return item
        if isinstance(item, np.generic):
            return item.item()
        if isinstance(item, np.ndarray):
            return {"array": store(item)}
        if isinstance(item, (list, tuple)):
            return [visit(part) for part in item]
        if isinstance(item, Mapping):
            return {str(name): visit(part) for name, part in item.items()}
        if is_dataclass(item) and not isinstance(item, type):
            parts = {part.name: visit(getattr(item, part.name)) for part in fields(item) if part.init}
            return {"type": name_of(type(item)), "fields": parts}
        if type(item).__name__ == "csr_array":
            names = [store(part) for part in (item.data, item.indices, item.indptr)]
            return {"csr": names, "shape": list(item.shape)}
        raise RecordError(
            f"archive: cannot store a {type(item).__name__}; expected dataclasses, arrays and plain values"
        )

    packed.tree = visit(value)
    return packed


def name_of(kind: type) -> str:
    """The name under which a class is stored: a user's own never stands for one of the package of the same name.

    Examples
    --------
    >>> from freewalk.learning import SGD
    >>> name_of(SGD), name_of(type("SGD", (), {"__module__": "mine"}))
    ('SGD', 'own SGD')
    """
    return kind.__qualname__ if kind.__module__.partition(".")[0] == "freewalk" else f"own {kind.__qualname__}"


def unpack(packed: Packed, types: Mapping[str, type]) -> Any:
    """Put a tree together again.

    Parameters
    ----------
    packed
        What `pack` made.
    types
        The dataclasses that may occur, by name: nothing else is ever constructed.

    Raises
    ------
    RecordError
        If a class is not among them.
    """

    def visit(item: Any) -> Any:
        if isinstance(item, list):
            return [visit(part) for part in item]
        if not isinstance(item, dict):
            return item
        if "array" in item:
            return packed.arrays[item["array"]]
        if "csr" in item:
            from scipy.sparse import csr_array

            return csr_array(tuple(packed.arrays[name] for name in item["csr"]), shape=tuple(item["shape"]))
        if "type" in item:
            name = item["type"]
            if name not in types:
                bare = name.removeprefix("own ")
                raise RecordError(
                    f"record: it was made with your own class {bare!r}; pass it: fw.resume(record, types=[{bare}])"
                )
            return types[name](**{part: visit(value) for part, value in item["fields"].items()})
        return {name: visit(part) for name, part in item.items()}

    return visit(packed.tree)
