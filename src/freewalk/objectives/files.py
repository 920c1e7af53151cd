"""Memory-mapped problem files: samples, the nodes that own them, and all other fields."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import ProblemError
from freewalk.objectives.samples import check
from freewalk.storage import mapped
from freewalk.storage.archive import name_of

if TYPE_CHECKING:
    from freewalk.objectives.predictor import Predictor

_KIND = "objective"
_TYPES = {"features": "f8", "targets": "f8", "nodes": "i8", "heavy": "i8", "relays": "i8", "names": "u1"}


def read(path: str | os.PathLike[str], *, verify: bool = True, types: Sequence[type[Predictor]] = ()) -> Predictor:
    """Map a problem from a file written by `save`, such as `LeastSquares(...).save(path)`.

    The samples stay on disk, are shared by all processes on the machine, and need no additional memory. A pickle of the
    problem contains only the path of the file. If the file has no nodes, the field `nodes` is None: every sample is its
    own node, in order.

    Parameters
    ----------
    path
        The file.
    verify
        Whether to read the file once, to compare its checksums and to check that all numbers are finite: about one
        second per gigabyte if it is in the page cache. Without it a file with one sample per node opens immediately;
        the header and the size are always checked.
    types
        Your own subclass of `Predictor`, if the file contains a problem of that class.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from freewalk.objectives import LeastSquares
    >>> with TemporaryDirectory() as folder:
    ...     _ = LeastSquares([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0]).save(f"{folder}/prices.data")
    ...     problem = read(f"{folder}/prices.data")
    >>> problem.optimum()
    array([3., 2.])
    """
    from freewalk.objectives.least_squares import LeastSquares
    from freewalk.objectives.logistic import Logistic
    from freewalk.objectives.predictor import Predictor

    check.flag("read", "verify", verify)
    expected = "a list of subclasses of fw.Predictor"
    own = check.items("read", "types", types, expected)
    for kind in own:
        if not isinstance(kind, type) or not issubclass(kind, Predictor):
            raise check.fail("read", "types", kind, expected)
    found, fields = opened(path, verify=verify)
    known: dict[str, type[Predictor]] = {name_of(kind): kind for kind in (LeastSquares, Logistic, *own)}
    if found not in known:
        word = found.removeprefix("own ")
        raise ProblemError(f"{path}: contains a problem of your own class {word}; pass it: read(path, types=[{word}])")
    # The rows of each node are checked in any case: compiled code relies on them.
    return known[found]._of_fields(fields, checked=verify or fields["nodes"] is not None)


def opened(path: str | os.PathLike[str], *, verify: bool = True) -> tuple[str, dict[str, Any]]:
    """Map a problem file: the name of its class, and its fields."""
    file = mapped.opened(check.path("read", "path", path), _KIND, verify=verify, check=check)
    arrays, said = file.arrays, file.attributes
    fits = arrays.keys() | {"nodes"} == _TYPES.keys() and all(
        array.dtype == _TYPES[name] and array.ndim == 1 + (name == "features") for name, array in arrays.items()
    )
    if not fits or len(arrays["features"]) != len(arrays["targets"]):
        raise ProblemError(f"{file.path}: its arrays are not those of a problem; save it again")
    kind, names = check.text("read", "the class in the file", said.get("class")), arrays["names"].tobytes().decode()
    return kind, {
        "features": arrays["features"],
        "targets": arrays["targets"],
        "nodes": arrays.get("nodes"),
        "ridge": check.real("read", "ridge in the file", said.get("ridge"), 0.0),
        "heavy": tuple(arrays["heavy"].tolist()),
        "weight_by": check.choice("read", "weight_by in the file", said.get("weight_by"), ("node", "sample")),
        "relays": tuple(arrays["relays"].tolist()),
        "node_names": tuple(names.split("\0")) if names else None,
    }


@contextmanager
def writing(
    path: str | os.PathLike[str], kind: type, shape: tuple[int, int], nodes: bool, others: Mapping[str, Any]
) -> Iterator[dict[str, mapped.Sink]]:
    """Write a problem block by block: `append` to the features, the targets and, if given, the nodes."""
    arrays: dict[str, NDArray[Any]] = {
        "heavy": np.array(others["heavy"], dtype=np.int64),
        "relays": np.array(others["relays"], dtype=np.int64),
        "names": np.frombuffer("\0".join(others["node_names"] or ()).encode(), dtype=np.uint8),
    }
    extents = {"features": shape, "targets": shape[:1]} | ({"nodes": shape[:1]} if nodes else {})
    extents |= {name: array.shape for name, array in arrays.items()}
    shapes = {name: (_TYPES[name], extent) for name, extent in extents.items()}
    attributes = {"class": name_of(kind), "ridge": others["ridge"], "weight_by": others["weight_by"]}
    with mapped.writing(check.path("save", "path", path), _KIND, shapes, attributes) as sinks:
        for name, array in arrays.items():
            sinks[name].append(array)
        yield sinks


def write(problem: Predictor, path: str | os.PathLike[str]) -> Path:
    """Write a problem to a file atomically, block by block."""
    samples = {"features": problem.features, "targets": problem.targets, "nodes": problem.nodes}
    others = {name: getattr(problem, name) for name in ("ridge", "heavy", "weight_by", "relays", "node_names")}
    with writing(path, type(problem), problem.features.shape, problem.nodes is not None, others) as sinks:
        for name, values in samples.items():
            if values is not None:
                sinks[name].append(values)
    return Path(path)
