"""A whole study at toy size, exact curves and all: its files, what they say, and what is done again."""

import json
import threading
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from handmade import SPEC, TINY, contents, take_the_place_of_figure_4a
from matplotlib.image import imread

import freewalk as fw
from freewalk.analysis import exact_curve
from freewalk.errors import SpecError
from freewalk.paper import figures, files, reproduce, task
from freewalk.paper.claim_sweep import ClaimRow, ClaimSweep
from freewalk.paper.evidence import published
from freewalk.paper.study import Study
from freewalk.report.page import Chart, Series
from freewalk.rules import SGD
from freewalk.specs import Spec

PLACES = ("stated/figure-4a", "published/figure-4a")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which figure 4a is a tiny study."""
    take_the_place_of_figure_4a(monkeypatch, tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """All files of the tiny study, in both variants, made at once and by one thread."""
    folder = tmp_path_factory.mktemp("baseline")
    with pytest.MonkeyPatch.context() as context:
        take_the_place_of_figure_4a(context, folder)
        reproduce(["4a"], None, folder / "out", workers=1)
    return contents(folder / "out")


def never(*arguments: object, **options: object) -> None:
    raise AssertionError("computed again")


def test_progress_is_told_up_to_the_last_update() -> None:
    graph = fw.graphs.ring(8)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, seed=1)
    kernel = fw.designs.Metropolis(1).kernel(graph, problem.smoothness)
    told: list[tuple[int, int]] = []
    options = {"steps": 3000, "every": 7, "start": 0}
    curve = exact_curve(problem, kernel, SGD(1e-3), **options, progress=lambda *numbers: told.append(numbers))
    steps, totals = zip(*told, strict=True)
    assert set(totals) == {3000}
    assert steps[-1] == 3000
    assert (np.diff([0, *steps]) > 0).all()
    assert len(steps) >= 3000 // 1000
    silent = exact_curve(problem, kernel, SGD(1e-3), **options)
    np.testing.assert_array_equal(curve.mse, silent.mse)

    phases = [fw.Phase(100, kernel, SGD(1e-3)), fw.Phase(None, kernel, SGD(1e-4))]
    told.clear()
    exact_curve(problem, phases, **options, progress=lambda *numbers: told.append(numbers))
    assert told[0] == (100, 3000)
    assert told[-1] == (3000, 3000)


@pytest.mark.parametrize("error", [KeyboardInterrupt, task.CurveStopped, ZeroDivisionError])
def test_what_progress_raises_ends_the_curve(error: type[BaseException]) -> None:
    graph = fw.graphs.ring(8)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, seed=1)
    kernel = fw.designs.Metropolis(1).kernel(graph, problem.smoothness)
    told = []

    def stop(done: int, total: int) -> None:
        told.append(done)
        if done > 1000:
            raise error

    with pytest.raises(error):
        exact_curve(problem, kernel, SGD(1e-3), steps=5000, every=100, progress=stop)
    assert told[-1] < 2000


def test_a_study_leaves_all_that_is_behind_its_verdicts(tiny: Path) -> None:
    made = reproduce(["4a"], None, tiny / "out")
    assert [(one.key, one.name, one.variant) for one in made.outcomes] == [
        ("4a", "Figure 4a", "stated"),
        ("4a", "Figure 4a", "published"),
    ]
    files = {"spec.toml", "record.npz", "figure.png", "verdicts.json", "exact/00.npz", "exact/01.npz"}
    assert set(contents(tiny / "out")) == {f"{place}/{file}" for place in PLACES for file in files} | {made.page.name}
    page = made.page.read_text(encoding="utf-8")
    for outcome in made.outcomes:
        folder = outcome.folder
        assert (folder / "spec.toml").read_text() == SPEC
        record = fw.load(folder / "record.npz")
        assert record.provenance["spec"] == SPEC
        for number, label in enumerate(("MH uniform", "MH importance")):
            exact = fw.load(folder / f"exact/{number:02d}.npz")
            assert exact.label == label
            assert exact.provenance["spec"] == SPEC
        assert imread(folder / "figure.png").shape[0] > 300
        said = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
        for name, file in (("spec", "spec.toml"), ("record", "record.npz")):
            digest = sha256((folder / file).read_bytes()).hexdigest()[:12]
            assert said[name] == digest == outcome.section.details[f"SHA-256 of the {name}"]
            assert digest in page
        claims = [verdict.claim for verdict in outcome.verdicts]
        assert [verdict["claim"] for verdict in said["verdicts"]] == claims
        assert len(claims) == 3
        assert [one["claim"] for one in said.get("fit", ())] == [one.claim for one in outcome.fit]
        assert len(outcome.fit) == (3 if outcome.variant == "published" else 0)
        kinds = {series.kind for series in outcome.section.charts[0].series}
        assert kinds == {"mean", "exact", "published"}


def test_what_is_shown_is_judged_by_the_exact_curves_and_quickly_by_the_walks(tiny: Path) -> None:
    (outcome,) = reproduce(["4a"], "published", tiny / "out").outcomes
    exact = fw.load(outcome.folder / "exact/00.npz").data
    distance = published("4a")["MH uniform"].distance(exact.step.values, exact.mse.values)
    verdict = next(one for one in outcome.fit if "MH uniform" in one.claim)
    assert verdict.measured.startswith(f"{distance:.3f} decades RMS")
    assert verdict.outcome == ("pass" if distance <= 0.1 else "fail")
    (quick,) = reproduce(["4a"], "published", tiny / "quick", quick=True).outcomes
    assert not (quick.folder / "exact").exists()
    mean = fw.load(quick.folder / "record.npz").data.sel(design="MH uniform").mse.mean("walk")
    distance = published("4a")["MH uniform"].distance(mean.step.values, mean.values)
    verdict = next(one for one in quick.fit if "MH uniform" in one.claim)
    assert verdict.measured.startswith(f"{distance:.3f} decades RMS")


def test_stored_settings_decide_and_are_drawn(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tuple({"seed": seed, "fraction": 0.5, "start": "uniform"} for seed in range(10))
    rows = tuple(
        ClaimRow(claim.text, claim.threshold, claim.looks_at, (holds,) * 9 + (None,), (0.7,) * 9 + (None,))
        for claim, holds in zip(TINY.claims, (True, False, True), strict=True)
    )
    ClaimSweep("4a", "stated", settings, rows).save(tiny / "sweep.json")
    monkeypatch.setattr(task, "sweep_path", lambda key, variant: tiny / "sweep.json")
    (outcome,) = reproduce(["4a"], "stated", tiny / "out").outcomes
    assert [verdict.outcome for verdict in outcome.verdicts] == ["pass", "fail", "pass"]
    assert {verdict.share for verdict in outcome.verdicts} == {
        "9 of 9 settings (1 cannot be tested); 0.7 to 0.7 ×",
        "0 of 9 settings (1 cannot be tested); 0.7 to 0.7 ×",
    }
    assert imread(outcome.folder / "sweep.png").shape[0] > 200
    assert list(outcome.section.images) == ["The claims in other settings"]
    (table,) = outcome.tables
    assert table.rows[0][1:] == ["9 of 9", "9 of 9"]


def test_two_folders_get_the_same_bytes_and_a_second_call_computes_nothing(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, baseline: dict[str, bytes]
) -> None:
    reproduce(["4a"], None, tiny / "out", workers=3)
    assert len(baseline) == 13
    assert contents(tiny / "out") == baseline
    monkeypatch.setattr(Spec, "run", never)
    monkeypatch.setattr(task, "exact_curve", never)
    reproduce(["4a"], None, tiny / "out")
    assert contents(tiny / "out") == baseline


@pytest.mark.quick("record.npz")
@pytest.mark.parametrize("spoiled", ["record.npz", "exact/01.npz"])
def test_only_what_is_missing_or_broken_is_made_anew(tiny: Path, monkeypatch: pytest.MonkeyPatch, spoiled: str) -> None:
    reproduce(["4a"], "stated", tiny / "out")
    before = contents(tiny / "out")
    path = tiny / "out" / "stated/figure-4a" / spoiled
    path.write_bytes(path.read_bytes()[:1000])
    with monkeypatch.context() as context:
        if spoiled == "record.npz":
            context.setattr(task, "exact_curve", never)
        else:
            context.setattr(Spec, "run", never)
        reproduce(["4a"], "stated", tiny / "out")
    assert contents(tiny / "out") == before


def test_another_spec_is_run_anew(tiny: Path) -> None:
    (first,) = reproduce(["4a"], "stated", tiny / "out").outcomes
    before = contents(first.folder)
    (tiny / "tiny.toml").write_text(SPEC.replace("seed = 7", "seed = 8"))
    reproduce(["4a"], "stated", tiny / "out")
    after = contents(first.folder)
    assert set(after) == set(before)
    assert all(after[name] != before[name] for name in before)


def test_the_figure_names_what_it_is_drawn_from(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    footers = []
    draw = figures.draw

    def look(evidence, path, title, footer) -> None:
        footers.append(footer)
        assert title == "Figure 4a: A tiny one (stated)"
        draw(evidence, path, title, footer)

    monkeypatch.setattr(figures, "draw", look)
    (outcome,) = reproduce(["4a"], "stated", tiny / "out", quick=True).outcomes
    (footer,) = footers
    for name in ("spec.toml", "record.npz"):
        assert files.digest(outcome.folder / name) in footer


def test_more_charts_are_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = Chart("Twice two", [Series("four", {"jump probability": [0.1, 0.9]}, [4.0, 4.0], kind="other")], "number")
    study = Study("4a", TINY.title, TINY.text, TINY.claims, charts=lambda _: [chart])
    take_the_place_of_figure_4a(monkeypatch, tmp_path, study)
    made = reproduce(["4a"], "stated", tmp_path / "out", quick=True)
    assert [one.title for one in made.outcomes[0].section.charts][1:] == ["Twice two"]
    assert "Twice two" in made.page.read_text(encoding="utf-8")


def test_names_of_figures_are_taken_as_people_write_them(tiny: Path) -> None:
    told: list[str] = []
    made = reproduce(["4A", "fig4a", "figure-4a"], "stated", tiny / "out", quick=True, tell=told.append)
    assert [one.key for one in made.outcomes] == ["4a"]
    assert told == ["Figure 4a, stated"]


def test_a_variant_leaves_out_what_does_not_have_it(tmp_path: Path) -> None:
    made = reproduce(["2", "theorem-1"], "stated", tmp_path)
    assert [(one.key, one.variant) for one in made.outcomes] == [("2", "stated")]
    assert made.page.name == "reproduction-2-theorem-1-stated.html"
    with pytest.raises(SpecError, match="remark-1 has no variant 'published'"):
        reproduce(["remark-1"], "published", tmp_path)


class Interrupted:
    """A function that counts its calls and is interrupted at one of them."""

    def __init__(self, real, at: int) -> None:
        self.real, self.at, self.calls = real, at, 0

    def __call__(self, *arguments, **options):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return self.real(*arguments, **options)


@pytest.mark.quick("3")
@pytest.mark.parametrize("number", [1, 3])
def test_an_interrupted_curve_is_computed_by_the_next_call(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, number: int, baseline: dict[str, bytes]
) -> None:
    with monkeypatch.context() as context:
        context.setattr(task, "exact_curve", Interrupted(exact_curve, at=number))
        with pytest.raises(KeyboardInterrupt):
            reproduce(["4a"], None, tiny / "out", workers=1)
    kept = {file for file in contents(tiny / "out") if "exact" in file}
    curves = [f"{place}/exact/{label:02d}.npz" for place in PLACES for label in range(2)]
    assert set(curves[: number - 1]) <= kept <= set(curves) - {curves[number - 1]}
    assert not (tiny / "out" / "reproduction.html").exists()
    counted = Interrupted(exact_curve, at=0)
    monkeypatch.setattr(task, "exact_curve", counted)
    reproduce(["4a"], None, tiny / "out", workers=1)
    assert contents(tiny / "out") == baseline
    assert counted.calls == len(curves) - len(kept)


def test_ctrl_c_stops_the_curves_that_are_under_way(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, threads = threading.Event(), [], threading.active_count()

    def long_one(*arguments, progress, **options) -> None:
        begun.set()
        patience = time.monotonic() + 10
        try:
            while time.monotonic() < patience:
                time.sleep(0.005)
                progress(1, 2)
        except BaseException as error:
            ended.append(type(error))
            raise

    def interrupt(*arguments: object, **options: object) -> None:
        assert begun.wait(10)
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(task, "exact_curve", long_one)
        context.setattr(Spec, "run", interrupt)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            reproduce(["4a"], None, tiny / "out", workers=1)
        assert time.monotonic() - began < 5
    assert ended == [task.CurveStopped]
    assert {file for file in contents(tiny / "out") if "tmp" in file or "npz" in file} == set()
    assert threading.active_count() <= threads
