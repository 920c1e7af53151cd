"""`freewalk diagnose`, as a user and a script meet it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from freewalk import cli, designs
from freewalk.analysis.diagnosis.diagnose import DESIGNS, diagnose
from freewalk.analysis.diagnosis.findings import Diagnosis

SPEC = """
name = "small"
[graph]
kind = "ring"
n = 16
[problem]
kind = "LeastSquares"
dim = 2
heavy = 2
heavy_variance = 100.0
seed = 3
[run]
steps = 300
start = "heaviest"
[[walk]]
label = "simple [walk]"
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 1e-3 }
[[walk]]
label = "importance"
design = { kind = "Metropolis", power = 1 }
rule = { kind = "SGD", step = 1e-3 }
[[walk]]
label = "MHLJ, jump 0.1"
design = { kind = "MHLJ", jump = 0.2, stop = 0.5, hops = 2 }
rule = { kind = "SGD", step = 1e-3 }
[[walk]]
label = "again"
design = { kind = "MHLJ", jump = 0.2, stop = 0.5, hops = 2 }
rule = { kind = "SGD", step = 1e-2 }
[[walk]]
label = "server"
design = { kind = "Centralized" }
rule = { kind = "SGD", step = 1e-3 }
[[walk]]
label = "fading"
rule = { kind = "SGD", step = 1e-3 }
[walk.design]
kind = "Decaying"
design = { kind = "MHLJ", jump = 0.3, stop = 0.5, hops = 2 }
schedule = { kind = "Inverse", initial = 1.0, scale = 100 }
[[walk]]
label = "switch"
[[walk.phase]]
until = 100
design = { kind = "MHLJ", jump = 0.4, stop = 0.5, hops = 2 }
rule = { kind = "SGD", step = 1e-3 }
[[walk.phase]]
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 1e-3 }
"""

# Everyone is everyone's neighbour, and the heavy nodes are not much heavier: nothing holds a walk.
FREE = """
name = "free"
[graph]
kind = "complete"
n = 20
[problem]
kind = "LeastSquares"
dim = 3
heavy = 4
heavy_variance = 3.0
samples = 10
seed = 1
[run]
steps = 10
[[walk]]
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 1e-3 }
"""

KEYS = {"graph", "nodes", "start", "importance", "entrapped", "slower", "ratio", "best", "on_data", "traps", "designs"}


@pytest.fixture
def here(here: Path) -> Path:
    """A folder of one's own with specs in it, and the place where commands are given."""
    (here / "small.toml").write_text(SPEC)
    (here / "free.toml").write_text(FREE)
    return here


def call(*arguments: str):
    return CliRunner().invoke(cli.app, ["diagnose", *arguments])


def test_words_table_and_figure(here: Path) -> None:
    result = call("small.toml")
    assert result.exit_code == 1, result.output
    assert result.stderr == ""
    assert result.stdout.startswith("Importance sampling by Metropolis is entrapped at nodes ")
    assert "ring(16): 16 nodes" in result.stdout
    assert "is entrapped at" in result.stdout
    assert "the heaviest" in result.stdout
    for label in DESIGNS:
        assert label in result.stdout
    assert "runs/small-diagnosis.png" in result.stdout
    assert imread(here / "runs/small-diagnosis.png").std() > 0.05
    # A spec that was diagnosed can be run: nothing stands in its folder.
    assert CliRunner().invoke(cli.app, ["run", "free.toml"]).exit_code == 0
    assert not (here / "runs" / "small").exists()


def test_the_designs_of_the_spec_are_compared_as_well(here: Path) -> None:
    result = call("small.toml", "--json")
    compared = list(json.loads(result.stdout)["designs"])
    # Not those that are compared anyway, twice in the spec, not local, or change with the step.
    assert compared == [*DESIGNS, "simple [walk]", "MHLJ, jump 0.1 (spec)"]


