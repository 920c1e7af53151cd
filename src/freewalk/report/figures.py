"""Figures of records, drawn without any global state."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import RecordError
from freewalk.record import Record
from freewalk.report.statistics import is_spread, mean_and_band, values_of
from freewalk.report.summary import by_design, measure, optimum

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Where = str | os.PathLike[str]
Scale = Literal["auto", "linear", "log"]
Floats = NDArray[np.float64]

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


def curves(record: Record, path: Where, *, scale: Scale = "auto") -> Path:
    """Draw the loss against updates and against messages: mean and 10–90 % band over the walks, on a log scale.

    A mean that is not finite, because a walk has diverged, ends its line, and the legend says how many did.

    Parameters
    ----------
    record
        Of one run, or several side by side.
    path
        The image to write; its suffix is the format.
    scale
        Of the horizontal axes: "linear", "log" (linear up to the first checkpoint), or "auto": log where some design is
        more than eight times as fast as another, which a linear axis would squeeze into its corner.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    RecordError
        If nothing was learned.
    """
    import matplotlib

    if scale not in get_args(Scale):
        raise RecordError(f"curves: scale = {scale!r}, expected one of {', '.join(get_args(Scale))}")
    parts, best = by_design(record), optimum(record)
    statistics = {label: mean_and_band(values_of(part)) for label, part in parts.items()}
    log = scale == "log" or (scale == "auto" and is_spread(parts))
    with matplotlib.rc_context(STYLE):
        figure = new_figure(9.6, 4.5)
        left, right = figure.subplots(1, 2, sharey=True)
        lowest, highest = _limits(statistics.values(), best)
        for number, (label, part) in enumerate(parts.items()):
            diverged = int((~np.isfinite(values_of(part)).all(axis=1)).sum())
            name = f"{label} ({diverged} of {part.sizes['walk']} diverged)" if diverged else label
            line = {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}
            # Far outside the picture is as good as infinite, and no trouble on a log axis.
            mean, low, high = (np.clip(curve, lowest / 1e3, highest * 1e3) for curve in statistics[label])
            for axes, where in ((left, part.step.values), (right, part.messages.mean("walk").values)):
                if part.sizes["walk"] > 1:
                    axes.fill_between(where, low, high, color=line["color"], alpha=0.13, linewidth=0)
                axes.plot(where, mean, label=name, linewidth=1.9, zorder=3, **line)
        for axes, heading in ((left, "updates"), (right, "messages")):
            axes.set_yscale("log")
            axes.set_ylim(lowest, highest)
            axes.set_xlabel(heading)
            axis_of_counts(axes, log)
            if best is not None and best > 0:
                axes.axhline(best, color=INK, linewidth=1.0, linestyle=(0, (2, 2)), zorder=2, label="optimum")
        left.set_ylabel("mean squared error" if measure(record.data) == "mse" else "loss")
        _legend(figure, left)
        footnote(figure, "line: mean over the walks   band: from the 10 % to the 90 % quantile of the walks")
        return save(figure, path)


def escape(record: Record, path: Where, *, designs: Sequence[str] | None = None, updates: int | None = None) -> Path:
    """Draw where walks are, update by update: coming back to the heavy nodes, or free of them.

    Positions count from the heaviest node, which is what a reader can see on a ring or a path.

    Parameters
    ----------
    record
        With paths: `fw.learn(..., paths=5)`, or `paths = 5` in a spec.
    path
        The image to write.
    designs
        Which designs to show, one panel each; None: all.
    updates
        How many updates to show; None: all.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    RecordError
        If no path was kept, or a design is not in the record.
    """
    import matplotlib

    if "path" not in record.data:
        raise RecordError(
            "escape: the record has no paths, expected some kept with learn(..., paths=5), or with paths = 5 under "
            "[run] in a spec"
        )
    parts = by_design(record)
    shown = list(parts) if designs is None else list(designs)
    if not shown or set(shown) - set(parts):
        raise RecordError(f"escape: got the designs {shown}, expected some of {list(parts)}")
    with matplotlib.rc_context(STYLE):
        figure = new_figure(max(4.2, 3.7 * len(shown)), 3.9)
        panels = np.atleast_1d(figure.subplots(1, len(shown), sharey=True, sharex=True))
        for axes, label in zip(panels, shown, strict=True):
            share = _draw_paths(axes, parts[label], COLOURS[list(parts).index(label) % len(COLOURS)], updates)
            words = label if share is None else f"{label}\n{100 * share:.0f} % of the updates on a heavy node"
            axes.set_title(words, parse_math=False)
            axes.set_xlabel("updates")
            axis_of_counts(axes)
        reach = max(abs(limit) for limit in panels[0].get_ylim())
        panels[0].set_ylim(-reach, reach)
        middle = "heaviest" if "smoothness" in record.data else "most visited"
        panels[0].set_ylabel(f"node, counted from the {middle}")
        return save(figure, path)


def occupancy(record: Record, path: Where, *, around: int = 12) -> Path:
    """Draw the share of the visits that each node gets, near the heaviest node.

    Parameters
    ----------
    record
        Of one run, or several side by side.
    path
        The image to write.
    around
        How many nodes to show on either side of the heaviest.

    Returns
    -------
    Path
        The file written.
    """
    import matplotlib
    from matplotlib.ticker import FuncFormatter

    parts = by_design(record)
    with matplotlib.rc_context(STYLE):
        figure = new_figure(7.2, 4.2)
        axes = figure.subplots()
        for number, (label, part) in enumerate(parts.items()):
            visits = part.visits.sum([name for name in part.visits.dims if name != "node"]).values
            n = visits.size
            offsets = np.arange(-min(around, (n - 1) // 2), min(around, n // 2) + 1)
            share = visits[(_centre(part) + offsets) % n] / max(visits.sum(), 1)
            line = {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}
            axes.plot(offsets, np.where(share > 0, share, np.nan), marker="o", markersize=3.5, label=label, **line)
        axes.axhline(1 / n, color=INK, linewidth=1.0, linestyle=(0, (2, 2)), label="all nodes alike")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
        axes.set_xlabel("node, counted from the heaviest")
        axes.set_ylabel("share of the visits")
        _legend(figure, axes)
        return save(figure, path)


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
    return (min(lows) / 1.25, max(highs) * 1.4) if lows else (0.1, 10.0)


def _draw_paths(axes: "Axes", part: "xarray.Dataset", colour: str, updates: int | None) -> float | None:
    """Every kept path of a design, and the share of their time on heavy nodes."""
    n = part.sizes["node"]
    nodes = np.asarray(part.path.transpose("kept", "time").values, dtype=np.float64)
    nodes = nodes[:, np.isfinite(nodes).all(axis=0)][:, : None if updates is None else updates + 1]
    positions = (nodes - _centre(part) + n // 2) % n - n // 2
    # A step across the far side of the ring is no line across the picture.
    positions[:, 1:][np.abs(np.diff(positions, axis=1)) > n / 2] = np.nan
    heavy = list(part.attrs.get("heavy", []))
    offsets = [(node - _centre(part) + n // 2) % n - n // 2 for node in heavy]
    for offset in offsets:
        axes.axhline(offset, color="#bbbbbb", linewidth=2.5, zorder=0)
    for row in positions:
        axes.plot(np.arange(row.size), row, color=colour, linewidth=1.1, alpha=0.8)
    axes.set_xlim(right=1.03 * max(positions.shape[1] - 1, 1))
    return float(np.isin(nodes, heavy).mean()) if heavy else None


def _centre(part: "xarray.Dataset") -> int:
    """The heaviest node; where nothing was learned, the one with most visits."""
    if "smoothness" in part:
        return int(part.smoothness.values.argmax())
    return int((part.visits.sum("walk") if "walk" in part.visits.dims else part.visits).values.argmax())


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


def _legend(figure: "Figure", axes: "Axes") -> None:
    lines, names = axes.get_legend_handles_labels()
    # A letter is about 0.08 inches wide, and a line with its gaps takes the room of eight.
    columns = int(figure.get_figwidth() / 0.08 / (max(map(len, names)) + 8))
    legend = figure.legend(lines, names, loc="outside upper center", ncols=min(max(columns, 1), 3), handlelength=2.4)
    for entry in legend.get_texts():
        entry.set_parse_math(False)  # a dollar sign in a label is a dollar sign


def footnote(figure: "Figure", words: str) -> None:
    """Small words below a figure."""
    figure.supxlabel(words, fontsize=8.5, color="#666666")


def check_format(path: Where) -> Path:
    """The path of an image that can be written, by its suffix; ask before what takes long.

    Raises
    ------
    RecordError
        If its suffix is no format that can be drawn.
    """
    from matplotlib.figure import Figure

    known = Figure().canvas.get_supported_filetypes()
    if Path(path).suffix.lower().removeprefix(".") not in known:
        raise RecordError(f"{path}: cannot draw this kind of file, expected one of .{', .'.join(sorted(known))}")
    return Path(path)


def save(figure: "Figure", path: Where) -> Path:
    """Write a figure, and make the folder for it if need be.

    Raises
    ------
    RecordError
        If its suffix is no format that can be drawn.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(target)
    except ValueError as error:  # an unknown suffix
        raise RecordError(f"{target}: cannot draw this kind of file ({error})") from error
    return target
