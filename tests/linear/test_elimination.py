"""Elimination without subtraction: what linear algebra says where it can tell, and all digits where it cannot."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

import freewalk as fw
from freewalk.designs import Metropolis
from freewalk.linear.elimination import absorbed, dense_law, hitting, narrow_absorbed, narrow_law, narrow_order
from freewalk.linear.stationary import leaving_rates

SIZES = [1, 2, 3, 63, 64, 65, 130, 200]  # blocks have 64 nodes
STEEP = range(40)


def random_rates(n, seed=0):
    """A third of all pairs, and a ring, so that every node can be reached."""
    numbers = np.random.default_rng([n, seed])
    rates = numbers.uniform(0.1, 1, (n, n)) * (numbers.random((n, n)) < 1 / 3) / n
    rates[np.arange(n), np.arange(1, n + 1) % n] += 0.5
    np.fill_diagonal(rates, 0)
    return rates


def narrow_rates(n, seed=0):
    """Moves of up to three places on a line whose nodes are numbered at random."""
    numbers = np.random.default_rng([n, seed])
    far = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    rates = numbers.uniform(0.1, 1, (n, n)) * (far > 0) * ((far == 1) | (far <= 3) & (numbers.random((n, n)) < 0.5))
    order = numbers.permutation(n)
    return rates[order][:, order]


def steep_rates(n, seed, span):
    """A ring and some chords, over `span` orders of magnitude."""
    numbers = np.random.default_rng([n, seed])
    rates = 10.0 ** numbers.uniform(-span, 0, (n, n)) * (numbers.random((n, n)) < 0.3)
    for step in (1, -1):
        rates[np.arange(n), (np.arange(n) + step) % n] = 10.0 ** numbers.uniform(-span, 0, n)
    np.fill_diagonal(rates, 0)
    return rates


def balance(rates, absorption=0.0):
    return np.diag(rates.sum(axis=1) + absorption) - rates


def plain_law(rates):
    n = len(rates)
    equations = np.vstack([balance(rates).T[1:], np.ones(n)])
    return np.linalg.solve(equations, np.append(np.zeros(n - 1), 1.0))


def plain_hitting(rates, costs):
    """h = H[:, j] solves L h = c − (ν c / ν_j) e_j, with L the balance; any inverse of L will do."""
    inverse, law = np.linalg.inv(balance(rates) + 1 / len(rates)), plain_law(rates)
    spent = inverse @ costs
    return np.subtract.outer(spent, spent) + (law @ costs / law) * (np.diag(inverse) - inverse)


def exact_solution(matrix, right):
    """Gauss and Jordan in fractions; subtractions lose nothing here."""
    n = len(matrix)
    rows = [[*map(Fraction, row), *map(Fraction, more)] for row, more in zip(matrix, right, strict=True)]
    for k in range(n):
        rows[k] = [one / rows[k][k] for one in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                rows[i] = [one - rows[i][k] * other for one, other in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


def exact_balance(rates, absorption):
    n, whole = len(rates), [[Fraction(one) for one in row] for row in rates.tolist()]
    return [
        [(sum(whole[i]) + Fraction(float(absorption[i])) if i == j else 0) - whole[i][j] for j in range(n)]
        for i in range(n)
    ]


def exact_law(rates):
    """From how often the first node's excursions visit the others."""
    rest = [[float(one) for one in row[1:]] for row in rates[1:]]
    matrix = exact_balance(np.array(rest), rates[1:, 0])
    visits = exact_solution(
        [list(column) for column in zip(*matrix, strict=True)], [[float(one)] for one in rates[0, 1:]]
    )
    law = [Fraction(1), *(one for (one,) in visits)]
    return np.array([float(one / sum(law)) for one in law])


def exact_hitting(rates, costs):
    n, times = len(rates), np.zeros((len(rates), len(rates)))
    for node in range(n):
        rest = np.delete(np.arange(n), node)
        matrix = exact_balance(rates[np.ix_(rest, rest)], rates[rest, node])
        times[rest, node] = [float(one) for (one,) in exact_solution(matrix, [[float(costs[v])] for v in rest])]
    return times


def in_band(rates):
    """As the narrow eliminations take a chain."""
    leaving = leaving_rates(csr_array(rates))
    return leaving, *narrow_order(leaving)


@pytest.mark.parametrize("n", SIZES)
def test_absorption_as_linear_algebra_has_it(n):
    rates, numbers = random_rates(n), np.random.default_rng(n)
    absorption = numbers.uniform(0, 1, n) * (np.arange(n) % 3 == 0)
    right = numbers.uniform(0, 1, (n, 4))
    before = rates.copy(), absorption.copy(), right.copy()
    found = absorbed(rates, absorption, right)
    assert found == pytest.approx(np.linalg.solve(balance(rates, absorption), right), rel=1e-11)
    assert all(map(np.array_equal, (rates, absorption, right), before))


@pytest.mark.parametrize("n", SIZES)
def test_hitting_as_linear_algebra_has_it(n):
    rates, costs = random_rates(n), np.random.default_rng(n).uniform(0.5, 2, n)
    found = hitting(rates, costs)
    assert found == pytest.approx(plain_hitting(rates, costs), rel=1e-11)
    assert not np.diag(found).any()


@pytest.mark.parametrize("n", SIZES)
def test_laws_as_linear_algebra_has_them(n):
    rates = random_rates(n)
    assert dense_law(rates.copy()) == pytest.approx(plain_law(rates), rel=1e-11)


