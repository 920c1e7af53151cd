"""Exact learning of walks that avoid to step back, against the recursion on pairs of nodes in dense matrices."""

import numpy as np
import pytest
from pairs import designs_on, importance_of, kernels_on, small_graph, written_out
from walks import problem_with

import freewalk as fw
from freewalk.analysis import exact_curve, matched_steps, race, small_step_law, stability_limit, steady_state
from freewalk.analysis.chain.chain import states_and_matrix
from freewalk.analysis.learning.moments import turn
from freewalk.analysis.learning.recursion import Recursion
from freewalk.designs import Metropolis, NonBacktracking, SimpleWalk
from freewalk.jobs.phase import Phase

GRAPH = fw.graphs.barabasi_albert(9, 2, seed=4)
RULES = {
    "plain": fw.SGD(0.02),
    "unweighted": fw.SGD(0.02, weighted=False),
    "local steps": fw.SGD(0.02, local_steps=3),
    "sampled": fw.SGD(0.02, sampled=True, local_steps=2),
    "schedule": fw.SGD(fw.schedules.Inverse(0.05, scale=3)),
}
DATA = {
    "one sample": {},
    "three samples": {"samples": 3},
    "three samples, ridge, shift": {"samples": 3, "ridge": 0.2, "shift": 0.5},
}


def data(**options):
    return fw.objectives.LeastSquares.synthetic(GRAPH.n, **{"dim": 3, "heavy": 2, "noise": 0.4, "seed": 2, **options})


def map_of(problem, weights, rule, rate, node):
    """The map z ⊗ z → E[z' ⊗ z'] of an update at a node, with z = (1, x − x*), as a matrix."""
    best, d = problem.optimum(), problem.dim
    first, last = problem.offsets[node], problem.offsets[node + 1]
    samples = [[one] for one in range(first, last)] if rule.sampled else [list(range(first, last))]
    parts = []
    for chosen in samples:
        features, targets = problem.features[chosen], problem.targets[chosen]
        hessian = features.T @ features / len(chosen) + problem.ridge * np.eye(d)
        slope = hessian @ best - features.T @ targets / len(chosen)
        update = np.eye(d + 1)
        update[1:, 0], update[1:, 1:] = -rate * weights[node] * slope, np.eye(d) - rate * weights[node] * hessian
        parts.append(np.kron(update, update))
    return np.linalg.matrix_power(np.mean(parts, axis=0), rule.local_steps)


def curve_written_out(problem, phases, start, initial=None):
    """By step: distance, loss and expected messages; and the visits by node. `phases` are (kernel, rule, steps)."""
    best, d, n = problem.optimum(), problem.dim, problem.n
    z = np.append(1.0, (np.zeros(d) if initial is None else initial) - best)
    state, visits, sent = start[:, None] * np.kron(z, z), np.zeros(n), 0.0
    found = [(state.sum(axis=0), sent)]
    step = 0
    for kernel, rule, steps in phases:
        weights = problem.node_weights * (kernel.weights if rule.weighted else 1.0)
        if kernel.memory is None:
            turns, shares = kernel.matrix().toarray(), np.ones(n)
            nodes = np.arange(n)
        else:
            turns, pairs, shares = written_out(kernel)
            nodes = np.array([i for i, _ in pairs])
        rows = shares[:, None] * state[nodes]  # a phase begins without a past
        away = (turns * (nodes[:, None] != nodes)).sum(axis=1)
        for rate in rule.rates(np.arange(step, step + steps)):
            visits += np.bincount(nodes, rows[:, 0], n)
            sent += away @ rows[:, 0]
            maps = np.array([map_of(problem, weights, rule, rate, node) for node in range(n)])
            rows = turns.T @ np.einsum("vij,vj->vi", maps[nodes], rows)
            found.append((rows.sum(axis=0), sent))
        state, step = np.array([rows[nodes == node].sum(axis=0) for node in range(n)]), step + steps
    curve = []
    for moments, messages in found:
        moments = moments.reshape(d + 1, d + 1)
        hessian = (problem.features.T * problem.sample_weights) @ problem.features + problem.ridge * np.eye(d)
        loss = problem.loss(best) + 0.5 * np.sum(hessian * moments[1:, 1:])
        curve.append((np.trace(moments[1:, 1:]), loss, messages))
    return np.array(curve).T, visits


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("options", DATA.values(), ids=DATA)
@pytest.mark.parametrize("design", designs_on(GRAPH, 1))
def test_exact_curves_equal_the_recursion_written_out(design, options, rule):
    problem, forget = data(**options), 0.25 * (len(design) % 2)
    kernel = NonBacktracking(designs_on(GRAPH, 1)[design], forget).kernel(GRAPH, importance_of(GRAPH, 1, 2))
    start = np.random.default_rng(1).dirichlet(np.ones(GRAPH.n))
    curve = exact_curve(problem, kernel, rule, steps=12, start=start, initial=[0.5, -0.2, 0.1])
    found, visits = curve_written_out(problem, [(kernel, rule, 12)], start, [0.5, -0.2, 0.1])
    for name, values in zip(("distance", "loss", "messages"), found, strict=True):
        assert curve[name].values == pytest.approx(values, rel=1e-10), name
    assert curve.visits.values == pytest.approx(visits, rel=1e-10)


