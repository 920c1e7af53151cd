"""What reports read from a record: its checked measurements by design, measures, axes, statistics, and its nodes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.graphs import Graph
from freewalk.linear.arrays import Floats
from freewalk.run.record import Record

if TYPE_CHECKING:
    import xarray

Parts = Mapping[str, "xarray.Dataset"]
Band = Literal["quantiles", "confidence", "none"]

#: The names in reports for the updates of all tokens together, and for the coordinate `step` (one visit per token).
UPDATES, ROUNDS = "updates", "rounds"
#: The default axes of a figure.
USUAL = (UPDATES, "messages")

QUANTILES = (0.1, 0.9)
#: The kinds of bands, with their names in a legend.
BANDS = {"quantiles": "10–90 % of the walks", "confidence": "95 % confidence of the mean", "none": ""}

_MOST = 1e30  # the largest count or smoothness, so that sums stay finite
HUGE = 1e300  # instead of infinity, whose product with a weight of 0 is not a number
_NAMED = 4  # nodes that a caption names; others are counted
_LONGEST = 30  # letters of a name in a caption
_APART = 8  # if one curve is this many times as fast, a linear axis shows only the slower one
_CORNER = 1 / 20  # a curve within this part of a linear axis cannot be read
check = Checks(RecordError)
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
    """A measure that a report shows."""

    name: str
    label: str  # of an axis: its `long_name` up to the first comma, or its name
    rises: bool  # whether higher is better, as for an accuracy; if not, it is a loss
    optimum: float | None  # the best possible value, if known


def measure_of(data: "xarray.Dataset", name: str | None = None) -> Measure:
    """The requested measure, else the primary one; old records do not name it: "mse" if they have it, else "loss"."""
    known, chosen = _by_walk_and_step(data), name
    if chosen is None:
        chosen = data.attrs.get("primary", next((old for old in ("mse", "loss") if old in data), None))
    if chosen is None or not known:
        raise RecordError("report: the record has no loss, expected a record made by fw.learn (fw.walk does not learn)")
    check.choice("report", "the primary measure of the record" if name is None else "measure", chosen, known)
    attrs, best = data[chosen].attrs, data.attrs.get(f"optimal_{chosen}")
    label = check.text("report", f"long_name of {chosen}", attrs.get("long_name", chosen))
    better = check.choice("report", f"better of {chosen}", attrs.get("better", "lower"), ("lower", "higher"))
    optimum = None if best is None else check.real("report", f"optimal_{chosen}", best)
    return Measure(chosen, label.split(",")[0], better == "higher", optimum)


def axes_of(parts: Parts, measure: Measure, wanted: Sequence[str] | None = None) -> dict[str, str]:
    """Horizontal axes and their labels, by name.

    Those wanted may be "updates", "rounds" (or "step"), or variables by walk and step that never decrease. By default
    they are updates, messages, and everything else that counts up from 0.
    """
    first = next(iter(parts.values()))
    measured = _by_walk_and_step(first)
    known = [UPDATES, ROUNDS, *(name for name in measured if _never_decreases(parts, name))]
    if wanted is None:
        others = [name for name in known[2:] if name != measure.name and _counts_up(parts, name)]
        others += [ROUNDS] if rounds_differ(parts) else []
        return {name: _label(first, name) for name in (*USUAL, *others)}
    names = check.items("report", "axes", wanted, "a list of names, such as ['updates', 'messages']")
    if not names:
        raise check.fail("report", "axes", wanted, f"at least one of {', '.join(known)}")
    found = {}
    for name in names:
        if isinstance(name, str) and name in measured and name not in known:
            remedy = "to draw it, pass it as measure"
            raise check.fail("report", "axis", name, f"something that never decreases: {' or '.join(known)}", remedy)
        axis = check.choice("report", "axis", ROUNDS if isinstance(name, str) and name == "step" else name, known)
        found[axis] = _label(first, axis)
    return found


def rounds_differ(parts: Parts) -> bool:
    """Whether rounds differ from updates, as with several tokens or several local steps."""
    return any((along(part, UPDATES) != along(part, ROUNDS)).any() for part in parts.values())


def _by_walk_and_step(data: "xarray.Dataset") -> list[str]:
    """The variables that are numbers by walk and step."""
    return [
        str(name)
        for name, variable in data.data_vars.items()
        if variable.dtype.kind in "biuf" and set(variable.dims) - {"design"} == {"walk", "step"}
    ]


def _never_decreases(parts: Parts, name: str) -> bool:
    """Whether a variable can be an axis; some designs of a record may lack it."""
    walks = [values for values in (values_of(part, name) for part in parts.values()) if not np.isnan(values).all()]
    fine = [((one >= 0) & (one < _MOST)).all() and (np.diff(one, axis=1) >= 0).all() for one in walks]
    return bool(fine) and all(fine)


def _counts_up(parts: Parts, name: str) -> bool:
    """Whether an axis starts at 0 and grows in some design."""
    ends = [along(part, name)[[0, -1]] for part in parts.values()]
    return not any(first > 0 for first, _ in ends) and any(last > 0 for _, last in ends)


def _label(part: "xarray.Dataset", axis: str) -> str:
    unit = axis if axis in (UPDATES, ROUNDS) else part[axis].attrs.get("units", axis)
    return axis if unit == axis else f"{axis} ({check.text('report', f'units of {axis}', unit)})"


def along(part: "xarray.Dataset", axis: str) -> Floats:
    """The positions of a design's checkpoints on an axis, averaged over its walks; NaN if the design lacks the axis."""
    if axis == ROUNDS or (axis == UPDATES and UPDATES not in part):  # old records have no updates
        return np.asarray(part.step.values, dtype=np.float64)
    return np.asarray(part[UPDATES].values if axis == UPDATES else values_of(part, axis).mean(axis=0), dtype=np.float64)


