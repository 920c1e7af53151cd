"""Draw the figures of docs/explanation/exact-analysis.md: python docs/images/analysis.py (about two minutes)."""

from pathlib import Path

import matplotlib
import numpy as np

import freewalk as fw
from freewalk.analysis import escape_time, exact_curve, find_traps, race, steady_state
from freewalk.designs import MHLJ, Metropolis
from freewalk.report.figures import COLOURS, STYLE, new_figure, save

HERE = Path(__file__).parent
JUMPS = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def on_top():
    """Exact curves and simulated bands."""
    graph = fw.graphs.ring(101)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=5, heavy=2, noise=0.1, seed=1)
    figure = new_figure(7.6, 4.4)
    axes = figure.subplots()
    for colour, (label, design) in zip(
        COLOURS,
        {"MH uniform": Metropolis(0), "MH importance": Metropolis(1), "MHLJ, jump 0.1": MHLJ(0.1, 0.5, 3)}.items(),
    ):
        kernel = design.kernel(graph, problem.smoothness)
        rule = fw.SGD(1.5e-3)
        options = {"steps": 6000, "every": 50, "start": 0}
        seen = fw.learn(problem, kernel, rule, walks=2000, **options).data.mse
        mean, error = seen.mean("walk"), seen.std("walk") / np.sqrt(seen.sizes["walk"])
        axes.fill_between(seen.step, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.3, linewidth=0)
        exact = exact_curve(problem, kernel, rule, **options)
        axes.plot(exact.step, exact.mse, color=colour, linewidth=1.5, label=label)
    axes.axhline(problem.mse(problem.optimum()), color="#222222", linewidth=1, linestyle=(0, (2, 2)), label="optimum")
    axes.set_yscale("log")
    axes.set_xlim(0, 6000)
    axes.set_xlabel("updates")
    axes.set_ylabel("expected mean squared error")
    axes.set_title(
        "line: exact, no random number drawn   band: mean of 2000 simulated walks ± 2 standard errors", fontsize=9
    )
    axes.legend()
    save(figure, HERE / "exact-and-simulated.png")


def share_of_bias():
    """How much of the error gap is bias, as the jump probability grows."""
    figure = new_figure(9.6, 4.2)
    for axes, (name, graph) in zip(
        figure.subplots(1, 2, sharey=True),
        {
            "ring of 301": fw.graphs.ring(301),
            "Watts–Strogatz, 300": fw.graphs.watts_strogatz(300, 4, 0.1, seed=1),
        }.items(),
    ):
        for colour, shift in zip(COLOURS, (0.0, 0.1, 0.3)):
            problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=5, heavy=2, noise=0.1, shift=shift, seed=1)
            limits = [
                steady_state(problem, MHLJ(jump, 0.5, 3).kernel(graph, problem.smoothness), fw.SGD(2.5e-3))
                for jump in JUMPS
            ]
            label = f"shift {shift:g}" if shift else "one optimum for all nodes"
            axes.plot(
                JUMPS, [100 * limit.bias / limit.excess for limit in limits], color=colour, marker="o", label=label
            )
        axes.set_title(name)
        axes.set_xlabel("jump probability")
        axes.set_ylim(0, 100)
    figure.axes[0].set_ylabel("share of bias in the error gap, %")
    figure.axes[0].legend(loc="lower right", bbox_to_anchor=(1.0, 0.12))
    save(figure, HERE / "share-of-bias.png")


def escape_and_speed():
    """How long a visit to the trap lasts, and how soon a design has learned."""
    graph = fw.graphs.ring(201)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=4, heavy=2, noise=0.1, seed=1)
    best = problem.loss(problem.optimum())
    trap = find_traps(Metropolis(1).kernel(graph, problem.smoothness))[0].nodes
    families = {
        "Metropolis, power 0 to 1": [(f"{p:g}", Metropolis(p)) for p in (0.0, 0.25, 0.5, 0.75, 1.0)],
        "MHLJ, jump 0.01 to 1": [(f"{p:g}", MHLJ(p, 0.5, 3)) for p in (0.01, 0.03, 0.1, 0.3, 0.5, 0.9, 1.0)],
        "MHLJ corrected, power ½": [(f"{p:g}", MHLJ(p, 0.5, 3, power=0.5, corrected=True)) for p in (0.1, 0.5, 1.0)],
    }
    figure = new_figure(7.6, 4.8)
    axes = figure.subplots()
    for colour, (family, members) in zip(COLOURS, families.items()):
        points = []
        for name, design in members:
            kernel = design.kernel(graph, problem.smoothness)
            run = race(problem, kernel, settle=best / 4, reach=best / 2, start=0)
            points.append((escape_time(kernel, trap, "entry"), run.updates))
            axes.annotate(name, points[-1], textcoords="offset points", xytext=(5, 4), fontsize=8, color=colour)
        axes.plot(*np.transpose(points), color=colour, marker="o", linewidth=1.2, label=family)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"length of a visit to the trap (nodes {', '.join(map(str, trap))}), updates")
    axes.set_ylabel("updates until 1.5 × the optimal loss")
    axes.set_title("ring of 201, two heavy nodes, start on one of them; steps for the same steady error", fontsize=9)
    axes.legend()
    save(figure, HERE / "escape-and-speed.png")


if __name__ == "__main__":
    with matplotlib.rc_context(STYLE):
        on_top()
        share_of_bias()
        escape_and_speed()
