"""Compiled walks that learn in PyTorch: any module, on a CPU or a GPU."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freewalk.checks import Checks, said
from freewalk.errors import FreewalkError, MissingExtra
from freewalk.jobs.job import Job
from freewalk.rules.rule import Visit
from freewalk.runtimes.cpu.runtime import CPUWalker
from freewalk.runtimes.engine import HalvesEngine, Runtime

if TYPE_CHECKING:
    from freewalk.runtimes.torch.learner import TorchLearner

_check = Checks(FreewalkError)


@dataclass(frozen=True)
class Torch(Runtime):
    """Compiled walks that learn in PyTorch: for `freewalk.torch.TorchObjective`.

    Parameters
    ----------
    device
        The device of the models: "cpu", "cuda", "cuda:1", or any other PyTorch device.
    vectorize
        Whether to compute the gradients of all rows in one batch. Default: if the module allows it and there are more
        than a few rows; if it does not, a `LoopWarning` says why. False: never, without a warning. True: always; if
        that is impossible, an error says why.

    Raises
    ------
    FreewalkError
        If a parameter is not valid.
    """

    device: str = "cpu"
    vectorize: bool | None = None

    def __post_init__(self) -> None:
        _check.text("Torch", "device", self.device)
        if self.vectorize is not None:
            _check.flag("Torch", "vectorize", self.vectorize)

    @property
    def cards(self) -> int:  # type: ignore[override]
        """One if the models are on a GPU."""
        return int(self.device.startswith("cuda"))

    def engine(self, job: Job) -> HalvesEngine:
        """Prepare a job; its objective must have a PyTorch module."""
        walker = CPUWalker(job, 1)
        return HalvesEngine(job, walker, None if job.objective is None else self._learner(job), threads=1)

    def _learner(self, job: Job) -> TorchLearner:
        try:
            import torch
        except ImportError:
            raise MissingExtra("torch", "torch") from None
        from freewalk.runtimes.torch.learner import TorchLearner
        from freewalk.torch.objective import TorchObjective

        if not isinstance(job.objective, TorchObjective):
            given, expected = type(job.objective).__name__, "a freewalk.torch.TorchObjective"
            raise FreewalkError(f"torch: {given} has no torch module, expected {expected}; leave out `runtime`")
        try:
            device = torch.device(self.device)
            torch.empty(1, device=device)
        except (RuntimeError, AssertionError) as error:
            expected = f'an available device, such as "cpu" ({said(error)})'
            raise _check.fail("Torch", "device", self.device, expected) from error
        for rule in (phase.rule for phase in job.phases if phase.rule is not None):
            if rule.proximal:
                solving = f"{type(rule).__name__} solves a problem at each node, which a module does not offer"
                raise FreewalkError(f"torch: {solving}; use a rule that uses gradients")
            if rule.runs_on is None:  # what only works on numbers fails before the run
                x, gradient, *others = (torch.full((2,), 0.5) for _ in (0, 1, *rule.carries, *rule.stores))
                who = f"torch: update of {type(rule).__name__} fails on tensors"
                remedy = "use arithmetic that works on numbers and tensors alike: x**0.5 instead of math.sqrt(x)"
                with _check.attempt(who, remedy), suppress(ArithmeticError):
                    rule.update(Visit(0.1, 1.0, 0, 2, 1), rule.numbers, x, gradient, *others)
            if rule.sampled:
                job.objective.admit_single(job.precision)
        return TorchLearner(job, job.objective, device, self.vectorize)
