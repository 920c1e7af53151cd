"""Updates a second of `fw.learn` beside a plain NumPy loop, measured in one run: python benchmarks/speed.py

MHLJ (.1, .5, 3), n = 1000, d = 10, float64, visits and messages counted, ten checkpoints. Machines are noisy: each
figure is the best of several repeats, and the ratio to the loop in the same run is what to compare. Writes speed.json.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import freewalk as fw

DESIGN = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3)
RULE = fw.SGD(step=3e-3)
LOOP_UPDATES = 30_000


def numpy_loop(graph: fw.Graph, problem: fw.objectives.LeastSquares, updates: int) -> float:
    """One walk as a researcher would write it in an afternoon; returns its final mean squared error."""
    generator = np.random.default_rng(0)
    importance, degrees = problem.smoothness, graph.degrees
    neighbours = [graph.neighbours(node) for node in range(graph.n)]
    features, targets = problem.features, problem.targets
    rate = RULE.step * importance.mean() / importance
    lengths = np.array([4, 2, 1]) / 7
    x, node = np.zeros(problem.dim), 0
    for _ in range(updates):
        a = features[node]
        x = x - rate[node] * (a @ x - targets[node]) * a
        if generator.random() < DESIGN.jump:
            for _ in range(1 + int(np.searchsorted(np.cumsum(lengths), generator.random()))):
                node = neighbours[node][int(generator.random() * degrees[node])]
        else:
            end = neighbours[node][int(generator.random() * degrees[node])]
            ratio = importance[end] * degrees[node] / (importance[node] * degrees[end])
            if generator.random() < ratio:
                node = end
    return problem.mse(x)


def best_rate(run: Callable[[], object], updates: int, repeats: int) -> float:
    run()  # compiles
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return updates / min(times)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--walks", type=int, default=1024)
    options.add_argument("--steps", type=int, default=20_000)
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--out", type=Path, default=Path("speed.json"))
    chosen = options.parse_args()
    graphs = {"ring": fw.graphs.ring(1000), "watts_strogatz": fw.graphs.watts_strogatz(1000, 4, 0.1, seed=1)}
    results: dict[str, dict[str, float]] = {}
    print(f"{os.cpu_count()} cores, {chosen.walks} walks × {chosen.steps} updates, best of {chosen.repeats}")
    for name, graph in graphs.items():
        problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=10, heavy=2, seed=1)
        kernel = DESIGN.kernel(graph, problem.smoothness)
        common = {"steps": chosen.steps, "every": chosen.steps // 10, "start": 0, "seed": 7}

        def learn(walks: int = chosen.walks, problem=problem, kernel=kernel, common=common) -> fw.Record:
            return fw.learn(problem, kernel, RULE, walks=walks, **common)

        def walk(kernel=kernel, common=common) -> fw.Record:
            return fw.walk(kernel, walks=chosen.walks, **common)

        first = float(learn(16).data.mse.mean("walk")[0])
        if not (learn(16).data.mse.mean("walk")[-1] < 0.1 * first and numpy_loop(graph, problem, 20_000) < 0.1 * first):
            raise SystemExit(f"{name}: a contestant did not learn; its speed means nothing")
        updates = chosen.walks * chosen.steps
        rates = {
            "learn": best_rate(learn, updates, chosen.repeats),
            "walk": best_rate(walk, updates, chosen.repeats),
            "learn, one walk": best_rate(lambda learn=learn: learn(1), chosen.steps, chosen.repeats),
            "plain NumPy loop": best_rate(
                lambda graph=graph, problem=problem: numpy_loop(graph, problem, LOOP_UPDATES), LOOP_UPDATES, 3
            ),
        }
        results[name] = rates
        for what, rate in rates.items():
            ratio = rate / rates["plain NumPy loop"]
            print(f"{name:15s} {what:17s} {rate / 1e6:9.3f} million/s {ratio:8.0f} × the loop")
    chosen.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
