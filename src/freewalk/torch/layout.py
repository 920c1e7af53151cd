"""A module as one row of numbers: the positions of its parameters and buffers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import ProblemError

check = Checks(ProblemError)
TYPES = {"float64": torch.float64, "float32": torch.float32}


@dataclass(frozen=True)
class Layout:
    """The order of what is sent: the trained parameters, then the buffers.

    Parameters with `requires_grad=False` and buffers that are not in the state_dict are the same everywhere and are not
    sent. Integer buffers, such as the batch count of a batch norm, are sent as floats.
    """

    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    whole: tuple[str, ...]  # the integer buffers

    @classmethod
    def of(cls, who: str, module: Any) -> Layout:
        """The layout of a module, or an error if it is none or has no trainable parameter."""
        check.instance(who, "module", module, torch.nn.Module, "a torch.nn.Module")
        trained = {name: part for name, part in module.named_parameters() if part.requires_grad}
        everything = (*module.named_parameters(), *module.named_buffers())
        lazy = [name for name, part in everything if torch.nn.parameter.is_lazy(part)]
        if lazy:
            raise ProblemError(f"{who}: {lazy[0]} has no shape yet, expected an initialized module; call it once")
        if hollow := [name for name, part in everything if part.is_meta]:
            expected = "a module on a device; call module.to_empty(device='cpu') and load its state_dict"
            raise ProblemError(f"{who}: {hollow[0]} is on the device meta, without values, expected {expected}")
        if not trained:
            raise ProblemError(f"{who}: {type(module).__name__} has no parameter to train")
        kept = module.state_dict(keep_vars=True)
        buffers = {name: part for name, part in module.named_buffers() if name in kept}
        for name, part in trained.items():
            if part.dtype not in TYPES.values():
                kind = str(part.dtype).removeprefix("torch.")
                expected = "float32 or float64: small steps would be rounded away"
                raise ProblemError(f"{who}: {name} is {kind}, expected {expected}; call module.float()")
        for name, part in buffers.items():
            if part.is_complex():
                raise ProblemError(f"{who}: the buffer {name} is complex, expected real or whole numbers")
        shapes = tuple(tuple(part.shape) for part in (*trained.values(), *buffers.values()))
        whole = tuple(name for name, part in buffers.items() if not part.is_floating_point())
        return cls(tuple(trained), tuple(buffers), shapes, whole)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters and buffers that are sent."""
        return self.parameters + self.buffers

    @cached_property
    def ends(self) -> list[int]:
        """The end of each of them in a row."""
        return list(accumulate(map(math.prod, self.shapes)))

    @cached_property
    def places(self) -> list[tuple[str, int, int, tuple[int, ...]]]:
        """The name, start, end and shape of each of them."""
        return list(zip(self.names, [0, *self.ends[:-1]], self.ends, self.shapes, strict=True))

    @property
    def trained(self) -> int:
        """The number of trained parameters, which come first in a row."""
        return self.ends[len(self.parameters) - 1]

    @property
    def size(self) -> int:
        """The length of a row."""
        return self.ends[-1]

    def views(self, rows: torch.Tensor, count: int | None = None) -> list[torch.Tensor]:
        """Views of the first `count` tensors (default: all) of a row, or of each of several rows."""
        places = self.places[:count]
        return [rows[..., start:end].view((*rows.shape[:-1], *shape)) for _, start, end, shape in places]

    def flat(self, tensors: Mapping[str, Any], dtype: str) -> NDArray[np.floating[Any]]:
        """One row from tensors or arrays by name."""
        row = np.empty(self.size, dtype=dtype)
        for name, start, end, shape in self.places:
            part = tensors[name]
            values = part.detach().cpu() if isinstance(part, torch.Tensor) else torch.as_tensor(np.asarray(part))
            if tuple(values.shape) != shape:
                raise ProblemError(f"model: {name} has shape {tuple(values.shape)}, expected {shape}")
            row[start:end] = values.reshape(-1).to(TYPES[dtype]).numpy()
            sent = torch.as_tensor(row[start:end]).double()
            if name in self.whole and not torch.equal(values.reshape(-1).double(), sent):
                remedy = "register it with persistent=False if it never changes, or use module.double()"
                raise ProblemError(f"model: the buffer {name} holds integers that cannot be sent as {dtype}; {remedy}")
        return row

    def named(self, row: NDArray[np.floating[Any]]) -> dict[str, NDArray[Any]]:
        """The arrays of a row, by name; those of floats are views."""
        parts = {}
        for name, start, end, shape in self.places:
            values = row[start:end].reshape(shape)
            parts[name] = np.rint(values).astype(np.int64) if name in self.whole else values
        return parts


