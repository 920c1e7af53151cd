"""What does not fit is refused by the one who was asked, in words; nothing else comes out."""

import inspect
import math
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import freewalk as fw
from freewalk import analysis
from freewalk.analysis import (
    distance_to_target,
    escape_time,
    exact_curve,
    messages_per_visit,
    mixing_time,
    spectral_gap,
    stationary,
)
from freewalk.analysis.chain.chain import check_fit
from freewalk.analysis.chain.mixing_time import MixingTime
from freewalk.analysis.theory import (
    accumulated_error,
    bias_identity,
    importance_pays,
    lemma_1,
    lemma_2,
    premises,
    remark_1,
    smallest_constant,
    theorem_1,
)
from freewalk.designs import MHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import AnalysisError, FreewalkError, KernelError
from freewalk.objectives import LeastSquares

RING = fw.graphs.ring(5)
PROBLEM = LeastSquares.synthetic(5, dim=2, heavy=1, ridge=0.1, seed=1)
KERNEL = MHLJ(0.1, 0.5, 3).kernel(RING, PROBLEM.smoothness)
STUCK = FromMatrix(np.eye(5), target=np.ones(5)).kernel(RING)
FADING = Decaying(MHLJ(0.5, 0.5, 3), fw.schedules.Inverse(1.0, scale=10)).kernel(RING, PROBLEM.smoothness)

RAGGED = [[0], [1, 2]]


# Sets of nodes, and where in them a walk begins.


@pytest.mark.parametrize("nodes", [RAGGED, "ab", None, 1, 1.5, [], [[0, 1]], [0.0, 1.0], [True], {0, 1}, [10**30]])
def test_what_is_no_set(nodes):
    with pytest.raises(AnalysisError, match=r"^escape_time: nodes .*a list of at least one node"):
        escape_time(KERNEL, nodes)


@pytest.mark.parametrize("start", [RAGGED, "x", math.nan, 1j, [1, 2, 3], [0, 0], [-1, 2], [1, math.inf], {}, 10**30])
def test_what_is_no_place_to_be_in_a_set(start):
    with pytest.raises(AnalysisError, match=r'^escape_time: start.* None, "entry", one of the nodes of the set'):
        escape_time(KERNEL, [0, 1], start)


def test_a_law_may_be_given_up_to_any_factor():
    expected = escape_time(KERNEL, [0, 1], [1.0, 1.0])
    assert escape_time(KERNEL, [0, 1], [1e308, 1e308]) == pytest.approx(expected, rel=1e-14)


# Problems and kernels.


THEORY = {
    "theorem_1": lambda problem, kernel: theorem_1(problem, kernel, 10),
    "lemma_1": lambda problem, kernel: lemma_1(problem, kernel, 0.1),
    "lemma_2": lambda problem, kernel: lemma_2(problem, kernel, 10),
    "smallest_constant": lambda problem, kernel: smallest_constant(problem, kernel, 10),
    "accumulated_error": lambda problem, kernel: accumulated_error(problem, kernel, 10),
}


@pytest.mark.parametrize("who", THEORY)
@pytest.mark.parametrize("problem", [None, np.ones(5), "problem", LeastSquares])
def test_what_is_no_problem(who, problem):
    with pytest.raises(AnalysisError, match=rf"^{who}: problem = .*, expected an objective such as"):
        THEORY[who](problem, KERNEL)


@pytest.mark.parametrize("who", THEORY)
def test_what_does_not_fit_a_problem(who):
    with pytest.raises(AnalysisError, match=rf"^{who}: problem = .*expected an objective"):
        THEORY[who](RING, KERNEL)  # it has nodes, but no losses
    with pytest.raises(AnalysisError, match=rf"^{who}: kernel = None, expected a kernel, as design\.kernel"):
        THEORY[who](PROBLEM, None)
    with pytest.raises(AnalysisError, match=rf"^{who}: the problem has 5 nodes and the graph 6; expected the same"):
        THEORY[who](PROBLEM, SimpleWalk().kernel(fw.graphs.ring(6)))


