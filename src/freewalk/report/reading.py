"""What reports read of a record: its measurements by design, checked."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.record import Record

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]

_MOST = 1e30  # of a count or a smoothness; their sums are finite then
_check = Checks(RecordError)
# What is read, and by which dimensions it may be measured, besides by design.
_DIMS: dict[str, list[set[str]]] = {
    **{name: [{"walk", "step"}] for name in ("messages", "mse", "loss")},
    "visits": [{"node"}, {"walk", "node"}],
    "smoothness": [{"node"}],
    "diverged": [{"walk"}],
    "path": [{"kept", "time"}],
    "step": [{"step"}],
    "walks": [set()],
}


def measure(data: "xarray.Dataset") -> str:
    """The loss that reports show: "mse" where there is one, else "loss".

    Raises
    ------
    RecordError
        If nothing was learned.
    """
    for name in ("mse", "loss"):
        if name in data:
            return name
    raise RecordError("report: the record has no loss, expected one made by fw.learn (fw.walk does not learn)")


def by_design(record: Record) -> "dict[str, xarray.Dataset]":
    """The measurements of each design, without the checkpoints and the walks that it does not have.

    Side by side with others, a design that was interrupted is filled up with NaN, and so is one with fewer walks.

    Raises
    ------
    RecordError
        If this is no record of walks, or one that nothing could have left behind.
    """
    _check.instance("report", "record", record, Record, "a Record; fw.load reads one from a file")
    data = record.data
    if not {"walk", "step"} <= set(data.dims) or not {"messages", "step"} <= set(data.variables):
        raise RecordError("report: there are no walks in the record, expected one made by fw.learn or a spec")
    for name, dims in _DIMS.items():
        if name in data and (data[name].dtype.kind not in "biuf" or set(data[name].dims) - {"design"} not in dims):
            found = f"an array of {data[name].dtype} by {', '.join(map(str, data[name].dims))}"
            words = " and ".join(sorted(dims[0])) or "design"
            raise RecordError(f"report: {name} in the record is {found}, expected numbers by {words}")
    if "design" not in data.dims:
        return {_check.text("report", "label", record.label): _checked(data)}
    parts = {
        _check.text("report", "design", str(label)): _own_walks(data.sel(design=label)) for label in data.design.values
    }
    if not parts or len(parts) != data.sizes["design"]:
        raise RecordError("report: the record has no designs, or two of one name, expected different names")
    # Messages are counted at every checkpoint, also by a walk that has diverged.
    return {
        label: _checked(part.isel(step=np.flatnonzero(part.messages.notnull().any("walk"))))
        for label, part in parts.items()
    }


def _own_walks(part: "xarray.Dataset") -> "xarray.Dataset":
    """A design without the walks that `fw.concat` has padded it with."""
    if "walks" not in part:
        return part
    count = _check.whole("report", "walks in the record", part.walks.values.item(), 1, part.sizes["walk"])
    return part.isel(walk=slice(count))


def _checked(part: "xarray.Dataset") -> "xarray.Dataset":
    """What belongs to one design, if its counts can be counts."""
    if not part.sizes["walk"] or not part.sizes["step"]:
        raise RecordError("report: there is no walk or no checkpoint in the record, expected at least one of each")
    for name in ("messages", "visits", "smoothness", "step"):
        values = part[name].values if name in part else np.zeros(1)
        if not (np.isfinite(values) & (values >= 0) & (values < _MOST)).all():
            raise RecordError(f"report: {name} in the record holds what is no count, expected finite numbers >= 0")
    if (np.diff(part.step.values.astype(np.float64)) <= 0).any():
        raise RecordError("report: the steps in the record go back, expected ascending ones")
    return part


def optimum(record: Record) -> float | None:
    """The best value that the shown loss can take, where it is known."""
    name = f"optimal_{measure(record.data)}"
    value = record.data.attrs.get(name)
    return None if value is None else _check.real("report", name, value)


def walks_in_words(parts: "Mapping[str, xarray.Dataset]") -> str:
    """How many walks each design has.

    Examples
    --------
    >>> import xarray
    >>> few, many = (xarray.Dataset(coords={"walk": range(walks)}) for walks in (20, 1000))
    >>> walks_in_words({"a": many, "b": many}), walks_in_words({"a": many, "b": few})
    ('1,000 walks', '20 to 1,000 walks')
    """
    counts = [part.sizes["walk"] for part in parts.values()]
    least, most = min(counts), max(counts)
    return f"{most:,} walk{'s' * (most > 1)}" if least == most else f"{least:,} to {most:,} walks"


def values_of(part: "xarray.Dataset", name: str | None = None) -> Floats:
    """The shown loss, or what is named, as walks × checkpoints."""
    return np.asarray(part[name or measure(part)].transpose("walk", "step").values, dtype=np.float64)


def diverged_of(part: "xarray.Dataset") -> int:
    """How many walks of a design have diverged, by the record's own judgement where it has one."""
    if "diverged" in part:
        return int(part.diverged.values.astype(bool).sum())
    return int((~np.isfinite(values_of(part)).all(axis=1)).sum())


def half_width(values: Floats) -> Floats:
    """Half of the 95 % confidence interval of the mean over the walks, by Student's t; NaN for a single one."""
    from scipy.special import stdtrit

    walks = values.shape[0]
    if walks < 2:
        return np.full(values.shape[1:], np.nan)
    with np.errstate(all="ignore"):
        return np.asarray(stdtrit(walks - 1, 0.975) * values.std(axis=0, ddof=1) / math.sqrt(walks))
