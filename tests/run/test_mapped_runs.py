"""Runs on graphs and data that lie in files: the same records, little memory, and nothing lost when a file is."""

import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray

import freewalk as fw
from freewalk import blocks
from freewalk.errors import RecordError
from freewalk.specs import RunFolder, parse

N, STEPS = 600, 400
GRAPH = fw.graphs.watts_strogatz(N, 4, 0.2, seed=3)
PROBLEM = fw.objectives.LeastSquares.synthetic(N, 3, heavy=2, seed=1)


@pytest.fixture
def mapped(tmp_path: Path):
    graph = fw.graphs.read(GRAPH.save(tmp_path / "walked.graph"))
    return graph, fw.objectives.read(PROBLEM.save(tmp_path / "learned.data"))


def learn(graph, problem, design=None, **options):
    kernel = (design or fw.designs.Metropolis()).kernel(graph, problem.smoothness)
    settings = {"steps": STEPS, "walks": 20, "every": 100, "seed": 5} | options
    return fw.learn(problem, kernel, fw.SGD(step=1e-3), **settings)


def assert_same(one: fw.Record, two: fw.Record) -> None:
    xarray.testing.assert_identical(one.data, two.data)


@pytest.mark.parametrize("runtime", ["cpu", "reference"])
@pytest.mark.parametrize(
    "design",
    [fw.designs.Metropolis(), fw.designs.MHLJ(0.1, 0.5, 3), fw.designs.MHLJ(0.1, 0.5, 3, corrected=True)],
    ids=repr,
)
def test_the_record_is_the_same_to_the_last_bit(mapped, design, runtime):
    options = {"runtime": runtime} | ({"walks": 3, "steps": 100} if runtime == "reference" else {})
    assert_same(learn(*mapped, design, **options), learn(GRAPH, PROBLEM, design, **options))


@pytest.mark.long
def test_in_single_precision_and_with_several_tokens(mapped):
    for options in ({"precision": "float32"}, {"tokens": 3, "exchange": fw.exchanges.Meet()}):
        assert_same(learn(*mapped, **options), learn(GRAPH, PROBLEM, **options))


def test_constants_held_as_one_number_change_nothing(mapped, monkeypatch):
    """Above LARGE nodes what is the same everywhere is one number, and nodes are not numbered one by one."""
    rule, settings = fw.SGD(step=1e-3), {"steps": STEPS, "walks": 20, "every": 100, "seed": 5}
    usual = fw.learn(PROBLEM, fw.designs.Metropolis().kernel(GRAPH), rule, **settings)
    for name in ("designs.design", "run.checkpoint"):
        monkeypatch.setattr(f"freewalk.{name}.LARGE", 10)
    monkeypatch.setattr("freewalk.jobs.job._VISITS_BY_WALK", 10)
    graph, problem = mapped
    kernel = fw.designs.Metropolis().kernel(graph)
    assert blocks.is_constant(np.asarray(kernel.target))
    assert blocks.is_constant(kernel.weights)
    sent = pickle.dumps(kernel)
    assert len(sent) < 8 * N + 2000  # the ratio, and next to nothing else
    for own in (kernel, pickle.loads(sent)):
        found = fw.learn(problem, own, rule, **settings)
        assert "node" not in found.data.coords
        np.testing.assert_array_equal(found.data.visits, usual.data.visits.sum("walk"))
        for name in ("loss", "mse", "distance", "messages", "final", "at"):
            np.testing.assert_array_equal(found.data[name], usual.data[name], err_msg=name)
        assert found.data.attrs == usual.data.attrs


@pytest.fixture
def checkpoint(mapped, tmp_path, monkeypatch):
    """The file of a run that was under way, and the record of the same run, undisturbed."""
    monkeypatch.setattr("freewalk.designs.design.LARGE", 10)
    file = tmp_path / "run.npz"

    def keep(record):
        if not file.exists():
            record.save(file)

    whole = learn(*mapped, checkpoint=keep, checkpoint_every=1e-9)
    assert fw.load(file).partial
    return file, whole


