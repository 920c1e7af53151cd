"""Partitions: every sample at one node, the same for the same seed, and skewed as the parameters say."""

import catalogue
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import freewalk as fw
from freewalk import data
from freewalk.data import IID, Dataset, Dirichlet, FeatureShift, Partition, Quantity, Shards
from freewalk.data.dataset import apportion
from freewalk.errors import ProblemError

ALPHAS = st.sampled_from([1e-6, 0.01, 0.1, 1.0, 100.0, 1e6])
LEAST = st.integers(1, 3)
PARTITIONERS = st.one_of(
    st.just(IID()),
    st.builds(Dirichlet, ALPHAS, LEAST),
    st.builds(Quantity, ALPHAS, LEAST),
    st.builds(Shards, st.integers(1, 4)),
    st.builds(FeatureShift, st.floats(0, 1)),
    st.sampled_from(list(catalogue.PARTITIONERS.values())),
)


@st.composite
def labelled(draw):
    """Samples of up to six classes, each with one or more."""
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=6))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    mixed = np.random.default_rng(draw(st.integers(0, 9))).permutation(labels)
    features = np.random.default_rng(1).normal(size=(len(mixed), 3)) + mixed[:, None]
    return Dataset(features, mixed, classes=tuple("abcdef"[: len(sizes)]))


@settings(max_examples=150)
@given(labelled(), PARTITIONERS, st.integers(1, 12), st.integers(0, 3))
def test_every_sample_goes_to_one_node_and_every_node_has_enough(samples, partitioner, n, seed):
    least = getattr(partitioner, "least", 1)
    if len(samples) < n * least:
        with pytest.raises(ProblemError, match="take fewer nodes"):
            partitioner.partition(samples, n, seed)
        return
    found = partitioner.partition(samples, n, seed)
    owned = [found.samples(node) for node in range(n)]
    assert sorted(np.concatenate(owned)) == list(range(len(samples)))
    assert [len(part) for part in owned] == found.sizes.tolist() == found.counts.sum(axis=1).tolist()
    assert found.sizes.min() >= least
    assert found.counts.sum(axis=0).tolist() == np.bincount(samples.targets).tolist()
    assert 0 <= found.heterogeneity < 1
    again = partitioner.partition(samples, n, seed)
    assert again.digest == found.digest
    assert [len(part) for part in samples.by_node(found)] == found.sizes.tolist()


