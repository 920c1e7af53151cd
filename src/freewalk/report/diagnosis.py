"""The figure of a diagnosis."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.analysis.chain.chain import stationary
from freewalk.analysis.diagnosis.findings import Diagnosis
from freewalk.analysis.diagnosis.words import BIASED, IMPORTANCE, NOT_YOURS, ON_TARGET, UNIFORM, number, outcome, times
from freewalk.linear.arrays import Flags, Floats
from freewalk.report.figures import COLOURS, DOTTED, INK, Where, check_format, drawing, footnote
from freewalk.report.graph_map import draw_map, scale_of_stays, shown_traps
from freewalk.report.measures import check

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FASTER, SLOWER = COLOURS[2], COLOURS[1]
GREY = "#666666"
#: The design whose distribution is drawn beside that of importance sampling: the paper's.
JUMPING = "MHLJ, jump 0.1"


def diagnosis_figure(found: Diagnosis, path: Where) -> Path:
    """Draw where the importance walk stays, whether walks sample their targets, and the updates each design needs.

    If the updates are not known, as for any loss but least squares, excess visits or messages are drawn instead.

    Rings, paths and grids of up to 2500 nodes and other graphs of up to 500 are drawn whole; of larger graphs, the 150
    nodes around the worst trap are drawn.

    Parameters
    ----------
    found
        The result of `diagnose`.
    path
        The image to write; its suffix gives the format.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    RecordError
        If the suffix is not a known image format.
    """
    check.instance("diagnosis_figure", "found", found, Diagnosis, "what fw.diagnose returned")
    target = check_format(path)
    with drawing(target, 11.6, 6.8, {"figure.constrained_layout.w_pad": 0.09}) as figure:
        figure.suptitle(_headline(found), fontsize=12, parse_math=False)
        # Subfigures, so that a colour bar on the left takes no space on the right.
        left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=[1.12, 1.0])[0]
        picture = left.subplots()
        stays = scale_of_stays(found.stays)
        bar = left.colorbar(stays, ax=picture, location="bottom", shrink=0.75, aspect=32, pad=0.02)
        _ticks(bar.ax.xaxis, bar.ax.get_xlim(), "{:,.4g}")
        bar.set_label("mean stay of the importance walk at a node (updates)")
        laws, bars = right.subplots(2, 1)
        _draw_laws(laws, found)
        _draw_bars(bars, found)
        words = "node size: importance"
        if found.entrapped:
            words += "   ringed: the worst trap, with its excess visits (updates beyond the walk's long-run share)"
        if len(shown_traps(found)) > 1:
            words += "   paler rings: other traps"
        footnote(figure, words)
        draw_map(figure, picture, found)
    return target


def _headline(found: Diagnosis) -> str:
    words = textwrap.fill(found.conclusion.rstrip("."), 105)
    if found.slower is None:
        return words if found.exact else f"{NOT_YOURS}\n{words}"
    many = f"{found.ratio:.2g} ×" if np.isfinite(found.ratio) else times(found, found.forecasts[IMPORTANCE])
    many = many.replace(">", "more than")
    return f"{words}\nOn {found.graph.name} it needs {many} the updates of the uniform walk"


def _draw_laws(axes: "Axes", found: Diagnosis) -> None:
    """The stationary distribution of a walk against its target."""
    seen: list[Floats] = []
    known = [label for label, one in found.forecasts.items() if not np.isnan(one.distance)]
    others = sorted(set(known) - {UNIFORM, IMPORTANCE}, key=lambda label: (label != JUMPING, known.index(label)))
    styles: list[dict[str, Any]] = [
        {"marker": "o", "s": 26, "facecolors": "none", "edgecolors": COLOURS[1], "linewidths": 1.0},
        {"marker": "o", "s": 9, "color": COLOURS[0], "linewidths": 0},
    ]
    for label, style in zip([IMPORTANCE, *others], styles, strict=False):
        kernel = found.forecasts[label].design.kernel(found.graph, found.importance).at(0)
        target, law = np.asarray(kernel.target), stationary(kernel)
        distance = 0.5 * float(np.abs(law - target).sum())
        off = "on target" if distance <= ON_TARGET else f"{100 * distance:.2g} % off target"
        axes.scatter(target, law, alpha=0.75, label=f"{label}: {off}", zorder=3, **style)
        seen += [target, law]
    low, high = float(np.min(seen)) / 1.6, float(np.max(seen)) * 1.6
    axes.plot([low, high], [low, high], zorder=2, **DOTTED)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    for axis in (axes.xaxis, axes.yaxis):
        _ticks(axis, (low, high), "{:.3g} %", 100.0)
    axes.set(xlabel="target probability of a node", ylabel="stationary probability")
    spaces: dict[str, Any] = {"handletextpad": 0.2, "borderaxespad": 0.1, "borderpad": 0.1, "labelspacing": 0.25}
    # Above the panel: inside it, any corner may hold points.
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), fontsize=9, **spaces)
    axes.set_title("Does the walk sample its target?", loc="left", pad=5.0 + 6.6 * len(seen))


def _ticks(axis: Any, limits: tuple[float, float], form: str, factor: float = 1.0) -> None:
    """Few labels on a log axis, as plain numbers: powers of ten, and numbers in between if those are too few."""
    from matplotlib.ticker import LogLocator, NullFormatter

    decades = np.log10(limits[1] / limits[0])
    subs = (1.0,) if decades > 2 else (1.0, 2.0, 5.0) if decades > 0.6 else (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=8))
    axis.set_major_formatter(lambda value, _: form.format(factor * value))
    axis.set_minor_formatter(NullFormatter())


def _draw_bars(axes: "Axes", found: Diagnosis) -> None:
    """The updates each design needs; if not computed, its excess visits or its messages."""
    forecasts, raced = list(found.forecasts.values()), found.forecasts[UNIFORM].race
    values, colours = np.array([found.times_uniform(one.label) for one in forecasts]), (FASTER, SLOWER)
    endless = np.array([outcome(one) not in ("", BIASED) for one in forecasts])
    if np.isfinite(values).any() and raced is not None:
        title = "Updates needed, relative to MH uniform"
        words = [outcome(one) if outcome(one) == BIASED else times(found, one) for one in forecasts]
        words[list(found.forecasts).index(UNIFORM)] = f"1 × = {number(raced.updates)}"
    else:
        title = "Excess visits to the worst trap" if found.entrapped else "Messages per update"
        values = np.array([one.excess if found.entrapped else one.messages_per_update for one in forecasts])
        words = [number(value) if found.entrapped else f"{value:.2f}" for value in values]
        colours, endless = (COLOURS[0], COLOURS[0]), np.zeros(values.size, dtype=bool)
    axes.set_title(title, loc="left")
    _bars(axes, found, values, words, colours, endless)


def _bars(
    axes: "Axes", found: Diagnosis, values: Floats, words: list[str], colours: tuple[str, str], endless: Flags
) -> None:
    """Bars to either side of 1 on a log axis, one colour per side; an arrow if a design was stopped early."""
    ends = np.where(np.isfinite(values) & (values > 0), values, 1.0)
    low, high = min(float(ends.min()), 1.0), max(float(ends.max()), 1.0)
    if endless.any():
        high = max(2.0 * high, 20.0)
    # Room for the labels beyond the bars, as a fraction of their length.
    span = max(np.log10(high / low), 0.3)
    left = low / 10 ** (0.3 * span) if low < 1 else 1 / 10 ** (0.05 * span)
    right = high * 10 ** (0.32 * span)
    for row, (end, text) in enumerate(zip(np.where(endless, high, ends), words, strict=True)):
        colour = colours[int(end > 1)]
        axes.barh(row, end - 1, left=1, height=0.62, color=colour, zorder=3)
        if endless[row]:
            axes.plot([end], [row], marker=">", markersize=11, color=colour, zorder=4, clip_on=False)
        side, away = ("right", -4) if end < 1 else ("left", 10 if endless[row] else 4)
        look: dict[str, Any] = {"fontsize": 9, "color": GREY if text == BIASED else INK, "zorder": 5}
        axes.annotate(text, (end, row), (away, 0), textcoords="offset points", ha=side, va="center", **look)
    axes.axvline(1, color=INK, linewidth=1.0, zorder=4)
    axes.set(xscale="log", xlim=(left, right))
    _ticks(axes.xaxis, (left, right), "{:,.4g}")
    axes.minorticks_off()
    axes.set_ylim(values.size - 0.5, -0.5)
    # Labels take space from the bars: two narrow lines each, or one small line if there are many designs.
    count = values.size
    lines, width, size = (2, 18, min(10.5, 69 / count)) if count < 9 else (1, 24, min(8.5, 130 / count))
    names = ["\n".join(textwrap.wrap(one, width, max_lines=lines, placeholder=" …")) for one in found.forecasts]
    axes.set_yticks(range(count), names, fontsize=size)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    for label, entry in zip(found.forecasts, axes.get_yticklabels(), strict=True):
        entry.set_parse_math(False)  # a dollar sign in a label is a dollar sign
        if label == found.best_label:
            entry.set_fontweight("bold")
