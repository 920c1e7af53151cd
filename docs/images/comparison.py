"""Measure what docs/explanation/comparison.md says of walks, gossip and servers, draw its figures and write its tables.

python docs/images/comparison.py                      # everything, about MINUTES minutes on two cores
python docs/images/comparison.py --data alike -n 100  # some of the settings; what is measured already is kept
python docs/images/comparison.py --goals              # only the goals that are nearer to the optimum
python docs/images/comparison.py --again              # measure again what is there already
python docs/images/comparison.py --draw               # nothing is measured: figures and tables from comparison/*.json
"""

import argparse
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np

import freewalk as fw
from freewalk.baselines import Method
from freewalk.comparing import Budget
from freewalk.comparing.stepping import exact_step
from freewalk.comparing.track import Contestant, Track
from freewalk.report.figures import COLOURS, STYLE, new_figure, save

HERE = Path(__file__).parent / "comparison"
PAGE = Path(__file__).parents[1] / "explanation" / "comparison.md"
WALKS, SEED, MOST = 100, 1, 10_000_000
START = 0  # a heavy node where there are any, and at the border of the regions
BUDGET = Budget(runs=60, updates=300_000_000, walks=32)
SIZES = (100, 1000)
Rows = list[dict[str, Any]]

GRAPHS: dict[str, Callable[[int], fw.Graph]] = {
    "ring": fw.graphs.ring,
    "grid": lambda n: fw.graphs.grid(*{100: (10, 10), 1000: (25, 40)}[n]),
    "Watts–Strogatz": lambda n: fw.graphs.watts_strogatz(n, 4, 0.1, seed=1),
    "Erdős–Rényi": lambda n: fw.graphs.erdos_renyi(n, 10 / n, seed=1),
}
GOALS = {"alike": 2.0, "heavy": 2.0, "regions": 1.2}
DATA: dict[str, Callable[[int], dict[str, Any]]] = {
    "alike": lambda n: {},
    "heavy": lambda n: {"heavy": 2, "heavy_variance": 100.0, "shift": 0.2, "shifted": "all"},
    "regions": lambda n: {"heavy": n // 2, "heavy_variance": 1.0, "shift": 0.5},  # the first half has another optimum
}
GRADIENT = fw.SGD(step=0.01)  # steps are chosen by fw.compare
METHODS = [
    Method("uniform walk", fw.designs.Metropolis(), GRADIENT),
    Method("importance walk", fw.designs.Metropolis(power=1), GRADIENT),
    Method("MHLJ (.1, .5, 3)", fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3), GRADIENT),
    Method("SAG, uniform walk", fw.designs.Metropolis(), fw.rules.SAG(step=0.01)),
    fw.baselines.multi_walk_sgd(0.01, tokens=8),
    fw.baselines.multi_walk_sgd(0.01, tokens=8, meet=True),
    fw.baselines.decentralized_sgd(0.01),
    fw.baselines.gradient_tracking(0.01),
    fw.baselines.fedavg(0.01, local_steps=10),
    fw.baselines.centralized_sgd(0.01, "uniform"),
    fw.baselines.centralized_sgd(0.01, "importance"),
]
LABELS = [method.label for method in METHODS]
ONE, IMPORTANCE, MHLJ, SAG, EIGHT, MEETING, GOSSIP, TRACKING, FEDAVG, CENTRAL, CENTRAL_IMPORTANCE = LABELS
BY_SERVER = LABELS[-3:]
NEARER = HERE / "goals.json"
NEARER_GOALS = (2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01)
NEARER_LABELS = (ONE, MHLJ, SAG, EIGHT, GOSSIP, TRACKING, FEDAVG)


class Setting(NamedTuple):
    """A problem on a graph."""

    data: str
    n: int
    graph: str

    @property
    def file(self) -> Path:
        short = {"ring": "ring", "grid": "grid", "Watts–Strogatz": "watts-strogatz", "Erdős–Rényi": "erdos-renyi"}
        return HERE / f"{self.data}-{self.n}-{short[self.graph]}.json"

    @property
    def network(self) -> fw.Graph:
        return GRAPHS[self.graph](self.n)

    @property
    def problem(self) -> fw.objectives.LeastSquares:
        return fw.objectives.LeastSquares.synthetic(self.n, dim=10, noise=0.1, seed=SEED, **DATA[self.data](self.n))

    @property
    def goal(self) -> float:
        return GOALS[self.data]


