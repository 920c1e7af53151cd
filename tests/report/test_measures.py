"""Any measure of a record is drawn, tabulated and put on a page, against anything that never decreases."""

from pathlib import Path

import numpy as np
import pytest
import xarray
from matplotlib.image import imread

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.report import Page, curves, section_of, summarize, table, text, write_page
from freewalk.report.measures import axes_of, by_design, measure_of
from freewalk.report.page.payload import payload

STEPS = np.arange(0, 1001, 50)


def learned(design: fw.Design | None = None) -> fw.Record:
    graph = fw.graphs.ring(20)
    problem = fw.objectives.LeastSquares.synthetic(20, dim=2, heavy=2, seed=1)
    kernel = (design or fw.designs.SimpleWalk()).kernel(graph, problem.smoothness)
    return fw.learn(problem, kernel, fw.SGD(step=0.01), steps=1000, walks=5, every=50)


def costly(record: fw.Record) -> fw.Record:
    """The record with bytes and seconds."""
    seconds = 1e-3 * record.data.step * xarray.ones_like(record.data.mse)
    seconds.attrs = {"long_name": "time since the start", "units": "s"}
    sent = (16 * record.data.messages).assign_attrs(long_name="bytes sent so far", units="bytes")
    return fw.Record(record.data.assign(bytes=sent, time=seconds), graph=record.graph)


def accurate(half: float, label: str) -> fw.Record:
    """An accuracy by hand: three walks that rise from 0.02 to 0.9, halfway after so many updates."""
    rise = 0.02 + 0.88 * (1 - 0.5 ** (STEPS / half)) * np.array([[0.9], [1.0], [1.1]])
    rise[:, 0] = 0.02
    attrs = {"long_name": "accuracy, on the test set", "better": "higher"}
    data = xarray.Dataset(
        {
            "accuracy": (("walk", "step"), rise, attrs),
            "messages": (("walk", "step"), np.tile(STEPS, (3, 1))),
            "visits": (("walk", "node"), np.full((3, 4), 5)),
        },
        coords={"step": STEPS, "walk": np.arange(3), "node": np.arange(4)},
        attrs={"label": label, "primary": "accuracy", "partial": 0},
    )
    return fw.Record(data)


@pytest.fixture(scope="module")
def sent() -> fw.Record:
    return fw.concat([costly(learned()), costly(learned(fw.designs.MHLJ(0.5, 0.5, 3)))], ["simple", "MHLJ"])


@pytest.fixture(scope="module")
def risen() -> fw.Record:
    return fw.concat([accurate(300, "slow"), accurate(100, "fast")])


def words_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_primary_measure_is_shown_and_that_of_old_records_known() -> None:
    data = learned().data
    old = data.drop_attrs(deep=False)
    assert measure_of(old).name == "mse"
    assert measure_of(old.drop_vars("mse")).name == "loss"
    assert measure_of(old.assign_attrs(primary="distance")).name == "distance"
    assert measure_of(data, "loss").optimum == data.attrs["optimal_loss"]
    assert [measure_of(data, name).label for name in ("loss", "mse")] == ["loss", "mean squared error"]
    assert measure_of(data.drop_attrs()).label == "mse"  # nothing says what it means


def test_a_record_is_drawn_against_all_that_it_counts(sent: fw.Record, tmp_path: Path) -> None:
    four = ["updates", "messages", "bytes", "time"]
    drawn = words_of(curves(sent, tmp_path / "four.svg", measure="distance", axes=four))
    for words in ("updates", "messages", "bytes", "time (s)", "squared distance from the optimum"):
        assert f"<!-- {words} -->" in drawn
    widths = [imread(curves(sent, tmp_path / "a.png", axes=four[:count])).shape[1] for count in (1, 2, 3, 4)]
    assert widths == sorted(set(widths))
    assert "<!-- bytes -->" not in words_of(curves(sent, tmp_path / "two.svg"))


def test_a_page_offers_every_axis(sent: fw.Record, tmp_path: Path) -> None:
    section = section_of(sent)
    (chart,) = payload(Page("p", [section]))[0]["charts"]
    assert chart["axes"] == ["updates", "messages", "bytes", "time (s)"]
    assert chart["yLabel"] == "mean squared error"
    assert section.tables[0].head[1:5] == [f"{axis} to the goal" for axis in chart["axes"]]
    assert write_page(Page("p", [section]), tmp_path / "page.html").exists()
    fewer = section_of(sent, axes=["bytes"], published={"printed": ([0, 10], [1.0, 0.5])})
    (chart,) = payload(Page("p", [fewer]))[0]["charts"]
    assert chart["axes"] == ["bytes"]
    assert [one["label"] for one in chart["series"]] == ["simple", "MHLJ"]  # the printed one is known by updates alone
    assert "probes" not in section_of(sent).tables[0].head[3]  # nothing has sent any


def test_exact_curves_are_shown_against_what_they_count(sent: fw.Record) -> None:
    exact = sent.data[["mse", "messages", "bytes"]].mean("walk")
    simple = section_of(sent, exact=exact).charts[0].series[2]
    assert (simple.label, list(simple.x)) == ("simple", ["updates", "messages", "bytes"])
    assert [one.kind for one in section_of(sent, exact=exact, axes=["time"]).charts[0].series] == ["mean", "mean"]


