"""The standard section of a record: curves, table, visits and walks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.checks import Checks, show
from freewalk.errors import RecordError
from freewalk.graphs import Graph
from freewalk.report.measures import (
    UPDATES,
    USUAL,
    Measure,
    along,
    axes_of,
    by_design,
    diverged_of,
    measure_of,
    values_of,
    walks_in_words,
)
from freewalk.report.nodes import graph_of, heavy_of, paths_of, visits_of
from freewalk.report.page.conclusion import lead_of
from freewalk.report.page.model import Chart, Section, Series, Table, Verdict, Walks
from freewalk.report.page.payload import MOST_STEPS
from freewalk.report.statistics import Band, check_band, is_log, is_spread, mean_and_band
from freewalk.report.summary import tabulated
from freewalk.run.record import Record

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]
Curve = tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike]

_check = Checks(RecordError)
_BANDS = {
    "quantiles": " Band: from the 10 % to the 90 % quantile of the walks.",
    "confidence": " Band: 95 % confidence interval of the mean.",
    "none": "",
}
_FIRST = "The first stored walk of each design."


def section_of(
    record: Record,
    *,
    graph: Graph | None = None,
    exact: xarray.Dataset | None = None,
    published: Mapping[str, Curve] | None = None,
    verdicts: Sequence[Verdict] = (),
    title: str | None = None,
    text: Sequence[str] = (),
    details: Mapping[str, str] | None = None,
    band: Band = "quantiles",
    measure: str | None = None,
    axes: Sequence[str] | None = None,
) -> Section:
    """Make the section of a record.

    Parameters
    ----------
    record
        The record of one run, or of several side by side. The animation needs paths: `learn(..., paths=5)`.
    graph
        The graph it ran on; None: the graph of the record. Without a graph, nodes are drawn without edges.
    exact
        Exact curves by (design, step), or by step for a record of one design: the measure that is shown and, for axes
        other than updates, their counts, such as "messages".
    published
        Published curves by design: updates and values, or updates, messages and values. A name that is not in the
        record becomes a separate curve.
    verdicts
        The rows of the table of claims.
    title, text
        The heading, by default the name of the record, and the paragraphs below it.
    details
        The origin of the numbers; None: graph, problem, seeds and versions, from the record.
    band
        The band around the mean: "quantiles" (10 % to 90 % of the walks), "confidence" (the 95 % confidence interval of
        the mean) or "none".
    measure
        The variable to show; None: the primary measure of the record.
    axes
        The horizontal axes to choose from, which the table counts up to the goal: "updates", or variables by walk and
        step that never decrease. None: updates, messages, and all other counts of the record that begin at 0. Curves
        that have none of them are left out.

    Returns
    -------
    Section
        For `Page`.

    Raises
    ------
    RecordError
        If nothing was learned, the measure or an axis does not exist, or the graph or the exact curves do not match the
        record.
    """
    if graph is not None:
        _check.instance("section_of", "graph", graph, Graph, "the Graph that the record ran on")
    if published is not None:
        _check.instance("section_of", "published", published, Mapping, "a mapping of designs to curves")
    _check.instance("section_of", "text", text, (list, tuple), "a list of paragraphs")
    check_band("section_of", band)
    parts, shown = by_design(record), measure_of(record.data, measure)
    against, count = axes_of(parts, shown, axes), walks_in_words(parts)
    means = [_mean(label, part, shown, against, band) for label, part in parts.items()]
    series = [*means, *_exact(exact, list(parts), shown, against)]
    series += [_published(label, curve, against) for label, curve in (published or {}).items()]
    log = is_log(shown, (np.asarray(one.y) for one in means if one is not None))
    chart = Chart(
        title="Learning curves",
        series=[one for one in series if one is not None],
        y_label=shown.label,
        x_log=is_spread(parts, shown, against),
        y_log=log,
        lines={} if shown.optimum is None or (log and shown.optimum <= 0) else {"optimum": shown.optimum},
        note=f"Line: mean over {count}.{_BANDS[band]}" if count != "1 walk" else "A single walk.",
    )
    return Section(
        title=title if title is not None else str(record.data.attrs.get("name", record.label)),
        text=[
            *text,
            *(["The run was interrupted; this page shows the part that was completed."] if record.partial else []),
        ],
        charts=[chart],
        verdicts=verdicts,
        walks=_walks(record, parts, graph_of(record, graph)),
        tables=[Table(*tabulated(record, measure=measure, axes=list(against)))],
        details=details if details is not None else _details(record),
        lead=lead_of(record, graph, measure=measure, axes=list(against)),
    )


def _mean(label: str, part: xarray.Dataset, measure: Measure, axes: Mapping[str, str], band: Band) -> Series | None:
    values, diverged = values_of(part, measure.name), diverged_of(part, measure)
    mean, low, high = mean_and_band(values, band, rises=measure.rises, best=measure.optimum)
    shaded = values.shape[0] > 1 and band != "none"
    where = {words: along(part, axis) for axis, words in axes.items()}
    known = {words: counts for words, counts in where.items() if np.isfinite(counts).all()}
    note = f"{diverged} of {values.shape[0]} diverged" if diverged else ""
    return Series(label, known, mean, low if shaded else None, high if shaded else None, note=note) if known else None


def _exact(
    exact: xarray.Dataset | None, labels: list[str], measure: Measure, axes: Mapping[str, str]
) -> list[Series | None]:
    import xarray

    if exact is None:
        return []
    _check.instance("section_of", "exact", exact, xarray.Dataset, "what exact_curve returns")
    if "design" not in exact.dims:
        if len(labels) > 1:
            raise RecordError("section_of: exact has no dimension 'design', expected one: the record has several")
        exact = exact.expand_dims({"design": labels})
    strays = [str(label) for label in exact.design.values if str(label) not in labels]
    if strays:
        raise RecordError(f"section_of: exact has the designs {show(strays)}, expected some of {labels}; rename them")
    name = measure.name
    if name not in exact or "step" not in exact.coords:
        found = sorted(map(str, exact.variables))
        raise RecordError(f"section_of: exact has {show(found)}, expected 'step' and {name!r}, which the record shows")
    return [_exact_one(str(label), exact.sel(design=label), name, axes) for label in exact.design.values]


def _exact_one(label: str, one: xarray.Dataset, name: str, axes: Mapping[str, str]) -> Series | None:
    sources = {words: "step" if axis == UPDATES else axis for axis, words in axes.items()}
    kept = {words: _curve(f"exact.{key}", one[key].values) for words, key in sources.items() if key in one}
    values = _curve(f"exact.{name}", one[name].values)
    if not kept:
        return None
    # Side by side, shorter curves are padded with NaN.
    known = np.logical_and.reduce([np.isfinite(counts) for counts in kept.values()])
    return Series(label, {words: counts[known] for words, counts in kept.items()}, values[known], kind="exact")


def _published(label: str, curve: Curve, axes: Mapping[str, str]) -> Series | None:
    name, expected = f"published[{show(label)}]", "arrays alike: updates and values, or updates, messages and values"
    if not isinstance(curve, (list, tuple)) or len(curve) not in (2, 3):
        raise _check.fail("section_of", name, curve, expected)
    updates, *messages, values = (_curve(name, one, f"give {expected}") for one in curve)
    if any(one.size != updates.size for one in (*messages, values)):
        raise _check.fail("section_of", name, curve, expected)
    order = np.argsort(updates, kind="stable")
    given = dict(zip(USUAL, (counts[order] for counts in (updates, *messages)), strict=False))
    kept = {words: given[axis] for axis, words in axes.items() if axis in given}
    return Series(label, kept, values[order], kind="published") if kept else None


def _curve(name: str, values: ArrayLike, remedy: str = "") -> Floats:
    return _check.floats("section_of", name, values, (None,), finite=False, remedy=remedy)


def _walks(record: Record, parts: dict[str, xarray.Dataset], graph: Graph | None) -> Walks:
    heavy = heavy_of(record)
    kept = {label: _kept(part) for label, part in parts.items()}
    paths = {label: ones[_telling(ones, heavy)] for label, ones in kept.items() if ones}
    chosen = any(_telling(ones, heavy) for ones in kept.values() if ones)
    note = "The first stored walk of each design that visits a heavy node." if chosen else _FIRST
    first = next(iter(parts.values()))
    importance = first.smoothness.values if "smoothness" in first else np.ones(record.data.sizes["node"])
    visits = {label: visits_of(part) for label, part in parts.items()}
    return Walks(graph, heavy, importance, paths, visits, note)


def _kept(part: xarray.Dataset) -> list[NDArray[np.int64]]:
    """The stored paths of a design."""
    if "path" not in part or not part.sizes["kept"]:
        return []
    lengths = [(path, int(np.isfinite(path).cumprod().sum())) for path in paths_of(part)]  # NaN after an interruption
    return [path[:length].astype(np.int64) for path, length in lengths if length]


def _telling(paths: Sequence[NDArray[np.int64]], heavy: list[int]) -> int:
    """Which path to animate: the first that visits a heavy node within the animation, or else the first."""
    return next((place for place, path in enumerate(paths) if meets(path, heavy)), 0)


def meets(path: ArrayLike, heavy: Sequence[int]) -> bool:
    """Whether a path visits a heavy node within the updates that the animation shows.

    Examples
    --------
    >>> meets([3, 2, 1, 0], [0]), meets([3, 2, 1], [0])
    (True, False)
    """
    return bool(np.isin(np.asarray(path)[: MOST_STEPS + 1], list(heavy)).any())


def _details(record: Record) -> dict[str, str]:
    """What the record says about its origin, if all designs agree."""
    sources = list(record.provenance.get("parts", {"": record.provenance}).values())
    found = {}
    for name in ("graph", "problem", "seed", "steps", "walks", "runtime", "precision", "versions", "platform"):
        values = [source[name] for source in sources if name in source]
        if values and all(value == values[0] for value in values):
            value = values[0]
            words = ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, dict) else str(value)
            found[name] = f"{value:,}" if isinstance(value, int) and name != "seed" else words
    return found
