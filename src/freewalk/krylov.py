"""Iterations for linear systems that are known as functions: GMRES and BiCGSTAB.

As scipy's, but for the inner products, which it hands to the threads of a BLAS: where two processes or threads share
two processors, those wait for each other and made it 10 to 100 times slower. And they ask whether there is time left.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from freewalk import deadline

Floats = NDArray[np.float64]
Vectors = Callable[[Floats], Floats]

_BASIS = 25  # vectors that GMRES keeps before it starts again


def minimise(apply: Vectors, right: Floats, accuracy: float, rounds: int) -> Floats:
    """GMRES: the combination x of right, apply(right), apply(apply(right)), … for which apply(x) is nearest to `right`.

    References
    ----------
    Saad, Schultz, *GMRES: a generalized minimal residual algorithm*, 1986.
    """
    result, rest = np.zeros_like(right), right
    aim = accuracy * norm(right)
    for _ in range(rounds):
        size = norm(rest)
        if size <= aim or not np.isfinite(size):
            break
        basis, table = [rest / size], np.zeros((_BASIS + 1, _BASIS))
        for last in range(_BASIS):
            deadline.check()
            image = apply(basis[last])
            for row, vector in enumerate(basis):
                table[row, last] = np.einsum("i,i->", vector, image)
                image -= table[row, last] * vector
            table[last + 1, last] = norm(image)
            known = table[: last + 2, : last + 1]
            if not np.isfinite(known).all():
                return result
            wanted = np.append(size, np.zeros(last + 1))
            shares = np.linalg.lstsq(known, wanted, rcond=None)[0]
            if np.linalg.norm(known @ shares - wanted) <= aim or table[last + 1, last] <= 1e-14 * size:
                break
            basis.append(image / table[last + 1, last])
        for share, vector in zip(shares, basis, strict=False):
            result += share * vector
        rest = right - apply(result)
    return result


def stabilised(apply: Vectors, inverse: Vectors, right: Floats, accuracy: float, rounds: int) -> Floats:
    """BiCGSTAB: x for which apply(x) is near to `right`, given a function that is nearly the inverse of `apply`.

    It takes few vectors, so that they may be long. What it returns may be far off where it breaks down: check it.

    References
    ----------
    van der Vorst, *Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG*, 1992.

    Examples
    --------
    >>> matrix = np.array([[2.0, 1.0], [0.0, 3.0]])
    >>> stabilised(lambda x: matrix @ x, lambda x: x / 2, np.array([3.0, 3.0]), 1e-12, 10).round(9)
    array([1., 1.])
    """
    result, rest = np.zeros_like(right), right.copy()
    shadow, aim = right.copy(), accuracy * norm(right)
    direction, image = np.zeros_like(right), np.zeros_like(right)
    rho = alpha = omega = 1.0
    for _ in range(rounds):
        deadline.check()
        if not norm(rest) > aim:
            break
        before, rho = rho, _dot(shadow, rest)
        if rho == 0.0 or omega == 0.0:
            break
        direction = rest + (rho / before) * (alpha / omega) * (direction - omega * image)
        ahead = inverse(direction)
        image = apply(ahead)
        alpha = rho / (_dot(shadow, image) or np.inf)
        half = rest - alpha * image
        result += alpha * ahead
        if not norm(half) > aim:
            break
        ahead = inverse(half)
        turned = apply(ahead)
        omega = _dot(turned, half) / (_dot(turned, turned) or np.inf)
        result += omega * ahead
        rest = half - omega * turned
    return result


def _dot(one: Floats, other: Floats) -> float:
    return float(np.einsum("i,i->", one, other))


def norm(vector: Floats) -> float:
    """The length of a vector."""
    return float(np.sqrt(_dot(vector, vector)))
