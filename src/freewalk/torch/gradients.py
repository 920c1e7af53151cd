"""Gradients of a module: one row at a time, or many rows in one batch; both are tried before they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from freewalk.checks import said
from freewalk.errors import ProblemError
from freewalk.torch.layout import Worker
from freewalk.torch.samples import NodeSamples

if TYPE_CHECKING:
    from freewalk.torch.objective import TorchObjective

SAME = 1e-3  # relative difference up to which gradients or losses are equal except for rounding
NO_MEAN = "its loss at a node is not the mean of the losses of single samples"
_ONE_BY_ONE = "a dataset gives its samples one by one, not as tensors"
_PROBED = 4  # nodes at which a batch is compared with a loop


class Looped:
    """The gradient of one row at one node, for any module and dataset."""

    def __init__(self, objective: TorchObjective, dtype: torch.dtype, device: torch.device) -> None:
        self.objective = objective
        self.samples: NodeSamples = objective.samples_on(dtype, device)
        self.worker = Worker(objective.module, objective.layout, dtype, device)
        self.worker.module.train()
        self.generator: torch.Generator = torch.default_generator
        if device.type == "cuda":
            self.generator = torch.cuda.default_generators[device.index or 0]

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Restore torch's own generator at the end of the block."""
        state = self.generator.get_state()
        try:
            yield
        finally:
            self.generator.set_state(state)

    def gradient(
        self, views: Sequence[torch.Tensor], numbers: Sequence[int] | torch.Tensor, scale: float, seed: int
    ) -> tuple[torch.Tensor, ...]:
        """The gradient of `scale` times the loss of some samples, by parameter; randomness comes from a seed.

        `views` are views of the parameters and buffers; buffers are changed in place.
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
    """The gradients of many rows, each at its own node, in one call.

    The function is traced once per shape, so that a call has no Python overhead. Nodes with fewer samples than others
    are padded with samples of weight 0.
    """

    def __init__(self, looped: Looped) -> None:
        if looped.samples.tensors is None:
            raise ProblemError(_ONE_BY_ONE)
        self.tensors, self.worker, self.loss = looped.samples.tensors, looped.worker, looped.objective.loss_function
        self.traced: dict[Any, Callable[..., torch.Tensor]] = {}

    def gradients(self, rows: torch.Tensor, numbers: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """The gradients (rows × trained) of Σ weights · losses over the samples with these numbers (rows × samples)."""
        key = tuple(rows.shape), tuple(numbers.shape)
        if key not in self.traced:
            self.traced[key] = _captured(_traced(self._gradients, rows, numbers, weights), rows, numbers, weights)
        return self.traced[key](rows, numbers, weights)

    def _gradients(self, rows: torch.Tensor, numbers: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        inputs, targets = (part[numbers] for part in self.tensors)
        views = [view.detach() for view in self.worker.layout.views(rows)]
        parameters = [view.requires_grad_() for view in views[: len(self.worker.parameters)]]
        losses = torch.func.vmap(self._loss)(views, inputs, targets, weights)
        gradients = torch.autograd.grad(losses.sum(), parameters, allow_unused=True, materialize_grads=True)
        return torch.cat([gradient.reshape(len(rows), -1) for gradient in gradients], dim=1)

    def _loss(
        self, views: list[torch.Tensor], inputs: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        return (self.losses(self.worker.call_with(views, inputs), targets) * weights).sum()

    def losses(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The loss of each sample."""
        return torch.func.vmap(lambda one, target: self.loss(one[None], target[None]).reshape(()))(outputs, targets)


