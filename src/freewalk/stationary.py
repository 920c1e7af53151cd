"""The stationary law of a sparse Markov chain: ν with ν P = ν, Σ ν = 1.

Only the probabilities of leaving a node enter. The diagonal follows from them, and where a walk seldom leaves,
1 − P(v, v) would have lost its digits. Three ways, each where it is best:

- a law that is in detailed balance with P is the answer and needs only to be checked;
- few nodes, or nodes that can be ordered so that all moves are short (rings, paths, narrow grids): elimination without
  any subtraction, exact in every component (Grassmann, Taksar, Heyman 1985);
- all others: corrections from the balance of flows by GMRES on a hierarchy of aggregates, checked at the end.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freewalk.aggregation import Hierarchy, minimise
from freewalk.errors import AnalysisError, KernelError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]

#: The largest residual ‖ν P − ν‖₁ of a law that is returned.
RESIDUAL = 1e-13

_BALANCED = 1e-13  # relative difference of two opposite flows that are equal but for rounding
_PLAIN = 200  # nodes up to which numpy is fast enough, and nothing has to be compiled
_ELIMINATION = 2e9  # multiplications that an elimination may take: a few seconds, and at most 2 GB
_SWEEPS = 25
_ROUNDS = 12
_ACCURACY = 1e-5  # of one correction
_CORRECTED = 1e-7  # a correction this small, and this accurate, is the last
_REBUILT = 0.5  # a larger one changes the flows so much that the hierarchy is made anew


def stationary_law(matrix: "csr_array", who: str, guess: Floats | None = None) -> Floats:
    """The law ν with ν P = ν of an irreducible row-stochastic matrix, reversible or not.

    Parameters
    ----------
    matrix
        The matrix P. Its diagonal is not read.
    who
        Whose matrix it is, for errors.
    guess
        Positive numbers that may be near the law, such as the target of a design.

    Raises
    ------
    KernelError
        If P is reducible: it has no single law.
    AnalysisError
        If the iteration for a large chain does not settle with a residual ‖ν P − ν‖₁ of at most 1e-13.

    References
    ----------
    Grassmann, Taksar, Heyman, *Regenerative analysis and steady state distributions for Markov chains*, 1985.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> stationary_law(csr_array([[0.9, 0.1], [0.3, 0.7]]), "two nodes")
    array([0.75, 0.25])
    """
    leaving = leaving_rates(matrix)
    check_irreducible(leaving, who)
    n = leaving.shape[0]
    start = np.full(n, 1.0 / n) if guess is None else np.asarray(guess / guess.sum(), dtype=np.float64)
    if is_reversible(leaving, start):
        return start
    if n <= _PLAIN:
        return _eliminate_dense(leaving.toarray())
    place, width = narrow_order(leaving)
    if n * width**2 <= _ELIMINATION:
        return _eliminate_narrow(leaving, place, width)
    return _correct(leaving, who, start)


def leaving_rates(matrix: "csr_array") -> "csr_array":
    """The positive entries of a matrix off its diagonal, columns sorted."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(matrix.shape[0], dtype=matrix.indices.dtype), np.diff(matrix.indptr))
    kept = (rows != matrix.indices) & (matrix.data > 0)
    ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr].astype(matrix.indptr.dtype)
    leaving = csr_array((matrix.data[kept], matrix.indices[kept], ends), shape=matrix.shape)
    leaving.sort_indices()
    return leaving


def check_irreducible(leaving: "csr_array", who: str) -> None:
    """Raise unless every node can be reached from every other."""
    from scipy.sparse.csgraph import connected_components

    count, parts = connected_components(leaving, directed=True, connection="strong")
    if count == 1:
        return
    rows = np.repeat(np.arange(leaving.shape[0]), np.diff(leaving.indptr))
    across = np.flatnonzero(parts[rows] != parts[leaving.indices])
    if across.size:
        example = f"it goes from node {rows[across[0]]} to node {leaving.indices[across[0]]} but cannot return"
    else:
        example = f"it never goes from node 0 to node {int(np.argmax(parts != parts[0]))}"
    raise KernelError(
        f"{who}: P is reducible ({count} strongly connected parts), so it has no law of its own to settle in: "
        f"{example}; expected one part. Give every edge a positive probability in both directions"
    )


def totals_of(leaving: "csr_array") -> Floats:
    """The sums of the rows: with what probability each node is left."""
    return np.asarray(leaving.sum(axis=1), dtype=np.float64).ravel()


def flows_of(leaving: "csr_array", law: Floats) -> "csr_array":
    """What goes from node to node in one step: law[i] P[i, j]."""
    from scipy.sparse import csr_array

    data = leaving.data * np.repeat(law, np.diff(leaving.indptr))
    return csr_array((data, leaving.indices, leaving.indptr), shape=leaving.shape)


