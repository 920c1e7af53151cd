"""Records that were made to do harm: `load` and `resume` refuse them, and never crash, hang or run what they name."""

import io
import json
import os
import struct
import sys
import tracemalloc
import zipfile
from collections import Counter

import calls
import numpy as np
import pytest
import records

import freewalk as fw
from freewalk.errors import RecordError

GRAPH = fw.graphs.ring(5)
PROBLEM = fw.objectives.LeastSquares.synthetic(5, 2, seed=1)
LAZY = 0.5 * np.eye(5) + 0.25 * GRAPH.adjacency().toarray()
KERNEL = fw.designs.FromMatrix(LAZY).kernel(GRAPH)
RUN = {"steps": 100, "walks": 3, "every": 7, "seed": 2, "paths": [2, 0], "runtime": "reference"}
RULE = fw.SGD(0.01, average=True)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The text and the arrays of an interrupted run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("freewalk.run.loop._CHUNK_STEPS", 1)  # otherwise it ends where the speed of the machine says
        partial = fw.learn(PROBLEM, KERNEL, RULE, progress=records.press(), **RUN)
    assert partial.partial
    return records.contents(partial.save(tmp_path_factory.mktemp("good") / "good.npz"))


@pytest.fixture
def forged(good, tmp_path):
    """Write a file that differs from the good one by what a function does to its text and its arrays."""

    def forge(change):
        header, arrays = json.loads(json.dumps(good[0])), dict(good[1])
        change(header, arrays)
        path = tmp_path / "forged.npz"
        path.write_bytes(records.written(header, arrays))
        return path

    return forge


def run_of(header):
    return header["continuation"]["fields"]


def state_of(header):
    return run_of(header)["state"]["fields"]


def job_of(header):
    return run_of(header)["job"]["fields"]


def array(field, make):
    """Replace an array of the state."""

    def change(header, arrays):
        name = f"continuation/{state_of(header)[field]['array']}"
        arrays[name] = make(arrays[name])

    return change


def value(owner, field, given):
    """Replace a value."""

    def change(header, arrays):
        owner(header)[field] = given

    return change


def without(owner, field):
    def change(header, arrays):
        del owner(header)[field]

    return change


def measure(name, make):
    def change(header, arrays):
        place = f"continuation/{run_of(header)['measures'][name][0]['array']}"
        arrays[place] = make(arrays[place])

    return change


def fill(number):
    return lambda array: np.full_like(array, number)


def matrix(part, make):
    """Replace the data, indices or indptr of the matrix by which the walk moves."""

    def change(header, arrays):
        move = job_of(header)["phases"][0]["fields"]["kernel"]["fields"]["moves"][0]
        place = f"continuation/{move['fields']['rows'][0]['csr'][part]}"
        arrays[place] = make(arrays[place])

    return change


def missing(header, arrays):
    del arrays[f"continuation/{state_of(header)['models']['array']}"]


