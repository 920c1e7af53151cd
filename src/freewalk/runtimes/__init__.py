"""Where walks run: one folder per runtime; all of them visit the same nodes, bit for bit.

A `Runtime` prepares a job; the `Engine` that it makes advances states (`engine.py`). The path never depends on the
model, so engines have two halves: a walker writes the path, messages, probes and visits, and a learner follows it. Any
walker can be combined with any learner; only on a GPU one compiled function does both.

- `reference.py` is plain Python: read it first, for it defines what is right. `visit.py` is one update at one node,
  which peers use too, and draws minibatches. `mixer.py` has the exchanges between tokens that are compiled.
- `step/` is one step of one walk, written once for all compiled runtimes as scalar functions: `moves_and_messages.py`
  (`near_move` and `far_move` move, and count messages and probes) and `update.py` (`learn_visit` updates, `measure`
  measures). `arrays.py` has the groups of arrays that they receive; `inputs.py` makes these from a kernel, an objective
  and a rule.
- `cpu/`: `loops.py` takes 16 walks in turns, so that one computes while another waits for memory; `runtime.py` has the
  halves, and compiles them.
- `cuda/`: `kernels.py` is the code of the GPU, `launch.py` chooses threads, registers and shared memory, `runtime.py`
  keeps the walks on the card.
- `torch/`: the walker of `cpu/` with a learner in PyTorch: `learner.py` for a passage, `visits.py` for a step.
- `ray/`: the same engines on a cluster. `runtime.py` divides a state and advances its parts on workers, `shipment.py`
  packs a job with its arrays and the user's code, `cluster.py` joins or starts a cluster.

The draws are those of `freewalk/rng.py`, a public contract: which word decides what never changes.
"""

from collections.abc import Sequence
from typing import cast

from freewalk.checks import Checks
from freewalk.errors import FreewalkError
from freewalk.jobs.job import Job as Job
from freewalk.jobs.job import State as State
from freewalk.jobs.phase import Phase
from freewalk.objectives import Objective
from freewalk.runtimes.cpu.runtime import CPU
from freewalk.runtimes.cuda.runtime import CUDA
from freewalk.runtimes.engine import Engine as Engine
from freewalk.runtimes.engine import Runtime as Runtime
from freewalk.runtimes.ray.runtime import Ray
from freewalk.runtimes.reference import Reference
from freewalk.runtimes.torch.runtime import Torch

__all__ = ["CPU", "CUDA", "Ray", "Reference", "Torch"]


def runtime_for(runtime: str | Runtime | None, objective: Objective | None, phases: Sequence[Phase]) -> Runtime:
    """The requested runtime or, if none was, a suitable one."""
    if runtime is None:
        solves = any(phase.rule is not None and phase.rule.proximal for phase in phases)
        runtime = "cpu" if objective is None else "reference" if solves else objective.runtime
    return runtime_named(runtime)


_NAMED: dict[str, type[Runtime]] = {name.lower(): globals()[name] for name in __all__}


def runtime_named(runtime: str | Runtime) -> Runtime:
    """A runtime by its lower-case name; a runtime object is returned unchanged.

    Examples
    --------
    >>> runtime_named("cpu")
    CPU(threads=None)
    """
    if issubclass(type(runtime), Runtime):
        return cast(Runtime, runtime)
    check = Checks(FreewalkError)
    if isinstance(runtime, str) and runtime == "gpu":  # not a misspelt "cpu"
        *most, last = map(repr, _NAMED)
        remedy = "a graphics card is 'cuda' or, for PyTorch models, fw.runtimes.Torch(device='cuda')"
        raise check.fail("run", "runtime", runtime, f"{', '.join(most)} or {last}", remedy)
    return _NAMED[check.choice("run", "runtime", runtime, _NAMED)]()
