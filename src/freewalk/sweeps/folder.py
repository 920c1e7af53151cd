"""The folder of a sweep: its spec, the record of each point, and the figures and tables made from them."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from freewalk.errors import RecordError, SpecError
from freewalk.report.measures import is_log
from freewalk.report.page import Chart, Page, Section, Series, Table, write_page
from freewalk.report.sweeps import HALF, SweepView, spread_out, sweep_curves, sweep_lines, sweep_map, tabulated, view_of
from freewalk.run.loop import Progress
from freewalk.run.record import versions
from freewalk.specs.own import Tell
from freewalk.specs.spec import INPUTS, SPEC, SWEEP
from freewalk.storage.files import write
from freewalk.sweeps.crews import Lost, crew_of
from freewalk.sweeps.dataset import Walks, gather
from freewalk.sweeps.points import Point, Sweep, in_words, plan_of, sweep_of
from freewalk.sweeps.resume import Results, compute

if TYPE_CHECKING:
    import xarray
    from rich.table import Table as RichTable

POINTS = "points"
TABLE, LINES, CURVES, MAP, PAGE = "table.csv", "lines.png", "curves.png", "map.png", "page.html"
_MOST_ROWS = 30  # on a terminal
_MOST_CHARTS, _MOST_ON_PAGE = 12, 500  # charts and rows on a page
_SHOWN = 3  # failed points listed in a message


@dataclass(frozen=True)
class SweepFolder:
    """A folder with `sweep.toml`, and `points/`, with the record of each point under its hash.

    `inputs.json` holds the location of the files and modules that the spec names. Points that are no longer part of
    the sweep stay on disk and are used again if the spec is changed back.
    """

    path: Path
    sweep: Sweep

    @property
    def results(self) -> Results:
        """The records of the points."""
        return Results(self.path / POINTS)

    @property
    def finished(self) -> list[Point]:
        """The finished points."""
        return [point for point in self.sweep.points if self.results.has(point.key)]

    @property
    def missing(self) -> list[Point]:
        """The points that are not finished."""
        return [point for point in self.sweep.points if not self.results.has(point.key)]

    @staticmethod
    def create(path: Path | None, sweep: Sweep, say: Tell | None = None) -> "SweepFolder":
        """Create the folder, or reuse that of an earlier sweep, after checking that the first point can be run.

        The default is runs/<name of the sweep>. `say` is called with messages for the user: imported code.
        """
        place = Path("runs") / sweep.name if path is None else path
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            raise SpecError(f"{place} is not a folder, expected one to write to; choose another with --out")
        if (place / SPEC).exists() or (place.is_dir() and any(place.iterdir()) and not (place / POINTS).is_dir()):
            raise SpecError(f"{place} is not the folder of a sweep, so it is left alone; choose another with --out")
        folder = SweepFolder(place, sweep)
        for point in folder.missing[:1]:
            plan_of(point.spec, say)
        (place / POINTS).mkdir(parents=True, exist_ok=True)
        if sweep.spec.files or sweep.spec.code:
            write(place / INPUTS, json.dumps({"folder": str(sweep.spec.folder.resolve())}, indent=2) + "\n")
        write(place / SWEEP, sweep.spec.text)
        return folder

    @staticmethod
    def open(path: Path, out: Path | None = None) -> "SweepFolder":
        """The folder of an earlier sweep: the folder itself, or `out` if the TOML file of the sweep is given."""
        if not path.is_dir():
            sweep = sweep_of(path)
            return SweepFolder(Path("runs") / sweep.name if out is None else out, sweep)
        if not (path / SWEEP).is_file():
            raise RecordError(f"{path}: is not the folder of a sweep (there is no {path / SWEEP})")
        return SweepFolder(path, sweep_of(path / SWEEP))

    def run(self, on: str, workers: int | None, address: str | None, tell: Progress | None) -> list[str]:
        """Compute the missing points, and return their keys; whatever ends it, finished points are kept."""
        try:
            with crew_of(on, workers, address) as crew:
                made, failed = compute(self.sweep.points, self.results, crew, tell)
            self.results.tidy()
        except (RecordError, Lost) as error:
            remedy = "free some space, then" if isinstance(error, RecordError) else "then"
            kept = f"{len(self.finished)} of {len(self.sweep)} points are finished and intact in {self.path}"
            raise type(error)(f"{error}; {kept}: {remedy} resume with the same command") from error
        if failed:
            words = {point.key: point.words for point in self.sweep.points}
            lines = [f"at {words[key]}: {error}" for key, error in failed.items()]
            lines[_SHOWN:] = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
            count = f"{len(failed)} of {len(self.sweep)} points could not be computed"
            told = f"the others are in {self.path}; {'; '.join(lines)}"
            raise SpecError(f"{self.sweep.spec.source}: {count}, {told}")
        return made

    def gather(self, walks: Walks = "all") -> "xarray.Dataset":
        """All finished points, combined."""
        return gather(self.sweep, lambda point: self.results.path(point.key), walks)


def show(folder: SweepFolder, measure: str | None = None, x: str | None = None) -> "tuple[RichTable, list[str]]":
    """Write the table, the figures and the page of the finished points; return what a terminal shows of them.

    The measure is the primary one by default, and the key on the horizontal axis that with the most values.
    """
    data = folder.gather("mean")
    view = view_of(data, measure, x)
    path, options = folder.path, {"measure": measure, "x": x}
    write(path / TABLE, _as_csv(folder, data, view.measure.name))
    sweep_lines(data, path / LINES, **options)
    sweep_curves(data, path / CURVES, **options)
    images = {"Learning curves": path / CURVES}
    if view.others:
        sweep_map(data, path / MAP, **options)
        images["Heat maps"] = path / MAP
    if not view.is_number(view.x):
        images = {"Final values": path / LINES, **images}
    write_page(_page(folder, data, view, images), path / PAGE)
    written = [TABLE, LINES, CURVES, *[MAP] * bool(view.others), PAGE]
    return _for_terminal(view), [f"{Path(name).stem:<7} {path / name}" for name in written]


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
        lines = ((design, *view.line(panel, design, log=log)) for design in view.designs)
        series = [Series(design, {view.x: where}, mean, low, high) for design, where, mean, low, high in lines]
        title = panel.words.replace("\n", ", ") or f"by {view.x}"
        charts.append(Chart(title, series, view.measure.label, x_log=spread_out(view.final[view.x].values), y_log=log))
    return charts
