"""A linear module is least squares: it walks the same nodes and reaches the same parameters, with every rule."""

import numpy as np
import pytest
import torch
from nets import BATCH, GRAPH, LOOP, SIZES, by_node, half_square, linear, same

import freewalk as fw
from freewalk.exchanges import Average, Gossip, Meet
from freewalk.objectives import LeastSquares
from freewalk.rules import SAG, SGD, AdaGrad, CombineFirst, GradientTracking, Momentum, VisitWeighted, Walkman
from freewalk.run import loop
from freewalk.runtimes import engine
from freewalk.runtimes.torch import learner, visits
from freewalk.schedules import Inverse
from freewalk.torch import TorchObjective

PROBLEM = LeastSquares.synthetic(GRAPH.n, dim=3, samples=SIZES, noise=0.3, heavy=1, heavy_variance=4.0, seed=2)
RULES = {
    "SGD": SGD(0.02),
    "SGD, unweighted, decaying": SGD(Inverse(0.05, scale=10, power=0.7), weighted=False),
    "SGD, local steps": SGD(0.02, local_steps=3),
    "SGD, sampled": SGD(0.02, sampled=True, local_steps=2),
    "SGD, average": SGD(0.02, average=True),
    "SGD, average of the last half": SGD(0.02, average="half"),
    "Momentum": Momentum(0.01, 0.7, local_steps=2),
    "AdaGrad": AdaGrad(0.1),
    "AdaGrad, at the nodes": AdaGrad(0.1, keeper="node"),
    "SAG": SAG(0.02),
    "VisitWeighted": VisitWeighted(0.02),
    "Walkman": Walkman(),
    "GradientTracking": GradientTracking(0.005),
    "CombineFirst": CombineFirst(0.01),
}


def twin(problem, **options):
    return TorchObjective(
        linear(problem.dim), half_square, by_node(problem.features, problem.targets, problem.nodes), **options
    )


TWIN = twin(PROBLEM, importance=PROBLEM.smoothness)
KERNEL = fw.designs.MHLJ(jump=0.3, stop=0.5, hops=3).kernel(GRAPH, PROBLEM.smoothness)
RUN = {"steps": 40, "every": 7, "seed": 3}


