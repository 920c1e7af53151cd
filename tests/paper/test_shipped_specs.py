"""The specs of the studies: whole, fitted as their searches say, and matched as they say themselves."""

import re
import tomllib
from dataclasses import replace

import pytest
from reproduction.search import AS_FITTED, AS_STATED, READINGS

from freewalk.analysis import exact_curve, steady_state
from freewalk.paper import KEYS, STUDIES, Fit, figure_2, remark_1
from freewalk.paper.evidence import FIGURES, published
from freewalk.paper.files import OF_THE_PAPER, fit_path, key_of, spec_path, sweep_path
from freewalk.paper.fit import NEAR, SPACES
from freewalk.paper.reproduction import reproduce
from freewalk.paper.study import COMPUTED
from freewalk.specs import load, parse

EVERY = [(key, variant) for key, study in STUDIES.items() for variant in study.variants]
CURVES = [(key, variant) for key, variant in EVERY if key not in COMPUTED]


def labels_of(key: str, variant: str) -> list[str]:
    return list(load(spec_path(key, variant)).plan().walks)  # type: ignore[arg-type]


def test_every_spec_that_is_shipped_is_used_and_every_one_that_is_used_is_shipped() -> None:
    folder = spec_path("3", "stated").parents[1]
    shipped = {f"{file.parent.name}/{file.stem}" for file in folder.glob("*/*.toml")}
    used = {f"{variant}/{spec_path(key, variant).stem}" for key, variant in EVERY}
    assert shipped == used
    assert tuple(STUDIES) == KEYS
    described = {file.stem for file in (folder.parent / "studies").glob("*.toml")}
    assert described == {spec_path(key, variant).stem for key, variant in EVERY} | {"paper"}
    stored = {fit_path(figure) for figure in FIGURES}
    stored |= {sweep_path(figure, variant) for figure in FIGURES for variant in OF_THE_PAPER}
    assert set(folder.glob("*/*.json")) == stored


@pytest.mark.parametrize(("key", "variant"), CURVES)
def test_learning_curves_have_a_spec_that_says_what_it_is(key: str, variant: str) -> None:
    spec = load(spec_path(key, variant))  # type: ignore[arg-type]
    assert spec.name.startswith(spec_path(key, variant).stem)  # type: ignore[arg-type]
    if "stated" in STUDIES[key].variants and "published" in STUDIES[key].variants:
        assert spec.name.endswith(variant)
    assert spec.tables.run.walks == (
        400 if "logistic" in key or "decay" in key else 1000
    )  # a logistic loss takes long to measure
    assert spec.tables.run.paths  # for the animation


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("variant", OF_THE_PAPER)
def test_every_printed_curve_has_a_walk_that_stands_for_it(figure: str, variant: str) -> None:
    labels = labels_of(figure, variant)
    assert set(published(figure)) <= set(labels)
    run = load(spec_path(figure, variant)).tables.run  # type: ignore[arg-type]
    last = published(figure)["MH uniform"].updates[-1]
    assert run.steps == pytest.approx(last, rel=1e-3)


@pytest.mark.parametrize(("key", "module"), [("2", figure_2), ("remark-1", remark_1)])
def test_what_is_computed_has_a_spec_as_well(key: str, module: object) -> None:
    spec = tomllib.loads(spec_path(key, "stated").read_text(encoding="utf-8"))
    assert spec["jumps"] == {"jump": 0.1, "stop": 0.5, "hops": 3}
    if module is remark_1:
        assert list(spec["graphs"]) == ["ring", "2-d grid", "Watts–Strogatz", "Erdős–Rényi"]
        return
    assert list(figure_2.kernels(spec)) == ["MH uniform", "MH importance", "MHLJ"]
    assert spec["importance"] == [100, 1, 1, 1, 1]


def test_the_numbers_that_figure_2_draws_are_those_of_51_and_a_verdict_can_tell() -> None:
    spec = tomllib.loads(spec_path("2", "stated").read_text(encoding="utf-8"))
    stated, drawn = (
        [verdict.outcome for verdict in figure_2.judge(figure_2.numbers({**spec, "importance": [heavy, 1, 1, 1, 1]}))]
        for heavy in (100, 51)
    )
    assert stated == ["fail", "fail", "pass", "pass", "fail", "fail"]
    assert drawn == ["pass", "pass", "pass", "pass", "fail", "fail"]


@pytest.mark.parametrize("figure", FIGURES)
def test_published_specs_have_what_the_search_has_found(figure: str) -> None:
    setting = Fit.load(fit_path(figure)).setting
    spec = load(spec_path(figure, "published"))
    assert spec.tables.problem["seed"] == setting.seed
    plan = spec.plan()
    for label, phases in plan.walks.items():
        for phase in phases:
            uniform = label == "MH uniform" or (len(phases) == 2 and phase is phases[-1])
            assert phase.rule.step == (setting.uniform if uniform else setting.importance), label
            jump = sum(move.probability for move in phase.kernel.moves[1:])
            wanted = setting.jump if "MHLJ" in label and not uniform else 0.0
            assert jump == pytest.approx(wanted), label
    assert (setting.jump is None) == ("MHLJ" not in plan.walks)


