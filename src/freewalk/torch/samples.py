"""The samples of all nodes: as contiguous tensors if possible, else fetched one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import ProblemError

check = Checks(ProblemError)
_PAIR = "a pair (inputs, targets) of arrays, a TensorDataset, or another dataset of such pairs with a length"


@dataclass(frozen=True, eq=False)
class NodeSamples:
    """The samples of all nodes, node by node."""

    offsets: NDArray[np.int64]  # the samples of node v are those with the numbers offsets[v] to offsets[v + 1] − 1
    tensors: tuple[torch.Tensor, torch.Tensor] | None  # inputs and targets; None if datasets provide them one by one
    fetch: Callable[[Sequence[int] | torch.Tensor], tuple[Any, Any]]  # inputs and targets of samples by number

    @property
    def count(self) -> int:
        """The number of samples."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of samples of each node."""
        return np.diff(self.offsets)

    def to(self, dtype: torch.dtype, device: torch.device) -> NodeSamples:
        """The same samples on a device; floats have this type."""
        if self.tensors is None:
            fetch = self.fetch
            return NodeSamples(self.offsets, None, lambda numbers: _moved(fetch(numbers), dtype, device))
        return of_tensors(self.offsets, *_moved(self.tensors, dtype, device))

    def digest(self) -> str:
        """The SHA-256 of the samples, or only of their number if a dataset provides them one by one."""
        state = hashlib.sha256(self.offsets.tobytes())
        for tensor in self.tensors or ():
            state.update(digest_of(tensor).encode())
        return state.hexdigest()


def digest_of(tensor: torch.Tensor) -> str:
    """The SHA-256 of a tensor of any type."""
    state = hashlib.sha256(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
    state.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return state.hexdigest()


class Some:
    """A subset of the samples that datasets provide one by one, as a dataset."""

    def __init__(self, samples: NodeSamples, numbers: torch.Tensor) -> None:
        self.samples, self.numbers = samples, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: int) -> tuple[Any, Any]:
        inputs, targets = each(itemgetter(0), self.samples.fetch(self.numbers[place : place + 1]))
        return inputs, targets


def each(function: Callable[..., Any], values: Any, *others: Any) -> Any:
    """A function of each tensor of nested dictionaries and tuples or, with others, of those in the same place."""
    if isinstance(values, dict):
        return {name: each(function, value, *(other[name] for other in others)) for name, value in values.items()}
    if isinstance(values, (tuple, list)):
        return tuple(each(function, *parts) for parts in zip(values, *others, strict=True))
    return function(values, *others)


def of_tensors(offsets: NDArray[np.int64], inputs: torch.Tensor, targets: torch.Tensor) -> NodeSamples:
    """NodeSamples that are rows of two tensors."""

    def fetch(numbers: Sequence[int] | torch.Tensor) -> tuple[Any, Any]:
        if isinstance(numbers, range):
            return inputs[numbers.start : numbers.stop], targets[numbers.start : numbers.stop]
        rows = torch.as_tensor(numbers, device=inputs.device)
        return inputs[rows], targets[rows]

    return NodeSamples(offsets, (inputs, targets), fetch)


def _moved(values: Any, dtype: torch.dtype, device: torch.device) -> Any:
    def move(part: Any) -> Any:
        if not isinstance(part, torch.Tensor):
            return part
        return part.to(device, dtype) if part.is_floating_point() else part.to(device)

    return each(move, values)


