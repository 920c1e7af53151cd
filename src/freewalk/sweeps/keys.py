"""Dotted keys: where the values of a sweep go in a spec."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from freewalk.checks import show, suggestion
from freewalk.errors import SpecError

#: A location in a spec: names of keys, and indices of items.
Path = tuple[str | int, ...]
WALK = "walk"


def labelled(values: Mapping[str, Any]) -> dict[str, Any]:
    """A spec as TOML reads it, with a label for every walk that does not depend on its parameters.

    Otherwise a walk would be named after its parameters, differently at every point.

    Examples
    --------
    >>> walks = [{"design": {"kind": "MHLJ", "jump": 0.1}}, {"design": {"kind": "MHLJ", "jump": 0.5}}]
    >>> [walk["label"] for walk in labelled({"walk": walks})["walk"]]
    ['MHLJ', 'MHLJ 2']
    """
    found: dict[str, Any] = copy.deepcopy(dict(values))
    if "objective" in found and "problem" not in found:  # two names for the same table
        found["problem"] = found.pop("objective")
    walks = found.get(WALK)
    taken = {walk.get("label") for walk in walks if isinstance(walk, dict)} if isinstance(walks, list) else set()
    for walk in walks if isinstance(walks, list) else []:
        if isinstance(walk, dict) and "label" not in walk:
            kind, number = _kind(walk), 2
            name = kind
            while name in taken:
                name, number = f"{kind} {number}", number + 1
            walk["label"] = name
            taken.add(name)
    return found


def _kind(walk: Mapping[str, Any]) -> str:
    parts = walk.get("phase") or [walk]
    tables = [part.get("design") or part.get("method") for part in parts if isinstance(part, dict)]
    return ", then ".join(str(table["kind"]) for table in tables if isinstance(table, dict) and "kind" in table) or WALK


def paths_of(key: str, values: Mapping[str, Any], where: str) -> list[Path]:
    """The locations in a spec that a key names.

    Parameters
    ----------
    key
        A key such as "graph.n", "walk.0.design.jump", "walk.MHLJ.design.jump" or "walk.*.rule.step".
    values
        The spec as TOML reads it, with labelled walks.
    where
        The name of the key in error messages.

    Raises
    ------
    SpecError
        If there is no such walk, or the key leads through something that is not a table.

    Examples
    --------
    >>> values = {"graph": {"n": 5}, "walk": [{"label": "MH"}, {"label": "MHLJ 0.5"}]}
    >>> paths_of("walk.*.rule.step", values, "key")
    [('walk', 0, 'rule', 'step'), ('walk', 1, 'rule', 'step')]
    >>> paths_of("walk.MHLJ 0.5.tokens", values, "key")
    [('walk', 1, 'tokens')]
    >>> paths_of("walk.MHH.tokens", values, "key")
    Traceback (most recent call last):
    freewalk.errors.SpecError: key: there is no walk 'MHH'; did you mean 'MH'?
    """
    first, _, rest = key.partition(".")
    first = {"objective": "problem"}.get(first, first)
    if first == WALK and isinstance(values.get(WALK), list):
        chosen, rest = _chosen(rest, values[WALK], where)
        paths = [(WALK, number, *_parts(rest, values[WALK][number], where)) for number in chosen]
    else:
        paths = [(first, *_parts(rest, values.get(first), where))] if rest else [(first,)]
    for path in paths:
        if path[0] == "sweep" or not all(str(part).strip() for part in path):
            raise SpecError(f'{where}: is not a key of a spec, expected one such as "graph.n"')
        _check_way(path, values, where)
    return paths


def put(values: Mapping[str, Any], places: Sequence[tuple[Path, Any]]) -> dict[str, Any]:
    """A spec with other values at some locations; missing tables are created.

    Examples
    --------
    >>> put({"graph": {"n": 5}}, [(("graph", "n"), 6), (("run", "steps"), 10)])
    {'graph': {'n': 6}, 'run': {'steps': 10}}
    """
    found = copy.deepcopy(dict(values))
    for path, value in places:
        table: Any = found
        for part in path[:-1]:
            table = table[int(part)] if isinstance(table, list) else table.setdefault(part, {})
        table[path[-1]] = copy.deepcopy(value)
    return found


def check_apart(paths: Mapping[str, Sequence[Path]], where: str) -> None:
    """Reject two keys that set the same value.

    Raises
    ------
    SpecError
        If there are two, such as "walk.*.rule.step" and "walk.0.rule.step".
    """
    owners: dict[Path, str] = {}
    for key, path in ((key, path) for key, several in paths.items() for path in several):
        for other, owner in owners.items():
            short = min(len(path), len(other))
            if path[:short] == other[:short] and owner != key:
                raise SpecError(f"{where}: {owner!r} and {key!r} set the same value, expected each value by one key")
        owners[path] = key


def _chosen(rest: str, walks: Sequence[Any], where: str) -> tuple[list[int], str]:
    """The indices of the walks that a key names, and the rest of the key."""
    labels = [str(walk.get("label", "")) if isinstance(walk, dict) else "" for walk in walks]
    name, _, after = rest.partition(".")
    # A label may contain a dot: the longest match counts.
    for label in sorted(filter(None, labels), key=len, reverse=True):
        if rest.startswith(f"{label}."):
            return [labels.index(label)], rest[len(label) + 1 :]
    if name == "*" and after:
        return list(range(len(walks))), after
    if name.isdecimal() and after and int(name) < len(walks):
        return [int(name)], after
    if name.isdecimal() and after:
        raise SpecError(f"{where}: there is no walk {name}, expected 0 to {len(walks) - 1}, or a label")
    if not after:
        raise SpecError(f'{where}: names a walk and nothing in it, expected a key such as "walk.*.rule.step"')
    raise SpecError(f"{where}: there is no walk {show(name)}; {suggestion(name, labels, 'their labels are')}")


def _parts(rest: str, table: Any, where: str) -> Iterator[str | int]:
    """The parts of the rest of a key; those that index a list are numbers."""
    for part in rest.split("."):
        if isinstance(table, list):
            if not part.isdecimal() or int(part) >= len(table):
                raise SpecError(f"{where}: there is no item {show(part)}, expected a number below {len(table)}")
            yield int(part)
            table = table[int(part)]
        else:
            yield part
            table = table.get(part) if isinstance(table, Mapping) else None


def _check_way(path: Path, values: Mapping[str, Any], where: str) -> None:
    table: Any = values
    for depth, part in enumerate(path):
        if table is None:
            return
        if not isinstance(table, (Mapping, list)):
            name = ".".join(map(str, path[:depth]))
            raise SpecError(f"{where}: {name} is {show(table)}, expected a table that has the key {show(part)}")
        table = table[int(part)] if isinstance(table, list) else table.get(part)
