"""Exact quantities of small chains in plain numpy, and random graphs for property tests."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from freewalk.graphs import from_edges

FIXED = settings(derandomize=True, deadline=None, database=None, max_examples=30)


def stationary(matrix):
    n = len(matrix)
    equations = np.vstack([matrix.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(equations, np.append(np.zeros(n), 1.0), rcond=None)[0]


def eigenvalues(matrix):
    """All of them, by falling real part."""
    values = np.linalg.eigvals(matrix)
    return values[np.argsort(-values.real)]


def fundamental(matrix):
    law = stationary(matrix)
    return np.linalg.inv(np.eye(len(matrix)) - matrix + np.outer(np.ones(len(matrix)), law))


def hitting_times(matrix):
    """H[i, j] = (Z[j, j] − Z[i, j]) / ν[j]."""
    z = fundamental(matrix)
    return (np.diag(z)[None, :] - z) / stationary(matrix)[None, :]


def mixing_time(matrix, distance=0.25):
    law, power, steps = stationary(matrix), np.eye(len(matrix)), 0
    while np.abs(power - law).sum(axis=1).max() / 2 > distance:
        power, steps = power @ matrix, steps + 1
    return steps


@st.composite
def connected_graphs(draw, most=9):
    """A random tree and some further edges."""
    n = draw(st.integers(2, most))
    parents = [draw(st.integers(0, v - 1)) for v in range(1, n)]
    edges = {(parent, v) for v, parent in enumerate(parents, 1)}
    further = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=2 * n))
    edges |= {(min(pair), max(pair)) for pair in further if pair[0] != pair[1]}
    return from_edges(sorted(edges))


@st.composite
def weighted_graphs(draw, span=6.0):
    """A graph and the importance of its nodes, over `span` orders of magnitude."""
    graph = draw(connected_graphs())
    exponents = draw(st.lists(st.floats(0.0, span), min_size=graph.n, max_size=graph.n))
    return graph, 10.0 ** np.array(exponents)


def random_rows(graph, seed, lazy=True):
    """A random row-stochastic matrix that is positive on every edge (and on the diagonal)."""
    numbers = np.random.default_rng(seed)
    matrix = graph.adjacency().toarray() + (np.eye(graph.n) if lazy else 0)
    matrix *= numbers.uniform(0.1, 1.0, matrix.shape)
    return matrix / matrix.sum(axis=1, keepdims=True)
