"""What a diagnosis found: its numbers, and the plain words for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from freewalk.analysis.moments import Floats
from freewalk.analysis.race import Race
from freewalk.analysis.sets import Trap, name_nodes
from freewalk.analysis.theory import ImportanceRates
from freewalk.graphs import Graph

UNIFORM, IMPORTANCE = "MH uniform", "MH importance"


@dataclass(frozen=True)
class Forecast:
    """What one design would do.

    Attributes
    ----------
    label
        Its name.
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
    excess: float
    distance: float
    messages_per_update: float
    race: Race | None


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


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `diagnose` found; printing it says it in words.

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
    stays: Floats = field(repr=False)
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
    def best(self) -> str | None:
        """The design that needs the fewest updates; None where they were not computed."""
        known = {label: one.race.updates for label, one in self.forecasts.items() if one.race is not None}
        reached = {label: updates for label, updates in known.items() if np.isfinite(updates)}
        return min(reached, key=lambda label: reached[label]) if reached else None

    @property
    def conclusion(self) -> str:
        """What matters, in one sentence."""
        if self.held is None:
            trapped = "Whether importance sampling by Metropolis is entrapped was not found out"
        elif self.entrapped:
            trapped = f"Importance sampling by Metropolis is entrapped at {name_nodes(self.traps[0].nodes)}"
        else:
            trapped = "Importance sampling by Metropolis is not entrapped"
        if self.slower is None:
            return f"{trapped}; its updates are not known."
        if abs(self.ratio - 1) < 0.02:
            return f"{trapped}, and as fast as the uniform walk."
        if self.slower:
            return f"{trapped}, {'and' if self.entrapped else 'yet'} slower than the uniform walk."
        return f"{trapped}, and {'still pays here' if self.entrapped else 'pays'}."

    def __str__(self) -> str:
        """All of it in plain words."""
        return "\n".join(_sentences(self))

    def as_dict(self) -> dict[str, Any]:
        """All of it for scripts, as plain numbers; None stands for what is not known or not finite."""
        return {
            "graph": self.graph.name,
            "nodes": self.graph.n,
            "start": self.start,
            "importance": {"least": _plain(self.importance.min()), "mean": _plain(_mean(self.importance)),
                           "most": _plain(self.importance.max())},
            "entrapped": self.entrapped,
            "slower": self.slower,
            "advised_against": self.advised_against,
            "ratio": _plain(self.ratio),
            "best": self.best,
            "conclusion": self.conclusion,
            "on_data": self.exact,
            "goal": None if self.goal is None else {name: _plain(value) for name, value in vars(self.goal).items()},
            "traps": [_trap(trap) for trap in self.traps],
            "held": None if self.held is None else _trap(self.held),
            "budget": self.budget,
            "left_out": dict(self.left_out),
            "designs": {
                label: {
                    "excess": _plain(one.excess),
                    "distance": _plain(one.distance),
                    "messages_per_update": _plain(one.messages_per_update),
                    **({} if one.race is None else {name: _plain(value) for name, value in vars(one.race).items()}),
                }
                for label, one in self.forecasts.items()
            },
        }  # fmt: skip


def _trap(trap: Trap) -> dict[str, Any]:
    return {name: list(trap.nodes) if name == "nodes" else _plain(value) for name, value in vars(trap).items()}


def _mean(values: Floats) -> float:
    """The mean, also of numbers whose sum is too large for floats."""
    return float(values.max() * np.mean(values / values.max()))


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _sentences(found: Diagnosis) -> list[str]:
    """The diagnosis, sentence by sentence."""
    values = found.importance
    lines = [
        found.conclusion,
        f"{found.graph.name}: {found.graph.n} nodes; importance from {values.min():.3g} to {values.max():.3g}, mean "
        f"{_mean(values):.3g}.",
        f"By the rates of centralized learning, {found.rates}.",
        _entrapment(found),
        _verdict(found),
    ]
    if found.best is not None:
        winner = found.forecasts[found.best].race
        if winner is not None:
            words = "The uniform walk is the best" if found.best == UNIFORM else f"{found.best} is the fastest"
            lines.append(
                f"{words} of the designs below: {_count(winner.updates, 'update')} and "
                f"{_count(winner.messages, 'message')}, with step {winner.step:.3g}."
            )
    if found.left_out:
        parts = "; ".join(f"{what}: {why}" for what, why in found.left_out.items())
        lines.append(f"Left out, within {found.budget:g} s: {parts}.")
    return [line for line in lines if line]


def _count(number: float, what: str) -> str:
    """A number of things.

    Examples
    --------
    >>> _count(1234.5, "update"), _count(0.3, "update"), _count(1.0, "update")
    ('1,234 updates', 'less than one update', '1 update')
    """
    if number < 0.995:
        return f"less than one {what}"
    return f"{number:,.0f} {what}{'s' * (round(number) != 1)}"


def _entrapment(found: Diagnosis) -> str:
    held, n = found.held, found.graph.n
    if held is None:
        return ""
    words = (
        f"once at {name_nodes(held.nodes)}, the importance walk spends {_count(held.excess, 'update')} there beyond "
        f"its share of {100 * held.share:.3g} %, returns included, and the uniform walk "
        f"{_count(held.uniform, 'update')}; it has forgotten that it was there after {_count(held.memory, 'update')}"
    )
    if not found.entrapped:
        return f"It is held most where it matters little: {words}. In a trap it would remember for {n:,}, one per node."
    others = len(found.traps) - 1
    more = f" There {'are' if others > 1 else 'is'} {others} more." if others else ""
    return f"The trap: {words}.{more}"


def _verdict(found: Diagnosis) -> str:
    uniform, importance = (found.forecasts[label].race for label in (UNIFORM, IMPORTANCE))
    goal = found.goal
    if goal is None or uniform is None or importance is None:
        return ""
    data = "on these data" if found.exact else "on stand-in data with this importance"
    where = f"Started at {found.start}, {data}"
    if np.isnan(found.ratio):
        return f"{where}, neither the importance walk nor the uniform one comes to {goal.in_words(goal.reach)}."
    if not np.isfinite(importance.updates):
        many = goal.most / max(uniform.updates, 1.0)
        return (
            f"{where}, it needs more than {many:.2g} times the {_count(uniform.updates, 'update')} of the uniform walk "
            f"to come to {goal.in_words(goal.reach)}: it is far slower."
        )
    needs = f"{where}, it needs {_count(importance.updates, 'update')} to come to {goal.in_words(goal.reach)}"
    if not np.isfinite(uniform.updates):
        return f"{needs}, where the uniform walk does not come: it pays."
    verdict = (
        "that makes no difference" if abs(found.ratio - 1) < 0.02 else "it is slower" if found.slower else "it pays"
    )
    lower = ""
    if uniform.excess < 0.9 * goal.settle:
        lower = f" (the largest step of the uniform walk settles lower, at {goal.in_words(uniform.excess)})"
    return (
        f"{needs}, and the uniform walk {_count(uniform.updates, 'update')} ({found.ratio:.2g} ×), with steps that "
        f"settle at {goal.in_words(goal.settle)}{lower}: {verdict}."
    )