def settings() -> Iterator[Setting]:
    for data in DATA:
        for n in SIZES:
            for graph in GRAPHS:
                yield Setting(data, n, graph)


def measure(setting: Setting, again: bool) -> None:
    """Run the contestants that are not there yet, and keep each as soon as it is done."""
    kept = {} if again or not setting.file.is_file() else json.loads(setting.file.read_text("utf-8"))
    rows = {row["label"]: row for row in kept.get("rows", [])}
    problem, graph = setting.problem, setting.network
    best, first = (problem.measure(model)["mse"] for model in (problem.optimum(), np.zeros(problem.dim)))
    head = {"command": f"python docs/images/comparison.py --data {setting.data} -n {setting.n}"}
    head |= {"version": fw.__version__, **setting._asdict(), "goal": setting.goal, "optimum": best, "first": first}
    head |= {"walks": WALKS, "seed": SEED, "most": MOST, "start": START, "edges": graph.edges, **alone(problem, best)}
    head |= {"server distance": server_distance(graph, np.full(graph.n, 1 / graph.n))}
    for method in METHODS:
        if method.label in rows:
            continue
        began = time.perf_counter()
        options = {"goal": setting.goal, "walks": WALKS, "seed": SEED, "most": MOST, "start": START, "budget": BUDGET}
        found = fw.compare(problem, graph, [method], **options)
        row = found.as_dict()["rows"][0]
        if method.label in BY_SERVER:
            row["hops"] = server_distance(graph, method.kernel(graph, problem).target)
        if row["how"] in ("exact", "search"):
            row["settling"] = at_settling_step(setting, method)
        row["seconds"] = round(time.perf_counter() - began, 1)
        rows[method.label] = row
        lines = ",\n  ".join(json.dumps(rows[label], ensure_ascii=False) for label in LABELS if label in rows)
        words = json.dumps(head, ensure_ascii=False)[1:-1]
        setting.file.write_text(f'{{{words}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
        reached = row["to_goal"]["messages"]
        print(*setting, "·", method.label, reached and reached["value"], row["final"], row["seconds"], flush=True)


def alone(problem: fw.objectives.LeastSquares, best: float) -> dict[str, float]:
    """How well a node does with the minimum-norm solution for its own data, as a multiple of the optimum."""
    found = []
    for node in range(problem.n):
        own = slice(problem.offsets[node], problem.offsets[node + 1])
        model = np.linalg.lstsq(problem.features[own], problem.targets[own], rcond=None)[0]
        found.append(problem.measure(model)["mse"] / best)
    return {"alone": float(np.median(found))}


def server_distance(graph: fw.Graph, law: Any) -> float:
    """The mean number of hops between nodes that are drawn and the node that is best placed to serve them."""
    return float(min(law @ graph.distances([server]) for server in range(graph.n)))


def at_settling_step(setting: Setting, method: Method) -> dict[str, float | None] | None:
    """What it takes with the exact step that settles at half of the goal's excess; None where that is not known."""
    problem, graph = setting.problem, setting.network
    best = problem.measure(problem.optimum())["mse"]
    options = {"start": START, "initial": None, "runtime": "cpu", "precision": "float64"}
    track = Track(problem, graph, setting.goal * best, best, SEED, WALKS, MOST, options, lambda words: None)
    step = exact_step(Contestant(track, method))
    if step is None:
        return None
    options = {"goal": setting.goal, "walks": WALKS, "seed": SEED, "most": MOST, "start": START, "keep_steps": True}
    (row,) = fw.compare(problem, graph, [method.with_step(step)], **options).rows
    return {"step": step, "rounds": row.to_goal["rounds"].value if row.reached else None}


def measure_goals(again: bool) -> None:
    """The same with goals that are nearer to the optimum, on graphs of 100 nodes whose data are alike."""
    kept = {} if again or not NEARER.is_file() else json.loads(NEARER.read_text("utf-8"))
    rows = {(row["graph"], row["goal"], row["label"]): row for row in kept.get("rows", [])}
    head = {"command": "python docs/images/comparison.py --goals", "version": fw.__version__, "data": "alike", "n": 100}
    head |= {"walks": WALKS, "seed": SEED, "most": MOST, "start": START}
    for graph in ("ring", "grid"):
        setting = Setting("alike", 100, graph)
        problem, network = setting.problem, setting.network
        for goal in NEARER_GOALS:
            for method in METHODS:
                key = graph, goal, method.label
                if method.label not in NEARER_LABELS or key in rows:
                    continue
                options = {"goal": goal, "walks": WALKS, "seed": SEED, "most": MOST, "start": START, "budget": BUDGET}
                found = fw.compare(problem, network, [method], **options)
                rows[key] = {"graph": graph, "goal": goal, "optimum": found.optimum, **found.as_dict()["rows"][0]}
                lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows.values())
                words = json.dumps(head, ensure_ascii=False)[1:-1]
                NEARER.write_text(f'{{{words}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
                print(*key, rows[key]["to_goal"]["messages"], flush=True)


# Tables and figures

Found = dict[Setting, dict[str, Any]]


def read() -> Found:
    return {one: json.loads(one.file.read_text("utf-8")) for one in settings() if one.file.is_file()}


def by_label(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["label"]: row for row in found["rows"]}


def count(row: dict[str, Any], axis: str) -> float:
    """What it took to the goal; infinite where that was not reached."""
    span = row["to_goal"][axis]
    return float("inf") if span is None else float(span["value"])


def routed(row: dict[str, Any]) -> float:
    """The messages of a method with a server, each over every edge between a node and the server.

    Those of centralized SGD are counted from one node that is drawn to the next: on their way they pass the server.
    """
    return count(row, "messages") * row["hops"] * (1 if row["label"] == FEDAVG else 2)


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])


