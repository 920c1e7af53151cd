"""The tables and figures of a sweep: lines over a key, learning curves in small multiples, heat maps over two keys."""

import math
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import RecordError
from freewalk.linear.arrays import Floats
from freewalk.report import figures
from freewalk.report.figures import DOTTED, INK, Where
from freewalk.report.measures import Measure, check, half_width, is_log

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Suffix of the variable with half of the 95 % confidence interval of a measure's mean over the walks.
HALF = "_half_width"
_COLUMNS = 4
_MOST_PANELS = 12
_MOST_WORDS = 80  # up to this many cells of a heat map have room for a number
_EXPLODED = 1e6  # times the worst start: a walk whose loss is larger is about to overflow


@dataclass(frozen=True)
class Panel:
    """The contents of one frame: the values of the keys that are constant in it."""

    place: dict[str, int]  # the index of the value of each key
    words: str  # the same in words; empty if nothing else was varied


@dataclass(frozen=True, eq=False)
class SweepView:
    """A sweep as reports show it: final values of each point, averaged over the walks and over repeated draws."""

    measure: Measure
    final: "xarray.DataArray"  # the last value of the mean, by the keys that were varied and by design
    half: "xarray.DataArray"  # half of its 95 % confidence interval, over the repetitions if any, else the walks
    curves: "xarray.DataArray"  # the mean over the walks and the repetitions, by the same dimensions and by step
    updates: "xarray.DataArray"  # of all tokens, with the dimensions of `curves`
    x: str  # the key on the horizontal axis
    draws: str  # what a mean covers besides the walks: the keys that only repeat a point, which are seeds

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

    def is_log(self, values: Floats) -> bool:
        """Whether the values have a logarithmic axis: those of a loss, if any is positive."""
        return is_log(self.measure, [values]) and bool((np.isfinite(values) & (values > 0)).any())

    def ends(self, values: Floats, *, log: bool) -> tuple[float, float]:
        """The least and the largest of some values; on a log axis, without losses that have exploded."""
        fine = values[np.isfinite(values) & ((values > 0) | (not log))]
        if not fine.size:
            return 0.1, 1.0
        low, starts = float(fine.min()), self.curves.isel(step=0).values
        worst = max(low, float(starts.max(where=np.isfinite(starts), initial=0.0)))
        return low, min(float(fine.max()), _EXPLODED * worst if log else np.inf)

    def panels(self, *inner: str) -> Iterator[Panel]:
        """A panel for each combination of the keys that are not drawn inside it."""
        outer = [key for key in self.keys if key not in inner]
        for place in product(*(range(self.final.sizes[key]) for key in outer)):
            words = [f"{key} = {self.labels(key)[number]}" for key, number in zip(outer, place, strict=True)]
            yield Panel(dict(zip(outer, place, strict=True)), "\n".join(words))

    def line(self, panel: Panel, design: str, *, log: bool) -> tuple[NDArray[Any], Floats, Floats, Floats]:
        """The values of the horizontal key in ascending order, and the final values of a design with its band."""
        where = self.final[self.x].values if self.is_number(self.x) else np.arange(self.final.sizes[self.x])
        order = np.argsort(where, kind="stable")
        values, half = (one.isel(panel.place).sel(design=design).values[order] for one in (self.final, self.half))
        half = np.nan_to_num(half, posinf=0.0)
        shown = np.where(np.isfinite(values), values, np.nan)
        low = shown - half
        return where[order], shown, np.where(low > 0, low, shown / 3) if log else low, shown + half

    @property
    def footnote(self) -> str:
        """What a line and its band show."""
        mean = f"Last value of the {self.measure.label}, mean over the walks{self.draws}"
        return f"{mean}; band: 95 % confidence of the mean"


