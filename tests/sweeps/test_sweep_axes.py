"""The table [sweep]: lists, ranges, draws, and what is wrong with them."""

import math
import tomllib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freewalk.errors import SpecError
from freewalk.sweeps.axes import read_axes


def values(text: str) -> dict[str, tuple[Any, ...]]:
    """By key, what a table says."""
    axes = read_axes(tomllib.loads(text), "my.toml")
    return {key: one for axis in axes for key, one in axis.values.items()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("[1, 2, 5]", (1, 2, 5)),
        ('["uniform", 3]', ("uniform", 3)),
        ("{ from = 1, to = 4 }", (1, 2, 3, 4)),
        ("{ from = 10, to = 35, step = 10 }", (10, 20, 30)),
        ("{ from = 3, to = 1, step = -1 }", (3, 2, 1)),
        ("{ from = 0.1, to = 0.7, step = 0.2 }", (0.1, 0.3, 0.5, 0.7)),
        ("{ from = 1, to = 2, step = 0.5 }", (1.0, 1.5, 2.0)),
        ("{ from = 0.0, to = 1.0, points = 5 }", (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("{ from = 1, to = 10, points = 4 }", (1, 4, 7, 10)),
        ("{ from = 1e-4, to = 1e-2, points = 5, log = true }", (1e-4, 0.000316227766017, 1e-3, 0.00316227766017, 1e-2)),
        ("{ from = 100, to = 1000, points = 3, log = true }", (100, 316, 1000)),
        ("{ from = 1.0, to = 0.01, points = 3, log = true }", (1.0, 0.1, 0.01)),
        ("[{ kind = 'SimpleWalk' }, { kind = 'Metropolis' }]", ({"kind": "SimpleWalk"}, {"kind": "Metropolis"})),
    ],
)
def test_values(given: str, expected: tuple[Any, ...]) -> None:
    (found,) = values(f'"graph.n" = {given}').values()
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


def test_keys_may_be_quoted_or_not() -> None:
    plain = "graph.n = [1, 2]\nwalk.MHLJ.design.jump = { from = 0.1, to = 0.2, points = 2 }"
    assert values(plain) == {"graph.n": (1, 2), "walk.MHLJ.design.jump": (0.1, 0.2)}
    assert values('walk."a, 0.5".rule.step = [1.0]') == {"walk.a, 0.5.rule.step": (1.0,)}


def test_zipped_keys_are_one_axis() -> None:
    text = '"problem.seed" = [1, 2, 3]\n[[zip]]\n"graph.n" = [5, 6]\n"run.steps" = { from = 10, to = 20, step = 10 }'
    first, second = read_axes(tomllib.loads(text), "my.toml")
    assert (len(first), len(second), second.name) == (3, 2, "graph.n")
    assert second.at(1) == {"graph.n": 6, "run.steps": 20}


ENDS = st.integers(-1000, 1000) | st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda number: float(f"{number:.6g}"))


@given(first=ENDS, last=ENDS, points=st.integers(2, 50))
@settings(max_examples=200)
def test_a_range_has_its_ends_and_even_distances(first: float, last: float, points: int) -> None:
    text = {"x": {"from": first, "to": last, "points": points}}
    whole = isinstance(first, int) and isinstance(last, int)
    try:
        (axis,) = read_axes(text, "my.toml")
    except SpecError:
        assert first == last or whole or abs(last - first) < 1e-9 * max(abs(first), abs(last))
        return
    found = axis.values["x"]
    assert (len(found), found[0], found[-1]) == (points, first, last)
    gaps = [(after - before) * (points - 1) for before, after in pairwise(found)]
    tolerance = (points if whole else 1e-9) + 1e-9 * max(abs(first), abs(last)) * points
    assert all(math.isclose(gap, last - first, abs_tol=tolerance) for gap in gaps)


