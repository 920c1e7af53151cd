"""The findings of a diagnosis: its numbers, and a description in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from freewalk.analysis.diagnosis import words
from freewalk.analysis.diagnosis.words import IMPORTANCE, UNIFORM, in_code, in_spec
from freewalk.analysis.learning.race import Race
from freewalk.analysis.theory import ImportanceRates
from freewalk.analysis.traps.sets import Trap
from freewalk.checks import Checks
from freewalk.designs import Design
from freewalk.errors import AnalysisError
from freewalk.graphs import Graph
from freewalk.linear.arrays import Floats
from freewalk.rules import SGD

check = Checks(AnalysisError)


@dataclass(frozen=True)
class Forecast:
    """What to expect of one design; numbers that were not computed are NaN."""

    label: str
    design: Design  # `design.kernel(graph, importance)` is its walk
    excess: float  # its excess visits to the nodes that hold the importance walk longest, `Diagnosis.held`
    distance: float  # the total variation between its stationary distribution and its target; 0 means unbiased
    messages_per_update: float  # in the long run
    race: Race | None  # the step, and the updates and messages to the goal; None if not computed

    @property
    def rule(self) -> SGD | None:
        """SGD with the step of the race, to three digits; None if there was no race."""
        step = 0.0 if self.race is None else float(f"{self.race.step:.3g}")
        return SGD(step) if 0.0 < step < np.inf else None


@dataclass(frozen=True)
class Goal:
    """The goal of the race between the designs; errors are losses above the optimum."""

    settle: float  # the steady error that steps are chosen for
    reach: float  # the error to reach
    optimum: float  # the optimal loss
    first: float  # the error of the zero model
    most: float  # the number of updates after which a design is stopped

    def in_words(self, error: float) -> str:
        """An error, as a multiple of the optimal loss or, if that is nearly 0, of the initial error."""
        if self.optimum > 1e-4 * self.first:
            return f"{1 + error / self.optimum:.3g} × the optimal loss"
        return f"{error / self.first:.2g} of the initial error"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """The result of `diagnose`; `print` shows it in words, with a table of the designs and code to paste.

    Attributes
    ----------
    graph, importance
        The graph and the importance of its nodes.
    rates
        What importance sampling would gain if nodes could be drawn independently.
    traps
        The sets that trap the importance walk, the worst first; empty if it is not trapped.
    held
        The set that holds it longest, whether or not it is a trap; None if not computed.
    stays
        The mean stay of the importance walk at each node.
    forecasts
        What to expect of each design, by label.
    start
        Where the walk starts, in words.
    exact
        Whether the problem is least squares: only then are updates computed, on its data, and a design and a step
        recommended. Otherwise each `race`, `goal`, `best`, `cheapest` and `rule` are None, and `slower` is not known.
    goal
        The error that steps were chosen for and the error to reach; None if updates were not computed.
    budget
        The time limit in seconds.
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
        """Whether importance keeps the walk returning to some set, see `find_traps`; None if not known."""
        return None if self.held is None else bool(self.traps)

    @property
    def ratio(self) -> float:
        """Updates of the importance walk divided by those of the uniform walk; NaN if neither reaches the goal."""
        importance, uniform = (self.forecasts[label].race for label in (IMPORTANCE, UNIFORM))
        if importance is None or uniform is None or not np.isfinite([importance.updates, uniform.updates]).any():
            return float("nan")
        return importance.updates / max(uniform.updates, 1.0)

    @property
    def slower(self) -> bool | None:
        """Whether importance sampling by Metropolis needs more updates than the uniform walk; None if not known."""
        return None if np.isnan(self.ratio) else bool(self.ratio > 1)

    @property
    def advised_against(self) -> bool:
        """Whether to avoid importance sampling by Metropolis: it is slower or, if that is not known, entrapped."""
        return bool(self.entrapped) if self.slower is None else self.slower

    @property
    def best_label(self) -> str | None:
        """The label of the design that needs the fewest updates; None if they were not computed."""
        return self._least("updates")

    @property
    def cheapest_label(self) -> str | None:
        """The label of the design that needs the fewest messages; None if they were not computed."""
        return self._least("messages")

    @property
    def best(self) -> Design | None:
        """The design that needs the fewest updates; None if they were not computed."""
        return None if self.best_label is None else self.forecasts[self.best_label].design

    @property
    def cheapest(self) -> Design | None:
        """The design that needs the fewest messages; None if they were not computed."""
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
        """Updates of a design divided by those of the uniform walk; inf if it misses the goal, NaN if not known."""
        check.choice("times_uniform", "label", label, self.forecasts)
        one, uniform = self.forecasts[label].race, self.forecasts[UNIFORM].race
        if one is None or uniform is None or not np.isfinite(uniform.updates):
            return float("nan")
        return float(one.updates / max(uniform.updates, 1.0))

    @property
    def conclusion(self) -> str:
        """The main finding in one sentence."""
        return words.conclusion(self)

    def text(self, width: int = 100) -> str:
        """The diagnosis in words, with a table of the designs and code to paste, in lines of `width` characters."""
        return words.text(self, check.whole("text", "width", width, 20, 1000))

    def __str__(self) -> str:
        """The text, as the command line prints it."""
        return self.text()

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        """The diagnosis as plain numbers, for scripts; None stands for values that are unknown or not finite."""
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
            "use": [] if self.best_label is None else in_code(self.forecasts[self.best_label]),
            "in_spec": [] if self.best_label is None else in_spec(self.forecasts[self.best_label]),
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
