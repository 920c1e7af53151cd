"""How much a node counts: equal or pooled weighting, relays, and nodes by name."""

import dataclasses

import numpy as np
import pandas
import pytest

import freewalk as fw
from freewalk.errors import ProblemError
from freewalk.objectives import LeastSquares, Logistic

KINDS = [LeastSquares, Logistic]
COUNTS = np.array([0, 3, 1, 0, 2, 0])  # the first, the last and one more are relays
OWNERS = np.repeat(np.arange(6), COUNTS)
GRAPH = fw.graphs.ring(6)
CITIES = ["Aachen", "Bonn", "Celle", "Dresden", "Essen", "Fulda"]
NAMED = dataclasses.replace(GRAPH, node_names=tuple(CITIES))


def relaying(kind, weight_by, ridge=0.3, **options):
    draws = np.random.default_rng(5)
    features = draws.standard_normal((len(OWNERS), 3))
    targets = (draws.random(len(OWNERS)) < 0.5).astype(float)
    return kind(features, targets, OWNERS, ridge, weight_by=weight_by, relays=True, graph=GRAPH, **options)


def without_relays(kind, weight_by, ridge=0.3):
    """The same data on the three nodes that have some."""
    problem = relaying(kind, weight_by, ridge)
    return kind(problem.features, problem.targets, np.unique(OWNERS, return_inverse=True)[1], ridge, (), weight_by)


def whole_gradient(problem, x):
    return np.mean([problem.gradient(node, x) for node in range(problem.n)], axis=0)


# What the factors do.


@pytest.mark.parametrize("kind", KINDS)
def test_without_either_all_factors_are_exactly_one(uneven, kind):
    problem = uneven(kind, 0.3)
    assert (problem.weight_by, problem.relays) == ("node", ())
    assert problem.node_weights.tolist() == [1.0] * 6
    assert problem.sample_weights.tolist() == [1.0 / (6 * count) for count in (1, 4, 2, 7, 1, 3) for _ in range(count)]


def test_the_factors():
    pooled = relaying(LeastSquares, "sample")
    assert (pooled.n, pooled.relays) == (6, (0, 3, 5))
    assert pooled.node_weights.tolist() == [0, 3, 1, 0, 2, 0]  # n m_v / N
    assert pooled.sample_weights.tolist() == [1 / 6] * 6
    equal = relaying(LeastSquares, "node")
    assert equal.node_weights.tolist() == [0, 2, 2, 0, 2, 0]  # n / the number of nodes with data
    assert equal.sample_weights == pytest.approx(np.array([1 / 9] * 3 + [1 / 3] + [1 / 6] * 2))
    for problem in (pooled, equal):
        assert problem.node_weights.sum() == 6
        assert not problem.node_weights.flags.writeable


def test_equal_counts_count_the_same_to_the_bit():
    one = LeastSquares.synthetic(7, 2, samples=3, ridge=0.1)
    other = dataclasses.replace(one, weight_by="sample")
    assert np.array_equal(other.node_weights, np.ones(7))
    assert np.array_equal(one.smoothness, other.smoothness)


