"""Optimizers of torch as rules, against loops written by hand along the recorded path."""

from functools import partial

import numpy as np
import pytest
import torch
from nets import BATCH, GRAPH, LOOP, classes, identical, normed, objective_of, perceptron, uniform
from torch import nn

import freewalk as fw
from freewalk.errors import FreewalkError
from freewalk.exchanges import Average, Meet
from freewalk.schedules import Inverse
from freewalk.torch import Optimizer

DATA = classes(kind=torch.float64)
OBJECTIVE = objective_of(perceptron(kind=torch.float64), DATA)
KERNEL = fw.designs.Metropolis(power=1).kernel(GRAPH, np.arange(1.0, GRAPH.n + 1))
RUN = {"steps": 30, "every": 10, "seed": 2}
MAKERS = {
    "SGD": partial(torch.optim.SGD, lr=0.1),
    "SGD, momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": partial(torch.optim.Adam, lr=0.05),
    "AdamW, amsgrad": partial(torch.optim.AdamW, lr=0.05, amsgrad=True),
    "RMSprop": partial(torch.optim.RMSprop, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": partial(torch.optim.Adagrad, lr=0.1),
    "NAdam": partial(torch.optim.NAdam, lr=0.05),
    "ASGD": partial(torch.optim.ASGD, lr=0.05),
    "Rprop": partial(torch.optim.Rprop, lr=0.01),
    "Adafactor": partial(torch.optim.Adafactor, lr=0.05),
}


def by_hand(path, make, state, *, weighted=True, local_steps=1, rates=None):
    """One model along a path, with one optimizer, one for each node, or a new one at each visit."""
    module = perceptron(kind=torch.float64)
    kept = {}
    for step, node in enumerate(path):
        key = {"travels": 0, "stays": int(node), "resets": step}[state]
        if key not in kept:
            kept[key] = make(list(module.parameters()))
        optimizer = kept[key]
        if rates is not None:
            base = optimizer.defaults["lr"]
            for group in optimizer.param_groups:
                group["lr"] = base * rates[step]
        inputs, targets = DATA[node]
        for _ in range(local_steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(module(inputs), targets)
            (float(KERNEL.weights[node] if weighted else 1.0) * loss).backward()
            optimizer.step()
    return torch.cat([part.detach().reshape(-1) for part in module.parameters()]).numpy()


def learned(rule, **options):
    """The last model of walk 1 and its path."""
    record = fw.learn(OBJECTIVE, KERNEL, rule, **RUN, walks=2, paths=[1], **options)
    return record.data.final.values[1], record.data.path.values[0][:-1]


# Each in a loop; what a batch does with a state is the same for all, so some of them are enough.
STATES = [(name, state, LOOP) for name in MAKERS for state in ("travels", "stays", "resets")]
STATES += [(name, state, BATCH) for name in ("SGD, momentum", "Adam") for state in ("travels", "stays", "resets")]


@pytest.mark.quick(
    *(f"{name}-{('travels', 'stays', 'resets')[number % 3]}-False" for number, name in enumerate(MAKERS)),
    *("SGD, momentum-stays-True", "Adam-travels-True"),
)
@pytest.mark.parametrize(
    ("name", "state", "runtime"), STATES, ids=lambda value: str(getattr(value, "vectorize", value))
)
def test_the_state_of_an_optimizer_travels_stays_or_is_forgotten(name, state, runtime):
    make = MAKERS[name]
    final, path = learned(Optimizer(make, state=state), runtime=runtime)
    np.testing.assert_allclose(final, by_hand(path, make, state), rtol=1e-9, atol=1e-9)


@pytest.mark.quick("travels-loop", "stays-batch", "resets-loop")
@pytest.mark.parametrize("runtime", [LOOP, BATCH], ids=["loop", "batch"])
@pytest.mark.parametrize("state", ["travels", "stays", "resets"])
def test_local_steps_schedules_and_weights(state, runtime):
    schedule = Inverse(1.0, scale=5)
    rule = Optimizer("Adam", {"lr": 0.05}, state=state, step=schedule, local_steps=3, weighted=False)
    final, path = learned(rule, runtime=runtime)
    rates = rule.rates(np.arange(path.size))
    make = partial(torch.optim.Adam, lr=0.05)
    expected = by_hand(path, make, state, weighted=False, local_steps=3, rates=rates)
    np.testing.assert_allclose(final, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        (Optimizer("SGD", {"lr": 0.1}), lambda trained, tensors: 0),
        (Optimizer("SGD", {"lr": 0.1, "momentum": 0.9}), lambda trained, tensors: trained + 1),
        (Optimizer("Adam"), lambda trained, tensors: 2 * trained + tensors + 1),
        (Optimizer("Adam", {"amsgrad": True}), lambda trained, tensors: 3 * trained + tensors + 1),
        (Optimizer("Adam", state="stays"), lambda trained, tensors: 0),
        (Optimizer("Adam", state="resets"), lambda trained, tensors: 0),
        (fw.rules.Momentum(0.1), lambda trained, tensors: trained),
        (fw.SGD(0.1), lambda trained, tensors: 0),
    ],
    ids=lambda value: "" if callable(value) else str(value),  # a function has an address in its name
)
def test_bytes_are_parameters_buffers_and_what_travels_with_them(rule, more):
    """Adam sends two vectors, a count for each tensor, and whether there is a state."""
    objective = objective_of(normed(), classes([3] * GRAPH.n))
    assert (objective.dim, objective.trained) == (28 + 8 + 15 + 9, 28 + 8 + 15)
    record = fw.learn(objective, uniform(), rule, **RUN, runtime=LOOP)
    size = 4 * (objective.dim + more(objective.trained, 6))
    np.testing.assert_array_equal(record.data.bytes, record.data.messages * size)
    assert record.data.messages[0, -1] > 0


@pytest.mark.parametrize("runtime", [LOOP, BATCH], ids=["loop", "batch"])
def test_exchanges_mix_what_travels(runtime):
    """Parked tokens that average after every step: each has the mean of all models and of all momenta."""
    parked = fw.designs.Stay().kernel(GRAPH)
    rule = Optimizer("SGD", {"lr": 0.1, "momentum": 0.9}, weighted=False)
    run = {"steps": 6, "every": 6, "tokens": "nodes", "exchange": Average(every=1)}
    record = fw.learn(OBJECTIVE, parked, rule, **run, runtime=runtime)
    x = torch.as_tensor(OBJECTIVE.first_model())
    velocity = torch.zeros_like(x)
    for _ in range(6):
        gradients = np.mean([OBJECTIVE.gradient(node, x.numpy()) for node in range(GRAPH.n)], axis=0)
        velocity = 0.9 * velocity + torch.as_tensor(gradients)
        x = x - 0.1 * velocity
    np.testing.assert_allclose(record.data.final[0], x, rtol=1e-10, atol=1e-12)
    assert record.data.consensus[0, -1] < 1e-20


def test_what_stays_is_not_mixed_and_belongs_to_a_token():
    rule = Optimizer("Adam", {"lr": 0.05}, state="stays")
    run = RUN | {"walks": 2, "tokens": 2, "exchange": Meet()}
    looped = fw.learn(OBJECTIVE, KERNEL, rule, **run, runtime=LOOP)
    batched = fw.learn(OBJECTIVE, KERNEL, rule, **run, runtime=BATCH)
    np.testing.assert_allclose(batched.data.final, looped.data.final, rtol=1e-9, atol=1e-9)
    alone = fw.learn(OBJECTIVE, KERNEL, rule, **(RUN | {"walks": 4}), runtime=LOOP)
    apart = fw.learn(OBJECTIVE, KERNEL, rule, **(run | {"exchange": None}), runtime=LOOP)
    means = alone.data.final.values.reshape(2, 2, -1).mean(axis=1)
    np.testing.assert_allclose(apart.data.final, means, rtol=1e-12)


def test_phases_begin_new_states():
    """Adam, then SGD, then Adam again, which begins anew; an equal Adam goes on."""
    adam, sgd = Optimizer("Adam", {"lr": 0.05}), fw.SGD(0.1)
    phases = [fw.Phase(10, KERNEL, adam), fw.Phase(20, KERNEL, sgd), fw.Phase(None, KERNEL, adam)]
    record = fw.learn(OBJECTIVE, phases, **RUN, paths=1, runtime=LOOP)
    path = record.data.path.values[0]
    module = perceptron(kind=torch.float64)
    for step in range(30):
        if step in (0, 20):
            optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
        elif step == 10:
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        inputs, targets = DATA[path[step]]
        optimizer.zero_grad()
        (float(KERNEL.weights[path[step]]) * nn.functional.cross_entropy(module(inputs), targets)).backward()
        optimizer.step()
    expected = torch.cat([part.detach().reshape(-1) for part in module.parameters()])
    np.testing.assert_allclose(record.data.final[0], expected, rtol=1e-9, atol=1e-9)
    halves = [fw.Phase(15, KERNEL, adam), fw.Phase(None, KERNEL, Optimizer("Adam", {"lr": 0.05}))]
    one = fw.learn(OBJECTIVE, halves, **RUN, runtime=LOOP)
    np.testing.assert_array_equal(one.data.final, fw.learn(OBJECTIVE, KERNEL, adam, **RUN, runtime=LOOP).data.final)


class Scalar(nn.Module):
    """As small as can be: numbers instead of vectors."""

    def __init__(self, shape):
        super().__init__()
        self.slope = nn.Parameter(torch.full(shape, 0.5))
        self.offset = nn.Parameter(torch.zeros(shape))

    def forward(self, inputs):
        return inputs.reshape(-1) * self.slope.reshape(()) + self.offset.reshape(())


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("name", ["Adam", "NAdam", "ASGD"])
def test_very_small_models_have_room_for_the_state(name, shape):
    """Two numbers, and more counts than that."""
    data = [(torch.arange(3.0) + node, 2 * torch.arange(3.0)) for node in range(4)]
    objective = objective_of(Scalar(shape), data, "mse_loss")
    kernel = uniform(fw.graphs.ring(4))
    record = fw.learn(objective, kernel, Optimizer(name, {"lr": 0.1}), steps=20, every=20, paths=1)
    module = Scalar(shape)
    optimizer = getattr(torch.optim, name)(module.parameters(), lr=0.1)
    for node in record.data.path.values[0][:-1]:
        optimizer.zero_grad()
        nn.functional.mse_loss(module(data[node][0]), data[node][1]).backward()
        optimizer.step()
    expected = torch.stack([module.slope.detach().reshape(()), module.offset.detach().reshape(())])
    np.testing.assert_allclose(record.data.final[0], expected, rtol=1e-5)
    per_message = record.data.bytes.values[0, -1] / record.data.messages.values[0, -1]
    kept = sum(torch.as_tensor(value).numel() for own in optimizer.state.values() for value in own.values())
    assert per_message == 4 * (2 + kept + 1)


def test_relays_leave_the_state_of_an_optimizer():
    data = [*DATA[:-1], None]
    objective = objective_of(perceptron(kind=torch.float64), data, relays=(GRAPH.n - 1,))
    for state in ("travels", "resets"):
        rule = Optimizer("Adam", {"lr": 0.05}, state=state)
        found = [fw.learn(objective, uniform(), rule, **RUN, walks=4, runtime=r).data.final for r in (LOOP, BATCH)]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)
    begun = fw.learn(objective, uniform(), rule, steps=1, start=GRAPH.n - 1, runtime=LOOP)
    np.testing.assert_array_equal(begun.data.final[0], objective.first_model())