def is_reversible(leaving: "csr_array", law: Floats, tolerance: float = _BALANCED) -> bool:
    """Whether a law is in detailed balance with a chain: law[i] P[i, j] = law[j] P[j, i], relative to either."""
    from scipy.sparse import csr_array

    flows = flows_of(leaving, law)
    back = csr_array(flows.T)  # its columns are sorted, as those of `leaving` are
    if not (np.array_equal(flows.indptr, back.indptr) and np.array_equal(flows.indices, back.indices)):
        return False
    return bool((np.abs(flows.data - back.data) <= tolerance * flows.data).all())


def _eliminate_dense(rates: Floats) -> Floats:
    """Take out the nodes, the last first, then put them back; nothing is subtracted, so no digits are lost."""
    law = np.ones(len(rates))
    for last in range(len(rates) - 1, 0, -1):
        rates[:last, last] /= rates[last, :last].sum()
        rates[:last, :last] += np.outer(rates[:last, last], rates[last, :last])
    for node in range(1, len(rates)):
        law[node] = law[:node] @ rates[:node, node]
    return np.asarray(law / law.sum())


def narrow_order(leaving: "csr_array") -> tuple[NDArray[np.int64], int]:
    """The places of the nodes in an order in which moves are short, and how long the longest is."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(leaving, symmetric_mode=True)
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return place, int(np.abs(np.repeat(place, np.diff(leaving.indptr)) - place[leaving.indices]).max())


def _eliminate_narrow(leaving: "csr_array", place: NDArray[np.int64], width: int) -> Floats:
    """The same elimination among the `width` nodes before each, compiled."""
    from freewalk.compiling import compile_functions

    band = np.zeros((place.size, 2 * width + 1))
    rows = np.repeat(place, np.diff(leaving.indptr))
    band[rows, place[leaving.indices] - rows + width] = leaving.data
    law = np.ones(place.size)
    compile_functions({"eliminate_band": eliminate_band}, "eliminate_band")(band, law, width)
    return np.asarray((law / law.sum())[place])


def eliminate_band(band: Floats, law: Floats, width: int) -> None:
    """Eliminate in place; band[i, width + j − i] is the rate from node i to node j."""
    n = len(law)
    for last in range(n - 1, 0, -1):
        first = max(0, last - width)
        total = 0.0
        for to in range(first, last):
            total += band[last, width + to - last]
        for node in range(first, last):
            share = band[node, width + last - node] / total
            band[node, width + last - node] = share
            if share > 0:
                for to in range(first, last):
                    band[node, width + to - node] += share * band[last, width + to - last]
    for node in range(1, n):
        total = 0.0
        for before in range(max(0, node - width), node):
            total += law[before] * band[before, width + node - before]
        law[node] = total
        if total > 1e200:  # laws that rise more steeply than floats can hold leave zeros behind, not infinities
            for before in range(node + 1):
                law[before] *= 1e-200


def _correct(leaving: "csr_array", who: str, law: Floats) -> Floats:
    """Correct a law by what its flows lack to be balanced, until it no longer changes."""
    from scipy.sparse import csr_array

    arriving, rates = csr_array(leaving.T), totals_of(leaving)
    for _ in range(_SWEEPS):  # settles nodes that differ much from their neighbours
        law = 0.3 * law + 0.7 * (arriving @ law) / rates
    law = law / law.sum()
    solve = balance_solver(leaving, law)
    for _ in range(_ROUNDS):
        correction = solve(arriving @ law - law * rates)
        change = float(np.max(np.abs(correction) / law))
        law = np.maximum(law + correction, 0.01 * law)
        law = law / law.sum()
        residual = float(np.abs(arriving @ law - law * rates).sum())
        # Both, since the residual of a walk that hardly moves is small whatever the law.
        if change <= _CORRECTED and residual <= RESIDUAL:
            return law
        if change > _REBUILT:
            solve = balance_solver(leaving, law)
    raise AnalysisError(
        f"{who}: after {_ROUNDS} corrections its stationary law still changes by {change:.1e} (relative), with a "
        f"residual of {residual:.1e}; expected {_CORRECTED:.0e} and {RESIDUAL:.0e}. A target nearer to the law is a "
        "better start, and a smaller graph is solved without iterating"
    )


def balance_solver(leaving: "csr_array", law: Floats, accuracy: float = _ACCURACY) -> Callable[[Floats], Floats]:
    """A function that solves c − c P = r for c, nearly, given r with Σ r = 0; `law` is near that of the chain.

    With r = ν P − ν it is what a law ν lacks.
    """
    hierarchy = Hierarchy(flows_of(leaving, law), law)
    scale = np.sqrt(
        law * totals_of(leaving)
    )  # in this norm a node counts for its own share, not for the heaviest node's

    def apply(right: Floats) -> Floats:
        return hierarchy.balance(hierarchy.cycle(right * scale)) / scale

    rounding = float(np.finfo(float).eps * np.linalg.norm(scale))

    def solve(residual: Floats) -> Floats:
        right = residual / scale
        # There is nothing to be gained below the rounding of the residual itself.
        least = rounding / max(float(np.linalg.norm(right)), rounding)
        unknown = minimise(apply, right, max(accuracy, least), rounds=4)
        return law * hierarchy.cycle(unknown * scale)

    return solve
