"""`fw.learn` and `fw.walk`: what they compute, and the record they leave."""

import signal
from dataclasses import dataclass

import numpy as np
import pytest
from catalogue import Centres, Lazy
from scipy.stats import chi2

import freewalk as fw
from freewalk.run.checkpoint import side_by_side

BY_STEP = dict.fromkeys(("loss", "mse", "distance", "messages", "probes", "bytes"), ("walk", "step"))
LEARNED = BY_STEP | {
    "visits": ("walk", "node"),
    "at": ("walk",),
    "final": ("walk", "coordinate"),
    "diverged": ("walk",),
    "smoothness": ("node",),
    "updates": ("step",),
}
WALKED = {name: LEARNED[name] for name in ("messages", "probes", "visits", "at")}
PRECISIONS = ("float64", "float32")


@pytest.fixture(scope="module")
def graph():
    return fw.graphs.ring(12)


@pytest.fixture(scope="module")
def problem():
    return fw.objectives.LeastSquares.synthetic(12, 3, heavy=2, samples=[1, 2, 3] * 4, ridge=0.1, seed=4)


@pytest.fixture(scope="module")
def kernel(graph, problem):
    return fw.designs.MHLJ(jump=0.3, stop=0.5, hops=3).kernel(graph, problem.smoothness)


def dims(record):
    return {str(name): variable.dims for name, variable in record.data.data_vars.items()}


def replay(problem, phases, path, initial, measured):
    """SGD along a path, written out: the reported model after each of the steps in `measured`."""
    x = np.array(initial, dtype=float)
    mean, count, reported = x.copy(), 0, {0: x.copy()}
    for step, node in enumerate(path[:-1]):
        kernel, rule, began = next((k, r, b) for until, k, r, b in phases if until is None or step < until)
        if step == began:
            mean, count = x.copy(), 0
        rate = float(rule.rates(np.array([step]))[0]) * (kernel.weights[node] if rule.weighted else 1.0)
        for _ in range(rule.local_steps):
            rows = problem.nodes == node
            errors = problem.features[rows] @ x - problem.targets[rows]
            x = x - rate * (errors @ problem.features[rows] / rows.sum() + problem.ridge * x)
            count += 1
            mean = mean + (x - mean) / count
        reported[step + 1] = (mean if rule.average else x).copy()
    return np.array([reported[step] for step in measured])


# The record: names, dimensions, checkpoints.


def test_a_record_of_learning_has_exactly_the_documented_variables(problem, kernel, runtime):
    record = fw.learn(problem, kernel, fw.SGD(0.01), steps=20, walks=3, every=10, runtime=runtime)
    assert dims(record) == LEARNED
    assert dict(record.data.sizes) == {"walk": 3, "step": 3, "node": 12, "coordinate": 3}
    assert not record.partial
    assert record.continuation is None
    for name in ("messages", "probes", "visits"):
        assert record.data[name].dtype == np.int64
    for name in ("loss", "mse", "distance", "final"):
        assert record.data[name].dtype == np.float64
    assert record.data.diverged.dtype == bool


def test_paths_are_added_on_request(problem, kernel, runtime):
    record = fw.learn(problem, kernel, fw.SGD(0.01), steps=20, walks=3, every=10, paths=2, runtime=runtime)
    assert dims(record) == LEARNED | {"path": ("kept", "time")}
    assert record.data.path.shape == (2, 21)
    assert record.data.kept.values.tolist() == [0, 1]


def test_a_record_of_walking_has_the_counts_only(kernel, runtime):
    record = fw.walk(kernel, steps=20, walks=3, every=10, runtime=runtime)
    assert dims(record) == WALKED
    assert "optimal_loss" not in record.data.attrs


def test_only_least_squares_has_an_mse(graph, runtime):
    problem = fw.objectives.Logistic.synthetic(12, 4, ridge=0.1, seed=1)
    kernel = fw.designs.SimpleWalk().kernel(graph)
    record = fw.learn(problem, kernel, fw.SGD(0.01), steps=5, runtime=runtime)
    assert dims(record) == {name: d for name, d in LEARNED.items() if name != "mse"}


def test_attributes_say_what_can_be_reached(problem, kernel, runtime):
    record = fw.learn(problem, kernel, fw.SGD(0.01), steps=5, runtime=runtime)
    attrs = record.data.attrs
    assert attrs["optimal_loss"] == pytest.approx(problem.loss(problem.optimum()), rel=1e-12)
    assert attrs["optimal_mse"] == pytest.approx(problem.mse(problem.optimum()), rel=1e-12)
    assert list(attrs["heavy"]) == [0, 1]
    assert attrs["label"] == record.label == "MHLJ(jump=0.3, stop=0.5, hops=3, power=1.0, corrected=False)"
    assert np.array_equal(record.data.smoothness, problem.smoothness)


