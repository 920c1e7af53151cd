"""Stochastic gradient descent against its formula, written out by hand along the path that was walked."""

import numpy as np
import pytest

import freewalk as fw
from freewalk import rng
from freewalk.errors import FreewalkError
from freewalk.objectives import LeastSquares
from freewalk.schedules import Inverse

GRAPH = fw.graphs.star(6)
COUNTS = np.array([3, 1, 2, 5, 1, 4])
PROBLEM = LeastSquares.synthetic(6, dim=3, samples=COUNTS, noise=0.5, ridge=0.1, heavy=1, heavy_variance=4.0, seed=3)
KERNEL = fw.designs.MHLJ(0.4, 0.5, 2).kernel(GRAPH, PROBLEM.smoothness)
START = np.array([1.0, -2.0, 0.5])
SEED, STEPS = 9, 15

RUNTIMES = pytest.mark.parametrize("runtime", ["reference", "cpu"])


def learned(rule, runtime, kernel=KERNEL, **others):
    options = {"steps": STEPS, "every": 1, "initial": START, "seed": SEED, "start": 0, "paths": 1} | others
    return fw.learn(PROBLEM, kernel, rule, runtime=runtime, **options).data


def iterates(path, gamma, weights, local_steps=1, sampled=False, x=START):
    """All iterates of x ← x − γ w_v ∇f_v(x) along a path, the start first."""
    x, trail = x.copy(), [x.copy()]
    for step, node in enumerate(path):
        for local in range(local_steps):
            sample = None
            if sampled:
                key = (np.uint64(SEED), rng.SAMPLE, np.uint64(0), np.uint64(step), np.uint64(local))
                sample = int(rng.pick(rng.word(*key), np.uint64(COUNTS[node])))
            x = x - gamma(step) * weights[node] * PROBLEM.gradient(node, x, sample)
            trail.append(x)
    return np.array(trail)


def path_of(data):
    return data.path.values[0, :-1]


@RUNTIMES
def test_one_step_is_the_formula(runtime):
    data = learned(fw.SGD(step=0.05), runtime, steps=1)
    expected = START - 0.05 * KERNEL.weights[0] * PROBLEM.gradient(0, START)
    assert data.final.values[0] == pytest.approx(expected, rel=1e-14)
    assert data.loss.values[0] == pytest.approx([PROBLEM.loss(START), PROBLEM.loss(expected)], rel=1e-13)


@RUNTIMES
def test_one_update_then_one_move(runtime):
    """The first update is made where the walk starts, the last one before its last move."""
    data = learned(fw.SGD(step=0.05), runtime)
    trail = iterates(path_of(data), lambda step: 0.05, KERNEL.weights)
    assert data.final.values[0] == pytest.approx(trail[-1], rel=1e-12)
    assert data.loss.values[0] == pytest.approx([PROBLEM.loss(x) for x in trail], rel=1e-12)


@RUNTIMES
def test_without_weights(runtime):
    data = learned(fw.SGD(step=0.05, weighted=False), runtime)
    assert data.final.values[0] == pytest.approx(iterates(path_of(data), lambda step: 0.05, np.ones(6))[-1], rel=1e-12)
    assert KERNEL.weights.max() / KERNEL.weights.min() > 2


@RUNTIMES
def test_local_steps(runtime):
    data = learned(fw.SGD(step=0.05, local_steps=3), runtime)
    trail = iterates(path_of(data), lambda step: 0.05, KERNEL.weights, local_steps=3)
    assert data.loss.values[0] == pytest.approx([PROBLEM.loss(x) for x in trail[::3]], rel=1e-12)


@RUNTIMES
def test_a_decaying_step_counts_visits_from_the_start(runtime):
    data = learned(fw.SGD(step=Inverse(0.1, scale=4), local_steps=2), runtime)
    trail = iterates(path_of(data), lambda step: 0.1 / (1 + step / 4), KERNEL.weights, local_steps=2)
    assert data.final.values[0] == pytest.approx(trail[-1], rel=1e-12)


@RUNTIMES
@pytest.mark.parametrize("local_steps", [1, 3])
def test_averaging_reports_the_mean_of_all_iterates(runtime, local_steps):
    """The start is not among them; at step 0 there is none yet, and the start is reported."""
    data = learned(fw.SGD(step=0.05, average=True, local_steps=local_steps), runtime)
    trail = iterates(path_of(data), lambda step: 0.05, KERNEL.weights, local_steps)
    means = [START] + [trail[1 : 1 + local_steps * t].mean(axis=0) for t in range(1, STEPS + 1)]
    assert data.final.values[0] == pytest.approx(means[-1], rel=1e-12)
    assert data.loss.values[0] == pytest.approx([PROBLEM.loss(x) for x in means], rel=1e-11)
    distances = [np.sum((x - PROBLEM.optimum()) ** 2) for x in means]
    assert data.distance.values[0] == pytest.approx(distances, rel=1e-11)


def test_averaging_does_not_change_the_iterates():
    """The mean travels beside the model: after a phase without averaging the plain model is reported."""
    last = fw.SGD(step=0.05)
    averaged = [fw.Phase(10, KERNEL, fw.SGD(step=0.05, average=True)), fw.Phase(None, KERNEL, last)]
    assert np.array_equal(learned(None, "cpu", averaged).final, learned(last, "cpu").final)


