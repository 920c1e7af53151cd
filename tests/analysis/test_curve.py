"""Exact curves against the recursion written out in dense matrices, and against each other."""

import numpy as np
import pytest

import freewalk as fw
from freewalk.analysis import exact_curve
from freewalk.analysis.learning.moments import LANES
from freewalk.designs import MHLJ, Centralized, ClosedFormMHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import AnalysisError, FreewalkError

GRAPH = fw.graphs.barabasi_albert(9, 2, seed=4)
LAZY = 0.5 * np.eye(GRAPH.n) + 0.5 * GRAPH.adjacency().toarray() / GRAPH.degrees[:, None]
FADING = fw.schedules.Inverse(1.0, scale=5)
DESIGNS = {
    "SimpleWalk": SimpleWalk(),
    "Metropolis": Metropolis(1.0),
    "proposal": Metropolis(1.0, proposal=LAZY),
    "MHLJ": MHLJ(0.4, 0.5, 4),
    "corrected": MHLJ(0.4, 0.5, 3, corrected=True),
    "closed form": ClosedFormMHLJ(0.4, 0.5, 3),
    "FromMatrix": FromMatrix(LAZY),
    "Centralized": Centralized(1.0),
    "Decaying": Decaying(MHLJ(0.4, 0.5, 3), FADING),
    "Decaying, corrected": Decaying(MHLJ(0.4, 0.5, 3, corrected=True), FADING),
}
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
    "ridge": {"ridge": 0.2},
    "three samples, ridge, shift": {"samples": 3, "ridge": 0.2, "shift": 0.5},
}


def problem_with(**options):
    return fw.objectives.LeastSquares.synthetic(GRAPH.n, **{"dim": 3, "heavy": 2, "noise": 0.4, "seed": 2, **options})


def written_out(problem, kernel, rule, steps, start, initial=None):
    """Expected loss and distance by the formulas, dense matrices throughout; nothing shared with the package."""
    n, d = problem.n, problem.dim
    best = problem.optimum()
    error = (np.zeros(d) if initial is None else np.asarray(initial)) - best
    law = np.zeros(n)
    law[start] = 1.0
    first, second = law[:, None] * error, law[:, None, None] * np.outer(error, error)
    weights = kernel.weights if rule.weighted else np.ones(n)
    curve = []
    for step in range(steps + 1):
        total = second.sum(axis=0)
        slope = np.mean([problem.gradient(v, best) for v in range(n)], axis=0)
        hessian = (problem.features.T * problem.sample_weights) @ problem.features + problem.ridge * np.eye(d)
        loss = problem.loss(best) + slope @ first.sum(axis=0) + 0.5 * np.sum(hessian * total)
        curve.append((loss, np.trace(total)))
        matrix = kernel.matrix(step).toarray()
        for v in range(n):
            rate = rule.rates(np.array([step]))[0] * weights[v]
            own = [slice(k, k + 1) for k in range(problem.offsets[v], problem.offsets[v + 1])]
            parts = own if rule.sampled else [slice(problem.offsets[v], problem.offsets[v + 1])]
            for _ in range(rule.local_steps):
                means, seconds = [], []
                for part in parts:
                    rows, answers = problem.features[part], problem.targets[part]
                    curvature = rows.T @ rows / len(rows) + problem.ridge * np.eye(d)
                    pull = rows.T @ (rows @ best - answers) / len(rows) + problem.ridge * best
                    shrink, shift = np.eye(d) - rate * curvature, -rate * pull
                    moved = shrink @ first[v]
                    means.append(moved + law[v] * shift)
                    cross = np.outer(moved, shift)
                    seconds.append(shrink @ second[v] @ shrink + cross + cross.T + law[v] * np.outer(shift, shift))
                first[v], second[v] = np.mean(means, axis=0), np.mean(seconds, axis=0)
        law = matrix.T @ law
        first, second = np.tensordot(matrix.T, first, 1), np.tensordot(matrix.T, second, 1)
    return np.array(curve)


