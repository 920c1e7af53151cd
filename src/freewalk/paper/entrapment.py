"""Whether a walk of a study is entrapped at the heavy nodes, by its excess visits."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.analysis.traps.returns import Returns
from freewalk.analysis.traps.sets import FACTOR, Trap, judged, traps_among
from freewalk.designs.kernel import Kernel
from freewalk.graphs import Graph
from freewalk.paper.claims import Claim, Finding
from freewalk.paper.evidence import Evidence
from freewalk.report.summary import in_digits

Ints = NDArray[np.int64]

#: Said with every verdict that follows from these limits, which the paper does not state.
TERMS = "by our definition"
_SEVERAL = 4  # from this many sets, computing the times between all pairs of nodes pays


def hold(kernel: Kernel, uniform: Kernel, heavy: Sequence[int]) -> Trap:
    """The set of heavy nodes that holds a walk longest, whether or not it is a trap."""
    groups = _connected(kernel.graph, np.array(heavy, dtype=np.int64))
    walk, even = (_returns(one, len(groups) > _SEVERAL) for one in (kernel, uniform))
    return max((judged(walk, even, nodes) for nodes in groups), key=lambda trap: trap.memory)


@lru_cache(maxsize=2)  # all designs of a figure are compared with one uniform walk
def _returns(kernel: Kernel, many: bool) -> Returns:
    return Returns("reproduce", kernel, many=many)


def is_trap(trap: Trap, n: int) -> bool:
    """Whether a set is a trap among n nodes, by the defaults of `find_traps`."""
    return bool(traps_among([trap], FACTOR, n, 1))


def in_words(trap: Trap) -> str:
    """The numbers behind a verdict."""
    excess, even, lost = map(in_digits, (trap.excess, trap.uniform, abs(trap.lost)))
    return (
        f"{trap.where}: {excess} excess visits, the uniform walk {even}; memory {trap.factor:.3g} × as "
        f"long, {lost} updates {'more' if trap.lost >= 0 else 'less'}"
    )


def entrapped(label: str, uniform: str, holds: bool = True, **notes: Any) -> Claim:
    """A claim that a design is entrapped at heavy nodes or, if `holds` is false, that it is not.

    A trap is defined as in `find_traps`: the walk has at least 10 times the memory of the uniform walk there, and at
    least n updates more. Only heavy nodes are considered; those connected by edges form one set.
    """
    words = "is entrapped: heavy nodes hold it" if holds else "is not entrapped: no heavy nodes hold it"
    text = f"{label} {words} {FACTOR:g} × as long as the uniform walk and n updates longer, with returns"

    def measure(evidence: Evidence) -> Finding:
        heavy = getattr(evidence.plan.problem, "heavy", ())
        if not heavy:
            return Finding(None, "—", "this draw of the data has no heavy node")
        kernel, even = (evidence.plan.walks[one][0].kernel for one in (label, uniform))
        found = hold(kernel, even, heavy)
        # A trap reaches both limits: the multiple of the one that is farther away.
        value = min(found.factor / FACTOR, found.lost / kernel.graph.n)
        return Finding(is_trap(found, kernel.graph.n) is holds, in_words(found), value=value)

    return Claim(text, measure, unit="× the limits", looks_at=(), terms=TERMS, **notes)


def _connected(graph: Graph, heavy: Ints) -> list[Ints]:
    """The heavy nodes, grouped by the edges between them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    among = csr_array(graph.adjacency())[heavy][:, heavy]
    count, group = connected_components(among, directed=False)
    return [heavy[group == one] for one in range(count)]
