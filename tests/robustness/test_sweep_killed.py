"""kill -9, two processes at once: no finished point is computed again, none by two, none is missing, the same bytes."""

import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from small_sweeps import slow

from freewalk.sweeps.folder import SweepFolder

FREEWALK = [sys.executable, "-c", "from freewalk.cli import main; main()"]


class Crowd:
    """Processes that work on one sweep; each that is killed is followed by another."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder, self.workers = folder, workers
        self.points = folder / "runs" / "slow" / "points"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.deaths: dict[int, int] = {}  # by process: the hour, in nanoseconds
        self.seen: list[tuple[int, dict[str, int]]] = []  # the hour, and the finished points with their inodes

    def start(self) -> None:
        command = [*FREEWALK, "sweep", "slow.toml", "--quiet", "--workers", str(self.workers)]
        self.processes.append(subprocess.Popen(command, cwd=self.folder))

    def kill(self) -> None:
        """Kill the process that has worked longest, and start another."""
        process = self.processes.pop(0)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.deaths[process.pid] = time.time_ns()
        self.seen.append((time.time_ns(), self.finished()))
        self.start()

    def finished(self) -> dict[str, int]:
        return {file.stem: file.stat().st_ino for file in self.points.glob("[!.]*.npz")}

    def wait_for(self, count: int) -> None:
        while len(self.finished()) < count and any(process.poll() is None for process in self.processes):
            time.sleep(0.01)

    def finish(self) -> None:
        for process in self.processes:
            assert process.wait() == 0


def check(tmp_path: Path, points: int, kills: int, pause: float) -> None:
    whole, crowd = slow(tmp_path / "whole", points, pause), Crowd(slow(tmp_path / "killed", points, pause), workers=2)
    crowd.start()
    crowd.start()
    for number in range(1, kills + 1):
        crowd.wait_for(number * points // (kills + 2))
        crowd.kill()
    crowd.finish()
    subprocess.run([*FREEWALK, "sweep", "slow.toml", "--quiet"], cwd=whole, check=True)

    folder = SweepFolder.open(crowd.folder / "runs" / "slow")
    numbers = {point.key: point.setting["problem.number"] for point in folder.sweep.points}
    assert len(crowd.finished()) == len(numbers) == points
    assert folder.missing == []
    events = [tuple(map(int, line.split())) for line in (crowd.folder / "begun").read_text().splitlines()]
    assert len(crowd.deaths) == kills
    for when, seen in crowd.seen:
        assert seen  # something was finished when the process was killed
        kept = crowd.finished()
        assert all(kept[key] == inode for key, inode in seen.items())  # the very same files
        done = {numbers[key] for key in seen}
        assert not [event for event in events if event[0] > when and event[1] in done]
    for number in numbers.values():
        times = sorted(event for event in events if event[1] == number)
        # Begun again only by another process, after the one that had begun it was dead.
        for before, after in pairwise(times):
            assert crowd.deaths[before[2]] < after[0]
    assert len({event[2] for event in events}) >= 2  # both have worked
    same = {file.name: file.read_bytes() for file in sorted((whole / "runs/slow/points").glob("*.npz"))}
    assert same == {file.name: file.read_bytes() for file in sorted(crowd.points.glob("*.npz"))}
    for name in ("table.csv", "lines.png", "curves.png", "page.html"):
        assert (whole / "runs/slow" / name).read_bytes() == (crowd.folder / "runs/slow" / name).read_bytes(), name
    left = {file.name for file in crowd.points.iterdir() if file.suffix != ".npz"} | {
        file.name for file in (crowd.points / "locks").iterdir()
    }
    assert left == {"locks"}


@pytest.mark.long
def test_a_few_points_killed_once(tmp_path: Path) -> None:
    check(tmp_path, points=16, kills=1, pause=0.02)


@pytest.mark.long
def test_200_points_killed_three_times(tmp_path: Path) -> None:
    check(tmp_path, points=200, kills=3, pause=0.02)
