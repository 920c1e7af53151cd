"""Claims: a sentence of the paper, our test of it with a threshold, and the resulting verdict.

A claim about learning curves is a `Claim`, made by one of the functions here or in `entrapment` and `bias`; the files
in `studies` name that function as its kind. Each takes `quote` and `why`, as `Claim` does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from freewalk.analysis.theory import importance_pays
from freewalk.paper.evidence import Count, Curve, Evidence
from freewalk.paper.files import Variant, study_table
from freewalk.report.page import Verdict
from freewalk.report.page.model import Outcome

if TYPE_CHECKING:
    import xarray

Made = TypeVar("Made")
#: A claim passes if it holds in at least this share of the testable settings, and fails at one minus that or less.
MOST = 0.9

OUTCOMES: dict[bool | None, Outcome] = {True: "pass", False: "fail", None: "not testable"}


@dataclass(frozen=True)
class Finding:
    """What was measured for a claim.

    Attributes
    ----------
    holds
        Whether the claim holds; None if it cannot be tested.
    number
        The number behind it, in words.
    reason
        Why it cannot be tested.
    value
        The number itself, in the unit of the claim's threshold; a bound if no more is known, NaN if nothing is.
    """

    holds: bool | None
    number: str
    reason: str = ""
    value: float = float("nan")


class ClaimShare(NamedTuple):
    """The number of settings in which a claim holds.

    Attributes
    ----------
    holds, tested, of
        The numbers of settings in which it holds, in which it can be tested, and in total.
    low, high
        The smallest and the largest number measured.
    what
        What a setting is, in the plural.
    """

    holds: int
    tested: int
    of: int
    low: float
    high: float
    what: str = "settings"

    @property
    def outcome(self) -> Outcome:
        """The verdict; "depends" if the settings disagree."""
        if 2 * self.tested < self.of:
            return "not testable"
        if self.holds >= MOST * self.tested:
            return "pass"
        return "fail" if self.tested - self.holds >= MOST * self.tested else "depends"

    def words(self, unit: str) -> str:
        """As a table shows it: "14 of 60 settings; 0.41 to 2.31 ×"."""
        left = f" ({self.of - self.tested} cannot be tested)" if self.tested < self.of else ""
        measured = f"; {self.low:.3g} to {self.high:.3g} {unit}" if self.tested else ""
        return f"{self.holds} of {self.tested} {self.what}{left}{measured}"


@dataclass(frozen=True)
class Claim:
    """A statement that can be tested.

    Attributes
    ----------
    text
        Our test of it, threshold included.
    measure
        The measurement that decides it.
    threshold, unit
        The threshold for the value of a finding, and the unit of both.
    looks_at
        The parts of a setting that it depends on besides the data: "fraction" (the step) and "start".
    printed
        The same number for the printed curves, in words; "" if there are none.
    quote
        The sentence of the paper that it tests; "" if the statement is ours.
    why
        Why it does not hold everywhere, by variant.
    terms
        On what the verdict depends besides the numbers.
    """

    text: str
    measure: Callable[[Evidence], Finding]
    threshold: float = 1.0
    unit: str = "×"
    looks_at: tuple[str, ...] = ("fraction", "start")
    printed: Callable[[Evidence], str] = field(default=lambda _: "")
    quote: str = ""
    why: Mapping[Variant, str] = field(default_factory=dict)
    terms: str = ""

    def judge(self, evidence: Evidence, share: ClaimShare | None = None) -> Verdict:
        """The verdict: by the share of settings in which the claim holds if it is known, or else by the run shown."""
        why, printed = self.why.get(evidence.variant, ""), self.printed(evidence)
        notes = {"quote": self.quote, "published": printed, "terms": self.terms}
        return verdict(self.text, self.measure(evidence), share, self.unit, why, **notes)


def verdict(
    text: str, found: Finding, share: ClaimShare | None = None, unit: str = "×", why: str = "", **notes: str
) -> Verdict:
    """The verdict on a claim, by the share of settings in which it holds if that is known, else by what was found."""
    if share is None:
        outcome, number, untested, words = OUTCOMES[found.holds], found.number, found.reason, ""
    else:
        number = found.reason if found.holds is None else f"{'holds' if found.holds else 'fails'}: {found.number}"
        outcome, untested, words = share.outcome, "", share.words(unit).strip()
    comment = {"pass": "", "not testable": untested}.get(outcome, why)
    return Verdict(text, outcome, number, comment, share=words, **notes)


def by_name(*functions: Callable[..., Made]) -> dict[str, Callable[..., Made]]:
    """Functions by the names that the files in `studies` call them."""
    return {function.__name__.lstrip("_"): function for function in functions}


def judged(
    key: str, data: "xarray.Dataset", measures: Mapping[str, Callable[..., Finding]], words: Mapping[str, str]
) -> list[Verdict]:
    """The verdicts on the claims of a study without learning curves; `words` fill the gaps in their texts."""
    verdicts = []
    for claim in study_table(key)["claim"]:
        text, measure, why, *notes = (claim.pop(name, "") for name in ("text", "measure", "why", "quote", "terms"))
        found, (quote, terms) = measures[measure](data, **claim), notes
        verdicts.append(verdict(text.format(**words), found, why=why.format(**words), quote=quote, terms=terms))
    return verdicts


# The kinds of claims about learning curves.

Judge = Callable[[Curve, Curve, float], Finding]  # of two curves and the optimum


def sooner(label: str, than: str, level: float, factor: float = 1.0, by: Count = "updates", **notes: Any) -> Claim:
    """A claim that one design reaches `level` × the optimum in at most `factor` times what another needs.

    It is not testable if the walks begin below the level, or neither of the two reaches it.
    """
    much = "no more" if factor == 1 else f"at most {factor:.2g} × the"
    words = f"{label} reaches {level:g} × the optimum in {much} {by} {'than' if factor == 1 else 'that'} {than} needs"

    def judge(one: Curve, other: Curve, optimum: float) -> Finding:
        return _begun(one, other, level, optimum) or _ratio(one, other, level * optimum, factor, by)

    claim = _compared(words, label, than, judge, factor, **notes)
    return claim if by == "updates" else replace(claim, printed=lambda _: "")  # the paper prints no messages


def alike(label: str, other: str, level: float, within: float, **notes: Any) -> Claim:
    """A claim that two designs reach `level` × the optimum within a factor of each other."""

    def judge(one: Curve, two: Curve, optimum: float) -> Finding:
        first, second = one.reached(level * optimum), two.reached(level * optimum)
        if begun := _begun(one, two, level, optimum):
            return begun
        if not np.isfinite(first) or not np.isfinite(second):
            return Finding(None, "—", f"not both of them reach it in {one.updates[-1]:,.0f} updates")
        ratio = first / second
        number = f"{ratio:.3g} × ({first:,.0f} against {second:,.0f})"
        return Finding(1 / within <= ratio <= within, number, value=max(ratio, 1 / ratio))

    text = f"{label} and {other} reach {level:g} × the optimum within {within:g} × of each other's updates"
    return _compared(text, label, other, judge, within, **notes)


def slower(label: str, than: str, level: float, **notes: Any) -> Claim:
    """A claim that one design needs at least as many updates as another to reach `level` × the optimum."""

    def judge(one: Curve, other: Curve, optimum: float) -> Finding:
        if begun := _begun(one, other, level, optimum):
            return begun
        shown = _ratio(one, other, level * optimum, 1.0, "updates")
        reverse = _ratio(other, one, level * optimum, 1.0, "updates")  # that the other needs at most as many
        return Finding(reverse.holds, shown.number, reverse.reason, shown.value)

    text = f"{label} needs at least as many updates as {than}, to {level:g} × the optimum"
    return _compared(text, label, than, judge, **notes)


def ends(label: str, other: str, least: float = 0.0, most: float = np.inf, **notes: Any) -> Claim:
    """A claim about the error at the end of the run: between `least` and `most` times that of another design."""
    bounds = [f"at least {least:g} ×"] * (least > 0) + [f"at most {most:g} ×"] * bool(np.isfinite(most))
    text = f"the final error of {label} is {' and '.join(bounds)} that of {other}"

    def judge(one: Curve, two: Curve, _: float) -> Finding:
        share = float(one.error[-1] / two.error[-1])
        number = f"{share:.4g} × ({one.error[-1]:.4g} against {two.error[-1]:.4g})"
        return Finding(least <= share <= most, number, value=share if len(bounds) == 1 else max(share, 1 / share))

    return _compared(text, label, other, judge, most if np.isfinite(most) else least, **notes)


def closed(label: str, gap: str, floor: str, most: float = 1.05, **notes: Any) -> Claim:
    """A claim that a design ends at most `most` × above `floor`; not testable if the design `gap` shows no gap."""

    def measure(evidence: Evidence) -> Finding:
        open_, bottom = evidence.curve(gap).error[-1], evidence.curve(floor).error[-1]
        if open_ < most * bottom:
            return Finding(None, "—", f"there is no gap to close: {gap} ends at {open_ / bottom:.4g} × {floor}")
        return within.measure(evidence)

    within = ends(label, floor, most=most)
    return Claim(within.text, measure, most, printed=within.printed, **notes)


def left(label: str, least: float = 0.0, most: float = np.inf, **notes: Any) -> Claim:
    """A claim about how much of the excess halfway through the run is left at its end; one of the bounds is given."""
    falling = bool(np.isfinite(most))
    bound = f"at most {most:g} ×" if falling else f"at least {least:g} ×"
    text = f"{label}: at the end the excess over the optimum is {bound} what it is halfway through the run"

    def measure(evidence: Evidence) -> Finding:
        updates, values = evidence.curve(label).updates, excess(evidence, label)
        half = float(np.interp(updates[-1] / 2, updates, values))
        share = float(values[-1] / half)
        return Finding(least <= share <= most, f"{share:.3g} × ({values[-1]:.3g} after {half:.3g})", value=share)

    return Claim(text, measure, most if falling else least, **notes)


def lower(label: str, others: Sequence[str], **notes: Any) -> Claim:
    """A claim that a design ends no higher above the optimum than any of the others."""
    text = f"{label} ends with no more excess over the optimum than {others[0] if len(others) == 1 else 'any other'}"

    def measure(evidence: Evidence) -> Finding:
        own, least = excess(evidence, label)[-1], min(excess(evidence, other)[-1] for other in others)
        share = float(own / least)
        return Finding(share <= 1, f"{share:.3g} × ({own:.3g} against {least:.3g})", value=share)

    return Claim(text, measure, **notes)


def excess(evidence: Evidence, label: str) -> NDArray[np.float64]:
    """The expected error above the optimum at each checkpoint, as a multiple of the optimum."""
    return np.asarray(evidence.curve(label).error / evidence.optimum - 1.0)


def foreseen(level: float, **notes: Any) -> Claim:
    """A claim that the rates quoted in Section III-A see which sampling is faster, each at its best step."""
    text = (
        f"the quoted rates tell which is faster to {level:g} × the optimum, each at its best step: promised and "
        "measured gain are both above 1, or both at most 1"
    )

    def measure(evidence: Evidence) -> Finding:
        promised = importance_pays(evidence.plan.problem.smoothness).gain
        uniform, importance = (evidence.curve(f"{one}, best step") for one in ("uniform", "importance"))
        slow, fast = (curve.reached(level * evidence.optimum) for curve in (uniform, importance))
        if slow == fast == float("inf"):
            return Finding(None, "—", f"neither of the two reaches it in {uniform.updates[-1]:,.0f} updates")
        gain = slow / fast
        return Finding((promised > 1) == (gain > 1), f"promised {promised:.3g} ×, measured {gain:.3g} ×", value=gain)

    return Claim(text, measure, **notes)


def _compared(text: str, label: str, other: str, judge: Judge, threshold: float = 1.0, **notes: Any) -> Claim:
    """A claim that compares two designs, in our curves and in the printed ones."""

    def measure(evidence: Evidence) -> Finding:
        one, two = evidence.curve(label), evidence.curve(other)
        if one.diverges or two.diverges:
            return Finding(None, "—", f"{label if one.diverges else other} diverges")
        return judge(one, two, evidence.optimum)

    def read_off(evidence: Evidence) -> str:
        if not {label, other} <= set(evidence.published):
            return ""
        return judge(evidence.printed(label), evidence.printed(other), evidence.printed_floor).number

    return Claim(text, measure, threshold, printed=read_off, **notes)


def _begun(one: Curve, other: Curve, level: float, optimum: float) -> Finding | None:
    """Why a level cannot be tested if a curve begins at or below it."""
    begun = min(one.error[0], other.error[0]) / optimum
    reason = f"the walks begin at {begun:.3g} × the optimum, below the level"
    return Finding(None, "—", reason) if begun <= level else None


def _ratio(one: Curve, other: Curve, level: float, factor: float, by: Count) -> Finding:
    """Whether the first needs at most `factor` × what the second needs to reach a level."""
    first, second = one.reached(level, by), other.reached(level, by)
    own, last = (float(getattr(curve, by)[-1]) for curve in (one, other))
    if not np.isfinite(first) and not np.isfinite(second):
        return Finding(None, "—", f"neither of the two reaches it in {last:,.0f} {by}")
    short = "the run is too short to tell"
    if not np.isfinite(first):  # the ratio is above this, and no more is known
        ratio = own / second
        words = f"more than {ratio:.3g} × (not reached in {own:,.0f}, against {second:,.0f})"
        return Finding(False, words, "", ratio) if own > factor * second else Finding(None, words, short)
    if not np.isfinite(second):  # it is below this
        ratio = first / last
        words = f"less than {ratio:.3g} × ({first:,.0f}, against not reached in {last:,.0f})"
        return Finding(True, words, "", ratio) if first <= factor * last else Finding(None, words, short)
    ratio = first / second
    return Finding(first <= factor * second, f"{ratio:.3g} × ({first:,.0f} against {second:,.0f})", "", ratio)
