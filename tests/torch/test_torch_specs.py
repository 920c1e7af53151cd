"""Specs that name modules of PyTorch, their data and their optimizers."""

import inspect
import typing
from pathlib import Path

import numpy as np
import pytest
import torch

import freewalk as fw
from freewalk.errors import SpecError
from freewalk.specs import RunFolder, models, optimizers, parse
from freewalk.specs.catalogue import families
from freewalk.torch import TorchObjective
from freewalk.torch import models as modules
from freewalk.torch.importance import KINDS
from freewalk.torch.optimizer import Optimizer

MINE = """
import numpy as np
import torch
import freewalk as fw


class Net(torch.nn.Module):
    def __init__(self, inputs, outputs, width=4):
        super().__init__()
        layers = torch.nn.Linear(inputs, width), torch.nn.Tanh(), torch.nn.Linear(width, outputs)
        self.body = torch.nn.Sequential(*layers)

    def forward(self, x):
        return self.body(x)


def by_shape(shape, outputs):
    return torch.nn.Sequential(torch.nn.Conv2d(shape[0], 2, 3), torch.nn.Flatten(), torch.nn.Linear(72, outputs))


def load(count, folder):
    assert (folder / "mine.py").exists()
    features = np.random.default_rng(1).normal(size=(count, 3))
    targets = (features[:, 0] > 0).astype(int)
    return fw.data.Dataset(features, targets, name="own", classes=("no", "yes"), licence="mine")


def wrong():
    return 5


def fails(width):
    raise RuntimeError("no luck")
"""
SPEC = """
[graph]
kind = "ring"
n = 6
[problem]
kind = "torch"
model = MODEL
data = DATA
MORE
[run]
steps = 40
walks = 2
every = 20
RUN
[[walk]]
label = "one"
design = { kind = "Metropolis", power = 0 }
rule = RULE
"""
SGD = '{ kind = "SGD", step = 0.1 }'


def text(model='{ kind = "softmax" }', data='{ kind = "wine" }', more="batch = 5", run="", rule=SGD) -> str:
    parts = {"MODEL": model, "DATA": data, "MORE": more, "RUN": run, "RULE": rule}
    found = SPEC
    for key, value in parts.items():
        found = found.replace(key, value)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine_of_torch.py").write_text(MINE.replace("mine.py", "mine_of_torch.py"))
    monkeypatch.delitem(__import__("sys").modules, "mine_of_torch", raising=False)
    return tmp_path


def plan(folder: Path, **parts: str):
    return parse(text(**parts), "spec.toml", folder).plan()


def test_a_listed_model_gets_its_sizes_from_the_data(folder):
    found = plan(folder, model='{ kind = "perceptron", hidden = [7] }')
    assert isinstance(found.problem, TorchObjective)
    assert (found.problem.n, found.problem.dim, found.problem.batch) == (6, 13 * 7 + 7 + 7 * 3 + 3, 5)
    assert found.problem.measures == ("loss", "test_loss", "accuracy")
    story = found.origin.story
    assert (story["dataset"], story["samples"], story["test_samples"], story["standardized"]) == ("wine", 142, 36, True)
    assert len(story["partition_digest"]) == 64
    assert "CC BY 4.0" in story["licence"]
    again = plan(folder, model='{ kind = "perceptron", hidden = [7] }')
    np.testing.assert_array_equal(again.problem.first_model(), found.problem.first_model())
    other = plan(folder, model='{ kind = "perceptron", hidden = [7] }', more="seed = 2\nbatch = 5")
    assert not np.array_equal(other.problem.first_model(), found.problem.first_model())


def test_pictures_and_regression(folder):
    found = plan(folder, model='{ kind = "convolutional", channels = [2] }', data='{ kind = "digits" }')
    assert found.problem._samples.tensors[0].shape[1:] == (1, 8, 8)
    assert not found.origin.story["standardized"]
    found = plan(folder, data='{ kind = "diabetes" }')
    assert found.problem.loss_function is torch.nn.functional.mse_loss
    assert found.problem._samples.tensors[1].shape[1:] == (1,)
    assert abs(float(found.problem._samples.tensors[1].mean())) < 1e-5
    assert found.problem.measures == ("loss", "test_loss")


