"""A model of runs on many machines, from costs that are measured here: `python benchmarks/scale.py`.

It measures what an update costs on one core by the size of the graph, what an interval of a run on Ray costs beside
its updates, and how fast states travel. From these `predict` says how fast a cluster is, what each machine must hold
and what that costs. The prediction is checked against runs with 1, 2 and 4 workers on this machine, and with a network
that is made slow on purpose.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import freewalk as fw
from freewalk.checks import cores
from freewalk.runtimes.ray import runtime as on_ray
from freewalk.runtimes.ray.cluster import ray_module
from freewalk.runtimes.ray.runtime import pace_of
from freewalk.runtimes.ray.shipment import pack

DIM, DEGREE = 4, 4
VISITS_BY_WALK = 4_000_000  # above so many counts, visits are summed over the walks
FIELDS = 4 + 6 * 8  # bytes of a walk besides its model: where it is, and what it has counted


@dataclass(frozen=True)
class Costs:
    """What was measured on one machine."""

    update: dict[int, float]  # by nodes: seconds per update on one core that is one of all that work
    task: float  # seconds of an interval of one task in which nothing is done
    copy: float  # seconds per byte from a worker to the process that asked, and back
    build: dict[int, float]  # by nodes: bytes of the graph, its tables and its data


@dataclass(frozen=True)
class Cluster:
    """Machines that are alike, one task each."""

    machines: int
    cores: int
    latency: float = 1e-4  # seconds
    bandwidth: float = 1.25e9  # bytes per second of each machine
    price: float = 3.0  # per machine and hour


@dataclass(frozen=True)
class Run:
    """A run."""

    nodes: int
    walks: int
    steps: int


@dataclass(frozen=True)
class Prediction:
    """What is to be expected."""

    rate: float  # updates per second
    efficiency: float  # of what the cores could do
    seconds: float
    price: float
    memory: float  # bytes that each machine holds
    interval: float  # seconds between two states that come back
    sent: float  # bytes that one machine sends then
    visits: float  # of those, counts of visits


def predict(costs: Costs, cluster: Cluster, run: Run, given: float | None = None, visits: bool = True) -> Prediction:
    """The model. With n nodes, W walks, M machines of c cores:

    rate = M · c / update(n), as long as the process in the middle keeps up. Every P seconds each machine sends its
    walks back, (W / M) · (8 d + 52) bytes, and the visits since: counts of 1 to 4 bytes, n of them, or by walk up to 4
    million. All machines wait for the process that asked, which reads and writes one after the other.
    """
    update = _at(costs.update, run.nodes)
    free = cluster.machines * cluster.cores / update
    walks = run.walks * (8 * DIM + FIELDS)
    summed = run.nodes * run.walks > VISITS_BY_WALK
    cells = run.nodes if summed else run.nodes * run.walks / cluster.machines  # counts of visits of one machine
    interval = pace_of(0.0, given)
    for _ in range(50):  # what is sent depends on how long an interval is, and the other way round
        made = free / cluster.machines * interval  # updates of a machine
        counts = min(_width(made / cells) * cells, 16 * made) * visits
        sent = walks / cluster.machines + counts
        wire = (2 * walks + counts * cluster.machines) / cluster.bandwidth
        beside = costs.task + 2 * cluster.latency + wire + costs.copy * cluster.machines * (2 * sent)
        interval = pace_of(beside, given)
    work = max(interval - beside, 0.5 * interval)  # seconds of updates in an interval
    efficiency = work / (work + beside)
    rate = free * efficiency
    seconds = run.walks * run.steps / rate
    held = 8 * cells * (cluster.cores if summed else 1) * visits  # each thread counts apart
    memory = _at(costs.build, run.nodes) + held + walks / cluster.machines
    hours = cluster.machines * seconds / 3600
    return Prediction(rate, efficiency, seconds, hours * cluster.price, memory, interval, sent, counts)


def _width(mean: float) -> int:
    """The bytes of a count whose mean is this, with room for a node that is visited ten times as often."""
    return 1 if mean < 25 else 2 if mean < 6500 else 4


def _at(known: dict[int, float], nodes: int) -> float:
    """Between and beyond what was measured: linear in the logarithms, the last two points for larger graphs."""
    x, y = np.log(list(known)), np.log(list(known.values()))
    if np.log(nodes) > x[-1]:
        slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
        return float(np.exp(y[-1] + slope * (np.log(nodes) - x[-1])))
    return float(np.exp(np.interp(np.log(nodes), x, y)))


def problem_of(nodes: int) -> tuple[fw.objectives.LeastSquares, fw.Kernel]:
    """A sparse random graph with one sample per node, and a uniform Metropolis walk on it."""
    graph = fw.graphs.watts_strogatz(nodes, DEGREE, 0.1, seed=1)
    problem = fw.objectives.LeastSquares.synthetic(nodes, dim=DIM, seed=1)
    return problem, fw.designs.Metropolis().kernel(graph)


def seconds_of(
    problem: fw.Objective, kernel: fw.Kernel, steps: int, walks: int, runtime: fw.runtimes.Ray | str
) -> float:
    """How long a run takes."""
    began = time.perf_counter()
    options = {"steps": steps, "walks": walks, "every": steps, "start": "uniform", "runtime": runtime}
    fw.learn(problem, kernel, fw.SGD(1e-3), **options)
    return time.perf_counter() - began


def measure(sizes: list[int]) -> Costs:
    """The costs of this machine; Ray has been started."""
    update, build = {}, {}
    for nodes in sizes:
        problem, kernel = problem_of(nodes)
        walks, steps = 512, 20_000
        seconds_of(problem, kernel, 10, walks, "cpu")  # compiled, and the memory touched
        short, long = (min(seconds_of(problem, kernel, s, walks, "cpu") for _ in range(3)) for s in (steps, 6 * steps))
        update[nodes] = (long - short) / (5 * steps * walks) * cores()
        engine = fw.runtimes.CPU(threads=1).engine(fw.runtimes.Job(problem, (fw.Phase(None, kernel, fw.SGD(1e-3)),), 0))
        build[nodes] = float(pack((engine.job, engine)).bytes)
    task, copy = _travel()
    return Costs(update, task, copy, build)


def _travel() -> tuple[float, float]:
    """Seconds of an empty interval, and seconds per byte that travels."""
    problem, kernel = problem_of(1000)
    found = []
    for walks in (16, 400_000):
        job = fw.runtimes.Job(problem, (fw.Phase(None, kernel, fw.SGD(1e-3)),), 0)
        engine = fw.runtimes.Ray(tasks=1, cpus=1).engine(job)
        state = fw.runtimes.State.begin(job, np.zeros(walks, dtype=np.int32), np.zeros((walks, DIM)))
        times = []
        for step in range(1, 12):
            began = time.perf_counter()
            engine.advance(state, step, np.array([], dtype=np.int64))
            times.append(time.perf_counter() - began)
        found.append((float(np.median(times[2:])), 2 * walks * (8 * DIM + FIELDS)))
    (first, small), (second, large) = found
    return first, (second - first) / (large - small)


def delayed(latency: float, bandwidth: float) -> Callable[..., object]:
    """What a worker does, behind a network that takes so long."""

    def work(job: object, part: fw.runtimes.State, *order: object) -> object:
        from freewalk.runtimes.ray import runtime as on_ray  # that of the worker, which has not been replaced

        def size(state: fw.runtimes.State) -> int:
            return sum(value.nbytes for value in vars(state).values() if isinstance(value, np.ndarray))

        time.sleep(latency + size(part) / bandwidth)
        found = on_ray.work(job, part, *order)
        counts = found.visits if isinstance(found.visits, tuple) else (found.visits,)
        time.sleep(latency + (size(found.state) + sum(count.nbytes for count in counts)) / bandwidth)
        return found

    return work


def validate(costs: Costs, seconds: float) -> list[dict[str, float]]:
    """Predicted and measured times with 1, 2 and 4 workers of a core each, behind networks of three kinds."""
    ray = ray_module()
    rows = []
    work = on_ray.work
    for nodes, walks in ((10_000, 256), (1_000_000, 256), (10_000, 20_000)):
        problem, kernel = problem_of(nodes)
        for workers in (1, 2, 4):
            for latency, bandwidth in ((0.0, 1e12), (0.02, 1.25e8), (0.1, 1.25e7)):
                at_once = min(workers, cores())
                steps = int(seconds / _at(costs.update, nodes) / walks * at_once)
                # The cores are shared with others: what an update costs is measured right beside.
                plain = fw.runtimes.CPU(threads=at_once)
                alone = seconds_of(problem, kernel, steps // 3, walks, plain) - seconds_of(
                    problem, kernel, 1, walks, plain
                )
                here = replace(costs, update={1: (cost := alone * at_once / (steps // 3 * walks)), 2: cost})
                on_ray.work = delayed(latency, bandwidth) if latency else work
                runtime = fw.runtimes.Ray(tasks=workers, cpus=1)
                seconds_of(problem, kernel, 100, walks, runtime)  # the workers have what they need
                found = seconds_of(problem, kernel, steps, walks, runtime)
                found -= seconds_of(problem, kernel, 1, walks, runtime)  # to begin and to end
                on_ray.work = work
                cluster = Cluster(at_once, 1, latency, bandwidth * at_once)  # each has a wire of its own
                expected = predict(here, cluster, Run(nodes, walks, steps)).seconds
                rows.append(
                    {"nodes": nodes, "walks": walks, "workers": workers, "latency": latency}
                    | {"predicted": expected, "measured": found, "ratio": expected / found}
                )
                print("  " + "  ".join(f"{key} {value:.4g}" for key, value in rows[-1].items()), flush=True)
    ray.shutdown()
    return rows


def _costs(known: dict[str, Any]) -> Costs:
    tables = {name: {int(nodes): cost for nodes, cost in known[name].items()} for name in ("update", "build")}
    return Costs(**{**known, **tables})


def main() -> None:
    """Measure, check, predict."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=10.0, help="of each run that the model is checked against")
    options.add_argument("--sizes", type=int, nargs="*", default=[1000, 10_000, 100_000, 1_000_000, 10_000_000])
    options.add_argument("--nodes", type=float, default=1e9)
    options.add_argument("--walks", type=float, default=1e6)
    options.add_argument("--steps", type=float, default=1e9)
    options.add_argument("--machines", type=int, default=100)
    options.add_argument("--cores", type=int, default=64)
    options.add_argument("--price", type=float, default=3.0, help="of a machine per hour")
    options.add_argument("--costs", type=Path, help="what --out wrote before: measure nothing, predict only")
    options.add_argument("--out", type=Path, help="a JSON file for the costs, the checks and the prediction")
    given = options.parse_args()
    if given.costs is not None:
        known = json.loads(given.costs.read_text())
        costs, rows = _costs(known["costs"]), known["checks"]
    else:
        ray = ray_module()
        options = {"include_dashboard": False, "num_cpus": 4, "object_store_memory": 2**31, "logging_level": "ERROR"}
        ray.init(address="local", **options)
        costs = measure(given.sizes)
        print(
            f"task {1e3 * costs.task:.1f} ms, {1e-9 / costs.copy:.2f} GB/s; nanoseconds per update and core by nodes:"
        )
        print("  " + ", ".join(f"{nodes:,}: {1e9 * cost:.1f}" for nodes, cost in costs.update.items()))
        print("predicted and measured seconds:")
        rows = validate(costs, given.seconds)
    ratios = np.array([row["ratio"] for row in rows])
    print(f"predicted / measured: from {ratios.min():.2f} to {ratios.max():.2f}, median {np.median(ratios):.2f}")
    run = Run(int(given.nodes), int(given.walks), int(given.steps))
    cluster = Cluster(given.machines, given.cores, price=given.price)
    found = {"as it is": predict(costs, cluster, run), "without visits": predict(costs, cluster, run, visits=False)}
    found["an interval of 10 minutes"] = predict(costs, cluster, run, 600)
    found["one of an hour, 100 Gbit/s"] = predict(costs, replace(cluster, bandwidth=1.25e10), run, 3600)
    for name, one in found.items():
        print(
            f"{name}: {one.rate:.3g} updates/s ({100 * one.efficiency:.0f} % of the cores), "
            f"{one.seconds / 3600:.1f} hours, price {one.price:,.0f}, {one.memory / 1e9:,.0f} GB per machine; "
            f"every {one.interval:.0f} s a machine sends {one.sent / 1e9:.2f} GB, {one.visits / 1e9:.2f} of visits"
        )
    if given.out is not None:
        shown = {"costs": asdict(costs), "checks": rows, "predictions": {name: asdict(p) for name, p in found.items()}}
        given.out.write_text(json.dumps(shown, indent=1) + "\n")


if __name__ == "__main__":
    main()
