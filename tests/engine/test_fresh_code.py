"""An edited slope or update never meets a stale cache; an edited comment reuses it.

Each version of the user's module runs in a process of its own, as it does for a user who edits a file and runs her
script again, and all of them share one cache.
"""

import json
import os
import subprocess
import sys

import pytest

MODULE = """
from dataclasses import dataclass

import numpy as np

import freewalk as fw

STRENGTH = 1.0


def pull(error):
    return STRENGTH * error


class Mine(fw.Predictor):
    curvature = 1.0

    @staticmethod
    def value(prediction, target):
        return 0.5 * (prediction - target) * (prediction - target)

    @staticmethod
    def slope(prediction, target):
        return pull(prediction - target)

    def optimum(self):
        raise NotImplementedError


@dataclass(frozen=True)
class Descent(fw.Rule):
    step: float = 0.1
    weighted: bool = True
    local_steps: int = 1
    sampled: bool = False

    @property
    def update(self):
        return descend

    def rates(self, steps):
        return np.full(steps.shape, self.step)


def descend(x, gradient, step, count):
    return x - step * gradient
"""

LEARN = """
import json
import freewalk as fw
from mine import Descent, Mine

problem = Mine([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]], [1.0, -1.0, 0.5])
kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(3))
records = [
    fw.learn(problem, kernel, Descent(), steps=20, walks=2, every=20, start=0, runtime=runtime)
    for runtime in ("cpu", "reference")
]
print(json.dumps([record.data.final.values.ravel().tolist() for record in records]))
"""

EDITS = {
    "slope": ("return pull(prediction - target)", "return 0.9 * pull(prediction - target)"),
    "update": ("return x - step * gradient", "return x - 0.7 * step * gradient"),
    "comment": ("    return pull", "    # A pull.\n        return pull"),
}


def run(folder, edit=None):
    """What compiled code and plain Python give for an edited module, and the compiled modules in the cache."""
    if edit is not None:
        assert MODULE.count(EDITS[edit][0]) == 1
    (folder / "mine.py").write_text(MODULE if edit is None else MODULE.replace(*EDITS[edit]))
    (folder / "script.py").write_text(LEARN)
    cache = folder / "cache"
    environment = os.environ | {"FREEWALK_CACHE": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    compiled, plain = json.loads(done.stdout)
    assert compiled == pytest.approx(plain, rel=1e-9, abs=1e-12)
    return compiled, {path.name for path in cache.glob("freewalk_*.py")}


def test_no_edit_meets_a_stale_cache(tmp_path):
    first, modules = run(tmp_path)
    results = [first]
    for edit in ("slope", "update"):
        result, after = run(tmp_path, edit)
        assert result not in results
        assert len(after - modules) == 1
        results, modules = [*results, result], after
    assert run(tmp_path, "comment") == (first, modules)
