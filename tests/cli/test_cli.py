"""The command line, as a user meets it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from commands import call

import freewalk as fw
from freewalk import designs, graphs, objectives, rules, runtimes, schedules
from freewalk.cli import terminal

SPEC = """
name = "small"
[graph]
kind = "ring"
n = 12
[problem]
kind = "LeastSquares"
dim = 2
heavy = 2
[run]
steps = 300
walks = 3
every = 50
paths = 1
seed = 5
[[walk]]
label = "simple [walk]"
design = { kind = "SimpleWalk" }
rule = { kind = "SGD", step = 1e-3 }
[[walk]]
label = "MHLJ"
design = { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }
rule = { kind = "SGD", step = 1e-3 }
"""


@pytest.fixture
def here(here: Path) -> Path:
    """A folder of one's own with a spec in it, and the place where commands are given."""
    (here / "small.toml").write_text(SPEC)
    return here


def test_run_then_plot(here: Path) -> None:
    result = call("run", "small.toml")
    assert result.exit_code == 0, result.output
    assert "simple [walk]" in result.stdout
    assert "final" in result.stdout
    assert "runs/small/record.npz" in result.stdout
    assert result.stderr == ""
    folder = here / "runs" / "small"
    assert {file.name for file in folder.iterdir()} == {"spec.toml", "record.npz", "curves.png", "table.txt"}
    record = fw.load(folder / "record.npz")
    assert list(record.data.design.values) == ["simple [walk]", "MHLJ"]

    (folder / "curves.png").unlink()
    assert call("plot", "runs/small").exit_code == 0
    assert (folder / "curves.png").stat().st_size > 5000
    assert call("plot", "runs/small/record.npz", "--scale", "log", "--out", "loss.svg").exit_code == 0
    assert (here / "loss.svg").stat().st_size > 5000
    assert call("plot", "runs/small", "--figure", "escape", "--design", "MHLJ", "--updates", "50").exit_code == 0
    assert call("plot", "runs/small", "--figure", "occupancy").exit_code == 0
    assert (folder / "escape.png").exists()
    assert (folder / "occupancy.png").exists()


def test_an_existing_folder_is_an_error_before_anything_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("run", "small.toml").exit_code == 0
    before = (here / "runs/small/record.npz").stat().st_mtime_ns
    with monkeypatch.context() as context:
        context.setattr("freewalk.run.learn.learn", None)  # running would fail
        result = call("run", "small.toml")
    assert result.exit_code == 2
    assert result.stderr == "error: runs/small exists already; choose another with --out, or replace it with --force\n"
    assert (here / "runs/small/record.npz").stat().st_mtime_ns == before
    assert call("run", "small.toml", "--force").exit_code == 0
    assert (here / "runs/small/record.npz").stat().st_mtime_ns > before
    assert call("run", "small.toml", "--out", "elsewhere").exit_code == 0
    assert (here / "elsewhere" / "record.npz").exists()


def test_seed_and_runtime_are_kept_with_the_run(here: Path) -> None:
    assert call("run", "small.toml", "--seed", "9", "--runtime", "reference", "--out", "nine").exit_code == 0
    assert call("run", "nine/spec.toml", "--out", "again").exit_code == 0
    nine, again = fw.load("nine/record.npz"), fw.load("again/record.npz")
    assert nine.provenance["parts"]["MHLJ"]["seed"] == 9
    assert nine.provenance["parts"]["MHLJ"]["runtime"] == "Reference()"
    np.testing.assert_array_equal(nine.data.loss, again.data.loss)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.toml"], "error: none.toml: cannot be read (No such file or directory), expected a TOML file"),
        (["run", "bad.toml"], "error: bad.toml: [run] has no key 'step'; did you mean 'steps'?"),
        (["run", "small.toml", "--runtime", "gpu"], "error: small.toml: [run]: runtime = 'gpu'"),
        (["run", "small.toml", "--seed", "-1"], "error: small.toml: [run]: seed = -1, expected a whole number from 0"),
        (["run", "small.toml", "--out", "small.toml/x"], "error: "),
        (["plot", "none.npz"], "error: none.npz: there is no such file"),
        (["plot", "small.toml"], "error: small.toml: not a record of freewalk"),
        (["resume", "."], "error: .: is not the folder of a run"),
        (["example", "small.toml"], "error: small.toml exists already; choose another name"),
    ],
)
def test_errors_are_one_line_each(here: Path, arguments: list[str], message: str) -> None:
    (here / "bad.toml").write_text(SPEC.replace("steps", "step"))
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not (here / "runs").exists()


