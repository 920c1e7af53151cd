"""Measure, draw and tabulate what docs/explanation/real-data.md says about breast cancer.

python docs/images/breast_cancer.py                 # everything, about six minutes
python docs/images/breast_cancer.py --only race     # one part: race, curves
python docs/images/breast_cancer.py --draw          # no measurements: figure and tables from the JSON

The spec is docs/studies/breast-cancer.toml; results are kept in docs/images/breast-cancer, one file per part.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import tomlkit
import writing

import freewalk as fw
from freewalk.analysis import excess_visits
from freewalk.report.figures import COLOURS, STYLE, new_figure, save
from freewalk.specs import spec

HERE = Path(__file__).parent / "breast-cancer"
PAGE = Path(__file__).parents[1] / "explanation" / "real-data.md"
SPEC = Path(__file__).parents[1] / "studies" / "breast-cancer.toml"
SMALL_WORLD = "Watts–Strogatz"
GRAPHS: dict[str, dict[str, Any]] = {
    "ring": {"kind": "ring", "n": 100},
    SMALL_WORLD: {"kind": "watts_strogatz", "n": 100, "k": 4, "p": 0.1, "seed": 1},
}
DATA: dict[str, dict[str, Any]] = {
    "hospitals": {"partition": {"kind": "Quantity", "alpha": 0.3}, "weight_by": "sample"},
    "sorted": {"partition": {"kind": "FeatureShift", "strength": 1.0}, "weight_by": "node"},
}
SEEDS = {"hospitals": (1, 2, 3), "sorted": (1,)}  # sorting involves no random draw
WALKS = ("uniform MH", "importance MH", "MHLJ", "corrected MHLJ")
SERVERS = ("centralized SGD", "centralized SGD, importance")
LABELS = (*WALKS, *SERVERS)
GOAL, REPLICAS, MOST = 1.2, 200, 1_000_000
LENGTHS = {("hospitals", "ring"): 2000, ("hospitals", SMALL_WORLD): 500, ("sorted", "ring"): 10_000}
LENGTHS["sorted", SMALL_WORLD] = 1000


class Setting(NamedTuple):
    """How the patients are distributed, over which graph, and the seed of the partition."""

    data: str
    graph: str
    seed: int

    def plan(self) -> Any:
        """The spec with this graph and this partition."""
        document = tomlkit.parse(SPEC.read_text("utf-8"))
        document["graph"] = GRAPHS[self.graph]
        for key, value in DATA[self.data].items():
            document["problem"][key] = value
        document["problem"]["seed"] = self.seed
        return spec.parse(tomlkit.dumps(document), str(SPEC)).plan()


def settings() -> Iterator[Setting]:
    for data in DATA:
        for graph in GRAPHS:
            for seed in SEEDS[data]:
                yield Setting(data, graph, seed)


# The parts


def race() -> writing.Rows:
    """What each method needs to reach 1.2 times the optimum, with the step chosen by `fw.compare`, and the traps."""
    rows = []
    for setting in settings():
        plan = setting.plan()
        problem, graph = plan.problem, plan.graph
        smoothness = problem.smoothness
        order = np.argsort(smoothness)[::-1]
        row: dict[str, Any] = setting._asdict() | {"max / mean": float(smoothness.max() / smoothness.mean())}
        row |= {"max / median": float(smoothness.max() / np.median(smoothness))}
        sizes = np.diff(problem.offsets)
        row |= {"largest": int(sizes.max()), "median size": float(np.median(sizes)), "samples": int(sizes.sum())}
        row["excess"] = {}
        for method in plan.contestants:
            if method.label in WALKS:
                kernel = method.kernel(graph, problem)
                row["excess"][method.label] = [excess_visits(kernel, order[:count]) for count in (1, 5)]
        found = fw.compare(problem, graph, plan.contestants, goal=GOAL, walks=REPLICAS, seed=1, most=MOST)
        row |= {"optimum": found.optimum, "first": problem.zero_loss(), "methods": found.as_dict()["rows"]}
        rows.append(row)
        print(*setting, [(one.label, one.step, one.to_goal["updates"]) for one in found.rows], flush=True)
    return rows


def curves() -> writing.Rows:
    """The loss against updates and messages, with the steps of the race."""
    raced = {tuple(row[key] for key in ("data", "graph", "seed")): row for row in read()["race"]}
    rows = []
    for data, graph in LENGTHS:
        setting = Setting(data, graph, 1)
        plan = setting.plan()
        steps = {one["label"]: one["step"] for one in raced[setting]["methods"]}
        length = LENGTHS[data, graph]
        for method in plan.contestants:
            options = {"steps": length, "every": length // 100, "walks": REPLICAS, "seed": 2}
            run = method.with_step(steps[method.label]).learn(plan.problem, plan.graph, **options).data
            above = run.loss.values / raced[setting]["optimum"]
            rows.append(
                {
                    "data": data,
                    "graph": graph,
                    "method": method.label,
                    "step": steps[method.label],
                    "updates": run.updates.values.tolist(),
                    "messages": [round(float(value), 1) for value in run.messages.values.mean(axis=0)],
                    "loss": [round(float(value), 4) for value in above.mean(axis=0)],
                    "error": [round(float(value), 4) for value in 1.96 * above.std(axis=0, ddof=1) / np.sqrt(REPLICAS)],
                }
            )
    return rows


PARTS = {"race": race, "curves": curves}


def read() -> dict[str, writing.Rows]:
    return writing.read_parts(HERE, PARTS)


# Tables and a figure


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])


def traps_table(rows: writing.Rows) -> str:
    head = ["data", "graph", "patients at the largest node", "L: max / mean"]
    head += [f"{label}: heaviest · five heaviest" for label in WALKS]
    body = []
    for row in rows:
        cells = [name_of(row), row["graph"], f"{row['largest']} of {row['samples']}", f"{row['max / mean']:.1f}"]
        cells += [" · ".join(f"{value:.0f}" for value in row["excess"][label]) for label in WALKS]
        body.append(cells)
    return table(head, body)


def race_table(rows: writing.Rows, axis: str) -> str:
    body = []
    for row in rows:
        cells = [name_of(row), row["graph"]]
        for one in row["methods"]:
            span = one["to_goal"][axis]
            cells.append("not reached" if span is None else f"{span['value']:,.0f} {interval(span)}")
        body.append(cells)
    return table(["data", "graph", *LABELS], body)


def interval(span: dict[str, Any]) -> str:
    low, high = (span[key] for key in ("low", "high"))
    return f"(≥ {low:,.0f})" if high is None or not np.isfinite(high) else f"({low:,.0f}–{high:,.0f})"


def name_of(row: dict[str, Any]) -> str:
    return f"{row['data']} {row['seed']}" if len(SEEDS[row["data"]]) > 1 else row["data"]


SHADES = (0, 1, 2, 3, 6, 6)
LINES = {label: {"color": COLOURS[shade]} for label, shade in zip(LABELS, SHADES)}
LINES["corrected MHLJ"]["linestyle"] = LINES[SERVERS[1]]["linestyle"] = (0, (4, 2))


def draw_curves(rows: writing.Rows) -> None:
    figure = new_figure(11.0, 7.0)
    panels = figure.subplots(2, 2, sharey=True)
    for axes, (data, graph) in zip(panels.flat, LENGTHS):
        for row in rows:
            if (row["data"], row["graph"]) == (data, graph):
                x, y, error = (np.array(row[key], dtype=float) for key in ("updates", "loss", "error"))
                line, y, error = LINES[row["method"]], 100 * (y - 1), 100 * error
                axes.fill_between(x[1:], (y - error)[1:], (y + error)[1:], color=line["color"], alpha=0.13, linewidth=0)
                axes.plot(x[1:], y[1:], label=row["method"], linewidth=1.7, **line)
        axes.axhline(100 * (GOAL - 1), color="#777777", linewidth=0.9, linestyle=(0, (1, 2)))
        axes.set(xscale="log", yscale="log", ylim=(5, 330), title=f"{data}, {graph}", xlabel="updates")
        axes.set_yticks([5, 10, 20, 50, 100, 200], ["5 %", "10 %", "20 %", "50 %", "100 %", "200 %"])
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panels[1, 0].text(100, 21, "goal", fontsize=9, color="#777777", va="bottom")
    for axes in panels[:, 0]:
        axes.set_ylabel("mean loss above the optimum")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    save(figure, HERE / "curves.png")


def draw() -> None:
    found = read()
    with matplotlib.rc_context(STYLE):
        draw_curves(found["curves"])
    tables = {"cancer traps": traps_table(found["race"]), "cancer updates": race_table(found["race"], "updates")}
    tables["cancer messages"] = race_table(found["race"], "messages")
    writing.fill(PAGE, tables)


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    writing.main("breast_cancer.py", __doc__, PARTS, HERE, draw)
