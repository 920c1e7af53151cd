"""What does not fit into memory is refused before memory is asked for."""

import time
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from freewalk import checks, graphs
from freewalk.errors import GraphError

MOST = 2**31 - 1

TOO_LARGE = {
    "complete": lambda: graphs.complete(10**5),
    "complete, all": lambda: graphs.complete(MOST),
    "erdos_renyi": lambda: graphs.erdos_renyi(10**6, 0.5),
    "erdos_renyi, sparse": lambda: graphs.erdos_renyi(MOST, 1e-9),
    "watts_strogatz": lambda: graphs.watts_strogatz(10**6, 10**5, 0.1),
    "barabasi_albert": lambda: graphs.barabasi_albert(10**6, 1000),
    "grid": lambda: graphs.grid(10**4, 10**5),
    "ring": lambda: graphs.ring(MOST),
    "path": lambda: graphs.path(MOST),
    "star": lambda: graphs.star(MOST),
    "from_edges, nodes": lambda: graphs.from_edges([(0, 1)], n=MOST),
    "from_edges, a view": lambda: graphs.from_edges(np.broadcast_to(np.int64(0), (10**12, 2))),
    "from_edges, a range": lambda: graphs.from_edges(range(10**12)),
    "from_edges, names": lambda: graphs.from_edges([(0, 1)], names=range(10**12)),
    "from_scipy, a view": lambda: graphs.from_scipy(np.broadcast_to(1.0, (10**6, 10**6))),
    "from_scipy, sparse": lambda: graphs.from_scipy(scipy.sparse.coo_array((MOST, MOST))),
    "Graph, a view": lambda: graphs.Graph(np.broadcast_to(np.int64(0), 10**12), []),
}

BEYOND_NODES = {
    "grid": lambda: graphs.grid(10**5, 10**5),
    "ring": lambda: graphs.ring(10**12),
    "erdos_renyi": lambda: graphs.erdos_renyi(10**30, 0.5),
    "barabasi_albert": lambda: graphs.barabasi_albert(10**6, 10**5),
    "from_edges": lambda: graphs.from_edges([(0, 1)], n=10**12),
}


@pytest.fixture
def sixteen_gigabytes(monkeypatch):
    monkeypatch.setattr(checks, "memory", lambda: 16e9)


@pytest.mark.usefixtures("sixteen_gigabytes")
@pytest.mark.parametrize("make", TOO_LARGE.values(), ids=TOO_LARGE)
def test_too_large_for_memory(make):
    begin = time.perf_counter()
    with pytest.raises(GraphError, match=r"would take [\d.,]+ .B, expected less than the 16\.0 GB of memory here"):
        make()
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize("make", BEYOND_NODES.values(), ids=BEYOND_NODES)
def test_too_large_for_the_numbers_of_nodes(make):
    with pytest.raises(GraphError, match=r"expected a whole number from \d to 2\^31 - 1"):
        make()


def test_rewiring_that_would_hardly_end():
    with pytest.raises(GraphError, match="watts_strogatz: k = 4990, expected a number well below n = 5000"):
        graphs.watts_strogatz(5000, 4990, 1.0)
    assert graphs.watts_strogatz(301, 300, 1.0) == graphs.complete(301)  # nowhere to go: nothing to draw


LINE = np.column_stack([np.arange(50_000), np.arange(1, 50_001)])

MADE = {
    "ring": lambda: graphs.ring(50_000),
    "grid": lambda: graphs.grid(200, 200),
    "complete": lambda: graphs.complete(400),
    "star": lambda: graphs.star(50_000),
    "erdos_renyi": lambda: graphs.erdos_renyi(500, 0.8),
    "watts_strogatz": lambda: graphs.watts_strogatz(20_000, 10, 1.0),
    "barabasi_albert": lambda: graphs.barabasi_albert(20_000, 5),
    "from_edges": lambda: graphs.from_edges(LINE),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_the_estimate_is_honest(make, monkeypatch):
    """At least 0.8 and at most 2 times what making the graph takes at its peak."""
    make()  # what is imported on the way is not counted
    tracemalloc.start()
    make()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    monkeypatch.setattr(checks, "memory", lambda: 2 * peak)
    make()
    monkeypatch.setattr(checks, "memory", lambda: 0.8 * peak)
    with pytest.raises(GraphError, match="of memory here"):
        make()
