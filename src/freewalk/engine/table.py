"""A kernel as flat arrays, for compiled code."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk import rng
from freewalk.kernel import Kernel

Ints = NDArray[np.int64]


# The columns of `Table.moves`.
HOPS, RATIO, ROWS, ROWS_A_HOP, LAW = range(5)


class Table(NamedTuple):
    """The graph and the moves; the probabilities of the moves travel apart, since they may change with the step."""

    indptr: Ints  # the graph
    indices: NDArray[np.int32]
    moves: Ints  # by move: its hops, then where its ratio, its first matrix and its law are found, or -1
    ratios: NDArray[np.float64]
    row_indptr: Ints  # by matrix and node; matrices lie one behind the other
    row_indices: NDArray[np.int32]
    row_ends: NDArray[np.uint64]  # one row, searched like `law_ends`
    law_ends: NDArray[np.uint64]


def compile_kernel(kernel: Kernel) -> Table:
    """Flatten a kernel."""
    n = kernel.graph.n
    ratios: list[NDArray[np.float64]] = []
    laws: list[NDArray[np.uint64]] = []
    indptr: list[Ints] = []
    indices: list[NDArray[np.int32]] = []
    ends: list[NDArray[np.uint64]] = []
    moves = np.full((len(kernel.moves), 5), -1, dtype=np.int64)
    stored = 0
    for row, move in zip(moves, kernel.moves, strict=True):
        row[HOPS] = move.hops
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
                indices.append(matrix.indices.astype(np.int32))
                ends.append(_row_ends(matrix.data, matrix.indptr))
                stored += matrix.nnz
    return Table(
        indptr=kernel.graph.indptr,
        indices=kernel.graph.indices,
        moves=moves,
        ratios=np.array(ratios, dtype=np.float64).reshape(len(ratios), n),
        row_indptr=np.array(indptr, dtype=np.int64).reshape(len(indptr), n + 1),
        row_indices=np.concatenate([np.empty(0, dtype=np.int32), *indices]),
        row_ends=np.concatenate([np.empty(0, dtype=np.uint64), *ends])[None],
        law_ends=np.array(laws, dtype=np.uint64).reshape(len(laws), n),
    )


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
