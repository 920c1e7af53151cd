"""What a record says, as one row a design."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import RecordError
from freewalk.record import Record

if TYPE_CHECKING:
    import xarray
    from rich.table import Table

FACTOR = 1.5


@dataclass(frozen=True)
class Row:
    """One design.

    Attributes
    ----------
    label
        Its name.
    walks, diverged
        How many walks there were, and how many of them have values that are not finite.
    updates, messages
        The first checkpoint at which the mean over the walks is at most `FACTOR` × the optimum, and the mean number of
        messages until then; None where it was not reached or there is no optimum to compare with.
    final
        The mean of the loss at the last checkpoint over all walks; not finite where one has diverged.
    half_width
        Half of its 95 % confidence interval, 1.96 sd / √walks; NaN for a single walk.
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


def measure(data: "xarray.Dataset") -> str:
    """The loss that reports show: "mse" where there is one, else "loss".

    Raises
    ------
    RecordError
        If nothing was learned.
    """
    for name in ("mse", "loss"):
        if name in data:
            return name
    raise RecordError("report: the record has no loss, expected one made by fw.learn (fw.walk does not learn)")


def by_design(record: Record) -> "dict[str, xarray.Dataset]":
    """The measurements of each design, without the checkpoints that an interrupted one did not reach."""
    data = record.data
    if not {"walk", "step"} <= set(data.dims):
        raise RecordError("report: there are no walks in the record, expected one made by fw.learn or a spec")
    if "design" not in data.dims:
        return {record.label: data}
    parts = {str(label): data.sel(design=label) for label in data.design.values}
    # Messages are counted at every checkpoint, also by a walk that has diverged.
    return {label: part.isel(step=np.flatnonzero(part.messages.notnull().any("walk"))) for label, part in parts.items()}


def optimum(record: Record) -> float | None:
    """The best value that the shown loss can take, where it is known."""
    value = record.data.attrs.get(f"optimal_{measure(record.data)}")
    return None if value is None else float(value)


def summarize(record: Record) -> list[Row]:
    """One row a design.

    Parameters
    ----------
    record
        Of one run, or several side by side.

    Raises
    ------
    RecordError
        If nothing was learned.
    """
    return [_row(label, part, optimum(record)) for label, part in by_design(record).items()]


def _row(label: str, data: "xarray.Dataset", best: float | None) -> Row:
    values = _values(data, measure(data))
    messages = _values(data, "messages").mean(axis=0)
    steps = data.step.values
    walks = values.shape[0]
    with np.errstate(all="ignore"):
        curve = values.mean(axis=0)
        half_width = 1.96 * values[:, -1].std(ddof=1) / math.sqrt(walks) if walks > 1 else math.nan
    reached = np.flatnonzero(curve <= FACTOR * best) if best is not None else np.empty(0, dtype=int)
    first = int(reached[0]) if reached.size else None
    heavy = list(data.attrs.get("heavy", []))
    visits = data.visits.sum([name for name in data.visits.dims if name != "node"]).values
    return Row(
        label=label,
        walks=walks,
        diverged=int(data.diverged.sum()) if "diverged" in data else int((~np.isfinite(values).all(axis=1)).sum()),
        updates=None if first is None else int(steps[first]),
        messages=None if first is None else float(messages[first]),
        final=float(curve[-1]),
        half_width=float(half_width),
        heavy_share=float(visits[heavy].sum() / visits.sum()) if heavy and visits.sum() else None,
        messages_per_update=float(messages[-1] / max(int(steps[-1]), 1)),
    )


def _values(data: "xarray.Dataset", name: str) -> NDArray[np.float64]:
    return np.asarray(data[name].transpose("walk", "step").values, dtype=np.float64)


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


def table(record: Record) -> "Table":
    """The rows as a table for a terminal."""
    from rich import box
    from rich.table import Table

    best, name = optimum(record), measure(record.data)
    caption = f"± is the 95 % confidence interval of the mean over {record.data.sizes['walk']:,} walks"
    if best is not None:
        gaps = np.diff(record.data.step.values)
        spacing = f", one every {int(gaps[0]):,} updates" if gaps.size and (gaps == gaps[0]).all() else ""
        caption += f"; the optimal {name} is {best:.4g}. Updates and messages: at the first checkpoint{spacing}, "
        caption += f"at which the mean is at most {FACTOR} × the optimum"
    shown = Table(
        title="partial: the run was interrupted" if record.partial else None,
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    shown.add_column("design", overflow="fold", min_width=12, vertical="bottom")
    # Narrow headings: all columns fit on a terminal of 80.
    for heading in (
        f"updates\nto {FACTOR} ×\noptimum",
        f"messages\nto {FACTOR} ×\noptimum",
        "final loss" if name == "loss" else f"final loss\n({name})",
        "time on\nheavy\nnodes",
        "messages\nper\nupdate",
    ):
        shown.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    for row in summarize(record):
        shown.add_row(*cells(row))
    return shown


def cells(row: Row) -> list[Any]:
    """A row as the table shows it."""
    from rich.text import Text

    diverged = f"{row.diverged} of {row.walks} diverged"
    cells = [
        row.label,
        "—" if row.updates is None else f"{row.updates:,}",
        "—" if row.messages is None else f"{row.messages:,.0f}",
        diverged if row.diverged else with_interval(row.final, row.half_width),
        "—" if row.heavy_share is None else f"{100 * row.heavy_share:.1f} %",
        f"{row.messages_per_update:.2f}",
    ]
    return [Text(cell) for cell in cells]  # a label may hold brackets, which rich would read as markup


def text(record: Record, width: int = 110) -> str:
    """The table as plain text."""
    from io import StringIO

    from rich.console import Console

    console = Console(file=StringIO(), width=width, color_system=None, force_terminal=False)
    console.print(table(record))
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"  # type: ignore[attr-defined]
