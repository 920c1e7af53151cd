"""What reports read from a record: its checked measurements by design, their measures and their horizontal axes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.run.record import Record

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]

#: The names in reports for the updates of all tokens together, and for the coordinate `step` (one visit per token).
UPDATES, ROUNDS = "updates", "rounds"
#: The default axes of a figure.
USUAL = (UPDATES, "messages")

_MOST = 1e30  # the largest count or smoothness, so that sums stay finite
_check = Checks(RecordError)
# The variables read from every record, and the dimensions they may have besides the design.
_DIMS: dict[str, list[set[str]]] = {
    "messages": [{"walk", "step"}],
    "visits": [{"node"}, {"walk", "node"}],
    "smoothness": [{"node"}],
    "diverged": [{"walk"}],
    "path": [{"kept", "time"}],
    "step": [{"step"}],
    "walks": [set()],
    "updates": [{"step"}],
}


@dataclass(frozen=True)
class Measure:
    """A measure that a report shows.

    Attributes
    ----------
    name
        The variable.
    label
        The label of an axis: its `long_name` up to the first comma, or its name.
    rises
        Whether higher is better, as for an accuracy; if not, it is a loss.
    optimum
        The best possible value, if known.
    """

    name: str
    label: str
    rises: bool
    optimum: float | None


def measure_of(data: "xarray.Dataset", name: str | None = None) -> Measure:
    """The requested measure, else the primary one of the record.

    Old records do not name their primary measure: it is "mse" if they have it, else "loss".

    Raises
    ------
    RecordError
        If nothing was learned, or there is no such measure.
    """
    known, chosen = _by_walk_and_step(data), name
    if chosen is None:
        chosen = data.attrs.get("primary", next((old for old in ("mse", "loss") if old in data), None))
    if chosen is None or not known:
        raise RecordError("report: the record has no loss, expected a record made by fw.learn (fw.walk does not learn)")
    _check.choice("report", "the primary measure of the record" if name is None else "measure", chosen, known)
    attrs, best = data[chosen].attrs, data.attrs.get(f"optimal_{chosen}")
    label = _check.text("report", f"long_name of {chosen}", attrs.get("long_name", chosen))
    better = _check.choice("report", f"better of {chosen}", attrs.get("better", "lower"), ("lower", "higher"))
    return Measure(
        name=chosen,
        label=label.split(",")[0],
        rises=better == "higher",
        optimum=None if best is None else _check.real("report", f"optimal_{chosen}", best),
    )


def axes_of(
    parts: "Mapping[str, xarray.Dataset]", measure: Measure, wanted: Sequence[str] | None = None
) -> dict[str, str]:
    """Horizontal axes and their labels, by name.

    Parameters
    ----------
    parts
        The measurements of each design.
    measure
        The measure that is drawn against them.
    wanted
        Their names: "updates", "rounds" (or "step"), or variables by walk and step that never decrease.
        Default: updates, messages, and everything else that counts up from 0.

    Raises
    ------
    RecordError
        If there is none, or one is not in the record or decreases.
    """
    first = next(iter(parts.values()))
    measured = _by_walk_and_step(first)
    known = [UPDATES, ROUNDS, *(name for name in measured if _never_decreases(parts, name))]
    if wanted is None:
        others = [name for name in known[2:] if name != measure.name and _counts_up(parts, name)]
        others += [ROUNDS] if rounds_differ(parts) else []
        return {name: _label(first, name) for name in (*USUAL, *others)}
    names = _check.items("report", "axes", wanted, "a list of names, such as ['updates', 'messages']")
    if not names:
        raise _check.fail("report", "axes", wanted, f"at least one of {', '.join(known)}")
    found = {}
    for name in names:
        if isinstance(name, str) and name in measured and name not in known:
            remedy = "to draw it, pass it as measure"
            raise _check.fail("report", "axis", name, f"something that never decreases: {' or '.join(known)}", remedy)
        axis = _check.choice("report", "axis", ROUNDS if isinstance(name, str) and name == "step" else name, known)
        found[axis] = _label(first, axis)
    return found


def rounds_differ(parts: "Mapping[str, xarray.Dataset]") -> bool:
    """Whether rounds differ from updates, as with several tokens or several local steps."""
    return any((along(part, UPDATES) != along(part, ROUNDS)).any() for part in parts.values())


def tabled(parts: "Mapping[str, xarray.Dataset]") -> tuple[str, ...]:
    """What a table counts by default."""
    return (*USUAL, ROUNDS) if rounds_differ(parts) else USUAL


def _by_walk_and_step(data: "xarray.Dataset") -> list[str]:
    """The variables that are numbers by walk and step."""
    return [
        str(name)
        for name, variable in data.data_vars.items()
        if variable.dtype.kind in "biuf" and set(variable.dims) - {"design"} == {"walk", "step"}
    ]


def _never_decreases(parts: "Mapping[str, xarray.Dataset]", name: str) -> bool:
    """Whether a variable can be an axis; some designs of a record may lack it."""
    walks = [values for values in (values_of(part, name) for part in parts.values()) if not np.isnan(values).all()]
    fine = [((one >= 0) & (one < _MOST)).all() and (np.diff(one, axis=1) >= 0).all() for one in walks]
    return bool(fine) and all(fine)


def _counts_up(parts: "Mapping[str, xarray.Dataset]", name: str) -> bool:
    """Whether an axis starts at 0 and grows in some design."""
    ends = [along(part, name)[[0, -1]] for part in parts.values()]
    return not any(first > 0 for first, _ in ends) and any(last > 0 for _, last in ends)


def _label(part: "xarray.Dataset", axis: str) -> str:
    unit = axis if axis in (UPDATES, ROUNDS) else part[axis].attrs.get("units", axis)
    return axis if unit == axis else f"{axis} ({_check.text('report', f'units of {axis}', unit)})"


def along(part: "xarray.Dataset", axis: str) -> Floats:
    """The positions of a design's checkpoints on an axis, averaged over its walks; NaN if the design lacks the axis."""
    if axis == ROUNDS or (axis == UPDATES and UPDATES not in part):  # old records have no updates
        return np.asarray(part.step.values, dtype=np.float64)
    return np.asarray(part[UPDATES].values if axis == UPDATES else values_of(part, axis).mean(axis=0), dtype=np.float64)


