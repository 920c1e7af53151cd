"""The chain of a kernel hop by hop, so that it stays as sparse as the graph.

Two hops on a star connect all leaves: as a matrix on the nodes alone, jumps fill the memory. *Unrolled*, a walk in
transit has a state of its own, "at node v, with k hops to go": O(hops · edges) numbers, whatever the graph. Observed
only at the nodes, where updates happen, it is the chain of the kernel.
"""

from typing import Any, NamedTuple

import numpy as np

from freewalk.designs.kernel import Kernel, Move
from freewalk.linear.arrays import Floats, Ints, Matrix, Vectors
from freewalk.linear.krylov import minimise
from freewalk.linear.stationary import leaving_rates

_MANY, _CROWD = 1_000_000, 64  # graphs with this many edges, and this many per node, are not unrolled
_SWEEPS = 10
_ACCURACY = 1e-6  # of one correction
_ROUNDING = 1e-14  # of a step
_BALANCED = 1e-13  # relative difference of two distributions that are equal up to rounding


class Unrolled(NamedTuple):
    """Rates between states, the first `nodes` of which are the nodes themselves; walks pass through all others."""

    leaving: Matrix
    nodes: int

    def law(self, nodes: Floats) -> Floats:
        """The distribution over all states, given the distribution over the nodes."""
        arriving = self.leaving.T
        law = np.append(nodes, np.zeros(self.leaving.shape[0] - self.nodes))
        for _ in range(law.size // self.nodes):  # once for each possible number of remaining hops
            law[self.nodes :] = (arriving @ law)[self.nodes :]
        return np.asarray(law)


class _Hopping(NamedTuple):
    """A table of moves by kind: free uniform hops, products of matrices, and draws from a distribution."""

    shares: Floats  # the probability of 0, 1, 2, … uniform hops that are always accepted
    products: list[tuple[float, list[Matrix]]]
    draws: list[tuple[float, Floats]]


def _hopping(kernel: Kernel) -> _Hopping:
    moves = [move for move in kernel.moves if move.probability > 0]
    shares = np.zeros(1 + max([move.hops for move in moves if is_free(move)], default=0))
    products: list[tuple[float, list[Matrix]]] = []
    draws = []
    for move in moves:
        if move.law is not None:
            draws.append((move.probability, np.asarray(move.law) / np.sum(move.law)))
        elif is_free(move) or move.hops == 0:
            shares[move.hops] += move.probability
        else:
            rows = range(move.hops) if move.rows is not None else []
            products.append((move.probability, [move.matrix_of_hop(h) for h in rows] or [kernel.move_matrix(move)]))
    return _Hopping(shares, products, draws)


def unrolled(kernel: Kernel) -> Unrolled:
    """The chain of a constant kernel; jumps whose acceptance depends on both ends keep their matrix."""
    from scipy.sparse import block_array, csr_array

    n, table = kernel.graph.n, _hopping(kernel)
    hop = uniform_hop(kernel)
    longest = len(table.shares) - 1
    layers = max(longest, 1)  # the nodes, then walks with 1, 2, … free hops to go
    parts: dict[tuple[int, int], Any] = {(0, 0): csr_array((n, n))}
    for layer in range(1, longest):
        parts[layer, layer - 1] = hop
    for hops, share in enumerate(table.shares):
        if hops > 0 and share > 0:
            parts[0, hops - 1] = parts.get((0, hops - 1), 0) + share * hop
    for share, matrices in table.products:
        stops = [0, *range(layers, layers + len(matrices) - 1), 0]
        layers += len(matrices) - 1
        for place, matrix in enumerate(matrices):
            way = stops[place], stops[place + 1]
            parts[way] = parts.get(way, 0) + (share if place == 0 else 1.0) * matrix
    for share, law in table.draws:  # through one state in which a walk waits to be drawn
        parts[0, layers] = csr_array(np.full((n, 1), share))
        parts[layers, 0] = csr_array(law[None])
        layers += 1
    blocks = [[parts.get((row, column)) for column in range(layers)] for row in range(layers)]
    return Unrolled(leaving_rates(csr_array(block_array(blocks))), n)


class Hops:
    """One step of a constant kernel as products of sparse matrices, for graphs too dense to be unrolled in memory."""

    def __init__(self, kernel: Kernel) -> None:
        from scipy.sparse import csr_array

        self._table = _hopping(kernel)
        self._hop = csr_array(uniform_hop(kernel).T)
        self._products = [(share, [csr_array(one.T) for one in matrices]) for share, matrices in self._table.products]

    def change(self, measure: Floats) -> Floats:
        """The change of a measure in one step: x P − x."""
        return self.spread(measure) - measure

    def energy(self, law: Floats, deviations: Floats) -> float:
        """Σ ν_i P_ij (z_i − z_j)² / 2 for a stationary ν and any z: as (x − x P) z with x = ν z."""
        return float(-self.change(law * deviations) @ deviations)

    def swept(self, law: Floats) -> Floats:
        """An estimate of the stationary distribution, some steps later."""
        for _ in range(_SWEEPS):
            law = self.spread(law)
        return law

    def solver(self, law: Floats) -> Vectors:
        """A function that approximately solves c − c P = r for c, given r with Σ r = 0.

        By GMRES alone: on dense graphs all but a few modes of a walk decay quickly, and it finds those.
        """
        scale = np.sqrt(law)

        def solve(right: Floats) -> Floats:
            scaled = right / scale
            # Accuracy below the rounding of the right side itself gains nothing.
            least = _ROUNDING / max(float(np.linalg.norm(scaled)), _ROUNDING)
            return scale * minimise(lambda x: -self.change(scale * x) / scale, scaled, max(_ACCURACY, least), rounds=3)

        return solve

    def spread(self, law: Floats) -> Floats:
        """The distribution one step later: law P."""
        shares = self._table.shares
        # Horner's rule: jumps of all lengths together take as many hops as the longest. The rest stays.
        result = shares[-1] * law
        for share in shares[-2::-1]:
            result = self._hop @ result + share * law
        for share, matrices in self._products:
            moved = law
            for matrix in matrices:
                moved = matrix @ moved
            result = result + share * moved
        for share, drawn in self._table.draws:
            result = result + share * law.sum() * drawn
        return np.asarray(result)


def is_crowded(kernel: Kernel) -> bool:
    """Whether a graph has so many edges per node that `Hops` are better than unrolling."""
    return bool(kernel.graph.indices.size > max(_MANY, _CROWD * kernel.graph.n))


def uniform_hop(kernel: Kernel) -> Matrix:
    """One hop to a uniformly chosen neighbour."""
    from scipy.sparse import csr_array, diags_array

    return csr_array(diags_array(1.0 / kernel.graph.degrees) @ kernel.graph.adjacency())


def samples_its_target(kernel: Kernel) -> bool:
    """Whether the table alone proves detailed balance with the target, and that the walk reaches every node.

    d uniform hops accepted with min(1, ratio[end] / ratio[start]) are in balance with degree · ratio.
    """
    degrees, target = kernel.graph.degrees, np.asarray(kernel.target)
    balanced = all(_is_balanced(move, degrees, target) for move in kernel.moves if move.probability > 0)
    return balanced and takes_all_edges(kernel)


def takes_all_edges(kernel: Kernel) -> bool:
    """Whether the table alone proves that every edge is used in both directions, so that a walk reaches every node."""
    single = (move for move in kernel.moves if move.probability > 0 and move.hops == 1)
    return any(move.rows is None and move.law is None for move in single)


def _is_balanced(move: Move, degrees: Ints, target: Floats) -> bool:
    if move.rows is not None or move.law is not None:
        return False
    if move.hops == 0:
        return True
    quotients = (degrees if move.ratio is None else degrees * np.asarray(move.ratio)) / target
    return bool(quotients.max() <= (1.0 + _BALANCED) * quotients.min())


def is_free(move: Move) -> bool:
    """Whether a move makes uniform hops and always accepts."""
    return move.ratio is None and move.rows is None and move.law is None
