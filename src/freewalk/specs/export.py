"""Write a final model of a record to a file that other programs can read."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk._version import __version__
from freewalk.checks import Checks, show, suggestion
from freewalk.errors import MissingExtra, RecordError
from freewalk.objectives import Objective
from freewalk.run.evaluate import evaluate
from freewalk.run.record import Record
from freewalk.storage.files import replacing

if TYPE_CHECKING:
    import xarray

check = Checks(RecordError)


def export_model(
    record: Record, objective: Objective, path: Any, *, design: str | None = None, walk: int = 0, name: str = ""
) -> Path:
    """Write a final model of a record to a file.

    A PyTorch model is written as its state_dict, to .safetensors, which any framework reads, or to .pt or .pth. A model
    of any other objective is one vector named x, written to .safetensors or .npz. Files of type .safetensors and .npz
    also store its origin as text: versions, spec, label, walk, step and measures.
    """
    target = check.path("export", "path", path)
    target = target if target.suffix else target.with_suffix(".safetensors")
    torch = callable(getattr(objective, "state_dict", None))
    known = (".safetensors", ".pt", ".pth") if torch else (".safetensors", ".npz")
    if target.suffix not in known:
        raise check.fail("export", "path", str(target), f"a file that ends in {' or '.join(known)}")
    data, label = _chosen(record, design)
    number = check.whole("export", "walk", walk, 0, data.sizes["walk"] - 1)
    model = np.asarray(data.final.values[number])
    if np.isnan(model).all():
        raise RecordError(f"export: {label!r} has no walk {number}, expected a smaller number")
    texts = {
        "freewalk": __version__,
        "spec": name,
        "label": label,
        "walk": str(number),
        "step": str(int(data.step.values[-1])),
    }
    texts |= {str(key): repr(float(one.values[0])) for key, one in evaluate(model, objective).data_vars.items()}
    if torch:
        from freewalk.torch.models import save_state

        return save_state(objective.state_dict(model), target, texts)  # type: ignore[attr-defined]
    return _write_vector(target, model, texts)


def _chosen(record: Record, design: str | None) -> "tuple[xarray.Dataset, str]":
    """The part of one design, and its label."""
    data = record.data
    if "final" not in data:
        raise RecordError(f"export: nothing was learned in {record.label!r}, expected a record with final models")
    labels = [str(label) for label in data.design.values] if "design" in data.dims else [record.label]
    if design is None and len(labels) > 1:
        names = ", ".join(map(repr, labels))
        raise RecordError(f"export: there are {len(labels)} designs, expected one; choose with --design: {names}")
    label = labels[0] if design is None else design
    if label not in labels:
        raise RecordError(f"export: there is no design {show(label)}; {suggestion(label, labels, 'there are')}")
    if "design" not in data.dims:
        return data, label
    part = data.sel(design=label)
    return part.isel(step=np.isfinite(part.loss.values).any(axis=0)), label  # other designs may have run longer


def _write_vector(target: Path, model: Any, texts: dict[str, str]) -> Path:
    with replacing(target) as temporary:
        if target.suffix == ".npz":
            arrays: dict[str, Any] = {"x": model, **texts}
            with temporary.open("wb") as stream:  # to a path without the suffix, NumPy would add it
                np.savez(stream, **arrays)
        else:
            try:
                from safetensors.numpy import save_file
            except ImportError:
                raise MissingExtra("safetensors", "torch") from None
            save_file({"x": np.ascontiguousarray(model)}, str(temporary), metadata=texts)
    return target
