"""The result of a run: measurements in an xarray.Dataset, and their provenance."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk._version import __version__
from freewalk.blocks import read_only
from freewalk.checks import Checks, show
from freewalk.errors import RecordError
from freewalk.graphs import Graph
from freewalk.storage import archive
from freewalk.storage.files import replacing, unbroken

if TYPE_CHECKING:
    import xarray

_FORMAT = 1
_LONGEST_HEADER = 2**26  # bytes
_WHEN = ("started", "seconds", "interruptions", "interrupted_by")  # what provenance says about time
_check = Checks(RecordError)

#: The meaning of each variable of a record, and its unit if it has one: the `attrs` of record.data. Reports label an
#: axis with the text before the first comma.
MEANINGS: dict[str, tuple[str, str | None]] = {
    "loss": ("loss, the mean over all nodes, of the reported model", None),
    "mse": ("mean squared error, the mean over all nodes, of the reported model", None),
    "distance": ("squared distance from the optimum, of the reported model", None),
    "consensus": ("consensus, the mean squared distance of the tokens from their mean model", None),
    "updates": ("updates so far, of all tokens of a walk", "updates"),
    "messages": ("models sent so far", "messages"),
    "probes": ("scalar probes sent so far", "probes"),
    "bytes": ("bytes sent so far", "bytes"),
    "visits": ("visits to each node", "visits"),
    "at": ("node at which the walk or token ended", None),
    "final": ("last reported model", None),
    "diverged": ("whether the loss has blown up or is not finite", None),
    "smoothness": ("smoothness constant L_v of each node", None),
    "path": ("node of the walk or token after each round", None),
    "kept": ("number of the walk or token whose path was kept", None),
    "time": ("rounds so far", "rounds"),
    "step": ("rounds so far, in each of which a token visits one node", "rounds"),
    "walk": ("number of the walk", None),
    "token": ("number of the token within its walk", None),
    "node": ("number of the node", None),
    "node_name": ("name of the node", None),
    "design": ("name of the record that was put here", None),
    "walks": ("number of walks", "walks"),
}


def described(data: xarray.Dataset) -> xarray.Dataset:
    """Add attributes with meaning and unit to the known variables of a dataset.

    Variables that already have a meaning keep it.
    """
    data = data.copy(deep=False)
    for name, (meaning, unit) in MEANINGS.items():
        if name in data.variables and "long_name" not in data[name].attrs:
            data[name].attrs.update({"long_name": meaning} | ({} if unit is None else {"units": unit}))
    return data


@dataclass(eq=False, repr=False)
class Record:
    """The result of a run.

    Attributes
    ----------
    data
        `loss`, `mse` (least squares), `distance`, and the totals sent so far (`messages`, `probes` and `bytes`) by
        (walk, step); `updates` of all tokens of a walk by step; `visits` by (walk, node), or by node if that would be
        large; `final` models by (walk, coordinate); `at`, the node where each walk ended; `diverged` by walk;
        `smoothness` by node; `path` of the walks whose path was requested. Records joined side by side (`fw.concat`)
        also have the dimension `design`. Old records lack `bytes` and `updates`.

        With several tokens, losses, distances and `final` are those of the mean model, counts are sums, and `consensus`
        by (walk, step) is the mean squared distance of the tokens from it; `at` is by (walk, token), and `kept` holds
        token numbers.

        The `attrs` of each variable give its meaning (`long_name`), its unit, and `better: "higher"` for measures that
        are not losses. `data.attrs["primary"]` names the measure that reports show, `optimal_<measure>` its best
        possible value if known. Any variable by (walk, step) that never decreases can be an axis of a report.

        A walk counts as diverged if a value is not finite, or if its last loss exceeds 10⁴ times the largest of these:
        the loss of its initial model, the loss of the zero model, and the smallest possible loss.
    provenance
        What was run, with which seed and versions, when and for how long. If a signal ended the run, "interrupted_by"
        is its name.
    continuation
        The state that `fw.resume` needs, in a partial record; otherwise None.
    graph
        The graph that was walked, with node names and positions if it has them. None in old records, and if the graph
        was mapped from a file that no longer exists (`provenance["graph_not_found"]` gives the reason).
    """

    data: xarray.Dataset
    provenance: dict[str, Any] = field(default_factory=dict)
    continuation: Any = field(default=None, repr=False)
    graph: Graph | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        import xarray

        _check.instance("Record", "data", self.data, xarray.Dataset, "an xarray.Dataset")
        _check.instance("Record", "graph", self.graph, (Graph, type(None)), "a graph, or None")
        # What reports or a resumed run could not use is rejected; the rest of the provenance is only displayed.
        story = _check.instance("Record", "provenance", self.provenance, dict, "a dict")
        _check.whole("Record", "interruptions", story.get("interruptions", 0))
        _check.instance("Record", "interrupted_by", story.get("interrupted_by", ""), str, "the name of a signal")
        parts = _check.instance("Record", "parts", story.get("parts", {}), dict, "a dict of dicts")
        for part in parts.values():
            _check.instance("Record", "parts", part, dict, "a dict of dicts")

    def __repr__(self) -> str:
        """One line: what was run, how far, and how many walks diverged, if any."""
        sizes = [f"{size} {name}s" for name, size in self.data.sizes.items() if name in ("design", "walk")]
        steps = [f"{self.data.step.values[-1]} steps"] if self.data.sizes.get("step") else []
        diverged = self.data.get("diverged", np.False_)
        lost = int(diverged.sum()) if diverged.dtype == bool else 0  # a file may hold anything under this name
        state = [f"{lost} diverged"] * (lost > 0) + ["partial"] * self.partial
        return f"Record({self.label}: {', '.join([*sizes, *steps, *state])}; see .data and .provenance)"

    @property
    def partial(self) -> bool:
        """Whether the run was interrupted; `fw.resume(record)` completes it."""
        return bool(self.data.attrs.get("partial", False))

    @property
    def label(self) -> str:
        """The name used in tables and figures."""
        return str(self.data.attrs.get("label", "record"))

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes; the saved file is compressed and usually smaller."""
        return sum(array.nbytes for array in self._parts()[1].values())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the record to a single file: a .npz archive of plain arrays and one JSON text.

        The write is atomic: the file is complete or absent. A Ctrl-C or SIGTERM during the write takes effect after it;
        a second one takes effect immediately and leaves the old file in place. A partial record includes what
        `fw.resume` needs.

        Parameters
        ----------
        path
            The file; `.npz` is appended if it has no suffix. An existing file is replaced.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        RecordError
            If the file cannot be written.
        """
        target = with_suffix("save", path)
        content = self._content("save")
        with unbroken(), replacing(target) as temporary:
            archive.write_arrays(temporary, content)
        return target

    def as_bytes(self) -> bytes:
        """The content that `save` writes, as bytes, to send or store elsewhere."""
        written = BytesIO()
        archive.write_arrays(written, self._content("as_bytes"))
        return written.getvalue()

    def _content(self, who: str) -> dict[str, NDArray[Any]]:
        header, arrays = self._parts()
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        if text.size > _LONGEST_HEADER:
            got = f"attrs, provenance and fields take {text.size:,} bytes, expected at most {_LONGEST_HEADER:,}"
            raise RecordError(f"{who}: {got}; store large values in arrays")
        return {"header": text, **arrays}

    def _parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The text and the arrays of the file."""
        data = self.data
        arrays = {f"data/{name}": np.asarray(variable.values) for name, variable in data.variables.items()}
        header: dict[str, Any] = {
            "format": _FORMAT,
            "attrs": archive.plain(data.attrs),
            "dims": {str(name): [str(dim) for dim in variable.dims] for name, variable in data.variables.items()},
            "coords": [str(name) for name in data.coords],
            "variables": {str(name): archive.plain(variable.attrs) for name, variable in data.variables.items()},
            "provenance": archive.plain(self.provenance),
        }
        loaded = self.continuation if isinstance(self.continuation, archive.Packed) else None
        graph = self.graph if self.graph is not None or loaded is None else loaded.given.get("graph")
        if graph is not None:
            try:
                packed = graph if isinstance(graph, archive.Packed) else archive.pack(graph)
                header["graph"] = packed.tree
                arrays |= {f"graph/{name}": array for name, array in packed.arrays.items()}
            except archive.AbsentFile as error:  # the file has changed since it was mapped
                header["provenance"]["graph_not_found"] = str(error)
        if self.continuation is not None:
            try:
                given = {} if graph is None else {"graph": graph}
                packed = loaded or archive.pack(self.continuation, self.continuation.outside() | given)
                if packed.given.get("graph", graph) != graph:
                    raise RecordError("record: its graph was replaced; keep the graph that was walked")
                header["continuation"] = packed.tree
                arrays |= {f"continuation/{name}": array for name, array in packed.arrays.items()}
            except RecordError as error:  # keep the measurements even if the run cannot be resumed
                header["provenance"]["not_resumable"] = str(error)
        return header, arrays

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Record:
        """Read a record written by `save`; `.npz` is appended if the path has no suffix.

        The file may come from an untrusted source: only the parts of a record are read, after validation, and nothing
        in it is ever executed or imported.

        Raises
        ------
        RecordError
            If the file is missing or is not a record.
        """
        record = read(path)
        data = record.data
        if "step" not in data.coords or data.step.dtype.kind not in "iu" or not data.step.size:
            raise RecordError(f"{path}: not a record of freewalk (it has no steps); fw.learn and fw.walk make records")
        return record


