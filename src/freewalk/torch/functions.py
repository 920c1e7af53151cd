"""Losses and metrics: functions of outputs and targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from freewalk.checks import Checks
from freewalk.errors import ProblemError

Loss = Callable[[Any, Any], torch.Tensor]
Metric = Callable[[torch.Tensor, torch.Tensor], Any]
check = Checks(ProblemError)


def accuracy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The fraction of samples whose largest output is that of their class; for one output, whose sign is right.

    Examples
    --------
    >>> float(accuracy(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1])))
    0.5
    """
    if outputs.ndim < 2 or outputs.shape[1] == 1:
        return ((outputs.reshape(-1) > 0) == (targets.reshape(-1) > 0)).double().mean()
    return (outputs.argmax(dim=1) == targets).double().mean()


def checked_loss(who: str, loss: Any) -> Loss:
    """A function of outputs and targets, given directly or by its name in `torch.nn.functional`."""
    if isinstance(loss, str):
        known = [
            name for name in vars(torch.nn.functional) if name.endswith(("_loss", "cross_entropy", "_with_logits"))
        ]
        check.choice(who, "loss", loss, known)
        found: Loss = getattr(torch.nn.functional, loss)
        return found
    if not callable(loss):
        raise check.fail(who, "loss", loss, "a function loss(outputs, targets), or the name of a PyTorch function")
    return loss  # type: ignore[no-any-return]


def name_of(loss: Any) -> str:
    """The name of a loss, the same in every process: a module with its options, or a function name."""
    return repr(loss) if isinstance(loss, torch.nn.Module) else getattr(loss, "__qualname__", type(loss).__qualname__)


def checked_metrics(who: str, metrics: Mapping[str, Metric] | None, targets: Any) -> dict[str, Metric]:
    """Metrics by name; None: accuracy, if the targets are classes."""
    if metrics is None:
        whole = isinstance(targets, torch.Tensor) and not (targets.is_floating_point() or targets.is_complex())
        classes = whole and targets.ndim == 1
        return {"accuracy": accuracy} if classes else {}
    check.instance(who, "metrics", metrics, Mapping, "functions metric(outputs, targets) by name")
    for name, metric in metrics.items():
        if not isinstance(name, str) or not name.isidentifier() or name in ("loss", "test_loss"):
            raise check.fail(who, "metrics", name, "names of your own, such as 'accuracy'")
        if not callable(metric):
            raise check.fail(who, f"metrics[{name!r}]", metric, "a function metric(outputs, targets)")
    return dict(metrics)
