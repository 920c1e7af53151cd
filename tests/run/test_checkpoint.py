"""Checkpoints: whatever file a killed run leaves, `fw.resume` completes it to the same result."""

import signal
import warnings

import numpy as np
import pytest

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.run import loop
from freewalk.run import loop as watching
from freewalk.run.loop import Watch

GRAPH = fw.graphs.ring(30)
PROBLEM = fw.objectives.LeastSquares.synthetic(30, 3, heavy=2, samples=[1, 2] * 15, ridge=0.01, seed=2)
PLAIN = fw.objectives.LeastSquares.synthetic(30, 3, heavy=2, samples=[1, 2] * 15, seed=2)
KERNEL = fw.designs.MHLJ(jump=0.3, stop=0.5, hops=3).kernel(GRAPH, PROBLEM.smoothness)
RUN = {"steps": 120, "walks": 3, "every": 7, "seed": 5, "paths": [2, 0]}
RULE = fw.SGD(0.01)
OFTEN = 1e-9  # seconds: after every chunk


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    """A checkpoint after every chunk, and short chunks."""
    monkeypatch.setattr(loop, "_CHUNK_STEPS", 16)
    monkeypatch.setattr(watching, "_SHARE", 0)


class Crash(Exception):
    """In place of kill -9."""


def crash_at(last):
    def progress(step, steps):
        if step >= last:
            raise Crash

    return progress


def crashed(path, last=60, **run):
    with pytest.raises(Crash):
        fw.learn(PROBLEM, KERNEL, RULE, **RUN, **run, progress=crash_at(last), checkpoint=path, checkpoint_every=OFTEN)
    return fw.load(path)


def test_every_checkpoint_leads_to_the_same_result(runtime, tmp_path):
    files = []
    whole = fw.learn(
        *(PROBLEM, KERNEL, RULE),
        **RUN,
        runtime=runtime,
        checkpoint=lambda record: files.append(record.save(tmp_path / f"{len(files)}")),
        checkpoint_every=OFTEN,
    )
    plain = fw.learn(PROBLEM, KERNEL, RULE, **RUN, runtime=runtime)
    assert whole.data.identical(plain.data)
    assert whole.provenance["interruptions"] == 0
    assert len(files) > 5
    for file in files:
        record = fw.load(file)
        assert record.partial
        resumed = fw.resume(record)
        assert resumed.data.identical(plain.data)
        assert resumed.provenance["interruptions"] == 1
        assert resumed.provenance["started"] == whole.provenance["started"]


def test_walks_without_learning_and_tokens_that_meet(tmp_path):
    run = {"steps": 100, "walks": 2, "every": 9, "tokens": 3, "seed": 4}
    learn = {"exchange": fw.exchanges.Meet()}
    for function, given, more in ((fw.walk, (KERNEL,), {}), (fw.learn, (PLAIN, KERNEL, RULE), learn)):
        with pytest.raises(Crash):
            function(*given, **run, **more, progress=crash_at(60), checkpoint=tmp_path / "it", checkpoint_every=OFTEN)
        record = fw.load(tmp_path / "it.npz")
        assert 0 < record.data.step.values[-1] < 100
        assert fw.resume(record).data.identical(function(*given, **run, **more).data)


def test_visits_that_threads_count_apart_are_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr("freewalk.jobs.job._VISITS_BY_WALK", 10)
    run = {"steps": 100, "walks": 40, "every": 10, "runtime": fw.runtimes.CPU(threads=2)}
    with pytest.raises(Crash):
        fw.walk(KERNEL, **run, progress=crash_at(60), checkpoint=tmp_path / "it", checkpoint_every=OFTEN)
    record = fw.load(tmp_path / "it.npz")
    assert record.data.visits.dims == ("node",)
    assert record.data.visits.sum() == 40 * record.continuation.tree["fields"]["state"]["fields"]["step"]
    assert fw.resume(record).data.identical(fw.walk(KERNEL, **run).data)


def test_the_file_holds_the_newest_state(runtime, tmp_path):
    """Partial while the run is under way and after Ctrl-C, complete in the end, also of a resumed run."""
    path = tmp_path / "folders" / "run.npz"
    whole = fw.learn(PROBLEM, KERNEL, RULE, **RUN, runtime=runtime)
    first = crashed(path, runtime=runtime)
    with pytest.raises(Crash):
        fw.resume(first, progress=crash_at(90), checkpoint=path, checkpoint_every=OFTEN)
    second = fw.load(path)
    assert first.data.step.size < second.data.step.size < whole.data.step.size
    stopped = fw.resume(second, progress=lambda *_: signal.raise_signal(signal.SIGINT), checkpoint=path)
    assert fw.load(path).partial
    assert fw.load(path).data.identical(stopped.data)
    done = fw.resume(fw.load(path), checkpoint=path)
    assert done.data.identical(whole.data)
    assert fw.load(path).data.identical(whole.data)
    assert not fw.load(path).partial
    assert done.provenance["interruptions"] == 3
    assert [file.name for file in path.parent.iterdir()] == ["run.npz"]


def test_a_record_that_a_function_keeps_is_not_resumed_from_a_state_that_has_moved():
    kept = []
    fw.learn(PROBLEM, KERNEL, RULE, **RUN, checkpoint=kept.append, checkpoint_every=OFTEN)
    first = kept[0]
    assert first.partial
    assert first.data.step.size < kept[-1].data.step.size
    with pytest.raises(RecordError, match="the run continued; load the checkpoint file"):
        fw.resume(first)


def test_what_was_measured_does_not_change_in_a_record_that_is_kept():
    kept = []

    def keep(record):
        kept.append((record, record.data.copy(deep=True)))

    fw.learn(PROBLEM, KERNEL, RULE, **RUN, checkpoint=keep, checkpoint_every=OFTEN)
    assert all(record.data.identical(copy) for record, copy in kept)


