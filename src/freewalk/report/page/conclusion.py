"""The sentences at the top of the page of a run: what was run, and which design reached the goal first."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from freewalk.graphs import Graph
from freewalk.report.measures import UPDATES, by_design, measure_of, rounds_differ, walks_in_words
from freewalk.report.nodes import graph_of, heavy_of
from freewalk.report.summary import Row, goal_of, summarize, with_interval
from freewalk.run.record import Record

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


def lead_of(
    record: Record,
    graph: Graph | None = None,
    *,
    measure: str | None = None,
    axes: Sequence[str] | None = None,
    goal: float | None = None,
) -> str:
    """What was run, and which design reached the goal first and by what factor.

    Designs named "centralized" draw any node at every update, whatever the edges are; they are mentioned separately.

    Parameters
    ----------
    record
        The record of one run, or of several side by side.
    graph
        The graph; None: that of the record.
    measure, axes, goal
        As for `summarize`.
    """
    return f"{_setting(record, graph)} {_conclusion(record, measure, axes, goal)}"


def _setting(record: Record, graph: Graph | None) -> str:
    sources = list(record.provenance.get("parts", {"": record.provenance}).values())
    parts = by_design(record)
    walks = walks_in_words(parts)
    steps = int(record.data.step.values[-1])
    rounds = "rounds" if rounds_differ(parts) else "updates"
    each = "Per design, " if len(parts) > 1 else ""
    problem = _agreed(sources, "problem")
    data = f"; {_problem(problem)}" if problem else ""
    return f"{each}{walks} of {steps:,} {rounds} on {_graph(record, graph)}{data}."


def _agreed(sources: Sequence[Mapping[str, Any]], name: str) -> str:
    values = {str(source.get(name, "")) for source in sources}
    return values.pop() if len(values) == 1 else ""


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
    """Such as "least squares (1,000 samples, 10 parameters)"."""
    name = re.split(r"[^\w]", text, maxsplit=1)[0]
    found = {key: re.search(rf"\b{key}=(\d+)", text) for key in _COUNTS}
    counts = ", ".join(f"{int(one[1]):,} {_COUNTS[key]}" for key, one in found.items() if one)
    return f"{_PROBLEMS.get(name, name)}{f' ({counts})' if counts else ''}"


def _conclusion(record: Record, measure: str | None, axes: Sequence[str] | None, goal: float | None) -> str:
    shown, wanted = measure_of(record.data, measure), goal_of(record, goal, measure)
    rows = summarize(record, goal, measure=measure, axes=axes)
    if wanted is None:
        return _best(rows, shown.name, shown.rises)
    axis = UPDATES if UPDATES in rows[0].to_goal else next(iter(rows[0].to_goal), None)
    level = f"the goal (mean {shown.name} ≤ {wanted.level:.4g})"
    counts = {row.label: row.to_goal.get(axis) for row in rows} if axis else {}
    reached = {label: count for label, count in counts.items() if count is not None}
    if not reached:
        return f"No design reached {level}." if len(rows) > 1 else f"It did not reach {level}."
    if len(rows) == 1:
        return f"It reached {level} after {_count(next(iter(reached.values())))} {axis}."
    walks = {label: count for label, count in reached.items() if not _central(label)}
    central = {label: count for label, count in reached.items() if _central(label)}
    apart = bool(walks and central)
    return f"{_race(walks if apart else reached, level, axis, apart)}{_missing(counts)}" + (
        f" {_names(central)}, which can draw any node at every update, needed {_count(min(central.values()))}."
        if apart
        else ""
    )


def _race(counts: Mapping[str, float], level: str, axis: str | None, apart: bool) -> str:
    """Who was first, and by what factor the others were slower."""
    order = sorted(set(counts.values()))
    first = [label for label, count in counts.items() if count == order[0]]
    of = " of the walks on the graph" if apart else ""
    words = f"{_names(first)} reached {level} first{of}, after {_count(order[0])} {axis}"
    if len(order) > 1:
        nearby = [label for label, count in counts.items() if count == order[1]]
        words += f". {_names(nearby)}, next, needed {_factor(order[1], order[0])} as many ({_count(order[1])})"
    if len(order) > 2:
        last = [label for label, count in counts.items() if count == order[-1]]
        words += f"; {_names(last)}, last, {_factor(order[-1], order[0])} as many ({_count(order[-1])})"
    return f"{words}."


def _missing(counts: Mapping[str, float | None]) -> str:
    missing = [label for label, count in counts.items() if count is None]
    return f" {_names(missing)} did not reach it." if missing else ""


def _best(rows: Sequence[Row], name: str, rises: bool) -> str:
    """Where there is no goal: which design ended best."""
    finite = [row for row in rows if row.final == row.final and abs(row.final) != float("inf")]
    if not finite:
        return f"No design ended with a finite {name}."
    order = sorted(finite, key=lambda row: row.final, reverse=rises)
    final = with_interval(order[0].final, order[0].half_width)
    if len(rows) == 1:
        return f"The final {name} is {final}."
    which = "highest" if rises else "lowest"
    words = f"{_names([order[0].label])} ended with the {which} mean {name}, {final}"
    if len(order) > 1:
        words += f"; {_names([order[1].label])}, next, with {with_interval(order[1].final, order[1].half_width)}"
    return f"{words}."


def _central(label: str) -> bool:
    return re.search(r"\bcentrali[sz]ed", label, re.IGNORECASE) is not None


def _names(labels: Sequence[str] | Mapping[str, Any]) -> str:
    some = [f"“{label}”" for label in labels]
    if len(some) > _NAMED:
        return f"{', '.join(some[: _NAMED - 1])} and {len(some) - _NAMED + 1} others"
    return " and ".join([", ".join(some[:-1]), some[-1]] if len(some) > 1 else some)


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _factor(slow: float, fast: float) -> str:
    ratio = slow / fast if fast else float("inf")
    return f"{ratio:.2g} times" if ratio < 99.5 else f"{_count(ratio)} times"
