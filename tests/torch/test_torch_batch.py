"""Rows in one batch and rows one after the other: the same models, and a word about which it was and why."""

import math
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from nets import BATCH, GRAPH, LOOP, Items, classes, normed, objective_of, perceptron, uniform
from torch import nn
from torch.fx import GraphModule

import freewalk as fw
from freewalk.errors import FreewalkError, LoopWarning
from freewalk.exchanges import Average
from freewalk.jobs import arguments
from freewalk.runtimes import Job, State
from freewalk.torch import Optimizer, models

KERNEL = uniform()
UNEVEN = classes([2, 9, 4, 7] * 2, dim=16, seed=3)
PICTURES = classes([2, 9, 4, 7] * 2, dim=64, seed=3)
# Differences of rounding grow where a model is unstable. Runs are short and steps small, so that a gradient which is
# wrong by a thousandth would show, and a rounding does not: each step changes the models far more than the tolerance.
RUN = {"steps": 25, "every": 5, "walks": 6, "seed": 1}
MODULES = {
    "softmax": (models.softmax(16, 3), UNEVEN),
    "perceptron": (models.perceptron(16, 3, (12,)), UNEVEN),
    "convolutional": (models.convolutional((1, 8, 8), 3, (2, 3)), PICTURES),
}


def both(objective, rule, **options):
    records = [fw.learn(objective, KERNEL, rule, **(RUN | options), runtime=runtime) for runtime in (LOOP, BATCH)]
    assert records[0].provenance["learned"].endswith("one after the other: as asked for")
    assert records[1].provenance["learned"].endswith("in one batch")
    return records


def close(records, relative):
    looped, batched = records
    moved = np.abs(looped.data.final.values - looped.data.final.values.mean()).max()
    for name in ("messages", "bytes", "visits"):
        np.testing.assert_array_equal(looped.data[name], batched.data[name])
    np.testing.assert_allclose(batched.data.final, looped.data.final, rtol=0, atol=relative * max(moved, 1.0))
    np.testing.assert_allclose(batched.data.loss, looped.data.loss, rtol=10 * relative)
    np.testing.assert_allclose(batched.data.accuracy, looped.data.accuracy, atol=0.1)


@pytest.mark.quick("softmax-all samples", "convolutional-minibatches")
@pytest.mark.parametrize("batch", [None, 3], ids=["all samples", "minibatches"])
@pytest.mark.parametrize("name", MODULES)
def test_models_are_the_same(name, batch):
    module, data = MODULES[name]
    objective = objective_of(module, data, batch=batch)
    records = both(objective, fw.SGD(0.02))
    close(records, 1e-5)
    moved = np.abs(records[0].data.final.values - objective.first_model())
    assert (moved.max(axis=1) > 1e-2).all()  # they have learned far more than the tolerance


@pytest.mark.quick("perceptron-minibatches", "convolutional-all samples")
@pytest.mark.parametrize("batch", [None, 3], ids=["all samples", "minibatches"])
@pytest.mark.parametrize("name", MODULES)
def test_batches_are_traced(name, batch):
    """What cannot be traced is called as it is, which is slower and says nothing; none of these is such a module."""
    module, data = MODULES[name]
    objective = objective_of(module, data, batch=batch)
    job = Job(objective, arguments.phases(KERNEL, fw.SGD(0.02), objective), 1, objective.precision)
    first = np.repeat(objective.first_model()[None], RUN["walks"], axis=0)
    state, engine = State.begin(job, np.arange(RUN["walks"], dtype=np.int32), first), BATCH.engine(job)
    engine.advance(state, 10, np.array([10]))
    traced = engine.learner.batch.traced
    shapes = {shape for shape, _ in traced}
    assert (RUN["walks"], objective.dim) in shapes  # not only the trial on a few nodes
    assert all(isinstance(function, GraphModule) for function in traced.values()), traced


