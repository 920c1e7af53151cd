"""Records: saved to one file and read again, put side by side, with the story of where they come from."""

import json
import os
import signal
import zipfile
from datetime import datetime

import numpy as np
import pytest
import xarray

import freewalk as fw
from freewalk.errors import RecordError

GRAPH = fw.graphs.ring(10)
PROBLEM = fw.objectives.LeastSquares.synthetic(10, 2, heavy=2, seed=3)
RUN = {"steps": 100, "walks": 3, "every": 10, "seed": 9}


def learn(design=None, **changes):
    kernel = (design or fw.designs.SimpleWalk()).kernel(GRAPH, PROBLEM.smoothness)
    return fw.learn(PROBLEM, kernel, fw.SGD(0.01), **(RUN | changes))


def interrupted(**changes):
    pressed = []

    def progress(step, steps):
        if not pressed:
            pressed.append(step)
            os.kill(os.getpid(), signal.SIGINT)

    return learn(progress=progress, **({"steps": 200} | changes))


@pytest.fixture(scope="module")
def record():
    return learn(paths=2)


# Save and load.


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_record_comes_back_as_it_was(tmp_path, precision):
    record = learn(paths=[2, 0], precision=precision)
    loaded = fw.load(record.save(tmp_path / "run.npz"))
    assert loaded.data.identical(record.data)
    assert loaded.provenance == record.provenance
    assert set(loaded.data.coords) == set(record.data.coords)
    assert loaded.data.attrs == record.data.attrs
    for name, variable in record.data.variables.items():
        assert loaded.data[name].dtype == variable.dtype
        assert loaded.data[name].dims == variable.dims
    assert (loaded.partial, loaded.label, loaded.continuation) == (False, record.label, None)


def test_walks_and_designs_side_by_side_come_back_too(tmp_path):
    walked = fw.walk(fw.designs.SimpleWalk().kernel(GRAPH), **RUN)
    both = fw.concat([learn(), learn(fw.designs.Metropolis())], labels=["a", "b"])
    for record in (walked, both):
        loaded = fw.load(record.save(tmp_path / "run.npz"))
        assert loaded.data.identical(record.data)
        assert loaded.provenance == record.provenance


def test_values_that_are_not_finite_come_back(tmp_path):
    kernel = fw.designs.SimpleWalk().kernel(GRAPH)
    record = fw.learn(PROBLEM, kernel, fw.SGD(1e6), **RUN)
    assert record.data.diverged.all()
    assert fw.load(record.save(tmp_path / "run.npz")).data.identical(record.data)


def test_one_file_and_nothing_beside_it(record, tmp_path):
    path = record.save(tmp_path / "deep" / "folder" / "run.npz")
    assert path == tmp_path / "deep" / "folder" / "run.npz"
    assert os.listdir(path.parent) == ["run.npz"]
    again = record.save(path)
    assert os.listdir(again.parent) == ["run.npz"]


def test_a_suffix_is_added_where_there_is_none(record, tmp_path):
    assert record.save(tmp_path / "run") == tmp_path / "run.npz"
    assert record.save(str(tmp_path / "run.record")) == tmp_path / "run.record"
    assert fw.load(str(tmp_path / "run.record")).data.identical(record.data)


@pytest.mark.parametrize("failure", [OSError("no space left"), KeyboardInterrupt()], ids=repr)
def test_a_write_that_fails_keeps_the_old_file(record, tmp_path, monkeypatch, failure):
    path = record.save(tmp_path / "run.npz")
    old = path.read_bytes()

    def fail(file, array, **options):
        file.write(b"half of it")
        raise failure

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(type(failure)):
        learn(seed=1).save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["run.npz"]


def test_the_file_holds_no_pickle(tmp_path):
    path = fw.concat([interrupted(), learn()], labels=["a", "b"]).save(tmp_path / "both.npz")
    paths = [path, interrupted(paths=1).save(tmp_path / "partial.npz")]
    for path in paths:
        with np.load(path, allow_pickle=False) as file:
            assert all(file[name].dtype != object for name in file.files)
            header = json.loads(file["header"].tobytes())
        assert header["format"] == 1