def test_a_phase_begins_without_a_past():
    problem, importance = data(), importance_of(GRAPH, 1, 2)
    kernels = [design.kernel(GRAPH, importance) for design in (NonBacktracking(SimpleWalk()), Metropolis(power=1))]
    kernels += [NonBacktracking(Metropolis(power=0.5), 0.1).kernel(GRAPH, importance)] * 2
    rules, ends = [fw.SGD(0.02), fw.SGD(0.01), fw.SGD(0.03), fw.SGD(0.03)], (5, 8, 12, None)
    phases = [Phase(*one) for one in zip(ends, kernels, rules, strict=True)]
    curve = exact_curve(problem, phases, steps=20, start=3)
    start = np.eye(GRAPH.n)[3]
    found, visits = curve_written_out(problem, list(zip(kernels, rules, (5, 3, 4, 8), strict=True)), start)
    assert curve.distance.values == pytest.approx(found[0], rel=1e-10)
    assert curve.messages.values == pytest.approx(found[2], rel=1e-10)
    assert curve.visits.values == pytest.approx(visits, rel=1e-10)
    whole = exact_curve(problem, [Phase(None, kernels[2], rules[2])], steps=20, start=3)
    halves = exact_curve(
        problem, [Phase(12, kernels[2], rules[2]), Phase(None, kernels[2], rules[2])], steps=20, start=3
    )
    assert whole.distance.values[:14] == pytest.approx(halves.distance.values[:14], rel=1e-12)
    assert abs(whole.distance.values[-1] / halves.distance.values[-1] - 1) > 1e-6


@pytest.mark.parametrize("seed", range(24))
def test_the_running_sums_are_the_matrix(seed):
    graph = small_graph(seed)
    for kernel in kernels_on(graph, seed):
        states, matrix = states_and_matrix("test", kernel)
        rows = np.random.default_rng(seed).uniform(size=(states.nodes.size, 3))
        out = np.full_like(rows, np.nan)
        turn(states.turns, rows, out, np.zeros(3))  # not compiled
        assert out == pytest.approx(matrix.T @ rows, rel=1e-12, abs=1e-14)


def fixed_point(problem, kernel, rule, rate):
    """The steady moments on pairs, by a dense linear system, and the largest growth factor of second moments."""
    turns, pairs, shares = written_out(kernel)
    nodes, d = np.array([i for i, _ in pairs]), problem.dim
    law, width = shares * np.asarray(kernel.target)[nodes], (d + 1) ** 2
    maps = [map_of(problem, kernel.weights * problem.node_weights, rule, rate, node) for node in range(problem.n)]
    whole = np.block([[turns[s, t] * maps[nodes[s]] for s in range(law.size)] for t in range(law.size)])
    # The first number of each row is known: the share of its pair. The rest is the solution of a linear system.
    known = np.arange(law.size) * width
    rest = np.setdiff1d(np.arange(law.size * width), known)
    system = np.eye(rest.size) - whole[np.ix_(rest, rest)]
    state = np.zeros(law.size * width)
    state[known], state[rest] = law, np.linalg.solve(system, whole[np.ix_(rest, known)] @ law)
    moments = state.reshape(law.size, d + 1, d + 1).sum(axis=0)
    places = [row * width + (1 + i) * (d + 1) + 1 + j for row in range(law.size) for i in range(d) for j in range(d)]
    growth = np.abs(np.linalg.eigvals(whole[np.ix_(places, places)])).max()
    return np.trace(moments[1:, 1:]), growth


