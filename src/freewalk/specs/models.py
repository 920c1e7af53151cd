"""PyTorch modules as specs name them: described here without PyTorch, created when the data are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from freewalk.data import Dataset
from freewalk.errors import FreewalkError, MissingExtra, SpecError
from freewalk.specs.own import blame

__all__ = ["convolutional", "perceptron", "softmax"]

#: The properties of the data that a module receives if it has a parameter of that name.
SIZES = ("inputs", "outputs", "shape")


@dataclass(frozen=True)
class Model:
    """A module to be created once the data are known."""

    name: str  # one that `freewalk.torch.models` lists, or "module:Name"
    values: Mapping[str, Any] = field(default_factory=dict)  # the parameters that the spec gives
    where: str = "model"  # the name of the table in error messages
    make: Callable[..., Any] | None = field(default=None, repr=False)  # the user's class or function, if it is one
    takes: tuple[str, ...] = ()  # the entries of `SIZES` that this module takes

    def module(self, data: Dataset, seed: int) -> Any:
        """Create the module for some data; its initial parameters are drawn from the seed."""
        from freewalk.torch import models

        shape = data.shape or data.features.shape[1:]
        known = {
            "inputs": int(data.features[0].size),
            "outputs": 1 if data.classes is None else len(data.classes),
            "shape": shape,
        }
        values = {key: known[key] for key in self.takes} | dict(self.values)
        if self.make is None and "shape" in self.takes and len(shape) != 3:
            got = f"a sample of {data.name} has shape {tuple(shape)}, expected (channels, height, width)"
            raise SpecError(f"{self.where}: {self.name} is for images, but {got}; use perceptron")
        if self.make is None:
            try:
                return getattr(models, self.name)(**values, seed=seed)
            except FreewalkError as error:
                raise SpecError(f"{self.where}: {error}") from error
        import torch

        try:
            with models.seeded(seed):
                made = self.make(**values)
        except MissingExtra:
            raise
        except Exception as error:
            raise SpecError(f"{self.where}: {self.name} cannot use these values ({blame(error)})") from error
        if not isinstance(made, torch.nn.Module):
            raise SpecError(f"{self.where}: {self.name} returns a {type(made).__name__}, expected a torch.nn.Module")
        return made


def softmax() -> Model:
    """Softmax regression: one linear layer."""
    return Model("softmax", takes=("inputs", "outputs"))


def perceptron(hidden: Sequence[int] = (32,)) -> Model:
    """A multilayer perceptron with a ReLU after each hidden layer.

    Parameters
    ----------
    hidden
        The widths of the hidden layers.
    """
    return Model("perceptron", {"hidden": hidden}, takes=("inputs", "outputs"))


def convolutional(channels: Sequence[int] = (8, 16), dropout: float = 0.0) -> Model:
    """A convolutional network for images: layers of 3 × 3 filters, each followed by a ReLU and 2 × 2 pooling.

    Parameters
    ----------
    channels
        The number of filters of each layer.
    dropout
        The dropout probability of the last features, from 0 to 0.99.
    """
    return Model("convolutional", {"channels": channels, "dropout": dropout}, takes=("outputs", "shape"))