class Worker:
    """A copy of a module whose parameters and buffers are views of the row that it works on."""

    def __init__(self, module: Any, layout: Layout, dtype: torch.dtype, device: torch.device) -> None:
        self.layout, self.dtype, self.device = layout, dtype, device
        travelling = set(layout.names)
        memo: dict[int, Any] = {}  # parameters and buffers that are sent are not copied: they will be views
        for name, part in module.named_parameters():
            if name in travelling:
                memo[id(part)] = torch.nn.Parameter(torch.empty(0, dtype=dtype, device=device))
        for name, part in module.named_buffers():
            if name in travelling:
                kind = part.dtype if name in layout.whole else dtype
                memo[id(part)] = torch.empty(part.shape, dtype=kind, device=device)
        who = f"TorchObjective: {type(module).__name__} cannot be copied"
        with check.attempt(who, "expected a module on which copy.deepcopy works"):
            self.module = copy.deepcopy(module, memo).to(device=device, dtype=dtype)
        found = dict(self.module.named_parameters())
        self.parameters = [found[name] for name in layout.parameters]
        places = {id(part): layout.buffers.index(name) for name, part in module.named_buffers() if name in travelling}
        self._buffers: list[list[tuple[Any, str]]] = [[] for _ in layout.buffers]  # several if modules share one
        for name, part in module.named_buffers(remove_duplicate=False):
            if id(part) in places:
                path, _, key = name.rpartition(".")
                self._buffers[places[id(part)]].append((self.module.get_submodule(path), key))
        self._whole = {
            layout.buffers.index(name): torch.empty(part.shape, dtype=part.dtype, device=device)
            for name, part in module.named_buffers()
            if name in layout.whole
        }
        self._pointed: list[torch.Tensor] = []

    def point(self, views: Sequence[torch.Tensor]) -> None:
        """Work on these tensors: those of a row, in the order of the layout."""
        for parameter, view in zip(self.parameters, views, strict=False):
            parameter.data = view
        if self._buffers:
            # Detached: if a module computes a buffer with a gradient, the row must not become part of its graph.
            self._pointed = [view.detach() for view in views[len(self.parameters) :]]
            for place, own in self._whole.items():
                self._pointed[place] = own.copy_(self._pointed[place].round())
            for owners, view in zip(self._buffers, self._pointed, strict=True):
                for owner, key in owners:
                    owner._buffers[key] = view

    def leave(self, views: Sequence[torch.Tensor]) -> None:
        """Write tensors that are no longer views back to the row."""
        rest = views[len(self.parameters) :]
        for place, owners in enumerate(self._buffers):
            view = self._pointed[place]
            values = next((owner._buffers[key] for owner, key in owners if owner._buffers[key] is not view), view)
            if values is not view or place in self._whole:
                rest[place].copy_(values.detach())

    def release(self) -> None:
        """Release the current row, so that keeping a worker does not keep its last model."""
        for parameter in self.parameters:
            parameter.data = torch.empty(0, dtype=self.dtype, device=self.device)
        for owners in self._buffers:
            for owner, key in owners:
                owner._buffers[key] = None
        self._pointed = []

    def changed(self, module: Any) -> str | None:
        """The name of a tensor that is not sent and differs from the module's; None if there is none."""
        travelling = set(self.layout.names)
        here: dict[str, Any] = dict((*self.module.named_parameters(), *self.module.named_buffers()))
        for name, part in (*module.named_parameters(), *module.named_buffers()):
            if name not in travelling and name in here:
                own = part.detach().to(device=self.device, dtype=here[name].dtype)
                if own.shape != here[name].shape or not torch.equal(own.nan_to_num(), here[name].detach().nan_to_num()):
                    return str(name)
        return None

    def call_with(self, tensors: Sequence[torch.Tensor], inputs: Any) -> Any:
        """The output of the module with these tensors, in the order of the layout, in place of its own."""
        return torch.func.functional_call(self.module, dict(zip(self.layout.names, tensors, strict=True)), (inputs,))

    def call(self, inputs: Any) -> Any:
        """The output of the module; several inputs are several arguments."""
        if isinstance(inputs, dict):
            return self.module(**inputs)
        return self.module(*inputs) if isinstance(inputs, (tuple, list)) else self.module(inputs)


def redrawn(module: Any, layout: Layout, model: NDArray[np.floating[Any]], seed: int) -> NDArray[np.floating[Any]]:
    """A model whose parameters are redrawn by the layers of a module, from a seed; the rest is unchanged."""
    row = torch.as_tensor(model)
    worker, views = Worker(module, layout, row.dtype, torch.device("cpu")), layout.views(row)
    worker.point(views)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for part in worker.module.modules():
            if reset := reset_of(part):
                reset()
    worker.leave(views)
    return np.asarray(row.numpy())


def reset_of(part: Any) -> Callable[[], None] | None:
    """The function that draws the parameters of a layer, if it has one."""
    found = (getattr(part, name, None) for name in ("reset_parameters", "_reset_parameters"))
    return next((reset for reset in found if callable(reset)), None)
