"""The printed curves: all there, as they were read off, and at the right distance from others."""

import numpy as np
import pytest

from freewalk.errors import SpecError
from freewalk.paper.evidence import CHECKPOINTS, FIGURES, published

LENGTHS = {"3": 15_000, "4a": 5_000, "4b": 5_000, "5a": 8_000, "5b": 8_000, "6": 20_000}
FLOORS = {"3": 5.7e-6}  # the others have 1.6e-3
EVERY = [(figure, label) for figure in FIGURES for label in published(figure)]


def test_all_curves_are_there_in_full() -> None:
    assert len(EVERY) == 17
    assert set(LENGTHS) == set(FIGURES)
    for figure, label in EVERY:
        curve = published(figure)[label]
        assert curve.updates.shape == curve.mse.shape == (151,), (figure, label)
        assert curve.updates[0] == 0
        assert (np.diff(curve.updates) > 0).all()
        assert curve.updates[-1] == pytest.approx(LENGTHS[figure], rel=0.01)
        # All begin at the same model, and end near the noise: a misread row or scale would be far off.
        assert 0.21 < curve.mse[0] < 0.24
        assert np.log10(curve.mse[-1] / FLOORS.get(figure, 1.6e-3)) == pytest.approx(0.5, abs=0.5)


@pytest.mark.parametrize(
    ("figure", "label", "update", "mse"),
    [("3", "MHLJ", 0, 0.236), ("3", "MHLJ", 100, 0.07914), ("3", "MHLJ", 200, 0.03151)],
)
def test_points_are_those_of_the_file(figure: str, label: str, update: float, mse: float) -> None:
    curve = published(figure)[label]
    assert curve.mse[list(curve.updates).index(update)] == mse


def test_only_the_switch_is_printed_for_figure_6_alone() -> None:
    assert {label for figure, label in EVERY if figure != "6"} == {"MH uniform", "MH importance", "MHLJ"}
    assert set(published("6")) == {"MH uniform", "MH importance", "MHLJ", "MHLJ, then uniform"}
    assert set(published("4a")) == set(published("4b")) == {"MH uniform", "MH importance"}


@pytest.mark.parametrize(("figure", "label"), EVERY)
def test_distances_are_in_decades(figure: str, label: str) -> None:
    curve = published(figure)[label]
    assert curve.distance(curve.updates, curve.mse) == 0
    assert curve.distance(curve.updates, 10 * curve.mse) == pytest.approx(1, rel=1e-12)
    assert curve.distance(curve.updates, curve.mse / 100) == pytest.approx(2, rel=1e-12)
    np.testing.assert_allclose(curve.decades(curve.updates, curve.mse / 100), -2)


def test_the_distance_is_a_root_mean_square() -> None:
    curve = published("3")["MHLJ"]
    half = curve.checkpoints()[CHECKPOINTS // 2]
    other = np.where(curve.updates < half - 101, 1, 10) * curve.mse
    found = curve.decades(curve.updates, other)
    late = curve.checkpoints() >= half
    assert late.sum() == CHECKPOINTS // 2
    np.testing.assert_allclose(found[late], 1)
    assert curve.distance(curve.updates, other) == pytest.approx(np.sqrt(np.mean(found**2)))


@pytest.mark.parametrize(("figure", "label"), EVERY)
def test_checkpoints_are_at_equal_distances_on_a_log_scale(figure: str, label: str) -> None:
    curve = published(figure)[label]
    points = curve.checkpoints()
    assert len(points) == CHECKPOINTS == 30
    assert points[0] == pytest.approx(curve.updates[1])
    assert points[-1] == pytest.approx(curve.updates[-1])
    steps = np.diff(np.log(points))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)


def test_a_curve_that_has_diverged_is_at_no_distance() -> None:
    curve = published("3")["MHLJ"]
    diverged = np.where(curve.updates > 1000, np.inf, curve.mse)
    assert not np.isfinite(curve.distance(curve.updates, diverged))


@pytest.mark.parametrize("figure", ["2", "fig3", "", "6-shift"])
def test_other_figures_print_no_curves(figure: str) -> None:
    with pytest.raises(SpecError, match=r"published: figure = .*, expected one of 3, 4a, 4b, 5a, 5b, 6"):
        published(figure)


def test_nobody_can_change_what_is_kept() -> None:
    with pytest.raises(TypeError):
        published("3")["MHLJ"] = None  # type: ignore[index]
    assert published("3") is published("3")
