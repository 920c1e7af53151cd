"""The diagnosis: right about cases it was not made for, clear in its words, complete in its numbers."""

import importlib.util
import json
import time
from pathlib import Path

import numpy as np
import pytest
from walks import problem_with

import freewalk as fw
from freewalk.analysis import exact_curve
from freewalk.analysis.diagnosis import diagnose
from freewalk.analysis.diagnosis.diagnose import DESIGNS, levels
from freewalk.analysis.diagnosis.findings import IMPORTANCE, UNIFORM
from freewalk.analysis.learning.race import race
from freewalk.analysis.traps import sets
from freewalk.errors import FreewalkError
from freewalk.linear.deadline import OutOfTime

ROOT = Path(__file__).parents[2]


def study():
    """The script that judges the diagnosis, whose cases are used here."""
    spec = importlib.util.spec_from_file_location("judged", ROOT / "benchmarks" / "diagnosis.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_verdict_agrees_with_exact_curves_on_the_data():
    """Small ones of the cases of benchmarks/diagnosis.py, which judges 300 of them; nothing here can fail by chance."""
    judged = study()
    pairs = []
    for seed in (5002, 5003, 5004, 5018, 5020):
        _, *setting = judged.case(seed)
        graph, problem, start = setting
        found = fw.diagnose(graph, problem, start=start, designs={})
        truth = judged.ratio(*setting)
        slowdown = truth / judged.ratio(fw.graphs.complete(graph.n), problem, start)
        pairs.append((truth > 1, found.slower, slowdown >= judged.SLOWDOWN, found.entrapped))
    slower, told_slower, slowed, told_entrapped = zip(*pairs, strict=True)
    assert slower == told_slower
    assert set(slower) == {True, False}
    assert np.mean(np.equal(slowed, told_entrapped)) >= 0.6
    assert set(told_entrapped) == {True, False}


@pytest.mark.long
def test_a_walk_can_be_entrapped_and_still_pay():
    problem = fw.objectives.LeastSquares.synthetic(1000, dim=2, heavy=2, seed=33)
    found = fw.diagnose(fw.graphs.grid(25, 40), problem, designs={})
    assert found.conclusion == "Importance sampling by Metropolis is entrapped at nodes 0, 1, and still pays here."
    assert str(found).startswith(found.conclusion)
    assert "The trap: once at nodes 0, 1, the importance walk spends " in str(found)
    some = fw.objectives.LeastSquares(problem.features[:300], problem.targets[:300])
    dense = fw.diagnose(fw.graphs.erdos_renyi(300, 0.3, seed=1), some, designs={})
    assert dense.conclusion == "Importance sampling by Metropolis is not entrapped, and pays."
    assert "In a trap it would need at least 300 more than the uniform walk, one per node." in " ".join(
        str(dense).split()
    )


def test_what_there_is_no_time_for_is_left_out_and_named():
    problem = fw.objectives.LeastSquares.synthetic(400, dim=5, heavy=2, seed=1)
    began = time.thread_time()  # whatever else the machine does
    found = fw.diagnose(fw.graphs.complete(400), problem, budget=2.0)
    assert time.thread_time() - began < 15  # some parts end a little late
    assert "no time left" in found.left_out.values()
    assert "Left out, with a budget of 2 s: " in str(found)
    assert set(found.forecasts) == set(DESIGNS)
    json.dumps(found.as_dict(), allow_nan=False)
    nothing = fw.diagnose(fw.graphs.ring(30), np.ones(30), budget=1e-9)
    assert nothing.held is None
    assert nothing.entrapped is None
    assert nothing.as_dict()["entrapped"] is None
    assert nothing.slower is None
    assert nothing.conclusion.startswith(
        "Whether importance sampling by Metropolis is entrapped could not be determined"
    )


@pytest.mark.quick("two heavy", "tiny", "both")
@pytest.mark.parametrize(
    "importance",
    [[1e100, 1, 1e50, 1, 1], [1e40, 1, 1, 1, 1], [1e308] * 6, [1e-300] * 4, [1e-150, 1e150, 1, 1]],
    ids=["two heavy", "one heavy", "huge", "tiny", "both"],
)
def test_extreme_importance(importance):
    found = fw.diagnose(fw.graphs.ring(len(importance)), importance)
    words = str(found)
    for wrong in ("nan", "inf", "the 0 of", " 0 updates"):
        assert wrong not in words
    json.dumps(found.as_dict(), allow_nan=False)


@pytest.mark.long
def test_on_the_ring_from_a_heavy_start_importance_is_entrapped_and_slower():
    problem = fw.objectives.LeastSquares.synthetic(200, dim=3, heavy=2, noise=0.5, seed=2)
    found = fw.diagnose(fw.graphs.ring(200), problem, start="heaviest")
    assert found.entrapped
    assert found.slower
    assert {0, 1} <= set(found.traps[0].nodes) <= {196, 197, 198, 199, 0, 1, 2, 3}
    assert found.ratio > diagnose.PATIENCE
    words = " ".join(str(found).split())
    for part in ("entrapped at nodes 0, 1, ", "it is far slower", "of the designs below"):
        assert part in words
    assert found.forecasts[IMPORTANCE].excess > 5 * found.forecasts["MHLJ, jump 0.1"].excess
    assert found.forecasts[UNIFORM].excess == pytest.approx(found.traps[0].uniform)
    assert found.forecasts[UNIFORM].distance == pytest.approx(0, abs=1e-12)
    assert found.forecasts["MHLJ, jump 0.5"].distance > 0.05


def test_on_a_dense_graph_importance_pays():
    problem = fw.objectives.LeastSquares.synthetic(100, dim=3, heavy=3, seed=1)
    found = fw.diagnose(fw.graphs.complete(100), problem)
    assert found.slower is False
    assert "it pays" in str(found)


def test_equal_nodes_make_no_difference():
    alike = fw.objectives.LeastSquares(np.eye(2)[np.arange(31) % 2], np.arange(31.0))
    found = fw.diagnose(fw.graphs.ring(31), alike)
    assert not found.entrapped
    assert found.ratio == pytest.approx(1.0)
    assert found.slower is False
    assert "not entrapped" in str(found)
    assert "all nodes are alike" in str(found)
    assert "makes no difference" in str(found)
    assert not found.advised_against


def test_a_problem_is_diagnosed_on_its_own_data():
    graph = fw.graphs.ring(40)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, shift=0.3, seed=1)
    found = fw.diagnose(graph, problem, start=0)
    assert found.exact
    assert "on these data" in str(found)
    run = found.forecasts[UNIFORM].race
    kernel = DESIGNS[UNIFORM].kernel(graph, problem.smoothness)
    steps = int(run.updates) + 2
    curve = exact_curve(problem, kernel, fw.SGD(run.step), steps=steps, start=0).loss.values
    wanted = 1.5 * problem.loss(problem.optimum())
    assert curve[int(np.floor(run.updates))] >= wanted >= curve[-1]


