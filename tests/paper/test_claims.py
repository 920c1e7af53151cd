"""A claim passes, fails or cannot be tested, and always says by which number."""

import pytest
from handmade import evidence

from freewalk.paper.claims import Claim, ClaimShare, Finding, alike, closed, ends, slower, sooner
from freewalk.paper.study import Study

WHY = {"stated": "because it is stated", "published": "because it is printed"}
UPDATES = [0, 100, 1000]


def curves(fast: float = 10.0, slow: float = 100.0, **options: object):
    """Two curves that fall from 100 on a log scale: to `fast` and `slow` at update 100, to 1 at update 1000."""
    points = {"fast": (UPDATES, [100.0, fast, 1.0]), "slow": (UPDATES, [100.0, slow, 1.0])}
    return evidence(points, **options)  # type: ignore[arg-type]


def test_sooner_passes_with_the_ratio_and_both_numbers() -> None:
    # fast is at 10 at update 100; slow falls from 100 to 1 between 100 and 1000, and is there at 550.
    verdict = sooner("fast", "slow", 10, 1 / 5, why=WHY).judge(curves())
    assert verdict.outcome == "pass"
    assert verdict.measured == "0.182 × (100 against 550)"
    assert verdict.comment == ""
    assert verdict.claim == "fast reaches 10 × the optimum in at most 0.2 × the updates that slow needs"


def test_sooner_fails_by_the_same_numbers_where_more_is_asked_for_and_says_why() -> None:
    claim = sooner("fast", "slow", 10, 1 / 6, why=WHY)
    verdict = claim.judge(curves())
    assert (verdict.outcome, verdict.measured) == ("fail", "0.182 × (100 against 550)")
    assert verdict.comment == "because it is stated"
    assert claim.judge(curves(variant="published")).comment == "because it is printed"
    assert sooner("fast", "slow", 10, 1 / 6).judge(curves()).comment == ""
    assert sooner("slow", "fast", 10).judge(curves()).measured == "5.5 × (550 against 100)"


def test_the_level_is_in_multiples_of_the_optimum() -> None:
    assert sooner("fast", "slow", 5, 1 / 5).judge(curves(optimum=2.0)).measured == "0.182 × (100 against 550)"


def test_sooner_can_count_messages() -> None:
    found = curves(messages={"fast": [0.0, 300.0, 3000.0], "slow": [0.0, 50.0, 500.0]})
    verdict = sooner("fast", "slow", 10, by="messages").judge(found)
    assert (verdict.outcome, verdict.measured) == ("fail", "1.09 × (300 against 275)")
    assert "messages" in verdict.claim
    assert sooner("fast", "slow", 10, 1.1, "messages").judge(found).outcome == "pass"


def test_sooner_is_not_testable_where_the_walks_begin_below_the_level() -> None:
    verdict = sooner("fast", "slow", 200, why=WHY).judge(curves())
    assert (verdict.outcome, verdict.measured) == ("not testable", "—")
    assert verdict.comment == "the walks begin at 100 × the optimum, below the level"
    assert sooner("fast", "slow", 99).judge(curves()).outcome != "not testable"


def test_sooner_is_not_testable_where_neither_reaches_the_level() -> None:
    verdict = sooner("fast", "slow", 0.5, why=WHY).judge(curves())
    assert verdict.outcome == "not testable"
    assert verdict.comment == "neither of the two reaches it in 1,000 updates"


def unfinished(**options: object):
    points = {"fast": (UPDATES, [100.0, 10.0, 1.0]), "slow": (UPDATES, [100.0, 50.0, 20.0])}
    return evidence(points, **options)  # type: ignore[arg-type]


def test_where_the_other_never_arrives_a_bound_is_all_that_is_known() -> None:
    verdict = sooner("fast", "slow", 10, 1 / 10).judge(unfinished())
    assert (verdict.outcome, verdict.measured) == ("pass", "less than 0.1 × (100, against not reached in 1,000)")
    verdict = sooner("fast", "slow", 10, 1 / 11, why=WHY).judge(unfinished())
    assert verdict.outcome == "not testable"
    assert verdict.measured == "less than 0.1 × (100, against not reached in 1,000)"
    assert verdict.comment == "the run is too short to tell"


