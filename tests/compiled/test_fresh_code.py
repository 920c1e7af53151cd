"""An edited slope, helper or update never meets a stale cache; an edited comment reuses it.

Each version of the user's module runs in a process of its own, as it does for a user who edits a file and runs her
script again, and all of them share one cache.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import freewalk

MODULE = """
from dataclasses import dataclass

import numpy as np

import freewalk as fw

STRENGTH = 1.0


def pull(error):
    return STRENGTH * error


def twice(error):
    return 2.0 * error


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


def descend(visit, numbers, x, gradient):
    return x - visit.rate * visit.weight * gradient
"""

SCRIPT = """
import json
import freewalk as fw
from freewalk.compiled.compiler import compile_functions
from freewalk.rules import Visit
from mine import Descent, Mine, descend, twice


def entry_of_a_helper(x):
    return twice(x) + 1.0


def entry_of_a_slope(x, y):
    return slope(x, y) + 1.0


def entry_of_an_update(x, gradient):
    return update(Visit(0.1, 1.0, 0, 3, 0), 0, x, gradient) + 1.0


slope, update = Mine.slope, descend
problem = Mine([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]], [1.0, -1.0, 0.5])
kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(3))
options = {"steps": 20, "walks": 2, "every": 20, "start": 0}
results = {
    runtime: fw.learn(problem, kernel, Descent(), runtime=runtime, **options).data.final.values.ravel().tolist()
    for runtime in ("cpu", "reference")
}
for entry, arguments in ((entry_of_a_helper, [3.0]), (entry_of_a_slope, [3.0, 1.0]), (entry_of_an_update, [3.0, 1.0])):
    name = entry.__name__
    compiled = compile_functions({name: entry}, name)
    results[name] = [compiled(*arguments), entry(*arguments)]
print(json.dumps(results))
"""

EDITS = {
    "    return 2.0 * error": "    return 4.0 * error",
    "        return pull(prediction - target)": "        return 0.9 * pull(prediction - target)",
    "    return x - visit.rate *": "    return x - 0.7 * visit.rate *",
}


def run(folder, text):
    """The results of a version of the module by name, and the compiled modules in the cache."""
    (folder / "mine.py").write_text(text)
    (folder / "script.py").write_text(SCRIPT)
    environment = os.environ | {"FREEWALK_CACHE": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["cpu"] == pytest.approx(results.pop("reference"), rel=1e-9, abs=1e-12)
    for name in [name for name in results if name.startswith("entry")]:
        compiled, plain = results[name]
        assert compiled == plain
    return results, {path.name.partition("-")[0] for path in (folder / "cache").iterdir()}


@pytest.mark.long
def test_no_edit_meets_a_stale_cache(tmp_path):
    """A helper, a slope and an update are edited at once; each has a compiled function in which it is alone."""
    first, modules = run(tmp_path, MODULE)
    edited = MODULE
    for old, new in EDITS.items():
        assert edited.count(old) == 1
        edited = edited.replace(old, new)
    second, after = run(tmp_path, edited)
    assert all(second[name] != first[name] for name in first)
    assert len(after - modules) == len(first)
    third, last = run(tmp_path, comment_on(edited))
    assert third == second
    assert last == after


NATIVE = """
import sys
from pathlib import Path
from freewalk.compiled import native
from freewalk.runtimes.step import arrays
from freewalk.compiled.compiler import compile_functions


def larger(x, y):
    return choose(x > y, x, y)


def choose(condition, yes, no):
    return yes if condition else no


for module in (native, arrays):
    path = Path(module.__file__)
    path.write_text(path.read_text().replace(*sys.argv[1:]))
print(compile_functions({"larger": larger, "choose": native.choose}, "larger")(1.0, 2.0))
"""


def test_an_edit_between_import_and_compilation_leaves_nothing_stale(tmp_path):
    """Of a file that compiled code uses without holding its text: what was imported counts, not what the file says."""
    package = tmp_path / "freewalk"
    shutil.copytree(Path(freewalk.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "script.py").write_text(NATIVE)
    environment = os.environ | {"FREEWALK_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    printed = [
        subprocess.run(
            [sys.executable, "script.py", *edit],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for edit in (("builder.select(*arguments)", "builder.select(arguments[0], *arguments[:0:-1])"), ("", ""))
    ]
    assert printed == ["2.0\n", "1.0\n"]


def comment_on(text):
    """The text with a comment before every return."""
    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith("return "):
            lines.append(line[: len(line) - len(line.lstrip())] + "# Why, in a few words.")
        lines.append(line)
    return "\n".join(lines) + "\n"
