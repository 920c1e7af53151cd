"""The updates that a node makes to a model with its own data, which never leave it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.objectives.objective import Share
from freewalk.peers.protocol.messages import Compute, Computed
from freewalk.peers.protocol.payload import Form, Payload
from freewalk.rules import Rule
from freewalk.rules.rule import begun
from freewalk.runtimes.visit import Occasion, at_once, numbers_of, visit


@dataclass(frozen=True, eq=False)
class Learner:
    """The data of one node, and its updates.

    Parameters
    ----------
    share
        The node's share of the objective.
    rule
        The update rule.
    weight
        1 / (n · target) of the node.
    nodes
        The number of nodes.
    seed
        The seed of the random draws.
    dim
        The number of parameters.
    precision
        The precision of the models.
    folder
        Where large models are stored.
    durable
        Whether they are flushed to disk after an update.
    """

    share: Share
    rule: Rule
    weight: float
    nodes: int
    seed: int
    dim: int
    precision: str
    folder: Path
    durable: bool = True

    @cached_property
    def form(self) -> Form:
        """The form of a token's payload."""
        names = ("x", *self.rule.carries)
        return Form(names, ((self.dim,),) * len(names), np.dtype(self.precision))

    @cached_property
    def first(self) -> dict[str, NDArray[Any]]:
        """The vectors that the rule stores here before the first visit."""
        vectors = begun(self.rule, np.zeros((1, self.dim), dtype=self.precision))
        return {name: vectors[name][0] for name in self.rule.stores}

    @cached_property
    def _numbers(self) -> Any:
        """The rule's parameters."""
        return numbers_of(self.rule, self.precision)

    @cached_property
    def _rate(self) -> float | None:
        """The step size, if it is the same at all steps."""
        return float(self.rule.rates(np.array([0]))[0]) if self.rule.constant else None

    def update(self, asked: Compute) -> Computed:
        """Make the update that the protocol requests."""
        rule, token, version = self.rule, asked.token, asked.version
        kept = self.first if version is None or version.payload is None else version.payload.arrays()
        vectors = {name: np.array(vector) for name, vector in (*token.payload.arrays().items(), *kept.items())}
        vectors = {name: vectors[name] for name in ("x", *rule.carries, *rule.stores)}
        visits = 1 + (0 if version is None else version.visits) if rule.counts_visits else 0
        step = token.point.step
        rate = float(rule.rates(np.array([step]))[0]) if self._rate is None else self._rate
        occasion = Occasion(self.seed, asked.key.walk, step, rate, 0, self.nodes, self.weight, visits)
        visit(rule, self._numbers, self.share, vectors, occasion, at_once)
        finite = all(bool(np.isfinite(vector).all()) for vector in vectors.values())
        sent = Payload.of({name: vectors[name] for name in ("x", *rule.carries)}, self.folder, self.durable)
        stored = (
            Payload.of({name: vectors[name] for name in rule.stores}, self.folder, self.durable)
            if rule.stores
            else None
        )
        return Computed(asked.key, token.point, sent, stored, finite)