@pytest.mark.parametrize("weight_by", ["node", "sample"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_and_losses_of_the_nodes_make_those_of_the_whole(kind, weight_by, x):
    """(1/n) Σ ∇f_v = ∇f, by differences of the loss; and the weights of any walk keep that sum."""
    problem = relaying(kind, weight_by)
    width = 1e-5
    slopes = [(problem.loss(x + width * e) - problem.loss(x - width * e)) / (2 * width) for e in np.eye(3)]
    assert np.allclose(whole_gradient(problem, x), slopes, rtol=1e-8)
    assert np.linalg.norm(whole_gradient(problem, problem.optimum())) < 1e-12
    for design in (fw.designs.Metropolis(power=1), fw.designs.SimpleWalk()):
        kernel = design.kernel(GRAPH, problem.smoothness)
        target = np.asarray(kernel.target) / np.sum(kernel.target)
        walked = sum(target[v] * kernel.weights[v] * problem.gradient(v, x) for v in range(6))
        assert np.allclose(walked, whole_gradient(problem, x), rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_pooled_is_the_mean_over_all_samples(kind, x):
    problem = relaying(kind, "sample")
    values = [kind.value(float(a @ x), float(y)) for a, y in zip(problem.features, problem.targets, strict=True)]
    assert problem.loss(x) == pytest.approx(np.mean(values) + 0.15 * x @ x, rel=1e-14)
    alone = kind(problem.features, problem.targets, ridge=0.3)  # every sample a node of its own
    assert np.allclose(problem.optimum(), alone.optimum(), rtol=1e-10)
    if kind is LeastSquares:
        assert problem.mse(x) == pytest.approx(np.mean((problem.targets - problem.features @ x) ** 2), rel=1e-14)


@pytest.mark.parametrize("weight_by", ["node", "sample"])
@pytest.mark.parametrize("kind", KINDS)
def test_relays_change_neither_the_loss_nor_the_optimum(kind, weight_by, x):
    problem, bare = relaying(kind, weight_by), without_relays(kind, weight_by)
    assert problem.loss(x) == pytest.approx(bare.loss(x), rel=1e-14)
    assert np.allclose(problem.optimum(), bare.optimum(), rtol=1e-12)
    # The same mean over twice as many nodes: each gradient and each constant is twice as large.
    for node, other in ((1, 0), (2, 1), (4, 2)):
        assert np.allclose(problem.gradient(node, x), 2 * bare.gradient(other, x), rtol=1e-14)
        assert problem.smoothness[node] == pytest.approx(2 * bare.smoothness[other], rel=1e-14)
        assert np.allclose(problem.gradient(node, x, 0), 2 * bare.gradient(other, x, 0), rtol=1e-14)


@pytest.mark.parametrize("weight_by", ["node", "sample"])
def test_a_relay_has_no_gradient_and_the_smallest_importance(weight_by, x):
    problem = relaying(LeastSquares, weight_by)
    for relay in problem.relays:
        assert problem.samples(relay) == 0
        assert problem.gradient(relay, x).tolist() == [0, 0, 0]
        assert problem.smoothness[relay] == problem.smoothness[[1, 2, 4]].min()
    with pytest.raises(ProblemError, match=r"sample = 0, expected None: node 3 is a relay and has no samples"):
        problem.gradient(3, x, 0)


def test_smoothness_scales_with_its_loss():
    plain, pooled = (dataclasses.replace(relaying(LeastSquares, "node"), weight_by=by) for by in ("node", "sample"))
    ratio = [pooled.node_weights[v] / plain.node_weights[v] for v in (1, 2, 4)]
    assert np.allclose(pooled.smoothness[[1, 2, 4]] / plain.smoothness[[1, 2, 4]], ratio, rtol=1e-14)


# Which nodes are relays.


@pytest.mark.parametrize("kind", KINDS)
def test_fields_rebuild_a_problem_without_its_graph(kind):
    problem = relaying(kind, "sample", heavy=[4])
    fields = {field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)}
    assert "graph" not in fields
    for again in (kind(**fields), kind(**fields | {"relays": list(problem.relays)}), dataclasses.replace(problem)):
        assert (again.n, again.relays, again.weight_by, again.heavy) == (6, (0, 3, 5), "sample", (4,))
        assert np.array_equal(again.offsets, problem.offsets)
        assert np.array_equal(again.smoothness, problem.smoothness)
    assert repr(problem).endswith("ridge=0.3, heavy=(4,), weight_by='sample', relays=(0, 3, 5))")


def test_relays_may_be_listed():
    rows, answers = np.ones((3, 2)), np.zeros(3)
    listed = LeastSquares(rows, answers, [0, 0, 1], relays=[2])
    assert (listed.n, listed.relays, listed.offsets.tolist()) == (3, (2,), [0, 2, 3, 3])
    assert LeastSquares(rows, answers, [0, 0, 2], relays=(1, 1)).relays == (1,)
    assert LeastSquares(rows, answers, relays=True, graph=fw.graphs.ring(3)).relays == ()
    assert LeastSquares(rows, answers, relays=np.False_).relays == ()
    assert LeastSquares(rows, answers, [0, 0, 1], relays=np.True_, graph=GRAPH).relays == (2, 3, 4, 5)
    named = LeastSquares(rows, answers, ["Bonn", "Essen", "Bonn"], relays=set(CITIES) - {"Bonn", "Essen"}, graph=NAMED)
    assert named.relays == (0, 2, 3, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relays": True}, "relays = True, expected graph= with it, which knows the nodes without data; or list"),
        ({"relays": [1]}, "relays names node 1, which has data, expected nodes without any"),
        ({"relays": ["Celle"], "graph": NAMED}, "relays names node Celle, which has data"),
        ({"relays": [0, 3, 8]}, r"no data at 3 of 9 nodes \(5, 6, 7\)"),
        ({"relays": [0, 3], "graph": GRAPH}, r"no data at 1 of 6 nodes \(5\)"),
        (
            {"graph": NAMED},
            r"no data at 3 of 6 nodes \(Aachen, Dresden, Fulda\), .*; pass relays=True if these only forward",
        ),
        ({"relays": [10**12]}, r"no data at 999999999997 of 1000000000001 nodes"),
        ({"relays": "Celle", "graph": NAMED}, "relays = 'Celle', expected a list of nodes"),
        ({"relays": 3}, "relays = 3, expected a list of nodes"),
        ({"relays": None}, "relays = None, expected a list of nodes"),
        ({"relays": [0.0]}, "relays is an array of float64, expected whole numbers"),
    ],
    ids=str,
)
def test_relays_that_are_none(options, message):
    rows = np.ones((6, 2))
    given = [CITIES[node] for node in OWNERS] if options.get("graph") is NAMED else OWNERS
    with pytest.raises(ProblemError, match=message):
        LeastSquares(rows, np.zeros(6), given, **options)


# Nodes by name.

ROWS, ANSWERS = np.arange(12.0).reshape(6, 2), np.arange(6.0)
PLACES = ["Fulda", "Bonn", "Aachen", "Celle", "Essen", "Dresden"]


@pytest.mark.parametrize(
    "graph", [NAMED, CITIES, tuple(CITIES), np.array(CITIES), pandas.Series(CITIES), pandas.Index(CITIES)], ids=type
)
@pytest.mark.parametrize(
    "places",
    [PLACES, np.array(PLACES), np.array(PLACES, dtype=object), pandas.Series(PLACES), pandas.Categorical(PLACES)],
    ids=type,
)
def test_nodes_by_name(graph, places):
    problem = LeastSquares(ROWS, ANSWERS, places, heavy=["Fulda", "Bonn"], graph=graph)
    assert problem.nodes.tolist() == [0, 1, 2, 3, 4, 5]
    assert problem.targets.tolist() == [2, 1, 3, 5, 4, 0]  # Aachen's, Bonn's, ...
    assert problem.heavy == (1, 5)


@pytest.mark.parametrize(
    "places", [[30, 10, 20], np.array([30, 10, 20]), pandas.Series([30, 10, 20]), ["30", "10", "20"]]
)
@pytest.mark.parametrize("graph", [[10, 20, 30], ["10", "20", "30"]])
def test_numbers_are_names_where_nodes_have_names(graph, places):
    assert LeastSquares(ROWS[:3], ANSWERS[:3], places, graph=graph).targets.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    "places",
    [[2, 0, 1], np.array([2, 0, 1], dtype=object), pandas.Series([2, 0, 1], dtype="Int64"), range(3)],
    ids=type,
)
def test_without_names_nodes_are_numbers(places):
    assert LeastSquares(ROWS[:3], ANSWERS[:3], places, graph=fw.graphs.ring(3)).n == 3


