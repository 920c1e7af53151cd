"""What does not fit is refused before anything is computed, and the message says what to do."""

import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from nets import GRAPH, LOOP, classes, normed, objective_of, perceptron, uniform
from torch import nn

import freewalk as fw
from freewalk.errors import FreewalkError, ProblemError
from freewalk.torch import TorchObjective, accuracy, save_state

KERNEL = uniform()
DATA = classes()


def with_node(node, pair):
    return [pair if place == node else own for place, own in enumerate(DATA)]


X, Y = DATA[4]
BAD_DATA = {
    "a node without data": (with_node(2, None), r"node 2 has no sample|relays"),
    "an empty node": (with_node(2, (X[:0], Y[:0])), r"node 2 has no sample|relays"),
    "no data at all": ([None, None], r"no node has data"),
    "too few": (DATA[:-1], r"7 datasets for 8 nodes"),
    "lengths": (with_node(3, (X, Y[:-1])), r"datasets\[3\] has inputs of shape .* expected the same length"),
    "shapes": (with_node(3, (X[:, :4], Y)), r"one of the inputs of node 0 is float32 of shape \(6,\), but of node 3"),
    "types": (with_node(3, (X.double(), Y)), r"of node 3 float64"),
    "targets of another type": (with_node(3, (X, Y.float())), r"one of the targets of node 0 is int64"),
    "NaN": (with_node(4, (torch.where(X > 2, torch.nan, X), Y)), r"inputs \d of node 4 hold NaN or infinity"),
    "infinity": (with_node(4, (X / 0, Y)), r"inputs 0 of node 4 hold NaN"),
    "no pair": (with_node(1, X), r"datasets\[1\]"),
    "a text": (with_node(1, "digits"), r"datasets\[1\]"),
    "a dict": (with_node(1, {"x": X}), r"datasets\[1\]"),
    "a number": (3, r"datasets = 3, expected a list with one dataset per node; dataset\.by_node"),
}


@pytest.mark.parametrize(("data", "words"), BAD_DATA.values(), ids=BAD_DATA)
def test_data_that_do_not_fit(data, words):
    with pytest.raises(ProblemError, match=words):
        TorchObjective(perceptron(), "cross_entropy", data, graph=GRAPH if data != [None, None] else None)


class Bare(nn.Module):
    def forward(self, inputs):
        return inputs


class Fourier(nn.Module):
    def __init__(self, kind=torch.complex64):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.register_buffer("waves", torch.zeros(3, dtype=kind))

    def forward(self, inputs):
        return self.layer(inputs)


def frozen():
    return nn.Linear(6, 3).requires_grad_(False)


BAD_MODULES = {
    "no module": (lambda: torch.tanh, r"a torch.nn.Module"),
    "no parameters": (Bare, r"Bare has no parameter to train"),
    "all frozen": (frozen, r"Linear has no parameter to train"),
    "lazy": (lambda: nn.LazyLinear(3), r"weight has no shape yet"),
    "lazy buffers": (lambda: nn.Sequential(nn.Linear(6, 3), nn.LazyBatchNorm1d(affine=False)), r"has no shape yet"),
    "half": (lambda: perceptron().half(), r"0.weight is float16, expected float32 or float64.*module.float\(\)"),
    "bfloat16": (lambda: perceptron().bfloat16(), r"bfloat16"),
    "complex": (lambda: nn.Linear(6, 3, dtype=torch.complex64), r"complex64"),
    "complex buffer": (Fourier, r"the buffer waves is complex"),
}


@pytest.mark.parametrize(("make", "words"), BAD_MODULES.values(), ids=BAD_MODULES)
def test_modules_that_cannot_travel(make, words):
    with pytest.raises(ProblemError, match=words):
        objective_of(make())


def test_whole_numbers_that_a_row_cannot_hold():
    module = Fourier(torch.int64)
    module.waves += 2**24 + 1
    with pytest.raises(ProblemError, match=r"buffer waves holds integers that cannot be sent as float32"):
        fw.learn(objective_of(module), KERNEL, fw.SGD(0.1), steps=2)


class Leaking(nn.Module):
    """Changes something that does not travel."""

    def __init__(self, frozen):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        if frozen:
            self.mean = nn.Parameter(torch.zeros(3), requires_grad=False)
        else:
            self.register_buffer("mean", torch.zeros(3), persistent=False)

    def forward(self, inputs):
        outputs = self.layer(inputs)
        if self.training:
            with torch.no_grad():
                self.mean.add_(outputs.mean(dim=0))
        return outputs - self.mean


def sums(outputs, targets):
    return (outputs.sum(dim=1) - targets) ** 2


def fails(outputs, targets):
    raise ZeroDivisionError("no metric")


