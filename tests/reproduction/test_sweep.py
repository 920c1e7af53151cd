"""Claims in many settings: what is varied, and that what is stored comes out again."""

import pytest
from reproduction import sweep as sweeping
from reproduction.sweep import FRACTIONS, SEEDS, STARTS, measured, settings_of, sweep, varied

from freewalk.analysis import steady_state
from freewalk.errors import SpecError
from freewalk.paper import STUDIES
from freewalk.paper.claim_sweep import ClaimSweep
from freewalk.paper.evidence import FIGURES
from freewalk.paper.files import OF_THE_PAPER, spec_path, sweep_path
from freewalk.paper.fit import OTHERS
from freewalk.specs import load


def test_a_draw_without_a_heavy_node_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = ClaimSweep.load(sweep_path("3", "stated"))
    empty = [n for n, setting in enumerate(stored.settings) if setting["seed"] == 7]
    assert not varied("3", "stated", {"seed": 7}).plan().problem.heavy  # type: ignore[attr-defined]
    assert {row.holds[n] for row in stored.rows for n in empty} == {None}
    assert stored.shares()[stored.rows[0].text][1:3] == (54, 60)


def test_fresh_draws_are_none_that_the_search_looked_at() -> None:
    fresh = [setting["seed"] for setting in settings_of("published")]
    assert len(set(fresh)) == 20
    assert set(fresh) <= set(OTHERS)
    assert min(fresh) > 50


def test_a_setting_changes_what_it_names_and_nothing_else() -> None:
    spec = load(spec_path("6", "published"))
    fresh = varied("6", "published", {"seed": 77})
    assert fresh.tables.problem == {**spec.tables.problem, "seed": 77}
    assert fresh.tables.walk == spec.tables.walk
    assert fresh.tables.run == spec.tables.run.model_copy(update={"paths": 0})


@pytest.mark.long
def test_steps_follow_the_rule_of_the_appendix_at_every_fraction() -> None:
    setting = {"seed": 3, "fraction": 0.75, "start": "heaviest"}
    plan = varied("4b", "stated", setting).plan()
    assert plan.options["start"] == "heaviest"
    (uniform,), (importance,) = plan.walks.values()
    limit = sweeping._limit("4b", 3)  # by `stability_limit`, which takes most of the time here
    assert uniform.rule.step == pytest.approx(0.75 * limit)  # type: ignore[attr-defined]
    first, second = (
        steady_state(plan.problem, phase.kernel, phase.rule).excess  # type: ignore[arg-type]
        for phase in (uniform, importance)
    )
    assert second == pytest.approx(first, rel=0.02)


def test_a_switch_takes_the_steps_of_both_of_its_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reproduction.sweep._steps", lambda figure, seed, fraction: (0.25, 0.125))
    walks = varied("6", "stated", {"seed": 1, "fraction": 0.9, "start": "uniform"}).plan().walks
    steps = {label: [phase.rule.step for phase in phases] for label, phases in walks.items()}  # type: ignore[attr-defined]
    assert steps == {
        "MH uniform": [0.25],
        "MH importance": [0.125],
        "MHLJ": [0.125],
        "MHLJ, then uniform": [0.125, 0.25],
        "MHLJ, decaying": [0.125],
    }


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("variant", OF_THE_PAPER)
def test_every_claim_of_a_figure_is_stored_in_every_setting(figure: str, variant: str) -> None:
    stored = ClaimSweep.load(sweep_path(figure, variant))  # type: ignore[arg-type]
    assert (stored.figure, stored.variant) == (figure, variant)
    assert stored.settings == settings_of(variant)  # type: ignore[arg-type]
    assert len(stored.settings) == (60 if variant == "stated" else 20)
    assert [(row.text, row.threshold, row.looks_at) for row in stored.rows] == [
        (claim.text, pytest.approx(claim.threshold, abs=1e-6), claim.looks_at) for claim in STUDIES[figure].claims
    ]
    for row in stored.rows:
        assert len(row.holds) == len(row.values) == len(stored.settings)
        assert any(holds is not None for holds in row.holds), row.text
        assert all(value is not None for holds, value in zip(row.holds, row.values, strict=True) if holds is not None)


def test_what_is_varied_for_a_stated_figure() -> None:
    stored = ClaimSweep.load(sweep_path("3", "stated"))
    assert (stored.values("fraction"), stored.values("start")) == (list(FRACTIONS), list(STARTS))
    assert stored.values("seed") == list(SEEDS)
    spec = load(spec_path("3", "stated"))  # what is drawn is the first of the settings
    assert stored.settings[0] == {"seed": spec.tables.problem["seed"], "fraction": 0.5, "start": spec.tables.run.start}


@pytest.mark.long
@pytest.mark.parametrize(("figure", "variant", "number"), [("4b", "stated", 5), ("5b", "published", 7)])
def test_one_stored_setting_comes_out_again(figure: str, variant: str, number: int) -> None:
    """Paths are the same to the bit on every machine, models up to rounding: no value moves in its fifth digit."""
    stored = ClaimSweep.load(sweep_path(figure, variant))  # type: ignore[arg-type]
    found = measured(figure, variant, stored.settings[number])  # type: ignore[arg-type]
    assert [holds for holds, _ in found] == [row.holds[number] for row in stored.rows]
    assert [value for _, value in found] == pytest.approx([row.values[number] for row in stored.rows], rel=1e-4)
    # It is this setting's: another one has other values.
    others = [row.values[number - 1] for row in stored.rows]
    assert [value for _, value in found] != pytest.approx(others, rel=1e-4)


def test_figures_without_settings_are_refused_before_anything_is_run() -> None:
    with pytest.raises(SpecError, match="figure = 'theorem-1', expected one of 3, 4a"):
        next(sweep(["theorem-1"]))
    with pytest.raises(SpecError, match="variant = 'own', expected one of stated, published"):
        next(sweep(["3"], "own"))
