"""Figures are drawn, whatever the record holds."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.report import curves, escape, occupancy


def learned(design: fw.Design, step: float = 0.01, **options: int) -> fw.Record:
    graph = fw.graphs.ring(20)
    problem = fw.objectives.LeastSquares.synthetic(20, dim=2, heavy=2, seed=1)
    kernel = design.kernel(graph, problem.smoothness)
    settings = {"steps": 1000, "walks": 5, "every": 50, "start": 0, "paths": 2} | options
    return fw.learn(problem, kernel, fw.SGD(step=step), **settings)


@pytest.fixture(scope="module")
def both() -> fw.Record:
    records = [learned(fw.designs.Metropolis(power=1)), learned(fw.designs.MHLJ(0.5, 0.5, 3))]
    return fw.concat(records, ["MH $importance", "MHLJ"])


def assert_drawn(path: Path) -> None:
    image = imread(path)
    assert image.shape[0] > 200
    assert image.shape[1] > 200
    assert image[..., :3].std() > 0.01  # not a blank sheet


@pytest.mark.parametrize("scale", ["auto", "linear", "log"])
def test_curves(both: fw.Record, tmp_path: Path, scale) -> None:
    assert_drawn(curves(both, tmp_path / "new" / "curves.png", scale=scale))


def test_curves_of_one_walk_and_one_record(tmp_path: Path) -> None:
    assert_drawn(curves(learned(fw.designs.SimpleWalk(), walks=1, paths=0), tmp_path / "one.png"))


def test_curves_with_diverged_walks(tmp_path: Path) -> None:
    diverged = learned(fw.designs.SimpleWalk(), step=50.0)
    assert bool(diverged.data.diverged.all())
    assert_drawn(curves(diverged, tmp_path / "alone.png"))
    assert_drawn(curves(fw.concat([diverged, learned(fw.designs.MHLJ(0.5, 0.5, 3))]), tmp_path / "beside.png"))


def test_curves_with_values_that_are_not_finite_from_the_start(tmp_path: Path) -> None:
    record = learned(fw.designs.SimpleWalk())
    record.data["mse"] = record.data.mse * np.nan
    assert_drawn(curves(record, tmp_path / "nan.png"))


def test_curves_without_any_message(tmp_path: Path) -> None:
    matrix = np.eye(20)
    still = learned(fw.designs.FromMatrix(matrix, target=np.ones(20)))
    assert int(still.data.messages.max()) == 0
    for scale in ("linear", "log"):
        assert_drawn(curves(still, tmp_path / f"{scale}.png", scale=scale))


def test_curves_that_reach_an_optimum_of_zero(tmp_path: Path) -> None:
    record = learned(fw.designs.SimpleWalk())
    record.data["mse"] = record.data.mse.where(record.data.step < 500, 0.0)
    record.data.attrs["optimal_mse"] = 0.0
    assert_drawn(curves(record, tmp_path / "zero.png"))


def test_curves_of_a_run_that_has_hardly_begun(tmp_path: Path) -> None:
    record = learned(fw.designs.SimpleWalk())
    record.data = record.data.isel(step=slice(0, 1))
    assert_drawn(curves(record, tmp_path / "one.png", scale="log"))


def test_more_designs_than_colours(tmp_path: Path) -> None:
    one = learned(fw.designs.SimpleWalk())
    assert_drawn(curves(fw.concat([one] * 9, [f"design {k}" for k in range(9)]), tmp_path / "nine.png"))


def test_escape(both: fw.Record, tmp_path: Path) -> None:
    assert_drawn(escape(both, tmp_path / "all.png"))
    assert_drawn(escape(both, tmp_path / "one.png", designs=["MHLJ"], updates=100))
    with pytest.raises(RecordError, match="expected some of"):
        escape(both, tmp_path / "x.png", designs=["other"])
    with pytest.raises(RecordError, match="has no paths"):
        escape(learned(fw.designs.SimpleWalk(), paths=0), tmp_path / "x.png")


def test_occupancy(both: fw.Record, tmp_path: Path) -> None:
    assert_drawn(occupancy(both, tmp_path / "occupancy.png"))


def test_bad_requests(both: fw.Record, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot draw this kind of file"):
        curves(both, tmp_path / "curves.xyz")
    with pytest.raises(RecordError, match="scale = 'cubic'"):
        curves(both, tmp_path / "curves.png", scale="cubic")
    walked = fw.walk(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)), steps=10)
    with pytest.raises(RecordError, match="has no loss"):
        curves(walked, tmp_path / "curves.png")
