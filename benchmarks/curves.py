"""What a step of an exact curve costs: python benchmarks/curves.py (about a minute; one core)."""

import time

import freewalk as fw
from freewalk.analysis import exact_curve
from freewalk.designs import MHLJ, Metropolis

DESIGNS = {
    "Metropolis(1)": Metropolis(1.0),
    "MHLJ": MHLJ(0.1, 0.5, 3),
    "MHLJ corrected": MHLJ(0.1, 0.5, 3, corrected=True),
}


def milliseconds(graph, dim, design, samples=1, steps=200, repeats=5):
    """The best of some repeats, a step."""
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=dim, heavy=2, samples=samples, seed=1)
    kernel = design.kernel(graph, problem.smoothness)
    best = float("inf")
    for _ in range(repeats + 1):  # the first may have to compile
        began = time.perf_counter()
        exact_curve(problem, kernel, fw.SGD(1e-4), steps=steps, every=steps, start=0)
        best = min(best, time.perf_counter() - began)
    return 1e3 * best / steps


def main():
    print("milliseconds a step, n = 1000, d = 10")
    graphs = (fw.graphs.ring(1000), fw.graphs.watts_strogatz(1000, 4, 0.1, seed=1), fw.graphs.erdos_renyi(1000, 0.1, 1))
    for graph in graphs:
        # On a dense graph the rows of corrected jumps are nearly full: they have no place here.
        dense = graph.edges > 10 * graph.n
        for name, design in list(DESIGNS.items())[: 2 if dense else None]:
            print(f"  {graph.name[:24]:24s} {name:16s} {milliseconds(graph, 10, design):8.3f}", flush=True)
    print("against n, MHLJ on a ring, d = 10")
    for n in (250, 500, 1000, 2000, 4000, 8000):
        print(f"  n = {n:5d} {milliseconds(fw.graphs.ring(n), 10, DESIGNS['MHLJ'], steps=100):8.3f}", flush=True)
    print("against d, MHLJ on a ring, n = 500")
    for d in (2, 5, 10, 20, 40):
        print(f"  d = {d:5d} {milliseconds(fw.graphs.ring(500), d, DESIGNS['MHLJ'], steps=100):8.3f}", flush=True)
    print("against d, three samples per node, MHLJ on a ring, n = 500")
    for d in (2, 5, 10, 20):
        time_ = milliseconds(fw.graphs.ring(500), d, DESIGNS["MHLJ"], samples=3, steps=50)
        print(f"  d = {d:5d} {time_:8.3f}", flush=True)


if __name__ == "__main__":
    main()
