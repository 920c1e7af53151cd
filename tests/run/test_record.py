"""Records: saved to one file and read again, put side by side, with the story of where they come from."""

import io
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
from freewalk.run.record import MEANINGS

GRAPH = fw.graphs.ring(10)
PROBLEM = fw.objectives.LeastSquares.synthetic(10, 3, heavy=2, seed=3)
RUN = {"steps": 100, "walks": 3, "every": 10, "seed": 9}


def learn(design=None, **changes):
    kernel = (design or fw.designs.SimpleWalk()).kernel(GRAPH, PROBLEM.smoothness)
    return fw.learn(PROBLEM, kernel, fw.SGD(0.01), **(RUN | changes))


def interrupted(**changes):
    pressed = []

    def progress(step, steps):
        if not pressed:
            pressed.append(step)
            signal.raise_signal(signal.SIGINT)

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


@pytest.mark.parametrize(
    ("failure", "error"), [(OSError("no space left"), RecordError), (KeyboardInterrupt(), KeyboardInterrupt)], ids=repr
)
def test_a_write_that_fails_keeps_the_old_file(record, tmp_path, monkeypatch, failure, error):
    path = record.save(tmp_path / "run.npz")
    old = path.read_bytes()

    def fail(file, array, **options):
        file.write(b"half of it")
        raise failure

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(error):
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


# Meaning and unit.


def test_every_variable_says_what_it_means_and_its_unit(tmp_path):
    names = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
    graph = fw.Graph(GRAPH.indptr, GRAPH.indices, "named", names)
    record = fw.learn(PROBLEM, fw.designs.SimpleWalk().kernel(graph), fw.SGD(0.01), paths=1, **RUN)
    padded = fw.concat([record, learn(walks=5)], ["a", "b"], pad=True)
    for data in (record.data, fw.load(record.save(tmp_path / "run")).data, padded.data):
        assert set(data.variables) - {"coordinate"} <= set(MEANINGS)
        for name, variable in data.variables.items():
            assert variable.attrs["long_name"] == MEANINGS[name][0]
            assert variable.attrs.get("units") == MEANINGS[name][1]
    assert record.data.messages.attrs == {"long_name": "models sent so far", "units": "messages"}


def test_meanings_of_the_users_own_are_kept(tmp_path):
    record = learn()
    record.data.loss.attrs["units"] = "dollars"
    assert fw.load(record.save(tmp_path / "run")).data.loss.attrs["units"] == "dollars"
    assert "units" not in learn().data.loss.attrs


def test_the_size_is_known_before_it_is_written(record, tmp_path):
    assert record.data.nbytes < record.nbytes < record.data.nbytes + 10_000  # with its graph
    values = np.random.default_rng(1).random((100, 100))
    own = fw.Record(xarray.Dataset({"loss": (("walk", "step"), values)}, coords={"step": np.arange(100)}))
    size = own.save(tmp_path / "own").stat().st_size
    assert 0.8 * size < own.nbytes == 80_800
    partial = interrupted()
    assert partial.nbytes > fw.Record(partial.data, graph=partial.graph).nbytes  # with what it takes to resume


# The graph.


def named():
    places = np.arange(20.0).reshape(10, 2)
    return fw.Graph(GRAPH.indptr, GRAPH.indices, "sites", tuple("Kéłñopqrst"), places)


@pytest.mark.parametrize("press", [False, True])
def test_a_record_keeps_its_graph(tmp_path, press):
    graph = named()
    kernel = fw.designs.SimpleWalk().kernel(graph)

    def progress(step, steps):
        if press:
            signal.raise_signal(signal.SIGINT)

    record = fw.learn(PROBLEM, kernel, fw.SGD(0.01), progress=progress, **RUN)
    assert record.partial == press
    assert record.graph is graph
    loaded = fw.load(record.save(tmp_path / "run"))
    assert loaded.graph == graph
    assert (loaded.graph.name, loaded.graph.node_names) == ("sites", graph.node_names)
    assert np.array_equal(loaded.graph.positions, graph.positions)
    assert loaded.data.node_name.values.tolist() == list(graph.node_names)
    if press:
        again = fw.load(fw.Record(loaded.data, {}, loaded.continuation).save(tmp_path / "again"))
        for one in (loaded, again):  # also where somebody left the graph out
            assert fw.resume(one).data.identical(fw.learn(PROBLEM, kernel, fw.SGD(0.01), **RUN).data)
            assert fw.resume(one).graph.node_names == graph.node_names


