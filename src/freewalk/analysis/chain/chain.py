"""The Markov chain of a kernel, as the analysis reads it: one sparse matrix that does not change with time."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.designs.kernel import Kernel
from freewalk.errors import AnalysisError
from freewalk.graphs import Graph
from freewalk.jobs import arguments
from freewalk.linear.stationary import is_reversible, leaving_rates, stationary_law
from freewalk.objectives import Objective

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: The largest number of nodes for which a dense n × n matrix is allocated (200 MB of floats).
DENSE = 5000

check = Checks(AnalysisError)

_BALANCED = 1e-10


def matrix_of(who: str, kernel: Kernel) -> "csr_array":
    """The transition matrix of a kernel that does not change with time.

    Raises
    ------
    AnalysisError
        If it is not a kernel, or its probabilities change with the step.
    """
    check_constant(who, kernel)
    return kernel.matrix()


def check_constant(who: str, kernel: Kernel) -> None:
    """Raise unless the argument is a kernel that does not change with time.

    Raises
    ------
    AnalysisError
        If it is anything else.
    """
    check_kernel(who, kernel)
    if kernel.fade is not None:
        raise AnalysisError(
            f"{who}: {kernel.label} changes with the step, so it has no stationary distribution or times; expected a "
            "constant kernel: kernel.at(step) gives the kernel at one step"
        )


def check_kernel(who: str, kernel: Kernel) -> None:
    """Raise unless the argument is a kernel."""
    check.instance(who, "kernel", kernel, Kernel, "a kernel, as design.kernel(graph, importance) makes it")


def check_fit(who: str, problem: Objective, kernel: Kernel) -> None:
    """Raise unless a problem and a kernel have the same nodes.

    Raises
    ------
    AnalysisError
        If one of them has the wrong type, or their numbers of nodes differ.
    """
    check.instance(who, "problem", problem, Objective, "an objective such as fw.objectives.LeastSquares(...)")
    check_kernel(who, kernel)
    if problem.n != kernel.graph.n:
        raise AnalysisError(
            f"{who}: the problem has {problem.n} nodes and the graph {kernel.graph.n}; expected the same number (a "
            "problem has as many nodes as the largest number in `nodes` says: does the last one hold data?)"
        )


class Chain(NamedTuple):
    """A chain: P, its off-diagonal entries, its stationary distribution ν, and whether P is reversible."""

    matrix: "csr_array"
    leaving: "csr_array"
    law: NDArray[np.float64]
    reversible: bool


def chain_of(who: str, kernel: Kernel) -> Chain:
    """The chain of an irreducible kernel that does not change with time.

    Raises
    ------
    KernelError
        If the kernel is reducible.
    AnalysisError
        If it is not a kernel, changes with time, or its stationary distribution cannot be found.
    """
    matrix = matrix_of(who, kernel)
    law = stationary_law(matrix, f"{who}: {kernel.label}", np.asarray(kernel.target))
    leaving = leaving_rates(matrix)
    return Chain(matrix, leaving, law, is_reversible(leaving, law, _BALANCED))


def check_dense(who: str, n: int, instead: str) -> None:
    """Raise if a dense matrix is needed but there are too many nodes."""
    if n > DENSE:
        raise AnalysisError(f"{who}: got {n} nodes, expected at most {DENSE}: it needs dense matrices. {instead}")


def check_nodes(who: str, nodes: Any, graph: Graph) -> NDArray[np.int64]:
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
