"""Evidence written by hand, and a study so small that it can be run whole, exact curves and all."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import xarray

from freewalk.paper import reproduction, task
from freewalk.paper.claims import Claim, alike, ends, sooner
from freewalk.paper.evidence import Evidence, PublishedCurve
from freewalk.paper.study import Study
from freewalk.run.record import Record

Points = tuple[list[float], list[float]]

#: Two walks on twenty nodes, by the names that figure 4a gives to its own.
SPEC = """
name = "tiny"

[graph]
kind = "ring"
n = 20

[problem]
kind = "LeastSquares"
dim = 2
heavy = 2
heavy_variance = 10.0
noise = 0.04
distance = 0.22
seed = 3

[run]
steps = 1200
walks = 6
every = 100
start = 0
seed = 7
paths = 1

[[walk]]
label = "MH uniform"
design = { kind = "Metropolis", power = 0 }
rule = { kind = "SGD", step = 1e-2 }

[[walk]]
label = "MH importance"
design = { kind = "Metropolis", power = 1 }
rule = { kind = "SGD", step = 1e-2 }
"""
CLAIMS: tuple[Claim, ...] = (
    sooner("MH importance", "MH uniform", 3),
    alike("MH uniform", "MH importance", 3, 1.25),
    ends("MH importance", "MH uniform", most=1.05, why={"stated": "it is stated", "published": "it is published"}),
)
TINY = Study("4a", "A tiny one", ("Twenty nodes.",), CLAIMS)


def take_the_place_of_figure_4a(monkeypatch: pytest.MonkeyPatch, folder: Path, study: Study = TINY) -> Path:
    """Let the tiny study be what is run as figure 4a, in both variants; returns its spec."""
    path = folder / "tiny.toml"
    path.write_text(SPEC)
    monkeypatch.setitem(reproduction.STUDIES, "4a", study)
    monkeypatch.setattr(task, "spec_path", lambda key, variant: path)
    monkeypatch.setattr(task, "sweep_path", lambda key, variant: folder / "none.json")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def evidence(
    curves: Mapping[str, Points],
    *,
    messages: Mapping[str, list[float]] | None = None,
    optimum: float = 1.0,
    exact: bool = False,
    printed: Mapping[str, Points] | None = None,
    variant: str = "stated",
) -> Evidence:
    """Evidence of curves (updates, mse) by design, all at the same updates; a message each update if not said."""
    labels = list(curves)
    updates = np.array(curves[labels[0]][0], dtype=np.float64)
    mse = np.array([curves[label][1] for label in labels], dtype=np.float64)
    sent = np.array([(messages or {}).get(label, list(updates)) for label in labels], dtype=np.float64)
    # Two walks, one as far above the mean as the other below.
    spread = np.array([0.5, 1.5])[None, :, None]
    data = xarray.Dataset(
        {
            "mse": (("design", "walk", "step"), mse[:, None, :] * spread),
            "messages": (("design", "walk", "step"), sent[:, None, :] * spread),
        },
        coords={"design": labels, "step": updates},
        attrs={"optimal_mse": optimum},
    )
    known = xarray.Dataset(
        {"mse": (("design", "step"), mse), "messages": (("design", "step"), sent)},
        coords={"design": labels, "step": updates},
    )
    curves_of = {
        label: PublishedCurve(*(np.array(one, dtype=np.float64) for one in points))
        for label, points in (printed or {}).items()
    }
    return Evidence(None, Record(data), known if exact else None, curves_of, variant)  # type: ignore[arg-type]