def test_what_never_arrives_is_not_sooner() -> None:
    verdict = sooner("slow", "fast", 10, why=WHY).judge(unfinished())
    assert verdict.outcome == "fail"
    assert verdict.measured == "more than 10 × (not reached in 1,000, against 100)"
    assert verdict.comment == "because it is stated"


def test_what_has_not_arrived_may_still_be_within_the_factor() -> None:
    """600 messages and not there, against 800: no more than that is known, and 600 is less than 800."""
    found = unfinished(messages={"slow": [0.0, 60.0, 600.0], "fast": [0.0, 800.0, 8000.0]})
    verdict = sooner("slow", "fast", 10, 1.0, "messages").judge(found)
    assert verdict.outcome == "not testable"
    assert verdict.comment == "the run is too short to tell"


PRINTED = {"fast": ([0.0, 100.0, 1000.0], [1.0, 0.1, 0.01]), "slow": ([0.0, 200.0, 1000.0], [1.0, 0.1, 0.02])}


def test_the_printed_curves_are_measured_by_their_own_floor() -> None:
    verdict = sooner("fast", "slow", 10).judge(curves(printed=PRINTED))
    assert verdict.published == "0.5 × (100 against 200)"
    assert sooner("fast", "slow", 10).judge(curves()).published == ""
    # Nobody has printed messages.
    assert sooner("fast", "slow", 10, by="messages").judge(curves(printed=PRINTED)).published == ""
    assert alike("fast", "slow", 10, 2).judge(curves(printed=PRINTED)).published == "0.5 × (100 against 200)"
    assert ends("fast", "slow", most=2).judge(curves(printed=PRINTED)).published == "0.5 × (0.01 against 0.02)"


def test_a_printed_curve_may_begin_below_the_level() -> None:
    verdict = sooner("fast", "slow", 150).judge(curves(optimum=0.1, printed=PRINTED))
    assert verdict.outcome == "pass"
    assert alike("fast", "slow", 150, 10).judge(curves(optimum=0.1, printed=PRINTED)).outcome == "pass"


@pytest.mark.parametrize(("slow", "outcome"), [(10.0, "pass"), (20.0, "fail"), (8.5, "pass"), (4.0, "fail")])
def test_alike_is_a_bound_on_both_sides(slow: float, outcome: str) -> None:
    printed = {"fast": PRINTED["fast"], "slow": PRINTED["fast"]}
    verdict = alike("fast", "slow", 10, 1.25, why=WHY).judge(curves(10.0, slow, printed=printed))
    assert verdict.outcome == outcome
    assert verdict.measured.endswith(")")
    assert "× (100 against " in verdict.measured
    assert verdict.comment == ("" if outcome == "pass" else "because it is stated")
    assert verdict.published == "1 × (100 against 100)"
    assert verdict.claim == "fast and slow reach 10 × the optimum within 1.25 × of each other's updates"


def test_alike_is_not_testable_below_the_level_or_where_one_never_arrives() -> None:
    verdict = alike("fast", "slow", 20, 1.25).judge(curves(printed=PRINTED, optimum=5.5))
    assert verdict.outcome == "not testable"
    assert verdict.comment.endswith("× the optimum, below the level")
    verdict = alike("fast", "slow", 10, 1.25).judge(unfinished(printed=PRINTED))
    assert verdict.outcome == "not testable"
    assert verdict.comment == "not both of them reach it in 1,000 updates"


def test_alike_needs_no_printed_curves() -> None:
    verdict = alike("fast", "slow", 10, 10).judge(curves())
    assert (verdict.outcome, verdict.published) == ("pass", "")


@pytest.mark.parametrize(
    ("bounds", "outcome", "words"),
    [
        ({"least": 1.05}, "pass", "at least 1.05 ×"),
        ({"least": 21}, "fail", "at least 21 ×"),
        ({"most": 21}, "pass", "at most 21 ×"),
        ({"most": 1.05}, "fail", "at most 1.05 ×"),
        ({"least": 19, "most": 21}, "pass", "at least 19 × and at most 21 ×"),
        ({"least": 1, "most": 2}, "fail", "at least 1 × and at most 2 ×"),
    ],
)
def test_ends_compares_the_last_values(bounds: dict[str, float], outcome: str, words: str) -> None:
    verdict = ends("slow", "fast", **bounds, why=WHY).judge(unfinished())
    assert verdict.outcome == outcome
    assert verdict.measured == "20 × (20 against 1)"
    assert verdict.comment == ("" if outcome == "pass" else "because it is stated")
    assert verdict.claim == f"the final error of slow is {words} that of fast"


