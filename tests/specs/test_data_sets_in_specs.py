"""Linear models on a data set: what is held out, scaled and distributed, and what a record says about it."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import freewalk as fw
from freewalk import cli
from freewalk.errors import MissingExtra, SpecError
from freewalk.specs import RunFolder, parse
from freewalk.specs.catalogue import families

SPEC = """
name = "small"
[graph]
kind = "ring"
n = 10
[problem]
kind = "KIND"
data = { kind = "DATA" }
partition = { kind = "IID" }
test = 0.2
seed = 3
MORE
[run]
steps = 300
walks = 2
every = 100
[[walk]]
label = "uniform"
design = { kind = "Metropolis", power = 0 }
rule = { kind = "SGD", step = 0.1 }
"""


def text(kind="Logistic", data="breast_cancer", more="ridge = 0.1") -> str:
    return SPEC.replace("KIND", kind).replace("DATA", data).replace("MORE", more)


def plan(**parts):
    return parse(text(**parts), "spec.toml").plan()


def test_logistic_regression_on_two_classes():
    found = plan()
    problem, test = found.problem, found.origin.test
    assert isinstance(problem, fw.objectives.Logistic)
    assert (problem.n, problem.dim, len(problem.targets), len(test)) == (10, 31, 455, 114)
    np.testing.assert_allclose(problem.features[:, :-1].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(problem.features[:, :-1].std(axis=0), 1)
    assert (problem.features[:, -1] == 1).all()
    train, held = fw.data.breast_cancer().split(0.2, seed=3)
    np.testing.assert_allclose(test.features[:, :-1], held.standardized(by=train).features)
    partition = fw.data.IID().partition(train, 10, seed=3)
    assert found.origin.story["partition_digest"] == partition.digest
    assert found.origin.story["dataset"] == "breast_cancer"


def test_least_squares_standardizes_targets_too():
    found = plan(kind="LeastSquares", data="diabetes", more="intercept = false")
    assert (found.problem.dim, found.problem.ridge) == (10, 0.0)
    assert abs(found.problem.targets.mean()) < 1e-12
    plain = plan(kind="LeastSquares", data="diabetes", more="standardize = false")
    assert plain.problem.targets.mean() > 100
    assert plain.problem.dim == 11


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"data": "wine"}, r"Logistic: wine has 3 classes, expected two classes; .*softmax"),
        ({"data": "diabetes"}, r"Logistic: diabetes has real targets, expected two classes; use LeastSquares"),
        ({"kind": "LeastSquares"}, r"LeastSquares: breast_cancer has 2 classes, expected real targets; use Logistic"),
        ({"kind": "LeastSquares", "data": "digits"}, r"digits has 10 classes, expected real targets; .*softmax"),
        ({"data": "cancer"}, r"spec.toml: \[problem\]: Logistic: data has no kind 'cancer'; did you mean 'breast_c"),
        ({"more": "riidge = 1.0"}, r"Logistic has no parameter 'riidge'; did you mean 'ridge'"),
        ({"more": "intercept = 1"}, r"Logistic: intercept = 1, expected true or false"),
    ],
)
def test_mistakes_are_named(parts, message):
    with pytest.raises(SpecError, match=message):
        plan(**parts)


def test_a_record_says_where_its_data_come_from(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RunFolder.create(Path("run"), parse(text(), "spec.toml")).run()
    record = fw.load("run/record.npz")
    assert record.provenance["data"]["samples"] == 455
    assert "UCI" in record.provenance["data"]["licence"]
    assert record.provenance["parts"]["uniform"]["runtime"] == "CPU(threads=None)"
    result = CliRunner().invoke(cli.app, ["evaluate", "run", "--nodes"])
    assert result.exit_code == 0, result.output
    assert all(word in result.stdout for word in ("test_accuracy", "test_loss", "worst node"))
    for name in ("x.npz", *(["x.safetensors"] if find_spec("safetensors") else [])):  # it comes with PyTorch's extra
        assert CliRunner().invoke(cli.app, ["export", "run", "--walk", "1", "--out", name]).exit_code == 0
    with np.load("x.npz") as file:
        np.testing.assert_array_equal(file["x"], record.data.final.sel(design="uniform")[1])
        assert (str(file["label"]), int(str(file["step"]))) == ("uniform", 300)
        assert 0.9 < float(str(file["accuracy"])) <= 1
    linked, there = Path("linked.npz"), Path("there.bin")  # the type of the file is that of the link
    linked.symlink_to(there.resolve())
    assert CliRunner().invoke(cli.app, ["export", "run", "--walk", "1", "--out", "linked.npz"]).exit_code == 0
    assert there.stat().st_size > 0
    with np.load(linked) as file:
        np.testing.assert_array_equal(file["x"], record.data.final.sel(design="uniform")[1])
    assert not list(Path().glob(".there*"))
    assert ".safetensors or .npz" in CliRunner().invoke(cli.app, ["export", "run", "--out", "x.pt"]).output


def test_what_needs_an_extra_says_so_first(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    kind = families()["problem"]["torch"]
    with pytest.raises(MissingExtra, match=r'pip install "\.\[torch\]"'):
        kind.demand()
    spec = text(kind="torch", more='model = { kind = "softmax" }')
    with pytest.raises(MissingExtra, match=r'pip install "\.\[torch\]"'):
        parse(spec, "spec.toml").plan()
    rule = text().replace('"SGD", step = 0.1', '"Optimizer", factory = "Adam"')
    with pytest.raises(MissingExtra, match=r'pip install "\.\[torch\]"'):
        parse(rule, "spec.toml").plan()
