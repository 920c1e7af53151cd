"""The figure of a study: our mean and band, the exact curve and the printed one, against updates and messages.

It only draws. What figure 3, say, runs is `specs/*/figure-3.toml`; what it must show is `studies/figure-3.toml`.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.paper.claim_sweep import ClaimSweep
from freewalk.paper.evidence import Curve, Evidence
from freewalk.report.figures import COLOURS, INK, Where, axis_of_counts, drawing, line_of, shade
from freewalk.report.measures import UPDATES, USUAL, along, is_spread, mean_and_band, values_of
from freewalk.report.page import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_EXACT: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (5, 3))}
_PRINTED: dict[str, Any] = {"marker": "o", "markersize": 4, "linestyle": "none", "markerfacecolor": "white"}
_OPTIMUM: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": (0, (1, 2))}


def scaled(evidence: Evidence, label: str) -> Curve:
    """A printed curve; if the scale of its data is not stated, with its floor moved to our optimum."""
    curve = evidence.printed(label)
    if evidence.variant == "published":
        return curve
    return Curve(curve.updates, curve.messages, curve.error * (evidence.optimum / evidence.printed_floor))


def draw(evidence: Evidence, path: Where, title: str, footer: str) -> None:
    """Draw the curves of a study; the footer says where the numbers come from."""
    parts = evidence.parts
    log = is_spread(parts, evidence.measure, USUAL)
    with drawing(path, 9.6, 5.2, footer=footer) as figure:
        panels = dict(zip(USUAL, figure.subplots(1, 2, sharey=True), strict=True))
        lowest, highest = evidence.optimum, evidence.optimum
        for number, (label, part) in enumerate(parts.items()):
            colour = line_of(number)["color"]
            mean, low, high = mean_and_band(values_of(part, evidence.measure.name))
            lowest, highest = min(lowest, np.nanmin(mean)), max(highest, mean[0])
            exact = evidence.curve(label)
            printed = scaled(evidence, label) if label in evidence.published else None
            if printed is not None:
                lowest, highest = min(lowest, printed.error.min()), max(highest, printed.error.max())
            for by, axes in panels.items():
                where = along(part, by)
                shade(axes, where, low, high, number)
                axes.plot(where, mean, color=colour, linewidth=1.9, label=label, zorder=3)
                if evidence.exact is not None:
                    axes.plot(getattr(exact, by), exact.error, zorder=4, **_EXACT)
                if printed is not None:
                    some = np.unique(np.geomspace(1, len(printed.error), 26).astype(int)) - 1
                    where = getattr(printed, by)[some]
                    axes.plot(where, printed.error[some], markeredgecolor=colour, zorder=5, **_PRINTED)
        margin = min(1.4, (highest / lowest) ** 0.08)
        for heading, axes in panels.items():
            axes.set_yscale("log")
            if highest < 10 * lowest:  # within a decade: plain numbers
                axes.yaxis.set_minor_formatter(_plain)
                axes.yaxis.set_major_formatter(_plain)
            axes.set(ylim=(lowest / margin, highest * margin), xlabel=heading)
            axis_of_counts(axes, log)
            axes.axhline(evidence.optimum, zorder=2, **_OPTIMUM)
        panels[UPDATES].set_ylabel(evidence.measure.label)
        _legend(figure, panels[UPDATES], evidence, title)


_MARKED = 30  # up to this many points, each point of a curve has a dot


def _plain(value: float, _: float) -> str:
    return f"{value:g}"


def draw_charts(charts: Sequence[Chart], path: Where, footer: str) -> None:
    """Draw charts other than learning curves, side by side."""
    with drawing(path, 4.8 * len(charts), 4.2, footer=footer) as figure:
        for axes, chart in zip(np.atleast_1d(figure.subplots(1, len(charts))), charts, strict=True):
            for number, series in enumerate(chart.series):
                (name, where), *_ = series.x.items()
                marker = "o" if np.size(series.y) < _MARKED else None
                axes.plot(where, series.y, marker=marker, markersize=4, color=COLOURS[number], label=series.label)
                axes.set_xlabel(name)
            if name in USUAL:
                axis_of_counts(axes, chart.x_log)
            elif chart.x_log:
                axes.set_xscale("log")
            axes.set(yscale="log" if chart.y_log else "linear", ylabel=chart.y_label)
            axes.set_title(chart.title, fontsize=10.5)
            axes.legend()


_FARTHEST = 30.0  # points farther from the threshold are drawn at the edge
_SHADES = ("#56B4E9", "#0072B2", "#08306b")
_GREY = "#777777"  # whatever the step
_SHAPES = {"uniform": ("o", "random start"), "heaviest": ("^", "heavy start")}
_DOT: dict[str, Any] = {"markersize": 3.8, "markeredgewidth": 0.9, "linestyle": "none"}


def draw_sweep(sweep: ClaimSweep, path: Where, title: str) -> None:
    """Draw the measured value of each claim in each setting, relative to its threshold."""
    fractions = sweep.values("fraction")
    with drawing(path, 9.6, 1.6 + 0.75 * len(sweep.rows)) as figure:
        axes = figure.subplots()
        points: dict[tuple[str, str, str], list[tuple[float, float]]] = {}  # one plot for each shape and colour
        for place, row in enumerate(sweep.rows):
            distinct = sweep.distinct(row)
            for offset, (number, setting) in zip(np.linspace(-0.4, 0.4, len(distinct)), distinct, strict=True):
                holds, value = row.holds[number], row.values[number]
                if holds is None or value is None:
                    continue
                where = float(np.clip(value / row.threshold, 1 / _FARTHEST, _FARTHEST))
                colour = _SHADES[fractions.index(setting["fraction"])] if "fraction" in setting else _GREY
                shape, _ = _SHAPES[setting.get("start", "uniform")]
                points.setdefault((shape, colour, colour if holds else "white"), []).append((where, place + offset))
        for (shape, colour, face), pairs in points.items():
            axes.plot(*zip(*pairs, strict=True), marker=shape, color=colour, markerfacecolor=face, **_DOT)
        axes.axvline(1, color=INK, linewidth=1.0)
        shares = sweep.shares().items()
        names = [f"{textwrap.fill(text, 58)}\nholds in {share.holds} of {share.tested}" for text, share in shares]
        axes.set_yticks(range(len(sweep.rows)), names, fontsize=8.5)
        axes.set(ylim=(len(sweep.rows) - 0.5, -0.5), xscale="log", xlim=(1 / _FARTHEST / 1.15, _FARTHEST * 1.15))
        axes.xaxis.set_major_formatter(_plain)
        axes.set_xlabel(f"measured / threshold (beyond a factor of {_FARTHEST:g}: at the edge)")
        axes.grid(axis="y", visible=False)
        _legend_of_settings(figure, sweep, title)


def _legend_of_settings(figure: "Figure", sweep: ClaimSweep, title: str) -> None:
    from matplotlib.lines import Line2D

    steps = zip(sweep.values("fraction"), _SHADES, strict=False)
    marks = {f"step {one:g} × the limit": ("o", shade, shade) for one, shade in steps}
    marks |= {name: (shape, _GREY, _GREY) for shape, name in (_SHAPES[one] for one in sweep.values("start"))}
    marks |= {"holds": ("s", _GREY, _GREY), "fails": ("s", _GREY, "white")}
    looks = marks.values()
    lines = [Line2D([], [], marker=shape, color=edge, markerfacecolor=face, **_DOT) for shape, edge, face in looks]
    figure.legend(lines, list(marks), loc="outside upper center", ncols=4, title=title, title_fontsize=12)


def _legend(figure: "Figure", axes: "Axes", evidence: Evidence, title: str) -> None:
    from matplotlib.lines import Line2D

    lines, names = axes.get_legend_handles_labels()
    others = {"exact": _EXACT} if evidence.exact is not None else {}
    if evidence.published:
        name = "printed" if evidence.variant == "published" else "printed, scaled to our optimum"
        others[name] = {"markeredgecolor": "#555555", **_PRINTED}
    others["optimum"] = _OPTIMUM
    lines = [*lines, *(Line2D([], [], **look) for look in others.values())]
    options: dict[str, Any] = {"title": title, "title_fontsize": 12, "ncols": 4, "handlelength": 2.2}
    figure.legend(lines, [*names, *others], loc="outside upper center", **options)
