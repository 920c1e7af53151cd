"""Ctrl-C, SIGTERM, checkpoints, goals and errors of a run on Ray: as everywhere."""

import os
import subprocess
import sys

import numpy as np
import pytest

import freewalk as fw
from freewalk.errors import FreewalkError, MissingExtra

pytest.importorskip("ray")
GRAPH = fw.graphs.ring(30)
PROBLEM = fw.objectives.LeastSquares.synthetic(GRAPH.n, dim=3, heavy=2, seed=1)
KERNEL = fw.designs.MHLJ(0.1, 0.5, 3).kernel(GRAPH, PROBLEM.smoothness)
TWO = fw.runtimes.Ray(tasks=2, cpus=1)

SIGNALLED = """
import os, signal, sys, threading
import freewalk as fw
graph = fw.graphs.ring(30)
problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
kernel = fw.designs.MHLJ(0.1, 0.5, 3).kernel(graph, problem.smoothness)
number = signal.Signals[sys.argv[1]]


def stop(step, steps):
    if step > 1000 and timer.ident is None:
        timer.start()


timer = threading.Timer(0.3, lambda: os.killpg(0, number))  # as a terminal does: to Ray's processes too, at any time


options = dict(steps=20_000_000, walks=20, every=1_000_000)
whole = fw.learn(problem, kernel, fw.SGD(1e-3), **options)
part = fw.learn(problem, kernel, fw.SGD(1e-3), runtime="ray", progress=stop, **options)
print("partial", part.partial, part.provenance["interrupted_by"], int(part.data.step[-1]) < 20_000_000)
print("same", fw.resume(part).data.identical(whole.data))
"""


@pytest.mark.long
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_signals_to_the_whole_group(number):
    found = subprocess.run(
        [sys.executable, "-c", SIGNALLED, number],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        start_new_session=True,
    )
    assert f"partial True {number} True" in found.stdout, found.stderr
    assert "same True" in found.stdout


@pytest.mark.long
def test_checkpoints_and_another_runtime(tmp_path, short_chunks):
    """What Ray began, a single machine completes, and the other way round; also from a file."""
    options = {"steps": 600, "walks": 10, "every": 50}
    whole = fw.learn(PROBLEM, KERNEL, fw.SGD(1e-3), **options)

    class Enough(Exception):
        pass

    def stop(step, steps):
        if step > 100:
            raise Enough

    for first, second in ((TWO, "cpu"), ("cpu", TWO), (TWO, None)):
        with pytest.raises(Enough) as caught:
            fw.learn(PROBLEM, KERNEL, fw.SGD(1e-3), runtime=first, progress=stop, **options)
        part = caught.value.record
        assert part.partial
        part.save(tmp_path / "part.npz")
        assert fw.resume(fw.load(tmp_path / "part.npz"), runtime=second).data.identical(whole.data)


def test_goals():
    options = {"steps": 4000, "walks": 10, "every": 50, "start": 0, "goal": {"loss": 2.0}}
    found = [fw.learn(PROBLEM, KERNEL, fw.SGD(3e-3), runtime=runtime, **options) for runtime in ("cpu", TWO)]
    assert found[0].provenance["reached"] == found[1].provenance["reached"]
    assert found[1].data.identical(found[0].data)


STARTED_SLOWLY = """
import gc, sys, warnings
warnings.simplefilter("error")  # also for processes that nobody waits for
from freewalk.runtimes.ray import cluster
ray = cluster.ray_module()
from ray._private import services
real, calls = services.get_node, []


def slow(*address):
    calls.append(address)
    if len(calls) <= int(sys.argv[1]):
        raise OSError("the raylet took too long")
    return real(*address)


services.get_node = slow
print(len(cluster.connect()), "machine")
gc.collect()
"""


@pytest.mark.long
@pytest.mark.parametrize(("failures", "said"), [(1, "1 machine"), (2, "cannot be started on this machine: OSError")])
def test_a_start_that_fails_on_a_busy_machine_is_tried_once_more(failures, said):
    command = [sys.executable, "-c", STARTED_SLOWLY, str(failures)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert said in found.stdout + found.stderr
    assert "still running" not in found.stderr


class Failing(fw.Objective):
    """It fails at a node, from some visit on."""

    n, dim = 30, 2
    smoothness = np.ones(30)

    def loss(self, x):
        return float(x @ x)

    def gradient(self, node, x, sample=None):
        if node == 7:
            raise ValueError("no data at node 7")
        return x


def test_what_a_worker_raises_is_raised_here():
    kernel = fw.designs.SimpleWalk().kernel(GRAPH)
    runtime = fw.runtimes.Ray(inner="reference", tasks=2)
    with pytest.raises(ValueError, match="no data at node 7") as caught:
        fw.learn(Failing(), kernel, fw.SGD(0.1), steps=500, walks=4, start=12, runtime=runtime, initial=[1.0, 1.0])
    assert any("raised on a worker" in note for note in caught.value.__notes__)
    record = caught.value.record
    assert record.partial
    assert record.data.sizes["step"] >= 1
    assert record.continuation is not None  # the walks are still where they were


def test_warnings_of_workers_are_heard_here():
    class Warning(fw.Objective):
        n, dim = 30, 2
        smoothness = np.ones(30)

        def loss(self, x):
            return float(x @ x)

        def gradient(self, node, x, sample=None):
            import warnings

            warnings.warn("a strange gradient", UserWarning, stacklevel=1)
            return x

    kernel = fw.designs.SimpleWalk().kernel(GRAPH)
    with pytest.warns(UserWarning, match="a strange gradient"):
        fw.learn(Warning(), kernel, fw.SGD(0.1), steps=3, runtime=fw.runtimes.Ray(inner="reference"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"inner": "ray"}, "inner = 'ray', expected a runtime of one machine"),
        ({"inner": "gpu"}, "runtime = 'gpu', expected"),
        ({"tasks": 0}, "tasks = 0, expected"),
        ({"cpus": 1.5}, "cpus = 1.5, expected"),
        ({"gpus": -1}, "gpus = -1, expected"),
        ({"interval": 0}, "interval = 0, expected seconds > 0"),
        ({"address": 3}, "address = 3, expected"),
    ],
)
def test_what_is_not_one(options, words):
    with pytest.raises(FreewalkError, match=words):
        fw.runtimes.Ray(**options)


def test_more_than_the_cluster_offers():
    with pytest.raises(FreewalkError, match=r"a task needs 4096 cores, but no machine .* \(.*: \d+ cores"):
        fw.walk(KERNEL, steps=3, runtime=fw.runtimes.Ray(cpus=4096))
    with pytest.raises(FreewalkError, match=r"needs 1 cores and 1 cards"):
        fw.walk(KERNEL, steps=3, runtime=fw.runtimes.Ray(inner="cuda"))


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install \"\.\[ray\]\""):
        fw.walk(KERNEL, steps=3, runtime="ray")


@pytest.mark.long
def test_the_handlers_of_signals_stay(tmp_path):
    script = """
import signal
import freewalk as fw
before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
fw.walk(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)), steps=3, runtime="ray")
print("same", before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)))
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True, env=os.environ
    )
    assert "same True" in found.stdout
    assert found.stderr == ""
