"""A sweep: a spec, the values to vary, and the resulting points, each with its own spec."""

import json
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from freewalk.checks import Checks
from freewalk.errors import SpecError
from freewalk.specs.spec import Spec
from freewalk.specs.spec import load as load_spec
from freewalk.specs.spec import parse as parse_spec
from freewalk.specs.tables import read_tables
from freewalk.sweeps.axes import Axis, read_axes
from freewalk.sweeps.hashes import Inputs, key_of
from freewalk.sweeps.keys import check_apart, labelled, paths_of, put

TABLE = "sweep"
check = Checks(SpecError)


@dataclass(frozen=True, eq=False)
class Point:
    """One point of a sweep.

    Attributes
    ----------
    place
        Its index along each axis.
    setting
        The values of the keys.
    spec
        The spec to run; its text is generated when it is run.
    key
        The hash of everything that its result depends on.
    """

    place: tuple[int, ...]
    setting: dict[str, Any]
    spec: Spec = field(repr=False)
    key: str

    @property
    def words(self) -> str:
        """Its name in messages."""
        return ", ".join(f"{key} = {in_words(value)}" for key, value in self.setting.items())


@dataclass(frozen=True, eq=False)
class Sweep:
    """A spec and the values that are varied.

    Attributes
    ----------
    spec
        The spec as written, including its table [sweep].
    axes
        The axes, one dimension each.
    values
        The spec as TOML reads it, without [sweep], with labelled walks.
    """

    spec: Spec
    axes: tuple[Axis, ...]
    values: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the spec, and of the folder under runs/."""
        return self.spec.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values along each axis."""
        return tuple(map(len, self.axes))

    @property
    def keys(self) -> list[str]:
        """All keys that are varied."""
        return [key for axis in self.axes for key in axis.values]

    def __len__(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def points(self) -> list[Point]:
        """All points; the last axis varies fastest.

        Raises
        ------
        SpecError
            If the spec of a point is not valid; the message names its values.
        """
        where = f"{self.spec.source}: [{TABLE}]"
        paths = {key: paths_of(key, self.values, f'{where}: "{key}"') for key in self.keys}
        check_apart(paths, where)
        inputs = Inputs(self.spec.folder)
        self._check_keys(paths)
        found = []
        for place in product(*map(range, self.shape)):
            setting = {
                key: value for axis, at in zip(self.axes, place, strict=True) for key, value in axis.at(at).items()
            }
            spec = self._at(setting, paths)
            found.append(Point(place, setting, spec, key_of(spec, inputs)))
        return found

    def _check_keys(self, paths: Mapping[str, Any]) -> None:
        """Try the first value of each key separately, so that errors name the right key."""
        for axis in self.axes:
            setting = axis.at(0)
            try:
                self._at(setting, paths)
            except SpecError as error:
                keys = " with ".join(f'"{key}"' for key in setting)
                said = str(error).removeprefix(f"{self.spec.source}: ")
                raise SpecError(f"{self.spec.source}: [{TABLE}]: {keys}: {said}") from error

    def _at(self, setting: Mapping[str, Any], paths: Mapping[str, Any]) -> Spec:
        places = [(path, value) for key, value in setting.items() for path in paths[key]]
        try:
            spec = replace(self.spec, text="", tables=read_tables(put(self.values, places), self.spec.source))
            spec.check()
            return spec
        except SpecError as error:
            if len(setting) == 1 or len(self.axes) == 1:
                raise
            words = ", ".join(f"{key} = {in_words(value)}" for key, value in setting.items())
            raise SpecError(f"{error} (at {words})") from error


def load(path: str | os.PathLike[str]) -> Sweep:
    """Read and check a sweep: a spec with a table [sweep]. Nothing that it names is imported until it is run.

    Parameters
    ----------
    path
        A TOML file; `freewalk example sweep` prints one.

    Raises
    ------
    SpecError
        If the file cannot be read, or does not say what to run and what to vary.

    Examples
    --------
    >>> from freewalk.specs import shipped
    >>> sweep = load(shipped("sweep.toml"))
    >>> len(sweep), sweep.shape
    (24, (4, 3, 2))
    """
    return of_spec(load_spec(path))


def parse(text: str, source: str = "sweep", folder: Path = Path()) -> Sweep:
    """Check a sweep given as text; paths in it are relative to `folder`. See `load`."""
    return of_spec(parse_spec(text, source, folder))


def of_spec(spec: Spec, over: Mapping[str, Any] | None = None) -> Sweep:
    """A sweep of a spec, over its table [sweep] or over other values.

    Parameters
    ----------
    spec
        A checked spec.
    over
        Lists, arrays or ranges by key, instead of its table [sweep].

    Raises
    ------
    SpecError
        If there is nothing to vary, or it cannot be varied this way.
    """
    if over is not None:
        spec = _with_table(
            spec, check.instance("sweep", "over", over, Mapping, "values by key, such as {'graph.n': [9]}")
        )
    values = tomllib.loads(spec.text)
    table = values.pop(TABLE, None)
    if table is None:
        raise SpecError(
            f'{spec.source}: has no table [{TABLE}], expected one such as "graph.n" = [100, 1000]; `freewalk example '
            "sweep` prints a spec that has one"
        )
    made = Sweep(spec, read_axes(table, spec.source), labelled(values))
    _ = made.points  # to find errors now
    return made


def _with_table(spec: Spec, over: Mapping[str, Any]) -> Spec:
    """A spec with another table [sweep], in its text too."""
    import tomlkit

    document = tomlkit.parse(spec.text)
    try:
        document[TABLE] = tomlkit.item(_plain(over))
        return parse_spec(document.as_string(), spec.source, spec.folder)
    except (tomlkit.exceptions.TOMLKitError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, SpecError):
            raise
        raise check.fail(
            "sweep", "over", over, "lists, arrays or ranges by key", f"it cannot be TOML ({error})"
        ) from error


def _plain(value: Any) -> Any:
    """A NumPy value as one that TOML can hold."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple, range)) else value


def in_words(value: Any) -> str:
    """A value as tables and figures show it.

    Examples
    --------
    >>> in_words(0.001), in_words("uniform"), in_words({"kind": "MHLJ", "jump": 0.1}), in_words(True)
    ('0.001', 'uniform', 'MHLJ jump=0.1', 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        words = [str(value["kind"])] if "kind" in value else []
        return " ".join([*words, *(f"{key}={in_words(one)}" for key, one in value.items() if key != "kind")])
    return json.dumps(value, default=str) if isinstance(value, list) else str(value)
