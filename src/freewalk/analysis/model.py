"""Make ready what the second-moment recursion reads: the local losses, the moves, the first state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.analysis import moments
from freewalk.analysis.traffic import messages_per_visit
from freewalk.compiling import compile_functions
from freewalk.errors import AnalysisError
from freewalk.kernel import Kernel, Move
from freewalk.learning import SGD, Rule
from freewalk.objectives import LeastSquares, Objective
from freewalk.schedules import Constant, Schedule

Floats = NDArray[np.float64]

#: The most numbers that a state may have (1.6 GB, and the recursion holds four).
LARGEST = 200_000_000


def check_problem(who: str, problem: Objective) -> LeastSquares:
    """A least-squares problem, or an error."""
    if not isinstance(problem, LeastSquares):
        raise AnalysisError(
            f"{who}: got {problem!r}, expected a LeastSquares problem: only there do the moments of the error follow a "
            "recursion of their own. Simulate others with fw.learn(..., walks=1000)"
        )
    return problem


def check_rule(who: str, rule: Rule | None) -> SGD:
    """A rule whose moments follow a recursion, or an error."""
    if not isinstance(rule, SGD) or rule.average:
        raise AnalysisError(
            f"{who}: got {rule!r}, expected fw.SGD(step=...) without averaging; simulate other rules with "
            "fw.learn(..., walks=1000)"
        )
    return rule


def constant_step(who: str, rule: SGD) -> float:
    """The step of a rule whose step does not change."""
    if isinstance(rule.step, Schedule) and not isinstance(rule.step, Constant):
        raise AnalysisError(
            f"{who}: got {rule!r}, whose step changes; expected a constant step (a limit belongs to one step)"
        )
    return float(rule.rates(np.zeros(1, dtype=np.int64))[0])


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A least-squares problem around its optimum, in the coordinates in which its data live.

    Where the features span less than the whole space and there is no ridge, nothing ever changes outside of their
    span: `basis` then has fewer columns than rows, and the recursion runs inside the span.
    """

    problem: LeastSquares

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal columns that span all features."""
        d = self.problem.dim
        if self.problem.ridge > 0:
            return np.eye(d)
        _, values, rows = np.linalg.svd(np.asarray(np.linalg.qr(self.problem.features, mode="r")))
        rank = int((values > values.max() * d * np.finfo(float).eps).sum()) if values.max() > 0 else 0
        return np.eye(d) if rank == d else np.ascontiguousarray(rows[:rank].T)

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return int(self.basis.shape[1])

    @cached_property
    def features(self) -> Floats:
        """The features in these coordinates."""
        return np.ascontiguousarray(self.problem.features @ self.basis)

    @cached_property
    def residuals(self) -> Floats:
        """aᵀx* − y by sample."""
        return np.asarray(self.problem.features @ self.problem.optimum() - self.problem.targets)

    @cached_property
    def hessian(self) -> Floats:
        """That of f."""
        return self.spread_of_features + self.problem.ridge * np.eye(self.dim)

    @cached_property
    def spread_of_features(self) -> Floats:
        """Ĉ = Σ a aᵀ / (n m_v): the Hessian of f without its ridge, half of that of the mse."""
        return np.asarray(self.features.T @ (self.problem.sample_weights[:, None] * self.features))

    @cached_property
    def hessians(self) -> Floats:
        """Those of f_v, by node."""
        counts = np.diff(self.problem.offsets)
        owned = np.repeat(1.0 / counts, counts)[:, None, None] * self.features[:, :, None] * self.features[:, None, :]
        return np.asarray(np.add.reduceat(owned, self.problem.offsets[:-1], axis=0)) + self.problem.ridge * np.eye(
            self.dim
        )

    @cached_property
    def gradients(self) -> Floats:
        """∇f_v(x*), by node."""
        counts = np.diff(self.problem.offsets)
        owned = (np.repeat(1.0 / counts, counts) * self.residuals)[:, None] * self.features
        return np.asarray(np.add.reduceat(owned, self.problem.offsets[:-1], axis=0)) + self.problem.ridge * self.optimum

    @cached_property
    def optimum(self) -> Floats:
        """x* in these coordinates."""
        return np.asarray(self.basis.T @ self.problem.optimum())

    def terms(self, sampled: bool) -> moments.Terms:
        """What the recursion reads; a gradient of several samples at once takes whole Hessians."""
        whole = not sampled and len(self.problem.targets) > self.problem.n
        empty = np.zeros((0, self.dim, self.dim)), np.zeros((0, self.dim))
        hessians, gradients = (self.hessians, self.gradients) if whole else empty
        return moments.Terms(
            features=fixed(self.features),
            residuals=fixed(self.residuals),
            offsets=fixed(self.problem.offsets),
            optimum=fixed(self.optimum),
            ridge=float(self.problem.ridge),
            hessians=fixed(hessians),
            gradients=fixed(gradients),
        )

    def measures(self, totals: Floats, outside: float) -> dict[str, Floats]:
        """loss, mse and distance of states summed over the nodes; `outside` is the squared error outside the span."""
        d = self.dim
        means, seconds = totals[:, 1 : 1 + d], unpacked(totals[:, 1 + d :], d)
        best = self.problem.optimum()
        slope = 2.0 * (self.problem.sample_weights * self.residuals) @ self.features
        curved = np.einsum("tij,ij->t", seconds, self.spread_of_features)
        distance = np.trace(seconds, axis1=1, axis2=2)
        mse = self.problem.mse(best) + means @ slope + curved
        # With ridge/2 ‖x‖² = ridge/2 (‖x*‖² + 2 x*ᵀe + ‖e‖²).
        ridge = 0.5 * self.problem.ridge * (best @ best + 2.0 * means @ self.optimum + distance)
        return {"loss": 0.5 * mse + ridge, "mse": mse, "distance": distance + outside}


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only and in order: numba compiles anew for any other kind."""
    view = np.ascontiguousarray(array)
    if view is array and array.flags.writeable:
        view = array.view()
    view.setflags(write=False)
    return view