def _traced(
    function: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor], *arguments: torch.Tensor
) -> Callable[..., torch.Tensor]:
    """A function traced for tensors of these shapes; the function itself if it cannot be traced."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def plain(rows: torch.Tensor, numbers: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return function(rows, numbers, weights)  # the tracer miscounts the arguments of a method

    try:
        graph = make_fx(plain)(*arguments)
        graph.graph.eliminate_dead_code()
        graph.recompile()
        return graph  # type: ignore[no-any-return]
    except Exception:  # tracing is for speed only
        return function


def _captured(function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> Callable[..., torch.Tensor]:
    """On a CUDA device, a function captured as one CUDA graph, whose result the next call overwrites."""
    if arguments[0].device.type != "cuda":
        return function
    places = [argument.clone() for argument in arguments]
    try:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries choose kernels and allocate memory before the capture
            for _ in range(3):
                function(*places)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = function(*places)
    except Exception:  # capturing is for speed only
        torch.cuda.synchronize()
        return function

    def call(*given: torch.Tensor) -> torch.Tensor:
        for place, argument in zip(places, given, strict=True):
            place.copy_(argument)
        graph.replay()
        return result

    return call


def batched(looped: Looped, row: torch.Tensor) -> Batched | str:
    """What computes gradients in one batch, or the reason why nothing can; tried with a model at a few nodes."""
    objective = looped.objective
    if looped.samples.tensors is None:
        return _ONE_BY_ONE
    owning = np.flatnonzero(objective.sizes)
    order = owning[np.argsort(objective.sizes[owning], kind="stable")]
    nodes = order[np.unique(np.linspace(0, order.size - 1, _PROBED).astype(int))].tolist()  # of different sizes
    rows = row.detach().clone().expand(len(nodes), -1).clone()
    try:
        with looped.undisturbed():
            expected = torch.stack(
                [
                    torch.cat([part.reshape(-1) for part in looped.gradient(views, objective.numbers(node), 1.0, 0)])
                    for views, node in zip(map(objective.layout.views, rows), nodes, strict=True)
                ]
            )
            if not torch.equal(rows, row.expand_as(rows)):
                return "its buffers change while it learns, as those of a batch norm do"
            at = torch.as_tensor(nodes, device=rows.device)
            numbers, weights = Full(objective, row).of(np.array(nodes), at)
            scales = torch.as_tensor(objective.node_weights[nodes][:, None], dtype=rows.dtype, device=rows.device)
            batch = Batched(looped)
            found = batch.gradients(rows, numbers, weights / scales)
    except Exception as error:
        return why_not(error)
    scale = float(expected.abs().max())
    if not float((found - expected).abs().max()) <= SAME * max(scale, 1e-12):
        return NO_MEAN
    return batch


def why_not(error: Exception) -> str:
    """The reason in an error why a module cannot run in one batch."""
    if "randomness" in str(error):
        return "it draws random numbers while it learns, as dropout does"
    return f"it cannot be vectorized ({said(error)})"


class Full:
    """All samples of nodes, as rows of equal length, on a device."""

    def __init__(self, objective: TorchObjective, like: torch.Tensor) -> None:
        self.sizes, self.most = objective.sizes, int(objective.sizes.max())
        device = like.device
        self.counts = torch.as_tensor(objective.sizes.copy(), device=device)[:, None]
        first = np.minimum(objective.offsets[:-1], objective.count - 1)  # for relays after the last node with data
        self.first = torch.as_tensor(first, device=device)[:, None]
        shares = objective.node_weights / np.maximum(objective.sizes, 1)
        self.shares = torch.as_tensor(shares, dtype=like.dtype, device=device)[:, None]
        self.places = torch.arange(self.most, device=device)[None]

    def of(self, nodes: NDArray[np.int64], at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The samples of some nodes, and their weights in the loss of the node; 0 for padding.

        Lengths are powers of two, or the size of the largest node, because a function is traced for each length.
        """
        longest = int(self.sizes[nodes].max())
        places = self.places[:, : min(1 << max(longest - 1, 0).bit_length(), self.most)]
        there = places < self.counts[at]
        numbers = torch.where(there, self.first[at] + places, self.first[at])
        return numbers, there * self.shares[at]


# Tries of a module, its loss and its metrics on their data, with errors that name the misfit.


def learn_and_measure(objective: TorchObjective, row: torch.Tensor) -> None:
    """Try gradients at the smallest and the largest node, and all measures, before a run."""
    looped = Looped(objective, row.dtype, torch.device("cpu"))
    with looped.undisturbed():
        for node in dict.fromkeys(_extremes(objective.sizes)):
            _gradient(looped, row, node, min(objective.samples(node), objective.batch or objective.count))
        model = row.numpy()
        with _tried(objective, "the loss"):
            losses = objective.losses(model)
        if not np.isfinite(losses).all():
            bad = int(np.argmin(np.isfinite(losses)))
            given = f"the loss of the first model at node {bad} is {losses[bad]}"
            raise ProblemError(f"TorchObjective: {given}, expected a finite number; check its data, or scale them")
        with _tried(objective, "a measure"):
            objective.measure(model)
    if name := looped.worker.changed(objective.module):
        why = f"changes while {type(objective.module).__name__} learns but would not be sent"
        kinds = "a trained parameter nor a buffer of the state_dict; register it as a buffer with persistent=True"
        raise ProblemError(f"TorchObjective: {name} {why}, since it is neither {kinds}")


def learn_from_one(objective: TorchObjective, row: torch.Tensor) -> None:
    """Try a gradient of a single sample."""
    looped = Looped(objective, row.dtype, torch.device("cpu"))
    with looped.undisturbed():
        _gradient(looped, row, _extremes(objective.sizes)[0], 1)


def is_random(objective: TorchObjective, row: torch.Tensor) -> bool:
    """Whether two seeds give different gradients."""
    looped, node = Looped(objective, row.dtype, torch.device("cpu")), _extremes(objective.sizes)[1]
    with looped.undisturbed():
        views, numbers = objective.views, objective.numbers(node)
        one, other = (looped.gradient(views(row), numbers, 1.0, seed) for seed in (0, 1))
    return not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def _gradient(looped: Looped, row: torch.Tensor, node: int, size: int) -> None:
    objective = looped.objective
    with _tried(objective, f"a gradient at node {node}, from {size} sample{'s' * (size != 1)},"):
        looped.gradient(objective.views(row), int(objective.offsets[node]) + torch.arange(size), 1.0, 0)


@contextmanager
def _tried(objective: TorchObjective, what: str) -> Iterator[None]:
    """If a module fails on its data, an error with what was computed and the shape of a sample."""
    try:
        yield
    except Exception as error:
        parts = [part for part in objective.one_sample() if isinstance(part, torch.Tensor)]
        shapes = [f"{str(part.dtype).removeprefix('torch.')} {tuple(part.shape[1:])}" for part in parts]
        seen = f" (one sample is {' → '.join(shapes)})" if shapes else ""
        why = f"{said(error)}{seen}; expected a module and a loss that fit the datasets"
        name = type(objective.module).__name__
        raise ProblemError(f"TorchObjective: {what} of {name} cannot be computed: {why}") from error


def _extremes(sizes: NDArray[np.int64]) -> tuple[int, int]:
    """The nodes with the fewest and the most samples, among those with data."""
    owning = np.flatnonzero(sizes)
    return int(owning[np.argmin(sizes[owning])]), int(owning[np.argmax(sizes[owning])])
