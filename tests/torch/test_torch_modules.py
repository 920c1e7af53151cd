"""Modules and data of every kind: what travels, what stays as it is, and that they learn."""

import copy

import numpy as np
import pytest
import torch
from nets import BATCH, GRAPH, LOOP, Items, classes, half_square, linear, normed, objective_of, perceptron, uniform
from torch import nn
from torch.utils.data import Subset, TensorDataset

import freewalk as fw
from freewalk.errors import LoopWarning, ProblemError
from freewalk.exchanges import Average
from freewalk.torch import Optimizer, TorchObjective

KERNEL = uniform()
RUN = {"steps": 20, "every": 10, "seed": 2}
DATA = classes([3] * GRAPH.n)


def along(module, data, path, step, loss=nn.functional.cross_entropy):
    """A module that learned along a path, by hand."""
    module = copy.deepcopy(module).train()
    optimizer = torch.optim.SGD([part for part in module.parameters() if part.requires_grad], lr=step)
    for node in path:
        optimizer.zero_grad()
        inputs, targets = data[node]
        loss(module(inputs), targets).backward()
        optimizer.step()
    return module


def learned(module, data=DATA, rule=None, **options):
    rule = fw.SGD(0.1, weighted=False) if rule is None else rule
    objective = objective_of(module, data)
    record = fw.learn(objective, KERNEL, rule, **RUN, paths=1, **options)
    return objective, record, record.data.path.values[0][:-1] if "path" in record.data else None


def agrees(objective, record, expected, **tolerance):
    found, wanted = objective.state_dict(record.data.final.values[0]), expected.state_dict()
    assert list(found) == list(wanted)
    for name, part in wanted.items():
        assert found[name].dtype == part.dtype
        torch.testing.assert_close(found[name], part, msg=name, rtol=1e-4, atol=1e-5)


# Buffers.


@pytest.mark.parametrize(
    "rule", [None, Optimizer("SGD", {"lr": 0.1}, weighted=False), fw.rules.Momentum(0.1, 0.0, weighted=False)], ids=str
)
def test_statistics_of_a_batch_norm_travel(rule):
    module = normed()
    objective, record, path = learned(module, rule=rule)
    expected = along(module, DATA, path, 0.1)
    assert int(expected[1].num_batches_tracked) == 20
    agrees(objective, record, expected)
    assert objective.named(record.data.final.values[0])["1.num_batches_tracked"] == 20


def test_exchanges_average_statistics():
    parked = fw.designs.Stay().kernel(GRAPH)
    objective = objective_of(normed(), DATA)
    rule = fw.SGD(1e-12)  # so that models stay as they are
    run = {"steps": 1, "tokens": "nodes", "exchange": Average(every=1), "runtime": LOOP}
    record = fw.learn(objective, parked, rule, **run)
    module, means = normed(), []
    for inputs, _ in DATA:
        own = copy.deepcopy(module).train()
        own(inputs)
        means.append(own[1].running_mean)
    found = objective.named(record.data.final.values[0])
    np.testing.assert_allclose(found["1.running_mean"], torch.stack(means).mean(0), rtol=1e-5, atol=1e-6)
    assert record.data.consensus[0, -1] < 1e-12


@pytest.mark.parametrize("average", [True, "half"])
def test_the_mean_model_has_the_statistics_of_the_walk(average):
    """Also where the run stops between two marks."""
    objective, kernel = objective_of(normed(), DATA), KERNEL
    rule = fw.SGD(0.05, average=average)
    whole = fw.learn(objective, kernel, rule, steps=20, every=20)
    plain = fw.learn(objective, kernel, fw.SGD(0.05), steps=20, every=20)
    assert (objective.named(whole.data.final.values[0])["1.num_batches_tracked"] == 20).all()
    trained = objective.trained
    np.testing.assert_array_equal(whole.data.final[0, trained:], plain.data.final[0, trained:])
    assert not np.allclose(whole.data.final[0, :trained], plain.data.final[0, :trained])

    class Stop(Exception):
        pass

    def progress(step, steps):
        if step > 3:
            raise Stop

    with pytest.raises(Stop) as caught:
        fw.learn(objective, kernel, rule, steps=20, every=20, progress=progress)
    record = caught.value.record
    reached = record.continuation.state.step
    assert objective.named(record.data.final.values[0])["1.num_batches_tracked"] == reached
    done = fw.resume(record)
    np.testing.assert_array_equal(done.data.final, whole.data.final)
    np.testing.assert_array_equal(done.data.loss, whole.data.loss)