@pytest.mark.parametrize(
    ("steps", "every", "expected"),
    [
        (10, 1, list(range(11))),
        (10, 3, [0, 3, 6, 9, 10]),
        (10, 5, [0, 5, 10]),
        (10, 100, [0, 10]),
        (1, 1, [0, 1]),
        (200, 64, [0, 64, 128, 192, 200]),
    ],
)
def test_checkpoints_are_the_multiples_of_every_and_the_last_step(problem, kernel, runtime, steps, every, expected):
    learned = fw.learn(problem, kernel, fw.SGD(0.01), steps=steps, every=every, runtime=runtime)
    walked = fw.walk(kernel, steps=steps, every=every, runtime=runtime)
    assert learned.data.step.values.tolist() == expected
    assert walked.data.step.values.tolist() == expected


def test_counts_may_be_numpy_integers(problem, kernel, runtime):
    whole = np.int32(4)
    record = fw.learn(
        problem, kernel, fw.SGD(0.01), steps=whole, walks=whole, every=whole, start=whole, seed=whole, runtime=runtime
    )
    assert dict(record.data.sizes) == {"walk": 4, "step": 2, "node": 12, "coordinate": 3}


def test_starts_may_be_anything_that_numpy_makes_an_array_of(problem, kernel, runtime):
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return np.array([4, 1])

    record = fw.walk(kernel, steps=1, walks=2, start=Foreign(), paths=2, runtime=runtime)
    assert record.data.path.values[:, 0].tolist() == [4, 1]


# What is measured.


def test_step_zero_is_the_initial_model(problem, kernel, runtime):
    initial = np.array([0.3, -0.2, 0.5])
    record = fw.learn(problem, kernel, fw.SGD(0.01), steps=5, walks=2, initial=initial, runtime=runtime)
    first = record.data.isel(step=0)
    np.testing.assert_allclose(first.loss, problem.loss(initial), rtol=1e-12)
    np.testing.assert_allclose(first.mse, problem.mse(initial), rtol=1e-12)
    np.testing.assert_allclose(first.distance, np.sum((initial - problem.optimum()) ** 2), rtol=1e-12)
    assert not first.messages.any()
    assert not first.probes.any()


def test_loss_has_the_half_and_the_ridge_and_mse_has_neither(problem, kernel, runtime):
    record = fw.learn(problem, kernel, fw.SGD(0.01), steps=40, walks=3, every=40, runtime=runtime)
    # The optimum, by its own equations: Σ_v A_vᵀA_v/(n m_v) + ridge.
    matrix, right = problem.ridge * np.eye(3), np.zeros(3)
    for node in range(problem.n):
        rows = problem.nodes == node
        matrix += problem.features[rows].T @ problem.features[rows] / (problem.n * rows.sum())
        right += problem.features[rows].T @ problem.targets[rows] / (problem.n * rows.sum())
    optimum = np.linalg.solve(matrix, right)
    for walk in range(3):
        x = record.data.final.values[walk]
        squares = []
        for node in range(problem.n):
            rows = problem.nodes == node
            squares.append(np.mean((problem.targets[rows] - problem.features[rows] @ x) ** 2))
        last = record.data.isel(walk=walk, step=-1)
        assert float(last.mse) == pytest.approx(np.mean(squares), rel=1e-10)
        assert float(last.loss) == pytest.approx(0.5 * np.mean(squares) + 0.5 * 0.1 * x @ x, rel=1e-10)
        assert float(last.distance) == pytest.approx(np.sum((x - optimum) ** 2), rel=1e-8)


def test_one_update_then_one_move_by_hand(runtime):
    # Two nodes, so the walk alternates; f_0 = ½(x − 3)², f_1 = ½(2x − 4)², both weights 1.
    problem = fw.objectives.LeastSquares([[1.0], [2.0]], [3.0, 4.0])
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.path(2))
    record = fw.learn(problem, kernel, fw.SGD(0.1), steps=3, start=0, paths=1, runtime=runtime)
    # x: 0 → 0 − .1·(0 − 3)·1 = .3 → .3 − .1·(.6 − 4)·2 = .98 → .98 − .1·(.98 − 3)·1 = 1.182
    iterates = np.array([0.0, 0.3, 0.98, 1.182])
    mse = ((iterates - 3) ** 2 + (2 * iterates - 4) ** 2) / 2
    np.testing.assert_allclose(record.data.mse[0], mse, rtol=1e-12)
    np.testing.assert_allclose(record.data.loss[0], mse / 2, rtol=1e-12)
    np.testing.assert_allclose(record.data.final[0], [1.182], rtol=1e-12)
    assert record.data.path.values.tolist() == [[0, 1, 0, 1]]
    assert record.data.visits.values.tolist() == [[2, 1]]
    assert record.data["at"].values.tolist() == [1]
    assert record.data.messages.values.tolist() == [[0, 1, 2, 3]]


