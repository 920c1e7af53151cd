"""The walk compiled, the learning in PyTorch: any module, on a processor or a graphics card."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.checks import Checks
from freewalk.engine import batches
from freewalk.engine.arrays import Stretch
from freewalk.errors import FreewalkError, LoopWarning, MissingExtra
from freewalk.phases import Passage
from freewalk.rules.rule import Visit
from freewalk.runtimes.cpu import CPUWalker
from freewalk.runtimes.exchanging import mixtures
from freewalk.runtimes.halves import Course, HalvesEngine, Learner, Path
from freewalk.runtimes.runtime import Runtime
from freewalk.runtimes.state import Job, State

if TYPE_CHECKING:
    import torch

    from freewalk.torch.gradients import Batched
    from freewalk.torch.objective import TorchObjective

_check = Checks(FreewalkError)
_WORTH_A_BATCH = 3  # so many rows are as quick one after the other
_DRAWN = 2**20  # samples whose numbers are drawn ahead
_FLAT = 2**16  # numbers of a gradient up to which its parts are put together: larger ones stay where they are
_BLOCK = 2**18  # numbers that are updated at a time, so that what is in between stays small


@dataclass(frozen=True)
class Torch(Runtime):
    """Compiled walks that learn in PyTorch: for `freewalk.torch.TorchObjective`.

    Parameters
    ----------
    device
        Where models live: "cpu", "cuda", "cuda:1", or another device of torch.
    vectorize
        Whether the gradients of all rows are computed in one batch. None: where the module allows it and there are more
        than a few rows; where it does not, a `LoopWarning` says why. False: never, without a warning. True: always, or
        an error says why not.

    Raises
    ------
    FreewalkError
        If these are none.
    """

    device: str = "cpu"
    vectorize: bool | None = None

    def __post_init__(self) -> None:
        _check.text("Torch", "device", self.device)
        if self.vectorize is not None:
            _check.flag("Torch", "vectorize", self.vectorize)

    def engine(self, job: Job) -> HalvesEngine:
        """Make a job ready; the objective must have a torch module."""
        walker = CPUWalker(job, 1)
        return HalvesEngine(job, walker, None if job.objective is None else self._learner(job), threads=1)

    def _learner(self, job: Job) -> TorchLearner:
        try:
            import torch
        except ImportError:
            raise MissingExtra("torch", "torch") from None
        from freewalk.torch.objective import TorchObjective

        if not isinstance(job.objective, TorchObjective):
            raise FreewalkError(
                f"torch: {type(job.objective).__name__} has no torch module, expected a freewalk.torch.TorchObjective; "
                "leave `runtime` out, and the one that suits it is taken"
            )
        try:
            device = torch.device(self.device)
            torch.empty(1, device=device)
        except (RuntimeError, AssertionError) as error:
            said = " ".join(str(error).split())[:120]
            raise _check.fail(
                "Torch", "device", self.device, f'a device that is there, such as "cpu" ({said})'
            ) from error
        for phase in job.phases:
            if phase.rule is not None and phase.rule.proximal:
                raise FreewalkError(
                    f"torch: {type(phase.rule).__name__} solves a problem at each node, which a module does not offer; "
                    "take a rule that uses gradients"
                )
        return TorchLearner(job, job.objective, device, self.vectorize)


@dataclass(eq=False)
class _Held:
    """The vectors of a state as tensors: its own arrays on a processor, copies elsewhere."""

    state: State
    entered: int
    models: torch.Tensor
    carried: torch.Tensor
    stored: torch.Tensor

    @classmethod
    def of(cls, state: State, device: torch.device) -> _Held:
        import torch

        arrays = {}
        for name in ("models", "carried", "stored"):
            array = getattr(state, name)
            if not (array.flags.writeable and array.flags.c_contiguous):
                array = array.copy()
                setattr(state, name, array)
            arrays[name] = torch.from_numpy(array).to(device)
        return cls(state, state.entered, **arrays)

    def is_of(self, state: State) -> bool:
        """Whether these are still the vectors of a state."""
        same = self.models.device.type != "cpu" or self.models.data_ptr() == state.models.ctypes.data
        return self.state is state and self.entered == state.entered and same

    def write(self) -> None:
        """Bring the arrays of the state up to date."""
        if self.models.device.type != "cpu":
            for name in ("models", "carried", "stored"):
                getattr(self.state, name)[...] = getattr(self, name).cpu().numpy()


class TorchLearner(Learner):
    """The learning half: a module, and what computes its gradients and measures."""

    together = True

    def __init__(self, job: Job, objective: TorchObjective, device: torch.device, vectorize: bool | None) -> None:
        from freewalk.torch.evaluation import Evaluation
        from freewalk.torch.gradients import Looped
        from freewalk.torch.layout import TYPES

        self.job, self.objective, self.device, self.vectorize = job, objective, device, vectorize
        self.dtype = TYPES[job.precision]
        self.looped = Looped(objective, self.dtype, device)
        self.evaluation = Evaluation(objective, self.dtype, device)
        self.batch: Batched | None = None
        self.held: _Held | None = None
        self.how = ""

    def along(self, state: State, passage: Passage) -> Learning:
        """Get ready to learn along a passage."""
        if self.held is None or not self.held.is_of(state):
            if self.held is not None and self.held.state is not state:
                self.held.write()
            self.held = _Held.of(state, self.device)
        if not self.how:
            self._decide(state)
        return Learning(self, state, passage, self.held)

    def _decide(self, state: State) -> None:
        """Whether gradients are computed in one batch."""
        from freewalk.torch.gradients import batched

        rows = f"{state.rows:,} row{'s' * (state.rows != 1)}"
        if self.vectorize is False or (self.vectorize is None and state.rows <= _WORTH_A_BATCH):
            why = "so few are as quick" if self.vectorize is None else "as asked for"
            self.how = f"{rows}, one after the other: {why}"
            return
        row = self.held.models[0]  # type: ignore[union-attr]
        found = batched(self.looped, row)
        if not isinstance(found, str):
            self.batch, self.how = found, f"{rows} in one batch"
            return
        name = type(self.objective.module).__name__
        if self.vectorize:
            raise FreewalkError(f"torch: {name} cannot be run in one batch, as vectorize=True asks: {found}")
        self.how = f"{rows}, one after the other: {found}"
        warnings.warn(
            f"torch: {name} runs one row after the other, not all {state.rows:,} in one batch: {found}; if that is "
            'fine, say so with runtime=fw.runtimes.Torch(vectorize=False), in a spec { kind = "Torch", vectorize = '
            "false }",
            LoopWarning,
            stacklevel=2,
        )

    def settle(self, state: State) -> None:
        """Bring the models of a state up to date."""
        if self.held is not None and self.held.state is state:
            self.held.write()

    @property
    def story(self) -> dict[str, str]:
        """How it learned."""
        return {"learned": self.how} if self.how else {}


class Learning(Course):
    """A passage that is learned along."""

    def __init__(self, learner: TorchLearner, state: State, passage: Passage, held: _Held) -> None:
        import torch

        rule = passage.phase.rule
        if rule is None:
            raise ValueError("a passage without a rule cannot be learned along")
        self.torch, self.learner, self.job, self.objective = torch, learner, learner.job, learner.objective
        self.rule, self.state, self.passage, self.held = rule, state, passage, held
        names: Any = type(rule.numbers)
        self.numbers = names(*(float(np.dtype(self.job.precision).type(value)) for value in rule.numbers))
        steps = np.arange(passage.start, max(passage.until, passage.start + 1))
        self.rates = rule.rates(steps).tolist()
        kernel = passage.phase.kernel
        self.nodes = kernel.graph.n
        self.weights = np.asarray(kernel.weights if rule.weighted else np.ones(self.nodes))
        floats = [name for name, kind in self.job.measured.items() if kind == "float64"]
        self.measures = {name: np.full((state.walks, passage.marks.size), np.nan) for name in floats}
        if passage.phase.exchange is not None:
            self.measures["exchanged"] = np.repeat(state.exchanged[:, None], passage.marks.size, axis=1)
        self.stepper: Any = None
        if _is_optimizer(rule):
            from freewalk.torch.optimizer import Stepper

            self.stepper = Stepper(rule, learner.looped.worker.parameters)  # type: ignore[arg-type]
        self.views: dict[int, list[Any]] = {}
        self.relays = frozenset(self.objective.relays)

    # Along the path.

    def do(self, stretch: Stretch, path: Path) -> None:
        """Learn along a stretch."""
        generator = self.learner.looped.generator
        state = generator.get_state()  # what is random in a module is drawn from seeds of ours
        try:
            block = max(1, _DRAWN // max(1, (stretch.last - stretch.first) * self.rule.local_steps * self._batch()))
            for start in range(stretch.start, max(stretch.stop, stretch.start + 1), block):
                stop = min(start + block, stretch.stop)
                mark = (
                    stretch.mark if start == stretch.start else int(np.searchsorted(self.passage.marks, start, "right"))
                )
                part = stretch._replace(start=start, stop=stop, mark=mark)
                self._do(part, path[start - stretch.start :])
        finally:
            generator.set_state(state)

    def _batch(self) -> int:
        """How many samples are drawn for an update; 0: all of them are taken."""
        return 1 if self.rule.sampled else self.objective.batch or 0

    def _do(self, stretch: Stretch, path: Path) -> None:
        drawn = self._drawn(stretch, path)
        for now in range(stretch.start, stretch.stop + 1):
            for mark in np.flatnonzero(self.passage.marks == now):
                if mark >= stretch.mark:  # the others were measured at the end of the stretch before
                    self._measure(stretch, int(mark))
            if now < stretch.stop:
                place = now - stretch.start
                nodes = path[place]
                self._visit(stretch, now, nodes, (drawn[0][place], drawn[1][place]), drawn[2][place])
                exchange = self.passage.phase.exchange
                if exchange is not None and (now + 1) % exchange.every == 0:
                    self._exchange(stretch, now + 1, nodes)

    def _drawn(self, stretch: Stretch, path: Path) -> Any:
        """By step, row and local step: the numbers of samples, how many there are, a seed for what else is random."""
        steps, rows = stretch.stop - stretch.start, stretch.last - stretch.first
        local, batch, objective = self.rule.local_steps, self._batch(), self.objective
        first = self.state.first + stretch.first
        key = (np.uint64(self.job.seed), rng.MORE)
        row, step = (
            np.arange(first, first + rows, dtype=np.uint64),
            np.arange(stretch.start, stretch.stop, dtype=np.uint64),
        )
        blocks = (rng.SEED << rng.USE) | np.arange((local + 1) // 2, dtype=np.uint64)
        pairs = rng.word_pair(*key, row[None, :, None], step[:, None, None], blocks[None, None])
        seeds = (np.stack(pairs, axis=-1).reshape(steps, rows, 2 * blocks.size)[..., :local] >> np.uint64(1)).tolist()
        if not batch:
            return np.zeros((steps, 0)), np.zeros((steps, 0)), seeds
        numbers, counts = (
            np.zeros((steps, rows, local, batch), dtype=np.int64),
            np.zeros((steps, rows, local), dtype=np.int64),
        )
        single = bool(self.rule.sampled)
        batches.compiled()(key[0], first, stretch.start, path[:steps], objective.offsets, single, numbers, counts)
        np.minimum(numbers, objective.count - 1, out=numbers)  # at a relay behind all nodes with data
        return numbers, counts, seeds

    def _visit(self, stretch: Stretch, now: int, nodes: NDArray[np.int32], drawn: Any, seeds: Any) -> None:
        visits = np.zeros(nodes.size, dtype=np.int64)
        if self.rule.counts_visits:
            rows = np.arange(stretch.first, stretch.last)
            self.state.seen[rows, nodes] += 1
            visits = self.state.seen[rows, nodes]
        if self.learner.batch is not None and not self._in_turn(nodes):
            self._visit_together(stretch, now, nodes, drawn, visits)
            return
        for place, node in enumerate(nodes.tolist()):
            self._visit_alone(stretch.first + place, node, now, place, drawn, seeds[place], int(visits[place]))

    def _in_turn(self, nodes: NDArray[np.int32]) -> bool:
        """Whether rows have to take turns: tokens that share what is stored meet, or an optimizer forgets its state."""
        rule, tokens = self.rule, self.state.tokens
        if self.stepper is not None and rule.local_steps > 1 and not (rule.carries or rule.stores):
            return True
        if tokens == 1 or not (rule.shared and rule.stores):
            return False
        keepers = np.arange(nodes.size) // tokens * self.nodes + nodes
        return bool(np.unique(keepers).size < nodes.size)

    # One row at one node.

    def _visit_alone(
        self, row: int, node: int, now: int, place: int, drawn: Any, seeds: list[int], visits: int
    ) -> None:
        rule, objective = self.rule, self.objective
        rate, weight = self.rates[now - self.passage.start], float(self.weights[node])
        relay = node in self.relays
        own = self.held.stored[self._keeper(row), node] if rule.stores else None
        if self.stepper is not None:
            if not relay:
                self._optimize(row, node, rate, weight, place, drawn, seeds, own)
            return
        for local in range(rule.local_steps):
            count = (now - self.passage.began) * rule.local_steps + local
            visit = Visit(rate, weight, count, self.nodes, visits)
            if not relay:
                parts = self._gradient(row, node, place, local, drawn, seeds[local], own, objective.node_weights[node])
                self._apply(visit, row, own, parts)
            elif rule.stores:  # a relay, which counts as a node whose loss is 0
                self._apply(visit, row, own, None)
            elif rule.carries:  # a relay, which leaves the model as it is
                self._apply(visit._replace(rate=0.0), row, own, None, keep=True)

    def _vectors(self, row: int, node: int) -> Any:
        """Where the state of an optimizer lies: with the row, at the node, or nowhere."""
        if self.rule.carries:
            return self.held.carried[:, row]
        return self.held.stored[self._keeper(row), node] if self.rule.stores else None

    def _keeper(self, row: int) -> int:
        return row // self.state.tokens if self.rule.shared else row

    def _views(self, row: int) -> list[Any]:
        if row not in self.views:
            if len(self.views) * len(self.objective.layout.names) > 100_000:
                self.views.clear()
            self.views[row] = self.objective.layout.views(self.held.models[row])
        return self.views[row]

    def _samples(self, node: int, place: int, local: int, drawn: Any) -> Any:
        offsets = self.objective.offsets
        if not self._batch():
            return range(int(offsets[node]), int(offsets[node + 1]))
        return self.torch.from_numpy(drawn[0][place, local, : drawn[1][place, local]])

    def _gradient(
        self, row: int, node: int, place: int, local: int, drawn: Any, seed: int, own: Any, scale: float
    ) -> tuple[Any, ...]:
        """By parameter: the gradient at one node."""
        views, name = self._views(row), self.rule.evaluates
        if name != "x":
            carried, stored = list(self.rule.carries), list(self.rule.stores)
            at = self.held.carried[carried.index(name), row] if name in carried else own[stored.index(name)]
            count = len(self.objective.layout.parameters)
            views = [*self.objective.layout.views(at, count), *views[count:]]
        return self.learner.looped.gradient(views, self._samples(node, place, local, drawn), float(scale), seed)

    def _optimize(
        self, row: int, node: int, rate: float, weight: float, place: int, drawn: Any, seeds: list[int], own: Any
    ) -> None:
        """The local steps of a torch optimizer, on the row itself."""
        vectors = self._vectors(row, node)
        self.stepper.load(vectors)
        scale = weight * float(self.objective.node_weights[node])
        for local in range(self.rule.local_steps):
            gradients = self._gradient(row, node, place, local, drawn, seeds[local], own, scale)
            with self.torch.no_grad():
                self.stepper.step(gradients, rate)
        self.stepper.save(vectors)

    def _apply(self, visit: Visit, row: int, own: Any, parts: Any, keep: bool = False) -> None:
        """Update a row by the rule's function; without parts the gradient is 0, and `keep` leaves the model."""
        torch, trained = self.torch, self.objective.trained
        vectors = [self.held.models[row, :trained], *(vector[row, :trained] for vector in self.held.carried)]
        vectors += [] if own is None else [vector[:trained] for vector in own]
        with torch.no_grad():
            if parts is None:
                self._update(visit, vectors, torch.zeros_like(vectors[0]), keep)
            elif trained <= _FLAT:
                self._update(visit, vectors, torch.cat([part.reshape(-1) for part in parts]), keep)
            else:  # part by part and block by block: no more than one gradient is in memory beside the model
                start = 0
                for part in parts:
                    flat = part.reshape(-1)
                    for first in range(0, flat.numel(), _BLOCK):
                        some = flat[first : first + _BLOCK]
                        here = slice(start + first, start + first + some.numel())
                        self._update(visit, [vector[here] for vector in vectors], some, keep)
                    start += flat.numel()

    def _update(self, visit: Visit, vectors: list[Any], gradient: Any, keep: Any) -> None:
        """Write what the rule's function makes of some vectors; `keep` leaves the model, or some rows of it."""
        result = self.rule.update(visit, self.numbers, vectors[0], gradient, *vectors[1:])
        values = list(result) if len(vectors) > 1 else [result]
        swapped = [any(value is other for other in vectors) for value in values]
        values = [value.clone() if alias else value for value, alias in zip(values, swapped, strict=True)]
        if keep is True:
            values[0] = vectors[0]
        elif keep is not False:
            values[0] = self.torch.where(keep, vectors[0], values[0])
        for vector, value in zip(vectors, values, strict=True):
            if value is not vector:
                vector.copy_(value)

    # All rows in one batch.

    def _visit_together(
        self, stretch: Stretch, now: int, nodes: NDArray[np.int32], drawn: Any, visits: NDArray[np.int64]
    ) -> None:
        torch, rule, objective, held = self.torch, self.rule, self.objective, self.held
        kind: Any = {"dtype": held.models.dtype, "device": held.models.device}
        trained, rows = objective.trained, slice(stretch.first, stretch.last)
        at = torch.as_tensor(nodes.astype(np.int64), device=kind["device"])
        keepers = torch.arange(stretch.first, stretch.last, device=kind["device"])
        keepers = keepers // self.state.tokens if rule.shared else keepers
        rate: Any = self.rates[now - self.passage.start]
        weight = torch.as_tensor(self.weights[nodes][:, None], **kind)
        keep: Any = False  # or the rows that a relay leaves as they are
        if self.relays and not rule.stores:
            keep = torch.as_tensor(np.isin(nodes, objective.relays)[:, None], device=kind["device"])
            rate = rate * (~keep).to(kind["dtype"])
        many = torch.as_tensor(visits[:, None], **kind)
        for local in range(rule.local_steps):
            x = held.models[rows]
            carried = [vector[rows, :trained] for vector in held.carried]
            stored = [held.stored[keepers, at, index, :trained] for index in range(len(rule.stores))]
            point = x
            if rule.evaluates != "x":
                names = [*rule.carries, *rule.stores]
                vector = [*carried, *stored][names.index(rule.evaluates)]
                point = torch.cat([vector, x[:, trained:]], dim=1)
            numbers, weights = self._samples_of_all(nodes, local, drawn)
            gradient = self.learner.batch.gradients(  # type: ignore[union-attr]
                point, torch.as_tensor(numbers, device=kind["device"]), torch.as_tensor(weights, **kind)
            )
            if self.stepper is not None:
                self._optimize_all(stretch, nodes, gradient, self.rates[now - self.passage.start])
                continue
            count = (now - self.passage.began) * rule.local_steps + local
            visit = Visit(rate, weight, count, self.nodes, many)
            with torch.no_grad():
                vectors = [x[:, :trained], *carried, *stored]
                self._update(visit, vectors, gradient, keep)
                for index, vector in enumerate(stored):
                    held.stored[keepers, at, index, :trained] = vector

    def _samples_of_all(self, nodes: NDArray[np.int32], local: int, drawn: Any) -> tuple[Any, Any]:
        """The samples of all rows, and their weights in the losses of the nodes."""
        from freewalk.torch.gradients import padded

        objective = self.objective
        if not self._batch():
            most = int(objective.sizes[nodes].max())
            return padded(
                objective, nodes.astype(np.int64), min(1 << max(most - 1, 0).bit_length(), int(objective.sizes.max()))
            )
        numbers, counts = drawn[0][:, local], drawn[1][:, local][:, None]
        shares = objective.node_weights[nodes][:, None] / np.maximum(counts, 1)
        return numbers, np.where(np.arange(numbers.shape[1])[None] < counts, shares, 0.0)

    def _optimize_all(self, stretch: Stretch, nodes: NDArray[np.int32], gradient: Any, rate: float) -> None:
        """One step of a torch optimizer for each row, whose gradients are there already."""
        layout = self.objective.layout
        for place, node in enumerate(nodes.tolist()):
            if node not in self.relays:
                row = stretch.first + place
                vectors = self._vectors(row, node)
                self.learner.looped.worker.point(self._views(row))
                self.stepper.load(vectors)
                parts = layout.views(float(self.weights[node]) * gradient[place], len(layout.parameters))
                with self.torch.no_grad():
                    self.stepper.step(tuple(parts), rate)
                self.stepper.save(vectors)

    # What is measured, and exchanged.

    def _reported(self) -> Any:
        """By row: the models to report, buffers included."""
        rule, held, trained = self.rule, self.held, self.objective.trained
        if rule.reports == "x":
            return held.models
        reported = held.carried[list(rule.carries).index(rule.reports)]
        reported[:, trained:] = held.models[:, trained:]
        return reported

    def _measure(self, stretch: Stretch, mark: int) -> None:
        tokens, trained = self.state.tokens, self.objective.trained
        rows = self._reported()[stretch.first : stretch.last]
        walks = slice(stretch.first // tokens, stretch.last // tokens)
        if tokens > 1:
            own = rows.view(-1, tokens, rows.shape[1])
            mean = own.mean(dim=1)
            apart = ((own - mean[:, None])[..., :trained].double() ** 2).sum(dim=2).mean(dim=1)
            self.measures["consensus"][walks, mark] = apart.cpu().numpy()
            rows = mean
        for name, values in self.learner.evaluation.of_rows(rows, self.learner.batch).items():
            self.measures[name][walks, mark] = values
        if "exchanged" in self.measures:
            self.measures["exchanged"][walks, mark] = self.state.exchanged[walks]

    def _exchange(self, stretch: Stretch, step: int, nodes: NDArray[np.int32]) -> None:
        torch, exchange = self.torch, self.passage.phase.exchange
        for rows, weights in mixtures(exchange, self.job, self.state, stretch, step, nodes):  # type: ignore[arg-type]
            for vectors in (self.held.models, *self.held.carried):
                own = vectors[rows].double()
                if weights is None:
                    mixed = own.mean(dim=0)
                elif own.device.type == "cpu":
                    mixed = torch.from_numpy(weights @ own.numpy())
                else:
                    mixed = torch.as_tensor(weights.toarray(), device=own.device) @ own
                vectors[rows] = mixed.to(vectors.dtype)


def _is_optimizer(rule: Any) -> bool:
    """Whether a rule is a torch optimizer, for which there is no update."""
    from freewalk.torch.optimizer import Optimizer

    return isinstance(rule, Optimizer)