@pytest.mark.quick(*(f"{list(DATA)[number % 4]}-{design}" for number, design in enumerate(DESIGNS)))
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("data", DATA)
def test_the_recursion_is_that_of_the_formulas(data, design):
    problem = problem_with(**DATA[data])
    kernel = DESIGNS[design].kernel(GRAPH, problem.smoothness)
    for rule in RULES.values():
        curve = exact_curve(problem, kernel, rule, steps=12, start=1, initial=[0.3, -0.2, 0.5])
        expected = written_out(problem, kernel, rule, 12, 1, [0.3, -0.2, 0.5])
        assert np.column_stack([curve.loss, curve.distance]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("rule", ["plain", "local steps", "schedule"])
def test_nodes_that_learn_side_by_side_do_as_they_would_alone(rule):
    graph = fw.graphs.watts_strogatz(2 * LANES + 5, 6, 0.2, seed=1)  # two blocks, and some nodes left over
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=4, heavy=3, noise=0.4, seed=2)
    kernel = MHLJ(0.4, 0.5, 3).kernel(graph, problem.smoothness)
    curve = exact_curve(problem, kernel, RULES[rule], steps=12, start=LANES - 1)
    expected = written_out(problem, kernel, RULES[rule], 12, LANES - 1)
    assert np.column_stack([curve.loss, curve.distance]) == pytest.approx(expected, rel=1e-10)


def test_mse_is_twice_the_loss_without_ridge():
    problem = problem_with(samples=2)
    curve = exact_curve(problem, SimpleWalk().kernel(GRAPH), fw.SGD(0.01), steps=20)
    assert curve.mse.values == pytest.approx(2 * curve.loss.values, rel=1e-12)
    ridged = problem_with(ridge=0.5)
    curve = exact_curve(ridged, SimpleWalk().kernel(GRAPH), fw.SGD(0.01), steps=20)
    assert curve.mse.values[0] == pytest.approx(ridged.mse(np.zeros(3)))
    assert curve.loss.values[0] == pytest.approx(ridged.loss(np.zeros(3)))


def test_phases_switch_kernel_and_rule_and_blocks_do_not_matter():
    problem = problem_with()
    first, second = (DESIGNS[name].kernel(GRAPH, problem.smoothness) for name in ("MHLJ", "Metropolis"))
    phases = [fw.Phase(700, first, fw.SGD(0.01)), fw.Phase(None, second, fw.SGD(0.002))]
    curve = exact_curve(problem, phases, steps=1401, every=100, start=0)
    before = exact_curve(problem, first, fw.SGD(0.01), steps=700, every=700, start=0)
    assert curve.loss.sel(step=700).item() == before.loss.values[-1]
    assert curve.label == f"{first.label} → {second.label}"
    switched = fw.schedules.Constant(0.01)
    same = [fw.Phase(3, first, fw.SGD(switched)), fw.Phase(None, first, fw.SGD(0.01))]
    split = exact_curve(problem, same, steps=700, every=700, start=0)
    assert split.loss.values == pytest.approx(before.loss.values, rel=1e-13)
    assert split.messages.values == pytest.approx(before.messages.values, rel=1e-13)


@pytest.mark.long
def test_visits_messages_and_probes_are_those_of_many_walks():
    """A probability of failing of about 1e-4 with new seeds: each number has five standard errors."""
    problem = problem_with()
    for design in ("corrected", "Decaying", "closed form"):
        kernel = DESIGNS[design].kernel(GRAPH, problem.smoothness)
        curve = exact_curve(problem, kernel, fw.SGD(0.01), steps=50, every=50, start=2)
        data = fw.learn(problem, kernel, fw.SGD(0.01), steps=50, every=50, start=2, walks=20_000, seed=3).data
        for exact, seen in (
            (curve.messages[-1].item(), data.messages[:, -1]),
            (curve.probes[-1].item(), data.probes[:, -1]),
            *((curve.visits[v].item(), data.visits[:, v]) for v in range(GRAPH.n)),
        ):
            error = max(float(seen.std()) / np.sqrt(20_000), 1e-9)
            assert abs(float(seen.mean()) - exact) < 5 * error
        assert curve.visits.sum().item() == pytest.approx(50)


