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

_ZIP = "zip"
_WORDS = ("from", "to", "step", "points", "draws", "log", "seed")
_MOST = 1_000_000  # the most values of a key, and points of a sweep
_check = Checks(SpecError)


@dataclass(frozen=True)
class Axis:
    """One key, or several zipped keys that vary together: a dimension of the result, named after the first."""

    values: Mapping[str, tuple[Any, ...]]  # of each key, all of the same length
    drawn: bool = False  # whether the values were drawn at random

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
    """The axes of a sweep, in the order of its table as TOML reads it; zipped keys come last."""
    where = f"{source}: [sweep]"
    given = dict(_check.instance(where, "sweep", table, Mapping, 'a table such as "graph.n" = [100, 1000]'))
    expected = "tables [[sweep.zip]], with two brackets"
    zipped: Sequence[Any] = _check.instance(where, _ZIP, given.pop(_ZIP, []), (list, tuple), expected)
    axes = [_axis({key: value}, where) for key, value in _flat(given)]
    for number, group in enumerate(zipped, start=1):
        keys = dict(_flat(_check.instance(where, _ZIP, group, Mapping, "tables [[sweep.zip]]")))
        axes.append(_axis(keys, f"{where}: zip {number}"))
    names = [key for axis in axes for key in axis.values]
    if not names:
        raise SpecError(f'{where} has no keys, expected at least one, such as "graph.n" = [100, 1000]')
    for key in names:
        if names.count(key) > 1:
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
    if len(set(map(len, found.values()))) > 1:
        words = ", ".join(f"{key!r} has {len(values)}" for key, values in found.items())
        raise SpecError(f"{where}: {words} values, expected the same number, since they vary together")
    return Axis(found, any(isinstance(value, Mapping) and "draws" in value for value in given.values()))


def _values(key: str, given: Any, where: str) -> tuple[Any, ...]:
    """The values of one key."""
    if isinstance(given, Mapping):
        given = _in_range(key, given, where)
    elif not isinstance(given, (list, tuple)):
        expected = "a list of values, or a range such as { from = 1, to = 10 }"
        raise SpecError(f"{where} = {show(given)}, expected {expected}")
    if not given:
        raise SpecError(f"{where} = [], expected at least one value")
    if len(given) > _MOST:
        raise SpecError(f"{where}: has {len(given):,} values, expected up to {_MOST:,}")
    seen: set[str] = set()
    for value in given:
        if isinstance(value, float) and not math.isfinite(value):
            raise SpecError(f"{where}: holds {value}, expected finite numbers")
        if repr(value) in seen:
            raise SpecError(f"{where}: holds {show(value)} twice, expected each value once")
        seen.add(repr(value))
    return tuple(given)


def _in_range(key: str, given: Mapping[str, Any], where: str) -> list[Any]:
    for word in given:
        if word not in _WORDS:
            raise SpecError(f"{where}: a range has no key {show(word)}; {suggestion(word, _WORDS, 'its keys are')}")
    for word in ("from", "to"):
        if word not in given:
            raise SpecError(f"{where}: needs the key {word!r}, as in {{ from = 1, to = 10 }}")
        _check.real(where, word, given[word])
    ends = _Range(where, given["from"], given["to"], _check.flag(where, "log", given.get("log", False)))
    ways = [word for word in ("step", "points", "draws") if word in given]
    if len(ways) > 1:
        raise SpecError(f"{where}: has {' as well as '.join(map(repr, ways))}, expected one of them")
    if "seed" in given and ways != ["draws"]:
        raise SpecError(f"{where}: has a seed but draws nothing; add draws = 10, or leave out the seed")
    if ends.log and min(ends.first, ends.last) <= 0:
        raise SpecError(f"{where}: from = {ends.first:g} and to = {ends.last:g} with log = true, expected numbers > 0")
    if "draws" in given:
        return ends.drawn(key, given["draws"], given.get("seed", 0))
    if "points" in given:
        return ends.spaced(given["points"])
    if ends.log:
        raise SpecError(f"{where}: has log = true without points or draws; add a number, as in points = 5")
    return ends.stepped(given.get("step", 1 if ends.whole else None))