def size(value: float) -> str:
    """Three digits: 33,500 as it is, larger numbers in millions."""
    if not np.isfinite(value):
        return "—"
    if value >= 1e6:
        return f"{value / 1e6:#.3g}".rstrip(".") + " million"
    return f"{value:.2g}" if value < 10 else f"{float(f'{value:.3g}'):,.0f}"


def times(value: float) -> str:
    """A factor in two digits."""
    if not np.isfinite(value):
        return "—"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{float(f'{value:.2g}'):,.0f}"


def cell(row: dict[str, Any], axis: str, best: float) -> str:
    if row["to_goal"][axis] is None:
        final = "diverged" if row["final"] is None else f"at {row['final'] / best:.2f}×"
        return f"> {size(row['in_all'][axis])} ({final})"
    return size(count(row, axis)) + " ?" * (not row["stayed"])


def counts_table(found: Found, data: str, n: int) -> str:
    """Methods by graphs: messages and rounds, and hop by hop where there is a server."""
    shown = {one.graph: (by_label(kept), kept) for one, kept in found.items() if (one.data, one.n) == (data, n)}
    head = ["method", "bytes per message", "updates per round"]
    for graph in shown:
        head += [f"{graph}: messages", "rounds"]
    body = []
    for label in LABELS:
        any_row = next(iter(shown.values()))[0][label]
        line = [label, f"{any_row['in_all']['bytes'] / any_row['in_all']['messages']:.0f}"]
        line.append(f"{any_row['in_all']['updates'] / any_row['in_all']['rounds']:,.0f}")
        for rows, kept in shown.values():
            row, best = rows[label], kept["optimum"]
            messages = cell(row, "messages", best)
            if label in BY_SERVER:
                messages += f" ({size(routed(row))} routed)"
            line += [messages, cell(row, "rounds", best)]
        body.append(line)
    return table(head, body)


def gossip_of(rows: dict[str, dict[str, Any]], axis: str) -> float:
    """The fewer of gossip and gradient tracking."""
    return min(count(rows[GOSSIP], axis), count(rows[TRACKING], axis))