def test_weights_of_the_simple_walk_by_hand(runtime):
    # A path of three: target (1, 2, 1)/4, weights (4/3, 2/3, 4/3). From node 0 the first move goes to node 1.
    problem = fw.objectives.LeastSquares([[1.0], [2.0], [1.0]], [3.0, 4.0, 1.0])
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.path(3))
    arguments = {"steps": 2, "start": 0, "runtime": runtime}
    first = 0.0 - 0.3 * (4 / 3) * (0.0 - 3) * 1
    second = first - 0.3 * (2 / 3) * (2 * first - 4) * 2
    weighted = fw.learn(problem, kernel, fw.SGD(0.3), **arguments)
    assert float(weighted.data.final[0, 0]) == pytest.approx(second, rel=1e-12)
    first = 0.0 - 0.3 * (0.0 - 3) * 1
    second = first - 0.3 * (2 * first - 4) * 2
    plain = fw.learn(problem, kernel, fw.SGD(0.3, weighted=False), **arguments)
    assert float(plain.data.final[0, 0]) == pytest.approx(second, rel=1e-12)


@pytest.mark.parametrize(
    "rule",
    [
        fw.SGD(0.02),
        fw.SGD(0.02, weighted=False),
        fw.SGD(0.02, local_steps=3),
        fw.SGD(0.02, average=True),
        fw.SGD(0.02, average=True, local_steps=2),
        fw.SGD(fw.schedules.Inverse(0.05, scale=10)),
    ],
    ids=repr,
)
def test_models_are_those_of_the_rule_along_the_path(problem, kernel, runtime, rule):
    record = fw.learn(problem, kernel, rule, steps=150, walks=2, every=7, paths=2, seed=5, runtime=runtime)
    for walk in range(2):
        path = record.data.path.values[walk]
        models = replay(problem, [(None, kernel, rule, 0)], path, np.zeros(3), record.data.step.values)
        np.testing.assert_allclose(record.data.loss[walk], [problem.loss(x) for x in models], rtol=1e-9)
        np.testing.assert_allclose(record.data.final[walk], models[-1], rtol=1e-9)


def test_messages_and_probes_never_fall(graph, problem, runtime):
    corrected = fw.designs.MHLJ(jump=0.5, stop=0.5, hops=3, corrected=True).kernel(graph, problem.smoothness)
    data = fw.walk(corrected, steps=200, walks=4, runtime=runtime).data
    assert (data.messages.diff("step") >= 0).all()
    assert (data.probes.diff("step") >= 0).all()
    assert (data.messages.isel(step=-1) > 0).all()
    assert (data.probes.isel(step=-1) > 0).all()


def test_a_single_hop_sends_one_message_when_it_leaves_and_no_probe(graph, problem, runtime):
    metropolis = fw.designs.Metropolis(power=1).kernel(graph, problem.smoothness)
    data = fw.walk(metropolis, steps=200, walks=2, paths=2, start=0, runtime=runtime).data
    left = data.path.values[:, 1:] != data.path.values[:, :-1]
    assert 0 < left.mean() < 1
    assert np.array_equal(data.messages.values[:, 1:], np.cumsum(left, axis=1))
    assert not data.probes.any()


# Starts, initial models, seeds.


def test_start_is_a_node_or_a_node_a_walk(kernel, runtime):
    one = fw.walk(kernel, steps=3, walks=3, start=7, paths=3, runtime=runtime)
    each = fw.walk(kernel, steps=3, walks=3, start=[2, 0, 11], paths=3, runtime=runtime)
    assert one.data.path.values[:, 0].tolist() == [7, 7, 7]
    assert each.data.path.values[:, 0].tolist() == [2, 0, 11]


def test_uniform_start_is_uniform():
    # Under the null hypothesis the statistic exceeds the limit with probability 1e-4; the seed is fixed.
    n, walks = 10, 20_000
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(n))
    visits = fw.walk(kernel, steps=1, walks=walks, seed=11).data.visits
    assert (visits.sum("node") == 1).all()

    def statistic(counts):
        return float(np.sum((counts - walks / n) ** 2) / (walks / n))

    limit = chi2.isf(1e-4, n - 1)
    counts = visits.sum("walk").values
    assert statistic(counts) < limit
    # Power: one node that is chosen 20 % too often is caught, at the cost of its neighbour.
    planted = counts.copy()
    planted[0], planted[1] = planted[0] + 400, planted[1] - 400
    assert statistic(planted) > limit


