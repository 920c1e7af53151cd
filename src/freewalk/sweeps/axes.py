"""The table [sweep]: the values of each key, in all combinations or zipped.

    [sweep]
    "graph.n" = [100, 300, 1000]                                     # a list
    "problem.seed" = { from = 1, to = 10 }                           # integers, spaced by `step` if given
    "walk.MHLJ.design.jump" = { from = 0.1, to = 0.9, points = 5 }   # evenly spaced, including both ends
    "walk.*.rule.step" = { from = 1e-4, to = 1e-2, points = 5, log = true }
    "problem.noise" = { from = 0.1, to = 1.0, draws = 20, seed = 1 } # drawn at random

    [[sweep.zip]]                                                    # these vary together
    "graph.n" = [100, 1000]
    "run.steps" = [2000, 20_000]

If `from` and `to` are integers, so are the values; others are rounded to 12 digits, so that 0.1 + 0.2 is 0.3.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from freewalk.checks import Checks, show, suggestion
from freewalk.errors import SpecError
from freewalk.rng import SWEEP, WORDS, pick, words_of_use

ZIP = "zip"
_WORDS = ("from", "to", "step", "points", "draws", "log", "seed")
_MOST = 1_000_000  # the most values of a key, and points of a sweep
_DIGITS = 12

check = Checks(SpecError)


@dataclass(frozen=True)
class Axis:
    """One key, or several zipped keys that vary together: a dimension of the result, named after the first.

    Attributes
    ----------
    values
        The values of each key, all of the same length.
    drawn
        Whether the values were drawn at random.

    Examples
    --------
    >>> axis = Axis({"graph.n": (100, 1000), "run.steps": (2000, 20_000)})
    >>> axis.name, len(axis), axis.at(1)
    ('graph.n', 2, {'graph.n': 1000, 'run.steps': 20000})
    """

    values: Mapping[str, tuple[Any, ...]]
    drawn: bool = False

    @property
    def name(self) -> str:
        """The first of its keys."""
        return next(iter(self.values))

    def __len__(self) -> int:
        return len(self.values[self.name])

    def at(self, place: int) -> dict[str, Any]:
        """The values of its keys at one position."""
        return {key: values[place] for key, values in self.values.items()}


def read_axes(table: Mapping[str, Any], source: str) -> tuple[Axis, ...]:
    """The axes of a sweep, in the order of its table; zipped keys come last.

    Parameters
    ----------
    table
        The table as TOML reads it; keys may be quoted or not.
    source
        The name of the file in error messages.

    Raises
    ------
    SpecError
        If a value is not a list or range, is empty or contains a value twice, or zipped keys differ in length.

    Examples
    --------
    >>> [axis.values for axis in read_axes({"graph": {"n": {"from": 10, "to": 30, "step": 10}}}, "my.toml")]
    [{'graph.n': (10, 20, 30)}]
    >>> read_axes({"graph.n": []}, "my.toml")
    Traceback (most recent call last):
    freewalk.errors.SpecError: my.toml: [sweep]: "graph.n" = [], expected at least one value
    """
    where = f"{source}: [sweep]"
    given = dict(check.instance(where, "sweep", table, Mapping, 'a table such as "graph.n" = [100, 1000]'))
    zipped: Sequence[Any] = check.instance(
        where, ZIP, given.pop(ZIP, []), (list, tuple), "tables [[sweep.zip]], with two brackets"
    )
    axes = [_axis({key: value}, where) for key, value in _flat(given)]
    for number, group in enumerate(zipped, start=1):
        place = f"{where}: zip {number}"
        axes.append(_axis(dict(_flat(check.instance(where, ZIP, group, Mapping, "tables [[sweep.zip]]"))), place))
    keys = [key for axis in axes for key in axis.values]
    if not keys:
        raise SpecError(f'{where} has no keys, expected at least one, such as "graph.n" = [100, 1000]')
    for key in keys:
        if keys.count(key) > 1:
            raise SpecError(f"{where}: {key!r} occurs twice, expected each key once")
    total = math.prod(map(len, axes))
    if total > _MOST:
        raise SpecError(f"{where}: makes {total:,} points, expected up to {_MOST:,}; leave out some values")
    return tuple(axes)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of a table with their values; TOML reads an unquoted graph.n as a table within a table."""
    for key, value in table.items():
        if isinstance(value, Mapping) and not any(word in value for word in ("from", "to", "points", "draws")):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _axis(given: Mapping[str, Any], where: str) -> Axis:
    if not given:
        raise SpecError(f"{where}: is empty, expected at least one key")
    found = {key: _values(key, value, f'{where}: "{key}"') for key, value in given.items()}
    lengths = {key: len(values) for key, values in found.items()}
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
        raise SpecError(f"{where}: {words} values, expected the same number, since they vary together")
    drawn = any(isinstance(value, Mapping) and "draws" in value for value in given.values())
    return Axis(found, drawn)


