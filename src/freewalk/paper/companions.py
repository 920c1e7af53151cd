"""Companions to the paper's figures: jump probabilities and steps that decay, and logistic losses.

The paper has no curves for these statements, so the data are ours. The sentences and, where a figure has them, the
thresholds are those of `paper`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from freewalk.paper.claims import Claim, Finding, slower, sooner
from freewalk.paper.curves import (
    BREAKS,
    FASTER,
    GAP,
    HAPPENS,
    HELD,
    IMPORTANCE,
    MHLJ,
    NO_LOSS,
    OVERCOMES,
    SLOWER,
    UNIFORM,
)
from freewalk.paper.entrapment import entrapped
from freewalk.paper.evidence import Evidence
from freewalk.paper.files import Variant
from freewalk.paper.study import Study
from freewalk.report.page import Chart, Series

FIXED, STEADY, BOTH = "MHLJ, step decaying", "MHLJ, p_J decaying", "MHLJ, both decaying"
EXACT, CORRECTED = "MH importance, step decaying", "MHLJ corrected, step decaying"
OFTEN = "MHLJ, p_J = 0.9"

#: The step halves in the second half of the run. If the excess falls with the step, at most this fraction of it is
#: left: halfway, on a log scale, between halving and standing still.
FALLS = 0.7
#: At least this fraction is left of an excess that has stopped falling.
STOPS = 0.95

_SMALL = (
    "In practice, the error gap can be made arbitrarily small by decreasing p_J as the number of iterations increases "
    "(VI)"
)


def excess(evidence: Evidence, label: str) -> NDArray[np.float64]:
    """The expected error above the optimum at each checkpoint, as a multiple of the optimum."""
    return np.asarray(evidence.curve(label).error / evidence.optimum - 1.0)


def left(label: str, least: float = 0.0, most: float = np.inf, quote: str = "", why: str = "") -> Claim:
    """A claim about how much of the excess halfway through the run is left at its end.

    Parameters
    ----------
    label
        The design.
    least, most
        The bounds; one of the two is given.
    quote
        The paper's sentence.
    why
        Why it fails.
    """
    falling = bool(np.isfinite(most))
    bound = f"at most {most:g} ×" if falling else f"at least {least:g} ×"
    text = f"{label}: at the end the excess over the optimum is {bound} what it is halfway through the run"

    def measure(evidence: Evidence) -> Finding:
        updates, values = evidence.curve(label).updates, excess(evidence, label)
        half = float(np.interp(updates[-1] / 2, updates, values))
        share = float(values[-1] / half)
        return Finding(least <= share <= most, f"{share:.3g} × ({values[-1]:.3g} after {half:.3g})", value=share)

    return Claim(text, measure, quote, most if falling else least, why={"own": why} if why else {})


def lower(label: str, others: Sequence[str], quote: str = "", why: str = "") -> Claim:
    """A claim that a design ends no higher above the optimum than any of the others."""
    text = f"{label} ends with no more excess over the optimum than {others[0] if len(others) == 1 else 'any other'}"

    def measure(evidence: Evidence) -> Finding:
        own, least = excess(evidence, label)[-1], min(excess(evidence, other)[-1] for other in others)
        share = float(own / least)
        return Finding(share <= 1, f"{share:.3g} × ({own:.3g} against {least:.3g})", value=share)

    return Claim(text, measure, quote, 1.0, why={"own": why} if why else {})


def _excess_chart(evidence: Evidence) -> list[Chart]:
    curves = []
    for label in evidence.plan.walks:
        updates, values = evidence.curve(label).updates, excess(evidence, label)
        # Most of them early, where most changes happen.
        some = np.unique([0, *np.geomspace(1, len(updates) - 1, 30).astype(int)])
        curves.append(Series(label, {"updates": updates[some]}, values[some], kind="other"))
    return [Chart("What is left above the optimum", curves, f"{evidence.measure.label} / optimum − 1", y_log=True)]


SHRINKING = Study(
    "6-decay",
    "Jumps that die out, with and without a step that does",
    (
        "The paper proposes to let p_J decay so that the error gap vanishes, and leaves open what the step does "
        "meanwhile. Here p_J, the step, or both decay as 1 / (1 + t / 1000). The heavy nodes have an optimum of their "
        "own, so that the gap is bias.",
        "Importance MH with the same decaying step has no bias to begin with, nor has MHLJ with Metropolis-corrected "
        "jumps and the square root of the importance as its target.",
    ),
    (
        left(BOTH, most=FALLS, quote=_SMALL),
        left(
            STEADY,
            most=FALLS,
            quote=_SMALL,
            why="With a constant step the excess falls to that of importance MH at this step, and no further: p_J "
            "removes the bias of the jumps, not the variance of the step",
        ),
        left(FIXED, least=STOPS, quote=GAP),
        sooner(BOTH, EXACT, 3, quote=NO_LOSS),
        lower(
            BOTH,
            (EXACT,),
            quote=NO_LOSS,
            why="Early on the jumps free the walk, and it is ahead. Later on their bias has to die out with p_J, "
            "while importance MH with the same step has none",
        ),
        lower(CORRECTED, (FIXED, STEADY, BOTH, EXACT)),
    ),
    variants=("own",),
    extra=_excess_chart,
)

_LOOSE: Mapping[Variant, str] = {
    "own": "A logistic loss is flat where a sample is classified with confidence, and the heavy samples are: at the "
    "optimum their gradients are nearly 0, however large their L_v. Uniform sampling loses nothing to them, and takes "
    "the larger step for the same accuracy"
}
_FEW_RETURNS: Mapping[Variant, str] = {
    "own": "On this graph the walk comes back to a heavy node a few times, not hundreds of times as on a ring"
}
_HOPS: Mapping[Variant, str] = {
    "own": "MHLJ stays at heavy nodes and sends fewer messages per update, but needs more updates by more than it saves"
}

RING_LOGISTIC = Study(
    "3-logistic",
    "The ring with logistic losses",
    (
        "Figure 3 with logistic regression instead of least squares: a ring of 1000 nodes of which two neighbours hold "
        "features with a hundred times the variance. Each design has the step with which it settles at 1.1 × the "
        "optimal loss. There are no exact curves for this loss: claims are judged by the mean over the walks.",
    ),
    (
        sooner(MHLJ, UNIFORM, 1.2, 1 / 2, quote=FASTER, why=_LOOSE),
        sooner(OFTEN, UNIFORM, 1.2, 1 / 2, quote=FASTER, why=_LOOSE),
        sooner(MHLJ, UNIFORM, 1.2, by="messages", why=_HOPS),
        sooner(MHLJ, IMPORTANCE, 1.2, 1 / 2, quote=BREAKS),
        entrapped(MHLJ, UNIFORM, holds=False, quote=BREAKS),
        entrapped(IMPORTANCE, UNIFORM, quote=HELD),
        slower(IMPORTANCE, UNIFORM, 1.2, quote=SLOWER),
    ),
    variants=("own",),
    extra=_excess_chart,
)

SMALL_WORLD_LOGISTIC = Study(
    "5b-logistic",
    "Watts–Strogatz with logistic losses",
    (
        "Figure 5b with logistic regression instead of least squares: a Watts–Strogatz graph (1000, 4, 0.1) with five "
        "heavy nodes. Each design has the step with which it settles at 1.025 × the optimal loss. Claims are judged by "
        "the mean over the walks.",
    ),
    (
        sooner(MHLJ, IMPORTANCE, 1.05, quote=OVERCOMES),
        sooner(MHLJ, UNIFORM, 1.05, why=_LOOSE),
        sooner(OFTEN, UNIFORM, 1.05, why=_LOOSE),
        entrapped(MHLJ, UNIFORM, holds=False, quote=OVERCOMES),
        sooner(MHLJ, UNIFORM, 1.05, by="messages", why=_HOPS),
        entrapped(IMPORTANCE, UNIFORM, quote=HAPPENS, why=_FEW_RETURNS),
        slower(IMPORTANCE, UNIFORM, 1.05),
    ),
    variants=("own",),
    extra=_excess_chart,
)