def by_design(record: Record) -> "dict[str, xarray.Dataset]":
    """The measurements of each design, without the NaN that pad an interrupted one or one with fewer walks."""
    check.instance("report", "record", record, Record, "a Record; fw.load reads one from a file")
    data = record.data
    if not {"walk", "step"} <= set(data.dims) or not {"messages", "step"} <= set(data.variables):
        raise RecordError("report: the record has no walks, expected a record made by fw.learn or a spec")
    for name, dims in _DIMS.items():
        if name in data and (data[name].dtype.kind not in "biuf" or set(data[name].dims) - {"design"} not in dims):
            found = f"an array of {data[name].dtype} by {', '.join(map(str, data[name].dims))}"
            words = " and ".join(sorted(dims[0])) or "design"
            raise RecordError(f"report: {name} in the record is {found}, expected numbers by {words}")
    if "design" not in data.dims:
        return {check.text("report", "label", record.label): _checked(data)}
    parts = {check.text("report", "design", str(label)): data.sel(design=label) for label in data.design.values}
    if not parts or len(parts) != data.sizes["design"]:
        raise RecordError("report: the record has no designs, or two with the same name, expected distinct names")
    if "walks" in data:  # fw.concat has added walks as padding
        for label, part in parts.items():
            count = check.whole("report", "walks in the record", part.walks.values.item(), 1, part.sizes["walk"])
            parts[label] = part.isel(walk=slice(count))
    # Messages are counted at every checkpoint, even after a walk has diverged.
    return {
        label: _checked(part.isel(step=np.flatnonzero(part.messages.notnull().any("walk"))))
        for label, part in parts.items()
    }


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


def walks_in_words(parts: Parts) -> str:
    """How many walks each design has."""
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


def mean_and_band(
    values: Floats, band: Band = "quantiles", *, rises: bool = False, best: float | None = None
) -> tuple[Floats, Floats, Floats]:
    """Mean and band over walks × checkpoints; a value that is not finite counts as infinitely bad and is never dropped.

    The mean is NaN where it is not finite, the ends of the band are always finite. A confidence interval does not go
    beyond the best possible value.
    """
    bounded = np.where(np.isfinite(values), values, -np.inf if rises else np.inf)
    with np.errstate(all="ignore"):
        mean = bounded.mean(axis=0)
        low = high = mean
        if band == "quantiles":
            # "lower" and "higher" return values of walks, so infinities are never interpolated.
            low = np.quantile(bounded, QUANTILES[0], axis=0, method="lower")
            high = np.quantile(bounded, QUANTILES[1], axis=0, method="higher")
        elif band == "confidence":
            reach = np.nan_to_num(half_width(bounded))  # 0 if not known, as for a single walk
            low, high = mean - reach, mean + reach
            if best is not None and rises:
                high = np.fmin(high, np.fmax(mean, best))
            elif best is not None:
                low = np.fmax(low, np.fmin(mean, best))
    return np.where(np.isfinite(mean), mean, np.nan), np.clip(low, -HUGE, HUGE), np.clip(high, -HUGE, HUGE)


def is_log(measure: Measure, means: Iterable[Floats]) -> bool:
    """Whether the vertical axis is logarithmic: for a loss, unless one is negative."""
    return not measure.rises and not any((mean < 0).any() for mean in means)


