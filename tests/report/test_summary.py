"""The numbers of the table, on records made by hand."""

import math

import numpy as np
import pytest
import xarray

import freewalk as fw
from freewalk.errors import RecordError
from freewalk.graphs import Graph
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
    (row,) = summarize(record([[8.0, 1.0, 1.0], [8.0, 3.0, 1.1]]))
    assert (row.label, row.walks, row.diverged) == ("hand", 2, 0)
    assert row.updates == 20  # the mean 2.0 at step 10 is above 1 + 1 % of 7, 1.05 at step 20 is not
    assert row.messages == 15
    assert row.final == pytest.approx(1.05)
    assert row.half_width == pytest.approx(12.7062 * math.sqrt(0.005) / math.sqrt(2))  # Student's t of two walks
    assert row.heavy_share == pytest.approx(0.4)
    assert row.messages_per_update == pytest.approx(0.75)


def test_the_goal_is_a_fraction_of_the_initial_gap() -> None:
    falling = record([[9.0, 5.0, 2.0]])
    assert [summarize(falling, goal)[0].updates for goal in (0.5, 0.2, 0.125, 0.12)] == [10, 20, 20, None]
    assert "at most 1.8, where 10 % of the initial gap" in text(record([[9.0, 1.5, 1.5]]))
    assert "at most 5, where 50 % of the initial gap" in text(falling)  # none gets to 10 %
    assert "at most 5, where 50 % of the initial gap" in text(record([[9.0, 8.0, 8.0]]))  # it gets nowhere
    assert summarize(record([[9.0, 8.0, 8.0]]))[0].updates is None
    for goal in (0, 1.5, "1 %", np.nan, True, [0.1]):
        with pytest.raises(RecordError, match="goal"):
            summarize(falling, goal)  # type: ignore[arg-type]


@pytest.mark.parametrize(("finals", "goal"), [((1.0,), 1), ((1.0, 9.0), 1), ((1.0, 9.0, 1.5), 10), ((1, 9, 9), 50)])
def test_the_goal_is_the_nearest_that_half_of_the_designs_reach(finals: tuple[float, ...], goal: int) -> None:
    designs = [record([[9.0, 9.0, final]], f"design {number}") for number, final in enumerate(finals)]
    assert f"where {goal} % of the initial gap" in text(fw.concat(designs))


def test_designs_share_one_goal() -> None:
    both = fw.concat([record([[1.0, 1.0, 1.0]] * 2, "at the optimum"), record([[9.0, 5.0, 1.0]] * 2, "not there")])
    assert [row.updates for row in summarize(both)] == [0, 20]


def test_a_loss_whose_start_is_near_its_optimum_is_no_column_of_zeros() -> None:
    # As for logistic losses: the first loss is log 2, the best perhaps 0.5, and 1.5 × that is more than the first.
    logistic = record([[math.log(2), 0.6, 0.501]], optimal_mse=0.5)
    assert summarize(logistic)[0].updates == 20
    assert "—" not in text(logistic).split("hand")[1].split("%")[0]


def test_without_a_gap_there_is_no_goal() -> None:
    for start in (1.0, 0.5):  # at the optimum; below what the record calls it
        assert summarize(record([[start, 1.0, 1.0]]))[0].updates is None
        assert "Goal" not in text(record([[start, 1.0, 1.0]]))


def test_a_threshold_that_is_never_reached_is_a_dash() -> None:
    (row,) = summarize(record([[8.0, 4.0, 2.0], [8.0, 4.0, 2.0]]), 0.01)
    assert row.updates is None
    assert row.messages is None
    assert "—" in text(record([[8.0, 7.0, 7.0], [8.0, 7.0, 7.0]]))


def test_the_threshold_is_on_the_mean_over_walks() -> None:
    (row,) = summarize(record([[1.0, 1.0, 1.0], [9.0, 9.0, 1.05]]))
    assert row.updates == 20  # the first walk alone is there from the beginning


def test_the_table_goes_by_the_record_on_what_has_diverged() -> None:
    blown = record([[8.0, 1.0, 6e13], [8.0, 1.0, 1.0]])
    blown.data["diverged"] = ("walk", [True, False])  # finite, and yet far beyond its start
    assert summarize(blown)[0].diverged == 1
    assert "1 of 2 diverged" in text(blown)
    assert "use a smaller step" in " ".join(text(blown).split())
    del blown.data["diverged"]  # an old record
    assert summarize(blown)[0].diverged == 0


