"""How near a fit is, and that a curve in another's place or at another height is noticed in every figure."""

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from handmade import evidence

from freewalk.paper import STUDIES
from freewalk.paper.evidence import FIGURES, Curve, Evidence, published
from freewalk.paper.files import spec_path
from freewalk.paper.fit import NEAR, nearness
from freewalk.specs import load

UPDATES = [0.0, 100.0, 1000.0]
FAST, SLOW = [1.0, 0.1, 0.01], [1.0, 0.5, 0.1]


def fitted(fast: float = 1.0, slow: float = 1.0) -> Evidence:
    """Two curves, and printed ones that lie above them by a factor each."""
    printed = {
        "fast": (UPDATES, [fast * value for value in FAST]),
        "slow": (UPDATES, [slow * value for value in SLOW]),
    }
    return evidence({"fast": (UPDATES, FAST), "slow": (UPDATES, SLOW)}, printed=printed, variant="published")


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, "pass"), (1.25, "pass"), (1.27, "fail"), (0.7, "fail")])
def test_nearness_is_a_distance_in_decades(factor: float, outcome: str) -> None:
    fast, slow, _ = nearness(fitted(fast=factor))
    assert fast.outcome == outcome
    away = abs(np.log10(factor))
    assert fast.measured == f"{away:.3f} decades RMS, at most {away:.2f} at one checkpoint"
    assert f"{NEAR:g}" in fast.claim
    assert slow.outcome == "pass"
    assert (fast.comment == "") == (outcome == "pass")


def test_curves_that_fit_better_the_other_way_round_are_noticed() -> None:
    assert nearness(fitted())[-1].outcome == "pass"
    exchanged = evidence(
        {"fast": (UPDATES, SLOW), "slow": (UPDATES, FAST)},
        printed={"fast": (UPDATES, FAST), "slow": (UPDATES, SLOW)},
        variant="published",
    )
    verdict = nearness(exchanged)[-1]
    assert verdict.outcome == "fail"
    assert verdict.measured.endswith("in the best other order 0.000")


def test_where_nothing_is_printed_nothing_is_near() -> None:
    assert nearness(evidence({"fast": (UPDATES, FAST)})) == []


@cache
def found(figure: str) -> Evidence:
    """The walks of a published spec, as a quick reproduction judges them."""
    spec = load(spec_path(figure, "published"))
    plan = spec.plan()
    return Evidence(plan, spec.run(plan=plan), None, published(figure), "published")


class Changed(Evidence):
    """Evidence whose curves are not what they were."""

    change: Callable[[str, Callable[[str], Curve]], Curve]

    def curve(self, label: str) -> Curve:
        """What a planted mistake makes of a curve."""
        return type(self).change(label, super().curve)


def outcomes(figure: str, change: Callable[[str, Callable[[str], Curve]], Curve]) -> list[str]:
    """All verdicts, but those about the graph alone, with a mistake planted in the curves."""
    one, claims = found(figure), [claim for claim in STUDIES[figure].claims if claim.looks_at != ()]
    kind = type("Planted", (Changed,), {"change": staticmethod(change)})
    planted = kind(one.plan, one.record, one.exact, one.published, one.variant)
    return [verdict.outcome for verdict in (*nearness(planted), *(claim.judge(planted) for claim in claims))]


def as_it_is(label: str, curve: Callable[[str], Curve]) -> Curve:
    return curve(label)


@pytest.mark.quick("4a", "5a")
@pytest.mark.parametrize("figure", FIGURES)
def test_exchanging_two_designs_flips_a_verdict(figure: str) -> None:
    right = outcomes(figure, as_it_is)
    assert set(right[: len(published(figure)) + 1]) == {"pass"}
    for pair in combinations(published(figure), 2):

        def exchanged(label: str, curve: Callable[[str], Curve], pair: tuple[str, ...] = pair) -> Curve:
            return curve(pair[1 - pair.index(label)] if label in pair else label)

        assert outcomes(figure, exchanged) != right, pair


@pytest.mark.quick("1.6-5a", "0.625-5a")
@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("factor", [1.6, 1 / 1.6])
def test_scaling_one_curve_flips_a_verdict(figure: str, factor: float) -> None:
    right = outcomes(figure, as_it_is)
    for scaled in published(figure):

        def higher(label: str, curve: Callable[[str], Curve], scaled: str = scaled) -> Curve:
            one = curve(label)
            return Curve(one.updates, one.messages, factor * one.error) if label == scaled else one

        assert outcomes(figure, higher) != right, scaled
