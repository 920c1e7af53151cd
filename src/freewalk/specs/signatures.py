"""What signatures say about parameters: types for pydantic to check, the types in words, and descriptions."""

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

from numpy.typing import ArrayLike
from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, ValidationInfo
from typing_extensions import TypedDict

from freewalk.checks import show, suggestion
from freewalk.data import Dataset, Partitioner
from freewalk.designs import Design
from freewalk.errors import SpecError
from freewalk.schedules import Schedule
from freewalk.specs.models import Model
from freewalk.specs.tables import Whole, as_toml

#: Creates the object that a nested table describes; called with its family, the table and its location.
Nested = Callable[[str, Mapping[str, Any], str], Any]

# The tables that may be given for a parameter.
FAMILIES: dict[str, type] = {
    "schedule": Schedule,
    "design": Design,
    "dataset": Dataset,
    "partition": Partitioner,
    "model": Model,
}
_EXAMPLES = {
    "schedule": 'a schedule such as { kind = "Inverse", initial = 1e-2, scale = 1000 }',
    "design": 'a design such as { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }',
    "dataset": 'a data set such as { kind = "digits" }',
    "partition": 'a partition such as { kind = "Dirichlet", alpha = 0.1 }',
    "model": 'a model such as { kind = "perceptron", hidden = [32] }',
}
_WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}
_PLURALS = {float: "numbers", int: "whole numbers", bool: "true or false", str: "texts"}
_ARRAYS = frozenset(get_args(ArrayLike))
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameters_of(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that can be given by name; an annotation that cannot be evaluated counts as none."""
    owners = make.__mro__ if isinstance(make, type) else (getattr(make, "__func__", make),)
    scopes = [vars(sys.modules[owner.__module__]) for owner in owners if owner.__module__ in sys.modules]
    found = inspect.signature(make).parameters
    return {
        name: parameter.replace(annotation=_evaluated(parameter.annotation, scopes))
        for name, parameter in found.items()
        if parameter.kind in _NAMED
    }


def _evaluated(annotation: Any, scopes: Iterable[dict[str, Any]]) -> Any:
    for scope in scopes if isinstance(annotation, str) else ():
        try:
            return eval(annotation, scope)
        except Exception:  # a name that only type checkers import, or one of another module of the class
            continue
    return Any if isinstance(annotation, str) or annotation is inspect.Parameter.empty else annotation


@dataclass(frozen=True, eq=False)
class Signature:
    """The parameters of something that a spec can name."""

    who: str
    parameters: Mapping[str, inspect.Parameter]

    def __str__(self) -> str:
        return ", ".join(
            name if parameter.default is parameter.empty else f"{name}={parameter.default!r}"
            for name, parameter in self.parameters.items()
        )

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        fields: dict[str, Any] = {
            name: (Required if parameter.default is parameter.empty else NotRequired)[_type(parameter.annotation)]
            for name, parameter in self.parameters.items()
        }
        make: Any = TypedDict  # type checkers would need its fields
        table = make("Table", fields)
        table.__pydantic_config__ = ConfigDict(strict=True, extra="forbid")
        return TypeAdapter(table)

    def read(self, values: Mapping[str, Any], where: str, nested: Nested) -> dict[str, Any]:
        """Check values against the annotations of the parameters."""
        try:
            found: dict[str, Any] = self._adapter.validate_python(
                dict(values), context=(nested, f"{where}: {self.who}")
            )
            return found
        except ValidationError as error:
            problems = error.errors(include_url=False)
        # A mistyped name is reported twice, as unknown and as missing; the first says more. Errors within a nested
        # table are reported there.
        worst = min(problems, key=lambda problem: (problem["type"] != "extra_forbidden", problem["type"] == "missing"))
        inner = [problem.get("ctx", {}).get("error") for problem in problems]
        for stated in inner if worst["type"] != "extra_forbidden" else ():
            if isinstance(stated, SpecError):
                raise stated
        raise SpecError(f"{where}: {self._in_words(worst['type'], str(worst['loc'][0]), values)}")

    def _in_words(self, problem: str, name: str, values: Mapping[str, Any]) -> str:
        """One problem that pydantic found, as a sentence."""
        if problem == "extra_forbidden":
            hint = suggestion(name, self.parameters, "it takes") if self.parameters else "it takes none"
            return f"{self.who} has no parameter {show(name)}; {hint}"
        if problem == "missing":
            return f"{self.who} needs the parameter {name!r}: {self.who}({self})"
        value, annotation = values[name], self.parameters[name].annotation
        expected = in_words(annotation) or "a plain value"
        if isinstance(value, Mapping):
            return f"{self.who}: {name} is a table, expected {expected}"
        if get_origin(annotation) is Literal:
            close = suggestion(value, map(str, get_args(annotation)), "")
            expected += f"; {close}" if close.startswith("did you mean") else ""
        return f"{self.who}: {name} = {as_toml(value)}, expected {expected}"


def _type(annotation: Any) -> Any:
    """The type for pydantic to check: plain types and lists of them; everything else is left to the receiver."""
    members = _members(annotation)
    if len(members) > 1:
        return reduce(or_, map(_type, members))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is int:
        return Whole
    if annotation is float:
        return Annotated[float, Field(allow_inf_nan=False)]
    if annotation in (bool, str, types.NoneType) or origin is Literal:
        return annotation
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, Any]
    if isinstance(origin, type) and issubclass(origin, Sequence) and origin is not tuple:
        return list[_type(arguments[0])]  # type: ignore[misc]
    family = family_of(annotation)
    return Annotated[Any, BeforeValidator(_plain if family is None else _within(family))]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        raise ValueError("a table")
    return value


def _within(family: str) -> Callable[[Any, ValidationInfo], Any]:
    def make(value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError("not a table")
        nested, where = cast("tuple[Nested, str]", info.context)
        return nested(family, value, f"{where}: {info.field_name}")

    return make


def _members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, where arrays, which are unions themselves, count as one."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return (annotation,)
    members = get_args(annotation)
    return (*(one for one in members if one not in _ARRAYS), ArrayLike) if set(members) >= _ARRAYS else members


def family_of(annotation: Any) -> str | None:
    """The family of a parameter that takes a nested table, such as "schedule" or "design", or None."""
    if not isinstance(annotation, type):
        return None
    return next((family for family, base in FAMILIES.items() if issubclass(annotation, base)), None)


def in_words(annotation: Any) -> str:
    """A type in words, for errors and lists; "" if any value is allowed."""
    members = _members(annotation)
    words = [_one_in_words(member) for member in members if ArrayLike not in members or member not in (int, float)]
    return " or ".join(dict.fromkeys(filter(None, words)))


def _one_in_words(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin is tuple:  # checked by the receiver, which may accept more
        return "a list"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"a list of {_PLURALS.get(arguments[0], 'values')}"
    if annotation is ArrayLike:
        return "a number or a list of numbers"
    return _WORDS.get(annotation) or _EXAMPLES.get(family_of(annotation) or "", "")


def explanations(documented: Any) -> dict[str, str]:
    """The description of each parameter in a numpydoc docstring."""
    text = inspect.getdoc(documented) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+$|\Z)", text, re.DOTALL | re.MULTILINE)
    found: dict[str, str] = {}
    for entry in re.finditer(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)+)", section[1] if section else "", re.MULTILINE):
        words = " ".join(entry[2].split())
        found |= {name.strip(" *"): words for name in entry[1].partition(" : ")[0].split(",")}
    return found
