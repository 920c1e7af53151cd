"""Compiled walks that learn in PyTorch: any module, on a CPU or a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freewalk.checks import Checks
from freewalk.errors import FreewalkError, MissingExtra
from freewalk.jobs.job import Job
from freewalk.rules.rule import Rule, Visit
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
            raise FreewalkError(
                f"torch: {type(job.objective).__name__} has no torch module, expected a freewalk.torch.TorchObjective; "
                "leave out `runtime` to use a suitable one"
            )
        try:
            device = torch.device(self.device)
            torch.empty(1, device=device)
        except (RuntimeError, AssertionError) as error:
            said = " ".join(str(error).split())[:120]
            raise _check.fail("Torch", "device", self.device, f'an available device, such as "cpu" ({said})') from error
        for rule in (phase.rule for phase in job.phases if phase.rule is not None):
            if rule.proximal:
                raise FreewalkError(
                    f"torch: {type(rule).__name__} solves a problem at each node, which a module does not offer; "
                    "use a rule that uses gradients"
                )
            if rule.runs_on is None:
                _try_on_tensors(rule)
            if rule.sampled:
                job.objective.admit_single(job.precision)
        return TorchLearner(job, job.objective, device, self.vectorize)


def _try_on_tensors(rule: Rule) -> None:
    """Try a rule's function on tensors, so that arithmetic that only works on numbers fails before the run."""
    import torch

    vectors = [torch.full((2,), 0.5) for _ in ("x", *rule.carries, *rule.stores)]
    try:
        rule.update(Visit(0.1, 1.0, 0, 2, 1), rule.numbers, vectors[0], torch.full((2,), 0.5), *vectors[1:])
    except ArithmeticError:
        return
    except Exception as error:
        raise FreewalkError(
            f"torch: update of {type(rule).__name__} fails on tensors ({type(error).__name__}: {error}), expected "
            "arithmetic that works on numbers and tensors alike, for example x**0.5 instead of math.sqrt(x)"
        ) from error
