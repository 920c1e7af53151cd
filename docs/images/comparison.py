"""Measure, draw and tabulate what docs/explanation/comparison.md says about walks, gossip and servers.

python docs/images/comparison.py                      # everything, about 35 minutes on two cores
python docs/images/comparison.py --data alike -n 100  # some of the settings; existing measurements are kept
python docs/images/comparison.py --goals              # only the goals closer to the optimum
python docs/images/comparison.py --control            # only alike data with the goal of regions
python docs/images/comparison.py --own                # only gossip until the nodes' own models reach the goal
python docs/images/comparison.py --again              # repeat existing measurements
python docs/images/comparison.py --draw               # no measurements: figures and tables from comparison/*.json
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import writing

import freewalk as fw
from freewalk.baselines import Method
from freewalk.comparison import Budget
from freewalk.comparison.steps import exact_step
from freewalk.comparison.track import Contestant, Track
from freewalk.report.figures import COLOURS, STYLE, new_figure, save

HERE = Path(__file__).parent / "comparison"
PAGE = Path(__file__).parents[1] / "explanation" / "comparison.md"
WALKS, MOST = 100, 10_000_000
BUDGET = Budget(runs=60, updates=300_000_000, walks=32)
SIZES = (100, 1000)
SEEDS = (1, 2)  # for data, graphs and walks; the second is a check of the first
Rows = list[dict[str, Any]]

GRAPHS: dict[str, Callable[[int, int], fw.Graph]] = {
    "ring": lambda n, seed: fw.graphs.ring(n),
    "grid": lambda n, seed: fw.graphs.grid(*{100: (10, 10), 1000: (25, 40)}[n]),
    "Watts–Strogatz": lambda n, seed: fw.graphs.watts_strogatz(n, 4, 0.1, seed=seed),
    "Erdős–Rényi": lambda n, seed: fw.graphs.erdos_renyi(n, 10 / n, seed=seed),
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
    fw.baselines.centralized_sgd(0.01, "uniform"),
    fw.baselines.centralized_sgd(0.01, "importance"),
]
LOCAL_STEPS = (1, 2, 5, 10, 20, 50, 100, 200)
CLIENTS = (1, 2, 5, 10, 20, 100)  # and all nodes
BATCHES = (1, 2, 4, 8, 16, 32)
#: Methods with more parameters than the step: of all of them, the one that needs least of something.
LOCAL, LOCAL_MHLJ = "uniform walk, local steps", "MHLJ, local steps"
FEDAVG, HASTY, MINIBATCH = "FedAvg, fewest messages", "FedAvg, fewest rounds", "minibatch SGD, fewest messages"
CHOICES = dict.fromkeys((LOCAL, LOCAL_MHLJ, FEDAVG, HASTY, MINIBATCH), "messages") | {HASTY: "rounds"}
ONE, IMPORTANCE, MHLJ, SAG, EIGHT, MEETING, GOSSIP, TRACKING, CENTRAL, BY_IMPORTANCE = (one.label for one in METHODS)
BY_SERVER = (CENTRAL, BY_IMPORTANCE, FEDAVG, HASTY, MINIBATCH)
LABELS = (ONE, IMPORTANCE, MHLJ, LOCAL, LOCAL_MHLJ, SAG, EIGHT, MEETING, GOSSIP, TRACKING, *BY_SERVER)
CONTROL = HERE / "control.json"
CONTROL_LABELS = (ONE, EIGHT, GOSSIP, TRACKING)
OWN = HERE / "own.json"
NEARER = HERE / "goals.json"
NEARER_GOALS = (2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01)
NEARER_LABELS = (ONE, MHLJ, SAG, EIGHT, GOSSIP, TRACKING, FEDAVG, MINIBATCH)


class Setting(NamedTuple):
    """A problem on a graph."""

    data: str
    n: int
    graph: str
    seed: int = 1

    @property
    def file(self) -> Path:
        short = {"ring": "ring", "grid": "grid", "Watts–Strogatz": "watts-strogatz", "Erdős–Rényi": "erdos-renyi"}
        return HERE / ("" if self.seed == 1 else f"seed-{self.seed}") / f"{self.data}-{self.n}-{short[self.graph]}.json"

    @property
    def network(self) -> fw.Graph:
        return GRAPHS[self.graph](self.n, self.seed)

    @property
    def problem(self) -> fw.objectives.LeastSquares:
        options = {"dim": 10, "noise": 0.1, "seed": self.seed, **DATA[self.data](self.n)}
        return fw.objectives.LeastSquares.synthetic(self.n, **options)

    @property
    def start(self) -> int:
        """Where walks start: at node 0, which is heavy if any node is, or in the middle of a region."""
        return self.n // 4 if self.data == "regions" else 0

    @property
    def goal(self) -> float:
        return GOALS[self.data]

    @property
    def options(self) -> dict[str, Any]:
        """Options for `fw.compare`."""
        return {"goal": self.goal, "walks": WALKS, "seed": self.seed, "most": MOST, "start": self.start}


def settings(seed: int = 1) -> Iterator[Setting]:
    for data in DATA:
        for n in SIZES:
            for graph in GRAPHS:
                yield Setting(data, n, graph, seed)


def measure(setting: Setting, again: bool) -> None:
    """Run the methods that have not been measured yet, and save each result at once."""
    kept = {} if again or not setting.file.is_file() else json.loads(setting.file.read_text("utf-8"))
    rows = {row["label"]: row for row in kept.get("rows", [])}
    problem, graph = setting.problem, setting.network
    best, first = (problem.measure(model)["mse"] for model in (problem.optimum(), np.zeros(problem.dim)))
    words = f"--data {setting.data} -n {setting.n} --seed {setting.seed}"
    head = {"command": f"python docs/images/comparison.py {words}"}
    head |= {"version": fw.__version__, **setting._asdict(), **setting.options, "optimum": best, "first": first}
    head |= {"edges": graph.edges, "alone": alone(problem) / best}
    head |= {"server distance": server_distance(graph, np.full(graph.n, 1 / graph.n))}
    for label in LABELS:
        if label in rows:
            continue
        began = time.perf_counter()
        method, row = best_of(setting, label)
        if label in BY_SERVER:
            row["hops"] = server_distance(graph, method.kernel(graph, problem).target)
        if row["how"] in ("exact", "search") and label not in CHOICES:
            row["settling"] = at_settling_step(setting, method)
        row["seconds"] = round(time.perf_counter() - began, 1)
        rows[label] = row
        lines = ",\n  ".join(json.dumps(rows[label], ensure_ascii=False) for label in LABELS if label in rows)
        words = json.dumps(head, ensure_ascii=False)[1:-1]
        setting.file.write_text(f'{{{words}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
        reached = row["to_goal"]["messages"]
        print(*setting, "·", label, reached and reached["value"], row["final"], row["seconds"], flush=True)


def best_of(setting: Setting, label: str, **other: Any) -> tuple[Method, dict[str, Any]]:
    """A method by its label, and what it needs; of those to choose from, the best one, with the counts of all."""
    options = setting.options | other
    if label not in CHOICES:
        method = next(one for one in METHODS if one.label == label)
        return method, found_by(setting.problem, setting.network, method, **options)
    axis = CHOICES[label]
    if label in BY_SERVER:
        # A server reaches every node of any graph, and draws where it begins.
        all_alike = setting._replace(graph="ring"), tuple((options | {"start": None}).items())
        rows = (batches if label == MINIBATCH else clients)(*all_alike)
    else:
        rows = local_steps(setting, METHODS[0 if label == LOCAL else 2], options)
    best = min(rows, key=lambda method: count(rows[method], axis))
    tried = {method.label: rows[method]["to_goal"][axis] and rows[method]["to_goal"][axis]["value"] for method in rows}
    return best, {**rows[best], "label": label, "chosen": best.label, "tried": tried}


def local_steps(setting: Setting, walk: Method, options: dict[str, Any]) -> dict[Method, dict[str, Any]]:
    """A walk that makes several steps at each node; two numbers more than the best so far are tried."""
    rows: dict[Method, dict[str, Any]] = {}
    for place, steps in enumerate(LOCAL_STEPS):
        method = replace(walk, label=f"{steps} local", rule=fw.SGD(step=0.01, local_steps=steps))
        rows[method] = found_by(setting.problem, setting.network, method, **options)
        counts = [count(row, "messages") for row in rows.values()]
        if place >= counts.index(min(counts)) + 2:
            break
    return rows


Options = tuple[tuple[str, Any], ...]


@cache
def clients(setting: Setting, options: Options) -> dict[Method, dict[str, Any]]:
    """FedAvg with all nodes, then with few, and with more until that takes twice the messages of the best so far."""
    rows: dict[Method, dict[str, Any]] = {}
    for steps in LOCAL_STEPS:
        for nodes in (setting.n, *(one for one in CLIENTS if one < setting.n)):
            label = f"{steps} local, {nodes} node{'s' * (nodes > 1)}"
            one = Method(label, fw.designs.Centralized(), fw.SGD(step=0.01, local_steps=steps))
            several = replace(fw.baselines.fedavg(0.01, steps, fraction=nodes / setting.n), label=label)
            rows[one if nodes == 1 else several] = row = served(setting, options, one if nodes == 1 else several)
            best = min(count(each, "messages") for each in rows.values())
            if nodes < setting.n and count(row, "messages") > 2 * best:
                break
    return rows


@cache
def batches(setting: Setting, options: Options) -> dict[Method, dict[str, Any]]:
    rows = {}
    for nodes in BATCHES:
        for sampling in ("uniform", "importance"):
            several = fw.baselines.minibatch_sgd(0.01, max(nodes, 2), sampling)
            method = fw.baselines.centralized_sgd(0.01, sampling) if nodes == 1 else several
            method = replace(method, label=f"{nodes} node{'s' * (nodes > 1)}, {sampling}")
            rows[method] = served(setting, options, method)
    return rows


def served(setting: Setting, options: Options, method: Method) -> dict[str, Any]:
    row = found_by(setting.problem, setting.network, method, **dict(options))
    for axis in ("messages", "bytes") if method.exchange is None else ():
        # With one node per round the model goes to it and back, as with several.
        row["in_all"][axis] *= 2
        span = row["to_goal"][axis]
        row["to_goal"][axis] = span and {name: value and 2 * value for name, value in span.items()}
    return row


def found_by(problem: fw.Objective, graph: fw.Graph, method: Method, **options: Any) -> dict[str, Any]:
    """What a method needs to reach the goal, with the step that is best for it."""
    found = fw.compare(problem, graph, [method], budget=BUDGET, **options)
    return {**found.as_dict()["rows"][0], "optimum": found.optimum}


def alone(problem: fw.objectives.LeastSquares) -> float:
    """The mse of the minimum-norm solution for the data of one node, as the median over the nodes."""
    found = []
    for node in range(problem.n):
        own = slice(problem.offsets[node], problem.offsets[node + 1])
        model = np.linalg.lstsq(problem.features[own], problem.targets[own], rcond=None)[0]
        found.append(problem.measure(model)["mse"])
    return float(np.median(found))


def server_distance(graph: fw.Graph, law: Any) -> float:
    """The mean number of hops from a node drawn by `law` to the server, if the server is at the best-placed node."""
    return float(min(law @ graph.distances([server]) for server in range(graph.n)))


def at_settling_step(setting: Setting, method: Method) -> dict[str, float | None] | None:
    """The rounds with the step that settles at half of the goal's excess; None if that step is not known."""
    problem, graph = setting.problem, setting.network
    best = problem.measure(problem.optimum())["mse"]
    options = {"start": setting.start, "initial": None, "runtime": "cpu", "precision": "float64"}
    track = Track(problem, graph, setting.goal * best, best, setting.seed, WALKS, MOST, options, lambda words: None)
    step = exact_step(Contestant(track, method))
    if step is None:
        return None
    (row,) = fw.compare(problem, graph, [method.with_step(step)], keep_steps=True, **setting.options).rows
    return {"step": step, "rounds": row.to_goal["rounds"].value if row.reached else None}


