"""kill -9, whenever it comes: `freewalk resume` completes the run to the same arrays."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

import freewalk as fw

FREEWALK = [sys.executable, "-c", "from freewalk.cli import main; main()"]
MINE = """
import time
from dataclasses import dataclass
import numpy as np
import freewalk as fw

@dataclass(frozen=True)
class Slow(fw.Objective):
    size: int = 12
    n = property(lambda self: self.size)
    dim = 2
    rising = ("right",)
    measures = ("loss", "right")

    @property
    def smoothness(self):
        return np.linspace(1.0, 2.0, self.n)

    def loss(self, x):
        return float(np.mean((x - 1.0) ** 2))

    def measure(self, x):
        return {"loss": self.loss(x), "right": float(x[0] > 0.5)}

    def gradient(self, node, x, sample=None):
        time.sleep(PAUSE)
        return self.smoothness[node] * (np.asarray(x) - 1.0 + 0.1 * np.sin(node))
"""
SPEC = """
name = "run"
[graph]
kind = "ring"
n = 12
[problem]
PROBLEM
[run]
walks = 2
seed = 4
RUN
[[walk]]
label = "first"
design = { kind = "MHLJ", jump = 0.3, stop = 0.5, hops = 3 }
rule = { kind = "Momentum", step = 1e-3, momentum = 0.5 }
[[walk]]
label = "second"
tokens = 2
exchange = { kind = "Meet" }
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 1e-3 }
"""
COMPILED = SPEC.replace("PROBLEM", 'kind = "LeastSquares"\ndim = 3\nheavy = 2').replace(
    "RUN", "steps = 4_000_000\nevery = 100_000\npaths = 1\ncheckpoint = 0.05"
)
OWN = SPEC.replace("PROBLEM", 'kind = "mine:Slow"').replace(
    "RUN", 'steps = 400\nevery = 10\ncheckpoint = 0.05\nruntime = "reference"\ngoal = { right = 1.0 }'
)
FILES = {"spec.toml", "record.npz", "curves.png", "table.txt"}


def written(folder: Path, spec: str) -> Path:
    folder.mkdir()
    (folder / "spec.toml").write_text(spec)
    (folder / "mine.py").write_text(MINE.replace("PAUSE", "0.0005"))
    return folder


def killed(folder: Path, after: str, delay: float, *arguments: str) -> bool:
    """Give a command and kill it so long after a file that matches was written; whether it was still under way."""
    run = folder / "runs" / "run"
    before = _newest(run, after)
    process = subprocess.Popen(
        [*FREEWALK, *arguments, "--quiet"], cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    limit = time.monotonic() + 60
    while process.poll() is None and _newest(run, after) <= before and time.monotonic() < limit:
        time.sleep(0.002)
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert "rror" not in said, said
    return process.returncode == -signal.SIGKILL


def _newest(run: Path, pattern: str) -> int:
    """When the newest of the files was written; they come and go."""
    times = [0]
    for file in run.glob(pattern):
        with suppress(OSError):
            times.append(file.stat().st_mtime_ns)
    return max(times)


def is_complete(run: Path) -> bool:
    """Whether the kill came when all was written: then there is nothing to resume, and `resume` says so."""
    return {file.name for file in run.iterdir()} >= FILES and not (run / "parts").exists()


def complete(folder: Path, *more: str) -> fw.Record:
    run = folder / "runs" / "run"
    command = ["resume", "runs/run", *more] if (run / "spec.toml").exists() else ["run", "spec.toml", "--force"]
    if not is_complete(run):
        subprocess.run([*FREEWALK, *command, "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    left = {file.name for file in run.iterdir()}
    assert left - {"inputs.json"} == FILES
    return fw.load(run / "record.npz")


def check_kills(folder: Path, spec: str, after: str, delays: list[float], *more: str) -> int:
    """Compare a run that is killed some time after it has written a file with one that is not; how often it was."""
    whole = written(folder / "whole", spec)
    subprocess.run([*FREEWALK, "run", "spec.toml", "--quiet"], cwd=whole, check=True, stdout=subprocess.DEVNULL)
    expected = fw.load(whole / "runs" / "run" / "record.npz")
    stopped = written(folder / "stopped", spec)
    kills = 0
    for delay in delays:
        command = ["resume", "runs/run", *more] if kills else ["run", "spec.toml"]
        if not killed(stopped, after, delay, *command):
            break
        kills += 1
        assert (stopped / "runs" / "run" / "spec.toml").exists()
        if is_complete(stopped / "runs" / "run"):
            break
    found = complete(stopped, *more)
    assert not found.partial
    assert found.data.identical(expected.data)
    return kills


SOAK = partial(pytest.param, marks=pytest.mark.soak)
CASES = {"cpu": (COMPILED,), "reference, own code": (OWN, "--allow-code")}


@pytest.mark.long  # `test_dying_before_every_single_write` has some kills in every run of the tests
@pytest.mark.parametrize("case", CASES)
def test_killed_while_a_walk_is_under_way(tmp_path: Path, case: str) -> None:
    spec, *more = CASES[case]
    assert check_kills(tmp_path, spec, "parts/0?.npz", [0.05, 0.02], *more) == 2


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.long), *(SOAK(seed) for seed in range(1, 6))])
def test_killed_at_random_moments(tmp_path: Path, case: str, seed: int) -> None:
    draws = random.Random(seed)
    spec, *more = CASES[case]
    check_kills(tmp_path, spec, "**/*", [draws.expovariate(3.0) for _ in range(8)], *more)


# At every single write: a process that dies before the k-th time it would change the disk.
EVERY_WRITE = """
import os, shutil, sys
from pathlib import Path
import freewalk as fw
from freewalk.run import loop
from freewalk.specs import RunFolder, parse
import freewalk.report, xarray, scipy.sparse

