"""The bars of `speed.py`: updates per second, on a logarithmic scale."""

from pathlib import Path
from typing import Any

FAMILIES = {"freewalk cuda": "#7a3b8f", "freewalk": "#1f6f8b", "": "#b0b0b0"}


def draw(rows: list[dict[str, Any]], path: Path, title: str) -> None:
    """Draw what was measured, the first row on top."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    measured = [row for row in rows if "rate" in row][::-1]
    figure, axes = plt.subplots(figsize=(10, 1.2 + 0.3 * len(measured)), layout="constrained")
    colours = [next(c for start, c in FAMILIES.items() if row["name"].startswith(start)) for row in measured]
    rates = [row["rate"] for row in measured]
    axes.barh([row["name"] for row in measured], rates, color=colours, height=0.72)
    axes.set_xscale("log")
    lowest = min(rates) / 3
    axes.set_xlim(lowest, max(rates) * 30)
    for position, row in enumerate(measured):
        text = f" {in_words(row['rate'])}   {times(row['ratio'])} × the loop"
        axes.text(row["rate"], position, text, va="center", fontsize=8, color="#333333")
    axes.set_xlabel("updates per second")
    axes.set_title(title, loc="left", fontsize=10)
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(y=0.01)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def times(ratio: float) -> str:
    """A ratio without an exponent."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def in_words(rate: float) -> str:
    """A rate with the unit that suits it."""
    for unit, size in (("billion", 1e9), ("million", 1e6), ("thousand", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g} {unit}/s"
    return f"{rate:.3g}/s"