def test_attributes_of_the_users_own_are_kept(tmp_path):
    record = learn()
    record.data.attrs["note"] = "mine"
    record.data.attrs["levels"] = np.array([1.5, 2.0])
    loaded = fw.load(record.save(tmp_path / "run.npz"))
    assert loaded.data.attrs["note"] == "mine"
    assert list(loaded.data.attrs["levels"]) == [1.5, 2.0]


# Files that are not records.


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(RecordError, match=r"none\.npz: there is no such file"):
        fw.load(tmp_path / "none.npz")


def write(path, **arrays):
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def header(**changes):
    text = {"format": 1, "attrs": {}, "dims": {}, "coords": [], "provenance": {}} | changes
    return np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(b"not a record"),
        lambda path: path.write_bytes(b""),
        lambda path: path.mkdir(),
        lambda path: np.save(path, np.arange(3)),
        lambda path: write(path, loss=np.arange(3)),
        lambda path: write(path, header=np.arange(3, dtype=np.uint8)),
        lambda path: write(path, header=header(dims={"loss": ["step"]})),
        lambda path: write(path, header=header(dims={"loss": ["a", "b"]}), **{"data/loss": np.arange(3)}),
        lambda path: write(path, header=header(coords=["step"])),
    ],
    ids=["garbage", "empty", "folder", "npy", "npz", "no JSON", "no array", "wrong dimensions", "no coordinate"],
)
def test_a_file_that_is_not_a_record_is_named(tmp_path, make):
    path = tmp_path / "run.npy"
    make(path)
    with pytest.raises(RecordError, match=r"run\.npy: not a record of freewalk"):
        fw.load(path)


def test_a_truncated_file_is_not_a_record(record, tmp_path):
    path = record.save(tmp_path / "run.npz")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RecordError, match=r"run\.npz: not a record of freewalk"):
        fw.load(path)


def test_another_format_says_which(tmp_path):
    write(tmp_path / "run.npz", header=header(format=7))
    with pytest.raises(RecordError, match=r"run\.npz: written in format 7, this version reads 1"):
        fw.load(tmp_path / "run.npz")