@given(labelled(), st.integers(1, 4), st.integers(1, 12), st.integers(0, 3))
def test_shards_bound_the_classes_of_a_node(samples, classes, n, seed):
    if len(samples) < n:
        return
    found = Shards(classes).partition(samples, n, seed)
    most = max(classes, -(-len(samples.classes) // n))
    assert (found.counts > 0).sum(axis=1).max() <= most


@given(st.integers(0, 50), st.lists(st.floats(0, 1), min_size=1, max_size=8), st.lists(st.integers(0, 20), min_size=8))
def test_shares_become_whole_numbers(total, shares, most):
    weights = np.array(shares)
    parts = apportion(total, weights)
    assert parts.sum() == total
    if weights.sum() > 1e-9:
        assert np.abs(parts - total * weights / weights.sum()).max() < 1
    room = np.array(most[: len(shares)])
    if room.sum() >= total:
        bounded = apportion(total, weights, room)
        assert bounded.sum() == total
        assert (bounded <= room).all()


def test_shares_by_largest_remainders_with_a_minimum_and_a_maximum():
    assert apportion(10, np.array([0.5, 0.3, 0.2])).tolist() == [5, 3, 2]
    assert apportion(4, np.array([1.0, 0.0, 0.0]), least=1).tolist() == [2, 1, 1]
    assert apportion(4, np.array([1.0, 1.0]), most=np.array([1, 9])).tolist() == [1, 3]


def test_alpha_goes_from_one_class_per_node_to_the_same_mixture():
    labels = np.repeat(np.arange(10), 300)
    values = [Dirichlet(alpha).partition(labels, 20, 1).heterogeneity for alpha in (1e-6, 0.05, 0.5, 5.0, 1e6)]
    assert values == sorted(values, reverse=True)
    assert 0.85 < values[0] <= 0.9 + 1e-12  # one class of ten at each node, or two where they met
    assert values[-1] < 0.01
    even = Dirichlet(1e6).partition(labels, 20, 1)
    assert np.abs(even.counts - 15).max() <= 1


def test_quantity_skews_sizes_only():
    found = Quantity(0.1).partition(np.repeat(np.arange(4), 1000), 10, 2)
    assert found.sizes.max() > 4 * np.median(found.sizes)
    assert found.heterogeneity < 2.5 * found.heterogeneity_by_chance


def test_feature_shift_goes_from_iid_to_sorted():
    random = np.random.default_rng(3)
    rows = random.normal(size=(600, 4)) * [5.0, 1.0, 1.0, 1.0]
    samples = Dataset(rows, rows[:, 0])

    def between(strength):
        parts = samples.by_node(FeatureShift(strength).partition(samples, 6))
        return np.array([part.features[:, 0].mean() for part in parts])

    sorted_means, iid_means = between(1.0), between(0.0)
    assert (np.diff(np.abs(np.diff(sorted_means)) > 0) == 0).all()
    assert abs(np.corrcoef(sorted_means, np.arange(6))[0, 1]) > 0.9
    assert np.ptp(iid_means) < np.ptp(between(0.5)) < np.ptp(sorted_means)
    assert np.ptp(iid_means) < 3  # of a standard deviation of 5 / sqrt(100) = 0.5
    wide = Dataset(rows[:3].repeat(3, axis=1), [0.0, 1.0, 2.0])
    assert sorted(FeatureShift().partition(wide, 3).sizes) == [1, 1, 1]


def test_a_partition_is_what_objectives_take():
    graph = fw.graphs.ring(8)
    train = data.breast_cancer().standardized()
    nodes = Dirichlet(0.3).partition(train, graph.n).nodes
    problem = fw.objectives.Logistic(train.features, train.targets, nodes=nodes, graph=graph, ridge=0.1)
    assert problem.n == 8
    samples = data.diabetes().standardized(targets=True)
    halves = FeatureShift(0.5).partition(samples, 8)
    assert fw.objectives.LeastSquares(samples.features, samples.targets, nodes=halves.nodes, graph=graph).n == 8


def test_numbers_of_nodes_go_with_a_graph_that_has_names():
    graph = fw.graphs.from_edges([("Bonn", "Kiel"), ("Kiel", "Ulm")])
    samples = data.wine().standardized()
    found = IID().partition(samples, graph.n)
    problem = fw.objectives.LeastSquares(samples.features, samples.targets, nodes=found.nodes, graph=graph)
    # An objective keeps its samples by node, in the order in which they came.
    assert np.array_equal(problem.features[-problem.samples(2) :], samples.features[found.samples(2)])
    with pytest.raises(ProblemError, match=r"nodes holds 3, expected .* 0 to 2; .* give their names, such as 'Bonn'"):
        fw.objectives.LeastSquares(samples.features, samples.targets, nodes=found.nodes + 1, graph=graph)
    numbered = fw.graphs.from_edges([("1", "2"), ("2", "3")])
    named = fw.objectives.LeastSquares([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], nodes=[3, 1, 2], graph=numbered)
    assert named.features.ravel().tolist() == [2.0, 3.0, 1.0]


def test_targets_alone_are_enough():
    texts = np.array(["no", "yes", "yes", "no"])
    assert Shards(1).partition(texts, 2).classes == ("no", "yes")
    assert Dirichlet(1.0).partition([True, False, True], 2).classes == ("False", "True")
    assert Dirichlet(1.0).partition(texts.astype(object), 2).classes == ("no", "yes")
    assert IID().partition([0.5, 1.5, 2.5, 3.0], 2).classes is None


def test_regression_is_compared_by_quarters():
    found = Partition(np.repeat([0, 1], 4), 2, np.arange(8.0))
    assert found.counts.tolist() == [[2, 2, 0, 0], [0, 0, 2, 2]]
    assert found.heterogeneity == 0.5
    assert "quarters of the targets per node  2 of 4" in str(found)


def test_the_summary_and_the_digest():
    found = Shards(1).partition(np.repeat([0, 1], 10), 4, seed=3)
    assert str(found).splitlines()[:3] == [
        "Shards(classes=1), seed 3: 20 samples at 4 nodes",
        "  samples per node  5, median 5",
        "  classes per node  1 of 2, mean 1.0",
    ]
    assert repr(found) == "Partition(Shards(classes=1), seed 3: 20 samples at 4 nodes)"
    one = Partition([0, 1], 2, [0.0, 1.0])
    # printf '\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0' | sha256sum
    assert one.digest == "9d34149fbd1fe777eb238799054c8cbfbce372255f219f8740838def9bfd02db"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IID().partition([0, 1], 3), "got 2 samples for 3 nodes, expected at least 3, one per node"),
        (lambda: Dirichlet(1.0, least=2).partition([0, 1, 1], 2), "expected at least 4, 2 per node"),
        (lambda: IID().partition([0, 1], 0), "n = 0, expected a whole number"),
        (lambda: IID().partition([], 1), r"IID: "),
        (lambda: IID().partition([[0, 1], [1, 0]], 1), r"targets has shape \(2, 2\), expected one label per sample"),
        (lambda: Dirichlet(1.0).partition([0.5, 1.5], 2), "targets are real numbers, expected classes.*quantile"),
        (lambda: Shards().partition(data.diabetes(), 2), "use IID, Quantity or FeatureShift"),
        (lambda: FeatureShift().partition([0, 1], 2), "expected a Dataset, whose features"),
        (lambda: Dirichlet(0.0), "alpha = 0.0, expected a finite number >= 1e-06 and up to 1e\\+06; IID"),
        (lambda: Dirichlet(1.0, least=0), "least = 0, expected a whole number >= 1"),
        (lambda: Shards(0), "classes = 0"),
        (lambda: FeatureShift(1.5), "strength = 1.5"),
        (
            lambda: IID().partition(Dataset([[1.0], [2.0]], [0, 2], classes=("a", "b", "c")), 1),
            "class 'b' of data has no sample, expected at least one of every class",
        ),
        (lambda: Partition([0, 1], 2, [0.0]), r"targets has shape \(1,\), expected \(2,\)"),
        (lambda: Partition([0, 2], 2, [0.0, 1.0]), "nodes holds 2, expected whole numbers from 0 to 1"),
        (lambda: Partition([0, 1], 2, [0, 1], classes=("a",)), "targets holds 1"),
        (lambda: Partition([0, 1], 2, [0.0, 1.0]).samples(2), "node = 2"),
    ],
)
def test_wrong_values_are_refused(make, message):
    with pytest.raises(ProblemError, match=message):
        make()
