"""The table of moves to which a design compiles and which everything else reads.

A `Kernel` is a Markov chain on a graph, written as a short list of `Move`s. It stores nothing dense, O(nodes + edges)
numbers in total, and each node can act on its own share of them (`Kernel.local`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk import rng
from freewalk.blocks import blocks, constant, is_constant, read_only
from freewalk.checks import Checks, Floats, set_fields
from freewalk.designs.local import LocalKernel, LocalMove, LocalRow, faded
from freewalk.designs.memory import LastNode, Memory, Rows, rows_of
from freewalk.errors import KernelError
from freewalk.graphs import Graph
from freewalk.schedules import Schedule
from freewalk.storage.mapped import adopted

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_check = Checks(KernelError)
_DENSE_LIMIT = 5000
_DENSE_SHARE = 5.0  # with this many multiplications per entry, a sparse product is slower than a dense one
_MOST_ENTRIES, _MOST_TERMS = 6e7, 2e9  # of a sparse product: 1 GB, and ten seconds
_SUM_TOLERANCE = 1e-9
MOST_HOPS = 10_000  # per move, which is drawn hop by hop
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Move:
    """One kind of transition: walk some hops, then accept the end node or stay.

    With probability `probability`, walk `hops` steps, each to a uniform neighbour or according to `rows`; then accept
    the end node with probability min(1, ratio[end] / ratio[start]), otherwise stay.

    Parameters
    ----------
    probability
        The probability of this move; the probabilities of a kernel add up to 1.
    hops
        The number of steps; with 0 the walk stays.
    ratio
        One positive number per node; only with uniform hops. None always accepts.
    rows
        A row-stochastic matrix on the edges and the diagonal, or a sequence with one matrix per hop. None hops
        uniformly.
    law
        Draw the node from this distribution over all nodes instead of walking. Not local: for baselines.

    Examples
    --------
    >>> Move(0.5, hops=2)
    Move(0.5, hops=2)
    """

    probability: float
    hops: int = 1
    ratio: ArrayLike | None = field(default=None, repr=False)
    rows: Any = field(default=None, repr=False)
    law: ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check.probability("Move", "probability", self.probability)
        _check.whole("Move", "hops", self.hops, 0, MOST_HOPS, remedy="0 stays")
        if self.rows is not None and self.ratio is not None:
            remedy = "include the acceptance in the rows, as Metropolis(proposal=...) does"
            raise KernelError(f"Move: got both ratio and rows; ratio requires uniform hops: {remedy}")
        if self.law is not None and (self.rows is not None or self.ratio is not None):
            raise KernelError("Move: got law together with ratio or rows; a move that draws from law does not walk")
        for name in ("ratio", "law"):
            values = getattr(self, name)
            if values is not None:
                numbers = _check.floats("Move", name, adopted(values), (None,), finite=False, keep=True)
                set_fields(self, **{name: read_only(numbers)})
        if self.rows is not None:
            matrices = self.rows if issubclass(type(self.rows), (list, tuple)) else [self.rows]
            if len(matrices) not in (1, self.hops):
                expected = "one, or one per hop; a list is one per hop, so convert a single matrix to an array"
                raise KernelError(f"Move: got {len(matrices)} matrices for {self.hops} hops; expected {expected}")
            set_fields(self, rows=tuple(map(canonical_rows, matrices)))

    def __repr__(self) -> str:
        """Describe the move, without its arrays."""
        extra = [name for name in ("ratio", "rows", "law") if getattr(self, name) is not None]
        return f"Move({self.probability:g}, hops={self.hops}{''.join(f', {name}=…' for name in extra)})"

    def matrix_of_hop(self, hop: int) -> csr_array:
        """The matrix in `rows` used by hop number `hop` (0, 1, …)."""
        matrix: csr_array = self.rows[hop if len(self.rows) > 1 else 0]
        return matrix


@dataclass(frozen=True, eq=False)
class Kernel:
    """A Markov chain on a graph: a table of moves, and the distribution it is meant to sample.

    Parameters
    ----------
    graph
        The graph to walk on.
    moves
        The moves; their probabilities add up to 1.
    target
        The distribution from which the weights are computed, up to a factor.
    label
        The name used in tables and figures.
    fade
        A factor from 0 to 1 per step, which multiplies the probability of every move except the first; the first move
        takes the rest. None keeps the probabilities constant.
    biased
        Whether the walk is known to sample a distribution other than its target. None means unknown: `learn` then
        checks it if that is cheap, and warns.
    memory
        What a token remembers, as the designs with a memory set it; None means nothing. The moves are those of the walk
        without it.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    >>> kernel.matrix().toarray()[0]
    array([0. , 0.5, 0. , 0. , 0.5])
    """

    graph: Graph
    moves: Sequence[Move]
    target: ArrayLike
    label: str = "kernel"
    fade: Schedule | None = None
    biased: bool | None = None
    memory: Memory | None = None

    def __post_init__(self) -> None:
        _check.text("Kernel", "label", self.label)
        check_graph(self.label, self.graph)
        _check.instance(self.label, "moves", self.moves, (list, tuple), "a list of fw.Move(...)")
        for move in self.moves:
            _check.instance(self.label, "a move", move, Move, "fw.Move(...)")
            if move.ratio is not None:
                per_node(self.label, "ratio", move.ratio, self.graph, keep=True)
            if move.law is not None:
                per_node(self.label, "law", move.law, self.graph, zero=True, keep=True)
            for matrix in move.rows or ():
                check_stochastic(self.label, matrix, self.graph)
        _check.instance(self.label, "fade", self.fade, (Schedule, NoneType), "a schedule, or None")
        _check.instance(self.label, "biased", self.biased, (bool, NoneType), "True, False or None")
        _check.instance(self.label, "memory", self.memory, (Memory, NoneType), "what a design with a memory makes")
        total = sum(move.probability for move in self.moves)
        if not abs(total - 1) <= _SUM_TOLERANCE:
            raise KernelError(f"{self.label}: the probabilities of its moves add up to {total!r}, expected 1")
        target = per_node(self.label, "target", adopted(self.target), self.graph, keep=True)
        with np.errstate(over="ignore"):
            total = target.sum()
        # A distribution that adds up to 1 is kept to the last bit: a kernel read from a file equals the one that was
        # saved.
        law = target if abs(total - 1) <= _ROUNDING else target / total
        if law.min() < np.finfo(np.float64).tiny:
            got = f"target ranges from {target.min():g} to {target.max():g}"
            expected = "numbers whose shares of their sum are at least 2.3e-308: weights are 1 / (n · share)"
            raise KernelError(f"{self.label}: {got}, expected {expected}")
        set_fields(self, moves=tuple(self.moves), target=read_only(law))
        if self.memory is not None:
            self.rows  # noqa: B018 (an error unless a memory can change its moves)

    def without_memory(self) -> Kernel:
        """The same moves by a walk that remembers nothing."""
        return self if self.memory is None else replace(self, memory=None, label=f"{self.label} without memory")

    @cached_property
    def rows(self) -> Rows:
        """The moves as one row of outcomes per node, which a memory changes; an error if they are not such."""
        return rows_of(self)

    @cached_property
    def weights(self) -> Floats:
        """The gradient weights, 1 / (n · target): they make the gradient at a node drawn from the target unbiased."""
        target = np.asarray(self.target)
        if is_constant(target):
            return constant(1.0 / (self.graph.n * target[0]), self.graph.n)
        return read_only(1.0 / (self.graph.n * target))

    def __getstate__(self) -> dict[str, Any]:
        # A constant target is sent as one number; weights are computed where they are used.
        state = {name: value for name, value in self.__dict__.items() if name != "weights"}
        return state | ({"target": self.target[:1].copy()} if is_constant(self.target) else {})  # type: ignore

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if len(state["target"]) == 1:  # a graph has at least two nodes
            self.__dict__["target"] = constant(state["target"][0], self.graph.n)

    @property
    def is_local(self) -> bool:
        """Whether each node can act on its share of the table alone, with what comes with a token."""
        return all(move.law is None for move in self.moves) and not (self.memory is not None and self.memory.counts)

    @property
    def is_parked(self) -> bool:
        """Whether a walk with this kernel never leaves its node."""
        first = self.moves[0] if self.fade is not None else None  # may receive the probability of the others
        return all(move.hops == 0 and move.law is None for move in self.moves if move.probability > 0 or move is first)

    def probabilities(self, steps: ArrayLike) -> Floats:
        """The probability of each move (columns) at each of the given steps (rows)."""
        times = np.atleast_1d(_check.integers(self.label, "steps", steps, None, low=0))
        shares = tuple(float(move.probability) for move in self.moves)
        return np.tile(shares, (times.size, 1)) if self.fade is None else faded(shares, self.fade, times)

    def move_matrix(self, move: Move, powers: list[csr_array] | None = None) -> csr_array:
        """The exact transition matrix of one move, as if its probability were 1.

        `powers` collects the powers of the uniform hop, so that moves of different lengths share them.
        """
        from scipy.sparse import csr_array, diags_array, eye_array

        self._check_matrix()
        n = self.graph.n
        if move.law is not None:
            if n > _DENSE_LIMIT:
                words = f"its matrix is dense, {n} × {n}; it is available up to n = {_DENSE_LIMIT}"
                raise KernelError(f"{self.label}: {words}. The distribution itself is kernel.target")
            law = np.asarray(move.law)
            return csr_array(np.tile(law / law.sum(), (n, 1)))
        walked = csr_array(eye_array(n))
        if move.rows is None:
            powers = [] if powers is None else powers
            powers.extend([] if powers else [walked])
            uniform = diags_array(1.0 / self.graph.degrees) @ self.graph.adjacency()
            while len(powers) <= move.hops:
                powers.append(_product(self.label, powers[-1], csr_array(uniform)))
            walked = powers[move.hops]
        for hop in range(move.hops if move.rows is not None else 0):
            walked = _product(self.label, walked, move.matrix_of_hop(hop))
        return walked if move.ratio is None else _metropolis(walked, np.asarray(move.ratio))

    def _check_matrix(self) -> None:
        if self.memory is not None:
            remedy = "kernel.without_memory().matrix() is that of its moves alone"
            raise KernelError(f"{self.label}: where it goes depends on where it was, so it has no matrix; {remedy}")

    def matrix(self, step: int = 0) -> csr_array:
        """The exact transition matrix P, P[v, u] = probability of going from v to u; it may change with the step."""
        from scipy.sparse import csr_array

        self._check_matrix()
        now = _check.whole(self.label, "step", step)
        total = csr_array((self.graph.n, self.graph.n))
        powers: list[csr_array] = []
        for probability, move in zip(self.probabilities(now)[0], self.moves, strict=True):
            if probability > 0:
                total = csr_array(total + probability * self.move_matrix(move, powers))
        return total

    def at(self, step: int) -> Kernel:
        """The kernel at one step, with constant probabilities; a kernel that does not change is returned unchanged.

        Examples
        --------
        >>> import freewalk as fw
        >>> design = fw.designs.Decaying(fw.designs.MHLJ(0.5, 0.5, 1), fw.schedules.Inverse(1.0, scale=100))
        >>> design.kernel(fw.graphs.ring(4), [9, 1, 1, 1]).at(100).moves
        (Move(0.75, hops=1, ratio=…), Move(0.25, hops=1))
        """
        now = _check.whole(self.label, "step", step)
        if self.fade is None:
            return self
        shares = self.probabilities(now)[0]
        moves = [replace(move, probability=float(share)) for move, share in zip(self.moves, shares, strict=True)]
        return Kernel(self.graph, moves, self.target, f"{self.label} at step {now}", biased=self.biased)

    def local(self, node: int) -> LocalKernel:
        """Everything that `node` needs to act, and nothing else."""
        if not self.is_local:
            counting = self.memory is not None and self.memory.counts
            why = "its tokens count visits at other nodes" if counting else "draws from a distribution over all nodes"
            raise KernelError(f"{self.label}: {why}; no node can act on its own")
        neighbours = self.graph.neighbours(node)

        def share(move: Move) -> LocalMove:
            ratio = None if move.ratio is None else np.asarray(move.ratio)
            return LocalMove(
                hops=move.hops,
                ratio=None if ratio is None else float(ratio[node]),
                neighbour_ratios=ratio[neighbours] if ratio is not None and move.hops == 1 else None,
                rows=None if move.rows is None else tuple(_row(matrix, node) for matrix in move.rows),
            )

        return LocalKernel(
            node=int(node),
            neighbours=neighbours.copy(),
            weight=float(self.weights[node]),
            moves=tuple(share(move) for move in self.moves),
            probabilities=tuple(float(move.probability) for move in self.moves),
            fade=self.fade,
            row=self._local_row(node),
        )

    def _local_row(self, node: int) -> LocalRow | None:
        """The outcomes of a node, if tokens remember where they came from."""
        if not isinstance(self.memory, LastNode):
            return None
        rows, own = self.rows, self.rows.of(node)
        return LocalRow(rows.nodes[own].copy(), rows.ends[own].copy(), rows.others[own].copy(), self.memory.recalls)

    def __repr__(self) -> str:
        """The label, the graph and the table."""
        return f"Kernel({self.label} on {self.graph.name}: {', '.join(map(repr, self.moves))})"


def check_graph(owner: str, graph: Graph) -> None:
    """Raise unless the argument is a freewalk graph."""
    expected = "a graph of fw.graphs; from_networkx, from_scipy and from_edges make them"
    _check.instance(owner, "graph", graph, Graph, expected)


def per_node(
    owner: str, name: str, values: ArrayLike, graph: Graph, *, zero: bool = False, remedy: str = "", keep: bool = False
) -> Floats:
    """Values as a new array with one positive number per node, or an error that names the node; some may be `zero`.

    With `keep`, a read-only array is not copied.
    """
    numbers = _check.floats(owner, name, values, finite=False, keep=keep)
    if numbers.shape != (graph.n,):
        raise KernelError(f"{owner}: {name} has shape {numbers.shape}, expected ({graph.n},): one number per node")

    def fits(part: Floats) -> NDArray[np.bool_]:
        return np.isfinite(part) & ((part >= 0) if zero else (part > 0))

    if not all(fits(numbers[part]).all() for part in blocks(graph.n)) or (zero and not numbers.any()):
        node = int(np.argmin(fits(numbers)))
        expected = f"a finite number {'>= 0, and one above 0' if zero else '> 0'}{f'; {remedy}' if remedy else ''}"
        got = f"{name} of node {graph.node_name(node)} is {float(numbers[node])!r}"
        raise KernelError(f"{owner}: {got}, expected {expected}")
    return numbers


def check_stochastic(owner: str, matrix: csr_array, graph: Graph) -> None:
    """Raise unless a matrix is row-stochastic and supported on the edges and the diagonal of the graph."""
    if matrix.shape != (graph.n, graph.n):
        raise KernelError(f"{owner}: got a matrix of shape {matrix.shape}, expected {(graph.n, graph.n)} as the graph")
    if not (np.isfinite(matrix.data).all() and (matrix.data >= 0).all()):
        raise KernelError(f"{owner}: its matrix has entries that are negative or not finite; expected probabilities")
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > _SUM_TOLERANCE:
        words = f"row {worst} of its matrix adds up to {sums[worst]:.12g}, expected 1"
        raise KernelError(f"{owner}: {words}; divide each row by its sum")
    rows = np.repeat(np.arange(graph.n, dtype=np.int64), np.diff(matrix.indptr))
    edges = np.repeat(np.arange(graph.n, dtype=np.int64), graph.degrees) * graph.n + graph.indices
    moved = rows != matrix.indices
    outside = moved & ~np.isin(rows * graph.n + matrix.indices, edges)
    if outside.any():
        first = int(np.argmax(outside))
        ends = " to node ".join(map(graph.node_name, (rows[first], matrix.indices[first])))
        raise KernelError(f"{owner}: its matrix goes from node {ends}, which is not an edge of {graph.name}")


def _product(owner: str, first: csr_array, second: csr_array) -> csr_array:
    """The product of two transition matrices: dense if that is faster, rejected if it takes too much memory."""
    from scipy.sparse import csr_array

    n = first.shape[0]
    # The number of multiplied entries per row, an upper bound on the number of resulting entries.
    terms = first.astype(bool).astype(np.float64) @ np.diff(second.indptr).astype(np.float64)
    if n <= _DENSE_LIMIT and terms.sum() > _DENSE_SHARE * n**2:
        return csr_array(first.toarray() @ second.toarray())
    entries = float(np.minimum(terms, n).sum())
    if entries > _MOST_ENTRIES or terms.sum() > _MOST_TERMS:
        size = f"up to {entries:.1e} entries from {terms.sum():.1e} products"
        most = f"at most {_MOST_ENTRIES:.0e} and {_MOST_TERMS:.0e}"
        remedy = "runs, and stationary and excess_visits without corrected jumps, work hop by hop and need no matrix"
        raise KernelError(f"{owner}: the matrix of its jumps on {n} nodes would have {size}, expected {most}; {remedy}")
    return csr_array(first @ second)


def _metropolis(walked: csr_array, ratio: Floats) -> csr_array:
    """Accept the end of a walk with probability min(1, ratio[end] / ratio[start]), otherwise stay."""
    from scipy.sparse import csr_array, diags_array

    start = np.repeat(np.arange(walked.shape[0]), np.diff(walked.indptr))
    data = walked.data * np.minimum(1.0, ratio[walked.indices] / ratio[start])
    accepted = csr_array((data, walked.indices, walked.indptr), shape=walked.shape)
    stays = 1.0 - np.asarray(accepted.sum(axis=1)).ravel()
    return csr_array(accepted + diags_array(np.maximum(stays, 0.0)))


def canonical_rows(matrix: Any, owner: str = "Move", name: str = "rows") -> csr_array:
    """A matrix in canonical CSR form: sorted, without duplicates or stored zeros."""
    from scipy.sparse import csr_array, issparse

    is_sparse = issparse(matrix) and hasattr(matrix, "shape")
    values: Any = matrix if is_sparse else _check.floats(owner, name, matrix, finite=False)
    if len(values.shape) != 2 or values.shape[0] != values.shape[1]:
        raise KernelError(f"{owner}: {name} has shape {values.shape}, expected a square matrix")
    if values.dtype.kind not in "biuf":
        raise KernelError(f"{owner}: {name} is a matrix of {values.dtype}, expected real numbers")
    result = csr_array(values.astype(np.float64))
    result.sum_duplicates()
    result.eliminate_zeros()
    for part in (result.data, result.indices, result.indptr):
        part.setflags(write=False)
    return result


def _row(matrix: csr_array, node: int) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    entries = slice(matrix.indptr[node], matrix.indptr[node + 1])
    return matrix.indices[entries].astype(np.int32), rng.ends(matrix.data[entries])