def test_a_checkpoint_refers_to_the_files(checkpoint):
    file, whole = checkpoint
    record = fw.load(file)
    assert record.graph == GRAPH
    assert record.graph.is_mapped
    large = [array.shape for array in record.continuation.arrays.values() if array.nbytes >= 8 * N]
    assert sorted(large) == [(20, N), (N,)]  # the visits and the ratio
    assert_same(fw.resume(record), whole)


def test_a_resumed_run_can_be_interrupted_and_resumed_again(checkpoint, tmp_path):
    file, whole = checkpoint
    again = tmp_path / "again.npz"

    def keep(record):
        if not again.exists():
            record.save(again)

    fw.resume(fw.load(file), checkpoint=keep, checkpoint_every=1e-9)
    assert_same(fw.resume(fw.load(again)), whole)


@pytest.mark.parametrize("name", ["walked.graph", "learned.data"])
def test_a_file_that_is_missing_truncated_or_changed_stops_no_one_from_reading(checkpoint, tmp_path, name):
    file, whole = checkpoint
    moved = tmp_path / name
    data = moved.read_bytes()
    place = len(data) - 100 if name == "walked.graph" else 4200
    changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    for content, said in ((None, "cannot be read"), (data[:5000], "is truncated"), (changed, "was changed")):
        moved.unlink(missing_ok=True)
        if content is not None:
            moved.write_bytes(content)
        record = fw.load(file)
        np.testing.assert_array_equal(record.data.loss[:, 0], whole.data.loss[:, 0])
        assert (record.graph is None) == (name == "walked.graph")
        assert ("graph_not_found" in record.provenance) == (name == "walked.graph")
        with pytest.raises(RecordError, match=rf"{name}: {said}.*files=\[its path\]"):
            fw.resume(record)
        kept = fw.load(record.save(tmp_path / "kept.npz"))  # what is lost is not needed to keep the record
        with pytest.raises(RecordError, match=said):
            fw.resume(kept)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(data)
    assert_same(fw.resume(fw.load(file), files=[tmp_path / "kept.npz", elsewhere]), whole)
    assert_same(fw.resume(fw.load(tmp_path / "kept.npz"), files=[elsewhere]), whole)


def test_a_finished_record_does_not_need_its_graph(mapped, tmp_path):
    whole = learn(*mapped)
    whole.save(tmp_path / "run.npz")
    (tmp_path / "walked.graph").unlink()
    record = fw.load(tmp_path / "run.npz")
    assert record.graph is None
    assert_same(record, whole)


def test_files_that_are_none(checkpoint):
    record = fw.load(checkpoint[0])
    for wrong in (3, "text", [3], [None]):
        with pytest.raises(RecordError, match=r"expected (a list of paths|the path of a file)"):
            fw.resume(record, files=wrong)


def test_arrays_of_numpy_are_referred_to_as_well(tmp_path, monkeypatch):
    np.save(tmp_path / "features.npy", PROBLEM.features)
    features = np.load(tmp_path / "features.npy", mmap_mode="r")
    problem = fw.objectives.LeastSquares(features, PROBLEM.targets, heavy=PROBLEM.heavy)
    file = tmp_path / "run.npz"
    whole = learn(GRAPH, problem, checkpoint=lambda record: file.exists() or record.save(file), checkpoint_every=1e-9)
    assert_same(whole, learn(GRAPH, PROBLEM))
    shutil.move(tmp_path / "features.npy", tmp_path / "moved.npy")
    with pytest.raises(RecordError, match=r"features\.npy: cannot be read"):
        fw.resume(fw.load(file))
    assert_same(fw.resume(fw.load(file), files=[tmp_path / "moved.npy"]), whole)


def test_an_array_that_changes_under_a_run_costs_the_resuming_and_not_the_record(tmp_path):
    np.save(tmp_path / "features.npy", PROBLEM.features)
    features = np.load(tmp_path / "features.npy", mmap_mode="r")
    file = tmp_path / "run.npz"

    def keep(record):
        if not file.exists():
            (tmp_path / "new.npy").write_bytes((tmp_path / "features.npy").read_bytes() + b"more")
            (tmp_path / "new.npy").replace(tmp_path / "features.npy")
            record.save(file)

    whole = learn(GRAPH, fw.objectives.LeastSquares(features, PROBLEM.targets), checkpoint=keep, checkpoint_every=1e-9)
    assert whole.data.sizes["step"] == 5
    found = fw.load(file)
    np.testing.assert_array_equal(found.data.loss[:, 0], whole.data.loss[:, 0])
    with pytest.raises(RecordError, match=r"features\.npy: was changed since it was mapped"):
        fw.resume(found)


