"""Walks that avoid to step back, as chains on pairs of nodes written out in plain numpy, straight from the formula."""

import numpy as np

import freewalk as fw
from freewalk.designs import FromMatrix, Metropolis, NonBacktracking, SimpleWalk

KINDS = ("path", "ring", "star", "tree", "complete", "small world", "hubs", "grid")


def small_graph(seed):
    """A graph of 2 to 12 nodes, with nodes of degree one or without."""
    random = np.random.default_rng(seed)
    kind, n = KINDS[seed % len(KINDS)], int(random.integers(5, 13))
    parents = [(v, int(random.integers(v))) for v in range(1, n)]
    makers = {
        "path": lambda: fw.graphs.path(int(random.integers(2, 8))),
        "ring": lambda: fw.graphs.ring(n),
        "star": lambda: fw.graphs.star(n),
        "tree": lambda: fw.graphs.from_edges(parents),
        "complete": lambda: fw.graphs.complete(n),
        "small world": lambda: fw.graphs.watts_strogatz(n, 4, 0.3, seed=seed),
        "hubs": lambda: fw.graphs.barabasi_albert(n, 2, seed=seed),
        "grid": lambda: fw.graphs.grid(2, n // 2),
    }
    return makers[kind]()


def importance_of(graph, seed, span=6.0):
    """An importance over `span` orders of magnitude: at heavy nodes a Metropolis walk stays nearly always."""
    return 10.0 ** np.random.default_rng(seed).uniform(0, span, graph.n)


def designs_on(graph, seed):
    """Every kind of design that a memory of the last node admits."""
    random = np.random.default_rng(seed)
    edges = graph.adjacency().toarray()
    flows = random.uniform(0.01, 1, edges.shape) * edges + np.diag(random.uniform(0, 1, graph.n))
    flows += flows.T
    proposal = random.uniform(0.1, 1, edges.shape) * (edges + np.eye(graph.n))
    return {
        "simple": SimpleWalk(),
        "uniform": Metropolis(),
        "importance": Metropolis(power=1),
        "tempered": Metropolis(power=0.5),
        "target": Metropolis(target=random.uniform(0.01, 1, graph.n)),
        "proposal": Metropolis(power=1, proposal=proposal / proposal.sum(axis=1, keepdims=True)),
        "matrix": FromMatrix(flows / flows.sum(axis=1, keepdims=True), target=flows.sum(axis=1)),
    }


def kernels_on(graph, seed, span=6.0):
    """Kernels that avoid to step back, with and without forgetting."""
    importance = importance_of(graph, seed, span)
    for place, design in enumerate(designs_on(graph, seed).values()):
        for forget in (0.0, (0.3, 1.0, 1e-6)[(seed + place) % 3]):
            yield NonBacktracking(design, forget).kernel(graph, importance)


def written_out(kernel):
    """The matrix T between pairs (node, last node), the pairs, and the shares P(node, last node)."""
    matrix = kernel.without_memory().matrix().toarray()
    rounding = np.finfo(float).eps * (1 + kernel.graph.degrees)
    matrix[np.diag(matrix.diagonal() <= rounding)] = 0.0
    pairs = [(int(i), int(k)) for i in range(len(matrix)) for k in np.flatnonzero(matrix[i])]
    number = {pair: place for place, pair in enumerate(pairs)}
    turns = np.zeros((len(pairs), len(pairs)))
    for i, row in enumerate(matrix):
        outcomes = np.flatnonzero(row)
        others = {k: np.delete(row, k).sum() for k in outcomes}
        for k in outcomes:
            ways = {j: row[j] * min(1 / others[k], 1 / others[j]) for j in outcomes if j != k}
            ways[k] = 1 - sum(ways.values())
            for j, probability in ways.items():
                kept = (1 - kernel.memory.forget) * probability + kernel.memory.forget * row[j]
                turns[number[i, k], number[j, i]] += kept
    return turns, pairs, np.array([matrix[pair] for pair in pairs])


def written_out_like(states, kernel):
    """The same in the order of the package's states, with the node of each state."""
    turns, pairs, shares = written_out(kernel)
    number = {pair: place for place, pair in enumerate(pairs)}
    last = states.nodes[states.turns.ahead]  # the pair ahead of (k, i) is (i, k): there the walk is at k
    order = [number[int(i), int(k)] for i, k in zip(states.nodes, last, strict=True)]
    assert sorted(order) == list(range(len(pairs)))
    return turns[np.ix_(order, order)], shares[order]
