"""Synthetic data as in the paper, with extensions: uneven counts, a constant feature, shifted optima."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk import rng
from freewalk.blocks import BLOCK, is_constant
from freewalk.blocks import constant as repeated
from freewalk.errors import ProblemError
from freewalk.objectives.samples import Nodes, check

Shifted = Literal["heavy", "all"]

# One generator per purpose, so that changing one option keeps the others; graphs use the hundreds before.
FEATURES, TRUTH, NOISE, HEAVY, SHIFT, LABELS = range(200, 206)
_NUMBER = 8.0  # bytes
_ROWS, _LOOKED_AT = 64, 2**12


@dataclass(frozen=True, eq=False)
class Data:
    """Samples without targets: `scores` are aᵀ(x + s_v), the targets without noise."""

    features: NDArray[np.float64]
    scores: NDArray[np.float64]
    nodes: NDArray[np.int64]
    heavy: tuple[int, ...]


def truth(dim: int, distance: float = 1.0, seed: int = 0) -> NDArray[np.float64]:
    """Return the true model behind the data that `synthetic` draws with the same arguments.

    Parameters
    ----------
    dim
        The number of features.
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


@dataclass(frozen=True, eq=False)
class Draw:
    """What to draw: options that have been checked."""

    n: int
    dim: int
    counts: NDArray[np.int64]
    heavy: tuple[int, ...]
    light_variance: float
    heavy_variance: float
    constant: bool
    distance: float
    shift: float
    shifted: str
    seed: int

    def parts(self, nodes: Iterable[slice]) -> Iterator[Data]:
        """Draw the data of the nodes part by part, from first to last: the same data in any number of parts."""
        rows, moves = rng.generator(self.seed, FEATURES), rng.generator(self.seed, SHIFT)
        model = truth(self.dim, self.distance, self.seed)
        common = _directions(moves, 1, self.dim) if self.shift > 0 and self.shifted == "heavy" else None
        is_heavy = np.zeros(self.n, dtype=bool)
        is_heavy[list(self.heavy)] = True
        for some in nodes:
            owners = np.repeat(np.arange(some.stop - some.start, dtype=np.int64), self.counts[some])
            deviations = np.sqrt(np.where(is_heavy[some], self.heavy_variance, self.light_variance))
            features = deviations[owners, None] * rows.standard_normal((len(owners), self.dim))
            if self.constant:
                features[:, 0] = 1.0
            with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are rejected with the data
                scores = features @ model
                if self.shift > 0:
                    directions = _directions(moves, some.stop - some.start, self.dim) if common is None else common
                    lengths = np.full(len(deviations), self.shift)
                    if common is not None:
                        lengths = np.where(is_heavy[some], self.shift, 0.0)
                    displacements = lengths[:, None] * directions
                    scores = scores + np.einsum("sd,sd->s", features, displacements[owners])
            yield Data(features, scores, owners + some.start, self.heavy)

    def pieces(self) -> Iterator[slice]:
        """All nodes in parts of about a million features.

        A part ends where the number of samples is a multiple of 64, if possible: a matrix-vector product processes
        several rows at a time and treats the remaining ones differently, so that their last bits may differ.
        """
        ends = None if is_constant(self.counts) else np.cumsum(self.counts)
        size = max(BLOCK * self.n // (self.dim * int(self.counts.sum())) // _ROWS, 1) * _ROWS
        first = 0
        while first < self.n:
            last = min(first + size, self.n)
            if ends is not None and last < self.n:
                whole = np.flatnonzero(ends[last - 1 : last - 1 + _LOOKED_AT] % _ROWS == 0)
                last = last + int(whole[0]) if whole.size else min(last + _LOOKED_AT, self.n)
            yield slice(first, last)
            first = last

    def whole(self, who: str) -> Data:
        """Draw all data at once.

        Raises
        ------
        ProblemError
            If there is not enough memory.
        """
        total, words = float(self.counts.sum(dtype=np.float64)), f"samples of {self.dim} features"
        # Memory for drawing, scaling, and the copy in the problem.
        remedy = "draw fewer of them, or write them to a file with path="
        check.room(who, f"{total:.3g} {words}", 3 * _NUMBER * total * self.dim, remedy)
        return next(self.parts([slice(0, self.n)]))


def draw_of(
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
) -> Draw:
    """Check what to draw: features and noiseless scores; the parameters are those of `LeastSquares.synthetic`.

    Parameters
    ----------
    who
        The name used in error messages.
    n, dim, heavy, heavy_probability, adjacent, light_variance, heavy_variance, constant, distance
        As for `LeastSquares.synthetic`.
    shift, shifted, samples, seed
        As for `LeastSquares.synthetic`.

    Returns
    -------
    Draw
        Draws everything except the targets.
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
    check.room(who, f"{n} nodes", n)
    chosen = _heavy_nodes(who, n, heavy, heavy_probability, adjacent, seed)
    if shift > 0 and shifted == "heavy" and not chosen and heavy_probability is None:
        raise ProblemError(
            f"{who}: shift = {shift:g} would move the optimum of heavy nodes, but there are none; "
            "pass heavy=, or shifted='all'"
        )
    counts = _counts(who, samples, n)
    return Draw(n, dim, counts, chosen, light, strong, constant, distance, shift, shifted, seed)


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
        # The start of a permutation: increasing the number keeps the nodes already chosen.
        if not adjacent:
            check.room(who, f"an order of {n} nodes", _NUMBER * n)
        chosen = range(count) if adjacent else rng.generator(seed, HEAVY).permutation(n)[:count].tolist()
        nodes = tuple(sorted(chosen))
    if probability is None:
        return nodes
    chance = check.probability(who, "heavy_probability", probability)
    if nodes:
        raise ProblemError(f"{who}: got heavy and heavy_probability, expected only one of them")
    return tuple(np.flatnonzero(rng.generator(seed, HEAVY).random(n) < chance).tolist())


def _counts(who: str, samples: int | ArrayLike, n: int) -> NDArray[np.int64]:
    if isinstance(samples, Collection) and not isinstance(samples, str):
        remedy = f"give one number, or one for each of {n} nodes"
        return check.integers(who, "samples", samples, (n,), low=1, remedy=remedy)
    return repeated(np.int64(check.whole(who, "samples", samples, 1)), n)
