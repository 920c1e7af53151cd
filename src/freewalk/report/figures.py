"""Figures, drawn without global state, and the learning curves of a record."""

import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import show
from freewalk.errors import RecordError
from freewalk.linear.arrays import Floats
from freewalk.report import measures
from freewalk.report.measures import BANDS, USUAL, Band, Parts, check
from freewalk.run.record import Record
from freewalk.storage.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Where = str | os.PathLike[str]
Scale = Literal["auto", "linear", "log"]
Curves = tuple[Floats, Floats, Floats]  # the mean, and the ends of its band

# Okabe and Ito's colours, which can be told apart with any kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# On a regular graph two designs can coincide: dashes let the one below show through.
DASHES: tuple[Any, ...] = ("-", "-", "-", (0, (4, 3)), "-", (0, (1, 1.5)), (0, (5, 2, 1, 2)))
#: Dash patterns for all lines, used once the colours repeat.
MORE_DASHES: tuple[Any, ...] = ((0, (8, 1.5, 1.5, 1.5)), (0, (2, 1)))
INK = "#222222"
#: The line of an optimum, or of another level.
DOTTED: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": (0, (2, 2))}

STYLE: dict[Any, Any] = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.labelsize": 10.5,
    "axes.edgecolor": "#777777",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8e8e8",
    "grid.linewidth": 0.7,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "legend.frameon": False,
    "figure.dpi": 100,
    "figure.constrained_layout.wspace": 0.06,
    "savefig.dpi": 160,
}


def curves(
    record: Record,
    path: Where,
    *,
    measure: str | None = None,
    axes: Sequence[str] | None = None,
    scale: Scale = "auto",
    band: Band = "quantiles",
) -> Path:
    """Draw a measure against updates, messages or other axes: the mean over the walks, with a band.

    A loss has a logarithmic vertical axis unless it is negative somewhere. If walks diverge, the line ends where the
    mean is no longer finite, and the legend gives their number.

    Parameters
    ----------
    record
        Of one run, or several side by side.
    path
        The image to write; its suffix is the format.
    measure
        The variable to draw. Default: the primary measure of the record.
    axes
        The horizontal axes, one panel each: "updates", or variables by walk and step that never decrease, such as
        "messages" and "bytes". Default: updates and messages.
    scale
        Scale of the horizontal axes: "linear", "log" (linear up to the first checkpoint), or "auto": log if a linear
        axis would squeeze some design into a corner.
    band
        "quantiles": from the 10 % to the 90 % quantile of the walks; "confidence": the 95 % confidence interval of
        their mean; or "none".
    """
    target = check_format(path)
    return save(curves_figure(record, measure=measure, axes=axes, scale=scale, band=band), target)


