"""Remark 1: what jumps cost in messages, as the paper counts them and as they are sent."""

from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.analysis.theory import remark_1
from freewalk.designs import MHLJ, Metropolis
from freewalk.experiment.catalogue import build
from freewalk.report.figures import COLOURS, INK, STYLE, Where, new_figure, save
from freewalk.report.page import Table, Verdict

if TYPE_CHECKING:
    import xarray

TITLE = "What jumps cost in messages"
TEXT = (
    "The paper counts (1 − p_J) · 1 + p_J E[d] transitions for each update, at most 1 + p_J (1/p_d − 1) = 1.1, and "
    'concludes "at most 10 % increase in the average communication cost". It counts a refused move as a transition. A '
    "model that stays where it is is not sent.",
)


def numbers(spec: dict[str, Any]) -> "xarray.Dataset":
    """Messages for each update in the long run, by graph: of the uniform walk, of importance MH, and of MHLJ."""
    import xarray

    jumping = MHLJ(**spec["jumps"])
    designs = {"MH uniform": Metropolis(0), "MH importance": Metropolis(1), "MHLJ": jumping}
    sent, counted, bound = [], np.nan, np.nan
    for name, table in spec["graphs"].items():
        graph = build("graph", table, f"remark 1: {name}")
        problem = build("problem", spec["problem"], "remark 1: [problem]", n=graph.n)
        found = [remark_1(design.kernel(graph, problem.smoothness)) for design in designs.values()]
        sent.append([one.messages for one in found])
        counted, bound = found[-1].printed, found[-1].printed_bound
    return xarray.Dataset(
        {"messages": (("graph", "design"), np.array(sent))},
        coords={"graph": np.array(list(spec["graphs"])), "design": np.array(list(designs))},
        attrs={"label": "remark 1", "counted": counted, "bound": bound},
    )


def judge(data: "xarray.Dataset") -> list[Verdict]:
    """The remark's two statements, on every graph."""
    most = float(data.messages.sel(design="MHLJ").max())
    counted, bound = data.attrs["counted"], data.attrs["bound"]
    increase = data.messages.sel(design="MHLJ") / data.messages.sel(design="MH importance") - 1
    listed = ", ".join(
        f"{name} +{100 * float(value):.0f} %" for name, value in zip(increase.graph.values, increase, strict=True)
    )
    return [
        Verdict(f"(1 − p_J) + p_J E[d] is at most {bound:g}", "pass" if counted <= bound else "fail", f"{counted:.4f}"),
        Verdict(
            f"MHLJ sends at most {bound:g} messages for each update, on every graph",
            "pass" if most <= bound else "fail",
            f"at most {most:.3f}",
        ),
        Verdict(
            "jumps raise the communication of importance MH by at most 10 %",
            "pass" if float(increase.max()) <= 0.1 else "fail",
            listed,
            ""
            if float(increase.max()) <= 0.1
            else "Importance MH stays where it is at most of its visits to heavy nodes, which costs nothing. Jumps "
            "move the model: that is their purpose, and its price",
        ),
    ]


def table(_: dict[str, Any], data: "xarray.Dataset") -> Table:
    """Messages for each update."""
    designs = [str(name) for name in data.design.values]
    rows = [
        [str(name), *(f"{float(value):.3f}" for value in data.messages.sel(graph=name).values)]
        for name in data.graph.values
    ]
    caption = "Models that leave a node for each update, in the long run; exact. MHLJ with (p_J, p_d, r) as stated."
    return Table(["graph", *designs], rows, caption)


def draw(data: "xarray.Dataset", path: Where, footer: str) -> None:
    """Bars by graph and design, with the paper's count and bound."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = new_figure(8.4, 4.3)
        axes = figure.subplots()
        places = np.arange(data.sizes["graph"])
        for number, label in enumerate(data.design.values):
            heights = data.messages.sel(design=label).values
            axes.bar(places + 0.27 * (number - 1), heights, 0.25, color=COLOURS[number], label=str(label))
        for value, dashes, words in (
            (data.attrs["counted"], (1, 1.5), "count"),
            (data.attrs["bound"], (4, 3), "bound"),
        ):
            axes.axhline(
                value, color=INK, linewidth=1.0, linestyle=(0, dashes), label=f"Remark 1's {words}, {value:.4g}"
            )
        axes.set_xticks(places, [str(name) for name in data.graph.values])
        axes.set_ylabel("messages for each update")
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside upper center", ncols=3, handlelength=1.8)
        figure.supxlabel(footer, fontsize=8.5, color="#666666")
        save(figure, path)
