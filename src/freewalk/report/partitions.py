"""The figure of a partition: which classes each node holds, and how many samples."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk.data import Partition
from freewalk.report.figures import COLOURS, INK, Where, check_format, drawing
from freewalk.report.measures import check, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_DOTS = 40  # nodes or classes; with more, dots would touch, and cells are drawn instead
_LABELS = 16  # classes; with more, some labels are left out
_LETTERS = 18


def partition_figure(partition: Partition, path: Where) -> Path:
    """Draw the number of samples of each class at each node, with the node sizes above.

    With up to 40 nodes and classes, the area of a dot is the number of samples; with more, the colour of a cell is.
    Regression targets are grouped by quartile.

    Parameters
    ----------
    partition
        The partition to draw.
    path
        The image to write; its suffix gives the format.
    """
    target = check_format(path)
    found: Partition = check.instance("partition_figure", "partition", partition, Partition, "a Partition")
    nodes, classes = found.counts.shape
    width = float(np.clip(2.4 + 0.32 * nodes, 5.6, 9.6))
    height = float(np.clip(0.3 * classes, 1.5, 4.8))
    likely = f"heterogeneity {found.heterogeneity:.2f} (by chance {found.heterogeneity_by_chance:.2f})"
    style, footer = {"figure.constrained_layout.h_pad": 0.02}, f"{found.made_by}; {likely}"
    with drawing(target, width, height + 1.9, style, footer) as figure:
        sizes, grid = figure.subplots(2, 1, sharex=True, height_ratios=[0.9, height])
        _draw_sizes(sizes, found)
        if max(nodes, classes) <= _MOST_DOTS:
            room = min((width - 1.6) / nodes, height / classes) * 72  # points between two dots
            _draw_dots(figure, grid, found, room)
        else:
            _draw_cells(figure, grid, found)
        _label(grid, found)
    return target


def _draw_sizes(axes: "Axes", found: Partition) -> None:
    if found.n <= _MOST_DOTS:
        axes.bar(np.arange(found.n), found.sizes, width=0.62, color="#9aa7b1", zorder=3)
    else:
        axes.stairs(found.sizes, np.arange(found.n + 1) - 0.5, fill=True, color="#9aa7b1", zorder=3)
    axes.set(ylim=(0, 1.05 * found.sizes.max()), ylabel="samples")
    axes.locator_params(axis="y", nbins=3, integer=True, steps=[1, 2, 5, 10])
    axes.tick_params(axis="x", length=0, labelbottom=False)
    axes.grid(False, axis="x")
    axes.set_title(f"{len(found.nodes):,} samples at {found.n:,} node{'s' * (found.n > 1)}", loc="left")


def _draw_dots(figure: "Figure", axes: "Axes", found: Partition, room: float) -> None:
    node, label = np.nonzero(found.counts)
    counts = found.counts[node, label]
    largest = int(counts.max())
    area = min(0.92 * room, 26.0) ** 2 / largest  # square points per sample
    axes.scatter(node, label, s=np.maximum(area * counts, 2.5), color=COLOURS[0], linewidth=0, zorder=3)
    shown = sorted({_rounded(largest * share) for share in (0.1, 0.4, 1.0)})
    for count in shown:
        axes.scatter([], [], s=area * count, color=COLOURS[0], linewidth=0, label=f"{count:,}")
    spaces: dict[str, Any] = {"ncols": len(shown), "handletextpad": 0.3, "columnspacing": 1.2}
    figure.legend(loc="outside upper right", title="samples", fontsize=9, title_fontsize=9, **spaces)


def _rounded(value: float) -> int:
    """A round number near a count."""
    scale = 10 ** max(int(np.floor(np.log10(max(value, 1.0)))), 0)
    return int(max(value // scale * scale, 1))


def _draw_cells(figure: "Figure", axes: "Axes", found: Partition) -> None:
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    colours = LinearSegmentedColormap.from_list("samples", ["#bfdcec", "#56a3d0", COLOURS[0], "#002f4d"])
    shown = np.ma.masked_equal(found.counts.T, 0)
    # A square root, like the width of a dot; otherwise a few large counts make all others look alike.
    norm = PowerNorm(0.5, vmin=1, vmax=max(float(found.counts.max()), 2.0))
    image = axes.imshow(shown, aspect="auto", cmap=colours, norm=norm, interpolation="nearest", zorder=3)
    axes.set_facecolor("#f5f6f7")
    axes.grid(False)
    axes.set_yticks(np.arange(1, len(found.groups)) - 0.5, minor=True)
    axes.grid(True, axis="y", which="minor", color="white", linewidth=1.2, zorder=4)
    bar = figure.colorbar(image, ax=axes, pad=0.015, fraction=0.05, aspect=22)
    bar.outline.set_visible(False)
    bar.set_label("samples")
    most = int(found.counts.max())
    bar.set_ticks(sorted({1, _rounded(most / 10), _rounded(most / 3), most}) if most > 3 else range(1, most + 1))
    bar.ax.minorticks_off()


def _label(axes: "Axes", found: Partition) -> None:
    names = [short(name, _LETTERS) for name in found.groups]
    every = -(-len(names) // _LABELS)
    axes.set_yticks(range(0, len(names), every), names[::every])
    for entry in axes.get_yticklabels():
        entry.set_parse_math(False)  # a dollar sign in a name is a dollar sign
    axes.set(xlim=(-0.7, found.n - 0.3), ylim=(len(names) - 0.4, -0.6))
    if found.n <= 20:
        axes.set_xticks(range(found.n))
    else:
        axes.locator_params(axis="x", nbins=10, integer=True, steps=[1, 2, 5, 10])
    axes.set_xlabel("node")
    axes.set_ylabel("target" if found.classes is None else "class", color=INK)
    axes.tick_params(which="both", length=0)
