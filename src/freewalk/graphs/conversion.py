"""Graphs from networkx and scipy."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.errors import GraphError
from freewalk.graphs.edges import from_pairs
from freewalk.graphs.graph import Graph
from freewalk.graphs.structure import MOST_NODES, Names, check, check_count, check_size, one_way

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix

_NO_EDGE = "put 0 where there is no edge"


def from_networkx(graph: Any) -> Graph:
    """Convert a `networkx` graph.

    Nodes of any type become 0..n-1 in iteration order (`list(graph)`). Unless they are already 0..n-1 in that order,
    `node_names` keeps the originals: `str` of each node or, if that makes two names equal, `repr` of each. Positions
    are read from the node attribute `pos`, or `x` and `y`, if every node has two numbers there.

    Weights and other attributes are ignored, self-loops are dropped, edge directions are ignored, and parallel edges
    are merged. The graph keeps its name, if it has one.

    Parameters
    ----------
    graph
        A `networkx.Graph`, `DiGraph`, `MultiGraph` or `MultiDiGraph`.

    Raises
    ------
    GraphError
        If it is not a networkx graph, has fewer than two nodes or nodes with indistinguishable names, or is
        disconnected.

    Examples
    --------
    >>> import networkx
    >>> from_networkx(networkx.petersen_graph())
    Graph(Petersen Graph: 10 nodes, 15 edges)
    """
    import networkx

    if not issubclass(type(graph), networkx.Graph):
        remedy = "from_scipy takes matrices, from_edges takes pairs of nodes"
        raise GraphError(f"from_networkx: got a {type(graph).__name__}, expected a networkx graph; {remedy}")
    numbered = all(isinstance(node, (int, np.integer)) and node == place for place, node in enumerate(graph))
    names = None if numbered else names_of("from_networkx", graph)
    return networkx_graph(graph, str(graph.name).strip() or "from_networkx", names)


def networkx_graph(graph: Any, name: str, names: Names) -> Graph:
    """Convert a graph known to be a networkx graph, with known node names."""
    number = {node: place for place, node in enumerate(graph)}
    ends = (number[node] for edge in graph.edges() for node in edge)
    pairs = np.fromiter(ends, dtype=np.int64, count=2 * graph.number_of_edges())
    return from_pairs(pairs[0::2], pairs[1::2], len(number), name, names, _positions(graph))


def _positions(graph: Any) -> NDArray[np.float64] | None:
    """Find the node positions where networkx and file formats store them."""
    nodes = [data for _, data in graph.nodes(data=True)]
    drawn = [data["graphics"] if isinstance(data.get("graphics"), dict) else data for data in nodes]  # GML
    for places in ([data.get("pos") for data in nodes], [(data.get("x"), data.get("y")) for data in drawn]):
        try:
            positions = np.array(places, dtype=np.float64)  # None becomes NaN
        except Exception:  # not numbers, or an object that raises anything
            continue
        if positions.shape == (len(nodes), 2) and np.isfinite(positions).all():
            return positions
    return None


def distinct(names: Sequence[Any]) -> bool:
    """Whether these are different strings, none of them blank."""
    try:
        return len({check.text("", "", name) for name in names}) == len(names)
    except GraphError:
        return False


def names_of(owner: str, nodes: Iterable[Any]) -> tuple[str, ...]:
    """Name nodes of any type: by `str` or, if that makes two names equal or one blank, all by `repr`."""
    listed = list(nodes)
    for spell in (str, repr):
        try:
            names = tuple(spell(node) for node in listed)
        except Exception:  # an object that raises anything
            continue
        if distinct(names):
            return names
    remedy = "relabel them, with networkx: networkx.convert_node_labels_to_integers(g)"
    raise GraphError(f"{owner}: the nodes have no names that differ, neither by str nor by repr; {remedy}")


def from_scipy(matrix: "sparray | spmatrix | ArrayLike") -> Graph:
    """Build a graph with an edge wherever a symmetric matrix is nonzero.

    The values are ignored and the diagonal (self-loops) is dropped; duplicate entries of a sparse matrix are summed
    first, as in scipy.

    Parameters
    ----------
    matrix
        A square scipy sparse matrix or array, or a dense array of real numbers.

    Raises
    ------
    GraphError
        If it is not a square matrix of finite numbers, its pattern is not symmetric, it has fewer than two rows, or the
        graph is disconnected.

    Examples
    --------
    >>> from_scipy([[0, 1, 0], [1, 0, 2.5], [0, 2.5, 7]])
    Graph(from_scipy: 3 nodes, 2 edges)
    """
    from scipy.sparse import csr_array, issparse

    is_sparse = bool(issparse(matrix)) and hasattr(matrix, "shape")
    given: Any = matrix if is_sparse else check.floats("from_scipy", "the matrix", matrix, remedy=_NO_EDGE)
    if len(given.shape) != 2 or given.shape[0] != given.shape[1]:
        raise GraphError(f"from_scipy: got a matrix of shape {given.shape}, expected a square one")
    n = check.whole("from_scipy", "the number of rows", given.shape[0], 0, MOST_NODES)
    check_count("from_scipy", n)
    if is_sparse:
        check_size("from_scipy", n, given.nnz)
    nonzero: Any = csr_array(given, copy=True)
    nonzero.sum_duplicates()
    check.floats("from_scipy", "the data of the matrix", nonzero.data, remedy=_NO_EDGE)
    nonzero.eliminate_zeros()
    missing = one_way(nonzero.indptr, nonzero.indices)
    if missing is not None:
        words = f"entry {missing} is not zero but its mirror image is, expected a symmetric pattern"
        raise GraphError(f"from_scipy: {words}; if direction does not matter, pass matrix + matrix.T")
    edges = nonzero.tocoo()
    return from_pairs(edges.row, edges.col, n, "from_scipy")
