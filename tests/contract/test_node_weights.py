"""Losses with factors and nodes without data: what runtimes learn from them, and what the analysis says about it.

The plain contract (every rule on every runtime) is in `test_lessons.py`, whose catalogue has such problems.
"""

import numpy as np
import pytest
from catalogue import COMPILED, GRAPHS, OWN_RULES, PROBLEMS, Scaled, advance, begin, job_of

import freewalk as fw
from freewalk.analysis import exact_curve, small_step_law, stability_limit, steady_state
from freewalk.analysis.learning.moments import LANES
from freewalk.designs import MHLJ, Metropolis, SimpleWalk
from freewalk.objectives import LeastSquares, Objective
from freewalk.runtimes import CPU, Reference

GRAPH = GRAPHS["random"]
RELAYING = PROBLEMS["LeastSquares, pooled, relays"]
WALKS = 200_000
RULES = {
    "plain": fw.SGD(0.02),
    "sampled, local steps": fw.SGD(0.02, sampled=True, local_steps=2),
    "unweighted": fw.SGD(0.02, weighted=False),
}


def as_many_samples_as_nodes(n, **options):
    """Node 0 has two samples, the last node none, the others one."""
    drawn = LeastSquares.synthetic(n, dim=5, noise=0.4, seed=8)
    nodes = np.concatenate([[0], np.arange(n - 1)])
    return LeastSquares(drawn.features, drawn.targets, nodes, relays=[n - 1], **options)


WEIGHED = {
    "pooled": LeastSquares(
        RELAYING.features, RELAYING.targets, np.arange(len(RELAYING.targets)) % 16, 0.1, (), "sample"
    ),
    "relays": LeastSquares(RELAYING.features, RELAYING.targets, RELAYING.nodes, 0.1, (), "node", RELAYING.relays),
    "pooled, relays": RELAYING,
    "as many samples as nodes": as_many_samples_as_nodes(16, ridge=0.1),
}


def learned(runtime, problem, rule, steps=40, precision="float64"):
    kernel = MHLJ(0.3, 0.5, 3).kernel(GRAPH, problem.smoothness)
    job = job_of(problem, kernel, rule, precision=precision)
    state = begin(job, 3, steps, 0.5)
    return state, advance(runtime.engine(job), state, [steps], [1, 7, steps])


