"""Claims of the paper, each a sentence with a number behind it, and the verdict that the number gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from freewalk.report.page import Verdict
from freewalk.studies.evidence import Count, Curve, Evidence
from freewalk.studies.files import Variant

#: How far a curve may be from the printed one, in decades RMS.
NEAR = 0.15


@dataclass(frozen=True)
class Finding:
    """What was measured for a claim.

    Attributes
    ----------
    holds
        Whether the claim holds; None where it cannot be tested.
    number
        The number behind it, in words.
    reason
        Why it cannot be tested.
    """

    holds: bool | None
    number: str
    reason: str = ""


@dataclass(frozen=True)
class Claim:
    """A statement that can be wrong.

    Attributes
    ----------
    text
        The statement.
    measure
        What is found out about it.
    printed
        The same for the printed curves, as a number in words; "" where there are none.
    why
        By variant: why it fails, where it does.
    only
        The variant that it is about; None: every one.
    """

    text: str
    measure: Callable[[Evidence], Finding]
    printed: Callable[[Evidence], str] = field(default=lambda _: "")
    why: Mapping[Variant, str] = field(default_factory=dict)
    only: Variant | None = None

    def judge(self, evidence: Evidence) -> Verdict:
        """The verdict, with the number and, where the claim fails, a sentence."""
        found = self.measure(evidence)
        if found.holds is None:
            return Verdict(self.text, "not testable", found.number, found.reason, self.printed(evidence))
        if found.holds:
            return Verdict(self.text, "pass", found.number, "", self.printed(evidence))
        return Verdict(self.text, "fail", found.number, self.why.get(evidence.variant, ""), self.printed(evidence))


def sooner(
    label: str,
    than: str,
    level: float,
    factor: float = 1.0,
    by: Count = "updates",
    text: str = "",
    why: Mapping[Variant, str] | None = None,
) -> Claim:
    """A claim that one design reaches `level` × the optimum in at most `factor` times what another needs.

    Parameters
    ----------
    label, than
        The designs.
    level
        In multiples of the optimal mean squared error.
    factor
        At most so many times the other's updates or messages.
    by
        What is counted.
    text
        The claim in words; if not given, it is made of the others.
    why
        By variant: why it fails.

    Returns
    -------
    Claim
        Not testable where the walks begin below the level, or none of the two reaches it.
    """
    words = text or f"{label} reaches {level:g} × the optimum in at most {factor:.2g} × the {by} that {than} needs"

    def judge(one: Curve, other: Curve, optimum: float) -> Finding:
        return _begun(one, other, level, optimum) or _ratio(one, other, level * optimum, factor, by)

    # The paper prints no messages.
    return Claim(words, *_both(label, than, judge, printed=by == "updates"), why or {})


def alike(label: str, other: str, level: float, within: float, why: Mapping[Variant, str] | None = None) -> Claim:
    """A claim that two designs reach `level` × the optimum within a factor of each other."""

    def judge(one: Curve, two: Curve, optimum: float) -> Finding:
        first, second = one.reached(level * optimum), two.reached(level * optimum)
        if begun := _begun(one, two, level, optimum):
            return begun
        if not np.isfinite(first) or not np.isfinite(second):
            return Finding(None, "—", f"not both of them reach it in {one.updates[-1]:,.0f} updates")
        ratio = first / second
        return Finding(1 / within <= ratio <= within, f"{ratio:.3g} × ({first:,.0f} against {second:,.0f})")

    text = f"{label} and {other} reach {level:g} × the optimum within {within:g} × of each other's updates"
    return Claim(text, *_both(label, other, judge), why or {})


def slower(label: str, than: str, level: float, text: str = "", why: Mapping[Variant, str] | None = None) -> Claim:
    """A claim that one design needs at least as many updates as another to reach `level` × the optimum."""

    def judge(one: Curve, other: Curve, optimum: float) -> Finding:
        if begun := _begun(one, other, level, optimum):
            return begun
        shown = _ratio(one, other, level * optimum, 1.0, "updates")
        reverse = _ratio(other, one, level * optimum, 1.0, "updates")  # that the other needs at most as many
        return Finding(reverse.holds, shown.number, reverse.reason)

    words = text or f"{label} needs at least as many updates as {than}, to {level:g} × the optimum"
    return Claim(words, *_both(label, than, judge), why or {})


def closed(label: str, gap: str, floor: str, text: str, why: Mapping[Variant, str] | None = None) -> Claim:
    """A claim that a design ends at most 5 % above `floor`; not testable where the design `gap` shows no gap."""

    def measure(evidence: Evidence) -> Finding:
        open_, bottom = evidence.curve(gap).mse[-1], evidence.curve(floor).mse[-1]
        if open_ < 1.05 * bottom:
            return Finding(None, "—", f"there is no gap to close: {gap} ends at {open_ / bottom:.4g} × {floor}")
        return within.measure(evidence)

    within = ends(label, floor, most=1.05)
    return Claim(text, measure, within.printed, why or {})


def _both(
    label: str, other: str, judge: Callable[[Curve, Curve, float], Finding], printed: bool = True
) -> tuple[Callable[[Evidence], Finding], Callable[[Evidence], str]]:
    """What a comparison of two designs finds in our curves, and in the printed ones."""

    def measure(evidence: Evidence) -> Finding:
        return judge(evidence.curve(label), evidence.curve(other), evidence.optimum)

    def read_off(evidence: Evidence) -> str:
        if not printed or not {label, other} <= set(evidence.published):
            return ""
        return judge(evidence.printed(label), evidence.printed(other), evidence.printed_floor).number

    return measure, read_off


def _begun(one: Curve, other: Curve, level: float, optimum: float) -> Finding | None:
    """Why nothing can be said about a level at which a curve begins."""
    begun = min(one.mse[0], other.mse[0]) / optimum
    reason = f"the walks begin at {begun:.3g} × the optimum, below the level"
    return Finding(None, "—", reason) if begun <= level else None


def _ratio(one: Curve, other: Curve, level: float, factor: float, by: Count) -> Finding:
    """Whether the first needs at most `factor` × what the second needs to reach a level."""
    first, second = one.reached(level, by), other.reached(level, by)
    own, last = (float((curve.updates if by == "updates" else curve.messages)[-1]) for curve in (one, other))
    if not np.isfinite(first) and not np.isfinite(second):
        return Finding(None, "—", f"neither of the two reaches it in {last:,.0f} {by}")
    short = "the run is too short to tell"
    if not np.isfinite(first):  # the ratio is above this, and no more is known
        words = f"more than {own / second:.3g} × (not reached in {own:,.0f}, against {second:,.0f})"
        return Finding(False, words) if own > factor * second else Finding(None, words, short)
    if not np.isfinite(second):  # it is below this
        words = f"less than {first / last:.3g} × ({first:,.0f}, against not reached in {last:,.0f})"
        return Finding(True, words) if first <= factor * last else Finding(None, words, short)
    return Finding(first <= factor * second, f"{first / second:.3g} × ({first:,.0f} against {second:,.0f})")


def ends(
    label: str,
    other: str,
    least: float = 0.0,
    most: float = np.inf,
    text: str = "",
    why: Mapping[Variant, str] | None = None,
) -> Claim:
    """A claim about the error at the end of the run: between `least` and `most` times that of another design."""
    if not text:
        bounds = [f"at least {least:g} ×"] * (least > 0) + [f"at most {most:g} ×"] * bool(np.isfinite(most))
        text = f"{label} ends {' and '.join(bounds)} where {other} ends"

    def judge(one: Curve, two: Curve, _: float) -> Finding:
        share = float(one.mse[-1] / two.mse[-1])
        return Finding(least <= share <= most, f"{share:.4g} × ({one.mse[-1]:.4g} against {two.mse[-1]:.4g})")

    return Claim(text, *_both(label, other, judge), why or {})


def near_the_print(label: str) -> Claim:
    """A claim that the expected curve is the printed one, up to `NEAR` decades RMS."""

    def measure(evidence: Evidence) -> Finding:
        if evidence.exact is None:
            return Finding(None, "—", "it takes the exact curve, which the quick version leaves out")
        own = evidence.curve(label)
        distance = evidence.published[label].distance(own.updates, own.mse)
        return Finding(distance <= NEAR, f"{distance:.3f} decades RMS")

    return Claim(f"the curve of {label} is within {NEAR:g} decades RMS of the printed one", measure, only="published")