def test_the_fit_is_checked_for_anybody():
    check_fit("somebody", PROBLEM, KERNEL)
    with pytest.raises(AnalysisError, match=r"^somebody: problem = None, expected an objective"):
        check_fit("somebody", None, KERNEL)


# Numbers.


@pytest.mark.parametrize("exact", ["a", "1", b"1", True, -1.0, math.nan, [1, 2], {}, 1j, np.ones(2)])
def test_an_exact_error_is_a_number(exact):
    with pytest.raises(AnalysisError, match=r"^theorem_1: exact = .*expected a number >= 0"):
        theorem_1(PROBLEM, KERNEL, 10, exact=exact)


def test_an_exact_error_may_be_what_a_curve_holds():
    curve = exact_curve(PROBLEM, KERNEL, fw.SGD(step=0.001), steps=10)
    assert theorem_1(PROBLEM, KERNEL, 10, step=0.001, exact=curve.distance[-1]).exact == float(curve.distance[-1])
    assert theorem_1(PROBLEM, KERNEL, 10, step=0.001, exact=math.inf).exact == math.inf


@pytest.mark.parametrize("start", ["x", RAGGED, 5, -1, 1.5, [1, 2, 3, math.nan, 0]])
@pytest.mark.parametrize("step", [None, 0.001])
def test_a_start_is_checked_whatever_the_step(start, step):
    assert math.isnan(theorem_1(PROBLEM, KERNEL, 1).step)  # so few updates leave it open
    with pytest.raises(AnalysisError, match=r"^theorem_1: start"):
        theorem_1(PROBLEM, KERNEL, 1, step=step, start=start)


@pytest.mark.parametrize("steps", [0, -1, 1.5, "a", None, True])
def test_a_number_of_updates_is_a_count(steps):
    with pytest.raises(AnalysisError, match=r"^theorem_1: steps = .*expected a whole number from 1 to 1000000"):
        theorem_1(PROBLEM, KERNEL, steps)
    with pytest.raises(AnalysisError, match=r"^lemma_2: length = .*expected a whole number from 1"):
        lemma_2(PROBLEM, KERNEL, steps)


@pytest.mark.parametrize("kernel", [KERNEL, FADING], ids=["constant", "fading"])
@pytest.mark.parametrize("step", ["x", None, math.nan, [1, 2], 10**30, 2**63, -1, 1.5, True, np.float64(1)])
def test_a_step_is_a_whole_number(kernel, step):
    with pytest.raises(KernelError, match=r"^.*: step = .*, expected a whole number >= 0"):
        kernel.at(step)


def test_every_step_there_is():
    assert KERNEL.at(2**63 - 1) is KERNEL
    assert FADING.at(np.int32(7)).label.endswith("at step 7")


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160, 1e305])
def test_rates_of_any_size(scale):
    found, small = importance_pays([100 * scale, *[scale] * 4]), importance_pays([100.0, 1, 1, 1, 1])
    assert found.verdict == small.verdict
    assert found.importance / scale == pytest.approx(small.importance)


def test_rates_that_are_far_apart():
    assert importance_pays([1e300, 1e-300]).gain == 0
    assert importance_pays([1e308] * 5 + [1.5e308]).largest_over_mean == pytest.approx(1.5 * 6 / 6.5)
    with pytest.raises(AnalysisError, match=r"^importance_pays: importance .* one positive number per node"):
        importance_pays(RAGGED)


# The mixing time at small tolerances.


@pytest.mark.parametrize("tolerance", [1e-14, 9.9e-14, 1e-300, 5e-324])
def test_distances_below_rounding_are_refused(tolerance):
    with pytest.raises(
        AnalysisError, match=r"^mixing_time: tolerance = .*expected a finite number >= 1e-13 .* rounding"
    ):
        mixing_time(KERNEL, tolerance)


