"""The local losses as the theory reads them: their curvatures and their gradients at the optimum."""

import reprlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.errors import AnalysisError
from freewalk.objectives import LeastSquares, Objective

Floats = NDArray[np.float64]

_BLOCK = 2**21  # floats that a block of nodes may take at a time: 16 MB


@dataclass(frozen=True, eq=False)
class Losses:
    """What the theory needs of each f_v.

    Parameters
    ----------
    curvatures
        The eigenvalues of the Hessian of f_v, growing, one row a node.
    gradients
        ∇f_v(x*), one row a node.
    optimum
        x*, the minimiser of the mean of all f_v.
    """

    curvatures: Floats
    gradients: Floats
    optimum: Floats

    @property
    def gradient_bound(self) -> float:
        """σ_*² = max_v ‖∇f_v(x*)‖²: the smallest constant of Assumption 3."""
        return float((self.gradients**2).sum(axis=1).max())


def losses_of(who: str, problem: Objective) -> Losses:
    """Read a least-squares problem.

    Raises
    ------
    AnalysisError
        If it is another problem: its curvatures are then not the same everywhere.
    """
    if not isinstance(problem, LeastSquares):
        raise AnalysisError(
            f"{who}: got {reprlib.repr(problem)}, expected a fw.objectives.LeastSquares problem, whose "
            "curvatures are the same everywhere and can be computed; for other losses run fw.learn and look"
        )
    optimum = problem.optimum()
    counts = np.diff(problem.offsets)
    residuals = problem.features @ optimum - problem.targets
    pulls = (residuals / np.repeat(counts, counts))[:, None] * problem.features
    gradients = np.add.reduceat(pulls, problem.offsets[:-1], axis=0) + problem.ridge * optimum
    return Losses(_curvatures(problem, counts), gradients, optimum)


def check_step(who: str, step: float) -> float:
    """A positive finite number."""
    number = isinstance(step, (int, float, np.integer, np.floating)) and not isinstance(step, bool)
    if not number or not 0 < step < np.inf:
        raise AnalysisError(f"{who}: step = {step!r}, expected a number above 0; take one step of a schedule")
    return float(step)


def _curvatures(problem: LeastSquares, counts: NDArray[np.int64]) -> Floats:
    """All eigenvalues of A_vᵀA_v / m_v + ridge; m < d samples leave d − m of them at exactly the ridge."""
    dim = problem.dim
    result = np.zeros((problem.n, dim))
    for count in np.unique(counts):
        nodes = np.flatnonzero(counts == count)
        side = min(int(count), dim)
        size = max(1, _BLOCK // (int(count) * dim + side * side))
        for begin in range(0, len(nodes), size):
            part = nodes[begin : begin + size]
            rows = problem.features[problem.offsets[part, None] + np.arange(count)]
            turned = rows.transpose(0, 2, 1)
            gram = rows @ turned if count <= dim else turned @ rows
            result[part, dim - side :] = np.linalg.eigvalsh(gram) / count
    # What is small against the largest is the rounding of a zero.
    result[result <= dim * np.finfo(float).eps * result[:, -1:]] = 0.0
    return result + problem.ridge
