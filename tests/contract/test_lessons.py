"""Every runtime learns what `reference` learns: each objective with each rule, to 1e-9 relative plus 1e-12."""

import numpy as np
import pytest
from catalogue import (
    COMPILED,
    DESIGNS,
    GRAPHS,
    LESSONS,
    LISTED_PROBLEMS,
    PROBLEMS,
    QUICK_LESSONS,
    RULES,
    SLOPELESS,
    HeavyBall,
    advance,
    assert_close,
    assert_identical,
    begin,
    job_of,
    kernel_of,
    phases_of,
)

import freewalk as fw
from freewalk.designs import MHLJ
from freewalk.errors import FreewalkError
from freewalk.runtimes import CPU, Reference

GRAPH = GRAPHS["random"]
STEPS, WALKS = 150, 17
MARKS = [1, 7, 30, 64, 100, 128, 150]


def kernel_for(problem):
    return MHLJ(0.3, 0.5, 3).kernel(GRAPH, PROBLEMS[problem].smoothness)


def learned(engine, walks, steps, stops=(), marks=MARKS, initial=0.0):
    """The state after some steps, and the measures at the marks."""
    state = begin(engine.job, walks, steps, initial)
    return state, advance(engine, state, [*stops, steps], marks)


@pytest.mark.quick(*map(" by ".join, QUICK_LESSONS))
@pytest.mark.parametrize("lesson", LESSONS, ids=" by ".join)
def test_every_objective_by_every_rule(lesson):
    problem, rule = lesson
    job = job_of(PROBLEMS[problem], kernel_for(problem), RULES[rule])
    expected = learned(Reference().engine(job), 3, 30)
    assert np.isfinite(expected[0].models).all()
    assert (expected[0].models != 0).all()
    engines = [runtime.engine(job) for runtime in COMPILED]
    for engine in engines:
        assert_close(learned(engine, 3, 30), expected)
    # And on one runtime to the bit, for any split, number of threads and number of walks.
    whole = learned(engines[0], WALKS, STEPS)
    assert_identical(learned(engines[0], WALKS, STEPS, [11, 12, 50, 129]), whole)
    assert_identical(learned(engines[0], 1, STEPS, [99]), whole)
    assert_identical(learned(engines[1], WALKS, STEPS, [1, 64, 127]), whole)


@pytest.mark.quick(*dict(QUICK_LESSONS))
@pytest.mark.parametrize("problem", PROBLEMS)
def test_measures_are_those_of_the_objective(problem):
    """Loss with ½ and ridge, distance to the optimum, and the mse for least squares only; NaN without an optimum."""
    objective = PROBLEMS[problem]
    data = fw.learn(objective, kernel_for(problem), RULES["SGD"], steps=20, every=9, walks=3).data
    assert data.step.values.tolist() == [0, 9, 18, 20]
    final = data.final.values
    assert data.loss.values[:, 0] == pytest.approx([objective.loss(np.zeros(objective.dim))] * 3, rel=1e-12)
    assert data.loss.values[:, -1] == pytest.approx([objective.loss(x) for x in final], rel=1e-12)
    assert ("mse" in data) == problem.startswith("LeastSquares")
    if "mse" in data:
        assert data.mse.values[:, -1] == pytest.approx([objective.mse(x) for x in final], rel=1e-12)
    if "LogCosh" in problem or "without" in problem:
        assert data.distance.isnull().all()
        assert "optimal_loss" not in data.attrs
    else:
        distances = np.sum((final - objective.optimum()) ** 2, axis=1)
        assert data.distance.values[:, -1] == pytest.approx(distances, rel=1e-11)
        assert data.attrs["optimal_loss"] == pytest.approx(objective.loss(objective.optimum()))
    assert not data.diverged.any()


@pytest.mark.parametrize("design", DESIGNS)
def test_learning_on_every_design(design):
    """The weights of the kernel reach the update on every runtime."""
    job = job_of(PROBLEMS["LeastSquares"], kernel_of(design, "random"), fw.SGD(step=1e-3))
    expected = learned(Reference().engine(job), 3, 30, initial=1.5)
    for runtime in COMPILED:
        assert_close(learned(runtime.engine(job), 3, 30, initial=1.5), expected)


@pytest.mark.quick("LeastSquares")
@pytest.mark.parametrize("problem", LISTED_PROBLEMS)
def test_learning_in_phases(problem):
    """Kernels and rules that switch, among them one that begins to carry a mean."""
    job = job_of(PROBLEMS[problem], phases_of(("MHLJ", "Decaying", "SimpleWalk")))
    marks = [5, 9, 10, 20, 21, 40]
    expected = learned(Reference().engine(job), 3, 40, marks=marks)
    one, two = (CPU(threads).engine(job) for threads in (1, 2))
    assert_close(learned(one, 3, 40, marks=marks), expected)
    whole = learned(one, 17, 40, marks=marks)
    assert_identical(learned(one, 17, 40, [4, 13, 19, 35], marks), whole)
    assert_identical(learned(two, 17, 40, range(1, 40, 3), marks), whole)


