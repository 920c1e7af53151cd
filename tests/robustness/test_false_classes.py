"""Objects that lie about their class are refused where they are passed, like any other wrong object."""

from pathlib import Path

import networkx
import numpy as np
import pytest
import xarray
from calls import surface
from scipy.sparse import csr_array

import freewalk as fw
from freewalk import checks


class Liar:
    """An object that says that it is something else."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return self.kind


KINDS = [int, str, bool, float, list, tuple, dict, set, type(None), np.ndarray, np.float64, np.int64, Path]
KINDS += [networkx.Graph, csr_array, xarray.Dataset, fw.graphs.Graph, fw.Kernel, fw.Move, fw.SGD, fw.designs.MHLJ]
KINDS += [fw.objectives.LeastSquares, fw.runtimes.CPU, fw.Record, fw.exchanges.Meet, fw.schedules.Constant, fw.Phase]
KINDS += [fw.data.Dataset, fw.data.Partition, fw.baselines.Method, fw.report.Section, fw.report.Series]


@pytest.mark.parametrize("kind", [int, np.ndarray, str])
def test_they_can_be_shown(kind: type) -> None:
    assert checks.show(Liar(kind)).startswith("something of type")


@pytest.mark.parametrize("kind", [fw.Kernel, list, int])
def test_they_are_no_kernels(kind: type) -> None:
    with pytest.raises(fw.FreewalkError, match="kernel = something of type"):
        fw.walk(Liar(kind), steps=1)


@pytest.mark.parametrize("kind", [bool, float, int])
def test_they_are_no_options(kind: type) -> None:
    for options in ({"weighted": Liar(kind)}, {"average": Liar(kind)}, {"local_steps": Liar(kind)}):
        with pytest.raises(fw.FreewalkError, match="= something of type"):
            fw.SGD(0.1, **options)


@pytest.mark.parametrize("kind", [np.ndarray, list, str, int])
def test_they_are_no_nodes(kind: type) -> None:
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(6))
    with pytest.raises(fw.FreewalkError, match="nodes = something of type"):
        fw.analysis.escape_time(kernel, Liar(kind))


@pytest.mark.long
def test_none_gets_through_the_public_surface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    raw = []
    for name, (function, good) in surface(tmp_path).items():
        for parameter in good:
            for kind in KINDS:
                try:
                    function(**{**good, parameter: Liar(kind)})
                except fw.FreewalkError:
                    pass
                except Exception as error:
                    raw.append((name, parameter, kind, error))
    assert not raw
