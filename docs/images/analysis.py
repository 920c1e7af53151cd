"""Draw the figures of docs/explanation/exact-analysis.md: python docs/images/analysis.py (about three minutes).

With the names of figures (connectivity, on_top, share_of_bias, speed) it draws these alone.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

import freewalk as fw
from freewalk.analysis import escape_time, exact_curve, excess_visits, find_traps, spectral_gap, steady_state
from freewalk.analysis.learning import race
from freewalk.designs import MHLJ, Metropolis
from freewalk.report.figures import COLOURS, INK, STYLE, new_figure, save

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


def connectivity():
    """Escape times from the heavy nodes, and excess visits to them, on graphs from the ring to the complete one."""
    problem = fw.objectives.LeastSquares.synthetic(1000, dim=10, heavy=2, seed=33)
    designs = {
        "MH importance": (Metropolis(1), COLOURS[1]),
        "MHLJ, jump 0.1": (MHLJ(0.1, 0.5, 3), COLOURS[2]),
        "MH uniform": (Metropolis(0), COLOURS[0]),
        "MHLJ, jump 0.9": (MHLJ(0.9, 0.5, 3), COLOURS[3]),
    }
    families = {
        "ring": ("o", [fw.graphs.ring(1000)]),
        "grid, 25 × 40": ("s", [fw.graphs.grid(25, 40)]),
        "Watts–Strogatz, k = 4, rewired 0, 0.3, 1, 10, 30, 100 %": (
            "D",
            [fw.graphs.watts_strogatz(1000, 4, p, seed=1) for p in (0.0, 0.003, 0.01, 0.1, 0.3, 1.0)],
        ),
        "Erdős–Rényi, p = 0.01, 0.03, 0.1": ("^", [fw.graphs.erdos_renyi(1000, p, seed=1) for p in (0.01, 0.03, 0.1)]),
        "complete": ("*", [fw.graphs.complete(1000)]),
    }
    places = sorted(
        (spectral_gap(Metropolis(0).kernel(graph)), marker, graph)
        for marker, graphs in families.values()
        for graph in graphs
    )
    figure = new_figure(9.6, 5.4)
    both = figure.subplots(1, 2, sharey=True)
    measures = {"mean escape time from the heavy nodes": escape_time, "excess visits to the heavy nodes": excess_visits}
    for axes, (title, measure) in zip(both, measures.items(), strict=True):
        for design, colour in designs.values():
            values = [measure(design.kernel(graph, problem.smoothness), [0, 1]) for _, _, graph in places]
            axes.plot([gap for gap, _, _ in places], values, color=colour, linewidth=1.0, alpha=0.5)
            for (gap, marker, _), value in zip(places, values, strict=True):
                size = 9 if marker == "*" else 5.5
                axes.plot(
                    gap, value, marker, color=colour, markersize=size, markeredgecolor="white", markeredgewidth=0.5
                )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(title)
        axes.set_xlabel("spectral gap of the uniform walk")
    both[0].set_ylabel("updates")
    both[0].set_ylim(0.7, 6e4)
    both[0].yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    both[1].axhline(1000, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    both[1].annotate("number of nodes", (1.3, 1000), xytext=(0, 4), textcoords="offset points", ha="right", fontsize=9)
    colours = [Line2D([], [], color=colour, linewidth=2, label=label) for label, (_, colour) in designs.items()]
    shapes = [
        Line2D([], [], color="#777777", marker=marker, linestyle="", markersize=9 if marker == "*" else 6, label=label)
        for label, (marker, _) in families.items()
    ]
    figure.legend(handles=colours, loc="outside upper center", ncols=4)
    figure.legend(handles=shapes, loc="outside lower center", ncols=3, fontsize=9)
    save(figure, HERE / "connectivity.png")


def speed():
    """Excess visits to the trap, and how soon a design has learned."""
    graph = fw.graphs.ring(201)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=4, heavy=2, noise=0.1, seed=1)
    best = problem.loss(problem.optimum())
    trap = find_traps(Metropolis(1).kernel(graph, problem.smoothness))[0].nodes
    families = {
        "Metropolis, power 0 to 1": [(p, (7, -9), Metropolis(p)) for p in (0.0, 0.25, 0.5, 0.75, 1.0)],
        "MHLJ, jump 0.01 to 0.9": [
            (p, (-5, 6) if p < 0.3 else (7, 4), MHLJ(p, 0.5, 3)) for p in (0.01, 0.03, 0.1, 0.3, 0.5, 0.9)
        ],
        "MHLJ corrected, power ½, jump 0.1 to 1": [
            (p, (6, -11), MHLJ(p, 0.5, 3, power=0.5, corrected=True)) for p in (0.1, 0.5, 1.0)
        ],
    }
    figure = new_figure(7.6, 4.8)
    axes = figure.subplots()
    for colour, (family, members) in zip(COLOURS, families.items()):
        points = []
        for value, offset, design in members:
            kernel = design.kernel(graph, problem.smoothness)
            run = race(problem, kernel, settle=best / 4, reach=best / 2, start=0)
            points.append((excess_visits(kernel, trap), run.updates))
            side = "left" if offset[0] > 0 else "right"
            options = {"textcoords": "offset points", "fontsize": 8.5, "color": colour, "ha": side}
            axes.annotate(f"{value:g}", points[-1], xytext=offset, **options)
        axes.plot(*np.transpose(points), color=colour, marker="o", markersize=5, linewidth=1.2, label=family)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, ticks in (
        (axes.xaxis, (50, 100, 200, 500, 1000, 2000, 5000)),
        (axes.yaxis, (1000, 2000, 5000, 10_000, 20_000)),
    ):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.set_minor_locator(NullLocator())
    axes.set_ylim(900, 30_000)
    axes.set_xlabel(f"excess visits to the trap (nodes {' and '.join(map(str, trap))})")
    axes.set_ylabel("updates until 1.5 × the optimal loss")
    axes.set_title("ring of 201, two heavy nodes, start on one of them; steps for the same steady error", fontsize=9)
    axes.legend()
    save(figure, HERE / "returns-and-speed.png")


if __name__ == "__main__":
    figures = {one.__name__: one for one in (on_top, share_of_bias, connectivity, speed)}
    with matplotlib.rc_context(STYLE):
        for name in sys.argv[1:] or figures:
            figures[name]()
