"""Where walks run: one file per runtime, all of them visiting the same nodes."""

from freewalk.checks import Checks
from freewalk.errors import FreewalkError
from freewalk.runtimes.cpu import CPU
from freewalk.runtimes.cuda import CUDA
from freewalk.runtimes.reference import Reference
from freewalk.runtimes.runtime import Engine as Engine
from freewalk.runtimes.runtime import Runtime as Runtime
from freewalk.runtimes.state import Job as Job
from freewalk.runtimes.state import State as State

__all__ = ["CPU", "CUDA", "Reference"]


def runtime_named(runtime: str | Runtime) -> Runtime:
    """A runtime by its name in lower case, or as it is.

    Examples
    --------
    >>> runtime_named("cpu")
    CPU(threads=None)
    """
    if isinstance(runtime, Runtime):
        return runtime
    names: dict[str, type[Runtime]] = {name.lower(): globals()[name] for name in __all__}
    return names[Checks(FreewalkError).choice("run", "runtime", runtime, names)]()