def test_modules_and_data_of_the_user(folder):
    data = '{ kind = "mine_of_torch:load", count = 60 }'
    found = plan(folder, model='{ kind = "mine_of_torch:Net", width = 5 }', data=data)
    assert (found.problem.dim, found.origin.story["licence"]) == (3 * 5 + 5 + 5 * 2 + 2, "mine")
    assert found.classes == ()  # nothing that a record could hold
    found = plan(folder, model='{ kind = "mine_of_torch:by_shape" }', data='{ kind = "digits" }')
    assert found.problem.dim == 2 * 9 + 2 + 72 * 10 + 10


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"model": '{ kind = "softmaks" }'}, r"\[problem\]: torch: model has no kind 'softmaks'; did you mean"),
        ({"model": '"softmax"'}, r"torch: model = 'softmax', expected a model such as \{ kind = "),
        ({"model": '{ kind = "softmax", width = 3 }'}, r"model: softmax has no parameter 'width'; it takes none"),
        ({"model": '{ kind = "perceptron", hidden = [0] }'}, r"^spec.toml: \[problem\]: torch: model: perc"),
        ({"model": '{ kind = "convolutional" }'}, r"is for images, .* wine has shape \(13,\).*perceptron"),
        ({"data": '{ kind = "mnist" }'}, r"torch: data has no kind 'mnist'; there are breast_cancer"),
        ({"data": '"file.csv"'}, r"data = 'file.csv', expected a data set such as"),
        ({"more": 'partition = { kind = "Dirichlet" }'}, r"partition: Dirichlet needs the parameter 'alpha'"),
        ({"more": "test = 1.5"}, r"wine: test = 1.5, expected a finite number"),
        ({"more": 'loss = "entropy"'}, r"TorchObjective: loss = 'entropy', expected"),
        ({"more": "batch = 2.5"}, r"torch: batch = 2.5, expected a whole number"),
        ({"more": 'importance = "weight"'}, r"importance = 'weight', expected"),
        ({"run": 'runtime = { kind = "Torch", devise = "cpu" }'}, r"\[run\]: runtime: Torch has no parameter 'devise'"),
        ({"run": 'runtime = { kind = "torches" }'}, r"\[run\]: runtime has no kind 'torches'; did you mean 'Torch'"),
        ({"rule": '{ kind = "Optimizer", factory = "Adem" }'}, r"rule: Optimizer: factory = 'Adem', .*'Adam'"),
        ({"rule": '{ kind = "Optimizer", factory = "Adam", options = 3 }'}, r"options = 3, expected a table"),
        ({"model": '{ kind = "mine_of_torch:Nett" }'}, r"no function or class 'Nett', .*Module; did you mean 'Net'"),
        ({"model": '{ kind = "mine_of_torch:wrong" }'}, r"torch:wrong returns a int, expected a torch.nn.Module"),
        ({"model": '{ kind = "mine_of_torch:fails", width = 1 }'}, r"RuntimeError: no luck, .*mine_of_torch.py, line"),
        ({"data": '{ kind = "mine_of_torch:wrong" }'}, r"wrong returns a int, expected a fw.data.Dataset"),
    ],
)
def test_mistakes_are_named(folder, parts, message):
    with pytest.raises(SpecError, match=message):
        plan(folder, **parts)


def test_a_module_that_does_not_fit_is_refused_before_a_folder_is_made(folder):
    spec = parse(text(model='{ kind = "mine_of_torch:Net", inputs = 4 }'), "spec.toml", folder)
    with pytest.raises(SpecError, match=r"^spec.toml: \[problem\]: TorchObjective: .*Net cannot be computed"):
        RunFolder.create(folder / "run", spec)
    assert not (folder / "run").exists()


def test_importance_is_estimated_only_where_a_design_needs_it(folder):
    found = plan(folder)
    assert found.problem.known_smoothness is None
    importance = text().replace("power = 0", "power = 1")
    assert parse(importance, "spec.toml", folder).plan().problem.known_smoothness is not None
    assert plan(folder, run='start = "heaviest"').problem.known_smoothness is not None


def test_rules_runtimes_and_goals(folder):
    rule = '{ kind = "Optimizer", factory = "Adam", options = { lr = 0.05 }, state = "stays" }'
    run = 'precision = "float64"\nruntime = { kind = "torch", vectorize = false }\ngoal = { accuracy = 0.6 }'
    spec = parse(text(rule=rule, run=run.replace("steps = 40", "steps = 400")), "spec.toml", folder)
    part = spec.run().provenance["parts"]["one"]
    assert part["runtime"] == "Torch(device='cpu', vectorize=False)"
    assert (part["precision"], part["reached"]) == ("float64", 20)
    assert "state='stays'" in part["phases"][0]["rule"]


def test_what_is_described_is_what_there_is():
    for name in models.__all__:
        described = inspect.signature(getattr(models, name)).parameters
        real = inspect.signature(getattr(modules, name)).parameters
        given = {*models.SIZES, "seed"}
        assert {key: one.default for key, one in described.items()} == {
            key: one.default for key, one in real.items() if key not in given
        }
        assert set(getattr(models, name)().takes) == set(real) & set(models.SIZES)
    assert sorted(models.__all__) == sorted(modules.__all__)
    described, real = (inspect.signature(one).parameters for one in (optimizers.Optimizer, Optimizer))
    assert list(described) == [name for name in real if name not in ("slots", "sizes")]
    assert {name: one.default for name, one in described.items() if name not in ("factory", "options")} == {
        name: real[name].default for name in described if name not in ("factory", "options")
    }
    kinds = families()["problem"]["torch"].signature.parameters
    assert typing.get_args(typing.get_args(kinds["importance"].annotation)[0]) == KINDS
    taken = inspect.signature(TorchObjective).parameters
    assert {name: kinds[name].default for name in ("batch", "weight_by", "measure_on", "redraw")} == {
        name: taken[name].default for name in ("batch", "weight_by", "measure_on", "redraw")
    }


def test_every_rule_of_freewalk_runs_in_a_spec(folder):
    for rule in ("Momentum", "SAG", "AdaGrad"):
        record = parse(text(rule=f'{{ kind = "{rule}", step = 0.01 }}'), "spec.toml", folder).run()
        assert np.isfinite(record.data.loss).all()


def test_evaluation_of_a_module(folder):
    found = plan(folder)
    record = fw.learn(found.problem, found.walks["one"], **found.options_of("one"))
    values = fw.evaluate(record, found.problem, per_node=True, dataset=found.origin.test)
    for name in ("loss", "test_loss", "accuracy"):
        np.testing.assert_allclose(values[name], record.data[name][:, -1], rtol=1e-5)
    np.testing.assert_allclose(values.test_accuracy, values.accuracy)
    np.testing.assert_allclose(values.node_loss.mean("node"), values.loss, rtol=1e-5)
    assert values.test_accuracy.attrs["better"] == "higher"
