"""Updates per second of freewalk and of others, in one run: python benchmarks/speed.py [--quick] [--out DIR]

MHLJ (.1, .5, 3), n = 1000, d = 10, unless a row says otherwise. Machines are noisy: contestants take turns, each figure
is the best of several, and ratios within one run are what to compare. Everyone must end at the loss that all reach, or
the run stops. Writes speed.json and speed.png.

Peers are optional, and what is not installed is reported as not measured: pip install jax tvopt gossipy-dfl (which
brings torch).
"""

import argparse
import json
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from chart import draw, times
from contestants import everyone
from contestants.contestant import ALL_CORES
from timing import Result, machine, take_turns

RATIOS = {
    "Watts–Strogatz / ring": ("freewalk, Watts–Strogatz, float64", "freewalk, ring, float64"),
    "Watts–Strogatz / ring, float32": ("freewalk, Watts–Strogatz, float32", "freewalk, ring, float32"),
    "float32 / float64": ("freewalk, ring, float32", "freewalk, ring, float64"),
    "logistic / least squares": ("freewalk, ring, logistic", "freewalk, ring, float64"),
    "d = 64 / d = 10": ("freewalk, ring, d = 64", "freewalk, ring, float64"),
    "walk only / learn": ("freewalk, ring, walk only", "freewalk, ring, float64"),
    "freewalk / numba loop": ("freewalk, ring, float64", "numba loop, ring, float64"),
    "freewalk / JAX": ("freewalk, ring, float64", "JAX scan + vmap, ring, float64"),
}
PACKAGES = ("freewalk", "numpy", "numba", "jax", "torch", "gossipy-dfl", "tvopt", "numba-cuda")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="fewer walks and rounds: a look, not a figure to quote")
    options.add_argument("--rounds", type=int, help="how often each one is timed")
    options.add_argument("--only", help="measure only names that contain this (and the NumPy loops)")
    options.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="where the files go")
    chosen = options.parse_args()
    walks, steps = (256, 20_000) if chosen.quick else (1024, 20_000)
    rounds = chosen.rounds or (2 if chosen.quick else 7)

    reasons, results = {}, {}
    for contestant in everyone(walks, steps):
        if chosen.only and chosen.only not in contestant.name and not contestant.name.startswith("NumPy loop"):
            continue
        reasons[contestant.name] = contestant.available()
        if reasons[contestant.name] is None:
            results[contestant.name] = Result(contestant)
    print(f"{ALL_CORES} cores; {walks} walks × {steps:,} updates; best of {rounds} rounds", flush=True)
    began = time.perf_counter()
    for result in results.values():
        result.warm_up()
    take_turns(results.values(), rounds)

    rows = [row_of(name, reason, results) for name, reason in reasons.items()]
    ratios = {
        label: results[above].rate / results[below].rate
        for label, (above, below) in RATIOS.items()
        if above in results and below in results
    }
    show(rows, ratios)
    chosen.out.mkdir(parents=True, exist_ok=True)
    written = {
        "machine": machine(),
        "packages": {name: found for name in PACKAGES if (found := installed(name))},
        "walks": walks,
        "steps": steps,
        "rounds": rounds,
        "rows": rows,
        "ratios": ratios,
    }
    (chosen.out / "speed.json").write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")
    draw(rows, chosen.out / "speed.png", f"Updates a second, best of {rounds} rounds in one run on {ALL_CORES} cores")
    print(f"\n{time.perf_counter() - began:.0f} s; wrote {chosen.out / 'speed.json'} and {chosen.out / 'speed.png'}")


def row_of(name: str, reason: str | None, results: dict[str, Result]) -> dict[str, Any]:
    """One row of the table; a figure is in it only if it was measured."""
    if reason is not None:
        return {"name": name, "not measured": reason}
    result = results[name]
    contestant, task = result.contestant, result.contestant.task()
    row = {
        "name": name,
        "does": contestant.does,
        "rate": result.rate,
        "ratio": result.rate / results[f"NumPy loop, {contestant.loop}"].rate,
        "rates": result.rates,
    }
    if contestant.cores:
        row |= {"cores": contestant.cores, "nanoseconds": contestant.cores / result.rate * 1e9}
    if contestant.learns:
        row |= {"measure": task.measure, "reached": result.value, "expected": [task.least, task.most]}
    return row


def show(rows: list[dict[str, Any]], ratios: dict[str, float]) -> None:
    """Print the table."""
    width = max(len(row["name"]) for row in rows if "rate" in row)
    print(f"\n{'':{width}}  million/s  ns × core   × loop   reached")
    for row in rows:
        if "not measured" in row:
            continue
        cost = f"{row['nanoseconds']:9,.1f}" if "nanoseconds" in row else f"{'':9}"
        reached = f"{row['measure']} {row['reached']:.4f}" if "reached" in row else ""
        figures = f"{row['rate'] / 1e6:9,.4g}  {cost}  {times(row['ratio']):>7}"
        print(f"{row['name']:{width}}  {figures}   {reached:11}  {row['does']}".rstrip())
    print("\n× loop: to the NumPy loop on that kind of graph, with n = 1000 and d = 10")
    for reason in dict.fromkeys(row["not measured"] for row in rows if "not measured" in row):
        names = [row["name"] for row in rows if row.get("not measured") == reason]
        print(f"not measured: {reason}")
        print("\n".join(f"    {name}" for name in names))
    print()
    for label, ratio in ratios.items():
        print(f"{label:{width}}  {ratio:9.3g}")


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
