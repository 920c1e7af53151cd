"""One step size for each coordinate: its formula, written out along the path that was walked."""

import numpy as np
import pytest
from written_out import KERNEL, PROBLEM, RUNTIMES, compare

from freewalk.errors import FreewalkError
from freewalk.rules import AdaGrad


@RUNTIMES
@pytest.mark.parametrize("keeper", ["token", "node"])
def test_the_formula(runtime, keeper):
    def replay(path, x):
        squares, trail = np.zeros(3 if keeper == "token" else (8, 3)), [x]
        for node in path:
            gradient = KERNEL.weights[node] * PROBLEM.gradient(node, x)
            mine = squares if keeper == "token" else squares[node]
            mine += gradient**2
            x = x - 0.2 * gradient / (0.01 + np.sqrt(mine))
            trail.append(x)
        return trail, {"x": x, "squares": squares}

    compare(AdaGrad(step=0.2, floor=0.01, keeper=keeper), runtime, replay)


def test_who_keeps_the_squares():
    token, node = AdaGrad(step=0.1), AdaGrad(step=0.1, keeper="node")
    assert (token.carries, token.stores) == (("squares",), ())
    assert (node.carries, node.stores) == ((), ("squares",))
    with pytest.raises(FreewalkError, match=r"AdaGrad: keeper = 'edge', expected 'token' or 'node'"):
        AdaGrad(step=0.1, keeper="edge")


@pytest.mark.parametrize("floor", [0, -1.0, np.nan, "low"], ids=repr)
def test_floors_are_positive(floor):
    with pytest.raises(FreewalkError, match=r"AdaGrad: floor = .*, expected a finite number > 0"):
        AdaGrad(step=0.1, floor=floor)