def test_ctrl_c_keeps_what_there_is_and_says_how_to_go_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(label: str, done: int, total: int, walks: int) -> None:
        if label == "MHLJ":
            signal.raise_signal(signal.SIGINT)

    @contextmanager
    def bar(quiet: bool) -> Iterator[object]:
        yield interrupt

    assert call("run", "small.toml", "--out", "whole").exit_code == 0
    with monkeypatch.context() as context:
        context.setattr(terminal, "progress_bar", bar)
        result = call("run", "small.toml", "--out", "my run")
    assert result.exit_code == 130
    assert result.stderr == "interrupted; what was done is in my run. Resume with: freewalk resume 'my run'\n"
    assert fw.load("my run/record.npz").partial
    result = call("resume", "my run")
    assert result.exit_code == 0, result.output
    whole, rest = fw.load("whole/record.npz"), fw.load("my run/record.npz")
    assert not rest.partial
    for name in whole.data.data_vars:
        np.testing.assert_array_equal(rest.data[name], whole.data[name], err_msg=str(name))
    result = call("resume", "my run")
    assert result.exit_code == 2
    assert "nothing to resume" in result.stderr


def stop(*arguments: object, **options: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_before_anything_was_computed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setattr("freewalk.run.learn.learn", stop)
        result = call("run", "small.toml")
    assert result.exit_code == 130
    assert result.stderr == "interrupted; nothing was computed yet. Resume with: freewalk resume runs/small\n"
    assert call("resume", "runs/small").exit_code == 0
    assert (here / "runs/small/record.npz").exists()


def test_list_shows_every_listed_name() -> None:
    result = call("list")
    assert result.exit_code == 0
    for module in (designs, graphs, rules, objectives, runtimes, schedules):
        for name in module.__all__:
            assert f"  {name}(" in result.stdout, name
    assert "MHLJ(jump, stop, hops, power=1.0, corrected=False)" in result.stdout
    assert "Metropolis steps for the target" in result.stdout


def test_example_can_be_printed_and_written(here: Path) -> None:
    printed = call("example")
    assert printed.exit_code == 0
    assert printed.stdout.startswith("# A freewalk spec")
    assert call("example", "new/mine.toml").exit_code == 0
    written = (here / "new/mine.toml").read_text()
    assert "freewalk run new/mine.toml" in written
    assert "example" not in written


@pytest.mark.long
def test_example_can_be_run(here: Path) -> None:
    assert call("example", "new/mine.toml").exit_code == 0
    result = call("run", "new/mine.toml")
    assert result.exit_code == 0, result.output
    assert (here / "runs/mine/curves.png").exists()


def test_demo_replaces_its_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freewalk.specs.shipped", lambda name: here / "small.toml")
    for _ in range(2):
        result = call("demo", "--out", "runs/demo")
        assert result.exit_code == 0, result.output
    assert "runs/demo/curves.png" in result.stdout


def test_version_and_help() -> None:
    result = call("--version")
    assert (result.exit_code, result.stdout) == (0, f"freewalk {fw.__version__}\n")
    result = call("--help")
    assert result.exit_code == 0
    for word in ("run", "resume", "plot", "list", "example", "demo", "Examples", "freewalk run my.toml"):
        assert word in result.stdout
    for command in ("run", "resume", "plot", "example"):
        assert f"freewalk {command}" in call(command, "--help").stdout


def test_help_shows_tables_of_a_spec_in_brackets() -> None:
    assert "its table [compare] has" in call("compare", "--help").stdout
    assert "A spec with a table [sweep]" in call("sweep", "run", "--help").stdout


def test_a_process_is_quiet_and_light(here: Path) -> None:
    command = [sys.executable, "-c", "from freewalk.cli import main; main()"]
    done = subprocess.run([*command, "run", "small.toml", "-q"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    failed = subprocess.run([*command, "run", "small.toml"], capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith("error: runs/small exists already")
    heavy = "numba xarray matplotlib pydantic networkx scipy"
    code = (
        "import sys; from freewalk.cli import app; app(['--version'], standalone_mode=False); "
        f"print([name for name in '{heavy}'.split() if name in sys.modules])"
    )
    light = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert light.stdout.splitlines() == [f"freewalk {fw.__version__}", "[]"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "small.toml", "--out", "again", "-q"],
        ["run", "small.toml", "--force", "--quiet"],
        ["resume", "stopped", "-q"],
        ["plot", "runs/small", "-q"],
        ["report", "runs/small", "-q"],
        ["diagnose", "small.toml", "-q"],
        ["diagnose", "small.toml", "-q", "--json"],
        ["reproduce", "2", "--quick", "--quiet"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_quiet_prints_nothing(here: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if "small.toml" not in arguments[1] or "--force" in arguments:
        assert call("run", "small.toml", "-q").stderr == ""
    if arguments[0] == "resume":
        with monkeypatch.context() as context:
            context.setattr("freewalk.run.learn.learn", stop)
            call("run", "small.toml", "--out", "stopped", "-q")
    result = call(*arguments)
    assert result.exit_code == (1 if arguments[0] == "diagnose" else 0), result.output
    assert (result.stdout, result.stderr) == ("", "")
    result = call(arguments[0], "none", "-q")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")


def test_demo_may_be_quiet(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freewalk.specs.shipped", lambda name: here / "small.toml")
    result = call("demo", "-q")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (here / "runs/small/record.npz").exists()


def test_bands(here: Path) -> None:
    assert call("run", "small.toml", "-q").exit_code == 0
    images, pages = set(), set()
    for band in ("quantiles", "confidence", "none"):
        assert call("plot", "runs/small", "--band", band, "--out", f"{band}.svg").exit_code == 0
        assert call("report", "runs/small", "--band", band, "--out", f"{band}.html").exit_code == 0
        images.add((here / f"{band}.svg").read_text().count("fill-opacity"))
        pages.add((here / f"{band}.html").read_text())
    assert (len(images), len(pages)) == (2, 3)
    assert "95 % confidence" in (here / "confidence.html").read_text()
    assert call("plot", "runs/small", "--band", "wide").exit_code == 2
    result = call("plot", "runs/small", "--figure", "escape", "--band", "none")
    assert result.stderr == "error: plot: --measure, --against, --scale and --band need --figure curves\n"


def test_any_measure_against_any_axis(here: Path) -> None:
    assert call("run", "small.toml", "-q").exit_code == 0
    options = ("--measure", "distance", "--against", "messages", "--against", "probes")
    assert call("plot", "runs/small", *options, "--out", "distance.svg").exit_code == 0
    drawn = (here / "distance.svg").read_text()
    assert all(f"<!-- {words} -->" in drawn for words in ("squared distance from the optimum", "messages", "probes"))
    assert "<!-- updates -->" not in drawn
    assert call("report", "runs/small", *options, "--out", "distance.html").exit_code == 0
    assert '"axes":["messages","probes"]' in (here / "distance.html").read_text()
    for command in ("plot", "report"):
        result = call(command, "runs/small", "--against", "mesages")
        assert result.exit_code == 2
        assert "axis = 'mesages'" in result.stderr
        assert "did you mean 'messages'?" in result.stderr
        told = call(command, "runs/small", "--against", "loss").stderr
        assert "axis = 'loss', expected something that never decreases" in told
    assert "measure = 'lost'" in call("plot", "runs/small", "--measure", "lost").stderr


LAZY = """
from dataclasses import dataclass
import freewalk as fw


@dataclass(frozen=True)
class Lazy(fw.Design):
    stay: float = 0.5

    def moves(self, graph, importance):
        return [fw.Move(self.stay, hops=0), fw.Move(1 - self.stay, hops=1)]

    def target(self, graph, importance):
        return [1.0] * (graph.n - 1) + [50.0]
"""


@pytest.mark.long
def test_code_of_the_users_is_announced_by_run_and_diagnose_and_needs_consent_elsewhere(here: Path) -> None:
    """In processes: what is imported once is imported for all tests."""
    (here / "lazy_one.py").write_text(LAZY)
    (here / "own.toml").write_text(SPEC.replace("small", "own").replace('"SimpleWalk"', '"lazy_one:Lazy", stay = 0.2'))
    command = [sys.executable, "-c", "from freewalk.cli import main; main()"]
    line = "importing lazy_one (lazy_one.py), named in own.toml"

    def given(*arguments: str) -> list[str]:
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        return [line for line in done.stderr.splitlines() if "updates/s" not in line]  # on a slow machine

    said = given("run", "own.toml")
    assert said[0] == line
    assert len(said) == 2
    assert said[1].startswith("warning: ")  # its target is not what the walk samples
    assert said[1].isprintable()
    assert given("diagnose", "own.toml", "--budget", "1")[0] == line
    assert given("report", "runs/own") == []
    (here / "runs/own/record.npz").unlink()  # as if it were not complete
    assert given("resume", "runs/own") == [
        "error: runs/own/spec.toml: names code (lazy_one:Lazy), which is not imported without your consent; if you "
        "trust it: freewalk resume runs/own --allow-code"
    ]
    said = given("resume", "runs/own", "--allow-code")
    assert said[0] == f"importing lazy_one ({here / 'lazy_one.py'}), named in runs/own/spec.toml"
    assert (here / "runs/own/record.npz").exists()


def test_a_missing_card_is_reported_first_and_costs_no_run(here: Path) -> None:
    assert call("run", "small.toml", "-q").exit_code == 0
    before = (here / "runs/small/record.npz").read_bytes()
    for arguments in ([], ["--force"]):
        result = call("run", "small.toml", "--runtime", "cuda", *arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: small.toml: [run]: cuda: ")
    assert (here / "runs/small/record.npz").read_bytes() == before
    assert {file.name for file in (here / "runs/small").iterdir()} == {
        "spec.toml",
        "record.npz",
        "curves.png",
        "table.txt",
    }