def test_a_table_counts_by_any_axis(sent: fw.Record) -> None:
    simple, _ = summarize(sent, axes=["time", "bytes", "updates"])
    assert simple.to_goal["time"] == pytest.approx(1e-3 * simple.updates)
    assert simple.in_all["bytes"] == 16 * 1000
    assert simple.messages is None  # not asked for
    words = " ".join(text(sent, axes=["time"], measure="loss").split())
    assert "Goal: a mean loss of at most" in words
    assert "(s)" in words
    assert "bytes" not in text(sent)  # a terminal of 80 columns has no room for all


def test_a_design_that_lacks_an_axis_is_not_drawn_against_it(tmp_path: Path) -> None:
    old = learned()
    old = fw.Record(old.data.drop_vars("bytes"), graph=old.graph)  # as earlier versions wrote it
    both = fw.concat([old, costly(learned())], ["old", "new"])
    drawn = words_of(curves(both, tmp_path / "both.svg", axes=["updates", "bytes"]))
    assert "not known against bytes: old" in drawn
    first, second = section_of(both).charts[0].series
    assert list(first.x) == ["updates", "messages"]
    assert list(second.x) == ["updates", "messages", "bytes", "time (s)"]
    assert [row.in_all["bytes"] for row in summarize(both, axes=["bytes"])] == [None, 16_000]
    assert [one.label for one in section_of(both, axes=["bytes"]).charts[0].series] == ["new"]


def test_bytes_survive_side_by_side_and_in_a_file(sent: fw.Record, tmp_path: Path) -> None:
    again = fw.load(sent.save(tmp_path / "sent"))
    assert again.data.bytes.attrs == {"long_name": "bytes sent so far", "units": "bytes"}
    assert again.data.time.attrs == {"long_name": "time since the start", "units": "s"}
    assert (again.data.bytes == 16 * again.data.messages).all()
    assert text(again) == text(sent)


def test_where_higher_is_better(risen: fw.Record, tmp_path: Path) -> None:
    drawn = words_of(curves(risen, tmp_path / "risen.svg"))
    assert "<!-- accuracy -->" in drawn
    assert "10^" not in drawn  # no powers of ten: a linear axis
    (chart,) = section_of(risen).charts
    assert (chart.y_label, chart.y_log, dict(chart.lines)) == ("accuracy", False, {})
    words = text(risen)
    assert "accuracy" in words
    assert "Goal" not in words
    assert "to the" not in words  # what was counted in all instead
    finals = risen.data.accuracy.isel(step=-1).mean("walk").values
    assert [row.final for row in summarize(risen)] == pytest.approx(finals)
    best = fw.Record(risen.data.assign_attrs(optimal_accuracy=1.0))
    assert dict(section_of(best).charts[0].lines) == {"optimum": 1.0}
    assert "optimum" in words_of(curves(best, tmp_path / "best.svg"))
    assert table(best).row_count == 2
    assert [row.updates for row in summarize(best)] == [None, None]


def test_a_loss_that_is_negative_is_drawn(tmp_path: Path) -> None:
    record = learned()
    record.data["score"] = record.data.loss - 10.0
    assert section_of(record, measure="score").charts[0].y_log is False
    assert imread(curves(record, tmp_path / "score.png", measure="score"))[..., :3].std() > 0.01


def test_a_measure_that_never_decreases_is_offered_only_where_it_counts_up_from_zero(risen: fw.Record) -> None:
    parts = by_design(risen)
    assert list(axes_of(parts, measure_of(risen.data))) == ["updates", "messages"]
    assert list(axes_of(parts, measure_of(risen.data), ["accuracy"])) == ["accuracy"]  # as a fool's wish


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"measure": "mes"}, ["measure = 'mes'", "'loss'", "'messages'", "'mse'", "did you mean 'mse'?"]),
        ({"measure": 3}, ["measure = 3", "'loss'"]),
        (
            {"axes": ["byte"]},
            ["axis = 'byte'", "'updates', 'rounds', 'messages', 'probes', 'bytes' or 'time'", "did you mean"],
        ),
        ({"axes": ["updates", "loss"]}, ["axis = 'loss'", "never decreases: updates or rounds or messages", "measure"]),
        ({"axes": []}, ["axes = []", "at least one of updates, rounds, messages"]),
        ({"axes": "messages"}, ["axes = 'messages'", "a list of names"]),
    ],
)
def test_what_there_is_not_is_refused_by_name(sent: fw.Record, tmp_path: Path, options: dict, words: list[str]) -> None:
    for call in (lambda: curves(sent, tmp_path / "a.png", **options), lambda: section_of(sent, **options)):
        with pytest.raises(RecordError) as caught:
            call()
        for one in words:
            assert one in str(caught.value)
    with pytest.raises(RecordError):
        table(sent, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.assign_attrs(primary="acuracy"), "primary measure of the record = 'acuracy'"),
        (lambda data: data.accuracy.attrs.update(better="bigger"), "better of accuracy = 'bigger'"),
        (lambda data: data.accuracy.attrs.update(long_name=3), "long_name of accuracy = 3"),
        (lambda data: data.messages.attrs.update(units=["a"]), "units of messages"),
        (lambda data: data.assign_attrs(optimal_accuracy="one"), "optimal_accuracy = 'one'"),
    ],
)
def test_attributes_that_nothing_could_have_left_behind_are_refused(change, words: str) -> None:
    data = accurate(100, "hand").data
    changed = change(data)
    with pytest.raises(RecordError, match=words):
        section_of(fw.Record(data if changed is None else changed))
