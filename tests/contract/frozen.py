"""Runs whose results were written down once and may never change: `python tests/contract/frozen.py` writes them again.

Integers are kept as hashes of their bytes, floats as they are. Paths and counts must stay the same to the bit for
ever; floats within 1e-12, and within 1e-5 in single precision.
"""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from catalogue import (
    COUNTS,
    DESIGNS,
    GRAPHS,
    LESSONS,
    LISTED_PROBLEMS,
    PROBLEMS,
    RULES,
    advance,
    begin,
    job_of,
    kernel_of,
    phases_of,
)

import freewalk as fw
from freewalk.designs import MHLJ
from freewalk.runtimes import CPU, Reference

FILE = Path(__file__).with_name("frozen.npz")
MARKS = [1, 7, 20, 33, 60]
RUNTIMES = {"reference": Reference(), "cpu": CPU(threads=2)}


def run(job, runtime, walks, steps, initial=0.0):
    """The counts of a run as the hash of their bytes, and all its floats as one vector."""
    engine = RUNTIMES[runtime].engine(job)
    state = begin(job, walks, steps, initial)
    marks = [mark for mark in MARKS if mark <= steps]
    measures = advance(engine, state, [*marks[1:3], steps], marks)
    counts = [getattr(state, name) for name in COUNTS] + [measures["messages"], measures["probes"]]
    digest = hashlib.sha256()
    for array in counts:
        digest.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
    floats = [
        state.models,
        state.carried,
        *(measures[name] for name in ("loss", "distance", "mse") if name in measures),
    ]
    vector = np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in floats if part.size] or [[]])
    return digest.hexdigest(), vector


def cases() -> dict[str, Callable[[], tuple[str, np.ndarray]]]:
    """Every run by its name."""
    found = {}
    for design in DESIGNS:
        for graph in GRAPHS:
            kernel = kernel_of(design, graph)
            found[f"walk: {design} on {graph}, reference"] = lambda k=kernel: run(job_of(None, k), "reference", 9, 20)
            found[f"walk: {design} on {graph}, cpu"] = lambda k=kernel: run(job_of(None, k, seed=8), "cpu", 40, 60)
        kernel = kernel_of(design, "random")
        for runtime in RUNTIMES:
            job = job_of(PROBLEMS["LeastSquares"], kernel, fw.SGD(step=1e-3))
            found[f"learn: {design}, {runtime}"] = lambda j=job, r=runtime: run(j, r, 3, 33, 1.5)
    for problem, rule in LESSONS:
        kernel = MHLJ(0.3, 0.5, 3).kernel(GRAPHS["random"], PROBLEMS[problem].smoothness)
        for runtime, seed, precision in (
            ("reference", 3, "float64"),
            ("cpu", 3, "float64"),
            ("cpu", 4, "float64"),
            ("cpu", 3, "float32"),
        ):
            job = job_of(PROBLEMS[problem], kernel, RULES[rule], seed, precision)
            name = f"learn: {problem} by {rule}, {runtime}, seed {seed}, {precision}"
            found[name] = lambda j=job, r=runtime: run(
                j, r, 3 if r == "reference" else 17, 20 if r == "reference" else 60
            )
    for problem in LISTED_PROBLEMS:
        for runtime in RUNTIMES:
            job = job_of(PROBLEMS[problem], phases_of(("MHLJ", "Decaying", "SimpleWalk")))
            found[f"phases: {problem}, {runtime}"] = lambda j=job, r=runtime: run(j, r, 3, 33)
    return found


def main() -> None:
    names, digests, vectors = [], [], []
    for name, case in cases().items():
        digest, vector = case()
        names.append(name)
        digests.append(digest)
        vectors.append(vector)
    np.savez_compressed(
        FILE,
        names=np.array(names),
        digests=np.array(digests),
        ends=np.cumsum([vector.size for vector in vectors]),
        floats=np.concatenate(vectors),
    )
    print(f"{len(names)} runs, {FILE.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
