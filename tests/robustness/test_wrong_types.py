"""Wrong input to what reports offer is a FreewalkError, and nothing is written."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import xarray

import freewalk as fw
from freewalk import report
from freewalk.errors import FreewalkError, RecordError
from freewalk.report import Chart, Page, Section, Series, Table, Verdict, Walks
from freewalk.specs import shipped


class Rude:
    """It cannot be shown, counted or compared."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __len__ = __iter__ = __eq__ = __bool__ = __float__ = __array__ = __repr__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


WRONG: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "10^30": 10**30,
    "nan": float("nan"),
    "complex": 1j,
    "text": "x",
    "long text": "x" * 10_000,
    "nul": "a\0b",
    "half a pair": "\ud800",
    "bytes": b"x",
    "empty list": [],
    "list": [1, "a", None],
    "ragged": [[1], [2, 3]],
    "mapping": {1: 2},
    "named": {"a": "b"},
    "array": np.zeros((2, 3)),
    "masked": np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "objects": np.array([object(), None]),
    "function": len,
    "rude": Rude(),
    "list of rude": [Rude()],
}
SERIES = Series("a", {"updates": [0, 1]}, [1.0, 2.0])
WALKS: dict[str, Any] = {"graph": fw.graphs.ring(4), "heavy": [0], "importance": np.ones(4), "paths": {"a": [0, 1]}}
WALKS |= {"visits": {"a": np.ones(4)}}
VERDICT: dict[str, Any] = dict.fromkeys(("claim", "measured", "comment", "published", "quote", "share"), "words")
SECTION: dict[str, Any] = {"title": "s", "text": ["a"], "charts": [Chart("c", [SERIES], "y")], "walks": Walks(**WALKS)}
SECTION |= {"verdicts": [Verdict("c", "pass", "1")], "images": {"a": b"<svg/>"}, "details": {"a": "b"}, "anchor": "a"}
SECTION |= {"tables": [Table(["a"], [["1"]])], "short": "s"}


@cache
def swept() -> xarray.Dataset:
    """A sweep over three keys."""
    over = {"walk.MHLJ.design.jump": [0.1, 0.5], "graph.n": [10, 12], "problem.seed": [1, 2]}
    with TemporaryDirectory() as folder:
        return fw.sweep(shipped("sweep.toml"), over, folder=folder)


def calls(record: fw.Record, folder: Path) -> dict[Any, dict[str, Any]]:
    """Every public name of reports but those of diagnoses, with arguments that are right."""
    image, exact = folder / "a.png", record.data.isel(walk=0)[["mse", "messages"]]
    series = {"label": "a", "x": {"updates": [0, 1]}, "y": [1.0, 2.0], "low": [0, 0], "high": [1, 1], "kind": "mean"}
    chart = {"title": "c", "series": [SERIES], "y_label": "y", "x_log": True, "y_log": True, "lines": {"a": 1.0}}
    page = Page("p", [Section("s", charts=[Chart("c", [SERIES], "y")])])
    section = {"record": record, "graph": record.graph, "exact": exact, "published": {"a": ([0, 1], [1.0, 2.0])}}
    section |= {"verdicts": [Verdict("c", "pass", "1")], "title": "t", "text": ["a"]}
    axes = {"measure": "mse", "x": "graph.n"}
    shown = {"measure": "mse", "axes": ["messages", "updates"]}
    problem = fw.objectives.LeastSquares.synthetic(6, dim=2, heavy=2, seed=1)
    found = fw.evaluate(record, problem, per_node=True)
    return {
        report.evaluation_table: {"found": found},
        report.node_losses: {"found": found, "path": image},
        report.Chart: chart | {"note": "n"},
        report.Page: {"title": "p", "sections": page.sections, "intro": ["a"]},
        report.Section: SECTION,
        report.Series: series | {"colour": "#123456", "note": "n"},
        report.Table: {"head": ["a"], "rows": [["1"]], "caption": "c"},
        report.Verdict: VERDICT | {"outcome": "pass"},
        report.Walks: WALKS,
        report.curves: {"record": record, "path": image, "scale": "log", "band": "confidence"} | shown,
        report.escape: {"record": record, "path": image, "designs": ["walk"], "updates": 10},
        report.occupancy: {"record": record, "path": image, "around": 3},
        report.partition_figure: {"partition": fw.data.IID().partition([0, 1], 2), "path": image},
        report.section_of: section | {"band": "none"} | shown,
        report.sweep_curves: {"data": swept(), "path": image} | axes,
        report.sweep_lines: {"data": swept(), "path": image} | axes,
        report.sweep_map: {"data": swept(), "path": image, "y": "walk.MHLJ.design.jump"} | axes,
        report.summarize: {"record": record, "goal": 0.1} | shown,
        report.table: {"record": record, "goal": 0.1} | shown,
        report.text: {"record": record, "width": 80} | shown,
        report.write_page: {"page": page, "path": folder / "a.html"},
    }


