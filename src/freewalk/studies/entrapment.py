"""Whether a walk of a study is entrapped at the heavy nodes, by its excess visits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.analysis import excess_visits, stationary
from freewalk.analysis.sets import FACTOR, name_nodes
from freewalk.graphs import Graph
from freewalk.kernel import Kernel
from freewalk.studies.claims import Claim, Finding
from freewalk.studies.evidence import Evidence
from freewalk.studies.files import Variant

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Hold:
    """How heavy nodes that are connected to each other hold a walk, and the uniform walk.

    Attributes
    ----------
    nodes
        The nodes.
    excess, uniform
        The excess visits of the walk, and of the uniform walk.
    factor, lost
        The memory of the walk, excess / (1 − share), over that of the uniform walk, and less it.
    """

    nodes: tuple[int, ...]
    excess: float
    uniform: float
    factor: float
    lost: float

    def is_trap(self, n: int) -> bool:
        """Whether that makes a trap among n nodes, by the defaults of `find_traps`."""
        return self.factor >= FACTOR and self.lost >= n

    def __str__(self) -> str:
        """The numbers behind a verdict."""
        excess, even, lost = (
            f"{one:,.0f}" if one >= 100 else f"{one:.3g}" for one in (self.excess, self.uniform, abs(self.lost))
        )
        return (
            f"{name_nodes(self.nodes)}: {excess} excess visits, the uniform walk {even}; memory {self.factor:.3g} × as "
            f"long, {lost} updates {'more' if self.lost >= 0 else 'less'}"
        )


def hold(kernel: Kernel, uniform: Kernel, heavy: Sequence[int]) -> Hold:
    """How heavy nodes hold a walk, where they hold it longest."""
    groups = _connected(kernel.graph, np.array(heavy, dtype=np.int64))
    law = stationary(kernel)
    nodes = groups[int(np.argmax(_memories(kernel, law, groups)))]
    excess, even = excess_visits(kernel, nodes), excess_visits(uniform, nodes)
    memory = excess / float(np.delete(law, nodes).sum())
    plain = even / float(np.delete(stationary(uniform), nodes).sum())
    return Hold(tuple(nodes.tolist()), excess, even, memory / plain, memory - plain)


def entrapped(label: str, uniform: str, holds: bool = True, why: Mapping[Variant, str] | None = None) -> Claim:
    """A claim that a design is entrapped at heavy nodes; where `holds` is false, that it is entrapped at none.

    A trap is what `find_traps` calls one: there the walk has at least 10 times the memory of the uniform walk, and at
    least n updates more. Only heavy nodes are looked at; those that edges connect are taken together.
    """
    limits = f"{FACTOR:g} × as long as the uniform walk and n updates longer, with returns"
    words = f"is entrapped: heavy nodes hold it {limits}"
    if not holds:
        words = f"is not entrapped: no heavy nodes hold it {limits}"

    def measure(evidence: Evidence) -> Finding:
        heavy = getattr(evidence.plan.problem, "heavy", ())
        if not heavy:
            return Finding(None, "—", "this draw of the data has no heavy node")
        kernel, even = (evidence.plan.walks[one][0].kernel for one in (label, uniform))
        found = hold(kernel, even, heavy)
        return Finding(found.is_trap(kernel.graph.n) is holds, str(found))

    return Claim(f"{label} {words}", measure, why=why or {})


def _connected(graph: Graph, heavy: Ints) -> list[Ints]:
    """The heavy nodes, by groups that edges between them connect."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    among = csr_array(graph.adjacency())[heavy][:, heavy]
    count, group = connected_components(among, directed=False)
    return [heavy[group == one] for one in range(count)]


def _memories(kernel: Kernel, law: Floats, groups: list[Ints]) -> Floats:
    """The memory of a walk at each of several sets by one dense solution: quick, and good enough to compare them."""
    inside = np.array([np.isin(np.arange(law.size), nodes) for nodes in groups], dtype=np.float64).T
    shares = law @ inside
    solution = np.linalg.solve(np.eye(law.size) - kernel.matrix().toarray() + law, inside - shares)
    excess = (law[:, None] * inside * solution).sum(axis=0) / shares
    return np.asarray(excess / (1.0 - shares))