@pytest.mark.parametrize("tolerance", ["a", None, 0, 1.1, -0.1, math.nan, True, [0.1]])
def test_a_tolerance_is_a_number(tolerance):
    with pytest.raises(AnalysisError, match=r"^mixing_time: tolerance = .*expected a finite number .* and up to 1"):
        mixing_time(KERNEL, tolerance)


def test_small_tolerances_have_times_of_their_own():
    kernel = Metropolis(power=1).kernel(fw.graphs.ring(101), [100.0, *[1.0] * 100])
    tenfold = math.log(10) / -math.log1p(-spectral_gap(kernel, absolute=True))
    times = [float(mixing_time(kernel, tolerance)) for tolerance in (1e-10, 1e-11, 1e-12, 1e-13)]
    np.testing.assert_allclose(np.diff(times), tenfold, rtol=0.005)


# Who objects.


@pytest.mark.parametrize(
    "question",
    [
        stationary,
        distance_to_target,
        remark_1,
        bias_identity,
        mixing_time,
    ],
)
def test_the_one_who_was_asked_names_a_walk_that_is_stuck(question):
    with pytest.raises(KernelError, match=rf"^{question.__name__}: FromMatrix.* reducible \(5 strongly connected"):
        question(STUCK)


@pytest.mark.parametrize("who", ["theorem_1", "lemma_2", "smallest_constant", "accumulated_error"])
def test_the_theory_names_itself_when_a_walk_is_stuck(who):
    with pytest.raises(KernelError, match=rf"^{who}: FromMatrix.* reducible"):
        THEORY[who](PROBLEM, STUCK)


@pytest.mark.parametrize(
    "question", [stationary, distance_to_target, remark_1, bias_identity, mixing_time, messages_per_visit]
)
def test_the_one_who_was_asked_names_a_walk_that_changes(question):
    with pytest.raises(AnalysisError, match=rf"^{question.__name__}: .*changes with the step.*kernel\.at\(step\)"):
        question(FADING)
    with pytest.raises(AnalysisError, match=rf"^{question.__name__}: kernel = None, expected a kernel"):
        question(None)


def test_others_can_be_named():
    with pytest.raises(KernelError, match=r"^somebody: FromMatrix"):
        stationary(STUCK, who="somebody")
    with pytest.raises(AnalysisError, match=r"^somebody: kernel = 3"):
        messages_per_visit(3, who="somebody")


def test_a_curve_names_itself():
    other, rule = SimpleWalk().kernel(fw.graphs.ring(6)), fw.SGD(step=0.1)
    with pytest.raises(FreewalkError, match=r"^exact_curve: the objective has 5 nodes and the graph 6"):
        exact_curve(PROBLEM, other, rule)
    with pytest.raises(FreewalkError, match=r"^exact_curve: got a list of phases and a rule"):
        exact_curve(PROBLEM, [fw.Phase(None, KERNEL, rule)], rule)
    with pytest.raises(FreewalkError, match=r"^learn: the objective has 5 nodes and the graph 6"):
        fw.learn(PROBLEM, other, rule, steps=10)


# Why a mixing time is not finite.


def test_a_walk_that_never_mixes_is_called_periodic():
    problem = LeastSquares.synthetic(6, dim=2, ridge=0.1, seed=1)
    found = theorem_1(problem, SimpleWalk().kernel(fw.graphs.ring(6)), 10, step=0.001)
    assert any("mixing: the walk is periodic (period 2)" in reason for reason in found.reasons)
    given = theorem_1(PROBLEM, KERNEL, 10, step=0.001, mixing=math.inf)
    assert any("mixing: the mixing time was given as inf" in reason for reason in given.reasons)


def test_a_mixing_time_that_is_not_known_is_not_called_periodic(monkeypatch):
    endless = MixingTime(math.inf, exact=False, at_least=10)
    monkeypatch.setattr(premises, "mixing_time_of", lambda *_: endless)
    found = theorem_1(PROBLEM, KERNEL, 10, step=0.001)
    assert not found.applies
    (reason,) = (reason for reason in found.reasons if reason.startswith("mixing:"))
    assert "no bound on the mixing time of MHLJ" in reason
    assert "periodic" not in reason


