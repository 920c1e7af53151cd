"""PyTorch optimizers as specs name them: described here without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from freewalk.rules import Rule
from freewalk.schedules import Schedule

__all__ = ["Optimizer"]


def Optimizer(  # named like the class that it stands for; a test compares the two
    factory: str,
    options: Mapping[str, Any] | None = None,
    state: Literal["travels", "stays", "resets"] = "travels",
    step: float | Schedule = 1.0,
    weighted: bool = True,
    local_steps: int = 1,
) -> Rule:
    """One step of a PyTorch optimizer per visit, with the gradient of the node times its weight.

    Parameters
    ----------
    factory
        The name of a class in `torch.optim`, such as "Adam".
    options
        Its options, such as { lr = 1e-3 }.
    state
        What happens to the optimizer's state, such as momenta. "travels": it is sent with the model and counted in its
        bytes. "stays": each node keeps a state for each token. "resets": each visit starts without one.
    step
        A factor for all learning rates: a number or a schedule.
    weighted
        Whether gradients are multiplied by the weights 1 / (n · target_v) of the kernel. Optimizers that normalise
        gradients, such as Adam, partly undo that.
    local_steps
        The number of steps at a node before the model moves on.
    """
    from freewalk.torch import optimizer

    return optimizer.Optimizer(factory, dict(options or {}), state, step, weighted, local_steps)