class Running(nn.Module):
    """Replaces its buffer, with a gradient attached, and keeps a whole number, and a table that never changes."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("table", torch.arange(3.0), persistent=False)
        self.register_buffer("large", torch.tensor(2**20))

    def forward(self, inputs):
        outputs = self.layer(inputs)
        if self.training:
            self.mean = 0.9 * self.mean.detach() + 0.1 * outputs.mean(dim=0)
            self.count += 1
        return outputs + self.table


def test_buffers_that_are_replaced_are_taken_along_without_their_graph():
    module = Running()
    objective, record, path = learned(module)
    assert "table" not in objective.layout.names
    agrees(objective, record, along(module, DATA, path, 0.1))
    assert objective.named(record.data.final.values[0])["count"] == 20


class Sharing(nn.Module):
    """Two layers with one weight, two modules with one buffer."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.two.weight = self.one.weight
        self.one.register_buffer("scale", torch.full((6,), 0.5))
        self.two.register_buffer("scale", self.one.scale)

    def forward(self, inputs):
        if self.training:
            with torch.no_grad():
                self.one.scale.mul_(1.01)
        return self.head(torch.tanh(self.two(self.one(inputs) * self.one.scale) * self.two.scale))


def test_tied_weights_and_shared_buffers_travel_once():
    module = Sharing()
    objective, record, path = learned(module)
    assert objective.dim == 36 + 6 + 6 + 6 + 21
    agrees(objective, record, along(module, DATA, path, 0.1))
    copied = objective.module_with(record.data.final.values[0])
    assert copied.one.weight is copied.two.weight
    assert not copied.training


def test_tied_weights_in_a_batch():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.head = nn.Linear(6, 6), nn.Linear(6, 6, bias=False), nn.Linear(6, 3)
            self.two.weight = self.one.weight

        def forward(self, inputs):
            return self.head(torch.tanh(self.two(torch.tanh(self.one(inputs)))))

    module = Tied()
    found = [learned(module, classes(), walks=4, runtime=runtime)[1].data.final for runtime in (LOOP, BATCH)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("runtime", [LOOP, BATCH], ids=["loop", "batch"])
def test_frozen_parameters_do_not_travel(runtime):
    module = perceptron()
    module[0].requires_grad_(False)
    objective, record, path = learned(module, runtime=runtime)
    assert objective.dim == objective.trained == 5 * 3 + 3
    agrees(objective, record, along(module, DATA, path, 0.1))
    assert record.data.bytes[0, -1] == 4 * 18 * record.data.messages[0, -1]


@pytest.mark.parametrize("runtime", [LOOP, BATCH], ids=["loop", "batch"])
def test_parameters_without_a_gradient_stay(runtime):
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Linear(6, 3), nn.Linear(6, 3)

        def forward(self, inputs):
            return self.used(inputs)

    module = Idle()
    for rule in (None, Optimizer("Adam", {"lr": 0.1})):
        objective, record, _ = learned(module, rule=rule, runtime=runtime)
        np.testing.assert_array_equal(
            objective.named(record.data.final.values[0])["idle.weight"], module.idle.weight.detach()
        )


# Architectures.


class Words(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.embedding, self.body, self.head = nn.Embedding(10, 4), body, nn.Linear(4, 3)

    def forward(self, words):
        inner = self.embedding(words)
        if isinstance(self.body, nn.LSTM):
            inner, _ = self.body(inner)
        elif self.body is not None:
            inner = self.body(inner)
        return self.head(inner.mean(dim=1))


def words(sizes):
    draws = np.random.default_rng(0)
    return [(draws.integers(0, 10, (size, 5)), draws.integers(0, 3, size)) for size in sizes]


@pytest.mark.parametrize("body", ["none", "lstm", "attention"])
def test_modules_of_words(body):
    torch.manual_seed(0)
    bodies = {
        "lstm": nn.LSTM(4, 4, batch_first=True),
        "attention": nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True),
    }
    data = words([3, 2] * 4)
    objective = TorchObjective(Words(bodies.get(body)), "cross_entropy", data, batch=2)
    assert (objective.smoothness > 0).all()  # attention is differentiated twice
    record = fw.learn(objective, KERNEL, fw.SGD(0.3), steps=60, every=60, walks=2)
    assert record.data.loss.values[:, -1].mean() < record.data.loss.values[:, 0].mean()
    assert "accuracy" in record.data


def test_attention_in_a_batch_or_why_not():
    """Its eval mode takes another way through the code than training does; both must be tried before a run."""
    torch.manual_seed(0)
    module = Words(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True))
    objective = objective_of(module, words([3, 2] * 4))
    try:
        record = fw.learn(objective, KERNEL, fw.SGD(0.1), steps=5, every=5, walks=5)
    except LoopWarning:
        record = fw.learn(objective, KERNEL, fw.SGD(0.1), steps=5, every=5, walks=5, runtime=LOOP)
    looped = fw.learn(objective, KERNEL, fw.SGD(0.1), steps=5, every=5, walks=5, runtime=LOOP)
    np.testing.assert_allclose(record.data.final, looped.data.final, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(record.data.loss, looped.data.loss, rtol=1e-4)


def test_a_spectral_norm():
    module = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 3)))
    objective, record, _ = learned(module, runtime=LOOP)
    assert any("_u" in name for name in objective.layout.buffers)
    assert record.data.loss[0, -1] < record.data.loss[0, 0]


