"""Measure, draw and tabulate what docs/explanation/real-data.md says about digits.

python docs/images/digits.py                                    # everything, about 90 minutes on one busy core
python docs/images/digits.py --only curves --model softmax      # some of it; existing measurements are kept
python docs/images/digits.py --draw                             # no measurements: figures and tables from the JSON

The specs are those in docs/studies; results are kept in docs/images/digits, one file per part.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import tomlkit
import writing
from scipy.stats import t as student

import freewalk as fw
from freewalk.analysis import excess_visits
from freewalk.baselines import Method
from freewalk.report.figures import COLOURS, STYLE, new_figure, save
from freewalk.specs import spec

HERE = Path(__file__).parent / "digits"
PAGE = Path(__file__).parents[1] / "explanation" / "real-data.md"
STUDIES = Path(__file__).parents[1] / "studies"
MODELS = {"softmax": 4_000, "convolutional": 4_000}  # updates of each method
PARTITIONS: dict[str, dict[str, Any]] = {"iid": {"kind": "IID"}, "Dirichlet": {"kind": "Dirichlet", "alpha": 0.1}}
SMALL_WORLD, REAL = "Watts–Strogatz", "VtlWavenet"
GRAPHS: dict[str, dict[str, Any]] = {
    "ring": {"kind": "ring", "n": 100},
    "grid": {"kind": "grid", "rows": 10, "cols": 10},
    SMALL_WORLD: {"kind": "watts_strogatz", "n": 100, "k": 4, "p": 0.1, "seed": 1},
    REAL: {"kind": "topology", "name": "topozoo/VtlWavenet2011"},
}
UNIFORM, IMPORTANCE, MHLJ, CORRECTED = "uniform MH", "importance MH", "MHLJ", "corrected MHLJ"
FOUR, GOSSIP, FEDAVG, CENTRAL = "4 walks", "decentralized SGD", "FedAvg", "centralized SGD"
WALKS = (UNIFORM, IMPORTANCE, MHLJ, CORRECTED)
LABELS = (*WALKS, FOUR, GOSSIP, FEDAVG, CENTRAL)
BY_SERVER = (FEDAVG, CENTRAL)  # only the number of nodes of the graph matters to them
BY_ALL_NODES = (GOSSIP, FEDAVG)
LONGER = 10  # times the updates that they run, to find out when they reach the goal
SUFFIXES = ("", "-4-walks", "-gossip", "-fedavg")
CANDIDATES = (0.1, 0.3, 1.0)
LADDER = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
# Steps and replicas of the walks that may be entrapped.
SWEPT = {"softmax": (0.1, 0.3, 1.0, 3.0), "convolutional": (0.03, 0.1)}
MANY = {"softmax": 64, "convolutional": 16}
GOAL = 0.9
MODEL_NAMES = {"softmax": "softmax regression", "convolutional": "convolutional network"}
PARTITION_NAMES = {"iid": "iid", "Dirichlet": "Dirichlet 0.1"}
COUNTING = {"node": "nodes", "sample": "pictures"}
SHADES = (0, 1, 2, 3, 5, 4, 6, 6)
DASHES: dict[str, Any] = {CORRECTED: (0, (4, 2)), FEDAVG: (0, (5, 2, 1, 2))}
LINES = {label: {"color": COLOURS[shade], "linestyle": DASHES.get(label, "-")} for label, shade in zip(LABELS, SHADES)}
Row = dict[str, Any]


class Setting(NamedTuple):
    """A model, how its data are distributed, and over which graph."""

    model: str
    partition: str
    graph: str

    @property
    def name(self) -> str:
        plain = {SMALL_WORLD: "watts-strogatz", REAL: "vtlwavenet"}
        return f"{self.model}-{self.partition}-{plain.get(self.graph, self.graph)}".lower()


def settings() -> Iterator[Setting]:
    for model in MODELS:
        for partition in PARTITIONS:
            for graph in GRAPHS:
                yield Setting(model, partition, graph)


# The specs, with another graph and another partition


class Contest(NamedTuple):
    """A problem on a graph, and the methods with their options: how long, how many replicas, how often to measure."""

    problem: Any
    graph: fw.Graph
    methods: dict[str, tuple[Method, dict[str, Any]]]


def contest(setting: Setting, **problem: Any) -> Contest:
    methods: dict[str, tuple[Method, dict[str, Any]]] = {}
    plans = []
    for suffix in SUFFIXES:
        file = STUDIES / f"digits-{setting.model}{suffix}.toml"
        document = tomlkit.parse(file.read_text("utf-8"))
        document["graph"] = GRAPHS[setting.graph]
        document["problem"]["partition"] = PARTITIONS[setting.partition]
        for key, value in problem.items():
            document["problem"][key] = value
        plan = spec.parse(tomlkit.dumps(document), str(file)).plan()
        plans.append(plan)
        options = {key: plan.options[key] for key in ("steps", "walks", "every", "seed")}
        for method in plan.contestants:
            per_round = plan.graph.n if method.tokens == "nodes" else int(method.tokens)
            per_round *= getattr(method.rule, "local_steps", 1)
            rounds = round(MODELS[setting.model] / per_round)
            methods[method.label] = (method, options | {"steps": rounds})
    return Contest(plans[0].problem, plans[0].graph, {label: methods[label] for label in LABELS})


def run(here: Contest, label: str, step: float, **changed: Any) -> Any:
    method, options = here.methods[label]
    return whole(method.with_step(step).learn(here.problem, here.graph, **(options | changed)))


def whole(record: fw.Record) -> Any:
    """The data of a record. An interrupted record ends the script, so that it is not saved."""
    if record.partial:
        raise SystemExit("interrupted: measurements so far are kept; run the script again for the rest")
    return record.data


def summary(data: Any, label: str, step: float, last: int | None = None) -> Row:
    """The curve of a method: means over the replicas with half of their 95 % confidence interval, thinned out.

    `last` is the number of updates at which the result is taken, if the run is longer.
    """
    walks = data.sizes["walk"]
    accuracy, messages = 100 * data.accuracy.values, data.messages.values.mean(axis=0)
    updates = np.broadcast_to(data.updates.values, accuracy.shape)[0]
    size = float(data.bytes.values.mean(axis=0)[-1] / messages[-1])
    mean, error = accuracy.mean(axis=0), student.ppf(0.975, walks - 1) / np.sqrt(walks) * accuracy.std(axis=0, ddof=1)
    there = np.flatnonzero(mean >= 100 * GOAL)
    end = len(updates) - 1 if last is None else int(np.argmin(np.abs(updates - last)))
    late = slice(end - end // 10, end + 1)
    marks = np.unique(np.round(np.geomspace(1, len(updates), 60)).astype(int)) - 1
    marks = np.union1d(marks, np.linspace(0, len(updates) - 1, 26).astype(int))
    return {
        "method": label,
        "step": step,
        "walks": walks,
        "result": {
            "updates": int(updates[end]),
            "messages": float(messages[end]),
            "accuracy": float(mean[end]),
            "error": float(error[end]),
            "each": [round(float(value), 2) for value in accuracy[:, end]],
            "late": [round(float(value), 2) for value in accuracy[:, late].mean(axis=1)],
            "loss": float(data.loss.values[:, end].mean()),
        },
        "goal": {"updates": int(updates[there[0]]), "messages": float(messages[there[0]])} if there.size else None,
        "bytes per message": round(size),
        "updates": updates[marks].tolist(),
        "messages": [round(float(value), 1) for value in messages[marks]],
        "accuracy": [round(float(value), 2) for value in mean[marks]],
        "error": [round(float(value), 2) for value in error[marks]],
    }


def words_of(row: Row) -> str:
    found = row["result"]
    return f"{row['method']}, step {row['step']:g}: {found['accuracy']:.2f} ± {found['error']:.2f}, goal {row['goal']}"


# The parts


def labels_of(setting: Setting) -> list[str]:
    """The methods that are measured in a setting; those with a server once for all graphs of 100 nodes."""
    return [label for label in LABELS if label not in BY_SERVER or setting.graph in (SMALL_WORLD, REAL)]


def steps(setting: Setting) -> list[Row]:
    """The step of each method: the one with the smallest training loss at the end of a pilot run."""
    here = contest(setting)
    rows = []
    for label in labels_of(setting):
        found: dict[float, float] = {}

        def measured(step: float, label: str = label, found: dict[float, float] = found) -> float:
            if step not in found:
                data = run(here, label, step, walks=1, seed=2)
                loss = data.loss.values[0]
                last = loss[-(-3 * len(loss) // 4) :]
                found[step] = float(last.mean()) if np.isfinite(last).all() else np.inf
            return found[step]

        best = min(CANDIDATES, key=measured)
        while best in (min(found), max(found)) and best not in (LADDER[0], LADDER[-1]):
            place = LADDER.index(best)
            around = [LADDER[place - 1], best, LADDER[place + 1]]
            best = min(around, key=measured)
        rows.append({"method": label, "step": best, "losses": {f"{key:g}": found[key] for key in sorted(found)}})
        print(setting.name, rows[-1], flush=True)
    return rows


def chosen(setting: Setting) -> dict[str, float]:
    return {row["method"]: row["step"] for row in kept(f"steps-{setting.name}")}


def curves(setting: Setting) -> list[Row]:
    """The curves of the methods."""
    here, step = contest(setting), chosen(setting)
    rows = []
    for label in labels_of(setting):
        changed, last = {}, None
        if label in BY_ALL_NODES:
            last = MODELS[setting.model]
            changed = {"steps": LONGER * here.methods[label][1]["steps"]}
        rows.append(summary(run(here, label, step[label], **changed), label, step[label], last))
        print(setting.name, words_of(rows[-1]), flush=True)
    return rows


def traps() -> list[Row]:
    """How concentrated the importance is, and the excess visits of each walk at the most important node."""
    rows, known = [], {}
    for setting in settings():
        for weight_by in ("node", "sample"):
            here = contest(setting, weight_by=weight_by)
            for kind in ("gradient", "smoothness") if setting.graph == "ring" else ("gradient",):
                key = (*setting[:2], here.graph.n, weight_by, kind)
                if key not in known:
                    known[key] = here.problem.estimate(kind)
                found = known[key]
                values = found.values
                heaviest = int(values.argmax())
                row: Row = setting._asdict() | {"weight_by": weight_by, "kind": kind, "gradients": found.gradients}
                row |= {"nodes": here.graph.n, "max / median": float(values.max() / np.median(values))}
                row |= {"max / mean": float(values.max() / values.mean()), "largest": int(here.problem.sizes.max())}
                row |= {"samples": here.problem.count, "smallest": int(here.problem.sizes.min())}
                for label in WALKS:
                    kernel = here.methods[label][0].design.kernel(here.graph, values)
                    row[label] = excess_visits(kernel, [heaviest])
                rows.append(row)
        print(setting.name, rows[-1], flush=True)
    return rows


def sweep(model: str) -> list[Row]:
    """On the ring with Dirichlet data: each walk with several steps, and with more replicas."""
    here = contest(Setting(model, "Dirichlet", "ring"))
    rows = []
    for label in WALKS:
        for step in SWEPT[model]:
            rows.append(summary(run(here, label, step, walks=MANY[model]), label, step))
            print("sweep", model, words_of(rows[-1]), flush=True)
    return rows


def within() -> list[Row]:
    """The spec digits-within.toml as it stands."""
    plan = spec.load(STUDIES / "digits-within.toml").plan()
    options = {key: plan.options[key] for key in ("steps", "walks", "every", "seed")}
    rows = []
    for method in plan.contestants:
        data = whole(method.learn(plan.problem, plan.graph, **options))
        rows.append(summary(data, method.label, method.rule.step))
        print("within", words_of(rows[-1]), flush=True)
    return rows


def parts() -> dict[str, tuple[str, str, Callable[[], list[Row]]]]:
    """For each file name: the group of the part, its model, and the function that measures it."""
    found: dict[str, tuple[str, str, Callable[[], list[Row]]]] = {}
    for setting in settings():
        found[f"steps-{setting.name}"] = ("steps", setting.model, lambda setting=setting: steps(setting))
        found[setting.name] = ("curves", setting.model, lambda setting=setting: curves(setting))
    found["traps"] = ("traps", "softmax", traps)
    for model in MODELS:
        found[f"sweep-{model}"] = ("sweep", model, lambda model=model: sweep(model))
    return found | {"within": ("within", "convolutional", within)}


def kept(name: str) -> list[Row]:
    rows: list[Row] = json.loads((HERE / f"{name}.json").read_text("utf-8"))["rows"]
    return rows


def keep(name: str, rows: list[Row], seconds: float) -> None:
    head = json.dumps({"version": fw.__version__, "seconds": round(seconds)})[1:-1]
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (HERE / f"{name}.json").write_text(f'{{{head}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")


# Tables and figures


Found = dict[Setting, dict[str, Row]]


def read() -> Found:
    """The rows of all settings that were measured, by method; a server is the same on all graphs of 100 nodes."""
    found: Found = {}
    for setting in settings():
        if (HERE / f"{setting.name}.json").is_file():
            rows = {row["method"]: row for row in kept(setting.name)}
            if setting.graph != REAL:
                server = kept(setting._replace(graph=SMALL_WORLD).name)
                rows |= {row["method"]: row for row in server if row["method"] in BY_SERVER}
            found[setting] = {label: rows[label] for label in LABELS}
    return found


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])


def by_method(found: Found, model: str, cell: Callable[[Row], str]) -> str:
    """Methods by partition and graph."""
    shown = {setting: rows for setting, rows in found.items() if setting.model == model}
    head = ["method", *(f"{PARTITION_NAMES[one.partition]}, {one.graph}" for one in shown)]
    return table(head, [[label, *(cell(rows[label]) for rows in shown.values())] for label in LABELS])


def accuracy_cell(row: Row) -> str:
    return f"{row['result']['accuracy']:.1f} ± {row['result']['error']:.1f}"


def goal_cell(row: Row) -> str:
    if row["goal"] is None:
        return "not reached"
    messages = row["goal"]["messages"]
    size = messages * row["bytes per message"] / 1e6
    return f"{messages:,.0f} ({size:.2g} MB)" if size < 10 else f"{messages:,.0f} ({size:.0f} MB)"


def traps_table() -> str:
    head = ["model", "data", "equal weight for", "max / median", "ring: uniform MH", "importance MH", "MHLJ"]
    head += ["corrected MHLJ", "Watts–Strogatz: importance MH", "MHLJ", "VtlWavenet: importance MH", "MHLJ"]
    rows = {
        (row["model"], row["partition"], row["weight_by"], row["graph"]): row
        for row in kept("traps")
        if row["kind"] == "gradient"
    }
    body = []
    for model in MODELS:
        for partition in PARTITIONS:
            for weight_by in ("node", "sample"):
                of = {graph: rows[model, partition, weight_by, graph] for graph in GRAPHS}
                line = [MODEL_NAMES[model], PARTITION_NAMES[partition], COUNTING[weight_by]]
                line.append(f"{of['ring']['max / median']:.1f}")
                line += [f"{of['ring'][label]:.0f}" for label in WALKS]
                line += [f"{of[graph][label]:.0f}" for graph in (SMALL_WORLD, REAL) for label in (IMPORTANCE, MHLJ)]
                body.append(line)
    return table(head, body)


def sweep_table(model: str) -> str:
    cells = {(row["method"], row["step"]): row for row in kept(f"sweep-{model}")}
    body = []
    for label in WALKS:
        line = [label]
        for step in SWEPT[model]:
            row = cells[label, step]
            goal = "not reached" if row["goal"] is None else f"{row['goal']['updates']:,}"
            line += [accuracy_cell(row), goal]
        body.append(line)
    head = [word for step in SWEPT[model] for word in (f"step {step:g}: accuracy, %", "updates to 90 %")]
    return table(["method", *head], body)


def best_swept(model: str, label: str) -> Row:
    """The walk with the step that gives the highest accuracy."""
    return max(
        (row for row in kept(f"sweep-{model}") if row["method"] == label), key=lambda row: row["result"]["accuracy"]
    )


def within_table() -> str:
    body = []
    for row in kept("within"):
        messages = "" if row["method"] == CENTRAL else f"{row['result']['messages']:,.0f}"
        each = ", ".join(f"{value:.1f}" for value in row["result"]["each"])
        body.append([row["method"], accuracy_cell(row), each, messages])
    return table(["method", "accuracy, %", "the four runs", "messages"], body)


def smooth(values: Any) -> Any:
    """The mean over five marks, or fewer at the ends."""
    padded = np.convolve(values, np.ones(5), mode="same")
    return padded / np.convolve(np.ones(len(values)), np.ones(5), mode="same")


def draw_curve(axes: Any, row: Row, against: str, end: float | None = None, band: bool = False) -> None:
    x = np.array(row["updates" if against == "updates" else "messages"], dtype=float)
    if against == "bytes":
        x *= row["bytes per message"]
    y, error = (np.concatenate([row[key][:1], smooth(row[key][1:])]) for key in ("accuracy", "error"))
    line, shown = LINES[row["method"]], (x > 0) & (x <= (np.inf if end is None else end * 1.02))
    if band:
        low, high = (y - error)[shown], (y + error)[shown]
        axes.fill_between(x[shown], low, np.minimum(high, 100), color=line["color"], alpha=0.12, linewidth=0)
    axes.plot(x[shown], y[shown], label=row["method"], linewidth=1.8, **line)


def draw_three(found: Found, partition: str, file: str) -> None:
    """Accuracy against updates, messages and bytes on the small world, for both models."""
    figure = new_figure(11.0, 6.4)
    panels = figure.subplots(len(MODELS), 3, sharey=True, sharex="col", squeeze=False)
    for line, model, last in zip(panels, MODELS, [*[False] * (len(MODELS) - 1), True]):
        rows = found[Setting(model, partition, SMALL_WORLD)]
        for axes, against in zip(line, ("updates", "messages", "bytes")):
            for row in rows.values():
                draw_curve(axes, row, against, MODELS[model] if against == "updates" else None)
            axes.set(xscale="log", ylim=(40, 100))
            axes.axhline(100 * GOAL, color="#777777", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
            if last:
                axes.set_xlabel(against)
            axes.xaxis.set_major_formatter(bytes_in_words if against == "bytes" else count_in_words)
            axes.xaxis.set_minor_formatter(lambda value, _: "")
        line[0].set_ylabel(f"test accuracy, %\n{MODEL_NAMES[model]}")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    save(figure, HERE / file)


def count_in_words(value: float, _: int) -> str:
    return f"{value:g}" if value < 1e3 else f"{value / 1e3:g}k"


def bytes_in_words(value: float, _: int) -> str:
    return f"{value / 1e6:g} MB" if value < 1e9 else f"{value / 1e9:g} GB"


def draw_all(found: Found) -> None:
    """Accuracy against messages in all settings."""
    rows_of = [(model, partition) for model in MODELS for partition in PARTITIONS]
    figure = new_figure(12.0, 1.0 + 2.5 * len(rows_of))
    panels = figure.subplots(len(rows_of), len(GRAPHS), sharex=True, sharey=True)
    for line, (model, partition) in zip(panels, rows_of):
        for axes, graph in zip(line, GRAPHS):
            for row in found[Setting(model, partition, graph)].values():
                draw_curve(axes, row, "messages")
            axes.axhline(100 * GOAL, color="#777777", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
            axes.set(xscale="log", ylim=(50, 100))
            axes.xaxis.set_major_formatter(count_in_words)
            axes.xaxis.set_minor_formatter(lambda value, _: "")
        line[0].set_ylabel(f"{MODEL_NAMES[model]}\n{PARTITION_NAMES[partition]}\ntest accuracy, %")
    for first, last, graph in zip(panels[0], panels[-1], GRAPHS):
        first.set_title(graph)
        last.set_xlabel("messages")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=8, columnspacing=1.2)
    save(figure, HERE / "messages.png")


def draw_traps() -> None:
    """On the ring with Dirichlet data: the excess visits of the walks, and their accuracy."""
    figure = new_figure(11.0, 3.9)
    panels = figure.subplots(1, 3, width_ratios=(0.8, 1, 1))
    keys, wanted = ("partition", "graph", "weight_by", "kind"), ("Dirichlet", "ring", "sample", "gradient")
    rows = {row["model"]: row for row in kept("traps") if tuple(row[key] for key in keys) == wanted}
    bars = panels[0]
    for number, label in enumerate(WALKS):
        for place, model in enumerate(MODELS):
            value = rows[model][label]
            at = place * 5 + number
            bars.bar(at, value, width=0.85, color=LINES[label]["color"])
            bars.text(at, value * 1.06, f"{value:.0f}", ha="center", va="bottom", fontsize=9)
    bars.set(yscale="log", ylim=(8, 800), ylabel="excess visits at the heaviest node")
    bars.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    bars.set_xticks([1.5, 6.5], ["softmax", "convolutional"])
    bars.grid(axis="x", visible=False)
    for axes, model in zip(panels[1:], MODELS):
        for label in WALKS:
            draw_curve(axes, best_swept(model, label), "updates", band=True)
        axes.set(xlabel="updates", ylabel="test accuracy, %", title=MODEL_NAMES[model], ylim=(60, 100))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    figure.legend(*panels[1].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    save(figure, HERE / "traps.png")


def draw_within() -> None:
    figure = new_figure(6.4, 3.6)
    axes = figure.subplots()
    for row in kept("within"):
        draw_curve(axes, row, "updates", band=True)
    axes.set(xlabel="updates", ylabel="test accuracy, %", ylim=(80, 100))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_yticks(range(80, 101, 5))
    axes.legend(loc="lower right")
    save(figure, HERE / "within.png")


def draw() -> None:
    lacking = [name for name in parts() if not (HERE / f"{name}.json").is_file()]
    if lacking:
        print("nothing drawn, because these parts have not been measured yet:", ", ".join(lacking))
        return
    found = read()
    with matplotlib.rc_context(STYLE):
        draw_traps()
        draw_within()
        draw_three(found, "Dirichlet", "three.png")
        draw_all(found)
    tables = {f"accuracy {model}": by_method(found, model, accuracy_cell) for model in MODELS}
    tables |= {f"goal {model}": by_method(found, model, goal_cell) for model in MODELS}
    tables |= {f"steps {model}": by_method(found, model, lambda row: f"{row['step']:g}") for model in MODELS}
    tables |= {"traps": traps_table(), "within": within_table()}
    tables |= {f"sweep {model}": sweep_table(model) for model in MODELS}
    writing.fill(PAGE, tables)


def main() -> None:
    words = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(description=words[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    groups = ("steps", "curves", "traps", "sweep", "within")
    parser.add_argument("--only", choices=groups, action="append", help="only these parts (may be repeated)")
    parser.add_argument("--model", choices=list(MODELS), help="only this model")
    parser.add_argument("--again", action="store_true", help="repeat existing measurements")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="freewalk")  # it warns that plain MHLJ is biased, as intended here
    HERE.mkdir(exist_ok=True)
    for name, (group, model, measure) in ({} if options.draw else parts()).items():
        wanted = group in (options.only or groups) and options.model in (None, model)
        if wanted and (options.again or not (HERE / f"{name}.json").is_file()):
            began = time.perf_counter()
            rows = measure()
            keep(name, rows, time.perf_counter() - began)
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    draw()


if __name__ == "__main__":
    main()
