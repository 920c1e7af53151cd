"""Figure 2: importance sampling by Metropolis on a ring of five nodes, as a chain with its probabilities."""

from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.analysis import (
    excess_visits,
    hitting_times,
    kemeny_constant,
    mixing_time,
    sojourn_times,
    stationary,
)
from freewalk.designs import MHLJ, Metropolis
from freewalk.designs.kernel import Kernel
from freewalk.graphs import complete, ring
from freewalk.paper.claims import OUTCOMES
from freewalk.paper.entrapment import hold, in_words, is_trap
from freewalk.report.figures import INK, STYLE, Where, new_figure, save
from freewalk.report.page import Table, Verdict
from freewalk.specs.catalogue import build

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

TITLE = "Five nodes: the chain of importance sampling"
TEXT = (
    "A ring of five nodes of which the first has a gradient Lipschitz constant of about 100, the others of about 1, "
    "and the chain that Metropolis–Hastings makes of it. The drawing in the paper has the labels L₃ and L₅ exchanged.",
    "The paper explains entrapment by the small probability of leaving node 1, and that by the sparse graph. It is the "
    "mean of L_j / L₁ over the neighbours, however many there are. What a sparse graph changes is how often a walk "
    "that has left comes back.",
)
_LEAVE, _STAY = 1 / 102, 50 / 51  # as they are drawn


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
    """The paper's numbers against the exact ones, and its explanation of entrapment."""
    chain = data.probability.sel(design="MH importance").values
    why = "The drawn numbers are those of L₁ = 51; with L₁ = 100 they are 1/200 and 99/100"
    leave, stay, other = chain[0, 1], chain[0, 0], chain[1]
    half = max(abs(other[0] - 0.5), abs(other[2] - 0.5), other[1])
    return [
        _verdict("≈ 1/102", "node 1 passes the model to node 2 with probability 1/102, up to 2 %", leave, _LEAVE, why),
        _verdict("≈ 50/51", "node 1 keeps it with probability 50/51, up to 0.2 %", stay, _STAY, why, 0.002),
        Verdict(
            "node 2 passes it on with probability 1/2 to either side and never keeps it",
            OUTCOMES[half < 1e-12],
            f"{other[0]:.4g} and {other[2]:.4g}",
            quote="≈ 1/2, ≈ 0 (Fig. 2b)",
        ),
        *_entrapment(np.array(data.attrs["importance"])),
    ]


def _entrapment(importance: Any) -> list[Verdict]:
    """Section IV's explanation of entrapment, and whether this chain is an example of it."""
    n = importance.size
    sparse, dense, uniform = (
        design.kernel(graph, importance)
        for design, graph in ((Metropolis(1), ring(n)), (Metropolis(1), complete(n)), (Metropolis(0), ring(n)))
    )
    here, there = (1 / sojourn_times(kernel)[0] for kernel in (sparse, dense))
    found = hold(sparse, uniform, [0])
    explained, trapped = there > 1.1 * here, is_trap(found, n)
    quote = (
        "when a node has much larger local gradient Lipschitz constants than its neighbors’, and the graph is sparse, "
        "the probability of leaving this node is very small (IV)"
    )
    return [
        Verdict(
            "node 1 is left with a probability of at most 0.05 on the ring",
            OUTCOMES[here <= 0.05],
            f"{here:.4g}",
            quote=quote,
        ),
        Verdict(
            "that is because the graph is sparse: on the complete graph it is at least 1.1 × as much",
            OUTCOMES[explained],
            f"{there:.4g} on the complete graph",
            "" if explained else "It is the mean of L_j / L₁ over the neighbours, however many there are",
            quote=quote,
        ),
        Verdict(
            "node 1 entraps the walk: it holds it 10 × as long as the uniform walk and 5 updates longer, with returns",
            OUTCOMES[trapped],
            in_words(found).replace("node 0", "node 1"),
            ""
            if trapped
            else "Nearly all updates are meant to be made at node 1, so that few can be beyond its share. "
            "And on five nodes no walk is far from any other",
            quote="An example of ring topology with five nodes that may cause the entrapment issue (Fig. 2)",
        ),
    ]


def _verdict(quote: str, claim: str, number: float, drawn: float, why: str, tolerance: float = 0.02) -> Verdict:
    holds = bool(abs(number / drawn - 1) < tolerance)
    return Verdict(claim, OUTCOMES[holds], f"{number:.4g}", "" if holds else why, quote=f"{quote} (Fig. 2b)")


def table(spec: dict[str, Any], _: "xarray.Dataset") -> Table:
    """What the three chains are like."""
    rows = []
    for label, kernel in kernels(spec).items():
        law, mixing = stationary(kernel), mixing_time(kernel)
        rows.append(
            [
                label,
                f"{law[0]:.4f}",
                f"{sojourn_times(kernel)[0]:.3g}",
                f"{excess_visits(kernel, [0]):.3g}",
                f"{float(mixing):.0f}",
                f"{kemeny_constant(kernel):.4f}",
                f"{hitting_times(kernel).max():.4g}",
            ]
        )
    head = [
        "design",
        "time at node 1",
        "stay at node 1",
        "excess visits to node 1",
        "mixing time",
        "Kemeny constant",
        "largest hitting time",
    ]
    caption = (
        "Stays, mixing and hitting times are in updates; all numbers are exact. Excess visits are the updates beyond "
        "its share that a walk makes at node 1 once it is there."
    )
    return Table(head, rows, caption)


def draw(data: "xarray.Dataset", path: Where, footer: str) -> None:
    """Draw the chains of importance MH and MHLJ, with the probabilities at node 1 and around it."""
    import matplotlib

    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        figure = new_figure(9.6, 4.5)
        for axes, label in zip(figure.subplots(1, 2), ("MH importance", "MHLJ"), strict=True):
            _draw(axes, data.probability.sel(design=label).values, data.attrs["importance"])
            axes.set_title(label)
        figure.supxlabel(footer, fontsize=8.5, color="#666666")
        save(figure, path)


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
            words = f"{chain[i, j]:.3g}"
            axes.text(
                middle[0], middle[1], words, fontsize=8.5, ha="center", va="center", color=INK, bbox=back, zorder=3
            )
    for i, place in enumerate(places):
        heavy = importance[i] > min(importance)
        axes.plot(*place, "o", markersize=25, color="#D55E00" if heavy else "#009E73", zorder=3)
        axes.text(place[0], place[1], str(i + 1), color="white", ha="center", va="center", fontweight="bold", zorder=4)
        outward = "center" if abs(place[0]) < 0.7 else ("left" if place[0] > 0 else "right")
        away = 1.33 if outward == "center" else 1.2
        axes.text(away * place[0], away * place[1], f"stays {chain[i, i]:.3g}", ha=outward, va="center", fontsize=9)
    axes.set_xlim(-1.95, 1.95)
    axes.set_ylim(-1.45, 1.55)
    axes.set_aspect("equal")
    axes.set_axis_off()
