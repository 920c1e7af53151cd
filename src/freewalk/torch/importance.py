"""The importance of nodes, estimated at a model, for objectives without a closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.attention import SDPBackend, sdpa_kernel

from freewalk.blocks import read_only
from freewalk.checks import Checks
from freewalk.errors import ProblemError
from freewalk.torch.gradients import Looped

if TYPE_CHECKING:
    from freewalk.torch.objective import TorchObjective

KINDS = ("smoothness", "gradient", "size")
_PER_PRODUCT = 2  # gradients that a Hessian-vector product costs: one forward, one backward through it
_SEED = 11
_ROUNDING = 1e-6  # relative to the largest eigenvalue: a shorter remainder is rounding
check = Checks(ProblemError)


@dataclass(frozen=True)
class Importance:
    """The importance of each node, how it was estimated, and the cost.

    Attributes
    ----------
    kind
        "smoothness", "gradient", "size" or "given".
    values
        One positive number per node; a relay has the smallest value of the others.
    gradients
        The number of single-node gradients it took; a Hessian-vector product counts as two.
    """

    kind: str
    values: NDArray[np.float64] = field(repr=False)
    gradients: int


def estimate(
    objective: TorchObjective, kind: str, row: torch.Tensor, *, tolerance: float = 1e-3, most: int = 200
) -> Importance:
    """Estimate the importance of all nodes at a model, with at most `most` Lanczos steps per node."""
    # The iteration stops when an eigenvalue is guaranteed to be within the relative distance `tolerance` of the
    # estimate, which is usually much closer, and nearly always is the largest one.
    check.real("estimate", "tolerance", tolerance, above=0.0)
    check.whole("estimate", "most", most, 1)
    owning = np.flatnonzero(objective.sizes)
    values, cost = np.zeros(objective.n), 0
    if kind == "size":
        values = objective.sizes.astype(np.float64)
    else:
        looped = Looped(objective, row.dtype, torch.device("cpu"))
        remedy = 'check the module and the data, or use importance="size" or one number per node'
        looped.worker.module.eval()  # dropout and batch norm would make it noisy
        # The faster attention kernels cannot be differentiated twice.
        with looped.undisturbed(), sdpa_kernel(SDPBackend.MATH):
            for node in owning:
                with check.attempt(f"estimate: {kind} at node {node} cannot be computed", remedy):
                    if kind == "gradient":
                        values[node], spent = _norm(_slopes(looped, row, int(node), again=False)), 1
                    else:
                        values[node], spent = _curvature(looped, row, int(node), tolerance, most)
                cost += spent
    found = values[owning]
    if not np.isfinite(found).all() or not (found > 0).any():
        bad = int(owning[int(np.argmin(np.isfinite(found)))])
        expected = "finite numbers that are not all 0"
        remedy = "pass one number per node as importance=, or estimate it at another model"
        raise ProblemError(f"estimate: {kind} at node {bad} is {values[bad]}, expected {expected}; {remedy}")
    smallest = found[found > 0].min()
    values[values <= 0] = smallest  # a node without data or with zero loss is never left out altogether
    return Importance(kind, read_only(values), cost)


def _slopes(looped: Looped, row: torch.Tensor, node: int, *, again: bool) -> tuple[torch.Tensor, ...]:
    """∇f_v by parameter; `again`: so that it can be differentiated again."""
    objective, parameters = looped.objective, looped.worker.parameters
    looped.worker.point(objective.layout.views(row))
    inputs, targets = looped.samples.fetch(objective.numbers(node))
    loss = float(objective.node_weights[node]) * objective.loss_function(looped.worker.call(inputs), targets)
    found = torch.autograd.grad(loss, parameters, create_graph=again, allow_unused=True, materialize_grads=True)
    return tuple(found)


def _curvature(looped: Looped, row: torch.Tensor, node: int, tolerance: float, most: int) -> tuple[float, int]:
    """The largest absolute eigenvalue of the Hessian at a node, and the number of gradients it took."""
    parameters, slopes = looped.worker.parameters, _slopes(looped, row, node, again=True)
    if not any(slope.requires_grad for slope in slopes):  # a loss that is linear in all of them
        return 0.0, 1
    draws = torch.Generator().manual_seed(_SEED)
    vector = [torch.randn(part.shape, generator=draws, dtype=part.dtype) for part in parameters]
    norm = _norm(vector)
    vector, last = [part / norm for part in vector], [torch.zeros_like(part) for part in vector]
    diagonal, beside, now, cost = list[float](), list[float](), 0.0, 1
    for _ in range(most):
        product = torch.autograd.grad(
            slopes, parameters, vector, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        cost += _PER_PRODUCT
        along = sum(float((one.double() * other.double()).sum()) for one, other in zip(product, vector, strict=True))
        diagonal.append(along)
        if not math.isfinite(along):
            return along, cost
        matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        values, vectors = np.linalg.eigh(matrix)
        place = int(np.abs(values).argmax())
        now = abs(float(values[place]))
        norm = beside[-1] if beside else 0.0
        rest = [new - along * one - norm * other for new, one, other in zip(product, vector, last, strict=True)]
        norm = _norm(rest)
        # An eigenvalue is within this bound: the component of its vector along the last Lanczos vector.
        if norm * abs(float(vectors[-1, place])) <= max(tolerance, _ROUNDING) * now:
            break
        last, vector = vector, [part / norm for part in rest]
        beside.append(norm)
    return now, cost


def _norm(parts: list[torch.Tensor] | tuple[torch.Tensor, ...]) -> float:
    return math.sqrt(sum(float((part.double() ** 2).sum()) for part in parts))
