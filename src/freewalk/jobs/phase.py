"""The phases of a run: which kernel and which rule apply at which step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.designs.kernel import Kernel
from freewalk.errors import FreewalkError
from freewalk.exchanges import Exchange
from freewalk.rules import Rule


@dataclass(frozen=True, eq=False)
class Phase:
    """A part of a run: walk with `kernel` and learn with `rule` up to step `until`.

    Parameters
    ----------
    until
        The step at which the next phase begins; None means the end of the run. Schedules keep counting the steps of the
        run; a new rule starts with fresh carried and stored vectors.
    kernel
        How the walk moves.
    rule
        How a node updates the model; None walks without learning.
    exchange
        How the tokens of a replica mix after an update; None means they do not mix.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    >>> fw.Phase(2000, kernel, fw.SGD(step=1e-3)).until
    2000
    """

    until: int | None
    kernel: Kernel
    rule: Rule | None = None
    exchange: Exchange | None = None


class Current(NamedTuple):
    """The phase of a step, the step at which it ends (None: never), and the step at which its rule began."""

    phase: Phase
    end: int | None
    began: int


def phase_at(phases: Sequence[Phase], step: int) -> Current:
    """The phase to which a step belongs."""
    began = start = 0
    for index, phase in enumerate(phases):
        if index and not _same(phase.rule, phases[index - 1].rule):
            began = start
        if phase.until is None or step < phase.until:
            return Current(phase, phase.until, began)
        start = phase.until
    raise FreewalkError(f"run: no phase covers step {step}; leave `until` of the last phase None")


def updates_at(phases: Sequence[Phase], steps: NDArray[np.int64], tokens: int = 1) -> NDArray[np.int64]:
    """The total number of updates that the tokens of a walk have made by these steps."""
    made, start = np.zeros_like(steps), 0
    for phase in phases:
        local = 1 if phase.rule is None else int(phase.rule.local_steps)
        until = int(steps.max(initial=start)) if phase.until is None else phase.until
        made += (np.clip(steps, start, max(until, start)) - start) * local * tokens
        start = until
    return made


def label_of(phases: Sequence[Phase], tokens: int = 1) -> str:
    """The name of a run: its kernels, its tokens and its exchanges."""
    label = " → ".join(phase.kernel.label for phase in phases)
    exchanges = dict.fromkeys(repr(phase.exchange) for phase in phases if phase.exchange is not None)
    return ", ".join([label, *([f"{tokens} tokens"] if tokens > 1 else []), *exchanges])


def _same(one: Rule | None, other: Rule | None) -> bool:
    """Whether two rules are equal; rules that cannot be compared, such as some with arrays, are not."""
    try:
        return one is other or bool(one == other)
    except ValueError:
        return False


class Passage(NamedTuple):
    """Some steps of a run within one phase, and the measured steps among them."""

    phase: Phase
    began: int  # the step at which the rule of the phase began
    start: int
    until: int
    marks: NDArray[np.int64]


def marks_in(after: int, until: int, every: int, steps: int) -> NDArray[np.int64]:
    """The steps in (after, until] at which to measure."""
    first = (after // every + 1) * every
    count = max((until - first) // every + 1, 0)  # np.arange would compute it in floating point
    marks = min(first, until) + every * np.arange(count, dtype=np.int64)
    return np.append(marks, steps) if until == steps and steps % every else marks


def count_marks(step: int, every: int, steps: int) -> int:
    """The number of measured steps from 0 to `step`."""
    return 1 + step // every + (step == steps and steps % every > 0)