@given(
    low=st.floats(1e-6, 1e3),
    ratio=st.floats(1.5, 1e6),
    draws=st.integers(1, 60),
    seed=st.integers(0, 2**64 - 1),
    log=st.booleans(),
)
@settings(max_examples=100)
def test_draws_are_within_their_range_and_reproducible(
    low: float, ratio: float, draws: int, seed: int, log: bool
) -> None:
    table = {"from": low, "to": low * ratio, "draws": draws, "seed": seed, "log": log}
    (axis,) = read_axes({"a.b": table}, "my.toml")
    found = axis.values["a.b"]
    assert axis.drawn
    assert len(set(found)) == draws
    assert all(low * (1 - 1e-9) <= value <= low * ratio * (1 + 1e-9) for value in found)
    again = read_axes({"z": [1], "a.b": {**table, "draws": draws + 5}}, "my.toml")[1]
    assert again.values["a.b"][:draws] == found  # those that were there stay, wherever the key stands
    other = read_axes({"a.c": table}, "my.toml")[0].values["a.c"]
    assert other != found


def test_draws_are_uniform_or_log_uniform() -> None:
    """400 draws: the median of 20 sigma sizes; an error of the level 1e-6 or so in each line."""
    uniform = values('"x" = { from = 0.0, to = 1.0, draws = 400 }')["x"]
    assert abs(sum(uniform) / 400 - 0.5) < 5 * (1 / math.sqrt(12 * 400))
    log = values('"x" = { from = 1e-4, to = 1.0, draws = 400, log = true }')["x"]
    assert abs(sum(math.log10(value) for value in log) / 400 + 2) < 5 * (4 / math.sqrt(12 * 400))
    whole = values('"x" = { from = 1, to = 6, draws = 6 }')["x"]
    assert sorted(whole) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"\[sweep\] has no keys"),
        ('"graph.n" = []', r'"graph.n" = \[\], expected at least one value'),
        ('"graph.n" = 5', r'"graph.n" = 5, expected a list of values, or a range such as { from = 1, to = 10 }'),
        ('"graph.n" = { from = 5, to = 1 }', r"is an empty range \(from = 5, to = 1, step = 1\).*swap the ends"),
        ('"graph.n" = { from = 1, to = 5, step = 0 }', "empty range"),
        ('"graph.n" = { from = 1.0, to = 1.0, points = 3 }', "empty range"),
        ('"graph.n" = { from = 3, to = 3, draws = 3 }', "empty range"),
        ('"graph.n" = { from = 1 }', "needs the key 'to'"),
        ('"graph.n" = { points = 3, to = 1 }', "needs the key 'from'"),
        ('"graph.n" = { from = 0.5, to = 1 }', r"step = None, expected a finite number; or give points = 5"),
        ('"graph.n" = { from = 1, to = 5, stp = 2 }', "a range has no key 'stp'; did you mean 'step'?"),
        ('"graph.n" = { from = 1, to = 5, step = 1, points = 3 }', "'step' as well as 'points'"),
        ('"graph.n" = { from = 1, to = 5, seed = 3 }', "has a seed but draws nothing"),
        ('"graph.n" = { from = 0, to = 5, points = 3, log = true }', "log = true, expected numbers > 0"),
        ('"graph.n" = { from = 1.0, to = 5.0, log = true }', "log = true without points or draws"),
        ('"graph.n" = { from = 0, to = 1, points = 5 }', r"two of which round to the same; write 0.0 and 1.0"),
        ('"graph.n" = { from = 1, to = 3, draws = 5 }', "draws = 5, expected up to 3, as no value is drawn twice"),
        ('"graph.n" = { from = 1, to = 3, points = 1 }', "points = 1, expected a whole number from 2"),
        ('"graph.n" = { from = "a", to = 3 }', "from = 'a', expected a finite number"),
        ('"graph.n" = [1, 2, 1]', "holds 1 twice"),
        ('"graph.n" = [1.0, nan]', "holds nan, expected finite numbers"),
        ('"graph.n" = { from = 1, to = 10_000_000 }', "10,000,000 values, expected up to 1,000,000"),
        ("a = { from = 1, to = 2000 }\nb = { from = 1, to = 2000 }", "4,000,000 points"),
        ("a = [1]\n[[zip]]\na = [2]", "'a' occurs twice"),
        ("zip = 3", r"zip = 3, expected tables \[\[sweep.zip\]\]"),
        ("[[zip]]", "zip 1: is empty, expected at least one key"),
        ("[[zip]]\na = [1, 2]\nb = [1, 2, 3]", "zip 1: 'a' has 2, 'b' has 3 values, expected the same number"),
    ],
)
def test_what_cannot_be_swept_is_named(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        values(text)
    assert str(caught.value).startswith("my.toml: [sweep]")