@pytest.mark.parametrize("n", SIZES)
def test_narrow_eliminations_as_linear_algebra_has_them(n):
    rates, numbers = narrow_rates(n), np.random.default_rng(n)
    leaving, place, width = in_band(rates)
    assert sorted(place) == list(range(n))
    assert width <= 10
    assert narrow_law(leaving, place, width) == pytest.approx(plain_law(rates), rel=1e-10)
    absorption = numbers.uniform(0, 1, n) * (np.arange(n) % 7 == 0)
    right = numbers.uniform(0, 1, (n, 3))
    expected = np.linalg.solve(balance(rates, absorption), right)
    assert narrow_absorbed(leaving, place, width, absorption, right) == pytest.approx(expected, rel=1e-10)


def test_the_diagonal_is_not_read():
    rates, right = random_rates(80), np.ones((80, 1))
    other, absorption = rates + np.diag(np.random.default_rng(0).uniform(0, 1, 80)), np.full(80, 0.1)
    assert np.array_equal(absorbed(rates, absorption, right), absorbed(other, absorption, right))
    assert np.array_equal(hitting(rates, right[:, 0]), hitting(other, right[:, 0]))
    assert np.array_equal(dense_law(rates), dense_law(other))


@pytest.mark.parametrize("span", [20, 60])
def test_steep_chains_have_all_their_digits(span):
    worst = {}

    def compare(name, found, expected):
        errors = np.abs(found - expected) / np.where(expected, np.abs(expected), 1.0)
        worst[name] = max(worst.get(name, 0.0), float(errors.max()))

    for seed in STEEP:
        n, numbers = 2 + seed % 6, np.random.default_rng(seed)
        rates, absorption = steep_rates(n, seed, span), 10.0 ** numbers.uniform(-span, 0, n) * (np.arange(n) % 2)
        costs, right = 10.0 ** numbers.uniform(-span, 0, n), 10.0 ** numbers.uniform(-span, 0, (n, 2))
        leaving, place, width = in_band(rates)
        law, solution = exact_law(rates), exact_solution(exact_balance(rates, absorption), right.tolist())
        solution = np.array([[float(one) for one in row] for row in solution])
        compare("hitting", hitting(rates, costs), exact_hitting(rates, costs))
        compare("absorbed", absorbed(rates, absorption, right), solution)
        compare("narrow_absorbed", narrow_absorbed(leaving, place, width, absorption, right), solution)
        compare("narrow_law", narrow_law(leaving, place, width), law)
        compare("dense_law", dense_law(rates), law)
    assert max(worst.values()) < 1e-14, worst


@pytest.mark.parametrize("heavy", [1e8, 1e16, 1e18])
def test_ordinary_elimination_fails_where_there_are_two_traps(heavy):
    """From one trap of a ring to the other it takes 3 R + 6 steps; by differences, any number comes out."""
    importance = np.array([heavy, 1, 1, heavy, 1, 1])
    matrix = Metropolis(power=1).kernel(fw.graphs.ring(6), importance).matrix()
    rates, rest = leaving_rates(matrix).toarray(), np.delete(np.arange(6), 3)
    ones = np.ones(6)
    assert exact_hitting(rates, ones)[0, 3] == pytest.approx(3 * heavy + 6, rel=1e-15)
    assert hitting(rates, ones)[0, 3] == pytest.approx(3 * heavy + 6, rel=1e-15)
    assert absorbed(rates[np.ix_(rest, rest)], rates[rest, 3], np.ones((5, 1)))[0] == pytest.approx(
        3 * heavy + 6, rel=1e-15
    )
    # The same system with 1 − P(v, v) in place of what leaves v, and pivots by differences.
    ordinary = np.eye(6) - matrix.toarray()
    found = np.linalg.solve(ordinary[np.ix_(rest, rest)], ones[rest])[0]
    assert abs(found / (3 * heavy + 6) - 1) > (1e-9 if heavy < 1e16 else 0.1)


@pytest.mark.parametrize(
    "steepness",
    [
        1e-90,
        1e-200,
    ],
)
def test_a_law_that_rises_beyond_all_floats_leaves_zeros(steepness):
    n = 8
    rates = np.diag(np.full(n - 1, 0.5), 1) + np.diag(np.full(n - 1, 0.5 * steepness), -1)
    leaving, place, width = in_band(rates)
    expected = exact_law(rates)
    assert not expected[:3].any()
    assert dense_law(rates[::-1, ::-1].copy()) == pytest.approx(expected[::-1], rel=1e-14, abs=0)
    assert dense_law(rates.copy()) == pytest.approx(expected, rel=1e-14, abs=0)
    assert narrow_law(leaving, place, width) == pytest.approx(expected, rel=1e-14, abs=0)


@pytest.mark.parametrize("narrow", [False, True])
def test_two_traps_with_nothing_between_them_that_floats_can_tell(narrow):
    """Either has half of the law; the node between them has 1e-400."""
    rates = np.diag([1e-200, 1e-200, 0.5, 0.5], 1) + np.diag([0.5, 0.5, 1e-200, 1e-200], -1)
    found = narrow_law(*in_band(rates)) if narrow else dense_law(rates.copy())
    assert found == pytest.approx(exact_law(rates), rel=1e-14, abs=0)
