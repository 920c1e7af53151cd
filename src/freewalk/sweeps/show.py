"""The results of a sweep: a table, figures and a page, in its folder."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from freewalk.report.measures import is_log
from freewalk.report.page import Chart, Page, Section, Series, Table, write_page
from freewalk.report.sweeps import HALF, SweepView, spread_out, sweep_curves, sweep_lines, sweep_map, tabulated, view_of
from freewalk.run.record import versions
from freewalk.storage import files
from freewalk.sweeps.folder import SweepFolder
from freewalk.sweeps.points import in_words

if TYPE_CHECKING:
    import xarray
    from rich.table import Table as RichTable

TABLE, LINES, CURVES, MAP, PAGE = "table.csv", "lines.png", "curves.png", "map.png", "page.html"
_MOST_ROWS = 30  # on a terminal
_MOST_CHARTS, _MOST_ON_PAGE = 12, 500  # charts and rows on a page


def show(folder: SweepFolder, measure: str | None = None, x: str | None = None) -> "tuple[RichTable, list[str]]":
    """Write the table, the figures and the page of the finished points; return what a terminal shows of them.

    The measure is the primary one by default, and the key on the horizontal axis that with the most values.
    """
    data = folder.gather("mean")
    view = view_of(data, measure, x)
    path, options = folder.path, {"measure": measure, "x": x}
    files.write(path / TABLE, _as_csv(folder, data, view.measure.name))
    sweep_lines(data, path / LINES, **options)
    sweep_curves(data, path / CURVES, **options)
    images = {"Learning curves": path / CURVES}
    names = {"table": TABLE, "lines": LINES, "curves": CURVES}
    if view.others:
        sweep_map(data, path / MAP, **options)
        images["Heat maps"] = path / MAP
        names["map"] = MAP
    if not view.is_number(view.x):
        images = {"Final values": path / LINES, **images}
    write_page(_page(folder, data, view, images), path / PAGE)
    names["page"] = PAGE
    return _for_terminal(view), [f"{name:<7} {path / file}" for name, file in names.items()]


def _table(view: SweepView, most: int) -> Table:
    """The final value of each design, with up to so many rows."""
    head, rows = tabulated(view)
    left = len(rows) - most
    more = f"; {left} more rows are in {TABLE}" if left > 0 else ""
    return Table(head, rows[:most], view.footnote.replace("; band:", ", ±") + more)


def _for_terminal(view: SweepView) -> "RichTable":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = _table(view, _MOST_ROWS)
    shown = Table(caption=Text(table.caption), caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in table.head:
        shown.add_column(Text(heading), justify="right")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    return shown


def _as_csv(folder: SweepFolder, data: "xarray.Dataset", name: str) -> str:
    """One row per finished point and design: the values of the keys, the final values, and the hash."""
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([*folder.sweep.keys, "design", name, f"{name}{HALF}", "messages", "diverged", "point"])
    for point in folder.finished:
        one = data.isel({axis.name: at for axis, at in zip(folder.sweep.axes, point.place, strict=True)})
        values = [value if isinstance(value, (int, float)) else in_words(value) for value in point.setting.values()]
        for design in one.design.values:
            part = one.sel(design=design)
            there = np.flatnonzero(~np.isnan(part.messages.values.astype(np.float64)))
            if there.size:
                numbers = [float(part[key].values[there[-1]]) for key in (name, f"{name}{HALF}", "messages")]
                diverged = int(part.diverged.values) if "diverged" in part else 0
                writer.writerow([*values, design, *(f"{number:.10g}" for number in numbers), diverged, point.key])
    return written.getvalue()


def _page(folder: SweepFolder, data: "xarray.Dataset", view: SweepView, images: Mapping[str, Path]) -> Page:
    sweep = folder.sweep
    varied = [(key, values) for axis in sweep.axes for key, values in axis.values.items()]
    words = [f"{key}: {len(one)} values from {in_words(one[0])} to {in_words(one[-1])}" for key, one in varied]
    details = {"spec": sweep.spec.source, "versions": ", ".join(f"{name} {one}" for name, one in versions().items())}
    if data.attrs["left_out"]:
        details["left out"] = data.attrs["left_out"]
    table = _table(view, _MOST_ON_PAGE)
    section = Section(
        title=sweep.name,
        text=[f"{data.attrs['finished']:,} of {len(sweep):,} points. {'; '.join(words)}."],
        charts=_charts(view),
        images={words: file.read_bytes() for words, file in images.items()},
        tables=[replace(table, caption=f"{table.caption}.")],
        details=details,
    )
    return Page(f"Sweep: {sweep.name}", [section])


def _charts(view: SweepView) -> list[Chart]:
    """The final value of each design against the horizontal key, one chart per combination of the others."""
    if not view.is_number(view.x):
        return []
    log = is_log(view.measure, [view.final.values])
    charts = []
    for panel in list(view.panels(view.x))[:_MOST_CHARTS]:
        series = []
        for design in view.designs:
            where, shown, low, high = view.line(panel, design, log=log)
            series.append(Series(design, {view.x: where}, shown, low, high))
        title = panel.words.replace("\n", ", ") or f"by {view.x}"
        charts.append(Chart(title, series, view.measure.label, x_log=spread_out(view.final[view.x].values), y_log=log))
    return charts
