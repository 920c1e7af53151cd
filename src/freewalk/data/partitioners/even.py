"""Random assignment: equal numbers of samples per node, or very different ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.data.partitioners.partitioner import Partitioner, Samples, checked_alpha, dealt
from freewalk.data.shares import apportion, check, even_sizes


@dataclass(frozen=True)
class IID(Partitioner):
    """Shuffle the samples and give every node the same number, as far as possible.

    Examples
    --------
    >>> IID().partition([0, 0, 0, 1, 1, 1, 1], n=3).sizes
    array([3, 2, 2])
    """

    def assign(self, samples: Samples, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample."""
        return dealt(random.permutation(len(samples)), even_sizes(len(samples), n))


@dataclass(frozen=True)
class Quantity(Partitioner):
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

    alpha: float
    least: int = 1

    def __post_init__(self) -> None:
        checked_alpha("Quantity", self.alpha)
        check.whole("Quantity", "least", self.least, 1)

    def assign(self, samples: Samples, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample."""
        sizes = apportion(len(samples), random.dirichlet(np.full(n, self.alpha)), least=self.least)
        return dealt(random.permutation(len(samples)), sizes)
