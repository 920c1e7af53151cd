"""Designs, objectives, rules and exchanges of a user's own, from a script, a module beside it or a notebook."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")
OWN = """
import math
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
import freewalk as fw

SCALE = 2.0


def softened(error):
    return math.tanh(error / SCALE)


class LogCosh(fw.Predictor):
    curvature = 0.5

    @staticmethod
    def value(prediction, target):
        return SCALE * abs(prediction - target)

    @staticmethod
    def slope(prediction, target):
        return softened(prediction - target)

    def optimum(self):
        raise NotImplementedError


@dataclass(frozen=True)
class Lazy(fw.Design):
    stay: float = 0.5

    def moves(self, graph, importance):
        return [fw.Move(self.stay, hops=0), fw.Move(1 - self.stay, hops=1)]

    def target(self, graph, importance):
        return graph.degrees


@dataclass(frozen=True)
class Ball(fw.Rule):
    step: float = 0.02
    momentum: float = 0.7
    carries: ClassVar[tuple[str, ...]] = ("velocity",)

    @staticmethod
    def update(visit, numbers, x, gradient, velocity):
        velocity = numbers.momentum * velocity - visit.rate * visit.weight * gradient
        return x + velocity, velocity


@dataclass(frozen=True)
class Halfway(fw.Exchange):
    every: int = 3

    def weights(self, gathering):
        tokens = gathering.nodes.size
        return 0.5 * np.eye(tokens) + 0.5 / tokens
"""
USE = """
graph = fw.graphs.ring(20)
data = fw.objectives.LeastSquares.synthetic(graph.n, dim=4, seed=1)
problem = LogCosh(data.features, data.targets)
options = dict(steps=50, walks=6, every=10, tokens=3, exchange=Halfway())
runs = [
    fw.learn(problem, Lazy().kernel(graph), Ball(), runtime=runtime, **options)
    for runtime in ("cpu", fw.runtimes.Ray(tasks=2, cpus=1))
]
print("same", runs[0].data.identical(runs[1].data), float(runs[0].data.loss[:, -1].mean()) > 0)
"""
NOTEBOOK = """
import linecache, sys
cells = open(sys.argv[1]).read().split("# cell\\n")
for number, cell in enumerate(cells):
    file = f"<ipython-input-{number}-0123456789ab>"  # as IPython names them
    linecache.cache[file] = len(cell), None, cell.splitlines(keepends=True), file
    exec(compile(cell, file, "exec"), vars(sys.modules["__main__"]))
"""


def run(folder: Path, *command):
    found = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH" or "src" in value},
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.long  # tests/contract/test_ray_contract.py has classes of a user's own, in every run of the tests
@pytest.mark.parametrize("place", ["script", "module", "notebook"])
def test_code_of_a_users_own(tmp_path, place):
    if place == "script":
        (tmp_path / "script.py").write_text(OWN + USE)
        command = ["script.py"]
    elif place == "module":
        (tmp_path / "mine.py").write_text(OWN)
        (tmp_path / "script.py").write_text("from mine import *\nimport freewalk as fw\n" + USE)
        command = ["script.py"]
    else:
        (tmp_path / "cells.txt").write_text(OWN + "# cell\n" + USE)
        command = ["-c", NOTEBOOK, "cells.txt"]
    assert "same True True" in run(tmp_path, *command)
