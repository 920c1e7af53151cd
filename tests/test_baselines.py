"""The baselines against loops of NumPy, and what is known of their limits."""

import numpy as np
import pytest

import freewalk as fw
from freewalk import baselines
from freewalk.analysis import steady_state

ROUNDS = 200
GRAPHS = {
    "ring": fw.graphs.ring(12),
    "star": fw.graphs.star(9),
    "Watts–Strogatz": fw.graphs.watts_strogatz(20, 4, 0.3, seed=1),
}


@pytest.fixture(params=GRAPHS)
def graph(request):
    return GRAPHS[request.param]


QUICK = pytest.mark.quick("star-reference", *(f"{graph}-cpu" for graph in GRAPHS))


def problem_on(graph):
    return fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, heavy_variance=4.0, noise=0.3, seed=1)


def gradients(problem, x):
    """By node: the gradient of its own loss at its own model."""
    return problem.features * ((problem.features * x).sum(axis=1) - problem.targets)[:, None]


def mixing_matrix(graph):
    """Metropolis weights, written out."""
    weights = np.zeros((graph.n, graph.n))
    for i in range(graph.n):
        for j in graph.neighbours(i):
            weights[i, j] = 1 / (1 + max(graph.degrees[i], graph.degrees[j]))
        weights[i, i] = 1 - weights[i].sum()
    return weights


