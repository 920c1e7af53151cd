"""The folder of a run: made once, complete or resumable, never overwritten by accident."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import freewalk as fw
from freewalk.errors import RecordError, SpecError
from freewalk.experiment import RunFolder, Spec, parse
from freewalk.experiment.folder import record_of

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


def interrupt_second(label: str, done: int, total: int, walks: int) -> None:
    if label == "MHLJ":
        os.kill(os.getpid(), signal.SIGINT)


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


def test_a_changed_spec_is_not_resumed(tmp_path: Path, spec: Spec) -> None:
    folder = RunFolder.create(tmp_path / "run", spec)
    folder.run(interrupt_second)
    (folder.path / "spec.toml").write_text(TEXT.replace("1e-3", "2e-3"))
    with pytest.raises(RecordError, match="was changed since the run began"):
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


def test_force_replaces_a_run_and_nothing_else(tmp_path: Path, spec: Spec) -> None:
    folder = RunFolder.create(tmp_path / "run", spec)
    folder.run(interrupt_second)
    (folder.path / "notes.txt").write_text("mine")
    RunFolder.create(folder.path, spec, force=True)
    assert names(folder.path) == {"spec.toml", "notes.txt"}


def test_a_spec_that_cannot_run_makes_no_folder_and_clears_none(tmp_path: Path, spec: Spec) -> None:
    bad = parse(TEXT.replace("jump = 0.1", "jump = 7"), "my.toml")
    with pytest.raises(SpecError, match="jump = 7"):
        RunFolder.create(tmp_path / "run", bad)
    assert not (tmp_path / "run").exists()
    RunFolder.create(tmp_path / "run", spec).run()
    with pytest.raises(SpecError, match="jump = 7"):
        RunFolder.create(tmp_path / "run", bad, force=True)
    assert (tmp_path / "run" / "record.npz").exists()


def test_a_run_that_fails_at_once_leaves_no_trace(tmp_path: Path, spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise fw.FreewalkError("cpu: cannot run this")

    folder = RunFolder.create(tmp_path / "run", spec)
    monkeypatch.setattr("freewalk.run.learn", refuse)
    with pytest.raises(fw.FreewalkError, match="cannot run this"):
        folder.run()
    assert not folder.path.exists()


def test_what_is_no_run(tmp_path: Path, spec: Spec) -> None:
    with pytest.raises(RecordError, match="is not the folder of a run"):
        RunFolder.open(tmp_path)
    RunFolder.create(tmp_path / "run", spec)
    with pytest.raises(RecordError, match="go on with: freewalk resume"):
        record_of(tmp_path / "run")
    with pytest.raises(RecordError, match="there is no such file"):
        record_of(tmp_path / "none.npz")
