"""The parts of a run: which kernel and which rule hold at which step."""

from collections.abc import Sequence
from dataclasses import dataclass

from freewalk.errors import FreewalkError
from freewalk.kernel import Kernel
from freewalk.rules import Rule


@dataclass(frozen=True, eq=False)
class Phase:
    """A part of a run: walk by `kernel` and learn by `rule` up to step `until`.

    Parameters
    ----------
    until
        The step at which the next phase begins; None: to the end of the run. Schedules go on counting the steps of the
        run; only what a rule carries (an average) begins anew with a new rule.
    kernel
        How the walk moves.
    rule
        How a node updates the model; None walks without learning.

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


def phase_at(phases: Sequence[Phase], step: int) -> tuple[Phase, int | None, int]:
    """The phase of a step, where it ends (None: never), and the step at which its rule began."""
    began = 0
    start = 0
    for index, phase in enumerate(phases):
        if index and phase.rule != phases[index - 1].rule:
            began = start
        if phase.until is None or step < phase.until:
            return phase, phase.until, began
        start = phase.until
    raise FreewalkError(f"run: no phase covers step {step}; leave `until` of the last phase None")
