"""The result of a comparison: one row per contestant, as a table, a figure, a page and files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from freewalk.checks import Checks
from freewalk.comparison.steps import EXACT, GIVEN, SEARCH, Budget
from freewalk.errors import RecordError
from freewalk.linear.arrays import Floats
from freewalk.report.measures import HUGE, crossings
from freewalk.report.summary import plain_text, table_of
from freewalk.run.record import Record
from freewalk.storage.files import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

#: What is counted until the goal.
AXES = ("updates", "messages", "bytes", "rounds")
#: The files of a comparison.
RECORD, CURVES, TABLE, PAGE, NUMBERS = "record.npz", "curves.png", "table.txt", "page.html", "comparison.json"

_RESAMPLES = 1000
_LEVELS = (0.025, 0.975)
_UNITS = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"))
_check = Checks(RecordError)


class Span(NamedTuple):
    """A count and its 95 % confidence interval; the ends are NaN if there is none, and infinite if unknown."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True)
class Finish:
    """The result of one contestant.

    Attributes
    ----------
    label
        Its name.
    step
        The step it was run with; None for a schedule, or a rule without a step.
    how
        How the step was chosen: "exact", by the exact steady state, if no larger one was faster; "search", in pilot
        runs; or "given".
    to_goal
        By axis ("updates", "messages", "bytes", "rounds"): what it took until the first measured round at which the
        mean over the walks was at the goal, averaged over the walks, with its 95 % confidence interval; None if it was
        not reached.
    in_all
        The same at the end of the run.
    final
        The mean of the measure at the end of the run; infinite if a walk has diverged.
    walks, diverged
        The number of walks, and of diverged walks.
    draws
        Whether the run is random; otherwise there is one walk and no interval.
    stayed
        Whether the mean stayed at the goal after reaching it: at most one checkpoint in twenty was above it again.
    pilot_runs, pilot_updates
        What the search for its step has spent, over all walks and tokens.
    """

    label: str
    step: float | None
    how: str
    to_goal: Mapping[str, Span | None]
    in_all: Mapping[str, float]
    final: float
    walks: int
    draws: bool
    stayed: bool = True
    diverged: int = 0
    pilot_runs: int = 0
    pilot_updates: int = 0

    @property
    def reached(self) -> bool:
        """Whether it reached the goal."""
        return all(span is not None for span in self.to_goal.values())


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of `fw.compare`.

    Attributes
    ----------
    rows
        One per contestant, in order.
    record
        The runs side by side, by `design`.
    goal, level, optimum, measure
        The goal is reached when the mean of the measure is at most `level`, which is `goal` times the optimum.
    most
        The maximum number of updates per walk, after which a contestant counts as not reaching the goal.
    budget
        The budget for the search for a step, per contestant.
    """

    rows: tuple[Finish, ...]
    record: Record = field(repr=False)
    goal: float
    level: float
    optimum: float
    measure: str
    most: int
    budget: Budget

    @property
    def partial(self) -> bool:
        """Whether it was interrupted, so that contestants are missing."""
        return self.record.partial

    def __str__(self) -> str:
        return self.text()

    @property
    def caption(self) -> str:
        """The explanation below the table."""
        rows, budget, hows = self.rows, self.budget, {row.how for row in self.rows}
        walks = max(row.walks for row in rows)
        ends = [span.high for row in rows for span in row.to_goal.values() if span is not None]
        searched = [row for row in rows if row.how in (EXACT, SEARCH)]
        runs, updates = sum(row.pilot_runs for row in searched), sum(row.pilot_updates for row in searched)
        still = "" if all(row.draws for row in rows) else "; 'no draws': nothing is random, one run"
        remarks = {
            f"Counted until the first measured round at the goal: a mean {self.measure} of at most {self.level:.4g}, "
            f"which is {self.goal:g} times the optimum. Updates are those of all tokens of a walk. Each count comes "
            f"with its 95 % confidence interval, by a bootstrap over {walks:,} walks{still}.": True,
            "Steps are those that took the fewest rounds, and stayed at the goal, in pilot runs with another seed; "
            f"the budget for each method was {budget.runs} runs of {budget.walks} walks and {short(budget.updates)} "
            f"updates, and {len(searched)} of them spent {runs} runs and {short(updates)} updates together.": searched,
            "Step 'exact': its expected loss settles at half of the goal's distance from the optimum, and no larger "
            "one was quicker.": EXACT in hows,
            "Step 'given': as the method had it.": GIVEN in hows,
            "'?': the mean was above the goal again later.": any(row.reached and not row.stayed for row in rows),
            "'≥': the interval has no upper end, because some resamples of the walks miss the goal.": np.inf in ends,
            f"'>': not reached; a walk may make {short(self.most)} updates.": not all(row.reached for row in rows),
        }
        return " ".join(words for words, apply in remarks.items() if apply)

    def tabulated(self) -> tuple[list[str], list[list[str]]]:
        """The headings and rows of the table, as strings of one or two lines."""
        cells = []
        for row in self.rows:
            step = "—" if row.step is None else f"{row.step:.3g}"
            final = f"{row.diverged} of {row.walks}\ndiverged" if row.diverged else f"{row.final:.3g}"
            cells.append([row.label, f"{step}\n{row.how}", *(_count(row, axis) for axis in AXES), final])
        return ["method", "step", *AXES, f"final {self.measure}"], cells

    def table(self) -> Table:
        """The rows for a terminal of 80 columns or more."""
        from rich.text import Text

        head, rows = self.tabulated()
        caption = Text(self.caption, style="table.caption")
        shown = table_of([heading.replace(" ", "\n") for heading in head], rows, caption, vertical="top")
        shown.title = "partial: the comparison was interrupted" if self.partial else None
        shown.padding = (0, 1, 0, 0)
        return shown

    def text(self, width: int = 100) -> str:
        """The table as plain text of the given width."""
        return plain_text(self.table(), width)

    def figure(self) -> Figure:
        """Plot the measure against updates, messages, bytes and rounds, with the goal as a line."""
        from freewalk.report.figures import curves_figure

        return curves_figure(
            self.record,
            measure=self.measure,
            axes=AXES,
            band="confidence",
            lines={self._goal: self.level},
            most_columns=2,
        )

    @property
    def _goal(self) -> str:
        return f"goal: {self.goal:g} × optimum"

    def page(self, path: str | os.PathLike[str], title: str = "Comparison") -> Path:
        """Write one self-contained HTML page: interactive curves, the table, and where the tokens went."""
        from freewalk.report import Page, Table, section_of, write_page

        section = section_of(self.record, title=title, band="confidence", measure=self.measure, axes=AXES)
        head, rows = self.tabulated()
        rows = [[cell.replace("\n", " · ") for cell in row] for row in rows]
        table = Table(["method", "step", *(f"{axis} to the goal" for axis in AXES), head[-1]], rows, self.caption)
        lines = {self._goal: self.level, "optimum": self.optimum}
        charts = [replace(chart, lines=lines) for chart in section.charts]
        return write_page(Page(title, [replace(section, charts=charts, tables=[table], lead="")]), path)

    def as_dict(self) -> dict[str, Any]:
        """All numbers, ready for JSON; infinite and unknown ones are None."""
        rows = [
            {**asdict(row), "to_goal": {axis: one and one._asdict() for axis, one in row.to_goal.items()}}
            for row in self.rows
        ]
        found = {name: getattr(self, name) for name in ("goal", "level", "optimum", "measure", "most", "partial")}
        return dict(_plain({**found, "budget": asdict(self.budget), "rows": rows}))

    def save(self, folder: str | os.PathLike[str], title: str = "Comparison") -> Path:
        """Write record, table, figure, page and numbers (JSON) into a folder, which is created if necessary.

        Raises
        ------
        RecordError
            If a file cannot be written.
        """
        from freewalk.report.figures import save

        target = _check.path("save", "folder", folder)
        target.mkdir(parents=True, exist_ok=True)
        self.record.save(target / RECORD)
        write(target / TABLE, self.text())
        save(self.figure(), target / CURVES)
        self.page(target / PAGE, title)
        write(target / NUMBERS, json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n")
        return target


def _count(row: Finish, axis: str) -> str:
    span = row.to_goal[axis]
    if span is None:
        return f"> {short(row.in_all[axis])}"
    value = short(span.value) + " ?" * (not row.stayed)
    if not row.draws:
        return f"{value}\nno draws"
    return value if math.isnan(span.low) else f"{value}\n{short_range(span.low, span.high)}"


def short(number: float) -> str:
    """Format a count with three digits: below 1000 a whole number, at least 1 if there is anything."""
    return "".join(_scaled(number))


def short_range(low: float, high: float) -> str:
    """Format two counts with three digits each; only the first, as a bound, if the second is not known."""
    if math.isinf(high):
        return f"≥ {short(low)}" if math.isfinite(low) else "not known"
    (first, one), (_, other) = _scaled(low), _scaled(high)
    return f"{first if one == other else short(low)}–{short(high)}"


def _scaled(number: float) -> tuple[str, str]:
    """The digits of a count, and its unit after a space."""
    rounded = float(f"{round(number) or math.ceil(number):.3g}")
    size, unit = next((one for one in _UNITS if rounded >= one[0]), (1.0, ""))
    return f"{rounded / size:.3g}", unit


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def spans(values: Floats, level: float, counts: Mapping[str, Floats], seed: int) -> dict[str, Span | None]:
    """By axis: what it takes until the mean over the walks is at most `level`, with a bootstrap over the walks."""
    walks = len(values)
    bounded = np.where(np.isfinite(values), np.minimum(values, HUGE), HUGE)
    whole = crossings(bounded.mean(axis=0)[None], level, between=False)
    if not np.isfinite(whole[0]):
        return dict.fromkeys(counts)
    by_walk = {axis: np.broadcast_to(one, values.shape) for axis, one in counts.items()}
    found = {axis: float(_at(one.mean(axis=0)[None], whole)[0]) for axis, one in by_walk.items()}
    if walks < 2:
        return {axis: Span(value) for axis, value in found.items()}
    shares = np.random.default_rng(seed).multinomial(walks, np.full(walks, 1 / walks), size=_RESAMPLES) / walks
    places = crossings(shares @ bounded, level, between=False)
    ends: dict[str, Span | None] = {}
    for axis, one in by_walk.items():
        drawn = _at(shares @ one, places)
        low, high = np.quantile(drawn, _LEVELS[0], method="lower"), np.quantile(drawn, _LEVELS[1], method="higher")
        ends[axis] = Span(found[axis], float(low), float(high))
    return ends


def _at(counts: Floats, places: Floats) -> Floats:
    """The counts of each row at a checkpoint; infinite at an infinite position."""
    known = np.isfinite(places)
    return np.where(known, counts[np.arange(len(counts)), np.where(known, places, 0).astype(np.int64)], np.inf)