@RUNTIMES
def test_a_switch_of_rules_resets_the_average(runtime):
    rules = fw.SGD(step=0.05, average=True), fw.SGD(step=0.02, average=True)
    switch = [fw.Phase(6, KERNEL, rules[0]), fw.Phase(None, KERNEL, rules[1])]
    data = learned(None, runtime, switch)
    trail = iterates(path_of(data), lambda step: 0.05 if step < 6 else 0.02, KERNEL.weights)
    assert data.loss.values[0, 6] == pytest.approx(PROBLEM.loss(trail[1:7].mean(axis=0)), rel=1e-12)
    assert data.loss.values[0, 7] == pytest.approx(PROBLEM.loss(trail[7]), rel=1e-12)
    assert data.final.values[0] == pytest.approx(trail[7:].mean(axis=0), rel=1e-12)


@RUNTIMES
def test_a_switch_of_kernels_alone_keeps_the_average(runtime):
    rule = fw.SGD(step=0.05, average=True)
    uniform = fw.designs.Metropolis().kernel(GRAPH)
    data = learned(None, runtime, [fw.Phase(6, KERNEL, rule), fw.Phase(None, uniform, rule)])
    path = path_of(data)
    first = iterates(path[:6], lambda step: 0.05, KERNEL.weights)
    second = iterates(path[6:], lambda step: 0.05, uniform.weights, x=first[-1])
    assert data.final.values[0] == pytest.approx(np.concatenate([first[1:], second[1:]]).mean(axis=0), rel=1e-12)


@RUNTIMES
def test_a_sampled_gradient_is_that_of_the_drawn_sample(runtime):
    data = learned(fw.SGD(step=0.05, sampled=True, local_steps=2), runtime)
    trail = iterates(path_of(data), lambda step: 0.05, KERNEL.weights, local_steps=2, sampled=True)
    assert data.final.values[0] == pytest.approx(trail[-1], rel=1e-12)


def test_sampled_gradients_are_unbiased():
    """The samples of a node are drawn equally often: chi-square over 20 000 draws, at level 1e-6.

    With the seed fixed the outcome is fixed too; a fresh seed would fail once in a million. A sample that is never
    drawn, or drawn twice as often, gives p below 1e-100.
    """
    from scipy.stats import chisquare

    node, walks = 3, 20_000
    rule = fw.SGD(step=0.05, sampled=True)
    finals = fw.learn(PROBLEM, KERNEL, rule, steps=1, walks=walks, start=node, initial=START, seed=1).data.final.values
    gradients = np.array([PROBLEM.gradient(node, START, sample) for sample in range(COUNTS[node])])
    outcomes = START - 0.05 * KERNEL.weights[node] * gradients
    which = np.argmin(np.abs(finals[:, None, :] - outcomes[None]).sum(axis=2), axis=1)
    assert np.abs(finals - outcomes[which]).max() < 1e-12
    assert gradients.mean(axis=0) == pytest.approx(PROBLEM.gradient(node, START))
    assert chisquare(np.bincount(which, minlength=COUNTS[node])).pvalue > 1e-6


def test_sampling_leaves_the_path_alone():
    plain, sampled = (learned(fw.SGD(step=0.05, sampled=sampled), "cpu") for sampled in (False, True))
    assert np.array_equal(plain.path, sampled.path)


def test_every_walk_may_have_a_first_model_of_its_own():
    initial = np.arange(6.0).reshape(2, 3)
    data = learned(fw.SGD(step=0.05), "cpu", initial=initial, walks=2, steps=1)
    for x, final in zip(initial, data.final.values, strict=True):
        assert final == pytest.approx(x - 0.05 * KERNEL.weights[0] * PROBLEM.gradient(0, x), rel=1e-13)


@pytest.mark.parametrize("step", [0, -0.1, np.nan, np.inf, "fast", None, True], ids=repr)
def test_steps_are_positive(step):
    with pytest.raises(FreewalkError, match=r"SGD: step = .*, expected a finite number > 0; or a schedule"):
        fw.SGD(step=step)


@pytest.mark.parametrize("local_steps", [0, -1, 1.5, True, np.nan, "two"], ids=repr)
def test_local_steps_are_whole_and_positive(local_steps):
    with pytest.raises(FreewalkError, match=r"SGD: local_steps = .*, expected a whole number from 1 to 1000000"):
        fw.SGD(step=0.1, local_steps=local_steps)


def test_equal_rules_are_equal():
    """That is how a run sees whether a phase begins a new rule."""
    assert fw.SGD(step=0.1) == fw.SGD(step=0.1)
    assert fw.SGD(step=Inverse(0.1, 5)) == fw.SGD(step=Inverse(0.1, 5))
    assert fw.SGD(step=0.1) != fw.SGD(step=0.1, average=True)


def test_a_rule_must_say_its_update():
    with pytest.raises(TypeError, match="abstract"):
        fw.Rule()


class Halving(fw.SGD):
    """A user's: an SGD whose steps shrink in a way of its own."""

    def rates(self, steps):
        return self.step * 0.5 ** np.asarray(steps, dtype=float)


def test_a_class_with_rates_of_its_own_is_asked_at_every_step():
    assert fw.SGD(step=0.1).constant
    assert not fw.SGD(step=fw.schedules.Inverse(0.1, scale=10)).constant
    assert not Halving(step=0.1).constant
    problem = fw.objectives.LeastSquares.synthetic(5, dim=2, seed=1)
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    finals = [
        fw.learn(problem, kernel, Halving(step=0.1), steps=6, runtime=runtime).data.final.values
        for runtime in ("cpu", "reference")
    ]
    np.testing.assert_allclose(*finals, rtol=1e-12)
