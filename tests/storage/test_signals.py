"""Ctrl-C and SIGTERM are noted while something is under way, and acted on later."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import freewalk as fw
from freewalk.storage.files import Stop, held, unbroken

pytestmark = pytest.mark.usefixtures("handlers_are_restored")

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_is_noted(number):
    with held() as stop:
        assert not stop
        signal.raise_signal(number)
        assert stop
        assert stop.name == number.name


def test_none_is_none():
    with held() as stop:
        pass
    assert not stop
    assert stop.name == ""
    stop.act()


def test_acting_is_what_it_would_have_done():
    with held() as stop:
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        stop.act()


def test_the_second_acts_at_once():
    with held() as stop:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert stop.name == "SIGTERM"


def test_one_that_comes_at_the_very_end_of_an_unbroken_block_is_not_lost(monkeypatch):
    act = Stop.act

    def late(stop):
        act(stop)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Stop, "act", late)
    with pytest.raises(KeyboardInterrupt), unbroken():
        pass


def test_one_inside_another_hands_it_on():
    with held() as outer:
        with held() as inner:
            signal.raise_signal(signal.SIGTERM)
        assert inner
        assert not outer
        inner.act()
        assert outer.name == "SIGTERM"


@pytest.mark.parametrize(("number", "noted"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_what_is_ignored(number, noted):
    """SIGTERM on purpose; SIGINT because the process runs in the background of a script, where `kill -INT` is meant."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with held() as stop:
            signal.raise_signal(number)
            assert bool(stop) == noted
        stop.act()  # does what the process does about it: nothing
    finally:
        signal.signal(number, before)


def test_another_thread_holds_nothing():
    seen = []

    def work():
        with held() as stop:
            seen.append(signal.getsignal(signal.SIGINT))
            seen.append(bool(stop))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before, False]


# A process that is told to stop while it saves.

SAVING = """
import os, signal, sys
import numpy as np, xarray
import freewalk as fw

path, *numbers = sys.argv[1:]
record = fw.Record(xarray.Dataset({"loss": ("step", np.arange(5.0))}, coords={"step": np.arange(5)}))
write = np.lib.format.write_array

def interrupted(file, array, **options):
    if array.dtype == float:
        for number in numbers:
            signal.raise_signal(int(number))
    write(file, array, **options)

np.lib.format.write_array = interrupted
record.save(path)
print("went on")
"""


def save(path, *numbers):
    """Save a record in another process, to which signals are sent meanwhile: its exit status."""
    command = [sys.executable, "-c", SAVING, str(path)]
    done = subprocess.run([*command, *map(str, map(int, numbers))], capture_output=True, text=True, check=False)
    assert ("went on" in done.stdout) == (not numbers)
    return done.returncode


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_save_acts_once_the_file_is_written(tmp_path, number):
    path = tmp_path / "record.npz"
    path.write_bytes(b"old")
    assert save(path, number) == -number
    assert fw.load(path).data.loss.values.tolist() == [0, 1, 2, 3, 4]
    assert os.listdir(tmp_path) == ["record.npz"]


def test_a_second_one_keeps_the_old_file(tmp_path):
    path = tmp_path / "record.npz"
    path.write_bytes(b"old")
    assert save(path, signal.SIGINT, signal.SIGINT) == -signal.SIGINT
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["record.npz"]


def test_what_a_killed_save_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "record.npz"
    path.write_bytes(b"old")
    assert save(path, signal.SIGKILL) == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(os.listdir(tmp_path)) == 2
    assert save(path) == 0
    assert os.listdir(tmp_path) == ["record.npz"]
