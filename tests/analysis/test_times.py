"""Eigenvalues, mixing, hitting, staying and escaping: the paper's values, identities, and what cannot be answered."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from walks import FIXED, directed_rows, weighted_graphs

import freewalk as fw
from freewalk.analysis.chain import mixing_time as mixing
from freewalk.analysis.chain import spectrum
from freewalk.analysis.chain.chain import chain_of, stationary
from freewalk.analysis.chain.mixing_time import MixingTime, mixing_time
from freewalk.analysis.chain.spectrum import second_eigenvalue, spectral_gap
from freewalk.analysis.chain.times import escape_time, fundamental_matrix, hitting_times, kemeny_constant, sojourn_times
from freewalk.designs import MHLJ, FromMatrix, Metropolis, SimpleWalk
from freewalk.errors import AnalysisError, KernelError

FIVE = fw.graphs.ring(5)
VALUES = {
    "MH-importance": (Metropolis(power=1), 0.8018, 0.8090, 8, 7.8076923, 243.6),
    "MHLJ": (MHLJ(0.1, 0.5, 3), 0.7319, 0.7632, 5, 6.4896808, 24.135),
    "MH-uniform": (Metropolis(), 0.3090, 0.8090, 5, 4.0, 6.0),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_the_five_ring(name):
    design, second, modulus, steps, kemeny, longest = VALUES[name]
    kernel = design.kernel(FIVE, [100, 1, 1, 1, 1])
    assert round(second_eigenvalue(kernel), 4) == second
    assert round(second_eigenvalue(kernel, modulus=True), 4) == modulus
    assert mixing_time(kernel) == steps
    assert round(kemeny_constant(kernel), 7) == kemeny
    assert hitting_times(kernel).max() == pytest.approx(longest, abs=5e-4)
    assert spectral_gap(kernel) == pytest.approx(1 - second, abs=5e-5)
    assert spectral_gap(kernel, absolute=True) == pytest.approx(1 - modulus, abs=5e-5)


@FIXED
@given(weighted_graphs(most=200), st.floats(0.01, 1), st.integers(1, 4))
def test_kemeny_constant_in_three_ways(weighted, jump, hops):
    graph, importance = weighted
    kernel = MHLJ(jump, 0.5, hops).kernel(graph, importance)
    law, times, kemeny = stationary(kernel), hitting_times(kernel), kemeny_constant(kernel)
    values = np.linalg.eigvals(kernel.matrix().toarray())
    values = np.delete(values, np.argmin(np.abs(values - 1)))
    assert np.sum(1 / (1 - values)).real == pytest.approx(kemeny, rel=1e-6)
    assert times @ law == pytest.approx([kemeny] * graph.n, rel=1e-8)
    assert np.trace(fundamental_matrix(kernel)) - 1 == pytest.approx(kemeny, rel=1e-12)


@FIXED
@given(weighted_graphs(most=80), st.integers(0, 99))
def test_hitting_times_solve_their_equations(weighted, seed):
    graph, _ = weighted
    kernel = FromMatrix(directed_rows(graph, seed)).kernel(graph)
    times = hitting_times(kernel)
    expected = 1 + kernel.matrix() @ times
    np.fill_diagonal(expected, 0)
    assert times == pytest.approx(expected, rel=1e-8)
    assert not np.diag(times).any()


@FIXED
@given(weighted_graphs(span=4.0), st.floats(0, 1), st.integers(1, 3))
def test_a_node_that_holds_much_is_left_slowly(weighted, jump, hops):
    """1 − P(h, h) ≤ ν(B_r(h) ∖ h) / ν(h) for any chain whose longest move has r hops."""
    graph, importance = weighted
    kernel = MHLJ(jump, 0.5, hops).kernel(graph, importance)
    law, longest = stationary(kernel), hops if jump > 0 else 1
    near = np.linalg.matrix_power(graph.adjacency().toarray() + np.eye(graph.n), longest) > 0
    bound = (near @ law - law) / law
    assert (1 / sojourn_times(kernel) <= bound * (1 + 1e-9)).all()
    stays = kernel.matrix().diagonal()
    assert 1 / sojourn_times(kernel) == pytest.approx(1 - stays, rel=1e-9, abs=1e-12)


@FIXED
@given(
    weighted_graphs(most=120), st.sampled_from([Metropolis(power=1), SimpleWalk(), MHLJ(0.2, 0.5, 3, corrected=True)])
)
def test_both_ways_to_the_second_eigenvalue_agree(weighted, design):
    graph, importance = weighted
    chain = chain_of("test", design.kernel(graph, importance))
    assert chain.reversible
    for modulus in (False, True):
        one, other = (path("test", chain, modulus) for path in (spectrum._symmetric, spectrum._general))
        assert one == pytest.approx(other, abs=1e-8)


@pytest.mark.parametrize("graph", [fw.graphs.ring(300), fw.graphs.grid(18, 18)])
@pytest.mark.parametrize("path", ["_symmetric", "_general"])
@pytest.mark.parametrize("inverse", ["factored", "iterated"])
def test_iterated_eigenvalues_are_those_of_the_dense_matrix(graph, path, inverse, monkeypatch):
    importance = np.random.default_rng(0).uniform(1, 20, graph.n)
    chain = chain_of("test", Metropolis(power=1).kernel(graph, importance))
    expected = getattr(spectrum, path)("test", chain, False)
    monkeypatch.setattr(spectrum, "ALL", 10)
    monkeypatch.setattr(spectrum, "_NARROW", math.inf if inverse == "factored" else 0)
    if inverse == "iterated":  # as where the plain iteration does not converge
        plain = spectrum.converged

        def only_inverted(who, solver, matrix, *rest):
            if hasattr(matrix, "indptr"):
                raise AnalysisError("too slow")
            return plain(who, solver, matrix, *rest)

        monkeypatch.setattr(spectrum, "converged", only_inverted)
    found = getattr(spectrum, path)("test", chain, False)
    assert 1 - found == pytest.approx(1 - expected, rel=1e-6)


def test_walks_that_are_not_reversible_on_many_nodes(monkeypatch):
    graph = fw.graphs.watts_strogatz(300, 4, 0.2, seed=1)
    kernel = MHLJ(0.3, 0.5, 3).kernel(graph, np.random.default_rng(0).uniform(1, 20, 300))
    expected = [second_eigenvalue(kernel), second_eigenvalue(kernel, modulus=True)]
    monkeypatch.setattr(spectrum, "ALL", 10)
    assert [second_eigenvalue(kernel), second_eigenvalue(kernel, modulus=True)] == pytest.approx(expected, abs=1e-8)


def test_eigenvalues_can_be_complex():
    rows = 0.1 * np.eye(5) + 0.9 * np.roll(np.eye(5), 1, axis=1)
    kernel = FromMatrix(rows).kernel(FIVE)
    expected = 0.1 + 0.9 * np.exp(2j * np.pi / 5)
    found = second_eigenvalue(kernel)
    assert isinstance(found, complex)
    assert (found.real, abs(found.imag)) == pytest.approx((expected.real, expected.imag))
    assert second_eigenvalue(kernel, modulus=True) == pytest.approx(abs(expected))
    assert spectral_gap(kernel) == pytest.approx(1 - expected.real)


def test_periodic_walks_never_mix():
    kernel = Metropolis().kernel(fw.graphs.ring(6))
    assert second_eigenvalue(kernel, modulus=True) == 1
    assert spectral_gap(kernel, absolute=True) == 0
    assert spectral_gap(kernel) == pytest.approx(0.5)
    time = mixing_time(kernel)
    assert (time, time.period, time.exact, repr(time)) == (math.inf, 2, True, "inf (periodic, period 2)")
    # Half of the law is always out of reach, and no more than that.
    assert mixing_time(kernel, tolerance=0.6) == plain_mixing_time(kernel, 0.6)


def plain_mixing_time(kernel, tolerance):
    matrix, law = kernel.matrix().toarray(), stationary(kernel)
    power, steps = np.eye(len(matrix)), 0
    while np.abs(power - law).sum(axis=1).max() / 2 > tolerance + 1e-12:
        power, steps = power @ matrix, steps + 1
    return steps


@FIXED
@given(weighted_graphs(most=30), st.floats(0.01, 0.95), st.floats(0, 1))
def test_mixing_times_step_by_step(weighted, tolerance, jump):
    graph, importance = weighted
    lazy = (
        FromMatrix(0.5 * np.eye(graph.n) + 0.5 * MHLJ(jump, 0.5, 2).kernel(graph, importance).matrix().toarray())
        if jump == 0
        else MHLJ(jump, 0.5, 2)
    )
    kernel = lazy.kernel(graph, importance)
    assert mixing_time(kernel, tolerance) == plain_mixing_time(kernel, tolerance)


def test_ties_are_reached():
    """On the complete graph with stays, d(t) falls by whole powers of ½: it is ¼ after two steps, not after three."""
    rows = np.full((4, 4), 1 / 8) + 0.5 * np.eye(4)
    kernel = FromMatrix(rows).kernel(fw.graphs.complete(4))
    distances = [0.75 * 0.5**t for t in range(8)]
    for steps, distance in enumerate(distances):
        assert mixing_time(kernel, distance) == steps
    assert mixing_time(kernel, distances[3] - 1e-6) == 4


@pytest.mark.parametrize("tolerance", [0.25, 0.01])
def test_powers_spectrum_and_bounds_agree_on_the_mixing_time(tolerance):
    graph = fw.graphs.grid(12, 25)
    chain = chain_of("test", Metropolis(power=1).kernel(graph, np.random.default_rng(0).uniform(1, 20, graph.n)))
    exact = mixing._from_powers("test", chain, tolerance, 1)
    assert mixing._from_spectrum("test", chain, tolerance, 1) == exact
    bound = mixing._bound("test", chain, tolerance, 1)
    assert not bound.exact
    assert bound.at_least <= exact <= bound
    general = mixing._bound("test", chain._replace(reversible=False), tolerance, 1)
    assert general.at_least <= exact <= general


def test_bounds_hold_for_walks_with_jumps():
    graph = fw.graphs.watts_strogatz(300, 4, 0.2, seed=1)
    chain = chain_of("test", MHLJ(0.2, 0.5, 3).kernel(graph, np.random.default_rng(0).uniform(1, 20, 300)))
    assert not chain.reversible
    bound = mixing._bound("test", chain, 0.25, 1)
    assert bound.at_least <= mixing._from_powers("test", chain, 0.25, 1) <= bound


def test_many_nodes_get_a_bound():
    kernel = MHLJ(0.2, 0.5, 3).kernel(fw.graphs.watts_strogatz(3001, 6, 0.5, seed=1), np.ones(3001))
    time = mixing_time(kernel)
    assert not time.exact
    assert 1 <= time.at_least <= time < math.inf
    assert repr(time) == f"≤ {time:.0f} (a bound; at least {time.at_least:.0f})"


@pytest.mark.parametrize(("jump", "steps"), [(0.0, 124), (0.1, 136), (0.9, 347)])
def test_jumps_can_raise_the_mixing_time(jump, steps):
    """On a path of 60 nodes whose importance falls from the middle: 124 steps without jumps, more with them."""
    kernel = MHLJ(jump, 0.5, 3).kernel(fw.graphs.path(60), 2.0 ** -np.abs(np.arange(60) - 30))
    assert mixing_time(kernel) == steps


def test_a_mixing_time_is_a_number_that_survives_copies():
    time = MixingTime(13400, exact=False, at_least=512)
    assert time + 1 == 13401
    for other in (copy.copy(time), pickle.loads(pickle.dumps(time))):
        assert (other, other.exact, other.at_least, other.period) == (13400, False, 512, 1)
    assert str(MixingTime(8)) == "8"
    assert MixingTime(8).at_least == 8


@pytest.mark.parametrize("tolerance", [0, 1.1, -0.1, math.nan, "0.25", True])
def test_tolerances_that_are_none(tolerance):
    with pytest.raises(AnalysisError, match="mixing_time: tolerance = "):
        mixing_time(Metropolis().kernel(FIVE), tolerance)


def test_the_escape_from_two_heavy_nodes_of_a_ring():
    """No single node is a trap, the pair is; jumps open it, and uniform sampling has none."""
    problem = fw.objectives.LeastSquares.synthetic(1000, dim=10, heavy=2, seed=1)
    pair = np.argsort(-problem.smoothness)[:2]
    times = {}
    for name, design in [("importance", Metropolis(power=1)), ("jumps", MHLJ(0.1, 0.5, 3)), ("uniform", Metropolis())]:
        kernel = design.kernel(fw.graphs.ring(1000), problem.smoothness)
        times[name] = escape_time(kernel, pair)
        assert sojourn_times(kernel)[pair].max() < 5
    assert times["importance"] == pytest.approx(384.466, abs=1e-3)
    assert times["jumps"] == pytest.approx(18.465, abs=1e-3)
    assert times["uniform"] == pytest.approx(2)


@FIXED
@given(weighted_graphs(most=60), st.floats(0, 1), st.integers(0, 999))
def test_escape_times_in_plain_numpy(weighted, jump, seed):
    graph, importance = weighted
    numbers = np.random.default_rng(seed)
    kernel = MHLJ(jump, 0.5, 2).kernel(graph, importance)
    nodes = numbers.permutation(graph.n)[: numbers.integers(1, graph.n)]
    matrix, law = kernel.matrix().toarray(), stationary(kernel)
    inside = matrix[np.ix_(nodes, nodes)]
    times = np.linalg.solve(np.eye(nodes.size) - inside, np.ones(nodes.size))
    assert escape_time(kernel, nodes) == pytest.approx(law[nodes] @ times / law[nodes].sum(), rel=1e-8)
    assert escape_time(kernel, nodes.tolist(), int(nodes[-1])) == pytest.approx(times[-1], rel=1e-8)
    shares = numbers.uniform(0, 1, nodes.size)
    assert escape_time(kernel, nodes, shares) == pytest.approx(shares @ times / shares.sum(), rel=1e-8)
    others = np.setdiff1d(np.arange(graph.n), nodes)
    entries = law[others] @ matrix[np.ix_(others, nodes)]
    assert escape_time(kernel, nodes, "entry") == pytest.approx(entries @ times / entries.sum(), rel=1e-8)


def test_one_node_is_escaped_after_its_sojourn():
    kernel = Metropolis(power=1).kernel(FIVE, [100, 1, 1, 1, 1])
    assert sojourn_times(kernel) == pytest.approx([100, 1, 1, 1, 1])
    assert escape_time(kernel, [0]) == pytest.approx(100)
    assert escape_time(kernel, [0], "entry") == pytest.approx(100)


def test_escapes_on_many_nodes():
    """The middle of an interval of a path is left after (d + 1)² steps."""
    kernel = SimpleWalk().kernel(fw.graphs.path(100_000))
    assert escape_time(kernel, range(50_000, 50_201), 50_100) == pytest.approx(101**2)


@pytest.mark.parametrize(
    ("nodes", "start", "message"),
    [
        ([], None, r"nodes = \[\], expected a list of at least one node"),
        (3, None, r"nodes = 3, expected a list"),
        ([0.5], None, r"nodes is an array of float64, .* give a list of at least one node"),
        ([0, 5], None, r"nodes holds 5, expected whole numbers from 0 to 4"),
        ([-1], None, r"nodes holds -1, expected"),
        ([1, 2, 1], None, r"nodes holds 1 twice, expected different"),
        ([0, 1, 2, 3, 4], None, r"all 5 nodes of the graph, which no walk leaves; leave at least one out"),
        ([0, 1], 2, r"start = 2, .* one of the nodes of the set"),
        ([0, 1], "centre", r"start = 'centre', expected None, \"entry\""),
        ([0, 1], [1.0], r"start has shape \(1,\), .* or 2 numbers"),
        ([0, 1], [1.0, -1.0], r"start\[1\] = -1.0, .* or 2 numbers"),
        ([0, 1], [0.0, 0.0], r"start = \[0.0, 0.0\], .* or 2 numbers"),
        ([0, 1], [1.0, math.nan], r"start\[1\] = nan, .* or 2 numbers"),
    ],
)
def test_sets_and_starts_that_are_none(nodes, start, message):
    with pytest.raises(AnalysisError, match=f"^escape_time: .*{message}"):
        escape_time(Metropolis().kernel(FIVE), nodes, start)


QUESTIONS = [second_eigenvalue, spectral_gap, mixing_time, fundamental_matrix, hitting_times, kemeny_constant]


@pytest.mark.parametrize("question", [*QUESTIONS, lambda kernel: escape_time(kernel, [0])])
def test_reducible_kernels_have_no_times(question):
    rows = [[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]]
    kernel = FromMatrix(np.array(rows), target=np.ones(4)).kernel(fw.graphs.path(4))
    with pytest.raises(KernelError, match=r"reducible \(3 strongly .* goes from node 0 to node 1 but cannot return"):
        question(kernel)


def test_a_node_that_is_never_left():
    rows = np.array([[0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5]])
    kernel = FromMatrix(rows, target=np.ones(3)).kernel(fw.graphs.path(3))
    assert sojourn_times(kernel) == pytest.approx([2, math.inf, 2])


@pytest.mark.parametrize("question", [fundamental_matrix, hitting_times, kemeny_constant])
def test_dense_questions_on_many_nodes(question):
    with pytest.raises(AnalysisError, match=rf"^{question.__name__}: got 5001 nodes, .* escape_time"):
        question(SimpleWalk().kernel(fw.graphs.ring(5001)))
    with pytest.raises(AnalysisError, match=r"kernel = None, expected a kernel"):
        question(None)


def test_an_iteration_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr(spectrum, "ALL", 10)
    monkeypatch.setattr(spectrum, "_RESTARTS", 1)
    kernel = MHLJ(0.1, 0.5, 3).kernel(fw.graphs.ring(900), np.random.default_rng(0).uniform(1, 20, 900))
    with pytest.raises(AnalysisError, match=r"second_eigenvalue: the iteration .* 900 nodes does not converge"):
        second_eigenvalue(kernel, modulus=True)
