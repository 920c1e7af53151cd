"""Random walks of 5 to 200 nodes for property tests, and their quantities in plain numpy."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import freewalk as fw

FIXED = settings(derandomize=True, deadline=None, database=None, max_examples=15)


def random_graph(kind, n, seed):
    makers = {
        "ring": lambda: fw.graphs.ring(n),
        "path": lambda: fw.graphs.path(n),
        "grid": lambda: fw.graphs.grid(2, max(n // 2, 3)),
        "small world": lambda: fw.graphs.watts_strogatz(n, 4, 0.2, seed=seed),
        "hubs": lambda: fw.graphs.barabasi_albert(n, 2, seed=seed),
    }
    return makers[kind]()


@st.composite
def weighted_graphs(draw, most=200, span=2.0):
    """A graph, and an importance over `span` orders of magnitude."""
    seed = draw(st.integers(0, 1000))
    kind = draw(st.sampled_from(["ring", "path", "grid", "small world", "hubs"]))
    graph = random_graph(kind, draw(st.integers(5, most)), seed)
    return graph, 10.0 ** np.random.default_rng(seed).uniform(0, span, graph.n)


def problem_with(importance, dim=2, seed=1):
    """Least squares with this importance: features in random directions, one optimum, noise."""
    values, random = np.asarray(importance, dtype=float), np.random.default_rng(seed)
    features = random.normal(size=(values.size, dim))
    features *= np.sqrt(values / (features**2).sum(axis=1))[:, None]
    return fw.objectives.LeastSquares(features, features @ np.ones(dim) + random.normal(size=values.size) / 5)


def directed_rows(graph, seed):
    """A random matrix on the edges and the diagonal: in detailed balance with nothing."""
    numbers = np.random.default_rng(seed)
    matrix = (graph.adjacency().toarray() + np.eye(graph.n)) * numbers.uniform(0.1, 1.0, (graph.n, graph.n))
    return matrix / matrix.sum(axis=1, keepdims=True)
