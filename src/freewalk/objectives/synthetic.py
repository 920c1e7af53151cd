"""Data as the paper draws them, and what it leaves out: uneven counts, a constant feature, shifted optima."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk import rng
from freewalk.errors import ProblemError
from freewalk.objectives.samples import Nodes, check

Shifted = Literal["heavy", "all"]

# One generator per purpose, so that changing one thing keeps the others; graphs have the hundreds before.
FEATURES, TRUTH, NOISE, HEAVY, SHIFT, LABELS = range(200, 206)
_NUMBER = 8.0  # bytes


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
    dim, square = check.whole("truth", "dim", dim, 1), check.real("truth", "distance", distance, 0.0)
    check.room("truth", f"a model of {dim} features", 3 * _NUMBER * dim)
    seed = check.seed("truth", seed)
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
    n, dim, seed = check.whole(who, "n", n, 1), check.whole(who, "dim", dim, 1), check.seed(who, seed)
    light, strong, distance, shift = (
        check.real(who, name, value, 0.0)
        for name, value in (
            ("light_variance", light_variance),
            ("heavy_variance", heavy_variance),
            ("distance", distance),
            ("shift", shift),
        )
    )
    adjacent, constant = check.flag(who, "adjacent", adjacent), check.flag(who, "constant", constant)
    check.choice(who, "shifted", shifted, get_args(Shifted))
    check.room(who, f"{n} nodes", 3 * _NUMBER * n)
    nodes = np.repeat(np.arange(n, dtype=np.int64), _counts(who, samples, n, dim))
    chosen = _heavy_nodes(who, n, heavy, heavy_probability, adjacent, seed)
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
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused with the data
        scores = features @ truth(dim, distance, seed)
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
    if isinstance(heavy, Collection) and not isinstance(heavy, str):
        nodes = Nodes(who, n).members("heavy", heavy)
    else:
        count = check.whole(who, "heavy", heavy, 0, n)
        # The start of a permutation: asking for one more keeps those already chosen.
        order = np.arange(n) if adjacent else rng.generator(seed, HEAVY).permutation(n)
        nodes = tuple(sorted(order[:count].tolist()))
    if probability is None:
        return nodes
    chance = check.probability(who, "heavy_probability", probability)
    if nodes:
        raise ProblemError(f"{who}: got heavy and heavy_probability, expected only one of them")
    return tuple(np.flatnonzero(rng.generator(seed, HEAVY).random(n) < chance).tolist())


def _counts(who: str, samples: int | ArrayLike, n: int, dim: int) -> NDArray[np.int64]:
    if isinstance(samples, Collection) and not isinstance(samples, str):
        remedy = f"give one number, or one for each of {n} nodes"
        counts = check.integers(who, "samples", samples, (n,), low=1, remedy=remedy)
    else:
        counts = np.full(n, check.whole(who, "samples", samples, 1))
    total = float(counts.sum(dtype=np.float64))
    # Drawn, scaled, and copied by the problem.
    check.room(who, f"{total:.3g} samples of {dim} features", 3 * _NUMBER * total * dim, "draw fewer of them")
    return counts