def test_initial_models_for_all_walks_or_for_each(problem, kernel, runtime):
    each = np.arange(6.0).reshape(2, 3) / 10
    apart = [fw.learn(problem, kernel, fw.SGD(0.01), steps=9, walks=2, initial=x, runtime=runtime) for x in each]
    before = each.copy()
    together = fw.learn(problem, kernel, fw.SGD(0.01), steps=9, walks=2, initial=each, runtime=runtime)
    assert np.array_equal(each, before)
    for walk in range(2):
        assert np.array_equal(together.data.loss[walk], apart[walk].data.loss[walk])
    zero = fw.learn(problem, kernel, fw.SGD(0.01), steps=9, walks=2, runtime=runtime)
    zeros = fw.learn(problem, kernel, fw.SGD(0.01), steps=9, walks=2, initial=[0, 0, 0], runtime=runtime)
    assert zero.data.identical(zeros.data)


def test_a_seed_gives_one_result(problem, kernel, runtime):
    arguments = {"steps": 100, "walks": 3, "every": 10, "paths": 3, "runtime": runtime}
    first = fw.learn(problem, kernel, fw.SGD(0.01), seed=3, **arguments)
    again = fw.learn(problem, kernel, fw.SGD(0.01), seed=3, **arguments)
    other = fw.learn(problem, kernel, fw.SGD(0.01), seed=4, **arguments)
    assert first.data.identical(again.data)
    assert not np.array_equal(first.data.path, other.data.path)


def test_a_walk_does_not_depend_on_how_many_there_are(problem, kernel, runtime):
    arguments = {"steps": 100, "every": 10, "seed": 3, "runtime": runtime}
    few = fw.learn(problem, kernel, fw.SGD(0.01), walks=3, paths=3, **arguments)
    many = fw.learn(problem, kernel, fw.SGD(0.01), walks=37, paths=3, **arguments)
    assert few.data.identical(many.data.isel(walk=slice(3)))
    assert len(np.unique(few.data.path, axis=0)) == 3


def test_learning_does_not_change_the_path(problem, kernel, runtime):
    arguments = {"steps": 100, "walks": 3, "every": 10, "seed": 3, "paths": 3, "runtime": runtime}
    learned = fw.learn(problem, kernel, fw.SGD(0.01), **arguments).data
    walked = fw.walk(kernel, **arguments).data
    for name in ("path", "visits", "messages", "probes", "at"):
        assert np.array_equal(learned[name], walked[name]), name


# Paths and visits.


def test_paths_agree_with_visits_and_with_the_last_node(graph, kernel, runtime):
    data = fw.walk(kernel, steps=300, walks=5, paths=5, seed=2, runtime=runtime).data
    for walk in range(5):
        path = data.path.values[walk]
        # A node is visited when it updates: the last one has not done so yet.
        assert np.array_equal(np.bincount(path[:-1], minlength=graph.n), data.visits[walk])
        assert path[-1] == data["at"][walk]
    assert (data.visits.sum("node") == 300).all()


def test_chosen_paths_are_those_of_the_chosen_walks(kernel, runtime):
    arguments = {"steps": 50, "walks": 6, "seed": 2, "runtime": runtime}
    whole = fw.walk(kernel, paths=6, **arguments).data.path
    some = fw.walk(kernel, paths=[4, 0, 2], **arguments).data.path
    assert sorted(some.kept.values.tolist()) == [0, 2, 4]
    for walk in (0, 2, 4):
        assert np.array_equal(some.sel(kept=walk), whole.sel(kept=walk))


@pytest.mark.parametrize("runtime", ["cpu", "reference", fw.runtimes.CPU(threads=2)], ids=repr)
def test_visits_are_summed_over_walks_where_they_would_be_large(kernel, monkeypatch, runtime):
    arguments = {"steps": 30, "walks": 40, "seed": 2, "runtime": runtime}
    each = fw.walk(kernel, **arguments).data.visits
    monkeypatch.setattr("freewalk.jobs.job._VISITS_BY_WALK", 40 * 12 - 1)
    summed = fw.walk(kernel, **arguments).data.visits
    assert summed.dims == ("node",)
    assert np.array_equal(summed, each.sum("walk"))


# Divergence, missing optima, precision.


def test_a_diverged_walk_is_flagged_and_keeps_its_values(runtime):
    # Node 0 is so heavy that one update there throws the model out of range. In 10 steps walk 1 does not get there.
    features = np.ones((40, 1))
    features[0] = 1e80
    problem = fw.objectives.LeastSquares(features, features[:, 0])
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(40))
    rule = fw.SGD(0.1, weighted=False)
    record = fw.learn(problem, kernel, rule, steps=10, walks=2, start=[0, 20], runtime=runtime)
    assert record.data.diverged.values.tolist() == [True, False]
    assert not np.isfinite(record.data.loss.values[0, 1:]).any()
    assert np.isfinite(record.data.final.values[1]).all()
    assert record.data.step.size == 11
    assert not np.isfinite(record.data.mse.mean("walk").values[-1])  # it does not silently leave a mean


def noisy(noise):
    return fw.objectives.LeastSquares.synthetic(12, 3, heavy=2, noise=noise, seed=4)


