"""Time limits: the nearest of several counts."""

import pytest

from freewalk.linear import deadline


def test_an_inner_limit_ends_with_its_block():
    with deadline.within(60.0):
        deadline.check()
        with deadline.within(0.0), pytest.raises(deadline.OutOfTime):
            deadline.check()
        deadline.check()


def test_an_inner_limit_cannot_extend_an_outer_one():
    with deadline.within(0.0), deadline.within(60.0), pytest.raises(deadline.OutOfTime):
        deadline.check()
