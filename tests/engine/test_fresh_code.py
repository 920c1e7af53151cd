"""An edited slope, helper or update never meets a stale cache; an edited comment reuses it.

Each version of the user's module runs in a process of its own, as it does for a user who edits a file and runs her
script again, and all of them share one cache.
"""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from freewalk.compiling import compile_functions

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
    "helper": ("return STRENGTH * error", "return STRENGTH * error * abs(error)"),
    "constant": ("STRENGTH = 1.0", "STRENGTH = 0.8"),
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


def entry(x, y):
    return update(x, slope(x, y), 0.1, 0)  # noqa: F821, both are handed over


def test_every_kind_of_edit_is_compiled_anew_in_a_running_process(tmp_path, monkeypatch):
    """As in a notebook that reloads an edited module; helpers and constants of a slope count as well."""
    monkeypatch.setenv("FREEWALK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    results = {}
    for edit in (None, *EDITS):
        text = MODULE if edit is None else MODULE.replace(*EDITS[edit])
        (tmp_path / "mine.py").write_text(text)
        spec = importlib.util.spec_from_file_location("mine", tmp_path / "mine.py")
        mine = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "mine", mine)
        spec.loader.exec_module(mine)
        parts = {"slope": mine.Mine.slope, "update": mine.descend}
        results[edit] = compile_functions({"entry": entry, **parts}, "entry")(2.0, 0.5)
        assert results[edit] == parts["update"](2.0, parts["slope"](2.0, 0.5), 0.1, 0)
    assert results["comment"] == results[None]
    assert len(set(results.values())) == len(EDITS)
    assert len(list((tmp_path / "cache").glob("freewalk_*.py"))) == len(EDITS)