def small_float(precision):
    return {"rtol": 1e-9, "atol": 1e-12} if precision == "float64" else {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.quick(*(f"{problem}-{rule}-float64" for problem in WEIGHED for rule in RULES))
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("problem", WEIGHED)
def test_runtimes_agree(problem, rule, precision):
    state, measures = learned(Reference(), WEIGHED[problem], RULES[rule], precision=precision)
    for runtime in COMPILED:
        other, found = learned(runtime, WEIGHED[problem], RULES[rule], precision=precision)
        assert np.array_equal(other.paths, state.paths)
        np.testing.assert_allclose(other.models, state.models, **small_float(precision))
        for name in ("loss", "mse", "distance"):
            np.testing.assert_allclose(found[name], measures[name], **small_float(precision))


# Relays.


class Recorded(Objective):
    """A relaying problem that keeps the models it is asked about, for the reference runtime."""

    n, dim, smoothness = RELAYING.n, RELAYING.dim, RELAYING.smoothness

    def loss(self, x):
        return RELAYING.loss(x)

    def samples(self, node):
        return RELAYING.samples(node)

    def gradient(self, node, x, sample=None):
        assert node not in RELAYING.relays
        return RELAYING.gradient(node, x, sample)


def test_a_relay_is_never_asked_for_a_gradient():
    kernel = SimpleWalk().kernel(GRAPH)
    record = fw.learn(Recorded(), kernel, fw.SGD(0.02, sampled=True), steps=60, walks=3, every=60, runtime="reference")
    own = fw.learn(RELAYING, kernel, fw.SGD(0.02, sampled=True), steps=60, walks=3, every=60, runtime="reference")
    assert record.data.visits.values[:, list(RELAYING.relays)].sum() > 0
    assert np.array_equal(record.data.final, own.data.final)


@pytest.mark.quick(
    *(f"{runtime}-{rule}" for runtime in COMPILED for rule in RULES),
    *(f"Reference()-{rule}" for rule in (*RULES, *OWN_RULES)),
)
@pytest.mark.parametrize("rule", [*RULES, *OWN_RULES])
@pytest.mark.parametrize("runtime", [Reference(), *COMPILED], ids=repr)
def test_a_relay_leaves_the_model_exactly_as_it_is(runtime, rule):
    """With ridge, and whatever a rule carries along: a velocity keeps its own time, the model does not move."""
    kernel = MHLJ(0.3, 0.5, 3).kernel(GRAPH, RELAYING.smoothness)
    job = job_of(RELAYING, kernel, (RULES | OWN_RULES)[rule])
    engine, state = runtime.engine(job), begin(job, 9, 60, 0.5)
    moved = stayed = 0
    for step in range(1, 61):
        before, nodes = state.models.copy(), state.nodes.copy()
        advance(engine, state, [step], [step])
        at_relay = np.isin(nodes, RELAYING.relays)
        assert np.array_equal(state.models[at_relay], before[at_relay])
        assert np.isfinite(state.carried).all()
        moved += int((state.models[~at_relay] != before[~at_relay]).any(axis=1).sum())
        stayed += int(at_relay.sum())
    assert stayed > 20
    assert moved > 0.9 * (9 * 60 - stayed)


@pytest.mark.parametrize("runtime", [Reference(), *COMPILED], ids=repr)
def test_an_average_is_the_plain_mean_over_all_steps(runtime):
    kernel = SimpleWalk().kernel(GRAPH)
    options = {"steps": 50, "walks": 2, "seed": 4, "runtime": runtime}
    mean = fw.learn(RELAYING, kernel, fw.SGD(0.02, average=True), every=50, **options).data.final.values
    job = job_of(RELAYING, kernel, fw.SGD(0.02), seed=4)
    engine, state = runtime.engine(job), begin(job, 2, 50)
    state.nodes[:] = fw.walk(kernel, steps=1, walks=2, seed=4, paths=2).data.path.values[:, 0]
    models = []
    for step in range(1, 51):
        advance(engine, state, [step], [step])
        models.append(state.models.copy())
    np.testing.assert_allclose(mean, np.mean(models, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.quick("Reference()")
@pytest.mark.parametrize("runtime", [Reference(), *COMPILED], ids=repr)
def test_a_rule_that_divides_by_what_it_carries_passes_relays(runtime):
    """0 / 0 at a relay that is visited first is nobody's model."""
    kernel = SimpleWalk().kernel(GRAPH)
    data = fw.learn(RELAYING, kernel, Scaled(), steps=40, every=40, start=RELAYING.relays[0], runtime=runtime).data
    assert np.isfinite(data.final).all()
    assert not data.diverged.any()


def test_pooled_walks_reach_the_pooled_optimum_and_equal_walks_the_other():
    pooled, equal = (
        LeastSquares(RELAYING.features, RELAYING.targets, RELAYING.nodes, 0.1, (), by, RELAYING.relays)
        for by in ("sample", "node")
    )
    assert np.linalg.norm(pooled.optimum() - equal.optimum()) > 0.05
    for problem, other in ((pooled, equal), (equal, pooled)):
        kernel = Metropolis(power=1).kernel(GRAPH, problem.smoothness)
        rule = fw.SGD(fw.schedules.Inverse(0.1, scale=100), average=True)
        final = fw.learn(problem, kernel, rule, steps=20_000, walks=20, every=20_000).data.final.values.mean(axis=0)
        assert np.linalg.norm(final - problem.optimum()) < 0.2 * np.linalg.norm(final - other.optimum())


# A record that goes on.


@pytest.mark.quick("LeastSquares, pooled, relays-cpu", "LeastSquares, pooled, relays-reference")
@pytest.mark.parametrize("runtime", ["cpu", "reference"])
@pytest.mark.parametrize("problem", ["LeastSquares, pooled, relays", "Logistic, pooled, relays"])
def test_a_saved_run_goes_on_to_the_same_result(problem, runtime, tmp_path):
    import signal

    def interrupt(step, steps):
        if step < 300:
            signal.raise_signal(signal.SIGINT)

    problem = PROBLEMS[problem]
    kernel = MHLJ(0.3, 0.5, 3).kernel(GRAPH, problem.smoothness)
    options = {"steps": 300, "walks": 3, "every": 7, "seed": 5, "runtime": runtime}
    whole = fw.learn(problem, kernel, fw.SGD(0.01, sampled=True), **options)
    partial = fw.learn(problem, kernel, fw.SGD(0.01, sampled=True), progress=interrupt, **options)
    assert partial.partial
    resumed = fw.resume(fw.load(partial.save(tmp_path / "record.npz")))
    assert not resumed.partial
    for name in ("loss", "distance", "final", "visits", "smoothness"):
        assert np.array_equal(resumed.data[name], whole.data[name]), name


# The analysis.


def written_out(problem, kernel, rule, steps, start):
    """Expected loss and distance from f_v alone: gradients and Hessians by the objective itself, dense matrices."""
    n, d, best = problem.n, problem.dim, problem.optimum()
    weights = kernel.weights if rule.weighted else np.ones(n)
    law = np.eye(n)[start]
    first, second = law[:, None] * -best, law[:, None, None] * np.outer(best, best)
    matrix = kernel.matrix().toarray()
    zero, hessian = problem.loss(best), np.zeros((d, d))
    maps = []
    for v in range(n):
        chosen = range(problem.samples(v)) if rule.sampled and problem.samples(v) else [None]
        parts = []
        for sample in chosen:
            pull = problem.gradient(v, best, sample)
            columns = [problem.gradient(v, best + e, sample) - pull for e in np.eye(d)]
            parts.append((np.array(columns).T, pull))
        maps.append(parts)
        hessian += sum(part[0] for part in parts) / len(parts) / n
    curve = []
    for step in range(steps + 1):
        total = second.sum(axis=0)
        curve.append((zero + 0.5 * np.sum(hessian * total), np.trace(total)))
        for v in range(n):
            rate = rule.rates(np.array([step]))[0] * weights[v]
            for _ in range(rule.local_steps):
                means, seconds = [], []
                for curvature, pull in maps[v]:
                    shrink, shift = np.eye(d) - rate * curvature, -rate * pull
                    moved = shrink @ first[v]
                    cross = np.outer(moved, shift)
                    means.append(moved + law[v] * shift)
                    seconds.append(shrink @ second[v] @ shrink.T + cross + cross.T + law[v] * np.outer(shift, shift))
                first[v], second[v] = np.mean(means, axis=0), np.mean(seconds, axis=0)
        law, first, second = matrix.T @ law, np.tensordot(matrix.T, first, 1), np.tensordot(matrix.T, second, 1)
    return np.array(curve).T


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("problem", WEIGHED)
def test_exact_curves_are_those_of_the_objective(problem, rule):
    problem = WEIGHED[problem]
    kernel = MHLJ(0.3, 0.5, 3).kernel(GRAPH, problem.smoothness)
    curve = exact_curve(problem, kernel, RULES[rule], steps=25, every=1, start=0)
    loss, distance = written_out(problem, kernel, RULES[rule], 25, 0)
    np.testing.assert_allclose(curve.loss, loss, rtol=1e-10)
    np.testing.assert_allclose(curve.distance, distance, rtol=1e-10)


def test_exact_curves_with_a_relay_among_nodes_that_would_learn_side_by_side():
    """As many samples as nodes, no ridge, and more nodes than are learned together: they are not all alike."""
    problem = as_many_samples_as_nodes(LANES + 8)
    kernel = Metropolis(power=1).kernel(fw.graphs.ring(LANES + 8), problem.smoothness)
    curve = exact_curve(problem, kernel, fw.SGD(0.02), steps=15, every=1, start=LANES + 7)
    loss, distance = written_out(problem, kernel, fw.SGD(0.02), 15, LANES + 7)
    np.testing.assert_allclose(curve.loss, loss, rtol=1e-10)
    np.testing.assert_allclose(curve.distance, distance, rtol=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_simulated_walks_follow_the_exact_curve(rule):
    """200,000 walks, within 4.5 standard errors at four marks: with new seeds one of 30,000 runs would fail.

    The curve of the same data with equal weights is more than 10 standard errors away.
    """
    kernel = MHLJ(0.3, 0.5, 3).kernel(GRAPH, RELAYING.smoothness)
    options = {"steps": 40, "every": 10, "start": 1}
    data = fw.learn(RELAYING, kernel, RULES[rule], walks=WALKS, seed=3, runtime=CPU(), **options).data
    mean, error = data.distance.mean("walk").values[1:], data.distance.std("walk").values[1:] / np.sqrt(WALKS)
    curve, other = (exact_curve(one, kernel, RULES[rule], **options) for one in (RELAYING, WEIGHED["relays"]))
    assert (np.abs(curve.distance.values[1:] - mean) / error).max() < 4.5
    assert (np.abs(other.distance.values[1:] - mean) / error).max() > 10


@pytest.mark.quick("pooled, relays-plain", "pooled, relays-sampled")
@pytest.mark.parametrize("rule", [fw.SGD(2e-4), fw.SGD(2e-4, sampled=True)], ids=["plain", "sampled"])
@pytest.mark.parametrize("problem", WEIGHED)
def test_the_small_step_law_agrees_with_the_steady_state(problem, rule):
    problem = WEIGHED[problem]
    kernel = MHLJ(0.5, 0.5, 3, corrected=True).kernel(GRAPH, problem.smoothness)
    law, limit = small_step_law(problem, kernel, rule), steady_state(problem, kernel, rule)
    assert law.applies
    assert law.excess == pytest.approx(limit.excess, rel=0.05)
    assert stability_limit(problem, kernel, rule) > 2e-4


@pytest.mark.parametrize("problem", ["LeastSquares, pooled, relays", "Logistic, pooled, relays"])
def test_the_theory_reads_the_same_losses(problem):
    from freewalk.analysis.theory.premises import losses_of

    problem = PROBLEMS[problem]
    losses = losses_of("test", problem)
    expected = [problem.gradient(node, problem.optimum()) for node in range(problem.n)]
    np.testing.assert_allclose(losses.gradients, expected, rtol=1e-10, atol=1e-13)
    assert np.abs(losses.gradients.mean(axis=0)).max() < 1e-12
    owning = np.flatnonzero(problem.node_weights)
    np.testing.assert_allclose(losses.curvatures[owning, 1], problem.smoothness[owning], rtol=1e-12)
    assert (losses.curvatures[list(problem.relays)] == 0).all()
    assert losses.flatness == "node 0 is a relay, whose loss is 0"
