"""One step of the second-moment recursion as a linear map, to compute its limit instead of its course."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from freewalk.analysis.chain.chain import check_dense, check_fit, matrix_of
from freewalk.analysis.chain.law import stationary
from freewalk.analysis.learning import model
from freewalk.analysis.learning.moments import Floats, Tally
from freewalk.designs.kernel import Kernel
from freewalk.linear import deadline
from freewalk.objectives import LeastSquares
from freewalk.rules import SGD

_FEW = 300  # nodes up to which a matrix is always factorised
_SPARSE, _FILLED = 30, 12  # maximum moves per node, and fill-in of the factors, for a factorisation to be worthwhile
_WORK = 1e9  # multiplications, about half a second, between two checks of the time limit
_NO_MARKS = np.zeros(0, dtype=np.int64)


class Recursion:
    """The map of the moments in one step, at any step size γ.

    Parameters
    ----------
    who
        The caller, for error messages.
    problem
        A least-squares problem.
    kernel
        A kernel that does not change with time, with at most 5000 nodes.
    rule
        SGD without averaging; its own step is ignored.
    """

    def __init__(self, who: str, problem: LeastSquares, kernel: Kernel, rule: SGD) -> None:
        self.quadratic = model.Quadratic(model.check_problem(who, problem))
        self.rule = model.check_rule(who, rule)
        check_fit(who, problem, kernel)  # compiled code would read beyond its arrays
        check_dense(who, kernel.graph.n, "Beyond, run exact_curve until it is flat, or until it has grown")
        self.matrix = matrix_of(who, kernel)
        self.kernel = kernel
        self.n, self.dim = problem.n, self.quadratic.dim
        self.weights = self.quadratic.step_weights(kernel, rule)
        self._spread = model.spread_of(kernel, np.zeros(1, dtype=np.int64))
        self._terms = self.quadratic.terms(rule.sampled)
        self._weights = model.fixed(self.weights)
        self._advance = model.compiled()
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
        """The stationary distribution of the walk."""
        return stationary(self.kernel)

    def step(self, state: Floats, rate: float) -> Floats:
        """The state after one step: rows p, m and, if present, S."""
        tally = Tally(np.zeros(self.n), np.zeros(2), np.zeros((0, state.shape[1])), np.zeros((0, 2)))
        return self.run(state, rate, 1, tally)

    def run(self, state: Floats, rate: float, steps: int, tally: Tally) -> Floats:
        """The state after some steps; visits and messages are added to the tally."""
        width = state.shape[1]
        states = np.zeros((4, *state.shape))
        states[0] = state
        order = 1 if width == 1 + self.dim else 2
        parts = (self._spread, tally, _NO_MARKS, states, model.scratch(self._terms, width), order)
        slice_of_time = max(1, int(_WORK / (width * (self.n + self.matrix.nnz))))
        for done in range(0, steps, slice_of_time):
            deadline.check()
            count = min(slice_of_time, steps - done)
            with np.errstate(all="ignore"):
                self._advance(self._terms, self._weights, np.full(count, rate), int(self.rule.local_steps), *parts)
            states[0] = states[count % 2]
        return np.asarray(states[0])

    def means(self, values: Floats, rate: float) -> Floats:
        """The linear part of the step of m, n × d."""
        state = np.hstack([np.zeros((self.n, 1)), values])
        return self.step(state, rate)[:, 1:]

    def seconds(self, values: Floats, rate: float) -> Floats:
        """The linear part of the step of S, n × triangle."""
        state = np.hstack([np.zeros((self.n, 1 + self.dim)), values])
        return self.step(state, rate)[:, 1 + self.dim :]
