"""Partitioners: how the samples of a data set are distributed over nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.data.dataset import Dataset, apportion, check, even_sizes
from freewalk.data.partition import MOST_NODES, Partition
from freewalk.errors import ProblemError
from freewalk.rng import generator

__all__ = ["IID", "Dirichlet", "FeatureShift", "Quantity", "Shards"]

_PARTITION = 0x70617274  # identifies the draws of a partition
_LEAST, _MOST = 1e-6, 1e6  # of the parameter of a Dirichlet distribution, so that no draw overflows


@dataclass(frozen=True, eq=False)
class Pool:
    """The samples to distribute, checked; the targets are class numbers if there are `classes`.

    `who` is the partitioner, for messages; there are no features if only targets were given.
    """

    who: str
    targets: NDArray[Any]
    classes: tuple[str, ...] | None
    features: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, who: str, data: Any) -> Pool:
        """The samples of a data set without an empty class, or those described by targets only."""
        if issubclass(type(data), Dataset):
            if data.classes is not None:
                absent = np.flatnonzero(np.bincount(data.targets, minlength=len(data.classes)) == 0)
                if absent.size:
                    given = f"class {data.classes[absent[0]]!r} of {data.name} has no sample"
                    remedy = "remove it from classes, and number the others without a gap"
                    raise ProblemError(f"{who}: {given}, expected at least one of every class; {remedy}")
            return cls(who, data.targets, data.classes, data.features)
        labels = _labels(data)
        if labels is not None:
            if labels.ndim != 1 or not labels.size:
                raise ProblemError(f"{who}: targets has shape {labels.shape}, expected one label per sample")
            found, numbers = np.unique(labels, return_inverse=True)
            return cls(who, numbers.astype(np.int64), tuple(map(str, found.tolist())))
        remedy = "give a Dataset, or an array with one label or number per sample"
        return cls(who, check.floats(who, "targets", data, (None,), remedy=remedy), None)

    def __len__(self) -> int:
        return len(self.targets)

    def labels(self) -> tuple[NDArray[np.int64], int]:
        """The class of each sample, and the number of classes; an error if the targets are real numbers."""
        if self.classes is None:
            raise ProblemError(
                f"{self.who}: the targets are real numbers, expected classes; bin them by quantiles, "
                "numpy.digitize(targets, numpy.quantile(targets, [0.25, 0.5, 0.75])), give labels as whole numbers, or "
                "use IID, Quantity or FeatureShift"
            )
        return self.targets, len(self.classes)


class Partitioner(ABC):
    """Distributes samples over nodes; to define your own, write a frozen dataclass with `assign`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class InTurn(Partitioner):
    ...     def assign(self, samples, n, random):
    ...         return np.arange(len(samples)) % n
    >>> InTurn().partition([0, 0, 1, 1, 1], n=2).nodes
    array([0, 1, 0, 1, 0])
    """

    @abstractmethod
    def assign(self, samples: Pool, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample, with all random draws from `random`.

        There are at least n samples: `targets`, `classes` and, if a data set was given, `features`; `labels()` returns
        the classes, or raises if there are none.
        """

    def partition(self, data: Dataset | ArrayLike, n: int, seed: int = 0) -> Partition:
        """Distribute samples over nodes; the same arguments always give the same partition.

        Parameters
        ----------
        data
            A data set, or its targets: whole numbers, booleans and strings are class labels, other numbers are
            regression targets.
        n
            The number of nodes, at most the number of samples.
        seed
            The seed of all random draws.
        """
        who = type(self).__name__
        count = check.whole(who, "n", n, 1, MOST_NODES)
        check.seed(who, seed)
        samples = Pool.of(who, data)
        least = int(getattr(self, "least", 1))
        if len(samples) < count * least:
            wanted = f"at least {count * least:,}, {'one' if least == 1 else least} per node"
            given = f"{len(samples):,} samples for {count:,} nodes"
            raise ProblemError(f"{who}: got {given}, expected {wanted}; take fewer nodes")
        if samples.classes is not None:
            size = 24.0 * count * len(samples.classes)
            check.room(who, f"the counts of {count:,} nodes by class", size, "take fewer nodes or classes")
        nodes = self.assign(samples, count, generator(seed, _PARTITION))
        return Partition(nodes, count, samples.targets, samples.classes, f"{self}, seed {int(seed)}")