def read(path: str | os.PathLike[str]) -> Record:
    """Read a file written by `Record.save`, even if its numbers do not come from a walk."""
    source = with_suffix("load", path)
    try:
        with archive.reading_arrays(source) as file:
            return _assembled(file, source)
    except FileNotFoundError as error:
        raise RecordError(f"{source}: there is no such file") from error
    except _OtherFormat as error:
        raise RecordError(f"{source}: {error}") from error
    except Exception as error:  # a damaged archive can raise almost anything
        stated = str(error) if isinstance(error, RecordError) else getattr(error, "strerror", None)
        why = " ".join(stated[:200].split()) if stated else type(error).__name__
        words = f"not a record of freewalk ({why})"
        raise RecordError(f"{source}: {words}; expected a file written by record.save") from error


class _OtherFormat(RecordError):
    """A record in the format of another version."""


def _assembled(file: archive.ArrayReader, source: Path) -> Record:
    import xarray

    if (file.look("header")[1] or (0,))[0] > _LONGEST_HEADER:
        raise RecordError("its header is too long")
    header = json.loads(file.read("header").tobytes())
    if header["format"] != _FORMAT:
        raise _OtherFormat(f"written in format {show(header['format'])}, this version reads {_FORMAT}")
    dims, coords, attrs = header["dims"], header["coords"], header["attrs"]
    named = [f"data/{name}" for name in dims]
    for part in ("graph", "continuation"):
        named += sorted({f"{part}/{name}" for name in archive.arrays_in(header.get(part))})
    types = {name: file.look(name) for name in named}
    sizes: dict[str, int] = {}
    for name, along in dims.items():
        shape = types[f"data/{name}"][1]
        if not all(isinstance(dim, str) for dim in along) or len(set(along)) != len(along):
            raise RecordError(f"{name} is given by {show(along)}, expected names of dimensions, each once")
        for dim, size in zip(along, shape, strict=True):
            if sizes.setdefault(dim, size) != size:
                raise RecordError(f"{name} has {size} entries along {dim}, expected {sizes[dim]}")
    _check_attributes(attrs, sizes)
    total = sum(dtype.itemsize * int(np.prod(shape, dtype=object)) for dtype, shape in types.values())
    _check.room(str(source), "to load it", total)
    arrays = {name: file.read(name) for name in named}
    described_by = header.get("variables", {})
    variables = {name: (along, arrays[f"data/{name}"], described_by.get(name)) for name, along in dims.items()}
    data = xarray.Dataset(variables, attrs=attrs).set_coords(coords)
    graph, continuation = None, None
    if "graph" in header:
        packed = archive.Packed(header["graph"], _under("graph/", arrays))
        try:
            graph = archive.unpack(packed, {"Graph": Graph})
        except archive.AbsentFile as error:  # the measurements are here; only resuming needs the graph
            header["provenance"]["graph_not_found"] = str(error)
        if graph is not None and (not isinstance(graph, Graph) or sizes.get("node", graph.n) != graph.n):
            raise RecordError("its graph does not fit its data")
    if "continuation" in header:
        given = {"graph": graph or packed} if "graph" in header else {}
        continuation = archive.Packed(header["continuation"], _under("continuation/", arrays), given)
    return Record(data if "variables" in header else described(data), header["provenance"], continuation, graph)


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays with this prefix, read-only: such an array need not be copied."""
    found = {name.removeprefix(prefix): read_only(array) for name, array in arrays.items() if name.startswith(prefix)}
    for array in found.values():
        if isinstance(array.base, np.ndarray):  # numpy reads a flat array and reshapes it
            read_only(array.base)
    return found


def _check_attributes(attrs: Any, sizes: Mapping[str, int]) -> None:
    """Reject attributes that reports could not use."""
    _check.instance("record", "attrs", attrs, dict, "a mapping")
    _check.whole("record", "partial", int(attrs.get("partial", 0)), 0, 1)
    _check.instance("record", "label", attrs.get("label", ""), str, "a string")
    _check.integers("record", "heavy", attrs.get("heavy", []), low=0, high=sizes.get("node", 2**31) - 1)
    _check.instance("record", "primary", attrs.get("primary", ""), str, "the name of a measure")
    for name, value in attrs.items():
        if name.startswith("optimal_"):
            _check.instance("record", name, value, (int, float), "a number")


def concat(records: Sequence[Record], labels: Sequence[str] | None = None, *, pad: bool = False) -> Record:
    """Join records side by side, along a new dimension `design`.

    Parameters
    ----------
    records
        Records of the same problem. If they were measured at different steps, missing values are NaN.
    labels
        One name per record; by default their own labels.
    pad
        Whether the records may have different numbers of walks. Missing walks are then NaN, -1 in `at` and False in
        `diverged`, and `walks` gives the number of walks per design.

    Returns
    -------
    Record
        One record; `record.data.sel(design=label)` extracts one of them. It keeps the graph if all records share it.

    Raises
    ------
    RecordError
        If there are no records, two have the same name, or they do not fit together.
    """
    import xarray

    names, may_pad = _names_of(records, labels), _check.flag("concat", "pad", pad)
    parts = [record.data for record in records]
    walks = [part.sizes.get("walk", 0) for part in parts]
    if len(set(walks)) > 1 and not may_pad:
        got = f"the records have {sorted(set(walks))} walks, expected the same number in each"
        raise RecordError(f"concat: {got}; pass pad=True to fill with NaN, or give each the same number of walks")
    for dimension in ("node", "coordinate"):
        sizes = {part.sizes[dimension] for part in parts if dimension in part.sizes}
        if len(sizes) > 1:
            got = f"the records have {sorted(sizes)} {dimension}s, expected the same number in each"
            raise RecordError(f"concat: {got}; these are different problems: compare them by their tables")
    graph = _common_graph(records)
    if graph is None:
        parts = [part.drop_vars("node_name", errors="ignore") for part in parts]
    if len({part.visits.dims for part in parts if "visits" in part}) > 1:  # some have too many walks
        parts = [part.assign(visits=part.visits.sum([d for d in ["walk"] if d in part.visits.dims])) for part in parts]
    if len({part.sizes.get("token") for part in parts}) > 1:
        parts = [part.drop_vars(["at", "token"], errors="ignore") for part in parts]
    try:
        data = xarray.concat(
            [part.expand_dims("design") for part in parts],
            dim="design",
            data_vars="all",
            coords="minimal",
            join="outer",
            compat="override",
            combine_attrs="drop_conflicts",
            fill_value={"diverged": False, "at": -1},
        )
    except ValueError as error:
        words = f"the records have different variables ({show(str(error))})"
        raise RecordError(f"concat: {words}; compare them by their tables") from error
    data = data.assign_coords(design=np.array(names))
    if len(set(walks)) > 1:
        data["walks"] = ("design", np.array(walks))
    data.attrs["partial"] = int(any(record.partial for record in records))
    data.attrs["label"] = " | ".join(names)
    story = {name: record.provenance for name, record in zip(names, records, strict=True)}
    return Record(described(data), {"parts": story}, graph=graph)


def _names_of(records: Sequence[Record], labels: Sequence[str] | None) -> list[str]:
    _check.instance("concat", "records", records, (list, tuple), "a list of records")
    for item in records:
        _check.instance("concat", "records", item, Record, "a list of records")
    if not records:
        raise RecordError("concat: got no record, expected at least one")
    names = [record.label for record in records]
    if labels is not None:
        _check.instance("concat", "labels", labels, (list, tuple), "a list of strings")
        names = [_check.text("concat", "label", label) for label in labels]
    if len(names) != len(records) or len(set(names)) != len(names):
        got = f"got the names {show(names)} for {len(records)} records"
        raise RecordError(f"concat: {got}, expected one for each, all different; pass labels=[...]")
    return names


def _common_graph(records: Sequence[Record]) -> Graph | None:
    """The graph of all records, if they share one with the same names."""
    first, *others = (record.graph for record in records)
    if first is None:
        return None
    same = (other is not None and other == first and other.node_names == first.node_names for other in others)
    return first if all(same) else None


def with_suffix(who: str, path: str | os.PathLike[str], name: str = "path") -> Path:
    """The file of a record: `.npz` is appended if the path has no suffix."""
    given = _check.path(who, name, path)
    if not given.name:
        raise _check.fail(who, name, path, "the path of a file")
    return given if given.suffix else given.with_suffix(".npz")


@cache
def versions() -> dict[str, str]:
    """The versions of freewalk, Python and the packages that affect results."""
    packages = {package: version(package) for package in ("numpy", "scipy", "numba", "xarray")}
    return {"freewalk": __version__, "python": platform.python_version(), **packages}


def timeless(record: Record) -> Record:
    """Remove times from a record, so that the same run gives the same bytes, whenever and however fast it is made.

    Visits are summed over the walks: they take most of the space, and are only read for all walks together.
    """
    data = record.data
    if "visits" in data and "walk" in data.visits.dims:
        data = data.assign(visits=data.visits.sum("walk"))
    # The memory layout of measurements depends on how a run was divided into chunks, and hence on its speed.
    rows = {name: (one.dims, np.array(one.values, order="C"), one.attrs) for name, one in data.data_vars.items()}
    return Record(data.assign(rows), _without_hour(record.provenance), graph=record.graph)


def _without_hour(story: Any) -> Any:
    if isinstance(story, dict):
        return {key: _without_hour(value) for key, value in story.items() if key not in _WHEN}
    return story
