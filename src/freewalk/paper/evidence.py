"""The evidence for claims: the expected curves of a figure, the printed ones as numbers, and how far they are apart."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from freewalk.errors import SpecError
from freewalk.linear.arrays import Floats
from freewalk.paper.files import Variant
from freewalk.report.measures import Measure, by_design, crossings, measure_of
from freewalk.run.record import Record
from freewalk.specs.spec import Plan

if TYPE_CHECKING:
    import xarray

Count = Literal["updates", "messages"]
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


@dataclass(frozen=True, eq=False)
class Curve:
    """The expected error of one design.

    Attributes
    ----------
    updates, messages
        The checkpoints, and the expected messages up to them.
    error
        The expected error there: the primary measure of the record.
    """

    updates: Floats
    messages: Floats
    error: Floats

    @property
    def diverges(self) -> bool:
        """Whether it ends above its start, or is not finite at the end."""
        return not self.error[-1] <= self.error[0]

    def reached(self, level: float, by: Count = "updates") -> float:
        """When the curve first reaches `level`, interpolated on a log scale; inf if it never does."""
        where = getattr(self, by)
        place = crossings(self.error[None], level)[0]
        return float(np.interp(place, np.arange(where.size), where)) if np.isfinite(place) else float("inf")


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything known about a figure after its run.

    Attributes
    ----------
    plan
        What was run.
    record
        The record of the walks.
    exact
        The exact curves by design, or None: then the mean over the walks is used.
    published
        The printed curves by label; empty if none are printed.
    variant
        The variant of the parameters.
    """

    plan: Plan
    record: Record
    exact: "xarray.Dataset | None"
    published: Mapping[str, PublishedCurve]
    variant: Variant

    @property
    def optimum(self) -> float:
        """The smallest error of any model."""
        return float(self.record.data.attrs[f"optimal_{self.measure.name}"])

    @property
    def measure(self) -> Measure:
        """What the curves show: the primary measure of the record."""
        return measure_of(self.record.data)

    @cached_property
    def parts(self) -> "dict[str, xarray.Dataset]":
        """The measurements of each design."""
        return by_design(self.record)

    def curve(self, label: str) -> Curve:
        """The expected curve of one design."""
        if self.exact is None:
            one = self.parts[label][[self.measure.name, "messages"]].mean("walk")
        else:
            one = self.exact.sel(design=label)
        return Curve(one.step.values.astype(np.float64), one.messages.values, one[self.measure.name].values)

    def printed(self, label: str) -> Curve:
        """The printed curve of a design that has one; its messages are those of our walk."""
        curve, own = self.published[label], self.curve(label)
        return Curve(curve.updates, np.interp(curve.updates, own.updates, own.messages), curve.mse)

    @property
    def printed_floor(self) -> float:
        """The smallest value of all printed curves, which stands for the optimum of the unknown data."""
        return min(float(curve.mse.min()) for curve in self.published.values())
