"""The summary table of a record: one row per design."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from freewalk.linear.arrays import Floats
from freewalk.report import measures
from freewalk.report.measures import ROUNDS, UPDATES, USUAL, Measure, Parts, check
from freewalk.run.record import Record

if TYPE_CHECKING:
    import xarray
    from rich.table import Table
    from rich.text import Text

#: The goal, as a fraction of the initial gap: the first of these that at least half of the designs reach, or the last.
GOALS = (0.01, 0.1, 0.5)


@dataclass(frozen=True)
class Row:
    """One design."""

    label: str
    walks: int
    diverged: int
    #: The cost to the first checkpoint at which the mean over the walks reaches the goal, by axis, averaged over the
    #: walks; None if the goal was not reached or there is none.
    to_goal: Mapping[str, float | None]
    #: The cost to the last checkpoint, by axis; None if the design lacks the axis.
    in_all: Mapping[str, float | None]
    final: float  # averaged over all walks; not finite if one of them is not
    half_width: float  # half of its 95 % confidence interval, by Student's t; NaN for a single walk
    heavy_share: float | None  # of the visits; None if no node is marked as heavy
    messages_per_update: float  # over the whole run

    @property
    def updates(self) -> float | None:
        """Until the goal; None where that was not reached or not asked for."""
        return self.to_goal.get(UPDATES)

    @property
    def messages(self) -> float | None:
        """Until the goal; None where that was not reached or not asked for."""
        return self.to_goal.get("messages")


@dataclass(frozen=True)
class GapGoal:
    """The goal of all designs: a mean loss at most `fraction` of the way from the optimum to the initial loss.

    If designs start from different models, the largest gap counts.
    """

    fraction: float
    level: float
    optimum: float
    initial: float


@dataclass(frozen=True, eq=False)
class Summary:
    """A record as its table shows it."""

    record: Record
    parts: Parts
    measure: Measure
    axes: Mapping[str, str]  # what is counted, with labels
    goal: GapGoal | None
    rows: Sequence[Row]

    def tabulated(self) -> tuple[list[str], list[list[str]], str]:
        """The headings, rows and caption of the table, as texts."""
        until = "in all" if self.goal is None else "to the goal"
        head = ["design", *(f"{label} {until}" for label in self.axes.values())]
        head += [f"final {self.measure.name}", "time on heavy nodes", "messages per update"]
        cells = [_cells(row, row.in_all if self.goal is None else row.to_goal) for row in self.rows]
        return head, cells, " ".join(self._caption())

    def _caption(self) -> Iterator[str]:
        goal, differ = self.goal, measures.rounds_differ(self.parts)
        if any(row.walks > 1 for row in self.rows):
            yield f"± is the 95 % confidence interval of the mean over {measures.walks_in_words(self.parts)}."
        if goal is not None:
            gaps = np.diff(self.record.data.step.values)
            unit = "rounds" if differ else "updates"
            spacing = f" (one every {int(gaps[0]):,} {unit})" if gaps.size and (gaps == gaps[0]).all() else ""
            yield (
                f"Goal: a mean {self.measure.name} of at most {goal.level:.4g}, where {100 * goal.fraction:.4g} % of "
                f"the initial gap to the optimum is left (initially {goal.initial:.4g}, at best {goal.optimum:.4g}). "
                f"Counted until the first checkpoint{spacing} that reaches it."
            )
        if differ:
            yield "Updates are those of all tokens of a walk; in a round each token visits one node."
        if any(row.diverged for row in self.rows):
            yield "Diverged: the error grew without bound; use a smaller step."
        graph, heavy = measures.graph_of(self.record), measures.heavy_of(self.record)
        if heavy and graph is not None and graph.node_names is not None:
            yield f"Heavy nodes: {measures.in_words(graph, heavy)}."


def summary_of(
    record: Record, goal: float | None = None, measure: str | None = None, axes: Sequence[str] | None = None
) -> Summary:
    """The summary of a record; parameters as for `summarize`."""
    parts, shown = measures.by_design(record), measures.measure_of(record.data, measure)
    usual = (*USUAL, ROUNDS) if measures.rounds_differ(parts) else USUAL
    counted = measures.axes_of(parts, shown, usual if axes is None else axes)
    wanted, heavy = _goal(parts, shown, goal), measures.heavy_of(record)
    rows = [_row(label, part, shown, list(counted), wanted, heavy) for label, part in parts.items()]
    return Summary(record, parts, shown, counted, wanted, rows)


def summarize(
    record: Record, goal: float | None = None, *, measure: str | None = None, axes: Sequence[str] | None = None
) -> list[Row]:
    """One row per design.

    Parameters
    ----------
    record
        Of one run, or several side by side.
    goal
        A design reaches the goal when the gap between its mean loss and the optimum is at most this fraction of the
        initial gap. Default: 1 %, or 10 % or 50 % if fewer than half of the designs get closer.
    measure
        The variable. Default: the primary measure of the record. If higher is better, there is no goal.
    axes
        What is counted to the goal: "updates" (of all tokens of a walk), "rounds", or variables by walk and step
        that never decrease, such as "messages" and "bytes". Default: updates, messages, and rounds if they differ
        from updates.
    """
    return list(summary_of(record, goal, measure, axes).rows)


def _goal(parts: Parts, measure: Measure, goal: float | None) -> GapGoal | None:
    """The goal; None if the optimum is not known or already reached at the start, or if higher is better."""
    if goal is not None:
        goal = check.real("table", "goal", goal, above=0.0, high=1.0, remedy="0.01 is 1 % of the initial gap")
    means = [_mean(part, measure) for part in parts.values()]
    best, starts = measure.optimum, [float(curve[0]) for curve in means if curve.size and np.isfinite(curve[0])]
    if measure.rises or best is None or not starts or not max(starts) - best > 1e-12 * abs(best):
        return None
    gap = max(starts) - best
    goals = [GapGoal(one, best + one * gap, best, max(starts)) for one in (GOALS if goal is None else (goal,))]
    reached = [sum(bool((curve <= one.level).any()) for curve in means) for one in goals]
    return next((one for one, count in zip(goals, reached, strict=True) if 2 * count >= len(means)), goals[-1])


def _row(
    label: str, data: "xarray.Dataset", measure: Measure, axes: Sequence[str], goal: GapGoal | None, heavy: list[int]
) -> Row:
    values, curve, visits = measures.values_of(data, measure.name), _mean(data, measure), measures.visits_of(data)
    first = np.inf if goal is None else measures.crossings(curve[None], goal.level, between=False)[0]
    counts = {axis: measures.along(data, axis) for axis in axes}

    return Row(
        label=label,
        walks=values.shape[0],
        diverged=measures.diverged_of(data, measure),
        to_goal={axis: _known(one[int(first)]) if np.isfinite(first) else None for axis, one in counts.items()},
        in_all={axis: _known(one[-1]) for axis, one in counts.items()},
        final=float(curve[-1]),
        half_width=float(measures.half_width(values)[-1]),
        heavy_share=float(visits[heavy].sum() / visits.sum()) if heavy and visits.sum() else None,
        messages_per_update=float(measures.along(data, "messages")[-1] / max(measures.along(data, UPDATES)[-1], 1)),
    )


def _known(count: float) -> float | None:
    return None if math.isnan(count) else float(count)


def _mean(data: "xarray.Dataset", measure: Measure) -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(measures.values_of(data, measure.name).mean(axis=0))


def _cells(row: Row, counts: Mapping[str, float | None]) -> list[str]:
    diverged = f"{row.diverged} of {row.walks} diverged"
    return [
        row.label,
        *("—" if count is None else in_digits(count) for count in counts.values()),
        diverged if row.diverged else with_interval(row.final, row.half_width),
        "—" if row.heavy_share is None else f"{100 * row.heavy_share:.1f} %",
        f"{row.messages_per_update:.2f}",
    ]


def in_digits(count: float) -> str:
    """A count, with as many digits as matter."""
    return f"{count:,.0f}" if count >= 100 else f"{count:.3g}"


def with_interval(mean: float, half_width: float) -> str:
    """A number with as many digits as its uncertainty allows; an uncertainty below six digits is left out."""
    if not math.isfinite(half_width) or half_width <= 0:
        return f"{mean:.4g}"
    if half_width < 1e-6 * abs(mean):
        return f"{mean:.6g}"
    if not 1e-4 <= abs(mean) < 1e5:
        return f"{mean:.3e} ± {half_width:.0e}"
    digits = max(0, -math.floor(math.log10(half_width)))
    return f"{mean:.{digits}f} ± {half_width:.{digits}f}"


def table(
    record: Record, goal: float | None = None, *, measure: str | None = None, axes: Sequence[str] | None = None
) -> "Table":
    """The summary as a table for a terminal of 80 columns or more; parameters as for `summarize`."""
    from rich.text import Text

    head, rows, caption = summary_of(record, goal, measure, axes).tabulated()
    # Narrow headings, so that all columns fit.
    narrow = [head[0], *(textwrap.fill(heading, 8, break_long_words=False) for heading in head[1:])]
    shown = table_of(narrow, rows, Text(caption, style="table.caption"))
    shown.title = "partial: the run was interrupted" if record.partial else None
    return shown


def table_of(
    head: Sequence[str], rows: Iterable[Sequence[str]], caption: "Text", vertical: Literal["top", "bottom"] = "bottom"
) -> "Table":
    """A table of numbers for a terminal, whose first column names the row."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(caption=caption, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column(Text(head[0]), overflow="fold", min_width=12, vertical=vertical)
    for heading in head[1:]:
        shown.add_column(Text(heading), justify="right", no_wrap=True, vertical=vertical)
    for row in rows:
        shown.add_row(*map(Text, row))  # a label may contain brackets, which rich would read as markup
    return shown


def text(record: Record, width: int = 110, *, measure: str | None = None, axes: Sequence[str] | None = None) -> str:
    """The table as plain text of this width; `measure` and `axes` as for `summarize`."""
    return plain_text(table(record, measure=measure, axes=axes), width)


def plain_text(shown: "Table", width: int) -> str:
    """A table as plain text of this width."""
    from io import StringIO

    from rich.console import Console

    written = StringIO()
    width = check.whole("text", "width", width, 20, 1000)
    Console(file=written, width=width, color_system=None, force_terminal=False).print(shown)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"
