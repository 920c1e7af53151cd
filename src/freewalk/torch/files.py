"""Models in files: safetensors, which any framework reads and which cannot contain code, or a PyTorch state_dict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from freewalk.checks import Checks
from freewalk.errors import MissingExtra, RecordError
from freewalk.storage.files import replacing

check = Checks(RecordError)
_SUFFIXES = (".safetensors", ".pt", ".pth")


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
    target = check.path("save_model", "path", path)
    target = target if target.suffix else target.with_suffix(".safetensors")
    if target.suffix not in _SUFFIXES:
        raise check.fail("save_model", "path", str(target), f"a file that ends in {' or '.join(_SUFFIXES)}")
    with replacing(target) as temporary:
        if target.suffix == ".safetensors":
            try:
                from safetensors.torch import save_file
            except ImportError:
                raise MissingExtra("safetensors", "torch") from None
            separate = {name: part.detach().cpu().clone().contiguous() for name, part in state.items()}
            save_file(separate, str(temporary), metadata=dict(metadata or {}))
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
    source = check.path("load_model", "path", path)
    try:
        if source.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(str(source))  # type: ignore[no-any-return]
        state = torch.load(source, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise RecordError(f"{source}: there is no such file") from error
    except Exception as error:
        raise RecordError(
            f"{source}: cannot be read ({' '.join(str(error).split())[:120]}), expected a state_dict"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(part, torch.Tensor) for part in state.values()):
        raise RecordError(f"{source}: holds a {type(state).__name__}, expected a state_dict")
    return state
