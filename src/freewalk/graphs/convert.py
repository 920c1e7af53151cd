"""Graphs from what others make: networkx, scipy and lists of edges."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.errors import GraphError
from freewalk.graphs.arguments import whole
from freewalk.graphs.graph import Graph
from freewalk.graphs.pairs import from_pairs
from freewalk.graphs.structure import check_count, one_way, pattern

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix


def from_networkx(graph: Any) -> Graph:
    """Make the graph of a `networkx` graph.

    Its nodes, whatever they are, become 0..n-1 in their order of iteration (`list(graph)`). Weights and other
    attributes are ignored and self-loops dropped; in a directed graph the direction of an edge is ignored, in
    a multigraph parallel edges are merged. A graph that has a name keeps it.

    Parameters
    ----------
    graph
        A `networkx.Graph`, or a directed or multiple one.

    Raises
    ------
    GraphError
        If it is not a networkx graph, has less than two nodes, or is disconnected.

    Examples
    --------
    >>> import networkx
    >>> from_networkx(networkx.petersen_graph())
    Graph(Petersen Graph: 10 nodes, 15 edges)
    """
    import networkx

    if not isinstance(graph, networkx.Graph):
        raise GraphError(
            f"from_networkx: got a {type(graph).__name__}, expected a networkx graph; "
            "from_scipy takes matrices, from_edges takes pairs of nodes"
        )
    return networkx_graph(graph, str(graph.name or "from_networkx"))


def networkx_graph(graph: Any, name: str) -> Graph:
    """Do what `from_networkx` does, under another name, for a graph that is known to be one of networkx.

    Examples
    --------
    >>> import networkx
    >>> networkx_graph(networkx.path_graph("abc"), "letters")
    Graph(letters: 3 nodes, 2 edges)
    """
    number = {node: place for place, node in enumerate(graph)}
    ends = (number[node] for edge in graph.edges() for node in edge)
    pairs = np.fromiter(ends, dtype=np.int64, count=2 * graph.number_of_edges())
    return from_pairs(pairs[0::2], pairs[1::2], len(number), name)


def from_scipy(matrix: "sparray | spmatrix | ArrayLike") -> Graph:
    """Make the graph with an edge wherever a symmetric matrix is not zero.

    The values themselves are ignored and the diagonal (self-loops) is dropped; duplicate entries of a sparse
    matrix are added up first, as scipy does.

    Parameters
    ----------
    matrix
        A square sparse matrix or array of scipy, or a dense array of numbers.

    Raises
    ------
    GraphError
        If it is not a square matrix of finite numbers, its pattern is not symmetric, it has less than two
        rows, or the graph is disconnected.

    Examples
    --------
    >>> from_scipy([[0, 1, 0], [1, 0, 2.5], [0, 2.5, 7]])
    Graph(from_scipy: 3 nodes, 2 edges)
    """
    from scipy.sparse import csr_array, issparse

    is_sparse = bool(issparse(matrix))
    given: Any = matrix if is_sparse else _array("from_scipy", matrix)
    if len(given.shape) != 2 or given.shape[0] != given.shape[1]:
        raise GraphError(f"from_scipy: got a matrix of shape {given.shape}, expected a square one")
    if not (np.issubdtype(given.dtype, np.number) or given.dtype == np.bool_):
        raise GraphError(f"from_scipy: got a matrix of {given.dtype}, expected numbers")
    n = whole("from_scipy", "the number of rows", given.shape[0], least=0)
    check_count("from_scipy", n)
    if is_sparse:
        rows: Any = csr_array(given, copy=True)
        rows.sum_duplicates()
        values, nonzero = rows.data, rows
    else:
        values, nonzero = given, csr_array(given != 0)
    if not np.all(np.isfinite(values)):
        raise GraphError(
            "from_scipy: the matrix holds NaN or infinity, expected finite numbers; put 0 where there is no edge"
        )
    nonzero.eliminate_zeros()
    missing = one_way(pattern(nonzero.indptr, nonzero.indices))
    if missing is not None:
        raise GraphError(
            f"from_scipy: entry {missing} is not zero but its mirror image is, expected a symmetric pattern; "
            "if direction does not matter, give it matrix + matrix.T"
        )
    edges = nonzero.tocoo()
    return from_pairs(edges.row, edges.col, n, "from_scipy")


def from_edges(edges: ArrayLike | Iterable[tuple[int, int]], n: int | None = None) -> Graph:
    """Make the graph of a list of edges.

    The order of the list and of the two ends does not matter; self-loops are dropped and duplicates, in
    either direction, are merged.

    Parameters
    ----------
    edges
        Pairs of nodes: an array-like of shape (E, 2) or an iterable of pairs, of whole numbers from 0.
    n
        The number of nodes; one more than the largest number in the list if not given.

    Raises
    ------
    GraphError
        If the list is not made of pairs of whole numbers from 0 to n - 1, there are less than two nodes, or
        the graph is disconnected.

    Examples
    --------
    >>> from_edges([(0, 1), (2, 1), (1, 0), (2, 2)])
    Graph(from_edges: 3 nodes, 2 edges)
    """
    return edge_graph("from_edges", edges, n)


def edge_graph(owner: str, edges: Any, n: int | None = None) -> Graph:
    """Do what `from_edges` does, where `owner` objects in messages and names the graph.

    Examples
    --------
    >>> edge_graph("roads.txt", [(0, 1), (1, 2)])
    Graph(roads.txt: 3 nodes, 2 edges)
    """
    is_array = hasattr(edges, "__array__") or not np.iterable(edges)
    pairs = _array(owner, edges if is_array else list(edges))
    if pairs.size == 0:
        pairs = np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise GraphError(
            f"{owner}: got an array of {pairs.dtype} of shape {pairs.shape}, expected pairs of whole "
            "numbers: an integer array of shape (E, 2)"
        )
    least, largest = (int(pairs.min()), int(pairs.max())) if pairs.size else (0, -1)
    if n is None and largest >= 2 * max(len(pairs), 1):  # before memory for that many nodes is asked for
        raise GraphError(
            f"{owner}: the largest node is {largest} but {len(pairs)} edges join at most {2 * len(pairs)} "
            "nodes, expected nodes numbered from 0 without gaps; renumber them with "
            "numpy.unique(edges, return_inverse=True)[1].reshape(-1, 2)"
        )
    count = whole(owner, "n", largest + 1 if n is None else n, least=0)
    if least < 0 or largest >= count:
        wrong = int(np.argmax(np.any((pairs < 0) | (pairs >= count), axis=1)))
        raise GraphError(
            f"{owner}: edge {wrong} of the list is {tuple(pairs[wrong].tolist())}, expected nodes from 0 on, "
            f"below n = {count}"
        )
    return from_pairs(pairs[:, 0], pairs[:, 1], count, owner)


def _array(owner: str, values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise GraphError(f"{owner}: got what is not an array ({error}), expected rows of equal length") from error
