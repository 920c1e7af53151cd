"""What figures and tables show of a sweep: the final value of each design, by the keys that were varied."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.report.measures import Measure, half_width

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]
#: Suffix of the variable with half of the 95 % confidence interval of a measure's mean over the walks.
HALF = "_half_width"
_check = Checks(RecordError)


@dataclass(frozen=True)
class Panel:
    """The contents of one frame: the values of the keys that are constant in it.

    Attributes
    ----------
    place
        The index of the value of each key.
    words
        The same in words; empty if nothing else was varied.
    """

    place: dict[str, int]
    words: str


@dataclass(frozen=True, eq=False)
class SweepView:
    """A sweep as reports show it: final values of each point, averaged over the walks and over repeated draws.

    Attributes
    ----------
    measure
        The measure shown.
    final
        The last value of the mean, by design and by the keys that were varied, without repetitions.
    half
        Half of its 95 % confidence interval: over the repetitions if there are any, else over the walks.
    curves
        The mean over the walks and the repetitions, by the same dimensions and by step.
    updates
        The updates of all tokens, with the dimensions of `curves`.
    x
        The key on the horizontal axis.
    repeated
        The keys that only repeat a point: seeds.
    repetitions
        The number of repetitions.
    """

    measure: Measure
    final: "xarray.DataArray"
    half: "xarray.DataArray"
    curves: "xarray.DataArray"
    updates: "xarray.DataArray"
    x: str
    repeated: tuple[str, ...]
    repetitions: int

    @property
    def keys(self) -> list[str]:
        """The keys that were varied, without repetitions."""
        return [str(dim) for dim in self.final.dims if dim != "design"]

    @property
    def designs(self) -> list[str]:
        """The designs."""
        return [str(label) for label in self.final.design.values]

    @property
    def others(self) -> list[str]:
        """The keys other than the horizontal one."""
        return [key for key in self.keys if key != self.x]

    def labels(self, key: str) -> list[str]:
        """The values of a key, in words."""
        values = self.final[key].values
        return [f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value) for value in values.tolist()]

    def is_number(self, key: str) -> bool:
        """Whether the values of a key are numbers."""
        return bool(self.final[key].dtype.kind in "iuf")

    def panels(self, *inner: str) -> Iterator[Panel]:
        """A panel for each combination of the keys that are not drawn inside it."""
        outer = [key for key in self.keys if key not in inner]
        for place in product(*(range(self.final.sizes[key]) for key in outer)):
            words = [f"{key} = {self.labels(key)[number]}" for key, number in zip(outer, place, strict=True)]
            yield Panel(dict(zip(outer, place, strict=True)), "\n".join(words))

    @property
    def footnote(self) -> str:
        """What a line and its band show."""
        words = [f"Last value of the {self.measure.label}, mean over the walks"]
        if self.repetitions > 1:
            words.append(f"and {self.repetitions} values of {', '.join(self.repeated)}")
        return " ".join(words) + "; band: 95 % confidence of the mean"


def view_of(data: "xarray.Dataset", measure: str | None = None, x: str | None = None) -> SweepView:
    """The view of a sweep that reports show.

    Parameters
    ----------
    data
        The result of `fw.sweep`, with all walks or their means.
    measure
        The measure to show. Default: the primary one.
    x
        The key on the horizontal axis. Default: the numeric one with the most values.

    Raises
    ------
    RecordError
        If `data` is not a sweep, no point is finished, or there is no such measure or key.
    """
    import xarray

    _check.instance("report", "data", data, xarray.Dataset, "an xarray.Dataset that fw.sweep returned")
    if "finished" not in data or "design" not in data.dims or "messages" not in data or not data.finished.values.any():
        raise RecordError("report: this sweep has no finished point, expected the result of fw.sweep")
    shown = _measure(data, measure)
    axes = [str(dim) for dim in data.finished.dims]
    mean, half = _over_walks(data, shown.name)
    counted = _over_walks(data, "messages")[0]
    updates = data.updates if "updates" in data else xarray.zeros_like(mean) + data.step
    updates = updates.broadcast_like(mean).transpose(*mean.dims)
    final, reach = _last(mean, counted), _last(half, counted)
    repeated = tuple(axis for axis in axes if axis.rpartition(".")[2] == "seed" and len(axes) > 1)
    if set(repeated) == set(axes):
        repeated = repeated[1:]
    repetitions = int(np.prod([data.sizes[axis] for axis in repeated])) if repeated else 1
    if repetitions > 1:
        stacked = final.stack(repetition=repeated)
        values = np.moveaxis(stacked.values, stacked.dims.index("repetition"), 0)
        rest = [dim for dim in stacked.dims if dim != "repetition"]
        reach = xarray.DataArray(_half_of_some(values), dims=rest, coords={dim: data[dim] for dim in rest})
    keys = [axis for axis in axes if axis not in repeated]
    with np.errstate(all="ignore"):
        final, curves, updates = (_mean_over(one, repeated) for one in (final, mean, updates))
    numbers = [key for key in keys if data[key].dtype.kind in "iuf"]
    chosen = max(numbers or keys, key=lambda key: data.sizes[key])
    if x is not None:
        chosen = _check.choice("report", "x", x, keys)
    order = (*keys, "design")
    return SweepView(
        shown,
        final.transpose(*order),
        reach.transpose(*order),
        curves.transpose(*order, "step"),
        updates.transpose(*order, "step"),
        chosen,
        repeated,
        repetitions,
    )


def _measure(data: "xarray.Dataset", name: str | None) -> Measure:
    known = [
        str(one)
        for one, values in data.data_vars.items()
        if {"design", "step"} <= set(values.dims) and not str(one).endswith(HALF) and one != "updates"
    ]
    chosen = data.attrs.get("primary", "loss") if name is None else name
    chosen = _check.choice("report", "measure", chosen, known)
    attrs = data[chosen].attrs
    label = str(attrs.get("long_name", chosen)).partition(",")[0]
    best = data.get(f"optimal_{chosen}")
    several = None if best is None else np.unique(best.values[np.isfinite(best.values)])
    optimum = float(several[0]) if several is not None and several.size == 1 else None
    return Measure(chosen, label, attrs.get("better") == "higher", optimum)


def _over_walks(data: "xarray.Dataset", name: str) -> "tuple[xarray.DataArray, xarray.DataArray]":
    """The mean over the walks, and half of its confidence interval."""
    import xarray

    if "walk" not in data[name].dims:
        return data[name], data.get(f"{name}{HALF}", xarray.full_like(data[name], np.nan, dtype=np.float64))
    one = data[name]
    values = np.moveaxis(np.asarray(one.values, dtype=np.float64), one.dims.index("walk"), 0)
    dims = [dim for dim in one.dims if dim != "walk"]
    coords = {dim: data[dim] for dim in dims}
    with np.errstate(all="ignore"):
        return xarray.DataArray(values.mean(axis=0), coords, dims), xarray.DataArray(half_width(values), coords, dims)


def _last(values: "xarray.DataArray", counted: "xarray.DataArray") -> "xarray.DataArray":
    """The value at the last step of a point; NaN if the point is missing."""
    there = counted.notnull().transpose(*values.dims).values
    last = there.shape[-1] - 1 - there[..., ::-1].argmax(axis=-1)
    found = np.take_along_axis(values.values, last[..., None], axis=-1)[..., 0]
    return values.isel(step=0, drop=True).copy(data=np.where(there.any(axis=-1), found, np.nan))


def _mean_over(values: "xarray.DataArray", dims: tuple[str, ...]) -> "xarray.DataArray":
    """The mean over the finished repetitions, including diverged ones."""
    return values.mean(list(dims), skipna=True) if dims else values


def _half_of_some(values: Floats) -> Floats:
    """Half of the 95 % confidence interval over the first dimension, ignoring missing values."""
    from scipy.special import stdtrit

    counts = (~np.isnan(values)).sum(axis=0)
    with np.errstate(all="ignore"):
        filled = np.where(np.isnan(values), 0.0, values)
        mean = filled.sum(axis=0) / counts
        squares = np.where(np.isnan(values), 0.0, (filled - mean) ** 2).sum(axis=0)
        found = stdtrit(np.maximum(counts - 1, 1), 0.975) * np.sqrt(squares / (counts - 1) / counts)
    return np.asarray(np.where(counts > 1, found, np.nan))


def tabulated(view: SweepView) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table: the values of the keys, and the final value of each design."""
    head = [*view.keys, *view.designs]
    rows = []
    for place in product(*(range(view.final.sizes[key]) for key in view.keys)):
        words = [view.labels(key)[number] for key, number in zip(view.keys, place, strict=True)]
        cells = [
            _cell(float(value), float(half))
            for value, half in zip(view.final.values[place], view.half.values[place], strict=True)
        ]
        rows.append([*words, *cells])
    return head, rows


def _cell(value: float, half: float) -> str:
    """A number with its interval, or a word.

    Examples
    --------
    >>> _cell(0.12345, 0.0012), _cell(0.5, float("nan")), _cell(float("inf"), 0.0), _cell(float("nan"), 0.0)
    ('0.1235 ± 0.0012', '0.5', 'diverged', '–')
    """
    if np.isnan(value):
        return "–"
    if not np.isfinite(value):
        return "diverged"
    return f"{value:.4g}" + (f" ± {half:.2g}" if np.isfinite(half) and half > 0 else "")


def spread_out(values: Any) -> bool:
    """Whether numbers need a logarithmic axis.

    Examples
    --------
    >>> spread_out([1e-4, 1e-3, 1e-2]), spread_out([1, 2, 3]), spread_out([0, 1, 100])
    (True, False, False)
    """
    numbers = np.asarray(values, dtype=np.float64)
    return bool((numbers > 0).all() and numbers.max() >= 20 * numbers.min())