RULES = {
    "SGD": Optimizer("SGD", {"lr": 0.02}),
    "momentum": Optimizer("SGD", {"lr": 0.01, "momentum": 0.9}),
    "momentum that stays": Optimizer("SGD", {"lr": 0.01, "momentum": 0.9}, state="stays"),
    "Adam": Optimizer("Adam", {"lr": 0.01}),
    "Adam that stays": Optimizer("Adam", {"lr": 0.01}, state="stays"),
    "Adam, forgotten": Optimizer("Adam", {"lr": 0.01, "eps": 1e-2}, state="resets", local_steps=2),
    "RMSprop": Optimizer("RMSprop", {"lr": 0.01}),
    "Momentum of ours": fw.rules.Momentum(0.005),
    "mean": fw.SGD(0.02, average=True),
    "one sample": fw.SGD(0.02, sampled=True),
    "SAG": fw.rules.SAG(0.02),
}


@pytest.mark.quick("momentum that stays", "Adam", "mean", "one sample", "SAG")
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_is_the_same(rule):
    """In double precision, where Adam, which divides by roots of squares near 0, does not blow roundings up."""
    objective = objective_of(
        perceptron(16, kind=torch.float64), classes([2, 9, 4, 7] * 2, 16, kind=torch.float64), batch=3
    )
    close(both(objective, rule), 1e-9)


def test_every_rule_is_the_same_in_single_precision():
    objective = objective_of(perceptron(16), UNEVEN, batch=3)
    for name in ("momentum", "Adam that stays", "SAG"):
        close(both(objective, RULES[name], steps=10), 1e-5)


def test_tokens_relays_and_weights_in_a_batch():
    data = [*classes([2, 9, 4, 7, 3, 5], 16, seed=3), None, None]
    objective = objective_of(perceptron(16), data, relays=(6, 7), weight_by="sample")
    records = both(objective, fw.rules.Momentum(0.01), walks=2, tokens=3, exchange=Average(every=4))
    close(records, 1e-5)
    np.testing.assert_allclose(records[0].data.consensus, records[1].data.consensus, rtol=1e-3, atol=1e-9)


@dataclass(frozen=True)
class Careful(fw.rules.Rule):
    """Is not defined for a step size of 0."""

    step: float = 0.01

    @staticmethod
    def update(visit, numbers, x, gradient):
        return x - (visit.rate - 0.0 * math.log(visit.rate)) * gradient


def test_a_rule_without_vectors_is_not_asked_at_a_relay():
    data = [*classes([2, 9, 4, 7, 3, 5], 16, seed=3), None, None]
    objective = objective_of(perceptron(16), data, relays=(6, 7))
    record = fw.learn(objective, KERNEL, Careful(), runtime=LOOP, **RUN)
    assert np.isfinite(record.data.loss).all()


