"""A sweep: a spec, the keys to vary, and the resulting points, each with a spec of its own that can be run."""

import copy
import json
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count, product
from typing import Any

import numpy as np

from freewalk.checks import Checks, show, suggestion
from freewalk.errors import FreewalkError, SpecError
from freewalk.run.record import timeless
from freewalk.runtimes import CPU, runtime_for
from freewalk.specs.keys import read_tables
from freewalk.specs.own import Tell, blame
from freewalk.specs.plan import Plan
from freewalk.specs.spec import Spec, load, parse
from freewalk.sweeps.axes import Axis, read_axes
from freewalk.sweeps.crews import Look, Work
from freewalk.sweeps.hashes import Inputs, key_of

#: A location in a spec: names of keys, and indices of items.
Location = tuple[str | int, ...]

TABLE, WALK = "sweep", "walk"
_check = Checks(SpecError)


@dataclass(frozen=True, eq=False)
class Point(Work):
    """One point of a sweep: its index along each axis, the values of the keys, and the spec to run.

    Its key is the hash of everything that its result depends on; its size is the number of updates.
    """

    place: tuple[int, ...]
    setting: dict[str, Any]
    spec: Spec = field(repr=False)  # its text is generated when it is run
    plan: Plan | None = field(default=None, repr=False)  # if it was already created

    def shipped(self) -> "Point":
        """The same point, including its data and the user's code."""
        return self if self.plan is not None else replace(self, plan=plan_of(self.spec))

    def needs(self) -> tuple[int, int]:
        """The cores and GPUs of its runtime; one core unless the spec asks for more."""
        plan = self.plan or plan_of(self.spec)
        runtimes = [runtime_for(plan.options["runtime"], plan.problem, phases) for phases in plan.walks.values()]
        threads = [one.threads or 1 for one in runtimes if isinstance(one, CPU)]
        return max(threads, default=1), max(one.cards for one in runtimes)

    def run(self, look: Look | None = None) -> bytes:
        """The record as bytes, independent of the time and the place of the run."""
        spec = replace(self.spec, text=text_of(self.spec))
        progress = None if look is None else lambda label, done, total, rows: look(done, total)
        try:
            record = spec.run(progress, plan=self.plan or plan_of(spec))
        except FreewalkError:
            raise
        except Exception as error:
            if not spec.code:
                raise
            raise SpecError(f"{', '.join(spec.code)}: {blame(error)}") from error
        if record.partial:  # Ctrl-C reached this process; the leading process handles it
            raise KeyboardInterrupt(record.provenance.get("interrupted_by", ""))
        kept = timeless(record)
        kept.data.attrs.pop("name", None)  # the name of the sweep; other sweeps may share this point
        if "files" in kept.provenance:  # the location of files does not affect the result
            kept.provenance["files"] = {name: one["sha256"] for name, one in kept.provenance["files"].items()}
        return kept.as_bytes()


def plan_of(spec: Spec, say: Tell | None = None) -> Plan:
    """The plan of a spec, with compiled walks on one thread: points run at the same time, one core each."""
    plan = spec.plan(say)
    if all(runtime_for(plan.options["runtime"], plan.problem, phases) == CPU() for phases in plan.walks.values()):
        plan = replace(plan, options={**plan.options, "runtime": CPU(threads=1)})
    return plan


def text_of(spec: Spec) -> str:
    """The spec of a point as TOML, as `freewalk run` takes it."""
    import tomlkit

    left_out = {"name", "sweep", "compare"}
    return tomlkit.dumps(spec.tables.model_dump(exclude_defaults=True, exclude_none=True, exclude=left_out))