@pytest.mark.parametrize("forget", [0.0, 0.3])
@pytest.mark.parametrize("name", ["ring, uniform", "ring", "path of two", "star"])
def test_steady_states_equal_the_fixed_point_written_out(name, forget):
    graph = {"path of two": fw.graphs.path(2), "star": fw.graphs.star(4)}.get(name, fw.graphs.ring(4))
    problem = problem_with(importance_of(graph, 3, 1))
    design = SimpleWalk() if name == "ring, uniform" else Metropolis(power=1)
    kernel, rule = NonBacktracking(design, forget).kernel(graph, problem.smoothness), fw.SGD(0.05)
    distance, growth = fixed_point(problem, kernel, rule, 0.05)
    assert steady_state(problem, kernel, rule).distance == pytest.approx(distance, rel=1e-10)
    limit = stability_limit(problem, kernel)
    assert fixed_point(problem, kernel, rule, limit)[1] == pytest.approx(1, abs=1e-4)
    assert growth < 1


@pytest.mark.parametrize("start", [0, "uniform"])
def test_on_a_ring_with_two_directions_the_steady_state_is_the_mean_over_time(start):
    graph = fw.graphs.ring(5)
    problem = problem_with(importance_of(graph, 3, 1))
    kernel, rule = NonBacktracking(SimpleWalk()).kernel(graph), fw.SGD(0.1)
    curve = exact_curve(problem, kernel, rule, steps=2000, start=start)
    assert curve.loss.values[-5:].mean() == pytest.approx(steady_state(problem, kernel, rule).loss, rel=1e-10)
    if start == 0:  # each direction visits the nodes in its own order, for ever
        assert np.ptp(curve.loss.values[-5:]) > 1e-6


def test_a_race_ends_where_the_exact_curve_reaches_the_goal():
    problem = data()
    kernel = NonBacktracking(Metropolis(power=0.5)).kernel(GRAPH, problem.smoothness)
    best = problem.loss(problem.optimum())
    found = race(problem, kernel, settle=best / 4, reach=best / 2, start=0)
    curve = exact_curve(problem, kernel, fw.SGD(found.step), steps=2000, start=0)
    first = int(np.argmax(curve.loss.values <= 1.5 * best))
    assert first - 1 - first / 50 <= found.updates <= first + 1 + first / 50
    assert found.messages == pytest.approx(np.interp(found.updates, curve.step, curve.messages), rel=0.02)
    assert found.excess == pytest.approx(steady_state(problem, kernel, fw.SGD(found.step)).excess, rel=1e-6)
    steps = matched_steps(problem, kernel.without_memory(), kernel, limit=found.step)
    assert steps.settled == pytest.approx(steps.excess, rel=2e-3)


def test_small_steps_follow_their_law():
    problem = data(shift=0.3)
    kernel = NonBacktracking(Metropolis(power=0.5), 0.1).kernel(GRAPH, problem.smoothness)
    law, limit = (f(problem, kernel, fw.SGD(1e-4)) for f in (small_step_law, steady_state))
    assert law.applies
    assert law.excess == pytest.approx(limit.excess, rel=0.02)
    assert np.trace(law.noise) < np.trace(small_step_law(problem, kernel.without_memory(), fw.SGD(1e-4)).noise)


def test_a_step_of_the_recursion_costs_as_much_as_its_pairs():
    # A hub of 3000 leaves has nine million transitions between pairs, and six thousand pairs.
    graph = fw.graphs.star(3001)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, seed=1)
    kernel = NonBacktracking(SimpleWalk(), 0.5).kernel(graph)
    curve = exact_curve(problem, kernel, fw.SGD(1e-3), steps=200, every=100)
    assert curve.messages.values.tolist() == pytest.approx([0, 100, 200])
    assert np.isfinite(curve.loss.values).all()


def test_several_tokens_of_a_walk_that_turns_are_independent():
    problem = data()
    kernel = NonBacktracking(Metropolis(power=0.5)).kernel(GRAPH, problem.smoothness)
    one, three = (exact_curve(problem, kernel, fw.SGD(0.01), steps=9, tokens=tokens) for tokens in (1, 3))
    assert three.messages.values == pytest.approx(3 * one.messages.values)
    assert three.visits.values == pytest.approx(3 * one.visits.values)
    recursion = Recursion("test", problem, kernel, fw.SGD(1.0))
    assert recursion.law == pytest.approx(recursion.law @ recursion.matrix, rel=1e-12)
    limit = steady_state(problem, kernel, fw.SGD(0.01), tokens=3)
    assert limit.excess < steady_state(problem, kernel, fw.SGD(0.01)).excess
