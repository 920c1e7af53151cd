"""Graphs and data that lie in files: time to build, to open and per update, and memory beside the files.

    python benchmarks/large.py            # 10⁸ and 3·10⁷ nodes: 6 GB of disk in a temporary folder, which it removes
    python benchmarks/large.py --small    # a hundredth of that, for a trial
    python benchmarks/large.py --folder /data

Each stage runs in a process of its own, and its memory is the peak of RssAnon in /proc/self/status, sampled every
10 ms: pages that belong to the process alone. Pages of mapped files are not among them: all processes share those, and
the system takes them back when it needs room. "Cold" are times after the system was asked to drop the files from its
page cache.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import freewalk as fw

DIM, WALKS, SEED = 4, 256, 1
GRAPHS: dict[str, tuple[int, Callable[[int], fw.graphs.Graph]]] = {
    "ring": (10**8, fw.graphs.ring),
    "Watts–Strogatz": (3 * 10**7, lambda n: fw.graphs.watts_strogatz(n, 4, 0.1, seed=SEED)),
}


def anonymous() -> float:
    """Gigabytes that belong to this process alone."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("RssAnon"))


class Peak:
    """The most anonymous memory that was seen while something ran."""

    def __init__(self) -> None:
        self.highest, self.over = 0.0, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self.over.wait(0.01):
            self.highest = max(self.highest, anonymous())

    def __enter__(self) -> "Peak":
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()
        self.highest = max(self.highest, anonymous())


def drop(*paths: Path) -> None:
    """Ask the system to forget what it has read of some files."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        os.fdatasync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    result = function()
    return result, time.perf_counter() - begin


def build(name: str, n: int, graph_file: Path, data_file: Path) -> dict[str, float]:
    """Make both files."""
    graph, made = timed(partial(GRAPHS[name][1], n))
    _, saved = timed(partial(graph.save, graph_file))
    del graph
    _, drawn = timed(lambda: fw.objectives.LeastSquares.synthetic(n, DIM, seed=SEED, path=data_file))
    sizes = {"graph file, GB": graph_file.stat().st_size / 1e9, "data file, GB": data_file.stat().st_size / 1e9}
    return {"make the graph, s": made, "save it, s": saved, "draw the data, s": drawn, **sizes}


def open_files(name: str, n: int, graph_file: Path, data_file: Path) -> dict[str, float]:
    """Open both files, with checksums from the disk and from the page cache, and without."""
    drop(graph_file, data_file)
    _, cold = timed(lambda: (fw.graphs.read(graph_file), fw.objectives.read(data_file)))
    _, warm = timed(lambda: (fw.graphs.read(graph_file), fw.objectives.read(data_file)))
    _, bare = timed(lambda: (fw.graphs.read(graph_file, verify=False), fw.objectives.read(data_file, verify=False)))
    return {"open and verify, cold, s": cold, "open and verify, warm, s": warm, "open without verifying, s": bare}


def run(name: str, n: int, graph_file: Path, data_file: Path, steps: int) -> dict[str, float]:
    """Learn on the mapped files: how long it takes to get ready, and then per update, told by the progress."""
    graph, problem = fw.graphs.read(graph_file, verify=False), fw.objectives.read(data_file, verify=False)
    kernel, compiled = timed(lambda: fw.designs.Metropolis().kernel(graph))
    _, best = timed(problem.optimum)
    told: list[tuple[int, float]] = []

    def progress(step: int, steps: int) -> None:
        told.append((step, time.perf_counter()))

    def learn(length: int) -> tuple[fw.Record, float]:
        told.clear()
        begin, rule = time.perf_counter(), fw.SGD(step=0.01)
        settings: Any = {"steps": length, "walks": WALKS, "every": length, "seed": SEED, "progress": progress}
        return fw.learn(problem, kernel, rule, **settings), told[0][1] - begin

    learn(2)  # compiles
    record, ready = learn(steps)
    first, last = next(mark for mark in told if mark[0] > steps // 50), told[-1]
    counted, loss = int(record.data.visits.sum()), record.data.loss.mean("walk").values
    if counted != WALKS * steps or not loss[-1] < loss[0]:
        raise SystemExit(f"{name}: {counted} visits, loss from {loss[0]} to {loss[-1]}")
    per_update = 1e9 * (last[1] - first[1]) / (WALKS * (last[0] - first[0]))
    return {"kernel, s": compiled, "optimum, s": best, "get ready, s": ready, "ns per update": per_update}


def stage(arguments: list[str]) -> None:
    what, name, n, graph_file, data_file, *rest = arguments
    functions: dict[str, Callable[..., dict[str, float]]] = {"build": build, "open": open_files, "run": run}
    with Peak() as peak:
        found = functions[what](name, int(n), Path(graph_file), Path(data_file), *map(int, rest))
    print(json.dumps(found | {f"anonymous memory to {what}, GB": peak.highest}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a hundredth of the nodes")
    parser.add_argument("--folder", type=Path, default=None, help="where the temporary folder is made")
    parser.add_argument("--only", choices=list(GRAPHS), help="one of the graphs")
    options = parser.parse_args()
    columns: dict[str, dict[str, float]] = {}
    for name, (largest, _) in GRAPHS.items():
        if options.only not in (None, name):
            continue
        n = largest // 100 if options.small else largest
        steps = 20_000 if options.small else 100_000
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            files = [str(n), f"{folder}/walked.graph", f"{folder}/learned.data"]
            columns[name] = {"nodes": n}
            for what in ("build", "open", "run"):
                command = [sys.executable, __file__, "--stage", what, name, *files]
                command += [str(steps)] if what == "run" else []
                said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                columns[name] |= json.loads(said)
                print(name, said.strip(), file=sys.stderr, flush=True)
    print(f"| d = {DIM}, uniform target, {WALKS} walks | {' | '.join(columns)} |")
    print(f"|{' --- |' * (1 + len(columns))}")
    for row in next(iter(columns.values())):
        cells = (f"{column[row]:,.0f}" if row == "nodes" else f"{column[row]:.3g}" for column in columns.values())
        print(f"| {row} | {' | '.join(cells)} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stage"]:
        stage(sys.argv[2:])
    else:
        main()