def test_a_blow_up_is_flagged_long_before_it_is_infinite(graph, runtime):
    problem = noisy(0.1)
    kernel = fw.designs.Metropolis(power=1).kernel(graph, problem.smoothness)
    limit = fw.analysis.stability_limit(problem, kernel)
    arguments = {"steps": 60, "walks": 4, "every": 20, "start": "heaviest", "runtime": runtime}
    blown = fw.learn(problem, kernel, fw.SGD(15 * limit), **arguments)
    assert np.isfinite(blown.data.loss).all()
    assert blown.data.diverged.all()
    assert not fw.learn(problem, kernel, fw.SGD(0.2 * limit), **arguments).data.diverged.any()


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_run_that_starts_at_the_optimum_is_not_flagged(graph, runtime, noise):
    problem = noisy(noise)
    kernel = fw.designs.Metropolis(power=1).kernel(graph, problem.smoothness)
    rule = fw.SGD(0.2 * fw.analysis.stability_limit(problem, kernel))
    record = fw.learn(problem, kernel, rule, steps=300, walks=4, initial=problem.optimum(), runtime=runtime)
    if noise:
        assert (record.data.loss.isel(step=-1) > record.data.loss.isel(step=0)).any()
    assert not record.data.diverged.any()


class Negative(fw.Objective):
    """A loss below 0 that is 0 at the zero model, where the walk starts."""

    n, dim, smoothness = 12, 1, np.ones(12)

    def loss(self, x):
        return float(0.5 * x[0] ** 2 - 0.1 * x[0])

    def gradient(self, node, x):
        return x - (1.3 if node % 2 else -1.1)

    def optimum(self):
        return np.array([0.1])


def test_a_loss_that_begins_at_0_is_not_flagged_when_it_grows(graph):
    kernel = fw.designs.SimpleWalk().kernel(graph)
    record = fw.learn(Negative(), kernel, fw.SGD(0.5), steps=31, walks=5, runtime="reference")
    assert (record.data.loss.isel(step=-1) > 0).any()
    assert not record.data.diverged.any()


class Nowhere(Negative):
    """Its loss fails at the zero model."""

    def loss(self, x):
        return 1.0 / float(x[0])


def test_a_loss_that_fails_at_the_zero_model_does_not_cost_the_run(graph):
    kernel = fw.designs.SimpleWalk().kernel(graph)
    record = fw.learn(Nowhere(), kernel, fw.SGD(0.1), steps=3, initial=[5.0], runtime="reference")
    assert not record.data.diverged.any()


@pytest.mark.quick("reference")
def test_a_problem_without_an_optimum_has_no_distance_and_still_runs(graph, runtime):
    problem = fw.objectives.Logistic(np.linspace(1, 2, 12)[:, None], np.ones(12))
    record = fw.learn(problem, fw.designs.SimpleWalk().kernel(graph), fw.SGD(0.1), steps=30, walks=2, runtime=runtime)
    assert np.isnan(record.data.distance).all()
    assert np.isfinite(record.data.loss).all()
    assert (record.data.loss.isel(step=-1) < record.data.loss.isel(step=0)).all()
    assert not record.data.diverged.any()
    assert "optimal_loss" not in record.data.attrs


def test_float32_models(kernel, runtime):
    problem = fw.objectives.LeastSquares.synthetic(12, 3, heavy=2, samples=[1, 2, 3] * 4, seed=4)
    arguments = {"steps": 200, "walks": 3, "every": 50, "runtime": runtime}
    single = fw.learn(problem, kernel, fw.SGD(0.01), precision="float32", **arguments)
    double = fw.learn(problem, kernel, fw.SGD(0.01), **arguments)
    assert single.data.final.dtype == np.float32
    assert single.provenance["precision"] == "float32"
    np.testing.assert_allclose(single.data.loss, double.data.loss, rtol=1e-4)
    assert not np.array_equal(single.data.loss, double.data.loss)
    assert np.array_equal(single.data.visits, double.data.visits)


# Phases.


def stay(graph):
    return fw.Kernel(graph, [fw.Move(1.0, hops=0)], np.ones(graph.n), label="stay")


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("switch", [40, 64, 65])
def test_a_switch_changes_kernel_and_rule_at_its_step(graph, problem, kernel, runtime, switch, average):
    uniform = fw.designs.Metropolis(power=0).kernel(graph)
    fast, slow = fw.SGD(0.02, average=average), fw.SGD(0.005, average=average)
    phases = [fw.Phase(switch, kernel, fast), fw.Phase(None, uniform, slow)]
    arguments = {"walks": 2, "every": 8, "seed": 6, "paths": 2, "runtime": runtime}
    record = fw.learn(problem, phases, steps=120, **arguments)
    alone = fw.learn(problem, kernel, fast, steps=switch, **arguments)
    until = record.data.step.values <= switch - switch % 8
    assert np.array_equal(record.data.loss.values[:, until], alone.data.loss.values[:, : until.sum()])
    assert record.label == f"{kernel.label} → {uniform.label}"
    plan = [(switch, kernel, fast, 0), (None, uniform, slow, switch)]
    for walk in range(2):
        models = replay(problem, plan, record.data.path.values[walk], np.zeros(3), record.data.step.values)
        np.testing.assert_allclose(record.data.loss[walk], [problem.loss(x) for x in models], rtol=1e-9)


