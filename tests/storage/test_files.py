"""A file is complete or absent, whatever happens while it is written."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from freewalk.errors import RecordError
from freewalk.storage.files import replacing


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def write(path: Path, words: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(words)


def fail(path: Path, error: type[BaseException]) -> None:
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise error


def test_a_file_is_swapped_in_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    write(path, "old")
    with replacing(path) as temporary:
        assert temporary.parent == path.parent
        assert temporary.suffix == ".txt"
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(path.parent) == ["a.txt"]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask  # as any file that a program opens


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_a_failure_keeps_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    write(path, "old")
    with pytest.raises(RecordError if error is OSError else error):
        fail(path, error)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with replacing(path) as first, replacing(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"
    assert names(tmp_path) == ["a.txt"]


KILLED = """
import sys, time
from freewalk.storage.files import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    (tmp_path / ".a.txt.mine.tmp.txt").touch()
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        left = [name for name in names(tmp_path) if "mine" not in name]
        write(path, "new")
        assert set(names(tmp_path)) == {*left, "a.txt", ".a.txt.mine.tmp.txt"}
        process.send_signal(signal.SIGKILL)
    assert set(left) < set(names(tmp_path))
    write(path, "newer")
    assert names(tmp_path) == [".a.txt.mine.tmp.txt", "a.txt"]
    assert path.read_text() == "newer"


def test_through_a_link_its_file_is_replaced(tmp_path: Path) -> None:
    path, link = tmp_path / "folder" / "a.txt", tmp_path / "link.txt"
    write(path, "old")
    link.symlink_to(path)
    write(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


@pytest.mark.parametrize("path", ["/dev/null", "/proc/none/a.txt", "a\0b", 5, None, b"a", "", "\ud800", "x" * 300])
def test_places_that_cannot_be_written(tmp_path: Path, path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordError), replacing(path):  # type: ignore[arg-type]
        raise AssertionError("nothing is written")
    assert names(tmp_path) == []


def test_a_folder_or_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "a.txt"):
        with pytest.raises(RecordError, match="cannot be written"), replacing(path):
            raise AssertionError("nothing is written")
