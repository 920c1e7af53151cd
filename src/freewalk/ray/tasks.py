"""Tasks of a cluster: what they are given, and what is said where one fails or none can run."""

from collections.abc import Sequence
from typing import Any

from freewalk.errors import FreewalkError
from freewalk.ray.connecting import Machine

_RETRIES = 16  # deaths of workers that a task survives


def task_options(cpus: int, cards: float) -> dict[str, Any]:
    """How Ray is to run a task that may be run again elsewhere, to the same result."""
    return {"num_cpus": cpus, "num_gpus": cards, "max_retries": _RETRIES, "scheduling_strategy": "SPREAD"}


def slots(machines: Sequence[Machine], cpus: int, cards: float = 0) -> int:
    """How many such tasks run at a time.

    Raises
    ------
    FreewalkError
        If none can: Ray would wait for a machine for ever.

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
    """What was raised on a worker, with a word about where; what Ray itself objects to, in one line."""
    from ray.exceptions import RayError, RayTaskError

    if isinstance(error, RayTaskError):
        cause: BaseException = error.cause if isinstance(error.cause, Exception) else error
        cause.add_note(f"Ray: raised on a worker:\n{error}")
        return cause
    if isinstance(error, RayError):
        return FreewalkError(f"Ray: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return error