@dataclass(frozen=True, eq=False)
class Sweep:
    """A spec as written, including its table [sweep], and the axes along which it is varied."""

    spec: Spec
    axes: tuple[Axis, ...]
    values: Mapping[str, Any] = field(repr=False)  # the spec as TOML reads it, without [sweep], with labelled walks

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
        """All points; the last axis varies fastest."""
        where = f"{self.spec.source}: [{TABLE}]"
        paths = {key: paths_of(key, self.values, f'{where}: "{key}"') for key in self.keys}
        check_apart(paths, where)
        for axis in self.axes:  # the first value of each key separately, so that errors name the right key
            try:
                self._at(axis.at(0), paths)
            except SpecError as error:
                keys = " with ".join(f'"{key}"' for key in axis.values)
                raise SpecError(f"{where}: {keys}: {str(error).removeprefix(f'{self.spec.source}: ')}") from error
        inputs = Inputs(self.spec.folder)
        found = []
        for place in product(*map(range, self.shape)):
            setting = dict(chain.from_iterable(axis.at(at).items() for axis, at in zip(self.axes, place, strict=True)))
            spec = self._at(setting, paths)
            size = spec.tables.run.steps * spec.tables.run.walks * len(spec.tables.walk)
            found.append(Point(place, setting, spec, key=key_of(spec, inputs), words=_in_words(setting), size=size))
        return found

    def _at(self, setting: Mapping[str, Any], paths: Mapping[str, Sequence[Location]]) -> Spec:
        """The spec with the values of a setting."""
        values = put(self.values, [(path, value) for key, value in setting.items() for path in paths[key]])
        try:
            spec = replace(self.spec, text="", tables=read_tables(values, self.spec.source))
            spec.check()
        except SpecError as error:
            if len(setting) == 1 or len(self.axes) == 1:
                raise
            raise SpecError(f"{error} (at {_in_words(setting)})") from error
        return spec


def sweep_of(given: "str | os.PathLike[str] | Spec | Sweep", over: Mapping[str, Any] | None = None) -> Sweep:
    """Check a sweep: a spec or its file, varied over its table [sweep] or over other values.

    Nothing that the spec names is imported until it is run.
    """
    if isinstance(given, Sweep) and over is None:
        return given
    if isinstance(given, (str, os.PathLike)):
        given = load(_check.path("sweep", "spec", given))
    elif not isinstance(given, (Spec, Sweep)):
        raise _check.fail("sweep", "spec", given, "the path of a TOML file, or a spec that experiment.load made")
    spec = given.spec if isinstance(given, Sweep) else given
    if over is not None:
        expected = "values by key, such as {'graph.n': [9]}"
        spec = _with_table(spec, _check.instance("sweep", "over", over, Mapping, expected))
    values = tomllib.loads(spec.text)
    table = values.pop(TABLE, None)
    if table is None:
        expected = f'{spec.source}: has no table [{TABLE}], expected one such as "graph.n" = [100, 1000]'
        raise SpecError(f"{expected}; `freewalk example sweep` prints a spec that has one")
    made = Sweep(spec, read_axes(table, spec.source), labelled(values))
    _ = made.points  # to find errors now
    return made


def _with_table(spec: Spec, over: Mapping[str, Any]) -> Spec:
    """A spec with another table [sweep], in its text too."""
    import tomlkit

    document = tomlkit.parse(spec.text)
    try:
        document[TABLE] = tomlkit.item(_plain(over))
        text = document.as_string()
    except (tomlkit.exceptions.TOMLKitError, ValueError, TypeError, RecursionError) as error:
        remedy = f"it cannot be TOML ({error})"
        raise _check.fail("sweep", "over", over, "lists, arrays or ranges by key", remedy) from error
    return parse(text, spec.source, spec.folder)


