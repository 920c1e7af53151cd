"""The paper's three assumptions, checked on a problem."""

from dataclasses import dataclass

import numpy as np

from freewalk.analysis.theory.losses import Losses, losses_of
from freewalk.objectives import Objective


@dataclass(frozen=True)
class Assumptions:
    """The constants of the assumptions, and which of them fail.

    Parameters
    ----------
    smallest_smoothness, mean_smoothness, largest_smoothness
        L_min, L̄ and L_max of Assumption 1: ‖∇f_v(x) − ∇f_v(y)‖ ≤ L_v ‖x − y‖.
    convexity
        μ of Assumption 2 in the usual convention, f_v(y) ≥ f_v(x) + ⟨∇f_v(x), y − x⟩ + μ/2 ‖y − x‖²: the one that
        Lemma 1 takes. The paper prints it without the ½; its μ would be half of this one.
    gradient_bound
        σ_*² of Assumption 3: the largest ‖∇f_v(x*)‖².
    holds
        Whether Theorem 1 can say anything.
    failures
        Why not, in words.
    """

    smallest_smoothness: float
    mean_smoothness: float
    largest_smoothness: float
    convexity: float
    gradient_bound: float
    holds: bool
    failures: tuple[str, ...]

    def __str__(self) -> str:
        """The constants, and the verdict."""
        return "\n".join(
            [
                f"1 smoothness       L_min = {self.smallest_smoothness:.4g}, mean L = {self.mean_smoothness:.4g}, "
                f"L_max = {self.largest_smoothness:.4g}",
                f"2 convexity        μ = {self.convexity:.4g} (with the ½)",
                f"3 gradients at x*  σ² = {self.gradient_bound:.4g}",
                "all hold" if self.holds else "do not hold: " + "; ".join(self.failures),
            ]
        )


def assumptions(problem: Objective) -> Assumptions:
    """Check the paper's assumptions: smooth and strongly convex local losses, bounded gradients at the optimum.

    Parameters
    ----------
    problem
        A least-squares problem.

    Returns
    -------
    Assumptions
        The best constants, and what fails.

    Raises
    ------
    AnalysisError
        If it is not a least-squares problem.

    References
    ----------
    Liu, El Rouayheb, Dwyer, *The entrapment problem in random walk decentralized learning*, 2024, appendix A.

    Examples
    --------
    One sample a node bends in one direction only; ridge bends all of them:

    >>> import freewalk as fw
    >>> assumptions(fw.objectives.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0])).holds
    False
    >>> print(assumptions(fw.objectives.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0], ridge=0.5)))
    1 smoothness       L_min = 1.5, mean L = 3, L_max = 4.5
    2 convexity        μ = 0.5 (with the ½)
    3 gradients at x*  σ² = 1.203
    all hold
    """
    losses = losses_of("assumptions", problem)
    return assumptions_of(problem, losses)


def assumptions_of(problem: Objective, losses: Losses) -> Assumptions:
    """The assumptions for losses that were read before."""
    smoothness, convexity = losses.curvatures[:, -1], losses.curvatures[:, 0]
    failures = []
    if convexity.min() == 0:
        node = int(np.argmin(convexity))
        flat = int((losses.curvatures[node] == 0).sum())
        failures.append(
            f"strong convexity: μ = 0, since the loss of node {node} is flat in {flat} of {problem.dim} directions; "
            "Theorem 1 says nothing then (a ridge > 0 makes it hold)"
        )
    return Assumptions(
        smallest_smoothness=float(smoothness.min()),
        mean_smoothness=float(smoothness.mean()),
        largest_smoothness=float(smoothness.max()),
        convexity=float(convexity.min()),
        gradient_bound=losses.gradient_bound,
        holds=not failures,
        failures=tuple(failures),
    )
