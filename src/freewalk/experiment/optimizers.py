"""Optimizers of PyTorch as a spec names them: described here without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from freewalk.rules import Rule
from freewalk.schedules import Schedule

__all__ = ["Optimizer"]


def Optimizer(  # named as the class that it stands for, with which a test compares it
    factory: str,
    options: Mapping[str, Any] | None = None,
    state: Literal["travels", "stays", "resets"] = "travels",
    step: float | Schedule = 1.0,
    weighted: bool = True,
    local_steps: int = 1,
) -> Rule:
    """A step of a torch optimizer at each visit, with the gradient of the node times its weight.

    Parameters
    ----------
    factory
        The name of a class in `torch.optim`, such as "Adam".
    options
        What it takes beside the parameters, such as { lr = 1e-3 }.
    state
        What becomes of momenta, squares and the like. "travels": they go with the model, and are counted in its bytes.
        "stays": each node keeps those of each token. "resets": each visit begins without.
    step
        By what learning rates are multiplied: a number or a schedule.
    weighted
        Whether gradients are multiplied by the weights 1 / (n · target_v) of the kernel. An optimizer that normalises
        gradients, such as Adam, undoes part of that.
    local_steps
        Steps at a node before the model moves on.

    Raises
    ------
    MissingExtra
        If PyTorch is not installed.
    """
    from freewalk.torch import optimizer

    return optimizer.Optimizer(factory, dict(options or {}), state, step, weighted, local_steps)
