"""Where walks run: one file per runtime; all runtimes visit the same nodes."""

from collections.abc import Sequence

from freewalk.checks import Checks
from freewalk.errors import FreewalkError
from freewalk.jobs.job import Job as Job
from freewalk.jobs.job import State as State
from freewalk.jobs.phase import Phase
from freewalk.objectives import Objective
from freewalk.runtimes.base import Engine as Engine
from freewalk.runtimes.base import Runtime as Runtime
from freewalk.runtimes.cpu.runtime import CPU
from freewalk.runtimes.cuda.runtime import CUDA
from freewalk.runtimes.ray.runtime import Ray
from freewalk.runtimes.reference import Reference
from freewalk.runtimes.torch.runtime import Torch

__all__ = ["CPU", "CUDA", "Ray", "Reference", "Torch"]


def runtime_for(runtime: str | Runtime | None, objective: Objective | None, phases: Sequence[Phase]) -> Runtime:
    """The requested runtime or, if none was, a suitable one."""
    if runtime is not None:
        return runtime_named(runtime)
    if objective is None:
        return CPU()
    solves = any(phase.rule is not None and phase.rule.proximal for phase in phases)
    return runtime_named("reference" if solves else objective.runtime)


def runtime_named(runtime: str | Runtime) -> Runtime:
    """A runtime by its lower-case name; a runtime object is returned unchanged.

    Examples
    --------
    >>> runtime_named("cpu")
    CPU(threads=None)
    """
    if isinstance(runtime, Runtime):
        return runtime
    check = Checks(FreewalkError)
    names: dict[str, type[Runtime]] = {name.lower(): globals()[name] for name in __all__}
    if runtime == "gpu":  # not a misspelt "cpu"
        *most, last = map(repr, names)
        remedy = "a graphics card is 'cuda' or, for PyTorch models, fw.runtimes.Torch(device='cuda')"
        raise check.fail("run", "runtime", runtime, f"{', '.join(most)} or {last}", remedy)
    return names[check.choice("run", "runtime", runtime, names)]()
