"""What figures and pages show of many walks: their mean, a band around it, and the axis that shows all of them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.report.reading import half_width, values_of

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]
Band = Literal["quantiles", "confidence", "none"]

QUANTILES = (0.1, 0.9)
#: What a legend calls a band.
BANDS: dict[str, str] = {"quantiles": "10–90 % of the walks", "confidence": "95 % confidence of the mean"}

_APART = 8  # times as fast, from which on a linear axis shows only the slower of two curves
_CORNER = 1 / 20  # of a linear axis, in which a curve cannot be read


def check_band(who: str, band: Band) -> None:
    """Object to what is no kind of band.

    Raises
    ------
    RecordError
        If it is none.
    """
    Checks(RecordError).choice(who, "band", band, get_args(Band))


def mean_and_band(values: Floats, band: Band = "quantiles") -> tuple[Floats, Floats, Floats]:
    """Mean and band over the walks; a value that is not finite counts as infinite and never leaves the mean.

    Parameters
    ----------
    values
        Walks × checkpoints.
    band
        "quantiles": from the 10 % to the 90 % quantile of the walks. "confidence": the 95 % confidence interval of
        the mean, by Student's t. "none": none, its ends are the mean.

    Returns
    -------
    tuple of Floats
        The mean, NaN where it is not finite, and the ends of the band, above 0 as a log axis needs them.
    """
    bounded = np.where(np.isfinite(values), values, np.inf)
    with np.errstate(all="ignore"):
        mean = bounded.mean(axis=0)
        low = high = mean
        if band == "quantiles":
            # "lower" and "higher" take values of walks as they are: no infinity is interpolated.
            low = np.quantile(bounded, QUANTILES[0], axis=0, method="lower")
            high = np.quantile(bounded, QUANTILES[1], axis=0, method="higher")
        elif band == "confidence":
            reach = np.nan_to_num(half_width(bounded))  # none where it is not known, as for a single walk
            low, high = mean - reach, mean + reach
    tiny, huge = 1e-300, 1e300
    return np.where(np.isfinite(mean), mean, np.nan), np.clip(low, tiny, huge), np.clip(high, tiny, huge)


def is_spread(parts: "Mapping[str, xarray.Dataset]") -> bool:
    """Whether a linear axis of updates or of messages would squeeze some design into its corner.

    That is where a design is halfway down within the first twentieth of the axis, or where another takes more than
    eight times as long to get there.
    """
    for axis in ("updates", "messages"):
        curves = [(_counts(part, axis), mean_and_band(values_of(part), "none")[0]) for part in parts.values()]
        curves = [(counts, mean) for counts, mean in curves if counts[-1] > 0]  # one that sends nothing has no length
        if not curves:
            continue
        middles = [_halfway(counts, mean) for counts, mean in curves]
        end = max(float(counts[-1]) for counts, _ in curves)
        if max(middles) > _APART * min(middles) or min(middles) < _CORNER * end:
            return True
    return False


def _counts(part: "xarray.Dataset", axis: str) -> Floats:
    counts = part.step.values if axis == "updates" else values_of(part, "messages").mean(axis=0)
    return np.asarray(counts, dtype=np.float64)


def _halfway(counts: Floats, mean: Floats) -> float:
    """When a curve is halfway between its first and its least value, on a log scale; at the end if it never falls."""
    seen = mean[np.isfinite(mean) & (mean > 0)]
    if not seen.size or not seen.min() < seen[0]:
        return float(counts[-1])
    reached = np.flatnonzero(mean <= np.sqrt(seen[0]) * np.sqrt(seen.min()))
    return float(counts[reached[0]])
