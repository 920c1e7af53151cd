"""The one room of checks: what it takes, what it refuses, and that a message is short whatever was given."""

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from freewalk.checks import Checks, cores, in_bytes, memory, show, suggestion, takes
from freewalk.errors import FreewalkError, GraphError

check = Checks(GraphError)

NO_NUMBERS = [None, True, np.True_, "3", b"3", [3], np.array(3), 3 + 0j, float("nan")]


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)], ids=repr)
def test_whole_numbers(value):
    found = check.whole("ring", "n", value, 3, 3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [*NO_NUMBERS, 3.0, 2, 4, 10**30, -(10**30), np.uint64(2**63 + 5)], ids=repr)
def test_what_is_no_whole_number_in_range(value):
    with pytest.raises(GraphError, match=r"ring: n = .*, expected a whole number from 3 to 3; take 3"):
        check.whole("ring", "n", value, 3, 3, "take 3")


def test_the_largest_whole_number():
    assert check.whole("learn", "steps", 2**63 - 1) == 2**63 - 1
    with pytest.raises(GraphError, match=r"expected a whole number >= 0 \(and below 2\^63\)"):
        check.whole("learn", "steps", 10**30)
    with pytest.raises(GraphError, match=r"a whole number from 0 to 2\^64 - 1"):
        check.seed("learn", 2**64)
    assert check.seed("learn", 2**64 - 1) == 2**64 - 1


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), Fraction(1, 2)], ids=repr)
def test_real_numbers(value):
    assert check.real("SGD", "step", value, above=0.0) == 0.5
    assert check.probability("MHLJ", "jump", value) == 0.5


@pytest.mark.parametrize("value", [*NO_NUMBERS, float("inf"), 10**400, -0.1, 1.1], ids=repr)
def test_what_is_no_probability(value):
    with pytest.raises(GraphError, match=r"MHLJ: jump = .*, expected a probability from 0 to 1"):
        check.probability("MHLJ", "jump", value)


def test_bounds_of_real_numbers():
    assert check.probability("MHLJ", "jump", 0) == 0.0
    with pytest.raises(GraphError, match=r"expected a probability above 0 and up to 1"):
        check.probability("MHLJ", "stop", 0, positive=True)
    with pytest.raises(GraphError, match=r"expected a finite number > 0$"):
        check.real("SGD", "step", 0.0, above=0.0)
    with pytest.raises(GraphError, match=r"expected a finite number >= 1 and up to 2"):
        check.real("a", "b", 3.0, 1.0, 2.0)


@pytest.mark.parametrize("value", ["False", 0, None, [], np.array([True])], ids=repr)
def test_a_flag_is_true_or_false(value):
    assert check.flag("MHLJ", "corrected", np.False_) is False
    with pytest.raises(GraphError, match=r"MHLJ: corrected = .*, expected True or False"):
        check.flag("MHLJ", "corrected", value)


def test_choices_guess_what_was_meant():
    assert check.choice("learn", "precision", "float32", ["float64", "float32"]) == "float32"
    with pytest.raises(GraphError, match=r"expected 'float64' or 'float32'; did you mean 'float32'\?"):
        check.choice("learn", "precision", "flaot32", ["float64", "float32"])
    with pytest.raises(GraphError, match=r"precision = None, expected 'float64' or 'float32'$"):
        check.choice("learn", "precision", None, ["float64", "float32"])
    assert suggestion("x" * 10**6, ["steps"], "there is") == "there is steps"
    assert suggestion("colour", ["steps", "walks"], "its keys are") == "its keys are steps, walks"


@pytest.mark.parametrize("value", [None, 5, "", "  ", "a\0b", b"a", ["a"], "\ud800"], ids=ascii)
def test_a_text_can_be_shown_and_written(value):
    assert check.text("Kernel", "label", "MHLJ → uniform") == "MHLJ → uniform"
    with pytest.raises(GraphError, match=r"Kernel: label = .*, expected a string"):
        check.text("Kernel", "label", value)


