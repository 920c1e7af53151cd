"""Walkman: both of its forms along the path, its invariant, and where it converges."""

import numpy as np
import pytest
from written_out import KERNEL, PROBLEM, RUNTIMES, compare

import freewalk as fw
from freewalk.errors import FreewalkError, ProblemError
from freewalk.objectives import LeastSquares, Logistic
from freewalk.rules import Walkman

BETA = 20.0


def written_out(new_y, problem=PROBLEM):
    """Walkman with a node's new model given by new_y(node, x, y, z)."""

    def replay(path, x):
        y, z, trail = np.tile(x, (problem.n, 1)), np.zeros((problem.n, 3)), [x]
        for node in path:
            before = y[node] - z[node] / BETA
            y[node], old = new_y(node, x, y[node].copy(), z[node]), z[node].copy()
            z[node] = old + BETA * (x - y[node])
            x = x + (y[node] - z[node] / BETA - before) / problem.n
            trail.append(x)
        np.testing.assert_allclose(x, (y - z / BETA).mean(axis=0), rtol=1e-9, atol=1e-12)  # what the token is
        return trail, {"x": x, "y": y, "z": z}

    return replay


def solved(problem):
    """The minimiser of f_v(y) + β/2 ‖y − x − z/β‖² for least squares, from its equations."""

    def new_y(node, x, y, z):
        right = BETA * x + z - problem.gradient(node, np.zeros(3))
        hessian = np.array([problem.gradient(node, e) - problem.gradient(node, np.zeros(3)) for e in np.eye(3)])
        return np.linalg.solve(hessian + BETA * np.eye(3), right)

    return new_y


@RUNTIMES
def test_the_gradient_form(runtime):
    replay = written_out(lambda node, x, y, z: x + z / BETA - PROBLEM.gradient(node, y) / BETA)
    compare(Walkman(penalty=BETA), runtime, replay)


def test_the_proximal_form():
    compare(Walkman(penalty=BETA, proximal=True), "reference", written_out(solved(PROBLEM)))


def test_at_a_relay_the_proximal_form_solves_nothing():
    """Its loss is 0: the minimiser of β/2 ‖y − x − z/β‖² is the point itself."""
    kept = PROBLEM.nodes != 2
    some = LeastSquares(PROBLEM.features[kept], PROBLEM.targets[kept], PROBLEM.nodes[kept], 0.1, relays=[2])
    assert some.samples(2) == 0
    compare(Walkman(penalty=BETA, proximal=True), "reference", written_out(solved(some), some), some)


@pytest.mark.parametrize(("proximal", "runtime"), [(False, "cpu"), (True, "reference")], ids=["gradient", "proximal"])
def test_it_reaches_the_optimum(proximal, runtime):
    rule = Walkman(proximal=proximal, penalty=2.0 if proximal else None)
    steps = 3000 if proximal else 60_000
    data = fw.learn(PROBLEM, KERNEL, rule, steps=steps, every=steps, runtime=runtime).data
    assert float(data.distance[0, -1]) < 1e-12


def test_the_penalty_follows_from_the_smoothness():
    smoothness = PROBLEM.smoothness
    assert Walkman().fitted(PROBLEM, KERNEL).penalty == pytest.approx(3 * smoothness.max())
    assert Walkman(proximal=True).fitted(PROBLEM, KERNEL).penalty == pytest.approx(smoothness.mean() / 3)
    assert Walkman(penalty=5.0).fitted(PROBLEM, KERNEL) == Walkman(penalty=5.0)


@pytest.mark.parametrize("penalty", [0, -1.0, np.nan, "high", True], ids=repr)
def test_penalties_are_positive(penalty):
    with pytest.raises(FreewalkError, match=r"Walkman: penalty = .*, expected a finite number > 0"):
        Walkman(penalty=penalty)


def test_the_proximal_form_is_refused_where_it_cannot_run():
    with pytest.raises(FreewalkError, match=r"cpu: Walkman solves a problem at each node.*pass runtime='reference'"):
        fw.learn(PROBLEM, KERNEL, Walkman(proximal=True), steps=3, runtime="cpu")
    assert fw.learn(PROBLEM, KERNEL, Walkman(proximal=True), steps=3).provenance["runtime"] == "Reference()"
    logistic = Logistic.synthetic(8, dim=3, seed=1)
    with pytest.raises(ProblemError, match=r"Logistic: has no proximal form; take a rule that uses gradients"):
        fw.learn(logistic, KERNEL, Walkman(proximal=True), steps=3, runtime="reference")
