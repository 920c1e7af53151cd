"""The standard section of a record: curves, table, visits, walks, and the sentences above them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from freewalk.checks import show
from freewalk.errors import RecordError
from freewalk.graphs import Graph
from freewalk.linear.arrays import Floats, Ints
from freewalk.report import measures
from freewalk.report.measures import UPDATES, USUAL, Band, Measure, Parts, check, graph_of, heavy_of, joined
from freewalk.report.page.model import Chart, Section, Series, Table, Verdict, Walks
from freewalk.report.page.payload import MOST_STEPS
from freewalk.report.summary import Summary, in_digits, summary_of, with_interval
from freewalk.run.record import Record

if TYPE_CHECKING:
    import xarray

Curve = tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike]

_BANDS = {
    "quantiles": " Band: from the 10 % to the 90 % quantile of the walks.",
    "confidence": " Band: 95 % confidence interval of the mean.",
    "none": "",
}
_INTERRUPTED = "The run was interrupted; this page shows the part that was completed."
_ORIGINS = ("graph", "problem", "seed", "steps", "walks", "runtime", "precision", "versions", "platform")
_GRAPHS = {
    "ring": "a ring",
    "path": "a path",
    "star": "a star",
    "complete": "a complete graph",
    "erdos_renyi": "an Erdős–Rényi graph",
    "watts_strogatz": "a Watts–Strogatz graph",
    "barabasi_albert": "a Barabási–Albert graph",
}
_PROBLEMS = {"LeastSquares": "least squares", "Logistic": "logistic regression"}
_COUNTS = {"samples": "samples", "dim": "parameters"}
_NAMED = 3  # designs that are named together; more are counted


def section_of(
    record: Record,
    *,
    graph: Graph | None = None,
    exact: xarray.Dataset | None = None,
    published: Mapping[str, Curve] | None = None,
    verdicts: Sequence[Verdict] = (),
    title: str | None = None,
    text: Sequence[str] = (),
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
    band
        The band around the mean: "quantiles" (10 % to 90 % of the walks), "confidence" (the 95 % confidence interval of
        the mean) or "none".
    measure
        The variable to show; None: the primary measure of the record.
    axes
        The horizontal axes to choose from, which the table counts up to the goal: "updates", or variables by walk and
        step that never decrease. None: updates, messages, and all other counts of the record that begin at 0. Curves
        that have none of them are left out.
    """
    if graph is not None:
        check.instance("section_of", "graph", graph, Graph, "the Graph that the record ran on")
    if published is not None:
        check.instance("section_of", "published", published, Mapping, "a mapping of designs to curves")
    check.instance("section_of", "text", text, (list, tuple), "a list of paragraphs")
    check.choice("section_of", "band", band, _BANDS)
    parts, shown = measures.by_design(record), measures.measure_of(record.data, measure)
    against, count = measures.axes_of(parts, shown, axes), measures.walks_in_words(parts)
    summary = summary_of(record, measure=measure, axes=list(against))
    means = list(_means(parts, shown, against, band))
    log = measures.is_log(shown, (np.asarray(one.y) for one in means))
    chart = Chart(
        title="Learning curves",
        series=[*means, *_exact(exact, list(parts), shown, against), *_published(published or {}, against)],
        y_label=shown.label,
        x_log=measures.is_spread(parts, shown, against),
        y_log=log,
        lines={} if shown.optimum is None or (log and shown.optimum <= 0) else {"optimum": shown.optimum},
        note=f"Line: mean over {count}.{_BANDS[band]}" if count != "1 walk" else "A single walk.",
    )
    return Section(
        title=title if title is not None else str(record.data.attrs.get("name", record.label)),
        text=[*text, *([_INTERRUPTED] if record.partial else [])],
        charts=[chart],
        verdicts=verdicts,
        walks=_walks(record, parts, graph_of(record, graph)),
        tables=[Table(*summary.tabulated())],
        details=_details(record),
        lead=lead_of(summary, graph),
    )


def _means(parts: Parts, measure: Measure, axes: Mapping[str, str], band: Band) -> Iterator[Series]:
    for label, part in parts.items():
        values, diverged = measures.values_of(part, measure.name), measures.diverged_of(part, measure)
        mean, low, high = measures.mean_and_band(values, band, rises=measure.rises, best=measure.optimum)
        shaded = len(values) > 1 and band != "none"
        where = {words: measures.along(part, axis) for axis, words in axes.items()}
        known = {words: counts for words, counts in where.items() if np.isfinite(counts).all()}
        note = f"{diverged} of {len(values)} diverged" if diverged else ""
        if known:
            yield Series(label, known, mean, low if shaded else None, high if shaded else None, note=note)


