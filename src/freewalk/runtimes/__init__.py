"""Where walks run: one file a runtime, all of them visiting the same nodes."""

from freewalk.errors import FreewalkError
from freewalk.runtimes.cpu import CPU
from freewalk.runtimes.reference import Reference
from freewalk.runtimes.runtime import Engine as Engine
from freewalk.runtimes.runtime import Job as Job
from freewalk.runtimes.runtime import Runtime as Runtime
from freewalk.runtimes.runtime import State as State

__all__ = ["CPU", "Reference"]


def runtime_named(runtime: str | Runtime) -> Runtime:
    """A runtime by its name in lower case, or as it is.

    Examples
    --------
    >>> runtime_named("cpu")
    CPU(threads=None)
    """
    if isinstance(runtime, Runtime):
        return runtime
    names: dict[str, type[Runtime]] = {"cpu": CPU, "reference": Reference}
    if not isinstance(runtime, str) or runtime not in names:
        raise FreewalkError(f"runtime: got {runtime!r}, expected {' or '.join(map(repr, names))}")
    return names[runtime]()
