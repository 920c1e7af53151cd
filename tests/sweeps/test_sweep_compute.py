"""Working through tasks: each once, whatever fails, by threads and by processes."""

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
from freewalk.sweeps.compute import Task, compute
from freewalk.sweeps.crews import Look, Lost, Work, cores, crew_of
from freewalk.sweeps.store import Store


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
def store(tmp_path: Path) -> Store:
    (tmp_path / "notes").mkdir()
    return Store(tmp_path / "points", ".txt")


def tasks(store: Store, *numbers: int, steps: int = 1) -> list[Task]:
    notes = store.folder.parent / "notes"
    return [Task(f"k{number}", Square(number, notes, steps), f"number {number}", size=10) for number in numbers]


def begun(store: Store) -> list[int]:
    """The numbers that were begun, each as often as it was."""
    return sorted(int(file.name.partition("-")[0]) for file in (store.folder.parent / "notes").iterdir())


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_each_is_computed_once_and_what_is_there_is_not(store: Store, on: str) -> None:
    store.write("k3", b"there already")
    told: list[tuple[int, int, int, int]] = []
    with crew_of(on, 2) as crew:
        found = compute(tasks(store, *range(8), 5), store, crew, lambda *numbers: told.append(numbers))
        assert sorted(found.made) == [f"k{number}" for number in range(8) if number != 3]
        assert begun(store) == [0, 1, 2, 4, 5, 6, 7]
        assert compute(tasks(store, *range(8)), store, crew).made == []
    assert store.path("k3").read_bytes() == b"there already"
    assert [store.path(f"k{number}").read_bytes() for number in (2, 7)] == [b"4", b"49"]
    assert (told[0], told[-1]) == ((1, 8, 10, 80), (8, 8, 80, 80))
    assert told == sorted(told)


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_what_fails_is_noted_and_the_others_go_on(store: Store, on: str) -> None:
    with crew_of(on, 2) as crew:
        found = compute(tasks(store, 13, 1, 2), store, crew)
    assert sorted(found.made) == ["k1", "k2"]
    assert str(found.failed["k13"]) == "thirteen"
    assert not store.has("k13")
    assert store.held() == {}


def test_an_error_of_our_own_ends_it_and_keeps_what_is_finished(store: Store) -> None:
    with crew_of("threads", 1) as crew, pytest.raises(ZeroDivisionError, match="ours"):
        compute(tasks(store, 1, 99, 2), store, crew)
    assert (store.has("k1"), store.has("k99"), store.has("k2")) == (True, False, False)
    assert store.held() == {}


def test_what_another_has_is_left_to_it_until_it_is_there_or_free(store: Store) -> None:
    first, second = store.lock("k1"), store.lock("k2")
    assert first is not None
    assert second is not None

    def finish() -> None:
        while not store.has("k3"):
            time.sleep(0.01)
        store.write("k1", b"by another")
        first.release()
        second.release()  # it has died

    other = threading.Thread(target=finish)
    other.start()
    with crew_of("threads", 2) as crew:
        found = compute(tasks(store, 1, 2, 3), store, crew)
    other.join()
    assert sorted(found.made) == ["k2", "k3"]
    assert begun(store) == [2, 3]
    assert store.path("k1").read_bytes() == b"by another"


def test_two_at_once_share_the_work(store: Store) -> None:
    results = []

    def work() -> None:
        with crew_of("threads", 2) as crew:
            results.append(compute(tasks(store, *range(20, 50)), store, crew).made)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert begun(store) == list(range(20, 50))
    assert sorted(key for made in results for key in made) == sorted(f"k{number}" for number in range(20, 50))


class FullStore(Store):
    """A store on a disk that takes so many results; a real one is in test_sweep_disk.py."""

    def write(self, key: str, content: bytes) -> None:
        if len(list(self.folder.glob("*.txt"))) >= 3:
            raise RecordError("no room")
        super().write(key, content)


def test_a_result_that_cannot_be_written_ends_it_and_frees_all_locks(store: Store) -> None:
    full = FullStore(store.folder, ".txt")
    with crew_of("threads", 2) as crew, pytest.raises(RecordError, match="no room"):
        compute(tasks(store, *range(20), steps=5), full, crew)
    assert len(list(store.folder.glob("*.txt"))) == 3
    assert len(begun(store)) < 8
    assert store.held() == {}


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_sweep_compute import Square, Task, Store, compute, crew_of

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    store = Store(folder / "points", ".txt")
    works = [Task(f"k{n}", Square(n, folder / "notes", 30)) for n in range(40)]
    try:
        with crew_of(sys.argv[3], 2) as crew:
            compute(works, store, crew)
    except KeyboardInterrupt as interrupt:
        print("stopped", interrupt)
"""


def started(store: Store, on: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SCRIPT, str(store.folder.parent), str(Path(__file__).parent), on]
    if on == "processes":  # they import the script again
        script = store.folder.parent / "script.py"
        script.write_text(SCRIPT)
        command = [sys.executable, str(script), *command[3:]]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while len(list(store.folder.glob("*.txt"))) < 3 and process.poll() is None:
        time.sleep(0.01)
    return process


@pytest.mark.quick("SIGINT-processes", "SIGTERM-threads")
@pytest.mark.parametrize("on", ["threads", "processes"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_it_soon_and_keeps_what_is_finished(store: Store, on: str, number: signal.Signals) -> None:
    process = started(store, on)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    said, errors = process.communicate(timeout=60)
    assert said == f"stopped {number.name}\n", errors
    assert errors == ""
    there = len(list(store.folder.glob("*.txt")))
    assert 3 <= there < 40
    assert store.held() == {}
    assert not [file for file in store.folder.iterdir() if ".tmp" in file.name]


def test_processes_end_with_the_one_that_leads_them(store: Store) -> None:
    process = started(store, "processes")
    workers = {int(file.name.split("-")[1]) for file in (store.folder.parent / "notes").iterdir()} - {process.pid}
    assert workers
    process.kill()
    process.communicate()
    until = time.monotonic() + 20
    while any(is_alive(worker) for worker in workers) and time.monotonic() < until:
        time.sleep(0.02)
    assert not [worker for worker in workers if is_alive(worker)]
    assert store.held() == {}


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for init to notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_that_dies_is_an_error_that_says_so(store: Store) -> None:
    with (
        crew_of("processes", 1) as crew,
        pytest.raises(Lost, match="number 1: the process that computed it ended"),
    ):
        compute([Task("k1", Dying(), "number 1")], store, crew)
    assert store.held() == {}


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


def test_warnings_of_other_processes_are_given_here(store: Store) -> None:
    with warnings.catch_warnings(record=True) as caught, crew_of("processes", 1) as crew:
        warnings.simplefilter("always")
        compute([Task("k1", Doubtful())], store, crew)
    assert [str(one.message) for one in caught if one.category is FreewalkWarning] == ["perhaps"]
    assert store.path("k1").read_bytes() == b"made"


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


def test_there_is_a_core() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)
