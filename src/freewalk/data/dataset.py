"""A data set: features, targets and their source."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.blocks import read_only
from freewalk.checks import Checks, Floats, Ints, set_fields
from freewalk.errors import ProblemError
from freewalk.rng import generator

if TYPE_CHECKING:
    from freewalk.data.partition import Partition

check = Checks(ProblemError)
_SPLIT = 0x73706C6974  # identifies the draws of `split`


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples with targets: class numbers, or real numbers to predict. The arrays are copied and read-only.

    Parameters
    ----------
    features
        One row per sample; a row may itself have several dimensions.
    targets
        One per sample: its class number, from 0, if there are `classes`; otherwise a real number.
    name
        The name used in messages, tables and figures.
    classes
        The class names in the order of their numbers, or None for regression.
    shape
        The shape of one sample as an image, (channels, height, width), or None if it is not an image.
    source, licence
        The origin of the data and their terms of use.

    Examples
    --------
    >>> data = Dataset([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], name="steps", classes=("low", "high"))
    >>> data
    Dataset(steps: 4 samples, 1 feature, 2 classes)
    >>> train, test = data.split(test=0.5, seed=1)
    >>> len(train), test.targets
    (2, array([0, 1]))
    """

    features: NDArray[np.float64]
    targets: NDArray[Any]
    name: str = "data"
    classes: tuple[str, ...] | None = None
    shape: tuple[int, ...] | None = None
    source: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        name = check.text("Dataset", "name", self.name)
        features = check.floats(name, "features", self.features)
        if features.ndim < 2 or not features.size:
            expected = "one row per sample, at least one; features.reshape(-1, 1) makes rows of a single feature"
            raise ProblemError(f"{name}: features has shape {features.shape}, expected {expected}")
        classes = None if self.classes is None else class_names(name, self.classes)
        remedy = "number the classes from 0: classes, targets = numpy.unique(labels, return_inverse=True)"
        targets = checked_targets(name, self.targets, classes, len(features), remedy)
        shape = None
        if self.shape is not None:
            shape = tuple(check.integers(name, "shape", self.shape, low=1).tolist())
            if math.prod(shape) != features[0].size:
                expected = f"a shape that holds the {features[0].size} features of a sample"
                raise check.fail(name, "shape", self.shape, expected)
        for field in ("source", "licence"):
            check.instance(name, field, getattr(self, field), str, "a string")
        set_fields(self, features=read_only(features), targets=read_only(targets), classes=classes, shape=shape)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        width = self.features[0].size
        kind = "regression" if self.classes is None else f"{len(self.classes)} classes"
        return f"Dataset({self.name}: {len(self):,} samples, {width:,} feature{'s' * (width > 1)}, {kind})"

    @property
    def pictures(self) -> NDArray[np.float64]:
        """The features as images: samples × channels × height × width; an error if they are not images."""
        if self.shape is None:
            raise ProblemError(f"{self.name}: the samples are not pictures; expected a Dataset with a shape")
        return self.features.reshape(len(self), *self.shape)

    def take(self, indices: ArrayLike) -> Dataset:
        """Return some of the samples, by number and in the given order.

        Examples
        --------
        >>> Dataset([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]).take([2, 0]).targets
        array([3., 1.])
        """
        remedy = "numpy.flatnonzero(mask) converts a mask to numbers"
        chosen = check.integers(self.name, "indices", indices, low=0, high=len(self) - 1, remedy=remedy)
        if not chosen.size:
            raise ProblemError(f"{self.name}: indices is empty, expected at least one sample")
        return replace(self, features=self.features[chosen], targets=self.targets[chosen])

    def split(self, test: float = 0.2, seed: int = 0) -> tuple[Dataset, Dataset]:
        """Split the samples into a training set and a test set.

        If there are classes, each is divided in the same proportion, up to whole samples, and keeps at least one
        training sample. Both parts keep the order of the samples.

        Parameters
        ----------
        test
            The fraction of samples to test on, between 0 and 1.
        seed
            The seed of the random split.
        """
        share = check.real(self.name, "test", test, 0.0, 1.0)
        check.seed(self.name, seed)
        count = round(share * len(self))
        labels = self.targets if self.classes is not None else np.zeros(len(self), dtype=np.int64)
        sizes = np.bincount(labels)
        most = np.maximum(sizes - 1, 0)
        if not 0 < count <= most.sum():
            given = f"test = {share:g} of {len(self):,} samples is {count}, expected from 1 to {most.sum()}"
            where = "" if self.classes is None else " in every class"
            raise ProblemError(f"{self.name}: {given}, so that there is something to train on{where}")
        wanted = apportion(count, sizes.astype(np.float64), most)
        order = generator(seed, _SPLIT).permutation(len(self))
        tested = np.zeros(len(self), dtype=np.bool_)
        for label, number in enumerate(wanted):
            tested[order[labels[order] == label][:number]] = True
        return self.take(np.flatnonzero(~tested)), self.take(np.flatnonzero(tested))

    def standardized(self, by: Dataset | None = None, targets: bool = False) -> Dataset:
        """Shift and scale each feature to mean 0 and standard deviation 1; a constant feature is only shifted.

        Parameters
        ----------
        by
            The data whose means and deviations are used; None uses these data. Standardize test data by the training
            data.
        targets
            Whether to standardize the targets as well; for regression only.

        Examples
        --------
        >>> train = Dataset([[1.0], [3.0]], [0.0, 1.0])
        >>> test = Dataset([[5.0]], [1.0])
        >>> test.standardized(by=train).features
        array([[3.]])
        """
        base = self if by is None else check.instance(self.name, "by", by, Dataset, "a Dataset")
        given, expected = base.features.shape[1:], self.features.shape[1:]
        if given != expected:
            raise ProblemError(f"{self.name}: by has features of shape {given}, expected {expected}")
        if check.flag(self.name, "targets", targets) and self.classes is not None:
            raise ProblemError(f"{self.name}: targets = True, expected False, since the targets are classes")
        answers = _scaled(self.targets, base.targets) if targets else self.targets
        return replace(self, features=_scaled(self.features, base.features), targets=answers)

    def by_node(self, partition: Partition) -> list[Dataset]:
        """Return one data set per node, given a partition of these samples that leaves no node without any."""
        from freewalk.data.partition import Partition

        expected = "a Partition, such as Dirichlet(alpha=0.3).partition(dataset, n=20)"
        found: Partition = check.instance(self.name, "partition", partition, Partition, expected)
        if len(found.nodes) != len(self):
            given = f"the partition is of {len(found.nodes):,} samples"
            raise ProblemError(f"{self.name}: {given}, expected {len(self):,}; make it from these data")
        return [self.take(found.samples(node)) for node in range(found.n)]


