"""The stochastic average gradient: its formula along the path, its invariant, and where it converges."""

import numpy as np
from written_out import KERNEL, PROBLEM, RUNTIMES, compare

import freewalk as fw
from freewalk.rules import SAG


@RUNTIMES
def test_the_formula(runtime):
    def replay(path, x):
        mean, last, trail = np.zeros(3), np.zeros((8, 3)), [x]
        for node in path:
            gradient = PROBLEM.gradient(node, x)
            mean = mean + (gradient - last[node]) / 8
            last[node] = gradient
            x = x - 0.02 * mean
            trail.append(x)
        np.testing.assert_allclose(mean, last.mean(axis=0), rtol=1e-9, atol=1e-12)  # what the token carries
        return trail, {"x": x, "mean": mean, "last": last}

    compare(SAG(step=0.02), runtime, replay)


def test_it_reaches_the_optimum_with_a_constant_step():
    """Whatever the walk samples: SGD with the same step stays away, by its noise."""
    options = {"steps": 40_000, "walks": 2, "every": 40_000, "seed": 1}
    exact = fw.learn(PROBLEM, KERNEL, SAG(step=0.02), **options).data.distance.values[:, -1]
    noisy = fw.learn(PROBLEM, KERNEL, fw.SGD(step=0.02), **options).data.distance.values[:, -1]
    assert exact.max() < 1e-20 < 1e-6 < noisy.min()