def view_of(data: "xarray.Dataset", measure: str | None = None, x: str | None = None) -> SweepView:
    """The view of a sweep that reports show; by default its primary measure over the numeric key with most values."""
    import xarray
    from scipy.special import stdtrit

    check.instance("report", "data", data, xarray.Dataset, "an xarray.Dataset that fw.sweep returned")
    if "finished" not in data or "design" not in data.dims or "messages" not in data or not data.finished.values.any():
        raise RecordError("report: this sweep has no finished point, expected the result of fw.sweep")
    shown = _measure(data, measure)
    axes = [str(dim) for dim in data.finished.dims]
    mean, half = _over_walks(data, shown.name)
    counted, _ = _over_walks(data, "messages")
    updates = data.updates if "updates" in data else xarray.zeros_like(mean) + data.step
    final, half, updates = _last(mean, counted), _last(half, counted), updates.broadcast_like(mean)
    repeated = tuple(axis for axis in axes if axis.rpartition(".")[2] == "seed")
    if len(repeated) == len(axes):
        repeated = repeated[1:]
    repetitions = math.prod(data.sizes[axis] for axis in repeated)
    keys = [axis for axis in axes if axis not in repeated]
    order = (*keys, "design")
    # Over the finished repetitions, including diverged ones; of fewer than two, numpy would warn.
    with np.errstate(all="ignore"), catch_warnings(action="ignore"):
        if repetitions > 1:
            counts = final.count(repeated)
            half = final.std(repeated, ddof=1) * stdtrit(counts - 1, 0.975) / np.sqrt(counts)
        else:
            half = half.mean(repeated, skipna=True)  # a single draw: that of the walks
        final, mean, updates = (one.mean(repeated, skipna=True) for one in (final, mean, updates))
    numbers = [key for key in keys if data[key].dtype.kind in "iuf"]
    return SweepView(
        measure=shown,
        final=final.transpose(*order),
        half=half.transpose(*order),
        curves=mean.transpose(*order, "step"),
        updates=updates.transpose(*order, "step"),
        x=max(numbers or keys, key=data.sizes.__getitem__) if x is None else check.choice("report", "x", x, keys),
        draws=f" and {repetitions} values of {', '.join(repeated)}" if repetitions > 1 else "",
    )


def _measure(data: "xarray.Dataset", name: str | None) -> Measure:
    known = [
        str(one)
        for one, values in data.data_vars.items()
        if {"design", "step"} <= set(values.dims) and not str(one).endswith(HALF) and one != "updates"
    ]
    chosen = check.choice("report", "measure", data.attrs.get("primary", "loss") if name is None else name, known)
    attrs = data[chosen].attrs
    label = str(attrs.get("long_name", chosen)).partition(",")[0]
    best = data.get(f"optimal_{chosen}")
    several = None if best is None else np.unique(best.values[np.isfinite(best.values)])
    optimum = float(several[0]) if several is not None and several.size == 1 else None
    return Measure(chosen, label, attrs.get("better") == "higher", optimum)


def _over_walks(data: "xarray.Dataset", name: str) -> "tuple[xarray.DataArray, xarray.DataArray]":
    """The mean over the walks, and half of its confidence interval."""
    import xarray

    one = data[name]
    if "walk" not in one.dims:
        return one, data.get(f"{name}{HALF}", xarray.full_like(one, np.nan, dtype=np.float64))
    one = one.astype(np.float64).transpose("walk", ...)
    with np.errstate(all="ignore"):
        return one.mean("walk", skipna=False), one.reduce(lambda values, axis: half_width(values), "walk")


def _last(values: "xarray.DataArray", counted: "xarray.DataArray") -> "xarray.DataArray":
    """The value at the last step of a point; NaN if the point is missing."""
    there = counted.notnull().transpose(*values.dims).values
    last = there.shape[-1] - 1 - there[..., ::-1].argmax(axis=-1)
    found = np.take_along_axis(values.values, last[..., None], axis=-1)[..., 0]
    return values.isel(step=0, drop=True).copy(data=np.where(there.any(axis=-1), found, np.nan))


