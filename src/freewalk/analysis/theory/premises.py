"""The premises of the theory: a problem and a kernel, what is read of them, and the paper's three assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import check, check_fit, matrix_of, stationary
from freewalk.analysis.chain.mixing_time import MixingTime, mixing_time_of
from freewalk.analysis.learning.model import start_law
from freewalk.blocks import blocks
from freewalk.designs.kernel import Kernel
from freewalk.linear.arrays import Floats, Ints
from freewalk.objectives import LeastSquares, Logistic, Objective, Predictor
from freewalk.objectives.samples import by_node

_BLOCK = 2**21  # floats that a block of nodes may take at a time: 16 MB


@dataclass(frozen=True, eq=False)
class Losses:
    """The properties of each local loss f_v that the theory needs."""

    # μ_v and L_v, one row per node: all eigenvalues of the Hessian of f_v lie between them, at every model. For least
    # squares they are the smallest and the largest eigenvalue.
    curvatures: Floats
    flatness: str  # why the smallest μ_v is 0; empty if it is not
    gradients: Floats  # ∇f_v(x*), one row per node
    optimum: Floats  # x*, the minimiser of the mean of all f_v

    @property
    def gradient_bound(self) -> float:
        """σ_*² = max_v ‖∇f_v(x*)‖²: the smallest constant of Assumption 3."""
        return float((self.gradients**2).sum(axis=1).max())


def losses_of(who: str, problem: Objective) -> Losses:
    """Read a least-squares or logistic problem; of others, the convexity of the losses is not known."""
    expected = "a fw.objectives.LeastSquares or Logistic problem, whose convexity is known; for others run fw.learn"
    found: LeastSquares | Logistic = check.instance(who, "problem", problem, (LeastSquares, Logistic), expected)
    optimum = found.optimum()
    counts = np.diff(found.offsets)
    slopes = np.asarray(np.frompyfunc(found.slope, 2, 1)(found.features @ optimum, found.targets), dtype=np.float64)
    pulls = (slopes / np.repeat(counts, counts))[:, None] * found.features
    factors = found.node_weights[:, None]
    gradients = factors * (by_node(pulls, found.offsets) + found.ridge * optimum)
    spectra = _spectra(found, counts)
    # The infimum of the second derivative in the prediction; the largest value is `curvature`.
    flattest = 1.0 if isinstance(found, LeastSquares) else 0.0
    lowest = factors * (flattest * spectra + found.ridge)
    curvatures = np.column_stack([lowest[:, 0], factors[:, 0] * (found.curvature * spectra[:, -1] + found.ridge)])
    return Losses(curvatures, _flatness(found, lowest), gradients, optimum)


class Setting:
    """A problem and a kernel that fit each other, as the lemmas and the theorem read them."""

    def __init__(self, who: str, problem: Objective, kernel: Kernel) -> None:
        check_fit(who, problem, kernel)
        self.who, self.problem, self.kernel = who, problem, kernel
        self.losses = losses_of(who, problem)
        self.pulls = np.asarray(kernel.weights[:, None] * self.losses.gradients)  # w_v ∇f_v(x*), by node
        self.curvatures = np.asarray(kernel.weights[:, None] * self.losses.curvatures)  # w_v μ_v and w_v L_v, by node
        self.largest = float(kernel.weights.max()) ** 2 * self.losses.gradient_bound  # M² = w_max² σ_*²

    @cached_property
    def bias(self) -> float:
        """‖E_ν[w_v ∇f_v(x*)]‖²: the squared mean pull of a visit in the long run; 0 if the walk samples its target."""
        return float(((stationary(self.kernel, who=self.who) @ self.pulls) ** 2).sum())

    def mixing_time(self, given: float | None) -> MixingTime:
        """The mixing time, given or computed; infinite for a periodic walk, and if no bound is found."""
        if given is None:
            return mixing_time_of(self.who, self.kernel)
        known = check.real(self.who, "mixing", given, 1.0, finite=False, remedy="None computes it")
        return given if isinstance(given, MixingTime) else MixingTime(known)

    def first_law(self, start: str | ArrayLike) -> Floats | None:
        """The distribution of the first node; None stands for the worst one."""
        named = start if isinstance(start, str) else ""
        if named in ("worst", "stationary"):
            return None if named == "worst" else stationary(self.kernel, who=self.who)
        return start_law(self.who, start, self.kernel.graph, self.problem.smoothness)

    def sums(self) -> Iterator[tuple[Floats, Floats]]:
        """M_k and B_k by first node, for k = 1, 2, …: the means of the sum of k pulls, and of its square."""
        matrix, squares = matrix_of(self.who, self.kernel), (self.pulls**2).sum(axis=1)
        means, errors = self.pulls, squares
        while True:
            yield means, errors
            ahead = matrix @ np.column_stack([means, errors])
            means = self.pulls + ahead[:, :-1]
            errors = squares + 2.0 * np.einsum("vi,vi->v", self.pulls, ahead[:, :-1]) + ahead[:, -1]


def over_starts(values: Floats, law: Floats | None) -> float:
    """The mean over the first node, or the largest value if no distribution is given."""
    return float(values.max() if law is None else law @ values)


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
        return (
            f"1 smoothness       L_min = {self.smallest_smoothness:.4g}, mean L = {self.mean_smoothness:.4g}, "
            f"L_max = {self.largest_smoothness:.4g}\n"
            f"2 convexity        μ = {self.convexity:.4g} (with the ½)\n"
            f"3 gradients at x*  σ² = {self.gradient_bound:.4g}\n"
            + ("all hold" if self.holds else f"do not hold: {'; '.join(self.failures)}")
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
    Liu, El Rouayheb, Dwyer, 2024, appendix A. Title and journal version: `freewalk.designs.MHLJ`.

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
    failure = f"strong convexity: μ = 0, since {losses.flatness}; Theorem 1 then says nothing (a ridge > 0 would help)"
    return Assumptions(
        smallest_smoothness=float(smoothness.min()),
        mean_smoothness=float(smoothness.mean()),
        largest_smoothness=float(smoothness.max()),
        convexity=float(convexity.min()),
        gradient_bound=losses.gradient_bound,
        holds=not losses.flatness,
        failures=(failure,) if losses.flatness else (),
    )


def _flatness(problem: LeastSquares | Logistic, lowest: Floats) -> str:
    """Why μ = 0, if it is."""
    if lowest.min() > 0:
        return ""
    if problem.relays:
        return f"node {problem.relays[0]} is a relay, whose loss is 0"
    if isinstance(problem, Logistic):
        return "a logistic loss flattens out where its predictions are confident"
    node = int(np.argmin(lowest[:, 0]))
    return f"the loss of node {node} is flat in {int((lowest[node] == 0).sum())} of {problem.dim} directions"


def _spectra(problem: Predictor, counts: Ints) -> Floats:
    """All eigenvalues of A_vᵀA_v / m_v, in increasing order; m < d samples leave d − m of them at exactly 0."""
    dim = problem.dim
    result = np.zeros((problem.n, dim))
    for count in np.unique(counts[counts > 0]):
        nodes = np.flatnonzero(counts == count)
        side = min(int(count), dim)
        for some in blocks(len(nodes), int(count) * dim + side * side, _BLOCK):
            part = nodes[some]
            rows = problem.features[problem.offsets[part, None] + np.arange(count)]
            turned = rows.transpose(0, 2, 1)
            gram = rows @ turned if count <= dim else turned @ rows
            result[part, dim - side :] = np.linalg.eigvalsh(gram) / count
    # Values that are small relative to the largest are rounded zeros.
    result[result <= dim * np.finfo(float).eps * result[:, -1:]] = 0.0
    return result