def _plain(value: Any) -> Any:
    """A NumPy value as one that TOML can hold."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple, range)) else value


def labelled(values: Mapping[str, Any]) -> dict[str, Any]:
    """A spec as TOML reads it, with a label for every walk that does not depend on its parameters.

    Otherwise a walk would be named after its parameters, differently at every point.
    """
    found: dict[str, Any] = copy.deepcopy(dict(values))
    if "objective" in found and "problem" not in found:  # two names for the same table
        found["problem"] = found.pop("objective")
    taken = {walk.get("label") for walk in found[WALK]}
    for walk in found[WALK]:
        if "label" not in walk:
            parts = walk.get("phase") or [walk]
            tables = [part.get("design") or part.get("method") for part in parts]
            kind = ", then ".join(str(table["kind"]) for table in tables if table and "kind" in table) or WALK
            names = chain([kind], (f"{kind} {number}" for number in count(2)))
            walk["label"] = next(name for name in names if name not in taken)
            taken.add(walk["label"])
    return found


def paths_of(key: str, values: Mapping[str, Any], where: str) -> list[Location]:
    """The locations in a spec that a key such as "graph.n", "walk.MHLJ.design.jump" or "walk.*.rule.step" names.

    A walk is named by its number or its label, or * for all.
    """
    first, _, rest = key.partition(".")
    first = {"objective": "problem"}.get(first, first)
    begins: list[Location] = [(first,)]
    if first == WALK:
        chosen, rest = _chosen(rest, values[WALK], where)
        begins = [(WALK, number) for number in chosen]
    names = rest.split(".") if rest else []
    if first == TABLE or not all(name.strip() for name in (first, *names)):
        raise SpecError(f'{where}: is not a key of a spec, expected one such as "graph.n"')
    return [_path(begin, names, values, where) for begin in begins]


def _chosen(rest: str, walks: Sequence[Mapping[str, Any]], where: str) -> tuple[list[int], str]:
    """The indices of the walks that a key names, and the rest of the key."""
    labels = [str(walk["label"]) for walk in walks]
    # A label may contain a dot: the longest match counts.
    for label in sorted(filter(None, labels), key=len, reverse=True):
        if rest.startswith(f"{label}."):
            return [labels.index(label)], rest[len(label) + 1 :]
    name, _, after = rest.partition(".")
    if not after:
        raise SpecError(f'{where}: names a walk and nothing in it, expected a key such as "walk.*.rule.step"')
    if name == "*":
        return list(range(len(walks))), after
    if not name.isdecimal():
        raise SpecError(f"{where}: there is no walk {show(name)}; {suggestion(name, labels, 'their labels are')}")
    if int(name) >= len(walks):
        raise SpecError(f"{where}: there is no walk {name}, expected 0 to {len(walks) - 1}, or a label")
    return [int(name)], after


def _path(begin: Location, names: Sequence[str], values: Mapping[str, Any], where: str) -> Location:
    """Follow names through the tables and lists of a spec; what is missing may be added."""
    table: Any = values.get(str(begin[0]))
    if len(begin) > 1:
        table = table[begin[1]]
    path = list(begin)
    for name in names:
        if isinstance(table, list):
            if not name.isdecimal() or int(name) >= len(table):
                raise SpecError(f"{where}: there is no item {show(name)}, expected a number below {len(table)}")
            path.append(int(name))
            table = table[int(name)]
        elif table is None or isinstance(table, Mapping):
            path.append(name)
            table = None if table is None else table.get(name)
        else:
            parent = ".".join(map(str, path))
            raise SpecError(f"{where}: {parent} is {show(table)}, expected a table that has the key {show(name)}")
    return tuple(path)


def check_apart(paths: Mapping[str, Sequence[Location]], where: str) -> None:
    """Reject two keys that set the same value, such as "walk.*.rule.step" and "walk.0.rule.step"."""
    owners: dict[Location, str] = {}
    for key, path in ((key, path) for key, several in paths.items() for path in several):
        for other, owner in owners.items():
            short = min(len(path), len(other))
            if path[:short] == other[:short] and owner != key:
                raise SpecError(f"{where}: {owner!r} and {key!r} set the same value, expected each value by one key")
        owners[path] = key


def put(values: Mapping[str, Any], places: Sequence[tuple[Location, Any]]) -> dict[str, Any]:
    """A spec with other values at some locations; missing tables are created."""
    found = copy.deepcopy(dict(values))
    for path, value in places:
        table: Any = found
        for part in path[:-1]:
            table = table[int(part)] if isinstance(table, list) else table.setdefault(part, {})
        table[path[-1]] = copy.deepcopy(value)
    return found


def in_words(value: Any) -> str:
    """A value as tables and figures show it: 0.001, true, uniform, MHLJ jump=0.1."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        words = [str(value["kind"])] if "kind" in value else []
        return " ".join([*words, *(f"{key}={in_words(one)}" for key, one in value.items() if key != "kind")])
    return json.dumps(value, default=str) if isinstance(value, list) else str(value)


def _in_words(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {in_words(value)}" for key, value in setting.items())