ATTACKS = {
    "nodes beyond the graph": (array("nodes", fill(2_000_000_000)), "nodes holds 2000000000, expected .* 0 to 4"),
    "nodes below 0": (array("nodes", fill(-1)), "nodes holds -1"),
    "nodes of int64": (array("nodes", lambda a: a.astype(np.int64)), "nodes = .*, expected an array of int32"),
    "no nodes": (array("nodes", lambda a: a[:0]), "expected an array of"),
    "path_of beyond the paths": (array("path_of", fill(1_000_000_000)), "path_of holds 1000000000"),
    "path_of twice the same": (array("path_of", fill(0)), "path_of = .*, expected each of 3 rows once"),
    "paths too short": (array("paths", lambda a: a[:, :5]), r"paths = .*, expected .* shape \(2, 101\)"),
    "paths beyond the graph": (array("paths", fill(5)), "paths holds 5"),
    "models too wide": (array("models", lambda a: np.zeros((3, 900))), r"models = .*, expected .* shape \(3, 2\)"),
    "models too few": (array("models", lambda a: a[:1]), r"models = .*, expected .* shape \(3, 2\)"),
    "models of float32": (array("models", lambda a: a.astype("f4")), "models = .*, expected an array of float64"),
    "models of texts": (array("models", lambda a: a.astype("U8")), "models = .*, expected an array of float64"),
    "carried too few": (array("carried", lambda a: a[:0]), r"carried = .*, expected .* shape \(1, 3, 2\)"),
    "carried of whole numbers": (array("carried", lambda a: a.astype(np.int64)), "carried = .*, expected an array of"),
    "carried of float32": (array("carried", lambda a: a.astype("f4")), "carried = .*, expected an array of float64"),
    "stored where nothing is": (
        array("stored", lambda a: np.zeros((3, 5, 1, 2))),
        r"stored = .*, expected .* shape \(3, 0, 0, 2\)",
    ),
    "seen where nothing counts": (
        array("seen", lambda a: np.zeros((3, 5), dtype=np.int64)),
        r"seen = .*, expected .* shape \(3, 0\)",
    ),
    "surplus too short": (array("surplus", lambda a: a[:1]), r"surplus = .*, expected .* shape \(3,\)"),
    "entered later": (value(state_of, "entered", 10**9), "entered = 1000000000, expected a whole number from 0 to"),
    "entered where no rule began": (value(state_of, "entered", 1), "entered = 1, expected the step at which a rule"),
    "a first walk beyond all": (value(state_of, "first", 2**32), "first = 4294967296, expected a whole number from 0"),
    "messages too many": (array("messages", fill(2**62)), "messages holds 4611686018427387904"),
    "messages below 0": (array("messages", fill(-1)), "messages holds -1"),
    "probes below 0": (array("probes", fill(-1)), "probes holds -1"),
    "visits below 0": (array("visits", fill(-1)), "visits holds -1"),
    "visits of another graph": (array("visits", lambda a: a[:, :4]), r"visits = .*, expected .* shape \(3, 5\)"),
    "an array is missing": (missing, "not a record of freewalk .it has no array"),
    "step below 0": (value(state_of, "step", -5), "step = -5, expected a whole number from 0 to 100"),
    "step beyond the end": (value(state_of, "step", 101), "step = 101, expected a whole number from 0 to 100"),
    "step elsewhere": (value(state_of, "step", 50), "was not measured 8 times"),
    "step a text": (value(state_of, "step", "17"), "step = '17', expected a whole number"),
    "every below 0": (value(run_of, "every", -3), "every = -3, expected a whole number >= 1"),
    "every 0": (value(run_of, "every", 0), "every = 0, expected a whole number >= 1"),
    "every elsewhere": (value(run_of, "every", 2), "was not measured 8 times"),
    "steps without end": (value(run_of, "steps", 10**30), "steps = 10+, expected a whole number from 1 to"),
    "steps 0": (value(run_of, "steps", 0), "steps = 0, expected a whole number from 1"),
    "steps a list": (value(run_of, "steps", [1]), r"steps = \[1\], expected a whole number from 1"),
    "seconds not a number": (value(run_of, "seconds", float("nan")), "seconds = nan, expected a finite number >= 0"),
    "interruptions below 0": (value(run_of, "interruptions", -1), "interruptions = -1, expected a whole number >= 0"),
    "started a number": (value(run_of, "started", 5), "started = 5, expected a string"),
    "runtime a number": (value(run_of, "runtime", 5), "runtime = 5, expected a runtime"),
    "threads without end": (
        value(run_of, "runtime", {"type": "CPU", "fields": {"threads": 10**30}}),
        "record: CPU: threads = 10+, expected a whole number from 1 to 1024",
    ),
    "no job": (without(run_of, "job"), "does not fit together .TypeError"),
    "job a state": (lambda h, a: run_of(h).update(job=run_of(h)["state"]), "job = .*, expected a job"),
    "no phases": (value(job_of, "phases", []), r"kernel = \[\], expected a kernel"),
    "no rule": (
        lambda h, a: job_of(h)["phases"][0]["fields"].update(rule=None),
        "rule = None, expected an update rule",
    ),
    "phases end early": (lambda h, a: job_of(h)["phases"][0]["fields"].update(until=60), "the last ends at step 60"),
    "local steps without end": (
        lambda h, a: job_of(h)["phases"][0]["fields"]["rule"]["fields"].update(local_steps=2**62),
        "SGD: local_steps = 4611686018427387904, expected",
    ),
    "seed of 65 bits": (value(job_of, "seed", 2**64), "seed = 18446744073709551616, expected"),
    "precision": (value(job_of, "precision", "float16"), "precision = 'float16', expected 'float64' or 'float32'"),
    "another problem": (value(job_of, "objective", None), "models = .*, expected .* shape .3, 0."),
    "an unknown field": (value(job_of, "evil", 1), "field = 'evil', expected the fields of Job"),
    "an unknown class": (value(run_of, "runtime", {"type": "os.system", "fields": {}}), "your own class 'os.system'"),
    "no measure": (
        without(lambda h: run_of(h)["measures"], "loss"),
        "measures = .*, expected messages, probes, bytes, loss, mse, distance",
    ),
    "a measure too wide": (measure("loss", lambda a: np.hstack([a, a])), "loss was not measured 3 times"),
    "a measure too short": (measure("loss", lambda a: a[:2]), "loss = .*, expected an array of float64 by 3 walks"),
    "a measure of texts": (measure("loss", lambda a: a.astype("U8")), "loss = .*, expected an array of float64"),
    "a measure flat": (measure("messages", lambda a: a.ravel()), "messages = .*, expected an array of int64"),
    "matrix: indices beyond": (matrix(1, fill(2**30)), "indices of a matrix holds 1073741824"),
    "matrix: indptr beyond": (matrix(2, fill(2**30)), "indptr of a matrix holds 1073741824"),
    "matrix: indptr falls": (matrix(2, lambda a: a[[0, 3, 1, 3, 4, 5]]), "does not fit|do not fit"),
    "matrix: no probabilities": (
        matrix(0, fill(np.nan)),
        "record: .* its matrix has entries that are negative or not finite",
    ),
    "no continuation": (lambda h, a: h.update(continuation=5), "continuation = 5, expected what record.save wrote"),
    "a deep continuation": (lambda h, a: h.update(continuation=records.nested(500)), "does not fit|not a record"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_resume_refuses_what_was_tampered_with(name, forged):
    change, message = ATTACKS[name]
    with pytest.raises(RecordError, match=message):
        fw.resume(fw.load(forged(change)))


def test_without_tampering_it_resumes(forged):
    resumed = fw.resume(fw.load(forged(lambda header, arrays: None)))
    assert resumed.data.identical(fw.learn(PROBLEM, KERNEL, RULE, **RUN).data)


def test_the_order_of_bytes_does_not_matter(forged):
    def swap(header, arrays):
        for name, content in arrays.items():
            arrays[name] = np.asfortranarray(content.astype(content.dtype.newbyteorder(">")))

    resumed = fw.resume(fw.load(forged(swap)))
    whole = fw.learn(PROBLEM, KERNEL, RULE, **RUN)
    for name in whole.data.variables:
        assert np.array_equal(resumed.data[name], whole.data[name]), name
    assert resumed.data.final.dtype.isnative


def test_a_record_in_memory_is_checked_too(good, forged):
    record = fw.load(forged(lambda header, arrays: None))
    record.continuation = "not what it was"
    with pytest.raises(RecordError, match=r"continuation = 'not what it was', expected what record.save wrote"):
        fw.resume(record)


def test_a_tree_that_names_an_array_many_times_is_refused_before_it_fills_the_memory(forged):
    """Whoever takes an array copies it: ten thousand names of 8 MB would take 80 GB."""

    def repeat(header, arrays):
        arrays["continuation/large"] = np.zeros(10**6)
        header["continuation"] = [{"array": "large"}] * 10**5

    record = fw.load(forged(repeat))
    with pytest.raises(RecordError, match=r"the state to resume would take 800.0 GB"):
        fw.resume(record)


def test_what_a_file_names_is_never_imported(forged, tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("raise SystemExit('it was imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("planted.Evil", "own planted.Evil", "planted:Evil", "planted"):
        record = fw.load(forged(value(run_of, "runtime", {"type": name, "fields": {}})))
        with pytest.raises(RecordError, match=r"your own class"):
            fw.resume(record)
    assert "planted" not in sys.modules


@pytest.mark.parametrize("types", [5, "SGD", [5], ["SGD"], [int], [fw.SGD(0.1)], {fw.SGD}, None], ids=repr)
def test_only_dataclasses_may_be_passed(forged, types):
    record = fw.load(forged(lambda header, arrays: None))
    with pytest.raises(RecordError, match=r"types = .*, expected a list of dataclasses"):
        fw.resume(record, types=types)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_the_last_steps_of_the_longest_run(runtime):
    """Nothing overflows on the way, whatever a file says about where a walk is."""
    design = fw.designs.Decaying(fw.designs.MHLJ(0.5, 0.5, 2), fw.schedules.Inverse(1.0, scale=1e18))
    rule = fw.SGD(fw.schedules.Inverse(0.01, scale=1e18), average=True)
    options = RUN | {"steps": 200, "every": 100, "paths": 0, "runtime": runtime, "progress": records.press()}
    problem = fw.objectives.LeastSquares.synthetic(5, 3, seed=1)
    partial = fw.learn(problem, design.kernel(GRAPH, problem.smoothness), rule, **options)
    run = partial.continuation
    run.state.step, run.steps, run.every = 2**62 - 5, 2**62, 2**61
    for name, values in run.measures.items():
        run.measures[name] = [values[0][:, :1], values[0][:, :1]]
    resumed = fw.resume(partial)
    assert resumed.data.step.values.tolist() == [0, 2**61, 2**62]
    assert not resumed.partial
    assert np.isfinite(resumed.data.loss).all()


# Loading.


def test_only_what_the_header_names_is_decompressed(forged):
    path = forged(lambda header, arrays: None)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("data/bomb.npy", "w") as file:
        np.lib.format.write_array(file, np.zeros(2**24))  # 128 MB of nothing in 128 kB
    tracemalloc.start()
    try:
        record = fw.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
    assert "bomb" not in record.data


def claiming(shape, size=None):
    """An entry that says it is larger than it is."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue() + b"\0" * 64


def with_entry(path, name, content, **options):
    with zipfile.ZipFile(path, "a", **options) as archive:
        archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize(
    "shape", [(2**40,), (2**62, 2**62), (-1,), (7,), (10**30,), (2.5,), "x", (True,), (2**31, 0, 2**40)], ids=repr
)
def test_an_array_that_is_not_what_it_says_is_never_made(forged, shape):
    path = forged(lambda header, arrays: header["dims"].update(bomb=["bomb"]))
    with pytest.raises(RecordError, match=r"not a record of freewalk"):
        fw.load(with_entry(path, "data/bomb", claiming(shape)))


def test_what_does_not_fit_into_the_memory_is_refused_before_it_is_read(forged, monkeypatch):
    path = forged(lambda header, arrays: header["dims"].update(bomb=["bomb"]))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("data/bomb.npy", "w") as file:
        np.lib.format.write_array(file, np.zeros(2**22))
    monkeypatch.setattr("freewalk.checks.memory", lambda: 2.0**24)
    with pytest.raises(RecordError, match=r"to load it would take 33.6 MB, expected less than the 16.8 MB of memory"):
        fw.load(path)


def directory(path, name, place, content):
    """Change the list of entries of a file, at the entry of that name."""
    data = bytearray(path.read_bytes())
    start = data.rfind(b"PK\x01\x02", 0, data.rfind(name.encode()))
    data[start + place : start + place + len(content)] = content
    path.write_bytes(bytes(data))
    return path


DAMAGE = {
    "two entries of a name": lambda path: with_entry(path, "data/step", b"again"),
    "encrypted": lambda path: directory(path, "data/step", 8, struct.pack("<H", 1)),
    "compressed otherwise": lambda path: directory(path, "data/step", 10, struct.pack("<H", zipfile.ZIP_LZMA)),
    "of a size that it has not": lambda path: directory(path, "data/step", 24, struct.pack("<I", 2**31)),
    "of another sum": lambda path: directory(path, "data/step", 16, b"\1\2\3\4"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", DAMAGE)
def test_archives_that_no_save_writes(name, forged):
    with pytest.raises(RecordError, match=r"not a record of freewalk"):
        fw.load(DAMAGE[name](forged(lambda header, arrays: None)))


def text(**changes):
    return lambda header, arrays: header.update(changes)


def no_step(header, arrays):
    del header["dims"]["step"], arrays["data/step"]
    header["coords"].remove("step")


TEXTS = {
    "no step": (no_step, "it has no steps"),
    "steps of floats": (lambda h, a: a.update({"data/step": a["data/step"] + 0.5}), "it has no steps"),
    "dims a list": (text(dims=[]), "not a record"),
    "dims of numbers": (lambda h, a: h["dims"].update(loss=[1, 2]), "loss is given by .1, 2., expected names"),
    "a dim twice": (lambda h, a: h["dims"].update(loss=["walk", "walk"]), "loss is given by .*, each once"),
    "a dim too many": (lambda h, a: h["dims"].update(loss=["walk", "step", "x"]), "not a record"),
    "dims that do not fit": (lambda h, a: h["dims"].update(final=["walk", "node"]), "entries along node, expected"),
    "a coordinate of nothing": (text(coords=["nothing"]), "not a record"),
    "attrs a list": (text(attrs=[]), "attrs = .., expected a mapping"),
    "partial 2": (lambda h, a: h["attrs"].update(partial=2), "partial = 2, expected a whole number from 0 to 1"),
    "label a list": (lambda h, a: h["attrs"].update(label=[1]), r"label = \[1\], expected a string"),
    "heavy beyond": (lambda h, a: h["attrs"].update(heavy=[5]), "heavy holds 5, expected whole numbers from 0 to 4"),
    "optimum a text": (lambda h, a: h["attrs"].update(optimal_loss="x"), "optimal_loss = 'x', expected a number"),
    "provenance a number": (text(provenance=3), "provenance = 3, expected a dict"),
    "interruptions a text": (lambda h, a: h["provenance"].update(interruptions="x"), "interruptions = 'x', expected"),
    "parts a number": (lambda h, a: h["provenance"].update(parts=3), "parts = 3, expected a dict of dicts"),
    "attributes of a variable": (text(variables={"loss": 3}), "not a record"),
    "a graph of another size": (
        text(graph={"type": "Graph", "fields": {"indptr": {"array": "a0"}, "indices": {"array": "a0"}}}),
        "not a record",
    ),
    "a graph that is none": (text(graph={"a": 1}), "its graph does not fit its data"),
    "a graph of a class": (text(graph={"type": "SGD", "fields": {"step": 1}}), "your own class 'SGD'"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_no_save_writes(name, forged):
    change, message = TEXTS[name]
    with pytest.raises(RecordError, match=message):
        fw.load(forged(change))


@pytest.mark.parametrize("content", [b"[]", b"3", b'"x"', b"{}", b"[" * 10**6, b'{"format": 1}', b"\xff\xfe", b""])
def test_headers_that_are_none(tmp_path, content):
    path = tmp_path / "record.npz"
    with open(path, "wb") as file:
        np.savez(file, header=np.frombuffer(content, dtype=np.uint8))
    with pytest.raises(RecordError, match=r"not a record of freewalk"):
        fw.load(path)


def test_a_pipe_does_not_keep_load_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(RecordError, match=r"not a record of freewalk .it is a folder, a pipe or a device"):
        fw.load(tmp_path / "pipe.npz")


# Many of them.


@pytest.mark.long
def test_tampered_records_are_refused_or_resume():
    count = 150
    found = calls.run(0, count, 11, records.__file__)
    bad = [one for one in found if one["outcome"] not in records.FINE]
    assert not bad
    counts = Counter(one["outcome"] for one in found)
    assert sum(counts.values()) == count
    assert counts["refused"] > count / 2
    assert counts["resumes"] > 0
    assert max(len(one["said"]) for one in found) < 700


WORKER = """
import json, os, sys, time
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    print(json.dumps({"number": number}), flush=True)
    if number == 1:
        os.kill(os.getpid(), 11)
    if number == 2:
        time.sleep(60)
    print(json.dumps({"outcome": "refused"}), flush=True)
"""


def test_a_crash_and_a_hang_would_be_seen(tmp_path, monkeypatch):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    monkeypatch.setattr(calls, "LIMIT", 0.5)
    found = calls.run(0, 4, 1, str(script))
    assert [one["outcome"] for one in found] == ["refused", "crash", "hang", "refused"]