def measure_goals(again: bool) -> None:
    """The same with goals closer to the optimum, on graphs of 100 nodes with alike data."""
    kept = {} if again or not NEARER.is_file() else json.loads(NEARER.read_text("utf-8"))
    kept_rows = [row for row in kept.get("rows", []) if row["label"] in NEARER_LABELS]
    rows = {(row["graph"], row["goal"], row["label"]): row for row in kept_rows}
    head = {"command": "python docs/images/comparison.py --goals", "version": fw.__version__, "data": "alike", "n": 100}
    head |= {"walks": WALKS, "seed": 1, "most": MOST, "start": 0}
    for graph in ("ring", "grid"):
        setting = Setting("alike", 100, graph)
        for goal in NEARER_GOALS:
            for label in NEARER_LABELS:
                key = graph, goal, label
                if key in rows:
                    continue
                rows[key] = {"graph": graph, "goal": goal, **best_of(setting, label, goal=goal)[1]}
                lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows.values())
                words = json.dumps(head, ensure_ascii=False)[1:-1]
                NEARER.write_text(f'{{{words}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
                print(*key, rows[key]["to_goal"]["messages"], flush=True)


def measure_control(again: bool) -> None:
    """Alike data with the goal of regions, to separate the effect of the goal from that of the data."""
    kept = {} if again or not CONTROL.is_file() else json.loads(CONTROL.read_text("utf-8"))
    rows = {(row["n"], row["graph"], row["label"]): row for row in kept.get("rows", [])}
    goal = GOALS["regions"]
    head = {"command": "python docs/images/comparison.py --control", "version": fw.__version__, "data": "alike"}
    for n in SIZES:
        for graph in GRAPHS:
            setting = Setting("alike", n, graph)
            for label in CONTROL_LABELS:
                key = n, graph, label
                if key in rows:
                    continue
                rows[key] = {
                    "n": n,
                    "graph": graph,
                    "goal": goal,
                    **best_of(setting, label, goal=goal, start=n // 4)[1],
                }
                lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows.values())
                words = json.dumps(head, ensure_ascii=False)[1:-1]
                CONTROL.write_text(f'{{{words}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
                print(*key, rows[key]["to_goal"]["messages"], flush=True)


def own_rounds(setting: Setting, label: str, step: float, most: int) -> dict[str, float | None]:
    """Rounds until the mean mse of the nodes' own models reaches the goal; the same for their mean model.

    `fw.learn` measures the mean model; here gossip is written out in NumPy. Every node has one sample.
    """
    problem, mix = setting.problem, fw.exchanges.Gossip().on(setting.network)
    best = problem.measure(problem.optimum())["mse"]
    hessian = problem.features.T @ problem.features / problem.n
    models = np.zeros((problem.n, problem.dim))
    direction, last = np.zeros_like(models), np.zeros_like(models)
    found: dict[str, float | None] = {"step": step, "mean": None, "own": None, "at": np.inf}
    for now in range(1, most + 1):
        residuals = np.einsum("vd,vd->v", problem.features, models) - problem.targets
        gradient = residuals[:, None] * problem.features
        if label == TRACKING:
            direction, last = direction + gradient - last, gradient
            models, direction = mix @ (models - step * direction), mix @ direction
        else:
            models = mix @ (models - step * gradient)
        if now > 200 and now % 10:
            continue
        away = models - problem.optimum()
        middle = away.mean(axis=0)
        if not np.isfinite(middle).all() or abs(middle).max() > 1e6:
            break
        if found["mean"] is None and middle @ hessian @ middle <= (setting.goal - 1) * best:
            found["mean"] = now
        excess = float(np.einsum("vd,de,ve->v", away, hessian, away).mean()) / best
        found["at"] = min(found["at"] or 0.0, 1 + excess)
        if excess <= setting.goal - 1:
            found["own"] = now
            break
    return found


def measure_own(again: bool, sizes: Collection[int]) -> None:
    """Rounds until the nodes' own models reach the goal, with the best of several steps."""
    kept = {} if again or not OWN.is_file() else json.loads(OWN.read_text("utf-8"))
    rows = {(row["data"], row["n"], row["graph"], row["label"]): row for row in kept.get("rows", [])}
    for setting, found in read().items():
        for label in (GOSSIP, TRACKING):
            key = (*setting[:3], label)
            if key in rows or setting.n not in sizes:
                continue
            chosen, most, tried = by_label(found)[label]["step"], MOST // setting.n, []
            for power in range(-1, 8):
                limit = min([most, *(one["own"] for one in tried if one["own"] is not None)])
                tried.append(own_rounds(setting, label, chosen * 0.5**power, int(limit)))
                if len(tried) > 3 and any(one["own"] for one in tried) and not any(one["own"] for one in tried[-2:]):
                    break
            best = min(tried, key=lambda one: (one["own"] or np.inf, one["at"]))
            messages = None if best["own"] is None else 2 * found["edges"] * best["own"]
            rows[key] = dict(zip(("data", "n", "graph", "label"), key)) | best | {"messages": messages, "most": most}
            rows[key] |= {"at chosen step": {"mean": tried[1]["mean"], "own": tried[1]["own"]}, "edges": found["edges"]}
            lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows.values())
            head = json.dumps({"command": "python docs/images/comparison.py --own", "version": fw.__version__})[1:-1]
            OWN.write_text(f'{{{head}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
            print(rows[key], flush=True)


# Tables and figures

Found = dict[Setting, dict[str, Any]]


def read(seed: int = 1) -> Found:
    """The settings for which all methods have been measured."""
    found = {one: json.loads(one.file.read_text("utf-8")) for one in settings(seed) if one.file.is_file()}
    return {one: kept for one, kept in found.items() if len(kept["rows"]) == len(LABELS)}


def by_label(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["label"]: row for row in found["rows"]}


def count(row: dict[str, Any], axis: str) -> float:
    """The count to the goal; infinite if the goal was not reached."""
    span = row["to_goal"][axis]
    return float("inf") if span is None else float(span["value"])


def routed(row: dict[str, Any]) -> float:
    """The messages of a method with a server, counted once for every edge on the way.

    A message of centralized SGD goes from one drawn node to the next and passes through the server.
    """
    return count(row, "messages") * row["hops"] * (1 if row["label"] in CHOICES else 2)


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


def methods_table(found: Found) -> str:
    """Bytes per message and updates per round, which are the same for all data and graphs of one size."""
    by_size = [by_label(next(kept for one, kept in found.items() if one.n == n)) for n in SIZES]
    body = []
    for label in (one for one in LABELS if one not in CHOICES):
        in_all = [rows[label]["in_all"] for rows in by_size]
        per_round = [f"{each['updates'] / each['rounds']:,.0f}" for each in in_all]
        body.append([label, f"{in_all[0]['bytes'] / in_all[0]['messages']:.0f}", *per_round])
    return table(["method", "bytes per message", *(f"updates per round, n = {n}" for n in SIZES)], body)


def counts_table(found: Found, data: str, n: int) -> str:
    """Methods without a server by graphs: messages and rounds."""
    shown = {one.graph: (by_label(kept), kept) for one, kept in found.items() if (one.data, one.n) == (data, n)}
    head = ["method"]
    for graph in shown:
        head += [f"{graph}: messages", "rounds"]
    body = []
    for label in LABELS:
        if label not in BY_SERVER:
            line = [label]
            for rows, kept in shown.values():
                line += [cell(rows[label], axis, kept["optimum"]) for axis in ("messages", "rounds")]
            body.append(line)
    return table(head, body)


def servers_table(found: Found) -> str:
    """Methods with a server: counts, which are the same on all graphs, and messages hop by hop, which are not."""
    body = []
    for data, n in dict.fromkeys(one[:2] for one in found):
        shown = [(by_label(kept), kept["optimum"]) for one, kept in found.items() if one[:2] == (data, n)]
        for label in BY_SERVER:
            (rows, best), *_ = shown
            counts = [cell(rows[label], axis, best) for axis in ("messages", "rounds")]
            chosen = rows[label].get("chosen", "—")
            body.append([data, str(n), label, chosen, *counts, *(size(routed(rows[label])) for rows, _ in shown)])
    return table(
        ["data", "n", "method", "chosen", "messages", "rounds", *(f"messages routed: {graph}" for graph in GRAPHS)],
        body,
    )


def gossip_of(rows: dict[str, dict[str, Any]], axis: str) -> float:
    """The smaller count of decentralized SGD and gradient tracking."""
    return min(count(rows[GOSSIP], axis), count(rows[TRACKING], axis))


def costs(kept: dict[str, Any]) -> dict[str, float]:
    """What communication costs, as factors."""
    rows = by_label(kept)
    one, eight = rows[ONE], rows[EIGHT]
    messages, rounds = count(one, "messages"), count(one, "rounds")
    return {
        "messages: gossip / one walk": gossip_of(rows, "messages") / messages,
        "bytes: gossip / one walk": gossip_of(rows, "bytes") / count(one, "bytes"),
        "rounds: one walk / gossip": rounds / gossip_of(rows, "rounds"),
        "messages: FedAvg / one walk": count(rows[FEDAVG], "messages") / messages,
        "messages, routed: FedAvg / one walk": routed(rows[FEDAVG]) / messages,
        "messages: minibatch / one walk": count(rows[MINIBATCH], "messages") / messages,
        "messages, routed: minibatch / one walk": routed(rows[MINIBATCH]) / messages,
        "messages: 8 walks / one walk": count(eight, "messages") / messages,
        "rounds: one walk / 8 walks": rounds / count(eight, "rounds"),
        "messages: gossip / 8 walks": gossip_of(rows, "messages") / count(eight, "messages"),
        "rounds: 8 walks / gossip": count(eight, "rounds") / gossip_of(rows, "rounds"),
    }


def causes(kept: dict[str, Any]) -> dict[str, float]:
    """The effect of the design of a walk and of the data, as factors."""
    rows = by_label(kept)
    one, central = rows[ONE], rows[CENTRAL]
    return {
        "updates: importance / uniform walk": count(rows[IMPORTANCE], "updates") / count(one, "updates"),
        "updates: MHLJ / uniform walk": count(rows[MHLJ], "updates") / count(one, "updates"),
        "messages: MHLJ / uniform walk": count(rows[MHLJ], "messages") / count(one, "messages"),
        "messages: local steps / uniform walk": count(rows[LOCAL], "messages") / count(one, "messages"),
        "messages: FedAvg / walk with local steps": count(rows[FEDAVG], "messages") / count(rows[LOCAL], "messages"),
        "messages, routed: FedAvg / walk with local steps": routed(rows[FEDAVG]) / count(rows[LOCAL], "messages"),
        "messages: SAG / uniform walk": count(rows[SAG], "messages") / count(one, "messages"),
        "updates: uniform walk / centralized": count(one, "updates") / count(central, "updates"),
        "rounds: decentralized SGD / gradient tracking": count(rows[GOSSIP], "rounds")
        / count(rows[TRACKING], "rounds"),
        "rounds: gossip / FedAvg": gossip_of(rows, "rounds") / count(rows[HASTY], "rounds"),
    }


REPEATED = (
    "messages: gossip / one walk",
    "rounds: one walk / gossip",
    "rounds: one walk / 8 walks",
    "updates: importance / uniform walk",
    "messages: MHLJ / uniform walk",
)


def factors_table(found: Found, factors: Callable[[dict[str, Any]], dict[str, float]]) -> str:
    """One row per setting; the main factors with each seed."""
    others = [(seed, read(seed)) for seed in SEEDS[1:]]
    names = list(factors(next(iter(found.values()))))
    body = []
    for one, kept in found.items():
        again = [other[one._replace(seed=seed)] for seed, other in others if one._replace(seed=seed) in other]
        each = [factors(measured) for measured in (kept, *again)]
        line = [one.data, str(one.n), one.graph]
        for name in names:
            line.append(" · ".join(times(one_seed[name]) for one_seed in each[: None if name in REPEATED else 1]))
        body.append(line)
    return table(["data", "n", "graph", *names], body)


def places_table(found: Found) -> str:
    body = []
    for n in SIZES:
        for graph in GRAPHS:
            kept = {one.data: each for one, each in found.items() if (one.n, one.graph) == (n, graph)}
            if len(kept) == len(DATA):
                edges, hops = kept["alike"]["edges"], kept["alike"]["server distance"]
                body.append([str(n), graph, f"{edges:,}", f"{2 * edges:,}", f"{hops:.1f}"])
    return table(["n", "graph", "edges", "messages per gossip round", "mean distance to the best-placed server"], body)


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
    """Rounds with the step that settles at half of the goal's excess, divided by those with the chosen step."""
    labels = (ONE, IMPORTANCE, MHLJ, EIGHT)
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


def control_table(found: Found, control: Rows) -> str:
    """Alike data beside regions, both with the goal of regions."""
    body = []
    for n in SIZES:
        for graph in GRAPHS:
            alike = {row["label"]: row for row in control if (row["n"], row["graph"]) == (n, graph)}
            regions = by_label(found[Setting("regions", n, graph)])
            line = [str(n), graph]
            for label in (ONE, EIGHT):
                line += [size(count(each[label], "messages")) for each in (alike, regions)]
            for each in (alike, regions):
                line.append(times(count(each[ONE], "rounds") / count(each[EIGHT], "rounds")))
            for each in (alike, regions):
                line.append(times(gossip_of(each, "messages") / count(each[ONE], "messages")))
            for each in (alike, regions):
                line.append(times(count(each[ONE], "rounds") / gossip_of(each, "rounds")))
            body.append(line)
    head = ["one walk: messages", "8 walks: messages", "rounds: one walk / 8 walks", "messages: gossip / one walk"]
    head.append("rounds: one walk / gossip")
    return table(["n", "graph", *(f"{name}, {data}" for name in head for data in ("alike", "regions"))], body)


def own_table(found: Found, own: Rows) -> str:
    """Messages until every node has a good model; a walk passes its model on to all other nodes."""
    body = []
    for one, kept in found.items():
        rows = by_label(kept)
        walk = count(rows[ONE], "messages") + one.n - 1
        both = [row for row in own if (row["data"], row["n"], row["graph"]) == one[:3]]
        there = [row for row in both if row["own"] is not None]
        line = [one.data, str(one.n), one.graph, size(walk), size(gossip_of(rows, "messages"))]
        if there:
            best = min(there, key=lambda row: row["messages"])
            line += [size(best["messages"]), best["label"], times(best["messages"] / walk)]
        elif both:
            nearest = min(both, key=lambda row: row["at"])
            most = 2 * kept["edges"] * nearest["most"]
            line += [f"> {size(most)} (at {nearest['at']:.2f}×)", nearest["label"], f"> {times(most / walk)}"]
        body.append(line)
    head = ["data", "n", "graph", "one walk, and n − 1 to pass it on", "gossip, mean model", "gossip, own models"]
    return table([*head, "better gossip method", "gossip, own models / one walk"], body)


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


MARKS = ("o", "s", "^", "o", "^", "D", "o", "s", "P", "X", "*", "*", "v", "v", "p")
SHADES = (0, 1, 2, 0, 2, 3, 5, 5, 4, 4, 6, 6, 6, 6, 6)


def draw_counts(found: Found, n: int) -> None:
    figure = new_figure(11.0, 8.6)
    panels = figure.subplots(len(DATA), len(GRAPHS), sharex=True, sharey=True)
    for (data, graph), axes in zip(((data, graph) for data in DATA for graph in GRAPHS), panels.flat):
        rows = by_label(found[Setting(data, n, graph)])
        for label, mark, shade in zip(LABELS, MARKS, SHADES):
            hollow = label in (LOCAL, LOCAL_MHLJ, MEETING, CENTRAL, HASTY)
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
    found = read()
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
    tables |= {"costs": factors_table(found, costs), "causes": factors_table(found, causes)}
    tables |= {"settling": settling_table(found), "places": places_table(found)}
    tables |= {"data": data_table(found), "methods": methods_table(found), "servers": servers_table(found)}
    if NEARER.is_file():
        rows = json.loads(NEARER.read_text("utf-8"))["rows"]
        tables["goals"] = goals_table(rows)
        with matplotlib.rc_context(STYLE):
            draw_goals(rows)
    if CONTROL.is_file():
        tables["control"] = control_table(found, json.loads(CONTROL.read_text("utf-8"))["rows"])
    if OWN.is_file():
        tables["own"] = own_table(found, json.loads(OWN.read_text("utf-8"))["rows"])
    writing.fill(PAGE, tables)


def main() -> None:
    words = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(description=words[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=list(DATA), action="append", help="only these data (may be repeated)")
    parser.add_argument("-n", type=int, choices=SIZES, action="append", help="only graphs of this size")
    parser.add_argument("--seed", type=int, choices=SEEDS, action="append", help="only this seed")
    parser.add_argument("--control", action="store_true", help="only alike data with the goal of regions")
    parser.add_argument("--own", action="store_true", help="only gossip until the nodes' own models reach the goal")
    parser.add_argument("--goals", action="store_true", help="only the goals closer to the optimum")
    parser.add_argument("--again", action="store_true", help="repeat existing measurements")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="freewalk")  # it warns that plain MHLJ is biased, as intended here
    HERE.mkdir(exist_ok=True)
    parts = (options.goals, options.own, options.control)
    some = bool(options.data or options.n or options.seed)
    for seed in [] if options.draw or any(parts) else options.seed or SEEDS:
        for setting in settings(seed):
            if setting.data in (options.data or DATA) and setting.n in (options.n or SIZES):
                setting.file.parent.mkdir(exist_ok=True)
                measure(setting, options.again)
    everything = not (options.draw or some or any(parts))
    if options.goals or everything:
        measure_goals(options.again)
    if options.control or everything:
        measure_control(options.again)
    if options.own or everything:
        measure_own(options.again, options.n or SIZES)
    draw()


if __name__ == "__main__":
    main()
