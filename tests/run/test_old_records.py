"""Records that the version before this one saved: they load, are reported, and go on."""

from pathlib import Path

import numpy as np
import pytest

import freewalk as fw
from freewalk import report

FOLDER = Path(__file__).with_name("records")
COMPLETE = ["complete", "walked", "logistic", "partial-to-its-end"]


def old(name):
    return fw.load(FOLDER / f"{name}.npz")


def test_they_are_all_looked_at():
    assert {path.stem for path in FOLDER.glob("*.npz")} == {*COMPLETE, "partial"}


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_record_loads(name, tmp_path):
    record = old(name)
    assert not record.partial
    assert "bytes" not in record.data
    assert record.graph == fw.graphs.ring(12)
    assert fw.load(record.save(tmp_path / "again.npz")).data.identical(record.data)


@pytest.mark.parametrize(
    ("name", "measure", "rows"),
    [("complete", "mse", 1), ("logistic", "loss", 2), ("partial-to-its-end", "mse", 1)],
    ids=lambda value: str(value),
)
def test_what_was_learned_is_reported(name, measure, rows, tmp_path):
    record = old(name)
    assert len(report.summarize(record)) == rows
    assert measure in report.text(record)
    assert report.table(record).row_count == rows
    figure = report.curves(record, tmp_path / "curves.svg").read_text()
    assert figure.rstrip().endswith("</svg>")
    page = report.write_page(report.Page("Old", [report.section_of(record)]), tmp_path / "page.html").read_text()
    assert record.label.partition(" ")[0] in page


@pytest.mark.parametrize("name", ["complete", "walked"])
def test_where_walks_were_is_drawn(name, tmp_path):
    record = old(name)
    for draw in (report.escape, report.occupancy):
        assert draw(record, tmp_path / "figure.svg").read_text().rstrip().endswith("</svg>")


def test_old_and_new_records_go_side_by_side():
    record = old("complete")
    problem = fw.objectives.LeastSquares.synthetic(12, dim=3, heavy=1, seed=1)
    kernel = fw.designs.Metropolis().kernel(fw.graphs.ring(12))
    new = fw.learn(problem, kernel, fw.SGD(step=0.01), steps=50, walks=4, every=10)
    assert new.data.attrs["primary"] == "mse"
    assert len(report.summarize(fw.concat([record, new], ["old", "new"]))) == 2


@pytest.mark.long  # tests/run/test_resume.py resumes a file of an earlier version in every run of the tests
def test_a_partial_record_goes_on_to_its_end(tmp_path):
    partial, end = old("partial"), old("partial-to-its-end")
    assert partial.partial
    resumed = fw.resume(partial)
    for name, expected in end.data.variables.items():
        # It was recorded on another processor, where numpy rounds some powers differently.
        tolerance = 1e-12 if expected.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(resumed.data[name], expected, rtol=tolerance, atol=0, err_msg=name)
    assert set(resumed.data.data_vars) - set(end.data.data_vars) == {"bytes", "updates"}
    # The mean travels as another vector from step 40 on. What was sent before it stopped is an estimate, as if rules
    # had changed at checkpoints alone; what it sends from there on is counted.
    stopped = int(partial.data.visits.sum("node")[0])
    step, messages, sent = resumed.data.step.values, resumed.data.messages.values, resumed.data.bytes.values
    later = step >= stopped
    assert later.sum() > 5
    assert np.array_equal(np.diff(sent[:, later], axis=1), np.diff(messages[:, later], axis=1) * 2 * 3 * 8)
    first = (messages[:, -1] * 48 - sent[:, -1]) / 24  # messages without the mean
    assert np.array_equal(first, np.round(first))
    assert (first > 0).all()
    assert (first <= stopped * 3).all()
    assert (sent[:, 0] == 0).all()
    saved = fw.load(partial.save(tmp_path / "again.npz"))
    assert fw.resume(saved).data.identical(resumed.data)
