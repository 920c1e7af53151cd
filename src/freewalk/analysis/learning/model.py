"""A least-squares problem as the second-moment recursion reads it, around its optimum, and the first state."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.analysis.chain.chain import check
from freewalk.analysis.learning.moments import LocalTerms
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.linear.arrays import Floats
from freewalk.objectives import LeastSquares, Objective
from freewalk.objectives.samples import by_node
from freewalk.rules import SGD, Rule
from freewalk.schedules import Constant, Schedule

#: The maximum number of values in a state (1.6 GB, and the recursion holds four).
LARGEST = 200_000_000


def check_problem(who: str, problem: Objective) -> LeastSquares:
    """Check that the problem is least squares."""
    expected = "a LeastSquares problem, whose moments follow a recursion; simulate others: fw.learn(..., walks=1000)"
    return check.instance(who, "problem", problem, LeastSquares, expected)


def check_rule(who: str, rule: Rule | None) -> SGD:
    """Check that the moments of a rule follow a recursion."""
    expected = "fw.SGD(step=...) without averaging; simulate other rules with fw.learn(..., walks=1000)"
    found = check.instance(who, "rule", rule, SGD, expected)
    if found.average or found.update is not SGD(step=1.0).update:  # a user-defined class may update differently
        raise check.fail(who, "rule", rule, expected)
    return found


def check_size(who: str, rows: int, d: int, what: str = "nodes") -> int:
    """The number of moments of d features, (d + 1)(d + 2)/2, or an error if this many rows of them are too many."""
    width = (d + 1) * (d + 2) // 2
    if rows * width > LARGEST:
        state = f"{rows} {what} and {d} features make a state of {rows * width:,} numbers"
        raise AnalysisError(f"{who}: {state}, expected at most {LARGEST:,}. Simulate it: fw.learn(..., walks=1000)")
    return width


def constant_step(who: str, rule: SGD) -> float:
    """The step of a rule with a constant step."""
    if isinstance(rule.step, Schedule) and not isinstance(rule.step, Constant):
        raise check.fail(who, "rule", rule, "a constant step: a limit belongs to one step")
    return float(rule.rates(np.zeros(1, dtype=np.int64))[0])


def first_model(who: str, initial: ArrayLike | None, dim: int) -> Floats:
    """The initial model; None means the zero model."""
    return np.zeros(dim) if initial is None else check.floats(who, "initial", initial, (dim,))


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A least-squares problem around its optimum, in the coordinates spanned by its data.

    If the features span less than the whole space and there is no ridge, nothing changes outside their span: `basis`
    then has fewer columns than rows, and the recursion runs inside the span.
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
        """The Hessian of f."""
        return self.spread_of_features + self.problem.ridge * np.eye(self.dim)

    @cached_property
    def spread_of_features(self) -> Floats:
        """Ĉ = Σ a aᵀ / (n m_v): the Hessian of f without its ridge, half of that of the mse."""
        return np.asarray(self.features.T @ (self.problem.sample_weights[:, None] * self.features))

    @cached_property
    def hessians(self) -> Floats:
        """The Hessians of f_v, by node, without the factor, which is in `step_weights`."""
        shares = self._shares[:, None, None]
        owned = shares * self.features[:, :, None] * self.features[:, None, :]
        return by_node(owned, self.problem.offsets) + self.problem.ridge * np.eye(self.dim)

    @cached_property
    def gradients(self) -> Floats:
        """∇f_v(x*), by node, without the factor."""
        owned = (self._shares * self.residuals)[:, None] * self.features
        return by_node(owned, self.problem.offsets) + self.problem.ridge * self.optimum

    @cached_property
    def smoothness(self) -> Floats:
        """L_v, by node, without the factor; 0 at a relay."""
        factors = self.problem.node_weights
        return np.divide(self.problem.smoothness, factors, out=np.zeros(self.problem.n), where=factors > 0)

    @property
    def _shares(self) -> Floats:
        """1/m_v by sample."""
        counts = np.diff(self.problem.offsets)
        return np.asarray(1.0 / np.repeat(counts, counts))

    def step_weights(self, kernel: Kernel, rule: SGD) -> Floats:
        """The factor of the step at each node: the kernel's weight and the factor of f_v."""
        return np.asarray(self.problem.node_weights * (kernel.weights if rule.weighted else 1.0))

    @cached_property
    def optimum(self) -> Floats:
        """x* in these coordinates."""
        return np.asarray(self.basis.T @ self.problem.optimum())

    def terms(self, sampled: bool, nodes: NDArray[Any] | None = None) -> LocalTerms:
        """The input of the recursion, by node or, with `nodes`, by row: a list of nodes, or of their states."""
        terms = self._terms_by_node(sampled)
        if nodes is None or np.array_equal(nodes, np.arange(self.problem.n)):
            return terms
        counts = np.diff(terms.offsets)[nodes]
        ends = np.cumsum(counts)
        samples = np.arange(ends[-1]) + np.repeat(terms.offsets[nodes] - (ends - counts), counts)
        whole = terms.hessians.shape[0] > 0
        return terms._replace(
            features=fixed(terms.features[samples]),
            residuals=fixed(terms.residuals[samples]),
            offsets=fixed(np.append(0, ends)),
            hessians=fixed(terms.hessians[nodes]) if whole else terms.hessians,
            gradients=fixed(terms.gradients[nodes]) if whole else terms.gradients,
        )

    def _terms_by_node(self, sampled: bool) -> LocalTerms:
        """By node; a gradient of several samples at once needs full Hessians."""
        whole = not sampled and bool((np.diff(self.problem.offsets) > 1).any())
        empty = np.zeros((0, self.dim, self.dim)), np.zeros((0, self.dim))
        hessians, gradients = (self.hessians, self.gradients) if whole else empty
        return LocalTerms(
            features=fixed(self.features),
            residuals=fixed(self.residuals),
            offsets=fixed(self.problem.offsets),
            optimum=fixed(self.optimum),
            ridge=float(self.problem.ridge),
            hessians=fixed(hessians),
            gradients=fixed(gradients),
        )

    def measures(self, totals: Floats, outside: float) -> dict[str, Floats]:
        """Loss, mse and distance of states summed over the nodes; `outside` is the squared error outside the span."""
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

    def limit(self, totals: Floats, covariance: Floats, outside: float) -> dict[str, Any]:
        """The measures of a limit with these moments, the covariance of its model, and its error gap in two parts."""
        mean = totals[1 : 1 + self.dim]
        measures = {name: float(values[0]) for name, values in self.measures(totals[None], outside).items()}
        return {
            **measures,
            "covariance": self.basis @ covariance @ self.basis.T,
            "excess": measures["loss"] - float(self.problem.loss(self.problem.optimum())),
            "bias": float(0.5 * mean @ self.hessian @ mean),
            "variance": float(0.5 * np.sum(self.hessian * covariance)),
        }


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only and contiguous: numba would recompile for any other kind."""
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
    """The rows p, m, S of walks that start from a distribution over the nodes with one error e = x − x*."""
    row = np.concatenate([[1.0], errors, packed(np.outer(errors, errors))])
    return np.asarray(law[:, None] * row)


def start_law(who: str, start: str | ArrayLike | None, graph: Graph, importance: Floats) -> Floats:
    """The distribution of the start node: one node, several with equal probability, as given, uniform, or heaviest."""
    if start is None or (isinstance(start, str) and start == "uniform"):
        return np.full(graph.n, 1.0 / graph.n)
    if isinstance(start, str) and start == "heaviest":
        start = int(importance.argmax())
    expected = f"a node, several nodes, {graph.n} probabilities that add up to 1, 'uniform' or 'heaviest'"
    if is_distribution(start):
        law = check.floats(who, "start", start, (graph.n,), low=0.0, remedy=f"give {expected}")
        if abs(law.sum() - 1) > 1e-9:
            raise check.fail(who, "start", start, expected)
        return law
    nodes = arguments.nodes_of(who, "start", start, graph, expected, check)
    if nodes.ndim > 1 or not nodes.size:
        raise check.fail(who, "start", start, expected)
    return np.asarray(np.bincount(np.atleast_1d(nodes), minlength=graph.n) / nodes.size)


def is_distribution(start: Any) -> bool:
    """Whether a start is meant as probabilities, not as nodes."""
    try:
        return bool(np.asarray(start).dtype.kind == "f")
    except Exception:  # rows of unequal length, or not an array: reported by the code that reads nodes
        return False
