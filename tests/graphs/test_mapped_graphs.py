"""Graphs in binary files: the same graph, shared and not copied, or an error that says what is wrong with the file."""

import json
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freewalk import graphs
from freewalk.errors import GraphError, RecordError
from freewalk.graphs import structure
from freewalk.storage.mapped import _PRELUDE, SIGNATURE, is_mapped

NAMED = graphs.from_edges([("Åre", "Kiel"), ("Kiel", "Ulm")])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return graphs.watts_strogatz(200, 4, 0.3, seed=2).save(tmp_path / "small-world.graph")


@pytest.mark.parametrize(
    "graph",
    [
        graphs.ring(3),
        graphs.star(50),
        graphs.erdos_renyi(300, 0.05, seed=1),
        NAMED,
        graphs.Graph([0, 1, 2], [1, 0], "pair", positions=[[0.0, 1.0], [2.0, 3.0]]),
    ],
    ids=lambda graph: graph.name,
)
@pytest.mark.parametrize("verify", [True, False])
def test_a_graph_comes_back_as_it_was(graph, verify, tmp_path):
    found = graphs.read(graph.save(tmp_path / "new" / "a.graph"), verify=verify)
    assert found == graph
    assert hash(found) == hash(graph)
    assert (found.name, found.node_names, found.n, found.edges) == (graph.name, graph.node_names, graph.n, graph.edges)
    assert found.is_mapped
    assert not graph.is_mapped
    assert not found.indices.flags.writeable
    np.testing.assert_array_equal(found.degrees, graph.degrees)
    np.testing.assert_array_equal(found.neighbours(1), graph.neighbours(1))
    np.testing.assert_array_equal(found.distances(0), graph.distances(0))
    np.testing.assert_array_equal(found.adjacency().toarray(), graph.adjacency().toarray())
    if graph.positions is not None:
        np.testing.assert_array_equal(found.positions, graph.positions)
    assert graphs.read(found.save(tmp_path / "copy")) == graph


def test_a_file_may_be_replaced_by_the_graph_that_lies_in_it(file):
    graph = graphs.read(file)
    assert graphs.read(graph.save(file)) == graph