def test_a_mean_goes_on_where_only_the_kernel_changes(graph, problem, kernel, runtime):
    rule = fw.SGD(0.02, average=True)
    phases = [fw.Phase(50, kernel, rule), fw.Phase(None, stay(graph), rule)]
    record = fw.learn(problem, phases, steps=100, every=10, paths=1, seed=6, runtime=runtime)
    plan = [(50, kernel, rule, 0), (None, stay(graph), rule, 0)]
    models = replay(problem, plan, record.data.path.values[0], np.zeros(3), record.data.step.values)
    np.testing.assert_allclose(record.data.loss[0], [problem.loss(x) for x in models], rtol=1e-9)


def test_walking_in_phases(graph, kernel, runtime):
    phases = [fw.Phase(30, kernel), fw.Phase(100, stay(graph))]
    data = fw.walk(phases, steps=60, walks=2, paths=2, runtime=runtime).data
    alone = fw.walk(kernel, steps=30, walks=2, paths=2, runtime=runtime).data
    assert np.array_equal(data.path.values[:, :31], alone.path.values)
    assert (data.path.values[:, 30:] == data.path.values[:, 30:31]).all()
    assert (data.messages.sel(step=60) == data.messages.sel(step=30)).all()


# Progress, and things of the user's own.


def test_progress_is_told_growing_steps_up_to_the_last(problem, kernel, runtime):
    told = []

    def tell(step, steps):
        told.append((step, steps))

    fw.learn(problem, kernel, fw.SGD(0.01), steps=500, runtime=runtime, progress=tell)
    steps = [step for step, _ in told]
    assert len(steps) > 1
    assert steps == sorted(set(steps))
    assert steps[0] > 0
    assert steps[-1] == 500
    assert {total for _, total in told} == {500}


def test_progress_is_told_measures_of_an_earlier_step_and_learn_says_so(problem, kernel, runtime):
    """A tracker that draws them at the step of the call draws them too late."""
    told = []

    def tell(step, steps, measures):
        told.append((step, measures["loss"]))

    record = fw.learn(problem, kernel, fw.SGD(0.01), steps=500, every=200, runtime=runtime, progress=tell)
    marks, losses = record.data.step.values, record.data.loss.mean("walk").values
    assert not {step for step, _ in told} <= set(marks)
    for step, loss in told:
        assert loss == pytest.approx(losses[marks <= step][-1])
    said = " ".join(fw.learn.__doc__.split())
    assert "its step is rarely one at which something was measured, and `measures` belong to the last such step" in said


def test_progress_does_not_change_the_result(problem, kernel, runtime):
    arguments = {"steps": 300, "walks": 2, "every": 7, "runtime": runtime}
    quiet = fw.learn(problem, kernel, fw.SGD(0.01), **arguments)
    told = fw.learn(problem, kernel, fw.SGD(0.01), progress=lambda step, steps: None, **arguments)
    assert quiet.data.identical(told.data)


def test_a_design_of_six_lines_runs(graph, problem, runtime):
    record = fw.learn(problem, Lazy(0.75).kernel(graph), fw.SGD(0.01), steps=400, walks=2, seed=1, runtime=runtime)
    assert record.label == "Lazy(stay=0.75)"
    # 800 moves leave with probability .25; the binomial law is within 5 standard deviations but for 6e-7.
    assert abs(float(record.data.messages.isel(step=-1).sum()) - 200) < 5 * np.sqrt(800 * 0.25 * 0.75)


def test_an_objective_with_a_gradient_only_runs_on_the_reference():
    problem = Centres([[0.0, 0.0], [2.0, 4.0]])
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.path(2))
    record = fw.learn(problem, kernel, fw.SGD(0.5), steps=2, start=1, runtime="reference")
    np.testing.assert_allclose(record.data.final[0], [0.5, 1.0])
    np.testing.assert_allclose(record.data.distance[0], [5.0, 0.0, 1.25])
    with pytest.raises(fw.FreewalkError, match=r"cpu: Centres .* runtime='reference'"):
        fw.learn(problem, kernel, fw.SGD(0.5), steps=2, runtime="cpu")
    assert fw.learn(problem, kernel, fw.SGD(0.5), steps=2).provenance["runtime"] == "Reference()"


