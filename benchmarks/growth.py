"""How the cost of an update grows: python benchmarks/growth.py [--quick] [--only CURVE] [--out DIR]

Nanoseconds per update per core against nodes, coordinates, degree, walks, samples per node and checkpoints,
each beside the least that a simple model of the machine allows (`limit_of`, from what `limits.py` measures in the same
run). Measured through the public API: MHLJ (.1, .5, 3), ten checkpoints, one thread, unless a point says otherwise. All
points take turns and each figure is the best of several, in processor time, since others may use the machine. What is
done once per run (laying out the data, compiling) does not count: time runs from an early call of `progress` to the
last one. Writes growth.json, which docs/images/performance.py draws.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import limits
import numpy as np
from timing import machine

import freewalk as fw
from freewalk.run.record import versions

DESIGN = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3)
LARGEST = 10**7

# Instructions, counted in the assembly that numba writes for a processor with AVX-512 (`inspect_asm` of the functions
# in the compiled modules, after a first run with an empty FREEWALK_CACHE).
DRAWS = 62 / 8  # the loop of `draw_block`: 62 for eight pairs of words
SIFTED = 42 / 8  # the loop that lists the steps that need more words: 42 for eight lanes
NEAR = 63 / 4 + 59 / 8 + 16 / 8  # `walk_block`: its lanes draw an edge (63 for four), read it, and take it or stay
FAR = 0.043 * 140  # a longer move, which 4.3 % of the steps are
COUNTED = 24 / 8  # a visit, in `walk_stretch`
LEARN_SHORT = 28  # `learn_block` up to 32 coordinates, beside those a vector: 42 in all at d = 10
LEARN_LONG = 111  # the same beyond
LEARN_ALL = 100  # a whole batch: around the loop over the samples
SAMPLE = 12  # and in it, a sample
DRAW_ONE = 150 + 47  # a word that is drawn alone for a local sample, and what surrounds the call
DOT, STEP = 3, 5  # a vector of 32 bytes in the product, a vector of 64 bytes in the update

TEAM, GROUP, SLAB = 128, 16, 512  # walks that move together, walks that learn together, and for how many steps


@dataclass(frozen=True)
class Point:
    """What is measured at one place of a curve."""

    curve: str
    line: str
    x: int
    kind: str = "ring"
    n: int = 1000
    degree: int = 2
    dim: int = 10
    precision: str = "float64"
    walks: int = 1024
    steps: int = 16_384
    samples: int = 1
    sampled: bool = False
    threads: int = 1
    checkpoints: int = 10
    loss: str = "least squares"


@dataclass
class Measured:
    """A point, its times, and the parts of its limit."""

    point: Point
    nanoseconds: list[float] = field(default_factory=list)  # of a processor, an update
    ready: list[float] = field(default_factory=list)  # seconds until the first step is done

    def run(self) -> None:
        taken, ready = run(self.point)
        self.nanoseconds.append(taken)
        self.ready.append(ready)

    def row(self, machine_limits: dict[str, Any]) -> dict[str, Any]:
        """What is written down."""
        parts = limit_of(self.point, machine_limits)
        taken = min(self.nanoseconds)
        return {
            **asdict(self.point),
            "nanoseconds": taken,
            "all": self.nanoseconds,
            "ready": min(self.ready),
            "touched": touched(self.point),
            "parts": parts,
            "limit": parts["limit"],
            "fraction": parts["limit"] / taken,
        }


def curves(quick: bool) -> list[Point]:
    """All points but the largest graphs."""
    points = []
    for n in (10**3, 10**4, 10**5, 10**6):
        points.append(Point("nodes", "ring", n, n=n))
        points.append(Point("nodes", "Watts–Strogatz", n, "Watts–Strogatz", n=n, degree=4))
    for dim in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
        for precision in ("float64", "float32"):
            walks = 256 if dim < 512 else 64
            steps = int(3.5e8 / (8 + 0.04 * dim * np.dtype(precision).itemsize) / walks)
            wide = Point("coordinates", precision, dim, dim=dim, precision=precision, walks=walks, steps=steps)
            points.append(replace(wide, checkpoints=1))
    points += [Point("degree", "ring", 2)]
    for degree in (4, 8, 16, 32, 64):
        points.append(Point("degree", "Watts–Strogatz", degree, "Watts–Strogatz", degree=degree))
    points.append(Point("degree", "complete", 999, "complete", degree=999))
    for walks in (1, 4, 16, 64, 256, 1024, 4096):
        points.append(Point("walks", "ring", walks, walks=walks, steps=max(4096, min(2**20, 2**23 // walks))))
    for samples in (1, 2, 4, 8, 16, 32, 64):
        points.append(
            Point("samples", "whole batch", samples, samples=samples, walks=256, steps=max(2048, 40_000 // samples))
        )
        if samples > 1:
            points.append(
                Point("samples", "one drawn", samples, samples=samples, sampled=True, walks=256, steps=20_000)
            )
    for checkpoints in (4, 10, 100, 1000, 4000):
        points.append(
            Point("checkpoints", "least squares", checkpoints, checkpoints=checkpoints, walks=512, steps=4000)
        )
    for checkpoints in (4, 10, 100, 400):
        few = Point("checkpoints", "logistic", checkpoints, checkpoints=checkpoints, walks=64, steps=4000)
        points.append(replace(few, loss="logistic"))
    return [point for point in points if not quick or point.n <= 10**5]


@cache
def graph_of(kind: str, n: int, degree: int) -> fw.Graph:
    makers: dict[str, Callable[[], fw.Graph]] = {
        "ring": partial(fw.graphs.ring, n),
        "complete": partial(fw.graphs.complete, n),
        "Watts–Strogatz": partial(fw.graphs.watts_strogatz, n, degree, 0.1, seed=1),
    }
    return makers[kind]()


@cache
def problem_of(n: int, dim: int, samples: int, loss: str) -> Any:
    if loss == "logistic":
        return fw.objectives.Logistic.synthetic(n, dim=dim, heavy=2, distance=10, ridge=1e-3, seed=1)
    return fw.objectives.LeastSquares.synthetic(n, dim=dim, heavy=2, samples=samples, seed=1)


@cache
def kernel_of(kind: str, n: int, degree: int, dim: int, samples: int, loss: str) -> fw.Kernel:
    return DESIGN.kernel(graph_of(kind, n, degree), problem_of(n, dim, samples, loss).smoothness)


def run(point: Point) -> tuple[float, float]:
    """Nanoseconds of a processor per update, and seconds until the first step was done."""
    problem = problem_of(point.n, point.dim, point.samples, point.loss)
    kernel = kernel_of(point.kind, point.n, point.degree, point.dim, point.samples, point.loss)
    calls: list[tuple[int, float]] = []
    ready: list[float] = []
    began = time.perf_counter()

    def look(step: int, steps: int) -> None:
        calls.append((step, time.process_time()))
        ready.append(time.perf_counter() - began)

    fw.learn(
        problem,
        kernel,
        fw.SGD(step=0.01 / point.dim, sampled=point.sampled),
        steps=point.steps,
        walks=point.walks,
        every=point.steps // point.checkpoints,
        seed=7,
        precision=point.precision,
        runtime=fw.runtimes.CPU(threads=point.threads),
        progress=look,
    )
    if point.checkpoints == 1 and len(calls) > 2:  # the measurement at the last step is not to count, nor its chunk
        calls.pop()
    early = next((call for call in calls[:-1] if call[0] >= point.steps // 50), calls[0])
    updates = (calls[-1][0] - early[0]) * point.walks
    return (calls[-1][1] - early[1]) / updates * 1e9, ready[0]


# The model.


def lines_of(places: np.ndarray, size: int) -> float:
    """How many lines entries of `size` bytes at these places of an array lie in."""
    if size >= limits.LINE:
        return places.size * size / limits.LINE
    return float(np.unique(places * size // limits.LINE).size)


@cache
def probe(kind: str, n: int, degree: int, dim: int, samples: int, loss: str, walks: int) -> np.ndarray:
    """The nodes that some walks touch in a slab: from a run."""
    kernel = kernel_of(kind, n, degree, dim, samples, loss)
    record = fw.walk(kernel, steps=SLAB, walks=walks, every=SLAB, seed=7, runtime=fw.runtimes.CPU(threads=1))
    return np.unique(np.flatnonzero(record.data.visits.values.ravel()) % n)


def touched(point: Point) -> float:
    """How many nodes a walk touches in a slab."""
    return probe(point.kind, point.n, point.degree, point.dim, point.samples, point.loss, GROUP).size / GROUP


def by_size(curve: dict[Any, float], size: float) -> float:
    """A measured quantity between the sizes at which it was measured."""
    sizes = np.log([int(key) for key in curve])
    return float(np.exp(np.interp(np.log(max(size, 1.0)), sizes, np.log(list(curve.values())))))


def limit_of(point: Point, found: dict[str, Any]) -> dict[str, Any]:
    """The least time of an update by the model, in nanoseconds, and what it is made of.

    The two halves come one after the other; each takes as long as the longest of its parts: instructions against the
    issue rate, multiply-adds against their peak, bytes and lines against the memory that they lie in.
    """
    size = np.dtype(point.precision).itemsize
    where = point.kind, point.n, point.degree, point.dim, point.samples, point.loss
    team, nodes = probe(*where, min(TEAM, point.walks)), probe(*where, min(GROUP, point.walks))
    group = min(GROUP, point.walks)
    rows = 1 if point.sampled else point.samples  # that one update reads
    row, width = point.dim * size, point.samples * point.dim * size
    edges = point.n * point.degree

    def line(of: float) -> float:
        return by_size(found["line"], of)

    def read(of: float) -> float:
        return by_size(found["read"], of)

    def update(of: float) -> float:
        return by_size(found["update"], of)

    # Walking: a span, an edge with its limit, and a count of visits. Lines that the team has not touched in this slab
    # come from where the whole tables lie, the others from where those of the slab do.
    visits = SLAB * min(TEAM, point.walks)
    touched_edges = team.size * point.degree * 8 / limits.LINE
    drawn = touched_edges * (1 - np.exp(-visits / touched_edges))
    walked = lines_of(team, 8) + lines_of(team, 2) + drawn
    tables = point.n * (8 + 8 + 2 + point.samples * size + width) + edges * 8
    new = min(3.0, walked / visits)
    walk_memory = new * line(tables) + (3 - new) * line(walked * limits.LINE)
    walk_issue = (DRAWS + SIFTED + NEAR + FAR + COUNTED) / found["issue"]

    # Learning: weight and target; each row from memory once and from the first cache a second time, the model twice,
    # once to be changed.
    visits = SLAB * group
    small = lines_of(nodes, 8) + lines_of(nodes, point.samples * size)
    new = min(2.0, small / visits)
    learn_memory = new * line(tables) + (2 - new) * line(small * limits.LINE)
    held = nodes.size * width
    share = min(1.0, nodes.size * point.samples / (visits * rows))  # of the rows, those not yet touched
    for part, of in ((share, float(tables)), (1 - share, float(held))):
        if row <= 2 * limits.LINE and rows == 1:
            learn_memory += part * lines_of(nodes, row) / nodes.size * line(of)
        else:
            learn_memory += part * rows * row / read(of)
    learn_memory += rows * row / read(2 * row) + rows * row / read(row * (group + 1)) + row / update(2 * row)
    if rows > 1:
        learn_memory += rows * row / update(3 * row)  # the gradient
    learn_arithmetic = 2 * rows * point.dim / found["fused"][point.precision]
    vectors = DOT * row / 32 + STEP * row / 64
    learn_issue = (LEARN_SHORT if point.dim <= 32 else LEARN_LONG) + vectors
    if rows > 1:
        learn_issue = LEARN_ALL + rows * (SAMPLE + vectors)
    if point.sampled:
        learn_issue += DRAW_ONE
    learn_issue /= found["issue"]

    # Measuring: d² multiply-adds from the expansion at the optimum, or all samples; six numbers are kept.
    often = point.checkpoints / point.steps if point.checkpoints > 1 else 0.0
    expanded = point.loss == "least squares" and point.dim <= point.n * point.samples
    products = point.dim**2 if expanded else point.n * point.samples * point.dim
    measuring = often * (
        max(products / found["fused"]["float64"], products * 8 / read(products * 8)) + 48 / update(2**28)
    )

    walk, learn = max(walk_issue, walk_memory), max(learn_issue, learn_arithmetic, learn_memory)
    parts = {
        "walk issue": walk_issue,
        "walk memory": walk_memory,
        "learn issue": learn_issue,
        "learn arithmetic": learn_arithmetic,
        "learn memory": learn_memory,
        "measuring": measuring,
        "limit": walk + learn + measuring,
        "limit of memory and arithmetic": walk + max(learn_arithmetic, learn_memory) + measuring,
    }
    return {name: value * 1e9 for name, value in parts.items()}


# The largest graphs, each in a process of its own, whose peak of memory can be told.


def peak_of_memory() -> int:
    """Bytes that this process has held at most."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage also counts what the process was before it became this one
        found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(found.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def largest(kind: str, rounds: int) -> None:
    """Measure ten million nodes beside a thousand, and print what was found."""
    degree = 2 if kind == "ring" else 4
    stages = {}

    def stage(name: str) -> None:
        stages[name] = peak_of_memory()

    stage("imported")
    graph_of(kind, LARGEST, degree)
    stage("graph")
    problem_of(LARGEST, 10, 1, "least squares")
    stage("data")
    kernel_of(kind, LARGEST, degree, 10, 1, "least squares")
    stage("kernel")
    large = Measured(Point("nodes", kind, LARGEST, kind, n=LARGEST, degree=degree))
    small = Measured(Point("nodes", kind, 1000, kind, n=1000, degree=degree))
    large.run()
    stage("learned")
    first = large.ready.pop()
    large.nanoseconds.clear()
    for _ in range(rounds):
        large.run()
        small.run()
    for walks in (TEAM, GROUP):
        probe(kind, LARGEST, degree, 10, 1, "least squares", walks)
    found = json.loads(sys.stdin.read())
    row = large.row(found)
    row |= {"peaks": stages, "peak": stages["learned"], "beside 1000": min(small.nanoseconds), "first ready": first}
    row["ratio"] = row["nanoseconds"] / row["beside 1000"]
    print(json.dumps(row, ensure_ascii=False))


def in_a_process(kind: str, rounds: int, found: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--largest", kind, "--rounds", str(rounds)]
    done = subprocess.run(command, input=json.dumps(found), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def show(rows: Iterable[dict[str, Any]]) -> None:
    """Print the table."""
    for row in rows:
        where = f"{row['curve']:12} {row['line']:24} {row['x']:>9,}"
        parts = "  ".join(f"{name} {value:.1f}" for name, value in row["parts"].items() if not name.startswith("limit"))
        print(f"{where} {row['nanoseconds']:9.1f} ns   limit {row['limit']:8.1f}   {row['fraction']:5.2f}   {parts}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--quick", action="store_true", help="small graphs and two rounds: a look, not a figure to quote"
    )
    options.add_argument("--rounds", type=int, help="how often each point is timed")
    options.add_argument("--only", help="one curve: nodes, coordinates, degree, walks, samples or checkpoints")
    options.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="where growth.json goes")
    options.add_argument("--largest", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    rounds = chosen.rounds or (2 if chosen.quick else 6)
    if chosen.largest:
        largest(chosen.largest, rounds)
        return

    began = time.perf_counter()
    found = limits.measure()
    points = [Measured(point) for point in curves(chosen.quick) if chosen.only in (None, point.curve)]
    for measured in points:  # prepares and compiles
        point = measured.point
        run(replace(point, steps=max(point.checkpoints, point.steps // 4)))
    for _ in range(rounds):
        for measured in points:
            measured.run()
    found = limits.best_of(found, limits.measure())  # a machine that was busy before may be free now
    limits.show(found)
    rows = [measured.row(found) for measured in points]
    for cached in (probe, kernel_of, problem_of, graph_of):
        cached.cache_clear()
    if not chosen.quick and chosen.only in (None, "nodes"):
        rows += [in_a_process(kind, rounds, found) for kind in ("ring", "Watts–Strogatz")]
    show(rows)
    chosen.out.mkdir(parents=True, exist_ok=True)
    written = {
        "machine": machine(),
        "versions": versions(),
        "rounds": rounds,
        "seconds": time.perf_counter() - began,
        "limits": found,
        "rows": rows,
    }
    (chosen.out / "growth.json").write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{written['seconds']:.0f} s; wrote {chosen.out / 'growth.json'}")


if __name__ == "__main__":
    main()
