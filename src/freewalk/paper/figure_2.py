"""Figure 2: importance sampling by Metropolis on a ring of five nodes, as a chain with its probabilities."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.analysis import excess_visits, hitting_times, kemeny_constant, mixing_time, sojourn_times, stationary
from freewalk.designs import MHLJ, Metropolis
from freewalk.designs.kernel import Kernel
from freewalk.graphs import Graph, complete, ring
from freewalk.paper.claims import Finding, judged
from freewalk.paper.entrapment import hold, in_words, is_trap
from freewalk.paper.files import study_table
from freewalk.report.figures import INK, Where, drawing
from freewalk.report.page import Table, Verdict
from freewalk.specs.catalogue import build

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


def kernels(spec: dict[str, Any]) -> dict[str, Kernel]:
    """The designs that the spec compares."""
    graph = build("graph", spec["graph"], "figure 2: [graph]")
    importance = np.array(spec["importance"], dtype=np.float64)
    designs = {"MH uniform": Metropolis(0), "MH importance": Metropolis(1), "MHLJ": MHLJ(**spec["jumps"])}
    return {label: design.kernel(graph, importance) for label, design in designs.items()}


def numbers(spec: dict[str, Any]) -> "xarray.Dataset":
    """The transition matrix and the stationary distribution of each design."""
    import xarray

    found = kernels(spec)
    matrices = np.array([kernel.matrix().toarray() for kernel in found.values()])
    laws = np.array([stationary(kernel) for kernel in found.values()])
    return xarray.Dataset(
        {"probability": (("design", "node", "next"), matrices), "law": (("design", "node"), laws)},
        coords={"design": np.array(list(found))},
        attrs={"label": "figure 2", "importance": [float(value) for value in spec["importance"]]},
    )


def judge(data: "xarray.Dataset") -> list[Verdict]:
    """The paper's numbers against the exact ones, and Section IV's explanation of entrapment."""
    return judged("2", data, _MEASURES, {})


def _chain(data: "xarray.Dataset") -> Any:
    return data.probability.sel(design="MH importance").values


def _as_drawn(number: float, drawn: float, tolerance: float) -> Finding:
    return Finding(bool(abs(number / drawn - 1) < tolerance), f"{number:.4g}")


def _never_keeps(data: "xarray.Dataset") -> Finding:
    back, keeps, on = _chain(data)[1, :3]
    return Finding(bool(max(abs(back - 0.5), abs(on - 0.5), keeps) < 1e-12), f"{back:.4g} and {on:.4g}")


def _metropolis(data: "xarray.Dataset", power: int, graph: Callable[[int], Graph] = ring) -> Kernel:
    return Metropolis(power).kernel(graph(data.sizes["node"]), np.array(data.attrs["importance"]))


def _seldom_left(data: "xarray.Dataset") -> Finding:
    here = float(1 / sojourn_times(_metropolis(data, 1))[0])
    return Finding(here <= 0.05, f"{here:.4g}")


def _sparse_is_why(data: "xarray.Dataset") -> Finding:
    here, there = (float(1 / sojourn_times(_metropolis(data, 1, graph))[0]) for graph in (ring, complete))
    return Finding(there > 1.1 * here, f"{there:.4g} on the complete graph")


def _entraps(data: "xarray.Dataset") -> Finding:
    found = hold(_metropolis(data, 1), _metropolis(data, 0), [0])
    return Finding(is_trap(found, data.sizes["node"]), in_words(found).replace("node 0", "node 1"))


_MEASURES = {
    "passes_on": lambda data: _as_drawn(_chain(data)[0, 1], 1 / 102, 0.02),
    "keeps": lambda data: _as_drawn(_chain(data)[0, 0], 50 / 51, 0.002),
    "never_keeps": _never_keeps,
    "seldom_left": _seldom_left,
    "sparse_is_why": _sparse_is_why,
    "entraps": _entraps,
}


def table(spec: dict[str, Any], _: "xarray.Dataset") -> Table:
    """What the three chains are like."""
    rows = []
    for label, kernel in kernels(spec).items():
        at_node_1 = [stationary(kernel)[0], sojourn_times(kernel)[0], excess_visits(kernel, [0])]
        times = [float(mixing_time(kernel)), kemeny_constant(kernel), hitting_times(kernel).max()]
        forms = (".4f", ".3g", ".3g", ".0f", ".4f", ".4g")
        rows.append([label, *map(format, [*at_node_1, *times], forms)])
    made = study_table("2")["table"]
    return Table(made["head"], rows, made["caption"])


def draw(data: "xarray.Dataset", path: Where, footer: str) -> None:
    """Draw the chains of importance MH and MHLJ, with the probabilities at node 1 and around it."""
    with drawing(path, 9.6, 4.5, {"axes.grid": False}, footer) as figure:
        for axes, label in zip(figure.subplots(1, 2), ("MH importance", "MHLJ"), strict=True):
            _draw(axes, data.probability.sel(design=label).values, data.attrs["importance"])
            axes.set_title(label)


def _draw(axes: "Axes", chain: Any, importance: Any) -> None:
    n = len(chain)
    angles = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    for i, j in zip(*np.nonzero(chain > 1e-3), strict=True):
        if i == j:
            continue
        step = abs(i - j) in (1, n - 1)  # the others are jumps: an arrow, and no room for a number
        start, end = places[i], places[j]
        arrow = {"arrowstyle": "-|>", "color": "#888888" if step else "#dddddd", "shrinkA": 17, "shrinkB": 17}
        axes.annotate("", end, start, arrowprops={**arrow, "connectionstyle": "arc3,rad=0.22"}, zorder=2 if step else 1)
        if step:
            side = np.array([start[1] - end[1], end[0] - start[0]])
            middle = (start + end) / 2 - 0.16 * side / np.linalg.norm(side)
            back = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
            small: dict[str, Any] = {"fontsize": 8.5, "color": INK, "bbox": back, "zorder": 3}
            axes.text(middle[0], middle[1], f"{chain[i, j]:.3g}", ha="center", va="center", **small)
    for i, place in enumerate(places):
        heavy = importance[i] > min(importance)
        axes.plot(*place, "o", markersize=25, color="#D55E00" if heavy else "#009E73", zorder=3)
        axes.text(place[0], place[1], str(i + 1), color="white", ha="center", va="center", fontweight="bold", zorder=4)
        outward = "center" if abs(place[0]) < 0.7 else ("left" if place[0] > 0 else "right")
        away = 1.33 if outward == "center" else 1.2
        axes.text(away * place[0], away * place[1], f"stays {chain[i, i]:.3g}", ha=outward, va="center", fontsize=9)
    axes.set(xlim=(-1.95, 1.95), ylim=(-1.45, 1.55), aspect="equal")
    axes.set_axis_off()
