"""Measure, draw and tabulate what docs/explanation/rules.md says about the update rules.

python docs/images/rules.py               # everything, about ten minutes on two cores
python docs/images/rules.py --only sag    # one part: sag, walkman, penalty, visits, floor, prior, others, curves
python docs/images/rules.py --draw        # no measurements: figures and tables from docs/images/rules/*.json
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import writing

import freewalk as fw
from freewalk.analysis import hitting_times, stability_limit, stationary, steady_state
from freewalk.report.figures import COLOURS, STYLE, new_figure, save

HERE = Path(__file__).parent / "rules"
PAGE = Path(__file__).parents[1] / "explanation" / "rules.md"
GOAL = 1e-10
MHLJ = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3)
GRAPHS = {
    "grid": fw.graphs.grid(10, 10),
    "Watts–Strogatz": fw.graphs.watts_strogatz(100, 4, 0.1, seed=1),
    "ring": fw.graphs.ring(100),
}
VARIANCES = (10, 100)
KERNELS = ("MHLJ", "uniform")
Rows = list[dict[str, Any]]


def data_set(variance: float, n: int = 100, dim: int = 10, shift: float = 1.0, shifted: str = "all") -> Any:
    options = {"heavy": 2, "shift": shift, "shifted": shifted, "noise": 0.1, "seed": 1}
    return fw.objectives.LeastSquares.synthetic(n, dim=dim, heavy_variance=float(variance), **options)


class Setting(NamedTuple):
    """A problem and a walk on it, with what the predictions need."""

    variance: int
    graph: str
    walk: str

    @property
    def problem(self) -> Any:
        return data_set(self.variance)

    @property
    def kernel(self) -> fw.Kernel:
        if self.walk == "MHLJ":
            return MHLJ.kernel(GRAPHS[self.graph], self.problem.smoothness)
        return fw.designs.Metropolis().kernel(GRAPHS[self.graph])

    @property
    def sag_step(self) -> float:
        """½ n / (L_max τ)."""
        return 0.5 * 100 / float(self.problem.smoothness.max() * hitting_times(self.kernel).max())

    @property
    def decades(self) -> float:
        """ln(first excess / goal) / (2 λ_min): updates of gradient descent, times its step."""
        problem = self.problem
        first = problem.loss(np.zeros(problem.dim)) - problem.loss(problem.optimum())
        return float(np.log(first / GOAL) / (2 * np.linalg.eigvalsh(hessian(problem))[0]))

    @property
    def age(self) -> float:
        """The age of the information at a node, the mean over time and nodes."""
        return float((stationary(self.kernel) @ hitting_times(self.kernel)).mean())


def hessian(problem: Any) -> Any:
    return problem.features.T @ problem.features / problem.n


def settings() -> Iterator[Setting]:
    for variance in VARIANCES:
        for graph in GRAPHS:
            for walk in KERNELS:
                yield Setting(variance, graph, walk)


def run(setting: Setting, rule: fw.Rule, steps: float, walks: int, points: int = 2000, **more: Any) -> Any:
    every = max(1, round(steps / points))
    return fw.learn(
        setting.problem, setting.kernel, rule, steps=points * every, every=every, walks=walks, start=0, seed=1, **more
    ).data


def excess_of(data: Any) -> Any:
    return data.loss.values - data.attrs["optimal_loss"]


def reached(data: Any) -> dict[str, Any]:
    """When the walks first reached the goal, and what they had sent by then; left out unless all walks reached it."""
    there = excess_of(data) <= GOAL
    first = np.where(there.any(axis=1), there.argmax(axis=1), -1)
    found = {"reached": int((first >= 0).sum()), "walks": len(first), "worst": worst(data)}
    if (first < 0).any():
        return found
    walks = np.arange(len(first))
    for name, values in (
        ("updates", data.step.values[first]),
        ("messages", data.messages.values[walks, first]),
        ("bytes", data.bytes.values[walks, first]),
    ):
        found[name] = float(np.median(values))
    found["range"] = [int(data.step.values[first].min()), int(data.step.values[first].max())]
    return found


def worst(data: Any) -> float:
    """The largest excess along the way, divided by that of the start."""
    excess = excess_of(data)
    return float((excess / excess[:, :1]).max())


# The parts


def sag() -> Rows:
    rows = []
    for setting in settings():
        step = setting.sag_step
        plateau = steady_state(setting.problem, setting.kernel, fw.SGD(step))
        row = {**setting._asdict(), "step": step, "tau": float(hitting_times(setting.kernel).max())}
        row |= {"relative": step * float(setting.problem.smoothness.max()), "law": setting.decades / step}
        row |= {"plateau": plateau.excess, "bias": plateau.bias}
        row["half"] = reached(run(setting, fw.rules.SAG(step), setting.decades / step, 21))
        row["one"] = reached(run(setting, fw.rules.SAG(2 * step), setting.decades / step / 2, 21))
        rows.append(row)
        print(row, flush=True)
    return rows


def walkman() -> Rows:
    rows = []
    for setting in settings():
        smoothness = setting.problem.smoothness
        law = 3 * float(smoothness.max()) * setting.age * setting.decades
        walks = 2 if setting.variance == 100 and setting.graph == "ring" else 3
        row = {**setting._asdict(), "age": setting.age, "law": law}
        row["gradient"] = reached(run(setting, fw.rules.Walkman(), law, walks))
        rows.append(row)
        print(row, flush=True)
    for row in rows:
        if row["variance"] != 10:
            continue
        setting = Setting(row["variance"], row["graph"], row["walk"])
        steps = 90_000 if row["graph"] == "ring" else 25_000 if row["walk"] == "MHLJ" else 70_000
        rule = fw.rules.Walkman(proximal=True)
        row["proximal"] = reached(run(setting, rule, steps, 1, points=500, runtime="reference"))
        print(row, flush=True)
    return rows


def penalty() -> Rows:
    """The number of walks whose final excess is above that of the start, for each penalty."""
    rows = []
    cases: dict[str, tuple[Any, Any]] = {
        "ring(5)": (data_set(10, n=5, dim=3), fw.graphs.ring(5)),
        "ring(20)": (data_set(10, n=20, dim=3), fw.graphs.ring(20)),
        "grid(10, 10)": (data_set(10), GRAPHS["grid"]),
        "watts_strogatz(100, 4, 0.1)": (data_set(100), GRAPHS["Watts–Strogatz"]),
    }
    for name, (problem, graph) in cases.items():
        kernel = fw.designs.Metropolis().kernel(graph)
        for multiple in (0.6, 1.0, 1.5, 1.8, 1.9, 2.0, 2.1, 3.0):
            rule = fw.rules.Walkman(multiple * float(problem.smoothness.max()))
            steps = 20_000 * problem.n
            data = fw.learn(problem, kernel, rule, steps=steps, every=steps // 100, walks=4, start=0, seed=1).data
            excess = excess_of(data)
            grown = ~(excess[:, -1] < excess[:, 0])
            rows.append({"case": name, "multiple": multiple, "grown": int(grown.sum()), "walks": 4})
    return rows


class Shifted(NamedTuple):
    """Data whose heavy nodes have another optimum, and MHLJ with many jumps: a large bias."""

    name: str
    graph: fw.graphs.Graph
    step: float
    prior: float | None = None
    scale: float | None = None

    @property
    def problem(self) -> Any:
        return data_set(10, n=self.graph.n, dim=3, shifted="heavy")

    @property
    def plain(self) -> fw.Kernel:
        return fw.designs.MHLJ(jump=0.5, stop=0.5, hops=3).kernel(self.graph, self.problem.smoothness)

    @property
    def known(self) -> fw.Kernel:
        """The same walk with the weights 1/(n ν_v) of its actual stationary distribution."""
        return fw.Kernel(self.graph, self.plain.moves, stationary(self.plain))

    @property
    def rate(self) -> Any:
        step = self.step / float(self.problem.smoothness.mean())
        return step if self.scale is None else fw.schedules.Inverse(step, scale=self.scale)


RING, SMALL_WORLD = fw.graphs.ring(20), fw.graphs.watts_strogatz(50, 4, 0.1, seed=1)
SHIFTED = [
    Shifted("ring(20)", RING, 0.05, prior=20.0),
    Shifted("ring(20)", RING, 0.05),
    Shifted("watts_strogatz(50, 4, 0.1)", SMALL_WORLD, 0.05, prior=50.0),
    Shifted("watts_strogatz(50, 4, 0.1)", SMALL_WORLD, 0.05),
    Shifted("ring(20)", RING, 0.2, prior=20.0, scale=200.0),
    Shifted("watts_strogatz(50, 4, 0.1)", SMALL_WORLD, 0.1, prior=50.0, scale=400.0),
]


def visits(walks: int = 30_000) -> Rows:
    """The bias of VisitWeighted by the number of updates.

    Its mean model is compared with that of SGD with known weights along the same walks: both have the same floor, and
    most of the noise cancels. A run to each mark, since only the last model is kept.
    """
    rows = []
    for case in SHIFTED:
        problem, square = case.problem, hessian(case.problem)
        row: dict[str, Any] = {"name": case.name, "step": case.step, "scale": case.scale}
        row["prior"] = 10.0 * problem.n if case.prior is None else case.prior
        if case.scale is None:
            for name, kernel in (("plain", case.plain), ("known", case.known)):
                limit = steady_state(problem, kernel, fw.SGD(case.rate))
                row[name] = {"excess": limit.excess, "bias": limit.bias, "variance": limit.variance}
        row["points"] = []
        for steps in 2 ** np.arange(7, 15 if case.graph is RING else 16):
            options = {"steps": int(steps), "every": int(steps), "walks": walks, "start": 0, "seed": 1}
            weighted = fw.learn(problem, case.plain, fw.rules.VisitWeighted(case.rate, case.prior), **options).data
            known = fw.learn(problem, case.known, fw.SGD(case.rate), **options).data
            plain = fw.learn(problem, case.plain, fw.SGD(case.rate), **{**options, "walks": walks // 10}).data
            point = {"updates": int(steps)}
            for name, data in (("weighted", weighted), ("known", known), ("plain", plain)):
                point[name] = float(excess_of(data)[:, -1].mean())
                point[f"{name} bias"], _ = bias_part(data.final.values - problem.optimum(), square)
            point["bias"], point["error"] = bias_part(weighted.final.values - known.final.values, square)
            row["points"].append(point)
        rows.append(row)
        print({name: value for name, value in row.items() if name != "points"}, flush=True)
    return rows


def bias_part(errors: Any, square: Any) -> tuple[float, float]:
    """½ mᵀHm of the mean m, less what noise adds to it, and its standard error."""
    mean, spread = errors.mean(axis=0), np.cov(errors.T) / len(errors)
    value = 0.5 * (mean @ square @ mean - np.trace(square @ spread))
    return float(value), float(np.sqrt(mean @ square @ spread @ square @ mean + 0.5 * np.trace(square @ spread) ** 2))


def floor() -> Rows:
    """Exact limits with the weights of the target and with those that VisitWeighted tends to."""
    rows = []
    cases = [
        ("ring(20), MHLJ(.5, .5, 3)", Shifted("", RING, 0.0), (0.2, 0.05, 0.00625)),
        ("watts_strogatz(50, 4, 0.1), MHLJ(.5, .5, 3)", Shifted("", SMALL_WORLD, 0.0), (0.1, 0.00625)),
    ]
    found: list[tuple[str, Any, fw.Kernel, tuple[float, ...]]] = [
        (name, case.problem, case.plain, steps) for name, case, steps in cases
    ]
    problem = data_set(10, shift=0.5, shifted="heavy")
    for graph in ("Watts–Strogatz", "ring"):
        label = {"ring": "ring(100)", "Watts–Strogatz": "watts_strogatz(100, 4, 0.1)"}[graph]
        kernel = MHLJ.kernel(GRAPHS[graph], problem.smoothness)
        found.append((f"{label}, MHLJ(.1, .5, 3)", problem, kernel, (0.1, 0.025, 0.00625)))
    for name, problem, kernel, steps in found:
        known = fw.Kernel(kernel.graph, kernel.moves, stationary(kernel))
        mean = float(problem.smoothness.mean())
        for step in steps:
            row: dict[str, Any] = {"case": name, "step": step}
            for label, one in (("plain", kernel), ("known", known)):
                limit = steady_state(problem, one, fw.SGD(step / mean))
                row[label] = {"excess": limit.excess, "bias": limit.bias, "variance": limit.variance}
                row[label]["stable"] = stability_limit(problem, one) * mean
            rows.append(row)
            print(row, flush=True)
    return rows


def prior() -> Rows:
    """The number of walks of VisitWeighted that diverged, for each prior and step."""
    rows = []
    for variance in VARIANCES:
        problem = data_set(variance, shift=0.5, shifted="heavy")
        for graph in GRAPHS:
            kernel = MHLJ.kernel(GRAPHS[graph], problem.smoothness)
            for step in (0.1, 0.5):
                for times in (0.1, 1, 10):
                    rule = fw.rules.VisitWeighted(step / float(problem.smoothness.mean()), 100.0 * times)
                    options = {"steps": 20_000, "every": 20, "walks": 400, "start": 0, "seed": 1}
                    with np.errstate(all="ignore"):
                        data = fw.learn(problem, kernel, rule, **options).data
                        excess = excess_of(data)
                        bad = ~((excess / excess[:, :1]).max(axis=1) < 10)
                    row = {"variance": variance, "graph": graph, "step": step, "times": times, "walks": 400}
                    rows.append(row | {"blown": int(bad.sum()), "flagged": int(data.diverged.sum())})
            print(rows[-6:], flush=True)
    return rows


def others() -> Rows:
    """The mean excess after 100,000 updates: momentum, AdaGrad and averages beside SGD."""
    rows = []
    for graph in ("Watts–Strogatz", "ring"):
        for walk in ("uniform", "MHLJ"):
            setting = Setting(10, graph, walk)
            step = 0.05 / float((setting.kernel.weights * setting.problem.smoothness).max())
            rules = {
                "SGD(γ)": fw.SGD(step),
                "SGD(γ, average=True)": fw.SGD(step, average=True),
                'SGD(γ, average="half")': fw.SGD(step, average="half"),
                "Momentum(γ/10)": fw.rules.Momentum(step / 10, 0.9),
                "Momentum(γ)": fw.rules.Momentum(step, 0.9),
                "AdaGrad(0.03)": fw.rules.AdaGrad(0.03),
                'AdaGrad(0.003, keeper="node")': fw.rules.AdaGrad(0.003, keeper="node"),
            }
            limit = steady_state(setting.problem, setting.kernel, fw.SGD(step))
            for name, rule in rules.items():
                data = run(setting, rule, 100_000, 400, points=1000)
                excess = excess_of(data).mean(axis=0)
                below = excess <= excess[0] / 10
                row = {"graph": graph, "walk": walk, "rule": name, "step": step, "excess": float(excess[-1])}
                row |= {"tenth": int(data.step.values[below.argmax()]) if below.any() else None}
                row |= {"plateau": limit.excess, "bias": limit.bias, "diverged": int(data.diverged.sum())}
                row |= {"sent": int(data.bytes.values[0, -1] // data.messages.values[0, -1])}
                rows.append(row)
                print(row, flush=True)
    return rows


def curves() -> Rows:
    """Learning curves of SGD, SAG and Walkman along the same walks: the median excess."""
    rows = []
    for graph in GRAPHS:
        setting = Setting(10, graph, "MHLJ")
        step = setting.sag_step
        gradient = 3 * float(setting.problem.smoothness.max()) * setting.age * setting.decades
        proximal = 90_000 if graph == "ring" else 25_000
        cases = [
            ("SGD", fw.SGD(step), setting.decades / step, 21, {}),
            ("SAG", fw.rules.SAG(step), setting.decades / step, 21, {}),
            ("Walkman", fw.rules.Walkman(), gradient, 3, {}),
            ("Walkman, proximal", fw.rules.Walkman(proximal=True), proximal, 1, {"runtime": "reference"}),
        ]
        for name, rule, steps, walks, more in cases:
            points: dict[int, float] = {}
            for share in (1.0,) if more else (1e-4, 1e-2, 1.0):
                data = run(setting, rule, steps * share, walks, points=200, **more)
                last = max(points, default=0)
                values = np.median(excess_of(data), axis=0)
                points |= {int(t): float(v) for t, v in zip(data.step.values, values) if t > last}
            kept = thinned(points)
            row = {"graph": graph, "rule": name, "points": kept}
            if name == "SGD":
                row["plateau"] = steady_state(setting.problem, setting.kernel, rule).excess
            rows.append(row)
            print(graph, name, kept[-1], flush=True)
    return rows


def thinned(points: dict[int, float], per_decade: int = 25) -> list[list[float]]:
    """Points that are about equally far apart on a logarithmic axis."""
    kept: list[list[float]] = []
    for at in sorted(points):
        if not kept or at >= kept[-1][0] * 10 ** (1 / per_decade):
            kept.append([at, float(f"{points[at]:.4g}")])
    return kept


PARTS: dict[str, Callable[[], Rows]] = {
    part.__name__: part for part in (sag, walkman, penalty, visits, floor, prior, others, curves)
}


# Tables and figures


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])


def size(value: float) -> str:
    """Three digits: 33,500 as it is, larger numbers in millions."""
    if value >= 1e6:
        return f"{value / 1e6:#.3g}".rstrip(".") + " million"
    return f"{float(f'{value:.3g}'):,.0f}"


def small(value: float) -> str:
    power = int(np.floor(np.log10(value)))
    digits = f"{value / 10.0**power:.1f}"
    if digits == "10.0":
        digits, power = "1.0", power + 1
    exponent = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}·10{exponent}" if power < -2 else f"{value:#.2g}"


def where(row: dict[str, Any]) -> list[str]:
    return [f"{row['variance']}", row["graph"], row["walk"]]


def sag_table(rows: Rows) -> str:
    head = ["variance", "graph", "walk", "τ", "step · L", "limit of SGD", "bias part", "SAG: updates to 10⁻¹⁰"]
    head += ["messages", "MB", "updates / predicted", "updates with twice the step"]
    body = []
    for row in rows:
        half, one = row["half"], row["one"]
        bias = small(row["bias"]) if row["bias"] > 1e-6 else "0"
        cells = [f"{row['tau']:,.0f}", f"{row['relative']:.3f}", small(row["plateau"]), bias]
        cells += [f"**{size(half['updates'])}**", size(half["messages"])]
        cells += [f"{half['bytes'] / 1e6:.3g}", f"{half['updates'] / row['law']:.2f}"]
        cells += [f"{size(one['updates'])}" + (f" (up to {one['worst']:.1f}×)" if one["worst"] > 1.5 else "")]
        body.append([*where(row), *cells])
    return table(head, body)


def walkman_table(rows: Rows) -> str:
    head = ["variance", "graph", "walk", "A", "updates to 10⁻¹⁰", "messages", "MB", "updates / predicted", "walks"]
    head += ["proximal: updates", "messages"]
    body = []
    for row in rows:
        found, proximal = row["gradient"], row.get("proximal")
        cells = [f"{row['age']:,.0f}", f"**{size(found['updates'])}**", size(found["messages"])]
        cells += [f"{found['bytes'] / 1e6:,.0f}", f"{found['updates'] / row['law']:.2f}", str(found["walks"])]
        cells += [size(proximal["updates"]), size(proximal["messages"])] if proximal else ["", ""]
        body.append([*where(row), *cells])
    return table(head, body)


def penalty_table(rows: Rows) -> str:
    multiples = sorted({row["multiple"] for row in rows})
    cases = list(dict.fromkeys(row["case"] for row in rows))
    found = {(row["case"], row["multiple"]): "grows" if row["grown"] == row["walks"] else mixed(row) for row in rows}
    body = [[case, *(found[case, multiple] for multiple in multiples)] for case in cases]
    return table(["penalty / L", *(f"{multiple:g}" for multiple in multiples)], body)


def mixed(row: dict[str, Any]) -> str:
    return "falls" if not row["grown"] else f"{row['grown']} of {row['walks']} grow"


def step_words(row: dict[str, Any]) -> str:
    return f"{row['step']:g}/L̄" if row["scale"] is None else f"{row['step']:g}/L̄ / (1 + t/{row['scale']:g})"


def slope(row: dict[str, Any], times: float, last: int = 0) -> dict[str, float] | None:
    """The slope of log bias against log t, for t of at least so many c and errors below a third, or the last points.

    Its error is what those of the points make.
    """
    points = [p for p in row["points"] if p["updates"] >= times * row["prior"] and p["error"] < p["bias"] / 3][-last:]
    if len(points) < 3:
        return None
    x, y = np.log([p["updates"] for p in points]), np.log([p["bias"] for p in points])
    shares = (x - x.mean()) / ((x - x.mean()) ** 2).sum()  # the slope is their sum with y
    errors = np.array([p["error"] / p["bias"] for p in points])
    found = {"slope": float(shares @ y), "error": float(np.sqrt(shares**2 @ errors**2))}
    return found | {"from": points[0]["updates"], "to": points[-1]["updates"]}


def visits_table(rows: Rows) -> str:
    head = ["graph", "step", "prior c", "slope from t = 10 c", "slope from t = 40 c", "slope of the last 3 points"]
    head += [
        "values at t",
        "bias of plain MHLJ",
        "bias of `VisitWeighted`",
        "the same, less the floor",
        "excess of plain MHLJ",
        "excess of `VisitWeighted`",
        "excess with known weights",
    ]
    body = []
    for row in rows:
        last = row["points"][-1]
        cells = [row["name"], step_words(row), "10 n" if row["prior"] >= 200 else "n"]
        for one in (slope(row, 10), slope(row, 40), slope(row, 10, last=3)):
            cells.append("" if one is None else f"{one['slope']:.2f} ± {one['error']:.2f}".replace("-", "−"))
        cells.append(f"{last['updates']:,}")
        cells += [small(last[name]) for name in ("plain bias", "weighted bias", "bias")]
        body.append([*cells, *(small(last[name]) for name in ("plain", "weighted", "known"))])
    return table(head, body)


def floor_table(rows: Rows) -> str:
    head = ["walk", "step · L̄", "plain MHLJ: excess", "bias", "`VisitWeighted`'s limit: excess", "bias", "variance"]
    head += ["largest stable step · L̄: plain", "`VisitWeighted`"]
    body = []
    for row in rows:
        plain, known = row["plain"], row["known"]
        cells = [row["case"], f"{row['step']:g}", small(plain["excess"]), small(plain["bias"])]
        cells += [small(known[name]) for name in ("excess", "bias", "variance")]
        body.append([*cells, f"{plain['stable']:.2f}", f"{known['stable']:.2f}"])
    return table(head, body)


def prior_table(rows: Rows) -> str:
    columns = list(dict.fromkeys((row["step"], row["times"]) for row in rows))
    head = ["variance", "graph", *(f"{step:g}/L̄, prior {times:g} n" for step, times in columns)]
    body = []
    for variance, graph in dict.fromkeys((row["variance"], row["graph"]) for row in rows):
        found = {(r["step"], r["times"]): r["blown"] for r in rows if (r["variance"], r["graph"]) == (variance, graph)}
        body.append([str(variance), graph, *(str(found[column]) for column in columns)])
    return table(head, body)


def others_table(rows: Rows) -> str:
    places = list(dict.fromkeys((row["graph"], row["walk"]) for row in rows))
    found = {(row["rule"], row["graph"], row["walk"]): row for row in rows}
    body = []
    for rule in dict.fromkeys(row["rule"] for row in rows):
        cells = []
        for place in places:
            row = found[(rule, *place)]
            tenth = "never" if row["tenth"] is None else f"{row['tenth']:,}"
            cells += [small(row["excess"]), tenth]
        body.append([f"`{rule}`", str(found[(rule, *places[0])]["sent"]), *cells])
    exact = [small(found[("SGD(γ)", *place)]["plateau"]) for place in places]
    bias = [found[("SGD(γ)", *place)]["bias"] for place in places]
    body.append(["exact limit of SGD(γ)", "", *(cell for value in exact for cell in (value, ""))])
    said = [small(value) if value > 1e-6 else "0" for value in bias]
    body.append(["its bias part", "", *(cell for value in said for cell in (value, ""))])
    head = ["rule", "bytes per message"]
    for graph, walk in places:
        head += [f"{graph}, {walk}: excess", "updates to a tenth"]
    return table(head, body)


def draw_curves(rows: Rows) -> None:
    figure = new_figure(9.6, 4.0)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, graph in zip(panels, GRAPHS):
        for colour, row in zip(COLOURS, (row for row in rows if row["graph"] == graph)):
            x, y = np.array(row["points"])[1:].T if row["points"][0][0] == 0 else np.array(row["points"]).T
            shown = (x >= 30) & (y > 1e-12)
            axes.plot(x[shown], y[shown], color=colour, label=row["rule"])
            if "plateau" in row:
                axes.axhline(row["plateau"], color=colour, linewidth=1, linestyle=(0, (2, 2)))
        axes.axhline(GOAL, color="#666666", linewidth=1, linestyle=(0, (1, 2)))
        axes.set(xscale="log", yscale="log", xlabel="updates", title=graph, ylim=(3e-12, 3))
    panels[0].set_ylabel("excess loss")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    save(figure, HERE / "curves.png")


def draw_bias(rows: Rows) -> None:
    figure = new_figure(9.6, 4.0)
    panels = figure.subplots(1, 3)
    shown = [rows[0], rows[1], rows[4]]
    titles = ["constant step, prior n", "constant step, prior 10 n", "decaying step, prior n"]
    for axes, row, title in zip(panels, shown, titles):
        at = np.array([point["updates"] for point in row["points"]], dtype=float)
        lines = (("plain bias", "plain MHLJ"), ("weighted bias", "VisitWeighted"), ("bias", "… less the floor"))
        for colour, (name, label) in zip((COLOURS[1], COLOURS[0], COLOURS[2]), lines):
            values = np.array([point[name] for point in row["points"]])
            axes.plot(at, values, "o-" if name != "bias" else "o", color=colour, markersize=4, label=label)
        found = slope(row, 40) or slope(row, 10)
        assert found is not None
        fitted = (at >= found["from"]) & (at <= found["to"])
        values = np.array([point["bias"] for point in row["points"]])
        middle = np.exp(np.log(at[fitted]).mean()), np.exp(np.log(values[fitted]).mean())
        span = np.array([at[fitted][0] / 1.3, at[fitted][-1] * 1.3])
        for power, share, style, label in (
            (found["slope"], 1.0, "-", f"fitted, {found['slope']:.2f}".replace("-", "−")),
            (-2.0, 0.3, (0, (3, 2)), "derived, −2"),
        ):
            line = share * middle[1] * (span / middle[0]) ** power
            axes.plot(span, line, color=COLOURS[2] if share == 1 else "#666666", linestyle=style, label=label)
        if "known" in row:
            axes.axhline(row["plain"]["bias"], color=COLOURS[1], linewidth=1, linestyle=(0, (1, 2)))
            axes.axhline(row["known"]["bias"], color=COLOURS[0], linewidth=1, linestyle=(0, (1, 2)))
        axes.set(xscale="log", yscale="log", xlabel="updates t", title=title, ylim=(2e-7, 1))
        axes.legend(loc="lower left", fontsize=8)
    panels[0].set_ylabel("bias part of the excess")
    save(figure, HERE / "bias.png")


TABLES: dict[str, Callable[[Rows], str]] = {
    "sag": sag_table,
    "walkman": walkman_table,
    "penalty": penalty_table,
    "visits": visits_table,
    "floor": floor_table,
    "prior": prior_table,
    "others": others_table,
}


def draw() -> None:
    found = writing.read_parts(HERE, PARTS)
    with matplotlib.rc_context(STYLE):
        if "curves" in found:
            draw_curves(found["curves"])
        if "visits" in found:
            draw_bias(found["visits"])
    writing.fill(PAGE, {name: words(found[name]) for name, words in TABLES.items() if name in found})


if __name__ == "__main__":
    writing.main("rules.py", __doc__, PARTS, HERE, draw)
