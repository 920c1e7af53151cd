"""The Markov chain of a kernel as the analysis reads it, its stationary distribution, and its period."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from freewalk.analysis.chain.states import States, classes_of, matrix_between, states_of
from freewalk.analysis.chain.unrolled import Hops, is_crowded, samples_its_target, takes_all_edges, unrolled
from freewalk.blocks import blocks
from freewalk.checks import Checks
from freewalk.designs.kernel import Kernel
from freewalk.designs.memory import LastNode
from freewalk.errors import AnalysisError
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.linear.arrays import Floats, Ints, Matrix
from freewalk.linear.elimination import PLAIN, dense_law
from freewalk.linear.stationary import check_irreducible, is_reversible, leaving_rates, settled, stationary_law
from freewalk.objectives import Objective

#: The largest number of nodes for which a dense n × n matrix is allocated (200 MB of floats).
DENSE = 5000

check = Checks(AnalysisError)

_BALANCED = 1e-10


def matrix_of(who: str, kernel: Kernel) -> Matrix:
    """The transition matrix of a kernel that does not change with time."""
    check_constant(who, kernel)
    return kernel.matrix()


def check_constant(who: str, kernel: Kernel, last_node: bool = False) -> None:
    """Raise unless the argument is a kernel that does not change with time."""
    check_kernel(who, kernel, last_node)
    if kernel.fade is not None:
        raise AnalysisError(f"{who}: {kernel.label} changes with the step, expected a constant kernel: kernel.at(step)")


def check_kernel(who: str, kernel: Kernel, last_node: bool = False) -> None:
    """Raise unless the argument is a kernel whose memory the caller knows: none, or also that of the last node."""
    check.instance(who, "kernel", kernel, Kernel, "a kernel, as design.kernel(graph, importance) makes it")
    if kernel.memory is not None and not (last_node and isinstance(kernel.memory, LastNode)):
        what = "no memory, or that of NonBacktracking" if last_node else "no memory"
        remedy = "simulate it with fw.learn or fw.walk, or take kernel.without_memory(), which is another walk"
        raise AnalysisError(f"{who}: {kernel.label} remembers {kernel.memory}, expected {what}: {remedy}")


def check_fit(who: str, problem: Objective, kernel: Kernel, last_node: bool = False) -> None:
    """Raise unless a problem and a kernel have the same nodes."""
    check.instance(who, "problem", problem, Objective, "an objective such as fw.objectives.LeastSquares(...)")
    check_kernel(who, kernel, last_node)
    if problem.n != kernel.graph.n:
        why = "a problem has as many as the largest number in `nodes` says: does the last one hold data?"
        got = f"the problem has {problem.n} nodes and the graph {kernel.graph.n}"
        raise AnalysisError(f"{who}: {got}; expected the same number ({why})")


class Chain(NamedTuple):
    """A chain: P, its off-diagonal entries, its stationary distribution ν, and whether P is reversible."""

    matrix: Matrix
    leaving: Matrix
    law: Floats
    reversible: bool
    classes: list[Ints]  # its closed classes: one, except of pairs of nodes


def chain_of(who: str, kernel: Kernel) -> Chain:
    """The chain of a kernel on its states, or an error if that is reducible or changes with time."""
    states, matrix = states_and_matrix(who, kernel)
    leaving = leaving_rates(matrix)
    classes = classes_of(who, kernel, states, leaving)
    if states.turns is not None:
        return Chain(matrix, leaving, states.lifted(stationary(kernel, who=who)), False, classes)
    law = stationary_law(matrix, f"{who}: {kernel.label}", np.asarray(kernel.target))
    return Chain(matrix, leaving, law, is_reversible(leaving, law, _BALANCED), classes)


def states_and_matrix(who: str, kernel: Kernel) -> tuple[States, Matrix]:
    """The states of a kernel that does not change with time, and its transition matrix between them."""
    check_constant(who, kernel, last_node=True)
    states = states_of(kernel)
    return states, matrix_between(who, kernel, states)


def check_dense(who: str, n: int, instead: str, what: str = "nodes") -> None:
    """Raise if a dense matrix is needed but there are too many nodes."""
    if n > DENSE:
        raise AnalysisError(f"{who}: got {n} {what}, expected at most {DENSE}: it needs dense matrices. {instead}")


def check_nodes(who: str, nodes: Any, graph: Graph) -> Ints:
    """A proper subset of the nodes of a graph as an array of distinct nodes, or an error."""
    expected = "a list of at least one node"
    given = arguments.nodes_of(who, "nodes", nodes, graph, expected, check)
    if given.ndim != 1 or given.size == 0:
        raise check.fail(who, "nodes", nodes, expected)
    values, counts = np.unique(given, return_counts=True)
    if values.size < given.size:
        twice = graph.node_name(values[counts > 1][0])
        raise AnalysisError(f"{who}: nodes holds {twice} twice, expected different nodes")
    if given.size == graph.n:
        raise AnalysisError(
            f"{who}: nodes are all {graph.n} nodes of the graph, which no walk leaves; leave at least one out"
        )
    return given


def stationary(kernel: Kernel, *, who: str = "stationary") -> Floats:
    """Compute the stationary distribution ν of a walk: ν P = ν.

    The result is exact to rounding in every component for up to about a thousand nodes, for long narrow graphs
    (elimination), and for walks that sample their target. Other chains are iterated to ‖ν P − ν‖₁ ≤ 1e-13, which takes
    about a minute for a million nodes.

    Parameters
    ----------
    kernel
        The walk. If it remembers the last node, its nodes have the distribution of the walk without memory.
    who
        The caller's name, for error messages.

    Returns
    -------
    NDArray
        One number per node; they add up to 1.

    Raises
    ------
    KernelError, AnalysisError
        If the kernel is reducible, changes with time, or the iteration does not converge.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> fw.analysis.stationary(kernel).round(4)
    array([0.7065, 0.0677, 0.0791, 0.0791, 0.0677])
    """
    check_constant(who, kernel, last_node=True)
    kernel = kernel.without_memory()
    target, name, n = np.asarray(kernel.target), f"{who}: {kernel.label}", kernel.graph.n
    if samples_its_target(kernel):
        return np.asarray(target / target.sum())
    if n <= PLAIN:
        return stationary_law(kernel.matrix(), name, target)
    chain = None if is_crowded(kernel) else unrolled(kernel)
    if not takes_all_edges(kernel):
        check_irreducible(kernel.matrix() if chain is None else chain.leaving, name)
    try:
        if chain is None:
            return settled(Hops(kernel), target, name)
        law = stationary_law(chain.leaving, name, chain.law(target))[:n]
        return np.asarray(law / law.sum())
    except AnalysisError:
        if n > DENSE:
            raise
        return dense_law(leaving_rates(kernel.matrix()).toarray())


def distance_to_target(kernel: Kernel) -> float:
    """Compute the total variation distance between the stationary distribution and the target, ½ Σ |ν − target|.

    Parameters
    ----------
    kernel
        The walk.

    Returns
    -------
    float
        From 0 (the walk samples its target, as the gradient weights assume) to 1.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.MHLJ(jump=0.1, stop=0.5, hops=3).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])
    >>> round(fw.analysis.distance_to_target(kernel), 4)
    0.255
    """
    law = stationary(kernel, who="distance_to_target")
    return float(np.abs(law - np.asarray(kernel.target)).sum() / 2)


def period(kernel: Kernel) -> int:
    """Compute the period of a walk: the greatest common divisor of all return lengths; 1 means aperiodic.

    A stay counts only if its probability exceeds the rounding of its row.

    Parameters
    ----------
    kernel
        The walk. If it remembers the last node, it has returned when it is where it was and came from where it came.

    Raises
    ------
    KernelError, AnalysisError
        If the kernel is reducible or changes with time.

    Examples
    --------
    On a ring of even length, a simple walk is at even nodes either at even times only or at odd times only.

    >>> import freewalk as fw
    >>> fw.analysis.period(fw.designs.SimpleWalk().kernel(fw.graphs.ring(6)))
    2
    >>> fw.analysis.period(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)))
    1
    """
    states, matrix = states_and_matrix("period", kernel)
    leaving = leaving_rates(matrix)
    return period_of(matrix, leaving, classes_of("period", kernel, states, leaving))


def period_of(matrix: Matrix, leaving: Matrix, classes: list[Ints]) -> int:
    """The greatest common divisor of the periods of the closed classes of a matrix, given also its other entries."""
    if len(classes) > 1:
        return math.gcd(*(period_of(matrix[one][:, one], leaving[one][:, one], [one]) for one in classes))
    # A Metropolis matrix has 1 − Σ accepted on its diagonal: 1e-16 there may be pure rounding.
    if (matrix.diagonal() > np.finfo(float).eps * np.diff(matrix.indptr)).any():
        return 1
    levels = _levels(leaving)
    result = 0
    for part in blocks(levels.size, numbers=100_000):  # to save memory
        ends = leaving.indptr[part.start : part.stop + 1]
        excess = np.repeat(levels[part], np.diff(ends)) + 1 - levels[leaving.indices[ends[0] : ends[-1]]]
        result = int(np.gcd(result, np.gcd.reduce(excess)))
        if result == 1:
            break
    return result


def _levels(leaving: Matrix) -> Ints:
    """The number of steps from node 0 to each node."""
    from scipy.sparse.csgraph import breadth_first_order

    _, before = breadth_first_order(leaving, 0, directed=True)
    before[0] = 0
    levels, jump = np.ones(before.size, dtype=np.int64), before
    levels[0] = 0
    while jump.any():  # each round doubles how far back `jump` reaches
        levels += levels[jump]
        jump = jump[jump]
    return levels
