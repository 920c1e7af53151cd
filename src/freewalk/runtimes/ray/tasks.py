"""Tasks of a cluster: their options, and the errors if one fails or none can run."""

from collections.abc import Sequence
from typing import Any

from freewalk.errors import FreewalkError
from freewalk.runtimes.ray.cluster import Machine

_RETRIES = 16  # how many deaths of workers a task survives


def task_options(cpus: int, cards: float) -> dict[str, Any]:
    """Options for a task that may be rerun elsewhere, with the same result."""
    return {"num_cpus": cpus, "num_gpus": cards, "max_retries": _RETRIES, "scheduling_strategy": "SPREAD"}


def slots(machines: Sequence[Machine], cpus: int, cards: float = 0) -> int:
    """The number of such tasks that run at a time.

    Raises
    ------
    FreewalkError
        If none can run: Ray would wait for a suitable machine forever.

    Examples
    --------
    >>> slots([Machine("a", cpus=8, gpus=0), Machine("b", cpus=4, gpus=0)], cpus=4)
    3
    """
    found = sum(min(one.cpus // cpus, int(one.gpus / cards) if cards else one.cpus) for one in machines)
    if not found:
        offered = ", ".join(f"{one.name}: {one.cpus} cores, {one.gpus} cards" for one in machines)
        needed = f"{cpus} cores" + (f" and {cards:g} cards" if cards else "")
        raise FreewalkError(f"Ray: a task needs {needed}, but no machine of the cluster offers that ({offered})")
    return found


def cause_of(error: BaseException) -> BaseException:
    """The error raised on a worker, with a note on where; an error of Ray itself, in one line."""
    from ray.exceptions import RayError, RayTaskError

    if isinstance(error, RayTaskError):
        cause: BaseException = error.cause if isinstance(error.cause, Exception) else error
        cause.add_note(f"Ray: raised on a worker:\n{error}")
        return cause
    if isinstance(error, RayError):
        return FreewalkError(f"Ray: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return error
