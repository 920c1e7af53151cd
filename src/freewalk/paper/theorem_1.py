"""Theorem 1, term by term: whether exact errors fall as 1/T, settle at p_J² and grow with the mixing time."""

from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis import kemeny_constant, mixing_time, stationary, steady_state
from freewalk.analysis.learning.model import first_state
from freewalk.analysis.learning.recursion import Recursion
from freewalk.analysis.theory import assumptions
from freewalk.designs import MHLJ, FromMatrix, Metropolis
from freewalk.designs.kernel import Kernel
from freewalk.linear.arrays import Floats
from freewalk.objectives import LeastSquares
from freewalk.paper.claims import Finding, by_name, judged
from freewalk.paper.files import study_table
from freewalk.report.figures import COLOURS, INK, Where, drawing
from freewalk.report.page import Table, Verdict
from freewalk.rules import SGD
from freewalk.specs.catalogue import build

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

_DESIGNS = {"MH importance": Metropolis(1), "MH uniform": Metropolis(0)}
_LAST = 7  # values of T over which the rate is measured: six doublings


def shortest_run(problem: LeastSquares, mixing: float) -> float:
    """The number of updates above which the theorem admits a step, τ σ_*² L̄ / (‖x⁰ − x*‖² μ²), from the zero model."""
    known, optimum = assumptions(problem), problem.optimum()
    noise = mixing * known.gradient_bound * known.mean_smoothness
    return float(noise / (optimum @ optimum * known.convexity**2))


def theorem_step(problem: LeastSquares, mixing: float, updates: float) -> float:
    """The step of Theorem 1 for a run of T updates, min{1/L̄, ln(T / shortest run) / (Tμ)}; NaN for shorter runs."""
    known, shortest = assumptions(problem), shortest_run(problem, mixing)
    if updates <= shortest:
        return np.nan
    return float(min(1.0 / known.mean_smoothness, np.log(updates / shortest) / (updates * known.convexity)))


def error_after(problem: LeastSquares, kernel: Kernel, step: float, doublings: int) -> float:
    """E‖x_T − x*‖² for T = 2^doublings, from the zero model at a uniformly random node, exactly.

    One update maps the moments of the error linearly. Squaring the matrix of that map takes `doublings` products where
    `exact_curve` would take T steps.
    """
    recursion = Recursion("theorem-1-rate", problem, kernel, SGD(step))
    start = first_state(np.full(problem.n, 1.0 / problem.n), -recursion.quadratic.optimum)
    shape, size = start.shape, start.size
    matrix = np.column_stack([recursion.step(one.reshape(shape), step).ravel() for one in np.eye(size)])
    for _ in range(doublings):
        matrix = matrix @ matrix
    totals = (matrix @ start.ravel()).reshape(shape).sum(axis=0)
    return float(recursion.quadratic.measures(totals[None], 0.0)["distance"][0])


def gap_of(problem: LeastSquares, kernel: Kernel) -> float:
    """‖x_ν − x*‖² with x_ν = argmin Σ ν_v w_v f_v, ν the stationary distribution: what remains as T → ∞ and γ → 0."""
    shares = stationary(kernel) * kernel.weights
    hessian = problem.features.T @ (shares[:, None] * problem.features)
    hessian += shares.sum() * problem.ridge * np.eye(problem.dim)
    away = np.linalg.solve(hessian, problem.features.T @ (shares * problem.targets)) - problem.optimum()
    return float(away @ away)


