"""PyTorch modules as specs name them: described here without PyTorch, created when the data are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from inspect import Parameter
from typing import Any

from freewalk.data import Dataset
from freewalk.errors import FreewalkError, MissingExtra, SpecError
from freewalk.specs.own import blame

__all__ = ["convolutional", "perceptron", "softmax"]

#: The properties of the data that a module receives if it has a parameter of that name.
SIZES = ("inputs", "outputs", "shape")


@dataclass(frozen=True)
class Model:
    """A module to be created once the data are known.

    Attributes
    ----------
    name
        A name that `freewalk.torch.models` lists, or "module:Name".
    values
        The parameters that the spec gives.
    where
        The name of the table in error messages.
    make
        The user's class or function; None for a listed one.
    takes
        The entries of `SIZES` that this module takes.
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    where: str = "model"
    make: Callable[..., Any] | None = field(default=None, repr=False)
    takes: tuple[str, ...] = ()

    def module(self, data: Dataset, seed: int) -> Any:
        """Create the module for some data; its initial parameters are drawn from the seed.

        Raises
        ------
        MissingExtra
            If PyTorch is not installed.
        SpecError
            If the data have the wrong shape, or user code fails or returns something else.
        """
        from freewalk.torch import models

        shape = data.shape or data.features.shape[1:]
        known = {
            "inputs": int(data.features[0].size),
            "outputs": 1 if data.classes is None else len(data.classes),
            "shape": shape,
        }
        values = {key: known[key] for key in self.takes} | dict(self.values)
        if self.make is not None:
            return self._own(models.seeded(seed), values)
        if "shape" in self.takes and len(shape) != 3:
            raise SpecError(
                f"{self.where}: {self.name} is for images, but a sample of {data.name} has shape {tuple(shape)}, "
                "expected (channels, height, width); use perceptron"
            )
        try:
            return getattr(models, self.name)(**values, seed=seed)
        except FreewalkError as error:
            raise SpecError(f"{self.where}: {error}") from error

    def _own(self, seeded: AbstractContextManager[None], values: dict[str, Any]) -> Any:
        import torch

        assert self.make is not None
        try:
            with seeded:
                made = self.make(**values)
        except MissingExtra:
            raise
        except Exception as error:
            raise SpecError(f"{self.where}: {self.name} cannot use these values ({blame(error)})") from error
        if not isinstance(made, torch.nn.Module):
            raise SpecError(f"{self.where}: {self.name} returns a {type(made).__name__}, expected a torch.nn.Module")
        return made


def softmax() -> Model:
    """Softmax regression: one linear layer.

    Examples
    --------
    >>> softmax().takes
    ('inputs', 'outputs')
    """
    return Model("softmax", takes=("inputs", "outputs"))


def perceptron(hidden: Sequence[int] = (32,)) -> Model:
    """A multilayer perceptron with a ReLU after each hidden layer.

    Parameters
    ----------
    hidden
        The widths of the hidden layers.

    Examples
    --------
    >>> perceptron([16]).values
    {'hidden': [16]}
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

    Examples
    --------
    >>> convolutional([4]).takes
    ('outputs', 'shape')
    """
    return Model("convolutional", {"channels": channels, "dropout": dropout}, takes=("outputs", "shape"))


def own_parameters(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The parameters of a user's module; those that the data determine are optional."""
    return {
        name: parameter.replace(default=None) if name in SIZES and parameter.default is Parameter.empty else parameter
        for name, parameter in parameters.items()
    }
