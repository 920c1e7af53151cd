"""SGD(average="half"): the mean of the last half of the iterates, or somewhat more, from two vectors."""

import numpy as np
import pytest
from written_out import KERNEL, PROBLEM, RUNTIMES, compare

import freewalk as fw
from freewalk.errors import FreewalkError
from freewalk.rules.sgd import _power_of_two


def first_of(count):
    """The iterate, numbered from 1, at which the mean of `count` iterates begins: a power of two in (t/4, t/2]."""
    (found,) = [2**k for k in range(40) if count / 4 < 2**k <= max(count / 2, 1)]
    return found


@RUNTIMES
@pytest.mark.parametrize("local_steps", [1, 3])
def test_the_definition(runtime, local_steps):
    def replay(path, x):
        iterates, trail = [], [x]
        for node in path:
            for _ in range(local_steps):
                x = x - 0.01 * KERNEL.weights[node] * PROBLEM.gradient(node, x)
                iterates.append(x)
            trail.append(np.mean(iterates[first_of(len(iterates)) - 1 :], axis=0))
        recent = np.mean(iterates[_power_of_two(len(iterates)) - 1 :], axis=0)
        return trail, {"x": x, "mean": trail[-1], "recent": recent}

    compare(fw.SGD(step=0.01, average="half", local_steps=local_steps), runtime, replay)


def test_exactly_half_at_powers_of_two():
    """The iterate at t/2 and the t/2 after it; in between never more than three quarters, and that one."""
    for count in range(2, 2000):
        averaged = count - first_of(count) + 1
        assert count / 2 < averaged <= 3 * count / 4 + 1 or count == 3  # of 3 all
        if count & (count - 1) == 0:
            assert averaged == count // 2 + 1


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 1023, 1024, 2**40 + 1, 2**62 - 1, 2**62], ids=repr)
def test_the_power_of_two_of_any_count(count):
    power = _power_of_two(count)
    assert power & (power - 1) == 0
    assert power <= count < 2 * power


@pytest.mark.parametrize("average", ["all", None, 0.5, "Half"], ids=repr)
def test_other_averages_are_refused(average):
    with pytest.raises(FreewalkError, match=r'SGD: average = .*, expected True, False or "half"'):
        fw.SGD(step=0.1, average=average)
