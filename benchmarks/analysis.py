"""What the exact analysis costs: python benchmarks/analysis.py law | excess

`law`: the stationary law of walks with jumps on a million nodes. Each runs in a process of its own, so that the peak of
its memory is its own; the time includes the transition matrix.

`excess`: the excess visits of 20 heavy nodes among a million, with and without jumps, as a table in Markdown. `claimed`
is the relative error that the package assumes. `residual` is found here, apart from the time: where the chain was
eliminated, by how much the excess changes (relative) when the nodes are numbered anew; where it was iterated, what the
solution c lacks of c − c P = ν 1_S − ν(S) ν, relative to the right side. `squares` is how far the excess of an iterated
solution is from ½ Σ ν_i P_ij (z_i − z_j)² / ν(S), z = c / ν: for a walk in detailed balance that is its true error.
"""

import resource
import subprocess
import sys
import time

import numpy as np
from scipy.sparse import csr_array

import freewalk as fw
from freewalk.analysis.chain.chain import stationary
from freewalk.analysis.chain.unrolled import Hops
from freewalk.analysis.traps.returns import Returns
from freewalk.errors import AnalysisError

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


DESIGNS = {
    "Metropolis(1)": fw.designs.Metropolis(power=1),
    "MHLJ(.1, .5, 3)": fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3),
}


def excess(kind: str, n: int, name: str) -> None:
    """A row of the table for the excess of the heavy nodes, with a check of its own."""
    graph = GRAPHS[kind](n)
    heavy = np.random.default_rng(0).choice(graph.n, 20, replace=False)
    inside = np.isin(np.arange(graph.n), heavy)
    importance = np.where(inside, 100.0, 1.0)
    kernel = DESIGNS[name].kernel(graph, importance)
    before, used = time.perf_counter(), time.process_time()
    returns = Returns("excess", kernel)
    try:
        result = f"{returns.excess(heavy):.10g}"
    except AnalysisError:
        result = "refused"
    seconds, busy = time.perf_counter() - before, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = returns._eliminated(inside)
    if found is not None:
        way, claimed, gap = "eliminated", found.error, ""
        order = np.random.default_rng(1).permutation(graph.n)
        renumbered = fw.graphs.from_scipy(csr_array(graph.adjacency())[order][:, order])
        other = Returns("excess", DESIGNS[name].kernel(renumbered, importance[order]))._eliminated(inside[order])
        residual = abs(other.value / found.value - 1)
    else:
        way = "iterated"
        claimed, residual, squares = checked(returns, inside)
        gap = f"{squares:.1e}"
    print(
        f"| {kind} | {name} | {result} | {way} | {seconds:.1f} | {busy:.1f} | {claimed:.1e} | {residual:.1e} | {gap} | "
        f"{peak:.2f} |",
        flush=True,
    )


def checked(returns: Returns, inside: np.ndarray) -> tuple[float, float, float]:
    """The claimed error of an iterated excess, the residual of its solution, and how far its squares are from it."""
    steps, states, solve = returns._solving
    tried: list[np.ndarray] = []

    class Recorded:
        """The steps, and what they are asked for: the solution after each round."""

        energy = steps.energy

        def change(self, measure: np.ndarray) -> np.ndarray:
            tried.append(measure)
            return steps.change(measure)

    returns.__dict__["_solving"] = Recorded(), states, solve
    found = returns._iterated(inside)
    law, n = returns.law, inside.size
    share = law[inside].sum()
    solution = min(tried, key=lambda one: abs(one[:n][inside].sum() / share - found.value))
    right = law * inside - share * law
    residual = right + Hops(returns.kernel).change(solution[:n])
    z, leaving = solution / states, returns._leaving
    starts = np.repeat(np.arange(states.size), np.diff(leaving.indptr))
    squares = states[starts] @ (leaving.data * (z[starts] - z[leaving.indices]) ** 2) / 2 / share
    return found.error, float(np.abs(residual).sum() / np.abs(right).sum()), float(abs(squares / found.value - 1))


def main(arguments: list[str]) -> None:
    if len(arguments) == 3:
        return law(arguments[1], int(arguments[2]))
    if len(arguments) == 4:
        return excess(arguments[1], int(arguments[2]), arguments[3])
    if arguments == ["excess"]:
        print("| graph | design | excess | way | seconds | cpu | claimed | residual | squares | peak GB |")
        print("|---|---|---:|---|---:|---:|---:|---:|---:|---:|", flush=True)
        for kind in GRAPHS:
            for name in DESIGNS:
                subprocess.run([sys.executable, __file__, "excess", kind, "1000000", name], check=True)
        return None
    if arguments != ["law"]:
        raise SystemExit(__doc__)
    print(
        f"{'graph':12s} {'nodes':>9} {'seconds':>8} {'cpu':>8} {'residual':>9} {'peak GB':>8} {'to target':>10}",
        flush=True,
    )
    for kind in GRAPHS:
        subprocess.run([sys.executable, __file__, "law", kind, "1000000"], check=True)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