def test_a_phase_that_would_never_run_is_an_error():
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(4))
    phases = [fw.Phase(10, kernel), fw.Phase(None, kernel)]
    with pytest.raises(fw.FreewalkError, match=r"phases: one begins at step 10, but the run ends at 10"):
        fw.walk(phases, steps=10)
    assert fw.walk(phases, steps=11).data.messages[0, -1] == 11


def test_a_design_or_a_graph_in_place_of_a_kernel_is_named():
    problem = fw.objectives.LeastSquares.synthetic(4, dim=1)
    for wrong in (fw.designs.SimpleWalk(), fw.graphs.ring(4)):
        with pytest.raises(fw.FreewalkError, match=r"learn: kernel = .*, expected a kernel, as design.kernel\(graph"):
            fw.learn(problem, wrong, fw.SGD(0.1), steps=1)


def test_an_objective_needs_no_samples_unless_the_rule_asks_for_them():
    class Bowl(fw.Objective):
        n, dim, smoothness = 4, 1, np.ones(4)

        def loss(self, x):
            return float(x @ x) / 2

        def gradient(self, node, x):
            return x

        def optimum(self):
            return np.zeros(1)

    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(4))
    record = fw.learn(Bowl(), kernel, fw.SGD(0.5), steps=3, initial=[8.0], runtime="reference")
    assert record.data.final.values == [[1.0]]


def test_measures_keep_the_order_in_which_they_came():
    """Those of a card lie mark by mark, those of a processor walk by walk; values are the same."""
    first = np.arange(3.0)[:, None]
    by_walk, by_mark = np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(2, 3).T
    for later, order in ((by_walk, "C"), (by_mark, "F")):
        joined = side_by_side([first, later])
        assert np.array_equal(joined, np.hstack([first, later]))
        assert joined.flags["C_CONTIGUOUS" if order == "C" else "F_CONTIGUOUS"]


# What would not fit, or is no number, is refused before any work.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"walks": 10**12}, r"run: the models of 1,000,000,000,000 walks would take .* TB, .*; run fewer at a time"),
        ({"steps": 10**15}, r"run: measuring 1 walks 1,000,000,000,000,001 times would take .*; increase `every`"),
        ({"steps": 10**12, "every": 10**9, "paths": 1}, r"run: 1 paths of 1,000,000,000,000 steps .*; keep fewer"),
        ({"steps": np.uint64(2**63 + 5)}, r"run: steps = .*, expected a whole number >= 1 \(and below 2\^63\)"),
        ({"steps": 10**30}, r"run: steps = 10+, expected a whole number >= 1 \(and below 2\^63\)"),
        ({"steps": 2**62 + 1}, r"run: steps = .*, expected a whole number from 1 to 4611686018427387904"),
        ({"every": 10**30}, r"run: every = 10+, expected a whole number >= 1 \(and below 2\^63\)"),
        (
            {"runtime": "cpus"},
            r"run: runtime = 'cpus', expected 'cpu', 'cuda', 'ray', 'reference' or 'torch'; did you mean 'cpu'\?",
        ),
        ({"runtime": 3}, r"run: runtime = 3, expected 'cpu', 'cuda', 'ray', 'reference' or 'torch'$"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_before_any_work(problem, kernel, changes, message):
    for call in (fw.walk, lambda **options: fw.learn(problem, rule=fw.SGD(0.1), **options)):
        with pytest.raises(fw.FreewalkError, match=message):
            call(**({"kernel": kernel, "steps": 10, "runtime": "reference"} | changes))


def test_the_largest_number_of_steps_can_be_asked_for(kernel):
    record = fw.walk(kernel, steps=2**62, every=2**61, progress=lambda *_: signal.raise_signal(signal.SIGINT))
    assert record.partial


@pytest.mark.parametrize("threads", [0, -1, True, "2", 1.5, 10**30, 1025], ids=repr)
def test_threads_that_no_machine_has(threads):
    with pytest.raises(
        fw.FreewalkError, match=r"CPU: threads = .*, expected a whole number from 1 to 1024; None takes"
    ):
        fw.runtimes.CPU(threads=threads)


@pytest.mark.parametrize("given", ["x", "-1", "2.5", "1025", "9" * 5000], ids=["x", "-1", "2.5", "1025", "99999…"])
def test_threads_in_the_environment(kernel, monkeypatch, given):
    monkeypatch.setenv("FREEWALK_THREADS", given)
    with pytest.raises(fw.FreewalkError, match=r"cpu: FREEWALK_THREADS = .*, expected a whole number from 1 to 1024"):
        fw.walk(kernel, steps=3)


@pytest.mark.parametrize("given", [0, True, "2", 1.5, 10**30], ids=repr)
def test_walks_on_a_card_that_are_no_number(given):
    with pytest.raises(fw.FreewalkError, match=r"CUDA: walks_at_once = .*, expected a whole number >= 1"):
        fw.runtimes.CUDA(walks_at_once=given)


@dataclass(frozen=True)
class Careless(fw.Rule):
    """Says what it carries, and may make something else."""

    names: tuple = ("speed",)
    shape: tuple = (1, 1, 3)
    shown: str = "x"
    often: int = 1

    carries = property(lambda self: self.names)
    reports = property(lambda self: self.shown)
    local_steps = property(lambda self: self.often)
    update = property(lambda self: _push)

    def begin(self, models):
        return dict.fromkeys(self.names, np.zeros(self.shape))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Careless(), r"Careless: begin\(\)\['speed'\] = .*, expected an array of floats of shape \(2, 3\)"),
        (
            Careless(tuple("abcdefghi")),
            r"Careless: number of vectors in carries = 9, expected a whole number from 0 to 8",
        ),
        (Careless(1.0), r"Careless: carries = 1.0, expected a tuple of names"),
        (
            Careless(often=10**7),
            r"Careless: local_steps = 10000000, expected a whole number from 1 to 1000000",
        ),
        (Careless(shown="force"), r"Careless: reports = 'force', expected 'x' or 'speed'"),
    ],
    ids=["begin", "carries", "carries a float", "local steps", "reports"],
)
def test_a_rule_that_makes_something_else_than_it_says_is_refused(problem, kernel, runtime, rule, message):
    """Compiled code trusts the shape: it would write outside of its arrays."""
    with pytest.raises(fw.FreewalkError, match=message):
        fw.learn(problem, kernel, rule, steps=3, runtime=runtime)


