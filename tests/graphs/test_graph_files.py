"""Graphs in files."""

import os
import sys

import networkx
import pytest

from freewalk.errors import GraphError
from freewalk.graphs import Graph, from_networkx, grid, path, read, watts_strogatz


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


# --- names ---

ROADS = {
    "blanks": "Berlin Hamburg\nHamburg   Kiel\n",
    "commas": "Berlin,Hamburg\nHamburg, Kiel\n",
    "semicolons and a decimal comma": "Berlin;Hamburg;28,9\nHamburg;Kiel;9,7\n",
    "tabs": "Berlin\tHamburg\nHamburg\tKiel\n",
    "quotes": '"Berlin","Hamburg"\n"Hamburg","Kiel"\n',
    "a header": "source,target\nBerlin,Hamburg\nHamburg,Kiel\n",
    "another header": "# roads\n\nFrom To\nBerlin Hamburg\nHamburg Kiel\n",
    "a header that says which columns": "id;Target;km;Source\n1;Hamburg;289;Berlin\n2;Kiel;97;Hamburg\n",
    "a table of pandas": ",source,target\n0,Berlin,Hamburg\n1,Hamburg,Kiel\n",
    "a table of pandas, with tabs": "\tu\tv\n0\tBerlin\tHamburg\n1\tHamburg\tKiel\n",
    "attributes of networkx": "Berlin Hamburg {'km': 289, 'lanes': 3}\nHamburg Kiel {}\n",
    "comments": "Berlin,Hamburg# a motorway\nHamburg,Kiel # another\n",
    "Windows lines": "Berlin,Hamburg\r\nHamburg,Kiel\r\n",
}


@pytest.mark.parametrize("text", ROADS.values(), ids=ROADS)
def test_names(tmp_path, text):
    file = tmp_path / "roads.csv"
    file.write_bytes(text.encode())
    graph = read(file)
    assert graph == path(3)
    expected = ("Berlin", "Hamburg", "Kiel")
    assert set(graph.node_names) == set(expected)
    assert graph.node_names == expected or "Target;km;Source" in text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("New York\tSan José\nSan José\tKöln", ("New York", "San José", "Köln")),
        ('"Frankfurt, Main",Köln\nKöln,"C# ""house"""', ("Frankfurt, Main", "Köln", 'C# "house"')),
        ("1 2\n2 3", ("1", "2", "3")),
        ("10 9\n9 100", ("9", "10", "100")),
        ("007 08\n08 9", ("007", "08", "9")),
        ("0 1\n1 3", ("0", "1", "3")),
        ("2 1\n1 0", None),
        ("0 1 0.5\n1 2 0.25", None),
        ("node;next\n0;1\n1;2", None),
        ("a b\n10 20\n20 30", ("10", "20", "30")),
        ("u v\nv w", ("u", "v", "w")),  # its words are nodes: no header
        ("a b\nb 1", ("a", "b", "1")),
        ("-1 0\n0 1.0", ("-1", "0", "1.0")),
        ("0 1\n1 99999999999999999999", ("0", "1", "99999999999999999999")),
        ("0 1\n1 " + "9" * 5000, ("0", "1", "9" * 5000)),
        ("0 1\n1 ²", ("0", "1", "²")),
    ],
)
def test_what_is_a_name(tmp_path, text, names):
    file = tmp_path / "roads"
    file.write_text(text, encoding="utf-8")
    graph = read(file)
    assert graph == path(3) or names == ("9", "10", "100")
    assert graph.node_names == names


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_name_of_a_file_in_no_encoding(tmp_path):
    file = os.fsdecode(bytes(tmp_path) + b"/roads\xff.txt")
    with open(file, "w", encoding="utf-8") as stream:
        stream.write("0 1\n")
    assert read(file).name == "roads?.txt"


# --- what is no list of edges ---


def test_a_header_in_words_of_its_own_is_suspected(tmp_path):
    (tmp_path / "roads.csv").write_text("city1,city2,km\nBerlin,Hamburg,289\nHamburg,Kiel,97\n")
    with pytest.raises(GraphError, match=r"if 'city1' and 'city2' in the first line are a header, call these columns"):
        read(tmp_path / "roads.csv")
    for text in ("Berlin,Hamburg\nHamburg,Kiel\nUlm,Bonn\n", "from,to\nBerlin,Hamburg\nUlm,Bonn\n"):
        (tmp_path / "roads.csv").write_text(text)
        with pytest.raises(GraphError, match=r"disconnected, (?!.*header)"):
            read(tmp_path / "roads.csv")


@pytest.mark.parametrize("line", ["0", "0,1", "Berlin", "\x00\x01", "a\x07 b", "a" * 200_000, '"a b"'])
def test_malformed_line(tmp_path, line):
    file = tmp_path / "roads.txt"
    file.write_text(f"# two lines above\n\n0 1\n{line}\n1 2\n", encoding="utf-8")
    with pytest.raises(
        GraphError, match=r"roads.txt, line 4: got .*, expected (two nodes.* blanks|lines of text)"
    ) as caught:
        read(file)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("line", ["Berlin", "Berlin,", ",Berlin", "New York;Boston"])
def test_malformed_line_of_a_table(tmp_path, line):
    file = tmp_path / "roads.csv"
    file.write_text(f"Berlin,Hamburg\n{line}\n", encoding="utf-8")
    with pytest.raises(GraphError, match=r"roads.csv, line 2: got '.*', expected two nodes, separated by a comma"):
        read(file)


