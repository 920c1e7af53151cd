"""The node that holds each sample, and how much the nodes differ."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freewalk.blocks import read_only
from freewalk.checks import set_fields
from freewalk.data.dataset import check, checked_targets, class_names
from freewalk.errors import ProblemError
from freewalk.rng import generator

MOST_NODES = 2**31 - 1
_SHUFFLES = 10
_QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter")


@dataclass(frozen=True, eq=False)
class Partition:
    """The assignment of samples to nodes, made by a partitioner; pass `nodes` to `LeastSquares(..., nodes=)`.

    Parameters
    ----------
    nodes
        The node number of each sample.
    n
        The number of nodes.
    targets
        The target of each sample: its class number if there are `classes`, otherwise a real number.
    classes
        The class names, or None for regression; nodes are then compared by the quarters of the targets.
    made_by
        How it was made, for summaries and figures.

    Examples
    --------
    >>> partition = Partition([0, 0, 1, 1], n=2, targets=[0, 1, 1, 1], classes=("no", "yes"))
    >>> partition.counts
    array([[1, 1],
           [0, 2]])
    >>> partition.samples(1), partition.heterogeneity
    (array([2, 3]), 0.25)
    """

    nodes: NDArray[np.int64]
    n: int
    targets: NDArray[Any]
    classes: tuple[str, ...] | None = None
    made_by: str = "a partition"

    def __post_init__(self) -> None:
        n = check.whole("Partition", "n", self.n, 1, MOST_NODES)
        classes = None if self.classes is None else class_names("Partition", self.classes)
        size = 8.0 * n * len(_QUARTERS if classes is None else classes)
        check.room("Partition", f"the counts of {n:,} nodes by class", size, "take fewer nodes or classes")
        nodes = check.integers("Partition", "nodes", self.nodes, low=0, high=n - 1)
        if not nodes.size:
            raise ProblemError("Partition: nodes is empty, expected the node of at least one sample")
        targets = checked_targets("Partition", self.targets, classes, len(nodes))
        check.text("Partition", "made_by", self.made_by)
        set_fields(self, nodes=read_only(nodes), n=n, targets=read_only(targets), classes=classes)

    @property
    def groups(self) -> tuple[str, ...]:
        """The column names of `counts`: the classes or, for regression, the quarters of the targets."""
        return _QUARTERS if self.classes is None else self.classes

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of samples by node and class or, for regression, by node and quarter of the targets."""
        labels = self.targets
        if self.classes is None:
            labels = np.searchsorted(np.quantile(self.targets, [0.25, 0.5, 0.75]), self.targets)
        return read_only(self._count(self.nodes, labels))

    def _count(self, nodes: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
        shape = self.n, len(self.groups)
        return np.bincount(nodes * shape[1] + labels, minlength=shape[0] * shape[1]).reshape(shape)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of samples of each node."""
        return read_only(np.bincount(self.nodes, minlength=self.n))

    @cached_property
    def _by_node(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.argsort(self.nodes, kind="stable"), np.concatenate([[0], np.cumsum(self.sizes)])

    def samples(self, node: int) -> NDArray[np.int64]:
        """Return the numbers of the samples of a node, in ascending order."""
        number = check.whole("Partition", "node", node, 0, self.n - 1)
        order, starts = self._by_node
        return order[starts[number] : starts[number + 1]]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the nodes as 64-bit little-endian integers: equal for equal partitions."""
        return hashlib.sha256(self.nodes.astype("<i8").tobytes()).hexdigest()

    @cached_property
    def heterogeneity(self) -> float:
        """How different the nodes are, from 0 (all alike) to nearly 1.

        The total variation distance between the class distribution of a node and that of all samples, averaged over the
        nodes that have samples. Nodes with few samples differ by chance: compare with `heterogeneity_by_chance`.
        """
        return _heterogeneity(self.counts)

    @cached_property
    def heterogeneity_by_chance(self) -> float:
        """The heterogeneity of nodes of these sizes with randomly assigned samples: the mean of ten shuffles."""
        random, labels = generator(0), np.repeat(np.arange(len(self.groups)), self.counts.sum(axis=0))
        shuffled = (random.permutation(self.nodes) for _ in range(_SHUFFLES))
        return float(np.mean([_heterogeneity(self._count(nodes, labels)) for nodes in shuffled]))

    def __repr__(self) -> str:
        return f"Partition({self.made_by}: {len(self.nodes):,} samples at {self.n:,} nodes)"

    def __str__(self) -> str:
        owned = (self.counts > 0).sum(axis=1)
        kinds = "quarters of the targets" if self.classes is None else "classes"
        lines = {
            "samples per node": f"{_span(self.sizes)}, median {np.median(self.sizes):.0f}",
            f"{kinds} per node": f"{_span(owned)} of {len(self.groups)}, mean {owned.mean():.1f}",
            "heterogeneity": f"{self.heterogeneity:.2f}, by chance {self.heterogeneity_by_chance:.2f}",
            "digest": self.digest[:16],
        }
        width = max(map(len, lines))
        head = f"{self.made_by}: {len(self.nodes):,} samples at {self.n:,} node{'s' * (self.n > 1)}"
        return "\n".join([head, *(f"  {key:{width}}  {words}" for key, words in lines.items())])


def _span(values: NDArray[np.int64]) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _heterogeneity(counts: NDArray[np.int64]) -> float:
    owning = counts[counts.sum(axis=1) > 0]
    shares = owning / owning.sum(axis=1, keepdims=True)
    return float(np.abs(shares - counts.sum(axis=0) / counts.sum()).sum(axis=1).mean() / 2)