def test_a_single_walk_has_no_interval_to_explain() -> None:
    assert "± is the 95 % confidence interval" in " ".join(text(record([[8.0, 2.0, 1.0], [8.0, 1.0, 1.5]])).split())
    assert "±" not in text(record([[8.0, 2.0, 1.0]]))


def test_few_heavy_nodes_are_named_where_nodes_have_names() -> None:
    graph = Graph(np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2]), node_names=("[a]", "[b]", "[c]", "[d]"))
    named = record([[8.0, 1.0, 1.0]] * 2)
    named.graph = graph
    assert "Heavy nodes: [b] and [c]." in " ".join(text(named).split())  # brackets are not markup
    named.graph = fw.graphs.path(4)
    assert "Heavy nodes:" not in text(named)
    named.graph = fw.graphs.path(5)
    with pytest.raises(RecordError, match="5 nodes, expected 4"):
        table(named)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_diverged_walk_never_leaves_the_mean(value: float) -> None:
    diverging = record([[8.0, 1.0, 1.0], [8.0, 1.0, value]])
    (row,) = summarize(diverging)
    assert row.diverged == 1
    assert not math.isfinite(row.final)
    assert row.updates == 10  # before it diverged
    assert "1 of 2 diverged" in text(diverging)


def test_the_loss_stands_in_where_there_is_no_mse() -> None:
    logistic = record([[8.0, 1.0, 1.0], [8.0, 3.0, 1.1]])
    logistic.data = logistic.data.drop_vars("mse")
    (row,) = summarize(logistic)
    assert (row.updates, row.final) == (20, pytest.approx(0.525))
    assert "mse" not in text(logistic)


def test_without_heavy_nodes_or_an_optimum_there_are_dashes() -> None:
    plain = record([[8.0, 1.0, 1.0]], heavy=[])
    del plain.data.attrs["optimal_mse"]
    (row,) = summarize(plain)
    assert row.heavy_share is None
    assert row.updates is None
    assert math.isnan(row.half_width)
    assert "Goal" not in text(plain)


def test_designs_side_by_side_and_a_partial_one() -> None:
    both = fw.concat([record([[8.0, 1.0, 1.0]] * 2, "a"), record([[8.0, 1.0]] * 2, "b", partial=True)])
    first, second = summarize(both)
    assert (first.label, first.final) == ("a", 1.0)
    assert (second.label, second.final, second.diverged) == ("b", 1.0, 0)
    assert second.messages_per_update == pytest.approx(0.75)
    assert "interrupted" in text(both)


def test_walks_that_only_pad_a_design_do_not_count(tmp_path) -> None:
    few, many = record([[8.0, 3.0, 1.0]], "few"), record([[8.0, 1.0, 1.0], [8.0, 5.0, 2.0]], "many")
    both = fw.concat([few, many], pad=True)
    assert repr(summarize(fw.load(both.save(tmp_path / "both")))) == repr(summarize(both))
    first, second = summarize(both, goal=0.1)
    (alone,) = summarize(few, goal=0.1)
    assert repr(first) == repr(alone)  # as texts, since the interval of one walk is NaN
    assert [second] == summarize(many, goal=0.1)
    assert "the mean over 1 to 2 walks" in " ".join(text(both).split())
    both.data["walks"] = ("design", [0, 2])
    with pytest.raises(RecordError, match=r"walks in the record = 0, expected a whole number from 1 to 2"):
        summarize(both)


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
    assert "0.0124 ± 0.0005" in shown


@pytest.mark.parametrize(
    ("mean", "half_width", "shown"),
    [
        (0.0131234, 0.00042, "0.0131 ± 0.0004"),
        (1.5e-7, 2e-9, "1.500e-07 ± 2e-09"),
        (12.34, 5.6, "12 ± 6"),
        (1.1449646636, 3e-16, "1.14496"),
        (2.0, math.nan, "2"),
        (2.0, 0.0, "2"),
        (0.0, 0.0, "0"),
    ],
)
def test_numbers_have_as_many_digits_as_they_deserve(mean: float, half_width: float, shown: str) -> None:
    assert with_interval(mean, half_width) == shown


def test_what_is_gone_names_what_took_its_place():
    from freewalk import report

    with pytest.raises(AttributeError, match=r"diagnosis_table was removed: print\(found\) or found\.text\(\)"):
        report.diagnosis_table  # noqa: B018
