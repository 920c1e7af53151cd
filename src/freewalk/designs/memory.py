"""What a token remembers of its way: nothing, the node that it came from, or how often it has been where.

A kernel with a memory keeps its table of moves, all of one hop, and names the memory. `Rows` has that table as one row
of outcomes per node; how the memory changes a row is in the docstrings of the designs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.checks import Checks, Floats, Ints
from freewalk.errors import KernelError

if TYPE_CHECKING:
    from freewalk.designs.kernel import Kernel

_BALANCED = 1e-9  # the relative difference of two flows that are equal up to rounding
_BLOCK = 2**14  # steps whose gains are computed together, always the same ones
_MOST_ALPHA = 1000.0
_BLOCKS = 16  # blocks to look ahead
EPOCH = 256  # powers of two by which counters grow before they are divided
LEAST = 2.0**-900  # of a counter: nodes that were not visited for this long are all alike
ENTRY = 12  # bytes of a node and its counter, if a token carries them
_check = Checks(KernelError)


@dataclass(frozen=True)
class Memory:
    """What a token remembers."""

    counts: ClassVar[bool] = False  #: Whether it has a counter for every node.


@dataclass(frozen=True)
class LastNode(Memory):
    """The node that a token came from, forgotten for one step with probability `forget`."""

    forget: float = 0.0

    def __post_init__(self) -> None:
        _check.probability("NonBacktracking", "forget", self.forget)

    @property
    def recalls(self) -> np.uint64:
        """Words 0 below this remember."""
        return np.uint64(rng.ends((1.0 - self.forget, self.forget))[0])


@dataclass(frozen=True)
class VisitCounts(Memory):
    """How often a token was at each node, x_v.

    The share x ← x + γ_t (δ_v − x), with γ_t = (1/n)(1 + t/n)^−fading, begins at μ. Only its proportions matter, so a
    visit at step t adds γ_t / Π_{s ≤ t} (1 − γ_s), which grows, to one counter. Counters are divided by 2^256 when
    these gains have grown by as much (an *epoch*); those of nodes not visited yet are negative.
    """

    alpha: float
    fading: float
    kept: Literal["token", "nodes"]
    driven: bool  #: Whether a move is proposed and accepted, rather than drawn from a row.

    counts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        owner = "HistoryDriven" if self.driven is True else "SelfRepellent"
        _check.flag(owner, "driven", self.driven)
        if (2 * _check.real(owner, "alpha", self.alpha, 0.0, _MOST_ALPHA)) % 1 != 0:
            remedy = "powers are then products of square roots and squares, the same on every machine"
            raise _check.fail(owner, "alpha", self.alpha, "a multiple of 0.5", remedy)
        _check.real(owner, "fading", self.fading, high=1.0, above=0.5)
        _check.choice(owner, "memory_at", self.kept, ("token", "nodes"))

    @property
    def twice_alpha(self) -> int:
        """Powers are products of square roots and squares: the same everywhere."""
        return round(2 * self.alpha)

    def gains(self, n: int, start: int, stop: int) -> Floats:
        """What visits at steps start..stop-1 of one epoch add, divided by 2^256 for each epoch before."""
        return _gains(n, self.fading).between(start, stop)

    def total(self, n: int, step: int) -> float:
        """What all counters add up to before a step, divided as the gains are."""
        return _gains(n, self.fading).total(step)

    def epoch(self, n: int, step: int) -> int:
        """The epoch of a step."""
        return _gains(n, self.fading).epoch(step)

    def end_of_epoch(self, n: int, step: int) -> int:
        """The first step of the next epoch, or some step on the way to it."""
        return _gains(n, self.fading).end_of_epoch(step)


class _Gains:
    """Gains by step, computed in blocks: the same wherever a run is split."""

    def __init__(self, n: int, fading: float) -> None:
        self.n, self.fading, self.before = n, fading, [0.0]  # before each block: log2 of the growth

    def block(self, index: int) -> tuple[Floats, Floats]:
        """By step of a block: γ, and log2 of the growth up to and with this step."""
        shares, logs = self._of(index)
        for earlier in range(len(self.before) - 1, index):
            self.before.append(self.before[-1] + float(self._of(earlier)[1][-1]))
        return shares, self.before[index] + logs

    def _of(self, index: int) -> tuple[Floats, Floats]:
        steps = np.arange(index * _BLOCK, (index + 1) * _BLOCK, dtype=np.float64)
        shares = (1.0 + steps / self.n) ** -self.fading / self.n
        return shares, np.cumsum(-np.log1p(-shares)) / np.log(2.0)

    def between(self, start: int, stop: int) -> Floats:
        blocks = [self.block(index) for index in range(start // _BLOCK, (max(stop, start + 1) - 1) // _BLOCK + 1)]
        shares, logs = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        gains = shares * np.exp2(logs - EPOCH * self.epoch(start))
        first = start % _BLOCK
        return np.ascontiguousarray(gains[first : first + max(stop - start, 1)])

    def total(self, step: int) -> float:
        before = float(self.block((step - 1) // _BLOCK)[1][(step - 1) % _BLOCK]) if step > 0 else 0.0
        return float(np.exp2(before - EPOCH * self.epoch(step)))

    def epoch(self, step: int) -> int:
        return int(self.block(step // _BLOCK)[1][step % _BLOCK] // EPOCH)

    def end_of_epoch(self, step: int) -> int:
        first, now = step // _BLOCK, self.epoch(step)
        for index in range(first, first + _BLOCKS):
            later = np.flatnonzero(self.block(index)[1] // EPOCH > now)
            if later.size:
                return int(later[0]) + index * _BLOCK
        return (first + _BLOCKS) * _BLOCK


_gains = lru_cache(64)(_Gains)


class Rows(NamedTuple):
    """The outcomes of a step without memory, by node: its neighbours in ascending order, then the stay."""

    indptr: Ints
    nodes: NDArray[np.int32]
    shares: Floats  #: The probability P of each.
    others: Floats  #: 1 − P, summed from the other outcomes.
    ends: NDArray[np.uint64]  #: The ends of the intervals of words.
    back: Ints  #: The outcome at the other end that leads back; a stay leads back to itself.

    def of(self, node: int) -> slice:
        """The outcomes of a node."""
        return slice(int(self.indptr[node]), int(self.indptr[node + 1]))


def rows_of(kernel: Kernel) -> Rows:
    """The rows of a kernel with moves of at most one hop, which must be reversible."""
    from scipy.sparse import coo_array, csr_array

    name, n, target = kernel.label, kernel.graph.n, np.asarray(kernel.target)
    if kernel.fade is not None or any(move.hops > 1 or move.law is not None for move in kernel.moves):
        expected = "a design whose moves are all single hops and do not change, such as SimpleWalk or Metropolis"
        raise KernelError(f"{name}: got {', '.join(map(repr, kernel.moves))}; a memory needs {expected}")
    matrix = kernel.without_memory().matrix().tocoo()
    stays = matrix.row == matrix.col
    rounding = np.finfo(float).eps * (1 + kernel.graph.degrees[matrix.row])
    there = matrix.data > np.where(stays, rounding, 0.0)  # the diagonal is 1 − Σ, which may be pure rounding
    rows, columns, shares, stays = (part[there] for part in (matrix.row, matrix.col, matrix.data, stays))
    order = np.lexsort((columns, stays, rows))
    rows, columns, shares, stays = (part[order] for part in (rows, columns, shares, stays))
    numbers = csr_array(coo_array((np.arange(rows.size), (rows, columns)), shape=(n, n)))
    backs = numbers.T.tocsr()
    numbers.sort_indices()
    backs.sort_indices()
    back, flows = np.zeros(rows.size, dtype=np.int64), target[rows] * shares
    both_ways = np.array_equal(numbers.indptr, backs.indptr) and np.array_equal(numbers.indices, backs.indices)
    if both_ways:
        back[numbers.data] = backs.data
    if not both_ways or (np.abs(flows - flows[back]) > _BALANCED * flows).any():
        remedy = "Metropolis(power=…, proposal=…) makes a reversible walk of any proposal"
        raise KernelError(f"{name}: is not reversible for its target, as a memory needs it to be; {remedy}")
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
    others, ends = np.empty(rows.size), np.empty(rows.size, dtype=np.uint64)
    lengths = np.diff(indptr)
    for length in np.unique(lengths):
        outcomes = indptr[:-1][lengths == length][:, None] + np.arange(length)
        values = shares[outcomes]
        before, after = np.zeros_like(values), np.zeros_like(values)
        before[:, 1:] = np.cumsum(values, axis=1)[:, :-1]
        after[:, :-1] = np.cumsum(values[:, ::-1], axis=1)[:, -2::-1]
        others[outcomes], ends[outcomes] = before + after, rng.ends(values)
    return Rows(indptr, columns.astype(np.int32), shares.astype(np.float64), others, ends, back)
