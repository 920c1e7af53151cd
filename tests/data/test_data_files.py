"""Samples from files: what is read, and how a mistake is named."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import freewalk as fw
from freewalk.errors import SpecError
from freewalk.specs import load, read_samples

CITIES = ("Oslo", "Rome", "Bonn")
FLATS = """city,area,age,note,price
Oslo,1.5,10,nice,3
Rome,2,20,,4.5

Bonn,-1e-2,30,"old, but fine",0.5
Oslo,4,40,,6
"""
SPEC = """
[graph]
kind = "read"
path = "roads.csv"
[problem]
kind = "LeastSquares"
data = "flats.csv"
target = "price"
node = "city"
features = ["area"]
ridge = 0.5
[run]
steps = 100
walks = 2
every = 50
start = "Rome"
[[walk]]
label = "uniform"
design = { kind = "Metropolis" }
rule = { kind = "SGD", step = 1e-2 }
"""


@pytest.fixture
def here(here: Path) -> Path:
    (here / "flats.csv").write_text(FLATS)
    (here / "roads.csv").write_text("from,to\nOslo,Rome\nRome,Bonn\nBonn,Oslo\n")
    (here / "my.toml").write_text(SPEC)
    return here


def test_a_csv_gives_features_targets_and_nodes(here: Path) -> None:
    features, targets, nodes = read_samples("flats.csv", target="price", node="city")
    np.testing.assert_array_equal(features, [[1.5, 10], [2, 20], [-0.01, 30], [4, 40]])
    np.testing.assert_array_equal(targets, [3, 4.5, 0.5, 6])
    assert nodes.tolist() == ["Oslo", "Rome", "Bonn", "Oslo"]
    one = read_samples("flats.csv", target="price", node="city", features=["age"])
    np.testing.assert_array_equal(one.features[:, 0], [10, 20, 30, 40])
    problem = fw.objectives.LeastSquares(features, targets, nodes, graph=CITIES)
    assert [problem.samples(node) for node in range(3)] == [2, 1, 1]


@pytest.mark.parametrize(("separator", "start"), [(";", ""), ("\t", "\ufeff")], ids=["semicolon", "tab and BOM"])
def test_other_separators_and_numbers_as_nodes(here: Path, separator: str, start: str) -> None:
    rows = ["node,x,target", "2,1,5", "0,2,6", "1.0,3,7"]
    (here / "a.csv").write_text(start + "\n".join(rows).replace(",", separator), encoding="utf-8")
    samples = read_samples("a.csv", graph=fw.graphs.ring(3))
    assert samples.nodes.tolist() == [2, 0, 1]
    assert samples.nodes.dtype == np.int64


def test_arrays_of_a_npz_file(here: Path) -> None:
    np.savez("a.npz", features=np.eye(3), targets=np.arange(3), nodes=np.array([2.0, 1.0, 0.0]), other=np.ones(9))
    samples = read_samples("a.npz")
    np.testing.assert_array_equal(samples.features, np.eye(3))
    assert samples.nodes.tolist() == [2, 1, 0]
    np.savez("b.npz", X=np.eye(3), z=np.arange(3), y=np.arange(3), where=np.array(CITIES))
    samples = read_samples("b.npz", target="y", node="where", features=["X", "z"])
    assert samples.features.shape == (3, 4)
    assert samples.nodes.tolist() == list(CITIES)


def test_parquet(here: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"node": ["Oslo", "Rome"], "x": [1.5, 2.0], "note": ["a", "b"], "target": [1, 2]}
    parquet.write_table(pyarrow.table(columns), "a.parquet")
    samples = read_samples("a.parquet")
    np.testing.assert_array_equal(samples.features, [[1.5], [2.0]])
    assert samples.nodes.tolist() == ["Oslo", "Rome"]
    parquet.write_table(pyarrow.table({**columns, "x": [1.5, None]}), "a.parquet")
    with pytest.raises(SpecError, match=r"a\.parquet, row 2: x is empty, expected a finite number"):
        read_samples("a.parquet")
    (here / "b.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(SpecError, match=r"b\.parquet: is not a \.parquet file that can be read"):
        read_samples("b.parquet")


def test_parquet_without_pyarrow_says_what_to_install(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (here / "a.parquet").touch()
    with pytest.raises(fw.FreewalkError, match=r'pip install "\.\[parquet\]"'):
        read_samples("a.parquet")


BAD = [
    (FLATS.replace("price", "prise", 1), r"flats\.csv: has no column 'price'; did you mean 'prise'\?"),
    (FLATS.replace("city", "place", 1), r"has no column 'city'; its columns are place, area, age, note, price"),
    (FLATS.replace("20", "n/a"), r"flats\.csv, line 3: age is 'n/a', expected a finite number"),
    (FLATS.replace("20", ""), r"flats\.csv, line 3: age is empty, expected a finite number"),
    (FLATS.replace("30", "nan"), r"flats\.csv, line 5: age is 'nan', expected a finite number"),
    (FLATS.replace("4.5", "inf"), r"flats\.csv, line 3: price is 'inf', expected a finite number"),
    (FLATS.replace("Bonn", ""), r"flats\.csv, line 5: city is empty, expected the name or the number of a node"),
    (FLATS.replace("Bonn", "Bon"), r"flats\.csv, line 5: .*there is no node 'Bon'.*did you mean 'Bonn'\?"),
    (FLATS.replace("2,20", "2"), r"flats\.csv, line 3: has 4 cells, expected 5 as in the first line"),
    (FLATS.replace("age", "area", 1), r"the first line names 'area' twice"),
    (FLATS.replace("area", "", 1), r"column 2 has no name.*index=False.*features ="),
    ("", r"the first line is empty, expected the names of the columns"),
    ("city,price\nOslo,1\n", r"has no column of features; expected one or more besides 'price' and 'city'"),
    ("city,area,price\n", r"flats\.csv: has no rows"),
    ('city,area,price\n"Oslo,1,2\n', r"is not a \.csv file that can be read"),
    (
        "city,area,price\nOslo,1,2\0\n",
        r"flats\.csv, line 2: price is '2\\x00', expected a finite number|cannot be read|can be read",
    ),
    (b"city,area\xff,price\n", r"is not UTF-8 text"),
    ("city,area,price\n" + "x" * 200_000 + ",1,2\n", r"is not a \.csv file that can be read"),
    ("city;area;price\nAachen;1,5;2\n", "line 2: area is '1,5', expected a number with a point"),
    ("city,area,price\nK\xf6ln,1,2\n".encode("latin-1"), "flats.csv: is not UTF-8 text"),
]


@pytest.mark.parametrize(("content", "message"), BAD, ids=range(len(BAD)))
def test_a_mistake_is_named_by_line_and_column(here: Path, content: str | bytes, message: str) -> None:
    (here / "flats.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    graph = fw.graphs.read("roads.csv")
    with pytest.raises(SpecError, match=message) as caught:
        read_samples("flats.csv", target="price", node="city", graph=graph)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": np.eye(2), "targets": [1.0, 2.0]}, "has no array 'nodes'; its arrays are features, targets"),
        ({"features": np.eye(2), "targets": [1.0], "nodes": [0, 1]}, "features has 2 rows and targets 1"),
        ({"features": [[1.0], [np.nan]], "targets": [1, 2], "nodes": [0, 1]}, "row 2: features is .*nan"),
        ({"features": ["a", "b"], "targets": [1, 2], "nodes": [0, 1]}, "features is .*expected one finite number"),
        ({"features": np.eye(2), "targets": [1, 2], "nodes": [0, 2]}, "row 2: .*2.*from 0 to 1"),
        ({"features": np.eye(2), "targets": [1, 2], "nodes": [0.0, 0.5]}, "row 2: .*'0.5'"),
        ({"features": np.eye(2), "targets": [1, 2], "nodes": [[0], [1]]}, "nodes is .*expected the name of a node"),
        ({"features": 1.0, "targets": 2.0, "nodes": -1}, "row 1: .*-1.*from 0 to 1"),
        ({"features": np.eye(1), "targets": [1], "nodes": np.array([{}])}, r"nodes holds Python objects.*\.astype"),
    ],
    ids=range(9),
)
def test_mistakes_in_a_npz_file(here: Path, arrays: dict[str, object], message: str) -> None:
    np.savez("a.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=message):
        read_samples("a.npz", graph=fw.graphs.path(2))


@pytest.mark.parametrize("path", ["none.csv", ".", "a\0b", "", 5, None, "/dev/zero", "flats.npz", "x" * 500])
def test_what_is_no_file(here: Path, path: object) -> None:
    (here / "flats.npz").write_text("not a zip")
    with pytest.raises(SpecError):
        read_samples(path)  # type: ignore[arg-type]


def test_a_spec_learns_from_a_file_in_its_folder(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with pytest.MonkeyPatch.context() as context:
        context.chdir(elsewhere)
        plan = load(here / "my.toml").plan()
        record = load(here / "my.toml").replaced(runtime="reference").run()
    graph = fw.graphs.read("roads.csv")
    samples = read_samples("flats.csv", target="price", node="city", features=["area"])
    problem = fw.objectives.LeastSquares(*samples, ridge=0.5, graph=graph)
    np.testing.assert_array_equal(plan.problem.smoothness, problem.smoothness)
    assert plan.problem.ridge == 0.5
    kernel = fw.designs.Metropolis().kernel(graph)
    alone = fw.learn(
        problem, kernel, fw.SGD(step=1e-2), steps=100, walks=2, every=50, start="Rome", runtime="reference"
    )
    np.testing.assert_array_equal(record.data.loss.sel(design="uniform"), alone.data.loss)
    assert set(record.provenance["files"]) == {"roads.csv", "flats.csv"}
    assert record.provenance["files"]["flats.csv"]["path"] == str(here / "flats.csv")
    sha = subprocess.run(["sha256sum", here / "flats.csv"], capture_output=True, text=True, check=True).stdout.split()[
        0
    ]
    assert record.provenance["files"]["flats.csv"]["sha256"] == sha


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("flats.csv", "flat.csv"), r"\[problem\]: flat\.csv: cannot be read \(No such file or directory\)"),
        (("roads.csv", "road.csv"), r"\[graph\]: .*road\.csv"),
        (('"price"', '"prise"'), r"\[problem\]: flats\.csv: has no column 'prise'; did you mean 'price'\?"),
        (('"price"', "5"), r"\[problem\]: LeastSquares: target = 5, expected a text"),
        (('["area"]', "[1]"), r"features = \[1\], expected a text or a list of texts"),
        (('["area"]', '["area", "price"]'), r"'price' is among the features and is the target"),
        (("ridge", "rigde"), r"LeastSquares has no parameter 'rigde'; did you mean 'ridge'\?"),
        (("ridge = 0.5", "dim = 5"), r"LeastSquares has no parameter 'dim'; it takes data, target, node, features"),
        (("ridge = 0.5", 'weight_by = "samples"'), r"weight_by = 'samples', .*did you mean 'sample'\?"),
        (("flats.csv", "flats\\u0000.csv"), r"\[problem\]: .*flats.*expected the path of a file"),
        (('data = "flats.csv"', "data = 3"), r"data = 3, expected a text"),
        (('"flats.csv"', '"."'), r"\[problem\]: \.: cannot be read \(it is a folder"),
        (('"Rome"', '"Paris"'), r"\[run\]: .*there is no node 'Paris'"),
    ],
    ids=range(13),
)
def test_errors_of_data_in_a_spec_name_its_table(here: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in SPEC
    (here / "my.toml").write_text(SPEC.replace(*change))
    with pytest.raises(SpecError, match=message) as caught:
        load("my.toml").plan()
    assert str(caught.value).startswith("my.toml: ")
    assert "\n" not in str(caught.value)


def test_nodes_without_data_are_relays_if_the_spec_says_so(here: Path) -> None:
    (here / "flats.csv").write_text(FLATS.replace("Bonn", "Rome"))
    with pytest.raises(SpecError, match=r"no data at 1 of 3 nodes \(Bonn\)"):
        load("my.toml").plan()
    (here / "my.toml").write_text(SPEC.replace("ridge = 0.5", "relays = true\nheavy = ['Oslo']"))
    problem = load("my.toml").plan().problem
    assert (problem.relays, problem.heavy) == ((2,), (0,))