def test_a_batch_is_taken_where_it_is_worth_it():
    objective = objective_of(perceptron(16), UNEVEN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = fw.learn(objective, KERNEL, fw.SGD(0.02), steps=2, walks=3)
        many = fw.learn(objective, KERNEL, fw.SGD(0.02), steps=2, walks=4)
    assert few.provenance["learned"] == "3 rows, one after the other: so few are as quick"
    assert many.provenance["learned"] == "4 rows in one batch"


class Branching(nn.Module):
    """Looks at a number before it goes on."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 3)

    def forward(self, inputs):
        outputs = self.layer(inputs)
        return outputs if float(outputs.detach().sum()) > 0 else 2 * outputs


def dropout():
    return nn.Sequential(nn.Linear(16, 4), nn.Dropout(0.5), nn.Linear(4, 3))


def mixing(outputs, targets):
    """Not a mean over samples: the loss of the mean output."""
    return nn.functional.mse_loss(outputs.mean(dim=0), targets.float().mean().expand(3))


WEIGHTED = partial(nn.functional.cross_entropy, weight=torch.tensor([1.0, 5.0, 20.0]))
MEAN = "its loss at a node is not the mean of the losses of single samples"
WHY = {
    "batch norm": (lambda: objective_of(normed(16), UNEVEN), "its buffers change while it learns, as those of"),
    "dropout": (lambda: objective_of(dropout(), UNEVEN), "it draws random numbers while it learns, as dropout does"),
    "items": (
        lambda: objective_of(perceptron(16), [Items(*pair) for pair in UNEVEN]),
        "a dataset gives its samples one by one",
    ),
    "weighted classes": (lambda: objective_of(perceptron(16), UNEVEN, WEIGHTED), MEAN),
    "sum": (lambda: objective_of(perceptron(16), UNEVEN, nn.CrossEntropyLoss(reduction="sum")), MEAN),
    "mixing": (lambda: objective_of(perceptron(16), UNEVEN, mixing), MEAN),
    "branching": (lambda: objective_of(Branching(), UNEVEN), "it cannot be vectorized"),
}  # fmt: skip


@pytest.mark.parametrize("case", WHY)
def test_where_a_batch_cannot_be_a_warning_and_the_record_say_why(case):
    make, why = WHY[case]
    objective = make()
    run = {"steps": 3, "every": 3, "walks": 4}
    with pytest.warns(LoopWarning) as caught:
        record = fw.learn(objective, KERNEL, fw.SGD(0.01), **run)
    assert why in str(caught[0].message)
    assert "use runtime=fw.runtimes.Torch(vectorize=False)" in str(caught[0].message)
    assert caught[0].filename == __file__  # whose call it was
    assert record.provenance["learned"].startswith(f"4 rows, one after the other: {why}")
    with pytest.raises(FreewalkError, match=f"cannot be run in one batch, as vectorize=True asks: {why}"):
        fw.learn(objective, KERNEL, fw.SGD(0.01), **run, runtime=BATCH)
    quiet = fw.learn(objective, KERNEL, fw.SGD(0.01), **run, runtime=LOOP)
    np.testing.assert_array_equal(quiet.data.final, record.data.final)


def one_class_each():
    """Four nodes of one class each, those with the fewest and the most samples among them, and others with all."""
    data = classes([1, 5, 5, 9, 5, 5, 5, 20], 16, seed=3)
    for node in (0, 3, 7):
        data[node] = (data[node][0], torch.zeros_like(data[node][1]))
    data[1] = (data[1][0], torch.ones_like(data[1][1]))
    return data


@pytest.mark.parametrize("loss", ["weighted", "ignoring"])
def test_a_loss_that_is_a_mean_at_some_nodes_only(loss):
    """Nodes of one class do not show that classes have weights; samples that are ignored may be anywhere."""
    data = one_class_each()
    functions = {"weighted": WEIGHTED, "ignoring": nn.functional.cross_entropy}
    if loss == "ignoring":
        data[5] = (data[5][0], torch.tensor([-100, 0, 1, -100, 2]))
    objective = objective_of(perceptron(16), data, functions[loss], metrics={})
    with pytest.warns(LoopWarning, match=MEAN):
        record = fw.learn(objective, KERNEL, fw.SGD(0.01), steps=3, walks=4)
    assert np.isfinite(record.data.loss).all()


def test_a_module_whose_eval_mode_cannot_be_batched():
    class Split(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(16, 3)

        def forward(self, inputs):
            outputs = self.layer(inputs)
            return outputs if self.training or float(outputs.sum()) > 0 else 2 * outputs

    objective = objective_of(Split(), UNEVEN)
    with pytest.warns(LoopWarning, match="it cannot be vectorized"):
        fw.learn(objective, KERNEL, fw.SGD(0.01), steps=3, walks=4)


def test_a_loss_of_one_number_in_a_vector():
    loss = lambda outputs, targets: nn.functional.cross_entropy(outputs, targets).reshape(1)  # noqa: E731
    close(both(objective_of(perceptron(16), UNEVEN, loss), fw.SGD(0.02)), 1e-5)


def test_nodes_of_equal_size_need_no_padding():
    """A norm over the samples of a batch, without statistics, is the same in a batch if no sample is filled in."""
    module = normed(16, track_running_stats=False)
    close(both(objective_of(module, classes([5] * GRAPH.n, 16)), fw.SGD(0.02)), 1e-4)
