"""Measure, draw and tabulate what docs/explanation/walks-that-remember.md says about walks with a memory.

python docs/images/memory.py                # every case, 2½ hours on two cores; a second call goes on where it ended
python docs/images/memory.py --minutes 30   # as many cases as fit
python docs/images/memory.py --quick        # four cases, about a minute; printed, not kept
python docs/images/memory.py --curves       # only the curves of the picture, half a minute
python docs/images/memory.py --draw         # no measurements: tables and picture from docs/images/memory/

A case is a combination of graph, heavy nodes, start, shift and loss, and a data seed. The first data seeds of all
combinations come first. Real networks need the package topohub: pip install ".[topologies]".
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import writing

import freewalk as fw
from freewalk.report.figures import COLOURS, DOTTED, STYLE, new_figure, save

HERE = Path(__file__).parent / "memory"
PAGE = Path(__file__).parents[1] / "explanation" / "walks-that-remember.md"
CASES, CURVES = HERE / "cases.jsonl", HERE / "curves.json"
SEEDS = range(1001, 1021)
N, DIM, WALKS = 1000, 10, 40
GOALS = (0.01, 0.001)  # of the initial loss above the optimum
MOST, LAST = 40_000, 44_000
QUICK = 200  # updates
#: Updates of a run, and between its checkpoints, by loss. A goal counts if it is reached in the first half of a run (in
#: the longest one within MOST) and if the longest one keeps it. Logistic losses are slower to learn, and to measure.
RUNS = {
    "least squares": ((500, 2), (2_000, 20), (8_000, 80), (LAST, 440)),
    "logistic": ((2_000, 40), (8_000, 160), (LAST, 880)),
}
STEPS = [4 * 0.6**place for place in range(20)]  # times 1 / max w_v L_v
_BEHIND = 10  # a MHLJ with this many times the updates of another is not followed any further


def communities(seed: int) -> fw.Graph:
    """Two random graphs of equal size with five edges between them."""
    half = N // 2
    parts = [fw.graphs.erdos_renyi(half, 10 / half, seed=2 * seed + part) for part in range(2)]
    edges = [
        (node + part * half, int(other) + part * half)
        for part, graph in enumerate(parts)
        for node in range(half)
        for other in graph.neighbours(node)
        if other > node
    ]
    return fw.graphs.from_edges([*edges, *((node, node + half) for node in range(0, half, half // 5))])


GRAPHS: dict[str, Callable[[int], fw.Graph]] = {
    "ring": lambda seed: fw.graphs.ring(N),
    "grid": lambda seed: fw.graphs.grid(25, 40),
    "Watts–Strogatz": lambda seed: fw.graphs.watts_strogatz(N, 4, 0.1, seed=seed),
    "Erdős–Rényi": lambda seed: fw.graphs.erdos_renyi(N, 10 / N, seed=seed),
    "Barabási–Albert": lambda seed: fw.graphs.barabasi_albert(N, 2, seed=seed),
    "two communities": communities,
    "Tata": lambda seed: fw.graphs.topology("topozoo/TataNld"),
    "VtlWavenet": lambda seed: fw.graphs.topology("topozoo/VtlWavenet2011"),
    "BRAIN": lambda seed: fw.graphs.topology("sndlib/brain"),
}

TEMPERED = fw.designs.Metropolis(power=0.6)
COUNTING = {"alpha": 30, "memory_at": "nodes"}
UNIFORM, RIVAL, PAPER, CORRECTED = "uniform", "best MHLJ", "MHLJ of the paper", "MHLJ corrected"
BACK, REPELLENT, PLAIN, DRIVEN = "no step back", "self-repellent", "self-repellent, plain", "history-driven"
DESIGNS: dict[str, fw.Design] = {
    UNIFORM: fw.designs.Metropolis(),
    PAPER: fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3),
    CORRECTED: fw.designs.MHLJ(jump=0.5, stop=0.5, hops=3, power=0.5, corrected=True),
    BACK: fw.designs.NonBacktracking(fw.designs.Metropolis(power=0.5)),
    REPELLENT: fw.designs.SelfRepellent(TEMPERED, fading=0.6, **COUNTING),
    PLAIN: fw.designs.SelfRepellent(TEMPERED, fading=1.0, **COUNTING),
    DRIVEN: fw.designs.HistoryDriven(TEMPERED, fading=0.6, **COUNTING),
}
MHLJS = {
    f"power {power:g}, jump {jump:g}": fw.designs.MHLJ(jump=jump, stop=0.5, hops=3, power=power)
    for jump, power in product((0.5, 0.9, 0.3, 0.1), (0.7, 0.5, 1.0))
}


class Case(NamedTuple):
    """A combination and a data seed."""

    graph: str
    heavy: str
    start: str
    shift: float
    loss: str
    seed: int

    @property
    def network(self) -> fw.Graph:
        return GRAPHS[self.graph](self.seed)

    def problem(self, graph: fw.Graph) -> Any:
        """Data of one sample per node, two nodes of which have features of variance 100."""
        family = fw.objectives.LeastSquares if self.loss == "least squares" else fw.objectives.Logistic
        order = np.random.default_rng(self.seed).permutation(graph.n).tolist()
        near = [int(node) for node in graph.neighbours(order[0])]
        other = near[0] if self.heavy == "adjacent" else next(node for node in order[1:] if node not in near)
        more = {"noise": 0.1} if self.loss == "least squares" else {"distance": 10.0, "ridge": 0.01}
        options = {"heavy": [order[0], other], "shift": self.shift, "seed": self.seed, **more}
        return family.synthetic(graph.n, DIM, **options)


def cases() -> Iterator[Case]:
    """Half of all combinations, chosen such that any two choices occur together equally often; seed by seed."""
    axes = (("scattered", "adjacent"), ("uniform", "heaviest"), (0.0, 0.3), ("least squares", "logistic"))
    for seed in SEEDS:
        for chosen in product(*(range(2) for _ in axes)):
            for place, graph in enumerate(GRAPHS):
                if (sum(chosen) + place) % 2 == 0:
                    yield Case(graph, *(axis[index] for axis, index in zip(axes, chosen)), seed)  # type: ignore[arg-type]


class Reached(NamedTuple):
    """When a goal was reached, what had been sent by then on average, and with which step."""

    updates: int
    messages: float
    probes: float
    step: float
    variant: str = ""
    place: int = 0


Found = dict[float, list[Reached]]


class Runs(NamedTuple):
    """Runs of one kernel with steps by their place in STEPS."""

    problem: Any
    kernel: fw.Kernel
    case: Case

    def __call__(self, place: int, length: int, every: int) -> tuple[Any, Any]:
        """The measurements, and the mean error as a share of the initial one; infinite from a divergence on."""
        zero, best = (float(self.problem.loss(model)) for model in (np.zeros(DIM), self.problem.optimum()))
        step = STEPS[place] / float((self.kernel.weights * self.problem.smoothness).max())
        options = {"steps": length, "every": every, "walks": WALKS, "start": self.case.start, "seed": self.case.seed}
        data = fw.learn(self.problem, self.kernel, fw.SGD(step), runtime="cpu", precision="float64", **options).data
        with np.errstate(all="ignore"):
            error = (data.loss.values.mean(axis=0) - best) / (zero - best)
        return data, np.where(np.isfinite(error) & ~data.diverged.values.any(), error, np.inf)

    def keeps(self, place: int, goal: float, updates: int) -> bool:
        """Whether the longest run is below a goal from these updates on."""
        data, error = self(place, *RUNS[self.case.loss][-1])
        return bool((error[data.step.values >= updates] <= goal).all())


def search(problem: Any, kernel: fw.Kernel, case: Case, variant: str = "", rivals: Found | None = None) -> Found:
    """The step that reaches each goal first and keeps it, from the largest step down.

    Runs get longer. They begin one step above the best of the shorter ones, and end with a step that is worse than the
    best so far, the shortest ones with two of them. What rivals need both fewer updates and messages for is left out.
    """
    found: Found = {}
    waiting, runs, first = list(GOALS), Runs(problem, kernel, case), 0
    lengths = RUNS[case.loss]
    for stage, (length, every) in enumerate(lengths):
        late = lengths[stage - 1][0] / 2 if stage else 0
        least = {goal: min((one.updates for one in (rivals or {}).get(goal, [])), default=MOST) for goal in waiting}
        if all(late >= _BEHIND * updates for updates in least.values()):
            break
        reached: Found = {goal: [] for goal in waiting}
        lowest, lowest_at, worse, next_first = np.inf, first, 0, len(STEPS)
        for place in range(first, len(STEPS)):
            data, error = runs(place, length, every)
            for goal in waiting:
                above = np.flatnonzero(error > goal)
                at = int(above[-1]) + 1 if above.size else 0
                if at == error.size:
                    continue
                updates = int(data.step.values[at])
                if updates > (MOST if length == LAST else length / 2):
                    next_first = min(next_first, place)
                    continue
                sent = (round(float(data[name].values[:, at].mean()), 1) for name in ("messages", "probes"))
                reached[goal].append(Reached(updates, *sent, float(f"{STEPS[place]:.3g}"), variant, place))
            tail = float(error[-10:].mean())
            if tail < lowest:
                lowest, lowest_at, worse = tail, place, 0
            elif np.isfinite(lowest):
                worse += 1
                if worse == (1 if stage else 2):
                    break
        for goal, several in reached.items():
            for one in sorted(several):
                others = (rivals or {}).get(goal, [])
                if others and all(min(each[axis] for each in others) <= one[axis] for axis in (0, 1)):
                    waiting.remove(goal)
                    break
                if length == LAST or runs.keeps(one.place, goal, one.updates):
                    found[goal] = [one]
                    waiting.remove(goal)
                    break
        if not waiting:
            break
        first = max(min(lowest_at, next_first) - 1, 0)
    return found


def measure(case: Case) -> dict[str, Any]:
    """What each design needs to reach the goals."""
    warnings.filterwarnings("ignore", module="freewalk")  # that plain MHLJ is biased
    began = time.process_time()
    graph = case.network
    problem = case.problem(graph)
    row: dict[str, Any] = {**case._asdict(), "n": graph.n}
    rivals: Found = {}
    for variant, design in MHLJS.items():
        for goal, several in search(problem, design.kernel(graph, problem.smoothness), case, variant, rivals).items():
            rivals.setdefault(goal, []).extend(several)
    row[RIVAL] = best_of(rivals)
    if len(rivals) < len(GOALS):
        row["MHLJ sends"] = least_sent(case, problem, graph)
    for label, design in DESIGNS.items():
        kernel = design.kernel(graph, problem.smoothness)
        found = search(problem, kernel, case)
        row[label] = {f"{goal:g}": found[goal][0][:4] if goal in found else None for goal in GOALS}
        if label == REPELLENT:
            row["bytes"] = carried(case, problem, graph, row[label])
    return {**row, "seconds": round(time.process_time() - began, 1)}


def best_of(found: Found) -> dict[str, Any]:
    """By goal: the step and the variant with the fewest updates, and those with the fewest messages."""
    one = {axis: partial(min, key=lambda each, axis=axis: getattr(each, axis)) for axis in ("updates", "messages")}
    kept = {}
    for goal in GOALS:
        several = found.get(goal)
        kept[f"{goal:g}"] = several and {axis: pick(several)[:5] for axis, pick in one.items()}
    return kept


def least_sent(case: Case, problem: Any, graph: fw.Graph) -> float:
    """The fewest messages of a MHLJ in as many updates as are allowed: one that fails has sent no fewer."""
    options = {"steps": MOST, "every": MOST, "walks": WALKS, "start": case.start, "seed": case.seed}
    kernels = [design.kernel(graph, problem.smoothness) for design in MHLJS.values()]
    if case.start == "heaviest":
        options["start"] = int(problem.smoothness.argmax())
    return min(round(float(fw.walk(kernel, **options).data.messages[:, -1].mean()), 1) for kernel in kernels)


def carried(case: Case, problem: Any, graph: fw.Graph, reached: dict[str, Any]) -> dict[str, float | None]:
    """Bytes to each goal if the token carries its counters."""
    kernel = fw.designs.SelfRepellent(TEMPERED, alpha=30, fading=0.6).kernel(graph, problem.smoothness)
    found: dict[str, float | None] = {}
    for goal, best in reached.items():
        updates = best and best[0]
        options = {"steps": updates, "every": updates, "walks": WALKS, "start": case.start, "seed": case.seed}
        found[goal] = updates and round(
            float(fw.learn(problem, kernel, fw.SGD(step=1e-9), **options).data.bytes[:, -1].mean())
        )
    return found


def run(selected: Iterable[Case], processes: int, seconds: float) -> None:
    """Measure the cases that are not there yet, and keep each at once."""
    done = {tuple(row[name] for name in Case._fields) for row in read()}
    todo = [case for case in selected if case not in done]
    end = time.monotonic() + seconds
    with ProcessPoolExecutor(processes) as pool, CASES.open("a", encoding="utf-8") as file:
        for first in range(0, len(todo), 4 * processes):
            if time.monotonic() > end:
                return
            for row in pool.map(measure, todo[first : first + 4 * processes]):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
                print(*(row[name] for name in Case._fields), row["seconds"], flush=True)


def read() -> list[dict[str, Any]]:
    """The cases that were measured; the last line of a run that was killed may be incomplete."""
    if not CASES.is_file():
        return []
    return [json.loads(line) for line in CASES.read_text("utf-8").splitlines() if line.endswith("}")]


# Tables


class Ratio(NamedTuple):
    """A count of a design divided by that of the best MHLJ, or by what all of them exceed if none reaches the goal."""

    value: float
    bound: bool = False


def ratios(rows: list[dict[str, Any]], label: str, goal: str, axis: str) -> list[Ratio]:
    """One per case in which the design or the best MHLJ reached the goal; infinite if only MHLJ did."""
    found = []
    for row in rows:
        ours, theirs = count(row, label, goal, axis), count(row, RIVAL, goal, axis)
        if np.isfinite(ours) or np.isfinite(theirs):
            bound = not np.isfinite(theirs)
            least = (MOST if axis == "updates" else row["MHLJ sends"]) if bound else theirs
            found.append(Ratio(ours / least, bound))
    return sorted(found)


def count(row: dict[str, Any], label: str, goal: str, axis: str) -> float:
    """The fewest updates or messages to a goal; "sent": messages and probes."""
    best = row[label][goal]
    if not best:
        return float("inf")
    if label == RIVAL:
        best = best["updates" if axis == "updates" else "messages"]
    return float({"updates": best[0], "messages": best[1], "sent": best[1] + best[2]}[axis])


def middle(found: list[Ratio]) -> Ratio:
    """The median; of an even number the larger of the two in the middle, so that it is one of them."""
    return found[len(found) // 2]


def shown(ratio: Ratio) -> str:
    return f"{'< ' * ratio.bound}{ratio.value:.2g}" if np.isfinite(ratio.value) else "fails"


def spread(found: list[Ratio]) -> str:
    """Median and range."""
    return f"**{shown(middle(found))}** ({shown(found[0])} to {shown(found[-1])})" if found else "–"


def outcomes(rows: list[dict[str, Any]], label: str, goal: str) -> str:
    """In how many cases both, only the design, only MHLJ and neither reached the goal."""
    both = [
        (np.isfinite(count(row, label, goal, "updates")), np.isfinite(count(row, RIVAL, goal, "updates")))
        for row in rows
    ]
    return " / ".join(str(both.count(pair)) for pair in ((True, True), (True, False), (False, True), (False, False)))  # type: ignore[arg-type]


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))


def percent(goal: str) -> str:
    return f"{100 * float(goal):g} %"


OUTCOMES = "both / only it / only MHLJ / neither"
EXPECTED = {"updates": 0.6, "messages": 0.5}


def expected(graph: str, goal: str, axis: str) -> float | None:
    """What was expected of the median, before the study."""
    if graph == "Barabási–Albert" and goal == str(GOALS[-1]):
        return None
    return 0.1 if graph == "ring" else EXPECTED[axis]


def verdict(found: list[Ratio], limit: float | None) -> str:
    """Whether the median is as expected; open if it depends on how far MHLJ is from its goal after all updates."""
    if not found or limit is None:
        return "–"
    holds = middle(found).value <= limit
    fails = middle(sorted(Ratio(0.0 if one.bound else one.value) for one in found)).value > limit
    return f"{'yes' if holds else '**no**' if fails else 'open'} (≤ {limit:g})"


def graphs_table(rows: list[dict[str, Any]]) -> str:
    body = []
    for graph in GRAPHS:
        here = [row for row in rows if row["graph"] == graph]
        for goal in map(str, GOALS):
            line = [graph, percent(goal), outcomes(here, REPELLENT, goal)]
            for axis in EXPECTED:
                found = ratios(here, REPELLENT, goal, axis)
                line += [spread(found), verdict(found, expected(graph, goal, axis))]
            body.append(line)
    axes = [word for axis in EXPECTED for word in (f"{axis} / best MHLJ", "as expected")]
    return table(["graph", "goal", OUTCOMES, *axes], body)


def designs_table(rows: list[dict[str, Any]]) -> str:
    body = []
    for label in DESIGNS:
        for goal in map(str, GOALS):
            cells = [spread(ratios(rows, label, goal, axis)) for axis in EXPECTED]
            fewer = sum(ratio.value < 1 for ratio in ratios(rows, label, goal, "updates"))
            steps = [row[label][goal][3] for row in rows if row[label][goal]]
            best = f"{median(steps):.2g}" if steps else "–"
            body.append([label, percent(goal), outcomes(rows, label, goal), *cells, f"{fewer} of {len(rows)}", best])
    axes = [f"{axis} / best MHLJ" for axis in EXPECTED]
    return table(["design", "goal", OUTCOMES, *axes, "fewer updates than the best MHLJ", "step"], body)


AMOUNTS = ((0, QUICK), (QUICK, 2_000), (2_000, MOST + 1))


def conditions_table(rows: list[dict[str, Any]]) -> str:
    """By what the best MHLJ needs, and by the choices of the cases."""
    names = {"heavy": "heavy nodes", "start": "start", "shift": "shift", "loss": "loss"}
    parts: list[tuple[str, Callable[[dict[str, Any], str], bool]]] = []
    for low, high in AMOUNTS:
        words = f"updates of the best MHLJ: {f'below {high:,}' if low == 0 else f'{low:,} to {high - high % 10:,}'}"
        parts.append((words, lambda row, goal, low=low, high=high: low <= count(row, RIVAL, goal, "updates") < high))
    parts.append(("no MHLJ arrives", lambda row, goal: np.isinf(count(row, RIVAL, goal, "updates"))))
    for axis, name in names.items():
        for value in dict.fromkeys(row[axis] for row in rows):
            parts.append((f"{name}: {value}", lambda row, goal, axis=axis, value=value: row[axis] == value))
    body = []
    for words, holds in parts:
        for goal in map(str, GOALS):
            here = [row for row in rows if holds(row, goal)]
            cells = [spread(ratios(here, label, goal, "updates")) for label in (REPELLENT, BACK)]
            body.append([words, percent(goal), str(len(here)), *cells])
    return table(
        ["cases with", "goal", "cases", *(f"{label}: updates / best MHLJ" for label in (REPELLENT, BACK))], body
    )


def counts_table(rows: list[dict[str, Any]]) -> str:
    """Medians of updates and messages for the plainest data; a goal that was not reached is beyond all others."""
    labels = (UNIFORM, RIVAL, BACK, REPELLENT, PLAIN, DRIVEN)
    rows = [row for row in rows if row["loss"] == "least squares" and row["shift"] == 0]
    body = []
    for graph in GRAPHS:
        here = [row for row in rows if row["graph"] == graph]
        for goal in map(str, GOALS):
            line = [graph, percent(goal)]
            for label in labels:
                values = [sorted(count(row, label, goal, axis) for row in here) for axis in EXPECTED]
                typical = [several[len(several) // 2] for several in values if several]
                reached = all(np.isfinite(typical))
                line.append(" / ".join(f"{value:,.0f}" for value in typical) if reached else "not reached")
            body.append(line)
    return table(["graph", "goal", *(f"{label}: updates / messages" for label in labels)], body)


def costs_table(rows: list[dict[str, Any]]) -> str:
    """What the memory of a self-repellent walk costs at each place, by graph."""
    body = []
    for graph in GRAPHS:
        here = [row for row in rows if row["graph"] == graph]
        for goal in map(str, GOALS):
            there = [(row[REPELLENT][goal], row["bytes"][goal]) for row in here if row[REPELLENT][goal]]
            if not there:
                continue
            carried_by_token = [size / best[1] - 8 * DIM for best, size in there]
            line = [graph, percent(goal), f"{median(best[2] / best[0] for best, _ in there):.1f}"]
            line += [spread(ratios(here, REPELLENT, goal, "sent")), f"{median(carried_by_token):,.0f}"]
            body.append(line)
    head = ["graph", "goal", "at the nodes: probes per update", "messages and probes / messages of the best MHLJ"]
    return table([*head, "in the token: bytes of counters per message"], body)


def coverage_table(rows: list[dict[str, Any]]) -> str:
    """How many combinations were measured with how many data seeds."""
    wanted = {case[:-1] for case in cases()}
    have = {
        combination: sum(tuple(row[name] for name in Case._fields[:-1]) == combination for row in rows)
        for combination in wanted
    }
    body = [
        [str(seeds), str(sum(number == seeds for number in have.values()))]
        for seeds in sorted({*have.values()}, reverse=True)
    ]
    return table(["data seeds", "combinations"], body)


def result(rows: list[dict[str, Any]]) -> str:
    """The result in words."""
    lines = []
    for goal in map(str, GOALS):
        found = {axis: ratios(rows, REPELLENT, goal, axis) for axis in EXPECTED}
        fewer = sum(ratio.value < 1 for ratio in found["updates"])
        few, sent = (shown(middle(each)) for each in found.values())
        only = sum(ratio.bound for ratio in found["updates"])
        arrive = f"{fewer} of the {len(found['updates'])} cases in which either arrives within {MOST:,}"
        lines.append(
            f"To {percent(goal)} of the initial error it needs {few} times the updates and {sent} times the messages "
            f"of the best of twelve MHLJ, in the median, and fewer updates in {arrive} updates; in {only} no MHLJ does."
        )
    soon, later = quick_and_slow(rows)
    lines.append(
        f"It loses where jumps are quick: in the {len(soon)} cases in which the best MHLJ is at 1 % within "
        f"{QUICK} updates it takes {shown(middle(soon))} times as many, "
        f"in the {len(later)} others {shown(middle(later))} times."
    )
    return f"**In {len(rows):,} cases on {len(GRAPHS)} graphs** ([the study](#the-study)):\n\n- " + "\n- ".join(lines)


def quick_and_slow(rows: list[dict[str, Any]]) -> tuple[list[Ratio], ...]:
    """Ratios of updates to 1 % where the best MHLJ is quick, and where it is not or does not arrive."""
    goal = str(GOALS[0])
    quick = [count(row, RIVAL, goal, "updates") < QUICK for row in rows]
    parts = ([row for row, is_quick in zip(rows, quick) if is_quick is wanted] for wanted in (True, False))
    return tuple(ratios(part, REPELLENT, goal, "updates") for part in parts)


# Picture

EXAMPLE = Case("ring", "scattered", "uniform", 0.0, "least squares", 1001)
SHOWN = (UNIFORM, RIVAL, BACK, REPELLENT)
TITLE = "A walk that remembers where it has been arrives first"


def curves() -> None:
    """The error against updates on the ring, with the steps that reach the closest goal first."""
    (row,) = [row for row in read() if tuple(row[name] for name in Case._fields) == EXAMPLE]
    graph = EXAMPLE.network
    problem = EXAMPLE.problem(graph)
    zero, best = (float(problem.loss(model)) for model in (np.zeros(DIM), problem.optimum()))
    kept = []
    for label in SHOWN:
        chosen = next(row[label][f"{goal:g}"] for goal in reversed(GOALS) if row[label][f"{goal:g}"])
        chosen = chosen["updates"] if label == RIVAL else chosen
        design = MHLJS[chosen[4]] if label == RIVAL else DESIGNS[label]
        kernel = design.kernel(graph, problem.smoothness)
        rule = fw.SGD(step=chosen[3] / float((kernel.weights * problem.smoothness).max()))
        options = {"steps": MOST, "every": 20, "walks": 10 * WALKS, "start": EXAMPLE.start, "seed": EXAMPLE.seed}
        data = fw.learn(problem, kernel, rule, **options).data
        error = (data.loss.values.mean(axis=0) - best) / (zero - best)
        places = np.unique(np.geomspace(1, error.size - 1, 150).round().astype(int))
        places = np.append(0, places)
        kept.append({"label": label, "design": str(design), "updates": data.step.values[places].tolist()})
        kept[-1]["error"] = [float(f"{value:.3g}") for value in error[places]]
    head = {"command": "python docs/images/memory.py --curves", **EXAMPLE._asdict(), "walks": 10 * WALKS}
    CURVES.write_text(json.dumps({**head, "rows": kept}, ensure_ascii=False) + "\n", encoding="utf-8")


def draw_curves(rows: list[dict[str, Any]]) -> None:
    goal = GOALS[-1]
    figure = new_figure(7.6, 4.6)
    axes = figure.subplots()
    colours = {UNIFORM: COLOURS[0], RIVAL: COLOURS[1], BACK: COLOURS[2], REPELLENT: COLOURS[3]}
    words = {
        UNIFORM: "uniform walk",
        RIVAL: "the best jumps (MHLJ)",
        BACK: "does not step back",
        REPELLENT: "avoids where it has been",
    }
    for place, row in enumerate(reversed(rows)):
        error, updates = np.array(row["error"]), np.array(row["updates"])
        style = {"color": colours[row["label"]]}
        axes.plot(updates[1:], error[1:], linewidth=2.2, **style)
        kept = np.flatnonzero(error > goal)[-1] + 1
        arrives = kept < error.size
        at, low = (updates[kept] if arrives else MOST), goal / (2.6, 6.5, 12.0, 22.0)[place]
        text = f"{words[row['label']]}: " + (f"{at:,} updates" if arrives else f"not within {MOST:,}")
        axes.plot([at, at], [low, goal], linewidth=1, **style)
        axes.plot(at, goal, "o", markersize=8, clip_on=False, **style)
        axes.text(at * 0.93, low, text, ha="right", va="center", fontweight="bold", **style)
    axes.set(xscale="log", yscale="log", xlim=(20, MOST), ylim=(goal / 32, 1.2))
    axes.axhline(goal, **DOTTED)
    axes.text(21, goal * 1.08, "goal: 0.1 % of the initial error", va="bottom")
    axes.set(xlabel="updates", ylabel="error, as a share of the initial one", title=TITLE)
    axes.grid(True, alpha=0.3)
    save(figure, HERE / "ring.png")


def draw() -> None:
    """Tables and picture."""
    rows = read()
    tables = {"graphs": graphs_table(rows), "designs": designs_table(rows), "conditions": conditions_table(rows)}
    tables |= {
        "result": result(rows),
        "counts": counts_table(rows),
        "costs": costs_table(rows),
        "coverage": coverage_table(rows),
    }
    writing.fill(PAGE, tables)
    if CURVES.is_file():
        with matplotlib.rc_context(STYLE):
            draw_curves(json.loads(CURVES.read_text("utf-8"))["rows"])


def main() -> None:
    words = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(description=words[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin no further cases after this time")
    parser.add_argument("--processes", type=int, default=2, help="cases to measure at the same time")
    parser.add_argument("--quick", action="store_true", help="four cases with another data seed, printed and not kept")
    parser.add_argument("--curves", action="store_true", help="only the curves of the picture")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    options = parser.parse_args()
    HERE.mkdir(exist_ok=True)
    if options.quick:
        for graph, loss in product(("ring", "Tata"), RUNS):
            print(
                json.dumps(measure(Case(graph, "scattered", "uniform", 0.0, loss, 1)), ensure_ascii=False), flush=True
            )
        return
    if not (options.draw or options.curves):
        run(cases(), options.processes, 60 * options.minutes)
    if not options.draw:
        curves()
    draw()


if __name__ == "__main__":
    main()