def curves_figure(
    record: Record,
    *,
    measure: str | None = None,
    axes: Sequence[str] | None = None,
    scale: Scale = "auto",
    band: Band = "quantiles",
    lines: Mapping[str, float] | None = None,
    most_columns: int = 100,
) -> "Figure":
    """The figure that `curves` writes; it may have named horizontal lines besides the optimum, and several rows."""
    import matplotlib

    check.choice("curves", "scale", scale, get_args(Scale))
    check.choice("curves", "band", band, BANDS)
    parts, shown = measures.by_design(record), measures.measure_of(record.data, measure)
    against = measures.axes_of(parts, shown, USUAL if axes is None else axes)
    statistics = {
        label: measures.mean_and_band(measures.values_of(part, shown.name), band, rises=shown.rises, best=shown.optimum)
        for label, part in parts.items()
    }
    spread = scale == "log" or (scale == "auto" and measures.is_spread(parts, shown, against))
    log = measures.is_log(shown, (mean for mean, _, _ in statistics.values()))
    best = None if shown.optimum is None or (log and shown.optimum <= 0) else shown.optimum
    shaded = {label for label, part in parts.items() if band != "none" and part.sizes["walk"] > 1}
    columns = min(most_columns, len(against))
    with matplotlib.rc_context(STYLE):
        figure = new_figure(max(4.8 * columns, 6.4), 1.0 + 3.5 * -(-len(against) // columns))
        panels = frames(figure, len(against), columns)
        bottom, top = limits = _limits(statistics.values(), best, log)
        # Values far outside the picture would trouble a log axis.
        far = (bottom / 1e3, top * 1e3) if log else (2 * bottom - top, 2 * top - bottom)
        for number, (label, part) in enumerate(parts.items()):
            mean, low, high = (np.clip(curve, *far) for curve in statistics[label])
            diverged = measures.diverged_of(part, shown)
            name = f"{label} ({diverged} of {part.sizes['walk']} diverged)" if diverged else label
            for panel, axis in zip(panels, against, strict=True):
                where = measures.along(part, axis)
                if label in shaded:
                    shade(panel, where, low, high, number)
                panel.plot(where, mean, label=name, linewidth=1.9, zorder=3, **line_of(number))
        for panel, heading in zip(panels, against.values(), strict=True):
            panel.set(yscale="log" if log else "linear", ylim=limits)
            if log:
                plain_within_a_decade(panel.yaxis, *limits)
            panel.set_xlabel(heading, parse_math=False)
            axis_of_counts(panel, spread)
            if best is not None:
                panel.axhline(best, label="optimum", zorder=2, **DOTTED)
            for name, level in (lines or {}).items():
                panel.axhline(level, label=name, zorder=2, **{**DOTTED, "linestyle": "-."})
        for first in panels[::columns]:
            first.set_ylabel(textwrap.fill(shown.label, 48), parse_math=False)
        legend(figure, panels[0], f"band: {BANDS[band]}" if shaded else None)
        footnote(figure, _explanation(parts, against))
    return figure


def _explanation(parts: Parts, axes: Iterable[str]) -> str:
    """What a line is, and which designs an axis lacks."""
    count = measures.walks_in_words(parts)
    words = [f"line: mean over {count}" if count != "1 walk" else "one walk"]
    for axis in axes:
        if lacking := [label for label, part in parts.items() if np.isnan(measures.along(part, axis)).any()]:
            words.append(f"not known against {axis}: {', '.join(lacking)}")
    return "; ".join(words)


def _limits(statistics: Iterable[Curves], best: float | None, log: bool) -> tuple[float, float]:
    """The limits of the vertical axis: they include all finite values of interest, but not diverging walks."""
    lows, highs = ([], []) if best is None else ([best], [best])
    for mean, low, high in statistics:
        usable = np.isfinite(mean) & ((mean > 0) | (not log))
        if not usable.any():
            continue
        seen, least, most = mean[usable], low[usable].min(), high[usable].max()
        # On a log axis, the lower end of a band may leave the picture if some walks are far better than their mean, and
        # so may a curve that explodes: ten times its initial value is enough to see that it does.
        lows += [seen.min(), max(least, seen.min() / 30) if log else least]
        highs += [min(max(seen.max(), most), 10 * seen[0]) if log else max(seen.max(), most)]
    if not lows:
        return 0.1, 10.0
    lowest, highest = float(min(lows)), float(max(highs))
    if log:
        spread = highest / lowest
        return lowest / min(1.25, max(1.02, spread**0.06)), highest * min(1.4, max(1.02, spread**0.1))
    room = 0.05 * (highest - lowest or abs(highest) or 1.0)
    return 0.0 if 0 <= lowest < highest / 2 else lowest - room, highest + room


def line_of(number: int) -> dict[str, Any]:
    """The colour and the dashes of a design, by its number."""
    dashes = DASHES[number] if number < len(DASHES) else MORE_DASHES[(number // len(DASHES) - 1) % len(MORE_DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": dashes}


def shade(axes: "Axes", where: Floats, low: Floats, high: Floats, number: int) -> None:
    """The band around the line of a design."""
    axes.fill_between(where, low, high, color=line_of(number)["color"], alpha=0.13, linewidth=0)


def plain_within_a_decade(axis: "Axis", low: float, high: float) -> bool:
    """Label a log axis that ends within a decade with plain numbers; returns whether it does."""
    if not (low > 0 and high < 10 * low):
        return False
    axis.set_major_formatter(lambda value, _: f"{value:.3g}")
    axis.set_minor_formatter(lambda value, _: f"{value:.3g}")
    return True


@contextmanager
def drawing(
    path: Where, width: float, height: float, style: dict[Any, Any] | None = None, footer: str = ""
) -> "Iterator[Figure]":
    """A new figure of this size in inches, with small print below it if given, written to a file in the end."""
    import matplotlib

    with matplotlib.rc_context(STYLE | (style or {})):
        figure = new_figure(width, height)
        if footer:
            footnote(figure, footer)
        yield figure
        save(figure, path)


def frames(figure: "Figure", count: int, columns: int) -> NDArray[Any]:
    """Frames that share a vertical axis, row by row."""
    grid = np.asarray(figure.subplots(-(-count // columns), columns, squeeze=False, sharey=True)).ravel()
    for spare in grid[count:]:
        spare.set_visible(False)
    return grid[:count]


def new_figure(width: float, height: float) -> "Figure":
    """A figure of this size in inches, not registered with pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axis_of_counts(axes: "Axes", log: bool = False) -> None:
    """A horizontal axis of counts from 0, with so few ticks that labels do not overlap."""
    curves = [np.asarray(line.get_xdata(), dtype=np.float64) for line in axes.lines]
    firsts = [float(counts[counts > 0][0]) for counts in curves if (counts > 0).any()]
    if log and firsts:
        last = axes.get_xlim()[1]
        axes.set_xscale("symlog", linthresh=min(firsts), linscale=0.3)
        powers = 10.0 ** np.arange(np.floor(np.log10(min(firsts))), np.floor(np.log10(last)) + 1)
        axes.set_xticks([0.0, *powers[powers >= min(firsts)]])
        between = np.outer(powers, np.arange(2, 10)).ravel()
        axes.set_xticks(between[between >= min(firsts)], minor=True)
        axes.set_xlim(right=last)
    else:
        axes.locator_params(axis="x", nbins=5, steps=[1, 2, 5, 10])
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def legend(figure: "Figure", axes: "Axes", shaded: str | None = None) -> None:
    """A legend above a figure; `shaded` explains the band, if there is one."""
    from matplotlib.patches import Patch

    lines, names = axes.get_legend_handles_labels()
    if shaded is not None:
        lines, names = [*lines, Patch(color="#999999", alpha=0.35, linewidth=0)], [*names, shaded]
    # A letter is about 0.08 inches wide; a line with its gaps takes the space of eight.
    columns = int(figure.get_figwidth() / 0.08 / (max(map(len, names)) + 8))
    made = figure.legend(lines, names, loc="outside upper center", ncols=min(max(columns, 1), 3), handlelength=2.4)
    for entry in made.get_texts():
        entry.set_parse_math(False)  # a dollar sign in a label is a dollar sign


def footnote(figure: "Figure", words: str) -> None:
    """Small print below a figure."""
    figure.supxlabel(words, fontsize=8.5, color="#666666", parse_math=False)


def check_format(path: Where) -> Path:
    """The path of an image whose suffix is a known format; check it before a long computation."""
    from matplotlib.figure import Figure

    target, known = check.path("figure", "path", path), Figure().canvas.get_supported_filetypes()
    if target.suffix.lower().removeprefix(".") not in known:
        formats = f".{', .'.join(sorted(known))}"
        raise RecordError(f"{show(str(target))}: cannot draw this kind of file, expected one of {formats}")
    return target


def save(figure: "Figure", path: Where) -> Path:
    """Write a figure, and create its folder if needed; an old file is replaced only once the new one is complete."""
    import matplotlib

    target = check_format(path)
    with matplotlib.rc_context(STYLE), replacing(target) as temporary:
        figure.savefig(temporary)
    return target
