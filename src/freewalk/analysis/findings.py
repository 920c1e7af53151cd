"""What a diagnosis found: its numbers, and the plain words for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from freewalk.analysis import words
from freewalk.analysis.moments import Floats
from freewalk.analysis.race import Race
from freewalk.analysis.sets import Trap
from freewalk.analysis.theory import ImportanceRates
from freewalk.analysis.words import IMPORTANCE as IMPORTANCE
from freewalk.analysis.words import UNIFORM as UNIFORM
from freewalk.designs import Design
from freewalk.graphs import Graph
from freewalk.rules import SGD


@dataclass(frozen=True)
class Forecast:
    """What one design would do.

    Attributes
    ----------
    label
        Its name.
    design
        The design itself; `design.kernel(graph, importance)` is its walk.
    excess
        Its excess visits to the nodes that hold the importance walk most, `Diagnosis.held`.
    distance
        The total variation between its stationary distribution and its target; 0 is unbiased.
    messages_per_update
        What it sends in the long run.
    race
        Step, updates and messages to the wanted error; None where that was not computed. What was not computed of the
        others is NaN.
    """

    label: str
    design: Design
    excess: float
    distance: float
    messages_per_update: float
    race: Race | None

    @property
    def rule(self) -> SGD | None:
        """The rule with the step of the race, to three digits; None where there was none."""
        step = 0.0 if self.race is None else float(f"{self.race.step:.3g}")
        return SGD(step) if 0.0 < step < np.inf else None


@dataclass(frozen=True)
class Goal:
    """What the designs race for.

    Attributes
    ----------
    settle, reach
        The steady error that steps are chosen for, and the error at which the clock stops: losses above the optimum.
    optimum, first
        The optimal loss, and the error of the zero model above it.
    most
        After so many updates a design is given up.
    """

    settle: float
    reach: float
    optimum: float
    first: float
    most: float

    def in_words(self, error: float) -> str:
        """An error above the optimum, as a multiple of the optimal loss or, where that is nearly 0, of the first error.

        Examples
        --------
        >>> goal = Goal(settle=0.25, reach=0.5, optimum=1.0, first=100.0, most=1e6)
        >>> goal.in_words(goal.reach)
        '1.5 × the optimal loss'
        """
        if self.optimum > 1e-4 * self.first:
            return f"{1 + error / self.optimum:.3g} × the optimal loss"
        return f"{error / self.first:.2g} of the first error"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What `diagnose` found; printing it says it in words, with a table, and what to paste.

    Attributes
    ----------
    graph, importance
        What was asked about.
    rates
        What importance sampling would bring if nodes could be drawn at will.
    traps
        The sets that hold the importance walk, the worst first; empty where it is free.
    held
        The set that holds it most, be it a trap or not; None where that was not computed.
    stays
        The mean stay of the importance walk at each node.
    forecasts
        What each design would do, by label.
    start
        Where the walk starts, in words.
    exact
        Whether updates were computed on the data themselves, or on a stand-in with the same importance.
    goal
        What the steps were chosen for and when the clock stopped; None where updates were not computed.
    budget
        The seconds that it was given.
    left_out
        What was not computed, and why.
    """

    graph: Graph
    importance: Floats
    rates: ImportanceRates
    traps: tuple[Trap, ...]
    stays: Floats
    forecasts: Mapping[str, Forecast]
    start: str
    exact: bool
    held: Trap | None = None
    goal: Goal | None = None
    budget: float = 60.0
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def entrapped(self) -> bool | None:
        """Whether importance keeps the walk coming back to some set, see `find_traps`; None: not known."""
        return None if self.held is None else bool(self.traps)

    @property
    def ratio(self) -> float:
        """Updates of the importance walk over those of the uniform walk; NaN where neither gets there, or is known."""
        importance, uniform = (self.forecasts[label].race for label in (IMPORTANCE, UNIFORM))
        if importance is None or uniform is None or not np.isfinite([importance.updates, uniform.updates]).any():
            return float("nan")
        return importance.updates / max(uniform.updates, 1.0)

    @property
    def slower(self) -> bool | None:
        """The verdict: whether Metropolis for importance needs more updates than the uniform one; None: not known."""
        return None if np.isnan(self.ratio) else bool(self.ratio > 1)

    @property
    def advised_against(self) -> bool:
        """Whether to leave importance sampling by Metropolis: it is slower, or, where that is not known, entrapped."""
        return bool(self.entrapped) if self.slower is None else self.slower

    @property
    def best_label(self) -> str | None:
        """The label of the design that needs the fewest updates; None where they were not computed."""
        return self._least("updates")

    @property
    def cheapest_label(self) -> str | None:
        """The label of the design that needs the fewest messages; None where they were not computed."""
        return self._least("messages")

    @property
    def best(self) -> Design | None:
        """The design that needs the fewest updates; None where they were not computed."""
        return None if self.best_label is None else self.forecasts[self.best_label].design

    @property
    def cheapest(self) -> Design | None:
        """The design that needs the fewest messages; None where they were not computed."""
        return None if self.cheapest_label is None else self.forecasts[self.cheapest_label].design

    @property
    def rule(self) -> SGD | None:
        """The rule that goes with `best`."""
        return None if self.best_label is None else self.forecasts[self.best_label].rule

    def _least(self, what: str) -> str | None:
        needs = {label: getattr(one.race, what) for label, one in self.forecasts.items() if one.race is not None}
        reached = {label: amount for label, amount in needs.items() if np.isfinite(amount)}
        return min(reached, key=lambda label: reached[label]) if reached else None

    def times_uniform(self, label: str) -> float:
        """Updates of a design over those of the uniform walk; infinite where it does not get there, NaN: not known."""
        one, uniform = self.forecasts[label].race, self.forecasts[UNIFORM].race
        if one is None or uniform is None or not np.isfinite(uniform.updates):
            return float("nan")
        return float(one.updates / max(uniform.updates, 1.0))

    @property
    def conclusion(self) -> str:
        """What matters, in one sentence."""
        return words.conclusion(self)

    def text(self, width: int = 100) -> str:
        """All of it in plain words, with a table of the designs and what to paste, in lines of so many letters."""
        return words.text(self, width)

    def __str__(self) -> str:
        """The text, as the command line prints it."""
        return self.text()

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        """All of it for scripts, as plain numbers; None stands for what is not known or not finite."""
        return {
            "graph": self.graph.name,
            "nodes": self.graph.n,
            "start": self.start,
            "importance": {"least": _plain(self.importance.min()), "mean": _plain(words.mean(self.importance)),
                           "most": _plain(self.importance.max())},
            "entrapped": self.entrapped,
            "slower": self.slower,
            "advised_against": self.advised_against,
            "ratio": _plain(self.ratio),
            "best": self.best_label,
            "cheapest": self.cheapest_label,
            "use": [] if self.best_label is None else words.in_code(self.forecasts[self.best_label]),
            "in_spec": [] if self.best_label is None else words.in_spec(self.forecasts[self.best_label]),
            "conclusion": self.conclusion,
            "on_data": self.exact,
            "goal": None if self.goal is None else {name: _plain(value) for name, value in vars(self.goal).items()},
            "traps": [_trap(trap) for trap in self.traps],
            "held": None if self.held is None else _trap(self.held),
            "budget": _plain(self.budget),
            "left_out": dict(self.left_out),
            "designs": {
                label: {
                    "excess_visits": _plain(one.excess),  # `excess` is that of the loss, in the race
                    "distance": _plain(one.distance),
                    "messages_per_update": _plain(one.messages_per_update),
                    **({} if one.race is None else {name: _plain(value) for name, value in vars(one.race).items()}),
                }
                for label, one in self.forecasts.items()
            },
        }  # fmt: skip


def _trap(trap: Trap) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else _plain(value) for name, value in vars(trap).items()}


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
