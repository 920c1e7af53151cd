"""How long a walk takes: to come to a node, to leave one, to get out of a set of nodes.

The times after which it forgets where it began are in `spectrum` and `mixing`.
"""

import reprlib
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.analysis.chain import Chain, chain_of, check_dense, matrix_of
from freewalk.errors import AnalysisError
from freewalk.kernel import Kernel
from freewalk.stationary import check_irreducible, flows_of, leaving_rates, stationary_law, totals_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]

_INSTEAD = "On larger graphs ask for what is sparse: sojourn_times, escape_time, stationary"


def fundamental_matrix(kernel: Kernel) -> Floats:
    """Z = (I − P + 1 νᵀ)⁻¹: Z[i, j] − ν[j] adds up how much more often than ν[j] a walk from i is at j.

    Parameters
    ----------
    kernel
        The walk, on at most 5000 nodes.

    Raises
    ------
    KernelError
        If the kernel is reducible.
    AnalysisError
        If there are too many nodes for a dense matrix, or the kernel changes with time.

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
    return _fundamental(_dense_chain("fundamental_matrix", kernel))


def hitting_times(kernel: Kernel) -> Floats:
    """H[i, j], the mean number of steps from node i until node j is first reached: (Z[j, j] − Z[i, j]) / ν[j].

    Parameters
    ----------
    kernel
        The walk, on at most 5000 nodes.

    Returns
    -------
    NDArray
        n × n numbers, 0 on the diagonal.

    Raises
    ------
    KernelError, AnalysisError
        As `fundamental_matrix`.

    Examples
    --------
    On a ring, d · (n − d) steps for a distance of d.

    >>> import freewalk as fw
    >>> fw.analysis.hitting_times(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5)))[0].round(9)
    array([0., 4., 6., 6., 4.])
    """
    chain = _dense_chain("hitting_times", kernel)
    fundamental = _fundamental(chain)
    return np.asarray((np.diag(fundamental)[None, :] - fundamental) / chain.law[None, :])


def kemeny_constant(kernel: Kernel) -> float:
    """The mean number of steps to a node drawn from ν, the same from every node: tr Z − 1 = Σ_j ν[j] H[i, j].

    Parameters
    ----------
    kernel
        The walk, on at most 5000 nodes.

    Raises
    ------
    KernelError, AnalysisError
        As `fundamental_matrix`.

    Examples
    --------
    >>> import freewalk as fw
    >>> round(fw.analysis.kemeny_constant(fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))), 9)
    4.0
    """
    return float(np.trace(_fundamental(_dense_chain("kemeny_constant", kernel))) - 1)


def sojourn_times(kernel: Kernel) -> Floats:
    """The mean number of updates in a row at each node, once the walk is there: 1 / (1 − P(v, v)).

    Parameters
    ----------
    kernel
        The walk, on any number of nodes.

    Returns
    -------
    NDArray
        A number of at least 1 for each node; infinite where the walk never leaves.

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
    # From what leaves, not from the diagonal: the difference 1 − P(v, v) would lose digits where walks stay long.
    left = totals_of(leaving_rates(matrix_of("sojourn_times", kernel)))
    times = np.divide(1.0, left, out=np.full(left.size, np.inf), where=left > 0)
    return np.asarray(np.maximum(times, 1.0))


