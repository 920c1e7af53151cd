"""What PyTorch offers and no walk can use: refused by name, where it is passed."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nets import classes, perceptron
from torch import nn

import freewalk as fw
from freewalk.errors import FreewalkError
from freewalk.torch import Optimizer, TorchObjective
from freewalk.torch.models import convolutional, save_state, softmax
from freewalk.torch.models import perceptron as layered

DATA = classes()


class Endless(torch.utils.data.Dataset):
    """A dataset that has more samples than a machine has memory for their numbers."""

    def __len__(self) -> int:
        return 2**50

    def __getitem__(self, place: int) -> Any:
        return DATA[0][0][0], DATA[0][1][0]


def made(**options: Any) -> TorchObjective:
    return TorchObjective(**{"module": perceptron(), "loss": "cross_entropy", "datasets": DATA, **options})


def share(outputs: torch.Tensor, targets: torch.Tensor) -> float:
    return float((outputs.argmax(1) == targets).double().mean())


@pytest.mark.parametrize("rising", ["acc", ["acc"], "share", ["share", "acc"], [5], 5])
def test_an_unknown_metric_is_not_dropped(rising: Any) -> None:
    with pytest.raises(FreewalkError, match=r"TorchObjective: rising = .*, expected (metrics: share|a list of names)"):
        made(metrics={"share": share}, rising=rising)
    assert made(metrics={"share": share}, rising=["share"]).rising == ("share",)
    assert made(metrics={"share": share}, rising=("accuracy",)).rising == ()


@pytest.mark.parametrize("place", ["datasets", "test"])
def test_more_samples_than_numbers_fit_into_memory(place: str) -> None:
    with pytest.raises(FreewalkError, match=r"the numbers of its samples would take [0-9.,]+ TB, expected less than"):
        made(**{place: [Endless()] * 2 if place == "datasets" else Endless()})


@pytest.mark.parametrize("data", [np.array("x"), np.array(5.0), torch.tensor(5.0)])
def test_an_array_of_no_dimension_is_no_dataset(data: Any) -> None:
    with pytest.raises(FreewalkError, match=r"TorchObjective: datasets\[0\] = .*, expected"):
        made(test=data)


def test_modules_and_data_without_values() -> None:
    with torch.device("meta"):
        module, inputs = nn.Linear(5, 3), torch.zeros(4, 5)
    with pytest.raises(FreewalkError, match=r"weight is on the device meta, without values, .*to_empty"):
        made(module=module)
    with pytest.raises(FreewalkError, match=r"datasets\[0\] = .* on the device meta has no values"):
        made(datasets=[(inputs, torch.zeros(4, dtype=torch.int64))])


@pytest.mark.parametrize("model", [[[1], [2, 3]], "x", None, np.ones(2, dtype=complex)])
def test_what_is_no_model(model: Any) -> None:
    objective = made()
    for method in (objective.state_dict, objective.loss, objective.measure, objective.module_with):
        with pytest.raises(FreewalkError, match="TorchObjective: the model"):
            method(model)


@pytest.mark.parametrize("state", [np.ones(2), [1], {"a": np.ones(2)}, {"a": 1}, None])
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_what_is_no_state_is_not_saved(tmp_path: Path, state: Any, suffix: str) -> None:
    with pytest.raises(FreewalkError, match=r"save_model: state = .*, expected a state_dict: tensors by name"):
        save_state(state, tmp_path / f"model{suffix}")
    assert not list(tmp_path.iterdir())


def failing(parameters: Any) -> Any:
    raise ValueError("no")


def test_functions_in_rules_are_shown_by_name() -> None:
    assert repr(Optimizer(partial(torch.optim.Adam, lr=1e-3))).count("0x") == 0
    assert repr(Optimizer("Adam", {"lr": 1e-3})) == repr(Optimizer("Adam", {"lr": 1e-3}))
    assert repr(Optimizer("SGD")).startswith("Optimizer(factory='SGD', options={}, state='travels', step=1.0, ")

    def own(parameters: Any) -> Any:
        return torch.optim.SGD(parameters, lr=0.1)

    assert "factory=<function test_functions_in_rules_are_shown_by_name.<locals>.own>" in repr(Optimizer(own))
    with pytest.raises(FreewalkError, match="Optimizer: <function failing> cannot be made"):
        Optimizer(failing)


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (softmax, {"inputs": 2, "outputs": 2**50}),
        (softmax, {"inputs": 2**62, "outputs": 2**62}),
        (layered, {"inputs": 2**50, "outputs": 2}),
        (layered, {"inputs": 2, "outputs": 2, "hidden": (2**50,)}),
        (convolutional, {"shape": (1, 8, 8), "outputs": 2, "channels": (2**50,)}),
        (convolutional, {"shape": (1, 2**30, 2**30), "outputs": 2}),
    ],
)
def test_models_that_do_not_fit_into_memory(make: Any, sizes: dict[str, Any]) -> None:
    with pytest.raises(FreewalkError, match=r"a layer of [\d,]+ weights would take .* of memory here; make it smaller"):
        make(**sizes)


@pytest.mark.parametrize("none", [(), [], np.array([])])
def test_models_without_inner_layers(none: Any) -> None:
    assert sum(part.numel() for part in layered(64, 10, none).parameters()) == 650
    assert sum(part.numel() for part in convolutional((1, 8, 8), 10, none).parameters()) == 650


@pytest.mark.parametrize("step", [1e308, fw.schedules.Constant(1e200)])
def test_a_step_that_its_optimizer_cannot_take(step: Any) -> None:
    objective, kernel = made(), fw.designs.Metropolis().kernel(fw.graphs.ring(8))
    with pytest.raises(FreewalkError, match=r"Optimizer: Adam fails in a step: .* without overflow"):
        fw.learn(objective, kernel, Optimizer("Adam", step=step), steps=2)
