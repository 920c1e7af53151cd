"""Several tokens of one replica that are followed together, by the moments of their mean model.

All tokens start with one model. With z = (1, x − x*), an update is z ← A z, and the rows (p, m, S) of the recursion are
the upper triangle of E[z zᵀ]. Tokens that depend on each other only through the model they started from need no more
than that: E[z_i z_jᵀ] = E[A_i] E[z₀ z₀ᵀ] E[A_j]ᵀ for two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.analysis.chain.chain import check
from freewalk.analysis.learning import model
from freewalk.analysis.learning.moments import Spread
from freewalk.analysis.learning.recursion import NO_ROWS, NO_TURNS, Update, new_tally, update_of
from freewalk.errors import AnalysisError
from freewalk.exchanges import Average, Exchange
from freewalk.exchanges.exchange import gathering_of, sent_by, weights_of
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.jobs.job import Job
from freewalk.jobs.phase import Phase
from freewalk.linear.arrays import Floats, Ints
from freewalk.rules import SGD, Rule

# How tokens depend on each other.
INDEPENDENT = "independent"  # identically distributed tokens that never mix
FIXED = "fixed"  # parked, without randomness
SAMPLED = "sampled"  # parked, with gradients of random samples, and averaged
DRAWN = "drawn"  # at nodes that a server redraws for each update, and averaged


def kind_of(who: str, phases: Sequence[Phase], counts: Ints, tokens: float | str, chosen: bool) -> str:
    """How the tokens of a run depend on each other; `chosen` says whether each has its own start."""
    parked = all(phase.kernel.is_parked for phase in phases)
    drawn = all(len(phase.kernel.moves) == 1 and phase.kernel.moves[0].law is not None for phase in phases)
    mixing = [phase.exchange for phase in phases if phase.exchange is not None]
    for phase in phases:
        _check_rule(who, phase, counts)
    if tokens == "nodes" and not parked:
        raise AnalysisError(
            f'{who}: tokens="nodes" move by {phases[0].kernel.label}, expected tokens with the same distribution, such '
            'as tokens=8, or parked ones (fw.designs.Stay). Simulate it: fw.learn(..., tokens="nodes", walks=1000)'
        )
    if parked and (chosen or tokens == "nodes"):
        if not any(_draws_samples(phase.rule, counts) for phase in phases):
            for exchange in mixing:
                _check_that(exchange.constant, who, exchange, "weights that may change from one exchange to the next")
            return FIXED
        for exchange in mixing:
            what = "gradients of random samples, after which any two models are correlated in their own way"
            _check_that(exchange.means == "all" and exchange.constant, who, exchange, what, "Take sampled=False, or ")
        return SAMPLED
    if not mixing:
        return INDEPENDENT
    for exchange in mixing:
        if parked:
            expected = 'tokens="nodes", or a start with one node for each token'
            raise AnalysisError(f"{who}: {exchange!r} mixes parked tokens that start at random, expected {expected}")
        averages = isinstance(exchange, Average) and exchange.means == "all"
        _check_that(drawn and averages, who, exchange, "tokens whose paths decide how they are correlated")
    return DRAWN


def _check_that(fine: bool, who: str, exchange: Exchange, what: str, remedy: str = "") -> None:
    if not fine:
        raise AnalysisError(
            f"{who}: {exchange!r} mixes {what}; expected fw.exchanges.Average of tokens that fw.designs.Centralized "
            "draws or that are parked, Gossip of parked tokens with full gradients, or none: their moments follow a "
            f"closed recursion. {remedy or 'Or '}simulate it: fw.learn(..., walks=1000)"
        )


def _check_rule(who: str, phase: Phase, counts: Ints) -> None:
    """Check that the rule is plain SGD, or raise an error that says what to do."""
    rule = phase.rule
    constant = phase.exchange is None or phase.exchange.constant
    if not isinstance(rule, SGD) and phase.kernel.is_parked and constant and not _draws_samples(rule, counts):
        remedy = "parked tokens with full gradients draw nothing: one run of fw.learn(..., walks=1) is exact"
        raise check.fail(who, "rule", rule, "fw.SGD(step=...) without averaging", remedy)
    model.check_rule(who, rule)


def _draws_samples(rule: Rule | None, counts: Ints) -> bool:
    return rule is not None and rule.sampled and bool((counts > 1).any())


def group_of(
    who: str, quadratic: model.Quadratic, job: Job, tokens: float | str, start: str | ArrayLike | None, error: Floats
) -> Group | None:
    """The tokens of a run, all with the same first error, as a group; None if one token determines all."""
    phases, graph, count = job.phases, job.kernel.graph, job.tokens
    smoothness = quadratic.problem.smoothness
    random = start is None or model.is_distribution(start) or (isinstance(start, str) and start == "uniform")
    if count == 1:
        arguments.exchanges(phases, count, np.zeros(1, dtype=np.int32))  # rejects a single token
        for phase in phases:
            model.check_rule(who, phase.rule)
        return None
    kind = kind_of(who, phases, np.diff(quadratic.problem.offsets), tokens, not random)
    if kind in (INDEPENDENT, DRAWN) and not random and np.size(np.asarray(start, dtype=object)) > 1:
        expected = "one node, 'uniform', 'heaviest' or a distribution, from which each token draws its own node"
        raise check.fail(who, "start", start, expected, "simulate other starts: fw.learn(..., walks=1000)")
    if kind == INDEPENDENT:
        return None
    model.check_size(who, count, quadratic.dim, "tokens")
    if kind == DRAWN:
        return _Drawn(quadratic, count, model.start_law(who, start, graph, smoothness), error)
    nodes = arguments.start(start, 0, 1, graph, smoothness, tokens if isinstance(tokens, str) else count)
    arguments.exchanges(phases, count, nodes)
    return (_Fixed if kind == FIXED else _Sampled)(quadratic, graph, nodes, error)


def mean_of(totals: Floats, tokens: int) -> Floats:
    """The packed moments of the mean of independent tokens, given those of one: S/m + (1 − 1/m) μ μᵀ."""
    if tokens == 1:
        return totals
    d = _dim(totals.shape[-1])
    firsts = totals[..., : d + 1]
    return np.asarray(totals / tokens + (1 - 1 / tokens) * model.packed(firsts[..., :, None] * firsts[..., None, :]))


def length_of(totals: Floats) -> Floats:
    """E‖x − x*‖² from packed moments."""
    d = _dim(totals.shape[-1])
    return np.asarray(np.trace(model.unpacked(totals, d + 1)[..., 1:, 1:], axis1=-2, axis2=-1))


def _dim(width: int) -> int:
    return int(np.sqrt(2 * width)) - 1  # of (d + 1)(d + 2)/2


def unit_columns(dim: int, shares: Floats) -> Floats:
    """The columns of unit maps of z, each row times its share: (d + 1) × rows × (d + 1)."""
    return np.asarray(np.eye(dim + 1)[:, None, :] * shares[:, None])


class _Parked:
    """Tokens that stay at their nodes, one row each."""

    def __init__(self, quadratic: model.Quadratic, graph: Graph, nodes: NDArray[np.int32], first: Floats) -> None:
        self._quadratic, self._graph, self._nodes = quadratic, graph, nodes
        self.tokens, self.messages, self.visits = nodes.size, 0.0, np.zeros(graph.n)
        self._rows = np.tile(first, (self.tokens, 1))
        self._exchange: tuple[Exchange | None, Any, float] = None, None, 0.0

    def enter(self, phase: Phase, rule: SGD) -> None:
        """Begin a phase."""
        weights = self._quadratic.step_weights(phase.kernel, rule)[self._nodes]
        self._update = Update(self._quadratic.terms(rule.sampled, self._nodes), weights, rule, _staying(self.tokens))

    def run(self, rates: Floats) -> None:
        """Make an update at each of the rates, between two exchanges."""
        self._rows = self._update.run(self._rows, rates)
        self.visits += len(rates) * np.bincount(self._nodes, minlength=self.visits.size)

    def _weights(self, exchange: Exchange, step: int) -> Any:
        """The weights of an exchange, or None if it averages all; its messages are counted."""
        if self._exchange[0] is not exchange:
            gathering, averages = gathering_of(0, 0, step, self._nodes, self._graph), isinstance(exchange, Average)
            # There would be many pairs of tokens, and Average knows its messages without them.
            weights = None if averages else weights_of(exchange, gathering)
            sent = sent_by(exchange, gathering, weights) if averages or weights is not None else 0
            self._exchange = exchange, weights, float(sent)
        self.messages += self._exchange[2]
        return self._exchange[1]


class _Fixed(_Parked):
    """Parked tokens with full gradients: nothing is random, and each has one error."""

    def __init__(self, quadratic: model.Quadratic, graph: Graph, nodes: NDArray[np.int32], error: Floats) -> None:
        super().__init__(quadratic, graph, nodes, np.append(1.0, error))

    def mix(self, exchange: Exchange, step: int) -> None:
        """Exchange models after update number `step`."""
        weights = self._weights(exchange, step)
        if exchange.means == "all":
            self._rows[:] = self._rows.mean(axis=0)
        elif weights is not None:
            self._rows = weights @ self._rows
        self._rows[:, 0] = 1.0

    def moments(self) -> tuple[Floats, float]:
        """The packed moments of the mean error, which is deterministic, and the consensus."""
        mean = self._rows.mean(axis=0)
        return model.packed(np.outer(mean, mean)), float(np.mean(np.sum((self._rows - mean) ** 2, axis=1)))


class _Sampled(_Parked):
    """Parked tokens with gradients of random samples: independent, given the model of the last average."""

    def __init__(self, quadratic: model.Quadratic, graph: Graph, nodes: NDArray[np.int32], error: Floats) -> None:
        self._shared = model.first_state(np.ones(1), error)[0]
        super().__init__(quadratic, graph, nodes, self._shared)
        self._images = self._units = unit_columns(quadratic.dim, np.ones(self.tokens))

    def run(self, rates: Floats) -> None:
        super().run(rates)
        self._images = self._update.images(self._images, rates)

    def mix(self, exchange: Exchange, step: int) -> None:
        self._weights(exchange, step)
        self._shared, self._images = self.moments()[0], self._units
        self._rows = np.tile(self._shared, (self.tokens, 1))

    def moments(self) -> tuple[Floats, float]:
        """The moments of the mean, from the moments and the expected map of each token."""
        totals = mean_of_parked(self._shared[None], self._rows.sum(axis=0)[None], self._images)[0]
        return totals, max(float(length_of(self._rows.mean(axis=0)) - length_of(totals)), 0.0)


def mean_of_parked(shared: Floats, totals: Floats, images: Floats) -> Floats:
    """The packed moments of the mean of tokens that started from one model, for several such models.

    E[z̄ z̄ᵀ] = Ā Z Āᵀ + (1/m²) Σ_i (Z_i − A_i Z A_iᵀ), with the moments Z of that model, Z_i and the expected map A_i
    of each token; `totals` are Σ Z_i, `images` the columns of A_i in the layout of `Update.images`.
    """
    size, tokens, _ = images.shape
    squares = model.unpacked(shared, size)
    flat = images.transpose(1, 2, 0).reshape(tokens, -1)
    pairs = (flat.T @ flat).reshape(size, size, size, size)  # Σ_i A_i ⊗ A_i, its axes row, column, row, column
    mean = images.mean(axis=1).T
    apart = np.tensordot(squares, pairs, axes=([1, 2], [1, 3]))
    return np.asarray(model.packed(mean @ squares @ mean.T - apart / tokens**2) + totals / tokens**2)


class _Drawn:
    """Tokens at nodes that are redrawn for each update: all alike, with the moments of one and of a pair."""

    def __init__(self, quadratic: model.Quadratic, tokens: int, law: Floats, error: Floats) -> None:
        self._quadratic, self.tokens, self._law = quadratic, tokens, law
        self.messages, self.visits = 0.0, np.zeros(law.size)
        self._own = model.first_state(np.ones(1), error)[0]
        self._pair = model.unpacked(self._own, quadratic.dim + 1)

    def enter(self, phase: Phase, rule: SGD) -> None:
        self._graph, law = phase.kernel.graph, np.asarray(phase.kernel.moves[0].law)
        self._next = law / law.sum()
        self._update = update_of(self._quadratic, phase.kernel, rule)
        self._maps: dict[float, Floats] = {}

    def run(self, rates: Floats) -> None:
        tally = new_tally(self._law.size, self._own.size)
        self._own = self._update.run(self._law[:, None] * self._own, rates, tally).sum(axis=0)
        for rate in rates.tolist():
            if rate not in self._maps:
                columns = unit_columns(self._quadratic.dim, self._law)
                self._maps = {rate: self._update.images(columns, np.array([rate])).sum(axis=1).T}  # E[A] of an update
            self._pair = self._maps[rate] @ self._pair @ self._maps[rate].T
            if self._law is not self._next:  # from here on the nodes are drawn
                self._law, self._maps = self._next, {}
        self.visits += self.tokens * tally.visits
        self.messages += self.tokens * float(tally.sent[0])

    def mix(self, exchange: Exchange, step: int) -> None:
        # The messages of Average depend only on the number of tokens.
        gathering = gathering_of(0, 0, step, np.zeros(self.tokens, dtype=np.int32), self._graph)
        self.messages += float(sent_by(exchange, gathering, None))
        self._own = self.moments()[0]
        self._pair = model.unpacked(self._own, self._quadratic.dim + 1)

    def moments(self) -> tuple[Floats, float]:
        """E[z̄ z̄ᵀ] = own/m + (1 − 1/m) pair."""
        pair = model.packed(self._pair)
        share = 1 - 1 / self.tokens
        apart = share * float(length_of(self._own) - length_of(pair))
        return self._own / self.tokens + share * pair, max(apart, 0.0)


Group = _Fixed | _Sampled | _Drawn  # tokens that are followed together


def _staying(rows: int) -> Spread:
    """A spread without moves."""
    nothing, one = model.fixed(np.zeros((2, rows))), model.fixed(np.ones((1, 1)))
    shares, drawn = model.fixed(np.ones((1, 2))), model.fixed(np.zeros((1, 1)))
    law = model.fixed(np.zeros(0))
    return Spread(NO_ROWS, NO_ROWS, NO_ROWS, law, nothing, nothing, shares, one, drawn, NO_TURNS)
