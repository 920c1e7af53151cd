"""Results on disk: whole or absent, locked by one at a time, and free again when the holder dies."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from freewalk.errors import RecordError
from freewalk.sweeps.store import LOCKS, Store

HOLD = """
import sys, time
from pathlib import Path
from freewalk.sweeps.store import Store
lock = Store(Path(sys.argv[1])).lock("key")
print("held" if lock else "taken", flush=True)
time.sleep(60)
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "points", ".txt")


def holder(store: Store) -> "subprocess.Popen[str]":
    """Another process that holds a lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(store.folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_is_freed_when_its_holder_dies(store: Store, number: signal.Signals) -> None:
    process = holder(store)
    assert store.lock("key") is None
    assert store.lock("other") is not None
    assert store.held()["key"].startswith(f"{process.pid} on ")
    process.send_signal(number)
    process.communicate()
    assert "key" not in store.held()
    lock = store.lock("key")
    assert lock is not None
    lock.release()


def test_a_lock_excludes_other_threads_and_other_stores_of_the_process(store: Store) -> None:
    lock = store.lock("key")
    assert lock is not None
    assert Store(store.folder).lock("key") is None
    found = []
    thread = threading.Thread(target=lambda: found.append(store.lock("key")))
    thread.start()
    thread.join()
    assert found == [None]
    lock.release()
    lock.release()  # once more does no harm
    again = store.lock("key")
    assert again is not None
    again.release()
    assert list((store.folder / LOCKS).iterdir()) == []


def test_no_two_hold_the_same_lock_while_files_come_and_go(store: Store) -> None:
    """Locks are taken, removed and tidied up by several threads, as fast as they can, and one has it at a time."""
    inside, most, taken, end = 0, 0, 0, threading.Event()
    counting = threading.Lock()

    def work() -> None:
        nonlocal inside, most, taken
        while not end.is_set():
            lock = store.lock("key")
            if lock is None:
                continue
            with counting:
                inside, taken = inside + 1, taken + 1
                most = max(most, inside)
            time.sleep(0)
            with counting:
                inside -= 1
            lock.release()

    def tidy() -> None:
        while not end.is_set():
            store.tidy()

    threads = [threading.Thread(target=one) for one in (work, work, work, tidy)]
    for thread in threads:
        thread.start()
    time.sleep(0.7)
    end.set()
    for thread in threads:
        thread.join()
    assert most == 1
    assert taken > 20


def test_what_killed_processes_left_is_tidied_up(store: Store) -> None:
    process = holder(store)
    process.kill()
    process.communicate()
    mine = store.lock("mine")
    assert mine is not None
    store.tidy()
    assert [file.name for file in (store.folder / LOCKS).iterdir()] == ["mine"]
    mine.release()
    store.tidy()
    assert list((store.folder / LOCKS).iterdir()) == []


def test_a_result_is_kept_as_it_is(store: Store) -> None:
    assert not store.has("key")
    store.write("key", b"found")
    assert store.has("key")
    assert store.path("key").read_bytes() == b"found"
    assert [file.name for file in store.folder.iterdir()] == ["key.txt"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "points").write_text("a file")
    store = Store(tmp_path / "points")
    with pytest.raises(RecordError, match=r"points.*cannot be written"):
        store.write("key", b"found")
    with pytest.raises(RecordError, match=r"locks/key: cannot be written \(.*\); finished results are kept"):
        store.lock("key")
