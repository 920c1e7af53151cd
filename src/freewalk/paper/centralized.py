"""Importance sampling without a graph: the rates that the paper quotes, and its criterion for when they pay."""

from freewalk.analysis.theory import importance_pays
from freewalk.paper.claims import Claim, Finding, alike, sooner
from freewalk.paper.evidence import Evidence
from freewalk.paper.study import Study

UNIFORM, IMPORTANCE = "uniform, best step", "importance, best step"
ACCURATE, ROOT = "importance, same accuracy", "square root, best step"

_CAN = "weighted sampling in a centralized setting can speed up the convergence of SGD (III-A)"
_WILL = (
    "when (3) holds, i.e., when the gap between L_max and L̄ is significant, and L_min is close to L̄, sampling "
    "according to the importance distribution […] will speed up the convergence of SGD (III-A)"
)
_SAME = (
    "uniform sampling and importance sampling for the homogeneous data set have similar convergence rates (appendix)"
)
_LEVEL = 2.0

_TEXT = (
    "No graph: every update draws its node independently, uniformly or in proportion to its importance. The paper "
    "quotes rates for this from Needell et al., of the order of L_max / T and L̄² / (L_min T).",
    "Uniform sampling has the step with which it reaches 2 × the optimum soonest. Importance sampling is run twice: "
    "with the step that settles at the same error, as in the paper's appendix, and with its own best step for this "
    "level. Sampling by the square root of the importance is a compromise.",
)


def foreseen(quote: str = "", why: str = "") -> Claim:
    """A claim that the quoted rates see which of the two is faster, each with its best step."""
    text = (
        f"the quoted rates tell which is faster to {_LEVEL:g} × the optimum, each at its best step: promised and "
        "measured gain are both above 1, or both at most 1"
    )

    def measure(evidence: Evidence) -> Finding:
        promised = importance_pays(evidence.plan.problem.smoothness).gain
        slow, fast = (evidence.curve(one).reached(_LEVEL * evidence.optimum) for one in (UNIFORM, IMPORTANCE))
        last = float(evidence.curve(UNIFORM).updates[-1])
        if slow == fast == float("inf"):
            return Finding(None, "—", f"neither of the two reaches it in {last:,.0f} updates")
        gain = slow / fast
        return Finding((promised > 1) == (gain > 1), f"promised {promised:.3g} ×, measured {gain:.3g} ×", value=gain)

    return Claim(text, measure, quote, why={"own": why} if why else {})


def _heterogeneous(key: str, title: str, noise: str) -> Study:
    return Study(
        key,
        title,
        (f"The data are of the kind of figure 4b: 1000 nodes, five of them heavy, {noise}.", *_TEXT),
        (
            sooner(IMPORTANCE, UNIFORM, _LEVEL, quote=_CAN),
            sooner(ACCURATE, UNIFORM, _LEVEL, quote=_WILL),
            foreseen(_WILL),
            sooner(ROOT, UNIFORM, _LEVEL),
        ),
        variants=("own",),
    )


HETEROGENEOUS = _heterogeneous(
    "centralized", "Importance sampling pays without a graph", "with the noise of the printed curves"
)
NOISY = _heterogeneous("centralized-noise", "The same with the stated noise", "with the stated noise of variance 1")
HOMOGENEOUS = Study(
    "centralized-homogeneous",
    "No heavy nodes: the rates promise no gain",
    ("The data are of the kind of figure 4a: 1000 nodes, none of them heavy.", *_TEXT),
    (
        alike(UNIFORM, IMPORTANCE, _LEVEL, 1.25, quote=_SAME),
        alike(UNIFORM, ACCURATE, _LEVEL, 1.25, quote=_SAME),
        foreseen(
            why="The factor L̄ / L_min in the rate of importance sampling bounds what noise costs at the lightest node. "
            "Where all nodes have the same noise, as here, light nodes also have small gradients, and noise costs both "
            "designs the same"
        ),
    ),
    variants=("own",),
)