@pytest.fixture(scope="module")
def record() -> fw.Record:
    graph = fw.graphs.ring(6)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, seed=1)
    kernel = fw.designs.SimpleWalk().kernel(graph, problem.smoothness, label="walk")
    return fw.learn(problem, kernel, fw.SGD(step=0.01), steps=20, walks=3, every=5, paths=1)


def test_every_public_name_is_attacked(record: fw.Record, tmp_path: Path) -> None:
    names = {call.__name__ for call in calls(record, tmp_path)}
    assert names == set(report.__all__) - {"Row", "diagnosis_figure"}
    for call, arguments in calls(record, tmp_path).items():
        call(**arguments)


@pytest.mark.quick(*(name for name in WRONG if name != "None"))  # which many take, and draw
@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_a_freewalk_error(
    record: fw.Record, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = [
        outcome(call, arguments | {argument: WRONG[name]}, f"{call.__name__}({argument} = {name})")
        for call, arguments in calls(record, tmp_path).items()
        for argument in arguments
    ]
    refusals = [words for words in found if words]
    assert len(refusals) > 30
    assert [words for words in refusals if len(words) > 600] == []
    assert set(tmp_path.iterdir()) <= {tmp_path / "a.png", tmp_path / "a.html"}


def outcome(call: Any, arguments: dict[str, Any], what: str) -> str:
    """What was said; empty where the arguments were accepted."""
    try:
        call(**arguments)
    except FreewalkError as error:
        return str(error)
    except Exception as error:
        pytest.fail(f"{what} raised {type(error).__name__}: {error}")
    return ""


BROKEN: dict[str, Any] = {
    "words": lambda data: data.assign(mse=data.mse.astype(str)),
    "no visits": lambda data: data.drop_vars("visits"),
    "no messages": lambda data: data.drop_vars("messages"),
    "other dimensions": lambda data: data.assign(messages=data.mse.mean("walk")),
    "a path that leaves": lambda data: data.assign(path=data.path + 100),
    "heavy words": lambda data: data.assign_attrs(heavy=["a"]),
    "heavy nodes that are not there": lambda data: data.assign_attrs(heavy=[1000]),
    "an optimum of words": lambda data: data.assign_attrs(optimal_mse="best"),
    "no nodes": lambda data: data.drop_dims("node"),
    "no walk": lambda data: data.isel(walk=slice(0)),
    "no checkpoint": lambda data: data.isel(step=slice(0)),
    "steps that go back": lambda data: data.isel(step=slice(None, None, -1)),
    "visits that are not numbers": lambda data: data.assign(visits=data.visits * np.nan),
    "negative messages": lambda data: data.assign(messages=data.messages - 1),
    "a label with a NUL": lambda data: data.assign_attrs(label="a\0b"),
    "no designs": lambda data: data.expand_dims(design=["a"]).isel(design=slice(0)),
    "two designs of one name": lambda data: data.expand_dims(design=["a"]).isel(design=[0, 0]),
    "words as steps": lambda data: data.assign_coords(step=data.step.astype(str)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_record_that_is_broken_is_refused(record: fw.Record, tmp_path: Path, name: str) -> None:
    broken = fw.Record(BROKEN[name](record.data), graph=record.graph)
    with pytest.raises(RecordError):
        report.write_page(Page("p", [report.section_of(broken)]), tmp_path / "a.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/proc/none/a", "/dev/null/a", "a\0", ""])
def test_places_that_cannot_be_written(record: fw.Record, path: str) -> None:
    for draw in (report.curves, report.escape, report.occupancy):
        with pytest.raises(RecordError):
            draw(record, f"{path}.png" if path else path)
    with pytest.raises(RecordError):
        report.write_page(Page("p", [Section("s")]), f"{path}.html" if path else path)
