"""The limit for small steps: where the mean model ends, and how it scatters around that."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from freewalk.analysis.chain.chain import check_dense, check_fit, states_and_matrix, stationary
from freewalk.analysis.chain.spectrum import spectral_gap
from freewalk.analysis.learning import model
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError, FreewalkWarning
from freewalk.linear.arrays import Floats, Matrix
from freewalk.objectives import LeastSquares
from freewalk.objectives.samples import by_node
from freewalk.rules import SGD

#: Above this `product` a warning is issued.
LARGEST_PRODUCT = 0.05


@dataclass(frozen=True, eq=False)
class SmallStepLaw:
    """The steady state to first order in the step γ.

    Attributes
    ----------
    loss, mse, distance
        The predicted limits, with the names of `record.data`.
    model
        argmin Σ ν_v w_v f_v, the limit of the mean model.
    covariance
        γ Σ, the covariance around it, where H Σ + Σ H = Γ.
    noise
        Γ, the covariance of the gradients summed along the walk: the smaller its trace, the larger a step may be.
    excess, bias, variance
        The error gap and its two parts, as in `SteadyState`.
    product
        γ · max(λ_max(H) × relaxation time, max w_v L_v): small if the walk mixes much faster than the model moves, and
        no single update is long.
    applies
        Whether `product` is at most 0.05; the error gap is then accurate to about 15 %.
    """

    loss: float
    mse: float
    distance: float
    model: Floats
    covariance: Floats
    noise: Floats
    excess: float
    bias: float
    variance: float
    product: float
    applies: bool


def small_step_law(problem: LeastSquares, kernel: Kernel, rule: SGD) -> SmallStepLaw:
    """Compute the limit of a walk with a small constant step: E x → argmin Σ ν_v w_v f_v and Cov → γ Σ, H Σ + Σ H = Γ.

    ν is the stationary distribution, w the weights, G_v = w_v ∇f_v at that minimiser, H = Σ ν_v w_v ∇²f_v, and Γ = X +
    Xᵀ − Gᵀ D_ν G with X = Gᵀ D_ν Z G the covariance of the gradients summed along the walk.

    Parameters
    ----------
    problem, kernel
        A least-squares problem, and a kernel that does not change with time, with at most 5000 nodes.
    rule
        `fw.SGD` with a constant step, without averaging.

    Returns
    -------
    SmallStepLaw
        With a warning if the step is too large: `steady_state` is exact for every step.

    Raises
    ------
    AnalysisError
        If the problem, rule or size is not supported.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.complete(20)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, seed=1)
    >>> kernel = fw.designs.Metropolis(power=1).kernel(graph, problem.smoothness)
    >>> law, limit = (f(problem, kernel, fw.SGD(1e-3)) for f in (small_step_law, fw.analysis.steady_state))
    >>> law.applies, bool(abs(law.excess / limit.excess - 1) < 0.01)
    (True, True)
    """
    who = "small_step_law"
    quadratic = model.Quadratic(model.check_problem(who, problem))
    step = model.constant_step(who, model.check_rule(who, rule))
    check_fit(who, problem, kernel, last_node=True)
    check_dense(who, problem.n, "run exact_curve until it is flat")
    states, matrix = states_and_matrix(who, kernel)
    check_dense(who, states.nodes.size, "run exact_curve until it is flat", "pairs of nodes")
    law = stationary(kernel, who=who)
    weights = quadratic.step_weights(kernel, rule)
    pull = np.einsum("v,vij->ij", law * weights, quadratic.hessians)
    if quadratic.dim == 0 or np.linalg.matrix_rank(pull) < quadratic.dim:
        raise AnalysisError(f"{who}: the weighted problem has no single minimiser; a little ridge gives it one")
    mean = -np.linalg.solve(pull, (law * weights) @ quadratic.gradients)
    gradients = weights[:, None] * (quadratic.gradients + quadratic.hessians @ mean)
    noise = rule.local_steps**2 * _summed_covariance(matrix, states.lifted(law), gradients[states.nodes])
    if rule.sampled:
        noise = noise + rule.local_steps * _within(quadratic, law * weights**2, mean)
    drift = rule.local_steps * pull
    covariance = step * _lyapunov(drift, noise)
    totals = np.concatenate([[1.0], mean, model.packed(covariance + np.outer(mean, mean))])
    longest = rule.local_steps * float((weights * quadratic.smoothness).max())
    product = step * max(float(np.linalg.eigvalsh(drift)[-1]) / spectral_gap(kernel), longest)
    applies = product <= LARGEST_PRODUCT
    if not applies:
        warnings.warn(
            f"{who}: the step is {product / LARGEST_PRODUCT:.3g} times too large: the model moves before the walk has "
            "mixed, and the true limit can be far from this approximation. Use steady_state, or a smaller step",
            FreewalkWarning,
            stacklevel=2,
        )
    return SmallStepLaw(
        **quadratic.limit(totals, covariance, outside=0.0),
        model=problem.optimum() + quadratic.basis @ mean,
        noise=quadratic.basis @ noise @ quadratic.basis.T,
        product=product,
        applies=applies,
    )


def _summed_covariance(matrix: Matrix, law: Floats, values: Floats) -> Floats:
    """Sum over all lags of the covariance of values along a stationary walk, by the fundamental matrix."""
    centred = values - law @ values
    dense = np.eye(law.size) - matrix.toarray() + law
    summed = (law[:, None] * centred).T @ np.linalg.solve(dense, centred)
    return np.asarray(summed + summed.T - (law[:, None] * centred).T @ centred)


def _within(quadratic: model.Quadratic, shares: Floats, mean: Floats) -> Floats:
    """The covariance of single-sample gradients around the gradient of their node, at the minimiser."""
    offsets, features = quadratic.problem.offsets, quadratic.features
    counts = np.diff(offsets)
    single = (quadratic.residuals + features @ mean)[:, None] * features
    owner = np.repeat(np.arange(counts.size), counts)
    centred = single - by_node(single, offsets)[owner] / counts[owner, None]
    return np.asarray(((shares[owner] / counts[owner])[:, None] * centred).T @ centred)


def _lyapunov(drift: Floats, noise: Floats) -> Floats:
    """Solve H Σ + Σ H = Γ for Σ."""
    values, vectors = np.linalg.eigh(drift)
    turned = vectors.T @ noise @ vectors
    return np.asarray(vectors @ (turned / (values[:, None] + values[None, :])) @ vectors.T)
