"""How speed grows with the number of threads, and beside an earlier state of the code: python benchmarks/threads.py

Every number comes from a process of its own, which calls `fw.learn` or `fw.walk` and counts from an early call of
`progress` to the last one; all take turns, round by round, and the medians are shown. An earlier state is the path of
another checkout: git worktree add /tmp/before COMMIT && python benchmarks/threads.py --beside /tmp/before

ThunderRW (VLDB 2021, C++) takes turns in the simple walks if --thunder is the path of its deepwalk.out. It draws 32
bits for a step, ours draws 128, and only ours counts visits. Its walks start at every node once, and its own clock
counts the walking alone.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parents[1]
WALKS = 2048
#: By name: the degree of the graph, which is a ring or a Watts–Strogatz graph, its number of nodes, and the precision.
CASES = {
    "learn, ring of 1000": (2, 10**3, "float64"),
    "learn, ring of 1000, float32": (2, 10**3, "float32"),
    "learn, Watts–Strogatz of 10⁶": (4, 10**6, "float64"),
    "walk, ring of 1000": (2, 10**3, "float64"),
    "walk, Watts–Strogatz of 10⁶": (4, 10**6, "float64"),
    "simple walk, k = 10, 10⁶ nodes": (10, 10**6, "float64"),
    "simple walk, k = 10, 1000 nodes": (10, 10**3, "float64"),
}


def graph_of(case: str) -> Any:
    """The graph of a case."""
    import freewalk as fw

    degree, n, _ = CASES[case]
    return fw.graphs.ring(n) if degree == 2 else fw.graphs.watts_strogatz(n, degree, 0.1, seed=1)


def rate(case: str, walks: int, seconds: float) -> float:
    """Million updates, or steps, a second, by the threads of $FREEWALK_THREADS."""
    import freewalk as fw

    precision, graph, learns = CASES[case][2], graph_of(case), case.startswith("learn")
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=10 if learns else 1, heavy=2, seed=1)
    design = fw.designs.SimpleWalk() if case.startswith("simple") else fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3)
    kernel = design.kernel(graph, problem.smoothness)

    def timed(steps: int) -> tuple[float, float]:
        calls: list[tuple[float, int]] = []
        given: dict[str, Any] = {
            "steps": steps,
            "walks": walks,
            "every": max(steps // 10, 1),
            "seed": 7,
            "progress": lambda step, steps: calls.append((time.perf_counter(), step)),
        }
        if learns:
            fw.learn(problem, kernel, fw.SGD(step=1e-3), precision=precision, **given)
        else:
            fw.walk(kernel, **given)
        first = next((call for call in calls[:-1] if call[1] >= steps // 50), calls[0])
        return (calls[-1][1] - first[1]) * walks, max(calls[-1][0] - first[0], 1e-9)

    timed(2)  # compiles
    steps = max(10_000_000 // walks, 100)
    done, taken = timed(steps)
    done, taken = timed(int(steps * max(1.0, seconds * done / taken / (steps * walks))))
    return done / taken / 1e6


def measured(checkout: Path, case: str, walks: int, threads: int, seconds: float) -> float:
    """The same in a process of its own."""
    environment = {**os.environ, "FREEWALK_THREADS": str(threads), "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--one", case, "--walks", str(walks), "--seconds", str(seconds)]
    return float(
        json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    )


@cache
def written(case: str, folder: Path) -> Path:
    """A folder with a graph as ThunderRW reads it."""
    graph, place = graph_of(case), folder / str(CASES[case][1])
    place.mkdir()
    degrees = np.diff(graph.indptr).astype(np.int32)
    head = np.array([4, graph.n], dtype=np.int32).tobytes() + np.array([degrees.sum()], dtype=np.int64).tobytes()
    (place / "b_degree.bin").write_bytes(head + degrees.tobytes())
    graph.indices.astype(np.int32).tofile(place / "b_adj.bin")
    return place


def thundered(program: Path, graph: Path, threads: int, seconds: float) -> float:
    """Million steps a second of ThunderRW, in runs of 80 steps a walk, or 4 million in all: paths stay in the cache."""
    length = max(80, 4_000_000 // int(graph.name))
    command = [str(program), "-f", str(graph), "-n", str(threads), "-em", "0", "-sm", "0", "-l", str(length)]
    done = taken = 0.0
    while taken < seconds:
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        said = run.stdout + run.stderr
        taken += float(re.findall(r"Walking time \(seconds\): ([0-9.]+)", said)[-1])
        done += float(re.findall(r"Num of steps: ([0-9]+)", said)[-1])
    return done / taken / 1e6


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--threads", nargs="+", type=int)
    parser.add_argument("--walks", type=int, default=WALKS)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--thunder", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(rate(given.one, given.walks, given.seconds))
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = given.threads or sorted({2**k for k in range(cores.bit_length()) if 2**k <= cores} | {cores})
    places = {"here": HERE} | ({"there": given.beside} if given.beside else {})
    folder = tempfile.TemporaryDirectory()
    print(f"{cores} cores, {platform.processor() or platform.machine()}; {given.walks} walks; million a second, median")
    for case in given.cases:
        found: dict[tuple[str, int], list[float]] = {}
        against = given.thunder if case.startswith("simple") else None
        for _ in range(given.rounds):
            for count in threads:
                for name, checkout in places.items():
                    one = measured(checkout, case, given.walks, count, given.seconds)
                    found.setdefault((name, count), []).append(one)
                if against:
                    one = thundered(against, written(case, Path(folder.name)), count, given.seconds)
                    found.setdefault(("Thunder", count), []).append(one)
        middle = {key: statistics.median(rates) for key, rates in found.items()}
        for name in dict.fromkeys(name for name, _ in found):
            single = middle[name, threads[0]]
            shown = [f"{count}: {middle[name, count]:.0f} (× {middle[name, count] / single:.2f})" for count in threads]
            print(f"{case:32} {name:7}  {'   '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