@pytest.mark.parametrize(
    "claim", [sooner("fast", "slow", 10), slower("fast", "slow", 10), ends("fast", "slow", most=2)]
)
def test_a_walk_that_diverges_is_compared_with_none(claim: Claim) -> None:
    points = {"fast": (UPDATES, [100.0, 10.0, 1.0]), "slow": (UPDATES, [100.0, 1e30, 1e90])}
    verdict = claim.judge(evidence(points))
    assert (verdict.outcome, verdict.comment) == ("not testable", "slow diverges")


def test_the_paper_is_quoted_apart_from_our_test() -> None:
    claims = (
        sooner("fast", "slow", 10, quote="so they say"),
        alike("fast", "slow", 10, 2, quote="so they say"),
        slower("fast", "slow", 10, quote="so they say"),
        ends("fast", "slow", most=2, quote="so they say"),
        closed("fast", "slow", "fast", quote="so they say"),
    )
    for claim in claims:
        verdict = claim.judge(curves())
        assert verdict.quote == "so they say"
        assert "so they say" not in verdict.claim


def test_a_finding_has_its_number_in_the_unit_of_the_threshold() -> None:
    assert sooner("fast", "slow", 10, 1 / 5).measure(curves()).value == pytest.approx(100 / 550)
    assert sooner("fast", "slow", 10, 1 / 5).threshold == 1 / 5
    assert slower("slow", "fast", 10).measure(curves()).value == pytest.approx(5.5)
    assert alike("fast", "slow", 10, 10).measure(curves()).value == pytest.approx(5.5)
    assert ends("slow", "fast", least=1.05).measure(unfinished()).value == pytest.approx(20)
    assert ends("fast", "slow", least=0.9, most=1.1).measure(unfinished()).value == pytest.approx(20)
    # A bound is as good as it gets where one of the two never arrives.
    assert sooner("fast", "slow", 10, 1 / 10).measure(unfinished()).value == pytest.approx(0.1)
    assert sooner("slow", "fast", 10).measure(unfinished()).value == pytest.approx(10)


@pytest.mark.parametrize(
    ("share", "outcome"),
    [
        (ClaimShare(18, 20, 20, 0, 1), "pass"),
        (ClaimShare(17, 20, 20, 0, 1), "depends"),
        (ClaimShare(3, 20, 20, 0, 1), "depends"),
        (ClaimShare(2, 20, 20, 0, 1), "fail"),
        (ClaimShare(10, 10, 20, 0, 1), "pass"),
        (ClaimShare(9, 9, 20, 0, 1), "not testable"),
    ],
)
def test_a_share_of_nine_tenths_decides(share: ClaimShare, outcome: str) -> None:
    claim = sooner("fast", "slow", 10, 1 / 6, why=WHY)
    verdict = claim.judge(curves(), share)
    assert verdict.outcome == outcome
    assert verdict.measured == "fails: 0.182 × (100 against 550)"
    assert verdict.share == share.words("×")
    assert verdict.comment == ("because it is stated" if outcome in ("fail", "depends") else "")


def test_a_study_judges_by_the_shares_it_is_given() -> None:
    one, two = sooner("fast", "slow", 10), slower("fast", "slow", 10)
    study = Study("x-y", "", (), (one, two))
    assert study.name == "X y"
    assert [verdict.outcome for verdict in study.judge(curves())] == ["pass", "fail"]
    shares = {one.text: ClaimShare(1, 20, 20, 0.1, 0.9)}
    assert [verdict.outcome for verdict in study.judge(curves(), shares)] == ["fail", "fail"]


def test_a_reason_is_given_where_a_claim_cannot_be_tested_and_why_where_it_fails() -> None:
    for holds, outcome, comment in ((None, "not testable", "a reason"), (True, "pass", ""), (False, "fail", "why")):
        claim = Claim("claim", lambda _, holds=holds: Finding(holds, "7", "a reason"), why={"stated": "why"})
        verdict = claim.judge(curves())
        assert (verdict.outcome, verdict.measured, verdict.comment) == (outcome, "7", comment)


def test_a_design_that_was_not_run_is_noticed() -> None:
    with pytest.raises(KeyError):
        sooner("MHLJ", "slow", 10).judge(curves())
