"""The paper's printed curves as numbers, and the distance of another curve from one of them."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.errors import SpecError

Floats = NDArray[np.float64]

#: The names of designs in the file, and in the specs of the studies.
LABELS = {
    "mh_uniform": "MH uniform",
    "mh_importance": "MH importance",
    "mhlj": "MHLJ",
    "mhlj_then_uniform": "MHLJ, then uniform",
}
#: The names of figures in the file, by their number in the paper.
FIGURES = {
    "3": "fig3_ring",
    "4a": "fig4a_er_homogeneous",
    "4b": "fig4b_er_heterogeneous",
    "5a": "fig5a_grid",
    "5b": "fig5b_watts_strogatz",
    "6": "fig6_ring_switch",
}
#: The number of checkpoints at which two curves are compared.
CHECKPOINTS = 30


@dataclass(frozen=True, eq=False)
class PublishedCurve:
    """One line of a printed plot, read off its vector graphics: its points, from update 0 on."""

    updates: Floats
    mse: Floats

    def checkpoints(self) -> Floats:
        """Updates evenly spaced on a log scale, from the first printed point after 0 to the last."""
        return np.geomspace(self.updates[1], self.updates[-1], CHECKPOINTS)

    def decades(self, updates: ArrayLike, mse: ArrayLike) -> Floats:
        """log₁₀ of another curve over this one, at each checkpoint; both are interpolated on a log scale."""
        where = self.checkpoints()
        with np.errstate(divide="ignore", invalid="ignore"):
            other = np.interp(where, np.asarray(updates, dtype=np.float64), np.log10(np.asarray(mse, dtype=np.float64)))
        return np.asarray(other - np.interp(where, self.updates, np.log10(self.mse)))

    def distance(self, updates: ArrayLike, mse: ArrayLike) -> float:
        """The root mean square of `decades`."""
        return float(np.sqrt(np.mean(self.decades(updates, mse) ** 2)))


@cache
def published(figure: str) -> Mapping[str, PublishedCurve]:
    """The printed curves of a figure, by the label that specs give to their design, in the order of the file."""
    if figure not in FIGURES:
        raise SpecError(f"published: figure = {figure!r}, expected one of {', '.join(FIGURES)}")
    points: dict[str, list[tuple[float, float]]] = {}
    text = files("freewalk.paper").joinpath("published_curves.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        if row["figure"] == FIGURES[figure]:
            points.setdefault(LABELS[row["design"]], []).append((float(row["iteration"]), float(row["value"])))
    curves = {label: np.array(rows).T for label, rows in points.items()}
    return MappingProxyType({label: PublishedCurve(*rows) for label, rows in curves.items()})
