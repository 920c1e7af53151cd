"""`python -m reproduction`, as whoever doubts a stored result meets it."""

from pathlib import Path

import pytest
from reproduction import search, sensitivity, sweep
from reproduction.__main__ import app
from reproduction.sensitivity import STORED, Sensitivity
from typer.testing import CliRunner

from freewalk.cli import terminal
from freewalk.paper import Fit
from freewalk.paper.claim_sweep import ClaimSweep
from freewalk.paper.files import fit_path, sweep_path


@pytest.fixture
def here(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(terminal, "INTERVAL", 1e6)  # no lines about progress, however slow this machine is
    return here


def call(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "2"], "search: figure = '2', expected one of 3, 4a, 4b, 5a, 5b, 6"),
        (["sweep", "2"], "sweep: figure = '2', expected one of 3, 4a, 4b, 5a, 5b, 6"),
        (["sweep", "3", "--variant", "own"], "sweep: variant = 'own', expected one of stated, published"),
        (["search", "6shift"], "reproduce: there is no figure '6shift'; did you mean '6-shift'?"),
    ],
)
def test_errors_come_before_anything_is_made(here: Path, arguments: list[str], message: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {message}\n")
    assert list(here.iterdir()) == []


def test_options_are_checked(here: Path) -> None:
    result = call("search", "--seeds", "0")
    assert result.exit_code == 2
    assert result.stderr
    assert list(here.iterdir()) == []


def test_a_search_is_printed_and_written(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fake(figure: str, seeds: int, folder: Path, tell=None) -> Fit:
        asked.append((figure, seeds))
        assert folder.name == "points"
        tell("trying", 1, 2)
        return Fit.load(fit_path(figure))

    monkeypatch.setattr(search, "search", fake)
    result = call("search", "5b", "4a", "--seeds", "7")
    assert result.exit_code == 0, result.output
    assert asked == [("5b", 7), ("4a", 7)]
    for figure in ("5b", "4a"):
        assert (here / f"runs/search/figure-{figure}.json").read_bytes() == fit_path(figure).read_bytes()
        assert f"runs/search/figure-{figure}.json" in result.stdout
    assert "Fitted(seed=22, uniform=0.0005, importance=0.004, jump=0.7)" in " ".join(result.stdout.split())
    asked.clear()
    together = Sensitivity.load(STORED)
    monkeypatch.setattr(sensitivity, "explore", lambda seeds, folder, tell: asked.append(("all", seeds)) or together)
    assert call("search", "--out", "elsewhere").exit_code == 0
    assert asked == [(figure, 50) for figure in ("3", "4a", "4b", "5a", "5b", "6", "all")]
    assert len(list((here / "elsewhere").iterdir())) == 7
    assert (here / "elsewhere/sensitivity.json").read_bytes() == STORED.read_bytes()


def test_a_search_that_ctrl_c_ended_says_how_to_continue(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "search", fake)
    monkeypatch.setattr("sys.argv", ["reproduction/__main__.py", "search", "5b"])
    result = call("search", "5b")
    words = "interrupted; what is complete is in runs/search. Resume with: python -m reproduction search 5b\n"
    assert (result.exit_code, result.stderr) == (130, words)


def test_a_sweep_is_printed_and_written(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fake(figures: list[str], variant: str | None, folder: Path, tell=None):
        asked.append((figures, variant))
        tell("figure 4b, stated", 1, 2)
        yield from (ClaimSweep.load(sweep_path("4b", one)) for one in ("stated", "published"))

    monkeypatch.setattr(sweep, "sweep", fake)
    result = call("sweep", "fig4b")
    assert result.exit_code == 0, result.output
    assert asked == [(["4b"], None)]
    for variant in ("stated", "published"):
        written = here / f"runs/sweep/{variant}/figure-4b.sweep.json"
        assert written.read_bytes() == sweep_path("4b", variant).read_bytes()  # type: ignore[arg-type]
    assert "20 of 20 fresh draws" in result.stdout


def test_a_sweep_that_ctrl_c_ended_keeps_what_is_complete(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(*arguments: object, **options: object):
        yield ClaimSweep.load(sweep_path("4b", "stated"))
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "sweep", fake)
    monkeypatch.setattr("sys.argv", ["reproduction/__main__.py", "sweep", "--variant", "stated"])
    result = call("sweep", "--variant", "stated")
    words = (
        "interrupted; what is complete is in runs/sweep. Resume with: python -m reproduction sweep --variant stated\n"
    )
    assert (result.exit_code, result.stderr) == (130, words)
    assert (here / "runs/sweep/stated/figure-4b.sweep.json").is_file()
