"""What figures and pages show of many walks: their mean, and the band between two quantiles."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freewalk.report.summary import measure

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]

QUANTILES = (0.1, 0.9)


def values_of(part: "xarray.Dataset") -> Floats:
    """The shown loss, walks × checkpoints."""
    return np.asarray(part[measure(part)].transpose("walk", "step").values, dtype=np.float64)


def _halfway(steps: NDArray[np.int64], mean: Floats) -> float:
    """When a curve is halfway between its first and its least value, on a log scale."""
    seen = mean[np.isfinite(mean) & (mean > 0)]
    reached = np.flatnonzero(mean <= np.sqrt(seen[0]) * np.sqrt(seen.min())) if seen.size else np.empty(0, dtype=int)
    return float(steps[reached[0]]) if reached.size else float(steps[-1])


def mean_and_band(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean and quantiles over the walks; one that is not finite counts as infinite and never leaves the mean."""
    bounded = np.where(np.isfinite(values), values, np.inf)
    with np.errstate(all="ignore"):
        mean = bounded.mean(axis=0)
        # "lower" and "higher" take values of walks as they are: no infinity is interpolated.
        low = np.quantile(bounded, QUANTILES[0], axis=0, method="lower")
        high = np.quantile(bounded, QUANTILES[1], axis=0, method="higher")
    tiny, huge = 1e-300, 1e300
    return np.where(np.isfinite(mean), mean, np.nan), np.clip(low, tiny, huge), np.clip(high, tiny, huge)


def is_spread(parts: "Mapping[str, xarray.Dataset]") -> bool:
    """Whether some design is so much faster than another that a linear axis would squeeze it into its corner."""
    middles = [_halfway(part.step.values, mean_and_band(values_of(part))[0]) for part in parts.values()]
    return max(middles) > 8 * min(middles)
