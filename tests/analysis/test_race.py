"""Matched steps: two designs that settle at the same error, as far as there is a step for it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walks import random_graph

import freewalk as fw
from freewalk.analysis import matched_steps, stability_limit, steady_state
from freewalk.designs import MHLJ, Decaying, FromMatrix, Metropolis
from freewalk.errors import AnalysisError

IMPORTANCE = Metropolis(1.0)
FEW = settings(derandomize=True, deadline=None, database=None, max_examples=10)


def setting(kind="ring", n=16, seed=4, second=IMPORTANCE, **options):
    graph = random_graph(kind, n, seed)
    problem = fw.objectives.LeastSquares.synthetic(
        graph.n, **{"dim": 3, "heavy": 2, "heavy_variance": 10.0, "noise": 0.3, "seed": seed, **options}
    )
    return problem, Metropolis(0.0).kernel(graph, problem.smoothness), second.kernel(graph, problem.smoothness)


@FEW
@given(
    kind=st.sampled_from(["ring", "path", "grid", "small world", "hubs"]),
    n=st.integers(6, 24),
    seed=st.integers(0, 100),
    fraction=st.sampled_from([0.05, 0.25, 0.5, 0.9]),
)
def test_both_settle_at_the_same_error(kind, n, seed, fraction):
    problem, uniform, importance = setting(kind, n, seed)
    found = matched_steps(problem, uniform, importance, fraction=fraction)
    first = steady_state(problem, uniform, fw.SGD(found.first))
    second = steady_state(problem, importance, fw.SGD(found.second))
    assert found.excess == pytest.approx(first.excess, rel=1e-6)
    assert found.settled == pytest.approx(second.excess, rel=1e-6)
    assert found.settled == pytest.approx(found.excess, rel=5e-3)


@pytest.mark.parametrize(
    "second", [IMPORTANCE, Metropolis(0.5), MHLJ(0.3, 0.5, 3, corrected=True)], ids=["1", "half", "jumps"]
)
@pytest.mark.parametrize("kind", ["ring", "grid", "small world", "hubs"])
def test_the_match_is_a_match_where_there_is_one(kind, second):
    """A small first step leaves room below the cap for all of these, and none is biased."""
    problem, uniform, other = setting(kind, second=second)
    found = matched_steps(problem, uniform, other, fraction=0.02)
    assert found.second < 0.99 / (other.weights * problem.smoothness).max()
    assert steady_state(problem, other, fw.SGD(found.second)).excess == pytest.approx(found.excess, rel=5e-3)
    # A tenth more or less of either step would be seen.
    for step in (0.9 * found.second, 1.1 * found.second):
        assert abs(steady_state(problem, other, fw.SGD(step)).excess / found.excess - 1) > 0.02


def test_the_limit_is_the_stability_limit_and_the_fraction_scales_the_first_step():
    problem, uniform, importance = setting()
    limit = stability_limit(problem, uniform)
    excesses = []
    for fraction in (0.1, 0.25, 0.5, 0.9):
        found = matched_steps(problem, uniform, importance, fraction=fraction)
        assert found.limit == limit
        assert found.first == pytest.approx(fraction * limit, rel=1e-12)
        excesses.append(found.excess)
    assert (np.diff(excesses) > 0).all()
    assert matched_steps(problem, uniform, importance) == matched_steps(problem, uniform, importance, fraction=0.5)


def test_the_rule_is_heeded_and_its_step_is_not():
    problem, uniform, importance = setting()
    plain = matched_steps(problem, uniform, importance)
    assert matched_steps(problem, uniform, importance, rule=fw.SGD(17.0)) == plain
    rule = fw.SGD(1.0, weighted=False)
    found = matched_steps(problem, importance, uniform, rule=rule, fraction=0.1)
    assert found.limit == stability_limit(problem, importance, rule)
    assert found.limit != pytest.approx(stability_limit(problem, importance), rel=0.01)


def test_a_step_beyond_what_is_safe_is_found_below_the_stability_limit():
    """At 1 / max L the uniform walk settles far lower than importance sampling does at half of its limit."""
    problem, uniform, importance = setting()
    found = matched_steps(problem, importance, uniform, fraction=0.5)
    assert 1.5 / problem.smoothness.max() < found.second < stability_limit(problem, uniform)
    assert found.settled == pytest.approx(found.excess, rel=5e-3)
    assert found.settled == pytest.approx(steady_state(problem, uniform, fw.SGD(found.second)).excess, rel=1e-6)


def test_a_limit_that_is_known_is_not_computed_again(monkeypatch):
    problem, uniform, importance = setting()
    plain = matched_steps(problem, uniform, importance)
    monkeypatch.setattr("freewalk.analysis.learning.race.limit_of", None)
    assert matched_steps(problem, uniform, importance, limit=plain.limit) == plain


def test_where_the_bias_alone_is_more_the_second_settles_higher():
    problem, uniform, jumping = setting(second=MHLJ(0.9, 0.5, 3), shift=1.0, noise=0.01)
    found = matched_steps(problem, uniform, jumping, fraction=1e-3)
    assert found.settled > 1.1 * found.excess


def test_one_line_says_it():
    problem, uniform, importance = setting()
    found = matched_steps(problem, uniform, importance)
    words = str(found)
    assert "\n" not in words
    for number in (found.limit, found.first, found.excess, found.second, found.settled):
        assert f"{number:.3g}" in words


@pytest.mark.parametrize("fraction", [0, 1, 1.5, -0.1, np.nan, np.inf, "half", None, True, [0.5]], ids=str)
def test_a_fraction_is_between_0_and_1(fraction):
    problem, uniform, importance = setting()
    with pytest.raises(AnalysisError, match=r"matched_steps: fraction = .*, expected a number between 0 and 1"):
        matched_steps(problem, uniform, importance, fraction=fraction)


@pytest.mark.parametrize("seed", range(4))
def test_without_noise_there_is_nothing_to_match(seed):
    problem, uniform, importance = setting(noise=0.0, seed=seed)
    with pytest.raises(AnalysisError, match=r"matched_steps: the data have no noise.*none can be matched"):
        matched_steps(problem, uniform, importance)


def test_bad_input_says_what_to_do_instead():
    problem, uniform, importance = setting()
    with pytest.raises(AnalysisError, match=r"matched_steps: .*LeastSquares"):
        matched_steps(fw.objectives.Logistic.synthetic(16), uniform, importance)
    with pytest.raises(AnalysisError, match=r"matched_steps: .*without averaging"):
        matched_steps(problem, uniform, importance, rule=fw.SGD(0.1, average=True))
    graph = fw.graphs.ring(16)
    fading = Decaying(MHLJ(0.3, 0.5, 3), fw.schedules.Inverse(1.0, scale=10)).kernel(graph, problem.smoothness)
    for pair in ((fading, importance), (uniform, fading)):
        with pytest.raises(AnalysisError, match=r"kernel\.at\(step\)"):
            matched_steps(problem, *pair)
    reducible = FromMatrix(np.eye(16), target=np.ones(16)).kernel(graph)
    with pytest.raises(fw.FreewalkError, match="parts"):
        matched_steps(problem, uniform, reducible)
    with pytest.raises(fw.FreewalkError, match="nodes"):
        matched_steps(problem, uniform, Metropolis(0.0).kernel(fw.graphs.ring(15)))
