"""Limits: the steady state is the end of the curve, and the stability limit is where curves stop converging."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import freewalk as fw
from freewalk.analysis import exact_curve, small_step_law, stability_limit, steady_state
from freewalk.analysis.learning.race import race
from freewalk.designs import MHLJ, Centralized, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import AnalysisError

GRAPHS = {
    "5-ring": fw.graphs.ring(5),
    "grid": fw.graphs.grid(3, 5),
    "Barabási–Albert": fw.graphs.barabasi_albert(20, 2, seed=1),
}
DESIGNS = {
    "Metropolis(0)": Metropolis(0.0),
    "Metropolis(1)": Metropolis(1.0),
    "MHLJ": MHLJ(0.3, 0.5, 3),
    "corrected": MHLJ(0.5, 0.5, 3, power=0.5, corrected=True),
    "Centralized": Centralized(1.0),
}
RULES = {
    "plain": {},
    "unweighted": {"weighted": False},
    "sampled": {"sampled": True},
    "local steps": {"local_steps": 2},
}


def setting(graph, design, **options):
    graph = GRAPHS[graph]
    problem = fw.objectives.LeastSquares.synthetic(
        graph.n, **{"dim": 3, "heavy": 2, "heavy_variance": 10.0, "noise": 0.3, "seed": 4, **options}
    )
    return problem, DESIGNS[design].kernel(graph, problem.smoothness)


# Each design by each rule, on one of the graphs, with or without a shift.
@pytest.mark.quick(
    *(
        f"{list(GRAPHS)[(row + column) % 3]}-{design}-{(row + column) % 2 / 2}-{rule}"
        for row, design in enumerate(DESIGNS)
        for column, rule in enumerate(RULES)
    )
)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_steady_state_is_the_limit_of_the_curve(graph, design, shift, rule):
    problem, kernel = setting(graph, design, shift=shift, samples=2 if rule == "sampled" else 1)
    options = RULES[rule]
    step = 0.3 * stability_limit(problem, kernel, fw.SGD(1.0, **options))
    limit = steady_state(problem, kernel, fw.SGD(step, **options))
    ends = exact_curve(problem, kernel, fw.SGD(step, **options), steps=20_000, every=20_000)
    for name in ("loss", "mse", "distance"):
        assert getattr(limit, name) == pytest.approx(ends[name].values[-1], rel=1e-8)
    assert limit.bias + limit.variance == pytest.approx(limit.excess, rel=1e-8)
    assert limit.variance > 0
    best = problem.optimum()
    assert limit.bias == pytest.approx(problem.loss(limit.model) - problem.loss(best), rel=1e-7, abs=1e-14)
    assert np.linalg.eigvalsh(limit.covariance).min() > -1e-12


@pytest.mark.parametrize("options", [{"ridge": 0.3}, {"samples": 3, "ridge": 0.1}, {"dim": 1}], ids=str)
def test_ridge_samples_and_one_feature(options):
    problem, kernel = setting("grid", "MHLJ", shift=0.4, **options)
    step = 0.5 * stability_limit(problem, kernel)
    limit = steady_state(problem, kernel, fw.SGD(step))
    assert limit.loss == pytest.approx(
        exact_curve(problem, kernel, fw.SGD(step), steps=20_000, every=20_000).loss.values[-1], rel=1e-8
    )


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_curves_converge_below_the_stability_limit_and_not_above(graph, design):
    """2 % below, the curve is flat in the end; 2 % above, it has grown beyond any bound."""
    problem, kernel = setting(graph, design, shift=0.5)
    limit = stability_limit(problem, kernel)
    below = exact_curve(problem, kernel, fw.SGD(0.98 * limit), steps=20_000, every=2000).loss.values
    above = exact_curve(problem, kernel, fw.SGD(1.02 * limit), steps=20_000, every=2000).loss.values
    assert below[-1] == pytest.approx(below[-2], rel=1e-6)
    assert above[-1] > 1e6 * below[-1]
    assert above[-1] > above[-2] > above[-3] or np.isinf(above[-1])


def test_both_ways_to_the_spectral_radius_agree(monkeypatch):
    from freewalk.analysis.learning import limits

    problem, kernel = setting("grid", "MHLJ")
    recursion = limits.Recursion("test", problem, kernel, fw.SGD(1.0))
    dense = [limits.spectral_radius(recursion, rate) for rate in (0.001, 0.01, 0.05)]
    monkeypatch.setattr(limits, "_SMALL", 0)
    assert [limits.spectral_radius(recursion, rate) for rate in (0.001, 0.01, 0.05)] == pytest.approx(dense, rel=1e-7)


def test_a_step_of_one_sample_is_stable_up_to_two_over_its_square():
    problem = fw.objectives.LeastSquares([[2.0], [2.0], [2.0]], [1.0, 2.0, 3.0])
    kernel = SimpleWalk().kernel(fw.graphs.ring(3))
    assert stability_limit(problem, kernel) == pytest.approx(2 / 4, rel=1e-4)


def test_a_shared_optimum_without_noise_leaves_no_error():
    problem, kernel = setting("grid", "MHLJ", noise=0.0)
    limit = steady_state(problem, kernel, fw.SGD(0.01))
    assert abs(limit.excess) < 1e-15
    assert limit.model == pytest.approx(problem.optimum(), abs=1e-9)


def test_the_limit_remembers_what_no_feature_sees():
    features = np.zeros((5, 3))
    features[:, :2] = np.random.default_rng(0).standard_normal((5, 2))
    problem = fw.objectives.LeastSquares(features, np.arange(5.0))
    kernel = SimpleWalk().kernel(fw.graphs.ring(5))
    limit = steady_state(problem, kernel, fw.SGD(0.05), initial=[0.0, 0.0, 3.0])
    curve = exact_curve(problem, kernel, fw.SGD(0.05), steps=10_000, every=10_000, initial=[0.0, 0.0, 3.0])
    assert limit.distance == pytest.approx(curve.distance.values[-1], rel=1e-8)
    assert limit.model[2] == pytest.approx(3.0)


@given(seed=st.integers(0, 10_000), shift=st.sampled_from([0.0, 0.4]), power=st.sampled_from([0.0, 0.5, 1.0]))
@settings(derandomize=True, deadline=None, database=None, max_examples=15)
def test_small_steps_follow_the_small_step_law(seed, shift, power):
    graph = fw.graphs.erdos_renyi(15, 0.4, seed=seed)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=2, heavy=2, heavy_variance=4.0, shift=shift, seed=seed)
    kernel = MHLJ(0.3, 0.5, 3, power=power).kernel(graph, problem.smoothness)
    gap = fw.analysis.spectral_gap(kernel)
    step = 1e-3 * gap / problem.smoothness.mean()
    law, limit = small_step_law(problem, kernel, fw.SGD(step)), steady_state(problem, kernel, fw.SGD(step))
    assert law.applies
    assert law.excess == pytest.approx(limit.excess, rel=0.05)
    assert law.variance == pytest.approx(limit.variance, rel=0.05)


@pytest.mark.parametrize("rule", [{"local_steps": 3}, {"sampled": True}, {"sampled": True, "local_steps": 2}], ids=str)
def test_the_small_step_law_knows_local_steps_and_samples(rule):
    problem, kernel = setting("Barabási–Albert", "MHLJ", samples=3, shift=0.3)
    law, limit = (f(problem, kernel, fw.SGD(2e-6, **rule)) for f in (small_step_law, steady_state))
    assert law.variance == pytest.approx(limit.variance, rel=0.02)
    assert law.bias == pytest.approx(limit.bias, rel=0.02)
    assert law.model == pytest.approx(limit.model, rel=0.01)


def test_the_small_step_law_warns_where_the_walk_is_slow():
    graph = fw.graphs.ring(101)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
    kernel = Metropolis(0.0).kernel(graph)
    with pytest.warns(UserWarning, match="steady_state"):
        law = small_step_law(problem, kernel, fw.SGD(2.5e-3))
    assert not law.applies
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert small_step_law(problem, kernel, fw.SGD(1e-7)).applies


def test_the_gap_of_jumps_is_variance_with_a_shared_optimum_and_bias_with_a_shift():
    graph = fw.graphs.ring(301)
    shares = []
    for shift in (0.0, 0.3):
        problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=5, heavy=2, shift=shift, seed=1)
        limit = steady_state(problem, MHLJ(0.5, 0.5, 3).kernel(graph, problem.smoothness), fw.SGD(2.5e-3))
        shares.append(limit.bias / limit.excess)
    assert shares[0] < 0.1
    assert shares[1] > 0.5


def test_a_step_beyond_stability_is_refused_with_the_limit():
    problem, kernel = setting("grid", "MHLJ")
    limit = stability_limit(problem, kernel)
    with pytest.raises(
        AnalysisError, match=r"beyond the largest stable one.*stability_limit\(problem, kernel\) = 0\.\d+"
    ):
        steady_state(problem, kernel, fw.SGD(1.05 * limit))


def test_bad_input_says_what_to_do_instead(monkeypatch):
    problem, kernel = setting("grid", "MHLJ")
    with pytest.raises(AnalysisError, match="LeastSquares"):
        steady_state(fw.objectives.Logistic.synthetic(15), kernel, fw.SGD(0.01))
    with pytest.raises(AnalysisError, match="constant step"):
        steady_state(problem, kernel, fw.SGD(fw.schedules.Inverse(0.1, scale=10)))
    with pytest.raises(AnalysisError, match="without averaging"):
        stability_limit(problem, kernel, fw.SGD(0.1, average=True))
    fading = Decaying(MHLJ(0.3, 0.5, 3), fw.schedules.Inverse(1.0, scale=10)).kernel(GRAPHS["grid"], problem.smoothness)
    with pytest.raises(AnalysisError, match=r"kernel\.at\(step\)"):
        steady_state(problem, fading, fw.SGD(0.01))
    reducible = FromMatrix(np.eye(15), target=np.ones(15)).kernel(GRAPHS["grid"])
    with pytest.raises(fw.FreewalkError, match="parts"):
        steady_state(problem, reducible, fw.SGD(0.001))
    monkeypatch.setattr("freewalk.analysis.chain.chain.DENSE", 10)
    for call in (steady_state, small_step_law):
        with pytest.raises(AnalysisError, match="got 15 nodes, expected at most 10"):
            call(problem, kernel, fw.SGD(0.01))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n", [1, 14, 16, 60])
@pytest.mark.parametrize("call", [steady_state, stability_limit, small_step_law, race], ids=lambda call: call.__name__)
def test_data_of_another_graph_are_refused(call, n, weighted):
    """Compiled code would read beyond its arrays."""
    problem = fw.objectives.LeastSquares(np.ones((n, 2)), np.arange(float(n)))
    kernel = Metropolis(0.0).kernel(GRAPHS["grid"])
    rule = fw.SGD(0.01, weighted=weighted)
    arguments = {"settle": 1.0, "reach": 2.0, "rule": rule} if call is race else {"rule": rule}
    with pytest.raises(fw.FreewalkError, match=f"{n} nodes"):
        call(problem, kernel, **arguments)


@pytest.mark.parametrize("square", [5.5, 5.9, 6.5])
def test_the_first_step_that_diverges_is_found_also_where_larger_ones_converge(square):
    """On two nodes in turn the map is (1 − γ)² (1 − 5.9 γ)², whose radius has a narrow peak above 1."""
    problem = fw.objectives.LeastSquares([[1.0], [square**0.5]], [0.0, 1.0])
    kernel = SimpleWalk().kernel(fw.graphs.path(2))
    limit = stability_limit(problem, kernel)
    steps = np.linspace(0.0, limit, 2001)[1:-1]
    assert np.abs((1 - steps) * (1 - square * steps)).max() <= 1 + 1e-6
    assert abs((1 - 1.001 * limit) * (1 - square * 1.001 * limit)) > 1


def test_what_rounding_would_spoil_is_refused():
    graph = fw.graphs.complete(4)
    problem = fw.objectives.LeastSquares([[1.0], [1.0], [1.0], [1.0]], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(AnalysisError, match="beyond the largest stable one"):
        steady_state(problem, SimpleWalk().kernel(graph), fw.SGD(2.0))
    problem, kernel = setting("grid", "MHLJ")
    with pytest.raises(AnalysisError, match="so small that the limit is lost to rounding"):
        steady_state(problem, kernel, fw.SGD(1e-15))


def test_a_reducible_walk_has_no_stability_limit():
    problem, _ = setting("grid", "MHLJ")
    reducible = FromMatrix(np.eye(15), target=np.ones(15)).kernel(GRAPHS["grid"])
    with pytest.raises(fw.FreewalkError, match="parts"):
        stability_limit(problem, reducible)


@pytest.mark.parametrize("initial", ["x", [1.0], [np.nan, 0.0, 0.0], [[[1.0]]]], ids=str)
def test_a_bad_first_model_is_refused(initial):
    problem, kernel = setting("grid", "MHLJ")
    with pytest.raises(fw.FreewalkError, match="initial"):
        steady_state(problem, kernel, fw.SGD(0.01), initial)
    with pytest.raises(fw.FreewalkError, match="initial"):
        race(problem, kernel, settle=0.1, reach=0.2, initial=initial)


def test_steep_importance_is_solved_at_once_where_iterations_fail():
    graph = fw.graphs.ring(40)
    importance = 10 ** np.random.default_rng(0).uniform(0, 8, graph.n)
    rows = np.random.default_rng(1).standard_normal((graph.n, 3))
    problem = fw.objectives.LeastSquares(rows * np.sqrt(importance / (rows**2).sum(axis=1))[:, None], np.ones(graph.n))
    kernel = Metropolis(1.0).kernel(graph, problem.smoothness)
    step = 0.5 / problem.smoothness.mean()
    limit = steady_state(problem, kernel, fw.SGD(step))
    assert limit.variance > 0
    assert limit.bias + limit.variance == pytest.approx(limit.excess, rel=1e-6)