@pytest.mark.parametrize("value", [None, 5, "", "a\0b", b"a", ["a"], "\ud800"], ids=ascii)
def test_paths(value):
    assert check.path("save", "path", "a/b") == check.path("save", "path", Path("a/b")) == Path("a/b")
    with pytest.raises(GraphError, match=r"save: path = .*, expected the path of a file"):
        check.path("save", "path", value)


def test_functions_can_be_called_as_they_will_be():
    assert check.function("learn", "progress", None, ["step", "steps"]) is None
    assert check.function("learn", "progress", print, ["step", "steps"]) is print
    for wrong in ("x", 5, lambda step: None, int, dict):
        with pytest.raises(GraphError, match=r"learn: progress = .*, expected a function progress\(step, steps\)"):
            check.function("learn", "progress", wrong, ["step", "steps"])


def test_parameters_that_can_be_passed_by_name():
    assert takes(lambda step, steps, measures: None, "measures")
    assert not takes(lambda *args, **more: None, "measures")


@pytest.mark.parametrize("kind", [check.floats, check.integers])
@pytest.mark.parametrize(
    "values",
    [
        None,
        "12",
        [[1], [2, 3]],
        [1 + 1j],
        ["1", "2"],
        [None, 1],
        {"a": 1},
        np.ma.masked_array([1, 2], [False, True]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        csr_array(np.eye(2)),
        [10**30, "a"],
    ],
    ids=lambda value: show(value)[:20],
)
def test_what_is_no_array_of_numbers(kind, values):
    with pytest.raises(GraphError, match=r"^MHLJ: importance "):
        kind("MHLJ", "importance", values)


def test_arrays_are_new_and_of_the_right_shape():
    given = np.arange(3.0)
    assert check.floats("a", "b", given, (3,)) is not given
    assert check.floats("a", "b", [Fraction(1, 2), 1], (None,)).tolist() == [0.5, 1.0]
    assert check.floats("a", "b", np.arange(4, dtype=">i2").reshape(2, 2), (None, 2)).dtype == np.float64
    with pytest.raises(GraphError, match=r"a: b has shape \(3,\), expected \(any, 2\); two columns"):
        check.floats("a", "b", given, (None, 2), remedy="two columns")
    with pytest.raises(GraphError, match=r"a: b\[1\] = 0.0 \(and 1 more\), expected a finite number > 0"):
        check.floats("a", "b", [1.0, 0.0, np.nan], positive=True)
    assert np.isnan(check.floats("a", "b", [np.nan], finite=False)).all()


def test_whole_numbers_in_an_array():
    assert check.integers("a", "b", np.array([1, 2], dtype=np.uint8)).dtype == np.int64
    assert check.integers("a", "b", []).size == 0
    with pytest.raises(GraphError, match=r"a: b holds 9223372036854775813, expected whole numbers"):
        check.integers("a", "b", np.array([2**63 + 5], dtype=np.uint64))
    with pytest.raises(GraphError, match=r"a: b is an array of float64, expected whole numbers"):
        check.integers("a", "b", [1.5])
    with pytest.raises(GraphError, match=r"a: b holds -1, expected whole numbers from 0 to 4"):
        check.integers("a", "b", [3, -1], low=0, high=4)


def test_what_does_not_fit_into_memory():
    check.room("complete", "its edges", 1000)
    with pytest.raises(GraphError, match=r"complete: its edges would take 8,000.0 TB, expected less than the"):
        check.room("complete", "its edges", 8e15)
    assert memory() > 1e8
    assert [in_bytes(size) for size in (12, 1234, 5e9)] == ["12 bytes", "1.2 kB", "5.0 GB"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=500) | st.binary(max_size=500),
        lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=10),
        max_leaves=50,
    )
)
def test_a_message_is_short_whatever_was_given(value):
    text = show(value)
    assert len(text) <= 80
    assert "\n" not in text


def test_messages_about_what_is_huge_or_rude():
    class Rude:
        def __repr__(self):
            raise RuntimeError

    assert "Rude" in show(Rude())
    assert show(1 << 100_000) == "a whole number of 100001 bits"
    assert show(np.zeros(10**6)) == "an array of float64 of shape (1000000,)"
    assert issubclass(GraphError, FreewalkError)


def test_there_is_a_core():
    assert 1 <= cores() <= (os.cpu_count() or 1)
