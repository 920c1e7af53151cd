"""Where several tokens settle, and the step with which their mean model settles at a given error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

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
_FINE = 1e-12


def settling_step(
    problem: LeastSquares,
    kernel: Kernel,
    rule: SGD,
    settle: float,
    *,
    tokens: int | str = 1,
    exchange: Exchange | None = None,
) -> float:
    """Compute the largest step, up to 1 / max w_v L_v, at which the mean model of the tokens settles at an error.

    The error is loss − optimal loss; the step of the rule is ignored, and the other arguments are those of
    `steady_state`. If bias keeps every step above the error, the result is a very small step.
    """
    who = "settling_step"
    settle = check.real(who, "settle", settle, above=0.0)
    plateau = _plateau(who, problem, kernel, rule, tokens, exchange)
    return step_that_settles(lambda step: plateau.at(step, None, ROUGH).excess, plateau.recursion.safe_step / 2, settle)


def steady_tokens(
    problem: LeastSquares, kernel: Kernel, rule: SGD, initial: Any, tokens: int | str, exchange: Exchange | None
) -> SteadyState:
    """`steady_state` for several tokens."""
    who = "steady_state"
    plateau = _plateau(who, problem, kernel, rule, tokens, exchange)
    rate = model.constant_step(who, rule)
    first = model.first_model(who, initial, problem.dim)
    if rate >= plateau.recursion.safe_step:
        plateau.check_stable(rate)
    return plateau.at(rate, first)


def _plateau(
    who: str, problem: LeastSquares, kernel: Kernel, rule: SGD, tokens: int | str, exchange: Exchange | None
) -> _Plateau:
    """How these tokens settle, or an error that says why it is unknown."""
    model.check_problem(who, problem)
    check_fit(who, problem, kernel)
    job = prepare(who, problem, kernel, rule, steps=1, exchange=exchange, tokens=tokens)
    phase, count = job.phases[0], job.tokens
    if count == 1:
        arguments.exchanges((phase,), count, np.zeros(1, dtype=np.int32))  # rejects a single token
    if phase.kernel.is_parked and (exchange is None or tokens != "nodes"):
        raise AnalysisError(
            f"{who}: got tokens = {tokens!r} and exchange = {exchange!r} for parked tokens, whose limit depends on "
            'where each starts; expected tokens="nodes" and an exchange. Or run exact_curve until it is flat'
        )
    kind = kind_of(who, [phase], np.diff(problem.offsets), tokens, chosen=False)
    if kind == INDEPENDENT or exchange is None:
        return _Independent(limits.ready(who, problem, kernel, rule), count)
    if kind == DRAWN:
        return _Drawn(limits.ready(who, problem, kernel, rule), count, exchange.every)
    arguments.exchanges((phase,), count, np.arange(count, dtype=np.int32))
    # Between two exchanges, parked tokens make the same steps as these local ones.
    rule = replace(rule, local_steps=int(rule.local_steps) * exchange.every)
    if exchange.means == "all":
        parked = Recursion(who, problem, kernel, rule)
        return _Averaged(parked) if kind == FIXED else _AveragedSamples(parked)
    if isinstance(exchange, Gossip):
        return _Gossiping(limits.ready(who, problem, _walk_of(exchange, kernel), rule))
    raise AnalysisError(
        f"{who}: got exchange = {exchange!r}, expected fw.exchanges.Gossip(matrix) or Average for parked tokens; run "
        "exact_curve until it is flat"
    )


def _walk_of(gossip: Gossip, kernel: Kernel) -> Kernel:
    """The walk whose first moments are n times smaller than the errors of gossiping tokens: it moves by Wᵀ."""
    matrix = gossip.on(kernel.graph).T.tocsr()
    return Kernel(kernel.graph, (Move(1.0, hops=1, rows=matrix),), kernel.target, repr(gossip))


@dataclass
class _Plateau(ABC):
    """Where tokens settle, at any stable step size."""

    recursion: Recursion
    tokens: int = 1
    every: int = 1  # updates from one exchange to the next, if the recursion does not make them in one step

    @abstractmethod
    def at(self, rate: float, initial: Floats | None, precision: float = _FINE) -> SteadyState:
        """The limit for a step."""

    @abstractmethod
    def radius(self, rate: float) -> float:
        """The growth factor of an error from one exchange to the next."""

    def check_stable(self, rate: float) -> None:
        """Raise unless errors shrink at this step."""
        radius, safe = self.radius(rate), self.recursion.safe_step
        if radius >= 1 - 1e-10:
            raise AnalysisError(
                f"steady_state: step = {rate:g} is beyond the largest stable one: errors grow by {radius:.6g} from one "
                f"exchange to the next. Expected a smaller one; up to 2 / max w_v L_v = {safe:.6g} all are"
            )


class _Independent(_Plateau):
    """Tokens that never mix."""

    def at(self, rate: float, initial: Floats | None, precision: float = _FINE) -> SteadyState:
        return limits.solve_limit(self.recursion, rate, initial, precision, self.tokens)

    def radius(self, rate: float) -> float:
        return limits.spectral_radius(self.recursion, rate)

    def check_stable(self, rate: float) -> None:
        limits.check_stable(self.recursion, rate)


class _Gossiping(_Plateau):
    """Parked tokens with full gradients that gossip: x = W (B x + b)."""

    def at(self, rate: float, initial: Floats | None, precision: float = _FINE) -> SteadyState:
        n = self.recursion.n
        errors = n * limits.solve_means(self.recursion, rate, np.full(n, 1.0 / n), precision)
        mean = errors.mean(axis=0)
        return _certain(self.recursion, mean, initial, float(np.mean(np.sum((errors - mean) ** 2, axis=1))))

    def radius(self, rate: float) -> float:
        return limits.spectral_radius(self.recursion, rate, order=1)


class _Mapped(_Plateau):
    """Tokens that average: their shared model, or its moments, has a small linear map. Its first number is always 1."""

    @abstractmethod
    def matrix(self, rate: float) -> Floats:
        """The map from one exchange to the next."""

    def fixed_point(self, rate: float) -> Floats:
        matrix = self.matrix(rate)
        rest = np.linalg.solve(np.eye(len(matrix) - 1) - matrix[1:, 1:], matrix[1:, 0])
        return np.append(1.0, rest)

    def radius(self, rate: float) -> float:
        return float(np.abs(np.linalg.eigvals(self.matrix(rate)[1:, 1:])).max())


class _Averaged(_Mapped):
    """Parked tokens with full gradients that average: gradient descent, or FedAvg with local steps."""

    def at(self, rate: float, initial: Floats | None, precision: float = _FINE) -> SteadyState:
        return _certain(self.recursion, self.fixed_point(rate)[1:], initial, 0.0)

    def matrix(self, rate: float) -> Floats:
        return np.asarray(_images(self.recursion, rate, np.ones(self.recursion.n)).mean(axis=1).T)


@dataclass
class _Mixed(_Mapped):
    """Tokens that average, with random gradients: the map is that of the packed moments of the shared model."""

    def __post_init__(self) -> None:
        dim = self.recursion.dim
        self.width = 1 + dim + self.recursion.triangle
        if self.width > _WIDEST:
            raise AnalysisError(
                f"steady_state: {dim} features make {self.width:,} moments of the mean model, expected at most "
                f"{_WIDEST:,}. Run exact_curve until it is flat"
            )

    def at(self, rate: float, initial: Floats | None, precision: float = _FINE) -> SteadyState:
        return limits.limit_at(self.recursion.quadratic, self.fixed_point(rate), initial)

    def sums(self, shares: Floats, rate: float) -> Floats:
        """The image of each unit moment of a model in one step, summed over the nodes with these shares."""
        units = np.eye(self.width)
        return np.array([self.recursion.step(shares[:, None] * unit, rate).sum(axis=0) for unit in units])


class _Drawn(_Mixed):
    """Tokens at nodes that are redrawn for each update, and averaged."""

    def matrix(self, rate: float) -> Floats:
        """(1/m) Tᵏ + (1 − 1/m) (Ā ⊗ Ā)ᵏ."""
        one = self.sums(self.recursion.law, rate).T
        mean = _images(self.recursion, rate, self.recursion.law).sum(axis=1).T
        mean = np.linalg.matrix_power(mean, self.every)
        units = model.unpacked(np.eye(self.width), len(mean))
        pair = model.packed(mean @ units @ mean.T).T
        share = 1.0 / self.tokens
        return np.asarray(share * np.linalg.matrix_power(one, self.every) + (1 - share) * pair)


class _AveragedSamples(_Mixed):
    """Parked tokens with gradients of random samples, averaged."""

    def matrix(self, rate: float) -> Floats:
        """The moments of the mean of all tokens, for each unit moment of the shared model."""
        ones = np.ones(self.recursion.n)
        totals, images = self.sums(ones, rate), _images(self.recursion, rate, ones)
        return mean_of_parked(np.eye(self.width), totals, images).T


def _images(recursion: Recursion, rate: float, shares: Floats) -> Floats:
    """The columns of the expected maps of z in one step: (d + 1) × nodes × (d + 1)."""
    return np.array([recursion.step(rows, rate) for rows in unit_columns(recursion.dim, shares)])


def _certain(recursion: Recursion, error: Floats, initial: Floats | None, consensus: float) -> SteadyState:
    """The limit of a mean model without randomness."""
    vector = np.append(1.0, error)
    return limits.limit_at(recursion.quadratic, model.packed(np.outer(vector, vector)), initial, consensus)