def mean_memory(kernel: Kernel) -> float:
    """The integrated autocorrelation time (1 + λ)/(1 − λ), averaged over all eigenvalues λ of the chain but 1."""
    return 2.0 * kemeny_constant(kernel) / (kernel.graph.n - 1) - 1.0


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """The exponent of the power law that fits best: the slope of ln y against ln x."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])


def numbers(spec: dict[str, Any]) -> "xarray.Dataset":
    """All errors: by T and p_J, by p_J in the limit, and by mixing time over lazy chains and over graphs."""
    import xarray

    graph = build("graph", spec["graph"], "theorem-1-rate: [graph]")
    problem = build("problem", spec["problem"], "theorem-1-rate: [problem]", n=graph.n)

    def jumping(probability: float) -> Kernel:
        design = MHLJ(probability, spec["rate"]["stop"], spec["rate"]["hops"])
        return design.kernel(graph, problem.smoothness)

    doublings, jumps = spec["rate"]["doublings"], spec["rate"]["jumps"]
    times = np.array([float(mixing_time(jumping(one))) for one in jumps])
    steps = np.array([[theorem_step(problem, time, 2.0**k) for k in doublings] for time in times])
    errors = np.full(steps.shape, np.nan)
    for row, column in np.argwhere(steps > 0):
        errors[row, column] = error_after(problem, jumping(jumps[row]), steps[row, column], doublings[column])
    known = assumptions(problem)
    return xarray.Dataset(
        {
            "step_size": (("jump", "updates"), steps),
            "error": (("jump", "updates"), errors),
            "mixing": ("jump", times),
            "shortest": ("jump", [shortest_run(problem, time) for time in times]),
            "floor": ("jump", [gap_of(problem, jumping(one)) for one in jumps]),
            "gap": ("probability", [gap_of(problem, jumping(one)) for one in spec["gap"]["jumps"]]),
            **_lazy(problem, jumping(0.0), spec["dependence"]),
            **_over_graphs(problem, spec["dependence"]),
        },
        coords={
            "jump": jumps,
            "updates": 2.0 ** np.array(doublings),
            "probability": spec["gap"]["jumps"],
            "holding": spec["dependence"]["holding"],
            "graph": list(spec["dependence"]["graphs"]),
            "design": list(_DESIGNS),
        },
        attrs={
            "label": "theorem 1, rate",
            "convexity": known.convexity,
            # The first term without τ / T.
            "factor": known.mean_smoothness**2 * known.gradient_bound / known.smallest_smoothness,
            "run": spec["rate"]["run"],
            "n": graph.n,
        },
    )


def _lazy(problem: LeastSquares, kernel: Kernel, table: dict[str, Any]) -> dict[str, Any]:
    """Mixing time and error of chains that stay put with some probability, and else move as a kernel does."""
    from scipy.sparse import eye_array

    rest, matrix = eye_array(problem.n), kernel.matrix()
    designs = [FromMatrix(hold * rest + (1.0 - hold) * matrix, kernel.target) for hold in table["holding"]]
    chains = [design.kernel(kernel.graph) for design in designs]
    errors = [steady_state(problem, one, SGD(table["step"])).distance for one in chains]
    return {"lazy_mixing": ("holding", [float(mixing_time(one)) for one in chains]), "lazy_error": ("holding", errors)}


def _over_graphs(problem: LeastSquares, table: dict[str, Any]) -> dict[str, Any]:
    """Mixing time, memory and error by design and graph, averaged over placements of the data on the nodes."""
    generator = np.random.default_rng(0)
    orders = [generator.permutation(problem.n) for _ in range(table["placements"])]
    placed = [LeastSquares(problem.features[order], problem.targets[order], ridge=problem.ridge) for order in orders]
    found = np.zeros((3, len(_DESIGNS), len(table["graphs"])))
    for place, (name, graph_table) in enumerate(table["graphs"].items()):
        graph = build("graph", graph_table, f"theorem-1-rate: {name}")
        for row, design in enumerate(_DESIGNS.values()):
            kernels = [design.kernel(graph, one.smoothness) for one in placed]
            alone = kernels[:1] if design.power == 0 else kernels  # the uniform walk does not look at the data
            found[0, row, place] = np.mean([mixing_time(one) for one in alone])
            found[1, row, place] = np.mean([mean_memory(one) for one in alone])
            limits = map(steady_state, placed, kernels, repeat(SGD(table["step"])))
            found[2, row, place] = np.mean([limit.distance for limit in limits])
    names = ("graph_mixing", "graph_memory", "graph_error")
    return {name: (("design", "graph"), values) for name, values in zip(names, found, strict=True)}


def logarithms(data: "xarray.Dataset") -> Floats:
    """γ T μ for the walk without jumps: the logarithm that the theorem's Õ hides."""
    steps = data.step_size.sel(jump=0.0)
    return np.asarray(steps * data.updates * data.attrs["convexity"], dtype=np.float64)


