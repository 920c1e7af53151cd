"""What a spec may name: every listed graph, objective, design, rule and schedule, and the parameters of each."""

import difflib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from freewalk.errors import FreewalkError, SpecError

_PLAIN = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}
_NOT_IN_SPECS = ("Graph", "from_networkx")  # they take what a text cannot hold


@dataclass(frozen=True)
class Kind:
    """Something that a spec can ask for by name.

    Attributes
    ----------
    name
        As it is written in a spec.
    make
        The class or function that makes it.
    parameters
        What a spec may set.
    summary
        The first line of its documentation.
    in_specs
        Whether a spec can use it; the others are for Python.
    """

    name: str
    make: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]
    summary: str
    in_specs: bool = True

    def signature(self) -> str:
        """The parameters with their defaults.

        Examples
        --------
        >>> families()["design"]["MHLJ"].signature()
        'jump, stop, hops, power=1.0, corrected=False'
        """
        return ", ".join(
            name if parameter.default is parameter.empty else f"{name}={parameter.default!r}"
            for name, parameter in self.parameters.items()
        )


def families() -> dict[str, dict[str, Kind]]:
    """All kinds, by family ("graph", "problem", "design", "rule", "schedule", "runtime") and name."""
    from freewalk import designs, graphs, learning, objectives, runtimes, schedules

    modules = {
        "graph": graphs,
        "problem": objectives,
        "design": designs,
        "rule": learning,
        "schedule": schedules,
        "runtime": runtimes,
    }
    return {
        family: {name: _kind(family, module, name) for name in module.__all__} for family, module in modules.items()
    }


def _kind(family: str, module: types.ModuleType, name: str) -> Kind:
    listed = getattr(module, name)
    # A spec draws its data; the number of nodes is that of the graph.
    make = getattr(listed, "synthetic", listed) if family == "problem" else listed
    parameters = dict(inspect.signature(make).parameters)
    if family == "problem":
        parameters.pop("n", None)
    summary = (inspect.getdoc(listed) or "").partition("\n")[0]
    in_specs = name not in _NOT_IN_SPECS and (family != "problem" or make is not listed)
    return Kind(name, make, parameters, summary, in_specs)


def suggestion(given: str, names: Iterable[str], otherwise: str) -> str:
    """The end of an error message: the name that was probably meant, or else all of them.

    Examples
    --------
    >>> suggestion("step", ["steps", "walks"], "its keys are")
    "did you mean 'steps'?"
    >>> suggestion("colour", ["steps", "walks"], "its keys are")
    'its keys are steps, walks'
    """
    known = list(names)
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(given.lower(), lowered, n=1)
    return f"did you mean {lowered[close[0]]!r}?" if close else f"{otherwise} {', '.join(known)}"


def check(family: str, table: Mapping[str, Any], where: str) -> Kind:
    """Find the kind that a table asks for, and check the names and plain types of its parameters.

    Parameters
    ----------
    family
        One of the keys of `families`.
    table
        `kind` and parameters, as in the spec.
    where
        How errors call the table.

    Raises
    ------
    SpecError
        If there is no such kind, or a parameter is unknown, missing or of the wrong type.
    """
    kinds = {name: kind for name, kind in families()[family].items() if kind.in_specs}
    name = table.get("kind")
    if name is None:
        raise SpecError(f"{where} needs the key 'kind', one of {', '.join(kinds)}")
    if name not in kinds:
        raise SpecError(f"{where} has no kind {name!r}; {suggestion(str(name), kinds, 'there are')}")
    kind = kinds[name]
    for key, value in table.items():
        if key == "kind":
            continue
        if key not in kind.parameters:
            hint = suggestion(key, kind.parameters, "it takes") if kind.parameters else "it takes none"
            raise SpecError(f"{where}: {name} has no parameter {key!r}; {hint}")
        _check_value(f"{where}: {name}", kind.parameters[key], value)
    for key, parameter in kind.parameters.items():
        if parameter.default is parameter.empty and key not in table:
            raise SpecError(f"{where}: {name} needs the parameter {key!r}: {name}({kind.signature()})")
    return kind


def build(family: str, table: Mapping[str, Any], where: str, **given: Any) -> Any:
    """Make what a table asks for.

    Parameters
    ----------
    family, table, where
        As for `check`.
    given
        Arguments that do not come from the table.

    Raises
    ------
    SpecError
        As `check` does, or if the thing itself objects to a value.

    Examples
    --------
    >>> build("design", {"kind": "MHLJ", "jump": 0.1, "stop": 0.5, "hops": 3}, "[design]")
    MHLJ(jump=0.1, stop=0.5, hops=3, power=1.0, corrected=False)
    """
    kind = check(family, table, where)
    values = {key: value for key, value in table.items() if key != "kind"}
    for key, value in values.items():
        if isinstance(value, Mapping):
            values[key] = build(_family_of(kind.parameters[key]), value, f"{where}: {key}")
        elif isinstance(value, float) and kind.parameters[key].annotation is int:
            values[key] = int(value)  # TOML has no other way to write 1e6
    try:
        return kind.make(**given, **values)
    except FreewalkError as error:
        raise SpecError(f"{where}: {error}") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise SpecError(f"{where}: {kind.name} cannot use these values ({error})") from error


def _family_of(parameter: inspect.Parameter) -> str:
    """The family of the things that a parameter may be, "" where it is none."""
    annotation = str(parameter.annotation)
    return next((family for family in ("schedule", "design") if family.title() in annotation), "")


def _check_value(where: str, parameter: inspect.Parameter, value: Any) -> None:
    family = _family_of(parameter)
    if isinstance(value, Mapping):
        if not family:
            raise SpecError(f"{where}: {parameter.name} is a table, expected a plain value")
        check(family, value, f"{where}: {parameter.name}")
        return
    annotation = parameter.annotation
    members = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    words = [_PLAIN[member] for member in members if member in _PLAIN]
    if family:
        words.append(f"a {family} such as {_example(family)}")
    # Arrays, sequences and choices are checked by those who take them.
    elsewhere = any(member not in _PLAIN and not _names_family(member) for member in members)
    if not elsewhere and not any(_is_a(member, value) for member in members):
        raise SpecError(f"{where}: {parameter.name} = {value!r}, expected {' or '.join(words)}")


def _names_family(member: Any) -> bool:
    return member is types.NoneType or any(word in str(member) for word in ("Schedule", "Design"))


def _is_a(member: Any, value: Any) -> bool:
    if member is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if member is int:
        return _is_a(float, value) and float(value).is_integer()
    return member in (bool, str) and isinstance(value, member)


def _example(family: str) -> str:
    return {
        "schedule": '{ kind = "Inverse", initial = 1e-2, scale = 1000 }',
        "design": '{ kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }',
    }[family]
