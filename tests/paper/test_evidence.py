"""When a curve reaches a level, and which curve that is."""

import numpy as np
import pytest
from handmade import evidence
from hypothesis import given, settings
from hypothesis import strategies as st

from freewalk.paper.evidence import Curve

FIXED = settings(derandomize=True, deadline=None, database=None, max_examples=100)


@FIXED
@given(
    gaps=st.lists(st.floats(1, 1000), min_size=1, max_size=20),
    rate=st.floats(1e-4, 1e-2),
    share=st.floats(0, 1),
    cost=st.floats(0.3, 2),
)
def test_reached_inverts_a_curve_that_falls_on_a_log_scale(
    gaps: list[float], rate: float, share: float, cost: float
) -> None:
    updates = np.concatenate([[0.0], np.cumsum(gaps)])
    curve = Curve(updates, cost * updates, np.exp(-rate * updates))
    when = share * updates[-1]
    level = float(np.exp(-rate * when))
    if level < curve.error[-1]:  # by rounding
        level = float(curve.error[-1])
    assert curve.reached(level) == pytest.approx(when, rel=1e-6, abs=1e-6)
    assert curve.reached(level, "messages") == pytest.approx(cost * when, rel=1e-6, abs=1e-6)


@FIXED
@given(
    values=st.lists(st.floats(0.01, 100), min_size=2, max_size=20),
    level=st.floats(0.02, 50),
)
def test_reached_is_the_first_time_and_no_later_one(values: list[float], level: float) -> None:
    updates = np.arange(len(values)) * 10.0
    found = Curve(updates, updates, np.array(values)).reached(level)
    below = [place for place, value in enumerate(values) if value <= level]
    if not below:
        assert found == np.inf
    else:
        assert 10 * (below[0] - 1) < found <= 10 * below[0] or found == below[0] == 0


def test_a_curve_that_begins_below_is_there_at_once() -> None:
    curve = Curve(np.array([0.0, 10.0]), np.array([0.0, 5.0]), np.array([0.5, 2.0]))
    assert curve.reached(1.0) == curve.reached(1.0, "messages") == 0


def test_without_exact_curves_the_mean_over_the_walks_takes_their_place() -> None:
    points = {"a": ([0, 10, 20], [8.0, 4.0, 2.0]), "b": ([0, 10, 20], [8.0, 7.0, 6.0])}
    sent = {"a": [0.0, 3.0, 9.0]}
    found = evidence(points, messages=sent, optimum=1.5)
    assert found.optimum == 1.5
    assert list(found.parts) == ["a", "b"]
    curve = found.curve("a")
    np.testing.assert_allclose(curve.error, [8, 4, 2])  # the walks have half and three halves of it
    np.testing.assert_allclose(curve.messages, [0, 3, 9])
    np.testing.assert_array_equal(curve.updates, [0, 10, 20])
    np.testing.assert_allclose(found.curve("b").error, [8, 7, 6])


def test_where_there_are_exact_curves_they_count() -> None:
    points = {"a": ([0, 10, 20], [8.0, 4.0, 2.0])}
    found = evidence(points, exact=True)
    assert found.exact is not None
    found.exact.mse[:] = found.exact.mse / 2
    np.testing.assert_allclose(found.curve("a").error, [4, 2, 1])
    np.testing.assert_allclose(found.curve("a").error, [4, 2, 1])


def test_a_printed_curve_has_the_messages_of_the_walk_that_stands_for_it() -> None:
    points = {"a": ([0, 10, 20], [8.0, 4.0, 2.0]), "b": ([0, 10, 20], [8.0, 4.0, 2.0])}
    printed = {"a": ([0.0, 5.0, 20.0], [0.8, 0.5, 0.2]), "c": ([0.0, 5.0], [0.8, 0.1])}
    found = evidence(points, messages={"a": [0.0, 4.0, 8.0]}, printed=printed)
    curve = found.printed("a")
    assert curve is not None
    np.testing.assert_allclose(curve.messages, [0, 2, 8])
    np.testing.assert_allclose(curve.error, [0.8, 0.5, 0.2])
    with pytest.raises(KeyError):  # claims and drawings look first
        found.printed("b")
    assert found.printed_floor == 0.1