# Anything for any argument of anything: an answer, or an error of ours, and soon.


RULE = fw.SGD(step=0.001)
FITTING = {
    "graph": RING,
    "importance": PROBLEM.smoothness,
    "problem": PROBLEM,
    "kernel": KERNEL,
    "first": Metropolis(0.0).kernel(RING),
    "second": KERNEL,
    "rule": RULE,
    "nodes": [0, 1],
    "steps": 10,
    "step": 0.001,
    "length": 10,
    "longest": 10,
    "settle": 0.1,
    "reach": 0.2,
    "value": 8.0,
}
QUICKLY = {"budget": 0.5, "designs": {}, "most": 50}  # of those that have them, what keeps them from taking long
WRONG = {
    "None": None,
    "text": "x",
    "empty text": "",
    "huge": 10**30,
    "beyond int64": np.uint64(2**63 + 5),
    "negative": -3,
    "zero": 0,
    "fraction": 1.5,
    "nan": math.nan,
    "inf": math.inf,
    "true": True,
    "complex": 1j,
    "empty": [],
    "ragged": RAGGED,
    "rows": np.ones((2, 3)),
    "masked": np.ma.masked_array(np.ones(5), mask=[0, 1, 0, 0, 0]),
    "complex array": np.ones(5) + 1j,
    "texts": ["a", "b"],
    "objects": np.array([object()] * 5),
    "dictionary": {1: 2},
    "object": object(),
    "class": LeastSquares,
    "function": lambda *_: None,
    "other graph": fw.graphs.ring(6),
    "other kernel": SimpleWalk().kernel(fw.graphs.ring(6)),
    "other problem": LeastSquares.synthetic(6, dim=3, seed=1),
    "logistic": fw.objectives.Logistic.synthetic(5, dim=2, ridge=0.1, seed=1),
    "rule": fw.SGD(1.0, average=True),
    "bytes": b"x",
}


def asked() -> dict[str, Callable]:
    """Every function of the analysis and of its theory, by name."""
    found = {name: getattr(home, name) for home in (analysis, analysis.theory) for name in home.__all__}
    return {name: thing for name, thing in found.items() if inspect.isfunction(thing)} | {"MixingTime": MixingTime}


def arguments_of(question: Callable) -> dict[str, object]:
    """Arguments that fit, and do not take long."""
    names = inspect.signature(question).parameters
    return {name: value for name, value in (FITTING | QUICKLY).items() if name in names}


def wrong_calls(question: Callable) -> Iterator[tuple[str, str, dict[str, object]]]:
    for name in inspect.signature(question).parameters:
        for wrong, value in WRONG.items():
            yield name, wrong, {**arguments_of(question), name: value}


@pytest.mark.parametrize("name", sorted(asked()))
def test_arguments_that_fit_are_taken(name):
    """What follows replaces one of them at a time."""
    question = asked()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fw.errors.FreewalkWarning)
        assert question(**arguments_of(question)) is not None


@pytest.mark.quick(*(name for name in asked() if name != "diagnose"))
@pytest.mark.parametrize("name", sorted(asked()))
def test_wrong_arguments_are_answered_or_refused_soon(name):
    question = asked()[name]
    for argument, wrong, arguments in wrong_calls(question):
        began, message = time.monotonic(), ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", fw.errors.FreewalkWarning)
                question(**arguments)
        except FreewalkError as error:
            message = str(error)
        except Exception as error:
            pytest.fail(f"{name}({argument} = {wrong}): {type(error).__name__}: {error}")
        assert time.monotonic() - began < 10, (argument, wrong)
        assert len(message) < 1000, (argument, wrong)


# Sizes.


