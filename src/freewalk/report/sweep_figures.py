"""The figures of a sweep: lines over a key, learning curves in small multiples, heat maps over two keys."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import RecordError
from freewalk.report.figures import (
    INK,
    STYLE,
    Where,
    axis_of_counts,
    check,
    check_format,
    footnote,
    legend,
    line_of,
    new_figure,
    save,
)
from freewalk.report.measures import is_log
from freewalk.report.sweeps import Panel, SweepView, spread_out, view_of

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 4
_MOST_PANELS = 12
_MOST_WORDS = 80  # up to this many cells of a heat map have room for a number


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

    Raises
    ------
    RecordError
        If `data` is not a sweep, or the file cannot be written.
    """
    import matplotlib

    target, view = check_format(path), view_of(data, measure, x)
    log = _is_log(view, view.final.values)
    panels, more = _some(list(view.panels(view.x)))
    with matplotlib.rc_context(STYLE):
        figure, grid = _frames(len(panels), log=log)
        where = np.arange(view.final.sizes[view.x]) if not view.is_number(view.x) else view.final[view.x].values
        order = np.argsort(where, kind="stable")
        for frame, panel in zip(grid, panels, strict=True):
            for number, design in enumerate(view.designs):
                values = view.final.isel(panel.place).sel(design=design).values[order]
                half = np.nan_to_num(view.half.isel(panel.place).sel(design=design).values[order], posinf=0.0)
                shown = np.where(np.isfinite(values), values, np.nan)
                low, high = shown - half, shown + half
                low = np.where(low > 0, low, shown / 3) if log else low  # a log axis has no zero
                if np.isfinite(shown).any():  # an empty band would set the limits of the axis
                    frame.fill_between(where[order], low, high, color=line_of(number)["color"], alpha=0.13, linewidth=0)
                frame.plot(where[order], shown, marker="o", markersize=3.5, label=design, **line_of(number))
            _title(frame, panel)
            _horizontal(frame, view)
            if view.measure.optimum is not None and (view.measure.optimum > 0 or not log):
                options: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": (0, (2, 2)), "zorder": 2}
                frame.axhline(view.measure.optimum, label="optimum", **options)
            _vertical(frame, log)
        for frame in grid[::_COLUMNS]:
            frame.set_ylabel(view.measure.label, parse_math=False)
        legend(figure, grid[0])
        _footnote(figure, view.footnote + more)
        save(figure, target)


