"""Measure, draw and tabulate what docs/explanation/several-tokens.md says.

python docs/images/tokens.py                   # everything, about ten minutes on two cores
python docs/images/tokens.py --only variance   # one part: variance, meetings, steady, rounds
python docs/images/tokens.py --draw            # no measurements: figures and tables from docs/images/tokens/*.json
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import writing

import freewalk as fw
from freewalk.analysis import stability_limit, steady_state
from freewalk.exchanges import Average, Meet
from freewalk.report.figures import COLOURS, STYLE, new_figure, save

HERE = Path(__file__).parent / "tokens"
PAGE = Path(__file__).parents[1] / "explanation" / "several-tokens.md"
SMALL_WORLD = "Watts–Strogatz"
LARGE = "Watts–Strogatz, n = 1000"
GRAPHS = {
    "ring": fw.graphs.ring(100),
    "ring, jumps": fw.graphs.ring(100),
    "grid": fw.graphs.grid(10, 10),
    SMALL_WORLD: fw.graphs.watts_strogatz(100, 4, 0.1, seed=1),
    LARGE: fw.graphs.watts_strogatz(1000, 4, 0.1, seed=1),
}
UNIFORM = fw.designs.Metropolis()
JUMPS = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3, power=0.0, corrected=True)  # also uniform, but not periodic
MHLJ = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3)
DATA: dict[str, dict[str, Any]] = {
    "homogeneous": {},
    "heterogeneous": {"heavy": 2, "heavy_variance": 10.0, "shift": 1.0, "shifted": "all"},
}
GOALS = {"homogeneous": 0.002, "heterogeneous": 0.05}  # fraction of the initial squared distance
EXCHANGES = {"apart": None, "Meet": Meet(), "Average": Average()}
SHARES = (0.05, 0.5)  # steps, as fractions of the largest stable one
TOKENS = (2, 4, 8, 16, 32, 64)
Rows = list[dict[str, Any]]


@cache
def data_set(data: str, n: int = 100) -> Any:
    return fw.objectives.LeastSquares.synthetic(n, dim=10, noise=0.1, seed=1, **DATA[data])


@cache
def kernel_of(graph: str) -> fw.Kernel:
    return (JUMPS if graph == "ring, jumps" else UNIFORM).kernel(GRAPHS[graph])


def hessian(problem: Any) -> Any:
    return problem.features.T @ problem.features / problem.n


def settling_rounds(problem: Any, step: float) -> int:
    """Rounds after which the second moments are within exp(−8) of their limit, and walks on these rings are mixed."""
    return int(max(4 / (step * np.linalg.eigvalsh(hessian(problem))[0]), 4000))


# The parts


def variance(walks: int = 1000) -> Rows:
    """The excess of the mean of independent tokens and its variance part, for each number of tokens."""
    rows = []
    problem = data_set("heterogeneous")
    best, square = problem.optimum(), hessian(problem)
    for graph in ("ring", "grid", SMALL_WORLD):
        step = 0.1 * stability_of("heterogeneous", graph)
        for walk, kernel in (("uniform", kernel_of(graph)), ("MHLJ", MHLJ.kernel(GRAPHS[graph], problem.smoothness))):
            limit = steady_state(problem, kernel, fw.SGD(step))
            row: dict[str, Any] = {"graph": graph, "walk": walk, "step": step, "bias": limit.bias, "points": []}
            for tokens in (1, *TOKENS):
                exact = steady_state(problem, kernel, fw.SGD(step), tokens=tokens)
                point = {"tokens": tokens, "exact excess": exact.excess, "exact variance": exact.variance}
                rounds = settling_rounds(problem, step)
                options = {"steps": rounds, "every": rounds, "initial": best, "tokens": tokens, "seed": tokens}
                count = walks if walk == "uniform" else walks // 5
                data = fw.learn(problem, kernel, fw.SGD(step), walks=count, **options).data
                away = data.final.values - data.final.values.mean(axis=0)
                parts = {"excess": data.loss.values[:, -1] - data.attrs["optimal_loss"]}
                parts["variance"] = 0.5 * ((away @ square) * away).sum(axis=1) * count / (count - 1)
                for name, values in parts.items():
                    point[name] = float(values.mean())
                    point[f"{name} error"] = float(values.std(ddof=1) / np.sqrt(count))
                row["points"].append(point)
            rows.append(row)
            print(graph, walk, slope(row, "variance"), slope(row, "excess"), flush=True)
    return rows


def slope(row: dict[str, Any], name: str) -> tuple[float, float, float]:
    """The slope in log-log of a measured part, its standard error, and the slope of the exact part."""
    points = row["points"]
    x = np.log([point["tokens"] for point in points])
    shares = (x - x.mean()) / ((x - x.mean()) ** 2).sum()  # the slope is their sum with y
    values, errors, exact = (np.array([p[key] for p in points]) for key in (name, f"{name} error", f"exact {name}"))
    relative = errors / values
    return float(shares @ np.log(values)), float(np.sqrt(shares**2 @ relative**2)), float(shares @ np.log(exact))


def meetings(rounds: int = 1000, paths: int = 1280) -> Rows:
    """How often a token shares its node, and how many different tokens it meets in 1000 rounds."""
    rows = []
    for graph in GRAPHS:
        for tokens in (4, 16, 64):
            walks = paths // tokens
            record = fw.walk(kernel_of(graph), steps=rounds, every=rounds, walks=walks, tokens=tokens, paths=paths)
            nodes = record.data.path.values[:, 1:].reshape(walks, tokens, rounds)
            together = np.zeros((walks, tokens, rounds), dtype=bool)
            partners = np.zeros((walks, tokens))
            for token in range(tokens):
                same = nodes == nodes[:, token, None]
                same[:, token] = False
                together[:, token] = same.any(axis=1)
                partners[:, token] = same.any(axis=2).sum(axis=1)
            shared = together.mean(axis=(1, 2))
            row = {"graph": graph, "tokens": tokens, "shared": float(shared.mean())}
            row |= {"error": float(shared.std(ddof=1) / np.sqrt(walks)), "partners": float(partners.mean())}
            row["expected"] = 1 - (1 - 1 / GRAPHS[graph].n) ** (tokens - 1)
            rows.append(row)
            print(row, flush=True)
    return rows


def steady(rows_of_tokens: int = 1280) -> Rows:
    """Where the mean model and the single tokens settle, with each exchange, along the same walks."""
    rows = []
    for data in DATA:
        for graph in GRAPHS:
            problem, kernel = data_set(data, GRAPHS[graph].n), kernel_of(graph)
            largest = stability_of(data, SMALL_WORLD if graph == LARGE else graph)
            for share in SHARES:
                step = share * largest
                settled = settling_rounds(problem, step)
                for tokens in (16, 64) if graph == LARGE else TOKENS if share == SHARES[0] else (8, 64):
                    options = {"walks": max(rows_of_tokens // tokens, 40), "tokens": tokens, "seed": 1}
                    options |= {"steps": 2 * settled, "every": max(1, settled // 50), "initial": problem.optimum()}
                    found = {}
                    for name, exchange in EXCHANGES.items():
                        run = fw.learn(problem, kernel, fw.SGD(step), exchange=exchange, **options).data
                        late = run.sel(step=slice(settled, None)).mean("step")
                        found[name] = [late.loss.values - run.attrs["optimal_loss"], late.distance.values]
                        found[name].append(late.consensus.values)
                    row: dict[str, Any] = {"data": data, "graph": graph, "share": share, "step": step, "tokens": tokens}
                    for name, (excess, distance, consensus) in found.items():
                        row[name] = {"excess": float(excess.mean()), "distance": float(distance.mean())}
                        row[name]["consensus"] = float(consensus.mean()) if name != "Average" else 0.0
                    row["exact"] = exact_limit(data, graph, step, tokens)
                    row["of the mean"] = ratio(found["Meet"][0], found["apart"][0])
                    row["of the mean, Average"] = ratio(found["Average"][0], found["apart"][0])
                    row["of the consensus"] = ratio(found["Meet"][2], found["apart"][2])
                    rows.append(row)
                print(rows[-1], flush=True)
    return rows


@cache
def stability_of(data: str, graph: str) -> float:
    return stability_limit(data_set(data, GRAPHS[graph].n), kernel_of(graph))


def exact_limit(data: str, graph: str, step: float, tokens: int) -> dict[str, float] | None:
    if graph == LARGE:
        return None
    limit = steady_state(data_set(data), kernel_of(graph), fw.SGD(step), tokens=tokens)
    return {"bias": limit.bias, "variance": limit.variance}


def ratio(above: Any, below: Any) -> list[float]:
    """The ratio of two means over the same walks, and its standard error."""
    found = above.mean() / below.mean()
    residual = (above - found * below) / below.mean()
    return [float(found), float(residual.std(ddof=1) / np.sqrt(len(above)))]


def rounds() -> Rows:
    """Rounds until the mean model, or a single token on average, is near the optimum, each with its best step."""
    rows = []
    for data in DATA:
        for graph in GRAPHS:
            if graph == LARGE:
                continue
            one = fewest(data, graph, 1, "apart", "distance", -8)
            rows.append({"data": data, "graph": graph, "tokens": 1, "apart": one, "single": {"apart": one}})
            for tokens in (8, 64):
                row: dict[str, Any] = {"data": data, "graph": graph, "tokens": tokens}
                near = one["power"]
                for name in EXCHANGES:
                    row[name] = fewest(data, graph, tokens, name, "distance", near)
                    near = row[name]["power"]
                single = {"apart": one, "Meet": fewest(data, graph, tokens, "Meet", "single", one["power"])}
                rows.append(row | {"single": single})
                print(rows[-1], flush=True)
    return rows


def fewest(data: str, graph: str, tokens: int, exchange: str, measure: str, near: int) -> dict[str, Any]:
    """The fewest rounds to the goal over steps of 2^(k/2) × the largest stable one of a walk: downhill from `near`."""
    largest = stability_of(data, graph)
    known: dict[int, float] = {}

    def measured(power: int) -> float:
        if power not in known:
            least = min(known.values(), default=np.inf)
            most = 60_000 if least == np.inf else int(least)
            known[power] = rounds_to_goal(data, graph, tokens, exchange, measure, largest * 2 ** (power / 2), most)
        return known[power]

    best = near
    while measured(best) == np.inf and best > near - 20:
        best -= 2
    while True:
        other = min((best - 1, best + 1), key=measured)
        if measured(other) >= measured(best):
            return {"rounds": known[best], "share": 2 ** (best / 2), "power": best}
        best = other


def rounds_to_goal(data: str, graph: str, tokens: int, exchange: str, measure: str, step: float, most: int) -> float:
    """Rounds until the mean over the walks reaches the goal, to 1 %; infinite if it takes more than `most`."""
    problem, options = data_set(data), {"exchange": EXCHANGES[exchange], "tokens": tokens, "seed": 1}
    options["walks"] = max(960 // tokens, 40)
    lengths = [length for length in (100, 500, 2500, 12_500) if length < most]
    for length in (*lengths, most):
        every = max(1, length // 500)
        with np.errstate(all="ignore"):
            run = fw.learn(problem, kernel_of(graph), fw.SGD(step), steps=length, every=every, **options).data
            error = run.distance.values + (run.consensus.values if measure == "single" else 0.0)
            there = error.mean(axis=0) <= GOALS[data] * error[0, 0]
        if there.any():
            return float(run.step.values[there.argmax()])
    return np.inf


PARTS: dict[str, Callable[[], Rows]] = {part.__name__: part for part in (variance, meetings, steady, rounds)}


# Tables and figures


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])


def small(value: float) -> str:
    power = int(np.floor(np.log10(value)))
    digits = f"{value / 10.0**power:.1f}"
    if digits == "10.0":
        digits, power = "1.0", power + 1
    exponent = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}·10{exponent}" if power < -2 else f"{value:#.2g}"


def signed(value: float, error: float, digits: int) -> str:
    return f"{value:.{digits}f} ± {error:.{digits}f}".replace("-", "−")


def variance_table(rows: Rows) -> str:
    head = ["graph", "walk", "bias", "variance of one token", "slope of the variance", "exact slope"]
    head += ["slope of the excess", "exact slope"]
    body = []
    for row in rows:
        cells = [row["graph"], row["walk"], small(row["bias"]), small(row["points"][0]["exact variance"])]
        for name in ("variance", "excess"):
            found, error, exact = slope(row, name)
            cells += [signed(found, error, 3), f"{exact:.3f}".replace("-", "−")]
        body.append(cells)
    return table(head, body)


def meetings_table(rows: Rows) -> str:
    head = ["graph", "tokens", "rounds spent with another token", "1 − (1 − 1/n)^(m−1)"]
    head.append("different tokens met in 1000 rounds")
    body = []
    for row in rows:
        met = f"{row['partners']:.1f} of {row['tokens'] - 1}"
        shared = f"{100 * row['shared']:.2f} ± {100 * row['error']:.2f} %"
        body.append([row["graph"], str(row["tokens"]), shared, f"{100 * row['expected']:.2f} %", met])
    return table(head, body)


def steady_table(rows: Rows) -> str:
    head = ["data", "graph", "step", "m", "mean model: excess", "bias part", "with `Meet`", "with `Average`"]
    head += ["consensus", "with `Meet`", "single token", "with `Meet`"]
    body = []
    for row in rows:
        if row["tokens"] not in (4, 16, 64):
            continue
        cells = [row["data"], row["graph"], f"{row['share']:g}", str(row["tokens"]), small(row["apart"]["excess"])]
        cells.append("" if row["exact"] is None else small(row["exact"]["bias"]))
        for name in ("of the mean", "of the mean, Average"):
            cells.append("× " + signed(*row[name], 3 if name == "of the mean" else 2))
        cells += [small(row["apart"]["consensus"]), f"**÷ {1 / row['of the consensus'][0]:.2g}**"]
        cells += [small(row[name]["distance"] + row[name]["consensus"]) for name in ("apart", "Meet")]
        body.append(cells)
    return table(head, body)


def rounds_table(rows: Rows) -> str:
    head = ["data", "graph", "one token", "m", "mean model: no exchange", "`Meet`", "`Average`", "single token: `Meet`"]
    body = []
    for row in rows:
        if row["tokens"] == 1:
            one = row["apart"]["rounds"]
            continue
        found = [row["apart"], row["Meet"], row["Average"], row["single"]["Meet"]]
        cells = [f"{cell['rounds']:,.0f} ({cell['share']:.2g})" for cell in found]
        body.append([row["data"], row["graph"], f"{one:,.0f}", str(row["tokens"]), *cells])
    return table(head, body)


def draw_variance(rows: Rows) -> None:
    figure = new_figure(9.6, 4.2)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, graph in zip(panels, ("ring", "grid", SMALL_WORLD)):
        lines = (
            ("uniform", "variance", 0, "o", "uniform walk: variance"),
            ("uniform", "excess", 1, "s", "uniform walk: excess"),
            ("MHLJ", "excess", 2, "^", "MHLJ, not corrected: excess"),
        )
        for walk, name, number, marker, label in lines:
            row = next(row for row in rows if (row["graph"], row["walk"]) == (graph, walk))
            x = [point["tokens"] for point in row["points"]]
            axes.plot(x, [point[f"exact {name}"] for point in row["points"]], color=COLOURS[number], linewidth=1.2)
            measured = [point[name] for point in row["points"]]
            axes.plot(x, measured, marker, color=COLOURS[number], markersize=5, label=label)
            if name == "excess":
                axes.axhline(row["bias"], color=COLOURS[number], linewidth=1, linestyle=(0, (1, 2)))
        axes.set(xscale="log", yscale="log", xlabel="tokens m", title=graph)
        axes.set_xticks(x, [str(tokens) for tokens in x])
        axes.minorticks_off()
    panels[0].set_ylabel("excess loss of the mean model")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    save(figure, HERE / "variance.png")


def draw_steady(rows: Rows) -> None:
    figure = new_figure(9.6, 6.2)
    graphs = [graph for graph in GRAPHS if graph != LARGE]
    panels = figure.subplots(2, len(graphs), sharex=True, sharey="row")
    for line, data in zip(panels, DATA):
        for axes, graph in zip(line, graphs):
            found = [r for r in rows if (r["data"], r["graph"], r["share"]) == (data, graph, SHARES[0])]
            x = [row["tokens"] for row in found]
            for number, name in enumerate(EXCHANGES):
                label = "independent" if name == "apart" else name
                mean = [row[name]["distance"] for row in found]
                axes.plot(x, mean, "o-", color=COLOURS[number], markersize=4, label=f"mean model, {label}")
                if name != "Average":
                    single = [row[name]["distance"] + row[name]["consensus"] for row in found]
                    style = {"linestyle": (0, (3, 2)), "marker": "s", "markersize": 4}
                    axes.plot(x, single, color=COLOURS[number], label=f"single token, {label}", **style)
            axes.set(xscale="log", yscale="log", title=f"{graph}" if data == "homogeneous" else "")
            axes.set_xticks(x, [str(tokens) for tokens in x])
            axes.minorticks_off()
        line[0].set_ylabel(f"squared distance,\n{data} data")
    for axes in panels[-1]:
        axes.set_xlabel("tokens m")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    save(figure, HERE / "meeting.png")


TABLES: dict[str, Callable[[Rows], str]] = {
    "variance": variance_table,
    "meetings": meetings_table,
    "steady": steady_table,
    "rounds": rounds_table,
}


def draw() -> None:
    found = writing.read_parts(HERE, PARTS)
    with matplotlib.rc_context(STYLE):
        if "variance" in found:
            draw_variance(found["variance"])
        if "steady" in found:
            draw_steady(found["steady"])
    writing.fill(PAGE, {name: words(found[name]) for name, words in TABLES.items() if name in found})


if __name__ == "__main__":
    writing.main("tokens.py", __doc__, PARTS, HERE, draw)
