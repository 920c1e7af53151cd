"""The learning curves of the paper, and what it says about each of them.

Each claim has the paper's sentence and our test of it. What "beats" or "speeds up" takes no more updates than the
other, what does so "significantly" at most half of them; levels are round numbers. None is tuned to pass.
"""

from collections.abc import Mapping

from freewalk.studies.claims import alike, closed, ends, slower, sooner
from freewalk.studies.entrapment import entrapped
from freewalk.studies.files import Variant
from freewalk.studies.steady import mostly_bias
from freewalk.studies.study import Study

UNIFORM, IMPORTANCE, MHLJ = "MH uniform", "MH importance", "MHLJ"
SWITCH, DECAYING = "MHLJ, then uniform", "MHLJ, decaying"

FASTER = "Our proposed algorithm converges significantly faster than Uniform sampling via MH (appendix)"
BREAKS = "MHLJ can break the entrapment and significantly speed up the convergence rate (V)"
SLOWER = "on the ring graph, Importance sampling via MH converges slower than Uniform sampling via MH (appendix)"
HELD = "the random walk is getting entrapped on the “important” nodes (IV)"
GAP = "MHLJ exhibits asymptotically an error gap (V)"
FROM_JUMPS = (
    "the sampling distribution of nodes deviates from the desired importance distribution […], resulting in an error "
    "gap (V)"
)
HAPPENS = "the entrapment problem happens on these sparse graphs (appendix)"
OVERCOMES = "our MHLJ algorithm can overcome the entrapment problem and speed up the convergence (appendix)"
SHRINKING = (
    "Shrinking the jump probability p_J towards zero eliminates the error gap introduced by making jumps (Fig. 6)"
)

_NOT_BIAS = (
    "All nodes share one optimum, so that sampling them by another distribution shifts little. What is left is the "
    "variance of a constant step"
)


RING = Study(
    "3",
    "The ring: importance sampling is entrapped, jumps free it",
    (
        "A ring of 1000 nodes, of which a few hold features with a hundred times the variance. Metropolis–Hastings for "
        "the uniform distribution, for the importance distribution, and MHLJ.",
    ),
    (
        sooner(MHLJ, UNIFORM, 3, 1 / 2, quote=FASTER),
        sooner(MHLJ, UNIFORM, 3, by="messages"),
        sooner(MHLJ, IMPORTANCE, 3, 1 / 2, quote=BREAKS),
        entrapped(MHLJ, UNIFORM, holds=False, quote=BREAKS),
        entrapped(IMPORTANCE, UNIFORM, quote=HELD),
        slower(IMPORTANCE, UNIFORM, 3, quote=SLOWER),
        ends(MHLJ, UNIFORM, least=1.05, quote=GAP),
        mostly_bias(MHLJ, quote=FROM_JUMPS, why=dict.fromkeys(("stated", "published"), _NOT_BIAS)),
    ),
)

HOMOGENEOUS = Study(
    "4a",
    "Erdős–Rényi, homogeneous data: importance sampling changes nothing",
    ("An Erdős–Rényi graph (1000, 0.1), all features of the same variance.",),
    (
        alike(
            UNIFORM,
            IMPORTANCE,
            3,
            1.25,
            quote="uniform sampling and importance sampling for the homogeneous data set have similar convergence "
            "rates (appendix)",
        ),
        ends(IMPORTANCE, UNIFORM, least=0.95, most=1.05),
    ),
)

HETEROGENEOUS = Study(
    "4b",
    "Erdős–Rényi, heterogeneous data: importance sampling on a dense graph",
    (
        "The same graph, with a few heavy nodes. Importance MH stays at a heavy node about as long as it does on a "
        "ring: that depends on how much heavier the node is, not on the number of its neighbours. But once it has "
        "left, it comes back no sooner than independent draws would.",
    ),
    (
        sooner(
            IMPORTANCE,
            UNIFORM,
            2,
            quote="For the heterogeneous data set, importance sampling beats uniform sampling (appendix)",
        ),
        entrapped(
            IMPORTANCE,
            UNIFORM,
            holds=False,
            quote="when the data is heterogeneous, and the graph is not “well-connected”, the random walk […] may get "
            "entrapped (IV)",
        ),
        ends(IMPORTANCE, UNIFORM, most=1.05),
    ),
)


def _sparse(key: str, title: str, graph: str, why: Mapping[str, Mapping[Variant, str]]) -> Study:
    return Study(
        key,
        title,
        (f"{graph}, with a few heavy nodes.",),
        (
            sooner(MHLJ, UNIFORM, 2, quote=OVERCOMES),
            sooner(MHLJ, IMPORTANCE, 2, quote=OVERCOMES),
            entrapped(MHLJ, UNIFORM, holds=False, quote=OVERCOMES),
            sooner(MHLJ, UNIFORM, 2, by="messages"),
            entrapped(IMPORTANCE, UNIFORM, quote=HAPPENS, why=why["entrapped"]),
            slower(IMPORTANCE, UNIFORM, 2, quote=HAPPENS, why=why["slower"]),
        ),
    )


GRID = _sparse(
    "5a",
    "A 2-d grid: on the border of entrapment",
    "A grid of 25 × 40 nodes (its sides are not stated)",
    {"entrapped": {}, "slower": {}},
)
SMALL_WORLD = _sparse(
    "5b",
    "Watts–Strogatz: few returns",
    "A Watts–Strogatz graph (1000, 4, 0.1)",
    {"entrapped": {}, "slower": {}},
)

SWITCHING = Study(
    "6",
    "Removing the error gap: a switch, and jumps that die out",
    (
        "The ring again. MHLJ for 2,000 updates and the uniform walk from then on, which the legend calls a switch; "
        "and a jump probability that is halved every 2,000 updates, which is what the text says.",
    ),
    (
        ends(MHLJ, UNIFORM, least=1.05, quote=GAP),
        mostly_bias(MHLJ, quote=FROM_JUMPS, why=dict.fromkeys(("stated", "published"), _NOT_BIAS)),
        closed(SWITCH, MHLJ, UNIFORM, quote=SHRINKING),
        closed(DECAYING, MHLJ, UNIFORM, quote=SHRINKING),
        sooner(SWITCH, UNIFORM, 2, quote="[…] without losing the convergence speed (Fig. 6)"),
        entrapped(MHLJ, UNIFORM, holds=False, quote=BREAKS),
        entrapped(IMPORTANCE, UNIFORM, quote=HELD),
        slower(IMPORTANCE, UNIFORM, 3, quote=SLOWER),
    ),
)
