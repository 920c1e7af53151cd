"""The paper's three assumptions, checked on a problem."""

from dataclasses import dataclass

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
        μ of Assumption 2 in the usual convention, f_v(y) ≥ f_v(x) + ⟨∇f_v(x), y − x⟩ + μ/2 ‖y − x‖², which Lemma 1
        uses. The paper prints it without the ½; its μ would be half of this one.
    gradient_bound
        σ_*² of Assumption 3: the largest ‖∇f_v(x*)‖².
    holds
        Whether Theorem 1 applies.
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
        A least-squares or logistic problem.

    Returns
    -------
    Assumptions
        The best constants, and what fails. For logistic losses L_v is the problem's `smoothness`, ¼ λ_max(A_vᵀA_v /
        m_v) + ridge, and μ is the ridge.

    Raises
    ------
    AnalysisError
        If it is neither a least-squares nor a logistic problem.
    ProblemError
        If the loss has no minimum, such as a logistic loss without ridge on linearly separable labels.

    References
    ----------
    Liu, El Rouayheb, Dwyer, *The entrapment problem in random walk decentralized learning*, 2024, appendix A.

    Examples
    --------
    One sample per node bends in one direction only; ridge bends all of them:

    >>> import freewalk as fw
    >>> assumptions(fw.objectives.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0])).holds
    False
    >>> print(assumptions(fw.objectives.LeastSquares([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0], ridge=0.5)))
    1 smoothness       L_min = 1.5, mean L = 3, L_max = 4.5
    2 convexity        μ = 0.5 (with the ½)
    3 gradients at x*  σ² = 1.203
    all hold
    """
    return assumptions_of(losses_of("assumptions", problem))


def assumptions_of(losses: Losses) -> Assumptions:
    """The assumptions for losses that have already been read."""
    convexity, smoothness = losses.curvatures.T
    failures = []
    if losses.flatness:
        failures.append(
            f"strong convexity: μ = 0, since {losses.flatness}; Theorem 1 says nothing then (a ridge > 0 makes it hold)"
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
