"""Measures of a model: losses and metrics, over the nodes and on a test set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from freewalk import rng
from freewalk.checks import Checks
from freewalk.errors import ProblemError
from freewalk.torch.gradients import NO_MEAN, SAME, Batched, why_not
from freewalk.torch.layout import Worker
from freewalk.torch.samples import each

if TYPE_CHECKING:
    from freewalk.torch.objective import TorchObjective

_AT_ONCE = 512  # samples in one call of the module
_ROWS = 64  # rows in one call of the module
_SUBSET = 17  # the purpose of the random draws that choose a subset

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
    for name, given in (("outputs", outputs), ("targets", targets)):
        check.instance("accuracy", name, given, torch.Tensor, "a tensor")
    if outputs.ndim < 2 or outputs.shape[1] == 1:
        return ((outputs.reshape(-1) > 0) == (targets.reshape(-1) > 0)).double().mean()
    return (outputs.argmax(dim=1) == targets).double().mean()


def checked_loss(who: str, loss: Any) -> Loss:
    """A function of outputs and targets, given directly or by its name in `torch.nn.functional`."""
    if isinstance(loss, str):
        endings = ("_loss", "cross_entropy", "_with_logits")
        check.choice(who, "loss", loss, [name for name in vars(torch.nn.functional) if name.endswith(endings)])
        return getattr(torch.nn.functional, loss)  # type: ignore[no-any-return]
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
        return {"accuracy": accuracy} if whole and targets.ndim == 1 else {}
    check.instance(who, "metrics", metrics, Mapping, "functions metric(outputs, targets) by name")
    for name, metric in metrics.items():
        if not isinstance(name, str) or not name.isidentifier() or name in ("loss", "test_loss"):
            raise check.fail(who, "metrics", name, "names of your own, such as 'accuracy'")
        if not callable(metric):
            raise check.fail(who, f"metrics[{name!r}]", metric, "a function metric(outputs, targets)")
    return dict(metrics)


def chosen(sizes: NDArray[np.int64], most: int) -> list[NDArray[np.int64]]:
    """For each node, the numbers of the samples to measure: all, or a fixed subset of about `most` in total."""
    offsets, total = np.concatenate([[0], np.cumsum(sizes)]), int(sizes.sum())
    if total <= most:
        return [np.arange(first, last) for first, last in pairwise(offsets)]
    draws = rng.generator(0, _SUBSET)
    kept = [max(1, round(size * most / total)) if size else 0 for size in sizes.tolist()]
    return [
        np.sort(first + draws.choice(size, keep, replace=False)) if size else np.empty(0, dtype=np.int64)
        for first, size, keep in zip(offsets[:-1], sizes.tolist(), kept, strict=True)
    ]


class Evaluation:
    """Measures rows of models, in one batch if the module allows it."""

    def __init__(self, objective: TorchObjective, dtype: torch.dtype, device: torch.device) -> None:
        self.objective, self.device = objective, device
        self.worker = Worker(objective.module, objective.layout, dtype, device)
        self.worker.module.eval()
        self.samples = objective.samples_on(dtype, device)
        self.test = None if objective.test is None else objective.test.to(dtype, device)
        self.numbers = torch.as_tensor(np.concatenate(objective.measured_samples))
        sizes = [numbers.size for numbers in objective.measured_samples]
        self.ends = np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()
        counts = np.repeat(np.maximum(sizes, 1), sizes)
        shares = np.repeat(objective.node_weights, sizes) / counts / objective.n
        self.shares = torch.as_tensor(shares, dtype=dtype, device=device)

    def of_row(self, row: torch.Tensor) -> dict[str, float]:
        """All measures of one model."""
        with torch.no_grad():
            outputs, targets = self._outputs_of(row)
            loss = float(self._losses(outputs, targets).mean())
            if self.test is not None:
                outputs, targets = _outputs(self.worker.call, self.test, self.objective.test_numbers)
            return self._measures(loss, outputs, targets)

    def _measures(self, loss: float, outputs: Any, targets: Any) -> dict[str, float]:
        """All measures of one model: its loss, and those of its outputs on the test set or, without one, the nodes."""
        objective, found = self.objective, {"loss": loss}
        if self.test is not None:
            found["test_loss"] = float(objective.loss_function(outputs, targets))
        well = math.isfinite(loss)
        return found | {name: _value(metric, outputs, targets, well) for name, metric in objective.metrics.items()}

    def losses(self, row: torch.Tensor) -> NDArray[np.float64]:
        """The loss of one model at each node, on the measured samples; 0 at a relay."""
        with torch.no_grad():
            return self._losses(*self._outputs_of(row))

    def _losses(self, outputs: Any, targets: Any) -> NDArray[np.float64]:
        loss, found = self.objective.loss_function, np.zeros(self.objective.n)
        for node, (first, last) in enumerate(pairwise(self.ends)):
            if last > first:
                found[node] = float(loss(*each(itemgetter(slice(first, last)), (outputs, targets))))
        return found * self.objective.node_weights

    def _outputs_of(self, row: torch.Tensor) -> tuple[Any, Any]:
        """The outputs of one model, and the targets, for the measured samples of the nodes."""
        self.worker.point(self.objective.layout.views(row))
        return _outputs(self.worker.call, self.samples, self.numbers)

    def of_rows(self, rows: torch.Tensor, batch: Batched | None) -> dict[str, NDArray[np.float64]]:
        """All measures of many models, by name."""
        if batch is None or self.samples.tensors is None or (self.test is not None and self.test.tensors is None):
            found = [self.of_row(row) for row in rows]
        else:
            found = [one for some in rows.split(_ROWS) for one in self._of_some(some, batch)]
        return {name: np.array([one[name] for one in found]) for name in self.objective.measures}

    def why_not(self, row: torch.Tensor, batch: Batched) -> str | None:
        """Why the losses of all nodes cannot be computed in one batch; None if they can.

        Gradients are tried only at a few nodes, which may all be alike, for example of one class.
        """
        try:
            found = self._of_some(row[None], batch)[0]["loss"]
            with torch.no_grad():
                outputs, targets = self._outputs_of(row)
                expected, singles = self._losses(outputs, targets), batch.losses(outputs, targets) * self.shares
                by_node = np.array([float(some.sum()) for some in singles.split(np.diff(self.ends).tolist())])
        except Exception as error:
            return why_not(error)
        scale = SAME * max(float(np.abs(expected).max()), 1e-12)
        apart = np.abs(by_node * self.objective.n - expected).max(), abs(found - expected.mean())
        return None if all(one <= scale for one in apart) else NO_MEAN

    def _of_some(self, rows: torch.Tensor, batch: Batched) -> list[dict[str, float]]:
        """All measures of some models, in one batch."""
        call = torch.func.vmap(self.worker.call_with, in_dims=(0, None))
        call_all = partial(call, self.objective.layout.views(rows))
        with torch.no_grad():
            outputs, targets = _outputs(call_all, self.samples, self.numbers, axis=1)
            by_sample = torch.func.vmap(batch.losses, in_dims=(0, None))(outputs, targets) * self.shares
            losses = by_sample.sum(dim=1).double().tolist()
            if self.test is not None:
                outputs, targets = _outputs(call_all, self.test, self.objective.test_numbers, axis=1)
            return [self._measures(loss, one, targets) for loss, one in zip(losses, outputs, strict=True)]


def _outputs(call: Callable[[Any], Any], samples: Any, numbers: torch.Tensor, axis: int = 0) -> tuple[Any, Any]:
    """The outputs for some samples, which are along this axis of them, and the targets."""
    outputs, targets = [], []
    for some in numbers.split(_AT_ONCE):
        inputs, wanted = samples.fetch(some)
        outputs.append(call(inputs))
        targets.append(wanted)
    return each(lambda *parts: torch.cat(parts, dim=axis), *outputs), each(lambda *parts: torch.cat(parts), *targets)


def _value(metric: Metric, outputs: Any, targets: Any, well: bool) -> float:
    """A metric of one model; NaN if the metric fails because the model has diverged (its loss is not finite)."""
    try:
        return float(metric(outputs, targets))
    except Exception:
        if well:
            raise
        return math.nan
