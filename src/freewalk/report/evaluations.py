"""The results of `fw.evaluate`: a table of the measures, and a figure of the losses at the nodes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings

import numpy as np

from freewalk.errors import RecordError
from freewalk.linear.arrays import Floats
from freewalk.report.figures import DOTTED, Where, check_format, drawing, footnote, legend, line_of, shade
from freewalk.report.measures import BANDS, QUANTILES, check, half_width
from freewalk.report.summary import table_of, with_interval

if TYPE_CHECKING:
    import xarray
    from rich.table import Table

_LEVELS = {"90 % of nodes": 0.9, "worst node": 1.0}  # the quantiles over the nodes that a table shows
_EXPECTED = "what fw.evaluate returns"


def evaluation_table(found: "xarray.Dataset") -> "Table":
    """The measures of the final models as a table, one row per design; if losses per node are given, also their spread.

    Parameters
    ----------
    found
        The result of `fw.evaluate`.
    """
    from rich.text import Text

    parts = _parts("evaluation_table", found)
    names = [str(name) for name in found.data_vars if name != "node_loss"]
    walks = max(part.sizes["walk"] for part in parts.values())
    words = f"± is the 95 % confidence interval of the mean over {walks:,} walks. " if walks > 1 else ""
    if "node_loss" in found:
        words += "Node columns: the 90 % quantile over the nodes of the loss, and the largest; means over the walks."
    head, rows = ["design" if "design" in found.dims else "", *names, *(_LEVELS if "node_loss" in found else ())], []
    for label, part in parts.items():
        columns = [part[name].values for name in names]
        if "node_loss" in found:
            losses = part.node_loss.where(np.isfinite(part.node_loss)).values
            with catch_warnings(action="ignore"):  # of a walk that has none
                columns += [*np.nanquantile(losses, [*_LEVELS.values()], axis=1)]
        rows.append([label, *map(_mean, columns)])
    return table_of(head, rows, Text(words))


def node_losses(found: "xarray.Dataset", path: Where) -> Path:
    """Draw the loss at every node, sorted: a steep curve means that the model serves some nodes far worse than others.

    Each line is a design: the loss at the best node, the second best, and so on, averaged over the walks. Dots mark the
    mean over the nodes. The band spans the 10 % to the 90 % quantile of the walks.

    Parameters
    ----------
    found
        The result of `fw.evaluate(..., per_node=True)`.
    path
        The image to write; its suffix gives the format.
    """
    target, parts = check_format(path), _parts("node_losses", found)
    if "node_loss" not in found:
        raise RecordError("node_losses: there are no losses by node, expected those of fw.evaluate(..., per_node=True)")
    with drawing(target, 6.4, 4.6) as figure:
        axes = figure.subplots()
        shaded, positive = False, True
        for number, (label, part) in enumerate(parts.items()):
            losses = part.node_loss.values
            losses = np.sort(losses[:, np.isfinite(losses).any(axis=0)], axis=1)
            losses = losses[np.isfinite(losses).all(axis=1)]
            if not losses.size:
                axes.plot([], [], label=f"{label} (not finite)", **line_of(number))
                continue
            positive &= bool(losses.min() > 0)
            share = 100 * (np.arange(losses.shape[1]) + 0.5) / losses.shape[1]
            mean, line = losses.mean(axis=0), line_of(number)
            if len(losses) > 1:
                shaded, (low, high) = True, np.quantile(losses, QUANTILES, axis=0)
                shade(axes, share, low, high, number)
            axes.plot(share, mean, label=label, linewidth=1.9, zorder=3, **line)
            axes.axhline(mean.mean(), zorder=2, **{**DOTTED, "color": line["color"]})
        low, high = axes.get_ylim()
        values = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.lines])
        if positive and values.size and values.max() > 20 * values.min():
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        elif positive:
            axes.set_ylim(0.0 if low < high / 2 else low, high)
        axes.set(xlim=(0, 100), xlabel="nodes, from the lowest loss to the highest", ylabel="loss at a node")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        legend(figure, axes, f"band: {BANDS['quantiles']}" if shaded else None)
        walks = max(part.sizes["walk"] for part in parts.values())
        lines = f"line: mean over {walks:,} walks" if walks > 1 else "one walk"
        footnote(figure, f"{lines}, nodes sorted by their loss; dotted: mean over the nodes")
    return target


def _mean(values: Floats) -> str:
    """The mean over the walks, with its confidence interval."""
    known = values[~np.isnan(values)]
    if not known.size:
        return "—"
    with np.errstate(all="ignore"):
        return with_interval(float(known.mean()), float(half_width(known[:, None])[0]))


def _parts(who: str, found: Any) -> "dict[str, xarray.Dataset]":
    import xarray

    check.instance(who, "found", found, xarray.Dataset, _EXPECTED)
    if "walk" not in found.dims or not found.data_vars:
        raise check.fail(who, "found", list(found.data_vars), _EXPECTED)
    if "design" not in found.dims:
        return {"final model": found}
    return {str(label): found.sel(design=label) for label in found.design.values}
