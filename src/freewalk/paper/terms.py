"""Exact errors for the terms of Theorem 1: after any number of updates, in the limit, and what they depend on."""

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis import kemeny_constant, stationary
from freewalk.analysis.learning.model import first_state
from freewalk.analysis.learning.recursion import Recursion
from freewalk.analysis.theory import assumptions
from freewalk.designs.kernel import Kernel
from freewalk.objectives import LeastSquares
from freewalk.rules import SGD


def shortest_run(problem: LeastSquares, mixing: float) -> float:
    """The number of updates above which the theorem admits a step, τ σ_*² L̄ / (‖x⁰ − x*‖² μ²), from the zero model."""
    known, optimum = assumptions(problem), problem.optimum()
    noise = mixing * known.gradient_bound * known.mean_smoothness
    return float(noise / (optimum @ optimum * known.convexity**2))


def theorem_step(problem: LeastSquares, mixing: float, updates: float) -> float:
    """The step of Theorem 1 for a run of T updates, min{1/L̄, ln(T / shortest run) / (Tμ)}; NaN for shorter runs."""
    known, shortest = assumptions(problem), shortest_run(problem, mixing)
    if updates <= shortest:
        return np.nan
    return float(min(1.0 / known.mean_smoothness, np.log(updates / shortest) / (updates * known.convexity)))


def error_after(problem: LeastSquares, kernel: Kernel, step: float, doublings: int) -> float:
    """E‖x_T − x*‖² for T = 2^doublings, from the zero model at a uniformly random node, exactly.

    One update maps the moments of the error linearly. Squaring the matrix of that map takes `doublings` products where
    `exact_curve` would take T steps.
    """
    recursion = Recursion("theorem-1-rate", problem, kernel, SGD(step))
    start = first_state(np.full(problem.n, 1.0 / problem.n), -recursion.quadratic.optimum)
    shape, size = start.shape, start.size
    matrix = np.column_stack([recursion.step(one.reshape(shape), step).ravel() for one in np.eye(size)])
    for _ in range(doublings):
        matrix = matrix @ matrix
    totals = (matrix @ start.ravel()).reshape(shape).sum(axis=0)
    return float(recursion.quadratic.measures(totals[None], 0.0)["distance"][0])


def gap_of(problem: LeastSquares, kernel: Kernel) -> float:
    """‖x_ν − x*‖² with x_ν = argmin Σ ν_v w_v f_v, ν the stationary distribution: what remains as T → ∞ and γ → 0."""
    shares = stationary(kernel) * kernel.weights
    hessian = problem.features.T @ (shares[:, None] * problem.features)
    hessian += shares.sum() * problem.ridge * np.eye(problem.dim)
    away = np.linalg.solve(hessian, problem.features.T @ (shares * problem.targets)) - problem.optimum()
    return float(away @ away)


def mean_memory(kernel: Kernel) -> float:
    """The integrated autocorrelation time (1 + λ)/(1 − λ), averaged over all eigenvalues λ of the chain but 1."""
    return 2.0 * kemeny_constant(kernel) / (kernel.graph.n - 1) - 1.0


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """The exponent of the power law that fits best: the slope of ln y against ln x."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])
