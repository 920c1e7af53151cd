"""The local losses as the theory reads them: their curvatures, and their gradients at the optimum."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.analysis.chain.chain import check
from freewalk.objectives import LeastSquares, Logistic, Objective, Predictor
from freewalk.objectives.samples import by_node

Floats = NDArray[np.float64]

_BLOCK = 2**21  # floats that a block of nodes may take at a time: 16 MB


@dataclass(frozen=True, eq=False)
class Losses:
    """The properties of each f_v that the theory needs.

    Parameters
    ----------
    curvatures
        μ_v and L_v, one row per node: all eigenvalues of the Hessian of f_v lie between them, at every model. For least
        squares they are the smallest and the largest eigenvalue.
    flatness
        Why the smallest μ_v is 0; empty if it is not.
    gradients
        ∇f_v(x*), one row per node.
    optimum
        x*, the minimiser of the mean of all f_v.
    """

    curvatures: Floats
    flatness: str
    gradients: Floats
    optimum: Floats

    @property
    def gradient_bound(self) -> float:
        """σ_*² = max_v ‖∇f_v(x*)‖²: the smallest constant of Assumption 3."""
        return float((self.gradients**2).sum(axis=1).max())


def losses_of(who: str, problem: Objective) -> Losses:
    """Read a least-squares or logistic problem.

    Raises
    ------
    AnalysisError
        If it is another problem: nothing is known about the convexity of its losses.
    """
    expected = (
        "a fw.objectives.LeastSquares or fw.objectives.Logistic problem, for which the convexity of each local "
        "loss is known; for other losses run fw.learn"
    )
    found: LeastSquares | Logistic = check.instance(who, "problem", problem, (LeastSquares, Logistic), expected)
    return _read(found)


def _read(problem: LeastSquares | Logistic) -> Losses:
    optimum = problem.optimum()
    counts = np.diff(problem.offsets)
    errors = np.frompyfunc(problem.slope, 2, 1)(problem.features @ optimum, problem.targets)
    slopes = np.asarray(errors, dtype=np.float64)
    pulls = (slopes / np.repeat(counts, counts))[:, None] * problem.features
    factors = problem.node_weights[:, None]
    gradients = factors * (by_node(pulls, problem.offsets) + problem.ridge * optimum)
    spectra = _spectra(problem, counts)
    # The infimum of the second derivative in the prediction; the largest value is `curvature`.
    flattest = 1.0 if isinstance(problem, LeastSquares) else 0.0
    lowest = factors * (flattest * spectra + problem.ridge)
    curvatures = np.column_stack([lowest[:, 0], factors[:, 0] * (problem.curvature * spectra[:, -1] + problem.ridge)])
    return Losses(curvatures, _flatness(problem, lowest), gradients, optimum)


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


def _spectra(problem: Predictor, counts: NDArray[np.int64]) -> Floats:
    """All eigenvalues of A_vᵀA_v / m_v, in increasing order; m < d samples leave d − m of them at exactly 0."""
    dim = problem.dim
    result = np.zeros((problem.n, dim))
    for count in np.unique(counts[counts > 0]):
        nodes = np.flatnonzero(counts == count)
        side = min(int(count), dim)
        size = max(1, _BLOCK // (int(count) * dim + side * side))
        for begin in range(0, len(nodes), size):
            part = nodes[begin : begin + size]
            rows = problem.features[problem.offsets[part, None] + np.arange(count)]
            turned = rows.transpose(0, 2, 1)
            gram = rows @ turned if count <= dim else turned @ rows
            result[part, dim - side :] = np.linalg.eigvalsh(gram) / count
    # Values that are small relative to the largest are rounded zeros.
    result[result <= dim * np.finfo(float).eps * result[:, -1:]] = 0.0
    return result
