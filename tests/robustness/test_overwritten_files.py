"""Mapped files that another process writes to, and paths that lead to no file: neither a crash nor a wait."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import freewalk as fw
from freewalk.data.files import read_samples
from freewalk.peers.network import config
from freewalk.specs import load, shipped

SECONDS = 20.0  # for what takes milliseconds unless it waits for ever


def soon(call: Callable[[], Any]) -> Any:
    """What a call returns or raises, in a thread that nobody waits for if it is not done in time."""
    outcome: Future[Any] = Future()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=work, daemon=True).start()
    return outcome.result(SECONDS)


BEGIN = """
import sys
import numpy as np
import freewalk as fw

def overwrite(name, value):
    source = getattr(graph, name).source
    with open(source.path, "r+b") as file:  # in place, as another process would
        file.seek(source.offset)
        file.write(np.full(source.shape, value, dtype=source.dtype).tobytes())

graph = fw.graphs.watts_strogatz(2000, 6, 0.2, seed=1)
graph = fw.graphs.read(graph.save(sys.argv[1]))
problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
run = {"steps": 200_000, "walks": 32, "every": 1000, "start": 0, "runtime": "cpu"}
"""
WALK = "fw.walk(kernel, **run, progress=lambda step, steps: overwrite('indices', 2**31 - 1))"
LEARN = "fw.learn(problem, kernel, fw.SGD(1e-3), **run, progress=lambda step, steps: overwrite('indices', -1))"


@pytest.mark.quick("corrected")
@pytest.mark.parametrize(
    ("design", "call"),
    [
        ("fw.designs.Metropolis(power=1)", WALK),
        ("fw.designs.MHLJ(0.5, 0.3, 6, corrected=True)", WALK),
        ("fw.designs.MHLJ(0.9, 0.5, 3)", LEARN),
    ],
    ids=["near", "corrected", "learnt"],
)
def test_a_walk_stays_within_a_mapped_graph_that_is_overwritten(tmp_path: Path, design: str, call: str) -> None:
    kernel = f"kernel = {design}.kernel(graph, problem.smoothness)"
    program = textwrap.dedent(f"{BEGIN}\n{kernel}\nrecord = {call}\nprint(int(record.data.visits.sum()))\n")
    command = [sys.executable, "-c", program, str(tmp_path / "g")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 32 * 200_000


@pytest.mark.parametrize("runtime", ["cpu", "reference"])
@pytest.mark.parametrize(("name", "value"), [("indices", 2**31 - 1), ("indices", -1), ("indptr", 2**40)])
def test_a_graph_that_was_overwritten_before_a_run_is_refused(
    tmp_path: Path, name: str, value: int, runtime: str
) -> None:
    graph = fw.graphs.read(fw.graphs.ring(100).save(tmp_path / "ring.graph"))
    kernel = fw.designs.SimpleWalk().kernel(graph)
    source = getattr(graph, name).source
    with open(source.path, "r+b") as file:
        file.seek(source.offset)
        file.write(np.full(source.shape, value, dtype=source.dtype).tobytes())
    with pytest.raises(fw.errors.GraphError, match=r"ring\(100\): ind"):
        fw.walk(kernel, steps=10, runtime=runtime)


@pytest.mark.parametrize(
    ("read", "suffix"),
    [
        (fw.graphs.read, ""),
        (fw.graphs.read, ".graphml"),
        (fw.load, ".npz"),
        (fw.objectives.read, ""),
        (config.load, ".toml"),
        (lambda path: read_samples(path, target="y"), ".csv"),
        (lambda path: read_samples(path, target="y"), ".npz"),
    ],
)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, read: Any, suffix: str) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    with pytest.raises(fw.FreewalkError, match="a folder, a pipe or a device"):
        soon(lambda: read(tmp_path / f"pipe{suffix}"))


def test_a_spec_comes_through_a_pipe(tmp_path: Path) -> None:
    pipe, text = tmp_path / "pipe.toml", shipped("demo.toml").read_text("utf-8")
    os.mkfifo(pipe)
    Thread(target=pipe.write_text, args=(text, "utf-8"), daemon=True).start()
    spec = soon(lambda: load(pipe))
    assert (spec.text, spec.source, spec.folder) == (text, str(pipe), tmp_path)
