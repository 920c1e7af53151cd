"""Write designs and rules as code: in Python, to paste, and in the TOML of a spec."""

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from freewalk import designs, rules, schedules

if TYPE_CHECKING:
    from freewalk.analysis.diagnosis.findings import Forecast

_HOMES = {"fw.designs": designs, "fw.schedules": schedules, "fw.rules": rules}


def in_code(one: "Forecast") -> list[str]:
    """The calls that create a design and its rule."""
    return [in_python(thing) for thing in (one.design, one.rule) if thing is not None]


def in_spec(one: "Forecast") -> list[str]:
    """The same as lines of a spec; none if a spec cannot name the design."""
    design, rule = in_toml(one.design), None if one.rule is None else in_toml(one.rule)
    both = {} if design is None else {"design": design, "rule": rule}
    return [f"{key} = {value}" for key, value in both.items() if value is not None]


def in_python(thing: Any) -> str:
    """The call that creates a design, a rule or a schedule; its repr if parts, such as arrays, cannot be written."""
    home = next((name for name, module in _HOMES.items() if _is_listed(thing, module)), None)
    home = "fw" if type(thing) is rules.SGD else home  # which has a shorter name
    given = _arguments(thing)
    if given is None:
        return f"{home}.{thing!r}" if home else repr(thing)
    parts = {name: in_python(value) if _has_parts(value) else repr(value) for name, value in given.items()}
    words = ", ".join(f"{name}={value}" for name, value in parts.items())
    return f"{home + '.' if home else ''}{type(thing).__name__}({words})"


def in_toml(thing: Any) -> str | None:
    """The same as a value in a spec; None if a spec cannot express it."""
    import tomlkit

    given, kind = _arguments(thing), type(thing)
    name = kind.__name__
    if not any(_is_listed(thing, module) for module in _HOMES.values()):
        name = f"{kind.__module__}:{name}"
    if given is None or kind.__module__ == "__main__" or kind.__qualname__ != kind.__name__:
        return None
    whole = {"kind": name, **given}
    parts = {
        key: in_toml(value) if _has_parts(value) else tomlkit.item(value).as_string() for key, value in whole.items()
    }
    if None in parts.values():
        return None
    words = ", ".join(f"{key} = {value}" for key, value in parts.items())
    return f"{{ {words} }}"


def _is_listed(thing: Any, module: Any) -> bool:
    return getattr(module, type(thing).__name__, None) is type(thing)


def _has_parts(value: Any) -> bool:
    return isinstance(value, (designs.Design, schedules.Schedule))


def _arguments(thing: Any) -> dict[str, Any] | None:
    """The arguments of a class that differ from the default, or the first number; None if they cannot be written."""
    state = {name: value.item() if isinstance(value, np.generic) else value for name, value in vars(thing).items()}
    plain = {name: value for name, value in state.items() if isinstance(value, (int, float, str)) or _has_parts(value)}
    parameters = inspect.signature(type(thing)).parameters
    required = {name for name, parameter in parameters.items() if parameter.default is parameter.empty}
    unwritten = any(value is not None for name, value in state.items() if name not in plain)
    if unwritten or not required <= set(plain) <= set(parameters):
        return None
    changed = {name: value for name, value in plain.items() if value != parameters[name].default}
    return changed or dict(list(plain.items())[:1])