BAD_FITS = {
    "inputs": (lambda: objective_of(nn.Linear(5, 3)), r"gradient at node \d.*Linear cannot.*is float32 \(6,\)"),
    "outputs": (lambda: objective_of(nn.Linear(6, 2)), r"out of bounds|out of range"),
    "a class": (lambda: objective_of(nn.Linear(6, 3), [(x, y + 1) for x, y in DATA]), r"out of bounds"),
    "no scalar": (lambda: objective_of(nn.Linear(6, 3), loss=sums), r"scalar"),
    "no tensor": (lambda: objective_of(nn.Linear(6, 3), loss=lambda o, t: 1.0), r"cannot be computed"),
    "no gradient": (lambda: objective_of(nn.Linear(6, 3), loss=lambda o, t: torch.zeros(())), r"does not require grad"),
    "NaN": (lambda: objective_of(nn.Linear(6, 3), loss=lambda o, t: o.sum() * torch.nan), r"model at node 0 is nan"),
    "metric": (lambda: objective_of(nn.Linear(6, 3), metrics={"mine": fails}), r"a measure.*no metric"),
    "one sample": (lambda: objective_of(normed()), r"at node \d, from 1 sample,.*more than 1 value per channel"),
    "leaks": (lambda: objective_of(Leaking(False)), r"mean changes while Leaking learns but would not be sent"),
    "leaks frozen": (lambda: objective_of(Leaking(True)), r"mean changes while Leaking learns"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words"), BAD_FITS.values(), ids=BAD_FITS)
def test_modules_losses_and_metrics_that_do_not_fit_the_data(make, words):
    steps = []
    with pytest.raises(ProblemError, match=words):
        fw.learn(make(), KERNEL, fw.SGD(0.1), steps=5, progress=lambda step, of: steps.append(step), runtime=LOOP)
    assert steps == []


BAD_OPTIONS = {
    "loss": ({"loss": "cross_entrop"}, r"did you mean 'cross_entropy'"),
    "no loss": ({"loss": 3}, r"loss = 3"),
    "batch": ({"batch": 0}, r"batch = 0"),
    "batch, huge": ({"batch": 2**25}, r"batch"),
    "test": ({"test": (X[:0], Y[:0])}, r"test has no samples"),
    "test, lengths": ({"test": (X, Y[:1])}, r"same length"),
    "metrics": ({"metrics": {"loss": len}}, r"metrics"),
    "metrics, no function": ({"metrics": {"mine": 3}}, r"metrics\['mine'\]"),
    "metrics, no mapping": ({"metrics": [len]}, r"metrics"),
    "importance": ({"importance": "smoothnes"}, r"did you mean 'smoothness'"),
    "importance, shape": ({"importance": [1.0, 2.0]}, r"importance"),
    "importance, zero": ({"importance": np.zeros(8)}, r"importance"),
    "weight_by": ({"weight_by": "edge"}, r"weight_by"),
    "measure_on": ({"measure_on": 0}, r"measure_on"),
    "primary": ({"primary": "mse"}, r"primary"),
    "relay with data": ({"relays": (2,)}, r"relay"),
    "redraw": ({"redraw": 1}, r"redraw"),
}


@pytest.mark.parametrize(("options", "words"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_options_that_are_none(options, words):
    with pytest.raises(ProblemError, match=words):
        objective_of(nn.Linear(6, 3), **options)


def test_rules_that_a_module_cannot_follow():
    objective = objective_of(normed(), classes([3] * GRAPH.n))
    with pytest.raises(ProblemError, match="from 1 sample, of Sequential cannot be computed"):
        fw.learn(objective, KERNEL, fw.SGD(0.1, sampled=True), steps=2)
    with pytest.raises(FreewalkError, match=r"Walkman solves a problem at each node|no proximal form"):
        fw.learn(objective, KERNEL, fw.rules.Walkman(3.0, proximal=True), steps=2, runtime="torch")
    with pytest.raises(FreewalkError, match="buffers that change"):
        fw.learn(objective, KERNEL, fw.SGD(0.1), steps=2, runtime="reference")
    with pytest.raises(FreewalkError, match=r"more draws than the 16,777,216"):
        fw.learn(objective_of(perceptron(), batch=1000), KERNEL, fw.SGD(0.1, local_steps=20_000), steps=2)
    for runtime in ("cpu", fw.runtimes.CPU(threads=1)):
        with pytest.raises(FreewalkError, match="TorchObjective"):
            fw.learn(objective, KERNEL, fw.SGD(0.1), steps=2, runtime=runtime)


@dataclass(frozen=True)
class Rooted(fw.Rule):
    """Arithmetic for numbers alone."""

    step: float = 0.1

    @staticmethod
    def update(visit, numbers, x, gradient):
        import math

        return x - visit.rate * math.copysign(1.0, gradient)


@dataclass(frozen=True)
class Forgetful(fw.Rule):
    """Swaps what it carries, and returns a plain number for one of them."""

    step: float = 0.1
    carries: ClassVar[tuple[str, ...]] = ("one", "two", "none")

    @staticmethod
    def update(visit, numbers, x, gradient, one, two, none):
        return x - visit.rate * gradient - 0.01 * one, two, x, 0.0


@pytest.mark.parametrize("vectorize", [False, True])
def test_rules_of_a_users_own(vectorize):
    objective = objective_of(perceptron(kind=torch.float64), classes(kind=torch.float64))
    runtime = fw.runtimes.Torch(vectorize=vectorize)
    with pytest.raises(FreewalkError, match="update of Rooted fails on tensors"):
        fw.learn(objective, KERNEL, Rooted(), steps=2, runtime=runtime)
    run = {"steps": 8, "every": 8, "walks": 2}
    found = fw.learn(objective, KERNEL, Forgetful(), **run, runtime=runtime)
    expected = fw.learn(objective, KERNEL, Forgetful(), **run, runtime="reference")
    np.testing.assert_allclose(found.data.final, expected.data.final, rtol=1e-9, atol=1e-12)


def test_devices_that_are_not_there():
    objective = objective_of(perceptron())
    for device in ("cuda:99", "gpu", "cpu:x"):
        with pytest.raises(FreewalkError, match="an available device"):
            fw.learn(objective, KERNEL, fw.SGD(0.1), steps=2, runtime=fw.runtimes.Torch(device))
    with pytest.raises(FreewalkError, match="vectorize"):
        fw.runtimes.Torch(vectorize="yes")


def test_a_module_that_cannot_be_copied():
    module = nn.Linear(6, 3)
    module.cache = module.weight * 2  # no leaf
    with pytest.raises(ProblemError, match=r"Linear cannot be copied"):
        fw.learn(objective_of(module), KERNEL, fw.SGD(0.1), steps=2)


def run_python(code):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)


def test_torch_is_imported_where_it_is_used_alone():
    done = run_python("import sys, freewalk; assert 'torch' not in sys.modules; freewalk.runtimes.Torch()")
    assert done.returncode == 0, done.stderr


def test_without_torch_the_message_says_what_to_install():
    code = """
import sys
sys.modules["torch"] = None
import freewalk as fw
from freewalk.errors import MissingExtra
said = []
try:
    import freewalk.torch
except MissingExtra as error:
    said.append(str(error))
problem = fw.objectives.LeastSquares.synthetic(4, 2)
kernel = fw.designs.SimpleWalk().kernel(fw.graphs.ring(4))
try:
    fw.learn(problem, kernel, fw.SGD(0.1), steps=2, runtime="torch")
except MissingExtra as error:
    said.append(str(error))
line = "install it with: pip install \\".[torch]\\" (in the checkout of freewalk)"
assert said == [f"'torch' is not installed; {line}"] * 2, said
fw.walk(kernel, steps=2, runtime="torch")
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


ONES = np.ones(objective_of(perceptron()).dim)
WRONG_CALLS = {
    "a node of an array": (lambda one, path: one.samples(np.ones(6)), r"node = an array .* expected a whole number"),
    "a node beyond": (lambda one, path: one.local(GRAPH.n), r"node = 8, expected a whole number from 0 to 7"),
    "a node of nothing": (lambda one, path: one.gradient([], ONES), r"node = \[\], expected a whole number"),
    "a sample beyond": (lambda one, path: one.gradient(0, ONES, 99), r"sample = 99, expected a whole number from 0 to"),
    "a sample of text": (lambda one, path: one.gradient(0, ONES, "x"), r"sample = 'x', expected a whole number"),
    "features of text": (lambda one, path: one.on("x", [0]), r"features and targets do not fit .* own: TypeError"),
    "targets without form": (lambda one, path: one.on([[1.0] * 6], 1e308), r"features and targets do not fit"),
    "outputs of a number": (lambda one, path: accuracy(1.0, Y), r"accuracy: outputs = 1\.0, expected a tensor"),
    "targets of an array": (lambda one, path: accuracy(X, np.ones(3)), r"accuracy: targets = .*, expected a tensor"),
    "metadata of a list": (lambda one, path: save_state({}, path, [None]), r"metadata = \[None\], expected texts by"),
    "metadata of numbers": (lambda one, path: save_state({}, path, {"a": 1}), r"metadata = 1, expected texts by name"),
}


@pytest.mark.parametrize(("call", "words"), WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_calls_that_were_not_refused_in_words(call, words, tmp_path):
    with pytest.raises(FreewalkError, match=words):
        call(objective_of(perceptron()), tmp_path / "state.safetensors")