def tabulated(view: SweepView) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table: the values of the keys, and the final value of each design."""
    keys = product(*(view.labels(key) for key in view.keys))
    points = zip(*(one.values.reshape(-1, len(view.designs)).tolist() for one in (view.final, view.half)), strict=True)
    rows = [[*words, *map(_cell, *point)] for words, point in zip(keys, points, strict=True)]
    return [*view.keys, *view.designs], rows


def _cell(value: float, half: float) -> str:
    """A number with its interval, or a word."""
    if not np.isfinite(value):
        return "–" if np.isnan(value) else "diverged"
    return f"{value:.4g}" + (f" ± {half:.2g}" if np.isfinite(half) and half > 0 else "")


def spread_out(values: Any) -> bool:
    """Whether numbers need a logarithmic axis."""
    numbers = np.asarray(values, dtype=np.float64)
    return bool((numbers > 0).all() and numbers.max() >= 20 * numbers.min())


def sweep_lines(data: "xarray.Dataset", path: Where, *, measure: str | None = None, x: str | None = None) -> None:
    """Draw the final value of each design against a key, with one panel for each combination of the other keys.

    Parameters
    ----------
    data
        The result of `fw.sweep`.
    path
        The image to write; its suffix gives the format.
    measure
        The measure to draw. Default: the primary one.
    x
        The key on the horizontal axis. Default: the one with the most values.
    """
    target, view = figures.check_format(path), view_of(data, measure, x)
    log = view.is_log(view.final.values)
    panels = [(panel, "") for panel in view.panels(view.x)]
    with _drawing(target, panels, _COLUMNS, view.measure.label, view.footnote, log=log) as (figure, grid):
        _cut(grid[0], view, view.final.values, log)
        for frame, (panel, _) in zip(grid, panels, strict=False):
            for number, design in enumerate(view.designs):
                where, shown, low, high = view.line(panel, design, log=log)
                if np.isfinite(shown).any():  # an empty band would set the limits of the axis
                    figures.shade(frame, where, low, high, number)
                frame.plot(where, shown, marker="o", markersize=3.5, label=design, **figures.line_of(number))
            frame.set_xlabel(view.x, parse_math=False)
            if not view.is_number(view.x):
                frame.set_xticks(range(view.final.sizes[view.x]), view.labels(view.x), rotation=20)
            elif spread_out(view.final[view.x].values):
                frame.set_xscale("log")
            if view.measure.optimum is not None and (view.measure.optimum > 0 or not log):
                frame.axhline(view.measure.optimum, label="optimum", zorder=2, **DOTTED)
            _vertical(frame, log)
        figures.legend(figure, grid[0])


def sweep_curves(data: "xarray.Dataset", path: Where, *, measure: str | None = None, x: str | None = None) -> None:
    """Draw the learning curves: one line per value of a key, one panel per design and combination of the other keys.

    Parameters are those of `sweep_lines`.
    """
    import matplotlib

    target, view = figures.check_format(path), view_of(data, measure, x)
    log = view.is_log(view.curves.values)
    panels = list(product(view.panels(view.x), view.designs))
    colours = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, view.final.sizes[view.x]))
    words = f"colour: {view.x}; line: mean over the walks{view.draws}"
    with _drawing(target, panels, len(view.designs), view.measure.label, words, log=log) as (figure, grid):
        _cut(grid[0], view, view.curves.values, log)
        for frame, (panel, design) in zip(grid, panels, strict=False):
            for number, value in enumerate(view.labels(view.x)):
                place = {**panel.place, view.x: number}
                curve, counts = (one.isel(place).sel(design=design).values for one in (view.curves, view.updates))
                there = ~np.isnan(curve) & ~np.isnan(counts)
                shown = np.where(np.isfinite(curve), curve, np.nan)
                name = f"{view.x.rpartition('.')[2]} = {value}"
                frame.plot(counts[there], shown[there], color=colours[number], linewidth=1.6, label=name)
            frame.set_xlabel("updates")
            figures.axis_of_counts(frame)
            _vertical(frame, log)
        figures.legend(figure, grid[0])


def sweep_map(
    data: "xarray.Dataset",
    path: Where,
    *,
    measure: str | None = None,
    x: str | None = None,
    y: str | None = None,
) -> None:
    """Draw the final value of each design as a heat map over two keys; missing points stay white.

    Parameters
    ----------
    data, path, measure, x
        As for `sweep_lines`.
    y
        The key on the vertical axis. Default: of the others, the one with the most values.
    """
    import matplotlib
    from matplotlib.colors import LogNorm, Normalize

    target, view = figures.check_format(path), view_of(data, measure, x)
    if not view.others:
        raise RecordError(f"report: only {view.x!r} was varied, expected two keys for a heat map; use sweep_lines")
    y = max(view.others, key=lambda key: view.final.sizes[key]) if y is None else y
    y = check.choice("report", "y", y, view.others)
    panels = list(product(view.panels(view.x, y), view.designs))
    log = view.is_log(view.final.values)
    ends = view.ends(view.final.values, log=log)
    norm = LogNorm(*ends) if log and ends[0] < ends[1] else Normalize(*ends)
    shades = matplotlib.colormaps["viridis" if view.measure.rises else "viridis_r"].with_extremes(bad="white")
    words = view.footnote.partition(";")[0] + "; white: no such point, or diverged (∞)"
    with _drawing(target, panels, len(view.designs), y, words) as (figure, grid):
        for frame, (panel, design) in zip(grid, panels, strict=False):
            cells = view.final.isel(panel.place).sel(design=design).transpose(y, view.x).values
            shown = np.where(np.isfinite(cells), cells, np.nan)
            image = frame.imshow(shown, origin="lower", aspect="auto", cmap=shades, norm=norm, interpolation="nearest")
            frame.grid(visible=False)
            _cells(frame, cells, norm, rises=view.measure.rises)
            for key, axis in ((view.x, frame.xaxis), (y, frame.yaxis)):
                some = np.unique(np.linspace(0, view.final.sizes[key] - 1, min(view.final.sizes[key], 8)).astype(int))
                axis.set_ticks(some, [view.labels(key)[number] for number in some])
            frame.set_xlabel(view.x, parse_math=False)
        bar = figure.colorbar(image, ax=list(grid), shrink=0.9)
        bar.set_label(view.measure.label)
        if log:
            figures.plain_within_a_decade(bar.ax.yaxis, *ends)


@contextmanager
def _drawing(
    path: Where, panels: list[tuple[Panel, str]], columns: int, label: str, words: str, *, log: bool = False
) -> "Iterator[tuple[Figure, NDArray[Any]]]":
    """A figure, and frames with titles for as many panels as fit; its small print says how many did not."""
    count = min(len(panels), _MOST_PANELS)
    columns = min(columns, count, _COLUMNS)
    if len(panels) > count:
        words += f"; {len(panels) - count} more panels are not drawn"
    width, height = max(3.4 * columns, 5.2), 1.3 + 2.7 * -(-count // columns)
    # A letter of this size is about 0.065 inches wide.
    with figures.drawing(path, width, height, footer=textwrap.fill(words, int(width / 0.065))) as figure:
        grid = figures.frames(figure, count, columns)
        if log:  # before anything is drawn
            grid[0].set_yscale("log")
        for frame in grid[::columns]:
            frame.set_ylabel(label, parse_math=False)
        for frame, (panel, design) in zip(grid, panels, strict=False):
            frame.set_title("\n".join(filter(None, [design, panel.words])), fontsize=9.5, parse_math=False)
        yield figure, grid


def _cut(frame: "Axes", view: SweepView, values: Floats, log: bool) -> None:
    """Let losses that have exploded leave the picture: they would squeeze all others, and overflow ends of the axis."""
    low, high = view.ends(values, log=log)
    if log and (values[np.isfinite(values)] > high).any():
        best = view.measure.optimum or low
        frame.set_ylim((min(low, best) if best > 0 else low) / 3, high)


def _vertical(frame: "Axes", log: bool) -> None:
    if log and not figures.plain_within_a_decade(frame.yaxis, *frame.get_ylim()):
        frame.yaxis.set_minor_formatter(lambda value, _: "")


def _cells(frame: "Axes", cells: NDArray[np.float64], norm: Any, *, rises: bool) -> None:
    """Write numbers into the cells of a heat map if there is room."""
    options: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5}
    for row, column in np.argwhere(~np.isnan(cells)) if cells.size <= _MOST_WORDS else ():
        value = cells[row, column]
        finite = bool(np.isfinite(value))
        dark = finite and (norm(value) < 0.5 if rises else norm(value) > 0.5)
        frame.text(column, row, f"{value:.2g}" if finite else "∞", color="white" if dark else INK, **options)
