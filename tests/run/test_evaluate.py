"""Final models, measured: by walk, design and node, and on other samples."""

import numpy as np
import pytest

import freewalk as fw
from freewalk.errors import ProblemError, RecordError
from freewalk.report import evaluation_table, node_losses

GRAPH = fw.graphs.ring(6)
FEATURES = np.random.default_rng(1).normal(size=(18, 2))
TARGETS = (FEATURES[:, 0] + 0.3 * FEATURES[:, 1] > 0).astype(float)
NODES = np.repeat(np.arange(6), 3)


def learned(problem, label, walks=3):
    kernel = fw.designs.SimpleWalk().kernel(GRAPH, label=label)
    return fw.learn(problem, kernel, fw.SGD(0.1), steps=60, walks=walks, every=30, runtime="reference")


@pytest.fixture(scope="module")
def problem():
    return fw.objectives.Logistic(FEATURES, TARGETS, NODES, ridge=0.1, weight_by="sample", relays=())


def test_one_model_and_several(problem):
    one = fw.evaluate([1.0, 2.0], problem, per_node=True)
    assert dict(one.sizes) == {"walk": 1, "node": 6}
    assert float(one.loss[0]) == problem.loss([1.0, 2.0])
    two = fw.evaluate([[1.0, 2.0], [0.0, 0.0]], problem)
    np.testing.assert_allclose(two.loss, [problem.loss([1.0, 2.0]), np.log(2)])
    assert list(two.data_vars) == ["loss", "accuracy"]


def test_a_record_of_several_designs(problem):
    record = fw.concat([learned(problem, "a"), learned(problem, "b", walks=2)], pad=True)
    found = fw.evaluate(record, problem, per_node=True, dataset=(FEATURES[:5], TARGETS[:5]))
    assert found.loss.dims == ("design", "walk")
    np.testing.assert_allclose(found.loss.values[0], record.data.loss.sel(design="a")[:, -1])
    assert np.isnan(found.loss.values[1, 2])
    right = (FEATURES[:5] @ record.data.final.sel(design="a")[0].values > 0) == (TARGETS[:5] > 0)
    assert float(found.test_accuracy.sel(design="a")[0]) == right.mean()


def test_the_loss_at_a_node_is_that_of_its_samples():
    graph = fw.graphs.ring(7)
    problem = fw.objectives.LeastSquares(FEATURES, TARGETS, NODES, weight_by="sample", relays=True, graph=graph)
    model = np.array([0.5, -0.5])
    losses = fw.evaluate(model, problem, per_node=True).node_loss.values[0]
    expected = [0.5 * np.mean((FEATURES[v == NODES] @ model - TARGETS[v == NODES]) ** 2) for v in range(6)]
    np.testing.assert_allclose(losses[:6], expected)
    assert np.isnan(losses[6])


def test_a_model_that_has_diverged(problem, tmp_path):
    found = fw.evaluate([[np.inf, 0.0], [1.0, 1.0]], problem, per_node=True)
    assert not np.isfinite(found.loss[0])
    assert node_losses(found, tmp_path / "a.png").exists()
    assert evaluation_table(found).row_count == 1


def test_what_does_not_fit_is_named(problem):
    with pytest.raises(RecordError, match=r"the models have 3 parameters, expected 2, as Logistic"):
        fw.evaluate([1.0, 2.0, 3.0], problem)
    with pytest.raises(RecordError, match=r"model = 'run.npz', expected a record or an array; fw.load reads a record"):
        fw.evaluate("run.npz", problem)
    walked = fw.walk(fw.designs.SimpleWalk().kernel(GRAPH), steps=3)
    with pytest.raises(RecordError, match=r"nothing was learned in 'SimpleWalk\(\)'"):
        fw.evaluate(walked, problem)
    with pytest.raises(ProblemError, match=r"the other samples have 3 features, expected 2"):
        fw.evaluate([1.0, 2.0], problem, dataset=(np.ones((2, 3)), [0, 1]))
    with pytest.raises(RecordError, match=r"dataset = .*, expected a fw.data.Dataset, or a pair"):
        fw.evaluate([1.0, 2.0], problem, dataset=(FEATURES, TARGETS, NODES))


def test_no_marker_stands_between_the_nodes(problem, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("freewalk.report.figures.save", lambda figure, path: drawn.append(figure))
    node_losses(fw.evaluate(learned(problem, "a"), problem, per_node=True), tmp_path / "a.png")
    (axes,) = drawn[0].axes
    assert {line.get_marker() for line in axes.lines} <= {"None", ""}
    assert "dotted: mean over the nodes" in drawn[0].get_supxlabel()


def test_the_figure_and_the_table(problem, tmp_path):
    record = fw.concat([learned(problem, "costs $1"), learned(problem, "b")])
    found = fw.evaluate(record, problem, per_node=True)
    assert node_losses(found, tmp_path / "nodes.png").stat().st_size > 10_000
    assert [str(column.header) for column in evaluation_table(found).columns][-2:] == ["90 % of nodes", "worst node"]
    with pytest.raises(RecordError, match=r"no losses by node, expected .*per_node=True"):
        node_losses(fw.evaluate(record, problem), tmp_path / "a.png")
    with pytest.raises(RecordError, match=r"expected what fw.evaluate returns"):
        evaluation_table(record.data.drop_dims("walk"))
