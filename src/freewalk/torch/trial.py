"""Try a module, its loss and its metrics on their data before a run, with errors that name the misfit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from freewalk.errors import ProblemError
from freewalk.torch.gradients import Looped

if TYPE_CHECKING:
    from freewalk.torch.objective import TorchObjective

_CPU = torch.device("cpu")


def learn_and_measure(objective: TorchObjective, row: torch.Tensor) -> None:
    """Try gradients at the smallest and the largest node, and all measures.

    Raises
    ------
    ProblemError
        If one fails, the loss is not finite, or a tensor changes that would not be sent.
    """
    looped = Looped(objective, row.dtype, _CPU)
    with looped.undisturbed():
        for node in dict.fromkeys(_extremes(objective.sizes)):
            size = objective.samples(node) if objective.batch is None else min(objective.samples(node), objective.batch)
            _gradient(looped, row, node, size)
        _measure(objective, row.numpy())
    if name := looped.worker.changed(objective.module):
        raise ProblemError(
            f"TorchObjective: {name} changes while {type(objective.module).__name__} learns but would not be sent, "
            "since it is neither a trained parameter nor a buffer of the state_dict; register it as a buffer with "
            "persistent=True"
        )


def learn_from_one(objective: TorchObjective, row: torch.Tensor) -> None:
    """Try a gradient of a single sample.

    Raises
    ------
    ProblemError
        If it fails.
    """
    looped = Looped(objective, row.dtype, _CPU)
    with looped.undisturbed():
        _gradient(looped, row, _extremes(objective.sizes)[0], 1)


def is_random(objective: TorchObjective, row: torch.Tensor) -> bool:
    """Whether two seeds give different gradients."""
    looped, node = Looped(objective, row.dtype, _CPU), _extremes(objective.sizes)[1]
    numbers = torch.arange(int(objective.offsets[node]), int(objective.offsets[node + 1]))
    with looped.undisturbed():
        one, other = (looped.gradient(objective.views(row), numbers, 1.0, seed) for seed in (0, 1))
    return not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def _gradient(looped: Looped, row: torch.Tensor, node: int, size: int) -> None:
    objective = looped.objective
    try:
        looped.gradient(objective.views(row), int(objective.offsets[node]) + torch.arange(size), 1.0, 0)
    except Exception as error:
        what = f"a gradient at node {node}, from {size} sample{'s' * (size != 1)},"
        raise _misfit(objective, what, error) from error


def _measure(objective: TorchObjective, model: NDArray[np.floating[Any]]) -> None:
    try:
        losses = objective.losses(model)
    except Exception as error:
        raise _misfit(objective, "the loss", error) from error
    if not np.isfinite(losses).all():
        bad = int(np.argmin(np.isfinite(losses)))
        raise ProblemError(
            f"TorchObjective: the loss of the first model at node {bad} is {losses[bad]}, expected a finite number; "
            "check its data, or scale them"
        )
    try:
        objective.measure(model)
    except Exception as error:
        raise _misfit(objective, "a measure", error) from error


def _misfit(objective: TorchObjective, what: str, error: Exception) -> ProblemError:
    """The error if a module fails on its data: what was computed, and the shape of a sample."""
    said = " ".join(str(error).split())[:200]
    parts = [part for part in objective.one_sample() if isinstance(part, torch.Tensor)]
    shapes = [f"{str(part.dtype).removeprefix('torch.')} {tuple(part.shape[1:])}" for part in parts]
    seen = f" (one sample is {' → '.join(shapes)})" if shapes else ""
    return ProblemError(
        f"TorchObjective: {what} of {type(objective.module).__name__} cannot be computed: {type(error).__name__}: "
        f"{said}{seen}; expected a module and a loss that fit the datasets"
    )


def _extremes(sizes: NDArray[np.int64]) -> tuple[int, int]:
    """The nodes with the fewest and the most samples, among those with data."""
    owning = np.flatnonzero(sizes)
    return int(owning[np.argmin(sizes[owning])]), int(owning[np.argmax(sizes[owning])])