def by_design(record: Record) -> "dict[str, xarray.Dataset]":
    """The measurements of each design, without padding.

    In a record of several designs, one that was interrupted or has fewer walks is padded with NaN.

    Raises
    ------
    RecordError
        If this is not a record of walks, or its contents are impossible.
    """
    _check.instance("report", "record", record, Record, "a Record; fw.load reads one from a file")
    data = record.data
    if not {"walk", "step"} <= set(data.dims) or not {"messages", "step"} <= set(data.variables):
        raise RecordError("report: the record has no walks, expected a record made by fw.learn or a spec")
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
        raise RecordError("report: the record has no designs, or two with the same name, expected distinct names")
    # Messages are counted at every checkpoint, even after a walk has diverged.
    return {
        label: _checked(part.isel(step=np.flatnonzero(part.messages.notnull().any("walk"))))
        for label, part in parts.items()
    }


def _own_walks(part: "xarray.Dataset") -> "xarray.Dataset":
    """A design without the walks that `fw.concat` added as padding."""
    if "walks" not in part:
        return part
    count = _check.whole("report", "walks in the record", part.walks.values.item(), 1, part.sizes["walk"])
    return part.isel(walk=slice(count))


def _checked(part: "xarray.Dataset") -> "xarray.Dataset":
    """The measurements of one design, with valid counts."""
    if not part.sizes["walk"] or not part.sizes["step"]:
        raise RecordError("report: the record has no walk or no checkpoint, expected at least one of each")
    if UPDATES in part and part[UPDATES].isnull().all():  # an old record among new ones: its rounds are updates
        part = part.drop_vars(UPDATES)
    for name in ("messages", "visits", "smoothness", "step", "updates"):
        values = part[name].values if name in part else np.zeros(1)
        if not (np.isfinite(values) & (values >= 0) & (values < _MOST)).all():
            raise RecordError(f"report: {name} in the record has invalid counts, expected finite numbers >= 0")
    if (np.diff(part.step.values.astype(np.float64)) <= 0).any():
        raise RecordError("report: the steps in the record decrease, expected ascending steps")
    return part


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


def values_of(part: "xarray.Dataset", name: str) -> Floats:
    """A variable by walk and step, as an array of walks × checkpoints."""
    return np.asarray(part[name].transpose("walk", "step").values, dtype=np.float64)


def diverged_of(part: "xarray.Dataset", measure: Measure) -> int:
    """The number of diverged walks of a design, as given by the record if it says so."""
    if "diverged" in part:
        return int(part.diverged.values.astype(bool).sum())
    return int((~np.isfinite(values_of(part, measure.name)).all(axis=1)).sum())


def half_width(values: Floats) -> Floats:
    """Half of the 95 % confidence interval of the mean over the walks, by Student's t; NaN for a single walk."""
    from scipy.special import stdtrit

    walks = values.shape[0]
    if walks < 2:
        return np.full(values.shape[1:], np.nan)
    with np.errstate(all="ignore"):
        return np.asarray(stdtrit(walks - 1, 0.975) * values.std(axis=0, ddof=1) / math.sqrt(walks))
