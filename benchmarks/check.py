"""Has something become slower? python benchmarks/check.py [--update]

Measures ratios in one run of less than a minute and compares them with baseline.json: absolute speed is the machine's,
ratios are ours. A ratio also falls when what it is divided by became faster: then look at the others, and renew the
baseline.
"""

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

from contestants.contestant import ALL_CORES, Contestant
from contestants.freewalk_cpu import Learn, Walk
from contestants.numpy_loop import NumpyLoop
from contestants.task import least_squares, logistic
from timing import Result, machine, take_turns

BASELINE = Path(__file__).parent / "baseline.json"
ALLOWED = 0.7  # of the baseline: less is a loss
WALKS, STEPS = 512, 20_000
SINGLE_STEPS = 1_000_000
ROUNDS, ATTEMPTS = 6, 3

RATIOS = {
    "learn / NumPy loop": ("learn", "loop"),
    "one walk / NumPy loop": ("one walk", "loop"),
    "float32 / float64": ("float32", "learn"),
    "Watts–Strogatz / ring": ("Watts–Strogatz", "learn"),
    "logistic / least squares": ("logistic", "learn"),
    "walk only / learn": ("walk only", "learn"),
    "200 checkpoints / 10": ("200 checkpoints", "learn"),
}


def measured() -> dict[str, Contestant]:
    """What is timed, by the names that the ratios use."""
    ring, irregular = partial(least_squares, "ring"), partial(least_squares, "Watts–Strogatz")
    size = (WALKS, STEPS)
    return {
        "loop": NumpyLoop("ring"),
        "learn": Learn("learn", ring, *size),
        "one walk": Learn("one walk", ring, 1, SINGLE_STEPS, checkpoints=100),
        "float32": Learn("float32", ring, *size, precision="float32"),
        "Watts–Strogatz": Learn("Watts–Strogatz", irregular, *size),
        "logistic": Learn("logistic", partial(logistic, "ring"), *size),
        "walk only": Walk("walk only", *size),
        "200 checkpoints": Learn("200 checkpoints", ring, *size, checkpoints=200),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--update", action="store_true", help="write what is measured to baseline.json")
    chosen = options.parse_args()
    if not chosen.update and not BASELINE.exists():
        print(f"{BASELINE} is missing; write it with: python benchmarks/check.py --update")
        return 1
    baseline = {} if chosen.update else json.loads(BASELINE.read_text())["ratios"]

    began = time.perf_counter()
    results = {name: Result(contestant) for name, contestant in measured().items()}
    for result in results.values():
        result.warm_up()
    ratios: dict[str, float] = {}
    for _ in range(1 if chosen.update else ATTEMPTS):  # a moment of noise is no loss: more rounds, the best of all
        take_turns(results.values(), ROUNDS * (2 if chosen.update else 1))
        ratios = {label: results[above].rate / results[below].rate for label, (above, below) in RATIOS.items()}
        lost = [label for label in baseline if ratios.get(label, 0.0) < ALLOWED * baseline[label]]
        if not lost:
            break

    print(f"{'':26} {'now':>8} {'baseline':>9} {'of it':>7}")
    for label, ratio in ratios.items():
        before = baseline.get(label)
        compared = f"{before:9.3g} {ratio / before:7.0%}" if before else f"{'none':>9}"
        print(f"{label:26} {ratio:8.3g} {compared}{'  LOST' if label in lost else ''}")
    print(f"{time.perf_counter() - began:.0f} s, {ALL_CORES} cores")
    if chosen.update:
        content = {"machine": machine(), "ratios": {label: float(f"{ratio:.4g}") for label, ratio in ratios.items()}}
        BASELINE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        print(f"wrote {BASELINE}")
    if lost:
        print(f"lost: {', '.join(lost)} (below {ALLOWED:.0%} of the baseline). If what it is divided by became faster,")
        print("or the machine is of another kind: python benchmarks/check.py --update")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
