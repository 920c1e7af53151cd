"""fw.sweep: what it computes and keeps, and the dataset that it returns."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from small_sweeps import BASE, SWEEP, slow

import freewalk as fw
from freewalk.errors import FreewalkError, RecordError, SpecError
from freewalk.run.record import timeless
from freewalk.specs import parse
from freewalk.sweeps.folder import SweepFolder
from freewalk.sweeps.points import sweep_of


@pytest.fixture
def here(here: Path) -> Path:
    (here / "small.toml").write_text(BASE + SWEEP)
    return here


def test_one_labelled_dimension_per_key_and_every_point_as_its_spec_runs(here: Path) -> None:
    told: list[tuple[int, int]] = []
    data = fw.sweep("small.toml", progress=lambda *numbers: told.append(numbers))
    assert dict(data.mse.sizes) == {"walk.MHLJ.design.jump": 2, "problem.seed": 3, "design": 2, "walk": 3, "step": 5}
    assert data["problem.seed"].values.tolist() == [1, 2, 3]
    assert data.design.values.tolist() == ["uniform", "MHLJ"]
    assert bool(data.finished.all())
    assert told[-1] == (6, 6)
    text = BASE.replace("jump = 0.1", "jump = 0.5").replace("heavy = 1\nseed = 1", "heavy = 1\nseed = 3")
    alone = parse(text, "alone").run().data
    one = data.sel({"walk.MHLJ.design.jump": 0.5, "problem.seed": 3})
    for name in ("loss", "mse", "distance", "messages", "bytes", "probes", "final", "at", "diverged", "updates"):
        np.testing.assert_array_equal(one[name].values, alone[name].values)
        assert one[name].dtype == alone[name].dtype
        assert one[name].attrs == alone[name].attrs
    np.testing.assert_array_equal(one.visits.values, alone.visits.sum("walk").values)
    assert float(one.optimal_mse) == alone.attrs["optimal_mse"]
    assert (data.attrs["partial"], data.attrs["points"], data.attrs["left_out"]) == (0, 6, "")
    assert data.attrs["spec"] == BASE + SWEEP
    assert data.attrs["version_freewalk"] == fw.__version__


def test_what_is_there_is_not_computed_again_and_of_a_change_only_what_changed(here: Path) -> None:
    def times() -> dict[str, int]:
        return {file.name: file.stat().st_mtime_ns for file in Path("runs/small/points").glob("*.npz")}

    first = fw.sweep("small.toml")
    before = times()
    assert len(before) == 6
    assert fw.sweep("small.toml").identical(first)
    assert times() == before
    more = fw.sweep("small.toml", {"problem.seed": [2, 3, 4], "walk.MHLJ.design.jump": [0.1, 0.5]})
    after = times()
    assert len(after) == 8
    assert before.items() <= after.items()
    both = more.sel({"problem.seed": [2, 3]}).transpose(*first.mse.dims, ...)
    np.testing.assert_array_equal(both.mse.values, first.sel({"problem.seed": [2, 3]}).mse.values)
    assert (here / "runs/small/sweep.toml").read_text() != BASE + SWEEP


def test_zipped_keys_share_a_dimension_and_steps_are_joined(here: Path) -> None:
    over = {"zip": [{"graph.n": [6, 8], "run.steps": [40, 60]}], "run.walks": [2, 3]}
    data = fw.sweep("small.toml", over, folder="elsewhere")
    assert dict(data.loss.sizes) == {"run.walks": 2, "graph.n": 2, "design": 2, "walk": 3, "step": 7}
    assert data["run.steps"].dims == ("graph.n",)
    assert data["run.steps"].values.tolist() == [40, 60]
    short = data.sel({"graph.n": 6, "run.walks": 2})
    assert bool(short.loss.sel(step=slice(50, None)).isnull().all())
    assert bool(short.loss.sel(step=slice(0, 40), walk=slice(0, 1)).notnull().all())
    assert bool(short.loss.sel(walk=2).isnull().all())
    assert (data["at"].sel({"graph.n": 8, "run.walks": 2}, drop=True).values[:, 2] == -1).all()
    assert "visits" not in data
    assert "smoothness" not in data
    assert "visits: it has 6 to 8 nodes" in data.attrs["left_out"]
    assert "final" in data
    assert data.messages.dtype == np.float64  # with gaps


def test_means_with_their_intervals(here: Path) -> None:
    whole, mean = (fw.sweep("small.toml", walks=walks) for walks in ("all", "mean"))  # type: ignore[arg-type]
    np.testing.assert_allclose(mean.mse.values, whole.mse.mean("walk").values)
    spread = (
        4.302652729911275 * whole.mse.std("walk", ddof=1).values / np.sqrt(3)
    )  # Student's t, two degrees of freedom
    np.testing.assert_allclose(mean.mse_half_width.values, spread)
    assert "walk" not in mean.dims
    assert set(np.unique(mean.walks.values)) == {3}


def test_a_diverged_point_is_a_result(here: Path) -> None:
    data = fw.sweep("small.toml", {"walk.uniform.rule.step": [0.01, 1e6]}, walks="mean")
    assert data.diverged.values[:, 0].tolist() == [0, 3]
    assert np.isinf(data.mse.values[1, 0, -1])


def test_values_that_are_no_numbers_are_labels(here: Path) -> None:
    over = {
        "walk.uniform.design": [{"kind": "SimpleWalk"}, {"kind": "Metropolis", "power": 1.0}],
        "run.start": ["uniform", 2],
    }
    data = fw.sweep("small.toml", over)
    assert data["walk.uniform.design"].values.tolist() == ["SimpleWalk", "Metropolis power=1"]
    assert data["run.start"].values.tolist() == ["uniform", "2"]


@pytest.mark.quick("threads")
@pytest.mark.parametrize("on", ["threads", "processes"])
def test_the_same_bytes_by_threads_and_by_processes_of_any_number(here: Path, on: str) -> None:
    if on == "processes":  # their script must be importable, so that pytest itself cannot lead them
        line = "import freewalk as fw\nif __name__ == '__main__':\n    "
        line += "fw.sweep('small.toml', folder='a', on='processes', workers=2)\n"
        (here / "script.py").write_text(line)
        subprocess.run([sys.executable, "-W", "error", "script.py"], check=True)
    else:
        fw.sweep("small.toml", folder="a", workers=3)
    fw.sweep("small.toml", folder="b", workers=1)
    one, other = ({file.name: file.read_bytes() for file in Path(name, "points").glob("*.npz")} for name in "ab")
    assert one == other
    assert len(one) == 6


def test_points_that_cannot_be_computed_are_named_and_the_others_kept(here: Path) -> None:
    over = {"graph": [{"kind": "ring", "n": 6}, {"kind": "watts_strogatz", "n": 6, "k": 40, "p": 0.1}]}
    with pytest.raises(
        SpecError, match=r"1 of 2 points could not be computed, the others are in runs/small; at graph = watts"
    ):
        fw.sweep("small.toml", over)
    assert len(list(Path("runs/small/points").glob("*.npz"))) == 1
    spec = sweep_of(parse(BASE, "small.toml"), over)
    found = SweepFolder(Path("runs/small"), spec).gather()
    assert found.finished.values.tolist() == [True, False]
    assert found.attrs["partial"] == 1
    assert bool(found.loss[1].isnull().all())


def test_code_of_the_users_that_fails_is_blamed(here: Path) -> None:
    slow(here, 3, 0.0)
    text = (here / "mine.py").read_text().replace("time.sleep(self.pause)", "assert self.number != 2, 'two'")
    (here / "mine.py").write_text(text.replace("Slow", "Failing"))
    (here / "slow.toml").write_text((here / "slow.toml").read_text().replace("mine:Slow", "mine2:Failing"))
    (here / "mine.py").rename(here / "mine2.py")
    with pytest.raises(
        SpecError, match=r"1 of 3 points .*at problem.number = 2: mine2:Failing: AssertionError: two.*mine2.py"
    ):
        fw.sweep("slow.toml")
    assert len(list(Path("runs/slow/points").glob("*.npz"))) == 2


def test_ctrl_c_returns_what_there_is(here: Path) -> None:
    slow(here, 400, 0.01)
    (here / "mine.py").rename(here / "mine3.py")
    (here / "slow.toml").write_text((here / "slow.toml").read_text().replace("mine:", "mine3:"))

    def press() -> None:
        while len(list(Path("runs/slow/points").glob("*.npz"))) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    data = fw.sweep("slow.toml", workers=2)
    pressing.join()
    assert data.attrs["interrupted_by"] == "SIGINT"
    assert data.attrs["partial"] == 1
    assert 2 <= data.attrs["finished"] < 400
    assert int(data.finished.sum()) == data.attrs["finished"]


def test_a_damaged_point_is_named_with_what_to_do(here: Path) -> None:
    fw.sweep("small.toml")
    file = sorted(Path("runs/small/points").glob("*.npz"))[0]
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RecordError, match=r"not a record of freewalk.*remove this file and run the sweep again"):
        fw.sweep("small.toml")


def test_a_folder_that_is_something_else_is_left_alone(here: Path) -> None:
    (here / "full").mkdir()
    (here / "full" / "thesis.tex").write_text("precious")
    for name in ("full", "full/thesis.tex"):
        with pytest.raises(SpecError, match=r"is not (the folder of a sweep|a folder).*choose another with --out"):
            fw.sweep("small.toml", folder=name)
    assert [file.name for file in (here / "full").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"spec": 3}, "sweep: spec = 3, expected the path of a TOML file"),
        ({"spec": "missing.toml"}, "missing.toml: cannot be read"),
        ({"over": 3}, "sweep: over = 3, expected values by key"),
        ({"walks": "some"}, "sweep: walks = 'some', expected 'all' or 'mean'"),
        ({"on": "gpu"}, "sweep: on = 'gpu', expected 'threads', 'processes' or 'ray'"),
        ({"workers": 0}, "sweep: workers = 0"),
        ({"folder": 3}, "sweep: folder = 3, expected the path of a file"),
        ({"progress": 3}, "sweep: progress = 3, expected a function"),
    ],
)
def test_what_is_wrong_is_said_where_it_enters(here: Path, arguments: dict, message: str) -> None:
    with pytest.raises(FreewalkError) as caught:
        fw.sweep(**{"spec": "small.toml", **arguments})
    assert str(caught.value).startswith(message)
    assert not (here / "runs").exists()


def test_a_spec_that_is_loaded_can_be_swept(here: Path) -> None:
    spec = parse(BASE, "small.toml")
    assert fw.sweep(spec, {"problem.seed": [1]}).sizes["problem.seed"] == 1
    assert fw.sweep(sweep_of(spec, {"problem.seed": [1, 2]})).sizes["problem.seed"] == 2


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_bytes_of_a_record_do_not_depend_on_how_it_lies_in_memory(order: Literal["C", "F"]) -> None:
    """A run that is cut into other chunks, because the machine is busy, has its measurements in another order."""
    record = parse(BASE, "small.toml").run()
    expected = timeless(record).as_bytes()
    turned = {name: (one.dims, np.array(one.values, order=order), one.attrs) for name, one in record.data.items()}
    other = fw.Record(record.data.assign(turned), {**record.provenance, "seconds": 5.0}, graph=record.graph)
    assert timeless(other).as_bytes() == expected
    assert "started" not in str(timeless(other).provenance)
