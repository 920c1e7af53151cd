"""What a gradient costs with several tokens, against a walk's update: python benchmarks/tokens.py

Ratios of processor time per gradient within one run: the contestants take turns, and the best of their runs counts.
n = 1000, d = 10, float64, one thread.
"""

import time

import freewalk as fw

N, DIM, ROUNDS = 1000, 10, 7
GRAPHS = {"ring": fw.graphs.ring(N), "Watts–Strogatz, k = 4": fw.graphs.watts_strogatz(N, 4, 0.1, seed=1)}


def contestants(graph, problem):
    """By name: the options of a run, and the gradients in it."""
    walk, stay = (design.kernel(graph) for design in (fw.designs.Metropolis(), fw.designs.Stay()))
    sgd, gossip = fw.SGD(step=1e-5), fw.exchanges.Gossip()
    parked = {"kernel": stay, "tokens": "nodes", "steps": 1000}
    return {
        "1000 walks": {"kernel": walk, "rule": sgd, "walks": N, "steps": 1000},
        "gossip round": {**parked, "rule": sgd, "exchange": gossip},
        "gradient tracking round": {**parked, "rule": fw.rules.GradientTracking(step=1e-5), "exchange": gossip},
        "FedAvg round, one local step": {**parked, "rule": sgd, "exchange": fw.exchanges.Average()},
        "125 × 8 tokens apart": {"kernel": walk, "rule": sgd, "walks": N // 8, "tokens": 8, "steps": 1000},
        "125 × 8 tokens that meet": {
            **{"kernel": walk, "rule": sgd, "walks": N // 8, "tokens": 8, "steps": 1000},
            "exchange": fw.exchanges.Meet(),
        },
    }


def seconds(problem, options):
    """Processor time of one run."""
    began = time.process_time()
    fw.learn(problem, every=options["steps"], runtime=fw.runtimes.CPU(threads=1), **options)
    return time.process_time() - began


def main():
    problem = fw.objectives.LeastSquares.synthetic(N, dim=DIM, heavy=2, seed=1)
    print("| graph | contestant | nanoseconds per gradient | × a walk's update |\n|---|---|---|---|")
    for name, graph in GRAPHS.items():
        runs = contestants(graph, problem)
        best = dict.fromkeys(runs, float("inf"))
        for number in range(ROUNDS + 1):
            for contestant, options in runs.items():
                spent = seconds(problem, options)
                if number:  # the first round compiles
                    best[contestant] = min(best[contestant], spent)
        for contestant, options in runs.items():
            cost = 1e9 * best[contestant] / (N * options["steps"])
            print(f"| {name} | {contestant} | {cost:.1f} | {best[contestant] / best['1000 walks']:.2f} |")


if __name__ == "__main__":
    main()
