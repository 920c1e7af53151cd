"""Steps chosen for a given steady error: the updates a design then needs, and steps of two designs that match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import check
from freewalk.analysis.learning import model
from freewalk.analysis.learning.limits import limit_of, ready, solve_limit
from freewalk.analysis.learning.recursion import Recursion, new_tally
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.linear.arrays import Floats
from freewalk.objectives import LeastSquares
from freewalk.rules import SGD

_SMALLEST = 1e-7  # of the largest step that is tried: no step settles that much lower
ROUGH, _FINE = 1e-5, 1e-9  # precision sufficient to choose a step, and to report its steady error
_NEARLY = 1e-3  # how nearly steady errors, and steps, match
_BELOW_ONE = float(np.nextafter(1.0, 0.0))


@dataclass(frozen=True)
class Race:
    """A design at the step that settles at a given error.

    Attributes
    ----------
    step
        The step γ.
    excess
        The steady expected loss above the optimum.
    bias
        The part of `excess` that is bias.
    updates, messages
        The number of updates after which the expected loss is first within the given distance of the optimum,
        interpolated between checks, and the expected number of messages up to then; inf if it is not reached.
    """

    step: float
    excess: float
    bias: float
    updates: float
    messages: float


def race(
    problem: LeastSquares,
    kernel: Kernel,
    *,
    settle: float,
    reach: float,
    start: str | ArrayLike = "uniform",
    initial: ArrayLike | None = None,
    most: int = 1_000_000,
    rule: SGD | None = None,
) -> Race:
    """Choose the step that settles `settle` above the optimal loss, and count the updates until `reach` above it.

    Parameters
    ----------
    problem, kernel
        A least-squares problem, and a kernel that does not change with time.
    settle
        The desired steady error, loss − optimal loss. A step never exceeds 1 / max w_v L_v, which may settle lower.
    reach
        The error at which counting stops, larger than `settle`.
    start, initial
        As in `exact_curve`.
    most
        The maximum number of updates.
    rule
        `fw.SGD`, whose step is ignored; None means plain weighted SGD.

    Returns
    -------
    Race
        With infinite `updates` if the bias alone exceeds `reach`, or after `most` updates.

    Raises
    ------
    AnalysisError
        If the problem, rule, size or levels are not supported.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(20)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
    >>> best = problem.loss(problem.optimum())
    >>> kernels = [fw.designs.Metropolis(power).kernel(graph, problem.smoothness) for power in (0, 1)]
    >>> uniform, importance = (race(problem, kernel, settle=best / 4, reach=best / 2, start=0) for kernel in kernels)
    >>> importance.updates > uniform.updates
    True
    """
    who = "race"
    settle = check.real(who, "settle", settle, above=0.0)
    reach = check.real(who, "reach", reach, above=settle, remedy="the clock stops before the walk settles")
    most = check.whole(who, "most", most, 1)
    recursion = Recursion(who, problem, kernel, SGD(1.0) if rule is None else rule)
    first = model.first_model(who, initial, problem.dim)
    begin = model.start_law(who, start, kernel.graph, problem.smoothness)
    step = settling_step(recursion, settle)
    limit = solve_limit(recursion, step, precision=_FINE)
    updates, messages = np.inf, np.inf
    if not (limit.bias >= reach and problem.loss(first) - problem.loss(problem.optimum()) > reach):
        updates, messages = _clock(recursion, step, reach, begin, first, most)
    return Race(step, limit.excess, limit.bias, updates, messages)


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
    Liu, El Rouayheb, Dwyer, 2024, appendix, "Step size". Title and journal version: `freewalk.designs.MHLJ`.
    """
    who = "matched_steps"
    expected = "a number between 0 and 1: at 1 nothing settles"
    fraction = check.real(who, "fraction", fraction, high=_BELOW_ONE, above=0.0, expected=expected)
    limit = None if limit is None else check.real(who, "limit", limit, above=0.0)
    slow, fast = (ready(who, problem, kernel, SGD(1.0) if rule is None else rule) for kernel in (first, second))
    if limit is None:
        limit = limit_of(slow)
    step = fraction * limit
    excess = solve_limit(slow, step).excess
    if not excess > 0:
        raise AnalysisError(f"{who}: the data have no noise: every step settles at the optimum, none can be matched")
    match = settling_step(fast, excess)
    if solve_limit(fast, match).excess < (1 - _NEARLY) * excess:
        match = _beyond(fast, excess, match)
    return MatchedSteps(limit, step, excess, match, solve_limit(fast, match).excess)


def largest_settling(recursion: Recursion) -> float:
    """The steady error of the largest step that is tried, 1 / max w_v L_v."""
    return solve_limit(recursion, recursion.safe_step / 2, precision=ROUGH).excess


def settling_step(recursion: Recursion, settle: float) -> float:
    """The step with the steady error `settle`, at most 1 / max w_v L_v; the largest found if there are several."""
    highest = recursion.safe_step / 2
    return step_that_settles(lambda step: solve_limit(recursion, step, precision=ROUGH).excess, highest, settle)


def step_that_settles(excess: Callable[[float], float], highest: float, settle: float) -> float:
    """The step with the steady error `settle`, at most `highest`; the largest found if there are several."""
    from scipy.optimize import brentq

    @cache  # the ends of an interval are requested again
    def above(log_step: float) -> float:
        # If even small steps settle above, as with bias, the smallest is as good as any.
        return float(np.log(max(excess(float(np.exp(log_step))), 1e-300) / settle))

    high = float(np.log(highest))
    if above(high) <= 0:
        return float(np.exp(high))
    low = beyond = high
    while above(low) > 0:
        low, beyond = low - float(np.log(4.0)), low
        if low < high + np.log(_SMALLEST):
            return float(np.exp(low))
    return float(np.exp(brentq(above, low, beyond, xtol=2e-3)))


def _clock(
    recursion: Recursion, step: float, reach: float, law: Floats, initial: Floats, most: int
) -> tuple[float, float]:
    """Updates and messages until the expected loss is `reach` above the optimum, interpolated between checks."""
    problem, quadratic = recursion.quadratic.problem, recursion.quadratic
    best = float(problem.loss(problem.optimum()))
    state = model.first_state(recursion.states.lifted(law), quadratic.basis.T @ (initial - problem.optimum()))
    tally = new_tally(*state.shape)
    done, before, sent, above = 0, 0, 0.0, np.inf  # updates now; updates, messages and excess at the last check
    while True:
        excess = float(quadratic.measures(state.sum(axis=0)[None], 0.0)["loss"][0]) - best
        if excess <= reach:
            part = np.log(above / reach) / np.log(above / max(excess, 1e-300)) if done else 1.0
            return float(before + part * (done - before)), float(sent + part * (tally.sent[0] - sent))
        if done >= most or not np.isfinite(excess):
            return np.inf, np.inf
        before, sent, above = done, float(tally.sent[0]), excess
        done += max(1, min(done // 50, 4096))
        state = recursion.step(state, step, done - before, tally)


def _beyond(recursion: Recursion, excess: float, low: float) -> float:
    """A step between one that settles too low and the stability limit, where errors grow without bound."""
    from scipy.optimize import brentq

    def above(step: float) -> float:
        return float(np.log(solve_limit(recursion, step).excess / excess))

    high = (1 - _NEARLY) * limit_of(recursion)
    return float(brentq(above, low, high, rtol=_NEARLY)) if high > low and above(high) > 0 else max(low, high)