def unpacked(triangles: Floats, d: int) -> Floats:
    """Symmetric matrices from their upper triangles, row by row."""
    rows, columns = np.triu_indices(d)
    result = np.empty((*triangles.shape[:-1], d, d))
    result[..., rows, columns] = triangles
    result[..., columns, rows] = triangles
    return result


def packed(matrices: Floats) -> Floats:
    """The upper triangles of symmetric matrices, row by row."""
    return np.asarray(matrices[..., *np.triu_indices(matrices.shape[-1])])


def first_state(law: Floats, errors: Floats) -> Floats:
    """The rows p, m, S of walks that start from a law over the nodes with one error e = x − x*."""
    row = np.concatenate([[1.0], errors, packed(np.outer(errors, errors))])
    return np.asarray(law[:, None] * row)


def spread_of(kernel: Kernel, steps: NDArray[np.int64]) -> moments.Spread:
    """The moves of a kernel as the recursion reads them, with their probabilities at the given steps."""
    constant = kernel.fade is None
    # What does not change is one matrix; of what changes, all moves but the first share one factor.
    first = list(kernel.moves) if constant else [replace(kernel.moves[0], probability=1.0)]
    rest = [] if constant else list(kernel.moves[1:])
    total = sum(move.probability for move in rest)
    shares = np.ones((1, 2))
    if not constant:
        probabilities = kernel.probabilities(steps)
        fades = probabilities[:, 1:].sum(axis=1) / total if total > 0 else np.zeros(len(steps))
        shares = np.column_stack([probabilities[:, 0], fades])
    longest = max([move.hops for move in kernel.moves if _is_uniform(move)], default=0)
    hops = np.zeros((len(shares), longest + 1))
    drawn = np.zeros((len(shares), 1))
    laws = np.zeros(kernel.graph.n)
    for share, moves in zip(shares.T, (first, rest), strict=True):
        for move in moves:
            if _is_uniform(move):
                hops[:, move.hops] += share * move.probability
            elif move.law is not None:
                law = np.asarray(move.law)
                laws, drawn = law / law.sum(), drawn + (share * move.probability)[:, None]
    if sum(move.law is not None for move in kernel.moves) > 1:
        raise AnalysisError(f"{kernel.label}: has several moves that draw from a law, expected one at most; join them")
    messages, probes = zip(*(_traffic(kernel, moves) for moves in (first, rest)), strict=True)
    graph = kernel.graph
    hop = fixed(graph.indptr.astype(np.int64)), fixed(graph.indices), fixed((1.0 / graph.degrees)[graph.indices])
    parts = (laws if drawn.any() else np.zeros(0), messages, probes, shares, hops, drawn)
    return moments.Spread(
        _matrix(kernel, first), _matrix(kernel, rest), hop, *(fixed(np.asarray(part)) for part in parts)
    )