loop._CHUNK_STEPS, loop._SHARE = 40, 0
freewalk.report.curves = lambda record, path: record.save(path.with_suffix(".png"))
text, forced, stride = Path("spec.toml").read_text(), sys.argv[1] == "forced", int(sys.argv[2])
spec, run = parse(text, "spec.toml", Path()), Path("run")
whole = spec.run()


def make():
    RunFolder.create(run, spec, force=True).run()


def dying(before, work):
    # Run `work` in a process that ends before its so-manieth change of the disk; its exit code.
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = before

    def count(event, arguments):
        nonlocal left
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link"):
            left -= 1
            if left < 0:
                os._exit(9)

    sys.addaudithook(count)
    try:
        work()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def resume():
    if not (run / "spec.toml").is_file():
        make()
    elif not RunFolder.open(run).complete:
        RunFolder.open(run).run()


if forced:  # another run is there already, and stays until the new one is complete
    old = parse(text.replace("seed = 4", "seed = 5"), "spec.toml", Path())
    RunFolder.create(Path("old"), old).run()
deaths = 0
for before in range(1, 100_000, stride):
    shutil.rmtree(run, ignore_errors=True)
    if forced:
        shutil.copytree("old", run)
    code = dying(before, make)
    assert code in (0, 9), (before, code)
    if code == 0:
        break
    deaths += 1
    assert not forced or (run / "record.npz").is_file()
    if forced and RunFolder.open(run).complete and fw.load(run / "record.npz").provenance["spec"] != text:
        assert dying(10**9, make) == 0  # nothing of the new one was there yet
    assert dying(before // 2, resume) in (0, 9)  # and once more on the way
    assert dying(10**9, resume) == 0, before
    found = fw.load(run / "record.npz")
    assert found.data.drop_attrs().identical(whole.data.drop_attrs()), before
    names = {file.name for file in run.iterdir()}
    assert names - {"new", "lock"} == {"spec.toml", "record.npz", "curves.png", "table.txt"}, (before, names)
    if names & {"new", "lock"}:  # what is left there is in nobody's way
        assert dying(10**9, make) == 0
        assert not (run / "new").exists() and not (run / "lock").exists()
print(deaths)
"""
SMALL = SPEC.replace("PROBLEM", 'kind = "LeastSquares"\ndim = 2').replace(
    "RUN", 'steps = 90\nevery = 30\nruntime = "reference"\ncheckpoint = 1e-9'
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.parametrize(
    ("how", "stride"),
    [
        ("new", 40),
        pytest.param("new", 9, marks=pytest.mark.long),
        pytest.param("forced", 13, marks=pytest.mark.long),
        SOAK("new", 1),
        SOAK("forced", 1),
    ],
)
def test_dying_before_every_single_write(tmp_path: Path, how: str, stride: int) -> None:
    (tmp_path / "spec.toml").write_text(SMALL)
    command = [sys.executable, "-c", EVERY_WRITE, how, str(stride)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40 / stride
