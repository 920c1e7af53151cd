"""One step of the second-moment recursion as a linear map, for what asks about its limit instead of its course."""

from functools import cached_property

import numpy as np

from freewalk.analysis import model
from freewalk.analysis.chain import check_fit, matrix_of
from freewalk.analysis.moments import Floats, Tally
from freewalk.kernel import Kernel
from freewalk.learning import SGD
from freewalk.objectives import LeastSquares

_NO_MARKS = np.zeros(0, dtype=np.int64)


class Recursion:
    """The map of the moments in one step, at any step size γ.

    Parameters
    ----------
    who
        Who asks, for errors.
    problem
        A least-squares problem.
    kernel
        A kernel that does not change with time.
    rule
        An SGD without averaging; its own step is not used.
    """

    def __init__(self, who: str, problem: LeastSquares, kernel: Kernel, rule: SGD) -> None:
        self.matrix = matrix_of(who, kernel)
        self.quadratic = model.Quadratic(model.check_problem(who, problem))
        check_fit(who, problem, kernel)  # compiled code would read beyond its arrays
        self.kernel = kernel
        self.rule = model.check_rule(who, rule)
        self.n, self.dim = problem.n, self.quadratic.dim
        self.weights = kernel.weights if rule.weighted else np.ones(self.n)
        self._spread = model.spread_of(kernel, np.zeros(1, dtype=np.int64))
        self._terms = self.quadratic.terms(rule.sampled)
        self._weights = model.fixed(self.weights)
        self._advance = model.compiled()

    @property
    def triangle(self) -> int:
        """How many numbers S has at a node."""
        return self.dim * (self.dim + 1) // 2

    @cached_property
    def safe_step(self) -> float:
        """2 / max w_v L_v: up to here no update at any node can make an error longer."""
        if self.rule.sampled:
            squares = (self.quadratic.features**2).sum(axis=1) + self.quadratic.problem.ridge
            steepest = float((squares * np.repeat(self.weights, np.diff(self.quadratic.problem.offsets))).max())
        else:
            steepest = float((self.weights * self.quadratic.problem.smoothness).max())
        return 2.0 / steepest if steepest > 0 else np.inf

    def step(self, state: Floats, rate: float) -> Floats:
        """The state after one step, rows p, m and, where they are as long, S."""
        tally = Tally(np.zeros(self.n), np.zeros(2), np.zeros((0, state.shape[1])), np.zeros((0, 2)))
        return self.run(state, rate, 1, tally)

    def run(self, state: Floats, rate: float, steps: int, tally: Tally) -> Floats:
        """The state after some steps; visits and messages are added to the tally."""
        width = state.shape[1]
        states = np.zeros((4, *state.shape))
        states[0] = state
        order = 1 if width == 1 + self.dim else 2
        parts = (self._spread, tally, _NO_MARKS, states, model.scratch(self._terms, width), order)
        with np.errstate(all="ignore"):
            self._advance(self._terms, self._weights, np.full(steps, rate), int(self.rule.local_steps), *parts)
        return np.asarray(states[steps % 2])

    def means(self, values: Floats, rate: float) -> Floats:
        """The linear part of the step of m, n × d."""
        state = np.hstack([np.zeros((self.n, 1)), values])
        return self.step(state, rate)[:, 1:]

    def seconds(self, values: Floats, rate: float) -> Floats:
        """The linear part of the step of S, n × triangle."""
        state = np.hstack([np.zeros((self.n, 1 + self.dim)), values])
        return self.step(state, rate)[:, 1 + self.dim :]