# Data.


FORMS = {
    "pairs of tensors": lambda i, t: (i, t),
    "pairs of arrays": lambda i, t: (i.numpy(), t.numpy()),
    "pairs of lists": lambda i, t: (i.tolist(), t.tolist()),
    "TensorDataset": TensorDataset,
    "Subset": lambda i, t: Subset(TensorDataset(torch.cat([i, i]), torch.cat([t, t])), range(len(t), 2 * len(t))),
    "Subset of items": lambda i, t: Subset(Items(i, t), range(len(t))),
    "Dataset": lambda i, t: fw.data.Dataset(i.numpy(), t.numpy(), classes=("a", "b", "c")),
    "items": Items,
    "list of pairs": lambda i, t: list(zip(i, t, strict=True)),
    "tuple of pairs": lambda i, t: (*zip(i, t, strict=True),),
}


@pytest.fixture(scope="module")
def expected():
    return learned(perceptron(), runtime=LOOP)[1]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_data_of_every_form_are_the_same(form, expected):
    objective, record, _ = learned(perceptron(), [form(*pair) for pair in DATA], runtime=LOOP)
    for name in ("loss", "accuracy", "final"):
        np.testing.assert_allclose(record.data[name], expected.data[name], rtol=1e-5, atol=1e-6)
    share = objective.local(3)
    np.testing.assert_allclose(share.gradient(objective.first_model()), objective.gradient(3, objective.first_model()))


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, left, right):
        return self.layer(torch.cat([left, right], dim=1))


@pytest.mark.parametrize("form", ["dict", "tuple"])
def test_several_inputs(form):
    forms = {"dict": lambda row: {"right": row[3:], "left": row[:3]}, "tuple": lambda row: (row[:3], row[3:])}
    module = Several()
    data = [Items(*pair, forms[form]) for pair in DATA]
    objective, record, path = learned(module, data, runtime=LOOP)
    plain = along(module.layer, DATA, path, 0.1)
    np.testing.assert_allclose(
        objective.named(record.data.final.values[0])["layer.weight"], plain.weight.detach(), rtol=1e-4
    )
    assert objective.local(2).samples == 3
    assert np.abs(objective.local(2).gradient(objective.first_model())).max() > 0


def test_a_small_list_of_pairs_is_no_pair_of_lists():
    objective = TorchObjective(
        nn.Linear(1, 1), "mse_loss", [[(torch.ones(1), torch.ones(1)), (torch.ones(1), torch.ones(1))]]
    )
    assert objective.count == 2