@dataclass(frozen=True)
class IID(Partitioner):
    """Shuffle the samples and give every node the same number, as far as possible.

    Examples
    --------
    >>> IID().partition([0, 0, 0, 1, 1, 1, 1], n=3).sizes
    array([3, 2, 2])
    """

    def assign(self, samples: Pool, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample."""
        return _dealt(random.permutation(len(samples)), even_sizes(len(samples), n))


@dataclass(frozen=True)
class _Skewed(Partitioner):
    """What partitioners that draw from a Dirichlet distribution have in common."""

    alpha: float
    least: int = 1

    def __post_init__(self) -> None:
        who = type(self).__name__
        check.real(who, "alpha", self.alpha, _LEAST, _MOST, remedy="IID() is the limit of large values")
        check.whole(who, "least", self.least, 1)


@dataclass(frozen=True)
class Quantity(_Skewed):
    """Give nodes very different numbers of samples, in proportion to a draw from a Dirichlet distribution.

    The samples of a node are random, so only the quantities are skewed.

    Parameters
    ----------
    alpha
        The parameter of the Dirichlet distribution, from 1e-6 to 1e6: the smaller, the more unequal.
    least
        The minimum number of samples per node, at least 1.

    Examples
    --------
    >>> sizes = Quantity(alpha=0.5, least=3).partition([0, 1] * 50, n=5, seed=1).sizes
    >>> int(sizes.min()) >= 3, int(sizes.sum())
    (True, 100)
    """

    def assign(self, samples: Pool, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample."""
        sizes = apportion(len(samples), random.dirichlet(np.full(n, self.alpha, dtype=np.float64)), least=self.least)
        return _dealt(random.permutation(len(samples)), sizes)


@dataclass(frozen=True)
class Dirichlet(_Skewed):
    """Divide each class over the nodes in proportion to a draw from a Dirichlet distribution (label skew).

    Both the class mixture and the number of samples differ between nodes. A node left with fewer than `least` samples
    takes the missing ones from the node that has the most at that moment, from that node's most frequent class; nothing
    is redrawn.

    Parameters
    ----------
    alpha
        The parameter of the Dirichlet distribution, from 1e-6 to 1e6: large values give every node the same mixture, at
        0.1 most nodes have a few classes, and a very small value leaves each class at one node.
    least
        The minimum number of samples per node, at least 1.

    Examples
    --------
    >>> labels = [0] * 50 + [1] * 50
    >>> Dirichlet(alpha=0.1).partition(labels, n=4, seed=2).heterogeneity > 0.2
    True

    References
    ----------
    Hsu, Qi, Brown, *Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification*;
    Yurochkin et al., *Bayesian Nonparametric Federated Learning of Neural Networks*.
    """

    def assign(self, samples: Pool, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample."""
        labels, classes = samples.labels()
        totals = np.bincount(labels, minlength=classes)
        weights = np.full(n, self.alpha, dtype=np.float64)
        counts = np.array([apportion(total, random.dirichlet(weights)) for total in totals]).T
        _fill(counts, self.least)
        return _placed(labels, counts, random)


@dataclass(frozen=True)
class Shards(Partitioner):
    """Cut every class into shards of about the same size and deal each node the same number, at random.

    A shard has samples of a single class, so a node has at most as many classes as shards; two of its shards may be of
    the same class. Only if there are more classes than nodes × `classes` do some nodes get more shards.

    Parameters
    ----------
    classes
        The number of shards per node, which is the maximum number of classes it has.

    Examples
    --------
    >>> partition = Shards(classes=2).partition([0, 1, 2, 3] * 25, n=10)
    >>> int((partition.counts > 0).sum(axis=1).max())
    2

    References
    ----------
    McMahan et al., *Communication-Efficient Learning of Deep Networks from Decentralized Data*.
    """

    classes: int = 2

    def __post_init__(self) -> None:
        check.whole("Shards", "classes", self.classes, 1, 2**31 - 1)

    def assign(self, samples: Pool, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample."""
        labels, classes = samples.labels()
        totals = np.bincount(labels, minlength=classes)
        shards = min(len(samples), max(n * self.classes, classes))
        cuts = apportion(shards, totals.astype(np.float64), totals, least=1)
        sizes = np.concatenate([even_sizes(int(total), int(cut)) for total, cut in zip(totals, cuts, strict=True)])
        owners = np.empty(shards, dtype=np.int64)
        owners[random.permutation(shards)] = np.arange(shards) % n
        counts = np.zeros((n, classes), dtype=np.int64)
        np.add.at(counts, (owners, np.repeat(np.arange(classes), cuts)), sizes)
        return _placed(labels, counts, random)


@dataclass(frozen=True)
class FeatureShift(Partitioner):
    """Sort the samples by their first principal component, with noise, and cut them into equal parts.

    A sample of rank r (from 0 to 1) gets the position strength · r + (1 − strength) · u, where u is uniform. Nodes
    follow that order, so neighbours on a ring or a path have similar data. Every node has the same number of samples,
    as far as possible. Standardize features with different units first; otherwise the largest dominate.

    Parameters
    ----------
    strength
        From 0, which is iid, to 1, fully sorted.

    Examples
    --------
    >>> from freewalk.data import Dataset
    >>> data = Dataset([[3.0, 0.0], [1.0, 0.1], [4.0, 0.0], [2.0, 0.1]], [0.0, 0.0, 1.0, 1.0])
    >>> FeatureShift(strength=1.0).partition(data, n=2).nodes
    array([1, 0, 1, 0])
    """

    strength: float = 1.0

    def __post_init__(self) -> None:
        check.real("FeatureShift", "strength", self.strength, 0.0, 1.0)

    def assign(self, samples: Pool, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample."""
        if samples.features is None:
            raise ProblemError("FeatureShift: got only targets, expected a Dataset, whose features it sorts")
        count = len(samples)
        ranks = np.empty(count)
        ranks[np.argsort(_along(samples.features.reshape(count, -1)), kind="stable")] = np.arange(count) / count
        blurred = self.strength * ranks + (1.0 - self.strength) * random.random(count)
        return _dealt(np.argsort(blurred, kind="stable"), even_sizes(count, n))


def _labels(data: Any) -> NDArray[Any] | None:
    """Whole numbers, booleans or strings as an array, or None for anything else."""
    try:
        array = np.asarray(data)
        if array.dtype.kind == "O" and all(isinstance(one, str) for one in array.flat):  # as in pandas
            array = array.astype(str)
    except Exception:  # rows of unequal length, or an object that raises anything
        return None
    return array if array.dtype.kind in "biuU" and not np.ma.is_masked(data) else None


def _dealt(order: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Assign the first sizes[0] samples in an order to node 0, the next ones to node 1, and so on."""
    nodes = np.empty(len(order), dtype=np.int64)
    nodes[order] = np.repeat(np.arange(len(sizes)), sizes)
    return nodes


def _fill(counts: NDArray[np.int64], least: int) -> None:
    """Move samples to nodes that have fewer than `least`, one at a time; there are enough of them."""
    sizes = counts.sum(axis=1)
    for node in np.flatnonzero(sizes < least):
        while sizes[node] < least:
            giver = int(np.argmax(sizes))
            label = int(np.argmax(counts[giver]))
            counts[giver, label] -= 1
            counts[node, label] += 1
            sizes[giver] -= 1
            sizes[node] += 1


def _placed(labels: NDArray[np.int64], counts: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Give each node the given number of samples of each class, chosen at random."""
    nodes = np.empty(len(labels), dtype=np.int64)
    for label, column in enumerate(counts.T):
        nodes[random.permutation(np.flatnonzero(labels == label))] = np.repeat(np.arange(len(column)), column)
    return nodes


def _along(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The coordinate of each row along the first principal direction, whose largest component is positive."""
    from scipy.linalg import eigh

    largest = max(float(np.abs(rows).max()), 1e-300)  # squares of huge or tiny numbers would overflow or vanish
    centred = rows / largest - (rows / largest).mean(axis=0)
    wide = centred.shape[1] > centred.shape[0]
    check.room("FeatureShift", "the products of the features", 24.0 * min(centred.shape) ** 2)
    products = centred @ centred.T if wide else centred.T @ centred
    last = len(products) - 1
    found = eigh(products, subset_by_index=[last, last])[1][:, 0]
    direction = centred.T @ found if wide else found
    sign = np.sign(direction[np.argmax(np.abs(direction))]) or 1.0
    return np.asarray(centred @ (sign * direction))
