"""Visits of rows to nodes in PyTorch, one at a time or all of a step in one batch, and the vectors that they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from freewalk import rng
from freewalk.jobs.job import Job, State
from freewalk.jobs.phase import Passage
from freewalk.rules import Rule
from freewalk.rules.rule import Visit
from freewalk.runtimes.engine import Path
from freewalk.runtimes.step.arrays import Stretch
from freewalk.runtimes.visit import batches_code, numbers_of
from freewalk.torch.gradients import Batched, Full, Looped
from freewalk.torch.optimizer import Optimizer, Stepper

_FLAT = 2**16  # gradients up to this size are concatenated; larger ones stay in parts
_BLOCK = 2**18  # elements updated at a time, so that intermediate results stay small
_VIEWS = 100_000  # views of rows that are kept, because creating them takes time


@dataclass(eq=False)
class Held:
    """The vectors of a state as tensors: its own arrays on a CPU, copies on other devices."""

    state: State
    entered: int
    models: torch.Tensor
    carried: torch.Tensor
    stored: torch.Tensor

    @classmethod
    def of(cls, state: State, device: torch.device) -> Held:
        """The vectors of a state on a device."""
        tensors = {}
        for name in ("models", "carried", "stored"):
            array = np.require(getattr(state, name), requirements=["C", "W"])  # a copy, if it must be
            setattr(state, name, array)
            tensors[name] = torch.from_numpy(array).to(device)
        return cls(state, state.entered, **tensors)

    def is_of(self, state: State) -> bool:
        """Whether these are still the vectors of a state."""
        same = self.models.device.type != "cpu" or self.models.data_ptr() == state.models.ctypes.data
        return self.state is state and self.entered == state.entered and same

    def write(self) -> None:
        """Bring the arrays of the state up to date."""
        if self.models.device.type != "cpu":
            for name in ("models", "carried", "stored"):
                getattr(self.state, name)[...] = getattr(self, name).cpu().numpy()

    def reported(self, rule: Rule | None, trained: int) -> torch.Tensor:
        """The models that a rule reports, with their buffers, by row."""
        if rule is None or rule.reports == "x":
            return self.models
        reported = self.carried[rule.carries.index(rule.reports)]
        reported[:, trained:] = self.models[:, trained:]
        return reported


class Draws:
    """What is known before the steps of a block: nodes, and by local step samples and seeds for other randomness.

    `numbers` are those of the samples of a minibatch, of which `counts` count; empty if a node uses all of its samples.
    """

    def __init__(self, alone: Alone, first: int, block: Stretch, path: Path) -> None:
        steps, rows, local = block.stop - block.start, block.last - block.first, alone.rule.local_steps
        self.block, self.nodes, objective = block, path.astype(np.int64), alone.objective
        first += block.first
        seed = np.uint64(alone.job.seed)
        row, step = (np.arange(a, a + b, dtype=np.uint64) for a, b in ((first, rows), (block.start, steps)))
        pair = (rng.SEED << rng.USE) | np.arange((local + 1) // 2, dtype=np.uint64)
        words = rng.word_pair(seed, rng.MORE, row[None, :, None], step[:, None, None], pair[None, None])
        drawn = np.stack(words, axis=-1).reshape(steps, rows, 2 * pair.size)[..., :local]
        self.seeds = (drawn >> np.uint64(1)).tolist()
        self.numbers = np.zeros((steps, rows, local, alone.batch), dtype=np.int64)
        self.counts = np.zeros((steps, rows, local), dtype=np.int64)
        if alone.batch:
            single = bool(alone.rule.sampled)
            batches_code()(seed, first, block.start, path, objective.offsets, single, self.numbers, self.counts)
            np.minimum(self.numbers, objective.count - 1, out=self.numbers)  # for relays after the last node with data
        self.tensors: tuple[torch.Tensor, ...] | None = None

    def on(self, together: Together) -> tuple[torch.Tensor, ...]:
        """The nodes, the weights of their gradients, samples and their weights, by step and row, on a device."""
        if self.tensors is None:
            like, alone = together.alone.held.models, together.alone
            nodes = torch.as_tensor(self.nodes, device=like.device)
            weights = torch.as_tensor(alone.weights[self.nodes][..., None], dtype=like.dtype, device=like.device)
            numbers = torch.as_tensor(self.numbers, device=like.device)
            shares = alone.objective.node_weights[self.nodes][..., None] / np.maximum(self.counts, 1)
            there = np.arange(self.numbers.shape[3]) < self.counts[..., None]
            portions = torch.as_tensor(there * shares[..., None], dtype=like.dtype, device=like.device)
            self.tensors = nodes, weights, numbers, portions
        return self.tensors


class Alone:
    """Visits, one at a time."""

    def __init__(self, looped: Looped, held: Held, job: Job, passage: Passage, rule: Rule) -> None:
        self.looped, self.held, self.job, self.passage, self.rule = looped, held, job, passage, rule
        self.objective = objective = looped.objective
        kernel = passage.phase.kernel
        self.weights = np.asarray(kernel.weights if rule.weighted else np.ones(kernel.graph.n))
        steps = np.arange(passage.start, max(passage.until, passage.start + 1))
        self.rates: dict[int, float] = dict(zip(steps.tolist(), rule.rates(steps).tolist(), strict=True))
        self.numbers = numbers_of(rule, job.precision)
        #: The number of samples drawn for an update; 0: all samples are used.
        self.batch = 1 if rule.sampled else min(objective.batch or 0, int(objective.sizes.max()))
        self.stepper = Stepper(rule, looped.worker.parameters) if isinstance(rule, Optimizer) else None
        self.relays = frozenset(objective.relays)
        self._views: dict[int, list[torch.Tensor]] = {}

    def visit(self, draws: Draws, now: int, visits: NDArray[np.int64]) -> None:
        """One step of all rows of a block."""
        for index, node in enumerate(draws.nodes[now - draws.block.start].tolist()):
            self._one(draws, (now - draws.block.start, index), node, now, int(visits[index]))

    def _one(self, draws: Draws, place: tuple[int, int], node: int, now: int, visits: int) -> None:
        rule, row, relay = self.rule, draws.block.first + place[1], node in self.relays
        rate, weight, scale = self.rates[now], float(self.weights[node]), float(self.objective.node_weights[node])
        own = self.vectors(row, node)
        if self.stepper is not None:
            if not relay:
                steps = range(rule.local_steps)
                gradients = (self._gradient(draws, place, own, node, local, weight * scale) for local in steps)
                self.stepper.visit(own, gradients, rate)
            return
        still = relay and not rule.stores  # it leaves the model unchanged; else it counts as a node whose loss is 0
        if still and not rule.carries:
            return
        for local in range(rule.local_steps):
            visit = Visit(0.0 if still else rate, weight, self.count(now, local), self.objective.n, visits)
            parts = None if relay else self._gradient(draws, place, own, node, local, scale)
            self._apply(visit, row, own, parts, still)

    def count(self, now: int, local: int) -> int:
        """The number of updates since the rule started."""
        return (now - self.passage.began) * self.rule.local_steps + local

    def vectors(self, row: int, node: int) -> list[torch.Tensor]:
        """What a row carries, then what is stored for it at a node."""
        keeper = row // self.held.state.tokens if self.rule.shared else row
        return [*self.held.carried[:, row], *(self.held.stored[keeper, node] if self.rule.stores else ())]

    def views(self, row: int) -> list[torch.Tensor]:
        """The parameters and buffers of a row."""
        if row not in self._views:
            if len(self._views) * len(self.objective.layout.names) > _VIEWS:
                self._views.clear()
            self._views[row] = self.objective.layout.views(self.held.models[row])
        return self._views[row]

    def _gradient(
        self, draws: Draws, place: tuple[int, int], own: list[torch.Tensor], node: int, local: int, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """The gradient of a row at one node, by parameter."""
        views, rule, layout = self.views(draws.block.first + place[1]), self.rule, self.objective.layout
        if rule.evaluates != "x":
            at, count = own[(*rule.carries, *rule.stores).index(rule.evaluates)], len(layout.parameters)
            views = [*layout.views(at, count), *views[count:]]
        offsets = self.objective.offsets
        numbers: Any = range(int(offsets[node]), int(offsets[node + 1]))
        if self.batch:
            numbers = torch.from_numpy(draws.numbers[place][local, : draws.counts[place][local]])
        return self.looped.gradient(views, numbers, scale, draws.seeds[place[0]][place[1]][local])

    def _apply(self, visit: Visit, row: int, own: list[torch.Tensor], parts: Any, keep: bool = False) -> None:
        """Update a row by the rule's function; without parts the gradient is 0; `keep` leaves the model unchanged."""
        trained = self.objective.trained
        vectors = [vector[:trained] for vector in (self.held.models[row], *own)]
        with torch.no_grad():
            if parts is None:
                self.update(visit, vectors, torch.zeros_like(vectors[0]), keep)
            elif trained <= _FLAT:
                self.update(visit, vectors, torch.cat([part.reshape(-1) for part in parts]), keep)
            else:  # part by part and block by block: at most one gradient is in memory besides the model
                start = 0
                for part in parts:
                    flat = part.reshape(-1)
                    for first in range(0, flat.numel(), _BLOCK):
                        some = flat[first : first + _BLOCK]
                        here = slice(start + first, start + first + some.numel())
                        self.update(visit, [vector[here] for vector in vectors], some, keep)
                    start += flat.numel()

    def update(self, visit: Visit, vectors: list[torch.Tensor], gradient: torch.Tensor, keep: Any) -> None:
        """Apply the rule's function to vectors in place; `keep` leaves the model, or some of its rows, as is."""
        result = self.rule.update(visit, self.numbers, vectors[0], gradient, *vectors[1:])
        values = list(result) if len(vectors) > 1 else [result]
        values = [value.clone() if any(value is other for other in vectors) else value for value in values]
        if keep is True:
            values[0] = vectors[0]
        elif keep is not False:
            values[0] = torch.where(keep, vectors[0], values[0])
        for vector, value in zip(vectors, values, strict=True):
            if value is not vector:
                vector.copy_(torch.as_tensor(value))


