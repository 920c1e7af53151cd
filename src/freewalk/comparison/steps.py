"""The step of a contestant: by a search with a budget, which starts at the exact settling step if there is one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from freewalk.checks import Checks
from freewalk.comparison.track import Contestant, has_diverged, tail_of
from freewalk.errors import FreewalkError, FreewalkWarning
from freewalk.linear import deadline
from freewalk.objectives import LeastSquares
from freewalk.rules import SGD
from freewalk.schedules import Schedule

EXACT, SEARCH, GIVEN = "exact", "search", "given"

_WINDOW = 6  # steps tried side by side, each half of the previous one
_SMALLEST = 60  # halvings of the largest step, beyond which nothing learns
_USELESS = 1e-5  # times 1 / max w_v L_v: if the exact step is below, no step settles low enough
_UNBOUND = 0.99  # times the same, the largest that is analysed: if it settles low enough, noise does not limit the step
_SECONDS = 60.0  # time limit for an exact step
_LARGEST = 4.0  # times 1 / mean w_v L_v: few methods are stable with such a step, and the search moves on
_LASTING = 1.5  # times the rounds to the goal: how long a pilot has to stay there
_OTHER_SEED = 0x9E3779B97F4A7C15
_check = Checks(FreewalkError)


@dataclass(frozen=True)
class Budget:
    """What the search for a step may spend per contestant.

    Parameters
    ----------
    runs
        The number of pilot runs.
    updates
        The number of updates, over all pilot runs, walks and tokens.
    walks
        The number of walks per pilot run.

    Raises
    ------
    FreewalkError
        If one of them is below 1.

    Examples
    --------
    >>> Budget(runs=20)
    Budget(runs=20, updates=50000000, walks=16)
    """

    runs: int = 40
    updates: int = 50_000_000
    walks: int = 16

    def __post_init__(self) -> None:
        for name in ("runs", "updates", "walks"):
            _check.whole("Budget", name, getattr(self, name), 1)


@dataclass(frozen=True)
class Choice:
    """The step of a contestant."""

    step: float | None  # None: the rule as given
    how: str
    rounds: float = np.inf  # until the pilot runs reached the goal, if they did
    runs: int = 0  # what the search has spent
    updates: int = 0


def choose(contestant: Contestant, budget: Budget, keep: bool) -> Choice:
    """Choose the step of a contestant, by the common rule."""
    step = getattr(contestant.method.rule, "step", None)
    if keep or step is None or isinstance(step, Schedule):
        return Choice(None, GIVEN)
    return _Search(contestant, budget, exact_step(contestant)).choice()


def exact_step(contestant: Contestant) -> float | None:
    """The largest step whose steady excess is half of that of the goal; None if unknown.

    It is also unknown if 1 / max w_v L_v, the largest step that is analysed, settles lower than that.
    """
    track, problem, rule = contestant.track, contestant.track.problem, contestant.method.rule
    if not isinstance(problem, LeastSquares) or not isinstance(rule, SGD) or problem.ridge > 0:
        return None
    from freewalk.analysis.learning.tokens import settling_step

    method, kernel = contestant.method, contestant.kernel
    settle = (track.level / track.optimum - 1) / 2 * float(problem.loss(problem.optimum()))
    track.tell(f"{method.label}: its exact step")
    try:
        with deadline.within(_SECONDS):
            step = settling_step(problem, kernel, rule, settle, tokens=method.tokens, exchange=method.exchange)
    except FreewalkError:  # no exact steady state, or none within the time limit
        return None
    relative = step * float((kernel.weights * problem.smoothness).max())
    return step if _USELESS < relative < _UNBOUND else None


class _Pilot(NamedTuple):
    """A step by its position on the grid: when it reached the goal, and the mean of the last measurements."""

    place: float
    rounds: float
    last: float


class _OverBudget(Exception):
    """There is no budget for another pilot run."""


@dataclass
class _Search:
    """Steps on a geometric grid, in runs that get longer until one reaches the goal and stays there.

    It goes up from the settling step if that is known exactly, otherwise down from the largest. A step that diverges is
    replaced by a smaller one, and so is one that a smaller step has overtaken.
    """

    contestant: Contestant
    budget: Budget
    exact: float | None = None
    runs: int = 0
    updates: int = 0
    best: _Pilot | None = None
    lowest: dict[float, float] = field(default_factory=dict)  # by position: the last measurement

    def choice(self) -> Choice:
        """The step that reached the goal in the fewest rounds, or else the one that came nearest."""
        try:
            if self.exact is None:
                self._climb_down()
            else:
                rounds, most = self.contestant.first_rounds, self.contestant.most_rounds
                while self._pilot(self._origin, rounds).rounds == np.inf and rounds < most:
                    rounds = min(4 * rounds, most)
            self._refine()
        except _OverBudget:
            pass
        nearest = min(self.lowest, key=lambda place: (self.lowest[place], place), default=float(_WINDOW))
        best = self.best or _Pilot(nearest if self.exact is None else self._origin, np.inf, np.inf)
        at_origin = self.exact is not None and best.place == self._origin
        step, how = (self.exact, EXACT) if at_origin else (self._step(best.place), SEARCH)
        return Choice(step, how, best.rounds, self.runs, self.updates)

    @cached_property
    def _first(self) -> float:
        """The step at position 0."""
        kernel, problem = self.contestant.kernel, self.contestant.track.problem
        return _LARGEST / float((kernel.weights * problem.smoothness).mean())

    @cached_property
    def _origin(self) -> float:
        """The position of the exact step; without one, of the largest."""
        return 0.0 if self.exact is None else float(np.log2(self._first / self.exact))

    def _step(self, place: float) -> float:
        return float(f"{self._first * 0.5**place:.3g}")

    def _climb_down(self) -> None:
        window, smaller = [float(place) for place in range(_WINDOW)], _WINDOW
        rounds, most = self.contestant.first_rounds, self.contestant.most_rounds
        while window:
            found: dict[float, float] = {}
            while window:
                place = window.pop(0)
                pilot = self._pilot(place, rounds)
                if np.isfinite(pilot.last):
                    found[place] = pilot.last
                elif smaller < _SMALLEST:
                    window.append(float(smaller))
                    smaller += 1
            self.lowest = found or self.lowest
            if self.best is not None or rounds >= most:
                return
            # A smaller step that is already lower has overtaken for good.
            window = [place for place in found if found[place] <= min(found[one] for one in found if one >= place)]
            added = range(smaller, min(smaller + _WINDOW - len(window), _SMALLEST))
            window, smaller = [*window, *map(float, added)], smaller + len(added)
            rounds = min(4 * rounds, most)

    def _refine(self) -> None:
        """Try larger steps if the largest was the best, then those between the best and its neighbours."""
        if self.best is None:
            return
        while self.best.place <= self._origin and self._pilot(self.best.place - 1) is self.best:
            pass
        for apart in (0.5, 0.25):
            middle = self.best.place
            for place in (middle - apart, middle + apart):
                self._pilot(place)

    def _pilot(self, place: float, rounds: int = 1) -> _Pilot:
        """Run a step; a run that reaches the goal and stays there is the best so far if it was faster.

        It takes this many rounds; once a step is known to reach the goal, as many as that one, and half as many more.
        """
        one, track = self.contestant, self.contestant.track
        needed = rounds if self.best is None else int(np.ceil(_LASTING * np.ceil(self.best.rounds)))
        length = min(max(needed, 1), one.most_rounds)
        walks = self.budget.walks if one.draws else 1
        cost = length * one.updates_per_round * walks
        if self.runs >= self.budget.runs or self.updates + cost > self.budget.updates:
            raise _OverBudget
        self.runs, self.updates = self.runs + 1, self.updates + cost
        track.tell(f"{one.method.label}: pilot run {self.runs} of at most {self.budget.runs}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FreewalkWarning)  # the final run shows it
            record = one.run(self._step(place), length, walks, (track.seed + _OTHER_SEED) % 2**64)
        reached = one.rounds_to_goal(record) if one.stays(record) else np.inf
        last = np.inf if has_diverged(record) else float(tail_of(one.mean_of(record)).mean())
        pilot = _Pilot(place, reached, last)
        if np.isfinite(reached) and (self.best is None or reached < self.best.rounds):
            self.best = pilot
        return pilot


def reduced(choice: Choice) -> Choice:
    """The same choice with a smaller step, if all walks together do not perform like the pilots."""
    factor = 2.0**0.5
    step = None if choice.step is None else choice.step / factor
    return replace(choice, step=step, rounds=factor * choice.rounds, how=SEARCH)
