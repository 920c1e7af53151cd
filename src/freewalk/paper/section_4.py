"""Section IV: whether a node that holds a walk pushes the model to its own optimum, and whether that slows the walk."""

from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.checks import Floats
from freewalk.graphs import Graph
from freewalk.objectives import LeastSquares
from freewalk.paper.claims import ClaimShare, Finding, by_name, verdict
from freewalk.paper.files import study_table
from freewalk.report.figures import COLOURS, INK, Where, drawing
from freewalk.report.page import Table, Verdict
from freewalk.report.summary import in_digits
from freewalk.run.learn import learn
from freewalk.specs.catalogue import build

if TYPE_CHECKING:
    import xarray

_UNIFORM, _IMPORTANCE, _JUMPS = "MH uniform", "MH importance", "MHLJ"


def own_distance(problem: LeastSquares, node: int, models: Floats) -> Floats:
    """The squared distance of models from the optima of a node that has one sample, (y − aᵀx)² / ‖a‖²."""
    features, target = problem.features[node], problem.targets[node]
    return np.asarray((target - models @ features) ** 2 / (features @ features))


def rank_correlation(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation; NaN where one of the two does not vary."""
    ranks = np.array([_ranks(x), _ranks(y)])
    return float(np.corrcoef(ranks)[0, 1]) if (np.ptp(ranks, axis=1) > 0).all() else np.nan


def _ranks(values: Floats) -> Floats:
    """1 for the least value; equal ones share the mean of their ranks."""
    # scipy.stats has this, but takes a second to import.
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], dtype=np.float64)


def numbers(spec: dict[str, Any]) -> "xarray.Dataset":
    """By draw of the data, setting, design and number of updates: distances from both optima, and updates at the node.

    The first draw is that of the spec's problem. The others are followed at fewer checkpoints; the rest of them is NaN.
    """
    import xarray

    draws = [spec["problem"]["seed"], *spec["others"]["seeds"]]
    rows = []
    for setting in spec["setting"]:
        graph, parts = build("graph", setting["graph"], f"section 4: {setting['label']}"), []
        for seed in draws:
            table = {**spec["problem"], "shift": setting["shift"], "seed": seed}
            problem = build("problem", table, "section 4: [problem]", n=graph.n)
            some = spec if seed == draws[0] else {**spec, **spec["others"]}
            parts.append(_follow(problem, graph, some).reindex(updates=spec["updates"]))
        rows.append(xarray.concat(parts, dim="draw"))
    labels = [setting["label"] for setting in spec["setting"]]
    data = xarray.concat(rows, dim="setting").assign_coords(setting=labels, draw=draws)
    return data.assign_attrs(label="section 4", look=spec["look"])


def _follow(problem: LeastSquares, graph: Graph, spec: dict[str, Any]) -> "xarray.Dataset":
    """The walks of every design on one problem, from its heaviest node."""
    import xarray

    node, best = int(problem.smoothness.argmax()), problem.optimum()
    names = ("own", "own_mean", "distance", "visits", "correlation")
    found = np.zeros((len(names), len(spec["walk"]), len(spec["updates"])))
    share = []
    for j, walk in enumerate(spec["walk"]):
        kernel = build("design", walk["design"], "section 4: design").kernel(graph, problem.smoothness)
        rule = build("rule", walk["rule"], "section 4: rule")
        share.append(kernel.target[node])
        for k, steps in enumerate(spec["updates"]):
            # The same seed: each run is the beginning of the next one.
            options = {"steps": steps, "every": steps, "walks": spec["walks"], "seed": spec["seed"]}
            record = learn(problem, kernel, rule, start=node, **options)
            models, visits = record.data.final.values, record.data.visits.values[:, node]
            own, distance = own_distance(problem, node, models), ((models - best) ** 2).sum(axis=1)
            related = rank_correlation(visits, distance)
            found[:, j, k] = np.median(own), own.mean(), distance.mean(), visits.mean(), related
    first, last = own_distance(problem, node, np.array([np.zeros(problem.dim), best]))
    return xarray.Dataset(
        {
            **{name: (("design", "updates"), values) for name, values in zip(names, found, strict=True)},
            "share": ("design", share),
            "own_at_start": first,
            "own_at_optimum": last,
            "distance_at_start": best @ best,
        },
        coords={"design": [walk["label"] for walk in spec["walk"]], "updates": spec["updates"]},
    )


def judge(data: "xarray.Dataset") -> list[Verdict]:
    """What happens at the node, whether that slows the walk, and whether it takes the model away from x*.

    A verdict is that of the other draws of the data, or that of the first if it is the only one; the number is that of
    the first.
    """
    return [_verdict(data, **claim) for claim in study_table("section-4")["claim"]]


def _verdict(data: "xarray.Dataset", text: str, setting: int, measure: str, **notes: str) -> Verdict:
    """The verdict on a claim about one setting."""
    part = data.isel(setting=setting)
    here, *others = (_MEASURES[measure](part.isel(draw=draw)) for draw in range(data.sizes["draw"]))
    share = None
    if others:
        holds, values = sum(bool(one.holds) for one in others), [one.value for one in others]
        share = ClaimShare(holds, len(others), len(others), min(values), max(values), "other draws")
    text = f"{part.setting.item()}: {text.format(look=format(data.attrs['look'], ','))}"
    return verdict(text, here, share, **notes)


def _at(part: "xarray.Dataset", name: str, design: str) -> float:
    """A number at the checkpoint of the tests."""
    return float(part[name].sel(design=design, updates=part.attrs["look"]))


# Each of these tests one draw in one setting.


def _same_data(part: "xarray.Dataset") -> Finding:
    made, look = _at(part, "visits", _IMPORTANCE), part.attrs["look"]
    share = float(part.share.sel(design=_IMPORTANCE))
    holds = bool(made >= 0.5 * look and made >= 2 * share * look)
    return Finding(holds, f"{made:,.0f} updates; its share is {100 * share:.3g} %", value=made)


def _pushed(part: "xarray.Dataset") -> Finding:
    own, best, start = _at(part, "own", _IMPORTANCE), float(part.own_at_optimum), float(part.own_at_start)
    number = f"{own:.2g} against {best:.2g} (squared distances); at the start {start:.2g}"
    return Finding(own < best, number, value=own / best)


def _others_are_not(part: "xarray.Dataset") -> Finding:
    best, found = float(part.own_at_optimum), {label: _at(part, "own", label) for label in (_UNIFORM, _JUMPS)}
    times = min(found.values()) / best
    return Finding(times >= 10, ", ".join(f"{label} {value:.2g}" for label, value in found.items()), value=times)


def _slower(part: "xarray.Dataset") -> Finding:
    importance, uniform = (_at(part, "distance", label) for label in (_IMPORTANCE, _UNIFORM))
    times = importance / uniform
    return Finding(times >= 1.1, f"{times:.3g} × ({importance:.3g} against {uniform:.3g})", value=times)


def _goes_along(part: "xarray.Dataset") -> Finding:
    found = _at(part, "correlation", _IMPORTANCE)
    return Finding(found >= 0.5, f"{found:.2f}", value=found)


def _led_away(part: "xarray.Dataset") -> Finding:
    course = part.distance.sel(design=_IMPORTANCE) / part.distance_at_start
    largest, look = float(course.max()), part.attrs["look"]
    number = f"at most {largest:.3f} × the start; after {look:,} updates {float(course.sel(updates=look)):.3g} ×"
    return Finding(largest > 1, number, value=largest)


def _over(part: "xarray.Dataset") -> Finding:
    importance, uniform = (_at(part, "distance", label) for label in (_IMPORTANCE, _UNIFORM))
    own, best, course = _at(part, "own", _IMPORTANCE), float(part.own_at_optimum), part.own.sel(design=_IMPORTANCE)
    number = f"{own:.2g} against {best:.2g}; {importance:.2g} against {uniform:.2g}"
    if course.min() < best:
        number += f". Before, after {int(course.idxmin()):,} updates, it was down to {float(course.min()):.2g}"
    return Finding(own > best and importance < uniform, number, value=importance / uniform)


_MEASURES = by_name(_same_data, _pushed, _others_are_not, _slower, _goes_along, _led_away, _over)


def table(_: dict[str, Any], data: "xarray.Dataset") -> Table:
    """The numbers at the checkpoint of the claims."""
    rows = []
    for setting in data.setting.values:
        part = data.sel(setting=setting).isel(draw=0)
        best = float(part.own_at_optimum)
        for design in data.design.values:
            visits, related = _at(part, "visits", design), _at(part, "correlation", design)
            own, own_mean, distance = (_at(part, name, design) for name in ("own", "own_mean", "distance"))
            distances = [f"{value:.2g}" for value in (own, own_mean, best, distance)]
            rows.append([f"{setting}, {design}", in_digits(visits), *distances, f"{related:.2f}"])
    made = study_table("section-4")["table"]
    return Table(made["head"], rows, made["caption"].format(look=data.attrs["look"]))


def draw(data: "xarray.Dataset", path: Where, footer: str) -> None:
    """By setting, the distance from the node's own optimum and that from x*, as the walks go."""
    with drawing(path, 10.8, 6.6, footer=footer) as figure:
        panels = figure.subplots(2, data.sizes["setting"], sharex=True, sharey="row")
        for column, setting in enumerate(data.setting.values):
            part = data.sel(setting=setting).isel(draw=0)
            for axes, name in zip(panels[:, column], ("own", "distance"), strict=True):
                axes.set(xscale="log", yscale="log")
                for colour, design in zip(COLOURS, data.design.values, strict=False):
                    curve = part[name].sel(design=design)
                    axes.plot(data.updates, curve, "o-", color=colour, markersize=3.5, label=str(design))
            dashed: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": (0, (4, 3))}
            panels[0, column].axhline(float(part.own_at_optimum), label="x*", **dashed)
            panels[0, column].set_title(str(setting))
            panels[1, column].set_xlabel("updates")
        panels[0, 0].set_ylabel("squared distance from\nthe node's own optimum, median")
        panels[1, 0].set_ylabel("squared distance from x*, mean")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