def sweep_curves(data: "xarray.Dataset", path: Where, *, measure: str | None = None, x: str | None = None) -> None:
    """Draw the learning curves: one line per value of a key, one panel per design and combination of the other keys.

    Parameters and errors are those of `sweep_lines`.
    """
    import matplotlib

    target, view = check_format(path), view_of(data, measure, x)
    log = _is_log(view, view.curves.values)
    panels, more = _some([(panel, design) for panel in view.panels(view.x) for design in view.designs])
    names, size, short = view.labels(view.x), view.final.sizes[view.x], view.x.rpartition(".")[2]
    with matplotlib.rc_context(STYLE):
        colours = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, size))
        columns = len(view.designs) if len(view.designs) <= _COLUMNS else _COLUMNS
        figure, grid = _frames(len(panels), columns, log=log)
        for frame, (panel, design) in zip(grid, panels, strict=True):
            for number in range(size):
                place = {**panel.place, view.x: number}
                curve = view.curves.isel(place).sel(design=design).values
                counts = view.updates.isel(place).sel(design=design).values
                there = ~np.isnan(curve) & ~np.isnan(counts)
                shown = np.where(np.isfinite(curve), curve, np.nan)
                options: dict[str, Any] = {
                    "color": colours[number],
                    "linewidth": 1.6,
                    "label": f"{short} = {names[number]}",
                }
                frame.plot(counts[there], shown[there], **options)
            _title(frame, panel, design)
            frame.set_xlabel("updates")
            axis_of_counts(frame)
            _vertical(frame, log)
        for frame in grid[::columns]:
            frame.set_ylabel(view.measure.label, parse_math=False)
        legend(figure, grid[0])
        repeated = f" and {view.repetitions} values of {', '.join(view.repeated)}" if view.repetitions > 1 else ""
        _footnote(figure, f"colour: {view.x}; line: mean over the walks{repeated}{more}")
        save(figure, target)


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

    Raises
    ------
    RecordError
        If fewer than two keys were varied, and as for `sweep_lines`.
    """
    import matplotlib
    from matplotlib.colors import LogNorm, Normalize

    target, view = check_format(path), view_of(data, measure, x)
    if not view.others:
        raise RecordError(f"report: only {view.x!r} was varied, expected two keys for a heat map; use sweep_lines")
    y = max(view.others, key=lambda key: view.final.sizes[key]) if y is None else y
    y = check.choice("report", "y", y, view.others)
    panels, more = _some([(panel, design) for panel in view.panels(view.x, y) for design in view.designs])
    log = _is_log(view, view.final.values)
    finite = view.final.values[np.isfinite(view.final.values) & ((view.final.values > 0) | (not log))]
    ends = (float(finite.min()), float(finite.max())) if finite.size else (0.1, 1.0)
    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        columns = len(view.designs) if len(view.designs) <= _COLUMNS else _COLUMNS
        figure, grid = _frames(len(panels), columns)
        norm = LogNorm(*ends) if log and ends[0] < ends[1] else Normalize(*ends)
        shades = matplotlib.colormaps["viridis" if view.measure.rises else "viridis_r"].with_extremes(bad="white")
        for frame, (panel, design) in zip(grid, panels, strict=True):
            cells = view.final.isel(panel.place).sel(design=design).transpose(y, view.x).values
            shown = np.where(np.isfinite(cells), cells, np.nan)
            image = frame.imshow(shown, origin="lower", aspect="auto", cmap=shades, norm=norm, interpolation="nearest")
            _cells(frame, cells, norm, rises=view.measure.rises)
            for key, axis in ((view.x, frame.xaxis), (y, frame.yaxis)):
                some = np.unique(np.linspace(0, view.final.sizes[key] - 1, min(view.final.sizes[key], 8)).astype(int))
                axis.set_ticks(some, [view.labels(key)[number] for number in some])
            frame.set_xlabel(view.x, parse_math=False)
            _title(frame, panel, design)
        for frame in grid[::columns]:
            frame.set_ylabel(y, parse_math=False)
        bar = figure.colorbar(image, ax=list(grid), shrink=0.9)
        bar.set_label(view.measure.label)
        if log and ends[1] < 10 * ends[0]:
            bar.ax.yaxis.set_major_formatter(_plain)
            bar.ax.yaxis.set_minor_formatter(_plain)
        _footnote(figure, view.footnote.partition(";")[0] + "; white: no such point, or diverged (∞)" + more)
        save(figure, target)


def _is_log(view: SweepView, values: NDArray[np.float64]) -> bool:
    """Whether the values have a logarithmic axis: those of a loss, if any is positive."""
    return is_log(view.measure, [values]) and bool((np.isfinite(values) & (values > 0)).any())


def _some(panels: list[Any]) -> tuple[list[Any], str]:
    """As many panels as fit, and a footnote about the rest."""
    left = len(panels) - _MOST_PANELS
    return panels[:_MOST_PANELS], f"; {left} more panels are not drawn" if left > 0 else ""


def _frames(count: int, columns: int = _COLUMNS, *, log: bool = False) -> "tuple[Figure, NDArray[Any]]":
    """Frames that share a vertical axis, whose scale is set before anything is drawn."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = new_figure(max(3.4 * columns, 5.2), 1.3 + 2.7 * rows)
    grid = np.asarray(figure.subplots(rows, columns, squeeze=False, sharey=True)).ravel()
    if log:
        grid[0].set_yscale("log")
    for spare in grid[count:]:
        spare.set_visible(False)
    return figure, grid[:count]


def _footnote(figure: "Figure", words: str) -> None:
    # A letter of this size is about 0.065 inches wide.
    footnote(figure, textwrap.fill(words, int(figure.get_figwidth() / 0.065)))


def _title(frame: "Axes", panel: Panel, design: str = "") -> None:
    words = "\n".join(filter(None, [design, panel.words]))
    if words:
        frame.set_title(words, fontsize=9.5, parse_math=False)


def _horizontal(frame: "Axes", view: SweepView) -> None:
    frame.set_xlabel(view.x, parse_math=False)
    if not view.is_number(view.x):
        frame.set_xticks(range(view.final.sizes[view.x]), view.labels(view.x), rotation=20)
    elif spread_out(view.final[view.x].values):
        frame.set_xscale("log")


def _vertical(frame: "Axes", log: bool) -> None:
    low, high = frame.get_ylim()
    if log and low > 0 and high < 10 * low:  # within a decade: plain numbers
        frame.yaxis.set_major_formatter(_plain)
        frame.yaxis.set_minor_formatter(_plain)
    elif log:
        frame.yaxis.set_minor_formatter(lambda value, _: "")


def _plain(value: float, _: float) -> str:
    return f"{value:.3g}"


def _cells(frame: "Axes", cells: NDArray[np.float64], norm: Any, *, rises: bool) -> None:
    """Write numbers into the cells of a heat map if there is room."""
    if cells.size > _MOST_WORDS:
        return
    for row, column in np.ndindex(*cells.shape):
        value = cells[row, column]
        if np.isnan(value):
            continue
        finite = bool(np.isfinite(value))
        dark = finite and (norm(value) < 0.5 if rises else norm(value) > 0.5)
        options: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7.5}
        frame.text(column, row, f"{value:.2g}" if finite else "∞", color="white" if dark else INK, **options)
