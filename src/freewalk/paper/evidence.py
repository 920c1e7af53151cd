"""The evidence for claims: the expected curves of a figure, and the printed ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from freewalk.paper.files import Variant
from freewalk.paper.published import PublishedCurve
from freewalk.report.measures import Measure, by_design, crossings, measure_of
from freewalk.run.record import Record
from freewalk.specs.spec import Plan

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]
Count = Literal["updates", "messages"]


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
        where = self.updates if by == "updates" else self.messages
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
