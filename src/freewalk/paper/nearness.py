"""How close the curves of a `published` spec are to the printed ones.

Its parameters were fitted to them: this measures the quality of the fit, and is not a claim of the paper.
"""

from itertools import permutations

import numpy as np

from freewalk.paper.claims import OUTCOMES
from freewalk.paper.evidence import Evidence
from freewalk.report.page import Verdict

#: How far a curve may be from the printed one, in decades RMS. A curve that is off by a factor of 1.6, .204 decades, is
#: farther away than that wherever the right one is within .104.
NEAR = 0.1


def nearness(evidence: Evidence) -> list[Verdict]:
    """Whether each curve is the printed one, and whether the curves can be told from each other.

    Parameters
    ----------
    evidence
        With the printed curves.

    Returns
    -------
    list of Verdict
        One for each printed curve, and one about their order; none where nothing is printed.
    """
    if not evidence.published:
        return []
    labels = list(evidence.published)
    own = {label: evidence.curve(label) for label in labels}
    apart = {
        (ours, theirs): evidence.published[theirs].decades(own[ours].updates, own[ours].error)
        for ours in labels
        for theirs in labels
    }
    found = []
    for label in labels:
        decades = apart[label, label]
        rms = float(np.sqrt(np.mean(decades**2)))
        words = f"{rms:.3f} decades RMS, at most {np.abs(decades).max():.2f} at one checkpoint"
        text = f"the curve of {label} is within {NEAR:g} decades RMS of the printed one"
        found.append(Verdict(text, OUTCOMES[rms <= NEAR], words, "" if rms <= NEAR else "It is too far away"))
    by_name, *others = (
        float(np.sqrt(np.mean([np.mean(apart[pair] ** 2) for pair in zip(labels, order, strict=True)])))
        for order in permutations(labels)
    )
    holds = by_name < min(others)
    words = f"{by_name:.3f} decades RMS, in the best other order {min(others):.3f}"
    text = "no two curves can be exchanged: in any other order they are farther from the printed ones"
    return [*found, Verdict(text, OUTCOMES[holds], words, "" if holds else "Another order is nearer")]
