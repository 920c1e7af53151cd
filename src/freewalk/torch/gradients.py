"""Gradients of a module: of one row after the other, or of many rows in one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from freewalk.errors import ProblemError
from freewalk.torch.layout import Worker
from freewalk.torch.samples import Samples

if TYPE_CHECKING:
    from freewalk.torch.objective import TorchObjective

SAME = 1e-3  # relative difference of gradients or losses that are the same but for rounding
NO_MEAN = "its loss at a node is not the mean of the losses of single samples"
_PROBED = 4  # nodes on which a batch is compared with a loop


class Looped:
    """The gradient of one row at one node: whatever the module is and the dataset gives."""

    def __init__(self, objective: TorchObjective, dtype: torch.dtype, device: torch.device) -> None:
        self.objective = objective
        self.samples: Samples = objective.samples_on(dtype, device)
        self.worker = Worker(objective.module, objective.layout, dtype, device)
        self.worker.module.train()
        index = device.index or 0
        self.generator: torch.Generator = (
            torch.cuda.default_generators[index] if device.type == "cuda" else torch.default_generator
        )

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Leave torch's own generator as it was, whatever is drawn from seeds meanwhile."""
        state = self.generator.get_state()
        try:
            yield
        finally:
            self.generator.set_state(state)

    def gradient(
        self, views: Sequence[torch.Tensor], numbers: Sequence[int] | torch.Tensor, scale: float, seed: int
    ) -> tuple[torch.Tensor, ...]:
        """By parameter: the gradient of `scale` times the loss of some samples; what is random is drawn from a seed.

        `views` are those of the parameters and buffers; buffers that change are changed in place.
        """
        self.worker.point(views)
        self.generator.manual_seed(seed)
        inputs, targets = self.samples.fetch(numbers)
        loss = self.objective.loss_function(self.worker.call(inputs), targets)
        gradients: tuple[torch.Tensor, ...] = torch.autograd.grad(
            loss if scale == 1.0 else scale * loss,
            self.worker.parameters,
            allow_unused=True,
            materialize_grads=True,
        )
        self.worker.leave(views)
        return gradients


class Batched:
    """The gradients of many rows, each at a node of its own, in one call.

    The function is traced once for each shape, so that a call costs what its operations do. Nodes with fewer samples
    than others are filled up with samples of weight 0.
    """

    def __init__(self, looped: Looped) -> None:
        self.samples, self.module, self.layout = looped.samples, looped.worker.module, looped.objective.layout
        self.loss = looped.objective.loss_function
        self.traced: dict[Any, Callable[..., torch.Tensor]] = {}

    def gradients(self, rows: torch.Tensor, numbers: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Rows × trained: the gradients of Σ weights · losses of the samples with these numbers (rows × samples)."""
        if self.samples.tensors is None:
            raise ProblemError("samples come one by one")
        inputs, targets = (part[numbers] for part in self.samples.tensors)
        key = tuple(inputs.shape), tuple(rows.shape)
        if key not in self.traced:
            self.traced[key] = _traced(self._gradients, rows, inputs, targets, weights)
        return self.traced[key](rows, inputs, targets, weights)

    def _gradients(
        self, rows: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        count = len(self.layout.parameters)
        views = [view.detach() for view in self.layout.views(rows)]
        parameters, buffers = [view.requires_grad_() for view in views[:count]], views[count:]
        losses = torch.func.vmap(self._loss)(parameters, buffers, inputs, targets, weights)
        gradients = torch.autograd.grad(losses.sum(), parameters, allow_unused=True, materialize_grads=True)
        return torch.cat([gradient.reshape(len(rows), -1) for gradient in gradients], dim=1)

    def _loss(
        self,
        parameters: list[torch.Tensor],
        buffers: list[torch.Tensor],
        inputs: torch.Tensor,
        targets: torch.Tensor,
        weights: torch.Tensor,
    ) -> torch.Tensor:
        named = dict(zip(self.layout.names, [*parameters, *buffers], strict=True))
        outputs = torch.func.functional_call(self.module, named, (inputs,))
        return (self.losses(outputs, targets) * weights).sum()

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The loss of each sample."""
        return torch.func.vmap(lambda one, target: self.loss(one[None], target[None]).reshape(()))(outputs, targets)


def _traced(function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> Callable[..., torch.Tensor]:
    """The operations of a function on tensors of these shapes; the function itself where they cannot be had."""
    from torch.fx.experimental.proxy_tensor import make_fx

    try:
        graph = make_fx(function)(*arguments)
        graph.graph.eliminate_dead_code()
        graph.recompile()
        return graph  # type: ignore[no-any-return]
    except Exception:  # it is traced for speed alone
        return function


def batched(looped: Looped, row: torch.Tensor) -> Batched | str:
    """What computes gradients in one batch, or why that cannot be: it is tried on a few nodes.

    Parameters
    ----------
    looped
        What computes the same one after the other.
    row
        A model to try it with.
    """
    objective = looped.objective
    if looped.samples.tensors is None:
        return "a dataset gives its samples one by one, not as tensors"
    sizes = objective.sizes
    nodes = _unequal(sizes)
    rows = row.detach().clone().expand(len(nodes), -1).clone()
    try:
        with looped.undisturbed():
            expected = torch.stack(
                [
                    torch.cat([part.reshape(-1) for part in looped.gradient(views, _numbers(objective, node), 1.0, 0)])
                    for views, node in zip(map(objective.layout.views, rows), nodes, strict=True)
                ]
            )
            if not torch.equal(rows, row.expand_as(rows)):
                return "its buffers change while it learns, as those of a batch norm do"
            numbers, weights = padded(objective, np.array(nodes), int(sizes[nodes].max()))
            batch = Batched(looped)
            found = batch.gradients(
                rows,
                torch.as_tensor(numbers, device=rows.device),
                torch.as_tensor(weights / objective.node_weights[nodes][:, None], dtype=rows.dtype, device=rows.device),
            )
    except Exception as error:
        return why_not(error)
    scale = float(expected.abs().max())
    if not float((found - expected).abs().max()) <= SAME * max(scale, 1e-12):
        return NO_MEAN
    return batch


def why_not(error: Exception) -> str:
    """What an error says about a module that cannot be run in one batch."""
    words = " ".join(str(error).split())
    if "randomness" in words:
        return "it draws random numbers while it learns, as dropout does"
    return f"it cannot be vectorized ({type(error).__name__}: {words[:120]})"


def _unequal(sizes: NDArray[np.int64]) -> list[int]:
    """A few nodes with data whose sizes differ, where they do."""
    owning = np.flatnonzero(sizes)
    order = owning[np.argsort(sizes[owning], kind="stable")]
    return [int(node) for node in order[np.unique(np.linspace(0, order.size - 1, _PROBED).astype(int))]]


def _numbers(objective: TorchObjective, node: int) -> torch.Tensor:
    return torch.arange(int(objective.offsets[node]), int(objective.offsets[node + 1]))


def padded(
    objective: TorchObjective, nodes: NDArray[np.int64], length: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All samples of some nodes as rows of one length, and their weights in the loss of the node; 0 where filled up."""
    sizes, first = objective.sizes[nodes][:, None], objective.offsets[nodes][:, None]
    places = np.arange(length)[None]
    numbers = np.where(places < sizes, first + places, np.minimum(first, objective.count - 1))
    share = objective.node_weights[nodes][:, None] / np.maximum(sizes, 1)
    return numbers, np.where(places < sizes, share, 0.0)
