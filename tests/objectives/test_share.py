"""What one node has to know of an objective: its own samples, and how much they count."""

import numpy as np
import pytest

import freewalk as fw
from freewalk.errors import ProblemError
from freewalk.objectives import LeastSquares, Logistic, Objective
from freewalk.objectives.objective import Share

COUNTS = np.array([3, 1, 4, 2, 5])
NODES = np.repeat([0, 1, 2, 4, 5], COUNTS)  # node 3 is a relay where there are any
DRAWS = np.random.default_rng(2)
FEATURES = DRAWS.standard_normal((len(NODES), 3))
TARGETS = DRAWS.standard_normal(len(NODES))
LABELS = (DRAWS.random(len(NODES)) < 0.5).astype(float)
X = np.array([0.4, -1.2, 0.7])
EVEN = np.repeat(np.arange(5), COUNTS)


OBJECTIVES = {
    "LeastSquares": LeastSquares(FEATURES, TARGETS),
    "LeastSquares, uneven": LeastSquares(FEATURES, TARGETS, EVEN),
    "LeastSquares, by sample, ridge": LeastSquares(FEATURES, TARGETS, EVEN, ridge=0.3, weight_by="sample"),
    "LeastSquares, relays": LeastSquares(FEATURES, TARGETS, NODES, ridge=0.3, relays=[3]),
    "Logistic, ridge": Logistic(FEATURES, LABELS, EVEN, ridge=0.2),
    "Logistic, by sample, relays": Logistic(FEATURES, LABELS, NODES, ridge=0.2, weight_by="sample", relays=[3, 6]),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_of_the_shares_are_those_of_the_whole(name):
    whole = OBJECTIVES[name]
    for node in range(whole.n):
        share = whole.local(node)
        assert share.node == node
        assert share.samples == whole.samples(node)
        np.testing.assert_allclose(share.gradient(X), whole.gradient(node, X), rtol=1e-14, atol=1e-15)
        for sample in range(whole.samples(node)):
            np.testing.assert_allclose(share.gradient(X, sample), whole.gradient(node, X, sample), rtol=1e-14)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_share_holds_no_sample_of_another_node(name):
    whole = OBJECTIVES[name]
    for node in range(whole.n):
        first, last = whole.offsets[node : node + 2]
        alone = whole.local(node).objective
        assert type(alone) is type(whole)
        if first < last:
            assert np.array_equal(alone.features, whole.features[first:last])
            assert np.array_equal(alone.targets, whole.targets[first:last])
        else:
            assert not alone.features.any()
        assert not np.shares_memory(alone.features, whole.features)
        arrays = [value for value in vars(alone).values() if isinstance(value, np.ndarray)]
        assert max(array.size for array in arrays) <= 3 * max(last - first, 1)


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if "relays" in name])
def test_a_relay_has_no_gradient(name):
    share = OBJECTIVES[name].local(3)
    assert share.samples == 0
    assert share.factor == 0
    assert not share.gradient(X).any()
    assert np.array_equal(share.proximal(X, 2.0), X)


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if "LeastSquares" in name])
def test_proximal_of_the_shares_is_that_of_the_whole(name):
    whole = OBJECTIVES[name]
    for node in range(whole.n):
        solution = whole.proximal(node, X, 0.7)
        np.testing.assert_allclose(whole.local(node).proximal(X, 0.7), solution, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(whole.gradient(node, solution) + 0.7 * (solution - X), 0, atol=1e-12)


@pytest.mark.parametrize("node", [-1, 5, 1.5, "a", None], ids=repr)
def test_other_nodes_have_no_share(node):
    with pytest.raises(ProblemError, match=r"LeastSquares: node = .*, expected a whole number from 0 to 4"):
        OBJECTIVES["LeastSquares, uneven"].local(node)


class Quadratic(Objective):
    """f_v(x) = ½‖x − v‖², whose walks begin at a model of their own."""

    n = 5
    dim = 2
    smoothness = np.ones(5)

    def loss(self, x):
        return float(np.mean([0.5 * np.sum((np.asarray(x) - node) ** 2) for node in range(5)]))

    def gradient(self, node, x, sample=None):
        return np.asarray(x) - node

    def initial(self, walks, seed):
        return np.stack([np.array([walk, seed], dtype=float) for walk in range(walks)])


def test_any_objective_has_shares():
    share = Quadratic().local(3)
    assert isinstance(share, Share)
    assert np.array_equal(share.gradient([4.0, 4.0]), [1.0, 1.0])
    assert share.samples == 1
    with pytest.raises(ProblemError, match=r"Quadratic: has no proximal form"):
        share.proximal([0.0, 0.0], 1.0)


def test_walks_begin_where_the_objective_says():
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    rule, run = fw.SGD(step=0.1), {"steps": 1, "walks": 3, "seed": 7, "runtime": "reference", "start": 0}
    data = fw.learn(Quadratic(), kernel, rule, **run).data
    first = np.array([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0]])
    assert np.array_equal(data.loss[:, 0], [Quadratic().loss(x) for x in first])
    np.testing.assert_allclose(data.final, 0.9 * first, rtol=1e-15)  # at node 0
    given = fw.learn(Quadratic(), kernel, rule, initial=[1.0, 1.0], **run).data
    assert (given.loss[:, 0] == Quadratic().loss([1.0, 1.0])).all()
    assert not LeastSquares(FEATURES, TARGETS).initial(4, 1).any()


class Misshapen(Quadratic):
    def initial(self, walks, seed):
        return np.zeros((walks, 3))


def test_a_first_model_of_another_size_is_told():
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(5))
    with pytest.raises(fw.FreewalkError, match=r"Misshapen: initial\(\) has shape \(2, 3\), expected \(2,\) or"):
        fw.learn(Misshapen(), kernel, fw.SGD(step=0.1), steps=1, walks=2, runtime="reference")
