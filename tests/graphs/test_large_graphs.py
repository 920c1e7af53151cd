"""A million nodes of each kind: built, and of the right structure. Not timed."""

import re

import numpy as np
import pytest

from freewalk import graphs

MILLION = 10**6


@pytest.mark.parametrize(
    ("graph", "edges", "degrees"),
    [
        (lambda: graphs.ring(MILLION), MILLION, {2}),
        (lambda: graphs.path(MILLION), MILLION - 1, {1, 2}),
        (lambda: graphs.grid(1000, 1000), 2 * 1000 * 999, {2, 3, 4}),
        (lambda: graphs.star(MILLION), MILLION - 1, {1, MILLION - 1}),
    ],
    ids=["ring", "path", "grid", "star"],
)
def test_lattices(graph, edges, degrees):
    made = graph()
    assert made.n == MILLION
    assert made.edges == edges
    assert set(np.unique(made.degrees).tolist()) == degrees


def test_watts_strogatz():
    graph = graphs.watts_strogatz(MILLION, 4, 0.1)
    assert (graph.n, graph.edges) == (MILLION, 2 * MILLION)
    assert graph.degrees.min() >= 2


def test_barabasi_albert():
    graph = graphs.barabasi_albert(MILLION, 2)
    assert (graph.n, graph.edges) == (MILLION, 2 * (MILLION - 2))
    assert graph.degrees.min() == 2


def test_erdos_renyi():
    """45 strays on average; fewer than 12 or more than 90 with a chance under 1e-6."""
    graph = graphs.erdos_renyi(MILLION, 1e-5)
    found = re.fullmatch(r"erdos_renyi\(1000000, 1e-05, seed=0\), (\d+) strays joined", graph.name)
    assert found is not None
    assert 12 <= int(found[1]) <= 90
    assert graph.n == MILLION
    assert abs(graph.edges - 5 * MILLION) < 5 * np.sqrt(5 * MILLION) + 100
    assert graph.degrees.min() == 1
