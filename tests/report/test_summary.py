"""The numbers of the table, on records made by hand."""

import math

import numpy as np
import pytest
import xarray

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.report import summarize
from freewalk.report.summary import table, text, with_interval


def record(mse, label: str = "hand", *, partial: bool = False, **attrs: object) -> fw.Record:
    """Two walks of three checkpoints on four nodes, nodes 1 and 2 heavy."""
    mse = np.asarray(mse, dtype=float)
    steps = np.arange(mse.shape[1]) * 10
    messages = np.vstack([steps // 2, steps])[: mse.shape[0]]
    visits = np.tile([10, 5, 3, 2], (mse.shape[0], 1))
    data = xarray.Dataset(
        {
            "mse": (("walk", "step"), mse),
            "loss": (("walk", "step"), mse / 2),
            "messages": (("walk", "step"), messages),
            "visits": (("walk", "node"), visits),
            "diverged": ("walk", ~np.isfinite(mse).all(axis=1)),
            "smoothness": ("node", [1.0, 9.0, 9.0, 1.0]),
        },
        coords={"step": steps, "walk": np.arange(mse.shape[0]), "node": np.arange(4)},
        attrs={
            "label": label,
            "partial": int(partial),
            "heavy": [1, 2],
            "optimal_mse": 1.0,
            "optimal_loss": 0.5,
            **attrs,
        },
    )
    return fw.Record(data)


def test_the_numbers_of_a_row() -> None:
    (row,) = summarize(record([[8.0, 1.0, 1.0], [8.0, 3.0, 1.4]]))
    assert (row.label, row.walks, row.diverged) == ("hand", 2, 0)
    assert row.updates == 20  # the mean 2.0 at step 10 is above 1.5, 1.2 at step 20 is not
    assert row.messages == 15
    assert row.final == pytest.approx(1.2)
    assert row.half_width == pytest.approx(1.96 * math.sqrt(0.08) / math.sqrt(2))
    assert row.heavy_share == pytest.approx(0.4)
    assert row.messages_per_update == pytest.approx(0.75)


def test_a_threshold_that_is_never_reached_is_a_dash() -> None:
    (row,) = summarize(record([[8.0, 4.0, 2.0], [8.0, 4.0, 2.0]]))
    assert row.updates is None
    assert row.messages is None
    assert "—" in text(record([[8.0, 4.0, 2.0], [8.0, 4.0, 2.0]]))


def test_the_threshold_is_on_the_mean_over_walks() -> None:
    (row,) = summarize(record([[1.0, 1.0, 1.0], [9.0, 9.0, 2.0]]))
    assert row.updates == 20  # the first walk alone is there from the beginning


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_diverged_walk_never_leaves_the_mean(value: float) -> None:
    diverging = record([[8.0, 1.0, 1.0], [8.0, 1.0, value]])
    (row,) = summarize(diverging)
    assert row.diverged == 1
    assert not math.isfinite(row.final)
    assert row.updates == 10  # before it diverged
    assert "1 of 2 diverged" in text(diverging)


def test_the_loss_stands_in_where_there_is_no_mse() -> None:
    logistic = record([[8.0, 1.0, 1.0], [8.0, 3.0, 1.4]])
    logistic.data = logistic.data.drop_vars("mse")
    (row,) = summarize(logistic)
    assert (row.updates, row.final) == (20, pytest.approx(0.6))
    assert "mse" not in text(logistic)


def test_without_heavy_nodes_or_an_optimum_there_are_dashes() -> None:
    plain = record([[8.0, 1.0, 1.0]], heavy=[])
    del plain.data.attrs["optimal_mse"]
    (row,) = summarize(plain)
    assert row.heavy_share is None
    assert row.updates is None
    assert math.isnan(row.half_width)
    assert "optimum is" not in text(plain)


def test_designs_side_by_side_and_a_partial_one() -> None:
    both = fw.concat([record([[8.0, 1.0, 1.0]] * 2, "a"), record([[8.0, 1.0]] * 2, "b", partial=True)])
    first, second = summarize(both)
    assert (first.label, first.final) == ("a", 1.0)
    assert (second.label, second.final, second.diverged) == ("b", 1.0, 0)
    assert second.messages_per_update == pytest.approx(0.75)
    assert "interrupted" in text(both)


def test_visits_that_are_summed_over_the_walks() -> None:
    summed = record([[8.0, 1.0, 1.0]] * 2)
    summed.data["visits"] = summed.data.visits.sum("walk")
    assert summarize(summed)[0].heavy_share == pytest.approx(0.4)


def test_a_walk_that_learns_nothing_has_no_table() -> None:
    walked = fw.walk(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)), steps=10)
    with pytest.raises(RecordError, match="has no loss"):
        summarize(walked)


def test_the_table_agrees_with_a_real_run() -> None:
    graph = fw.graphs.ring(20)
    problem = fw.objectives.LeastSquares.synthetic(20, dim=2, heavy=2, seed=1)
    kernel = fw.designs.MHLJ(0.5, 0.5, 3).kernel(graph, problem.smoothness, label="MHLJ [1]")
    learned = fw.learn(problem, kernel, fw.SGD(step=0.01), steps=2000, walks=8, every=100, start=0)
    (row,) = summarize(learned)
    assert row.final == pytest.approx(float(learned.data.mse[:, -1].mean()))
    assert row.heavy_share == pytest.approx(float(learned.data.visits[:, :2].sum() / learned.data.visits.sum()))
    assert row.messages_per_update == pytest.approx(float(learned.data.messages[:, -1].mean() / 2000))
    assert table(learned).row_count == 1
    assert "MHLJ [1]" in text(learned)  # brackets are not markup


def test_a_table_fits_a_narrow_terminal() -> None:
    long = record([[8000.0, 0.0123, 0.01236], [8000.0, 0.0123, 0.01244]], "a label that is long enough to be folded")
    shown = text(long, width=80)
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    assert "0.01240 ± 0.00008" in shown


@pytest.mark.parametrize(
    ("mean", "half_width", "shown"),
    [
        (0.0131234, 0.00042, "0.0131 ± 0.0004"),
        (1.5e-7, 2e-9, "1.500e-07 ± 2e-09"),
        (12.34, 5.6, "12 ± 6"),
        (2.0, math.nan, "2"),
        (2.0, 0.0, "2"),
        (0.0, 0.0, "0"),
    ],
)
def test_numbers_have_as_many_digits_as_they_deserve(mean: float, half_width: float, shown: str) -> None:
    assert with_interval(mean, half_width) == shown
