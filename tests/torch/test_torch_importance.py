"""What nodes are visited by: the largest curvature, gradients, sizes, or what is given."""

import numpy as np
import pytest
import torch
from nets import GRAPH, SIZES, by_node, classes, half_square, linear, objective_of, perceptron, uniform
from torch import nn

import freewalk as fw
from freewalk.errors import ProblemError
from freewalk.objectives import LeastSquares, Logistic
from freewalk.torch import TorchObjective

LEAST = LeastSquares.synthetic(GRAPH.n, dim=4, samples=SIZES, heavy=1, heavy_variance=9.0, seed=2)
LOGISTIC = Logistic.synthetic(GRAPH.n, dim=4, samples=SIZES, seed=3)


def logistic_loss(outputs, targets):
    return nn.functional.binary_cross_entropy_with_logits(outputs.squeeze(-1), targets.double())


def largest(problem, node, factor):
    """The largest eigenvalue of the Hessian at the zero model, by linear algebra."""
    own = problem.features[problem.nodes == node]
    return factor * np.linalg.eigvalsh(own.T @ own / len(own)).max()


@pytest.mark.parametrize(("problem", "loss", "factor"), [(LEAST, half_square, 1.0), (LOGISTIC, logistic_loss, 0.25)])
def test_an_estimate_finds_the_constants_of_linear_problems(problem, loss, factor):
    data = by_node(problem.features, problem.targets, problem.nodes)
    objective = TorchObjective(linear(4), loss, data)
    expected = [largest(problem, node, factor) for node in range(GRAPH.n)]
    np.testing.assert_allclose(objective.smoothness, expected, rtol=0.01)
    found = objective.importance
    assert found.kind == "smoothness"
    assert found.gradients % 2 == 0  # one for each of eight nodes, and two for each product
    assert 8 * 3 <= found.gradients <= 8 * (1 + 2 * 5)  # four dimensions, and a step to see that there are no more
    assert objective.importance is found  # estimated once
    record = fw.learn(objective, uniform(), fw.SGD(0.01), steps=2)
    np.testing.assert_array_equal(record.data.smoothness, objective.smoothness)
    assert record.provenance["importance"] == {"kind": "smoothness", "gradients": found.gradients}


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
def test_curvatures_that_lie_close_together(kind):
    """Data without a direction of their own, for which a plain power iteration stops several percent too low."""
    draws = np.random.default_rng(0)
    data = [(draws.standard_normal((200, 20)), draws.standard_normal(200)) for _ in range(10)]
    objective = TorchObjective(linear(20, kind), half_square, data)
    expected = [np.linalg.eigvalsh(inputs.T @ inputs / 200).max() for inputs, _ in data]
    np.testing.assert_allclose(objective.smoothness, expected, rtol=0.01)
    assert objective.importance.gradients < 10 * 40


def test_weights_by_sample_are_part_of_the_curvature():
    data = by_node(LEAST.features, LEAST.targets, LEAST.nodes)
    plain, pooled = (TorchObjective(linear(4), half_square, data, weight_by=kind) for kind in ("node", "sample"))
    np.testing.assert_allclose(pooled.smoothness, plain.smoothness * pooled.node_weights, rtol=0.01)


def test_nobody_asks_nothing_is_estimated():
    objective = TorchObjective(perceptron(), "cross_entropy", classes())
    record = fw.learn(objective, uniform(), fw.SGD(0.01), steps=2)
    assert objective.known_smoothness is None
    assert "smoothness" not in record.data
    assert "importance" not in record.provenance


class Own(fw.designs.SimpleWalk):
    """A class of the user's own: nobody knows what it would do without the importance."""


def test_a_method_asks_only_if_its_design_needs_it():
    fading = fw.schedules.Exponential(1.0, half_life=100)
    decaying = fw.designs.Decaying(fw.designs.MHLJ(0.1, 0.5, 3, power=0.0), fading)
    methods = [fw.baselines.multi_walk_sgd(0.01, 2), fw.baselines.multi_walk_sgd(0.01, 2, decaying)]
    methods += [fw.baselines.centralized_sgd(0.01), fw.baselines.fedavg(0.01), fw.baselines.decentralized_sgd(0.01)]
    objective = TorchObjective(perceptron(), "cross_entropy", classes())
    for method in methods:
        record = method.learn(objective, GRAPH, steps=2)
        assert record.label == method.label
    assert objective.known_smoothness is None
    for design in (
        fw.designs.Metropolis(power=1.0),
        Own(),
        fw.designs.Decaying(Own(), fading),
    ):
        objective = TorchObjective(perceptron(), "cross_entropy", classes(), importance="size")
        kernel = fw.baselines.multi_walk_sgd(0.01, 2, design).kernel(GRAPH, objective)
        assert objective.known_smoothness is not None
        assert kernel.label == "2 walks"
    np.testing.assert_allclose(
        fw.baselines.centralized_sgd(0.01, "importance").kernel(GRAPH, objective).target, np.array(SIZES) / sum(SIZES)
    )


