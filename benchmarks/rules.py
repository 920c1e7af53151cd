"""How fast each update rule is against SGD, and what a new parameter costs: python benchmarks/rules.py

Ratios within one run: the rules take turns, and the best of their runs counts. n = 1000, d = 10, a ring, MHLJ, float64.
"""

import argparse
import time

import freewalk as fw

N, DIM = 1000, 10
SIZES = {16: 40_000, 1024: 1_000}  # steps by number of walks
ROUNDS = 5


def rules():
    """One of each."""
    return {
        "SGD": fw.SGD(step=1e-4),
        'SGD, average="half"': fw.SGD(step=1e-4, average="half"),
        "Momentum": fw.rules.Momentum(step=1e-5),
        "AdaGrad": fw.rules.AdaGrad(step=1e-3),
        "AdaGrad, at the nodes": fw.rules.AdaGrad(step=1e-3, keeper="node"),
        "SAG": fw.rules.SAG(step=1e-6),
        "Walkman": fw.rules.Walkman(),
        "VisitWeighted": fw.rules.VisitWeighted(step=1e-4),
    }


def best_rates(problem, kernel, walks, steps, threads):
    """Updates per second of each rule, the best of some rounds."""
    best = dict.fromkeys(rules(), 0.0)
    for number in range(ROUNDS + 1):
        for name, rule in rules().items():
            began = time.perf_counter()
            fw.learn(
                problem,
                kernel,
                rule,
                steps=steps,
                walks=walks,
                every=steps,
                start=0,
                runtime=fw.runtimes.CPU(threads),
            )
            if number:  # the first round compiles
                best[name] = max(best[name], walks * steps / (time.perf_counter() - began))
    return best


def time_of_first_run(problem, kernel, momentum):
    """Seconds that a first, tiny run with a momentum takes."""
    began = time.perf_counter()
    fw.learn(problem, kernel, fw.rules.Momentum(step=1e-5, momentum=momentum), steps=2, walks=2)
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    problem = fw.objectives.LeastSquares.synthetic(N, dim=DIM, heavy=2, seed=1)
    kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(N), problem.smoothness)
    found = {walks: best_rates(problem, kernel, walks, steps, threads) for walks, steps in SIZES.items()}
    print(f"| rule | {' | '.join(f'of SGD, {walks} walks' for walks in found)} |")
    print("|---" * (1 + len(found)) + "|")
    for name in rules():
        shares = (f"{rates[name] / rates['SGD']:.2f}" for rates in found.values())
        print(f"| {name} | {' | '.join(shares)} |")
    seconds = [time_of_first_run(problem, kernel, momentum) for momentum in (0.5, 0.6, 0.7, 0.8)]
    print(
        f"\nMomentum .5, and then .6, .7 and .8 for the first time: {', '.join(f'{1e3 * s:.0f}' for s in seconds)} ms"
    )


if __name__ == "__main__":
    main()
