"""Ctrl-C and SIGTERM, sent to real processes at several moments: nothing is lost, and the last line says what to do."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import freewalk as fw

FREEWALK = [sys.executable, "-c", "from freewalk.cli import main; main()"]
WALK = """
[[walk]]
label = "{label}"
design = {{ kind = "SimpleWalk" }}
rule = {{ kind = "SGD", step = 1e-3 }}
"""
SPEC = (
    """
name = "long"
[graph]
kind = "ring"
n = 12
[problem]
kind = "LeastSquares"
dim = 2
[run]
steps = STEPS
every = STEPS
"""
    + WALK.format(label="first")
    + WALK.format(label="second")
)
# A schedule that says when it is first asked by a walk; before that, it is only tried out at 1000 steps.
WALKING = """
import pathlib
from dataclasses import dataclass
import numpy as np
import freewalk as fw

@dataclass(frozen=True)
class Told(fw.schedules.Schedule):
    def __call__(self, steps):
        if len(steps) != 1000:
            pathlib.Path("walking").touch()
        return np.full(len(steps), 1e-3)
"""
LONG = SPEC.replace("STEPS", str(10**12))
SHORT = SPEC.replace("STEPS", "100")
ENDS = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("terminated", 143)}
BOTH = pytest.mark.parametrize("number", list(ENDS), ids=lambda number: number.name)


def sent(number: signal.Signals, when: Path, *arguments: str) -> tuple[int, str]:
    """Give a command, send it a signal as soon as a file is there; its exit code and what it said at last."""
    process = subprocess.Popen(
        [*FREEWALK, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        limit = time.monotonic() + 100
        while not when.exists() and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.005)
        process.send_signal(number)
        _, said = process.communicate(timeout=100)
    finally:
        process.kill()
    assert "Traceback" not in said
    return process.returncode, said


def leftovers(folder: Path) -> list[str]:
    return [str(file) for file in folder.rglob("*") if ".tmp" in file.name]


@pytest.mark.quick("SIGINT")
@BOTH
def test_while_a_walk_is_under_way(here: Path, number: signal.Signals) -> None:
    (here / "told.py").write_text(WALKING)
    (here / "long.toml").write_text(LONG.replace("1e-3", '{ kind = "told:Told" }'))
    word, code = ENDS[number]
    status, said = sent(number, here / "walking", "run", "long.toml")
    assert status == code
    assert said.splitlines()[-1] == (
        f"{word}; what was done is in runs/long. Resume with: freewalk resume runs/long --allow-code"
    )
    assert fw.load("runs/long/record.npz").partial
    assert fw.load("runs/long/parts/00.npz").provenance["interrupted_by"] == number.name
    assert leftovers(here) == []


@pytest.mark.quick("SIGTERM")
@BOTH
def test_as_soon_as_there_is_a_folder(here: Path, number: signal.Signals) -> None:
    """Whenever it comes: either nothing is there, or what is there can be resumed."""
    (here / "long.toml").write_text(LONG)
    word, code = ENDS[number]
    status, said = sent(number, here / "runs/long/spec.toml", "run", "long.toml", "--quiet")
    assert status == code
    if said == f"{word}; nothing was written\n":
        assert not (here / "runs/long").exists()
    else:
        assert said.endswith(". Resume with: freewalk resume runs/long\n")
        assert (here / "runs/long/spec.toml").is_file()
    assert leftovers(here) == []


@pytest.mark.quick("SIGINT")
@BOTH
def test_while_a_spec_is_loaded(here: Path, number: signal.Signals) -> None:
    (here / "slow.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n")
    (here / "long.toml").write_text(SHORT.replace('"SimpleWalk"', '"slow:Walk"'))
    word, code = ENDS[number]
    status, said = sent(number, here / "loading", "run", "long.toml")
    assert status == code
    assert said.splitlines()[-1] == f"{word}; nothing was written"
    assert not (here / "runs").exists()


@pytest.mark.long
def test_a_forced_run_that_was_terminated_keeps_the_old_one(here: Path) -> None:
    (here / "long.toml").write_text(SHORT)
    subprocess.run([*FREEWALK, "run", "long.toml", "--quiet"], check=True)
    before = (here / "runs/long/record.npz").read_bytes()
    (here / "long.toml").write_text(LONG.replace("1e-3", '{ kind = "told:Told" }'))
    (here / "told.py").write_text(WALKING)
    status, said = sent(signal.SIGTERM, here / "walking", "run", "long.toml", "--force")
    assert status == 143
    assert said.splitlines()[-1] == (
        "terminated; what was done is in runs/long/new. Resume with: freewalk resume runs/long --allow-code; runs/long "
        "keeps the earlier run until then"
    )
    assert (here / "runs/long/record.npz").read_bytes() == before


def test_while_the_results_are_written(here: Path) -> None:
    """Whenever it comes after the last walk, all files are there, whole."""
    (here / "long.toml").write_text(SHORT)
    status, said = sent(signal.SIGTERM, here / "runs/long/record.npz", "run", "long.toml", "--quiet")
    assert (status, said) in ((0, ""), (143, "terminated; the run is complete and is in runs/long\n"))
    assert {file.name for file in (here / "runs/long").iterdir()} == {
        "spec.toml",
        "record.npz",
        "curves.png",
        "table.txt",
    }
    assert not fw.load("runs/long/record.npz").partial


@pytest.mark.long  # tests/storage/test_signals.py has it without a process
def test_ignored_signals_stay_ignored(here: Path) -> None:
    (here / "long.toml").write_text(SHORT)
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    process = subprocess.Popen(
        [sys.executable, "-c", f"{ignoring} from freewalk.cli import main; main()", "run", "long.toml", "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
    )
    # While it draws: a walk under way would take it as a request to stop (tests/storage/test_signals.py says why).
    while not (here / "runs/long/table.txt").exists() and process.poll() is None:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert (process.returncode, said) == (0, "")
    assert not fw.load("runs/long/record.npz").partial