REFUSED = {
    "Adamm": r"did you mean 'Adam'",
    "LBFGS": r"one gradient per step",
    "Optimizer": r"Optimizer: factory",
    3: r"the name of a class in torch.optim",
    len: r"cannot be made|takes one gradient",
    nn.Linear: r"cannot be made",
}


@pytest.mark.parametrize(("factory", "words"), REFUSED.items(), ids=str)
def test_what_is_no_optimizer_is_refused(factory, words):
    with pytest.raises(FreewalkError, match=words):
        Optimizer(factory)


def test_bad_options_are_refused():
    for bad in ({"lr": -1.0}, {"speed": 3}, "lr"):
        with pytest.raises(FreewalkError, match="Optimizer: "):
            Optimizer("Adam", bad)
    with pytest.raises(FreewalkError, match="'travels'"):
        Optimizer("Adam", state="flies")
    with pytest.raises(FreewalkError, match="local_steps"):
        Optimizer("Adam", local_steps=0)
    with pytest.raises(FreewalkError, match="fails in a step"):
        fw.learn(OBJECTIVE, KERNEL, Optimizer("SparseAdam"), **RUN)


def test_an_optimizer_needs_a_module_and_the_runtime_for_it():
    problem = fw.objectives.LeastSquares.synthetic(GRAPH.n, 3)
    for runtime in (None, "cpu", "torch", "reference"):
        with pytest.raises(FreewalkError, match="LeastSquares has no torch module"):
            fw.learn(problem, KERNEL, Optimizer("Adam"), **RUN, runtime=runtime)
    for runtime in ("cpu", "reference"):
        with pytest.raises(FreewalkError, match=r"torch|leave `runtime` out"):
            fw.learn(OBJECTIVE, KERNEL, Optimizer("Adam"), **RUN, runtime=runtime)
    with pytest.raises(FreewalkError, match="LeastSquares has no torch module"):
        fw.learn(problem, KERNEL, fw.SGD(0.1), **RUN, runtime="torch")


def test_a_rule_is_used_for_one_objective_after_the_other():
    rule = Optimizer("Adam", {"lr": 0.05})
    wider = objective_of(perceptron(width=9, kind=torch.float64), DATA)
    first = fw.learn(OBJECTIVE, KERNEL, rule, **RUN)
    fw.learn(wider, KERNEL, rule, **RUN)
    identical(fw.learn(OBJECTIVE, KERNEL, rule, **RUN), first)


def test_an_optimizer_of_torch_is_no_rule_by_itself():
    problem = fw.objectives.LeastSquares.synthetic(3, dim=2)
    kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(3))
    with pytest.raises(fw.FreewalkError, match=r"rule = .*, expected freewalk\.torch\.Optimizer, such as"):
        fw.learn(problem, kernel, torch.optim.Adam([torch.zeros(2, requires_grad=True)]), steps=1)
