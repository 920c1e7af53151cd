"""The search behind the fitted values, at toy size: complete, reproducible, and won by the best."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from handmade import SPEC
from reproduction import search as searching
from reproduction.search import AS_FITTED, AS_STATED, READINGS, search

from freewalk.errors import SpecError
from freewalk.paper.evidence import FIGURES, published
from freewalk.paper.files import fit_path
from freewalk.paper.fit import Fit, Fitted, Space
from freewalk.sweeps import crews

JUMPING = """
[[walk]]
label = "MHLJ"
design = { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }
rule = { kind = "SGD", step = 1e-2 }
"""
APART = "heavy = 2\nadjacent = false\n"
TOY = SPEC.replace("steps = 1200", "steps = 200").replace("heavy = 2\n", APART) + JUMPING
SPACE = Space(uniform=(5e-3, 1e-2), importance=(5e-3, 2e-2), jump=(0.1, 0.9))
#: What makes a search of figure 5b small. As a script, so that other processes can do it as well.
SCRIPT = """
import sys
from pathlib import Path
from freewalk.paper.fit import Space
from reproduction import search as searching

searching.spec_path = lambda figure, variant: Path(sys.argv[1])
searching.SPACES = {"5b": Space((5e-3, 1e-2), (5e-3, 2e-2), (0.1, 0.9))}
searching.OTHERS = range(1_000_001, 1_000_005)
searching.WALKS = 4

if __name__ == "__main__":
    searching.search("5b", 3, finalists=2, workers=1).save(Path(sys.argv[2]))
"""


def forget() -> None:
    searching.spec_of.cache_clear()
    searching.graph_of.cache_clear()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A small figure 5b, and a small 4a, in this process."""
    (tmp_path / "5b.toml").write_text(TOY)
    (tmp_path / "4a.toml").write_text(TOY.replace(JUMPING, "").replace(APART, ""))
    monkeypatch.setattr(searching, "spec_path", lambda figure, variant: tmp_path / f"{figure}.toml")
    monkeypatch.setattr(searching, "SPACES", {"5b": SPACE, "4a": Space((5e-3, 1e-2), (5e-3,), ())})
    monkeypatch.setattr(searching, "OTHERS", range(1_000_001, 1_000_005))
    monkeypatch.setattr(searching, "WALKS", 4)
    monkeypatch.setattr(crews, "ProcessPoolExecutor", lambda workers, **_: ThreadPoolExecutor(workers))
    forget()
    yield tmp_path
    forget()


def test_a_search_is_complete(toy: Path) -> None:
    told: dict[str, list[int]] = {}
    fit = search("5b", 3, finalists=2, workers=1, tell=lambda what, done, total: told.setdefault(what, []).append(done))
    assert (fit.figure, fit.seeds, fit.settings) == ("5b", 3, 8)
    assert fit.setting.seed in (1, 2, 3)
    assert fit.setting.uniform in SPACE.uniform
    assert fit.setting.importance in SPACE.importance
    assert fit.setting.jump in SPACE.jump
    assert set(fit.distances) == set(fit.spread) == set(published("5b"))
    assert set(fit.readings) == {*READINGS, AS_STATED}
    for best, middle in fit.readings.values():
        assert 0 < best <= middle
    # Fewer settings cannot be nearer than all of them.
    assert fit.readings[AS_STATED][0] >= fit.readings[AS_FITTED][0]
    for low, middle, high in fit.spread.values():
        assert 0 < low <= middle <= high
    assert told == {
        "trying": list(range(1, 3 * len(READINGS) + 1)),
        "computing exactly": [1, 2],
        "other data": [1, 2, 3, 4],
    }


def test_the_winner_has_the_least_worst_distance_of_all_finalists(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Fitted, dict[str, float]]] = []
    real = searching.distances

    def note(figure: str, setting: Fitted) -> dict[str, float]:
        asked.append((setting, real(figure, setting)))
        return asked[-1][1]

    monkeypatch.setattr(searching, "distances", note)
    fit = search("5b", 4, finalists=3, workers=1)
    finalists, others = asked[:3], asked[3:]
    assert len({setting.seed for setting, _ in finalists}) == 3  # with different data
    worst = [max(found.values()) for _, found in finalists]
    setting, found = finalists[int(np.argmin(worst))]
    assert fit.setting == setting
    assert fit.distances == {label: round(value, 6) for label, value in found.items()}
    # The others have the winner's setting on data of their own.
    assert [other.seed for other, _ in others] == list(searching.OTHERS)
    assert {(one.uniform, one.importance, one.jump) for one, _ in others} == {
        (setting.uniform, setting.importance, setting.jump)
    }
    for label, quantiles in fit.spread.items():
        expected = np.quantile([distance[label] for _, distance in others], (0.1, 0.5, 0.9))
        np.testing.assert_allclose(quantiles, expected, atol=1e-4)


