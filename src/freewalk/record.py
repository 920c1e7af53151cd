"""What a run leaves behind: measurements in an xarray.Dataset, and where they come from."""

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.archive import Packed, pack
from freewalk.errors import RecordError
from freewalk.graphs import Graph

if TYPE_CHECKING:
    import xarray

_FORMAT = 1


@dataclass(eq=False, repr=False)
class Record:
    """The outcome of a run.

    Attributes
    ----------
    data
        `loss`, `mse` (least squares), `distance`, `messages` and `probes` by (walk, step); `visits` by (walk, node), or
        by node where that would be large; `final` models by (walk, coordinate); `at`, the node where each walk ended;
        `diverged` by walk; `smoothness` by node; `path` of the walks whose path was asked for. Side by side
        (`fw.concat`) also by `design`.
    provenance
        What was run, with which seed, by which versions, when and for how long.
    continuation
        What a partial record needs to go on, or None.
    graph
        The graph that was walked, with names and positions of its nodes where it has some; None in old records.
    """

    data: "xarray.Dataset"
    provenance: dict[str, Any] = field(default_factory=dict)
    continuation: Any = field(default=None, repr=False)
    graph: Graph | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """A line on what was run, and how far."""
        sizes = ", ".join(f"{size} {name}s" for name, size in self.data.sizes.items() if name in ("design", "walk"))
        steps = int(self.data.step[-1])
        state = ", partial" if self.partial else ""
        return f"Record({self.label}: {sizes}, {steps} steps{state}; see .data and .provenance)"

    @property
    def partial(self) -> bool:
        """Whether the run was interrupted; `fw.resume(record)` goes on."""
        return bool(self.data.attrs.get("partial", False))

    @property
    def label(self) -> str:
        """What tables and figures call it."""
        return str(self.data.attrs.get("label", "record"))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the record to one file, a .npz archive of plain arrays and one JSON text.

        The file is complete or absent: it is written beside its place first. A partial record takes along what
        `fw.resume` needs.

        Parameters
        ----------
        path
            The file; `.npz` is added where it has no suffix. An existing file is replaced.

        Returns
        -------
        Path
            The file written.
        """
        target = _with_suffix(path)
        arrays = {f"data/{name}": variable.values for name, variable in self.data.variables.items()}
        header: dict[str, Any] = {
            "format": _FORMAT,
            "attrs": _plain(self.data.attrs),
            "dims": {str(name): list(variable.dims) for name, variable in self.data.variables.items()},
            "coords": [str(name) for name in self.data.coords],
            "provenance": _plain(self.provenance),
        }
        if self.continuation is not None:
            try:
                packed = self.continuation if isinstance(self.continuation, Packed) else pack(self.continuation)
                header["continuation"] = packed.tree
                arrays |= {f"continuation/{name}": array for name, array in packed.arrays.items()}
            except RecordError as error:  # the measurements are worth more than the wish to go on
                header["provenance"]["not_resumable"] = str(error)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
            # As np.savez_compressed, but with little effort: the usual level takes twice as long for 3 % of the size.
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
                for name, array in {"header": text, **arrays}.items():
                    with file.open(f"{name}.npy", "w", force_zip64=True) as part:
                        np.lib.format.write_array(part, np.asanyarray(array), allow_pickle=False)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return target

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Record":
        """Read a record that `save` wrote; `.npz` is added where the path has no suffix.

        Raises
        ------
        RecordError
            If the file is missing or is not a record.
        """
        import xarray

        try:
            with open(_with_suffix(path), "rb") as stream, np.load(stream, allow_pickle=False) as file:
                header = json.loads(file["header"].tobytes())
                arrays = {name: file[name] for name in file.files if name != "header"}
            if header["format"] != _FORMAT:
                raise RecordError(f"{path}: written in format {header['format']}, this version reads {_FORMAT}")
            variables = {name: (dims, arrays[f"data/{name}"]) for name, dims in header["dims"].items()}
            coords = {name: variables.pop(name) for name in header["coords"]}
            data = xarray.Dataset(variables, coords=coords, attrs=header["attrs"])
            provenance = header["provenance"]
        except FileNotFoundError as error:
            raise RecordError(f"{path}: there is no such file") from error
        except RecordError:
            raise
        except Exception as error:
            raise RecordError(f"{path}: not a record of freewalk; expected a file that record.save wrote") from error
        continuation = None
        if "continuation" in header:
            prefix = "continuation/"
            parts = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            continuation = Packed(header["continuation"], parts)
        return Record(data, provenance, continuation)


def concat(records: Sequence[Record], labels: Sequence[str] | None = None) -> Record:
    """Put records side by side, along a new dimension `design`.

    Parameters
    ----------
    records
        Records of the same problem with the same number of walks. Where they were measured at different steps, the
        missing values are NaN.
    labels
        Their names; by default their own labels.

    Returns
    -------
    Record
        One record; `record.data.sel(design=label)` takes one out again.

    Raises
    ------
    RecordError
        If there are none, or two have the same name.
    """
    import xarray

    if not isinstance(records, (list, tuple)) or not all(isinstance(record, Record) for record in records):
        given = records if isinstance(records, (list, tuple)) else [records]
        stray = next((item for item in given if not isinstance(item, Record)), records)
        raise RecordError(f"concat: got something of type {type(stray).__name__}, expected a list of records")
    if not records:
        raise RecordError("concat: got no record, expected at least one")
    names = [record.label for record in records] if labels is None else [str(label) for label in labels]
    if len(names) != len(records) or len(set(names)) != len(names):
        raise RecordError(
            f"concat: got the names {names} for {len(records)} records, expected one for each, all different; "
            "pass labels=[...]"
        )
    parts = [record.data.expand_dims("design") for record in records]
    for dimension, name in (("walk", "walks"), ("node", "nodes"), ("coordinate", "coordinates")):
        sizes = {part.sizes.get(dimension) for part in parts} - {None}
        if len(sizes) > 1:
            raise RecordError(f"concat: the records have {sorted(sizes)} {name}, expected the same number in each")
    data = xarray.concat(
        parts,
        dim="design",
        data_vars="all",
        coords="minimal",
        join="outer",
        compat="override",
        combine_attrs="drop_conflicts",
    )
    data = data.assign_coords(design=np.array(names))
    data.attrs["partial"] = int(any(record.partial for record in records))
    data.attrs["label"] = " | ".join(names)
    return Record(data, {"parts": {name: record.provenance for name, record in zip(names, records, strict=True)}})


def _with_suffix(path: str | os.PathLike[str]) -> Path:
    return Path(path) if Path(path).suffix else Path(path).with_suffix(".npz")


def _plain(values: Mapping[Any, Any]) -> Any:
    lists = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
    return pack(lists).tree