def test_sets_that_were_judged_in_time_are_kept(monkeypatch):
    judged, check = [], sets.deadline.check

    def until_two():
        judged.append(1)
        if len(judged) == 3:
            raise OutOfTime("over")
        check()

    monkeypatch.setattr(sets.deadline, "check", until_two)
    importance = np.random.default_rng(0).chisquare(3, 60)
    found, unjudged = sets.held_sets("test", DESIGNS[IMPORTANCE].kernel(fw.graphs.ring(60), importance))
    assert len(found) >= 1
    assert unjudged > 0


class Centres(fw.Objective):
    """f_v(x) = L_v/2 ‖x − c_v‖², an objective of a user's that says no more than it must."""

    def __init__(self, centres, constants):
        self.centres, self.constants = np.asarray(centres), np.asarray(constants)

    @property
    def n(self):
        return len(self.centres)

    @property
    def dim(self):
        return self.centres.shape[1]

    @property
    def smoothness(self):
        return self.constants

    def loss(self, x):
        return float(np.mean(self.constants * np.sum((x - self.centres) ** 2, axis=1)) / 2)

    def gradient(self, node, x, sample=None):
        return self.constants[node] * (x - self.centres[node])


OTHERS = {
    "importance": lambda: np.array([60.0, 60.0, *28 * [1.0]]),
    "logistic": lambda: fw.objectives.Logistic.synthetic(30, dim=3, heavy=2, seed=1),
    "own": lambda: Centres(np.ones((30, 4)), [60.0, 60.0, *28 * [1.0]]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_only_traps_and_messages_are_told_of_what_is_not_least_squares(name):
    seen = []
    found = fw.diagnose(fw.graphs.ring(30), OTHERS[name](), start=0, progress=lambda *told: seen.append(told))
    assert "not your loss: traps and messages only" in str(found).splitlines()[0]
    for word in ("use:", "in a spec", "fw.", "step", "goal", "fastest", "times as fast", "best"):
        assert word not in str(found)
    assert (found.exact, found.slower, found.goal, found.left_out) == (False, None, None, {})
    assert (found.best, found.best_label, found.cheapest, found.cheapest_label, found.rule) == (None,) * 5
    assert {(one.race, one.rule) for one in found.forecasts.values()} == {(None, None)}
    told = found.as_dict()
    assert (told["on_data"], told["best"], told["use"], told["in_spec"], told["goal"]) == (False, None, [], [], None)
    assert {name for one in told["designs"].values() for name in one} == {
        "excess_visits",
        "distance",
        "messages_per_update",
    }
    # What follows from the walk alone stays.
    assert found.entrapped
    assert found.traps[0].excess > 20
    assert found.stays.max() > 1.5
    assert min(one.messages_per_update for one in found.forecasts.values()) > 0
    assert {total for _, _, total in seen} == {len(seen)}


def test_only_the_importance_of_what_is_not_least_squares_counts():
    graph, problem = fw.graphs.ring(30), OTHERS["own"]()
    assert str(fw.diagnose(graph, problem, start="heaviest")) == str(fw.diagnose(graph, problem.smoothness, start=0))


def test_relays_are_diagnosed_on_the_data_of_the_others():
    graph = fw.graphs.ring(12)
    numbers = np.random.default_rng(1)
    features = numbers.normal(size=(30, 2))
    targets = features @ [1.0, -1.0] + 0.1 * numbers.normal(size=30)
    for weight_by in ("node", "sample"):
        problem = fw.objectives.LeastSquares(
            features, targets, np.arange(30) % 10, weight_by=weight_by, relays=True, graph=graph
        )
        found = fw.diagnose(graph, problem, designs={})
        assert found.exact
        assert found.rule is not None
        assert found.left_out == {}


def test_words_say_what_was_raced_for():
    """The steps of both walks settle at the wanted error only where the uniform walk may take so large a step."""
    graph = fw.graphs.complete(60)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, seed=1)
    found = fw.diagnose(graph, problem)
    assert "1.5 × the optimal loss" in str(found)
    assert "the largest step of the uniform walk settles lower" in str(found)
    equal = fw.diagnose(graph, problem, equal=True, designs={})
    runs = [equal.forecasts[label].race for label in (UNIFORM, IMPORTANCE)]
    assert runs[0].excess == pytest.approx(runs[1].excess, rel=0.02)
    assert "settles lower" not in str(equal)
    noiseless = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=2, noise=0.0, seed=1)
    assert "5e-05 of the initial error" in str(fw.diagnose(graph, noiseless, designs={}))
    assert levels(noiseless)[1] == pytest.approx(5e-5 * noiseless.loss(np.zeros(3)))