@dataclass(frozen=True)
class _Range:
    """The values between two ends; whole numbers, if the ends are."""

    where: str
    first: float
    last: float
    log: bool

    @property
    def whole(self) -> bool:
        return isinstance(self.first, int) and isinstance(self.last, int)

    def at(self, share: float) -> float:
        """The number at a share of the way between the ends."""
        if self.log:
            return self.first * float((self.last / self.first) ** share)
        return self.first + (self.last - self.first) * share

    def stepped(self, given: Any) -> list[Any]:
        """Numbers with a constant step."""
        step = _check.real(self.where, "step", given, remedy="or give points = 5")
        if step == 0 or (self.last - self.first) / step < 0:
            got = f"an empty range (from = {self.first}, to = {self.last}, step = {step:g})"
            remedy = "swap the ends, or change the sign of the step"
            raise SpecError(f"{self.where}: is {got}, expected at least one value; {remedy}")
        count = math.floor((self.last - self.first) / step + 1e-9) + 1
        if count > _MOST:
            raise SpecError(f"{self.where}: has {count:,} values, expected up to {_MOST:,}")
        numbers = [self.first + place * given for place in range(count)]
        return numbers if self.whole and isinstance(given, int) else [_rounded(number) for number in numbers]

    def spaced(self, given: Any) -> list[Any]:
        """Evenly spaced numbers, including both ends."""
        points = _check.whole(self.where, "points", given, 2, _MOST)
        if self.first == self.last:
            raise SpecError(f"{self.where}: is an empty range (both ends are {self.first:g}), expected different ends")
        values = [self.first, *(self.at(place / (points - 1)) for place in range(1, points - 1)), self.last]
        if not self.whole:
            return [_rounded(value) for value in values]
        rounded = [round(value) for value in values]
        if len(set(rounded)) < points:
            got = f"{points} points between the whole numbers {self.first:g} and {self.last:g}, two of which round"
            remedy = f"write {self.first:.1f} and {self.last:.1f} for numbers in between, or use fewer"
            raise SpecError(f"{self.where}: has {got} to the same; {remedy}")
        return rounded

    def drawn(self, key: str, draws: Any, seed: Any) -> list[Any]:
        """Distinct random values, determined by the key and the seed; a larger number of draws keeps the first ones."""
        count = _check.whole(self.where, "draws", draws, 1, _MOST)
        _check.seed(self.where, seed)
        ends = f"from = {self.first:g}, to = {self.last:g}"
        if self.first >= self.last:
            raise SpecError(f"{self.where}: is an empty range ({ends}), expected from < to")
        size = int(self.last - self.first) + 1 if self.whole else 2**32
        if self.whole and size >= 2**32:
            raise SpecError(f"{self.where}: {ends}, expected fewer than 2^32 whole numbers")
        if count > size:
            raise SpecError(f"{self.where}: draws = {count}, expected up to {size}, as no value is drawn twice")

        def value(word: np.uint64) -> float:
            if self.whole and not self.log:
                return self.first + int(pick(word, np.uint64(size)))
            number = self.at(float(word >> np.uint64(11)) / 2.0**53)
            return round(number) if self.whole else _rounded(number)

        # Keys draw independently of each other and of their order in the table.
        stream = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
        found: dict[float, None] = {}
        words = count
        while len(found) < count:
            found = dict.fromkeys(map(value, words_of_use(seed, SWEEP, stream, 0, words)))
            words *= 2
            if words > WORDS:
                raise SpecError(f"{self.where}: draws = {count} different values are hard to find; use fewer")
        return list(found)[:count]


def _rounded(value: float) -> float:
    """A number of 12 digits, so that 0.1 + 0.2 is 0.3."""
    return float(f"{value:.12g}")