@pytest.mark.quick(*(f"{rule}-{('1', '8', '8 in a batch')[number % 3]}" for number, rule in enumerate(RULES)))
@pytest.mark.parametrize(("walks", "runtime"), [(1, LOOP), (8, LOOP), (8, BATCH)], ids=["1", "8", "8 in a batch"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_learns_what_it_learns_on_least_squares(rule, walks, runtime):
    expected = fw.learn(PROBLEM, KERNEL, rule, **RUN, walks=walks, runtime="reference")
    found = fw.learn(TWIN, KERNEL, rule, **RUN, walks=walks, runtime=runtime)
    assert not np.allclose(expected.data.final, 0)
    same(found, expected)


# In a loop all of them; to trace a batch takes time, and few of them differ there.
EXCHANGES = (Meet(), Average(every=3), None)
MIXING = {"SGD": SGD(0.02), "Momentum": Momentum(0.01, 0.7), "SAG": SAG(0.02), "Tracking": GradientTracking(0.002)}
MIXED = [(name, exchange, LOOP) for name in MIXING for exchange in EXCHANGES]
MIXED += [(name, Meet(), BATCH) for name in ("Momentum", "Tracking")]
NAMES = [f"{name}, {exchange}, {'batch' if runtime == BATCH else 'loop'}" for name, exchange, runtime in MIXED]


@pytest.mark.quick(*NAMES[::4], NAMES[-1])
@pytest.mark.parametrize(("name", "exchange", "runtime"), MIXED, ids=NAMES)
def test_tokens_mix_as_those_of_least_squares(name, exchange, runtime):
    rule, run = MIXING[name], RUN | {"walks": 2, "tokens": 3, "exchange": exchange}
    same(
        fw.learn(TWIN, KERNEL, rule, **run, runtime=runtime),
        fw.learn(PROBLEM, KERNEL, rule, **run, runtime="reference"),
    )


@pytest.mark.parametrize("runtime", [LOOP, BATCH], ids=["loop", "batch"])
@pytest.mark.parametrize("rule", [SGD(0.02), GradientTracking(0.005), CombineFirst(0.01)], ids=str)
def test_parked_tokens_gossip_as_those_of_least_squares(rule, runtime):
    parked = fw.designs.Stay().kernel(GRAPH)
    run = RUN | {"tokens": "nodes", "exchange": Gossip()}
    same(
        fw.learn(TWIN, parked, rule, **run, runtime=runtime),
        fw.learn(PROBLEM, parked, rule, **run, runtime="reference"),
    )


@pytest.mark.parametrize("tokens", [1, 2])
@pytest.mark.parametrize("runtime", [LOOP, BATCH], ids=["loop", "batch"])
def test_phases_change_kernels_rules_and_exchanges(runtime, tokens):
    other = fw.designs.Metropolis(power=0.5).kernel(GRAPH, PROBLEM.smoothness)
    mixing = Average(every=2) if tokens > 1 else None
    phases = [
        fw.Phase(9, KERNEL, SGD(0.02, average=True)),
        fw.Phase(15, other, SGD(0.02, average=True), mixing),
        fw.Phase(24, KERNEL, SAG(0.02)),
        fw.Phase(None, other, Momentum(0.01, 0.5)),
    ]
    run = RUN | {"walks": 3, "tokens": tokens}
    same(
        fw.learn(TWIN, phases, **run, runtime=runtime),
        fw.learn(PROBLEM, phases, **run, runtime="reference"),
    )


RELAYED = (SGD(0.02), SGD(0.02, sampled=True), Momentum(0.01, 0.5), SAG(0.02), SGD(0.02, average=True))
WEIGHED = [(rule, LOOP, weight_by) for rule in RELAYED for weight_by in ("node", "sample")]
WEIGHED += [(rule, BATCH, "sample") for rule in RELAYED[1:4]]


@pytest.mark.parametrize(("rule", "runtime", "weight_by"), WEIGHED, ids=str)
def test_relays_and_weights_by_sample(rule, runtime, weight_by):
    kept = ~np.isin(PROBLEM.nodes, (0, 3, GRAPH.n - 1))
    features, targets, nodes = PROBLEM.features[kept], PROBLEM.targets[kept], PROBLEM.nodes[kept]
    options = {"weight_by": weight_by, "relays": (0, 3, GRAPH.n - 1), "graph": GRAPH}
    problem = LeastSquares(features, targets, nodes, **options)
    objective = TorchObjective(linear(3), half_square, by_node(features, targets, nodes), **options)
    np.testing.assert_allclose(objective.node_weights, problem.node_weights)
    kernel = fw.designs.MHLJ(jump=0.3, stop=0.5, hops=3).kernel(GRAPH, problem.smoothness)
    run = RUN | {"walks": 5}
    same(
        fw.learn(objective, kernel, rule, **run, runtime=runtime),
        fw.learn(problem, kernel, rule, **run, runtime="reference"),
    )


def test_a_start_a_first_model_and_a_precision_of_ones_own():
    initial = np.random.default_rng(1).standard_normal((4, 3))
    run = RUN | {"walks": 4, "initial": initial, "start": [0, 1, 2, 7]}
    expected = fw.learn(PROBLEM, KERNEL, SGD(0.02), **run, runtime="reference")
    same(fw.learn(TWIN, KERNEL, SGD(0.02), **run, runtime=BATCH), expected)
    single = fw.learn(TWIN, KERNEL, SGD(0.02), **run, runtime=BATCH, precision="float32")
    assert single.data.final.dtype == np.float32
    np.testing.assert_allclose(single.data.final, expected.data.final, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(2 * single.data.bytes, expected.data.bytes)
    of_single = TorchObjective(linear(3, torch.float32), half_square, TWIN_DATA, importance=PROBLEM.smoothness)
    assert of_single.precision == "float32"
    same(fw.learn(of_single, KERNEL, SGD(0.02), **run, runtime=LOOP, precision="float64"), expected)


TWIN_DATA = by_node(PROBLEM.features, PROBLEM.targets, PROBLEM.nodes)


def test_one_walk_of_four_tokens():
    run = RUN | {"walks": 1, "tokens": 4}
    same(
        fw.learn(TWIN, KERNEL, SGD(0.02), **run),
        fw.learn(PROBLEM, KERNEL, SGD(0.02), **run, runtime="reference"),
    )


BATCHED = {
    "SGD": SGD(0.02),
    "SGD, local steps": SGD(0.02, local_steps=3),
    "SGD, sampled": SGD(0.02, sampled=True),
    "SAG": SAG(0.02),
    "Walkman": Walkman(30.0),
}


@pytest.mark.quick(*(f"{rule}-{(2, 3, 1000)[number % 3]}" for number, rule in enumerate(BATCHED)))
@pytest.mark.parametrize("batch", [2, 3, 1000])
@pytest.mark.parametrize("rule", BATCHED.values(), ids=BATCHED)
def test_minibatches_are_those_of_the_reference(rule, batch):
    """Nodes have 1 to 5 samples: fewer than a batch, as many and more."""
    objective = twin(PROBLEM, importance=PROBLEM.smoothness, batch=batch)
    run = RUN | {"steps": 20, "walks": 2}
    expected = fw.learn(objective, KERNEL, rule, **run, runtime="reference")
    for runtime in (LOOP, BATCH):
        same(fw.learn(objective, KERNEL, rule, **run, runtime=runtime), expected)


@pytest.mark.parametrize("runtime", [LOOP, BATCH], ids=["loop", "batch"])
def test_nothing_depends_on_how_a_run_is_cut(runtime, monkeypatch):
    objective = twin(PROBLEM, importance=PROBLEM.smoothness, batch=2)
    phases = [fw.Phase(11, KERNEL, SGD(0.02, local_steps=2)), fw.Phase(None, KERNEL, SAG(0.02), Meet())]
    run = RUN | {"walks": 2, "tokens": 2}
    whole = fw.learn(objective, phases, **run, runtime=runtime)
    for place, name, size in (
        (loop, "_CHUNK_STEPS", 1),
        (learner, "_DRAWN", 50),
        (engine, "_STRETCH", 13),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, size)
            cut = fw.learn(objective, phases, **run, runtime=runtime)
        for measure in ("loss", "final", "consensus", "messages", "bytes", "visits"):
            np.testing.assert_array_equal(cut.data[measure], whole.data[measure], err_msg=f"{name}={size}: {measure}")


def test_large_models_are_updated_block_by_block(monkeypatch):
    whole = fw.learn(TWIN, KERNEL, Momentum(0.01), **RUN, walks=2, runtime=LOOP)
    monkeypatch.setattr(visits, "_FLAT", 0)
    monkeypatch.setattr(visits, "_BLOCK", 2)
    parts = fw.learn(TWIN, KERNEL, Momentum(0.01), **RUN, walks=2, runtime=LOOP)
    np.testing.assert_array_equal(parts.data.final, whole.data.final)


def test_the_walks_of_a_part_keep_their_numbers():
    """A state that begins with walk 2 draws what walks 2 and 3 draw in the whole."""
    from freewalk.jobs import arguments
    from freewalk.runtimes import Job, State

    objective = twin(PROBLEM, importance=PROBLEM.smoothness, batch=2)
    job = Job(objective, arguments.phases(KERNEL, SGD(0.02, local_steps=2), objective), 5)
    finals = []
    for first, last in ((0, 4), (2, 4)):
        state = State.begin(job, np.arange(4, dtype=np.int32), np.zeros((4, 3)))
        part = state.part(first, last)
        engine = LOOP.engine(job)
        engine.advance(part, 20, np.array([20]))
        engine.settle(part)
        finals.append(part.models)
    np.testing.assert_array_equal(finals[1], finals[0][2:])


class Solved(TorchObjective):
    """One whose optimum is known: a comparison counts until a multiple of it."""

    def optimum(self):
        return PROBLEM.optimum()


def test_a_comparison_runs_modules_on_their_runtime_in_their_precision():
    data = by_node(PROBLEM.features.astype(np.float32), PROBLEM.targets.astype(np.float32), PROBLEM.nodes)
    objective = Solved(linear(PROBLEM.dim, torch.float32), half_square, data)
    methods = [fw.baselines.centralized_sgd(0.05), fw.baselines.gradient_tracking(0.05)]
    options = {"goal": 2.0, "walks": 2, "most": 4000, "seed": 1, "keep_steps": True}
    found = fw.compare(objective, GRAPH, methods, **options)
    assert objective.known_smoothness is None  # steps are kept, and no design needs it
    assert found.record.data.final.dtype == np.float32
    parts = found.record.provenance["parts"].values()
    assert [part["runtime"] for part in parts] == ["Torch(device='cpu', vectorize=None)"] * 2
    wide = fw.compare(PROBLEM, GRAPH, methods, **options)
    for row, same_row in zip(found.rows, wide.rows, strict=True):
        assert row.reached
        assert row.to_goal["updates"].value == pytest.approx(same_row.to_goal["updates"].value, rel=0.01)
