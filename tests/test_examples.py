"""Every example is run as a reader would, in an empty folder, and is held to what its docstring promises."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
WITHOUT = os.environ.get("FREEWALK_TEST_TORCH") == "0" or find_spec("torch") is None
# As in pyproject.toml: numba-cuda, when it is imported with numpy 2.5.
IGNORED = "ignore:The 'generic' unit for NumPy timedelta:DeprecationWarning"
# Dependencies of the lowest versions warn of what they find in new ones (`make test-minimum`).
OLD = ["-W", "default::DeprecationWarning"] if os.environ.get("FREEWALK_TEST_MINIMUM") else []
NUMBER = r"(\d[\d.]*(?:e[+-]?\d+)?)"


def run(name: str, folder: Path, *, warnings: str = "error") -> str:
    """What the script prints."""
    done = subprocess.run(
        [sys.executable, "-W", warnings, *OLD, "-W", IGNORED, EXAMPLES / f"{name}.py"],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{name}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    """All numbers that stand where `#` does."""
    found = re.findall(re.escape(pattern).replace(r"\ ", r"\s+").replace(r"\#", NUMBER), text)
    assert found, f"{pattern!r} is not in\n{text}"
    return [float(one) for one in found]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_own_graph_and_csv(tmp_path):
    printed = run("own_graph_and_csv", tmp_path)
    assert "Graph(pipes.csv: 8 nodes, 9 edges)" in printed
    (error,), (best,) = numbers("error: #", printed), numbers("best possible: #", printed)
    assert best <= error < 1.3 * best
    model = [float(one) for one in re.search(r"model: \[(.*)\]", printed)[1].split()]
    assert model == pytest.approx([2, -1], abs=0.1)  # what the data were drawn with
    assert names(tmp_path) == {"pipes.csv", "flows.csv", "flows.npz", "flows.html"}


def test_own_design(tmp_path):
    printed = run("own_design", tmp_path)
    assert max(numbers("distance from target #", printed)) < 1e-12
    simple, strides = numbers("excess visits #", printed)
    assert strides < simple / 2
    assert numbers("messages per update #", printed) == pytest.approx([1.0, 3.5], abs=0.05)
    assert min(numbers("  error #", printed)) >= numbers("best possible error #", printed)[0]
    assert not names(tmp_path)


def test_own_rule(tmp_path):
    printed = run("own_rule", tmp_path)
    assert numbers("SGD step 0.1: # of 100 walks diverged", printed)[0] > 50
    (clipped,) = numbers("Clipped step 0.1: error #", printed)
    assert clipped < 3 * numbers("best possible error #", printed)[0]
    assert "compiled and reference runs agree: True" in printed
    assert not names(tmp_path)


def test_walk_or_gossip(tmp_path):
    printed = run("walk_or_gossip", tmp_path)
    assert all(method in printed for method in ("walk", "decentralized SGD", "FedAvg"))
    assert numbers("gossip needs # times the messages", printed)[0] > 20
    assert numbers("gossip needs # times the rounds", printed)[0] < 0.5
    assert {"record.npz", "page.html", "table.txt"} <= names(tmp_path / "walk-or-gossip")


def test_exact_and_simulated(tmp_path):
    printed = run("exact_and_simulated", tmp_path)
    rows = [line.split() for line in printed.splitlines() if re.match(r"\s*\d+ ", line)]
    assert [int(step) for step, *_ in rows] == list(range(500, 4001, 500))
    assert all(float(apart) < 4.5 for *_, apart in rows)  # eight looks: a false alarm in some 20,000 draws of the seed
    assert re.search(r"bias .* variance", printed)
    assert not names(tmp_path)


@pytest.mark.skipif(WITHOUT, reason="its code needs PyTorch")
def test_torch_model(tmp_path):
    printed = run("torch_model", tmp_path, warnings="default")
    first, *_, last = numbers("updates: #", printed)
    assert first < 0.2
    assert last > 0.75
    predicted, true = (re.search(rf"{word}: +\[(.*)\]", printed)[1].split(", ") for word in ("predicted", "true"))
    assert sum(one == other for one, other in zip(predicted, true, strict=True)) >= 6
    assert names(tmp_path) == {"digits.safetensors"}


@pytest.mark.long
def test_sweep_on_ray(tmp_path):
    printed = run("sweep_on_ray", tmp_path, warnings="default")
    seldom, _, often = (float(line.split()[-1]) for line in printed.splitlines() if line.startswith("jump"))
    assert often < seldom  # a walk that seldom jumps is entrapped
    assert len(list((tmp_path / "jumps" / "points").glob("*.npz"))) == 6


@pytest.mark.long
def test_reproduce_figure(tmp_path):
    printed = run("reproduce_figure", tmp_path)
    verdicts = re.findall(r"^(pass|fail|depends) +(.+)", printed, re.MULTILINE)
    assert ("pass", "MHLJ reaches 3 × the optimum in at most 0.5 × the updates that MH uniform needs") in verdicts
    assert sum(outcome == "pass" for outcome, _ in verdicts) >= 10
    assert (tmp_path / "reproduced/published/figure-3/figure.png").exists()
    assert list((tmp_path / "reproduced").glob("*.html"))


def test_all_examples_are_listed_and_tested():
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    listed = set(re.findall(r"\((\w+)\.py\)", (EXAMPLES / "README.md").read_text(encoding="utf-8")))
    assert (
        scripts
        == listed
        == {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
        - {"all_examples_are_listed_and_tested"}
    )
