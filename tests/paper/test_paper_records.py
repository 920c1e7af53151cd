"""What is kept: the same bytes from the same spec, and used again for nothing else."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from handmade import SPEC

import freewalk as fw
from freewalk.paper import files
from freewalk.run.record import Record
from freewalk.specs import parse


@pytest.fixture(scope="module")
def record() -> Record:
    return parse(SPEC).run()


def keep(path: Path, spec: str, record: Record) -> Record:
    """Write what is kept of a record."""
    kept = files.timeless(record, spec)
    kept.save(path)
    return kept


def at_another_hour(story: dict) -> dict:
    """The same story, told later."""
    parts = {
        label: {**part, "started": "1999-12-31T23:59:59+00:00", "seconds": 1e6, "interruptions": 3}
        for label, part in story["parts"].items()
    }
    return {**story, "parts": parts}


def test_the_hour_leaves_no_trace(tmp_path: Path, record: Record) -> None:
    (part, *_) = record.provenance["parts"].values()
    assert {"started", "seconds", "interruptions"} <= set(part)
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    keep(one, SPEC, record)
    keep(two, SPEC, Record(record.data, at_another_hour(record.provenance), graph=record.graph))
    assert one.read_bytes() == two.read_bytes()
    # Without that care they would differ.
    record.save(one)
    Record(record.data, at_another_hour(record.provenance), graph=record.graph).save(two)
    assert one.read_bytes() != two.read_bytes()


def test_a_second_run_gives_the_same_bytes(tmp_path: Path, record: Record) -> None:
    again = parse(SPEC).run()
    for name, one in (("one.npz", record), ("two.npz", again)):
        keep(tmp_path / name, SPEC, one)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    other = parse(SPEC).replaced(seed=8)
    keep(tmp_path / "two.npz", SPEC, other.run())
    assert (tmp_path / "one.npz").read_bytes() != (tmp_path / "two.npz").read_bytes()


def test_what_is_returned_is_what_a_reader_sees(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "record.npz"
    kept = keep(path, SPEC, record)
    read = files.stored(path, SPEC)
    assert read is not None
    assert read.provenance == kept.provenance
    assert read.provenance["spec"] == SPEC
    for name in record.data.variables:
        np.testing.assert_array_equal(read.data[name], kept.data[name], err_msg=str(name))
    assert read.data.attrs == kept.data.attrs


def test_numbers_that_no_walk_made_are_kept_too(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "exact" / "00.npz"
    data = record.data[["mse"]].mean("walk")
    files.kept(path, SPEC, lambda: data)
    found = files.stored(path, SPEC)
    assert found is not None
    np.testing.assert_array_equal(found.data.mse, data.mse)


def test_a_file_is_used_again_for_the_same_spec_alone(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "record.npz"
    assert files.stored(path, SPEC) is None
    keep(path, SPEC, record)
    assert files.stored(path, SPEC) is not None
    assert files.stored(path, SPEC + "\n") is None
    assert files.stored(path, SPEC.replace("1e-2", "2e-2")) is None
    assert files.stored(tmp_path, SPEC) is None


def test_what_other_versions_made_is_made_anew(tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.npz"
    keep(path, SPEC, record)
    monkeypatch.setattr(files, "versions", lambda: {**fw.run.record.versions(), "numpy": "0.1"})
    assert files.stored(path, SPEC) is None
    keep(path, SPEC, record)
    assert files.stored(path, SPEC) is not None
    monkeypatch.undo()
    assert files.stored(path, SPEC) is None


def test_half_a_record_is_not_used(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "record.npz"
    partial = record.data.assign_attrs(partial=1)
    keep(path, SPEC, Record(partial, record.provenance))
    assert Record.load(path).partial
    assert files.stored(path, SPEC) is None


@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda _: b"", lambda _: b"something else"])
def test_a_broken_file_is_made_anew(tmp_path: Path, record: Record, damage) -> None:
    path = tmp_path / "record.npz"
    keep(path, SPEC, record)
    path.write_bytes(damage(path.read_bytes()))
    assert files.stored(path, SPEC) is None


def test_a_record_without_a_story_is_not_used(tmp_path: Path, record: Record) -> None:
    path = Record(record.data).save(tmp_path / "record.npz")
    assert files.stored(path, SPEC) is None
    record.save(path)  # as `freewalk run` writes it: its versions are those of its parts
    assert files.stored(path, record.provenance["spec"]) is None


def test_the_digest_is_the_beginning_of_the_sha_256(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert files.digest(path) == "ba7816bf8f01" == sha256(b"abc").hexdigest()[:12]


def test_keeping_leaves_the_record_as_it_was(tmp_path: Path, record: Record) -> None:
    before = {label: dict(part) for label, part in record.provenance["parts"].items()}
    keep(tmp_path / "record.npz", "another spec", replace(record))
    assert record.provenance["parts"] == before
    assert record.provenance["spec"] == SPEC
