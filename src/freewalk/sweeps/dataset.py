"""The points of a sweep as one xarray.Dataset: one labelled dimension per key, then those of the records."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.report.measures import half_width
from freewalk.report.sweeps import HALF
from freewalk.run.record import Record, described, versions
from freewalk.sweeps.points import Point, Sweep, in_words

if TYPE_CHECKING:
    import xarray

Walks = Literal["all", "mean"]

_JOINED = ("design", "walk", "step", "token")  # dimensions whose labels are the union over all points
_FIXED = ("node", "coordinate")  # points with different sizes of these dimensions cannot be combined
_NEVER = ("path", "kept", "time", "walks")
_check = Checks(RecordError)


def gather(sweep: Sweep, path_of: Callable[[Point], Path], walks: Walks = "all") -> "xarray.Dataset":
    """Combine the points of a sweep whose files are there; values of others are NaN, False or -1.

    With walks="mean", each variable is the mean over the walks, with half the width of its 95 % confidence interval as
    `<name>_half_width`. There is one dimension per axis, named after its first key, followed by those of the records:
    steps and designs are the union over all points. `finished` marks the finished points, and `optimal_<measure>` is
    the best possible value. Variables whose size differs between points, such as visits on graphs of several sizes,
    are left out and listed in `attrs["left_out"]`.
    """
    import xarray

    # Two passes over the files, so that they need not all be in memory at once.
    files = {point.place: path_of(point) for point in sweep.points}
    there = {place: file for place, file in files.items() if file.is_file()}
    layout = _Layout(sweep.shape)
    for file in there.values():
        layout.add(_read(file, walks))
    layout.settle()
    arrays = {name: layout.empty(name) for name in layout.dims}
    missing = {name: layout.missing(name)[0] for name in arrays}
    best = {name: np.full(sweep.shape, np.nan) for name in layout.attrs if name.startswith("optimal_")}
    finished = np.zeros(sweep.shape, dtype=bool)
    for place, file in there.items():
        data = _read(file, walks)
        labels = {dim: known for dim, known in layout.labels.items() if dim in data.dims}
        aligned = data.reindex(labels, fill_value=missing)
        for name, array in arrays.items():
            if name in aligned:
                array[place] = aligned[name].values
        for name, values in best.items():
            values[place] = data.attrs.get(name, np.nan)
        finished[place] = True
    axes = tuple(axis.name for axis in sweep.axes)
    variables: dict[str, Any] = {
        name: ((*axes, *layout.dims[name]), array, layout.attributes[name]) for name, array in arrays.items()
    }
    variables |= {name: (axes, values) for name, values in best.items()}
    variables["finished"] = (axes, finished, {"long_name": "whether the point is finished"})
    keys = {key: (axis.name, labels_of(values)) for axis in sweep.axes for key, values in axis.values.items()}
    combined = xarray.Dataset(variables, keys | layout.coordinates())
    combined.attrs = {
        "name": sweep.name,
        **{name: value for name, value in layout.attrs.items() if name == "primary"},
        "partial": int(len(there) < len(sweep)),
        "points": len(sweep),
        "finished": len(there),
        "left_out": "; ".join(f"{name}: {why}" for name, why in layout.left_out.items()),
        "spec": sweep.spec.text,
        **{f"version_{package}": number for package, number in versions().items()},
    }
    return described(combined)


def _read(file: Path, walks: Walks) -> "xarray.Dataset":
    """The data of a point that can be combined, with labels along the dimensions to be joined."""
    try:
        data = Record.load(file).data
    except RecordError as error:
        raise RecordError(f"{error}; remove this file and run the sweep again to recompute it") from error
    data = data.drop_vars([name for name in _NEVER if name in data.variables])
    data = _mean(data) if walks == "mean" else data
    bare = [dim for dim in _JOINED if dim in data.dims and dim not in data.coords]
    return data.assign_coords({dim: np.arange(data.sizes[dim]) for dim in bare})


def _mean(data: "xarray.Dataset") -> "xarray.Dataset":
    """The mean over the walks instead of each walk, including diverged ones."""
    found = data.drop_vars([str(name) for name, one in data.variables.items() if "walk" in one.dims])
    for name, one in data.data_vars.items():
        if one.dims[-2:] != ("walk", "step") or one.dtype.kind not in "biuf":
            continue
        values = np.moveaxis(np.asarray(one.values, dtype=np.float64), -2, 0)
        dims = tuple(dim for dim in one.dims if dim != "walk")
        with np.errstate(all="ignore"):
            found[name] = (dims, values.mean(axis=0), one.attrs)
        words = {"long_name": f"half of the 95 % interval of the mean {name}"}
        found[f"{name}{HALF}"] = (dims, half_width(values), words)
    if "diverged" in data:
        attrs = {"long_name": "number of diverged walks", "units": "walks"}
        found["diverged"] = (data.diverged.dims[:-1], data.diverged.values.sum(axis=-1), attrs)
    found["walks"] = ((), data.sizes.get("walk", 1), {"long_name": "number of walks", "units": "walks"})
    return found


@dataclass
class _Layout:
    """What all points have in common: the labels along each dimension, and the variables that can be combined."""

    shape: tuple[int, ...]
    labels: dict[str, Any] = field(default_factory=dict)  # in order; before `settle` the keys of a dictionary
    sizes: dict[str, set[int]] = field(default_factory=dict)  # of each dimension, at the points
    dims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: dict[str, list[np.dtype[Any]]] = field(default_factory=dict)  # one per point that has the variable
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    gaps: bool = False  # whether some points lack labels or variables of the others

    def add(self, data: "xarray.Dataset") -> None:
        """Add a point."""
        for dim, size in data.sizes.items():
            self.sizes.setdefault(str(dim), set()).add(size)
            if dim in _JOINED:
                self.labels.setdefault(str(dim), {}).update(dict.fromkeys(data[dim].values.tolist()))
        for name, one in ((str(name), one) for name, one in data.data_vars.items()):
            dims = tuple(map(str, one.dims))
            known = self.dims.setdefault(name, dims)
            if known != dims:
                self.left_out[name] = f"by {', '.join(known)} at some points and by {', '.join(dims)} at others"
            self.types.setdefault(name, []).append(one.dtype)
            self.attributes.setdefault(name, dict(one.attrs))
        self.gaps |= set(self.dims) != set(map(str, data.data_vars))
        for name, value in data.attrs.items():
            self.attrs.setdefault(name, value)

    def settle(self) -> None:
        """Leave out variables that cannot be combined; raise an error if the rest does not fit into memory."""
        self.labels = {dim: sorted(known) if dim == "step" else list(known) for dim, known in self.labels.items()}
        self.gaps |= any(self.sizes[dim] != {len(known)} for dim, known in self.labels.items())
        for name, dims in self.dims.items():
            several = [dim for dim in dims if dim in _FIXED and len(self.sizes[dim]) > 1]
            unknown = [dim for dim in dims if dim not in (*_JOINED, *_FIXED)]
            if several:
                sizes = self.sizes[several[0]]
                self.left_out[name] = f"it has {min(sizes)} to {max(sizes)} {several[0]}s"
            elif unknown:
                self.left_out[name] = f"it has the dimension {unknown[0]}"
        self.dims = {name: dims for name, dims in self.dims.items() if name not in self.left_out}
        size = sum(8.0 * math.prod(self._extent(name)) for name in self.dims)
        _check.room("sweep", "all walks of all points", size, 'request their means with walks="mean"')

    def _extent(self, name: str) -> list[int]:
        """The shape of a variable of all points."""
        along = (len(self.labels[dim]) if dim in self.labels else max(self.sizes[dim]) for dim in self.dims[name])
        return [*self.shape, *along]

    def missing(self, name: str) -> tuple[Any, Any]:
        """The value that stands for a missing one, and the dtype that can hold it."""
        kind = np.result_type(*self.types[name])
        if kind.kind == "b":
            return False, kind
        if kind.kind not in "iuf":
            return "", kind
        if name == "at":
            return -1, kind
        whole = kind.kind in "iu" and not self.gaps and len(self.types[name]) == math.prod(self.shape)
        return (0, kind) if whole else (np.nan, np.dtype(np.float64))

    def empty(self, name: str) -> NDArray[Any]:
        """An array for a variable of all points, filled with the missing value."""
        value, kind = self.missing(name)
        return np.full(self._extent(name), value, dtype=kind)

    def coordinates(self) -> dict[str, Any]:
        """The labels along the dimensions of the records."""
        used = {dim for dims in self.dims.values() for dim in dims}
        fixed = {dim: np.arange(max(self.sizes[dim])) for dim in _FIXED if dim in used}
        return {dim: np.array(known) for dim, known in self.labels.items() if dim in used} | fixed


def labels_of(values: Sequence[Any]) -> NDArray[Any]:
    """The values of a key as labels: numbers unchanged, anything else as text."""
    plain = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return np.array(values) if plain else np.array([in_words(value) for value in values])