def test_progress_and_every_of_a_curve():
    with pytest.raises(
        AnalysisError, match=r"^exact_curve: progress = 'x', expected a function progress\(done, steps\)"
    ):
        exact_curve(PROBLEM, KERNEL, RULE, progress="x")
    with pytest.raises(AnalysisError, match=r"^exact_curve: every = 10{30}, expected a whole number >= 1 \(and below"):
        exact_curve(PROBLEM, KERNEL, RULE, every=10**30)
    assert exact_curve(PROBLEM, KERNEL, RULE, steps=10, every=2**62).step.values.tolist() == [0, 10]
    told = []
    exact_curve(PROBLEM, KERNEL, RULE, steps=10, progress=lambda *now: told.append(now))
    assert told == [(10, 10)]


def test_more_checkpoints_than_memory_are_refused():
    with pytest.raises(AnalysisError, match=r"^exact_curve: .* checkpoints would take .*; let every be larger$"):
        exact_curve(PROBLEM, KERNEL, RULE, steps=2**62)
    with pytest.raises(AnalysisError, match=r"^accumulated_error: length = .*, expected a whole number from 1"):
        accumulated_error(PROBLEM, KERNEL, 2**62)


@pytest.mark.parametrize(
    "name",
    [
        "hitting_times",
        "fundamental_matrix",
        "kemeny_constant",
        "steady_state",
        "stability_limit",
        "race",
        "small_step_law",
    ],
)
def test_a_million_nodes_are_refused_before_a_square_of_them_is_made(name):
    n = 10**6
    problem = LeastSquares(np.ones((n, 1)), np.arange(float(n)))
    kernel = SimpleWalk().kernel(fw.graphs.ring(n))
    question = asked()[name]
    arguments = {**arguments_of(question), "problem": problem, "kernel": kernel}
    arguments = {key: value for key, value in arguments.items() if key in inspect.signature(question).parameters}
    tracemalloc.start()
    try:
        with pytest.raises(AnalysisError, match=rf"^{name}: got 1000000 nodes, expected at most 5000"):
            question(**arguments)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


# Nodes by name.


def test_nodes_may_be_named_wherever_nodes_are_taken():
    names = ("Pazzi", "Medici", "Ridolfi", "Strozzi", "uniformed")
    graph = fw.Graph(RING.indptr, RING.indices, node_names=names)
    kernel = MHLJ(0.1, 0.5, 3).kernel(graph, PROBLEM.smoothness)
    heaviest = names[int(PROBLEM.smoothness.argmax())]
    assert escape_time(kernel, ["Pazzi", "Medici"]) == escape_time(KERNEL, [0, 1])
    assert escape_time(kernel, ["Pazzi", "Medici"], "Medici") == escape_time(KERNEL, [0, 1], 1)
    assert analysis.excess_visits(kernel, ["Ridolfi"]) == analysis.excess_visits(KERNEL, [2])
    starts = [(heaviest, "heaviest"), ("Ridolfi", 2), (["Ridolfi", "Medici"], [1, 2]), ("uniformed", 4)]
    for named, same in starts:
        one, other = (exact_curve(PROBLEM, k, RULE, 5, start=s) for k, s in ((kernel, named), (KERNEL, same)))
        assert one.loss.values.tolist() == other.loss.values.tolist()
        raced = [
            analysis.race(PROBLEM, k, settle=0.1, reach=0.2, start=s) for k, s in ((kernel, named), (KERNEL, same))
        ]
        assert raced[0] == raced[1]
        errors = [accumulated_error(PROBLEM, k, 5, s).tolist() for k, s in ((kernel, named), (KERNEL, same))]
        assert errors[0] == errors[1]
    with pytest.raises(FreewalkError, match=r"there is no node 'Pazi', .* did you mean 'Pazzi'"):
        exact_curve(PROBLEM, kernel, RULE, start="Pazi")
    with pytest.raises(AnalysisError, match=r"^escape_time: nodes holds Medici twice"):
        escape_time(kernel, ["Medici", "Medici"])
    with pytest.raises(AnalysisError, match=r"^exact_curve: start = 'Pazzi', .*; ring\(5\) has no names"):
        exact_curve(PROBLEM, KERNEL, RULE, start="Pazzi")
