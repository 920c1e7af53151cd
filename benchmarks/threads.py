"""How speed grows with the number of threads, and beside an earlier state of the code: python benchmarks/threads.py

Every number comes from a process of its own, which calls `fw.learn` or `fw.walk` and counts from an early call of
`progress` to the last one; all take turns, round by round, and the medians are shown. An earlier state is the path of
another checkout: git worktree add /tmp/before COMMIT && python benchmarks/threads.py --beside /tmp/before
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
WALKS = 2048
#: By name: the graph, its number of nodes, whether it is learned, and the precision.
CASES = {
    "learn, ring of 1000": ("ring", 10**3, True, "float64"),
    "learn, ring of 1000, float32": ("ring", 10**3, True, "float32"),
    "learn, Watts–Strogatz of 10⁶": ("watts_strogatz", 10**6, True, "float64"),
    "walk, ring of 1000": ("ring", 10**3, False, "float64"),
    "walk, Watts–Strogatz of 10⁶": ("watts_strogatz", 10**6, False, "float64"),
}


def rate(case: str, walks: int, seconds: float) -> float:
    """Million updates, or steps, a second, by the threads of $FREEWALK_THREADS."""
    import freewalk as fw

    kind, n, learns, precision = CASES[case]
    graph = fw.graphs.ring(n) if kind == "ring" else fw.graphs.watts_strogatz(n, 4, 0.1, seed=1)
    problem = fw.objectives.LeastSquares.synthetic(n, dim=10 if learns else 1, heavy=2, seed=1)
    kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, problem.smoothness)

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


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--threads", nargs="+", type=int)
    parser.add_argument("--walks", type=int, default=WALKS)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(rate(given.one, given.walks, given.seconds))
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = given.threads or sorted({2**k for k in range(cores.bit_length()) if 2**k <= cores} | {cores})
    places = {"here": HERE} | ({"there": given.beside} if given.beside else {})
    print(f"{cores} cores, {platform.processor() or platform.machine()}; {given.walks} walks; million a second, median")
    for case in given.cases:
        found: dict[tuple[str, int], list[float]] = {}
        for _ in range(given.rounds):
            for count in threads:
                for name, checkout in places.items():
                    one = measured(checkout, case, given.walks, count, given.seconds)
                    found.setdefault((name, count), []).append(one)
        middle = {key: statistics.median(rates) for key, rates in found.items()}
        for name in places:
            single = middle[name, threads[0]]
            shown = [f"{count}: {middle[name, count]:.0f} (× {middle[name, count] / single:.2f})" for count in threads]
            print(f"{case:32} {name:5}  {'   '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
