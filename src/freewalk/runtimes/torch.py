"""The walk compiled, the learning in PyTorch: any module, on a processor or a graphics card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freewalk.checks import Checks
from freewalk.errors import FreewalkError, MissingExtra
from freewalk.rules.rule import Rule, Visit
from freewalk.runtimes.cpu import CPUWalker
from freewalk.runtimes.halves import HalvesEngine
from freewalk.runtimes.runtime import Runtime
from freewalk.runtimes.state import Job

if TYPE_CHECKING:
    from freewalk.runtimes.torch_learner import TorchLearner

_check = Checks(FreewalkError)


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

    @property
    def cards(self) -> int:
        """One, if models live there."""
        return int(self.device.startswith("cuda"))

    def engine(self, job: Job) -> HalvesEngine:
        """Make a job ready; the objective must have a torch module."""
        walker = CPUWalker(job, 1)
        return HalvesEngine(job, walker, None if job.objective is None else self._learner(job), threads=1)

    def _learner(self, job: Job) -> TorchLearner:
        try:
            import torch
        except ImportError:
            raise MissingExtra("torch", "torch") from None
        from freewalk.runtimes.torch_learner import TorchLearner
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
        for rule in (phase.rule for phase in job.phases if phase.rule is not None):
            if rule.proximal:
                raise FreewalkError(
                    f"torch: {type(rule).__name__} solves a problem at each node, which a module does not offer; "
                    "take a rule that uses gradients"
                )
            if rule.runs_on is None:
                _try_on_tensors(rule)
            if rule.sampled:
                job.objective.admit_single(job.precision)
        return TorchLearner(job, job.objective, device, self.vectorize)


def _try_on_tensors(rule: Rule) -> None:
    """Call a rule's function on tensors: what is plain arithmetic for numbers alone must not fail at the first step."""
    import torch

    vectors = [torch.full((2,), 0.5) for _ in ("x", *rule.carries, *rule.stores)]
    try:
        rule.update(Visit(0.1, 1.0, 0, 2, 1), rule.numbers, vectors[0], torch.full((2,), 0.5), *vectors[1:])
    except ArithmeticError:
        return
    except Exception as error:
        raise FreewalkError(
            f"torch: update of {type(rule).__name__} fails on tensors ({type(error).__name__}: {error}), expected "
            "arithmetic that is right for numbers and tensors alike; x**0.5 in place of math.sqrt(x), for example"
        ) from error
