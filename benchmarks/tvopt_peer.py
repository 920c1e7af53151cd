"""Decentralized gradient methods beside those of tvopt, in one run: python benchmarks/tvopt_peer.py [--runtime NAME]

tvopt (Bastianello, GPL 3) is a peer for this comparison and nothing else needs it: pip install tvopt==0.2.7. That runs
with NumPy 2 as it is. Both get the same least squares, graph, Metropolis weights W, step γ and zero models; ∇f(x)
stacks the gradients of the nodes, each at its own model. What the solvers of tvopt 0.2.7 compute, from their source:

    dpgm                      x ← W x − γ ∇f(x)                    decentralized_sgd(γ, combine_first=True)
    prox_aac, second          x ← W (x − γ ∇f(x))                  decentralized_sgd(γ)
      consensus step alone
    aug_dgm                   y ← W (y + ∇f(x) − ∇f(last x))       none; gradient_tracking(γ) is
                              x ← W (x − γ y), first y = ∇f(x)     y ← W y + ∇f(x) − ∇f(last x), x ← W (x − γ y)
    pg_extra, nids, prox_ed   EXTRA, NIDS and exact diffusion      none

In the first two rows the loss of the mean model, its distance from the optimum and the spread of the models must agree
after every round, or the run stops. Between rounds freewalk's tokens hold W x in the first row, so the spread is that
of W x. The third row is not compared: without the newest gradients mixed, x₊ = 2 W x − W² x₋ − γ W (∇f(x) − ∇f(x₋));
with them, the last W is W². The two have the same mean for two rounds and the same limit; a round of either takes one
gradient and mixes two vectors at every node, so that speeds can be compared.

A gradient is that of one node. Setting up is not in the time of tvopt, and is in that of freewalk; "long run" is one
that takes freewalk long enough for that not to matter, "same run" has the rounds of tvopt's. The two take turns, and
the best of several counts.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import freewalk as fw

DIM, SAMPLES = 10, 4
ROUNDS = 300
TURNS = 5
TOLERANCE = 1e-6
LONG_ENOUGH = 0.2  # seconds
MEASURES = ("loss", "distance", "consensus")


@dataclass(frozen=True)
class Pair:
    """A solver of tvopt, and the method of freewalk that is nearest to it.

    Parameters
    ----------
    solver
        The name of the solver.
    solve
        Called with a problem of tvopt, a step, the first models and a number of rounds.
    method
        Makes the method of freewalk from a step.
    same
        Whether both compute the same.
    mixed
        Whether freewalk's tokens hold W x where tvopt holds x.
    """

    solver: str
    solve: Callable[..., Any]
    method: Callable[[float], Any]
    same: bool = True
    mixed: bool = False


def pairs() -> list[Pair]:
    """What is set side by side."""
    from tvopt import distributed_solvers as solvers

    adapt_then_combine = partial(solvers.prox_aac, consensus_steps=[False, True, False])
    combine_first = partial(fw.baselines.decentralized_sgd, combine_first=True)
    return [
        Pair("dpgm", solvers.dpgm, combine_first, mixed=True),
        Pair("prox_aac", adapt_then_combine, fw.baselines.decentralized_sgd),
        Pair("aug_dgm", solvers.aug_dgm, fw.baselines.gradient_tracking, same=False),
    ]


class Task:
    """A problem on a graph, as both packages want it."""

    def __init__(self, graph: fw.Graph) -> None:
        from tvopt import costs, networks

        self.graph = graph
        self.problem = fw.objectives.LeastSquares.synthetic(
            graph.n, dim=DIM, samples=SAMPLES, shift=0.5, shifted="all", seed=1
        )
        self.step = 0.2 / float(self.problem.smoothness.max())
        self.weights = fw.exchanges.Gossip().on(graph).toarray()
        # tvopt adds up squares where freewalk takes their mean.
        features = self.problem.features.reshape(graph.n, SAMPLES, DIM) / np.sqrt(SAMPLES)
        targets = self.problem.targets.reshape(graph.n, SAMPLES, 1) / np.sqrt(SAMPLES)
        local = [costs.LinearRegression(a, y) for a, y in zip(features, targets, strict=True)]
        network = networks.Network(graph.adjacency().toarray(), self.weights)
        self.theirs = {"f": costs.SeparableCost(local), "network": network}

    def solve(self, pair: Pair, rounds: int, models: Any = 0) -> np.ndarray:
        """The models of tvopt, (dim, 1, n), after some rounds from these models."""
        return np.asarray(pair.solve(self.theirs, self.step, x_0=models, num_iter=rounds))

    def learn(self, pair: Pair, rounds: int, every: int, runtime: str) -> Any:
        """The record of freewalk."""
        method = pair.method(self.step)
        return method.learn(self.problem, self.graph, steps=rounds, every=every, runtime=runtime).data

    def measure(self, models: np.ndarray, mixed: bool) -> tuple[float, float, float]:
        """What a record has, from the models of tvopt."""
        rows = models[:, 0, :].T
        rows = self.weights @ rows if mixed else rows
        mean = rows.mean(axis=0)
        away = float(((mean - self.problem.optimum()) ** 2).sum())
        return self.problem.loss(mean), away, float(((rows - mean) ** 2).sum(axis=1).mean())


def largest_difference(task: Task, pair: Pair, runtime: str) -> float:
    """The largest relative difference of any measure after any round."""
    models = np.zeros((DIM, 1, task.graph.n))
    theirs = [task.measure(models, pair.mixed)]
    for _ in range(ROUNDS):  # these solvers remember nothing but the models
        models = task.solve(pair, 1, models)
        theirs.append(task.measure(models, pair.mixed))
    record = task.learn(pair, ROUNDS, 1, runtime)
    ours = np.column_stack([record[name].values[0] for name in MEASURES])
    expected = np.array(theirs)
    return float((np.abs(ours - expected) / np.maximum(np.abs(expected), np.finfo(float).tiny)).max())


def seconds(run: Callable[[], Any]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def best_rates(task: Task, pair: Pair, runtime: str) -> dict[str, float]:
    """Gradients a second: of tvopt, of the same run with freewalk, and of a long one."""
    task.learn(pair, 2, 2, runtime)  # compiles
    long = ROUNDS
    while seconds(partial(task.learn, pair, long, long, runtime)) < LONG_ENOUGH:
        long *= 2
    runs = {
        "tvopt": (ROUNDS, partial(task.solve, pair, ROUNDS)),
        "same run": (ROUNDS, partial(task.learn, pair, ROUNDS, ROUNDS, runtime)),
        "long run": (long, partial(task.learn, pair, long, long, runtime)),
    }
    best = dict.fromkeys(runs, 0.0)
    for _ in range(TURNS):
        for name, (rounds, run) in runs.items():
            best[name] = max(best[name], rounds * task.graph.n / seconds(run))
    return best


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runtime", default="cpu", help="of freewalk: cpu, or reference")
    options.add_argument("--nodes", type=int, default=100)
    chosen = options.parse_args()
    try:
        peer = version("tvopt")
    except PackageNotFoundError:
        sys.exit("tvopt is not installed: pip install tvopt==0.2.7")
    tasks = {
        "ring": Task(fw.graphs.ring(chosen.nodes)),
        "Watts–Strogatz": Task(fw.graphs.watts_strogatz(chosen.nodes, 4, 0.1, seed=1)),
    }
    print(
        f"freewalk {fw.__version__} ({chosen.runtime}) beside tvopt {peer}; n = {chosen.nodes}, d = {DIM}, {SAMPLES} "
        f"samples per node, {ROUNDS} rounds, one replica; best of {TURNS}\n"
    )
    print(f"{'':26}{'largest':>12} {'tvopt':>12} {'freewalk / tvopt':>21}")
    print(f"{'':26}{'difference':>12} {'gradients/s':>12} {'long run':>10} {'same run':>10}")
    differences = []
    for kind, task in tasks.items():
        for pair in pairs():
            found = "other method"
            if pair.same:
                differences.append(largest_difference(task, pair, chosen.runtime))
                found = f"{differences[-1]:.1e}"
                if not differences[-1] <= TOLERANCE:
                    sys.exit(f"{pair.solver}, {kind}: the curves differ by {found}, expected at most {TOLERANCE}")
            rates = best_rates(task, pair, chosen.runtime)
            ratios = " ".join(f"{rates[name] / rates['tvopt']:10.3g}" for name in ("long run", "same run"))
            print(f"{pair.solver + ', ' + kind:26}{found:>12} {rates['tvopt']:12,.0f} {ratios}", flush=True)
    print(
        f"\nLargest relative difference of loss, distance or spread after any round: {max(differences):.1e} (at most "
        f"{TOLERANCE:g}).\naug_dgm also mixes the newest gradients, gradient_tracking does not: no curves to compare."
    )


if __name__ == "__main__":
    main()
