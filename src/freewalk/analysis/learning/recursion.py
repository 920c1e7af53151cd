"""The second-moment recursion as arrays: the moves of a kernel, compiled updates, and one step as a linear map."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from freewalk.analysis.chain.chain import check_dense, check_fit, states_and_matrix, stationary
from freewalk.analysis.chain.states import States, Turns, states_of
from freewalk.analysis.chain.traffic import traffic_of
from freewalk.analysis.chain.unrolled import is_free
from freewalk.analysis.learning import moments
from freewalk.analysis.learning.model import Quadratic, check_problem, check_rule, fixed
from freewalk.analysis.learning.moments import LocalTerms, Rows, Spread, Tally
from freewalk.blocks import blocks
from freewalk.compiled.compiler import compile_functions
from freewalk.designs.kernel import Kernel, Move
from freewalk.errors import AnalysisError
from freewalk.linear import deadline
from freewalk.linear.arrays import Floats, Ints
from freewalk.objectives import LeastSquares
from freewalk.rules import SGD

#: A matrix without values, which the recursion takes for 0.
NO_ROWS: Rows = fixed(np.zeros(0, dtype=np.int64)), fixed(np.zeros(0, dtype=np.int32)), fixed(np.zeros(0))
#: No pairs of nodes.
_NONE, _EMPTY = fixed(np.zeros(0, dtype=np.int64)), fixed(np.zeros(0))
NO_TURNS = Turns(_NONE, _NONE, _EMPTY, _EMPTY, _EMPTY)

_FEW = 300  # nodes up to which a matrix is always factorised
_SPARSE, _FILLED = 30, 12  # maximum moves per node, and fill-in of the factors, for a factorisation to be worthwhile
_WORK = 1e9  # multiplications, about half a second, between two checks of the time limit
_NO_MARKS, _FIRST = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)


def spread_of(kernel: Kernel, steps: Ints, states: States) -> Spread:
    """The moves of a kernel as the recursion reads them, with their probabilities at the given steps."""
    if states.turns is not None:
        return _turning(states.nodes, states.turns)
    first, rest, shares = list(kernel.moves), list[Move](), np.ones((1, 2))
    # Everything constant is one matrix; of the changing parts, all moves but the first share one factor.
    if kernel.fade is not None:
        first, rest = [replace(first[0], probability=1.0)], first[1:]
        total, probabilities = sum(move.probability for move in rest), kernel.probabilities(steps)
        fades = probabilities[:, 1:].sum(axis=1) / total if total > 0 else np.zeros(len(steps))
        shares = np.column_stack([probabilities[:, 0], fades])
    longest = max([move.hops for move in kernel.moves if is_free(move)], default=0)
    hops = np.zeros((len(shares), longest + 1))
    drawn = np.zeros((len(shares), 1))
    laws = np.zeros(kernel.graph.n)
    for share, moves in zip(shares.T, (first, rest), strict=True):
        for move in moves:
            if is_free(move):
                hops[:, move.hops] += share * move.probability
            elif move.law is not None:
                law = np.asarray(move.law)
                laws, drawn = law / law.sum(), drawn + (share * move.probability)[:, None]
    if sum(move.law is not None for move in kernel.moves) > 1:
        raise AnalysisError(f"{kernel.label}: has several moves that draw from a law, expected at most one; merge them")
    messages, probes = zip(*(traffic_of(kernel, moves) for moves in (first, rest)), strict=True)
    graph = kernel.graph
    hop = fixed(graph.indptr.astype(np.int64)), fixed(graph.indices), fixed((1.0 / graph.degrees)[graph.indices])
    law, sent, asked, changing, free, redrawn = (
        fixed(np.asarray(part))
        for part in (laws if drawn.any() else np.zeros(0), messages, probes, shares, hops, drawn)
    )
    matrices = _matrix(kernel, first), _matrix(kernel, rest), hop
    return Spread(*matrices, law, sent, asked, changing, free, redrawn, NO_TURNS)


def _turning(nodes: Ints, turns: Turns) -> Spread:
    """The moves of a walk that remembers the last node, between its pairs of nodes."""
    pairs = np.arange(nodes.size)
    stays = np.flatnonzero(turns.ahead == pairs)
    after = np.full(turns.begins.size - 1, -1)
    after[nodes[stays]] = stays
    after = after[nodes]  # by pair: that after a stay, or -1
    lower = np.minimum(turns.gains, turns.gains[after])
    messages = 1.0 - np.where(after >= 0, turns.shares[after] * lower, 0.0)
    messages[stays] = np.bincount(nodes, np.where(pairs == after, 0.0, turns.shares * lower))[nodes[stays]]
    nothing, one, none = np.zeros((2, nodes.size)), fixed(np.ones((1, 2))), fixed(np.zeros((1, 1)))
    sent, turns = fixed(np.vstack([messages, nothing[0]])), Turns(*map(fixed, turns))
    return Spread(NO_ROWS, NO_ROWS, NO_ROWS, fixed(np.zeros(0)), sent, fixed(nothing), one, none, none, turns)


def _matrix(kernel: Kernel, moves: Sequence[Move]) -> Rows:
    """The transposed sum of the moves that do not hop uniformly, weighted by their probabilities."""
    from scipy.sparse import csr_array

    powers: list[Any] = []
    parts = [
        move.probability * kernel.move_matrix(move, powers)
        for move in moves
        if not is_free(move) and move.law is None and move.probability > 0
    ]
    if not parts:
        return NO_ROWS
    matrix = csr_array(sum(parts[1:], parts[0]).T)
    return fixed(matrix.indptr.astype(np.int64)), fixed(matrix.indices.astype(np.int32)), fixed(matrix.data)


def new_tally(rows: int, width: int, marks: int = 0) -> Tally:
    """Counts that begin at 0."""
    return Tally(np.zeros(rows), np.zeros(2), np.zeros((marks, width)), np.zeros((marks, 2)))


class Update:
    """The updates of a rule and the moves after each, as a map of rows of moments, (p, m, S) or (p, m)."""

    def __init__(self, terms: LocalTerms, weights: Floats, rule: SGD, spread: Spread) -> None:
        self._parts = terms, fixed(weights), int(rule.local_steps), spread
        calls = ("learn_from_one", "learn_from_all", "learn_together", "spread_rows", "turn", "learn", "draw", "count")
        self._advance = compile_functions({"advance": moments.advance}, "advance", calls=calls)

    def advance(self, states: Floats, rates: Floats, tally: Tally, marks: Ints = _NO_MARKS) -> None:
        """Make one step at each of the rates; the state is the first of four arrays, before and after."""
        terms, weights, local_steps, spread = self._parts
        width = states.shape[2]
        order = 1 if width == 1 + terms.features.shape[1] else 2
        with np.errstate(all="ignore"):
            room = _scratch(terms, width)
            self._advance(terms, weights, rates, local_steps, spread, tally, marks, states, room, order)
        if len(rates) % 2:
            states[0] = states[1]

    def run(self, state: Floats, rates: Floats, tally: Tally | None = None) -> Floats:
        """The state after one step at each of the rates."""
        states = room_for(state)
        self.advance(states, rates, new_tally(*state.shape) if tally is None else tally)
        return np.asarray(states[0])

    def images(self, columns: Floats, rates: Floats) -> Floats:
        """The image of each column of the maps, by row: (d + 1) × rows × (d + 1)."""
        return np.array([self.run(rows, rates) for rows in columns])


def update_of(quadratic: Quadratic, kernel: Kernel, rule: SGD, steps: Ints = _FIRST) -> Update:
    """The updates of a walk, with the probabilities of its moves at the given steps."""
    states = states_of(kernel)
    terms, weights = quadratic.terms(rule.sampled, states.nodes), quadratic.step_weights(kernel, rule)[states.nodes]
    return Update(terms, weights, rule, spread_of(kernel, steps, states))


def room_for(state: Floats) -> Floats:
    """A state, and three spare arrays."""
    states = np.zeros((4, *state.shape))
    states[0] = state
    return states


def _scratch(terms: LocalTerms, width: int) -> moments.Scratch:
    """Working memory for the recursion; nodes with one sample each, without ridge, are processed side by side."""
    d = terms.features.shape[1]
    # With many features the lanes do not fit into the fastest cache, and are slower than one node at a time.
    alike = bool((np.diff(terms.offsets) == 1).all()) and terms.ridge == 0.0 and d <= 16
    lanes = np.zeros((4 * d + 4 + d * (d + 1) // 2, moments.LANES)) if alike else np.zeros((0, moments.LANES))
    return moments.Scratch(np.zeros((6 + d, max(width, d))), lanes)


class Recursion:
    """The map of the moments of a walk in one step, by state, at any step size γ; the step of the rule is ignored."""

    def __init__(self, who: str, problem: LeastSquares, kernel: Kernel, rule: SGD) -> None:
        self.quadratic = Quadratic(check_problem(who, problem))
        self.rule = check_rule(who, rule)
        check_fit(who, problem, kernel, last_node=True)  # compiled code would read beyond its arrays
        check_dense(who, kernel.graph.n, "Beyond, run exact_curve until it is flat, or until it has grown")
        self.states, self.matrix = states_and_matrix(who, kernel)
        self.who, self.kernel = who, kernel
        self.n, self.dim = self.states.nodes.size, self.quadratic.dim
        self.weights = self.quadratic.step_weights(kernel, rule)
        self._update = update_of(self.quadratic, kernel, rule)
        self._inverses: dict[float, Callable[[Floats], Floats]] = {}
        self._factorised = self.n <= _FEW or self.matrix.nnz <= _SPARSE * self.n

    @property
    def triangle(self) -> int:
        """The number of values of S at a node."""
        return self.dim * (self.dim + 1) // 2

    @cached_property
    def safe_step(self) -> float:
        """2 / max w_v L_v: up to this step no update at any node can increase an error."""
        if self.rule.sampled:
            squares = (self.quadratic.features**2).sum(axis=1) + self.quadratic.problem.ridge
            steepest = float((squares * np.repeat(self.weights, np.diff(self.quadratic.problem.offsets))).max())
        else:
            steepest = float((self.weights * self.quadratic.smoothness).max())
        return 2.0 / steepest if steepest > 0 else np.inf

    def discounted(self, pull: float) -> Callable[[Floats], Floats]:
        """(I − decay · Pᵀ)⁻¹, or an approximation, as a function of n × k numbers, with a decay of about 1 − pull.

        It is factorised if that is cheap: on graphs that are narrow or nearly trees, where walks are slow. The factors
        are kept, for pulls rounded to powers of four, which costs few additional iterations. Elsewhere walks mix well,
        and it is nearly sufficient to know how long they stay at each node and how the whole decays.
        """
        from scipy.sparse import csc_array, eye_array
        from scipy.sparse.linalg import splu

        rounded = min(4.0 ** round(float(np.log(pull) / np.log(4.0))), 0.5)
        if self._factorised and rounded not in self._inverses:
            factors = splu(csc_array(eye_array(self.n) - (1.0 - rounded) * self.matrix.T))
            entries = self.matrix.nnz + self.n
            self._factorised = self.n <= _FEW or factors.L.nnz + factors.U.nnz <= _FILLED * entries
            self._inverses[rounded] = factors.solve
        if self._factorised:
            return self._inverses[rounded]
        stays = 1.0 / (1.0 - (1.0 - pull) * self.matrix.diagonal())[:, None]

        def nearly(values: Floats) -> Floats:
            stayed = stays * values
            return np.asarray(stayed + self.law[:, None] * (values.sum(axis=0) / pull - stayed.sum(axis=0)))

        return nearly

    @cached_property
    def law(self) -> Floats:
        """The stationary distribution of the states."""
        return self.states.lifted(stationary(self.kernel, who=self.who))

    def step(self, state: Floats, rate: float, count: int = 1, tally: Tally | None = None) -> Floats:
        """The rows p, m and, if present, S after one step or several; visits and messages are added to the tally."""
        slice_of_time = max(1, int(_WORK / (state.shape[1] * (self.n + self.matrix.nnz))))
        for part in blocks(count, numbers=slice_of_time):
            deadline.check()
            state = self._update.run(state, np.full(part.stop - part.start, rate), tally)
        return state

    def linear_part(self, values: Floats, rate: float, order: int) -> Floats:
        """The linear part of the step of m, n × d, or with `order` 2 of S, n × triangle."""
        first = 1 if order == 1 else 1 + self.dim
        return self.step(np.hstack([np.zeros((self.n, first)), values]), rate)[:, first:]
