"""Remark 1: what jumps cost in messages, as the paper counts them and as they are sent."""

from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.analysis.theory import remark_1
from freewalk.designs import MHLJ, Metropolis
from freewalk.paper.claims import Finding, judged
from freewalk.paper.files import study_table
from freewalk.report.figures import COLOURS, INK, Where, drawing
from freewalk.report.page import Table, Verdict
from freewalk.specs.catalogue import build

if TYPE_CHECKING:
    import xarray


def numbers(spec: dict[str, Any]) -> "xarray.Dataset":
    """Messages per update in the long run, by graph: of the uniform walk, of importance MH, and of MHLJ."""
    import xarray

    designs = {"MH uniform": Metropolis(0), "MH importance": Metropolis(1), "MHLJ": MHLJ(**spec["jumps"])}
    sent = np.full((len(spec["graphs"]), len(spec["draws"]), len(designs)), np.nan)
    counted, bound = np.nan, np.nan
    for row, (name, table) in enumerate(spec["graphs"].items()):
        graph = build("graph", table, f"remark 1: {name}")
        for column, seed in enumerate(spec["draws"]):
            data = {**spec["problem"], "heavy_probability": spec["heavy"][name], "seed": seed}
            problem = build("problem", data, "remark 1: [problem]", n=graph.n)
            if problem.heavy:  # else there is nothing to jump away from
                found = [remark_1(design.kernel(graph, problem.smoothness)) for design in designs.values()]
                sent[row, column] = [one.messages for one in found]
                counted, bound = found[-1].printed, found[-1].printed_bound
    return xarray.Dataset(
        {"messages": (("graph", "draw", "design"), sent)},
        coords={"graph": list(spec["graphs"]), "draw": spec["draws"], "design": list(designs)},
        attrs={"label": "remark 1", "counted": counted, "bound": bound},
    )


def judge(data: "xarray.Dataset") -> list[Verdict]:
    """What MHLJ sends against what the two walks without jumps send, on every graph and draw of the data."""
    return judged("remark-1", data, {"increase": _increase}, {})


def _increase(data: "xarray.Dataset", than: str) -> Finding:
    increase = 100 * (data.messages.sel(design="MHLJ") / data.messages.sel(design=than) - 1)
    listed = [
        f"{name} {float(values.min()):+.0f} to {float(values.max()):+.0f} %"
        for name, values in zip(increase.graph.values, increase, strict=True)
    ]
    return Finding(float(increase.max()) <= 10, ", ".join(listed))


def table(_: dict[str, Any], data: "xarray.Dataset") -> Table:
    """Messages per update."""
    low, high = (data.messages.min("draw").values, data.messages.max("draw").values)
    rows = [
        [name, *(f"{least:.2f} to {most:.2f}" for least, most in zip(*ends, strict=True))]
        for name, *ends in zip(data.graph.values.tolist(), low, high, strict=True)
    ]
    caption = study_table("remark-1")["table"]["caption"].format(draws=data.sizes["draw"])
    return Table(["graph", *data.design.values.tolist()], rows, caption)


def draw(data: "xarray.Dataset", path: Where, footer: str) -> None:
    """Bars by graph and design, with the range over the draws, and the paper's count and bound."""
    with drawing(path, 8.4, 4.3, footer=footer) as figure:
        axes = figure.subplots()
        places = np.arange(data.sizes["graph"])
        for number, label in enumerate(data.design.values):
            part = data.messages.sel(design=label)
            middle, low, high = part.mean("draw").values, part.min("draw").values, part.max("draw").values
            where, ends = places + 0.27 * (number - 1), np.maximum([middle - low, high - middle], 0)
            axes.bar(where, middle, 0.25, color=COLOURS[number], label=str(label))
            axes.errorbar(where, middle, ends, fmt="none", ecolor=INK, elinewidth=1.0, capsize=3)
        for name, dashes, words in (("counted", (1, 1.5), "count"), ("bound", (4, 3), "bound")):
            label = f"Remark 1's {words}, {data.attrs[name]:.4g}"
            axes.axhline(data.attrs[name], color=INK, linewidth=1.0, linestyle=(0, dashes), label=label)
        axes.set_xticks(places, [str(name) for name in data.graph.values])
        axes.set_ylabel("messages per update")
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside upper center", ncols=3, handlelength=1.8)
