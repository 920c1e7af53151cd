"""How a sweep resumes: results whole or absent, locked by one at a time, each computed once, whatever fails."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from freewalk.errors import FreewalkError, FreewalkWarning, RecordError, SpecError
from freewalk.sweeps.crews import Look, Lost, Work, crew_of
from freewalk.sweeps.resume import LOCKS, Results, compute


@dataclass(frozen=True)
class Square(Work):
    """A number times itself, slowly, with a note of who did it; 13 brings bad luck."""

    number: int
    notes: Path
    steps: int = 1

    def run(self, look: Look | None = None) -> bytes:
        with (self.notes / f"{self.number}-{os.getpid()}-{time.monotonic_ns()}").open("x"):
            pass
        for step in range(self.steps):
            if look is not None:
                look(step, self.steps)
            time.sleep(0.002)
        if self.number == 13:
            raise SpecError("thirteen")
        if self.number == 99:
            raise ZeroDivisionError("ours")
        return str(self.number**2).encode()


@pytest.fixture
def results(tmp_path: Path) -> Results:
    (tmp_path / "notes").mkdir()
    return Results(tmp_path / "points", ".txt")


def squares(results: Results, *numbers: int, steps: int = 1) -> list[Square]:
    notes = results.folder.parent / "notes"
    return [Square(number, notes, steps, key=f"k{number}", words=f"number {number}", size=10) for number in numbers]


def begun(results: Results) -> list[int]:
    """The numbers that were begun, each as often as it was."""
    return sorted(int(file.name.partition("-")[0]) for file in (results.folder.parent / "notes").iterdir())


HOLD = """
import sys, time
from pathlib import Path
from freewalk.sweeps.resume import Results
lock = Results(Path(sys.argv[1])).lock("key")
print("held" if lock else "taken", flush=True)
time.sleep(60)
"""


def holder(results: Results) -> "subprocess.Popen[str]":
    """Another process that holds a lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(results.folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_is_freed_when_its_holder_dies(results: Results, number: signal.Signals) -> None:
    process = holder(results)
    assert results.lock("key") is None
    assert results.lock("other") is not None
    assert results.held()["key"].startswith(f"{process.pid} on ")
    process.send_signal(number)
    process.communicate()
    assert "key" not in results.held()
    lock = results.lock("key")
    assert lock is not None
    lock.release()


def test_a_lock_excludes_other_threads_and_other_objects_of_the_process(results: Results) -> None:
    lock = results.lock("key")
    assert lock is not None
    assert Results(results.folder).lock("key") is None
    found = []
    thread = threading.Thread(target=lambda: found.append(results.lock("key")))
    thread.start()
    thread.join()
    assert found == [None]
    lock.release()
    lock.release()  # once more does no harm
    again = results.lock("key")
    assert again is not None
    again.release()
    assert list((results.folder / LOCKS).iterdir()) == []


def test_no_two_hold_the_same_lock_while_files_come_and_go(results: Results) -> None:
    """Locks are taken, removed and tidied up by several threads, as fast as they can, and one has it at a time."""
    inside, most, taken, end = 0, 0, 0, threading.Event()
    counting = threading.Lock()

    def work() -> None:
        nonlocal inside, most, taken
        while not end.is_set():
            lock = results.lock("key")
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
            results.tidy()

    threads = [threading.Thread(target=one) for one in (work, work, work, tidy)]
    for thread in threads:
        thread.start()
    time.sleep(0.7)
    end.set()
    for thread in threads:
        thread.join()
    assert most == 1
    assert taken > 20


def test_what_killed_processes_left_is_tidied_up(results: Results) -> None:
    process = holder(results)
    process.kill()
    process.communicate()
    mine = results.lock("mine")
    assert mine is not None
    results.tidy()
    assert [file.name for file in (results.folder / LOCKS).iterdir()] == ["mine"]
    mine.release()
    results.tidy()
    assert list((results.folder / LOCKS).iterdir()) == []


def test_a_result_is_kept_as_it_is(results: Results) -> None:
    assert not results.has("key")
    results.write("key", b"found")
    assert results.has("key")
    assert results.path("key").read_bytes() == b"found"
    assert [file.name for file in results.folder.iterdir()] == ["key.txt"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "points").write_text("a file")
    results = Results(tmp_path / "points")
    with pytest.raises(RecordError, match=r"points.*cannot be written"):
        results.write("key", b"found")
    with pytest.raises(RecordError, match=r"locks/key: cannot be written \(.*\); choose another folder"):
        results.lock("key")


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_each_is_computed_once_and_what_is_there_is_not(results: Results, on: str) -> None:
    results.write("k3", b"there already")
    told: list[tuple[int, int, int, int]] = []
    with crew_of(on, 2) as crew:
        made, _ = compute(squares(results, *range(8), 5), results, crew, lambda *numbers: told.append(numbers))
        assert sorted(made) == [f"k{number}" for number in range(8) if number != 3]
        assert begun(results) == [0, 1, 2, 4, 5, 6, 7]
        assert compute(squares(results, *range(8)), results, crew) == ([], {})
    assert results.path("k3").read_bytes() == b"there already"
    assert [results.path(f"k{number}").read_bytes() for number in (2, 7)] == [b"4", b"49"]
    assert (told[0], told[-1]) == ((1, 8, 10, 80), (8, 8, 80, 80))
    assert told == sorted(told)


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_what_fails_is_noted_and_the_others_go_on(results: Results, on: str) -> None:
    with crew_of(on, 2) as crew:
        made, failed = compute(squares(results, 13, 1, 2), results, crew)
    assert sorted(made) == ["k1", "k2"]
    assert {key: str(error) for key, error in failed.items()} == {"k13": "thirteen"}
    assert not results.has("k13")
    assert results.held() == {}


def test_an_error_of_our_own_ends_it_and_keeps_what_is_finished(results: Results) -> None:
    with crew_of("threads", 1) as crew, pytest.raises(ZeroDivisionError, match="ours"):
        compute(squares(results, 1, 99, 2), results, crew)
    assert (results.has("k1"), results.has("k99"), results.has("k2")) == (True, False, False)
    assert results.held() == {}


def test_what_another_has_is_left_to_it_until_it_is_there_or_free(results: Results) -> None:
    first, second = results.lock("k1"), results.lock("k2")
    assert first is not None
    assert second is not None

    def finish() -> None:
        while not results.has("k3"):
            time.sleep(0.01)
        results.write("k1", b"by another")
        first.release()
        second.release()  # it has died

    other = threading.Thread(target=finish)
    other.start()
    with crew_of("threads", 2) as crew:
        made, _ = compute(squares(results, 1, 2, 3), results, crew)
    other.join()
    assert sorted(made) == ["k2", "k3"]
    assert begun(results) == [2, 3]
    assert results.path("k1").read_bytes() == b"by another"


def test_two_at_once_share_the_work(results: Results) -> None:
    found = []

    def work() -> None:
        with crew_of("threads", 2) as crew:
            found.append(compute(squares(results, *range(20, 50)), results, crew)[0])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert begun(results) == list(range(20, 50))
    assert sorted(key for made in found for key in made) == sorted(f"k{number}" for number in range(20, 50))


class FullDisk(Results):
    """A folder on a disk that takes so many results; a real one is in test_sweep_disk.py."""

    def write(self, key: str, content: bytes) -> None:
        if len(list(self.folder.glob("*.txt"))) >= 3:
            raise RecordError("no room")
        super().write(key, content)


def test_a_result_that_cannot_be_written_ends_it_and_frees_all_locks(results: Results) -> None:
    full = FullDisk(results.folder, ".txt")
    with crew_of("threads", 2) as crew, pytest.raises(RecordError, match="no room"):
        compute(squares(results, *range(20), steps=5), full, crew)
    assert len(list(results.folder.glob("*.txt"))) == 3
    assert len(begun(results)) < 8
    assert results.held() == {}


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_sweep_resume import Results, Square, compute, crew_of

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    results = Results(folder / "points", ".txt")
    works = [Square(n, folder / "notes", 30, key=f"k{n}") for n in range(40)]
    try:
        with crew_of(sys.argv[3], 2) as crew:
            compute(works, results, crew)
    except KeyboardInterrupt as interrupt:
        print("stopped", interrupt)
"""


def started(results: Results, on: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SCRIPT, str(results.folder.parent), str(Path(__file__).parent), on]
    if on == "processes":  # they import the script again
        script = results.folder.parent / "script.py"
        script.write_text(SCRIPT)
        command = [sys.executable, str(script), *command[3:]]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while len(list(results.folder.glob("*.txt"))) < 3 and process.poll() is None:
        time.sleep(0.01)
    return process


@pytest.mark.quick("SIGINT-processes", "SIGTERM-threads")
@pytest.mark.parametrize("on", ["threads", "processes"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_it_soon_and_keeps_what_is_finished(results: Results, on: str, number: signal.Signals) -> None:
    process = started(results, on)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    said, errors = process.communicate(timeout=60)
    assert said == f"stopped {number.name}\n", errors
    assert errors == ""
    there = len(list(results.folder.glob("*.txt")))
    assert 3 <= there < 40
    assert results.held() == {}
    assert not [file for file in results.folder.iterdir() if ".tmp" in file.name]


def test_processes_end_with_the_one_that_leads_them(results: Results) -> None:
    process = started(results, "processes")
    workers = {int(file.name.split("-")[1]) for file in (results.folder.parent / "notes").iterdir()} - {process.pid}
    assert workers
    process.kill()
    process.communicate()
    until = time.monotonic() + 20
    while any(is_alive(worker) for worker in workers) and time.monotonic() < until:
        time.sleep(0.02)
    assert not [worker for worker in workers if is_alive(worker)]
    assert results.held() == {}


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for init to notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_that_dies_is_an_error_that_says_so(results: Results) -> None:
    with (
        crew_of("processes", 1) as crew,
        pytest.raises(Lost, match="number 1: the process that computed it ended"),
    ):
        compute([Dying(key="k1", words="number 1")], results, crew)
    assert results.held() == {}


@dataclass(frozen=True)
class Dying(Work):
    """What a process that has no memory left does."""

    def run(self, look: Look | None = None) -> bytes:
        os._exit(9)


@dataclass(frozen=True)
class Doubtful(Work):
    """What is right, but perhaps not as it was meant."""

    def run(self, look: Look | None = None) -> bytes:
        warnings.warn("perhaps", FreewalkWarning, stacklevel=1)
        return b"made"


def test_warnings_of_other_processes_are_given_here(results: Results) -> None:
    with warnings.catch_warnings(record=True) as caught, crew_of("processes", 1) as crew:
        warnings.simplefilter("always")
        compute([Doubtful(key="k1")], results, crew)
    assert [str(one.message) for one in caught if one.category is FreewalkWarning] == ["perhaps"]
    assert results.path("k1").read_bytes() == b"made"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("thread",), "sweep: on = 'thread', expected 'threads', 'processes' or 'ray'; did you mean 'threads'?"),
        (("threads", 0), "sweep: workers = 0, expected a whole number from 1 to 1024; None: one per core"),
        (("threads", 1, "auto"), "sweep: address = 'auto', expected None with on = 'threads'"),
    ],
)
def test_crews_that_do_not_exist(arguments: tuple, message: str) -> None:
    with pytest.raises(FreewalkError) as caught, crew_of(*arguments):
        raise AssertionError
    assert str(caught.value).startswith(message)
