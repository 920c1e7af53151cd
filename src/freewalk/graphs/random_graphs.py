"""Random graphs, each a pure function of its parameters and its seed."""

import math

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Ints
from freewalk.graphs.edges import from_pairs
from freewalk.graphs.graph import Graph
from freewalk.graphs.structure import MOST_NODES, check, check_size
from freewalk.rng import MORE, generator, pick, word_pair

# Separates these draws from all others with the same seed; must never change.
_SKIPS, _JOINS, _REWIRES = 101, 102, 103
_MOST_REDRAWS = 1e8  # half a minute
_MAIN_PERCENT = 99
_MOST_EDGES = 2**31 - 1  # of a preferential graph: an edge end is picked with 32-bit arithmetic


def erdos_renyi(n: int, p: float, seed: int = 0) -> Graph:
    """Build G(n, p): each of the n(n - 1) / 2 pairs of nodes is an edge with probability p, independently.

    Pairs between two edges are skipped by geometric draws (Batagelj and Brandes, 2005), so time and memory are O(n +
    edges).

    Such a graph may leave a few nodes outside its one large component: about 45 for n = 10^6 and mean degree 10. A walk
    needs a connected graph, so **if at least 99 % of the nodes form one component, each stray component is joined to it
    by one additional edge** between a uniform node of each; the name of the graph then states how many were joined.

    Parameters
    ----------
    n
        The number of nodes, at least 2.
    p
        The probability of an edge, from 0 to 1.
    seed
        The same seed gives the same graph.

    Raises
    ------
    GraphError
        If a parameter is out of range, the graph does not fit into memory, or its largest component has less than 99 %
        of the nodes.

    References
    ----------
    V. Batagelj and U. Brandes, *Efficient generation of large random networks*, Physical Review E 71, 2005.

    Examples
    --------
    >>> erdos_renyi(1000, 0.01, seed=1)
    Graph(erdos_renyi(1000, 0.01, seed=1): 1000 nodes, 5025 edges)
    """
    n = check.whole("erdos_renyi", "n", n, 2, MOST_NODES)
    p = check.probability("erdos_renyi", "p", p)
    seed = check.seed("erdos_renyi", seed)
    pairs = n * (n - 1) // 2
    check_size("erdos_renyi", n, p * pairs)
    first, second = pair_of(_chosen_pairs(pairs, p, generator(seed, _SKIPS)))
    first, second, joined = join_strays(first, second, n, generator(seed, _JOINS))
    strays = f", {joined} stray{'s' if joined > 1 else ''} joined" if joined else ""
    return from_pairs(first, second, n, f"erdos_renyi({n}, {p}, seed={seed}){strays}")


def _chosen_pairs(total: int, p: float, random: np.random.Generator) -> Ints:
    """Choose each of 0..total-1 with probability p; return the chosen numbers in ascending order."""
    found = [np.empty(0, dtype=np.int64)]
    last = -1
    while p > 0 and last < total:
        expected = p * (total - 1 - last)
        # Four standard deviations more than expected, so a second round is rare.
        skips = random.geometric(p, size=math.ceil(expected + 4 * math.sqrt(expected)) + 16)
        # A skip of total + 1 <= 2^61 passes the end from anywhere, so the sum does so before it can wrap around.
        places = last + np.cumsum(np.minimum(skips, total + 1))
        past = np.flatnonzero(places >= total)
        found.append(places[: past[0]] if past.size else places)
        last = total if past.size else int(places[-1])
    return np.concatenate(found)


def pair_of(number: Ints) -> tuple[Ints, Ints]:
    """Return the pair u < v < 2^31 with a given number, when (0, 1), (0, 2), (1, 2), (0, 3), … are numbered from 0."""
    larger = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    # The float is accurate to a fraction of 1, so its integer part may be off by one in either direction.
    larger -= larger * (larger - 1) // 2 > number
    larger += larger * (larger + 1) // 2 <= number
    return number - larger * (larger - 1) // 2, larger


