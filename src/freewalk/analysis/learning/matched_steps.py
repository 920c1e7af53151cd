"""The paper's choice of steps: the largest for the uniform walk, then an equally accurate one for another design."""

from dataclasses import dataclass

import numpy as np

from freewalk.analysis.chain.chain import check
from freewalk.analysis.chain.law import stationary
from freewalk.analysis.learning.limits import limit_of, ready, solve_limit
from freewalk.analysis.learning.moments import Floats
from freewalk.analysis.learning.race import settling_step
from freewalk.analysis.learning.recursion import Recursion
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.objectives import LeastSquares
from freewalk.rules import SGD

_NEARLY = 1e-3
_BELOW_ONE = float(np.nextafter(1.0, 0.0))


@dataclass(frozen=True)
class MatchedSteps:
    """Two steps with the same steady error.

    Attributes
    ----------
    limit
        The largest step at which the first design converges.
    first
        The step of the first design, a fraction of `limit`.
    excess
        The steady expected loss of the first design above the optimum.
    second
        The step of the second design.
    settled
        The steady expected loss of the second design above the optimum: `excess`, or more if its bias alone is more.
    """

    limit: float
    first: float
    excess: float
    second: float
    settled: float

    def __str__(self) -> str:
        """One line."""
        return (
            f"first: step {self.first:.3g} of at most {self.limit:.3g}, settles {self.excess:.3g} above the optimum; "
            f"second: step {self.second:.3g}, settles {self.settled:.3g} above it"
        )


def matched_steps(
    problem: LeastSquares,
    first: Kernel,
    second: Kernel,
    *,
    fraction: float = 0.5,
    rule: SGD | None = None,
    limit: float | None = None,
) -> MatchedSteps:
    """Choose the steps of two designs as in the paper's appendix, by computation instead of trial.

    "The largest step such that uniform sampling converges, then the step such that importance sampling converges to the
    same accuracy." At the stability limit itself an error neither shrinks nor settles, so there is no accuracy to
    match: the first step is a fraction of the limit.

    Parameters
    ----------
    problem
        A least-squares problem.
    first, second
        In the paper: the uniform walk, and importance sampling by Metropolis. MHLJ then uses the step of the second.
        Neither may change with time.
    fraction
        The first step, as a fraction of the largest at which it converges.
    rule
        `fw.SGD`, whose step is ignored; None means plain weighted SGD.
    limit
        The stability limit of the first design, if already known: computing it is most of the work.

    Returns
    -------
    MatchedSteps
        Both steps, and their steady errors.

    Raises
    ------
    AnalysisError
        If the fraction is not between 0 and 1, or the problem, a kernel, the rule or the size is not supported.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(20)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
    >>> uniform, importance = (fw.designs.Metropolis(power).kernel(graph, problem.smoothness) for power in (0, 1))
    >>> print(matched_steps(problem, uniform, importance))
    first: step ...

    References
    ----------
    Liu, El Rouayheb, Dwyer, *The Entrapment Problem in Random Walk Decentralized Learning*, appendix, "Step size".
    """
    who = "matched_steps"
    expected = "a number between 0 and 1: at 1 nothing settles"
    fraction = check.real(who, "fraction", fraction, high=_BELOW_ONE, above=0.0, expected=expected)
    limit = None if limit is None else check.real(who, "limit", limit, above=0.0)
    slow, fast = (ready(who, problem, kernel, SGD(1.0) if rule is None else rule) for kernel in (first, second))
    if limit is None:
        limit = limit_of(slow)
    step = fraction * limit
    excess = solve_limit(slow, step, stationary(first, who=who)).excess
    if not excess > 0:
        raise AnalysisError(
            f"{who}: the data have no noise, so every step settles at the optimum and none can be matched"
        )
    law = stationary(second, who=who)
    match = settling_step(fast, law, excess)
    if solve_limit(fast, match, law).excess < (1 - _NEARLY) * excess:
        match = _beyond(fast, law, excess, match)
    return MatchedSteps(limit, step, excess, match, solve_limit(fast, match, law).excess)


def _beyond(recursion: Recursion, law: Floats, excess: float, low: float) -> float:
    """A step between one that settles too low and the stability limit, where errors grow without bound."""
    from scipy.optimize import brentq

    def above(step: float) -> float:
        return float(np.log(solve_limit(recursion, step, law).excess / excess))

    high = (1 - _NEARLY) * limit_of(recursion)
    return float(brentq(above, low, high, rtol=_NEARLY)) if high > low and above(high) > 0 else max(low, high)
