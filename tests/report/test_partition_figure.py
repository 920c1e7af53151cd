"""The figure of a partition is made for few and many nodes and classes."""

import numpy as np
import pytest

from freewalk.data import IID, Dirichlet, Partition
from freewalk.errors import RecordError
from freewalk.report import partition_figure


@pytest.mark.parametrize("n", [1, 10, 100])
def test_it_is_written(n, tmp_path):
    file = partition_figure(Dirichlet(0.1).partition(np.arange(500) % 10, n), tmp_path / "a.png")
    assert file.stat().st_size > 10_000


@pytest.mark.parametrize(
    "partition",
    [
        IID().partition([0, 1, 2], 3),  # one sample everywhere
        IID().partition(np.arange(60), 50),  # one sample in each of many cells
        IID().partition(np.arange(600.0), 5),
        Partition([0, 0, 3], 5, [0, 1, 1], classes=("costs $1", "costs $2, or more than anybody would pay")),
    ],
)
def test_odd_ones_are_drawn(partition, tmp_path):
    assert partition_figure(partition, tmp_path / "odd.svg").exists()


def test_anything_else_is_refused(tmp_path):
    with pytest.raises(RecordError, match="expected a Partition"):
        partition_figure([0, 1], tmp_path / "a.png")
    with pytest.raises(RecordError, match="cannot draw this kind of file"):
        partition_figure(IID().partition([0, 1], 2), tmp_path / "a.txt")
