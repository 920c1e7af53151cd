"""Means, bands, and when a linear axis is not enough."""

import numpy as np
import pytest
import xarray

from freewalk.report.measures import USUAL, Measure, is_log, is_spread, mean_and_band, walks_in_words


def test_quantiles_are_those_of_the_walks() -> None:
    values = np.arange(1.0, 12.0)[:, None]
    assert [one[0] for one in mean_and_band(values)] == [6.0, 2.0, 10.0]


def test_confidence_is_that_of_the_mean() -> None:
    values = np.random.default_rng(1).normal(5.0, 1.0, (400, 3))
    mean, low, high = mean_and_band(values, "confidence")
    assert mean == pytest.approx(values.mean(axis=0))
    assert high - mean == pytest.approx(1.966 * values.std(axis=0, ddof=1) / 20, rel=1e-3)
    assert mean - low == pytest.approx(high - mean)
    few = mean_and_band(np.array([[1.0], [3.0]]), "confidence")
    assert few[2] - few[0] == pytest.approx(12.7062, rel=1e-4)  # Student's t, one degree of freedom
    assert [one[0] for one in mean_and_band(np.array([[2.0]]), "confidence")] == [2.0, 2.0, 2.0]  # nothing is known


def test_without_a_band_its_ends_are_the_mean() -> None:
    mean, low, high = mean_and_band(np.array([[1.0], [3.0]]), "none")
    assert mean == low == high == 2.0


@pytest.mark.parametrize("band", ["quantiles", "confidence", "none"])
def test_a_walk_that_is_not_finite_ends_the_mean(band) -> None:
    mean, low, high = mean_and_band(np.array([[1.0, np.nan], [3.0, 2.0]]), band)
    assert mean[0] == 2.0
    assert np.isnan(mean[1])
    assert np.isfinite([low, high]).all()


def test_where_higher_is_better_a_walk_that_is_not_finite_is_at_the_bottom() -> None:
    mean, low, high = mean_and_band(np.array([[np.nan], [0.5], [0.6]]), rises=True)
    assert np.isnan(mean)
    assert low < -1e299
    assert high == 0.6


STEPS = np.arange(0, 1001, 10)
MSE = Measure("mse", "mean squared error", rises=False, optimum=None)
ACCURACY = Measure("mse", "accuracy", rises=True, optimum=None)


def part(scale: float, messages: float = 1.0) -> xarray.Dataset:
    """A curve that falls to 1e-4 and is halfway down, at 1e-2, after 4.6 × `scale` updates."""
    values = np.maximum(np.exp(-STEPS / scale), 1e-4)
    counts = (("walk", "step"), (messages * STEPS)[None])
    return xarray.Dataset({"mse": (("walk", "step"), values[None]), "messages": counts}, coords={"step": STEPS})


@pytest.mark.parametrize(
    ("designs", "spread"),
    [
        ([part(50)], False),
        ([part(8)], True),  # alone, halfway within the first twentieth of the axis
        ([part(50), part(100)], False),
        ([part(12), part(105)], True),  # more than eight times as fast by updates
        ([part(50, 0.1), part(50, 1.0)], True),  # and by messages
        ([part(50, 0.0), part(50, 1.0)], False),  # what sends nothing has no length by messages
        ([part(50, 0.5), part(50, 1.0)], False),
    ],
)
def test_an_axis_is_logarithmic_where_a_linear_one_hides_a_design(designs: list[xarray.Dataset], spread: bool) -> None:
    assert is_spread({str(number): one for number, one in enumerate(designs)}, MSE, USUAL) is spread


def test_a_curve_that_never_falls_asks_for_no_log_axis() -> None:
    rising = part(50)
    rising["mse"] = 1.0 / rising.mse
    assert not is_spread({"a": rising}, MSE, USUAL)


def test_where_higher_is_better_halfway_is_halfway_up() -> None:
    rising = part(50)
    for scale, spread in ((50, True), (100, False)):  # 0.5 is reached after 0.7 × that, of 1000 updates
        rising["mse"] = 1 - np.exp(-rising.step / scale) * xarray.ones_like(rising.mse)
        assert is_spread({"a": rising}, ACCURACY, USUAL) is spread


def test_losses_have_a_log_axis_unless_one_is_negative() -> None:
    assert is_log(MSE, [np.array([1.0, 0.0, np.nan])])
    assert not is_log(MSE, [np.array([1.0]), np.array([1.0, -0.1])])
    assert not is_log(ACCURACY, [np.array([0.5, 0.6])])


def test_a_confidence_interval_is_not_drawn_beyond_the_best_value() -> None:
    values = np.array([[1.0, 3.0], [9.0, 3.2]])
    _, low, high = mean_and_band(values, "confidence", best=2.0)
    assert low.tolist() == [2.0, 2.0]
    assert high[0] > 9
    _, low, high = mean_and_band(-values, "confidence", rises=True, best=-2.0)
    assert high.tolist() == [-2.0, -2.0]
    assert low[0] < -9


def test_how_many_walks_there_are() -> None:
    few, many = (xarray.Dataset(coords={"walk": range(walks)}) for walks in (20, 1000))
    assert walks_in_words({"a": many, "b": many}) == "1,000 walks"
    assert walks_in_words({"a": many, "b": few}) == "20 to 1,000 walks"
