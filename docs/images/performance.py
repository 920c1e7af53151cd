"""Draw the figures of docs/explanation/performance.md and write its tables: python docs/images/performance.py

Reads docs/images/performance/growth.json, which `python benchmarks/growth.py --out docs/images/performance` writes.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib
import writing
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from freewalk.report.figures import COLOURS, STYLE, new_figure, save

HERE = Path(__file__).parent / "performance"
PAGE = Path(__file__).parents[1] / "explanation" / "performance.md"
AXES = {
    "nodes": "nodes n",
    "coordinates": "coordinates d",
    "degree": "mean degree",
    "walks": "walks",
    "samples": "samples per node",
    "checkpoints": "checkpoints in 4000 steps",
}
LINES = {"degree": "ring, Watts–Strogatz, complete"}  # kinds of graphs that make one line
Rows = list[dict[str, Any]]


def lines(rows: Rows, curve: str) -> dict[str, Rows]:
    """The points of a curve, line by line."""
    found: dict[str, Rows] = {}
    for row in rows:
        if row["curve"] == curve:
            found.setdefault(LINES.get(curve, row["line"]), []).append(row)
    return {line: sorted(points, key=lambda row: row["x"]) for line, points in found.items()}


def number(x: float) -> str:
    """Three digits, and no more zeros than that takes."""
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def whole(x: int) -> str:
    power = len(str(x)) - 1
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(power)) if x == 10**power and power > 3 else str(x)


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])


def size(of: int) -> str:
    for unit, name in ((2**30, "GB"), (2**20, "MB"), (2**10, "kB")):
        if of >= unit:
            return f"{of // unit} {name}"
    return f"{of} B"


def draw(rows: Rows, curve: str) -> None:
    """Measured points, and the lower bound of the model, dashed."""
    figure = new_figure(6.4, 3.7)
    axes = figure.subplots()
    for colour, (line, points) in zip(COLOURS, lines(rows, curve).items()):
        x = [row["x"] for row in points]
        axes.plot(x, [row["nanoseconds"] for row in points], color=colour, marker="o", markersize=4.5, label=line)
        limit = [row["limit"] for row in points]
        axes.plot(x, limit, color=colour, linewidth=1.2, linestyle=(0, (3, 2)))
    axes.plot([], [], color="#666666", linewidth=1.2, linestyle=(0, (3, 2)), label="lower bound (model)")
    axes.set_xscale("log", base=10 if curve in ("nodes", "checkpoints") else 2)
    axes.set_yscale("log")
    bottom, top = axes.get_ylim()
    axes.set_ylim(min(bottom, 5), max(top, 50))
    subs = (1.0,) if max(row["nanoseconds"] for row in rows if row["curve"] == curve) > 500 else (1.0, 2.0, 5.0)
    axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    if curve not in ("nodes", "checkpoints"):
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel(AXES[curve])
    axes.set_ylabel("ns per update per core")
    axes.legend()
    save(figure, HERE / f"{curve}.png")


def curve_table(rows: Rows, curve: str) -> str:
    """For each line: the measurement, the lower bound of the model, and its fraction."""
    found = lines(rows, curve)
    places = sorted({row["x"] for points in found.values() for row in points})
    body = []
    for line, points in found.items():
        at = {row["x"]: row for row in points}
        for words, key in ((f"{line}: ns", "nanoseconds"), ("lower bound", "limit"), ("fraction", "fraction")):
            body.append([words, *(cell(at.get(place), key) for place in places)])
    if curve == "nodes":
        for line, points in found.items():
            body.append([f"{line}: nodes touched", *(f"{row['touched']:.0f}" for row in points)])
    return table([AXES[curve], *map(whole, places)], body)


def cell(row: dict[str, Any] | None, key: str) -> str:
    if row is None:
        return ""
    return f"{row[key]:.2f}" if key == "fraction" else number(row[key])


def limits_table(found: dict[str, Any]) -> str:
    """What the machine can do on one core."""
    rates = [
        ["clock", f"{found['clock'] / 1e9:.2f} GHz"],
        ["independent integer instructions", f"{found['issue'] / 1e9:.1f} billion/s"],
        ["multiply-adds, float64", f"{found['fused']['float64'] / 1e9:.1f} billion/s"],
        ["multiply-adds, float32", f"{found['fused']['float32'] / 1e9:.1f} billion/s"],
    ]
    read, update, line = (
        {int(key): value for key, value in found[name].items()} for name in ("read", "update", "line")
    )
    places = [2**14, 2**19, 2**23, 2**28]
    streams = [
        ["read, GB/s", *(f"{read[place] / 1e9:.0f}" for place in places)],
        ["read and written back, GB/s", *(f"{update[place] / 1e9:.0f}" for place in places)],
    ]
    sizes = [2**15, 2**19, 2**22, 2**24, 2**26, 2**28, 2**30]
    random = [["one random cache line, ns", *(f"{line[place] * 1e9:.2f}" for place in sizes)]]
    return "\n\n".join(
        [
            table(["one core", ""], rates),
            table(["sequential access to an array of", *map(size, places)], streams),
            table(["random access to a table of", *map(size, sizes)], random),
        ]
    )


def memory_table(rows: Rows) -> str:
    """Where the peak of memory of the largest graphs is reached."""
    body = []
    for row in rows:
        if "peaks" in row:
            peaks = [f"{row['peaks'][stage] / 1e9:.2f}" for stage in ("graph", "data", "kernel", "learned")]
            body.append([row["line"], *peaks, f"{row['ratio']:.1f}", f"{row['ready']:.1f}"])
    head = [
        "n = 10⁷, d = 10",
        "graph, GB",
        "data",
        "kernel",
        "`fw.learn`",
        "time per update / that at n = 1000",
        "set-up, s",
    ]
    return table(head, body)


def parts_table(rows: Rows) -> str:
    """What the limit is made of, at some points."""
    names = ["walk issue", "walk memory", "learn issue", "learn arithmetic", "learn memory"]
    chosen = [row for row in rows if row["curve"] == "coordinates" and row["x"] in (8, 64, 512, 4096)]
    chosen = [row for row in chosen if row["line"] == "float64"]
    chosen += [row for row in rows if row["curve"] == "nodes" and row["x"] in (10**3, 10**5, 10**7)]
    body = []
    for row in chosen:
        what = f"d = {row['dim']}" if row["curve"] == "coordinates" else f"{row['line']}, n = {whole(row['n'])}"
        hardware = row["parts"]["limit of memory and arithmetic"] / row["nanoseconds"]
        figures = [number(row["parts"][name]) for name in names]
        body.append(
            [
                what,
                *figures,
                number(row["limit"]),
                number(row["nanoseconds"]),
                f"{row['fraction']:.2f}",
                f"{hardware:.2f}",
            ]
        )
    head = ["ns per update", *names, "lower bound", "measured", "fraction", "memory and arithmetic"]
    return table(head, body)


def main() -> None:
    found = json.loads((HERE / "growth.json").read_text(encoding="utf-8"))
    rows = found["rows"]
    tables = {
        "limits": limits_table(found["limits"]),
        "parts": parts_table(rows),
        "memory": memory_table(rows),
        **{curve: curve_table(rows, curve) for curve in AXES},
    }
    with matplotlib.rc_context(STYLE):
        for curve in AXES:
            draw(rows, curve)
    writing.fill(PAGE, tables)
    print(f"{found['machine']}, {found['versions']}: wrote {len(AXES)} figures and {len(tables)} tables")


if __name__ == "__main__":
    main()
