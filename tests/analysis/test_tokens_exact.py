"""Exact curves and limits of several tokens: against all that can happen, against runs, and against each other."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

import freewalk as fw
from freewalk.analysis import exact_curve, steady_state
from freewalk.analysis.learning.race import race
from freewalk.analysis.learning.tokens import settling_step
from freewalk.designs import MHLJ, Centralized, FromMatrix, Metropolis, SimpleWalk, Stay
from freewalk.errors import AnalysisError, FreewalkError
from freewalk.exchanges import Average, Gossip, Meet
from freewalk.exchanges.exchange import Exchange, Gathering

MEASURES = ("loss", "mse", "distance", "consensus")
THREE = fw.graphs.path(3)
EIGHT = fw.graphs.barabasi_albert(8, 2, seed=3)


@dataclass(frozen=True)
class Uneven(Exchange):
    """Weights whose columns do not add up to 1."""

    constant = True

    def weights(self, gathering):
        tokens = gathering.nodes.size
        weights = 0.5 * np.eye(tokens)
        weights[:, 0] += 0.5
        return weights


def problem_on(graph, **options):
    chosen = {"dim": 2, "heavy": 1, "heavy_variance": 4.0, "noise": 0.4, "shift": 0.3, "seed": 2, **options}
    return fw.objectives.LeastSquares.synthetic(graph.n, **chosen)


def enumerated(problem, kernel, rule, starts, steps, exchange=None):
    """Expected measures, by going through all paths and all samples; `starts` are probable nodes of the tokens."""
    matrix, best = kernel.matrix().toarray(), problem.optimum()
    weights = kernel.weights if rule.weighted else np.ones(problem.n)
    worlds = [(1.0 / len(starts), nodes, np.zeros((len(nodes), problem.dim))) for nodes in starts]
    curve = {name: [] for name in MEASURES}

    def learned(node, x, rate, left):
        """Pairs of a probability and the model after the local steps."""
        if left == 0:
            return [(1.0, x)]
        several = rule.sampled and problem.samples(node) > 1
        choices = range(problem.samples(node)) if several else [None]
        after = [x - rate * weights[node] * problem.gradient(node, x, choice) for choice in choices]
        return [(p / len(after), last) for model in after for p, last in learned(node, model, rate, left - 1)]

    def measure(worlds):
        total = dict.fromkeys(MEASURES, 0.0)
        for chance, _, models in worlds:
            mean = models.mean(axis=0)
            total["loss"] += chance * problem.loss(mean)
            total["mse"] += chance * problem.mse(mean)
            total["distance"] += chance * np.sum((mean - best) ** 2)
            total["consensus"] += chance * np.mean(np.sum((models - mean) ** 2, axis=1))
        for name, value in total.items():
            curve[name].append(value)

    measure(worlds)
    for step in range(1, steps + 1):
        rate, later = float(rule.rates(np.array([step - 1]))[0]), []
        for chance, nodes, models in worlds:
            ways = [learned(node, x, rate, rule.local_steps) for node, x in zip(nodes, models, strict=True)]
            for way in product(*ways):
                mixed = np.array([x for _, x in way])
                if exchange is not None and step % exchange.every == 0:
                    mixed = exchange.weights(Gathering(step, np.array(nodes), kernel.graph, None)) @ mixed
                for ends in product(*(np.flatnonzero(matrix[node]) for node in nodes)):
                    moved = np.prod([matrix[node, end] for node, end in zip(nodes, ends, strict=True)])
                    later.append((chance * np.prod([p for p, _ in way]) * moved, ends, mixed))
        worlds = later
        measure(worlds)
    return {name: np.array(values) for name, values in curve.items()}


def check_curve(curve, expected):
    for name in MEASURES:
        np.testing.assert_allclose(curve[name].values, expected[name], rtol=1e-10, atol=1e-13, err_msg=name)


# Against all that can happen.


@pytest.mark.parametrize(
    "design", [SimpleWalk(), Metropolis(1.0), MHLJ(0.3, 0.5, 2), Stay(), Centralized(1.0)], ids=str
)
def test_independent_tokens(design):
    problem = problem_on(THREE)
    kernel, rule = design.kernel(THREE, problem.smoothness), fw.SGD(fw.schedules.Inverse(0.2, scale=2))
    curve = exact_curve(problem, kernel, rule, steps=3, tokens=2, start=[0.5, 0.5, 0.0])
    check_curve(curve, enumerated(problem, kernel, rule, list(product([0, 1], [0, 1])), 3))


@pytest.mark.parametrize("options", [{}, {"local_steps": 2}, {"weighted": False}], ids=str)
@pytest.mark.parametrize(("tokens", "every"), [(2, 1), (2, 2), (3, 1)])
def test_tokens_that_a_server_draws_and_averages(tokens, every, options):
    problem = problem_on(THREE, ridge=0.1)
    kernel, rule = Centralized(0.5).kernel(THREE, problem.smoothness), fw.SGD(0.1, **options)
    steps = 3 if tokens == 2 else 2
    curve = exact_curve(problem, kernel, rule, steps=steps, tokens=tokens, exchange=Average(every), start=1)
    check_curve(curve, enumerated(problem, kernel, rule, [(1,) * tokens], steps, Average(every)))


def test_drawn_tokens_with_sampled_gradients():
    problem = problem_on(THREE, samples=2)
    kernel, rule = Centralized().kernel(THREE), fw.SGD(fw.schedules.Inverse(0.1, scale=3), sampled=True)
    curve = exact_curve(problem, kernel, rule, steps=2, tokens=2, exchange=Average(), start=[1.0, 0.0, 0.0])
    check_curve(curve, enumerated(problem, kernel, rule, [(0, 0)], 2, Average()))


@pytest.mark.quick("1-3-None", "1-3-Average(every=2)", "2-2-Average(every=1)")
@pytest.mark.parametrize("exchange", [None, Average(), Average(2)], ids=repr)
@pytest.mark.parametrize(("local_steps", "steps"), [(1, 3), (2, 2)])
def test_parked_tokens_with_sampled_gradients(exchange, local_steps, steps):
    problem = problem_on(THREE, samples=2, ridge=0.1)
    kernel, rule = Stay().kernel(THREE), fw.SGD(0.05, sampled=True, local_steps=local_steps)
    curve = exact_curve(problem, kernel, rule, steps=steps, tokens="nodes", exchange=exchange)
    check_curve(curve, enumerated(problem, kernel, rule, [(0, 1, 2)], steps, exchange))
    some = exact_curve(problem, kernel, rule, steps=steps, tokens=2, exchange=exchange, start=[2, 2])
    check_curve(some, enumerated(problem, kernel, rule, [(2, 2)], steps, exchange))


# Against runs: what draws nothing exactly, the rest within its standard errors.


def reference(problem, kernel, rule, steps, walks=1, **options):
    return fw.learn(problem, kernel, rule, steps=steps, walks=walks, runtime="reference", seed=5, **options).data


EXCHANGES = [None, Gossip(), Gossip(every=3), Average(2), Average(down=False), Uneven()]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=repr)
@pytest.mark.parametrize("data", [{}, {"samples": 2, "ridge": 0.1}], ids=str)
def test_parked_tokens_with_whole_gradients_are_the_run(exchange, data):
    problem, kernel = problem_on(EIGHT, **data), Stay().kernel(EIGHT)
    rule, options = fw.SGD(fw.schedules.Inverse(0.1, scale=4), local_steps=2), {"tokens": "nodes", "exchange": exchange}
    curve = exact_curve(problem, kernel, rule, steps=7, every=2, **options)
    run = reference(problem, kernel, rule, 7, every=2, **options)
    for name in (*MEASURES, "messages", "probes", "bytes"):
        np.testing.assert_allclose(curve[name].values, run[name].values[0], rtol=1e-11, atol=1e-14, err_msg=name)
    np.testing.assert_array_equal(curve.updates, run.updates)
    np.testing.assert_array_equal(curve.visits, run.visits[0])
    assert curve.attrs["label"] == run.attrs["label"]


def test_phases_relays_and_what_no_feature_sees():
    features = np.zeros((4, 3))
    features[:, :2] = np.random.default_rng(1).standard_normal((4, 2))
    ring, targets = fw.graphs.ring(5), [1.0, 2.0, -1.0, 0.5]
    problem = fw.objectives.LeastSquares(features, targets, nodes=[0, 0, 2, 4], graph=ring, relays=True)
    kernel = Stay().kernel(ring)
    phases = [
        fw.Phase(3, kernel, fw.SGD(0.1), Gossip()),
        fw.Phase(8, kernel, fw.SGD(0.2, local_steps=2), Average(2)),
        fw.Phase(None, kernel, fw.SGD(0.1)),
    ]
    curve = exact_curve(problem, phases, steps=12, initial=[0.0, 1.0, 2.0], tokens="nodes")
    run = reference(problem, phases, None, 12, initial=[0.0, 1.0, 2.0], tokens="nodes")
    for name in (*MEASURES, "messages", "bytes"):
        np.testing.assert_allclose(curve[name].values, run[name].values[0], rtol=1e-11, atol=1e-14, err_msg=name)
    np.testing.assert_array_equal(curve.updates, run.updates)


CASES = {
    "independent": (MHLJ(0.4, 0.5, 2, corrected=True), {"local_steps": 2}, {"tokens": 3, "start": 1}),
    "drawn": (Centralized(1.0), {"sampled": True}, {"tokens": 3, "start": 1, "exchange": Average(2, down=False)}),
    "uniform start": (Centralized(), {}, {"tokens": 2, "start": "uniform", "exchange": Average(3)}),
    "parked": (Stay(), {"sampled": True}, {"tokens": "nodes", "exchange": Average(2)}),
}


@pytest.mark.parametrize("case", CASES)
def test_curves_are_the_means_of_runs(case):
    """Within five standard errors at each of 8 checkpoints, for 7 numbers: wrong with another seed once in 30,000."""
    design, rule, options = CASES[case]
    problem = problem_on(EIGHT, samples=2)
    kernel, rule = design.kernel(EIGHT, problem.smoothness), fw.SGD(0.02, **rule)
    curve = exact_curve(problem, kernel, rule, steps=7, **options)
    walks = 150
    run = reference(problem, kernel, rule, 7, walks, **options)
    for name in (*MEASURES, "messages", "probes", "bytes"):
        values = run[name].values.astype(float)
        error = values.std(axis=0, ddof=1) / np.sqrt(walks)
        off = np.abs(values.mean(axis=0) - curve[name].values)
        assert (off <= 5 * error + 1e-12 * np.abs(curve[name].values) + 1e-14).all(), name
    np.testing.assert_array_equal(curve.updates, run.updates)
    off = np.abs(run.visits.mean("walk").values - curve.visits.values)
    assert (off <= 5 * run.visits.std("walk", ddof=1).values / np.sqrt(walks) + 1e-9).all()
    assert curve.visits.sum() == pytest.approx(run.visits.sum() / walks)


# Against each other.


def test_one_token_is_what_it_was():
    problem = problem_on(EIGHT)
    kernel, rule = Metropolis(1.0).kernel(EIGHT, problem.smoothness), fw.SGD(0.05)
    old, one = exact_curve(problem, kernel, rule, steps=50), exact_curve(problem, kernel, rule, steps=50, tokens=1)
    assert old.identical(one)
    assert "consensus" not in one
    many = exact_curve(problem, kernel, rule, steps=50, tokens=10**9)  # the mean of all is certain
    walk = steady_state(problem, kernel, rule)
    assert many.messages.values == pytest.approx(1e9 * one.messages.values)
    assert steady_state(problem, kernel, rule, tokens=10**9).excess == pytest.approx(walk.bias, rel=1e-4, abs=1e-9)


def test_equal_weights_are_an_average_and_that_is_gradient_descent():
    graph = fw.graphs.complete(6)
    problem, kernel = problem_on(graph), Stay().kernel(graph)
    step, rule = 0.1, fw.SGD(0.1)
    gossip = exact_curve(problem, kernel, rule, steps=30, tokens="nodes", exchange=Gossip(np.full((6, 6), 1 / 6)))
    average = exact_curve(problem, kernel, rule, steps=30, tokens="nodes", exchange=Average())
    x, losses = np.zeros(problem.dim), []
    for _ in range(31):
        losses.append(problem.loss(x))
        x = x - step * np.mean([problem.gradient(v, x) for v in range(6)], axis=0)
    np.testing.assert_allclose(gossip.loss, losses, rtol=1e-12)
    np.testing.assert_allclose(average.loss, losses, rtol=1e-12)
    assert average.consensus.values.max() < 1e-30
    assert gossip.messages[-1] == 30 * 6 * 5


def test_the_mean_model_of_gossip_is_the_expected_model_of_a_walk():
    """Both follow m⁺(u) = Σ_v W(u, v) (B_v m(v) + p b_v), with p = 1/n."""
    problem, gossip = problem_on(EIGHT), Gossip()
    walk = FromMatrix(gossip.on(EIGHT).toarray().T).kernel(EIGHT)
    limit = steady_state(problem, Stay().kernel(EIGHT), fw.SGD(0.05), tokens="nodes", exchange=gossip)
    one = steady_state(problem, walk, fw.SGD(0.05))
    assert limit.model == pytest.approx(one.model, rel=1e-9)
    assert limit.excess == pytest.approx(one.bias, rel=1e-9)


LIMITS = {
    "independent": (MHLJ(0.4, 0.5, 2), {}, {"tokens": 4}),
    "gossip": (Stay(), {}, {"tokens": "nodes", "exchange": Gossip()}),
    "gossip, local steps": (Stay(), {"local_steps": 2}, {"tokens": "nodes", "exchange": Gossip(every=3)}),
    "FedAvg": (Stay(), {"local_steps": 3}, {"tokens": "nodes", "exchange": Average(2)}),
    "FedAvg, sampled": (Stay(), {"sampled": True, "local_steps": 2}, {"tokens": "nodes", "exchange": Average(2)}),
    "minibatch": (Centralized(1.0), {}, {"tokens": 3, "exchange": Average()}),
    "minibatch, sampled": (Centralized(), {"sampled": True, "local_steps": 2}, {"tokens": 3, "exchange": Average(3)}),
}


@pytest.mark.quick("independent", "gossip", "FedAvg", "minibatch, sampled")
@pytest.mark.parametrize("case", LIMITS)
def test_the_steady_state_is_the_end_of_the_curve(case):
    design, rule, options = LIMITS[case]
    problem = problem_on(EIGHT, samples=2, ridge=0.05)
    kernel, rule = design.kernel(EIGHT, problem.smoothness), fw.SGD(0.02, **rule)
    limit = steady_state(problem, kernel, rule, **options)
    end = exact_curve(problem, kernel, rule, steps=6000, every=6000, **options)
    for name in MEASURES:
        assert getattr(limit, name) == pytest.approx(float(end[name][-1]), rel=1e-9, abs=1e-14), name
    assert limit.bias + limit.variance == pytest.approx(limit.excess, rel=1e-8, abs=1e-14)
    gap = problem.loss(limit.model) - problem.loss(problem.optimum())
    assert limit.bias == pytest.approx(gap, rel=1e-7, abs=1e-14)
    if kernel.label == "Stay()" and not rule.sampled:
        assert abs(limit.variance) < 1e-15


def test_decentralized_sgd_ends_at_its_steady_state():
    graph = fw.graphs.ring(6)
    problem, method = problem_on(graph), fw.baselines.decentralized_sgd(0.15)
    kernel = method.kernel(graph, problem)
    run = method.learn(problem, graph, steps=600, every=600, runtime="reference").data
    limit = steady_state(problem, kernel, method.rule, tokens=method.tokens, exchange=method.exchange)
    for name in MEASURES:
        assert float(run[name][0, -1]) == pytest.approx(getattr(limit, name), rel=1e-9)
    assert limit.excess > 1e-4
    assert limit.variance == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("case", LIMITS)
def test_the_settling_step_settles_there(case):
    design, rule, options = LIMITS[case]
    problem = problem_on(EIGHT, samples=2, heavy_variance=40.0, shift=0.0)
    kernel = design.kernel(EIGHT, problem.smoothness)
    small = 1e-6 if case == "gossip" else 1e-3
    if case == "independent":
        kernel = Metropolis().kernel(EIGHT)  # no bias, which no step gets below
    settle = small * problem.loss(problem.optimum())
    step = settling_step(problem, kernel, fw.SGD(1.0, **rule), settle, **options)
    limit = steady_state(problem, kernel, fw.SGD(step, **rule), **options)
    assert limit.excess == pytest.approx(settle, rel=1e-2)


def test_the_settling_step_of_one_token_is_that_of_a_race():
    problem = problem_on(EIGHT)
    kernel, best = Metropolis().kernel(EIGHT), problem.loss(problem.optimum())
    step = settling_step(problem, kernel, fw.SGD(1.0), best / 50)
    assert step == race(problem, kernel, settle=best / 50, reach=best / 2).step
    with pytest.raises(AnalysisError, match="settle = -1"):
        settling_step(problem, kernel, fw.SGD(1.0), -1)


def test_divergence_is_infinite_in_a_curve_and_refused_by_a_limit():
    problem, stay = problem_on(EIGHT), Stay().kernel(EIGHT)
    for exchange, kernel, tokens in (
        (Gossip(), stay, "nodes"),
        (Average(), stay, "nodes"),
        (Average(), Centralized().kernel(EIGHT), 3),
    ):
        options = {"tokens": tokens, "exchange": exchange}
        curve = exact_curve(problem, kernel, fw.SGD(50.0), steps=2000, every=2000, **options)
        assert curve.loss[-1] == np.inf
        with pytest.raises(AnalysisError, match="beyond the largest stable one"):
            steady_state(problem, kernel, fw.SGD(50.0), **options)


# What is refused.

STAYING, WALKING = Stay().kernel(EIGHT), SimpleWalk().kernel(EIGHT)
SAMPLED = fw.SGD(0.1, sampled=True)
REFUSED = {
    "nodes that move": (WALKING, fw.SGD(0.1), {"tokens": "nodes"}, "the same distribution"),
    "Meet": (WALKING, fw.SGD(0.1), {"tokens": 3, "exchange": Meet()}, r"Meet\(every=1\) mixes .* walks=1000"),
    "Meet, parked": (STAYING, fw.SGD(0.1), {"tokens": "nodes", "exchange": Meet()}, r"Meet\(every=1\) mixes"),
    "Average of walks": (WALKING, fw.SGD(0.1), {"tokens": 3, "exchange": Average()}, "walks=1000"),
    "Gossip, sampled": (STAYING, SAMPLED, {"tokens": "nodes", "exchange": Gossip()}, "sampled=False"),
    "momentum": (WALKING, fw.rules.Momentum(0.1), {"tokens": 3}, "simulate other rules"),
    "averaging": (STAYING, fw.SGD(0.1, average=True), {"tokens": "nodes", "exchange": Gossip()}, "without averaging"),
    "gradient tracking": (
        STAYING,
        fw.rules.GradientTracking(0.1),
        {"tokens": "nodes", "exchange": Gossip()},
        r"fw.learn\(..., walks=1\) is exact",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_recursion_follows_is_refused_by_name(case):
    kernel, rule, options, words = REFUSED[case]
    problem = problem_on(EIGHT, samples=2)
    with pytest.raises(AnalysisError, match=f"^exact_curve: .*{words}"):
        exact_curve(problem, kernel, rule, steps=5, **options)
    with pytest.raises(AnalysisError, match=f"^steady_state: .*{words}"):
        steady_state(problem, kernel, rule, **options)
    with pytest.raises(AnalysisError, match=f"^settling_step: .*{words}"):
        settling_step(problem, kernel, rule, 0.1, **options)


def test_starts_and_numbers_that_do_not_fit():
    problem, rule = problem_on(EIGHT), fw.SGD(0.1)
    with pytest.raises(AnalysisError, match="one node for each token"):
        exact_curve(problem, STAYING, rule, steps=5, tokens=3, exchange=Average())
    with pytest.raises(AnalysisError, match="each token draws its own node"):
        exact_curve(problem, WALKING, rule, steps=5, tokens=3, start=[0, 1, 2])
    assert "with a single token also several nodes" in " ".join(exact_curve.__doc__.split())
    with pytest.raises(FreewalkError, match='tokens="nodes"'):
        exact_curve(problem, STAYING, rule, steps=5, tokens=3, exchange=Gossip(), start=[0, 1, 2])
    for exchange in (Average(), Meet()):
        with pytest.raises(FreewalkError, match="there is one token"):
            exact_curve(problem, WALKING, rule, steps=5, exchange=exchange)
        with pytest.raises(FreewalkError, match="there is one token"):
            steady_state(problem, WALKING, rule, exchange=exchange)
    with pytest.raises(AnalysisError, match="1000000000 tokens and 2 features"):
        exact_curve(problem, Centralized().kernel(EIGHT), rule, steps=5, tokens=10**9, exchange=Average())
    with pytest.raises(FreewalkError, match="tokens = 0"):
        exact_curve(problem, WALKING, rule, steps=5, tokens=0)
    with pytest.raises(AnalysisError, match=r"^steady_state: kernel = \["):
        steady_state(problem, [fw.Phase(None, WALKING, rule)], rule, tokens=3)
    with pytest.raises(AnalysisError, match="depends on where each starts"):
        steady_state(problem, STAYING, rule, tokens="nodes")
    with pytest.raises(AnalysisError, match="until it is flat"):
        steady_state(problem, STAYING, rule, tokens="nodes", exchange=Uneven())
    wide = problem_on(EIGHT, dim=50, samples=8)
    with pytest.raises(AnalysisError, match="50 features"):
        steady_state(wide, Centralized().kernel(EIGHT), fw.SGD(0.001), tokens=3, exchange=Average())