def escape_time(kernel: Kernel, nodes: ArrayLike, start: Literal["entry"] | int | ArrayLike | None = None) -> float:
    """The mean number of steps until the walk is first outside a set S of nodes: h = 1 + P_SS h, averaged over `start`.

    Parameters
    ----------
    kernel
        The walk, on any number of nodes.
    nodes
        The set: different nodes, and not all of them.
    start
        Where in the set the walk is. None: anywhere, in the long run (the stationary law within the set). A node of the
        set, or a law: a number for each of `nodes`. "entry": where visits begin, so that the result is the mean length
        of a visit, ν(S) / (flow out of S).

    Raises
    ------
    KernelError
        If the kernel is reducible.
    AnalysisError
        If the set or the start is not as above, or the kernel changes with time.

    Examples
    --------
    >>> import freewalk as fw
    >>> kernel = fw.designs.Metropolis(power=1).kernel(fw.graphs.ring(6), [100, 100, 1, 1, 1, 1])
    >>> round(fw.analysis.escape_time(kernel, [0, 1]), 6)
    200.0
    """
    leaving = leaving_rates(matrix_of("escape_time", kernel))
    chosen = _check_nodes(nodes, kernel.graph.n)
    check_irreducible(leaving, f"escape_time: {kernel.label}")
    if start is None or (isinstance(start, str) and start == "entry"):
        law = stationary_law(leaving, f"escape_time: {kernel.label}", np.asarray(kernel.target))
        shares = law[chosen]
        if start is None:
            return float(shares @ _escapes(leaving, chosen) / shares.sum())
        inside = flows_of(leaving, law)[chosen]
        out = inside.sum() - inside[:, chosen].sum()
        return float(shares.sum() / out)
    return float(_check_start(start, chosen) @ _escapes(leaving, chosen))


def _dense_chain(who: str, kernel: Kernel) -> Chain:
    if isinstance(kernel, Kernel):
        check_dense(who, kernel.graph.n, _INSTEAD)
    return chain_of(who, kernel)


def _fundamental(chain: Chain) -> Floats:
    equations = -chain.leaving.toarray()
    np.fill_diagonal(equations, totals_of(chain.leaving))
    equations += chain.law[None, :]
    return np.asarray(np.linalg.inv(equations))


def _escapes(leaving: "csr_array", nodes: NDArray[np.int64]) -> Floats:
    """The mean number of steps to leave the set from each of its nodes."""
    from scipy.sparse import csc_array, diags_array
    from scipy.sparse.linalg import splu

    equations = csc_array(diags_array(totals_of(leaving)[nodes]) - leaving[nodes][:, nodes])
    # Pivots on the diagonal are safe: rows have a positive diagonal that is at least the sum of all else.
    factors = splu(equations, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return np.asarray(factors.solve(np.ones(nodes.size)), dtype=np.float64)


def _check_nodes(nodes: ArrayLike, n: int) -> NDArray[np.int64]:
    given = _array(nodes)
    if given is None or given.ndim != 1 or given.size == 0 or not np.issubdtype(given.dtype, np.integer):
        raise AnalysisError(f"escape_time: nodes = {reprlib.repr(nodes)}, expected a list of at least one node")
    outside = given[(given < 0) | (given >= n)]
    if outside.size:
        raise AnalysisError(f"escape_time: nodes holds {outside[0]}, expected nodes from 0 to {n - 1}")
    if np.unique(given).size < given.size:
        values, counts = np.unique(given, return_counts=True)
        raise AnalysisError(f"escape_time: nodes holds {values[counts > 1][0]} twice, expected different nodes")
    if given.size == n:
        raise AnalysisError(
            f"escape_time: nodes are all {n} nodes of the graph, which no walk leaves; leave at least one out"
        )
    return given.astype(np.int64)


def _check_start(start: object, nodes: NDArray[np.int64]) -> Floats:
    """Where in the set the walk is, as a law over its nodes."""
    expected = (
        f'expected None, "entry", one of the set\'s nodes, or a law of {nodes.size} numbers, one for each of them'
    )
    refusal = AnalysisError(f"escape_time: start = {reprlib.repr(start)}, {expected}")
    given = _array(start)
    if given is None or isinstance(start, str):
        raise refusal
    if given.ndim == 0 and np.issubdtype(given.dtype, np.integer):
        if given not in nodes:
            raise AnalysisError(f"escape_time: start = {reprlib.repr(start)} is not among its nodes; {expected}")
        return np.asarray(nodes == given, dtype=np.float64)
    numbers = np.issubdtype(given.dtype, np.number) and not np.iscomplexobj(given)
    if given.shape != nodes.shape or not numbers or not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise refusal
    parts = given / given.max()  # their sum is finite, whatever they are
    return np.asarray(parts / parts.sum(), dtype=np.float64)


def _array(value: object) -> NDArray[Any] | None:
    """What numpy makes of a value; None where that is nothing, as of rows of unequal length."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        return None