def test_json_is_all_that_is_printed(here: Path) -> None:
    result = call("small.toml", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert set(found) >= KEYS
    assert found["entrapped"] is True
    assert found["on_data"] is True
    assert {"nodes", "excess", "uniform", "memory", "factor", "lost", "share"} <= set(found["traps"][0])
    assert {"excess_visits", "excess", "distance", "messages_per_update", "step", "updates", "messages"} <= set(
        found["designs"]["MH uniform"]
    )
    assert found["designs"]["MH importance"]["excess_visits"] == pytest.approx(found["held"]["excess"])
    assert not (here / "runs").exists()
    result = call("small.toml", "--json", "--out", "pictures/here.svg")
    assert json.loads(result.stdout)["best"] == found["best"]
    assert (here / "pictures/here.svg").stat().st_size > 10_000
    assert not (here / "runs").exists()


def test_what_is_not_least_squares_gets_no_advice(here: Path) -> None:
    (here / "logistic.toml").write_text(SPEC.replace("LeastSquares", "Logistic").replace("small", "logistic"))
    result = call("logistic.toml")
    assert "not your loss: traps and messages only" in result.stdout.splitlines()[0]
    assert result.exit_code == 1  # entrapped
    assert "messages" in result.stdout
    for word in ("use:", "in a spec", "SGD", "goal"):
        assert word not in result.stdout
    found = json.loads(call("logistic.toml", "--json").stdout)
    assert (found["on_data"], found["entrapped"], found["slower"], found["use"]) == (False, True, None, [])


def test_nothing_to_warn_of_is_status_0(here: Path) -> None:
    result = call("free.toml", "--json")
    found = json.loads(result.stdout)
    assert (found["entrapped"], found["slower"]) == (False, False)
    assert result.exit_code == 0


@pytest.mark.parametrize(("entrapped", "slower", "status"), [(0, None, 0), (0, True, 1), (1, None, 1), (1, False, 0)])
def test_the_status_says_slower_or_else_entrapped(
    here: Path, monkeypatch: pytest.MonkeyPatch, entrapped: int, slower: bool | None, status: int
) -> None:
    class Found(Diagnosis):
        def __init__(self) -> None:
            pass

        def as_dict(self) -> dict[str, object]:
            return {}

    Found.entrapped, Found.slower = bool(entrapped), slower
    monkeypatch.setattr("freewalk.analysis.diagnosis.diagnose.diagnose", lambda *_, **__: Found())
    assert call("small.toml", "--json").exit_code == status


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ([], "heaviest"),  # the spec's
        (["--start", "heaviest"], "heaviest"),
        (["--start", "7"], 7),
        (["--start", "2, 5,5"], [2, 5, 5]),
        (["--start", "uniform"], "uniform"),
    ],
)
def test_where_to_start(here: Path, monkeypatch: pytest.MonkeyPatch, option: list[str], expected: object) -> None:
    (here / "small.toml").write_text(SPEC.replace("heavy = 2", "heavy = 1"))
    asked: dict[str, object] = {}

    class Enough(Exception):
        pass

    def stop(graph: object, problem: object, **options: object) -> None:
        asked.update(options)
        raise Enough

    monkeypatch.setattr("freewalk.analysis.diagnosis.diagnose.diagnose", stop)
    assert isinstance(call("small.toml", *option).exception, Enough)
    assert asked["start"] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.toml"], "error: none.toml: cannot be read (No such file or directory), expected a TOML file"),
        (["bad.toml"], "error: bad.toml: [run] has no key 'step'; did you mean 'steps'?"),
        (
            ["small.toml", "--start", "heavyest"],
            "error: --start 'heavyest': expected heaviest, uniform, a node, or several",
        ),
        (
            ["small.toml", "--start", "16"],
            "error: --start '16': expected heaviest, uniform, a node, or several as 0,5,7; ring(16): node = 16",
        ),
        (["small.toml", "--out", "picture.xyz"], "error: 'picture.xyz': cannot draw this kind of file"),
        (["small.toml", "--out", "picture"], "error: 'picture': cannot draw this kind of file"),
        (["small.toml", "--out", "small.toml/x.png"], "error: "),
    ],
)
def test_errors_are_one_line_each(here: Path, arguments: list[str], message: str) -> None:
    (here / "bad.toml").write_text(SPEC.replace("steps", "step", 1))
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not (here / "runs").exists()


def test_a_kind_of_image_is_refused_before_anything_is_computed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freewalk.analysis.diagnosis.diagnose.diagnose", None)  # calling it would fail
    assert call("small.toml", "--out", "picture.xyz").exit_code == 2


def test_a_mistyped_option(here: Path) -> None:
    result = call("small.toml", "--jsn")
    assert result.exit_code == 2
    assert "--jsn" in result.stderr
    assert "--json" in result.stderr


def test_help_explains_the_status() -> None:
    words = " ".join(call("--help").stdout.split())
    assert "exit status is 1 if importance sampling by Metropolis is slower than the uniform walk" in words
    assert "0 if not, and 2 after an error" in words
    assert "designs Decaying and Centralized are left out" in words
    assert "freewalk diagnose my.toml" in CliRunner().invoke(cli.app, ["--help"]).stdout


@pytest.mark.long
def test_a_process_keeps_its_output_clean(here: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", "from freewalk.cli import main; main()", "diagnose", "small.toml"]
    done = subprocess.run([*command, "--json", "--out", "x.png"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["nodes"] == 16


def test_the_command_says_what_the_function_says(here: Path) -> None:
    from freewalk.specs import load

    plan = load("free.toml").plan()
    graph = plan.walks["SimpleWalk()"][0].kernel.graph
    compared = {**DESIGNS, "SimpleWalk()": designs.SimpleWalk()}
    words = str(diagnose(graph, plan.problem, designs=compared)).split()
    assert call("free.toml").stdout.split()[: len(words)] == words
