"""A slice of the calls with wrong arguments; `python tests/robustness/calls.py 5000` makes them all."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import calls


@pytest.fixture(scope="module")
def surface(tmp_path_factory):
    return calls.surface(tmp_path_factory.mktemp("surface"))


def test_every_listed_callable_is_among_them(surface):
    assert not calls.missing(surface)


def test_the_arguments_that_junk_replaces_work(surface):
    for name, (function, good) in surface.items():
        if name != "CUDA":  # there may be none
            function(**good)


@pytest.mark.quick("7-60")
@pytest.mark.parametrize(("seed", "count"), [(7, 60), (7, 300)])
def test_wrong_arguments_are_refused(seed, count):
    found = calls.run(0, count, seed)
    bad = [one for one in found if one["outcome"] not in ("works", "refused")]
    assert not bad
    counts = Counter(one["outcome"] for one in found)
    assert sum(counts.values()) == count
    assert counts["refused"] > count / 2  # junk is junk
    assert max(len(one["said"]) for one in found) < 700  # and is not printed whole
