"""How long a walk takes: to reach a node, to leave one, to escape from a set of nodes."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from freewalk.analysis.chain.chain import (
    check,
    check_constant,
    check_dense,
    check_kernel,
    check_nodes,
    states_and_matrix,
    stationary,
)
from freewalk.analysis.chain.states import classes_of
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.linear.arrays import Floats, Ints, Matrix
from freewalk.linear.elimination import PLAIN, eliminated, times_between
from freewalk.linear.stationary import flows_of, leaving_rates, row_sums, totals_of

_PRECISION, _ROUGHLY = 1e-10, 1e-8
_INSTEAD = "On larger graphs ask for what is sparse: sojourn_times, escape_time, stationary"


def fundamental_matrix(kernel: Kernel) -> Floats:
    """Compute Z = (I − P + 1 νᵀ)⁻¹: Z[i, j] − ν[j] sums how much more often than ν[j] a walk from i is at j.

    Parameters
    ----------
    kernel
        The walk, on at most 5000 nodes.

    Raises
    ------
    KernelError, AnalysisError
        If the kernel is reducible, there are too many nodes for a dense matrix, or the kernel changes with time.

    References
    ----------
    Kemeny, Snell, *Finite Markov chains*, 1960, chapter IV.

    Examples
    --------
    >>> import freewalk as fw
    >>> fundamental = fw.analysis.fundamental_matrix(fw.designs.SimpleWalk().kernel(fw.graphs.ring(4)))
    >>> fundamental.sum(axis=1).round(12)
    array([1., 1., 1., 1.])
    """
    times, law = _hitting_times("fundamental_matrix", kernel)
    diagonal = law * (1.0 + law @ times)
    result = np.asarray(diagonal - law * times)
    # The only difference in all this. Between deep traps it has no digits left.
    error = 4 * np.sqrt(law.size) * np.finfo(float).eps * (diagonal + law * times)
    worst = float((error / np.maximum(np.abs(result), 1.0)).max())
    if not worst <= _ROUGHLY:
        got = f"rounding leaves an error of {worst:.1e} in some of its entries, expected at most {_ROUGHLY:.0e}"
        raise AnalysisError(f"fundamental_matrix: {kernel.label}: {got}: deep traps. Use hitting_times")
    return result


def hitting_times(kernel: Kernel) -> Floats:
    """Compute the mean number of steps H[i, j] from node i until node j is first reached: (Z[j, j] − Z[i, j]) / ν[j].

    Parameters
    ----------
    kernel
        The walk, on at most 5000 nodes. If it remembers the last node, it starts from a node without a past, and may
        have at most 5000 pairs of nodes: 2 · edges, and one for each node where it stays.

    Returns
    -------
    NDArray
        n × n numbers, 0 on the diagonal.

    Examples
    --------
    On a ring, a distance of d takes d · (n − d) steps:

    >>> import freewalk as fw
    >>> fw.analysis.hitting_times(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)))[0].round(9)
    array([0., 4., 6., 6., 4.])
    """
    check_constant("hitting_times", kernel, last_node=True)
    if kernel.memory is None:
        return _hitting_times("hitting_times", kernel)[0]
    states, matrix = states_and_matrix("hitting_times", kernel)
    check_dense("hitting_times", states.nodes.size, _INSTEAD, "pairs of nodes")
    times = times_between(leaving_rates(matrix), np.cumsum(np.bincount(states.nodes)))
    return states.gathered(states.shares[:, None] * times)


def kemeny_constant(kernel: Kernel) -> float:
    """Compute the mean number of steps to a node drawn from ν, the same from every node: tr Z − 1 = Σ_j ν[j] H[i, j].

    Parameters
    ----------
    kernel
        The walk, on at most 5000 nodes.

    Examples
    --------
    >>> import freewalk as fw
    >>> round(fw.analysis.kemeny_constant(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))), 9)
    4.0
    """
    times, law = _hitting_times("kemeny_constant", kernel)
    return float(times[int(np.argmax(law))] @ law)


def sojourn_times(kernel: Kernel) -> Floats:
    """Compute the mean number of consecutive updates at each node, once the walk is there: 1 / (1 − P(v, v)).

    Parameters
    ----------
    kernel
        The walk, on any number of nodes. In the long run, the memory of the last node does not change the mean: neither
        the share of a node nor the flow into it.

    Returns
    -------
    NDArray
        One number of at least 1 per node; infinite if the walk never leaves.

    Raises
    ------
    AnalysisError
        If the kernel changes with time.

    Examples
    --------
    >>> import freewalk as fw
    >>> fw.analysis.sojourn_times(fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(5), [100, 1, 1, 1, 1])).round(9)
    array([100.,   1.,   1.,   1.,   1.])
    """
    # From the rates of leaving, not from the diagonal: the difference 1 − P(v, v) would lose digits where walks stay
    # long.
    check_constant("sojourn_times", kernel, last_node=True)
    left = totals_of(leaving_rates(kernel.without_memory().matrix()))
    times = np.divide(1.0, left, out=np.full(left.size, np.inf), where=left > 0)
    return np.asarray(np.maximum(times, 1.0))


def escape_time(kernel: Kernel, nodes: ArrayLike, start: Literal["entry"] | int | ArrayLike | None = None) -> float:
    """Compute the mean number of steps until the walk first leaves a set S: h = 1 + P_SS h, averaged over `start`.

    Parameters
    ----------
    kernel
        The walk, on any number of nodes.
    nodes
        The set: distinct nodes, by number or name, but not all nodes.
    start
        Where in the set the walk is. None: anywhere, in the long run (the stationary distribution within the set). A
        node of the set, or a distribution: one number for each of `nodes`. "entry": where visits begin, so that the
        result is the mean length of a visit, ν(S) / (flow out of S).

    Raises
    ------
    KernelError, AnalysisError
        If the kernel is reducible, the set or the start is invalid, or the kernel changes with time.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(6), [100, 100, 1, 1, 1, 1])
    >>> round(fw.analysis.escape_time(kernel, [0, 1]), 6)
    200.0
    """
    states, matrix = states_and_matrix("escape_time", kernel)
    leaving = leaving_rates(matrix)
    chosen = check_nodes("escape_time", nodes, kernel.graph)
    classes_of("escape_time", kernel, states, leaving)
    inside = states.at(chosen)
    if start is None or (isinstance(start, str) and start == "entry"):
        law = states.lifted(stationary(kernel, who="escape_time"))
        shares = law[inside]
        if start is None:
            return float(shares @ _escapes(leaving, inside) / shares.sum())
        flows = flows_of(leaving, law)[inside]
        return float(shares.sum() / flows.data[~np.isin(flows.indices, inside)].sum())
    begin = np.zeros(kernel.graph.n)
    begin[chosen] = _start_within(start, chosen, kernel.graph)
    return float(states.lifted(begin)[inside] @ _escapes(leaving, inside))


def _hitting_times(who: str, kernel: Kernel) -> tuple[Floats, Floats]:
    """The times from every node to every other, and the stationary distribution."""
    check_kernel(who, kernel)
    check_dense(who, kernel.graph.n, _INSTEAD)
    law = stationary(kernel, who=who)
    times = times_between(leaving_rates(kernel.matrix()))
    if not np.isfinite(times).all():
        raise AnalysisError(f"{who}: {kernel.label}: some times exceed the range of floats, expected less than 1e308")
    return times, law


def _escapes(leaving: Matrix, nodes: Ints) -> Floats:
    """The mean number of steps to leave the set from each of its nodes."""
    from scipy.sparse import csc_array, diags_array
    from scipy.sparse.linalg import splu

    rows = leaving[nodes]
    rates, ones = rows[:, nodes], np.ones(nodes.size)
    out = row_sums(rows, np.where(np.isin(rows.indices, nodes), 0.0, rows.data))
    times = eliminated(rates, out, ones[:, None], dense=nodes.size <= PLAIN)
    if times is not None:
        return times[:, 0]
    equations = csc_array(diags_array(totals_of(rates) + out) - rates)
    # Pivots on the diagonal are safe: each row has a positive diagonal entry that is at least the sum of the others.
    factors = splu(equations, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    # The walk escapes with probability 1: the computed value of that shows how many digits the factors have.
    error = float(np.abs(factors.solve(out) - 1.0).max())
    if not error <= _PRECISION:
        got = f"rounding leaves an error of {error:.1e} (relative), expected at most {_PRECISION:.0e}"
        raise AnalysisError(f"escape_time: nearly closed: {got}; ask for at most {PLAIN} nodes, or start='entry'")
    return np.asarray(factors.solve(ones), dtype=np.float64)


def _start_within(start: object, nodes: Ints, graph: Graph) -> Floats:
    """Where in the set the walk is, as a distribution over its nodes."""
    expected = f'None, "entry", one of the nodes of the set, or {nodes.size} numbers, one for each of them'
    if isinstance(start, (str, bool, int, np.integer)):
        node = arguments.nodes_of("escape_time", "start", start, graph, expected, check)
        given = np.asarray(nodes == node, dtype=np.float64)
    else:
        given = check.floats("escape_time", "start", start, nodes.shape, low=0.0, remedy=f"give {expected}")
    if not given.any():
        raise check.fail("escape_time", "start", start, expected)
    parts = given / given.max()  # their sum is finite
    return np.asarray(parts / parts.sum())