@pytest.mark.long
def test_steep_importance_costs_nothing_else():
    importance = 10 ** np.random.default_rng(0).uniform(0, 8, 40)
    found = fw.diagnose(fw.graphs.ring(40), importance, budget=6.0)
    assert found.entrapped
    assert json.dumps(found.as_dict(), allow_nan=False)
    assert str(found)


@pytest.mark.parametrize("n", [2, 3])
def test_tiny_graphs(n):
    graph = fw.graphs.complete(n) if n == 3 else fw.graphs.path(2)
    found = fw.diagnose(graph, problem_with(np.arange(1.0, n + 1), dim=1))
    assert "use: " in str(found)


def test_scripts_get_plain_numbers():
    found = fw.diagnose(fw.graphs.ring(30), problem_with([50.0] + 29 * [1.0]), start=3)
    told = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert told["entrapped"] is True
    assert told["traps"][0]["nodes"] == [0]
    assert told["start"] == "node 3"
    assert set(told["designs"]) == set(DESIGNS)
    assert told["designs"][UNIFORM]["updates"] > 0


def test_designs_of_ones_own_take_the_place_of_the_standard_ones():
    seen = []
    own = {"mine": fw.designs.MHLJ(0.7, 0.5, 3)}
    problem = problem_with([50.0] + 29 * [1.0])
    found = fw.diagnose(fw.graphs.ring(30), problem, designs=own, progress=lambda *told: seen.append(told))
    assert list(found.forecasts) == [UNIFORM, IMPORTANCE, "mine"]
    labels, done, totals = zip(*seen, strict=True)
    assert labels[0] == "traps"
    assert {f"updates of {label}" for label in found.forecasts} < set(labels)
    assert list(done) == list(range(len(seen)))
    assert set(totals) == {len(seen)}