def is_spread(parts: Parts, measure: Measure, axes: Iterable[str]) -> bool:
    """Whether a linear horizontal axis would squeeze some design into a corner.

    That is the case if a design is halfway to its best value within the first twentieth of the axis, or if another
    takes more than eight times as long to get halfway.
    """
    means = [mean_and_band(values_of(part, measure.name), "none", rises=measure.rises)[0] for part in parts.values()]
    log = is_log(measure, means)
    for axis in axes:
        curves = [(along(part, axis), mean) for part, mean in zip(parts.values(), means, strict=True)]
        curves = [(counts, mean) for counts, mean in curves if counts[-1] > 0]  # one that sends nothing has no extent
        middles = [_halfway(counts, -mean if measure.rises else mean, log) for counts, mean in curves]
        end = max((float(counts[-1]) for counts, _ in curves), default=0.0)
        if middles and (max(middles) > _APART * min(middles) or min(middles) < _CORNER * end):
            return True
    return False


def _halfway(counts: Floats, mean: Floats, log: bool) -> float:
    """Where a curve is halfway between its first and its lowest value; its end if it never falls."""
    height = np.log(mean, where=mean > 0, out=np.full(mean.shape, np.nan)) if log else mean
    seen = height[np.isfinite(height)]
    if not seen.size or not seen.min() < seen[0]:
        return float(counts[-1])
    return float(counts[np.flatnonzero(height <= (seen[0] + seen.min()) / 2)[0]])


def crossings(curves: Floats, level: float, *, between: bool = True) -> Floats:
    """Per row: the position of the first checkpoint that is at most `level`; infinite if there is none.

    Positions `between` two checkpoints are interpolated on a logarithmic scale.
    """
    below = curves <= level
    place, rows = below.argmax(axis=1), np.arange(len(curves))
    found = place.astype(np.float64)
    if between:
        before, after = curves[rows, np.maximum(place - 1, 0)], curves[rows, place]
        with np.errstate(all="ignore"):
            part = np.log(before / level) / np.log(before / np.maximum(after, 1e-300))
        part = np.where(np.isfinite(part) & (before < HUGE), part, 1.0)
        found = np.where(place == 0, 0.0, place - 1 + part)
    return np.where(below.any(axis=1), found, np.inf)


def graph_of(record: Record, graph: Graph | None = None) -> Graph | None:
    """The given graph, else that of the record, which must fit its nodes; None for old records."""
    found, n = graph if graph is not None else record.graph, _size(record)
    if found is not None and found.n != n:
        raise RecordError(f"report: the graph has {found.n} nodes, expected {n}; pass the graph of the recorded run")
    return found


def _size(record: Record) -> int:
    """The number of nodes."""
    if "visits" not in record.data or "node" not in record.data.sizes:
        raise RecordError("report: the record has no visits, expected a record made by fw.learn or a spec")
    return record.data.sizes["node"]


def heavy_of(record: Record) -> list[int]:
    """The nodes that the record calls heavy."""
    heavy, n = record.data.attrs.get("heavy", ()), _size(record)
    try:
        found = [int(node) for node in heavy]
    except (TypeError, ValueError):
        found = [-1]
    if not all(0 <= node < n for node in found):
        raise RecordError(f"report: the attribute 'heavy' of the record does not hold nodes from 0 to {n - 1}")
    return found


def in_words(graph: Graph | None, nodes: Iterable[int]) -> str:
    """Nodes by name, or by number if they have none; of many nodes, the first few."""
    some = list(nodes)
    names = [str(node) if graph is None else short(graph.node_name(node)) for node in some[:_NAMED]]
    if len(some) > _NAMED:
        names.append(f"{len(some) - _NAMED:,} more")
    return joined(names)


def joined(words: Sequence[str]) -> str:
    """Words as a sentence lists them: with commas, and "and" before the last."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def short(name: str, most: int = _LONGEST) -> str:
    """A name, cut if it is too long."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def visits_of(part: "xarray.Dataset") -> Floats:
    """How often each node was visited, by all walks of a design."""
    counts = part.visits.astype(np.float64)  # before they are added: sums of integers would overflow
    return np.asarray(counts.sum([name for name in counts.dims if name != "node"]).values)


def paths_of(part: "xarray.Dataset") -> Floats:
    """The nodes on the kept paths of a design, one row per path; NaN after an interruption, or what is not known.

    There may be none: in a record of several designs, one that kept fewer paths is padded with NaN.
    """
    nodes = np.asarray(part.path.transpose("kept", "time").values, dtype=np.float64)
    nodes[np.maximum.accumulate(nodes == -1, axis=1)] = np.nan  # a journal of peers is lost
    if not (np.isnan(nodes) | ((nodes >= 0) & (nodes < part.sizes["node"]) & (nodes == np.floor(nodes)))).all():
        raise RecordError(f"report: a path in the record leaves the nodes from 0 to {part.sizes['node'] - 1}")
    return nodes[~np.isnan(nodes).all(axis=1)]
