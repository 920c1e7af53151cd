"""Where several tokens settle, and the step with which their mean model settles at a given error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from freewalk.analysis.chain.chain import check, check_fit
from freewalk.analysis.learning import limits, model
from freewalk.analysis.learning.groups import DRAWN, FIXED, INDEPENDENT, kind_of, mean_of_parked, unit_columns
from freewalk.analysis.learning.limits import SteadyState
from freewalk.analysis.learning.race import ROUGH, step_that_settles
from freewalk.analysis.learning.recursion import Recursion
from freewalk.designs.kernel import Kernel, Move
from freewalk.errors import AnalysisError
from freewalk.exchanges import Exchange, Gossip
from freewalk.jobs import arguments
from freewalk.jobs.prepare import prepare
from freewalk.linear.arrays import Floats
from freewalk.objectives import LeastSquares
from freewalk.rules import SGD

_WIDEST = 1000  # moments of the mean model, with 43 features, for which the linear map is stored as a matrix


def steady_state(
    problem: LeastSquares,
    kernel: Kernel,
    rule: SGD,
    initial: Any = None,
    *,
    tokens: float | str = 1,
    exchange: Exchange | None = None,
) -> SteadyState:
    """Compute the error that remains after many updates with a constant step.

    This is the fixed point of the recursion of `exact_curve`: two sparse linear systems, for the means and for the
    second moments.

    Parameters
    ----------
    problem
        A least-squares problem.
    kernel
        A kernel that does not change with time, with at most 5000 nodes. For a periodic kernel the result is the mean
        over a period, or the limit of tokens that start from the stationary distribution. If it remembers the last
        node, it may have two directions in which it goes for ever: the result is the mean over both, which is the mean
        over time from any start.
    rule
        `fw.SGD` with a constant step, without averaging.
    initial
        The initial model, which affects the limit only outside the span of the features; None means the zero model.
    tokens, exchange
        As in `exact_curve`; parked tokens must be one per node, with an exchange. If exchanges do not follow every
        update, the result is the limit at the steps with an exchange.

    Raises
    ------
    AnalysisError
        If the step exceeds the largest stable one, or the problem, rule, exchange or size is not supported.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(20)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, shift=0.3, seed=1)
    >>> kernel = fw.designs.MHLJ(jump=0.5, stop=0.5, hops=3).kernel(graph, problem.smoothness)
    >>> limit = steady_state(problem, kernel, fw.SGD(step=0.01))
    >>> bool(limit.bias > limit.variance)
    True

    Decentralized SGD settles at an error that is all bias:

    >>> stay, gossip = fw.designs.Stay().kernel(graph), fw.exchanges.Gossip()
    >>> limit = steady_state(problem, stay, fw.SGD(step=0.001), tokens="nodes", exchange=gossip)
    >>> limit.variance, bool(limit.bias > 0)
    (0.0, True)
    """
    who = "steady_state"
    if type(tokens) is int and tokens == 1 and exchange is None:
        plateau = _independent(limits.ready(who, problem, kernel, rule))
    else:
        plateau = _plateau(who, problem, kernel, rule, tokens, exchange)
    rate = model.constant_step(who, rule)
    first = model.first_model(who, initial, problem.dim)
    radius = plateau.radius(rate) if rate >= plateau.safe_step else 0.0
    if radius >= 1 - 1e-10:
        raise AnalysisError(
            f"steady_state: step = {rate:g} is beyond the largest stable one: errors grow by {radius:.6g} from one "
            f"update or exchange to the next. Expected {plateau.stable()}"
        )
    return plateau.at(rate, first, limits.PRECISION)


def settling_step(
    problem: LeastSquares,
    kernel: Kernel,
    rule: SGD,
    settle: float,
    *,
    tokens: float | str = 1,
    exchange: Exchange | None = None,
) -> float:
    """Compute the largest step, up to 1 / max w_v L_v, at which the mean model of the tokens settles at an error.

    The error is loss − optimal loss; the step of the rule is ignored, and the other arguments are those of
    `steady_state`. If bias keeps every step above the error, the result is a very small step.
    """
    who = "settling_step"
    settle = check.real(who, "settle", settle, above=0.0)
    plateau = _plateau(who, problem, kernel, rule, tokens, exchange)
    return step_that_settles(lambda step: plateau.at(step, None, ROUGH).excess, plateau.safe_step / 2, settle)


def _plateau(
    who: str, problem: LeastSquares, kernel: Kernel, rule: SGD, tokens: float | str, exchange: Exchange | None
) -> _Plateau:
    """How these tokens settle, or an error that says why it is unknown."""
    model.check_problem(who, problem)
    check_fit(who, problem, kernel, last_node=True)
    job = prepare(who, problem, kernel, rule, steps=1, exchange=exchange, tokens=tokens)
    phase, count = job.phases[0], job.tokens
    if count == 1:
        arguments.exchanges((phase,), count, np.zeros(1, dtype=np.int32))  # rejects a single token
    if phase.kernel.is_parked and (exchange is None or tokens != "nodes"):
        got = f"tokens = {tokens!r} and exchange = {exchange!r} for parked tokens"
        expected = 'expected tokens="nodes" and an exchange, or exact_curve until it is flat'
        raise AnalysisError(f"{who}: got {got}, whose limit depends on where each starts; {expected}")
    kind = kind_of(who, [phase], np.diff(problem.offsets), tokens, chosen=False)
    if kind == INDEPENDENT or exchange is None:
        return _independent(limits.ready(who, problem, kernel, rule), count)
    if kind == DRAWN:
        return _averaging_drawn(limits.ready(who, problem, kernel, rule), count, exchange.every)
    arguments.exchanges((phase,), count, np.arange(count, dtype=np.int32))
    # Between two exchanges, parked tokens make the same steps as these local ones.
    rule = replace(rule, local_steps=int(rule.local_steps) * exchange.every)
    if exchange.means == "all":
        return _averaging_parked(Recursion(who, problem, kernel, rule), sampled=kind != FIXED)
    if isinstance(exchange, Gossip):
        return _gossiping(limits.ready(who, problem, _walk_of(exchange, kernel), rule))
    expected = "fw.exchanges.Gossip(matrix) or Average for parked tokens"
    raise check.fail(who, "exchange", exchange, expected, "run exact_curve until it is flat")


def _walk_of(gossip: Gossip, kernel: Kernel) -> Kernel:
    """The walk whose first moments are n times smaller than the errors of gossiping tokens: it moves by Wᵀ."""
    matrix = gossip.on(kernel.graph).T.tocsr()
    return Kernel(kernel.graph, (Move(1.0, hops=1, rows=matrix),), kernel.target, repr(gossip))


class _Plateau(NamedTuple):
    """Where tokens settle, at any stable step size."""

    safe_step: float
    at: Callable[[float, Floats | None, float], SteadyState]  # by step, initial model and precision
    radius: Callable[[float], float]  # by step: the growth factor of errors from one update or exchange to the next
    stable: Callable[[], str]  # which steps are stable, in words


def _independent(recursion: Recursion, tokens: int = 1) -> _Plateau:
    """Tokens that never mix."""

    def at(rate: float, initial: Floats | None, precision: float) -> SteadyState:
        return limits.solve_limit(recursion, rate, initial, precision, tokens)

    def stable() -> str:
        return f"less than stability_limit(problem, kernel) = {limits.limit_of(recursion):.6g}"

    return _Plateau(recursion.safe_step, at, partial(limits.spectral_radius, recursion), stable)


def _together(recursion: Recursion, at: Callable[..., SteadyState], radius: Callable[[float], float]) -> _Plateau:
    """Tokens that mix."""
    words = f"a smaller one; up to 2 / max w_v L_v = {recursion.safe_step:.6g} all are stable"
    return _Plateau(recursion.safe_step, at, radius, lambda: words)


def _gossiping(recursion: Recursion) -> _Plateau:
    """Parked tokens with full gradients that gossip: x = W (B x + b)."""

    def at(rate: float, initial: Floats | None, precision: float) -> SteadyState:
        errors = recursion.n * limits.solve_means(recursion, rate, np.full(recursion.n, 1.0 / recursion.n), precision)
        consensus = float(np.mean(np.sum((errors - errors.mean(axis=0)) ** 2, axis=1)))
        mean = np.append(1.0, errors.mean(axis=0))
        return limits.limit_at(recursion.quadratic, model.packed(np.outer(mean, mean)), initial, consensus)

    return _together(recursion, at, partial(limits.spectral_radius, recursion, order=1))


def _averaging(recursion: Recursion, matrix: Callable[[float], Floats], certain: bool) -> _Plateau:
    """Tokens that average: their shared model, if it is certain, or its packed moments have a small linear map.

    `matrix` is this map from one exchange to the next, by step; the first number that it maps is always 1.
    """

    def at(rate: float, initial: Floats | None, precision: float) -> SteadyState:
        image = matrix(rate)
        point = np.append(1.0, np.linalg.solve(np.eye(len(image) - 1) - image[1:, 1:], image[1:, 0]))
        totals = model.packed(np.outer(point, point)) if certain else point
        return limits.limit_at(recursion.quadratic, totals, initial)

    return _together(recursion, at, lambda rate: float(np.abs(np.linalg.eigvals(matrix(rate)[1:, 1:])).max()))


def _averaging_parked(recursion: Recursion, sampled: bool) -> _Plateau:
    """Parked tokens: gradient descent, or FedAvg with local steps; their gradients may be of random samples."""
    ones, units = np.ones(recursion.n), _units(recursion) if sampled else None

    def matrix(rate: float) -> Floats:
        images = _images(recursion, rate, ones)
        if units is None:
            return np.asarray(images.mean(axis=1).T)
        return mean_of_parked(units, _sums(recursion, rate, ones, units), images).T

    return _averaging(recursion, matrix, certain=not sampled)


def _averaging_drawn(recursion: Recursion, tokens: int, every: int) -> _Plateau:
    """Tokens at nodes that are redrawn for each update, averaged after every so many."""
    units, law, share = _units(recursion), recursion.law, 1.0 / tokens

    def matrix(rate: float) -> Floats:
        """(1/m) Tᵏ + (1 − 1/m) (Ā ⊗ Ā)ᵏ."""
        own = np.linalg.matrix_power(_sums(recursion, rate, law, units).T, every)
        mean = np.linalg.matrix_power(_images(recursion, rate, law).sum(axis=1).T, every)
        pair = model.packed(mean @ model.unpacked(units, len(mean)) @ mean.T).T
        return np.asarray(share * own + (1 - share) * pair)

    return _averaging(recursion, matrix, certain=False)


def _units(recursion: Recursion) -> Floats:
    """The unit moments of a model, unless they are too many."""
    width = 1 + recursion.dim + recursion.triangle
    if width > _WIDEST:
        most = f"expected at most {_WIDEST:,}. Run exact_curve until it is flat"
        raise AnalysisError(f"steady_state: {recursion.dim} features make {width:,} moments of the mean model, {most}")
    return np.eye(width)


def _sums(recursion: Recursion, rate: float, shares: Floats, units: Floats) -> Floats:
    """The image of each unit moment of a model in one step, summed over the nodes with these shares."""
    return np.array([recursion.step(shares[:, None] * unit, rate).sum(axis=0) for unit in units])


def _images(recursion: Recursion, rate: float, shares: Floats) -> Floats:
    """The columns of the expected maps of z in one step: (d + 1) × nodes × (d + 1)."""
    return np.array([recursion.step(rows, rate) for rows in unit_columns(recursion.dim, shares)])