@pytest.mark.parametrize("slab", [17, 100, 333])
def test_learning_in_slabs_of_any_size(monkeypatch, slab):
    """Learning follows the walk slab by slab; marks at the edges and inside of slabs measure the same to the bit."""
    job = job_of(PROBLEMS["LeastSquares"], kernel_for("LeastSquares"), RULES["SGD"])
    engines = [runtime.engine(job) for runtime in COMPILED]
    expected = learned(engines[0], 40, 60, marks=list(range(1, 61)))
    monkeypatch.setattr("freewalk.runtimes.engine._STRETCH", slab)
    for engine in engines:
        assert_identical(learned(engine, 40, 60, marks=list(range(1, 61))), expected)


def test_a_run_is_its_engine_driven_by_a_loop():
    """`fw.learn` in phases gives what driving the engine by hand gives."""
    switch = phases_of(("MHLJ", "Decaying", "SimpleWalk"))
    problem = PROBLEMS["LeastSquares"]
    job = job_of(problem, switch, seed=5)
    for runtime in COMPILED:  # each with itself: runtimes agree on the path to the bit, on floats nearly
        state, measures = learned(runtime.engine(job), 17, 150, marks=list(range(10, 151, 10)))
        data = fw.learn(
            problem, switch, steps=150, walks=17, every=10, seed=5, start=state.paths[:, 0], runtime=runtime, paths=17
        ).data
        assert np.array_equal(data.path, state.paths)
        assert np.array_equal(data.final, state.carried[0])
        for name in ("loss", "mse", "distance", "messages", "probes"):
            assert np.array_equal(data[name].values[:, 1:], measures[name]), name


@pytest.mark.parametrize("rule", ["SGD", "SGD, local steps", "SGD, unweighted"])
def test_single_precision_is_near_double_precision(rule):
    problem = "LeastSquares"
    job = job_of(PROBLEMS[problem], kernel_for(problem), RULES[rule])
    double, true_measures = learned(CPU(1).engine(job), 3, 30)
    half = job_of(PROBLEMS[problem], kernel_for(problem), RULES[rule], precision="float32")
    for runtime in (Reference(), *COMPILED):
        single, measures = learned(runtime.engine(half), 3, 30)
        assert single.models.dtype == np.float32
        assert np.array_equal(single.paths, double.paths)
        np.testing.assert_allclose(single.models, double.models, rtol=1e-4, atol=1e-5)
        assert not np.array_equal(single.models, double.models)
        assert np.array_equal(2 * measures.pop("bytes"), true_measures["bytes"])
        assert set(measures) == set(true_measures) - {"bytes"}
        for name, values in measures.items():
            np.testing.assert_allclose(values, true_measures[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("runtime", [Reference(), *COMPILED], ids=repr)
def test_a_diverged_walk_keeps_its_values_and_is_flagged(runtime):
    """Two walks take off; the third starts at the optimum of data without noise and stays there."""
    clean = fw.objectives.LeastSquares([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.0])
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(3))
    options = {"steps": 400, "walks": 3, "every": 100, "initial": [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]}
    record = fw.learn(clean, kernel, fw.SGD(step=1e4), runtime=runtime, **options)
    data = record.data
    assert data.diverged.values.tolist() == [True, True, False]
    assert np.isfinite(data.loss.values[:, 0]).all()
    assert not np.isfinite(data.loss.values[:2, -1]).any()
    assert not np.isfinite(data.loss.mean("walk").values[-1])
    assert (data.final.values[2] == 0).all()
    assert not record.partial


def test_an_objective_without_a_slope_runs_on_reference_alone():
    rule, kernel = fw.SGD(step=0.1), kernel_of("SimpleWalk", "random")
    data = fw.learn(SLOPELESS, kernel, rule, steps=100, every=50, initial=[9, 9, 9], runtime="reference").data
    assert float(data.distance[0, -1]) < 0.1 * float(data.distance[0, 0])
    assert "mse" not in data
    for runtime in COMPILED:
        with pytest.raises(
            FreewalkError, match=r"c(pu|uda): Centres has a gradient but no slope, .* pass runtime='reference'"
        ):
            fw.learn(SLOPELESS, kernel, rule, steps=10, runtime=runtime)


def test_a_rule_may_carry_eight_vectors_at_most():
    class Hoarder(HeavyBall):
        carries = tuple("abcdefghi")

    with pytest.raises(FreewalkError, match=r"Hoarder: number of vectors in carries = 9, expected .* from 0 to 8"):
        fw.learn(PROBLEMS["LeastSquares"], kernel_for("LeastSquares"), Hoarder(), steps=5)
