"""Graphs in files."""

import networkx
import pytest

from freewalk.errors import GraphError
from freewalk.graphs import from_networkx, grid, path, read, watts_strogatz


def test_list_of_edges(tmp_path):
    file = tmp_path / "roads.txt"
    file.write_text("# a comment\n\n0 1\n 1\t2  # the bridge\n2 1\n2 2\n   \n", encoding="utf-8")
    graph = read(file)
    assert graph == path(3)
    assert graph.name == "roads.txt"
    assert read(str(file)) == graph


def test_windows_lines_and_byte_order_mark(tmp_path):
    file = tmp_path / "roads.csv"
    file.write_bytes(b"\xef\xbb\xbf0 1\r\n1 2\r\n")
    assert read(file) == path(3)


@pytest.mark.parametrize("suffix", ["graphml", "GraphML"])
@pytest.mark.parametrize("graph", [grid(3, 4), watts_strogatz(50, 4, 0.2)], ids=repr)
def test_graphml(tmp_path, graph, suffix):
    file = tmp_path / f"saved.{suffix}"
    networkx.write_graphml(graph.to_networkx(), file)
    assert read(file) == graph
    assert read(file).name == f"saved.{suffix}"


def test_directed_graphml_with_parallel_edges(tmp_path):
    file = tmp_path / "directed.graphml"
    other = networkx.MultiDiGraph([("x", "y"), ("x", "y"), ("z", "y")])
    networkx.write_graphml(other, file)
    assert read(file) == from_networkx(other) == path(3)


def test_large_lists_of_edges(tmp_path):
    graph = watts_strogatz(5000, 6, 0.2)
    file = tmp_path / "edges"
    networkx.write_edgelist(graph.to_networkx(), file, data=False)
    assert read(file) == graph


@pytest.mark.parametrize(
    "line",
    [
        *["0", "0 1 2", "0 1 0.5", "a b", "0,1", "-1 0", "0 1.0", "1_0 2", "0 99999999999999999999"],
        *["0 ²", "٣ 1", "\x00\x01", "0 " + "9" * 5000],
    ],
)
def test_malformed_line(tmp_path, line):
    file = tmp_path / "roads.txt"
    file.write_text(f"# two lines above\n\n0 1\n{line}\n1 2\n", encoding="utf-8")
    with pytest.raises(GraphError, match=r"roads.txt, line 4: got '.*', expected two whole numbers from 0") as caught:
        read(file)
    assert len(str(caught.value)) < 600


def test_not_text(tmp_path):
    file = tmp_path / "picture"
    file.write_bytes(b"0 1\n\xff\xfe\x00 1\n")
    with pytest.raises(GraphError, match="picture, line 2: got"):
        read(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "roads.txt: got no nodes, a walk needs at least 2 nodes"),
        ("# nothing\n", "roads.txt: got no nodes, a walk needs at least 2 nodes"),
        ("0 1\n2 3\n", "roads.txt: disconnected, 2 components of 2, 2 nodes"),
        ("1000 2000\n2000 3000\n", "roads.txt: the largest node is 3000 but 2 edges join at most 4 nodes"),
    ],
)
def test_not_a_graph(tmp_path, text, message):
    file = tmp_path / "roads.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(GraphError, match=message):
        read(file)


@pytest.mark.parametrize("name", ["missing.txt", "missing.graphml"])
def test_missing_file(tmp_path, name):
    with pytest.raises(GraphError, match=rf"read: .*{name}: cannot be read \(No such file or directory\)"):
        read(tmp_path / name)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(GraphError, match="cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize("name", [None, 5, b"roads.txt"])
def test_not_a_path(name):
    with pytest.raises(GraphError, match=r"read: got .*, expected the path of a file"):
        read(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<graphml>\n<graph>\n</oops>\n</graphml>", "saved.graphml, line 3: not well-formed XML"),
        ("", "saved.graphml, line 1: not well-formed XML"),
        ("<graphml/>", "saved.graphml: not GraphML that networkx can read"),
    ],
)
def test_bad_graphml(tmp_path, text, message):
    file = tmp_path / "saved.graphml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(GraphError, match=message):
        read(file)
