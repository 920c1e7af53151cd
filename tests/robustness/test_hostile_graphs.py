"""Whatever is given to fw.graphs: a graph, or an error of ours, and quickly."""

import inspect
import time
from fractions import Fraction
from pathlib import Path

import networkx
import numpy as np
import pytest

from freewalk import graphs
from freewalk.errors import FreewalkError


class Stubborn:
    """Has a length and rows, and fails whenever it is asked for anything."""

    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __len__ = __iter__ = __array__ = __index__ = __float__ = __fspath__ = __repr__


HOSTILE = {
    "None": None,
    "a letter": "x",
    "no letter": "",
    "a long text": "x" * 10**5,
    "half a surrogate pair": "\udc80",
    "bytes": b"ab",
    "NUL": "a\0b",
    "a huge number": 10**30,
    "a number of many digits": 10**5000,
    "minus one": -1,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "True": True,
    "a fraction": Fraction(7, 2),
    "a complex number": 1j,
    "uint64": np.uint64(2**63 + 5),
    "an empty list": [],
    "a ragged list": [[0, 1], [2]],
    "a ragged list of texts": [["a", "b"], ["c"]],
    "nested lists": [[[0, 1]]],
    "a list of None": [None, None],
    "pairs with huge numbers": [(0, 10**30), (10**5000, 1)],
    "texts and others": [("a", 1.5), (None, "b")],
    "a dictionary": {"a": 1},
    "an object": object(),
    "a type": int,
    "a function": len,
    "an object that fails": Stubborn(),
    "a generator that fails": lambda: (1 // 0 for _ in range(3)),
    "masked": np.ma.array([[0, 1], [1, 0]], mask=[[0, 1], [0, 0]]),
    "complex": np.array([[0, 1j], [1j, 0]]),
    "uint64 beyond": np.array([[0, 2**63 + 5]], dtype=np.uint64),
    "dates": np.array([["2020-01-01", "2020-01-02"]], dtype="datetime64[D]"),
    "records": np.zeros(3, dtype=[("a", int), ("b", float)]),
    "objects": np.array([[object(), None]], dtype=object),
    "bytes in an array": np.array([[b"a", b"b"]]),
    "no dimension": np.array(5),
    "a networkx graph": networkx.path_graph("abc"),
    "a path": Path("/"),
    "a device": "/dev/null",
}

FINE = {
    "Graph": {"indptr": [0, 1, 2], "indices": [1, 0], "name": "pair", "node_names": ["a", "b"], "positions": np.eye(2)},
    "barabasi_albert": {"n": 10, "m": 2, "seed": 0},
    "complete": {"n": 4},
    "erdos_renyi": {"n": 10, "p": 0.9, "seed": 0},
    "from_edges": {"edges": [(0, 1)], "n": 2, "names": None},
    "from_networkx": {"graph": networkx.path_graph(3)},
    "from_scipy": {"matrix": [[0, 1], [1, 0]]},
    "grid": {"rows": 2, "cols": 3},
    "path": {"n": 4},
    "read": {"path": "/dev/null", "verify": True},
    "ring": {"n": 4},
    "star": {"n": 4},
    "topologies": {"collection": "sndlib"},
    "topology": {"name": "topozoo/Abilene"},
    "watts_strogatz": {"n": 10, "k": 4, "p": 0.1, "seed": 0},
}

METHODS = {"neighbours": "node", "node_name": "node", "node": "name", "distances": "nodes"}

# What is fine all the same; anything else is refused.
ACCEPTED = {
    ("Graph", "name", "a letter"),
    ("Graph", "name", "a long text"),
    ("Graph", "name", "a device"),
    ("Graph", "node_names", "None"),
    ("Graph", "positions", "None"),
    *((name, "seed", "uint64") for name in ("barabasi_albert", "erdos_renyi", "watts_strogatz")),
    ("from_edges", "n", "None"),
    ("from_edges", "names", "None"),
    ("from_edges", "names", "True"),
    ("from_networkx", "graph", "a networkx graph"),
    ("topologies", "collection", "None"),
}


def value_of(name):
    value = HOSTILE[name]
    return value() if name == "a generator that fails" else value


def accepted(owner, parameter, call):
    """The hostile values that a call takes; any error that is not ours ends the test."""
    taken = set()
    for name in HOSTILE:
        begin, message = time.perf_counter(), ""
        try:
            call(value_of(name))
            taken.add((owner, parameter, name))
        except FreewalkError as error:
            message = str(error)
        except Exception as error:
            raise AssertionError(f"{owner}({parameter} = {name}) raised {error!r}") from error
        assert time.perf_counter() - begin < 5, name
        assert len(message) < 700, name
    return taken


def test_every_public_function_is_tried():
    assert sorted(FINE) == graphs.__all__
    for name, arguments in FINE.items():
        assert list(inspect.signature(getattr(graphs, name)).parameters) == list(arguments)


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, parameter) for name in graphs.__all__ for parameter in FINE[name]]
)
def test_only_our_errors(name, parameter):
    taken = accepted(name, parameter, lambda value: getattr(graphs, name)(**{**FINE[name], parameter: value}))
    assert taken == {case for case in ACCEPTED if case[:2] == (name, parameter)}


@pytest.mark.parametrize(
    "graph", [graphs.ring(5), graphs.from_edges([("a", "b"), ("b", "c")])], ids=["numbers", "names"]
)
@pytest.mark.parametrize("method", METHODS)
def test_only_our_errors_from_methods(graph, method):
    assert accepted(method, METHODS[method], getattr(graph, method)) == set()


def broken(text, random):
    """Random bytes, or the text with some letters changed or left out."""
    kind = random.integers(3)
    if kind == 0:
        return random.bytes(100)
    letters = np.frombuffer(text, dtype=np.uint8).copy()
    places = random.integers(len(letters), size=3)
    if kind == 1:
        return np.delete(letters, places).tobytes()
    letters[places] = random.integers(32, 127, size=3)
    return letters.tobytes()


@pytest.mark.parametrize("suffix", ["csv", "gml", "graphml"])
def test_only_our_errors_from_files(tmp_path, suffix):
    """Three hundred broken files."""
    write = {"csv": networkx.write_edgelist, "gml": networkx.write_gml, "graphml": networkx.write_graphml}[suffix]
    file = tmp_path / f"roads.{suffix}"
    write(networkx.path_graph(["Kiel", "Hamburg", "Berlin"]), file)
    text, random = file.read_bytes(), np.random.default_rng(1)
    begin, refused = time.perf_counter(), 0
    for _ in range(300):
        file.write_bytes(broken(text, random))
        try:
            graphs.read(file)
        except FreewalkError:
            refused += 1
    assert refused > 90
    assert time.perf_counter() - begin < 10