def test_starts_are_nodes_laws_and_their_mixtures():
    problem, kernel = problem_with(), SimpleWalk().kernel(GRAPH)

    def losses(start):
        return exact_curve(problem, kernel, fw.SGD(0.01), steps=5, start=start).loss.values

    each = np.mean([losses(v) for v in range(GRAPH.n)], axis=0)
    assert losses("uniform") == pytest.approx(each, rel=1e-12)
    assert losses(np.arange(GRAPH.n)) == pytest.approx(each, rel=1e-12)
    assert losses(np.full(GRAPH.n, 1 / GRAPH.n)) == pytest.approx(each, rel=1e-12)
    assert losses([0, 0, 1]) == pytest.approx((2 * losses(0) + losses(1)) / 3, rel=1e-12)


def test_what_no_feature_sees_never_changes():
    features = np.zeros((GRAPH.n, 3))
    features[:, :2] = np.random.default_rng(0).standard_normal((GRAPH.n, 2))
    problem = fw.objectives.LeastSquares(features, np.arange(GRAPH.n, dtype=float))
    kernel = SimpleWalk().kernel(GRAPH)
    curve = exact_curve(problem, kernel, fw.SGD(0.05), steps=3000, every=3000, initial=[1.0, 2.0, 5.0])
    seen = fw.learn(problem, kernel, fw.SGD(0.05), steps=3000, every=3000, initial=[1.0, 2.0, 5.0], walks=2000).data
    error = float(seen.distance[:, -1].std()) / np.sqrt(2000)
    assert curve.distance.values[-1] > 25
    assert abs(float(seen.distance[:, -1].mean()) - curve.distance.values[-1]) < 5 * error


def test_a_step_that_diverges_gives_growing_and_then_infinite_values():
    problem, kernel = problem_with(), SimpleWalk().kernel(GRAPH)
    values = exact_curve(problem, kernel, fw.SGD(5.0), steps=2000, every=100).loss.values
    assert values[1] > 1e10
    assert np.isinf(values[-1])
    assert not np.isnan(values).any()


BAD = {
    "logistic": (lambda p, k: exact_curve(fw.objectives.Logistic.synthetic(GRAPH.n), k, fw.SGD(0.1)), "LeastSquares"),
    "average": (lambda p, k: exact_curve(p, k, fw.SGD(0.1, average=True)), "without averaging"),
    "no rule": (lambda p, k: exact_curve(p, k), "expected an update rule"),
    "start": (lambda p, k: exact_curve(p, k, fw.SGD(0.1), start="heavy"), "start = 'heavy', expected a node"),
    "node": (
        lambda p, k: exact_curve(p, k, fw.SGD(0.1), start=99),
        "start = 99, expected a whole number from 0 to 8",
    ),
    "law": (lambda p, k: exact_curve(p, k, fw.SGD(0.1), start=np.ones(GRAPH.n)), "add up to 1"),
    "steps": (
        lambda p, k: exact_curve(p, k, fw.SGD(0.1), steps=0),
        "exact_curve: steps = 0, expected a whole number >= 1",
    ),
    "other graph": (lambda p, k: exact_curve(p, SimpleWalk().kernel(fw.graphs.ring(5)), fw.SGD(0.1)), "9 nodes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_says_what_is_wrong(name):
    call, words = BAD[name]
    with pytest.raises(FreewalkError, match=words):
        call(problem_with(), SimpleWalk().kernel(GRAPH))


def test_too_many_numbers_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr("freewalk.analysis.learning.model.LARGEST", 50)
    with pytest.raises(AnalysisError, match=r"9 nodes and 3 features make a state of 90 numbers.*fw\.learn"):
        exact_curve(problem_with(), SimpleWalk().kernel(GRAPH), fw.SGD(0.1))
