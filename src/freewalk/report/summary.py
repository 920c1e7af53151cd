"""What a record says, as one row per design."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.record import Record
from freewalk.report.nodes import graph_of, heavy_of, in_words, visits_of
from freewalk.report.reading import by_design, diverged_of, half_width, measure, optimum, values_of, walks_in_words

if TYPE_CHECKING:
    import xarray
    from rich.table import Table

Floats = NDArray[np.float64]

#: The goal, as a fraction of the initial gap: the first of these that at least half of the designs reach, or the last.
GOALS = (0.01, 0.1, 0.5)

_check = Checks(RecordError)


@dataclass(frozen=True)
class Row:
    """One design.

    Attributes
    ----------
    label
        Its name.
    walks, diverged
        How many walks there were, and how many of them have diverged.
    updates, messages
        The first checkpoint at which the mean over the walks has reached the goal, and the mean number of messages
        until then; None where it was not reached or there is no optimum to compare with.
    final
        The mean of the loss at the last checkpoint over all walks; not finite where the loss of one is not.
    half_width
        Half of its 95 % confidence interval, by Student's t; NaN for a single walk.
    heavy_share
        The share of the visits that went to heavy nodes; None where no node is known as heavy.
    messages_per_update
        Over the whole run.
    """

    label: str
    walks: int
    diverged: int
    updates: int | None
    messages: float | None
    final: float
    half_width: float
    heavy_share: float | None
    messages_per_update: float


@dataclass(frozen=True)
class Goal:
    """What a design has to reach: a mean loss at most `fraction` of the way from the optimum to the initial loss.

    Attributes
    ----------
    fraction
        Of the initial gap between loss and optimum; the largest where designs began with different models.
    level
        The loss to reach.
    optimum, initial
        The ends of that gap.
    """

    fraction: float
    level: float
    optimum: float
    initial: float

    def in_words(self, name: str) -> str:
        """The goal as a caption explains it; `name` is what is measured."""
        return (
            f"Goal: a mean {name} of at most {self.level:.4g}, where {100 * self.fraction:.4g} % of the initial gap to "
            f"the optimum is left (initially {self.initial:.4g}, at best {self.optimum:.4g})."
        )


def goal_of(record: Record, goal: float | None = None) -> Goal | None:
    """The goal of a record, the same for all designs; None where the optimum is not known, or was there at the start.

    Parameters
    ----------
    record
        Of one run, or several side by side.
    goal
        A fraction of the initial gap; None: 1 %, or 10 % or 50 % where fewer than half of the designs get nearer.

    Raises
    ------
    RecordError
        If it is no such fraction.
    """
    if goal is not None:
        goal = _check.real("table", "goal", goal, above=0.0, high=1.0, remedy="0.01 is 1 % of the initial gap")
    means = [_mean(part) for part in by_design(record).values()]
    best, starts = optimum(record), [float(curve[0]) for curve in means if curve.size and np.isfinite(curve[0])]
    if best is None or not starts or not max(starts) - best > 1e-12 * abs(best):
        return None
    gap = max(starts) - best
    fractions = GOALS if goal is None else (goal,)
    goals = [Goal(one, best + one * gap, best, max(starts)) for one in fractions]
    reached = [sum(bool((curve <= one.level).any()) for curve in means) for one in goals]
    return next((one for one, count in zip(goals, reached, strict=True) if 2 * count >= len(means)), goals[-1])


def summarize(record: Record, goal: float | None = None) -> list[Row]:
    """One row per design.

    Parameters
    ----------
    record
        Of one run, or several side by side.
    goal
        When a design is there: where the gap between its mean loss and the optimum is at most this fraction of the
        initial one. None: 1 %, or 10 % or 50 % where fewer than half of the designs get nearer.

    Raises
    ------
    RecordError
        If nothing was learned.
    """
    wanted, heavy = goal_of(record, goal), heavy_of(record)
    return [_row(label, part, wanted, heavy) for label, part in by_design(record).items()]


def _row(label: str, data: "xarray.Dataset", goal: Goal | None, heavy: list[int]) -> Row:
    values, curve, visits = values_of(data), _mean(data), visits_of(data)
    messages, steps = values_of(data, "messages").mean(axis=0), data.step.values
    reached = np.flatnonzero(curve <= goal.level) if goal is not None else np.empty(0, dtype=int)
    first = int(reached[0]) if reached.size else None
    return Row(
        label=label,
        walks=values.shape[0],
        diverged=diverged_of(data),
        updates=None if first is None else int(steps[first]),
        messages=None if first is None else float(messages[first]),
        final=float(curve[-1]),
        half_width=float(half_width(values)[-1]),
        heavy_share=float(visits[heavy].sum() / visits.sum()) if heavy and visits.sum() else None,
        messages_per_update=float(messages[-1] / max(int(steps[-1]), 1)),
    )


def _mean(data: "xarray.Dataset") -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(values_of(data).mean(axis=0))


def with_interval(mean: float, half_width: float) -> str:
    """A number and its uncertainty, with as many digits as that leaves.

    Examples
    --------
    >>> with_interval(0.0131234, 0.000042), with_interval(1.5e-7, 2e-9), with_interval(2.0, float("nan"))
    ('0.01312 ± 0.00004', '1.500e-07 ± 2e-09', '2')
    """
    if not math.isfinite(half_width) or half_width <= 0:
        return f"{mean:.4g}"
    if not 1e-4 <= abs(mean) < 1e5:
        return f"{mean:.3e} ± {half_width:.0e}"
    digits = max(0, -math.floor(math.log10(half_width)))
    return f"{mean:.{digits}f} ± {half_width:.{digits}f}"


def caption_of(record: Record, goal: Goal | None) -> str:
    """What the columns of the table mean."""
    words = [f"± is the 95 % confidence interval of the mean over {walks_in_words(by_design(record))}."]
    if goal is not None:
        gaps = np.diff(record.data.step.values)
        spacing = f" (one every {int(gaps[0]):,} updates)" if gaps.size and (gaps == gaps[0]).all() else ""
        words.append(f"{goal.in_words(measure(record.data))} Updates and messages are counted until the first")
        words.append(f"checkpoint{spacing} that reaches it.")
    graph, heavy = graph_of(record), heavy_of(record)
    if heavy and graph is not None and graph.node_names is not None:
        words.append(f"Heavy nodes: {in_words(graph, heavy)}.")
    return " ".join(words)


def table(record: Record, goal: float | None = None) -> "Table":
    """The rows as a table for a terminal of 80 columns or more.

    Parameters
    ----------
    record
        Of one run, or several side by side.
    goal
        As for `summarize`.

    Raises
    ------
    RecordError
        If nothing was learned.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows, name = summarize(record, goal), measure(record.data)
    shown = Table(
        title="partial: the run was interrupted" if record.partial else None,
        caption=Text(caption_of(record, goal_of(record, goal)), style="table.caption"),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    shown.add_column("design", overflow="fold", min_width=12, vertical="bottom")
    # Narrow headings: all columns fit on a terminal of 80.
    for heading in (
        "updates\nto the\ngoal",
        "messages\nto the\ngoal",
        "final loss" if name == "loss" else f"final loss\n({name})",
        "time on\nheavy\nnodes",
        "messages\nper\nupdate",
    ):
        shown.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    for row in rows:
        shown.add_row(*map(Text, cells(row)))  # a label may hold brackets, which rich would read as markup
    return shown


def cells(row: Row) -> list[str]:
    """A row as the table shows it."""
    diverged = f"{row.diverged} of {row.walks} diverged"
    return [
        row.label,
        "—" if row.updates is None else f"{row.updates:,}",
        "—" if row.messages is None else f"{row.messages:,.0f}",
        diverged if row.diverged else with_interval(row.final, row.half_width),
        "—" if row.heavy_share is None else f"{100 * row.heavy_share:.1f} %",
        f"{row.messages_per_update:.2f}",
    ]


def text(record: Record, width: int = 110) -> str:
    """The table as plain text."""
    from io import StringIO

    from rich.console import Console

    width = _check.whole("text", "width", width, 20, 1000)
    console = Console(file=StringIO(), width=width, color_system=None, force_terminal=False)
    console.print(table(record))
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"  # type: ignore[attr-defined]
