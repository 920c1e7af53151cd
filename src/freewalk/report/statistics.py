"""Statistics over walks for figures and pages: the mean, a band around it, and the choice of axis scales."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.report.measures import Measure, along, half_width, values_of

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]
Band = Literal["quantiles", "confidence", "none"]

QUANTILES = (0.1, 0.9)
#: The name of a band in a legend.
BANDS: dict[str, str] = {"quantiles": "10–90 % of the walks", "confidence": "95 % confidence of the mean"}

_APART = 8  # if one curve is this many times as fast, a linear axis shows only the slower one
_CORNER = 1 / 20  # a curve within this part of a linear axis cannot be read


def check_band(who: str, band: Band) -> None:
    """Check the kind of a band.

    Raises
    ------
    RecordError
        If it is not a known kind.
    """
    Checks(RecordError).choice(who, "band", band, get_args(Band))


def mean_and_band(
    values: Floats, band: Band = "quantiles", *, rises: bool = False, best: float | None = None
) -> tuple[Floats, Floats, Floats]:
    """Mean and band over the walks; a value that is not finite counts as infinitely bad and is never dropped.

    Parameters
    ----------
    values
        Walks × checkpoints.
    band
        "quantiles": from the 10 % to the 90 % quantile of the walks; "confidence": the 95 % confidence interval of
        the mean, by Student's t; "none": no band, both ends are the mean.
    rises
        Whether higher values are better.
    best
        The best possible value, if known: a confidence interval does not go beyond it.

    Returns
    -------
    tuple of Floats
        The mean (NaN where it is not finite) and the ends of the band, which are finite.
    """
    bounded = np.where(np.isfinite(values), values, -np.inf if rises else np.inf)
    with np.errstate(all="ignore"):
        mean = bounded.mean(axis=0)
        low = high = mean
        if band == "quantiles":
            # "lower" and "higher" return values of walks, so infinities are never interpolated.
            low = np.quantile(bounded, QUANTILES[0], axis=0, method="lower")
            high = np.quantile(bounded, QUANTILES[1], axis=0, method="higher")
        elif band == "confidence":
            reach = np.nan_to_num(half_width(bounded))  # 0 if not known, as for a single walk
            low, high = mean - reach, mean + reach
            if best is not None and rises:
                high = np.fmin(high, np.fmax(mean, best))
            elif best is not None:
                low = np.fmax(low, np.fmin(mean, best))
    huge = 1e300
    return np.where(np.isfinite(mean), mean, np.nan), np.clip(low, -huge, huge), np.clip(high, -huge, huge)


def is_log(measure: Measure, means: Iterable[Floats]) -> bool:
    """Whether the vertical axis is logarithmic: for a loss, unless one is negative."""
    return not measure.rises and not any((mean < 0).any() for mean in means)


def is_spread(parts: "Mapping[str, xarray.Dataset]", measure: Measure, axes: Iterable[str]) -> bool:
    """Whether a linear horizontal axis would squeeze some design into a corner.

    That is the case if a design is halfway to its best value within the first twentieth of the axis, or if another
    takes more than eight times as long to get halfway.
    """
    means = {
        label: mean_and_band(values_of(part, measure.name), "none", rises=measure.rises)[0]
        for label, part in parts.items()
    }
    log = is_log(measure, means.values())
    for axis in axes:
        curves = [(along(part, axis), means[label]) for label, part in parts.items()]
        curves = [(counts, mean) for counts, mean in curves if counts[-1] > 0]  # one that sends nothing has no extent
        if not curves:
            continue
        middles = [_halfway(counts, -mean if measure.rises else mean, log) for counts, mean in curves]
        end = max(float(counts[-1]) for counts, _ in curves)
        if max(middles) > _APART * min(middles) or min(middles) < _CORNER * end:
            return True
    return False


def _halfway(counts: Floats, mean: Floats, log: bool) -> float:
    """Where a curve is halfway between its first and its lowest value; its end if it never falls."""
    height = np.log(mean, where=mean > 0, out=np.full(mean.shape, np.nan)) if log else mean
    seen = height[np.isfinite(height)]
    if not seen.size or not seen.min() < seen[0]:
        return float(counts[-1])
    return float(counts[np.flatnonzero(height <= (seen[0] + seen.min()) / 2)[0]])