@pytest.mark.parametrize("content", [b"0 1\n\xff\xfe\x00 1\n", b"a b\nK\xf6ln b\n", b"\x89PNG\n\x1a\n", bytes(10**6)])
def test_not_text(tmp_path, content):
    file = tmp_path / "picture"
    file.write_bytes(content)
    with pytest.raises(GraphError, match=r"picture, line [12]: got .*, expected lines of text in UTF-8"):
        read(file)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/zero")
def test_a_stream_without_end():
    with pytest.raises(GraphError, match=r"/dev/zero: cannot be read \(it is a folder, a pipe or a device\)"):
        read("/dev/zero")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "roads.txt: got no nodes, a walk needs at least 2 nodes"),
        ("# nothing\n", "roads.txt: got no nodes, a walk needs at least 2 nodes"),
        ("source,target\n", "roads.txt: got no nodes, a walk needs at least 2 nodes"),
        ("0 1\n2 3\n", r"roads.txt: disconnected, 2 components of 2, 2 nodes \(no path from node 0 to node 2\)"),
        ("Kiel Köln\nBonn Ulm\n", r"roads.txt: .* of 2, 2 nodes \(no path from node 'Kiel' to node 'Bonn'\)"),
        ("Kiel Köln\nBonn Bonn\n", r"roads.txt: .* of 2, 1 nodes \(node 'Bonn' has no edge\)"),
    ],
)
def test_not_a_graph(tmp_path, text, message):
    file = tmp_path / "roads.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(GraphError, match=message):
        read(file)


@pytest.mark.parametrize("name", ["missing.txt", "missing.graphml", "missing.gml"])
def test_missing_file(tmp_path, name):
    with pytest.raises(GraphError, match=rf"read: .*{name}: cannot be read \(No such file or directory\)"):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["folder", "folder.gml", "folder.graphml"])
def test_a_folder_is_not_a_file(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(GraphError, match="cannot be read"):
        read(tmp_path / name)


def test_a_name_that_no_file_can_have(tmp_path):
    with pytest.raises(GraphError, match="expected the path of a file, of up to 4,096 characters") as caught:
        read(tmp_path / ("a" * 5000))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", [None, 5, b"roads.txt", "", "roads\0.txt"])
def test_not_a_path(name):
    with pytest.raises(GraphError, match=r"read: path = .*, expected the path of a file"):
        read(name)


# --- GraphML and GML ---


@pytest.mark.parametrize("suffix", ["graphml", "gml"])
def test_names_and_places_of_other_formats(tmp_path, suffix):
    file = tmp_path / f"roads.{suffix}"
    write = networkx.write_gml if suffix == "gml" else networkx.write_graphml
    roads = networkx.path_graph(["Kiel", "Hamburg", "Berlin"])
    for place, node in enumerate(roads):
        roads.nodes[node].update(x=float(place), y=2.0)
    write(roads, file)
    graph = read(file)
    assert graph == path(3)
    assert graph.node_names == ("Kiel", "Hamburg", "Berlin")
    assert graph.positions.tolist() == [[0, 2], [1, 2], [2, 2]]
    write(grid(2, 3).to_networkx(), file)
    assert read(file) == grid(2, 3)
    assert read(file).node_names is None
    assert read(file).positions is None


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["Kiel", "Hamburg", "Berlin"], ("Kiel", "Hamburg", "Berlin")),
        (["Kiel", "Hamburg", "Kiel"], ("n0", "n1", "n2")),
        (["Kiel", "Hamburg"], ("n0", "n1", "n2")),
        (["Kiel", "Hamburg", " "], ("n0", "n1", "n2")),
    ],
)
def test_labels_of_graphml(tmp_path, labels, names):
    other = networkx.path_graph(["n0", "n1", "n2"])
    networkx.set_node_attributes(other, dict(zip(["n0", "n1", "n2"], labels, strict=False)), "label")
    file = tmp_path / "saved.graphml"
    networkx.write_graphml(other, file)
    assert read(file).node_names == names


def test_gml_by_others(tmp_path):
    file = tmp_path / "karate.gml"
    node = 'node [ id {} label "{}" graphics [ x {} y 1.5 ] ]'
    nodes = " ".join(node.format(*values) for values in [(7, "x", 1), (9, "y", 2), (8, "x", 3)])
    file.write_text(f"graph [ directed 1 {nodes} edge [ source 7 target 9 ] edge [ source 8 target 9 ] ]")
    graph = read(file)
    assert graph == path(3)
    assert graph.node_names == ("7", "9", "8")  # two have the same label
    assert graph.positions.tolist() == [[1, 1.5], [2, 1.5], [3, 1.5]]


def test_places_survive_gml(tmp_path):
    file = tmp_path / "roads.gml"
    graph = Graph([0, 1, 2], [1, 0], "roads", ("a", "b"), [[0.5, 1.0], [2.0, 3.0]])
    networkx.write_gml(graph.to_networkx(), file)
    assert read(file).node_names == ("a", "b")
    assert read(file).positions.tolist() == graph.positions.tolist()


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


@pytest.mark.parametrize(
    "content", [b"", b"graph [", b"graph [ node [ ] ]", b"\x00\xff", b"graph [ edge [ source 1 target 2 ] ]"]
)
def test_bad_gml(tmp_path, content):
    file = tmp_path / "saved.gml"
    file.write_bytes(content)
    with pytest.raises(GraphError, match=r"saved.gml: (not GML that networkx can read|got no nodes)"):
        read(file)
