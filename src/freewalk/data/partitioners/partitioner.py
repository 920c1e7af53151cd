"""The base class of partitioners, and their input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.data.dataset import Dataset
from freewalk.data.partition import MOST_NODES, Partition
from freewalk.data.shares import check
from freewalk.errors import ProblemError
from freewalk.rng import generator

_PARTITION = 0x70617274  # identifies the draws of a partition
LEAST, MOST = 1e-6, 1e6  # of the parameter of a Dirichlet distribution, so that no draw overflows


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples to distribute, checked.

    Attributes
    ----------
    who
        The name of the partitioner, for messages.
    targets
        The class number of each sample if there are `classes`, otherwise real numbers.
    classes
        The class names, or None for regression.
    features
        One row per sample, or None if only targets were given.
    """

    who: str
    targets: NDArray[Any]
    classes: tuple[str, ...] | None
    features: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, who: str, data: Any) -> Samples:
        """The samples of a data set, or those described by targets only.

        Raises
        ------
        ProblemError
            If the data are neither, or a class has no sample.
        """
        if isinstance(data, Dataset):
            if data.classes is not None:
                absent = np.flatnonzero(np.bincount(data.targets, minlength=len(data.classes)) == 0)
                if absent.size:
                    raise ProblemError(
                        f"{who}: class {data.classes[absent[0]]!r} of {data.name} has no sample, expected at least one "
                        "of every class; remove it from classes, and number the others without a gap"
                    )
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
        """The class of each sample, and the number of classes.

        Raises
        ------
        ProblemError
            If the targets are real numbers.
        """
        if self.classes is None:
            raise ProblemError(
                f"{self.who}: the targets are real numbers, expected classes; bin them by quantiles, "
                "numpy.digitize(targets, numpy.quantile(targets, [0.25, 0.5, 0.75])), give labels as whole numbers, or "
                "use IID, Quantity or FeatureShift"
            )
        return self.targets, len(self.classes)


def _labels(data: Any) -> NDArray[Any] | None:
    """Whole numbers, booleans or strings as an array, or None for anything else."""
    try:
        array = np.asarray(data)
        if array.dtype.kind == "O" and all(isinstance(one, str) for one in array.flat):  # as in pandas
            array = array.astype(str)
    except Exception:  # rows of unequal length, or an object that raises anything
        return None
    return array if array.dtype.kind in "biuU" and not np.ma.is_masked(data) else None


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
    def assign(self, samples: Samples, n: int, random: np.random.Generator) -> NDArray[np.int64]:
        """Return the node of each sample.

        Parameters
        ----------
        samples
            At least n samples: `targets`, `classes` and, if a data set was given, `features`; `labels()` returns the
            classes, or raises if there are none.
        n
            The number of nodes.
        random
            The source of all random draws.
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

        Raises
        ------
        ProblemError
            If there are fewer samples than nodes (or than the nodes require), a class has no sample, or this
            partitioner does not support such targets.
        """
        who = type(self).__name__
        count = check.whole(who, "n", n, 1, MOST_NODES)
        check.seed(who, seed)
        samples = Samples.of(who, data)
        wanted = count * int(getattr(self, "least", 1))
        if len(samples) < wanted:
            each = "one" if wanted == count else f"{wanted // count}"
            raise ProblemError(
                f"{who}: got {len(samples):,} samples for {count:,} nodes, expected at least {wanted:,}, {each} per "
                "node; take fewer nodes"
            )
        if samples.classes is not None:
            size = 24.0 * count * len(samples.classes)
            check.room(who, f"the counts of {count:,} nodes by class", size, "take fewer nodes or classes")
        nodes = self.assign(samples, count, generator(seed, _PARTITION))
        return Partition(nodes, count, samples.targets, samples.classes, f"{self}, seed {int(seed)}")


def dealt(order: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Assign the first sizes[0] samples in an order to node 0, the next ones to node 1, and so on.

    Examples
    --------
    >>> dealt(np.array([3, 1, 0, 2]), np.array([1, 3]))
    array([1, 1, 1, 0])
    """
    nodes = np.empty(len(order), dtype=np.int64)
    nodes[order] = np.repeat(np.arange(len(sizes)), sizes)
    return nodes


def checked_alpha(who: str, alpha: float) -> float:
    """Check the parameter of a Dirichlet distribution."""
    remedy = "IID() is the limit of large values"
    return check.real(who, "alpha", alpha, LEAST, MOST, remedy=remedy)
