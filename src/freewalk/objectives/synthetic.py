"""Synthetic data as in the paper, with extensions: uneven counts, a constant feature, shifted optima."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

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
_NUMBERS = ("light_variance", "heavy_variance", "distance", "shift")  # options that are numbers >= 0
_NUMBER = 8.0  # bytes
_ROWS, _LOOKED_AT = 64, 2**12


class Unlabelled(NamedTuple):
    """Samples without targets: `scores` are aᵀ(x + s_v), the targets without noise."""

    features: NDArray[np.float64]
    scores: NDArray[np.float64]
    nodes: NDArray[np.int64]


def truth(dim: int, distance: float = 1.0, seed: int = 0) -> NDArray[np.float64]:
    """Return the true model behind the data that `synthetic` draws with the same arguments.

    It has `dim` features, the squared norm `distance` and a uniformly random direction.

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
    """What to draw, except the targets: options of `synthetic` that have been checked."""

    who: str
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

    @classmethod
    def of(cls, who: str, options: Mapping[str, Any]) -> Draw:
        """Check the parameters of `synthetic`, by name."""
        n, dim = (check.whole(who, name, options[name], 1) for name in ("n", "dim"))
        seed = check.seed(who, options["seed"])
        numbers = {name: check.real(who, name, options[name], 0.0) for name in _NUMBERS}
        adjacent, constant = (check.flag(who, name, options[name]) for name in ("adjacent", "constant"))
        shifted = check.choice(who, "shifted", options["shifted"], get_args(Shifted))
        check.room(who, f"{n} nodes", n)
        probability = options["heavy_probability"]
        heavy = _heavy_nodes(who, n, options["heavy"], probability, adjacent, seed)
        if numbers["shift"] > 0 and shifted == "heavy" and not heavy and probability is None:
            given = f"shift = {numbers['shift']:g} would move the optimum of heavy nodes, but there are none"
            raise ProblemError(f"{who}: {given}; pass heavy=, or shifted='all'")
        counts = _counts(who, options["samples"], n)
        return cls(who, n, dim, counts, heavy, constant=constant, shifted=shifted, seed=seed, **numbers)

    def parts(self, nodes: Iterable[slice]) -> Iterator[Unlabelled]:
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
                    lengths = np.where(is_heavy[some] | (common is None), self.shift, 0.0)
                    displacements = lengths[:, None] * directions
                    scores = scores + np.einsum("sd,sd->s", features, displacements[owners])
            yield Unlabelled(features, scores, owners + some.start)

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

    def whole(self) -> Unlabelled:
        """Draw all data at once, if there is enough memory."""
        total, words = float(self.counts.sum(dtype=np.float64)), f"samples of {self.dim} features"
        # Memory for drawing, scaling, and the copy in the problem.
        remedy = "draw fewer of them, or write them to a file with path="
        check.room(self.who, f"{total:.3g} {words}", 3 * _NUMBER * total * self.dim, remedy)
        return next(self.parts([slice(0, self.n)]))


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
