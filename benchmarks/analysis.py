"""What the exact analysis costs: python benchmarks/analysis.py law

`law`: the stationary law of walks with jumps on a million nodes. Each runs in a process of its own, so that the peak of
its memory is its own; the time includes the transition matrix.
"""

import resource
import subprocess
import sys
import time

import numpy as np

import freewalk as fw
from freewalk.analysis.law import stationary

GRAPHS = {
    "ring": lambda n: fw.graphs.ring(n),
    "grid": lambda n: fw.graphs.grid(round(n**0.5), round(n**0.5)),
    "small-world": lambda n: fw.graphs.watts_strogatz(n, 4, 0.1, seed=1),
}


def law(kind: str, n: int) -> None:
    """One stationary law: seconds, processor seconds, residual, peak memory."""
    graph = GRAPHS[kind](n)
    numbers = np.random.default_rng(0)
    importance = numbers.chisquare(10, graph.n)
    importance[numbers.choice(graph.n, max(2, graph.n // 1000), replace=False)] *= 100
    kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, importance)
    before, used = time.perf_counter(), time.process_time()
    result = stationary(kernel)
    seconds, busy = time.perf_counter() - before, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    matrix = kernel.matrix()
    residual = np.abs(matrix.T @ result - result).sum()
    distance = np.abs(result - np.asarray(kernel.target)).sum() / 2
    print(
        f"{kind:12s} {graph.n:9d} {seconds:8.1f} {busy:8.1f} {residual:9.1e} {peak:8.2f} {distance:10.4f}", flush=True
    )


def main(arguments: list[str]) -> None:
    if len(arguments) == 3:
        return law(arguments[1], int(arguments[2]))
    if arguments != ["law"]:
        raise SystemExit(__doc__)
    print(
        f"{'graph':12s} {'nodes':>9} {'seconds':>8} {'cpu':>8} {'residual':>9} {'peak GB':>8} {'to target':>10}",
        flush=True,
    )
    for kind in GRAPHS:
        subprocess.run([sys.executable, __file__, "law", kind, "1000000"], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
