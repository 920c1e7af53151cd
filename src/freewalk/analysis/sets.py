"""Traps: sets of nodes that hold the walk far longer than their share of the target warrants."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freewalk.analysis.chain import matrix_of
from freewalk.analysis.law import stationary
from freewalk.analysis.moments import Floats
from freewalk.analysis.times import escape_time
from freewalk.errors import AnalysisError
from freewalk.kernel import Kernel

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_SEEDS = 500  # of each kind: where sets begin to grow
_WIDEST = 64  # nodes in a set


@dataclass(frozen=True)
class Trap:
    """A set of nodes that the walk is slow to leave.

    Attributes
    ----------
    nodes
        The set.
    stay
        The mean length of a visit, in updates: from the step that enters the set to the one that leaves it.
    escape
        The mean number of updates until a walk that is somewhere in the set, by the stationary law, leaves it.
    share
        The share of the target that the set has.
    warranted
        How long a visit would be if the nodes were drawn independently from the target, or if the walk took a plain
        step each time, whichever is longer.
    factor
        stay / warranted.
    """

    nodes: tuple[int, ...]
    stay: float
    escape: float
    share: float
    warranted: float
    factor: float

    def __str__(self) -> str:
        """The trap in a sentence."""
        return (
            f"{name_nodes(self.nodes)}: a visit lasts {self.stay:.3g} updates, {self.factor:.3g} times what "
            f"{100 * self.share:.3g} % of the target would warrant"
        )


def find_traps(kernel: Kernel, factor: float = 3.0, least: float = 10.0, most: int = 10) -> list[Trap]:
    """The sets that hold the walk at least `factor` times as long as they would be warranted to, and `least` updates.

    Drawn independently, a set of share π(S) is kept for 1/(1 − π(S)) draws, and a plain walk stays in S for
    (sum of degrees)/(edges that leave S) steps; a visit of this walk lasts ν(S)/Σ_{v∈S, u∉S} ν_v P(v, u) updates.
    Single nodes miss a trap of several: next to each other, they hand the walk to and fro. So sets are grown, from the
    local maxima of the target, always by the node that keeps visits longest.

    Parameters
    ----------
    kernel
        A kernel that does not change with time.
    factor
        How much longer than warranted a visit must be.
    least
        How many updates a visit must last.
    most
        How many traps to return.

    Returns
    -------
    list
        Traps that do not overlap, the largest factor first. A search, not a proof: sets grow from up to 1000 places, to
        at most 64 nodes each and half of the graph.

    Raises
    ------
    AnalysisError, KernelError
        If the kernel changes with time, draws from a law, or is reducible.

    Examples
    --------
    >>> import freewalk as fw
    >>> importance = [400.0, 400.0] + 98 * [1.0]
    >>> kernel = fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(100), importance)
    >>> for trap in find_traps(kernel):
    ...     print(trap)
    nodes 0, 1: a visit lasts 800 updates, 87.3 times what 89.1 % of the target would warrant
    """
    matrix = matrix_of("find_traps", kernel)
    if not kernel.is_local:
        raise AnalysisError(
            f"find_traps: {kernel.label} draws from a law over all nodes; expected a walk, which has traps"
        )
    if not (factor > 1 and least >= 1 and most >= 1):
        raise AnalysisError(
            f"find_traps: factor = {factor!r}, least = {least!r}, most = {most!r}, expected a factor above 1 and the "
            "others at least 1"
        )
    search = _Search(kernel, matrix, stationary(kernel))
    grown = (search.grow(int(seed)) for seed in search.seeds())
    found = [trap for trap in grown if trap is not None and trap[0] >= factor and trap[1] >= least]
    kept: list[Trap] = []
    taken: set[int] = set()
    for value, stay, warranted, nodes in sorted(found, key=lambda trap: (-trap[0], trap[3])):
        if len(kept) == most:
            break
        if taken.isdisjoint(nodes):
            taken.update(nodes)
            share = float(np.asarray(kernel.target)[list(nodes)].sum())
            kept.append(Trap(nodes, stay, float(escape_time(kernel, nodes)), share, warranted, value))
    return kept


class _Search:
    """Sets that grow node by node, and what their visits last."""

    def __init__(self, kernel: Kernel, matrix: "csr_array", law: Floats) -> None:
        from scipy.sparse import csr_array

        self.graph = kernel.graph
        self.law = law
        self.target = np.asarray(kernel.target)
        flows = csr_array(law[:, None] * matrix)
        flows.setdiag(0.0)
        flows.eliminate_zeros()
        self.out = flows
        self.into = csr_array(flows.T)
        self.leaving = np.asarray(flows.sum(axis=1)).ravel()

    def seeds(self) -> NDArray[np.int64]:
        """Nodes that no neighbour exceeds in target per degree: the highest of them, and those that stand out most."""
        graph, height = self.graph, self.target / self.graph.degrees
        seen = height[graph.indices]
        highest = np.maximum.reduceat(seen, graph.indptr[:-1])
        local = np.flatnonzero(height >= highest)
        contrast = (height / (np.add.reduceat(seen, graph.indptr[:-1]) / graph.degrees))[local]
        tallest = local[np.argsort(-height[local], kind="stable")[:_SEEDS]]
        return np.union1d(tallest, local[np.argsort(-contrast, kind="stable")[:_SEEDS]])

    def grow(self, seed: int) -> tuple[float, float, float, tuple[int, ...]] | None:
        """The best set on the way of a growing one: its factor, the length of a visit, what is warranted, its nodes."""
        members: list[int] = []
        sent: dict[int, float] = {}  # by node outside: the flow that it gets from the set
        back: dict[int, float] = {}  # and the flow that it gives to the set
        mass = share = outflow = 0.0
        degrees = cut = 0
        best = None
        node = seed
        for _ in range(min(_WIDEST, self.graph.n // 2)):
            given, taken = sent.pop(node, 0.0), back.pop(node, 0.0)
            outflow += self.leaving[node] - given - taken
            mass, share = mass + self.law[node], share + self.target[node]
            inside = sum(int(u) in members for u in self.graph.neighbours(node))
            degrees, cut = degrees + int(self.graph.degrees[node]), cut + int(self.graph.degrees[node]) - 2 * inside
            members.append(node)
            _add(sent, self.out, node, members)
            _add(back, self.into, node, members)
            if cut == 0 or outflow <= 0 or not sent:
                break
            stay = float(mass / outflow)
            warranted = float(max(1.0 / max(1.0 - share, 1e-300), degrees / cut))
            if best is None or stay / warranted > best[0]:
                best = (stay / warranted, stay, warranted, tuple(sorted(members)))
            node = max(
                sent,
                key=lambda u: (
                    (mass + self.law[u]) / max(outflow - sent[u] - back.get(u, 0.0) + self.leaving[u], 1e-300)
                ),
            )
        return best


def _add(flows: dict[int, float], matrix: "csr_array", node: int, members: list[int]) -> None:
    row = slice(matrix.indptr[node], matrix.indptr[node + 1])
    for u, flow in zip(matrix.indices[row].tolist(), matrix.data[row].tolist(), strict=True):
        if u not in members:
            flows[u] = flows.get(u, 0.0) + flow


def name_nodes(nodes: tuple[int, ...], most: int = 6) -> str:
    """Some nodes in words.

    Examples
    --------
    >>> name_nodes((3,)), name_nodes((0, 1)), name_nodes(tuple(range(9)))
    ('node 3', 'nodes 0, 1', 'nodes 0, 1, 2, 3, 4, 5, … (9 in all)')
    """
    listed = ", ".join(map(str, nodes[:most]))
    more = f", … ({len(nodes)} in all)" if len(nodes) > most else ""
    return f"node{'s' if len(nodes) > 1 else ''} {listed}{more}"
