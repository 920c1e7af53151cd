"""The learning curves of the paper, and what it says about each of them.

Each claim has the paper's sentence and our test of it. What "beats" or "speeds up" takes no more updates than the
other, what does so "significantly" at most half of them; levels are round numbers. None is tuned to pass.
"""

from freewalk.paper.claims import alike, closed, ends, slower, sooner
from freewalk.paper.entrapment import entrapped
from freewalk.paper.files import OF_THE_PAPER
from freewalk.paper.steady import mostly_bias
from freewalk.paper.study import Study

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
#: It does not say which: the walk for the uniform distribution, or that for importance sampling.
NO_LOSS = "without losing the convergence speed compared with the simple Metropolis-Hastings algorithm (appendix)"

_SMALL_STEP = (
    "Importance MH makes many updates in a row at the same nodes, so that on these graphs it settles higher than the "
    "uniform walk at the same step. At the same accuracy its step is the smaller one, and MHLJ shares it"
)
_MESSAGES = "MHLJ sends fewer messages per update, but needs more updates by more than it saves"
_START = (
    "From the stated random start few walks begin where jumps help, and they gain less than half; from a heavy node "
    "they gain more"
)
_A_LITTLE = (
    "A border case: jumps, one move in ten, take away most of the excess visits. What is left is still about ten times "
    "what the uniform walk has"
)
_NO_GAP = "At steps that settle at the same error there is no gap to see: what is left is the variance of the step"
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
        sooner(MHLJ, UNIFORM, 3, 1 / 2, quote=FASTER, why={"stated": _SMALL_STEP}),
        sooner(MHLJ, UNIFORM, 3, by="messages", why={"stated": _MESSAGES}),
        sooner(MHLJ, IMPORTANCE, 3, 1 / 2, quote=BREAKS, why={"stated": _START}),
        entrapped(MHLJ, UNIFORM, holds=False, quote=BREAKS, why={"stated": _A_LITTLE}),
        entrapped(IMPORTANCE, UNIFORM, quote=HELD),
        slower(IMPORTANCE, UNIFORM, 3, quote=SLOWER),
        ends(MHLJ, UNIFORM, least=1.05, quote=GAP, why={"stated": _NO_GAP}),
        mostly_bias(MHLJ, quote=FROM_JUMPS, why=dict.fromkeys(OF_THE_PAPER, _NOT_BIAS)),
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
            why={
                "stated": "From the stated random start they always are. From the heaviest node, where the level takes "
                "only some fifty updates, the first few of them make now one and now the other walk slower"
            },
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
            why={
                "stated": "It depends on the fraction of the limit that is taken: at one half importance sampling is "
                "slower, at nine tenths nearly always faster. Towards the limit the step that matches the uniform "
                "walk's accuracy grows, while the uniform walk itself mostly becomes slower"
            },
        ),
        entrapped(
            IMPORTANCE,
            UNIFORM,
            holds=False,
        ),
        ends(IMPORTANCE, UNIFORM, most=1.05),
    ),
)


def _sparse(key: str, title: str, graph: str, few: str, faster: str) -> Study:
    """A figure on a sparse graph, why its heavy nodes are no traps, and why importance MH is not slower in it."""
    return Study(
        key,
        title,
        (f"{graph}, with a few heavy nodes.",),
        (
            sooner(MHLJ, IMPORTANCE, 2, quote=OVERCOMES),
            entrapped(MHLJ, UNIFORM, holds=False, quote=OVERCOMES),
            sooner(MHLJ, UNIFORM, 2, why={"stated": _SMALL_STEP}),
            sooner(MHLJ, UNIFORM, 2, by="messages", why={"stated": _MESSAGES}),
            entrapped(IMPORTANCE, UNIFORM, quote=HAPPENS, why=dict.fromkeys(OF_THE_PAPER, few)),
            slower(IMPORTANCE, UNIFORM, 2, why={"published": faster}),
        ),
    )


GRID = _sparse(
    "5a",
    "A 2-d grid: on the border of entrapment",
    "A grid of 25 × 40 nodes (its sides are not stated)",
    "A border case: the walk returns to a heavy node far less often than on a ring, and it takes an unusually heavy "
    "one to hold it for a thousand updates",
    "In print it does, by a little. With the fitted parameters and other data importance MH is nearly always faster",
)
SMALL_WORLD = _sparse(
    "5b",
    "Watts–Strogatz: few returns",
    "A Watts–Strogatz graph (1000, 4, 0.1)",
    "A heavy node holds it one or two hundred times as long as the uniform walk, but that is hundreds of updates and "
    "seldom a thousand: once the walk has left, shortcuts lead it away, and it comes back a few times only",
    "Nor does it in print. It does in a quarter of the draws",
)

SWITCHING = Study(
    "6",
    "Removing the error gap: a switch, and jumps that die out",
    (
        "The ring again. MHLJ for 2,000 updates and the uniform walk from then on, which the legend calls a switch; "
        "and a jump probability that is halved every 2,000 updates, which is what the text says.",
    ),
    (
        ends(MHLJ, UNIFORM, least=1.05, quote=GAP, why={"stated": _NO_GAP}),
        mostly_bias(MHLJ, quote=FROM_JUMPS, why=dict.fromkeys(OF_THE_PAPER, _NOT_BIAS)),
        closed(SWITCH, MHLJ, UNIFORM, quote=SHRINKING),
        closed(
            DECAYING,
            MHLJ,
            UNIFORM,
            quote=SHRINKING,
            why={
                "published": "The gap is not the jumps' bias but the variance of a step five times as large, which "
                "stays when the jumps are gone; the switch removes it because it changes the step as well"
            },
        ),
        sooner(SWITCH, IMPORTANCE, 2, quote=NO_LOSS),
        sooner(SWITCH, UNIFORM, 2, quote=NO_LOSS, why={"stated": _SMALL_STEP}),
        entrapped(MHLJ, UNIFORM, holds=False, quote=BREAKS, why={"stated": _A_LITTLE}),
        entrapped(IMPORTANCE, UNIFORM, quote=HELD),
        slower(IMPORTANCE, UNIFORM, 3, quote=SLOWER),
    ),
)