def factors(kept: dict[str, Any]) -> dict[str, float]:
    """What the verdicts compare; more than 1 is more of what is counted."""
    rows = by_label(kept)
    one = rows[ONE]
    messages, rounds = count(one, "messages"), count(one, "rounds")
    return {
        "messages: gossip / one walk": gossip_of(rows, "messages") / messages,
        "rounds: one walk / gossip": rounds / gossip_of(rows, "rounds"),
        "bytes: gossip / one walk": gossip_of(rows, "bytes") / count(one, "bytes"),
        "messages: FedAvg routed / one walk": routed(rows[FEDAVG]) / messages,
        "messages: 8 walks / one": count(rows[EIGHT], "messages") / messages,
        "rounds: one walk / 8": rounds / count(rows[EIGHT], "rounds"),
        "updates: importance / uniform": count(rows[IMPORTANCE], "updates") / count(one, "updates"),
        "updates: MHLJ / uniform": count(rows[MHLJ], "updates") / count(one, "updates"),
        "messages: MHLJ / uniform": count(rows[MHLJ], "messages") / messages,
        "messages: SAG / uniform": count(rows[SAG], "messages") / messages,
        "rounds: gossip / FedAvg": gossip_of(rows, "rounds") / count(rows[FEDAVG], "rounds"),
        "messages: decentralized SGD / tracking": count(rows[GOSSIP], "messages") / count(rows[TRACKING], "messages"),
        "updates: uniform walk / centralized": count(one, "updates") / count(rows[CENTRAL], "updates"),
        "updates: centralized uniform / importance": count(rows[CENTRAL], "updates")
        / count(rows[CENTRAL_IMPORTANCE], "updates"),
    }


def factors_table(found: Found) -> str:
    names = list(factors(next(iter(found.values()))))
    body = [[one.data, str(one.n), one.graph, *map(times, factors(kept).values())] for one, kept in found.items()]
    return table(["data", "n", "graph", *names], body)


def places_table(found: Found) -> str:
    body = []
    for n in SIZES:
        for graph in GRAPHS:
            kept = {one.data: each for one, each in found.items() if (one.n, one.graph) == (n, graph)}
            if len(kept) == len(DATA):
                edges, hops = kept["alike"]["edges"], kept["alike"]["server distance"]
                body.append([str(n), graph, f"{edges:,}", f"{2 * edges:,}", f"{hops:.1f}"])
    return table(["n", "graph", "edges", "messages of a round of gossip", "mean distance to the best server"], body)


def data_table(found: Found) -> str:
    body = []
    for one, kept in found.items():
        if one.graph == "ring":
            values = [
                f"{kept['first']:.3f}",
                f"{kept['optimum']:.4f}",
                f"{one.goal:g}",
                f"{one.goal * kept['optimum']:.4f}",
            ]
            body.append(
                [one.data, str(one.n), *values, f"{kept['first'] / kept['optimum']:.0f}×", f"{kept['alone']:.0f}×"]
            )
    head = [
        "data",
        "n",
        "mse at x = 0",
        "optimum",
        "goal",
        "mse at the goal",
        "x = 0 / optimum",
        "one node alone / optimum",
    ]
    return table(head, body)


def settling_table(found: Found) -> str:
    """Rounds with the step that settles at half of the goal's excess, over those with the step that was chosen."""
    labels = (ONE, IMPORTANCE, MHLJ, EIGHT, CENTRAL, CENTRAL_IMPORTANCE)
    body = []
    for one, kept in found.items():
        rows, line = by_label(kept), [one.data, str(one.n), one.graph]
        for label in labels:
            at = rows[label].get("settling")
            missed = at is not None and at["rounds"] is None
            ratio = float("inf") if at is None or missed else at["rounds"] / count(rows[label], "rounds")
            line.append("not within `most`" if missed else times(ratio))
        body.append(line)
    return table(["data", "n", "graph", *labels], body)


def goals_table(rows: Rows) -> str:
    """Messages by goal."""
    found = {(row["graph"], row["goal"], row["label"]): row for row in rows}
    body = []
    for graph in dict.fromkeys(row["graph"] for row in rows):
        for goal in NEARER_GOALS:
            cells = [found[graph, goal, label] for label in NEARER_LABELS]
            texts = [cell(row, "messages", row["optimum"]) for row in cells]
            body.append([graph, f"{goal:g}×", *texts])
    return table(["graph", "goal", *(f"{label}: messages" for label in NEARER_LABELS)], body)


MARKS = ("o", "s", "^", "D", "o", "s", "P", "X", "v", "*", "*")
SHADES = (0, 1, 2, 3, 5, 5, 4, 4, 6, 6, 6)