def _values(key: str, given: Any, where: str) -> tuple[Any, ...]:
    """The values of one key."""
    if isinstance(given, Mapping):
        values: Sequence[Any] = _in_range(key, given, where)
    elif isinstance(given, (list, tuple)):
        values = list(given)
        if not values:
            raise SpecError(f"{where} = [], expected at least one value")
    else:
        raise SpecError(
            f"{where} = {show(given)}, expected a list of values, or a range such as {{ from = 1, to = 10 }}"
        )
    if len(values) > _MOST:
        raise SpecError(f"{where}: has {len(values):,} values, expected up to {_MOST:,}")
    seen: set[str] = set()
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            raise SpecError(f"{where}: holds {value}, expected finite numbers")
        if repr(value) in seen:
            raise SpecError(f"{where}: holds {show(value)} twice, expected each value once")
        seen.add(repr(value))
    return tuple(values)


def _in_range(key: str, given: Mapping[str, Any], where: str) -> list[Any]:
    for word in given:
        if word not in _WORDS:
            raise SpecError(f"{where}: a range has no key {show(word)}; {suggestion(word, _WORDS, 'its keys are')}")
    for word in ("from", "to"):
        if word not in given:
            raise SpecError(f"{where}: needs the key {word!r}, as in {{ from = 1, to = 10 }}")
    first, last = (check.real(where, word, given[word]) for word in ("from", "to"))
    whole = all(isinstance(given[word], int) for word in ("from", "to"))
    log = check.flag(where, "log", given.get("log", False))
    ways = [word for word in ("step", "points", "draws") if word in given]
    if len(ways) > 1:
        raise SpecError(f"{where}: has {' as well as '.join(map(repr, ways))}, expected one of them")
    if "seed" in given and ways != ["draws"]:
        raise SpecError(f"{where}: has a seed but draws nothing; add draws = 10, or leave out the seed")
    if log and min(first, last) <= 0:
        raise SpecError(f"{where}: from = {first:g} and to = {last:g} with log = true, expected numbers > 0")
    if "draws" in given:
        return _drawn(key, given, (first, last, whole, log), where)
    if "points" in given:
        return _spaced(check.whole(where, "points", given["points"], 2, _MOST), first, last, whole, log, where)
    if log:
        raise SpecError(f"{where}: has log = true without points or draws; add a number, as in points = 5")
    return _stepped(given, first, last, whole, where)


def _stepped(given: Mapping[str, Any], first: float, last: float, whole: bool, where: str) -> list[Any]:
    step = check.real(where, "step", given.get("step", 1 if whole else None), remedy="or give points = 5")
    if step == 0 or (last - first) / step < 0:
        raise SpecError(
            f"{where}: is an empty range (from = {given['from']}, to = {given['to']}, step = {step:g}), expected at "
            "least one value; swap the ends, or change the sign of the step"
        )
    count = math.floor((last - first) / step + 1e-9) + 1
    if count > _MOST:
        raise SpecError(f"{where}: has {count:,} values, expected up to {_MOST:,}")
    if whole and isinstance(given.get("step", 1), int):
        return list(range(given["from"], given["from"] + count * int(step), int(step)))
    return [_rounded(first + place * step) for place in range(count)]


def _spaced(points: int, first: float, last: float, whole: bool, log: bool, where: str) -> list[Any]:
    if first == last:
        raise SpecError(f"{where}: is an empty range (from and to are both {first:g}), expected different ends")
    shares = [place / (points - 1) for place in range(points)]
    values = [_between(first, last, share, log) for share in shares]
    values[0], values[-1] = first, last
    if not whole:
        return [_rounded(value) for value in values]
    rounded = [round(value) for value in values]
    if len(set(rounded)) < points:
        raise SpecError(
            f"{where}: has {points} points between the whole numbers {first:g} and {last:g}, two of which round to "
            f"the same; write {first:.1f} and {last:.1f} for numbers in between, or use fewer"
        )
    return list(rounded)


def _drawn(key: str, given: Mapping[str, Any], ends: tuple[float, float, bool, bool], where: str) -> list[Any]:
    """Distinct random values, determined by the key and the seed; a larger number of draws keeps the first ones."""
    first, last, whole, log = ends
    count = check.whole(where, "draws", given["draws"], 1, _MOST)
    seed = check.seed(where, given.get("seed", 0))
    if first >= last:
        raise SpecError(f"{where}: is an empty range (from = {first:g}, to = {last:g}), expected from < to")
    size = int(last) - int(first) + 1 if whole else 2**32
    if whole and size >= 2**32:
        raise SpecError(f"{where}: from = {first:g}, to = {last:g}, expected fewer than 2^32 whole numbers")
    if count > size:
        raise SpecError(f"{where}: draws = {count}, expected up to {size}, as no value is drawn twice")

    def value(word: np.uint64) -> float:
        if whole and not log:
            return int(first) + int(pick(word, np.uint64(size)))
        share = float(word >> np.uint64(11)) / 2.0**53
        drawn = _between(first, last, share, log)
        return round(drawn) if whole else _rounded(drawn)

    # Keys draw independently of each other and of their order in the table.
    stream = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
    found: dict[float, None] = {}
    words = count
    while len(found) < count:
        found = dict.fromkeys(map(value, words_of_use(seed, SWEEP, stream, 0, words)))
        words *= 2
        if words > WORDS:
            raise SpecError(f"{where}: draws = {count} different values are hard to find; use fewer")
    return list(found)[:count]


def _between(first: float, last: float, share: float, log: bool) -> float:
    return first * (last / first) ** share if log else first + (last - first) * share


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