def test_targets_that_are_real_and_whole_inputs():
    """Pictures of bytes stay bytes until the module sees them; targets of several numbers are regression."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, pictures):
            return self.layer(pictures.flatten(1).float() / 255)

    draws = np.random.default_rng(0)
    data = [(draws.integers(0, 256, (4, 2, 2), dtype=np.uint8), draws.standard_normal((4, 2))) for _ in range(GRAPH.n)]
    objective = objective_of(Scaled(), data, "mse_loss")
    assert objective.measures == ("loss",)
    record = fw.learn(objective, KERNEL, fw.SGD(0.1), steps=50, every=50)
    assert record.data.loss[0, -1] < record.data.loss[0, 0]


def test_neither_the_module_nor_the_data_are_changed():
    module = normed()
    module[0].bias.requires_grad_(False)
    module[2].eval()
    before = copy.deepcopy(module.state_dict())
    data = [(inputs.clone(), targets.clone()) for inputs, targets in DATA]
    objective = TorchObjective(module, "cross_entropy", data, test=data[0], batch=2)
    pointers = {name: part.data_ptr() for name, part in module.state_dict().items()}
    assert objective.smoothness.min() > 0
    for rule in (fw.SGD(0.1), Optimizer("Adam", {"weight_decay": 0.1}), fw.SGD(0.1, average=True)):
        fw.learn(objective, KERNEL, rule, **RUN, walks=2, tokens=2, exchange=Average(every=2), runtime=LOOP)
    objective.gradient(0, objective.first_model())
    objective.measure(objective.first_model())
    for name, part in module.state_dict().items():
        assert torch.equal(part, before[name])
        assert part.data_ptr() == pointers[name]
    assert [part.training for part in module] == [True, True, False]
    assert [part.requires_grad for part in module.parameters()] == [True, False, True, True, True, True]
    assert all(part.grad is None for part in module.parameters())
    for (inputs, targets), (own, also) in zip(DATA, data, strict=True):
        assert torch.equal(inputs, own)
        assert torch.equal(targets, also)


def test_a_measured_subset_and_a_test_set():
    data = classes([40, 10, 20, 30] * 2)
    test = classes([50], seed=9)[0]
    objective = objective_of(perceptron(), data, test=test, measure_on=20)
    assert objective.measures == ("loss", "test_loss", "accuracy")
    assert [len(numbers) for numbers in objective.measured_samples] == [4, 1, 2, 3] * 2
    found = {r: fw.learn(objective, KERNEL, fw.SGD(0.1), **RUN, walks=3, runtime=r) for r in (LOOP, BATCH)}
    for record in found.values():
        model = objective.module_with(record.data.final.values[0])
        numbers = objective.test_numbers
        with torch.no_grad():
            outputs = model(test[0][numbers])
            losses = [
                nn.functional.cross_entropy(
                    model(data[node][0][own - objective.offsets[node]]), data[node][1][own - objective.offsets[node]]
                )
                for node, own in enumerate(objective.measured_samples)
            ]
        assert float(nn.functional.cross_entropy(outputs, test[1][numbers])) == pytest.approx(
            float(record.data.test_loss[0, -1]), rel=1e-5
        )
        accuracy = float((outputs.argmax(1) == test[1][numbers]).double().mean())
        assert accuracy == pytest.approx(float(record.data.accuracy[0, -1]))
        assert float(np.mean(losses)) == pytest.approx(float(record.data.loss[0, -1]), rel=1e-5)
    story = found[LOOP].provenance["measured_on"]
    assert story["loss"] == "20 of 200 samples of the nodes"
    assert story["accuracy"] == "20 of 50 samples of a test set"


def test_first_models_that_are_drawn_belong_to_seed_and_walk():
    objective = objective_of(perceptron(), DATA, redraw=True)
    models = objective.initial(3, 5)
    np.testing.assert_array_equal(models[:1], objective.initial(1, 5))
    assert not np.allclose(models[0], models[1])
    assert not np.allclose(models[0], objective.initial(1, 6)[0])
    assert not np.allclose(models[0], objective.first_model())

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

    with pytest.raises(ProblemError, match="no layer of Scale has a method reset_parameters"):
        objective_of(Scale(), DATA, redraw=True)


def test_an_objective_does_not_keep_the_models_of_a_run():
    import gc
    import weakref

    objective = objective_of(linear(6, torch.float32), [(i, t.float()) for i, t in DATA], half_square)
    record = fw.learn(objective, KERNEL, fw.SGD(0.1), **RUN)
    kept = weakref.ref(
        record.data.final.values.base if record.data.final.values.base is not None else record.data.final.values
    )
    del record
    gc.collect()
    assert kept() is None