def test_ctrl_c_while_a_checkpoint_is_written_ends_the_run_as_ever(tmp_path):
    def press(record):
        record.save(tmp_path / "it")
        signal.raise_signal(signal.SIGINT)

    record = fw.learn(PROBLEM, KERNEL, RULE, **RUN, checkpoint=press, checkpoint_every=OFTEN)
    assert record.partial
    assert record.provenance["interrupted_by"] == "SIGINT"
    assert fw.resume(record).data.identical(fw.learn(PROBLEM, KERNEL, RULE, **RUN).data)


# How often.


class Clock:
    """Seconds that pass when told."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(watching.time, "perf_counter", lambda: self.now)


def test_a_slow_disk_does_not_slow_a_run_down(monkeypatch):
    monkeypatch.setattr(watching, "_SHARE", 20)
    clock, saved = Clock(monkeypatch), []
    record = fw.walk(KERNEL, steps=3)

    def save(_):
        clock.now += 5.0
        saved.append(clock.now)

    watch = Watch.of("run", None, save, 60.0)
    for _ in range(1000):
        clock.now += 1.0
        watch.checkpoint(lambda: record)
    pauses = np.diff(saved)
    assert saved[0] == 100.0 + 60 + 5
    assert (pauses == 20 * 5 + 5).all()
    assert len(saved) == 10  # 60 seconds of work, then 9 times 100


def test_there_is_none_before_its_time(tmp_path):
    with pytest.raises(Crash):
        fw.walk(KERNEL, steps=100, progress=crash_at(60), checkpoint=tmp_path / "it")
    assert list(tmp_path.iterdir()) == []


# What goes wrong.


def test_a_disk_that_is_full_is_told_once_and_stops_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("freewalk.storage.archive.write_arrays", full)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        record = fw.learn(PROBLEM, KERNEL, RULE, **RUN, checkpoint=tmp_path / "it", checkpoint_every=OFTEN)
    assert not record.partial
    assert len(told) == 1
    assert issubclass(told[0].category, fw.errors.FreewalkWarning)
    assert "no checkpoint was written, and the run continues without: " in str(told[0].message)
    assert "No space left on device" in str(told[0].message)
    assert list(tmp_path.iterdir()) == []


def test_a_function_that_fails_is_heard():
    def fail(record):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        fw.learn(PROBLEM, KERNEL, RULE, **RUN, checkpoint=fail, checkpoint_every=OFTEN)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"checkpoint": 5}, r"checkpoint = 5, expected the path of a file"),
        ({"checkpoint": ""}, r"checkpoint = '', expected the path of a file"),
        ({"checkpoint": lambda: None}, r"expected a function checkpoint\(record\)"),
        ({"checkpoint_every": 0}, r"checkpoint_every = 0, expected seconds > 0"),
        ({"checkpoint_every": float("nan")}, r"checkpoint_every = nan, expected seconds > 0"),
        ({"checkpoint_every": "1"}, r"checkpoint_every = '1', expected seconds > 0"),
    ],
)
def test_nonsense_is_refused_where_it_enters(given, message):
    partial = fw.walk(KERNEL, steps=50, progress=lambda *_: signal.raise_signal(signal.SIGINT))
    for who, call in (
        ("run", lambda: fw.learn(PROBLEM, KERNEL, RULE, **RUN, **given)),
        ("run", lambda: fw.walk(KERNEL, **RUN, **given)),
        ("resume", lambda: fw.resume(partial, **given)),
    ):
        with pytest.raises(fw.FreewalkError, match=f"^{who}: .*{message}"):
            call()


def test_a_place_that_cannot_be_written_is_refused_before_the_run(tmp_path):
    told = []
    (tmp_path / "file").touch()
    (tmp_path / "folder.npz").mkdir()
    for path in (tmp_path / "folder", tmp_path / "file" / "it.npz"):
        with pytest.raises(RecordError, match="cannot be written"):
            fw.learn(PROBLEM, KERNEL, RULE, **RUN, checkpoint=path, progress=lambda *_: told.append(1))
    assert not told
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder.npz"]


# Progress with what was measured.


def test_progress_gets_the_means_at_the_last_mark_where_it_asks_for_them(runtime):
    told = []

    def look(step, steps, measures):
        told.append((step, steps, measures))

    record = fw.learn(PROBLEM, KERNEL, RULE, **RUN, runtime=runtime, progress=look)
    assert told[-1][:2] == (120, 120)
    for step, _, measures in told:
        now = record.data.sel(step=step - step % 7 if step < 120 else 120).mean("walk")
        assert set(measures) == {"loss", "mse", "distance", "messages", "probes", "bytes"}
        for name, value in measures.items():
            assert isinstance(value, float)
            assert value == pytest.approx(float(now[name]), rel=1e-14)
    told.clear()
    fw.walk(KERNEL, **RUN, progress=look)
    assert set(told[-1][2]) == {"messages", "probes"}


def test_other_functions_are_called_as_before():
    told = []

    def with_default(step, steps, bar="mine"):
        told.append(bar)

    fw.walk(KERNEL, **RUN, progress=with_default)
    fw.walk(KERNEL, **RUN, progress=lambda *args, **more: told.append((len(args), more)))
    assert set(map(str, told)) == {"mine", "(2, {})"}


def test_a_progress_that_fits_neither_form():
    expected = r"run: progress = .*, expected a function progress\(step, steps\) or progress\(step, steps, measures\)"
    for wrong in (lambda: None, lambda measures, steps: None, lambda a, b, c: None, lambda a, b, c, measures: None):
        with pytest.raises(fw.FreewalkError, match=expected):
            fw.walk(KERNEL, **RUN, progress=wrong)