def _exact(
    exact: xarray.Dataset | None, labels: list[str], measure: Measure, axes: Mapping[str, str]
) -> Iterator[Series]:
    import xarray

    if exact is None:
        return
    check.instance("section_of", "exact", exact, xarray.Dataset, "what exact_curve returns")
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
    sources = {words: "step" if axis == UPDATES else axis for axis, words in axes.items()}
    for label in exact.design.values:
        one = exact.sel(design=label)
        kept = {words: _curve(f"exact.{key}", one[key].values) for words, key in sources.items() if key in one}
        values = _curve(f"exact.{name}", one[name].values)
        if kept:
            # Side by side, shorter curves are padded with NaN.
            known = np.logical_and.reduce([np.isfinite(counts) for counts in kept.values()])
            where = {words: counts[known] for words, counts in kept.items()}
            yield Series(str(label), where, values[known], kind="exact")


def _published(published: Mapping[str, Curve], axes: Mapping[str, str]) -> Iterator[Series]:
    expected = "arrays alike: updates and values, or updates, messages and values"
    for label, curve in published.items():
        name = f"published[{show(label)}]"
        several = isinstance(curve, (list, tuple)) and len(curve) in (2, 3)
        arrays = [_curve(name, one, f"give {expected}") for one in curve] if several else []
        if len({one.size for one in arrays}) != 1:
            raise check.fail("section_of", name, curve, expected)
        *counts, values = (one[np.argsort(arrays[0], kind="stable")] for one in arrays)
        given = dict(zip(USUAL, counts, strict=False))
        if kept := {words: given[axis] for axis, words in axes.items() if axis in given}:
            yield Series(label, kept, values, kind="published")


def _curve(name: str, values: ArrayLike, remedy: str = "") -> Floats:
    return check.floats("section_of", name, values, (None,), finite=False, remedy=remedy)


def _walks(record: Record, parts: Parts, graph: Graph | None) -> Walks:
    heavy = heavy_of(record)
    kept = {label: ones for label, part in parts.items() if (ones := _kept(part))}
    # The path to animate: the first that visits a heavy node within the animation, or else the first.
    paths = {label: next((path for path in ones if meets(path, heavy)), ones[0]) for label, ones in kept.items()}
    chosen = any(paths[label] is not ones[0] for label, ones in kept.items())
    note = f"The first stored walk of each design{' that visits a heavy node' * chosen}."
    first = next(iter(parts.values()))
    importance = first.smoothness.values if "smoothness" in first else np.ones(record.data.sizes["node"])
    visits = {label: measures.visits_of(part) for label, part in parts.items()}
    return Walks(graph, heavy, importance, paths, visits, note)


def _kept(part: xarray.Dataset) -> list[Ints]:
    """The stored paths of a design."""
    if "path" not in part or not part.sizes["kept"]:
        return []
    known = (path[np.isfinite(path).cumprod().astype(bool)] for path in measures.paths_of(part))
    return [path.astype(np.int64) for path in known if path.size]  # NaN after an interruption


def meets(path: ArrayLike, heavy: Sequence[int]) -> bool:
    """Whether a path visits a heavy node within the updates that the animation shows."""
    return bool(np.isin(np.asarray(path)[: MOST_STEPS + 1], list(heavy)).any())


def _details(record: Record) -> dict[str, str]:
    """What the record says about its origin, if all designs agree."""
    found, sources = {}, _sources(record)
    for name in _ORIGINS:
        value, *others = [source[name] for source in sources if name in source] or [None]
        if value is not None and all(other == value for other in others):
            words = ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, dict) else str(value)
            found[name] = f"{value:,}" if isinstance(value, int) and name != "seed" else words
    return found


def _sources(record: Record) -> list[Mapping[str, Any]]:
    """The provenance of each run in the record."""
    return list(record.provenance.get("parts", {"": record.provenance}).values())


def lead_of(summary: Summary, graph: Graph | None = None) -> str:
    """What was run, and which design reached the goal first and by what factor."""
    record, parts = summary.record, summary.parts
    steps = int(record.data.step.values[-1])
    rounds = "rounds" if measures.rounds_differ(parts) else "updates"
    each = "Per design, " if len(parts) > 1 else ""
    problems = {str(source.get("problem", "")) for source in _sources(record)}
    problem = _problem(problems.pop()) if len(problems) == 1 else ""
    setting = f"{each}{measures.walks_in_words(parts)} of {steps:,} {rounds} on {_graph(record, graph)}{problem}."
    return f"{setting} {_best(summary) if summary.goal is None else _conclusion(summary, summary.goal.level)}"