def judge(data: "xarray.Dataset") -> list[Verdict]:
    """The theorem's statements about T, p_J and the mixing time."""
    span = np.log2(data.updates.values[-_LAST:])
    words = {
        "first": f"{span[0]:.0f}",
        "last": f"{span[-1]:.0f}",
        "largest": f"{float(data.jump.max()):g}",
        "run": f"{data.attrs['run']:,}",
        "n": str(data.attrs["n"]),
    }
    return judged("theorem-1-rate", data, _MEASURES, words)


def _rate(data: "xarray.Dataset") -> Finding:
    errors = data.error.sel(jump=0.0).values[-_LAST:]
    updates = data.updates.values[-_LAST:]
    plain, divided = slope(updates, errors), slope(updates, errors / logarithms(data)[-_LAST:])
    return Finding(-1.1 <= divided <= -0.9, f"{divided:.3f}; {plain:.3f} with the logarithm".replace("-", "−"))


def _admitted(data: "xarray.Dataset") -> Finding:
    shortest = float(data.shortest.sel(jump=0.0))
    return Finding(bool(data.attrs["run"] > shortest), f"from {shortest:,.0f} updates on")


def _stops(data: "xarray.Dataset") -> Finding:
    largest = data.sel(jump=data.jump.max())
    share = float(largest.error[-1] / largest.floor)
    return Finding(0.9 <= share <= 1.1, f"{share:.4f} ×")


def _gap(data: "xarray.Dataset", low: float, high: float) -> Finding:
    part = data.gap.where((data.probability >= low * 0.999) & (data.probability <= high * 1.001), drop=True)
    found = slope(part.probability.values, part.values)
    return Finding(1.8 <= found <= 2.2, f"{found:.2f}")


def _laziness(data: "xarray.Dataset") -> Finding:
    times = data.lazy_mixing.values
    found = slope(times, data.lazy_error.values)
    return Finding(0.8 <= found <= 1.2, f"{found:.3f} (τ_mix from {times[0]:,.0f} to {times[-1]:,.0f})")


def _mixing(data: "xarray.Dataset", design: str) -> Finding:
    times, errors = (data[name].sel(design=design).values for name in ("graph_mixing", "graph_error"))
    found = slope(times, errors)
    number = f"{found:.2f} (error × {errors.max() / errors.min():.3g}, τ_mix × {times.max() / times.min():.3g})"
    return Finding(0.8 <= found <= 1.2, number)


def _memory(data: "xarray.Dataset") -> Finding:
    found = {
        label: slope(data.graph_memory.sel(design=label).values, data.graph_error.sel(design=label).values)
        for label in data.design.values
    }
    holds = all(0.8 <= one <= 1.2 for one in found.values())
    return Finding(holds, ", ".join(f"{label} {one:.2f}" for label, one in found.items()))


_MEASURES = by_name(_rate, _admitted, _stops, _gap, _laziness, _mixing, _memory)


def table(_: dict[str, Any], data: "xarray.Dataset") -> Table:
    """Mixing time, memory and steady error on each graph."""
    labels, columns = data.design.values.tolist(), {"graph_mixing": ".0f", "graph_memory": ".3g", "graph_error": ".3g"}
    rows = []
    for name in data.graph.values.tolist():
        parts = [data.sel(graph=name, design=label) for label in labels]
        rows.append([name, *(format(part[one].item(), form) for part in parts for one, form in columns.items())])
    head = [f"{label}: {what}" for label in labels for what in ("τ_mix", "mean memory", "error")]
    updates, alone = float(data.updates[-1]), data.sel(jump=0.0)
    ratio = data.attrs["factor"] * float(alone.mixing) / updates / float(alone.error[-1])
    caption = study_table("theorem-1-rate")["table"]["caption"].format(doublings=np.log2(updates), ratio=ratio)
    return Table(["graph", *head], rows, caption)