def join_strays(first: Ints, second: Ints, n: int, random: np.random.Generator) -> tuple[Ints, Ints, int]:
    """Join each stray component to the main one by one edge, between a uniform node of each.

    Nothing is joined if the largest component has less than 99 % of the nodes: then the graph does not just have a few
    strays, it is disconnected, and joining its pieces would make a different kind of graph.
    Returns the ends of all edges, and the number of strays joined.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(len(first)), (first, second)), shape=(n, n)).tocsr()
    labels: NDArray[np.int32] = connected_components(matrix, directed=False)[1]
    sizes = np.bincount(labels)
    main = int(np.argmax(sizes))
    strays = len(sizes) - 1
    if strays == 0 or 100 * int(sizes[main]) < _MAIN_PERCENT * n:
        return first, second, 0
    outside = np.flatnonzero(labels != main)
    by_component = outside[np.argsort(labels[outside], kind="stable")]
    stray_sizes = np.delete(sizes, main)
    starts = np.cumsum(stray_sizes) - stray_sizes
    stray_ends = by_component[starts + random.integers(stray_sizes)]
    main_nodes = np.flatnonzero(labels == main)
    main_ends = main_nodes[random.integers(len(main_nodes), size=strays)]
    return np.concatenate([first, main_ends]), np.concatenate([second, stray_ends]), strays


def watts_strogatz(n: int, k: int, p: float, seed: int = 0) -> Graph:
    """Build a small world: a ring where each node is joined to its k nearest, each edge rewired with probability p.

    A rewired edge keeps its near end v (it was v to v + j, j = 1..k/2) and moves its far end to a uniform node, redrawn
    while that makes a self-loop or a duplicate edge. It stays in place if v is joined to all other nodes. The graph has
    exactly n · k / 2 edges.

    Parameters
    ----------
    n
        The number of nodes, at least 3.
    k
        The number of nearest neighbours: even, from 2 to n - 1. It should be well below n, because close to n rewiring
        needs many redraws; parameters that would need 10^8 of them are rejected.
    p
        The probability that an edge is rewired, from 0 to 1.
    seed
        The same seed gives the same graph.

    Raises
    ------
    GraphError
        If a parameter is out of range, the graph does not fit into memory, or rewiring disconnected it, which is likely
        for k = 2 only. Unlike in `erdos_renyi`, no edge is added to repair it.

    References
    ----------
    D. J. Watts and S. H. Strogatz, *Collective dynamics of "small-world" networks*, Nature 393, 1998.

    Examples
    --------
    >>> watts_strogatz(1000, 4, 0.1, seed=1)
    Graph(watts_strogatz(1000, 4, 0.1, seed=1): 1000 nodes, 2000 edges)
    """
    who = "watts_strogatz"
    n = check.whole(who, "n", n, 3, MOST_NODES)
    k = check.whole(who, "k", k, 2, n - 1)
    if k % 2:
        raise check.fail(who, "k", k, "an even number: half of the neighbours on each side")
    p = check.probability(who, "p", p)
    seed = check.seed(who, seed)
    check_size(who, n, n * k // 2)
    free = n - 1 - k  # possible new ends for an edge of a node
    if k > free > 0 and p * n * k / 2 * n / free > _MOST_REDRAWS:
        raise check.fail(who, "k", k, f"a number well below n = {n}: rewiring would hardly find a free place")
    near, far = _rewired(n, k // 2, p, generator(seed, _REWIRES))
    return from_pairs(near, far, n, f"watts_strogatz({n}, {k}, {p}, seed={seed})")


def _rewired(n: int, reach: int, p: float, random: np.random.Generator) -> tuple[Ints, Ints]:
    """List the ends of all edges; edge (j - 1) · n + v started as v to v + j."""
    near = np.tile(np.arange(n, dtype=np.int64), reach)
    far = (near + np.repeat(np.arange(1, reach + 1), n)) % n
    moved = np.zeros(n * reach, dtype=np.bool_)
    new_keys = np.empty(0, dtype=np.int64)
    pending = np.flatnonzero(random.random(n * reach) < p)
    degrees = np.full(n, 2 * reach)
    while pending.size:
        pending = pending[degrees[near[pending]] < n - 1]
        start = near[pending]
        end = random.integers(n, size=pending.size)
        # An edge that has not been rewired yet keeps its place, so it can always stay there.
        forward = (end - start) % n
        length = np.minimum(forward, n - forward)
        in_reach = (length > 0) & (length <= reach)
        place = (length - 1) * n + np.where(forward <= reach, start, end)
        taken = start == end
        taken[in_reach] = ~moved[place[in_reach]]
        edge_keys = np.minimum(start, end) * n + np.maximum(start, end)
        taken |= np.isin(edge_keys, new_keys)
        free = np.flatnonzero(~taken)
        fresh, one_of_each = np.unique(edge_keys[free], return_index=True)
        chosen = free[one_of_each]
        degrees -= np.bincount(far[pending[chosen]], minlength=n)
        degrees += np.bincount(end[chosen], minlength=n)
        far[pending[chosen]] = end[chosen]
        moved[pending[chosen]] = True
        new_keys = np.concatenate([new_keys, fresh])
        pending = np.delete(pending, chosen)
    return near, far


def barabasi_albert(n: int, m: int, seed: int = 0) -> Graph:
    """Build a graph with hubs: each new node is joined to m distinct nodes, in proportion to their degrees.

    It starts as a star of m + 1 nodes, as in networkx, and has m(n - m) edges. In a large graph the fraction of nodes
    with degree d >= m is 2m(m + 1) / (d(d + 1)(d + 2)).

    Parameters
    ----------
    n
        The number of nodes, at least 2.
    m
        The number of nodes that each new node is joined to, from 1 to n - 1.
    seed
        The same seed gives the same graph.

    References
    ----------
    A.-L. Barabási and R. Albert, *Emergence of scaling in random networks*, Science 286, 1999.

    Examples
    --------
    >>> barabasi_albert(1000, 3, seed=1)
    Graph(barabasi_albert(1000, 3, seed=1): 1000 nodes, 2991 edges)
    """
    from freewalk.compiled.compiler import compile_functions

    who = "barabasi_albert"
    n = check.whole(who, "n", n, 2, MOST_NODES)
    m = check.whole(who, "m", m, 1, n - 1)
    edges = check.whole(who, "the number of edges m · (n - m)", m * (n - m), 1, _MOST_EDGES)
    seed = check.seed(who, seed)
    check_size(who, n, edges)
    ends = np.empty(2 * edges, dtype=np.int32)
    compile_functions({"attach": attach}, "attach")(n, m, np.uint64(seed), ends, np.zeros(n, dtype=np.int32))
    return from_pairs(ends[0::2], ends[1::2], n, f"barabasi_albert({n}, {m}, seed={seed})")


def attach(n: int, m: int, seed: np.uint64, ends: NDArray[np.int32], last_met: NDArray[np.int32]) -> None:
    """Write the two ends of each edge to `ends`, edge after edge; `last_met` is a buffer of n zeros.

    A uniform entry of that list is a node drawn in proportion to its degree. A new node draws from the edges that
    existed before it, and draws again if it hits a node to which it is already joined.
    """
    # Word k of step v is the k-th draw of node v, in a stream apart from those of the walks; this must never change.
    for leaf in range(1, m + 1):
        ends[2 * leaf - 2] = 0
        ends[2 * leaf - 1] = leaf
    filled = 2 * m
    for node in range(m + 1, n):
        choices = np.uint64(filled)
        complete = filled + 2 * m
        block = np.uint64(0)
        while filled < complete:
            even, odd = word_pair(seed, MORE, np.uint64(0), np.uint64(node), block)
            block = block + np.uint64(1)
            for draw in (even, odd):
                met = ends[pick(draw, choices)]
                if last_met[met] != node and filled < complete:
                    last_met[met] = node
                    ends[filled] = met
                    ends[filled + 1] = node
                    filled = filled + 2
