"""The standard section of a record: curves, table, visits and walks."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.errors import RecordError
from freewalk.graphs import Graph
from freewalk.record import Record
from freewalk.report.page.model import Chart, Section, Series, Table, Verdict, Walks
from freewalk.report.statistics import is_spread, mean_and_band, values_of
from freewalk.report.summary import FACTOR, by_design, cells, measure, optimum, summarize

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]
Curve = tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike]


def section_of(
    record: Record,
    *,
    graph: Graph | None = None,
    exact: "xarray.Dataset | None" = None,
    published: Mapping[str, Curve] | None = None,
    verdicts: Sequence[Verdict] = (),
    title: str | None = None,
    text: Sequence[str] = (),
    details: Mapping[str, str] | None = None,
) -> Section:
    """Make the section of a record.

    Parameters
    ----------
    record
        Of one run, or several side by side; for the animation with paths, `learn(..., paths=5)`.
    graph
        The graph it ran on; without it nodes are shown and edges are not.
    exact
        Exact curves by (design, step), or by step for a record of one design: the measure that the record shows, "mse"
        or "loss", and "messages".
    published
        Published curves by design: updates and values, or updates, messages and values. A name that is not in the
        record is a curve of its own.
    verdicts
        The rows of the table of claims.
    title, text
        The heading, by default the name of the record, and the paragraphs below it.
    details
        Where the numbers come from; None: graph, problem, seeds and versions, as the record tells them.

    Returns
    -------
    Section
        For `Page`.

    Raises
    ------
    RecordError
        If nothing was learned, or the graph or the exact curves are not those of the record.
    """
    if not isinstance(record, Record):
        kind = type(record).__name__
        raise RecordError(f"section_of: got something of type {kind}, expected a Record; fw.load reads one from a file")
    parts, name, best = by_design(record), measure(record.data), optimum(record)
    series = [_mean(label, part) for label, part in parts.items()]
    series += _exact(exact, list(parts), name)
    series += [_published(label, curve) for label, curve in (published or {}).items()]
    count = record.data.sizes["walk"]
    note = f"Line: mean over {count:,} walks. Band: from the 10 % to the 90 % quantile of the walks."
    chart = Chart(
        title="Learning curves",
        series=series,
        y_label="mean squared error" if name == "mse" else "loss",
        x_log=is_spread(parts),
        lines={} if best is None or best <= 0 else {"optimum": best},
        note=note if count > 1 else "One walk.",
    )
    return Section(
        title=title if title is not None else str(record.data.attrs.get("name", record.label)),
        text=[*text, *(["The run was interrupted: what there is of it is shown."] if record.partial else [])],
        charts=[chart],
        verdicts=list(verdicts),
        walks=_walks(record, parts, graph),
        tables=[_table(record, best, name)],
        details=details if details is not None else _details(record),
    )


def _mean(label: str, part: "xarray.Dataset") -> Series:
    values = values_of(part)
    mean, low, high = mean_and_band(values)
    walks, diverged = values.shape[0], int((~np.isfinite(values).all(axis=1)).sum())
    axes = {"updates": part.step.values, "messages": part.messages.mean("walk").values}
    note = f"{diverged} of {walks} diverged" if diverged else ""
    return Series(label, axes, mean, low if walks > 1 else None, high if walks > 1 else None, note=note)


def _exact(exact: "xarray.Dataset | None", labels: list[str], name: str) -> list[Series]:
    if exact is None:
        return []
    if "design" not in exact.dims:
        if len(labels) > 1:
            raise RecordError("section_of: exact has no dimension 'design', expected one: the record has several")
        exact = exact.expand_dims({"design": labels})
    strays = [str(label) for label in exact.design.values if str(label) not in labels]
    if strays:
        raise RecordError(f"section_of: exact has the designs {strays}, expected some of {labels}; rename them")
    if name not in exact:
        raise RecordError(f"section_of: exact has {sorted(map(str, exact))}, expected {name!r}, which the record shows")
    return [_exact_one(str(label), exact.sel(design=label), name) for label in exact.design.values]


def _exact_one(label: str, one: "xarray.Dataset", name: str) -> Series:
    values = np.asarray(one[name].values, dtype=np.float64)
    axes = {"updates": np.asarray(one.step.values, dtype=np.float64)}
    if "messages" in one:
        axes["messages"] = np.asarray(one.messages.values, dtype=np.float64)
    # Side by side, curves of different lengths are filled up with NaN.
    known = np.logical_and.reduce([np.isfinite(axis) for axis in axes.values()])
    return Series(label, {key: axis[known] for key, axis in axes.items()}, values[known], kind="exact")


def _published(label: str, curve: Curve) -> Series:
    try:
        updates, *messages, values = (np.asarray(one, dtype=np.float64) for one in curve)
        order = np.argsort(updates, kind="stable")
        axes = dict(zip(("updates", "messages"), (axis[order] for axis in (updates, *messages)), strict=False))
        return Series(str(label), axes, values[order], kind="published")
    except (TypeError, ValueError, IndexError) as error:
        raise RecordError(
            f"section_of: published[{label!r}] cannot be used ({error}), expected arrays alike: updates and values"
        ) from error


def _walks(record: Record, parts: "dict[str, xarray.Dataset]", graph: Graph | None) -> Walks:
    n = record.data.sizes["node"]
    if graph is not None and graph.n != n:
        raise RecordError(f"section_of: graph has {graph.n} nodes, expected {n}; pass the graph that the record ran on")
    visits = {label: _visits(part) for label, part in parts.items()}
    paths = {}
    for label, part in parts.items():
        if "path" in part and part.sizes["kept"]:
            path = np.asarray(part.path.transpose("kept", "time").values[0], dtype=np.float64)
            path = path[: int(np.isfinite(path).cumprod().sum())]  # an interrupted one is filled up with NaN
            if path.size:
                paths[label] = path
    first = next(iter(parts.values()))
    importance = first.smoothness.values if "smoothness" in first else np.ones(n)
    return Walks(graph, list(record.data.attrs.get("heavy", [])), importance, paths, visits)


def _visits(part: "xarray.Dataset") -> Floats:
    counts = part.visits.sum([name for name in part.visits.dims if name != "node"])
    return np.asarray(counts.values, dtype=np.float64)


def _table(record: Record, best: float | None, name: str) -> Table:
    head = ["design", f"updates to {FACTOR} × optimum", f"messages to {FACTOR} × optimum"]
    head += [f"final {name}", "time on heavy nodes", "messages per update"]
    caption = f"± is the 95 % confidence interval of the mean over {record.data.sizes['walk']:,} walks"
    if best is not None:
        caption += (
            f"; the optimal {name} is {best:.4g}. Updates and messages: at the first checkpoint at which the mean "
        )
        caption += f"is at most {FACTOR} × the optimum"
    return Table(head, [[cell.plain for cell in cells(row)] for row in summarize(record)], caption + ".")


def _details(record: Record) -> dict[str, str]:
    """What the record tells about its making, where all designs agree."""
    sources = list(record.provenance.get("parts", {"": record.provenance}).values())
    found = {}
    for name in ("graph", "problem", "seed", "steps", "walks", "runtime", "precision", "versions", "platform"):
        values = [source[name] for source in sources if name in source]
        if values and all(value == values[0] for value in values):
            value = values[0]
            words = ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, dict) else str(value)
            found[name] = f"{value:,}" if isinstance(value, int) and name != "seed" else words
    return found
