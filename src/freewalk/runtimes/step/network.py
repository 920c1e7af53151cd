"""A kernel as flat arrays, for compiled code."""

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.blocks import blocks, read_only
from freewalk.designs.kernel import Kernel
from freewalk.runtimes.step.arrays import Network

Ints = NDArray[np.int64]

_NODES = 2**16


# The columns of `Network.moves`.
HOPS, RATIO, ROWS, ROWS_A_HOP, LAW, PLAIN = range(6)


def flattened(kernel: Kernel) -> Network:
    """Flatten a kernel."""
    graph, n = kernel.graph, kernel.graph.n
    ratios: list[NDArray[np.float64]] = []
    laws: list[NDArray[np.uint64]] = []
    indptr: list[Ints] = []
    indices: list[NDArray[np.uint32]] = []
    ends: list[NDArray[np.uint64]] = []
    moves = np.full((len(kernel.moves), 6), -1, dtype=np.int64)
    stored = 0
    for row, move in zip(moves, kernel.moves, strict=True):
        row[HOPS] = move.hops
        row[PLAIN] = int(move.ratio is None and move.law is None and move.rows is None)
        row[ROWS_A_HOP] = int(move.rows is not None and len(move.rows) > 1)
        if move.ratio is not None:
            row[RATIO] = _place(ratios, np.asarray(move.ratio))
        if move.law is not None:
            row[LAW] = len(laws)
            law = np.asarray(move.law)
            laws.append(rng.ends(law / law.sum()))
        if move.rows is not None:
            row[ROWS] = len(indptr)
            for matrix in move.rows:
                indptr.append(matrix.indptr.astype(np.int64) + stored)
                indices.append(matrix.indices.astype(np.uint32))
                ends.append(_row_ends(matrix.data, matrix.indptr))
                stored += matrix.nnz
    return Network(
        spans=_spans(kernel),
        tails=np.asarray(graph.indices).view(np.uint32),
        limits=_limits(kernel),
        moves=moves,
        ratios=_stacked(ratios, n),
        row_indptr=np.array(indptr, dtype=np.int64).reshape(len(indptr), n + 1),
        row_indices=np.concatenate([np.empty(0, dtype=np.uint32), *indices]),
        row_ends=np.concatenate([np.empty(0, dtype=np.uint64), *ends])[None],
        law_ends=np.array(laws, dtype=np.uint64).reshape(len(laws), n),
    )


def _spans(kernel: Kernel) -> NDArray[np.uint64]:
    """For each node, its first edge (in the upper half) and its number of edges."""
    indptr = kernel.graph.indptr
    spans = np.empty(kernel.graph.n, dtype=np.uint64)
    for part in blocks(kernel.graph.n):  # in pieces, to limit the memory for a large graph
        firsts = indptr[part.start : part.stop + 1].astype(np.uint64)
        spans[part] = (firsts[:-1] << rng.HALF) | np.diff(firsts)
    return spans


def _stacked(ratios: list[NDArray[np.float64]], n: int) -> NDArray[np.float64]:
    """The ratios as rows of one array, read-only: a single one is not copied."""
    if len(ratios) == 1:
        return read_only(np.ascontiguousarray(ratios[0]).reshape(1, n))
    return read_only(np.array(ratios, dtype=np.float64).reshape(len(ratios), n))


def begins_near(kernel: Kernel) -> bool:
    """Whether its first move is one uniform hop with constant limits, so that `step.near_move` can make it."""
    move = kernel.moves[0]
    fades = kernel.fade is not None and move.ratio is not None
    return move.hops == 1 and move.rows is None and move.law is None and not fades


def _limits(kernel: Kernel) -> NDArray[np.uint64]:
    """The largest word 0 that takes each edge in the first move; zeros if that is not a near move."""
    graph, move = kernel.graph, kernel.moves[0]
    if not begins_near(kernel):
        return np.zeros(graph.indices.size, dtype=np.uint64)
    if move.ratio is None:
        return np.full(graph.indices.size, rng.LAST)
    width = rng.ends(kernel.probabilities(0))[0, 0]
    if width == 0:  # never made
        return np.zeros(graph.indices.size, dtype=np.uint64)
    ratio = np.asarray(move.ratio, dtype=np.float64)
    limits = np.empty(graph.indices.size, dtype=np.uint64)
    for first in range(0, graph.n, _NODES):  # in pieces, to limit the memory for a large graph
        last = min(first + _NODES, graph.n)
        edges = slice(graph.indptr[first], graph.indptr[last])
        starts = np.repeat(ratio[first:last], np.diff(graph.indptr[first : last + 1]))
        found = rng.largest_accepted(float(width), starts, ratio[graph.indices[edges]])
        limits[edges] = np.minimum(found, width - np.uint64(1))
    return limits


def _place(ratios: list[NDArray[np.float64]], ratio: NDArray[np.float64]) -> int:
    """The index of a ratio in the list; moves that share one (corrected jumps do) share its row."""
    for index, known in enumerate(ratios):
        if np.array_equal(known, ratio):
            return index
    ratios.append(ratio)
    return len(ratios) - 1


def _row_ends(data: NDArray[np.float64], indptr: NDArray[np.integer]) -> NDArray[np.uint64]:
    """`rng.ends` of every row of a CSR matrix, rows of equal length together."""
    starts = indptr[:-1].astype(np.int64)
    lengths = np.diff(indptr)
    result = np.empty(data.size, dtype=np.uint64)
    for length in np.unique(lengths):
        entries = starts[lengths == length][:, None] + np.arange(length)
        result[entries] = rng.ends(data[entries])
    return result