def gathered(who: str, datasets: Sequence[Any]) -> NodeSamples:
    """The samples of one dataset per node; None or an empty dataset means a node without data."""
    pairs = [_pair(who, f"datasets[{node}]", dataset) for node, dataset in enumerate(datasets)]
    sizes = [0 if pair is None else len(pair[1]) if isinstance(pair, tuple) else len(pair) for pair in pairs]
    check.room(who, "the numbers of its samples", 8.0 * sum(sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    owning = {node: pair for node, (pair, size) in enumerate(zip(pairs, sizes, strict=True)) if size}
    if not all(isinstance(pair, tuple) for pair in owning.values()):
        return _one_by_one(offsets, pairs)
    for name, place in (("inputs", 0), ("targets", 1)):
        kinds: dict[Any, int] = {}
        for node, pair in owning.items():
            kinds.setdefault((tuple(pair[place].shape[1:]), pair[place].dtype), node)
        if len(kinds) > 1:
            (one, first), (other, second) = list(kinds.items())[:2]
            given = f"one of the {name} of node {first} is {_words(one)}, but of node {second} {_words(other)}"
            raise ProblemError(f"{who}: {given}, expected the same at every node")
    if not owning:
        return NodeSamples(offsets, None, lambda numbers: (None, None))
    inputs, targets = (torch.cat([pair[place] for pair in owning.values()]) for place in (0, 1))
    if inputs.is_floating_point() and not bool(torch.isfinite(inputs).all()):
        bad = int(torch.nonzero(~torch.isfinite(inputs.flatten(1)).all(dim=1))[0])
        node = int(np.searchsorted(offsets, bad, side="right")) - 1
        given = f"inputs {bad - int(offsets[node])} of node {node} hold NaN or infinity"
        raise ProblemError(f"{who}: {given}, expected finite numbers; drop or fill them")
    return of_tensors(offsets, inputs, targets)


def _words(kind: tuple[tuple[int, ...], torch.dtype]) -> str:
    return f"{str(kind[1]).removeprefix('torch.')} of shape {kind[0]}"


def _pair(who: str, name: str, dataset: Any) -> Any:
    """Inputs and targets as tensors; a dataset of items unchanged; None if there are no samples."""
    from torch.utils.data import Subset, TensorDataset

    if dataset is None:
        return None
    if isinstance(dataset, Subset) and isinstance(dataset.dataset, TensorDataset):
        numbers = torch.as_tensor(dataset.indices, dtype=torch.int64)
        return _pair(who, name, tuple(tensor[numbers] for tensor in dataset.dataset.tensors))
    if isinstance(dataset, TensorDataset):
        return _pair(who, name, dataset.tensors)
    if hasattr(dataset, "features") and hasattr(dataset, "targets"):
        return _pair(who, name, (dataset.features, dataset.targets))
    two = issubclass(type(dataset), (tuple, list)) and len(dataset) == 2  # not what it says of itself
    if two and (isinstance(dataset, tuple) or not isinstance(dataset[0], (tuple, list))):  # or two samples
        try:
            inputs, targets = (_tensor(part) for part in dataset)
        except (TypeError, ValueError, RuntimeError) as error:
            raise check.fail(who, name, dataset, f"{_PAIR} ({error})") from error
        if not inputs.ndim or not targets.ndim or len(inputs) != len(targets):
            given = f"inputs of shape {tuple(inputs.shape)} and targets of shape {tuple(targets.shape)}"
            raise ProblemError(f"{who}: {name} has {given}, expected the same length")
        return inputs, targets
    listed = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__") and getattr(dataset, "ndim", 1) != 0
    if listed and not isinstance(dataset, (str, bytes, dict)):  # an array of no dimension has no length
        if not len(dataset):
            return None
        item = dataset[0]
        if isinstance(item, (tuple, list)) and len(item) == 2:
            return list(dataset) if isinstance(dataset, tuple) else dataset  # here tuples are pairs of tensors
    raise check.fail(who, name, dataset, _PAIR)


def _tensor(values: Any) -> torch.Tensor:
    if isinstance(values, torch.Tensor):
        tensor = values.detach()
        if tensor.is_meta:
            raise ValueError("a tensor on the device meta has no values")
    else:
        array = np.asarray(values)  # torch warns about read-only arrays
        tensor = torch.as_tensor(array if array.flags.writeable else array.copy())
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        return tensor
    return tensor.to(torch.int64) if tensor.dtype != torch.uint8 or tensor.ndim == 1 else tensor


def _one_by_one(offsets: NDArray[np.int64], datasets: list[Any]) -> NodeSamples:
    """NodeSamples that datasets provide one by one, fetched when needed."""
    from torch.utils.data import default_collate

    def item(number: int) -> Any:
        node = int(np.searchsorted(offsets, number, side="right")) - 1
        dataset, place = datasets[node], number - int(offsets[node])
        return (dataset[0][place], dataset[1][place]) if isinstance(dataset, tuple) else dataset[place]

    def fetch(numbers: Sequence[int] | torch.Tensor) -> tuple[Any, Any]:
        inputs, targets = default_collate([item(int(number)) for number in numbers])
        return inputs, targets

    return NodeSamples(offsets, None, fetch)
