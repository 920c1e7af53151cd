"""The results of a sweep: a table, figures and a page, in its folder."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from freewalk.report.measures import is_log
from freewalk.report.page import Chart, Page, Section, Series, Table, write_page
from freewalk.report.sweep_figures import sweep_curves, sweep_lines, sweep_map
from freewalk.report.sweeps import SweepView, spread_out, tabulated, view_of
from freewalk.run.measurements import versions
from freewalk.storage import files
from freewalk.sweeps.axes import Axis
from freewalk.sweeps.folder import SweepFolder
from freewalk.sweeps.points import in_words

if TYPE_CHECKING:
    import xarray
    from rich.table import Table as RichTable

TABLE, LINES, CURVES, MAP, PAGE = "table.csv", "lines.png", "curves.png", "map.png", "page.html"
_MOST_ROWS = 30  # on a terminal
_MOST_CHARTS, _MOST_ON_PAGE = 12, 500  # charts and rows on a page


@dataclass(frozen=True)
class Shown:
    """The results that were written.

    Attributes
    ----------
    view
        The data that tables and figures show.
    lines
        Lines that list the files, to be printed.
    """

    view: SweepView = field(repr=False)
    lines: list[str]

    def table(self) -> "RichTable":
        """The final value of each design, as a table for a terminal."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        head, rows = tabulated(self.view)
        left = len(rows) - _MOST_ROWS
        caption = self.view.footnote.replace("; band:", ", ±") + (
            f"; {left} more rows are in {TABLE}" if left > 0 else ""
        )
        shown = Table(caption=Text(caption), caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in head:
            shown.add_column(Text(heading), justify="right")
        for row in rows[:_MOST_ROWS]:
            shown.add_row(*map(Text, row))
        return shown


def show(folder: SweepFolder, measure: str | None = None, x: str | None = None) -> Shown:
    """Write the table, the figures and the page of the finished points of a sweep.

    Parameters
    ----------
    folder
        The folder of the sweep.
    measure
        The measure to show. Default: the primary one.
    x
        The key on the horizontal axis. Default: the one with the most values.

    Raises
    ------
    RecordError
        If no point is finished, or there is no such measure or key.
    """
    data = folder.gather("mean")
    view = view_of(data, measure, x)
    path, options = folder.path, {"measure": measure, "x": x}
    files.write(path / TABLE, as_csv(folder, data, view))
    sweep_lines(data, path / LINES, **options)
    sweep_curves(data, path / CURVES, **options)
    images = {"Learning curves": path / CURVES}
    if view.others:
        sweep_map(data, path / MAP, **options)
        images["Heat maps"] = path / MAP
    if not view.is_number(view.x):
        images = {"Final values": path / LINES, **images}
    write_page(_page(folder, data, view, images), path / PAGE)
    names = [
        ("table", TABLE),
        ("lines", LINES),
        ("curves", CURVES),
        *([("map", MAP)] if view.others else []),
        ("page", PAGE),
    ]
    return Shown(view, [f"{name:<7} {path / file}" for name, file in names])


def as_csv(folder: SweepFolder, data: "xarray.Dataset", view: SweepView) -> str:
    """One row per finished point and design: the values of the keys, the final values, and the hash."""
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    name = view.measure.name
    writer.writerow([*folder.sweep.keys, "design", name, f"{name}_half_width", "messages", "diverged", "point"])
    for point in folder.finished:
        one = data.isel({axis.name: [at] for axis, at in zip(folder.sweep.axes, point.place, strict=True)})
        ends = _ends(one, name)
        for design, cells in ends.items():
            values = [value if isinstance(value, (int, float)) else in_words(value) for value in point.setting.values()]
            writer.writerow([*values, design, *cells, point.key])
    return written.getvalue()


def _ends(one: "xarray.Dataset", name: str) -> dict[str, list[str]]:
    """The final values of each design at a point."""
    found = {}
    for design in one.design.values.tolist():
        part = one.sel(design=design)
        counts = part.messages.values.ravel()
        there = np.flatnonzero(~np.isnan(counts.astype(np.float64)))
        if not there.size:
            continue
        last = there[-1]
        numbers = [float(part[key].values.ravel()[last]) for key in (name, f"{name}_half_width", "messages")]
        diverged = int(part.diverged.values.ravel()[0]) if "diverged" in part else 0
        found[str(design)] = [*(f"{number:.10g}" for number in numbers), str(diverged)]
    return found


def _page(folder: SweepFolder, data: "xarray.Dataset", view: SweepView, images: Mapping[str, Path]) -> Page:
    sweep = folder.sweep
    head, rows = tabulated(view)
    there, left = int(data.finished.sum()), len(rows) - _MOST_ON_PAGE
    more = f"; {left} more rows are in {TABLE}" if left > 0 else ""
    text = [f"{there:,} of {len(sweep):,} points. {'; '.join(_varied(sweep.axes))}."]
    details = {"spec": sweep.spec.source, "versions": ", ".join(f"{name} {one}" for name, one in versions().items())}
    if data.attrs["left_out"]:
        details["left out"] = data.attrs["left_out"]
    section = Section(
        title=sweep.name,
        text=text,
        charts=_charts(view),
        images={words: file.read_bytes() for words, file in images.items()},
        tables=[Table(head, rows[:_MOST_ON_PAGE], view.footnote.replace("; band:", ", ±") + more + ".")],
        details=details,
    )
    return Page(f"Sweep: {sweep.name}", [section])


def _varied(axes: Iterable[Axis]) -> list[str]:
    pairs = [(key, values) for axis in axes for key, values in axis.values.items()]
    return [f"{key}: {len(one)} values from {in_words(one[0])} to {in_words(one[-1])}" for key, one in pairs]


def _charts(view: SweepView) -> list[Chart]:
    """The final value of each design against the horizontal key, one chart per combination of the others."""
    if not view.is_number(view.x):
        return []
    where = view.final[view.x].values
    order = np.argsort(where, kind="stable")
    log = is_log(view.measure, [view.final.values])
    charts = []
    for panel in list(view.panels(view.x))[:_MOST_CHARTS]:
        series = []
        for design in view.designs:
            values = view.final.isel(panel.place).sel(design=design).values[order]
            half = np.nan_to_num(view.half.isel(panel.place).sel(design=design).values[order], posinf=0.0)
            shown = np.where(np.isfinite(values), values, np.nan)
            low = np.where(shown - half > 0, shown - half, shown / 3) if log else shown - half
            series.append(Series(design, {view.x: where[order]}, shown, low, shown + half))
        title = panel.words.replace("\n", ", ") or f"by {view.x}"
        charts.append(Chart(title, series, view.measure.label, x_log=spread_out(where), y_log=log))
    return charts