def test_gradients_sizes_and_what_is_given():
    data = classes()
    objective = TorchObjective(perceptron(), "cross_entropy", data, importance="gradient")
    norms = [np.linalg.norm(objective.gradient(node, objective.first_model())) for node in range(GRAPH.n)]
    np.testing.assert_allclose(objective.smoothness, norms, rtol=1e-5)
    assert (objective.importance.kind, objective.importance.gradients) == ("gradient", GRAPH.n)
    sizes = TorchObjective(perceptron(), "cross_entropy", data, importance="size")
    np.testing.assert_array_equal(sizes.smoothness, SIZES)
    assert sizes.importance.gradients == 0
    given = TorchObjective(perceptron(), "cross_entropy", data, importance=np.arange(1, 9))
    np.testing.assert_array_equal(given.smoothness, np.arange(1.0, 9.0))
    assert (given.importance.kind, given.importance.gradients) == ("given", 0)
    record = fw.learn(given, uniform(), fw.SGD(0.01), steps=2, start="heaviest", paths=1)
    assert record.data.path[0, 0] == 7


def test_a_relay_has_the_smallest_of_the_others():
    data = [*classes()[:-1], None]
    for kind in ("smoothness", "gradient", "size"):
        objective = TorchObjective(perceptron(), "cross_entropy", data, relays=(7,), importance=kind)
        assert objective.smoothness[7] == objective.smoothness[:7].min() > 0


def test_a_module_that_is_not_convex():
    """The absolute value counts: at a saddle the largest curvature may be one downwards."""
    module = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Linear(1, 1, bias=False)).double()
    for part in module.parameters():
        nn.init.zeros_(part)
    inputs, targets = torch.tensor([[3.0, 4.0]]).double(), torch.tensor([-2.0]).double()
    objective = TorchObjective(module, half_square, [(inputs, targets)])
    # f = ½ (w (a · u) + 2)²: its Hessian at 0 has 2 a off the diagonal, and eigenvalues ± 2 ‖a‖ = ± 10.
    np.testing.assert_allclose(objective.smoothness, [10.0], rtol=0.01)


def test_importance_at_another_model():
    objective = TorchObjective(perceptron(), "cross_entropy", classes())
    model = objective.first_model()
    one, other = objective.estimate("gradient"), objective.estimate("gradient", model * 3)
    assert not np.allclose(one.values, other.values)
    assert objective.known_smoothness is None
    exact = objective.estimate("smoothness", model, tolerance=1e-6, most=1000)
    rough = objective.estimate("smoothness", model)
    assert rough.gradients < exact.gradients
    np.testing.assert_allclose(rough.values, exact.values, rtol=0.05)


class Broken(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.layer, self.factor = nn.Linear(6, 3), factor

    def forward(self, inputs):
        return self.layer(inputs) * self.factor


def test_what_cannot_be_estimated_says_so():
    with pytest.raises(ProblemError, match=r"smoothness at node 0 is nan.*one number per node as importance="):
        print(TorchObjective(Broken(float("nan")), "cross_entropy", classes()).smoothness)
    with pytest.raises(ProblemError, match=r"gradient at node 0 is 0.0, expected finite numbers that are not all 0"):
        print(TorchObjective(Broken(0.0), "cross_entropy", classes(), importance="gradient").smoothness)
    with pytest.raises(ProblemError, match=r"smoothness at node 0 cannot be computed.*size"):
        print(TorchObjective(nn.Linear(5, 3), "cross_entropy", classes()).smoothness)
    objective = objective_of(perceptron())
    for options in ({"tolerance": 0.0}, {"most": 0}):
        with pytest.raises(ProblemError):
            objective.estimate("smoothness", **options)
    with pytest.raises(ProblemError, match="shape"):
        objective.estimate("smoothness", np.zeros(3))
    with pytest.raises(ProblemError, match="kind"):
        objective.estimate("curvature")


def test_a_loss_that_is_linear_has_no_curvature():
    data = [(torch.ones(1, 2) * node, torch.ones(1)) for node in range(1, 4)]
    objective = TorchObjective(nn.Linear(2, 1), lambda outputs, targets: outputs.sum(), data)
    with pytest.raises(ProblemError, match="not all 0"):
        print(objective.smoothness)
    np.testing.assert_allclose(objective.estimate("gradient").values, [np.sqrt(1 + 2 * v * v) for v in (1, 2, 3)])
