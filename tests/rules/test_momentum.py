"""The heavy ball against its formula, written out along the path that was walked."""

import sys

import numpy as np
import pytest
from written_out import KERNEL, PROBLEM, RUNTIMES, compare

import freewalk as fw
from freewalk.errors import FreewalkError
from freewalk.rules import Momentum
from freewalk.runtimes.cpu.runtime import learning_code, walking_code


@RUNTIMES
@pytest.mark.parametrize("local_steps", [1, 3])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_formula(runtime, weighted, local_steps):
    def replay(path, x):
        velocity, trail = np.zeros(3), [x]
        for node in path:
            for _ in range(local_steps):
                weight = KERNEL.weights[node] if weighted else 1.0
                velocity = 0.7 * velocity + 0.003 * weight * PROBLEM.gradient(node, x)
                x = x - velocity
            trail.append(x)
        return trail, {"x": x, "velocity": velocity}

    compare(Momentum(step=0.003, momentum=0.7, weighted=weighted, local_steps=local_steps), runtime, replay)


@RUNTIMES
def test_without_momentum_it_is_sgd(runtime):
    options = {"steps": 50, "walks": 3, "runtime": runtime}
    plain = fw.learn(PROBLEM, KERNEL, fw.SGD(step=0.01), **options).data
    without = fw.learn(PROBLEM, KERNEL, Momentum(step=0.01, momentum=0.0), **options).data
    np.testing.assert_allclose(without.final, plain.final, rtol=1e-12)


def test_a_new_momentum_compiles_nothing():
    def compiled():
        modules = {name for name in sys.modules if name.startswith("freewalk_")}
        functions = (walking_code(), learning_code(PROBLEM, Momentum(step=0.01)))
        return modules, [len(function.signatures) for function in functions]

    def final(momentum):
        rule = Momentum(step=0.001, momentum=momentum)
        return fw.learn(PROBLEM, KERNEL, rule, steps=20, every=20).data.final.values

    first = final(0.5)
    before = compiled()
    assert before[1] >= [1, 1]
    assert not np.array_equal(final(0.9), first)
    assert compiled() == before


@pytest.mark.parametrize("momentum", [-0.1, 1, 1.0, 1.5, np.nan, "most", None, True], ids=repr)
def test_a_momentum_is_below_1(momentum):
    with pytest.raises(FreewalkError, match=r"Momentum: momentum = .*, expected a number from 0 to below 1"):
        Momentum(step=0.1, momentum=momentum)


@pytest.mark.parametrize("step", [0, -0.1, np.nan, "fast", None], ids=repr)
def test_steps_of_every_rule_are_positive(step):
    for kind in (Momentum, fw.rules.AdaGrad, fw.rules.SAG, fw.rules.VisitWeighted):
        with pytest.raises(FreewalkError, match=rf"{kind.__name__}: step = .*, expected a finite number > 0"):
            kind(step=step)