def draw_counts(found: Found, n: int) -> None:
    figure = new_figure(11.0, 8.6)
    panels = figure.subplots(len(DATA), len(GRAPHS), sharex=True, sharey=True)
    for (data, graph), axes in zip(((data, graph) for data in DATA for graph in GRAPHS), panels.flat):
        rows = by_label(found[Setting(data, n, graph)])
        for label, mark, shade in zip(LABELS, MARKS, SHADES):
            hollow = label in (MEETING, CENTRAL)
            style = {"markersize": 8 if mark == "*" else 6, "color": COLOURS[shade], "linestyle": "none"}
            style |= {"markerfacecolor": "none"} if hollow else {}
            here = count(rows[label], "messages"), count(rows[label], "rounds")
            axes.plot(*here, mark, label=label, **style)
            if label in BY_SERVER and np.isfinite(here[0]):
                axes.plot([here[0], routed(rows[label])], [here[1]] * 2, color=COLOURS[shade], linewidth=0.8)
        axes.set(xscale="log", yscale="log", title=f"{graph}, {data}")
        axes.grid(True, alpha=0.3)
    for axes in panels[-1]:
        axes.set_xlabel("messages to the goal")
    for axes in panels[:, 0]:
        axes.set_ylabel("rounds to the goal")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    save(figure, HERE / f"counts-{n}.png")


def draw_goals(rows: Rows) -> None:
    figure = new_figure(9.6, 4.2)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, graph in zip(panels, dict.fromkeys(row["graph"] for row in rows)):
        for label in NEARER_LABELS:
            shown = [row for row in rows if (row["graph"], row["label"]) == (graph, label)]
            place = LABELS.index(label)
            style = {"color": COLOURS[SHADES[place]], "marker": MARKS[place], "markersize": 5}
            axes.plot(
                [row["goal"] - 1 for row in shown], [count(row, "messages") for row in shown], label=label, **style
            )
        axes.set(xscale="log", yscale="log", title=f"{graph}, alike, n = 100", xlabel="goal, excess over the optimum")
        axes.set_xticks([goal - 1 for goal in NEARER_GOALS], [f"{100 * (goal - 1):.0f} %" for goal in NEARER_GOALS])
        axes.minorticks_off()
        axes.invert_xaxis()
        axes.grid(True, alpha=0.3)
    panels[0].set_ylabel("messages to the goal")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    save(figure, HERE / "goals.png")


def draw() -> None:
    found = {one: kept for one, kept in read().items() if len(kept["rows"]) == len(LABELS)}
    with matplotlib.rc_context(STYLE):
        for n in SIZES:
            if all(Setting(data, n, graph) in found for data in DATA for graph in GRAPHS):
                draw_counts(found, n)
    tables = {
        f"{data} {n}": counts_table(found, data, n)
        for data in DATA
        for n in SIZES
        if (data, n) in {one[:2] for one in found}
    }
    tables |= {"factors": factors_table(found), "settling": settling_table(found), "places": places_table(found)}
    tables |= {"data": data_table(found)}
    if NEARER.is_file():
        rows = json.loads(NEARER.read_text("utf-8"))["rows"]
        tables["goals"] = goals_table(rows)
        with matplotlib.rc_context(STYLE):
            draw_goals(rows)
    page = PAGE.read_text(encoding="utf-8")
    for name, text in tables.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, times_found = place.subn(lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page)
        if times_found != 1:
            raise SystemExit(f"{PAGE}: has {times_found} places for the table {name!r}, expected 1")
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    words = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(description=words[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=list(DATA), action="append", help="these data only (may be repeated)")
    parser.add_argument("-n", type=int, choices=SIZES, action="append", help="graphs of this size only")
    parser.add_argument("--goals", action="store_true", help="only the goals that are nearer to the optimum")
    parser.add_argument("--again", action="store_true", help="measure again what is there already")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="freewalk")  # that plain MHLJ is biased, which is what is shown
    HERE.mkdir(exist_ok=True)
    for setting in [] if options.draw or options.goals else settings():
        if setting.data in (options.data or DATA) and setting.n in (options.n or SIZES):
            measure(setting, options.again)
    if options.goals or not (options.draw or options.data or options.n):
        measure_goals(options.again)
    draw()


if __name__ == "__main__":
    main()
