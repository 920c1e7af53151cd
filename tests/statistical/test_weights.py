"""Weights make the walk's gradient unbiased: exactly, node by node, and in the mean model of many walks."""

from dataclasses import replace

import numpy as np
import pytest
from exact import LEVEL, mean_p_value, stationary

import freewalk as fw
from freewalk.designs import MHLJ, Centralized, FromMatrix, Metropolis, SimpleWalk

GRAPH = fw.graphs.barabasi_albert(14, 2, seed=2)
PROBLEM = fw.objectives.LeastSquares.synthetic(
    GRAPH.n, dim=3, heavy=2, heavy_variance=16.0, noise=0.5, shift=1.0, seed=4
)
START = np.array([1.0, -1.0, 2.0])
STEP = 0.01
LAZY = 0.5 * np.eye(GRAPH.n) + 0.5 * GRAPH.adjacency().toarray() / GRAPH.degrees[:, None]

UNBIASED = {
    "SimpleWalk": SimpleWalk(),
    "Metropolis, uniform": Metropolis(),
    "Metropolis, importance": Metropolis(power=1),
    "Metropolis, target": Metropolis(target=np.arange(1, GRAPH.n + 1)),
    "Metropolis, proposal": Metropolis(power=0.5, proposal=LAZY),
    "MHLJ, corrected": MHLJ(0.5, 0.5, 3, power=0.5, corrected=True),
    "FromMatrix": FromMatrix(LAZY),
    "Centralized": Centralized(power=1),
}


def kernel_of(name):
    return UNBIASED[name].kernel(GRAPH, PROBLEM.smoothness)


def with_target(kernel, target):
    """The same walk with other weights."""
    return replace(kernel, target=target)


def full_gradient(x):
    return np.mean([PROBLEM.gradient(node, x) for node in range(GRAPH.n)], axis=0)


def mean_update(kernel, runtime, weighted=True):
    """The update at the start, averaged over the stationary law of the walk: one walk from each node, one step."""
    rule = fw.SGD(step=STEP, weighted=weighted)
    finals = fw.learn(
        PROBLEM, kernel, rule, steps=1, walks=GRAPH.n, start=np.arange(GRAPH.n), initial=START, runtime=runtime
    ).data.final.values
    return stationary(kernel) @ (finals - START) / -STEP


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("name", UNBIASED)
def test_the_weighted_gradient_is_the_full_gradient_in_the_mean(name, runtime):
    """Σ ν_v w_v ∇f_v = ∇f exactly: nothing is drawn, and the test cannot fail by chance."""
    assert mean_update(kernel_of(name), runtime) == pytest.approx(full_gradient(START), rel=1e-10)


@pytest.mark.parametrize("name", [name for name in UNBIASED if name not in ("Metropolis, uniform",)])
def test_it_catches_wrong_weights(name):
    """One node's weight off by 1 %, or no weights at all."""
    kernel, expected = kernel_of(name), full_gradient(START)
    target = kernel.target.copy()
    target[3] *= 1.01
    assert mean_update(with_target(kernel, target), "cpu") != pytest.approx(expected, rel=1e-5)
    assert mean_update(kernel, "cpu", weighted=False) != pytest.approx(expected, rel=1e-2)


def test_it_catches_the_bias_of_the_papers_jumps():
    """MHLJ weighs for its target but does not sample it: that is the error gap, and the test sees it."""
    kernel = MHLJ(0.1, 0.5, 3).kernel(GRAPH, PROBLEM.smoothness)
    assert mean_update(kernel, "cpu") != pytest.approx(full_gradient(START), rel=1e-2)


def exact_mean(kernel, weights, steps, start=0):
    """E x after some steps, by the recursion for M(v) = E[x 1(node = v)] and p(v) = P(node = v)."""
    features, targets, gain = PROBLEM.features, PROBLEM.targets, STEP * weights
    matrix = kernel.matrix().toarray()
    law = np.eye(GRAPH.n)[start]
    moments = law[:, None] * START
    for _ in range(steps):
        errors = np.sum(features * moments, axis=1) - targets * law
        moments = matrix.T @ (moments - (gain * errors)[:, None] * features)
        law = law @ matrix
    return moments.sum(axis=0)


WALKS, STEPS = 100_000, 20


def finals_of(kernel, weighted=True):
    rule = fw.SGD(step=STEP, weighted=weighted)
    options = {"steps": STEPS, "walks": WALKS, "every": STEPS, "start": 0, "initial": START, "seed": 6}
    return fw.learn(PROBLEM, kernel, rule, **options).data.final.values


@pytest.mark.parametrize("design", [MHLJ(0.3, 0.5, 3), Metropolis(power=1), SimpleWalk()], ids=repr)
def test_the_mean_model_follows_its_exact_recursion(design):
    """100 000 walks of 20 steps from node 0, Student's test at each coordinate with Bonferroni's correction.

    A walk that is right fails with probability about 1e-6. It must see a mistake: weights off by 1 % or left out,
    one step too few.
    """
    kernel = design.kernel(GRAPH, PROBLEM.smoothness)
    finals = finals_of(kernel)
    assert mean_p_value(finals, exact_mean(kernel, kernel.weights, STEPS)) > LEVEL
    assert mean_p_value(finals, exact_mean(kernel, 1.01 * kernel.weights, STEPS)) < LEVEL
    assert mean_p_value(finals, exact_mean(kernel, np.ones(GRAPH.n), STEPS)) < LEVEL
    assert mean_p_value(finals, exact_mean(kernel, kernel.weights, STEPS - 1)) < LEVEL


def test_without_weights_the_mean_model_follows_the_recursion_without_them():
    """Fails for a walk that is right with probability about 1e-6."""
    kernel = Metropolis(power=1).kernel(GRAPH, PROBLEM.smoothness)
    finals = finals_of(kernel, weighted=False)
    assert mean_p_value(finals, exact_mean(kernel, np.ones(GRAPH.n), STEPS)) > LEVEL
    assert mean_p_value(finals, exact_mean(kernel, kernel.weights, STEPS)) < LEVEL