def _push(visit, numbers, x, gradient, speed):
    speed = 0.5 * speed - visit.rate * visit.weight * gradient
    return x + speed, speed


@dataclass(frozen=True)
class Pushed(fw.SGD):
    """Begins with what it is told to."""

    kind: str = "float64"

    update = property(lambda self: _push)
    carries = property(lambda self: ("speed",))

    def begin(self, models):
        return {"speed": models if self.kind == "the models" else np.array(models, dtype=self.kind)}


@pytest.mark.quick(
    *(f"reference-{kind}-{precision}" for kind in ("float64", "float32", "the models") for precision in PRECISIONS)
)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", ["float64", "float32", "the models"])
def test_what_a_rule_begins_with_is_kept_apart_and_as_precise_as_the_models(problem, kernel, runtime, precision, kind):
    run = {"steps": 40, "every": 40, "precision": precision, "initial": np.ones(3)}
    given = fw.learn(problem, kernel, Pushed(0.01, kind=kind), runtime=runtime, **run)
    truth = fw.learn(problem, kernel, Pushed(0.01, kind=precision), runtime="reference", **run)
    assert np.allclose(given.data.final, truth.data.final, rtol=1e-5 if precision == "float32" else 1e-12)


class Elsewhere(Negative):
    def optimum(self):
        return np.zeros(3)


def test_an_optimum_of_another_size_is_named(graph):
    kernel = fw.designs.SimpleWalk().kernel(graph)
    with pytest.raises(fw.FreewalkError, match=r"Elsewhere: optimum\(\) has shape \(3,\), expected \(1,\)"):
        fw.learn(Elsewhere(), kernel, fw.SGD(0.1), steps=3, runtime="reference")


# Names


CITIES = ["Kiel", "Bonn", "Ulm", "Hof"]
NAMED = fw.graphs.from_edges([("Kiel", "Bonn"), ("Bonn", "Ulm"), ("Ulm", "Hof"), ("Hof", "Kiel")], names=CITIES)
TURNED = fw.graphs.from_edges([("Kiel", "Bonn"), ("Bonn", "Ulm"), ("Ulm", "Hof"), ("Hof", "Kiel")], names=CITIES[::-1])


def test_a_problem_for_other_names_is_refused():
    problem = fw.objectives.LeastSquares(np.eye(4), np.ones(4), CITIES, graph=NAMED)
    fw.learn(problem, fw.designs.Metropolis().kernel(NAMED), fw.SGD(0.1), steps=2, runtime="reference")
    with pytest.raises(fw.FreewalkError, match=r"learn: node 0 is 'Kiel' in the objective and 'Hof' in the graph"):
        fw.learn(problem, fw.designs.Metropolis().kernel(TURNED), fw.SGD(0.1), steps=2, runtime="reference")


@pytest.mark.parametrize("start", [["Ulm", "Hof"], np.array(["Ulm", "Hof"]), [2, 3], np.array(["Ulm", "Hof"], object)])
def test_starts_may_be_named(start):
    kernel = fw.designs.Metropolis().kernel(NAMED)
    record = fw.walk(kernel, steps=1, walks=2, start=start, paths=2, runtime="reference")
    assert record.data.path[:, 0].values.tolist() == [2, 3]
    assert record.data.node_name.values.tolist() == CITIES
    one = fw.walk(kernel, steps=1, walks=2, start="Hof", paths=2, runtime="reference")
    assert one.data.path[:, 0].values.tolist() == [3, 3]
