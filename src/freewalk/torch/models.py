"""Small modules for studies and specs, and models in files.

A file is safetensors, which any framework reads and which cannot contain code, or a PyTorch state_dict.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

from freewalk.checks import Checks, said
from freewalk.errors import MissingExtra, ProblemError, RecordError
from freewalk.storage.files import replacing

__all__ = ["convolutional", "perceptron", "softmax"]

check = Checks(ProblemError)
_files = Checks(RecordError)
_SUFFIXES = (".safetensors", ".pt", ".pth")


def softmax(inputs: int, outputs: int, seed: int = 0) -> nn.Module:
    """Softmax regression: one linear layer.

    Examples
    --------
    >>> sum(part.numel() for part in softmax(64, 10).parameters())
    650
    """
    inputs, outputs = _sizes("softmax", inputs, outputs)
    with seeded(seed):
        return nn.Sequential(nn.Flatten(), _layer("softmax", inputs, outputs))


def perceptron(inputs: int, outputs: int, hidden: Sequence[int] = (32,), seed: int = 0) -> nn.Module:
    """A multilayer perceptron with hidden layers of these widths, each followed by a ReLU.

    Examples
    --------
    >>> sum(part.numel() for part in perceptron(64, 10, (32,)).parameters())
    2410
    """
    inputs, outputs = _sizes("perceptron", inputs, outputs)
    widths = check.integers("perceptron", "hidden", hidden, (None,), low=1).tolist()
    with seeded(seed):
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise([inputs, *widths]):
            layers += [_layer("perceptron", before, after), nn.ReLU()]
        return nn.Sequential(*layers, _layer("perceptron", widths[-1] if widths else inputs, outputs))


def convolutional(
    shape: Sequence[int], outputs: int, channels: Sequence[int] = (8, 16), dropout: float = 0.0, seed: int = 0
) -> nn.Module:
    """A convolutional network for images of shape (channels, height, width): 3 × 3 filters, each followed by pooling.

    Inputs may be flat: they are reshaped.

    Examples
    --------
    >>> net = convolutional((1, 8, 8), 10)
    >>> net(torch.zeros(5, 64)).shape, sum(part.numel() for part in net.parameters())
    (torch.Size([5, 10]), 1898)
    """
    depth, height, width = check.integers("convolutional", "shape", shape, (3,), low=1).tolist()
    outputs = check.whole("convolutional", "outputs", outputs, 1)
    filters = check.integers("convolutional", "channels", channels, (None,), low=1).tolist()
    rate = check.real("convolutional", "dropout", dropout, 0.0, 0.99)
    with seeded(seed):
        layers: list[nn.Module] = [nn.Flatten(), nn.Unflatten(1, (depth, height, width))]
        for before, after in pairwise([depth, *filters]):
            layers += [_layer("convolutional", before, after, width=3), nn.ReLU()]
            if min(height, width) >= 2:
                layers.append(nn.MaxPool2d(2))
                height, width = height // 2, width // 2
        layers += [nn.Flatten()] + [nn.Dropout(rate)] * (rate > 0)
        last = filters[-1] if filters else depth
        return nn.Sequential(*layers, _layer("convolutional", last * height * width, outputs))


def _sizes(who: str, inputs: int, outputs: int) -> tuple[int, int]:
    return check.whole(who, "inputs", inputs, 1), check.whole(who, "outputs", outputs, 1)


def _layer(who: str, inputs: int, outputs: int, width: int = 0) -> nn.Module:
    """A layer whose weights fit into memory: dense, or of filters of a width."""
    weights = inputs * outputs * max(width, 1) ** 2
    check.room(who, f"a layer of {weights:,} weights", 4.0 * weights, "make it smaller")
    return nn.Conv2d(inputs, outputs, width, padding=width // 2) if width else nn.Linear(inputs, outputs)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw parameters from a seed, and restore torch's own generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(check.seed("model", seed) % 2**63)
        yield


# Models in files.


def save_state(state: Mapping[str, torch.Tensor], path: Any, metadata: Mapping[str, str] | None = None) -> Path:
    """Write named tensors to a file atomically.

    Parameters
    ----------
    state
        A state_dict.
    path
        The file: .safetensors (added if there is no suffix), .pt or .pth.
    metadata
        Texts to store with them; safetensors only.

    Raises
    ------
    RecordError
        If the suffix is not one of these.
    """
    target, expected = _files.path("save_model", "path", path), "a state_dict: tensors by name"
    for part in _files.instance("save_model", "state", state, Mapping, expected).values():
        _files.instance("save_model", "state", part, torch.Tensor, expected)
    target = target if target.suffix else target.with_suffix(".safetensors")
    if target.suffix not in _SUFFIXES:
        raise _files.fail("save_model", "path", str(target), f"a file that ends in {' or '.join(_SUFFIXES)}")
    texts = {} if metadata is None else metadata
    stored = dict(_files.instance("save_model", "metadata", texts, Mapping, "texts by name"))
    for text in (*stored, *stored.values()):
        _files.instance("save_model", "metadata", text, str, "texts by name")
    with replacing(target) as temporary:
        if target.suffix == ".safetensors":
            try:
                from safetensors.torch import save_file
            except ImportError:
                raise MissingExtra("safetensors", "torch") from None
            separate = {name: part.detach().cpu().clone().contiguous() for name, part in state.items()}
            save_file(separate, str(temporary), metadata=stored)
        else:
            torch.save({name: part.detach().cpu() for name, part in state.items()}, temporary)
    return target


def load_state(path: Any) -> dict[str, torch.Tensor]:
    """Read a file written by `save_state`, or another state_dict; nothing in the file is executed.

    Raises
    ------
    RecordError
        If there is no such file, or it is not a state_dict.
    """
    source = _files.path("load_model", "path", path)
    try:
        if source.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(str(source))  # type: ignore[no-any-return]
        state = torch.load(source, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise RecordError(f"{source}: there is no such file") from error
    except Exception as error:
        raise RecordError(f"{source}: cannot be read ({said(error)}), expected a state_dict") from error
    if not isinstance(state, dict) or not all(isinstance(part, torch.Tensor) for part in state.values()):
        raise RecordError(f"{source}: holds a {type(state).__name__}, expected a state_dict")
    return state
