"""The folder of a run: made once, complete or resumable, never overwritten by accident."""

import signal
from pathlib import Path

import numpy as np
import pytest

import freewalk as fw
from freewalk.errors import RecordError, SpecError
from freewalk.specs import RunFolder, Spec, load, parse
from freewalk.specs.folder import record_of

TEXT = """
[graph]
kind = "ring"
n = 10
[problem]
kind = "LeastSquares"
dim = 3
heavy = 2
[run]
steps = 300
walks = 4
every = 50
[[walk]]
label = "simple"
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 1e-3 }
[[walk]]
label = "MHLJ"
design = { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }
rule = { kind = "SGD", step = 1e-3 }
[[walk]]
label = "central"
design = { kind = "Centralized" }
rule = { kind = "SGD", step = 1e-3 }
"""


@pytest.fixture
def spec() -> Spec:
    return parse(TEXT, "my.toml")


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures that take no time, where the test is about something else."""
    monkeypatch.setattr("freewalk.report.curves", lambda record, path: path.touch())


def interrupt_second(label: str, done: int, total: int, walks: int) -> None:
    if label == "MHLJ":
        signal.raise_signal(signal.SIGINT)


def names(path: Path) -> set[str]:
    return {file.name for file in path.iterdir()}


def test_a_run_leaves_spec_record_figure_and_table(tmp_path: Path, spec: Spec) -> None:
    folder = RunFolder.create(tmp_path / "runs" / "one", spec)
    record = folder.run()
    assert names(folder.path) == {"spec.toml", "record.npz", "curves.png", "table.txt"}
    assert (folder.path / "spec.toml").read_text() == TEXT
    assert "final" in (folder.path / "table.txt").read_text()
    np.testing.assert_array_equal(record_of(folder.path).data.loss, record.data.loss)
    np.testing.assert_array_equal(record_of(folder.path / "record.npz").data.loss, record.data.loss)
    with pytest.raises(RecordError, match="complete, there is nothing to resume"):
        RunFolder.open(folder.path).run()


@pytest.mark.usefixtures("sketched")
def test_resume_gives_the_same_arrays(tmp_path: Path, spec: Spec) -> None:
    whole = RunFolder.create(tmp_path / "whole", spec).run()
    stopped = RunFolder.create(tmp_path / "stopped", spec)
    assert stopped.run(interrupt_second).partial
    assert names(stopped.path) == {"spec.toml", "record.npz", "curves.png", "table.txt", "parts"}
    assert names(stopped.path / "parts") == {"00.npz", "01.npz"}
    assert "interrupted" in (stopped.path / "table.txt").read_text()
    assert fw.load(stopped.path / "record.npz").partial
    rest = RunFolder.open(stopped.path).run()
    assert not rest.partial
    assert names(stopped.path) == {"spec.toml", "record.npz", "curves.png", "table.txt"}
    for name in whole.data.data_vars:
        np.testing.assert_array_equal(rest.data[name], whole.data[name], err_msg=str(name))
        assert rest.data[name].dtype == whole.data[name].dtype


@pytest.mark.usefixtures("sketched")
def test_a_changed_spec_is_not_resumed(tmp_path: Path, spec: Spec) -> None:
    folder = RunFolder.create(tmp_path / "run", spec)
    folder.run(interrupt_second)
    (folder.path / "spec.toml").write_text(TEXT.replace("1e-3", "2e-3"))
    with pytest.raises(RecordError, match="has changed since the run began"):
        RunFolder.open(folder.path).run()


def test_an_existing_folder_is_refused_before_anything_is_made(tmp_path: Path, spec: Spec) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(SpecError, match=r"taken exists already; choose another with --out, or replace it with --force"):
        RunFolder.create(taken, spec)
    (taken / "thesis.txt").write_text("years of work")
    with pytest.raises(SpecError, match="is not the folder of a run, so it is not replaced"):
        RunFolder.create(taken, spec, force=True)
    assert names(taken) == {"thesis.txt"}


@pytest.mark.usefixtures("sketched")
def test_force_replaces_a_run_when_the_new_one_is_complete(tmp_path: Path, spec: Spec) -> None:
    old = RunFolder.create(tmp_path / "run", spec)
    old.run(interrupt_second)
    (old.path / "notes.txt").write_text("mine")
    before = {file: file.read_bytes() for file in old.path.rglob("*") if file.is_file()}
    other = parse(TEXT.replace("every = 50", "every = 60"), "my.toml")
    new = RunFolder.create(old.path, other, force=True)
    assert new.work == old.path / "new"
    assert new.run(interrupt_second).partial
    assert {file: file.read_bytes() for file in before} == before  # nothing is lost yet
    with pytest.raises(SpecError, match=r"run exists already; resume it with: freewalk resume"):
        RunFolder.create(old.path, other)
    assert not RunFolder.open(old.path).run().partial
    assert names(old.path) == {"spec.toml", "record.npz", "curves.png", "table.txt", "notes.txt"}
    assert (old.path / "spec.toml").read_text() == other.text
    whole = RunFolder.create(tmp_path / "whole", other).run()
    np.testing.assert_array_equal(record_of(old.path).data.loss, whole.data.loss)


@pytest.mark.usefixtures("sketched")
def test_force_starts_again_and_spares_what_is_not_its_own(tmp_path: Path, spec: Spec) -> None:
    RunFolder.create(tmp_path / "run", spec).run()
    for _ in range(2):
        folder = RunFolder.create(tmp_path / "run", spec, force=True)
        assert names(folder.work) == {"spec.toml"}
    (folder.work / "mine.txt").write_text("mine")
    folder.run()
    assert names(folder.path / "new") == {"mine.txt"}
    with pytest.raises(SpecError, match="new is not a run but is where the new run would be written"):
        RunFolder.create(folder.path, spec, force=True)
    assert (folder.path / "new" / "mine.txt").exists()


@pytest.mark.usefixtures("sketched")
def test_one_process_at_a_time_runs_in_a_folder(tmp_path: Path, spec: Spec) -> None:
    RunFolder.create(tmp_path / "run", spec).run()
    first, other = RunFolder.create(tmp_path / "run", spec, force=True), parse(TEXT.replace("300", "400"), "other.toml")

    def intrude(*arguments: object) -> None:
        for attempt in (
            lambda: RunFolder.create(first.path, other, force=True),
            lambda: RunFolder.open(first.path).run(),
        ):
            with pytest.raises(RecordError, match="another process is running this"):
                attempt()

    first.run(intrude)
    assert names(first.path) == {"spec.toml", "record.npz", "curves.png", "table.txt"}
    assert first.complete


@pytest.mark.usefixtures("sketched")
def test_a_run_that_another_one_replaced_before_it_began(tmp_path: Path, spec: Spec) -> None:
    first = RunFolder.create(tmp_path / "run", spec)
    other = RunFolder.create(tmp_path / "run", parse(TEXT.replace("300", "400"), "other.toml"), force=True)
    with pytest.raises(RecordError, match="another process has begun another run there"):
        first.run()
    other.run()
    assert (first.path / "spec.toml").read_text() == other.spec.text


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize(
    "left", [["curves.png"], ["table.txt", "record.npz", ".record.npz.7-0.tmp.npz"], ["parts/00.npz"]]
)
def test_what_two_runs_at_once_left_is_cleared(tmp_path: Path, spec: Spec, left: list[str]) -> None:
    folder = RunFolder.create(tmp_path / "run", spec)
    folder.run()
    for name in left:
        file = folder.path / "new" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("of a run that was interrupted")
    again = RunFolder.create(folder.path, spec, force=True)
    again.run()
    assert again.complete
    assert names(folder.path) == {"spec.toml", "record.npz", "curves.png", "table.txt"}


@pytest.mark.usefixtures("sketched")
def test_a_bad_spec_is_reported_before_an_existing_folder(tmp_path: Path, spec: Spec) -> None:
    RunFolder.create(tmp_path / "run", spec).run()
    bad = parse(TEXT.replace("jump = 0.1", "jump = 7"), "my.toml")
    with pytest.raises(SpecError, match="jump = 7"):
        RunFolder.create(tmp_path / "run", bad)
    card = spec.replaced(runtime="cuda")
    for force in (False, True):
        with pytest.raises(SpecError, match=r"my\.toml: \[run\]: cuda: "):
            RunFolder.create(tmp_path / "run", card, force=force)
    assert RunFolder.open(tmp_path / "run").complete


@pytest.mark.parametrize("missing", ["curves.png", "table.txt"])
def test_a_run_that_lacks_its_figure_is_finished_from_its_record(tmp_path: Path, spec: Spec, missing: str) -> None:
    folder = RunFolder.create(tmp_path / "run", spec)
    made = folder.run()
    stamp = (folder.path / "record.npz").stat().st_mtime_ns
    (folder.path / missing).unlink()
    again = RunFolder.open(folder.path).run(interrupt_second)  # nothing is run that could be interrupted
    np.testing.assert_array_equal(again.data.loss, made.data.loss)
    assert (folder.path / missing).is_file()
    assert (folder.path / "record.npz").stat().st_mtime_ns == stamp


@pytest.mark.usefixtures("sketched")
def test_files_that_killed_saves_left_are_no_parts(tmp_path: Path, spec: Spec) -> None:
    folder = RunFolder.create(tmp_path / "run", spec)
    folder.run(interrupt_second)
    (folder.path / "parts" / ".01.npz.123-0.tmp.npz").write_bytes(b"half")
    (folder.path / "parts" / "00.npz").rename(folder.path / "parts" / "02.npz")
    with pytest.raises(RecordError, match=r"a file is missing before 02\.npz"):
        RunFolder.open(folder.path).run()
    (folder.path / "parts" / "02.npz").rename(folder.path / "parts" / "00.npz")
    assert not RunFolder.open(folder.path).run().partial


@pytest.mark.usefixtures("sketched")
def test_ctrl_c_while_a_part_is_saved_keeps_it(tmp_path: Path, spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    save = fw.Record.save

    def interrupted(self: fw.Record, path: Path) -> Path:
        if path.name == "00.npz":
            signal.raise_signal(signal.SIGINT)
        return save(self, path)

    folder = RunFolder.create(tmp_path / "run", spec)
    with monkeypatch.context() as context:
        context.setattr(fw.Record, "save", interrupted)
        record = folder.run()
    assert record.partial
    assert record.provenance["interrupted_by"] == "SIGINT"
    assert names(folder.path / "parts") == {"00.npz"}
    assert not RunFolder.open(folder.path).run().partial


def test_ctrl_c_while_the_figure_is_drawn_comes_after_it(
    tmp_path: Path, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    from freewalk import report

    curves = report.curves

    def interrupted(*arguments: object) -> Path:
        signal.raise_signal(signal.SIGINT)
        return curves(*arguments)

    folder = RunFolder.create(tmp_path / "run", spec)
    monkeypatch.setattr(report, "curves", interrupted)
    with pytest.raises(KeyboardInterrupt):
        folder.run()
    assert folder.complete


DATA = TEXT.replace("dim = 3\nheavy = 2", 'data = "samples.npz"')


@pytest.fixture
def on_data(tmp_path: Path) -> Spec:
    (tmp_path / "mine").mkdir()
    np.savez(tmp_path / "mine" / "samples.npz", features=np.eye(10), targets=np.arange(10.0), nodes=np.arange(10))
    (tmp_path / "mine" / "my.toml").write_text(DATA)
    return load(tmp_path / "mine" / "my.toml")


@pytest.mark.usefixtures("sketched")
def test_a_run_finds_its_data_again(tmp_path: Path, on_data: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = RunFolder.create(tmp_path / "whole", on_data).run()
    folder = RunFolder.create(tmp_path / "run", on_data)
    folder.run(interrupt_second)
    assert names(folder.path) == {"spec.toml", "inputs.json", "record.npz", "curves.png", "table.txt", "parts"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    rest = RunFolder.open(folder.path).run()
    np.testing.assert_array_equal(rest.data.loss, whole.data.loss)
    assert rest.provenance["files"] == whole.provenance["files"]
    again = RunFolder.create(tmp_path / "again", load(folder.path / "spec.toml")).run()
    np.testing.assert_array_equal(again.data.loss, whole.data.loss)


def interrupt_last(label: str, done: int, total: int, walks: int) -> None:
    if label == "central":
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("sketched")
def test_data_that_changed_are_refused_where_they_are_needed(tmp_path: Path, on_data: Spec) -> None:
    needed, not_needed = tmp_path / "needed", tmp_path / "not needed"
    RunFolder.create(needed, on_data).run(interrupt_second)
    RunFolder.create(not_needed, on_data).run(interrupt_last)
    data = tmp_path / "mine" / "samples.npz"
    content = data.read_bytes()
    data.write_bytes(content + b" ")
    with pytest.raises(RecordError, match=r"samples\.npz: has changed since the run began"):
        RunFolder.open(needed).run()
    data.unlink()
    with pytest.raises(RecordError, match=r"samples\.npz: cannot be read \(No such file or directory\)"):
        RunFolder.open(needed).run()
    rest = RunFolder.open(not_needed).run()  # every walk has begun, and carries its data
    assert not rest.partial
    assert "samples.npz" in rest.provenance["files"]
    data.write_bytes(content)
    (needed / "inputs.json").write_text("{}")
    with pytest.raises(RecordError, match=r"inputs\.json: is missing or damaged"):
        RunFolder.open(needed).run()


@pytest.mark.usefixtures("sketched")
def test_a_large_record_is_announced(tmp_path: Path, spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freewalk.specs.folder._LARGE", 1.0)
    told: list[str] = []
    RunFolder.create(tmp_path / "run", spec, tell=told.append).run()
    assert told[-1].startswith("writing a record of ")
    assert told[-1].endswith(f"kB, before compression, to {tmp_path / 'run' / 'record.npz'}")
    assert len(told) == 3  # two parts before it


@pytest.mark.usefixtures("sketched")
def test_checkpoints_of_a_large_record_are_announced_once(
    tmp_path: Path, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freewalk.specs.folder._LARGE", 1.0)
    monkeypatch.setattr("freewalk.run.loop._SHARE", 0)
    monkeypatch.setattr("freewalk.run.loop._CHUNK_STEPS", 16)
    often = parse(TEXT.replace("every = 50", "every = 50\ncheckpoint = 1e-9"), "my.toml")
    told: list[str] = []
    folder = RunFolder.create(tmp_path / "run", often, tell=told.append)
    found = folder.run()
    files = [line.rpartition(" ")[2] for line in told]
    assert files == [str(folder.path / name) for name in ("parts/00.npz", "parts/01.npz", "parts/02.npz", "record.npz")]
    np.testing.assert_array_equal(found.data.loss, spec.run().data.loss)


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize(("checkpoint", "kept"), [("0", 0), ("1e-9", 1)])
def test_a_part_is_there_while_its_walk_is_under_way_if_the_spec_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: str, kept: int
) -> None:
    monkeypatch.setattr("freewalk.run.loop._SHARE", 0)
    monkeypatch.setattr("freewalk.run.loop._CHUNK_STEPS", 16)
    often = parse(TEXT.replace("every = 50", f"every = 50\ncheckpoint = {checkpoint}"), "my.toml")
    folder = RunFolder.create(tmp_path / "run", often)

    def crash(label: str, done: int, total: int, walks: int) -> None:
        if done > 100:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        RunFolder.open(folder.path).run(crash)
    assert len(list(folder.path.glob("parts/*.npz"))) == kept
    np.testing.assert_array_equal(RunFolder.open(folder.path).run().data.loss, often.run().data.loss)


@pytest.mark.usefixtures("sketched")
def test_a_walk_that_cannot_be_resumed_starts_again(tmp_path: Path, spec: Spec) -> None:
    folder = RunFolder.create(tmp_path / "run", spec)
    folder.run(interrupt_second)
    file = folder.path / "parts" / "01.npz"
    part = fw.load(file)
    part.continuation = None  # as where an objective of the user's own cannot be saved
    part.save(file)
    told: list[str] = []
    found = RunFolder.open(folder.path, tell=told.append).run()
    assert told == [f"{file}: cannot be resumed (it lacks the state needed to resume); this walk starts again"]
    np.testing.assert_array_equal(found.data.loss, spec.run().data.loss)


def test_a_spec_that_cannot_run_makes_no_folder_and_clears_none(tmp_path: Path, spec: Spec) -> None:
    bad = parse(TEXT.replace("jump = 0.1", "jump = 7"), "my.toml")
    with pytest.raises(SpecError, match="jump = 7"):
        RunFolder.create(tmp_path / "run", bad)
    assert not (tmp_path / "run").exists()
    RunFolder.create(tmp_path / "run", spec).run()
    with pytest.raises(SpecError, match="jump = 7"):
        RunFolder.create(tmp_path / "run", bad, force=True)
    assert (tmp_path / "run" / "record.npz").exists()


@pytest.mark.parametrize("error", [fw.FreewalkError("cpu: cannot run this"), ZeroDivisionError("cannot run this")])
@pytest.mark.parametrize("function", ["freewalk.run.learn.learn", "freewalk.storage.archive.write_arrays"])
def test_a_run_that_fails_at_once_leaves_no_trace(
    tmp_path: Path, spec: Spec, monkeypatch: pytest.MonkeyPatch, error: Exception, function: str
) -> None:
    """Whether it cannot walk or cannot write, and whoever says so."""

    def refuse(*arguments: object, **options: object) -> None:
        raise error

    folder = RunFolder.create(tmp_path / "run", spec)
    monkeypatch.setattr(function, refuse)
    with pytest.raises(type(error), match="cannot run this"):
        RunFolder.open(folder.path).run()
    assert (folder.path / "spec.toml").exists()  # it was there before
    with pytest.raises(type(error), match="cannot run this"):
        folder.run()
    assert not folder.path.exists()


def test_what_is_no_run(tmp_path: Path, spec: Spec) -> None:
    with pytest.raises(RecordError, match="is not the folder of a run"):
        RunFolder.open(tmp_path)
    RunFolder.create(tmp_path / "run", spec)
    with pytest.raises(RecordError, match="resume it with: freewalk resume"):
        record_of(tmp_path / "run")
    with pytest.raises(RecordError, match="there is no such file"):
        record_of(tmp_path / "none.npz")