def _graph(record: Record, graph: Graph | None) -> str:
    known, n, heavy = graph_of(record, graph), record.data.sizes["node"], len(heavy_of(record))
    name = known.name if known is not None else ""
    some = f", {heavy:,} of them heavy" if heavy else ""
    if grid := re.fullmatch(r"grid\((\d+), ?(\d+)\)", name):
        return f"a {grid[1]} × {grid[2]} grid of {n:,} nodes{some}"
    kind = _GRAPHS.get(name.split("(")[0])
    if kind is None:
        kind = f"the graph {name!r}" if name and "(" not in name else "a graph"
    return f"{kind} of {n:,} nodes{some}"


def _problem(text: str) -> str:
    """Such as "; least squares (1,000 samples, 10 parameters)"; empty for an empty text."""
    name = re.split(r"[^\w]", text, maxsplit=1)[0]
    found = {key: re.search(rf"\b{key}=(\d+)", text) for key in _COUNTS}
    counts = ", ".join(f"{int(one[1]):,} {_COUNTS[key]}" for key, one in found.items() if one)
    return f"; {_PROBLEMS.get(name, name)}{f' ({counts})' if counts else ''}" if text else ""


def _conclusion(summary: Summary, level: float) -> str:
    """Which design was first.

    Designs named "centralized" draw any node at every update, whatever the edges are; they are mentioned separately.
    """
    axis = UPDATES if UPDATES in summary.axes else next(iter(summary.axes))
    goal = f"the goal (mean {summary.measure.name} ≤ {level:.4g})"
    counts = {row.label: row.to_goal[axis] for row in summary.rows}
    reached = {label: count for label, count in counts.items() if count is not None}
    if len(counts) == 1:
        (count,) = counts.values()
        return f"It did not reach {goal}." if count is None else f"It reached {goal} after {in_digits(count)} {axis}."
    if not reached:
        return f"No design reached {goal}."
    central = {label: count for label, count in reached.items() if re.search(r"\bcentrali[sz]ed", label, re.IGNORECASE)}
    walks = {label: count for label, count in reached.items() if label not in central}
    apart, missing = bool(walks and central), [label for label, count in counts.items() if count is None]
    words = [_race(walks if apart else reached, f"{goal} first{' of the walks on the graph' * apart}", axis)]
    if missing:
        words.append(f"{_names(missing)} did not reach it.")
    if apart:
        least = in_digits(min(central.values()))
        words.append(f"{_names(central)}, which can draw any node at every update, needed {least}.")
    return " ".join(words)


def _race(counts: Mapping[str, float], goal: str, axis: str) -> str:
    """Who was first, and by what factor the others were slower."""
    order = sorted(set(counts.values()))

    def at(place: int) -> str:
        return _names([label for label, count in counts.items() if count == order[place]])

    def more(place: int) -> str:
        ratio = order[place] / order[0] if order[0] else float("inf")
        return f"{f'{ratio:.2g}' if ratio < 99.5 else in_digits(ratio)} times as many ({in_digits(order[place])})"

    words = f"{at(0)} reached {goal}, after {in_digits(order[0])} {axis}"
    words += f". {at(1)}, next, needed {more(1)}" if len(order) > 1 else ""
    words += f"; {at(-1)}, last, {more(-1)}" if len(order) > 2 else ""
    return f"{words}."


def _best(summary: Summary) -> str:
    """Where there is no goal: which design ended best."""
    name, rises = summary.measure.name, summary.measure.rises
    order = sorted((row for row in summary.rows if np.isfinite(row.final)), key=lambda row: row.final, reverse=rises)
    finals = [with_interval(row.final, row.half_width) for row in order]
    if not order:
        return f"No design ended with a finite {name}."
    if len(summary.rows) == 1:
        return f"The final {name} is {finals[0]}."
    which = "highest" if rises else "lowest"
    words = f"{_names([order[0].label])} ended with the {which} mean {name}, {finals[0]}"
    if len(order) > 1:
        words += f"; {_names([order[1].label])}, next, with {finals[1]}"
    return f"{words}."


def _names(labels: Sequence[str] | Mapping[str, Any]) -> str:
    some = [f"“{label}”" for label in labels]
    return joined(some if len(some) <= _NAMED else [*some[: _NAMED - 1], f"{len(some) - _NAMED + 1} others"])
