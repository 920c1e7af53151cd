"""Problems on a data set that a partition distributes over the nodes: linear models and PyTorch modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from freewalk.checks import Checks
from freewalk.data import IID, Dataset, Partitioner
from freewalk.errors import SpecError
from freewalk.graphs import Graph
from freewalk.objectives import LeastSquares, Logistic, Objective
from freewalk.specs.keys import parameters_of
from freewalk.specs.models import Model

__all__ = ["torch"]

check = Checks(SpecError)
#: The parameters of a linear objective that the data set and the partition determine.
DETERMINED = ("features", "targets", "nodes", "graph", "heavy", "relays")
_IID = IID()


@dataclass
class Origin:
    """The origin of the data of a problem, if they come from a data set."""

    story: dict[str, Any] = field(default_factory=dict)  # what a record stores about it, as plain values
    test: Dataset | None = None  # the held-out samples, scaled like the others

    def distribute(
        self, graph: Graph, data: Dataset, partition: Partitioner, test: float, standardize: bool | None, seed: int
    ) -> tuple[Dataset, Any]:
        """Hold out the test samples, scale the features, and find the node of each other sample."""
        found, held = data, None
        if check.real(data.name, "test", test, 0.0, 1.0) > 0:
            found, held = data.split(test, seed)
        scale = data.shape is None if standardize is None else standardize
        if scale:
            targets = data.classes is None
            held = None if held is None else held.standardized(by=found, targets=targets)
            found = found.standardized(targets=targets)
        made = partition.partition(found, graph.n, seed)
        self.test = held
        self.story = {
            "dataset": data.name,
            "source": data.source,
            "licence": data.licence,
            "samples": len(found),
            "test_samples": 0 if held is None else len(held),
            "standardized": scale,
            "partition": made.made_by,
            "partition_digest": made.digest,
        }
        return found, made


def torch(
    graph: Graph,
    origin: Origin,
    model: Model,
    data: Dataset,
    partition: Partitioner = _IID,
    test: float = 0.2,
    loss: str | None = None,
    batch: int | None = None,
    importance: Literal["smoothness", "gradient", "size"] | Sequence[float] = "smoothness",
    weight_by: Literal["node", "sample"] = "node",
    standardize: bool | None = None,
    measure_on: int = 10_000,
    redraw: bool = False,
    seed: int = 0,
) -> Objective:
    """Any PyTorch module on a data set whose samples are distributed over the nodes.

    Parameters
    ----------
    model
        The module: a listed one, or your own class or function as "module:Name". Parameters named inputs, outputs or
        shape are set from the data unless given.
    data
        The data set: a listed one, or your own function as "module:name" that returns a `fw.data.Dataset`. Images have
        the shape channels × height × width.
    partition
        How the samples are distributed over the nodes.
    test
        The fraction of samples held out to measure `test_loss` and `accuracy` on. With 0, accuracy is measured on the
        samples of the nodes.
    loss
        The name of a function in `torch.nn.functional`. Default: "cross_entropy" for classes, else "mse_loss".
    batch
        The number of samples per gradient, drawn at each visit. Default: all samples of the node.
    importance
        The importance of a node for designs: "smoothness" (the largest curvature of its loss), "gradient" (the norm of
        its gradient), "size" (its number of samples), or a list with one number per node.
    weight_by
        What has equal weight in the loss: every "node" or every "sample".
    standardize
        Whether each feature, and for regression the target, is shifted and scaled to mean 0 and standard deviation 1,
        based on the samples that are not held out. Default: true except for images.
    measure_on
        The maximum number of samples on which the loss is computed; the same for the test measures.
    redraw
        Whether each walk draws its own initial model; if not, all start from the same.
    seed
        The seed of the held-out samples, the partition and the initial model.

    Raises
    ------
    MissingExtra
        If PyTorch is not installed.
    SpecError
        If the parts do not fit together.
    """
    from freewalk.torch import TorchObjective

    found, made = origin.distribute(graph, data, partition, test, standardize, seed)
    return TorchObjective(
        model.module(data, seed),
        ("mse_loss" if data.classes is None else "cross_entropy") if loss is None else loss,
        [_pair(found.take(made.samples(node))) for node in range(graph.n)],
        test=None if origin.test is None else _pair(origin.test),
        batch=batch,
        importance=importance,
        weight_by=weight_by,
        graph=graph,
        measure_on=measure_on,
        redraw=redraw,
    )


def _pair(data: Dataset) -> tuple[Any, Any]:
    """Inputs and targets as a module takes them."""
    inputs = (data.features if data.shape is None else data.pictures).astype(np.float32)
    # One output per sample is a column; otherwise a loss would compare every output with every target.
    return inputs, data.targets if data.classes is not None else data.targets.astype(np.float32)[:, None]


def linear(name: str, listed: type) -> Callable[..., Any]:
    """A function that creates a linear objective from a data set, and passes other parameters on to it."""
    own = parameters_of(listed)

    def make(
        graph: Graph,
        origin: Origin,
        data: Dataset,
        partition: Partitioner = _IID,
        test: float = 0.0,
        intercept: bool = True,
        standardize: bool | None = None,
        seed: int = 0,
        **others: Any,
    ) -> Any:
        """Learn from a data set whose samples a partition distributes over the nodes.

        Parameters
        ----------
        data
            The data set: a listed one, or your own function as "module:name" that returns a `fw.data.Dataset`. For
            Logistic it must have two classes; the second is label 1.
        partition
            How the samples are distributed over the nodes.
        test
            The fraction of samples held out. They are not used during a run; `freewalk evaluate` measures on them.
        intercept
            Whether to append a constant feature 1.
        standardize
            Whether each feature, and for regression the target, is shifted and scaled to mean 0 and standard deviation
            1, based on the samples that are not held out. Default: true except for images.
        seed
            The seed of the held-out samples and the partition.
        """
        if "features" not in own or "targets" not in own:
            raise SpecError(f"{name}: takes no features and targets, so it cannot learn from a data set")
        _fits(name, listed, data)
        found, made = origin.distribute(graph, data, partition, test, standardize, seed)
        origin.test = None if origin.test is None else _flat(origin.test, intercept)
        flat = _flat(found, intercept)
        given = {"features": flat.features, "targets": flat.targets, "nodes": made.nodes, "graph": graph}
        return listed(**{key: value for key, value in given.items() if key in own}, **others)

    return make


def _fits(name: str, listed: type, data: Dataset) -> None:
    """Reject a data set that a linear objective cannot learn from."""
    count = 0 if data.classes is None else len(data.classes)
    several = 'kind = "torch" with model = { kind = "softmax" } takes any number of classes'
    if issubclass(listed, Logistic) and count != 2:
        got = f"{count} classes" if count else "real targets"
        remedy = several if count else "use LeastSquares"
        raise SpecError(f"{name}: {data.name} has {got}, expected two classes; {remedy}")
    if issubclass(listed, LeastSquares) and count:
        remedy = "use Logistic" if count == 2 else several
        raise SpecError(f"{name}: {data.name} has {count} classes, expected real targets; {remedy}")


def _flat(data: Dataset, intercept: bool) -> Dataset:
    """The samples as rows, with a final 1 for an intercept."""
    rows = data.features.reshape(len(data), -1)
    rows = np.column_stack([rows, np.ones(len(data))]) if intercept else rows
    return Dataset(rows, data.targets, data.name, data.classes, None, data.source, data.licence)
