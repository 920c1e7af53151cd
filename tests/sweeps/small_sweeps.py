"""Small sweeps for the tests."""

from pathlib import Path

BASE = """
name = "small"
[graph]
kind = "ring"
n = 6
[problem]
kind = "LeastSquares"
dim = 2
heavy = 1
seed = 1
[run]
steps = 40
walks = 3
every = 10
seed = 7
[[walk]]
label = "uniform"
design = { kind = "Metropolis" }
rule = { kind = "SGD", step = 1e-2 }
[[walk]]
label = "MHLJ"
design = { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 2 }
rule = { kind = "SGD", step = 1e-2 }
"""
SWEEP = '[sweep]\n"walk.MHLJ.design.jump" = [0.1, 0.5]\n"problem.seed" = [1, 2, 3]\n'
#: An objective that takes its time, and notes when a point begins: a line with its number and the process.
MINE = """
import os
import time
from dataclasses import dataclass, field
import numpy as np
import freewalk as fw


@dataclass(frozen=True)
class Slow(fw.Objective):
    number: int = 0
    pause: float = 0.0
    begun: list = field(default_factory=list, compare=False)
    n = property(lambda self: 6)
    dim = 2

    @property
    def smoothness(self):
        return np.linspace(1.0, 2.0, self.n)

    def loss(self, x):
        return float(np.mean((x - 1.0 - 0.01 * self.number) ** 2))

    def gradient(self, node, x, sample=None):
        if not self.begun:
            self.begun.append(True)
            line = f"{time.time_ns()} {self.number} {os.getpid()}\\n".encode()
            handle = os.open("begun", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, line)
            os.close(handle)
        time.sleep(self.pause)
        return np.asarray(x) - 1.0 - 0.01 * self.number + 0.1 * np.sin(node)
"""
SLOW = """
name = "slow"
[sweep]
"problem.number" = { from = 1, to = POINTS }
[graph]
kind = "ring"
n = 6
[problem]
kind = "mine:Slow"
pause = PAUSE
[run]
steps = 10
every = 5
[[walk]]
label = "walk"
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 0.1 }
"""


def slow(folder: Path, points: int, pause: float) -> Path:
    """Write a sweep of slow points, and the module that it names, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(MINE)
    (folder / "slow.toml").write_text(SLOW.replace("POINTS", str(points)).replace("PAUSE", str(pause)))
    return folder
