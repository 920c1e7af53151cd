"""freewalk sweep, sweep status, sweep show: as a user types them."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import call
from small_sweeps import BASE, SWEEP, slow

import freewalk as fw
from freewalk.specs import parse
from freewalk.sweeps.resume import Results

FREEWALK = [sys.executable, "-c", "from freewalk.cli import main; main()"]


@pytest.fixture
def here(here: Path) -> Path:
    (here / "small.toml").write_text(BASE + SWEEP)
    return here


def test_a_sweep_is_computed_shown_and_continued(here: Path) -> None:
    result = call("sweep", "small.toml")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("6 points: 0 already done, 6 computed\n")
    assert result.stderr == ""
    names = {"sweep.toml", "points", "table.csv", "lines.png", "curves.png", "page.html"}
    assert {file.name for file in (here / "runs/small").iterdir()} == names
    for name in names - {"points", "sweep.toml"}:
        assert f"runs/small/{name}" in result.stdout
    again = call("sweep", "small.toml", "--on", "threads", "--workers", "3")
    assert again.stdout.startswith("6 points: 6 already done, 0 computed\n")
    assert call("sweep", "run", "small.toml", "--quiet").output == ""
    with (here / "runs/small/table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    data = fw.sweep("small.toml")
    for row in rows:
        place = {key: float(row[key]) for key in ("walk.MHLJ.design.jump", "problem.seed")}
        value = float(data.mse.sel(place).sel(design=row["design"]).mean("walk")[-1])
        assert float(row["mse"]) == pytest.approx(value, rel=1e-8)
        assert (here / f"runs/small/points/{row['point']}.npz").is_file()


def test_status_says_what_is_there_under_way_and_missing(here: Path) -> None:
    assert call("sweep", "status", "small.toml").stdout == (
        "runs/small: 0 of 6 points are done, 0 in progress, 6 not started\n"
    )
    fw.sweep("small.toml", {"walk.MHLJ.design.jump": [0.1], "problem.seed": [1, 2]})
    (here / "runs/small/sweep.toml").write_text(BASE + SWEEP)
    results = Results(here / "runs/small/points")
    point = next(iter(parse_points(here)))
    lock = results.lock(point.key)
    assert lock is not None
    for place in ("small.toml", "runs/small"):
        lines = call("sweep", "status", place).stdout.splitlines()
        assert lines[0] == "runs/small: 2 of 6 points are done, 1 in progress, 3 not started"
        assert lines[1].startswith(f"  {os.getpid()} on ")
        assert lines[1].endswith(f": {point.words}")
    lock.release()


def parse_points(here: Path) -> list:
    from freewalk.sweeps.folder import SweepFolder

    return SweepFolder.open(here / "runs/small").missing


def test_an_unfinished_sweep_is_shown(here: Path) -> None:
    result = call("sweep", "show", "small.toml")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: report: this sweep has no finished point, expected the result of fw.sweep\n",
    )
    fw.sweep("small.toml", {"walk.MHLJ.design.jump": [0.1], "problem.seed": [1, 2]}, folder="some")
    (here / "some/sweep.toml").write_text(BASE + SWEEP)
    result = call("sweep", "show", "some", "--measure", "loss", "--x", "walk.MHLJ.design.jump")
    assert result.exit_code == 0, result.output
    table = result.stdout.splitlines()
    assert any("0.5" in line and line.count("–") == 2 for line in table)  # nothing is there at 0.5
    assert "some/page.html" in result.stdout
    assert call("sweep", "show", "small.toml", "--out", "some").exit_code == 0


def test_a_point_runs_alone_by_the_spec_in_its_record(here: Path) -> None:
    fw.sweep("small.toml")
    for file in Path("runs/small/points").glob("*.npz"):
        record = fw.load(file)
        again = parse(record.provenance["spec"], "again").run()
        assert again.data.mse.identical(record.data.mse)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.toml"], "error: missing.toml: cannot be read"),
        (["plain.toml"], "error: plain.toml: has no table [sweep]"),
        (
            ["wrong.toml"],
            "error: wrong.toml: [sweep]: \"grph.n\": the top of the file has no key 'grph'; did you mean 'graph'?",
        ),
        (["empty.toml"], 'error: empty.toml: [sweep]: "graph.n": is an empty range (from = 9, to = 3, step = 1)'),
        (["small.toml", "--address", "auto"], "error: sweep: address = 'auto', expected None with on = 'threads'"),
        (["status", "."], "error: .: is not the folder of a sweep (there is no sweep.toml)"),
        (["show", "small.toml", "--out", "nowhere"], "error: report: this sweep has no finished point"),
        (["small.toml", "--out", "small.toml"], "error: small.toml is not a folder"),
    ],
)
def test_errors_are_one_line_and_nothing_is_made(here: Path, arguments: list[str], message: str) -> None:
    (here / "plain.toml").write_text(BASE)
    (here / "wrong.toml").write_text(BASE + '[sweep]\n"grph.n" = [5]\n')
    (here / "empty.toml").write_text(BASE + '[sweep]\n"graph.n" = { from = 9, to = 3 }\n')
    result = call("sweep", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    "arguments", [["small.toml", "--on", "gpu"], ["small.toml", "--workers", "0"], ["status"], ["run"]]
)
def test_options_are_checked(here: Path, arguments: list[str]) -> None:
    result = call("sweep", *arguments)
    assert result.exit_code == 2
    assert not (here / "runs").exists()


def test_help_is_that_of_all_commands(here: Path) -> None:
    for arguments in (["sweep", "-h"], ["sweep", "--help"], ["sweep"]):
        words = call(*arguments).output
        assert all(name in words for name in ("run", "status", "show"))
    assert "--workers" in call("sweep", "run", "-h").output


def test_show_of_a_changed_measure_is_refused_with_those_there_are(here: Path) -> None:
    fw.sweep("small.toml")
    result = call("sweep", "show", "small.toml", "--measure", "los")
    assert (result.exit_code, "did you mean 'loss'?" in result.stderr) == (2, True)
    result = call("sweep", "show", "small.toml", "--x", "graph.n")
    assert "report: x = 'graph.n', expected 'walk.MHLJ.design.jump'" in result.stderr


@pytest.mark.quick("2-interrupted-130")
@pytest.mark.parametrize(
    ("number", "word", "code"), [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "terminated", 143)]
)
def test_a_signal_ends_it_with_what_to_do_next(here: Path, number: signal.Signals, word: str, code: int) -> None:
    slow(here, 500, 0.02)
    process = subprocess.Popen([*FREEWALK, "sweep", "slow.toml", "--workers", "2"], stderr=subprocess.PIPE, text=True)
    while len(list(Path("runs/slow/points").glob("*.npz"))) < 2 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    there = len(list(Path("runs/slow/points").glob("*.npz")))
    last = said.splitlines()[-1]
    assert last == f"{word}; {there} of 500 points are in runs/slow. Resume with: freewalk sweep slow.toml --workers 2"
    assert process.returncode == code
    assert said.splitlines()[0].startswith("importing mine (")


def test_the_example_is_a_sweep_that_runs(here: Path) -> None:
    assert "[sweep]" in call("example", "sweep").stdout
    result = call("example", "--kind", "sweep", "mine.toml")
    assert result.stdout == "mine.toml: run it with: freewalk sweep mine.toml\n"
    text = (here / "mine.toml").read_text()
    assert 'name = "mine"' in text
    assert "freewalk sweep mine.toml" in text
    assert "runs/mine/" in text
    assert call("sweep", "status", "mine.toml").stdout.startswith("runs/mine: 0 of 24 points are done")
