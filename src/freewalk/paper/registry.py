"""What can be reproduced: figures of learning curves, and studies with their own modules."""

from collections.abc import Sequence
from types import ModuleType

from freewalk.paper import bias, centralized, chain, companions, curves, messages, pull, rate
from freewalk.paper.files import Variant
from freewalk.paper.study import Study

STUDIES: dict[str, Study] = {
    study.key: study
    for study in (
        curves.RING,
        curves.HOMOGENEOUS,
        curves.HETEROGENEOUS,
        curves.GRID,
        curves.SMALL_WORLD,
        curves.SWITCHING,
        bias.SHIFTED,
        bias.TRADE_OFF,
        companions.SHRINKING,
        companions.RING_LOGISTIC,
        companions.SMALL_WORLD_LOGISTIC,
        centralized.HETEROGENEOUS,
        centralized.NOISY,
        centralized.HOMOGENEOUS,
    )
}
#: Studies that are not figures of learning curves: name, module and variants.
COMPUTED: dict[str, tuple[str, ModuleType, Sequence[Variant]]] = {
    "2": ("Figure 2", chain, ("stated",)),
    "section-4": ("Section IV", pull, ("own",)),
    "remark-1": ("Remark 1", messages, ("stated",)),
    "theorem-1-rate": ("Theorem 1, rate", rate, ("own",)),
}
#: Everything that can be requested, in the order of the paper.
KEYS = (
    "2",
    "centralized",
    "centralized-noise",
    "centralized-homogeneous",
    "section-4",
    "3",
    "3-logistic",
    "4a",
    "4b",
    "5a",
    "5b",
    "5b-logistic",
    "6",
    "6-shift",
    "6-decay",
    "remark-1",
    "theorem-1",
    "theorem-1-rate",
)


def variants_of(key: str) -> Sequence[Variant]:
    """The variants that a figure has."""
    return COMPUTED[key][2] if key in COMPUTED else STUDIES[key].variants


def name_of(key: str) -> str:
    """The name of a figure in tables."""
    return COMPUTED[key][0] if key in COMPUTED else STUDIES[key].name