def assert_same(record, models):
    """The record holds the mean of these models, rounds × nodes × dim, and their distance from it, to 1e-12."""
    problem_means = np.mean(models, axis=1)
    spread = np.mean(np.sum((models - problem_means[:, None]) ** 2, axis=2), axis=1)
    np.testing.assert_allclose(record.data.consensus.values[0], spread, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(record.data.final.values[0], problem_means[-1], rtol=1e-12, atol=1e-12)


@QUICK
def test_decentralized_sgd(graph, runtime):
    problem, step = problem_on(graph), 0.02
    weights, x, models = mixing_matrix(graph), np.zeros((graph.n, 3)), [np.zeros((graph.n, 3))]
    for _ in range(ROUNDS):
        x = weights @ (x - step * gradients(problem, x))
        models.append(x)
    record = baselines.decentralized_sgd(step).learn(problem, graph, steps=ROUNDS, runtime=runtime)
    assert_same(record, np.array(models))
    losses = [problem.loss(np.mean(model, axis=0)) for model in models]
    np.testing.assert_allclose(record.data.loss.values[0], losses, rtol=1e-12)
    sent = np.count_nonzero(weights - np.diag(np.diag(weights)))
    assert np.array_equal(record.data.messages.values[0], sent * np.arange(ROUNDS + 1))
    assert np.array_equal(record.data.bytes.values[0], 3 * 8 * sent * np.arange(ROUNDS + 1))
    assert np.array_equal(record.data.updates, graph.n * np.arange(ROUNDS + 1))


@pytest.mark.long
def test_the_form_of_lian_et_al(graph, runtime):
    problem, step = problem_on(graph), 0.005
    weights, x, mixed = mixing_matrix(graph), np.zeros((graph.n, 3)), [np.zeros((graph.n, 3))]
    for _ in range(ROUNDS):
        x = weights @ x - step * gradients(problem, x)
        mixed.append(weights @ x)
    method = baselines.decentralized_sgd(step, combine_first=True)
    record = method.learn(problem, graph, steps=ROUNDS, runtime=runtime)
    assert_same(record, np.array(mixed))
    np.testing.assert_allclose(record.data.final.values[0], x.mean(axis=0), rtol=1e-12, atol=1e-12)


@QUICK
def test_gradient_tracking(graph, runtime):
    problem, step = problem_on(graph), 0.005
    weights, x, models = mixing_matrix(graph), np.zeros((graph.n, 3)), [np.zeros((graph.n, 3))]
    y, last = np.zeros_like(x), np.zeros_like(x)
    for _ in range(ROUNDS):
        new = gradients(problem, x)
        y, last = y + new - last, new
        x, y = weights @ (x - step * y), weights @ y
        models.append(x)
    record = baselines.gradient_tracking(step).learn(problem, graph, steps=ROUNDS, runtime=runtime)
    assert_same(record, np.array(models))
    sent = np.count_nonzero(weights - np.diag(np.diag(weights)))
    assert int(record.data.bytes[0, -1]) == 2 * 3 * 8 * sent * ROUNDS


@QUICK
def test_fedavg(graph, runtime):
    problem, step, local = problem_on(graph), 0.01, 5
    x, models = np.zeros((graph.n, 3)), [np.zeros((graph.n, 3))]
    for _ in range(ROUNDS):
        for _ in range(local):
            x = x - step * gradients(problem, x)
        x = np.tile(x.mean(axis=0), (graph.n, 1))
        models.append(x)
    record = baselines.fedavg(step, local_steps=local).learn(problem, graph, steps=ROUNDS, runtime=runtime)
    assert_same(record, np.array(models))
    assert int(record.data.messages[0, -1]) == 2 * graph.n * ROUNDS
    assert int(record.data.updates[-1]) == graph.n * local * ROUNDS


@pytest.mark.parametrize("sampling", ["uniform", "importance", "partial"])
def test_centralized_and_minibatch_sgd(sampling):
    """Along the nodes that were drawn, both are the plain loop with weights 1 / (n p_v)."""
    graph, step, batch = GRAPHS["ring"], 0.01, 4
    problem = problem_on(graph)
    law = {"uniform": np.ones(graph.n), "importance": problem.smoothness}.get(sampling)
    if law is None:
        law = 0.5 / graph.n + 0.5 * problem.smoothness / problem.smoothness.sum()
    weights = law.sum() / (graph.n * law)
    methods = {
        1: baselines.centralized_sgd(step, sampling),
        batch: baselines.minibatch_sgd(step, batch, sampling),
    }
    for tokens, method in methods.items():
        record = method.learn(problem, graph, steps=ROUNDS, paths=tokens, start=0)
        x = np.zeros(3)
        for nodes in record.data.path.values.T[:-1]:
            a, y = problem.features[nodes], problem.targets[nodes]
            x = x - step * np.mean(weights[nodes, None] * a * (a @ x - y)[:, None], axis=0)
        np.testing.assert_allclose(record.data.final.values[0], x, rtol=1e-12, atol=1e-12)
        moved = np.count_nonzero(np.diff(record.data.path.values, axis=1))
        assert int(record.data.messages[0, -1]) == moved + (batch * ROUNDS if tokens > 1 else 0)


@pytest.mark.parametrize("local_steps", [1, 3])
def test_fedavg_with_a_share_of_the_nodes(local_steps):
    """Along the nodes that were drawn: local steps of each from the common model, then the mean of their models."""
    graph, step = GRAPHS["ring"], 0.01
    problem, fraction = problem_on(graph), 0.25
    method = baselines.fedavg(step, local_steps, fraction=fraction)
    tokens = round(fraction * graph.n)
    record = method.learn(problem, graph, steps=ROUNDS, paths=tokens)
    assert record.data.path.shape == (tokens, ROUNDS + 1)
    x = np.zeros(3)
    for nodes in record.data.path.values.T[:-1]:
        a, y = problem.features[nodes], problem.targets[nodes]
        own = np.tile(x, (tokens, 1))
        for _ in range(local_steps):
            own = own - step * a * ((a * own).sum(axis=1) - y)[:, None]
        x = own.mean(axis=0)
    np.testing.assert_allclose(record.data.final.values[0], x, rtol=1e-12, atol=1e-12)
    moved = np.count_nonzero(np.diff(record.data.path.values, axis=1))
    assert int(record.data.messages[0, -1]) == moved + tokens * ROUNDS
    assert int(record.data.updates[-1]) == tokens * local_steps * ROUNDS


def test_several_walks_with_and_without_meetings():
    graph, step = GRAPHS["Watts–Strogatz"], 0.02
    problem = problem_on(graph)
    for meet in (False, True):
        method = baselines.multi_walk_sgd(step, tokens=6, meet=meet)
        record = method.learn(problem, graph, steps=ROUNDS, paths=6)
        x, weights = np.zeros((6, 3)), method.kernel(graph, problem).weights
        for nodes in record.data.path.values.T[:-1]:
            a, y = problem.features[nodes], problem.targets[nodes]
            x = x - step * weights[nodes, None] * a * ((a * x).sum(axis=1) - y)[:, None]
            if meet:
                x = np.array([x[nodes == node].mean(axis=0) for node in nodes])
        np.testing.assert_allclose(record.data.final.values[0], x.mean(axis=0), rtol=1e-12, atol=1e-12)


def test_gradient_tracking_reaches_the_optimum_with_a_constant_step(graph):
    problem = problem_on(graph)
    record = baselines.gradient_tracking(0.01).learn(problem, graph, steps=60_000, every=60_000)
    assert float(record.data.distance[0, -1]) < 1e-10**2
    assert float(record.data.consensus[0, -1]) < 1e-10**2


def test_decentralized_sgd_ends_at_its_exact_limit(graph):
    problem = problem_on(graph)
    method = baselines.decentralized_sgd(0.02)
    record = method.learn(problem, graph, steps=20_000, every=20_000)
    kernel = method.kernel(graph, problem)
    limit = steady_state(problem, kernel, method.rule, tokens="nodes", exchange=method.exchange)
    excess = float(record.data.loss[0, -1]) - problem.loss(problem.optimum())
    assert excess > 1e-6
    assert excess == pytest.approx(limit.excess, rel=1e-9)


def test_a_method_says_what_it_is_not():
    with pytest.raises(fw.FreewalkError, match=r"sampling = 'heavy', expected .*importance"):
        baselines.centralized_sgd(0.1, "heavy")
    with pytest.raises(fw.FreewalkError, match="batch = 1, expected"):
        baselines.minibatch_sgd(0.1, batch=1)
    with pytest.raises(fw.FreewalkError, match="Method: design"):
        baselines.Method("mine", fw.SGD(0.1), fw.SGD(0.1))
    assert baselines.fedavg(0.1).with_step(0.2).rule == fw.SGD(0.2, local_steps=10)
    for fraction in (0, 1.5, -0.1, "half", True):
        with pytest.raises(fw.FreewalkError, match="fedavg: fraction"):
            baselines.fedavg(0.1, fraction=fraction)
    graph = GRAPHS["ring"]
    with pytest.raises(fw.FreewalkError, match=r"one token.*; pass tokens=8, or a larger fraction to fedavg"):
        baselines.fedavg(0.1, fraction=1 / graph.n).learn(problem_on(graph), graph, steps=1)
    for tokens in (0.0, 1.5, -0.1, "node", True):
        with pytest.raises(fw.FreewalkError, match="Method: tokens"):
            baselines.Method("mine", fw.designs.SimpleWalk(), fw.SGD(0.1), tokens)
