"""The points of a sweep as one xarray.Dataset: one labelled dimension per key, then those of the records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.report.measures import half_width
from freewalk.report.sweeps import HALF
from freewalk.run.measurements import versions
from freewalk.run.record import Record, described
from freewalk.sweeps.axes import Axis
from freewalk.sweeps.points import Point, Sweep, in_words

if TYPE_CHECKING:
    import xarray

Walks = Literal["all", "mean"]

_BY_RECORD = ("design", "walk", "step", "token")
_FIXED = ("node", "coordinate")  # points with different sizes of these dimensions cannot be combined
_NEVER = ("path", "kept", "time", "walks")
_check = Checks(RecordError)


def gather(sweep: Sweep, path_of: Callable[[Point], Path], walks: Walks = "all") -> "xarray.Dataset":
    """Combine the points of a sweep; values of unfinished points are NaN, False or -1.

    Parameters
    ----------
    sweep
        The sweep.
    path_of
        The file of a point, which may be missing.
    walks
        "all", or "mean": the mean over the walks instead of each walk, with half the width of its 95 % confidence
        interval as `<name>_half_width`.

    Returns
    -------
    xarray.Dataset
        With one dimension per axis, named after its first key, followed by those of the records. Steps and designs are
        the union over all points. `finished` marks the finished points, and `optimal_<measure>` is the best possible
        value. Variables whose size differs between points, such as visits on graphs of several sizes, are left out
        and listed in `attrs["left_out"]`.

    Raises
    ------
    RecordError
        If a file is damaged, or the points do not fit into memory.
    """
    import xarray

    # Two passes over the files, so that they need not all be in memory at once.
    layout = _Layout(walks)
    files = {point.place: path_of(point) for point in sweep.points}
    there = {place: file for place, file in files.items() if file.is_file()}
    for file in there.values():
        layout.add(_read(file, walks))
    layout.check_room(sweep.shape)
    arrays = {name: layout.empty(name, sweep.shape) for name in layout.names}
    best = {name: np.full(sweep.shape, np.nan) for name in layout.optimal}
    for place, file in there.items():
        data = _read(file, walks).data
        for name, array in arrays.items():
            layout.put(array, place, data, name)
        for name, values in best.items():
            values[place] = data.attrs.get(name, np.nan)
    dims = tuple(axis.name for axis in sweep.axes)
    finished = np.zeros(sweep.shape, dtype=bool)
    for place in there:
        finished[place] = True
    variables: dict[str, Any] = {
        name: ((*dims, *layout.names[name]), array, layout.attributes[name]) for name, array in arrays.items()
    }
    variables |= {name: (dims, values) for name, values in best.items()}
    variables["finished"] = (dims, finished, {"long_name": "whether the point is finished"})
    data = xarray.Dataset(variables, _coordinates(sweep.axes) | layout.coordinates())
    data.attrs = _story(sweep, layout, int(finished.sum()))
    return described(data)


def _read(file: Path, walks: Walks) -> Record:
    try:
        record = Record.load(file)
    except RecordError as error:
        raise RecordError(f"{error}; remove this file and run the sweep again to recompute it") from error
    record.data = record.data.drop_vars([name for name in _NEVER if name in record.data.variables])
    if walks == "mean":
        record.data = _mean(record.data)
    return record


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
        found[f"{name}{HALF}"] = (
            dims,
            half_width(values),
            {"long_name": f"half of the 95 % interval of the mean {name}"},
        )
    if "diverged" in data:
        attrs = {"long_name": "number of diverged walks", "units": "walks"}
        found["diverged"] = (data.diverged.dims[:-1], data.diverged.values.sum(axis=-1), attrs)
    found["walks"] = ((), data.sizes.get("walk", 1), {"long_name": "number of walks", "units": "walks"})
    return found


@dataclass
class _Layout:
    """The common layout of all records: the labels along each dimension, and the variables that can be combined."""

    walks: Walks
    labels: dict[str, dict[Any, None]] = field(default_factory=dict)
    fixed: dict[str, set[int]] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: dict[str, set[np.dtype[Any]]] = field(default_factory=dict)
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    attrs: list[Mapping[str, Any]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    gaps: bool = False
    counted: int = 0
    _ordered: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Add a point."""
        data, before = record.data, {dim: len(labels) for dim, labels in self.labels.items()}
        for dim in _BY_RECORD:
            if dim in data.dims:
                values = data[dim].values.tolist() if dim in data.coords else list(range(data.sizes[dim]))
                self.labels.setdefault(dim, {}).update(dict.fromkeys(values))
                self.gaps |= self.counted > 0 and (
                    len(self.labels[dim]) != before.get(dim) or len(values) != before[dim]
                )
        for dim in _FIXED:
            if dim in data.dims:
                self.fixed.setdefault(dim, set()).add(data.sizes[dim])
        for name, one in data.data_vars.items():
            known = self.names.setdefault(str(name), tuple(map(str, one.dims)))
            if known != tuple(one.dims):
                self.left_out[str(name)] = (
                    f"by {', '.join(known)} at some points and by {', '.join(map(str, one.dims))} at others"
                )
            self.types.setdefault(str(name), set()).add(one.dtype)
            self.attributes.setdefault(str(name), dict(one.attrs))
        self.gaps |= self.counted > 0 and set(map(str, data.data_vars)) != set(self.names)
        self.attrs.append({key: value for key, value in data.attrs.items() if isinstance(value, (str, int, float))})
        self.counted += 1

    def check_room(self, shape: Sequence[int]) -> None:
        """Leave out variables that cannot be combined; raise an error if the rest does not fit into memory."""
        for name, dims in self.names.items():
            several = [dim for dim in dims if len(self.fixed.get(dim, ())) > 1]
            unknown = [dim for dim in dims if dim not in (*_BY_RECORD, *_FIXED)]
            if several:
                sizes = sorted(self.fixed[several[0]])
                self.left_out[name] = f"it has {sizes[0]} to {sizes[-1]} {several[0]}s"
            elif unknown:
                self.left_out[name] = f"it has the dimension {unknown[0]}"
        self.names = {name: dims for name, dims in self.names.items() if name not in self.left_out}
        self._ordered = {dim: sorted(known) if dim == "step" else list(known) for dim, known in self.labels.items()}
        size = sum(8.0 * np.prod([*shape, *self._sizes(name)], dtype=float) for name in self.names)
        _check.room("sweep", "all walks of all points", size, 'request their means with walks="mean"')

    def _sizes(self, name: str) -> list[int]:
        return [len(self._ordered[dim]) if dim in self._ordered else max(self.fixed[dim]) for dim in self.names[name]]

    def empty(self, name: str, shape: Sequence[int]) -> NDArray[Any]:
        """An array for a variable of all points, filled with the missing value."""
        kind = np.result_type(*self.types[name])
        whole = kind.kind in "iu" and not self.gaps and self.counted == int(np.prod(shape))
        if kind.kind == "b":
            return np.zeros((*shape, *self._sizes(name)), dtype=bool)
        if name == "at":
            return np.full((*shape, *self._sizes(name)), -1, dtype=kind)
        if kind.kind not in "iuf":
            return np.full((*shape, *self._sizes(name)), "", dtype=kind)
        return np.full((*shape, *self._sizes(name)), 0 if whole else np.nan, dtype=kind if whole else np.float64)

    def put(self, array: NDArray[Any], place: tuple[int, ...], data: "xarray.Dataset", name: str) -> None:
        """Write the values of a point into its part of the array."""
        if name not in data:
            return
        places = []
        for dim in self.names[name]:
            known = self._ordered.get(dim)
            if known is None:
                places.append(np.arange(data.sizes[dim]))
                continue
            where = {label: number for number, label in enumerate(known)}
            values = data[dim].values.tolist() if dim in data.coords else range(data.sizes[dim])
            places.append(np.array([where[value] for value in values], dtype=np.intp))
        if places:
            array[place][np.ix_(*places)] = data[name].values
        else:
            array[place] = data[name].values

    def coordinates(self) -> dict[str, Any]:
        """The labels along the dimensions of the records."""
        used = {dim for dims in self.names.values() for dim in dims}
        found: dict[str, Any] = {dim: np.array(known) for dim, known in self._ordered.items() if dim in used}
        return found | {dim: np.arange(max(sizes)) for dim, sizes in self.fixed.items() if dim in used}

    @property
    def optimal(self) -> list[str]:
        """The names of the optimal values."""
        return list(dict.fromkeys(key for attrs in self.attrs for key in attrs if key.startswith("optimal_")))


def _coordinates(axes: Iterable[Axis]) -> dict[str, Any]:
    return {key: (axis.name, labels_of(values)) for axis in axes for key, values in axis.values.items()}


def labels_of(values: Sequence[Any]) -> NDArray[Any]:
    """The values of a key as labels: numbers unchanged, anything else as text.

    Examples
    --------
    >>> labels_of((1, 2.5)), labels_of(("uniform", 3))
    (array([1. , 2.5]), array(['uniform', '3'], dtype='<U7'))
    """
    plain = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return np.array(values) if plain else np.array([in_words(value) for value in values])


def _story(sweep: Sweep, layout: _Layout, finished: int) -> dict[str, Any]:
    """Attributes for the reader: what was run, with which versions, and what is missing."""
    primary = next((attrs["primary"] for attrs in layout.attrs if "primary" in attrs), None)
    words = [f"{name}: {why}" for name, why in layout.left_out.items()]
    return {
        "name": sweep.name,
        **({} if primary is None else {"primary": primary}),
        "partial": int(finished < len(sweep)),
        "points": len(sweep),
        "finished": finished,
        "left_out": "; ".join(words),
        "spec": sweep.spec.text,
        **{f"version_{package}": number for package, number in versions().items()},
    }
