"""The values of the 5-ring with one heavy node, L = (100, 1, 1, 1, 1), p_J = .1, p_d = .5, r = 3."""

import numpy as np
import pytest
from chains import eigenvalues, fundamental, hitting_times, mixing_time, stationary

import freewalk as fw
from freewalk.designs import MHLJ, Metropolis
from freewalk.designs.mhlj import truncated_geometric

GRAPH = fw.graphs.ring(5)
IMPORTANCE = [100, 1, 1, 1, 1]
LIGHT = 1 / 104

VALUES = {
    "MH-importance": (Metropolis(power=1), [100 * LIGHT, *[LIGHT] * 4], 0.8018, 0.8090, 8, 7.8076923, 243.6),
    "MHLJ": (MHLJ(0.1, 0.5, 3), [0.7065, 0.0677, 0.0791, 0.0791, 0.0677], 0.7319, 0.7632, 5, 6.4896808, 24.135),
    "MH-uniform": (Metropolis(), [0.2] * 5, 0.3090, 0.8090, 5, 4.0, 6.0),
}


@pytest.fixture(params=VALUES, name="chain")
def chain_and_values(request):
    design, *values = VALUES[request.param]
    return design.kernel(GRAPH, IMPORTANCE).matrix().toarray(), *values


def test_stationary_law(chain):
    matrix, law, *_ = chain
    assert np.round(stationary(matrix), 4) == pytest.approx(np.round(law, 4), abs=1e-12)


def test_second_largest_eigenvalue(chain):
    matrix, _, second, *_ = chain
    assert round(eigenvalues(matrix)[1].real, 4) == second


def test_second_largest_modulus(chain):
    matrix, _, _, modulus, *_ = chain
    assert round(float(np.sort(np.abs(eigenvalues(matrix)))[-2]), 4) == modulus


def test_mixing_time(chain):
    matrix, _, _, _, steps, *_ = chain
    assert mixing_time(matrix) == steps


def test_kemeny_constant_in_three_ways(chain):
    matrix, *_, kemeny, _ = chain
    assert round(float(np.trace(fundamental(matrix)) - 1), 7) == kemeny
    assert np.sum(1 / (1 - eigenvalues(matrix)[1:])).real == pytest.approx(kemeny, abs=1e-7)
    assert hitting_times(matrix) @ stationary(matrix) == pytest.approx([kemeny] * 5, abs=1e-7)


def test_largest_hitting_time(chain):
    matrix, *_, longest = chain
    assert hitting_times(matrix).max() == pytest.approx(longest, abs=5e-4)


def test_hitting_times_solve_their_equations(chain):
    """H[i, j] = 1 + Σ_k P[i, k] H[k, j]: the helper itself is right."""
    matrix, *_ = chain
    times = hitting_times(matrix)
    expected = 1 + matrix @ times
    np.fill_diagonal(expected, 0)
    assert times == pytest.approx(expected, abs=1e-9)


def test_exact_entries_of_importance_sampling():
    matrix = Metropolis(power=1).kernel(GRAPH, IMPORTANCE).matrix().toarray()
    assert matrix[0] == pytest.approx([99 / 100, 1 / 200, 0, 0, 1 / 200], abs=1e-15)
    assert matrix[1] == pytest.approx([1 / 2, 0, 1 / 2, 0, 0], abs=1e-15)


def test_truncated_geometric_law_and_the_cost_of_jumps():
    law = truncated_geometric(0.5, 3)
    assert law == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert law @ [1, 2, 3] == pytest.approx(11 / 7)
    kernel = MHLJ(0.1, 0.5, 3).kernel(GRAPH, IMPORTANCE)
    assert sum(move.probability * move.hops for move in kernel.moves) == pytest.approx(1.05714, abs=5e-6)


@pytest.mark.parametrize(("stop", "hops"), [(0.3, 5), (1.0, 4), (0.5, 1), (1e-3, 10), (0.9, 60)])
def test_truncated_geometric_law_in_general(stop, hops):
    weights = np.array([stop * (1 - stop) ** (i - 1) for i in range(1, hops + 1)])
    assert truncated_geometric(stop, hops) == pytest.approx(weights / weights.sum(), rel=1e-12)
