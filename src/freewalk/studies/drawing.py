"""The figure of a study: our mean and band, the exact curve and the printed one, by updates and by messages."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.report.figures import COLOURS, INK, STYLE, Where, axis_of_counts, footnote, new_figure, save
from freewalk.report.page import Chart
from freewalk.report.statistics import is_spread, mean_and_band, values_of
from freewalk.studies.evidence import Curve, Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def scaled(evidence: Evidence, label: str) -> Curve:
    """A printed curve; where the scale of its data is not stated, with its floor moved to our optimum."""
    curve = evidence.printed(label)
    if evidence.variant == "published":
        return curve
    return Curve(curve.updates, curve.messages, curve.mse * (evidence.optimum / evidence.printed_floor))


def draw(evidence: Evidence, path: Where, title: str, footer: str) -> None:
    """Draw the curves of a study.

    Parameters
    ----------
    evidence
        What was found.
    path
        The image to write.
    title
        Above it.
    footer
        Below it: where the numbers come from.
    """
    import matplotlib

    parts = evidence.parts
    log = is_spread(parts)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 5.2)
        left, right = figure.subplots(1, 2, sharey=True)
        lowest, highest = evidence.optimum, evidence.optimum
        for number, (label, part) in enumerate(parts.items()):
            colour = COLOURS[number % len(COLOURS)]
            mean, low, high = mean_and_band(values_of(part))
            messages = part.messages.mean("walk").values
            lowest, highest = min(lowest, np.nanmin(mean)), max(highest, mean[0])
            for axes, where in ((left, part.step.values), (right, messages)):
                axes.fill_between(where, low, high, color=colour, alpha=0.13, linewidth=0)
                axes.plot(where, mean, color=colour, linewidth=1.9, label=label, zorder=3)
            exact = evidence.curve(label)
            printed = scaled(evidence, label) if label in evidence.published else None
            if printed is not None:
                lowest, highest = min(lowest, printed.mse.min()), max(highest, printed.mse.max())
            for axes, by in ((left, "updates"), (right, "messages")):
                if evidence.exact is not None:
                    axes.plot(getattr(exact, by), exact.mse, color=INK, linewidth=0.8, linestyle=(0, (5, 3)), zorder=4)
                if printed is not None:
                    some = np.unique(np.geomspace(1, len(printed.mse), 26).astype(int)) - 1
                    dots: dict[str, Any] = {"marker": "o", "markersize": 4, "linestyle": "none", "zorder": 5}
                    dots |= {"markerfacecolor": "white", "markeredgecolor": colour}
                    axes.plot(getattr(printed, by)[some], printed.mse[some], **dots)
        for axes, heading in ((left, "updates"), (right, "messages")):
            axes.set_yscale("log")
            axes.set_ylim(lowest / 1.35, highest * 1.5)
            axes.set_xlabel(heading)
            axis_of_counts(axes, log)
            axes.axhline(evidence.optimum, color=INK, linewidth=1.0, linestyle=(0, (1, 2)), zorder=2)
        left.set_ylabel("mean squared error")
        _legend(figure, left, evidence, title)
        footnote(figure, footer)
        save(figure, path)


def draw_charts(charts: Sequence[Chart], path: Where, footer: str) -> None:
    """Draw charts side by side that are not curves of walks."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = new_figure(4.8 * len(charts), 4.2)
        for axes, chart in zip(np.atleast_1d(figure.subplots(1, len(charts))), charts, strict=True):
            for number, series in enumerate(chart.series):
                (name, where), *_ = series.x.items()
                axes.plot(where, series.y, marker="o", markersize=4, color=COLOURS[number], label=series.label)
                axes.set_xlabel(name)
            axes.set_yscale("log" if chart.y_log else "linear")
            axes.set_ylabel(chart.y_label)
            axes.set_title(chart.title, fontsize=10.5)
            axes.legend()
        footnote(figure, footer)
        save(figure, path)


def _legend(figure: "Figure", axes: "Axes", evidence: Evidence, title: str) -> None:
    from matplotlib.lines import Line2D

    lines, names = axes.get_legend_handles_labels()
    lines = list(lines)
    if evidence.exact is not None:
        lines.append(Line2D([], [], color=INK, linewidth=0.8, linestyle=(0, (5, 3))))
        names.append("exact")
    if evidence.published:
        dots: dict[str, Any] = {"marker": "o", "markersize": 4, "linestyle": "none", "markerfacecolor": "white"}
        lines.append(Line2D([], [], markeredgecolor="#555555", **dots))
        names.append("printed" if evidence.variant == "published" else "printed, scaled to our optimum")
    lines.append(Line2D([], [], color=INK, linewidth=1.0, linestyle=(0, (1, 2))))
    names.append("optimum")
    options: dict[str, Any] = {"title": title, "title_fontsize": 12, "ncols": 4, "handlelength": 2.2}
    figure.legend(lines, names, loc="outside upper center", **options)
