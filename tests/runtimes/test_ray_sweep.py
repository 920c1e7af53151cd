"""Sweeps on Ray: the same bytes as by threads, without the user's files on workers; signals and kills lose nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import descendants

import freewalk as fw
from freewalk.errors import FreewalkError, SpecError

pytest.importorskip("ray")
FREEWALK = [sys.executable, "-c", "from freewalk.cli import main; main()"]
SPEC = """
name = "ray"
[sweep]
"walk.*.rule.step" = [0.01, 0.02]
"run.seed" = [1, 2, 3]
[graph]
kind = "ring"
n = 6
[problem]
kind = "mine_on_ray:Shifted"
data = "samples.csv"
target = "y"
node = "v"
[run]
steps = STEPS
walks = 3
every = 10
[[walk]]
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 0.1 }
"""
MINE = """
import freewalk as fw


class Shifted(fw.objectives.LeastSquares):
    @staticmethod
    def slope(prediction, target):
        return prediction - target - 0.1
"""


@pytest.fixture
def here(here: Path) -> Path:
    (here / "mine_on_ray.py").write_text(MINE)
    rows = [f"{node},{1 + node},{2 - node},{node / 2}" for node in range(6)]
    (here / "samples.csv").write_text("\n".join(["v,a,b,y", *rows]) + "\n")
    (here / "ray.toml").write_text(SPEC.replace("STEPS", "40"))
    return here


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / "points").glob("[!.]*.npz")}


@pytest.mark.long
def test_the_same_bytes_as_by_threads_with_files_and_code_of_the_users(here: Path) -> None:
    fw.sweep("ray.toml", folder="threads")
    told: list[int] = []
    data = fw.sweep("ray.toml", folder="cluster", on="ray", workers=2, progress=lambda there, _: told.append(there))
    assert contents(here / "cluster") == contents(here / "threads")
    assert len(contents(here / "cluster")) == 6
    assert bool(data.finished.all())
    assert told[-1] == 6
    # A point that cannot be computed is named, also where the worker objects.
    over = {"graph.n": [6], "problem.target": ["y", "z"]}
    with pytest.raises(SpecError, match=r"1 of 2 points could not be computed.*problem.target = z: .*z"):
        fw.sweep("ray.toml", over, on="ray")
    with pytest.raises(SpecError, match=r"1 of 1 points.*needs 999 cores, but no machine of the cluster offers that"):
        fw.sweep("ray.toml", {"run.runtime": [{"kind": "CPU", "threads": 999}]}, on="ray", folder="large")
    with pytest.raises(FreewalkError, match="Ray: address = 'nowhere'"):
        fw.sweep("ray.toml", {"run.seed": [99]}, on="ray", address="nowhere", folder="nowhere")


def started(here: Path) -> "subprocess.Popen[str]":
    (here / "ray.toml").write_text(SPEC.replace("STEPS", "20_000_000").replace("every = 10", "every = 1_000_000"))
    command = [*FREEWALK, "sweep", "ray.toml", "--on", "ray", "--workers", "2"]
    said = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, start_new_session=True, **said)
    while not list(Path("runs/ray/points").glob("*.npz")) and process.poll() is None:
        time.sleep(0.02)
    return process


@pytest.mark.long
def test_ctrl_c_keeps_what_is_finished(here: Path) -> None:
    process = started(here)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=100)
    there = len(contents(here / "runs/ray"))
    kept = f"{there} of 6 points are in runs/ray"
    assert said.splitlines()[-1] == f"interrupted; {kept}. Resume with: freewalk sweep ray.toml --on ray --workers 2"
    assert process.returncode == 130
    assert 1 <= there < 6


@pytest.mark.long
def test_workers_that_are_killed_and_a_leader_that_is_killed_cost_nothing(here: Path) -> None:
    process = started(here)
    busy = [number for number, command in descendants(process.pid).items() if command.startswith("ray::_do")]
    for number in busy:
        os.kill(number, signal.SIGKILL)
    process.kill()
    process.communicate()
    before = contents(here / "runs/ray")
    subprocess.run([*FREEWALK, "sweep", "ray.toml", "--on", "ray", "--workers", "2", "--quiet"], check=True)
    after = contents(here / "runs/ray")
    assert before.items() <= after.items()
    subprocess.run([*FREEWALK, "sweep", "ray.toml", "--out", "threads", "--quiet"], check=True)
    assert after == contents(here / "threads")
