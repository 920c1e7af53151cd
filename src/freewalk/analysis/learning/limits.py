"""Where learning ends: the largest stable step, and the error in the limit, split into bias and variance."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from freewalk.analysis.chain.states import classes_of
from freewalk.analysis.learning import model
from freewalk.analysis.learning.groups import length_of, mean_of
from freewalk.analysis.learning.recursion import Recursion
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.linear.arrays import Floats
from freewalk.linear.krylov import operator_of, stabilised
from freewalk.linear.stationary import leaving_rates
from freewalk.objectives import LeastSquares
from freewalk.rules import SGD

_DENSE = 4000  # linear systems up to this size are solved directly if iterations fail
_SMALL = 300  # up to this size, all eigenvalues of a matrix are computed
PRECISION = 1e-12  # of the linear systems
_STRIDE = 1.03  # between two steps whose stability is checked
_MARGIN = 1e-8  # the error of eigenvalues, which can be exactly 1 at the safe step


@dataclass(frozen=True, eq=False)
class SteadyState:
    """The limit of a walk with a constant step, as t → ∞; with several tokens, that of their mean model.

    Attributes
    ----------
    loss, mse, distance
        The limits of the expected values, with the names of `record.data`.
    model
        The limit of E[x]; its difference from the optimum is the bias.
    covariance
        The limit of the covariance of x.
    excess
        loss − the optimal loss: the error gap. It equals `bias` + `variance` exactly.
    bias
        The excess of the mean model, f(E x) − f(x*): no average over walks or time removes it.
    variance
        The excess due to the scatter of the models around their mean, ½ tr(H Cov).
    consensus
        The mean squared distance of the tokens from their mean; 0 for a single token.
    """

    loss: float
    mse: float
    distance: float
    model: Floats
    covariance: Floats
    excess: float
    bias: float
    variance: float
    consensus: float = 0.0

    def __str__(self) -> str:
        """The error gap in words."""
        share = self.bias / self.excess if self.excess > 0 else 0.0
        return (
            f"loss {self.loss:.6g}, of which {self.excess:.3g} above the optimum: bias {self.bias:.3g} "
            f"({100 * share:.3g} %), variance {self.variance:.3g}"
        )


def stability_limit(problem: LeastSquares, kernel: Kernel, rule: SGD | None = None) -> float:
    """Compute the largest constant step up to which the expected error converges.

    This is where the spectral radius of the linear map of the second moments in one step first reaches 1. It is
    searched in strides of 3 %, and between them where the radius has turned.

    Parameters
    ----------
    problem, kernel
        A least-squares problem, and a kernel that does not change with time, with at most 5000 nodes.
    rule
        `fw.SGD` without averaging, whose step is ignored; None means plain weighted SGD.

    Returns
    -------
    float
        The step, to a relative precision of 1e-5. It is at least 2 / max w_v L_v, up to which no single update can
        increase an error.

    Raises
    ------
    AnalysisError
        If the problem, rule or size is not supported.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.complete(4)
    >>> problem = fw.objectives.LeastSquares([[1.0], [1.0], [1.0], [1.0]], [1.0, 2.0, 3.0, 4.0])
    >>> round(stability_limit(problem, fw.designs.SimpleWalk().kernel(graph)), 5)
    2.0
    """
    return limit_of(ready("stability_limit", problem, kernel, SGD(1.0) if rule is None else rule))


def ready(who: str, problem: LeastSquares, kernel: Kernel, rule: SGD) -> Recursion:
    """The recursion whose limit is wanted, after checking that it has one."""
    recursion = Recursion(who, problem, kernel, rule)
    classes_of(who, kernel, recursion.states, leaving_rates(recursion.matrix))
    if recursion.dim == 0:
        raise AnalysisError(f"{who}: all features of the problem are 0, expected something to learn")
    return recursion


def limit_of(recursion: Recursion) -> float:
    """The largest stable step of a recursion."""
    from scipy.optimize import brentq, minimize_scalar

    def growth(rate: float) -> float:
        return spectral_radius(recursion, rate) - 1.0 - _MARGIN

    # Nothing grows up to the safe step. From there on the first crossing is searched in strides.
    rates = [recursion.safe_step]
    values = [growth(rates[0])]
    while values[-1] <= 0:
        rates.append(_STRIDE * rates[-1])
        values.append(growth(rates[-1]))
        if rates[-1] > 1e6 * recursion.safe_step:
            return np.inf
        if len(values) > 2 and values[-3] < values[-2] > values[-1] and values[-2] > -0.1:
            # The radius has turned: its peak may have been above 1.
            peak = minimize_scalar(lambda rate: -growth(rate), bounds=(rates[-3], rates[-1]), method="bounded")
            if -peak.fun > 0:
                rates[-2:], values[-2:] = [float(peak.x)], [-float(peak.fun)]
    if len(rates) == 1:
        return rates[0]
    return float(brentq(growth, rates[-2], rates[-1], rtol=1e-5, xtol=1e-300))


def spectral_radius(recursion: Recursion, rate: float, order: int = 2) -> float:
    """The largest modulus of an eigenvalue of the linear map of the second moments or, with `order` 1, of the means."""
    n, width = recursion.n, recursion.triangle if order == 2 else recursion.dim
    size = n * width

    def apply(values: Floats) -> Floats:
        return recursion.linear_part(values.reshape(n, width), rate, order).ravel()

    if size <= _SMALL:
        matrix = np.column_stack([apply(column) for column in np.eye(size)])
        return float(np.abs(np.linalg.eigvals(matrix)).max())
    from scipy.sparse.linalg import ArpackNoConvergence, eigs

    # The map preserves positive semidefinite matrices, hence its largest eigenvalue has such an eigenvector.
    first = np.tile(model.packed(np.eye(recursion.dim)) if order == 2 else np.ones(width), n) / n
    operator = operator_of(size, apply)
    try:
        values = eigs(operator, k=1, which="LM", v0=first, ncv=24, tol=1e-8, maxiter=2000, return_eigenvectors=False)
    except ArpackNoConvergence as error:
        what = f"stability: the largest eigenvalue at step {rate:g} did not converge ({error})"
        raise AnalysisError(f"{what}; compare exact curves below and above the step instead") from error
    return float(np.abs(values).max())


def solve_limit(
    recursion: Recursion, rate: float, initial: Any = None, precision: float = PRECISION, tokens: int = 1
) -> SteadyState:
    """The fixed point of a stable recursion, for one token or several independent ones."""
    n, d, law = recursion.n, recursion.dim, recursion.law
    means = solve_means(recursion, rate, law, precision)
    start = np.hstack([law[:, None], means, np.zeros((n, recursion.triangle))])
    forced = recursion.step(start, rate)[:, 1 + d :]
    seconds = _solve(recursion, forced, rate, 2, precision)
    totals = np.concatenate([[1.0], means.sum(axis=0), seconds.sum(axis=0)])
    mean = mean_of(totals, tokens)
    apart = float(length_of(totals) - length_of(mean)) if tokens > 1 else 0.0
    return limit_at(recursion.quadratic, mean, initial, apart)


def solve_means(recursion: Recursion, rate: float, law: Floats, precision: float = PRECISION) -> Floats:
    """The fixed point of the means E[e 1_v] only."""
    start = np.hstack([law[:, None], np.zeros((recursion.n, recursion.dim))])
    forced = recursion.step(start, rate)[:, 1:]
    return _solve(recursion, forced, rate, 1, precision)


def limit_at(quadratic: model.Quadratic, totals: Floats, initial: Any = None, consensus: float = 0.0) -> SteadyState:
    """The limit whose model has these packed moments."""
    best, d = quadratic.problem.optimum(), quadratic.dim
    error = (0.0 if initial is None else initial) - best
    unseen = error - quadratic.basis @ (quadratic.basis.T @ error)
    mean = totals[1 : 1 + d]
    covariance = model.unpacked(totals[1 + d :], d) - np.outer(mean, mean)
    found = quadratic.limit(totals, covariance, float(unseen @ unseen))
    if found["variance"] < -1e-6 * abs(found["excess"]) - 1e-14 * found["loss"]:
        why = "the features differ too much in scale, or the step is too small. Scale them alike, or run exact_curve"
        raise AnalysisError(f"steady_state: rounding leaves a variance of {found['variance']:.2g}: {why}")
    return SteadyState(**found, model=best + unseen + quadratic.basis @ mean, consensus=consensus)


def _solve(recursion: Recursion, right: Floats, rate: float, order: int, precision: float) -> Floats:
    """Solve x − linear_part(x) = right by BiCGSTAB, or directly if that fails and the system is small."""
    scale = np.abs(right).max()
    if scale == 0:
        return np.zeros_like(right)
    pull = order * rate * recursion.rule.local_steps * np.trace(recursion.quadratic.hessian) / recursion.dim
    # Except at the few nodes where an update is long, the map is close to that of the walk alone times a decay; the
    # inverse of that, or an approximation of it, is the preconditioner.
    discounted = recursion.discounted(min(max(pull, 1e-12), 0.5))
    shape, size = right.shape, right.size
    wanted = right.ravel() / scale

    def operator(values: Floats) -> Floats:
        return values - recursion.linear_part(values.reshape(shape), rate, order).ravel()

    def inverse(values: Floats) -> Floats:
        return discounted(values.reshape(shape)).ravel()

    solution, residual = np.zeros(size), wanted
    smallest = size_of_right = float(np.linalg.norm(wanted))
    stuck = 0
    while stuck < 3:  # refinement: the residual of the iteration drifts from the true one
        solution = solution + stabilised(operator, inverse, residual, max(1e-9, 0.1 * precision), rounds=400)
        residual = wanted - operator(solution)
        if _is_solved(residual, solution, size_of_right, precision):
            return np.asarray(solution.reshape(shape) * scale)
        left = float(np.linalg.norm(residual))
        if not left < 1e3 * size_of_right:
            break
        stuck = 0 if left < 0.5 * smallest else stuck + 1
        smallest = min(smallest, left)
    if size <= _DENSE:
        matrix = np.column_stack([operator(column) for column in np.eye(size)])
        with suppress(np.linalg.LinAlgError):  # singular, as for a step far beyond the stability limit
            solution = np.linalg.solve(matrix, wanted)
            residual = wanted - operator(solution)
            if _is_solved(residual, solution, size_of_right, max(precision, 1e-9)):
                return np.asarray(solution.reshape(shape) * scale)
    why = "importance or steps span too many orders of magnitude, or the step is near the stability limit, or beyond"
    raise AnalysisError(f"steady_state: the system for step {rate:g} did not converge: {why}. Run exact_curve")


def _is_solved(residual: Floats, solution: Floats, size_of_right: float, precision: float) -> bool:
    """Whether a residual is as small as wanted, or as the rounding of a long solution allows: small steps have one."""
    allowance = 2e-15 * float(np.linalg.norm(solution))
    if allowance > 1e-6 * size_of_right:
        raise AnalysisError(
            "steady_state: the step is so small that the limit is lost to rounding; expected a step at which the model "
            "forgets its start within some hundred million updates. small_step_law gives the limit for smaller ones"
        )
    return float(np.linalg.norm(residual)) <= precision * size_of_right + allowance