def test_a_spec_names_both_files(mapped, tmp_path):
    text = """
    [graph]
    kind = "read"
    path = "walked.graph"

    [problem]
    kind = "LeastSquares"
    data = "learned.data"
    {more}

    [[walk]]
    design = {{kind = "Metropolis"}}
    rule = {{kind = "SGD", step = 0.001}}

    [run]
    steps = 400
    walks = 20
    every = 100
    seed = 5
    """
    folder = RunFolder.create(tmp_path / "run", parse(text.format(more=""), "spec", tmp_path))
    found = folder.run()
    usual = learn(GRAPH, PROBLEM)
    np.testing.assert_array_equal(found.data.loss.squeeze(), usual.data.loss)
    other = RunFolder.create(tmp_path / "ridge", parse(text.format(more="ridge = 0.5"), "spec", tmp_path)).run()
    assert not np.array_equal(other.data.loss.squeeze(), usual.data.loss)


@pytest.mark.long
def test_a_run_takes_little_memory_beside_the_files(tmp_path):
    """10⁶ nodes: 5.6 MB of files for every 10⁵ nodes are mapped, and 48 bytes per node are all that a run needs."""
    program = """
import sys, threading, freewalk as fw
def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) * 1024
fw.graphs.ring(10**6).save(sys.argv[1] + "/ring.graph")
fw.objectives.LeastSquares.synthetic(10**6, 16, seed=1, path=sys.argv[1] + "/drawn.data")
def run(graph, problem):
    kernel = fw.designs.Metropolis().kernel(graph)
    fw.learn(problem, kernel, fw.SGD(0.001), steps=100, walks=64, every=100, runtime=fw.runtimes.CPU(threads=2))
small = fw.graphs.ring(1000), fw.objectives.LeastSquares.synthetic(1000, 16)
run(*small)  # compiles
highest, over, before = [0], threading.Event(), anonymous()
def watch():
    while not over.wait(0.002):
        highest[0] = max(highest[0], anonymous())
thread = threading.Thread(target=watch)
thread.start()
run(fw.graphs.read(sys.argv[1] + "/ring.graph"), fw.objectives.read(sys.argv[1] + "/drawn.data"))
over.set()
thread.join()
print(highest[0] - before)
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not say how much memory is whose")
    command = [sys.executable, "-c", program, str(tmp_path)]
    taken = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert taken < 110e6  # the features alone are 128 MB


def test_a_file_that_is_cut_under_a_run_ends_the_process_and_not_the_checkpoint(mapped, tmp_path):
    """What lay behind the end is gone: the system ends whoever reads there (SIGBUS). The last checkpoint is whole."""
    program = """
import os, sys, freewalk as fw
folder = sys.argv[1]
graph, problem = fw.graphs.read(folder + "/walked.graph"), fw.objectives.read(folder + "/learned.data")
def keep(record):
    record.save(folder + "/run.npz")
    os.truncate(folder + "/learned.data", 4096)
kernel = fw.designs.Metropolis().kernel(graph, problem.smoothness)
fw.learn(problem, kernel, fw.SGD(step=1e-3), steps=400, walks=20, every=100, seed=5, checkpoint=keep,
         checkpoint_every=1e-9)
"""
    data = (tmp_path / "learned.data").read_bytes()
    whole = learn(*mapped)
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGBUS, ended.stderr
    with pytest.raises(RecordError, match=r"learned\.data: is truncated"):
        fw.resume(fw.load(tmp_path / "run.npz"))
    (tmp_path / "learned.data").write_bytes(data)
    assert_same(fw.resume(fw.load(tmp_path / "run.npz")), whole)