def test_a_large_graph_with_names_is_stored_once(tmp_path):
    names = tuple(f"node {number}" for number in range(3000))
    ring = fw.graphs.ring(3000)
    graph = fw.Graph(ring.indptr, ring.indices, "large", names)
    phases = [
        fw.Phase(10, fw.designs.SimpleWalk().kernel(graph)),
        fw.Phase(None, fw.designs.Metropolis().kernel(graph)),
    ]
    partial = fw.walk(phases, steps=50, progress=lambda *_: signal.raise_signal(signal.SIGINT))
    path = partial.save(tmp_path / "run")
    with np.load(path) as file:
        assert sum(np.array_equal(file[name], graph.indices) for name in file.files) == 1
        assert file["header"].size < 5000  # the names are in an array
    assert fw.load(path).graph.node_names == names
    assert fw.resume(fw.load(path)).data.identical(fw.walk(phases, steps=50).data)


def test_another_graph_in_place_of_the_walked_one_is_not_resumed(tmp_path):
    loaded = fw.load(interrupted().save(tmp_path / "run"))
    loaded.graph = fw.graphs.path(10)
    with pytest.raises(RecordError, match=r"cannot resume .*: record: its graph was replaced"):
        fw.resume(fw.load(loaded.save(tmp_path / "run")))


def test_concat_keeps_a_graph_that_all_have():
    kernels = [fw.designs.SimpleWalk().kernel(graph) for graph in (named(), named(), GRAPH)]
    runs = [fw.learn(PROBLEM, kernel, fw.SGD(0.01), **RUN) for kernel in kernels]
    both = fw.concat(runs[:2], ["a", "b"])
    assert both.graph is runs[0].graph
    assert both.data.node_name.values.tolist() == list(named().node_names)
    mixed = fw.concat(runs, ["a", "b", "c"])  # the same graph without names
    assert mixed.graph is None
    assert "node_name" not in mixed.data
    assert fw.concat([fw.Record(runs[0].data), runs[1]], ["a", "b"]).graph is None


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


@pytest.mark.parametrize("path", [5, None, b"run", "", "a\0b", "\ud800", [], "."], ids=repr)
def test_paths_that_are_none(record, path):
    for call in (record.save, fw.load):
        with pytest.raises(RecordError):
            call(path)


def test_a_folder_or_a_file_in_the_way_of_a_record(record, tmp_path):
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "folder.npz", tmp_path / "file" / "run.npz", "/proc/none/run.npz", tmp_path / ("x" * 300)):
        with pytest.raises(RecordError, match=r"cannot be written \(.*\); give another path"):
            record.save(path)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.npz"]


def test_what_no_file_can_hold_is_named(tmp_path):
    record = learn()
    record.data["own"] = ("walk", np.array([{}, None, 3], dtype=object))
    with pytest.raises(RecordError, match=r"save: data/own is an array of object, expected numbers, strings or times"):
        record.save(tmp_path / "run")
    record = learn()
    record.data.attrs["own"] = [object()]
    with pytest.raises(RecordError, match=r"archive: cannot store a object"):
        record.save(tmp_path / "run")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((5,), "data"), ((xarray.Dataset(), 5), "provenance"), ((xarray.Dataset(), {}, None, 5), "graph")],
)
def test_a_record_of_something_else_is_refused(arguments, name):
    with pytest.raises(RecordError, match=rf"Record: {name} = 5, expected"):
        fw.Record(*arguments)
    assert repr(fw.Record(xarray.Dataset())) == "Record(record: ; see .data and .provenance)"


def test_a_record_says_in_one_line_how_many_walks_diverged():
    graph = fw.graphs.ring(5)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, seed=1)
    kernel = fw.designs.Metropolis().kernel(graph, label="uniform")
    good, bad = (fw.learn(problem, kernel, fw.SGD(step), steps=500, every=250, walks=2) for step in (0.01, 100.0))
    assert "diverged" not in repr(good)
    assert repr(bad) == "Record(uniform: 2 walks, 500 steps, 2 diverged; see .data and .provenance)"
    assert "2 diverged" in repr(fw.concat([good, bad], ["good", "bad"]))


@pytest.mark.parametrize(
    "story",
    [{"parts": 3}, {"parts": {"a": 3}}, {"interruptions": "x"}, {"interruptions": None}, {"interrupted_by": []}],
)
def test_a_provenance_that_reports_could_not_read_is_refused(story):
    with pytest.raises(RecordError, match=rf"Record: {next(iter(story))} = .*, expected"):
        fw.Record(xarray.Dataset(), story)