def _is_uniform(move: Move) -> bool:
    return move.ratio is None and move.rows is None and move.law is None


def _matrix(kernel: Kernel, moves: Sequence[Move]) -> moments.Rows:
    """The transposed sum of the moves that do not hop uniformly, weighted by their probabilities."""
    from scipy.sparse import csr_array

    powers: list[Any] = []
    parts = [
        move.probability * kernel.move_matrix(move, powers)
        for move in moves
        if not _is_uniform(move) and move.law is None and move.probability > 0
    ]
    if not parts:
        return fixed(np.zeros(0, dtype=np.int64)), fixed(np.zeros(0, dtype=np.int32)), fixed(np.zeros(0))
    matrix = csr_array(sum(parts[1:], parts[0]).T)
    return fixed(matrix.indptr.astype(np.int64)), fixed(matrix.indices.astype(np.int32)), fixed(matrix.data)


def _traffic(kernel: Kernel, moves: Sequence[Move]) -> tuple[Floats, Floats]:
    """What the given moves send from each node, weighted by their probabilities."""
    total = sum(move.probability for move in moves)
    if total == 0:
        return np.zeros(kernel.graph.n), np.zeros(kernel.graph.n)
    alone = [replace(move, probability=move.probability / total) for move in moves]
    messages, probes = messages_per_visit(Kernel(kernel.graph, alone, kernel.target, kernel.label))
    return total * messages, total * probes


def start_law(who: str, start: str | ArrayLike, n: int) -> Floats:
    """The law of the first node: of a node, of several in equal shares, a law, or uniform."""
    if isinstance(start, str):
        if start != "uniform":
            raise AnalysisError(f"{who}: start = {start!r}, expected a node, nodes, a law over the nodes, or 'uniform'")
        return np.full(n, 1.0 / n)
    try:
        values = np.asarray(start)
    except ValueError:  # rows of unequal length
        values = np.asarray(start, dtype=object)
    if values.dtype.kind in "iu" and values.ndim <= 1 and values.size:
        if values.min() < 0 or values.max() >= n:
            stray = values.min() if values.min() < 0 else values.max()
            raise AnalysisError(f"{who}: start names node {stray}, expected 0 to {n - 1}")
        return np.asarray(np.bincount(np.atleast_1d(values), minlength=n) / values.size)
    if values.dtype.kind == "f" and values.shape == (n,) and (values >= 0).all() and abs(values.sum() - 1) < 1e-9:
        return values.astype(np.float64)
    raise AnalysisError(
        f"{who}: start = {start!r}, expected a node, whole numbers that name nodes, {n} probabilities that add up "
        "to 1, or 'uniform'"
    )


def compiled() -> Callable[..., None]:
    """The recursion, compiled."""
    calls = ("learn_from_one", "learn_from_all", "learn_together", "spread_rows", "learn", "draw", "count")
    return compile_functions({"advance": moments.advance}, "advance", calls=calls)


def scratch(terms: moments.Terms, width: int) -> moments.Scratch:
    """Room for the recursion to work in; side by side go nodes of one sample each, without ridge."""
    samples, d = terms.features.shape
    # With many features the lanes leave the fastest cache, and are slower than one node after the other.
    alike = samples == len(terms.offsets) - 1 and terms.ridge == 0.0 and d <= 16
    lanes = np.zeros((4 * d + 4 + d * (d + 1) // 2, moments.LANES)) if alike else np.zeros((0, moments.LANES))
    return moments.Scratch(np.zeros((6 + d, max(width, d))), lanes)
