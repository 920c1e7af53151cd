"""Peak memory of `fw.learn` against nodes, walks, checkpoints and steps: python benchmarks/memory.py

It should grow with n + edges, walks × checkpoints and walks × d, and not with the number of steps. Peaks are those that
tracemalloc sees, so allocations of numpy count and compiled code does not.
"""

import tracemalloc

import freewalk as fw


def peak(n: int, walks: int, checkpoints: int, steps: int) -> float:
    """Megabytes that a run takes at its peak, beside the problem and the kernel."""
    graph = fw.graphs.ring(n)
    problem = fw.objectives.LeastSquares.synthetic(n, dim=10, heavy=2, seed=1)
    problem.optimum()
    kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(graph, problem.smoothness)
    tracemalloc.start()
    fw.learn(problem, kernel, fw.SGD(step=1e-3), steps=steps, walks=walks, every=steps // checkpoints, start=0)
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return highest / 2**20


def main() -> None:
    peak(100, 16, 2, 100)  # imports and compiles
    base = {"n": 1000, "walks": 5000, "checkpoints": 10, "steps": 2000}
    print(f"{'n':>9} {'walks':>7} {'checkpoints':>11} {'steps':>8} {'peak MB':>9}")
    for change in [{}, {"steps": 20_000}, {"walks": 10_000}, {"checkpoints": 100}, {"n": 10_000}, {"n": 100_000}]:
        case = base | change
        print(f"{case['n']:9d} {case['walks']:7d} {case['checkpoints']:11d} {case['steps']:8d} {peak(**case):9.1f}")


if __name__ == "__main__":
    main()
