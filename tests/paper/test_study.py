"""The companions to the paper's figures: their specs, and claims that turn when the curves do."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from handmade import evidence

from freewalk.designs import Centralized
from freewalk.objectives import LeastSquares, Logistic
from freewalk.paper import KEYS, STUDIES
from freewalk.paper.claims import foreseen, left
from freewalk.paper.evidence import Evidence
from freewalk.paper.files import spec_path
from freewalk.schedules import Inverse
from freewalk.specs import load

OURS = ("6-decay", "3-logistic", "5b-logistic", "centralized", "centralized-noise", "centralized-homogeneous")
FIXED, STEADY, BOTH = "MHLJ, step decaying", "MHLJ, p_J decaying", "MHLJ, both decaying"
EXACT, CORRECTED = "MH importance, step decaying", "MHLJ corrected, step decaying"
UNIFORM, IMPORTANCE, ACCURATE = "uniform, best step", "importance, best step", "importance, same accuracy"
UPDATES = [0.0, 100.0, 200.0]


@pytest.mark.parametrize("key", OURS)
def test_each_is_registered_and_its_spec_has_the_walks_that_it_speaks_of(key: str) -> None:
    study = STUDIES[key]
    assert key in KEYS
    labels = list(load(spec_path(key, "own")).plan().walks)
    # A claim that names a walk which is not run would end in a KeyError here.
    curves = {label: (UPDATES, [100.0 - 10 * number, 2.0, 1.01]) for number, label in enumerate(labels)}
    plan = load(spec_path(study.key, "own")).plan()
    found = dataclasses.replace(evidence(curves, variant="own"), plan=plan)
    for claim in study.claims:
        if "entrapped" not in claim.text:
            assert claim.judge(found).measured
        assert not claim.quote or claim.quote.endswith(")")  # the section


def test_the_logistic_losses_are_strongly_convex_and_begin_above_every_level() -> None:
    for key, level in (("3-logistic", 1.2), ("5b-logistic", 1.05)):
        problem = load(spec_path(key, "own")).plan().problem
        assert isinstance(problem, Logistic)
        assert problem.ridge > 0
        assert np.log(2) > 1.4 * level * problem.loss(problem.optimum())


def test_heavy_samples_of_a_logistic_loss_have_hardly_a_gradient_at_the_optimum() -> None:
    for key in ("3-logistic", "5b-logistic"):
        problem = load(spec_path(key, "own")).plan().problem
        assert isinstance(problem, Logistic)
        wrong = problem.targets - 1 / (1 + np.exp(-problem.features @ problem.optimum()))
        squares = wrong**2 * (problem.features**2).sum(axis=1)
        heavy = list(problem.heavy)
        assert problem.smoothness[heavy].min() > 10 * problem.smoothness.mean()
        assert squares[heavy].sum() < 1e-5 * squares.sum()


def test_whatever_decays_has_one_schedule() -> None:
    walks = load(spec_path("6-decay", "own")).plan().walks
    steps = {label: phases[0].rule.step for label, phases in walks.items()}  # type: ignore[attr-defined]
    assert steps.pop(STEADY) == 3e-3
    assert set(steps.values()) == {Inverse(3e-3, scale=1000)}
    later = np.array([0, 1000])
    for label, falls in ((FIXED, 1.0), (STEADY, 0.5), (BOTH, 0.5)):
        jumps = 1 - walks[label][0].kernel.probabilities(later)[:, 0]
        assert jumps == pytest.approx([0.1, 0.1 * falls])


@pytest.mark.parametrize("key", ["centralized", "centralized-noise", "centralized-homogeneous"])
def test_both_accurate_steps_settle_at_the_same_error(key: str) -> None:
    """By the d × d recursion of independent draws, which is a linear system of its own."""
    plan = load(spec_path(key, "own")).plan()
    problem = plan.problem
    assert isinstance(problem, LeastSquares)
    settled = {}
    for label, power in ((UNIFORM, 0.0), (ACCURATE, 1.0)):
        phase = plan.walks[label][0]
        assert phase.kernel.moves[0].law == pytest.approx(
            Centralized(power).target(phase.kernel.graph, problem.smoothness)
        )
        settled[label] = settled_excess(problem, np.asarray(phase.kernel.moves[0].law), phase.rule.step)  # type: ignore[attr-defined]
    assert settled[ACCURATE] == pytest.approx(settled[UNIFORM], rel=0.005)


def settled_excess(problem: LeastSquares, law: np.ndarray, step: float) -> float:
    """Where the expected loss of independent draws settles, above the optimum."""
    features, size = problem.features, problem.dim
    scale = step / (problem.n * law)  # a weighted step at each node
    residual = problem.targets - features @ problem.optimum()
    outer = np.einsum("vi,vj->vij", features, features).reshape(problem.n, size * size)
    mean = ((law * scale) @ outer).reshape(size, size)
    eye = np.eye(size)
    drift = np.kron(mean, eye) + np.kron(eye, mean) - (outer * (law * scale**2)[:, None]).T @ outer
    moments = np.linalg.solve(drift, (law * (scale * residual) ** 2) @ outer)
    return float(outer.mean(axis=0) @ moments) / 2


def decay(*last: float) -> Evidence:
    """The five walks of 6-decay: 3 × the optimum halfway, `last` × it at the end."""
    labels = (FIXED, STEADY, BOTH, EXACT, CORRECTED)
    curves = {label: (UPDATES, [100.0, 6.0, 2 * end]) for label, end in zip(labels, last, strict=True)}
    return evidence(curves, optimum=2.0, variant="own")


def test_the_share_of_the_excess_that_is_left_decides() -> None:
    falls, stays = left("a", most=0.7), left("a", least=0.95)
    # An excess of 2 × the optimum halfway; 1.4 and 1.9 × at the end are the thresholds.
    for end, falling, standing in ((2.39, "pass", "fail"), (2.41, "fail", "fail"), (2.91, "fail", "pass")):
        found = evidence({"a": (UPDATES, [100.0, 6.0, 2 * end])}, optimum=2.0, variant="own")
        assert (falls.judge(found).outcome, stays.judge(found).outcome) == (falling, standing)
    assert falls.judge(found).measured == "0.955 × (1.91 after 2)"


def test_halfway_is_half_of_the_updates_not_of_the_checkpoints() -> None:
    found = evidence({"a": ([0.0, 1000.0, 1100.0, 2000.0], [9.0, 3.0, 2.0, 1.5])}, variant="own")
    assert left("a", most=0.7).judge(found).measured == "0.25 × (0.5 after 2)"


def test_each_claim_of_6_decay_turns_with_its_curve() -> None:
    def outcomes(*last: float) -> list[str]:
        return [claim.judge(decay(*last)).outcome for claim in STUDIES["6-decay"].claims]

    as_measured = outcomes(2.95, 2.9, 1.5, 1.4, 1.3)
    assert as_measured == ["pass", "fail", "pass", "pass", "fail", "pass"]
    assert outcomes(2.95, 2.9, 2.9, 1.4, 1.3)[0] == "fail"
    assert outcomes(2.95, 1.9, 1.5, 1.4, 1.3)[1] == "pass"
    assert outcomes(2.5, 2.9, 1.5, 1.4, 1.3)[2] == "fail"
    assert outcomes(2.95, 2.9, 1.5, 1.6, 1.3)[4] == "pass"
    assert outcomes(2.95, 2.9, 1.5, 1.4, 1.45)[5] == "fail"


def test_what_fails_says_why() -> None:
    verdicts = STUDIES["6-decay"].judge(decay(2.95, 2.9, 1.5, 1.4, 1.3))
    assert [bool(verdict.comment) for verdict in verdicts] == [verdict.outcome == "fail" for verdict in verdicts]


def test_the_chart_shows_the_excess() -> None:
    found = decay(2.95, 2.9, 1.5, 1.4, 1.3)
    plan = SimpleNamespace(walks=dict.fromkeys(found.parts))
    chart = STUDIES["6-decay"].charts(dataclasses.replace(found, plan=plan))[0]  # type: ignore[arg-type]
    assert [series.label for series in chart.series] == list(found.parts)
    assert np.asarray(chart.series[0].y) == pytest.approx([49.0, 2.0, 1.95])
    assert np.asarray(chart.series[0].x["updates"]) == pytest.approx(UPDATES)


@pytest.mark.parametrize(
    ("heavy", "fast", "outcome"), [(100.0, 1.0, "pass"), (100.0, 4.0, "fail"), (1.5, 1.0, "fail"), (1.5, 4.0, "pass")]
)
def test_the_quoted_rates_are_right_where_they_name_the_faster_one(heavy: float, fast: float, outcome: str) -> None:
    # The promise: one node in a hundred is heavy, and all others are alike, but for one of a tenth.
    importance = np.array([heavy, 0.1 if heavy < 2 else 1.0, *([1.0] * 98)])
    curves = {
        UNIFORM: ([0.0, 100.0, 200.0], [100.0, 3.0, 1.0]),
        IMPORTANCE: ([0.0, 100.0, 200.0], [100.0, fast, 1.9]),
    }
    plan = SimpleNamespace(problem=SimpleNamespace(smoothness=importance))
    found = dataclasses.replace(evidence(curves, variant="own"), plan=plan)  # type: ignore[arg-type]
    claim = foreseen(2, why={"own": "because"})
    verdict = claim.judge(found)
    assert verdict.outcome == outcome
    assert verdict.comment == ("because" if outcome == "fail" else "")
    assert verdict.measured.startswith("promised ")


def test_the_quoted_rates_cannot_be_tested_where_nothing_arrives() -> None:
    curves = {label: (UPDATES, [100.0, 50.0, 20.0]) for label in (UNIFORM, IMPORTANCE)}
    plan = SimpleNamespace(problem=SimpleNamespace(smoothness=np.array([9.0, 1.0, 1.0])))
    found = dataclasses.replace(evidence(curves, variant="own"), plan=plan)  # type: ignore[arg-type]
    verdict = foreseen(2).judge(found)
    assert (verdict.outcome, verdict.measured) == ("not testable", "—")
    assert "200 updates" in verdict.comment