def draw(data: "xarray.Dataset", path: Where, footer: str) -> None:
    """Four panels: the error by T, the gap by p_J, and the steady error by mixing time and by mean memory."""
    with drawing(path, 10.4, 8.2, footer=footer) as figure:
        panels = figure.subplots(2, 2)
        for axes, panel in zip(panels.flat, (_draw_rate, _draw_gap, _draw_mixing, _draw_memory), strict=True):
            axes.set(xscale="log", yscale="log")
            panel(axes, data)
            axes.legend(fontsize=9)


_COLOUR = {"MH uniform": COLOURS[0], "MH importance": COLOURS[1]}
_GUIDE: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": (0, (4, 3))}


def _draw_rate(axes: "Axes", data: "xarray.Dataset") -> None:
    updates = data.updates.values
    for colour, jump in zip(COLOURS, data.jump.values, strict=False):
        axes.plot(updates, data.error.sel(jump=jump), "o-", color=colour, markersize=3.5, label=f"$p_J$ = {jump:g}")
        if jump > 0:
            axes.axhline(float(data.floor.sel(jump=jump)), color=colour, linewidth=0.9, linestyle=(0, (1, 1.5)))
    logs, last = logarithms(data)[-_LAST:], float(data.error.sel(jump=0.0)[-1])
    guide = logs / updates[-_LAST:]
    axes.plot(updates[-_LAST:], 0.4 * last * guide / guide[-1], **_GUIDE, label="∝ ln(T / $T_0$) / T")
    axes.axhline(np.nan, color=INK, linewidth=0.9, linestyle=(0, (1, 1.5)), label="‖$x_ν$ − x*‖²")
    axes.set(title="The error at T, with the theorem's step", xlabel="updates T", ylabel="E‖$x_T$ − x*‖²")


def _draw_gap(axes: "Axes", data: "xarray.Dataset") -> None:
    jumps, gap = data.probability.values, data.gap.values
    axes.plot(jumps, gap, "o-", color=COLOURS[1], markersize=3.5, label="‖$x_ν$ − x*‖²")
    shown = gap[0] * (jumps / jumps[0]) ** 2
    axes.plot(jumps[shown < 2 * gap.max()], shown[shown < 2 * gap.max()], **_GUIDE, label="∝ $p_J^2$")
    axes.axvline(0.1, color="#aaaaaa", linewidth=0.9, label="the paper's $p_J$")
    axes.set(title="The gap that jumps leave", xlabel="jump probability $p_J$", ylabel="squared distance to x*")


def _draw_mixing(axes: "Axes", data: "xarray.Dataset") -> None:
    lazy: dict[str, Any] = {"color": _COLOUR["MH importance"], "markersize": 4, "markerfacecolor": "white"}
    axes.plot(data.lazy_mixing, data.lazy_error, "s-", **lazy, label="MH importance, lazy, on the ring")
    _draw_graphs(axes, data, "graph_mixing", "mixing time")
    axes.set(title="Steady error against the mixing time", xlabel="mixing time (updates)")


def _draw_memory(axes: "Axes", data: "xarray.Dataset") -> None:
    _draw_graphs(axes, data, "graph_memory", "mean memory")
    words = "mean integrated autocorrelation time (updates)"
    axes.set(title="Steady error against the mean memory of all modes", xlabel=words)


def _draw_graphs(axes: "Axes", data: "xarray.Dataset", name: str, words: str) -> None:
    """The steady error on each graph, with a line through the largest x for proportionality."""
    for label, colour in _COLOUR.items():
        part = data.sel(design=label)
        x, y = part[name].values, part.graph_error.values
        axes.plot(x, y, "o", color=colour, markersize=5, label=f"{label}, graphs")
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, y[x.argmax()] * ends / x.max(), **_GUIDE)
    axes.plot([], [], **_GUIDE, label=f"∝ {words}")
    axes.set_ylabel("E‖x − x*‖²")
