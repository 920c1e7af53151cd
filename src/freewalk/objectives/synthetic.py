"""Data as the paper draws them, and what it leaves out: uneven counts, a constant feature, shifted optima."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk import rng
from freewalk.errors import ProblemError
from freewalk.objectives import checks

Shifted = Literal["heavy", "all"]

# One generator a purpose, so that changing one thing keeps the others; graphs have the hundreds before.
FEATURES, TRUTH, NOISE, HEAVY, SHIFT, LABELS = range(200, 206)


@dataclass(frozen=True, eq=False)
class Data:
    """Samples that still lack their targets: `scores` are aᵀ(x + s_v), the targets without noise."""

    features: NDArray[np.float64]
    scores: NDArray[np.float64]
    nodes: NDArray[np.int64]
    heavy: tuple[int, ...]


def truth(dim: int, distance: float = 1.0, seed: int = 0) -> NDArray[np.float64]:
    """Return the model behind the data that `synthetic` draws with the same arguments.

    Parameters
    ----------
    dim
        How many features.
    distance
        Its squared norm.
    seed
        The seed of the data.

    Returns
    -------
    NDArray
        A vector in a uniformly random direction.

    Examples
    --------
    >>> from freewalk.objectives import LeastSquares
    >>> problem = LeastSquares.synthetic(50, 4, noise=0.0, distance=9.0, seed=3)
    >>> bool(np.allclose(problem.optimum(), truth(4, 9.0, seed=3)))
    True
    """
    dim, square = checks.whole("truth", "dim", dim, 1), checks.real("truth", "distance", distance)
    return np.asarray(np.sqrt(square) * _directions(rng.generator(seed, TRUTH), 1, dim)[0])


def draw_data(
    who: str,
    n: int,
    dim: int,
    *,
    heavy: int | Sequence[int],
    heavy_probability: float | None,
    adjacent: bool,
    light_variance: float,
    heavy_variance: float,
    constant: bool,
    distance: float,
    shift: float,
    shifted: Shifted,
    samples: int | ArrayLike,
    seed: int,
) -> Data:
    """Draw features and noiseless scores; the parameters are those of `LeastSquares.synthetic`.

    Parameters
    ----------
    who
        The name under which errors are reported.
    n, dim, heavy, heavy_probability, adjacent, light_variance, heavy_variance, constant, distance
        As for `LeastSquares.synthetic`.
    shift, shifted, samples, seed
        As for `LeastSquares.synthetic`.

    Returns
    -------
    Data
        All but the targets.
    """
    n, dim = checks.whole(who, "n", n, 1), checks.whole(who, "dim", dim, 1)
    light = checks.real(who, "light_variance", light_variance)
    strong = checks.real(who, "heavy_variance", heavy_variance)
    model = truth(dim, checks.real(who, "distance", distance), seed)
    shift = checks.real(who, "shift", shift)
    nodes = np.repeat(np.arange(n, dtype=np.int64), _counts(who, samples, n))
    chosen = _heavy_nodes(who, n, heavy, heavy_probability, adjacent, seed)
    if shifted not in get_args(Shifted):
        raise ProblemError(f"{who}: shifted = {shifted!r}, expected 'heavy' or 'all'{_suggestion(shifted)}")
    if shift > 0 and shifted == "heavy" and not chosen and heavy_probability is None:
        raise ProblemError(
            f"{who}: shift = {shift:g} would move the optimum of heavy nodes, and there are none; "
            "give heavy=, or shifted='all'"
        )

    is_heavy = np.zeros(n, dtype=bool)
    is_heavy[list(chosen)] = True
    deviations = np.sqrt(np.where(is_heavy, strong, light))
    features = deviations[nodes, None] * rng.generator(seed, FEATURES).standard_normal((len(nodes), dim))
    if constant:
        features[:, 0] = 1.0
    scores = features @ model
    if shift > 0:
        directions = _directions(rng.generator(seed, SHIFT), 1 if shifted == "heavy" else n, dim)
        lengths = np.where(is_heavy, shift, 0.0) if shifted == "heavy" else np.full(n, shift)
        displacements = lengths[:, None] * directions
        scores = scores + np.einsum("sd,sd->s", features, displacements[nodes])
    return Data(features, scores, nodes, chosen)


def _directions(generator: np.random.Generator, count: int, dim: int) -> NDArray[np.float64]:
    vectors = generator.standard_normal((count, dim))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _heavy_nodes(
    who: str, n: int, heavy: int | Sequence[int], probability: float | None, adjacent: bool, seed: int
) -> tuple[int, ...]:
    if np.ndim(heavy) > 0:
        nodes = checks.members(who, "heavy", heavy, n)
    else:
        count = checks.whole(who, "heavy", heavy, 0, n)
        # The start of a permutation: asking for one more keeps those already chosen.
        order = np.arange(n) if adjacent else rng.generator(seed, HEAVY).permutation(n)
        nodes = tuple(sorted(order[:count].tolist()))
    if probability is None:
        return nodes
    chance = checks.real(who, "heavy_probability", probability, 1.0)
    if nodes:
        raise ProblemError(f"{who}: got heavy and heavy_probability, expected only one of them")
    return tuple(np.flatnonzero(rng.generator(seed, HEAVY).random(n) < chance).tolist())


def _counts(who: str, samples: int | ArrayLike, n: int) -> NDArray[np.int64]:
    if np.ndim(samples) == 0:
        return np.full(n, checks.whole(who, "samples", samples, 1))
    counts = checks.integers(who, "samples", samples)
    if len(counts) != n:
        raise ProblemError(
            f"{who}: samples has {len(counts)} entries, expected one number, or one for each of {n} nodes"
        )
    if counts.min() < 1:
        node = int(np.argmin(counts))
        raise ProblemError(f"{who}: samples[{node}] = {counts[node]}, expected at least 1 at every node")
    return counts


def _suggestion(given: Any) -> str:
    close = difflib.get_close_matches(str(given).lower(), get_args(Shifted), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
