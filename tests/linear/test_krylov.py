"""scipy's iterations, asked in our way."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from freewalk.linear import deadline
from freewalk.linear.krylov import minimise, stabilised

NUMBERS = np.random.default_rng(0)
MATRIX = np.eye(80) + 0.08 * NUMBERS.standard_normal((80, 80))
RIGHT = NUMBERS.standard_normal(80)
SOLVERS = {
    "GMRES": lambda apply, right: minimise(apply, right, accuracy=1e-10, rounds=20),
    "BiCGSTAB": lambda apply, right: stabilised(apply, lambda x: x, right, accuracy=1e-10, rounds=400),
}


@pytest.mark.parametrize("size", [0.0, 1e-30, 1.0, 1e30])
@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_the_size_of_the_right_side_does_not_matter(solve, size):
    """scipy's BiCGSTAB gives up on a small one."""
    result = solve(lambda x: MATRIX @ x, size * RIGHT)
    assert np.linalg.norm(MATRIX @ result - size * RIGHT) <= 2e-10 * np.linalg.norm(size * RIGHT)


@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_time_may_run_out_in_each_iteration(solve, monkeypatch):
    asked = []

    def third():
        asked.append(1)
        if len(asked) == 3:
            raise deadline.OutOfTime("over")

    monkeypatch.setattr(deadline, "check", third)
    with pytest.raises(deadline.OutOfTime):
        solve(lambda x: MATRIX @ x, RIGHT)


@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_one_thread_is_enough(solve):
    blas = ThreadpoolController().select(user_api="blas")

    def counts():
        return [library["num_threads"] for library in blas.info()]

    seen, before = [], counts()
    solve(lambda x: seen.append(counts()) or MATRIX @ x, RIGHT)
    assert {count for one in seen for count in one} == {1}
    assert counts() == before