class Together:
    """Visits of all rows of a step in one batch."""

    def __init__(self, batch: Batched, alone: Alone) -> None:
        self.batch, self.alone = batch, alone
        self.full = None if alone.batch else Full(alone.objective, alone.held.models)
        relays = np.isin(np.arange(alone.objective.n), list(alone.relays))
        self.relays = torch.as_tensor(relays, device=alone.held.models.device) if alone.relays else None

    def visit(self, draws: Draws, now: int, visits: NDArray[np.int64]) -> None:
        """One step of all rows of a block."""
        alone, block, place = self.alone, draws.block, now - draws.block.start
        rule, held, trained = alone.rule, alone.held, alone.objective.trained
        at, weight, numbers, portions = (part[place] for part in draws.on(self))
        rows = slice(block.first, block.last)
        keepers = torch.arange(block.first, block.last, device=at.device)
        keepers = keepers // held.state.tokens if rule.shared else keepers
        rate: Any = alone.rates[now]
        keep: Any = False  # or the rows that a relay leaves unchanged
        if self.relays is not None and not rule.stores:
            keep = self.relays[at][:, None]
            rate = rate * (~keep).to(weight.dtype)
        many = torch.as_tensor(visits[:, None], dtype=weight.dtype, device=at.device) if rule.counts_visits else 0
        for local in range(rule.local_steps):
            x = held.models[rows]
            carried = [vector[rows, :trained] for vector in held.carried]
            stored = [held.stored[keepers, at, index, :trained] for index in range(len(rule.stores))]
            point = x
            if rule.evaluates != "x":
                vector = [*carried, *stored][[*rule.carries, *rule.stores].index(rule.evaluates)]
                point = torch.cat([vector, x[:, trained:]], dim=1)
            if self.full is None:
                gradient = self.batch.gradients(point, numbers[:, local], portions[:, local])
            else:
                gradient = self.batch.gradients(point, *self.full.of(draws.nodes[place], at))
            if alone.stepper is not None:
                self._optimize(alone.stepper, draws, place, gradient, alone.rates[now])
                continue
            visit = Visit(rate, weight, alone.count(now, local), alone.objective.n, many)
            with torch.no_grad():
                alone.update(visit, [x[:, :trained], *carried, *stored], gradient, keep)
                for index, vector in enumerate(stored):
                    held.stored[keepers, at, index, :trained] = vector

    def _optimize(self, stepper: Stepper, draws: Draws, place: int, gradient: torch.Tensor, rate: float) -> None:
        """One step of a PyTorch optimizer for each row, with gradients already computed."""
        alone, layout = self.alone, self.alone.objective.layout
        for index, node in enumerate(draws.nodes[place].tolist()):
            if node not in alone.relays:
                row = draws.block.first + index
                alone.looped.worker.point(alone.views(row))
                parts = layout.views(float(alone.weights[node]) * gradient[index], len(layout.parameters))
                stepper.visit(alone.vectors(row, node), [parts], rate)
