"""The law of a walk, its distance to the target, and its period."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from walks import FIXED, directed_rows, weighted_graphs

import freewalk as fw
from freewalk.analysis.chain.chain import distance_to_target, period, stationary
from freewalk.designs import MHLJ, Decaying, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import AnalysisError, KernelError

RING = fw.graphs.ring(5)
HEAVY = [100, 1, 1, 1, 1]

LAWS = {
    "MH-importance": (Metropolis(power=1), [0.9615, *[0.0096] * 4]),
    "MHLJ": (MHLJ(0.1, 0.5, 3), [0.7065, 0.0677, 0.0791, 0.0791, 0.0677]),
    "MH-uniform": (Metropolis(), [0.2] * 5),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_of_the_five_ring(name):
    design, law = LAWS[name]
    assert stationary(design.kernel(RING, HEAVY)).round(4) == pytest.approx(law, abs=1e-12)


@FIXED
@given(weighted_graphs(), st.floats(0, 1))
def test_no_jumps_give_the_target_and_nothing_else_gives_the_degrees(weighted, jump):
    graph, importance = weighted
    target = importance / importance.sum()
    assert stationary(MHLJ(0.0, 0.5, 3).kernel(graph, importance)) == pytest.approx(target, rel=1e-12)
    degrees = graph.degrees / graph.degrees.sum()
    assert stationary(MHLJ(1.0, 0.5, 3).kernel(graph, importance)) == pytest.approx(degrees, rel=1e-10)
    corrected = MHLJ(jump, 0.5, 3, corrected=True).kernel(graph, importance)
    assert stationary(corrected) == pytest.approx(target, rel=1e-12)
    assert distance_to_target(corrected) < 1e-12


@FIXED
@given(weighted_graphs(), st.floats(0.01, 0.99), st.integers(1, 4))
def test_the_law_is_stationary_in_every_component(weighted, jump, hops):
    graph, importance = weighted
    kernel = MHLJ(jump, 0.5, hops).kernel(graph, importance)
    law = stationary(kernel)
    assert kernel.matrix().T @ law == pytest.approx(law, rel=1e-11)
    assert distance_to_target(kernel) == pytest.approx(np.abs(law - kernel.target).sum() / 2)


@FIXED
@given(weighted_graphs(most=60), st.integers(0, 99))
def test_the_law_of_any_matrix(weighted, seed):
    graph, _ = weighted
    kernel = FromMatrix(directed_rows(graph, seed), target=np.ones(graph.n)).kernel(graph)
    law = stationary(kernel)
    assert kernel.matrix().T @ law == pytest.approx(law, rel=1e-12)
    assert law.sum() == pytest.approx(1)


def test_what_jumps_change_in_the_law():
    """ν − π = p_J π (P_Lévy − P_IS) Z, exactly."""
    graph, importance = fw.graphs.watts_strogatz(40, 4, 0.2, seed=1), np.random.default_rng(1).uniform(1, 50, 40)
    kernel = MHLJ(0.1, 0.5, 3).kernel(graph, importance)
    law, target, matrix = stationary(kernel), np.asarray(kernel.target), kernel.matrix().toarray()
    levy, exact = (MHLJ(jump, 0.5, 3).kernel(graph, importance).matrix().toarray() for jump in (1.0, 0.0))
    fundamental = np.linalg.inv(np.eye(40) - matrix + law)
    assert law - target == pytest.approx(0.1 * target @ (levy - exact) @ fundamental, abs=1e-14)


def test_even_rings_have_period_two():
    assert period(Metropolis().kernel(fw.graphs.ring(6))) == 2
    assert period(Metropolis().kernel(fw.graphs.ring(5))) == 1
    assert period(SimpleWalk().kernel(fw.graphs.grid(4, 5))) == 2
    assert period(MHLJ(0.1, 0.5, 1).kernel(fw.graphs.ring(6), np.ones(6))) == 2
    assert period(MHLJ(0.1, 0.5, 2).kernel(fw.graphs.ring(6), np.ones(6))) == 1
    assert period(Metropolis(power=1).kernel(fw.graphs.ring(6), [9, 1, 1, 1, 1, 1])) == 1


@pytest.mark.parametrize("n", [3, 4, 7, 12])
def test_a_cycle_in_one_direction_has_its_length_as_period(n):
    rows = np.roll(np.eye(n), 1, axis=1)
    assert period(FromMatrix(rows).kernel(fw.graphs.ring(n))) == n


def test_rounding_on_the_diagonal_is_no_stay():
    """Six times 1/6 is less than 1 by one rounding: the rest is no reason to call the walk aperiodic."""
    both = [(v, 6 + u) for v in range(6) for u in range(6)]
    kernel = Metropolis().kernel(fw.graphs.from_edges(both))
    assert kernel.matrix().diagonal().max() > 0
    assert period(kernel) == 2


@FIXED
@given(weighted_graphs(most=40))
def test_the_period_is_that_of_the_eigenvalues(weighted):
    graph, _ = weighted
    kernel = SimpleWalk().kernel(graph)
    on_the_circle = np.abs(np.abs(np.linalg.eigvals(kernel.matrix().toarray())) - 1) < 1e-9
    assert period(kernel) == on_the_circle.sum()


def test_the_period_of_many_nodes():
    assert period(SimpleWalk().kernel(fw.graphs.ring(300_000))) == 2
    assert period(SimpleWalk().kernel(fw.graphs.ring(299_999))) == 1


@pytest.mark.parametrize("question", [stationary, distance_to_target, period])
def test_what_has_no_law(question):
    stuck = FromMatrix(np.eye(6), target=np.ones(6)).kernel(fw.graphs.ring(6))
    with pytest.raises(
        KernelError, match=rf"^{question.__name__}: FromMatrix.* reducible \(6 strongly connected parts\)"
    ):
        question(stuck)
    fading = Decaying(MHLJ(0.1, 0.5, 3), fw.schedules.Inverse(1.0, scale=5)).kernel(RING, HEAVY)
    with pytest.raises(AnalysisError, match=r"changes with the step.*kernel\.at"):
        question(fading)
    with pytest.raises(AnalysisError, match=r"kernel = 3, expected a kernel"):
        question(3)
