"""What all contestants of a comparison have in common, and a single contestant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from freewalk.designs.kernel import Kernel
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.linear.arrays import Floats
from freewalk.objectives import Objective
from freewalk.report.measures import crossings, mean_and_band, values_of
from freewalk.run.learn import Method, learn
from freewalk.run.record import Record

#: The number of checkpoints of a run: a goal reached in its last three quarters is known to 1 % or better.
CHECKPOINTS = 400
# The fraction of the checkpoints after the goal that may be above it: a curve that lingers there has more.
_RELAPSES = 0.05


class Interrupted(Exception):
    """A signal has ended a run; its name is the message."""


@dataclass(frozen=True, eq=False)
class Track:
    """Problem, graph and goal, and the options of runs."""

    problem: Objective
    graph: Graph
    level: float
    optimum: float
    seed: int
    walks: int
    most: int
    options: dict[str, Any]  # of learn: start, initial, runtime, precision
    tell: Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Contestant:
    """A method on a track."""

    track: Track
    method: Method

    @cached_property
    def kernel(self) -> Kernel:
        """How its tokens move."""
        return self.method.kernel(self.track.graph, self.track.problem)

    @property
    def tokens(self) -> int:
        """The number of tokens per walk."""
        return arguments.tokens("compare", self.method.tokens, self.track.graph.n)

    @property
    def updates_per_round(self) -> int:
        """The number of updates of all tokens of a walk per round."""
        return self.tokens * int(self.method.rule.local_steps)

    @property
    def most_rounds(self) -> int:
        """The maximum length of a run."""
        return max(self.track.most // self.updates_per_round, 1)

    @property
    def first_rounds(self) -> int:
        """The length of the first run, in which every node has been seen a few times."""
        return min(64 + 4 * self.track.graph.n // self.tokens, self.most_rounds)

    @cached_property
    def draws(self) -> bool:
        """Whether its runs are random: parked tokens with full gradients are not."""
        method, initial = self.method, self.track.options["initial"]
        parked = isinstance(method.tokens, str) and self.kernel.is_parked and not method.rule.sampled
        mixed = method.exchange is None or method.exchange.constant
        begun = type(self.track.problem).initial is Objective.initial if initial is None else np.ndim(initial) == 1
        return not (parked and mixed and begun)

    @property
    def options(self) -> dict[str, Any]:
        """The options of its runs; tokens with their own nodes start there."""
        options = self.track.options
        return {**options, "start": None} if isinstance(self.method.tokens, str) else options

    def run(self, step: float | None, rounds: int, walks: int, seed: int) -> Record:
        """Run it with a step (None: as given); raises Interrupted if a signal ended it."""
        method = self.method if step is None else self.method.with_step(step)
        record = learn(
            self.track.problem,
            self.kernel,
            method.rule,
            steps=rounds,
            walks=walks if self.draws else 1,
            every=max(1, rounds // CHECKPOINTS),
            seed=seed,
            tokens=method.tokens,
            exchange=method.exchange,
            **self.options,
        )
        if "interrupted_by" in record.provenance:
            raise Interrupted(record.provenance["interrupted_by"])
        record.data.attrs["label"] = method.label
        return record

    def mean_of(self, record: Record) -> Floats:
        """The mean over the walks of the primary measure; infinite if one has diverged."""
        mean, _, _ = mean_and_band(values_of(record.data, self.track.problem.primary), "none")
        return np.where(np.isnan(mean), np.inf, mean)

    def rounds_to_goal(self, record: Record) -> float:
        """The number of rounds to the goal; infinite if it is not reached."""
        place = crossings(self.mean_of(record)[None], self.track.level)[0]
        steps = record.data.step.values
        return float(np.interp(place, np.arange(steps.size), steps)) if np.isfinite(place) else np.inf

    def stays(self, record: Record) -> bool:
        """Whether it stays at the goal after reaching it: others reach it by chance, or because they oscillate."""
        mean, level = self.mean_of(record), self.track.level
        after = mean[record.data.step.values >= self.rounds_to_goal(record)]
        if not after.size or (after > level).mean() > _RELAPSES:
            return False
        return bool(max(after.mean(), tail_of(mean).mean()) <= level)


def tail_of(mean: Floats) -> Floats:
    """The last tenth of a curve."""
    return mean[-max(mean.size // 10, 1) :]


def has_diverged(record: Record) -> bool:
    """Whether one of its walks has diverged: then the mean never recovers."""
    return bool(record.data.diverged.values.any())
