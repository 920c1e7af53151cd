"""scipy's GMRES and BiCGSTAB for linear systems given as functions, with a time limit.

Their inner products use the threads of a BLAS. If other processes use the same processors, those threads wait for each
other and make an iteration 10 to 100 times slower, so threadpoolctl limits BLAS to one thread.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from freewalk.linear import deadline
from freewalk.linear.arrays import Floats, Vectors

_BASIS = 25  # vectors that GMRES keeps before it restarts
_lock, _solves = Lock(), 0
_limit: Any = None


def operator_of(n: int, function: Vectors) -> Any:
    """A function of vectors as the solvers of scipy take it; they stop where it is called after the time limit."""
    from scipy.sparse.linalg import LinearOperator

    def product(x: Floats) -> Floats:
        deadline.check()
        return function(np.ravel(x))

    return LinearOperator((n, n), matvec=product, dtype=np.float64)


def minimise(apply: Vectors, right: Floats, accuracy: float, rounds: int) -> Floats:
    """GMRES, for x with apply(x) nearest to `right`; the result may be inaccurate or not finite: check it."""
    from scipy.sparse.linalg import gmres

    operator = operator_of(right.size, apply)
    with _one_thread():
        result, _ = gmres(operator, right, rtol=accuracy, restart=_BASIS, maxiter=rounds)
    return np.asarray(result)


def stabilised(apply: Vectors, inverse: Vectors, right: Floats, accuracy: float, rounds: int) -> Floats:
    """BiCGSTAB, for x with apply(x) near `right`, given an approximate inverse; check the result."""
    from scipy.sparse.linalg import bicgstab

    operator, nearly = operator_of(right.size, apply), operator_of(right.size, inverse)
    # scipy treats an inner product below 5e-32 as a breakdown, whatever the length of the right side.
    scale = float(np.linalg.norm(right)) or 1.0
    with _one_thread():
        result, _ = bicgstab(operator, right / scale, rtol=accuracy, maxiter=rounds, M=nearly)
    return np.asarray(scale * result)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit BLAS to one thread during any solve, on any Python thread."""
    global _solves, _limit
    with _lock:
        _solves += 1
        if _solves == 1:
            _limit = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _solves -= 1
            if not _solves:
                _limit.restore_original_limits()


@cache  # looking for the libraries takes milliseconds
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