def test_the_best_setting_of_each_draw_is_a_finalist(toy: Path) -> None:
    trial = searching._try("5b", 2, AS_FITTED)
    assert len(trial) == len(SPACE) == 8
    assert [one.worst for one in trial] == sorted(one.worst for one in trial)
    assert len({one.setting for one in trial}) == 8
    assert {one.setting.seed for one in trial} == {2}
    readings = {name: searching._try("5b", 2, name)[0].worst for name in READINGS}
    assert len(set(readings.values())) == len(readings)  # each reading reads something else


def test_a_fit_is_the_same_once_it_was_saved(toy: Path) -> None:
    fit = search("5b", 2, finalists=1, workers=1)
    path = toy / "new" / "folder" / "fit.json"
    fit.save(path)
    assert Fit.load(path) == fit
    assert search("5b", 2, finalists=1, workers=1) == fit
    near, readings = fit.tables()
    assert [row[0] for row in near.rows] == list(fit.spread)
    assert f"{fit.seeds} draws of the data × {fit.settings} settings" in near.caption
    assert f"data seed {fit.setting.seed}" in near.caption
    assert [row[0] for row in readings.rows] == list(fit.readings)


def test_a_search_that_was_interrupted_continues(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = search("5b", 3, finalists=2, workers=1)
    asked: list[tuple[str, int, str]] = []
    real = searching.simulate

    def interrupted(figure: str, seed: int, *arguments: object, **more: object) -> object:
        asked.append((figure, seed, str(more)))
        if len(asked) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return real(figure, seed, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(searching, "simulate", lambda *arguments, **more: interrupted(*arguments, **more))
    with pytest.raises(KeyboardInterrupt, match="SIGINT"):
        search("5b", 3, finalists=2, workers=1, folder=toy / "kept")
    before = len(asked)
    assert 5 <= before < 12
    assert search("5b", 3, finalists=2, workers=1, folder=toy / "kept") == expected
    assert len(asked) == 12  # each trial once
    assert search("5b", 3, finalists=2, workers=1, folder=toy / "kept") == expected
    assert len(asked) == 12


@pytest.mark.parametrize("figure", FIGURES)
def test_shipped_fits_are_as_they_would_be_saved(figure: str, tmp_path: Path) -> None:
    Fit.load(fit_path(figure)).save(tmp_path / "fit.json")
    assert (tmp_path / "fit.json").read_bytes() == fit_path(figure).read_bytes()


def test_homogeneous_data_have_fewer_readings_and_no_jumps(toy: Path) -> None:
    fit = search("4a", 2, finalists=2, workers=1)
    assert fit.setting.jump is None
    assert set(fit.readings) == {AS_FITTED, "first feature constant"}
    assert set(fit.distances) == {"MH uniform", "MH importance"}
    assert fit.settings == 2


def test_a_step_that_diverges_is_never_the_best(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "SPACES", {"5b": Space((50.0, 1e-2), (50.0, 1e-2), (0.1,))})
    trial = searching._try("5b", 1, AS_FITTED)
    assert (trial[0].setting.uniform, trial[0].setting.importance) == (1e-2, 1e-2)
    assert trial[-1].worst == np.inf


@pytest.mark.long
def test_processes_of_their_own_find_the_same(toy: Path) -> None:
    (toy / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-W", "error", "script.py", "5b.toml", "fit.json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(command, check=True, cwd=toy, timeout=120, env=environment)
    assert Fit.load(toy / "fit.json") == search("5b", 3, finalists=2, workers=1)
    assert json.loads((toy / "fit.json").read_text())["figure"] == "5b"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("2",), r"search: figure = '2', expected one of 3, 4a, 4b, 5a, 5b, 6"),
        (("6-shift",), r"search: figure = '6-shift', expected one of"),
        (("3", 0), r"search: seeds = 0 and finalists = 8, expected at least 1 of each"),
        (("3", -5), r"search: seeds = -5"),
    ],
)
def test_bad_arguments_are_refused_at_once(arguments: tuple, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        search(*arguments)
    with pytest.raises(SpecError, match="finalists = 0"):
        search("3", finalists=0)