def test_a_pickle_inside_is_never_loaded(record, tmp_path):
    path = record.save(tmp_path / "run.npz")
    with zipfile.ZipFile(path, "a") as archive, archive.open("data/evil.npy", "w") as file:
        np.lib.format.write_array(file, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(RecordError, match=r"run\.npz: not a record of freewalk"):
        fw.load(path)


# Side by side.


def test_concat_puts_records_along_design_and_sel_takes_them_out():
    first, second = learn(), learn(fw.designs.Metropolis(power=1))
    both = fw.concat([first, second])
    assert both.data.design.values.tolist() == ["SimpleWalk()", "Metropolis(power=1)"]
    assert both.label == "SimpleWalk() | Metropolis(power=1)"
    assert not both.partial
    assert both.data.loss.dims == ("design", "walk", "step")
    assert both.data.attrs["optimal_mse"] == first.data.attrs["optimal_mse"]
    for record in (first, second):
        taken = both.data.sel(design=record.label).drop_vars("design")
        for name in record.data.variables:
            xarray.testing.assert_equal(taken[name], record.data[name])
    assert both.provenance["parts"] == {first.label: first.provenance, second.label: second.provenance}


def test_concat_takes_other_names():
    both = fw.concat([learn(), learn(seed=2)], labels=["one", "two"])
    assert both.data.design.values.tolist() == ["one", "two"]
    assert not np.array_equal(both.data.loss.sel(design="one"), both.data.loss.sel(design="two"))


def test_concat_of_one_record():
    assert fw.concat([learn()]).data.sizes["design"] == 1


def test_concat_changes_nothing_in_its_parts():
    parts = [learn(), learn(seed=2)]
    before = [part.data.copy(deep=True) for part in parts]
    fw.concat(parts, labels=["a", "b"])
    assert all(part.data.identical(old) for part, old in zip(parts, before, strict=True))


def test_records_measured_at_different_steps_leave_gaps():
    both = fw.concat([learn(every=10), learn(every=25)], labels=["often", "seldom"])
    assert both.data.step.values.tolist() == sorted({*range(0, 101, 10), *range(0, 101, 25)})
    gaps = both.data.loss.sel(design="seldom").isnull().any("walk")
    assert both.data.step.values[~gaps].tolist() == [0, 25, 50, 75, 100]
    np.testing.assert_array_equal(both.data.loss.sel(design="seldom").dropna("step"), learn(every=25).data.loss)


def test_paths_of_different_lengths_stand_side_by_side():
    both = fw.concat([learn(paths=2), learn(paths=2, steps=50)], labels=["long", "short"])
    short = both.data.path.sel(design="short")
    assert short.notnull().sum("time").values.tolist() == [51, 51]
    np.testing.assert_array_equal(short.dropna("time"), learn(paths=2, steps=50).data.path)


def test_one_partial_record_makes_all_of_them_partial():
    assert fw.concat([interrupted(), learn()], labels=["a", "b"]).partial
    assert not fw.concat([learn(), learn()], labels=["a", "b"]).partial


@pytest.mark.parametrize(
    ("records", "labels", "message"),
    [
        (lambda: [], None, r"concat: got no record, expected at least one"),
        (lambda: [learn(), learn()], None, r"concat: got the names \['SimpleWalk\(\)', 'SimpleWalk\(\)'\].*labels="),
        (lambda: [learn(), learn()], ["a", "a"], r"concat: got the names \['a', 'a'\].*all different"),
        (lambda: [learn(), learn()], ["a"], r"concat: got the names \['a'\] for 2 records, expected one for each"),
        (lambda: [learn(), learn(walks=4)], ["a", "b"], r"concat: the records have \[3, 4\] walks"),
        (lambda: [learn(), 3], ["a", "b"], r"concat: got something of type int, expected a list of records"),
        (learn, None, r"concat: got something of type Record, expected a list of records"),
        (lambda: 3, None, r"concat: got something of type int, expected a list of records"),
    ],
)
def test_records_that_do_not_go_together_are_an_error(records, labels, message):
    with pytest.raises(RecordError, match=message):
        fw.concat(records(), labels)


# Provenance.


def test_provenance_tells_what_was_run():
    rules = [fw.SGD(0.01), fw.SGD(0.002, weighted=False)]
    kernels = [fw.designs.SimpleWalk().kernel(GRAPH), fw.designs.Metropolis().kernel(GRAPH, label="uniform")]
    phases = [fw.Phase(40, kernels[0], rules[0]), fw.Phase(None, kernels[1], rules[1])]
    story = fw.learn(PROBLEM, phases, precision="float32", runtime=fw.runtimes.CPU(threads=1), **RUN).provenance
    assert story["graph"] == "ring(10)"
    assert story["problem"] == repr(PROBLEM)
    assert story["phases"] == [
        {"until": 40, "kernel": "SimpleWalk()", "rule": repr(rules[0])},
        {"until": None, "kernel": "uniform", "rule": repr(rules[1])},
    ]
    assert {name: story[name] for name in RUN} == RUN
    assert story["precision"] == "float32"
    assert story["runtime"] == "CPU(threads=1)"
    assert datetime.fromisoformat(story["started"]).tzinfo is not None
    assert story["seconds"] >= 0
    assert story["interruptions"] == 0
    assert story["versions"]["freewalk"] == fw.__version__
    assert story["versions"]["numpy"] == np.__version__
    assert set(story["versions"]) == {"freewalk", "python", "numpy", "scipy", "numba", "xarray"}


def test_provenance_of_a_walk_has_no_problem_and_no_rule():
    story = fw.walk(fw.designs.SimpleWalk().kernel(GRAPH), **RUN).provenance
    assert story["problem"] is None
    assert story["phases"] == [{"until": None, "kernel": "SimpleWalk()", "rule": None}]


def test_provenance_is_plain():
    assert json.loads(json.dumps(learn(seed=np.uint64(2**64 - 1)).provenance))["seed"] == 2**64 - 1
