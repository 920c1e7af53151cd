"""The learning half in PyTorch: it follows a path, measures at the marks and performs exchanges."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import numpy as np
import torch

from freewalk.errors import FreewalkError, LoopWarning
from freewalk.exchanges import Exchange
from freewalk.jobs import arguments
from freewalk.jobs.job import Job, State
from freewalk.jobs.phase import Passage
from freewalk.runtimes.engine import Learner, Path, StoppingLearning
from freewalk.runtimes.step.arrays import Stretch
from freewalk.runtimes.torch.visits import Alone, Draws, Held, Together
from freewalk.torch.evaluation import Evaluation
from freewalk.torch.gradients import Batched, Looped, batched
from freewalk.torch.layout import TYPES
from freewalk.torch.objective import TorchObjective

_WORTH_A_BATCH = 3  # up to this many rows, a loop is as fast
_DRAWN = 2**20  # samples whose numbers are drawn in advance


class TorchLearner(Learner):
    """The learning half: a module, its gradients and its measures."""

    together = True

    def __init__(self, job: Job, objective: TorchObjective, device: torch.device, vectorize: bool | None) -> None:
        self.job, self.objective, self.device, self.vectorize = job, objective, device, vectorize
        self.dtype = TYPES[job.precision]
        self.looped = Looped(objective, self.dtype, device)
        self.evaluation = Evaluation(objective, self.dtype, device)
        self.batch: Batched | None = None
        self.held: Held | None = None

    def along(self, state: State, passage: Passage) -> TorchLearning:
        """Prepare to learn along a passage."""
        if self.held is None or not self.held.is_of(state):
            if self.held is not None and self.held.state is not state:
                self.held.write()
            self.held = Held.of(state, self.device)
        if not self.how:
            self._decide(state, self.held.models[0])
        return TorchLearning(self, state, passage, self.held)

    def _decide(self, state: State, row: torch.Tensor) -> None:
        """Decide whether gradients are computed in one batch."""
        rows = f"{state.rows:,} row{'s' * (state.rows != 1)}"
        if self.vectorize is False or (self.vectorize is None and state.rows <= _WORTH_A_BATCH):
            why = "so few are as quick" if self.vectorize is None else "as asked for"
            self.how = f"{rows}, one after the other: {why}"
            return
        # The reduced precision (TF32) that convolutions use on some GPUs would spoil the comparison.
        on_card = self.device.type == "cuda"
        exact = torch.backends.cudnn.flags(enabled=True, allow_tf32=False) if on_card else nullcontext()
        with self.looped.undisturbed(), exact:
            found = batched(self.looped, row)
            if not isinstance(found, str):
                found = self.evaluation.why_not(row, found) or found
        if not isinstance(found, str):
            self.batch, self.how = found, f"{rows} in one batch"
            return
        name = type(self.objective.module).__name__
        if self.vectorize:
            raise FreewalkError(f"torch: {name} cannot be run in one batch, as vectorize=True asks: {found}")
        self.how = f"{rows}, one after the other: {found}"
        what = f"{name} runs one row at a time, not all {state.rows:,} in one batch: {found}"
        remedy = 'use runtime=fw.runtimes.Torch(vectorize=False), in a spec { kind = "Torch", vectorize = false }'
        message = f"torch: {what}; to silence this warning, {remedy}"
        warnings.warn(message, LoopWarning, stacklevel=arguments.outside())

    def settle(self, state: State) -> None:
        """Bring the models of a state up to date."""
        if self.held is not None and self.held.is_of(state):
            self.held.reported(self.job.rule_of(state), self.objective.trained)
            self.held.write()


class TorchLearning(StoppingLearning):
    """Learning along a passage."""

    def __init__(self, learner: TorchLearner, state: State, passage: Passage, held: Held) -> None:
        super().__init__(learner.job, state, passage)
        self.learner, self.objective, self.held = learner, learner.objective, held
        self.alone = Alone(learner.looped, held, self.job, passage, self.rule)
        self.together = None if learner.batch is None else Together(learner.batch, self.alone)
        self.measures = self.unmeasured()

    def do(self, stretch: Stretch, path: Path) -> None:
        """Learn along a stretch; the draws for its visits are made in advance, in blocks of steps."""
        with self.learner.looped.undisturbed():  # random modules draw from our seeds
            each = (stretch.last - stretch.first) * self.rule.local_steps * max(1, self.alone.batch)
            length, marks = max(1, _DRAWN // each), self.passage.marks
            for start in range(stretch.start, max(stretch.stop, stretch.start + 1), length):
                mark = stretch.mark if start == stretch.start else int(np.searchsorted(marks, start, "right"))
                block = stretch._replace(start=start, stop=min(start + length, stretch.stop), mark=mark)
                here = path[start - stretch.start : block.stop - stretch.start]
                self.draws = Draws(self.alone, self.state.first, block, here)
                super().do(block, here)

    def learn(self, stretch: Stretch, path: Path) -> None:
        """Learn step by step, at the nodes of all rows, in one batch if possible."""
        rows = np.arange(stretch.first, stretch.last)
        visits = np.zeros(rows.size, dtype=np.int64)
        for now, nodes in zip(range(stretch.start, stretch.stop), path, strict=False):
            if self.rule.counts_visits:
                self.state.seen[rows, nodes] += 1
                visits = self.state.seen[rows, nodes]
            visiting = self.alone if self.together is None or self._in_turn(nodes) else self.together
            visiting.visit(self.draws, now, visits)

    def _in_turn(self, nodes: Path) -> bool:
        """Whether rows must be processed in turn: tokens with shared storage meet, or an optimizer resets its state."""
        rule, tokens = self.rule, self.state.tokens
        if self.alone.stepper is not None and rule.local_steps > 1 and not (rule.carries or rule.stores):
            return True
        if tokens == 1 or not (rule.shared and rule.stores):
            return False
        keepers = np.arange(nodes.size) // tokens * self.objective.n + nodes
        return bool(np.unique(keepers).size < nodes.size)

    def measure(self, here: Stretch) -> None:
        """Measure the mean model of each walk."""
        tokens, trained = self.state.tokens, self.objective.trained
        rows = self.held.reported(self.rule, trained)[here.first : here.last]
        walks = slice(here.first // tokens, here.last // tokens)
        if tokens > 1:
            own = rows.view(-1, tokens, rows.shape[1])
            mean = own.mean(dim=1)
            apart = ((own - mean[:, None])[..., :trained].double() ** 2).sum(dim=2).mean(dim=1)
            self.measures["consensus"][walks, here.mark] = apart.cpu().numpy()
            rows = mean
        self.learner.looped.generator.manual_seed(0)  # a dataset may draw random numbers too
        for name, values in self.learner.evaluation.of_rows(rows, self.learner.batch).items():
            self.measures[name][walks, here.mark] = values

    def mix(self, exchange: Exchange, stretch: Stretch, step: int, nodes: Path) -> None:
        """Mix the tokens of each walk."""
        for rows, weights in self.mixtures(exchange, stretch, step, nodes):
            for vectors in (self.held.models, *self.held.carried):
                own = vectors[rows].double()
                if weights is None:
                    mixed = own.mean(dim=0)
                elif own.device.type == "cpu":
                    mixed = torch.from_numpy(weights @ own.numpy())
                else:
                    mixed = torch.as_tensor(weights.toarray(), device=own.device) @ own
                vectors[rows] = mixed.to(vectors.dtype)