def test_tables_of_pandas_are_read():
    table = pandas.DataFrame({"one": [1.0, 2.0], "two": [3, 4], "flag": [True, False], "y": [5, 6], "city": ["b", "a"]})
    problem = LeastSquares(table[["one", "two"]], table.y, table.city, graph=["a", "b"])
    assert problem.features.tolist() == [[2, 4], [1, 3]]
    assert problem.targets.tolist() == [6, 5]
    assert LeastSquares(table[["one", "flag"]], table["y"]).features.tolist() == [[1, 1], [2, 0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"nodes": ["Fuldaa", *PLACES[1:]]},
            r"nodes\[0\] = 'Fuldaa', expected one of 6 names of nodes; did you mean 'Fulda'",
        ),
        ({"nodes": np.array([*PLACES[:5], "Wien"])}, r"nodes\[5\] = 'Wien', expected one of 6 names of nodes"),
        ({"nodes": [*PLACES[:5], np.nan]}, r"nodes\[5\] = nan, expected one of 6 names of nodes; such as 'Aachen'"),
        ({"nodes": [0, 1, 2, 3, 4, 6]}, r"nodes holds 6, expected whole numbers from 0 to 5; .* give their names"),
        ({"nodes": [0, *PLACES[1:]]}, r"nodes\[0\] = 0, expected one of 6 names"),
        ({"nodes": PLACES, "heavy": ["Ulm"]}, r"heavy\[0\] = 'Ulm', expected one of 6 names"),
        ({"nodes": PLACES, "graph": None}, "name them together with graph="),
        ({"nodes": set(PLACES)}, "expected a list, since a set has no order"),
        ({"nodes": PLACES, "graph": GRAPH}, "number the nodes from 0, they have no names here"),
        ({"nodes": [0, 1, 2, 3, 4, 6], "graph": GRAPH}, "nodes holds 6, expected whole numbers from 0 to 5"),
        (
            {"graph": fw.graphs.ring(5)},
            "features has 6 rows, expected at most one for each of 5 nodes; pass nodes=",
        ),
        ({"graph": ["Bonn", "Bonn"]}, "graph names 'Bonn' twice, expected different names"),
        ({"graph": "Bonn"}, "graph = 'Bonn', expected a graph, or a list with the names of its nodes in order"),
        ({"graph": [0.5]}, "expected a graph, or a list with the names"),
        ({"graph": ["a", ""]}, "a name in graph = '', expected a string"),
        ({"graph": 7}, "graph = 7, expected a graph, or a list"),
    ],
    ids=lambda value: ascii(value)[:12],
)
def test_names_that_are_none(options, message):
    with pytest.raises(ProblemError, match=message):
        LeastSquares(ROWS, ANSWERS, **{"graph": NAMED, **options})