def test_large_graphs_are_told_what_can_be_told(monkeypatch):
    monkeypatch.setattr(diagnose, "MOST_NODES", 20)
    found = fw.diagnose(fw.graphs.ring(30), problem_with([50.0] + 29 * [1.0]))
    assert found.entrapped
    assert found.slower is None
    assert found.best is None
    assert "they are predicted up to 20 nodes" in str(found)
    assert found.advised_against
    json.dumps(found.as_dict(), allow_nan=False)


def test_a_race_stops_where_the_exact_curve_crosses():
    graph = fw.graphs.grid(4, 5)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=1, seed=3)
    best = problem.loss(problem.optimum())
    kernel = fw.designs.MHLJ(0.2, 0.5, 3).kernel(graph, problem.smoothness)
    run = race(problem, kernel, settle=0.1 * best, reach=0.2 * best, start=0)
    assert run.excess == pytest.approx(0.1 * best, rel=0.01)
    curve = exact_curve(problem, kernel, fw.SGD(run.step), steps=int(run.updates) + 2, start=0)
    crossed = int(np.flatnonzero(curve.loss.values <= 1.2 * best)[0])
    assert abs(crossed - run.updates) <= max(1.0, 0.02 * crossed)
    assert run.messages == pytest.approx(curve.messages.values[crossed], rel=0.03)


def test_a_race_that_bias_forbids_is_lost():
    graph = fw.graphs.ring(30)
    problem = fw.objectives.LeastSquares.synthetic(graph.n, dim=3, heavy=1, shift=1.0, noise=0.01, seed=3)
    best = problem.loss(problem.optimum())
    run = race(
        problem, fw.designs.MHLJ(0.9, 0.5, 3).kernel(graph, problem.smoothness), settle=best / 50, reach=best / 25
    )
    assert run.updates == np.inf
    assert run.bias > best / 25


BAD = {
    "graph": (lambda: fw.diagnose("ring", [1.0]), "graph = 'ring', expected a graph of fw.graphs"),
    "length": (lambda: fw.diagnose(fw.graphs.ring(5), [1.0, 2.0]), r"shape \(2,\), expected \(5,\)"),
    "negative": (lambda: fw.diagnose(fw.graphs.ring(5), [1, 2, -3, 4, 5]), "node 2"),
    "start": (lambda: fw.diagnose(fw.graphs.ring(5), np.ones(5), start="heavy"), "start = 'heavy'"),
    "dim": (lambda: fw.diagnose(fw.graphs.ring(5), np.ones(5), dim=0), "dim = 0"),
    "designs": (lambda: fw.diagnose(fw.graphs.ring(5), np.ones(5), designs=["MHLJ"]), "expected designs by label"),
    "budget": (
        lambda: fw.diagnose(fw.graphs.ring(5), np.ones(5), budget=0),
        "budget = 0, expected a number > 0; it is in seconds",
    ),
    "progress": (
        lambda: fw.diagnose(fw.graphs.ring(5), np.ones(5), progress=lambda label: None),
        r"expected a function progress\(label, done, total\)",
    ),
    "reserved": (
        lambda: fw.diagnose(fw.graphs.ring(5), np.ones(5), designs={UNIFORM: fw.designs.SimpleWalk()}),
        "expected another label",
    ),
    "nothing to learn": (
        lambda: fw.diagnose(fw.graphs.ring(3), fw.objectives.LeastSquares([[1.0], [2.0], [3.0]], [0.0, 0.0, 0.0])),
        "zero model is already optimal",
    ),
    "other nodes": (
        lambda: fw.diagnose(fw.graphs.ring(5), fw.objectives.LeastSquares.synthetic(7, 2)),
        r"shape \(7,\), expected \(5,\)",
    ),
    "levels": (
        lambda: race(
            fw.objectives.LeastSquares.synthetic(5, 2),
            fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)),
            settle=1.0,
            reach=0.5,
        ),
        "reach = 0.5, expected a finite number > 1",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_says_what_is_wrong(name):
    call, words = BAD[name]
    with pytest.raises(FreewalkError, match=words):
        call()
