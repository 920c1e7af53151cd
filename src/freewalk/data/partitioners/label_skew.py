"""Nodes that see some classes more often than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.data.partitioners.partitioner import Partitioner, Samples, checked_alpha
from freewalk.data.shares import apportion, check, even_sizes


@dataclass(frozen=True)
class Dirichlet(Partitioner):
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

    alpha: float
    least: int = 1

    def __post_init__(self) -> None:
        checked_alpha("Dirichlet", self.alpha)
        check.whole("Dirichlet", "least", self.least, 1)

    def assign(self, samples: Samples, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample."""
        labels, classes = samples.labels()
        totals = np.bincount(labels, minlength=classes)
        counts = np.array([apportion(total, random.dirichlet(np.full(n, self.alpha))) for total in totals]).T
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

    def assign(self, samples: Samples, n: int, random: np.random.Generator) -> NDArray[np.int64]:
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