def class_names(who: str, given: Any) -> tuple[str, ...]:
    """Check that class names are different strings."""
    items = check.items(who, "classes", given, "different strings, one per class, or None for regression")
    names = tuple(check.text(who, "a name of a class", one) for one in items)
    if not names or len(set(names)) != len(names):
        raise check.fail(who, "classes", given, "different strings, at least one")
    return names


def checked_targets(
    who: str, targets: Any, classes: tuple[str, ...] | None, count: int, remedy: str = ""
) -> NDArray[Any]:
    """Targets, one per sample: class numbers if there are classes, otherwise real numbers."""
    if classes is None:
        return check.floats(who, "targets", targets, (count,))
    return check.integers(who, "targets", targets, (count,), low=0, high=len(classes) - 1, remedy=remedy)


def _scaled(values: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
    deviations = base.std(axis=0)
    # Because of rounding, the deviation of a constant column may not be exactly 0.
    constant = deviations <= 1e-12 * np.abs(base).max(axis=0)
    return np.asarray((values - base.mean(axis=0)) / np.where(constant, 1.0, deviations))


def apportion(total: int, shares: Floats, most: Ints | None = None, least: int = 0) -> Ints:
    """Divide a whole number in proportion to shares, by largest remainders; ties go to the first.

    A part has at least `least` before the rest is divided and at most `most`, which must hold the total; if all shares
    are 0, the parts are equal.
    """
    room = np.full(len(shares), total) if most is None else most
    parts = np.minimum(least, room).astype(np.int64)
    while parts.sum() < total:
        free = parts < room
        weights = np.where(free, shares, 0.0)
        if weights.sum() <= 0:
            weights = free.astype(np.float64)
        rest = total - parts.sum()
        wanted = rest * weights / weights.sum()
        whole = np.minimum(np.floor(wanted).astype(np.int64), room - parts)
        parts = parts + whole
        spare = int(total - parts.sum())
        # A full part leaves its remainder to the others, in the next round.
        order = np.argsort(-(wanted - np.floor(wanted)), kind="stable")
        order = order[(parts[order] < room[order]) & free[order]]
        parts[order[:spare]] += 1
    return parts


def even_sizes(total: int, parts: int) -> Ints:
    """Divide a whole number into parts that differ by at most one, the larger ones first."""
    return total // parts + (np.arange(parts) < total % parts).astype(np.int64)
