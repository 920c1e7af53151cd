"""A full disk: what is finished stays, the error says so, and with more room the same command completes the sweep."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_sweeps import BASE

PRIVATE = ["unshare", "--map-root-user", "--mount"]  # a mount that nobody else sees
SCRIPT = """
import hashlib, json, subprocess, sys
from pathlib import Path

FREEWALK = [sys.executable, "-c", "from freewalk.cli import main; main()"]
FREEWALK += ["sweep", "small.toml", "--workers", "1", "--quiet"]
points = Path("runs/small/points")

def sums():
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in points.glob("*.npz")}

Path("runs").mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80k", "tmpfs", "runs"], check=True)
full = subprocess.run(FREEWALK, capture_output=True, text=True)
first = sums()
left = [file.name for file in points.iterdir()]
subprocess.run(["mount", "-o", "remount,size=20m", "runs"], check=True)
again = subprocess.run(FREEWALK, capture_output=True, text=True)
print(json.dumps([full.returncode, full.stderr, first, left, again.returncode, again.stderr, sums()]))
"""


@pytest.mark.long
def test_nothing_finished_is_lost_on_a_full_disk(tmp_path: Path) -> None:
    try:
        allowed = subprocess.run([*PRIVATE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        allowed = False
    if not allowed:
        pytest.skip("mounts of one's own are not allowed here")
    (tmp_path / "small.toml").write_text(BASE + '[sweep]\n"problem.seed" = { from = 1, to = 30 }\n')
    command = [*PRIVATE, sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    code, said, first, left, again, silence, last = json.loads(done.stdout)
    assert code == 2
    assert "cannot be written (No space left on device)" in said
    assert f"; {len(first)} of 30 points are finished and intact in runs/small: free some space" in said
    assert said.count("\n") == 1
    assert 1 <= len(first) < 30
    assert {name for name in left if name != "locks"} == set(first)  # no half a file
    assert (again, silence) == (0, "")
    assert len(last) == 30
    assert first.items() <= last.items()
