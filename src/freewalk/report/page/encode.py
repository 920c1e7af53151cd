"""Numbers for a page, with few digits, points and bytes."""

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: More points per curve would look the same on any screen.
MOST_POINTS = 400
DIGITS = 5


def thin(size: int, most: int = MOST_POINTS) -> Integers:
    """Which points of a curve to keep: half of them evenly spaced, half evenly spaced on a log scale, and both ends.

    Examples
    --------
    >>> thin(5).tolist(), thin(1000, 8).tolist()
    ([0, 1, 2, 3, 4], [0, 1, 10, 100, 333, 666, 999])
    """
    if size <= most:
        return np.arange(size)
    half = most // 2
    even = np.linspace(0, size - 1, half)
    # A curve changes most at its beginning, which a logarithmic axis shows.
    log = np.geomspace(1, size - 1, most - half)
    return np.unique(np.rint(np.concatenate([even, log])).astype(np.int64))


def numbers(values: Floats, digits: int = DIGITS) -> list[float | int | None]:
    """The values for JSON: integers unchanged, others rounded, None for those that are not finite.

    Examples
    --------
    >>> numbers(np.array([200.0, 0.0101502, float("inf")]))
    [200, 0.01015, None]
    """
    return [_number(float(value), digits) for value in values]


def _number(value: float, digits: int) -> float | int | None:
    if not np.isfinite(value):
        return None
    if value == int(value) and abs(value) < 10**9:
        return int(value)
    return float(f"{value:.{digits}g}")


def pack(values: NDArray[Any], kind: str) -> str:
    """An array as base64 of little-endian numbers; `kind` is one of numpy's, such as "u2" or "f4"."""
    if kind == "f4":
        values = np.clip(values, -3e38, 3e38)  # the range of float32
    return base64.b64encode(values.astype(f"<{kind}").tobytes()).decode("ascii")


def pack_indices(values: Integers, size: int) -> dict[str, str | int]:
    """Indices below `size`, in two or four bytes each."""
    kind = "u2" if size <= 2**16 else "u4"
    return {"bytes": int(kind[1]), "data": pack(values, kind)}


def embed(payload: Any) -> str:
    r"""JSON that is safe inside a script element, whatever the labels contain.

    Examples
    --------
    >>> embed({"label": "</script>"})
    '{"label":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(payload, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
