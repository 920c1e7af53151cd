"""The traffic of a move: models that leave a node, and scalar probes, as the runtimes count them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freewalk.analysis.chain.chain import check_constant
from freewalk.designs.kernel import Kernel, Move
from freewalk.linear.arrays import Floats, Matrix


def messages_per_visit(kernel: Kernel, *, who: str = "messages_per_visit") -> tuple[Floats, Floats]:
    """Compute the expected numbers of messages and probes that one move from each node sends.

    A message is a model that leaves a node: a rejected step sends none, a jump of d uniform hops sends d. A jump of d ≥
    2 hops that is accepted or rejected at its end asks first: d probes there, d more back unless it ended where it
    began, and d messages if it is accepted.

    Parameters
    ----------
    kernel
        A kernel that does not change with the step; for others use `kernel.at(step)`. Of a walk that remembers the last
        node this is the mean over all nodes from which it came, in the long run: what it sends without memory.
    who
        The caller's name, for error messages.

    Returns
    -------
    tuple of arrays
        Messages and probes by node. Their mean under `stationary(kernel)` is the long-run cost per update.

    Raises
    ------
    AnalysisError
        If it is not a kernel, or changes with the step.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> messages, probes = messages_per_visit(kernel)
    >>> messages.round(4)
    array([0.1661, 1.0571, 1.0571, 1.0571, 1.0571])
    >>> probes
    array([0., 0., 0., 0., 0.])
    """
    check_constant(who, kernel, last_node=True)
    return traffic_of(kernel.without_memory(), kernel.moves)


def traffic_of(kernel: Kernel, moves: Sequence[Move]) -> tuple[Floats, Floats]:
    """The traffic of some moves of a kernel from each node, times their probabilities."""
    messages = np.zeros(kernel.graph.n)
    probes = np.zeros(kernel.graph.n)
    powers: list[Matrix] = []
    for move in moves:
        if move.probability > 0:
            sent, asked = _of_move(kernel, move, powers)
            messages += move.probability * sent
            probes += move.probability * asked
    return messages, probes


def _of_move(kernel: Kernel, move: Move, powers: list[Matrix]) -> tuple[Floats, Floats]:
    nothing = np.zeros(kernel.graph.n)
    if move.law is not None:
        law = np.asarray(move.law)
        return 1.0 - law / law.sum(), nothing
    if move.rows is not None:
        sent = nothing
        # From the last hop to the first: the remaining traffic, by the node at which a hop begins.
        for hop in reversed(range(move.hops)):
            matrix = move.matrix_of_hop(hop)
            sent = _leaving(matrix) + matrix @ sent
        return sent, nothing
    if move.ratio is None:
        return nothing + move.hops, nothing
    accepted = move.hops * _leaving(kernel.move_matrix(move, powers))
    return accepted, nothing if move.hops < 2 else move.hops * (1.0 + _leaving(powers[move.hops]))


def _leaving(matrix: Matrix) -> Floats:
    """The probability of ending at another node, summed from its parts: 1 − P(v, v) would lose small ones."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    away = rows != matrix.indices
    return np.asarray(np.bincount(rows[away], matrix.data[away], matrix.shape[0]), dtype=np.float64)