def test_another_process_maps_the_same_file(file, tmp_path):
    graph = graphs.read(file)
    data = pickle.dumps(graph)
    assert len(data) < 1000
    assert pickle.loads(data).is_mapped
    (tmp_path / "sent").write_bytes(data)
    program = "import pickle, sys; g = pickle.load(open(sys.argv[1], 'rb')); print(g.is_mapped, hash(g))"
    command = [sys.executable, "-c", program, str(tmp_path / "sent")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", str(hash(graph))]


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_refused(share, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    whole = graphs.ring(2000).save(folder / "ring.graph").read_bytes()
    size = int(share * len(whole))
    (folder / "cut.graph").write_bytes(whole[:size])
    for verify in (True, False):
        with pytest.raises(GraphError, match=r"truncated|no nodes"):
            graphs.read(folder / "cut.graph", verify=verify)


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, 10**9), bit=st.integers(0, 7))
def test_a_changed_byte_is_seen(place, bit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("changed")
    graph = graphs.ring(500)
    data = bytearray(graph.save(folder / "ring.graph").read_bytes())
    place %= len(data)
    data[place] ^= 1 << bit
    (folder / "ring.graph").write_bytes(data)
    means_something = place < 20 or any(place in span for span in _spans(graph.save(folder / "whole.graph")))
    if means_something:
        with pytest.raises(GraphError, match=r"ring\.graph"):
            graphs.read(folder / "ring.graph")
    else:
        assert graphs.read(folder / "ring.graph") == graph


def _spans(file: Path) -> list[range]:
    """The bytes of a file that count: those of the header and of the arrays."""
    length = _PRELUDE.unpack(file.read_bytes()[: _PRELUDE.size])[2]
    found = graphs.read(file)
    sources = [found.indptr.source, found.indices.source]
    ends = [(source.offset, source.offset + source.size) for source in sources]
    return [range(_PRELUDE.size, _PRELUDE.size + length), *(range(*pair) for pair in ends)]


def _rewritten(file: Path, change) -> None:
    """Change the arrays of a file and make its checksums right again: what a damaged writer might do."""
    data = bytearray(file.read_bytes())
    length = _PRELUDE.unpack(data[: _PRELUDE.size])[2]
    header = json.loads(data[_PRELUDE.size : _PRELUDE.size + length])
    for name, entry in header["arrays"].items():
        size = int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize
        array = np.frombuffer(data, dtype=entry["dtype"], offset=entry["offset"], count=int(np.prod(entry["shape"])))
        change(name, array)
        entry["crc32"] = f"{zlib.crc32(data[entry['offset'] :][:size]):08x}"
        del array
    text = json.dumps(header).encode()
    data[: _PRELUDE.size + length] = _PRELUDE.pack(SIGNATURE, 1, len(text), zlib.crc32(text), 0) + text
    file.write_bytes(data)


@pytest.mark.parametrize(("name", "place", "value"), [("indices", 7, 200), ("indices", 3, -1), ("indptr", 5, 10**6)])
def test_an_edge_that_leads_out_of_the_graph_is_refused(file, name, place, value):
    def change(found, array):
        if found == name:
            array[place] = value

    _rewritten(file, change)
    with pytest.raises(GraphError, match=r"leads out of the nodes 0 to 199|does not ascend"):
        graphs.read(file)


def test_a_file_of_something_else_is_refused(tmp_path):
    from freewalk.objectives import LeastSquares

    LeastSquares([[1.0]], [2.0]).save(tmp_path / "a.data")
    with pytest.raises(GraphError, match="holds 'objective', expected 'graph'"):
        graphs.read(tmp_path / "a.data")


def test_a_folder_that_cannot_be_written_to(file):
    with pytest.raises(RecordError, match="cannot be written"):
        graphs.ring(5).save(file / "below")
    with pytest.raises(GraphError, match="expected the path of a file"):
        graphs.ring(5).save(3)


def test_arrays_that_numpy_has_mapped_are_checked_and_not_copied(tmp_path):
    graph = graphs.ring(100)
    np.save(tmp_path / "indptr.npy", graph.indptr)
    np.save(tmp_path / "indices.npy", graph.indices)
    parts = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")]
    found = graphs.Graph(*parts)
    assert found == graph
    assert np.shares_memory(found.indices, parts[1])
    assert is_mapped(found.indptr)
    wrong = graph.indices.copy()
    wrong[0] = 50
    np.save(tmp_path / "wrong.npy", wrong)
    with pytest.raises(GraphError, match="has no reverse"):
        graphs.Graph(parts[0], np.load(tmp_path / "wrong.npy", mmap_mode="r"))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_checks_in_blocks_find_what_checks_of_the_whole_find(data):
    """Small blocks, against the definition: sorted rows, no loops, a reverse for every edge, one component."""
    n = data.draw(st.integers(2, 6))
    matrix = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)))
    if data.draw(st.booleans()):
        matrix = matrix | matrix.T
    np.fill_diagonal(matrix, data.draw(st.sampled_from([False, False, False, True])))
    rows, columns = np.nonzero(matrix)
    indptr = np.concatenate([[0], np.cumsum(matrix.sum(axis=1))])
    reached = np.linalg.matrix_power(np.eye(n) + matrix, n) > 0
    fine = not matrix.diagonal().any() and (matrix == matrix.T).all() and reached.all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "_EDGE_NUMBERS", 2**19)  # two edges at a time
        if fine:
            assert graphs.Graph(indptr, columns).edges * 2 == len(rows)
        else:
            with pytest.raises(GraphError):
                graphs.Graph(indptr, columns)
        alone = [(int(v), int(u)) for v, u in zip(rows, columns, strict=True) if not matrix[u, v]]
        assert structure.one_way(indptr, columns) == (alone[0] if alone else None)


def test_rows_that_do_not_ascend_across_a_block(monkeypatch):
    monkeypatch.setattr(structure, "_EDGE_NUMBERS", 2**19)
    with pytest.raises(GraphError, match="neighbours of node 0 are not strictly ascending"):
        graphs.Graph([0, 3, 4, 5, 6], [1, 3, 2, 0, 0, 0])
