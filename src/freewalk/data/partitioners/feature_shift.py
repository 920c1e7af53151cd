"""Nodes with different feature distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freewalk.data.partitioners.partitioner import Partitioner, Samples, dealt
from freewalk.data.shares import check, even_sizes
from freewalk.errors import ProblemError


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

    def assign(self, samples: Samples, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample."""
        if samples.features is None:
            raise ProblemError("FeatureShift: got only targets, expected a Dataset, whose features it sorts")
        count = len(samples)
        ranks = np.empty(count)
        ranks[np.argsort(_along(samples.features.reshape(count, -1)), kind="stable")] = np.arange(count) / count
        blurred = self.strength * ranks + (1.0 - self.strength) * random.random(count)
        return dealt(np.argsort(blurred, kind="stable"), even_sizes(count, n))


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
    along: NDArray[np.float64] = centred @ (sign * direction)
    return along