@pytest.mark.parametrize("figure", FIGURES)
def test_what_the_search_has_found_is_complete_and_near(figure: str) -> None:
    fit = Fit.load(fit_path(figure))
    assert fit.figure == figure
    assert fit.seeds == 50
    assert 1 <= fit.setting.seed <= 50
    assert fit.settings == len(SPACES[figure])
    assert set(fit.distances) == set(fit.spread) == set(published(figure))
    assert max(fit.distances.values()) <= NEAR == 0.1
    for low, middle, high in fit.spread.values():
        assert 0 < low < middle < high
    heavy = "heavy" in load(spec_path(figure, "published")).tables.problem
    expected = {AS_FITTED, "first feature constant"} if not heavy else {*READINGS}
    assert set(fit.readings) == expected | ({AS_STATED} if fit.setting.jump is not None else set())
    for best, middle in fit.readings.values():
        assert 0 < best <= middle
    space = SPACES[figure]
    assert fit.setting.uniform in space.uniform
    assert fit.setting.importance in space.importance
    assert fit.setting.jump is None or fit.setting.jump in space.jump


def distance(figure: str, label: str, text: str) -> float:
    """How far the exact curve of a walk is from the printed one."""
    plan = parse(text).plan()
    options = {name: plan.options[name] for name in ("steps", "every", "start") if plan.options[name] is not None}
    curve = exact_curve(plan.problem, plan.walks[label], **options)  # type: ignore[arg-type]
    return published(figure)[label].distance(curve.step.values, curve.mse.values)


@pytest.mark.long
def test_a_stored_distance_is_that_of_the_spec_and_of_no_other() -> None:
    text = spec_path("5b", "published").read_text(encoding="utf-8")
    fit = Fit.load(fit_path("5b"))
    stored = fit.distances["MH uniform"]
    assert distance("5b", "MH uniform", text) == pytest.approx(stored, abs=1e-3)
    planted = text.replace(f"seed = {fit.setting.seed} ", f"seed = {fit.setting.seed + 1} ")
    assert planted != text
    assert abs(distance("5b", "MH uniform", planted) - stored) > 0.005


@pytest.mark.parametrize("figure", ["3", "5b"])
def test_stated_steps_settle_at_the_same_error(figure: str) -> None:
    plan = load(spec_path(figure, "stated")).plan()
    excess = {}
    for label in ("MH uniform", "MH importance"):
        (phase,) = plan.walks[label]
        # Beyond the stability limit this is an error.
        excess[label] = steady_state(plan.problem, phase.kernel, phase.rule).excess  # type: ignore[arg-type]
    assert excess["MH importance"] == pytest.approx(excess["MH uniform"], rel=0.02)
    # The test has power: a twentieth more of the step is seen.
    (phase,) = plan.walks["MH importance"]
    more = replace(phase.rule, step=1.05 * phase.rule.step)  # type: ignore[type-var, attr-defined]
    limit = steady_state(plan.problem, phase.kernel, more).excess  # type: ignore[arg-type]
    assert limit > 1.02 * excess["MH uniform"]


@pytest.mark.parametrize("key", [key for key in FIGURES if key != "4a" and key != "4b"])
def test_stated_jumps_are_those_of_the_paper_with_the_step_of_importance_sampling(key: str) -> None:
    plan = load(spec_path(key, "stated")).plan()
    (phase,) = plan.walks["MHLJ"]
    assert sum(move.probability for move in phase.kernel.moves[1:]) == pytest.approx(0.1)
    assert [move.hops for move in phase.kernel.moves] == [1, 1, 2, 3]
    assert phase.rule.step == plan.walks["MH importance"][0].rule.step  # type: ignore[union-attr]


def test_half_of_the_stability_limit_is_what_the_comments_say() -> None:
    for figure in FIGURES:
        spec = load(spec_path(figure, "stated"))
        (limit,) = re.findall(r"largest at which the uniform walk converges \(([0-9.e-]+)\)", spec.text)
        step = spec.tables.walk[0].rule["step"]  # type: ignore[index]
        assert step == pytest.approx(float(limit) / 2, rel=0.01)


def test_people_may_write_the_key_of_a_figure_in_several_ways() -> None:
    assert [key_of(name, KEYS) for name in ("3", "fig3", "Figure 4A", "remark-1")] == ["3", "3", "4a", "remark-1"]


def test_a_study_that_does_not_exist_has_no_spec(tmp_path) -> None:
    with pytest.raises(Exception, match="has no spec for the variant 'published'"):
        spec_path("theorem-1", "published")
    with pytest.raises(Exception, match="variant = 'printed', expected one of stated, published"):
        reproduce(["2"], "printed", tmp_path)  # type: ignore[arg-type]
