"""Figures, drawn without any global state, and the loss of a record."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks, show
from freewalk.errors import RecordError
from freewalk.files import replacing
from freewalk.record import Record
from freewalk.report.reading import by_design, diverged_of, measure, optimum, values_of, walks_in_words
from freewalk.report.statistics import BANDS, Band, check_band, is_spread, mean_and_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Where = str | os.PathLike[str]
Scale = Literal["auto", "linear", "log"]
Floats = NDArray[np.float64]
check = Checks(RecordError)

# Okabe and Ito's colours, which are told apart with any kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# On a regular graph two designs can coincide: dashes let the one below show through.
DASHES: tuple[Any, ...] = ("-", "-", "-", (0, (4, 3)), "-", (0, (1, 1.5)), (0, (5, 2, 1, 2)))
INK = "#222222"

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


def curves(record: Record, path: Where, *, scale: Scale = "auto", band: Band = "quantiles") -> Path:
    """Draw the loss against updates and against messages, on a log scale: the mean over the walks, with a band.

    A mean that is not finite, because a walk has diverged, ends its line, and the legend says how many did.

    Parameters
    ----------
    record
        Of one run, or several side by side.
    path
        The image to write; its suffix is the format.
    scale
        Of the horizontal axes: "linear", "log" (linear up to the first checkpoint), or "auto": log where a linear axis
        would squeeze some design into its corner.
    band
        "quantiles": from the 10 % to the 90 % quantile of the walks. "confidence": the 95 % confidence interval of
        their mean. Or "none".

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    RecordError
        If nothing was learned, or the file cannot be written.
    """
    import matplotlib

    target = check_format(path)
    check.choice("curves", "scale", scale, get_args(Scale))
    check_band("curves", band)
    parts, best = by_design(record), optimum(record)
    statistics = {label: mean_and_band(values_of(part), band) for label, part in parts.items()}
    log = scale == "log" or (scale == "auto" and is_spread(parts))
    shaded = band != "none" and any(part.sizes["walk"] > 1 for part in parts.values())
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 4.5)
        left, right = figure.subplots(1, 2, sharey=True)
        lowest, highest = _limits(statistics.values(), best)
        for number, (label, part) in enumerate(parts.items()):
            diverged, walks = diverged_of(part), part.sizes["walk"]
            name = f"{label} ({diverged} of {walks} diverged)" if diverged else label
            # Far outside the picture is as good as infinite, and no trouble on a log axis.
            mean, low, high = (np.clip(curve, lowest / 1e3, highest * 1e3) for curve in statistics[label])
            for axes, where in ((left, part.step.values), (right, part.messages.mean("walk").values)):
                if walks > 1 and band != "none":
                    axes.fill_between(where, low, high, color=line_of(number)["color"], alpha=0.13, linewidth=0)
                axes.plot(where, mean, label=name, linewidth=1.9, zorder=3, **line_of(number))
        for axes, heading in ((left, "updates"), (right, "messages")):
            axes.set_yscale("log")
            axes.set_ylim(lowest, highest)
            if highest < 10 * lowest:  # within a decade: plain numbers
                axes.yaxis.set_major_formatter(_plain)
                axes.yaxis.set_minor_formatter(_plain)
            axes.set_xlabel(heading)
            axis_of_counts(axes, log)
            if best is not None and best > 0:
                axes.axhline(best, color=INK, linewidth=1.0, linestyle=(0, (2, 2)), zorder=2, label="optimum")
        left.set_ylabel("mean squared error" if measure(record.data) == "mse" else "loss")
        legend(figure, left, f"band: {BANDS[band]}" if shaded else None)
        footnote(figure, f"line: mean over {count}" if (count := walks_in_words(parts)) != "1 walk" else "one walk")
        return save(figure, target)


def _plain(value: float, _: int) -> str:
    return f"{value:.3g}"


def line_of(number: int) -> dict[str, Any]:
    """The colour and the dashes of a design, by its place."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}


def _limits(statistics: "Iterable[tuple[Floats, Floats, Floats]]", best: float | None) -> tuple[float, float]:
    """The limits of a log axis: all that is finite and near the matter, not where a walk has diverged to."""
    lows, highs = ([best], [best]) if best is not None and best > 0 else ([], [])
    for mean, low, high in statistics:
        seen = mean[np.isfinite(mean) & (mean > 0)]
        if seen.size:
            # The lower end of a band may leave the picture where some walks are far better than their mean, and so may
            # a curve that explodes: ten times its start is enough to see that it does.
            lows += [seen.min(), max(low.min(), seen.min() / 30)]
            highs.append(min(max(seen.max(), high.max()), 10 * seen[0]))
    if not lows:
        return 0.1, 10.0
    spread = max(highs) / min(lows)
    return min(lows) / min(1.25, max(1.02, spread**0.06)), max(highs) * min(1.4, max(1.02, spread**0.1))


def new_figure(width: float, height: float) -> "Figure":
    """A figure of so many inches that pyplot does not know about."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axis_of_counts(axes: "Axes", log: bool = False) -> None:
    """A horizontal axis of counts from 0, few enough that their labels keep apart."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

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
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def legend(figure: "Figure", axes: "Axes", shaded: str | None = None) -> None:
    """A legend above a figure, with what a shade means where there is one."""
    from matplotlib.patches import Patch

    lines, names = axes.get_legend_handles_labels()
    if shaded is not None:
        lines, names = [*lines, Patch(color="#999999", alpha=0.35, linewidth=0)], [*names, shaded]
    # A letter is about 0.08 inches wide, and a line with its gaps takes the room of eight.
    columns = int(figure.get_figwidth() / 0.08 / (max(map(len, names)) + 8))
    made = figure.legend(lines, names, loc="outside upper center", ncols=min(max(columns, 1), 3), handlelength=2.4)
    for entry in made.get_texts():
        entry.set_parse_math(False)  # a dollar sign in a label is a dollar sign


def footnote(figure: "Figure", words: str) -> None:
    """Small words below a figure."""
    figure.supxlabel(words, fontsize=8.5, color="#666666", parse_math=False)


def check_format(path: Where) -> Path:
    """The path of an image that can be written, by its suffix; ask before what takes long.

    Raises
    ------
    RecordError
        If its suffix is no format that can be drawn.
    """
    from matplotlib.figure import Figure

    target, known = check.path("figure", "path", path), Figure().canvas.get_supported_filetypes()
    if target.suffix.lower().removeprefix(".") not in known:
        raise RecordError(
            f"{show(str(target))}: cannot draw this kind of file, expected one of .{', .'.join(sorted(known))}"
        )
    return target


def save(figure: "Figure", path: Where) -> Path:
    """Write a figure, and make the folder for it if need be; what was there before is kept until it is complete.

    Raises
    ------
    RecordError
        If its suffix is no format that can be drawn, or the file cannot be written.
    """
    target = check_format(path)
    with replacing(target) as temporary:
        figure.savefig(temporary)
    return target
