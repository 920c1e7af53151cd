"""Evaluate the final models of a run: all measures, also on other samples, and the loss at each node."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.checks import Checks
from freewalk.data import Dataset
from freewalk.errors import RecordError
from freewalk.objectives import Objective
from freewalk.run.record import Record

if TYPE_CHECKING:
    import xarray

check = Checks(RecordError)


def evaluate(
    model: Record | ArrayLike,
    objective: Objective,
    *,
    per_node: bool = False,
    dataset: Dataset | tuple[ArrayLike, ArrayLike] | None = None,
) -> xarray.Dataset:
    """Evaluate final models by walk, by design if a record has several, and optionally by node.

    Parameters
    ----------
    model
        A record, whose final models are evaluated (with several tokens, their mean), or models as arrays of shape
        (dim,) or (walks, dim).
    objective
        The objective that was learned.
    per_node
        Whether to add `node_loss`: the loss of each model at each node, averaged over the node's samples. It is NaN at
        relays.
    dataset
        Additional samples that belong to no node: a `fw.data.Dataset`, or a pair of features and targets, scaled like
        those of the nodes. Their measures are called `test_loss`, `test_accuracy` and so on.

    Returns
    -------
    xarray.Dataset
        The measures of the objective, and the accuracy for `Logistic`. NaN where a record has no such walk.

    Raises
    ------
    RecordError
        If there are no models, or they do not fit the objective.

    Examples
    --------
    >>> import freewalk as fw
    >>> graph = fw.graphs.ring(5)
    >>> problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, seed=1)
    >>> record = fw.learn(problem, fw.designs.SimpleWalk().kernel(graph), fw.SGD(0.1), steps=100, walks=3, every=100)
    >>> found = fw.evaluate(record, problem, per_node=True)
    >>> dict(found.sizes), list(found.data_vars)
    ({'walk': 3, 'node': 5}, ['loss', 'mse', 'node_loss'])
    >>> bool(abs(found.node_loss.mean("node") - found.loss).max() < 1e-12)
    True
    """
    import xarray

    check.instance("evaluate", "objective", objective, Objective, "an objective")
    check.flag("evaluate", "per_node", per_node)
    models = _models(model, objective)
    other = None if dataset is None else objective.on(*_pair(dataset))
    found = [_row(row, objective, other, per_node) for row in models.values.reshape(-1, objective.dim)]
    dims, shape = models.dims[:-1], models.shape[:-1]
    first = next((row for row in found if row), {})
    variables: dict[str, Any] = {}
    for name, value in first.items():
        size = np.shape(value)
        values = np.array([row.get(name, np.full(size, np.nan)) for row in found], dtype=np.float64)
        variables[name] = ((*dims, "node") if size else dims, values.reshape(*shape, *size))
    coords: dict[str, Any] = {str(name): models.coords[name] for name in dims if name in models.coords}
    if per_node:
        coords["node"] = np.arange(objective.n)
        if objective.node_names is not None:
            coords["node_name"] = ("node", np.array(objective.node_names))
    result = xarray.Dataset(variables, coords=coords, attrs={"primary": objective.primary})
    for measure in variables:
        rises = measure.removeprefix("test_") in (*objective.rising, "accuracy")
        result[measure].attrs |= {"better": "higher"} if rises else {}
    return result


def _models(model: Any, objective: Objective) -> xarray.DataArray:
    """Final models by (design,) walk and coordinate."""
    import xarray

    if issubclass(type(model), Record):
        if "final" not in model.data:
            raise RecordError(f"evaluate: nothing was learned in {model.label!r}, expected a record with final models")
        found: xarray.DataArray = model.data.final.transpose("design", "walk", "coordinate", missing_dims="ignore")
    else:
        if isinstance(model, str | os.PathLike):
            raise check.fail("evaluate", "model", model, "a record or an array", "fw.load reads a record from a file")
        array: NDArray[Any] = check.floats("evaluate", "model", model, finite=False)
        if getattr(model, "dtype", None) == np.float32:  # as in a run with this precision
            array = array.astype(np.float32)
        array = array[None] if array.ndim == 1 else array
        if array.ndim != 2:
            raise check.fail("evaluate", "model", model, f"a record, or models of shape ({objective.dim},)")
        found = xarray.DataArray(array, dims=("walk", "coordinate"), coords={"walk": np.arange(len(array))})
    if found.shape[-1] != objective.dim:
        got = f"the models have {found.shape[-1]} parameters, expected {objective.dim}, as {objective!r} has"
        raise RecordError(f"evaluate: {got}; pass the objective that was learned")
    return found


def _pair(dataset: Any) -> tuple[Any, Any]:
    if issubclass(type(dataset), Dataset):
        return dataset.features, dataset.targets
    pair = check.items("evaluate", "dataset", dataset, "a fw.data.Dataset, or a pair of features and targets")
    if len(pair) != 2:
        raise check.fail("evaluate", "dataset", dataset, "a fw.data.Dataset, or a pair of features and targets")
    return pair[0], pair[1]


def _row(row: NDArray[Any], objective: Objective, other: Objective | None, per_node: bool) -> dict[str, Any]:
    """All measures of one model; empty where a record was padded with NaN."""
    if np.isnan(row).all():
        return {}
    found: dict[str, Any] = dict(objective.assess(row))
    if other is not None:
        found |= {f"test_{name}": value for name, value in other.assess(row).items()}
    if per_node:
        weights = np.asarray(getattr(objective, "node_weights", np.ones(objective.n)))
        losses = np.asarray(objective.losses(row), dtype=np.float64)
        found["node_loss"] = np.where(weights > 0, losses, np.nan) / np.where(weights > 0, weights, 1.0)
    return found
