"""The page on walks with a memory says what its measurements say, however many of them there are."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "walks-that-remember.md"
LINES = (ROOT / "docs" / "images" / "memory" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [json.loads(line) for line in LINES]
CHOICES = ("graph", "heavy", "start", "shift", "loss", "seed")
MOST = 40_000


def ratio(case: dict, goal: str, axis: str) -> float | None:
    """Of the self-repellent walk and the best MHLJ; None if neither arrives."""
    ours, theirs = case["self-repellent"][goal], case["best MHLJ"][goal]
    if not ours and not theirs:
        return None
    place = ("updates", "messages").index(axis)
    least = theirs[axis][place] if theirs else {"updates": MOST, "messages": case.get("MHLJ sends")}[axis]
    return ours[place] / least if ours else float("inf")


@pytest.mark.parametrize("goal", ["0.01", "0.001"])
def test_the_page_counts_like_the_measurements(goal: str) -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    found = {axis: [ratio(case, goal, axis) for case in CASES] for axis in ("updates", "messages")}
    decided = {axis: sorted(one for one in several if one is not None) for axis, several in found.items()}
    count, fewer = len(decided["updates"]), sum(one < 1 for one in decided["updates"])
    few, sent = (f"{several[count // 2]:.2g} times the {axis}" for axis, several in decided.items())
    words = f"To {100 * float(goal):g} % of the initial error it needs "
    sentence = text[text.index(words) :].split("; in ")[0].replace("< ", "")
    assert sentence == (
        f"{words}{few} and {sent} of the best of twelve MHLJ, in the median, "
        f"and fewer updates in {fewer} of the {count} cases in which either arrives within {MOST:,} updates"
    )
    assert f"**In {len(CASES):,} cases on 9 graphs**" in text


def test_the_page_says_where_it_loses() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    soon, later = [], []
    for case in CASES:
        rival, one = case["best MHLJ"]["0.01"], ratio(case, "0.01", "updates")
        if one is not None:
            (soon if rival and rival["updates"][0] < 200 else later).append(one)
    quick, slow = (sorted(several)[len(several) // 2] for several in (soon, later))
    words = f"in the {len(soon)} cases in which the best MHLJ is at 1 % within 200 updates it takes {quick:.2g} times"
    assert f"{words} as many, in the {len(later)} others {slow:.2g} times." in text.replace("< ", "")
    assert quick > 1 > slow  # as the first sentence of the page says


def test_every_case_is_measured_once_and_any_two_choices_occur_together() -> None:
    assert len({tuple(case[choice] for choice in CHOICES) for case in CASES}) == len(CASES)
    pairs = {
        (one, case[one], other, case[other]) for case in CASES for one in CHOICES for other in CHOICES if one < other
    }
    values = {choice: {case[choice] for case in CASES if case["seed"] == 1001} for choice in CHOICES[:-1]}
    for one in values:
        for other in values:
            if one < other:
                assert {(one, a, other, b) for a in values[one] for b in values[other]} <= pairs