def test_another_format_says_which(tmp_path):
    write(tmp_path / "run.npz", header=header(format=7))
    with pytest.raises(RecordError, match=r"run\.npz: written in format 7, this version reads 1"):
        fw.load(tmp_path / "run.npz")


def test_a_pickle_inside_is_never_loaded(record, tmp_path):
    path = record.save(tmp_path / "run.npz")
    with zipfile.ZipFile(path, "a") as archive, archive.open("data/evil.npy", "w") as file:
        np.lib.format.write_array(file, np.array([{}], dtype=object), allow_pickle=True)
    assert "evil" not in fw.load(path).data  # the header does not name it, so nobody looks at it
    with pytest.raises(RecordError, match=r"run\.npz: not a record of freewalk \(.*evil is an array of object"):
        fw.load(renamed(path, dims=lambda dims: dims | {"evil": ["one"]}))


def renamed(path, **changes):
    """The same file, its header changed."""
    with zipfile.ZipFile(path) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    text = json.loads(np.load(io.BytesIO(entries["header.npy"])).tobytes())
    text |= {name: change(text.get(name)) for name, change in changes.items()}
    buffer = io.BytesIO()
    np.save(buffer, np.frombuffer(json.dumps(text).encode(), dtype=np.uint8))
    with zipfile.ZipFile(path, "w") as new:
        for name, content in (entries | {"header.npy": buffer.getvalue()}).items():
            new.writestr(name, content)
    return path


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
        (lambda: [learn(), learn(walks=4)], ["a", "b"], r"concat: the records have \[3, 4\] walks.*pass pad=True"),
        (lambda: [learn(), other()], ["a", "b"], r"concat: the records have \[10, 12\] nodes.*compare them by"),
        (lambda: [learn(), learn()], ["a", 5], r"concat: label = 5, expected a string"),
        (lambda: [learn(), learn()], ["a", ""], r"concat: label = '', expected a string"),
        (lambda: [learn(), learn()], "ab", r"concat: labels = 'ab', expected a list of strings"),
        (lambda: [fw.concat([learn()])], ["a"], r"concat: the records have different variables"),
        (lambda: [learn(), 3], ["a", "b"], r"concat: records = 3, expected a list of records"),
        (learn, None, r"concat: records = Record\(.*, expected a list of records"),
        (lambda: 3, None, r"concat: records = 3, expected a list of records"),
    ],
)
def test_records_that_do_not_go_together_are_an_error(records, labels, message):
    with pytest.raises(RecordError, match=message):
        fw.concat(records(), labels)


def other():
    return fw.walk(fw.designs.SimpleWalk().kernel(fw.graphs.ring(12)), **RUN)


@pytest.mark.parametrize("counted", ["by walk", "in one of them over all walks"])
def test_records_with_different_numbers_of_walks_are_padded_where_that_is_asked_for(tmp_path, monkeypatch, counted):
    few = learn(paths=1)
    if counted != "by walk":
        monkeypatch.setattr("freewalk.jobs.job._VISITS_BY_WALK", 40)
    many = learn(fw.designs.Metropolis(), walks=5, paths=5)
    both = fw.concat([few, many], pad=True)
    data = both.data
    assert data.walks.values.tolist() == [3, 5]
    first, second = data.sel(design=few.label), data.sel(design=many.label)
    for name in ("loss", "mse", "distance", "messages", "probes", "final"):
        assert np.array_equal(first[name][:3], few.data[name])
        assert np.isnan(first[name][3:]).all()
        assert np.array_equal(second[name], many.data[name])
    assert float(first.loss.isel(step=-1).mean()) == pytest.approx(float(few.data.loss.isel(step=-1).mean()))
    assert data.diverged.dtype == bool
    assert first["at"].values.tolist() == [*few.data["at"].values.tolist(), -1, -1]
    assert float(first.visits.sum()) == float(few.data.visits.sum())
    assert fw.load(both.save(tmp_path / "both")).data.identical(data)


def test_padding_changes_nothing_where_there_is_nothing_to_pad():
    runs = [learn(), learn(seed=2)]
    assert fw.concat(runs, ["a", "b"], pad=True).data.identical(fw.concat(runs, ["a", "b"]).data)


@pytest.mark.parametrize("pad", ["yes", 1, None])
def test_pad_is_true_or_false(pad):
    with pytest.raises(RecordError, match=r"concat: pad = .*, expected True or False"):
        fw.concat([learn()], pad=pad)


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
