"""Memory-mapped problem files: samples, the nodes that own them, and all other fields."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import ProblemError
from freewalk.objectives.samples import check
from freewalk.storage import mapped
from freewalk.storage.archive import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from freewalk.objectives.predictor import Predictor

_KIND = "objective"
_TYPES = {"features": "f8", "targets": "f8", "nodes": "i8", "heavy": "i8", "relays": "i8", "names": "u1"}


class Parts(NamedTuple):
    """The parts of a problem: the name of its class and its arguments."""

    kind: str
    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    nodes: NDArray[np.int64] | None
    ridge: float
    heavy: tuple[int, ...]
    weight_by: str
    relays: tuple[int, ...]
    names: tuple[str, ...] | None


@contextmanager
def writing(
    path: str | os.PathLike[str],
    kind: type,
    shape: tuple[int, int],
    *,
    nodes: bool = False,
    ridge: float = 0.0,
    heavy: tuple[int, ...] = (),
    weight_by: str = "node",
    relays: tuple[int, ...] = (),
    names: tuple[str, ...] | None = None,
) -> Iterator[dict[str, mapped.Sink]]:
    """Write a problem block by block: `append` to the features, the targets and, if given, the nodes."""
    arrays: dict[str, NDArray[Any]] = {
        "heavy": np.array(heavy, dtype=np.int64),
        "relays": np.array(relays, dtype=np.int64),
        "names": np.frombuffer("\0".join(names or ()).encode(), dtype=np.uint8),
    }
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {"features": ("f8", shape), "targets": ("f8", shape[:1])}
    shapes |= {"nodes": ("i8", shape[:1])} if nodes else {}
    shapes |= {name: (_TYPES[name], array.shape) for name, array in arrays.items()}
    attributes = {"class": name_of(kind), "ridge": ridge, "weight_by": weight_by}
    with mapped.writing(check.path("save", "path", path), _KIND, shapes, attributes) as sinks:
        for name, array in arrays.items():
            sinks[name].append(array)
        yield sinks


def write(problem: Predictor, path: str | os.PathLike[str]) -> Path:
    """Write a problem to a file atomically, block by block."""
    with writing(
        path,
        type(problem),
        problem.features.shape,
        nodes=problem.nodes is not None,
        ridge=problem.ridge,
        heavy=problem.heavy,
        weight_by=problem.weight_by,
        relays=problem.relays,
        names=problem.node_names,
    ) as sinks:
        sinks["features"].append(problem.features)
        sinks["targets"].append(problem.targets)
        if problem.nodes is not None:
            sinks["nodes"].append(problem.nodes)
    return Path(path)


def opened(path: str | os.PathLike[str], *, verify: bool = True) -> Parts:
    """Map a problem file.

    Raises
    ------
    ProblemError
        If the file is missing, truncated, modified or not a problem file.
    """
    file = mapped.opened(check.path("read", "path", path), _KIND, verify=verify, check=check)
    arrays, said = file.arrays, file.attributes
    fits = _TYPES.keys() - {"nodes"} <= arrays.keys() <= _TYPES.keys()
    fits = fits and all(array.dtype == np.dtype(_TYPES[name]) for name, array in arrays.items())
    fits = fits and all(array.ndim == 1 + (name == "features") for name, array in arrays.items())
    if not fits or len(arrays["features"]) != len(arrays["targets"]):
        raise ProblemError(f"{file.path}: its arrays are not those of a problem; save it again")
    names = arrays["names"].tobytes().decode()
    return Parts(
        check.text("read", "the class in the file", said.get("class")),
        arrays["features"],
        arrays["targets"],
        arrays.get("nodes"),
        check.real("read", "ridge in the file", said.get("ridge"), 0.0),
        tuple(arrays["heavy"].tolist()),
        check.choice("read", "weight_by in the file", said.get("weight_by"), ("node", "sample")),
        tuple(arrays["relays"].tolist()),
        tuple(names.split("\0")) if names else None,
    )
