"""Where every key of a spec is checked: the keys of its tables, and the keys of a kind, as in `design = { … }`.

The tables of a spec are pydantic models. The keys of a kind are the parameters of what it names: pydantic checks them
against their annotations. Errors are in plain words. Values are checked by the objects that `catalogue.py` makes of
them, and whether they fit together by `plan.py`.
"""

import inspect
import os
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Annotated, Any, Literal, NotRequired, Required, TypeVar, Union, cast, get_args, get_origin

from numpy.typing import ArrayLike
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from typing_extensions import TypedDict

from freewalk.checks import LARGEST, LAST_SEED, show, suggestion
from freewalk.data import Dataset, Partitioner
from freewalk.designs import Design
from freewalk.errors import SpecError
from freewalk.schedules import Schedule
from freewalk.specs.models import Model

# TOML reads 1e5 as a float; a count of 1e5 means an integer.
_as_whole = BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
Whole = Annotated[int, _as_whole]
Count = Annotated[Whole, Field(ge=1, le=LARGEST)]
Share = Annotated[float, Field(gt=0, lt=1)]
Part = dict[str, Any]


def _printable(label: str) -> str:
    if not label.isprintable() or not label.strip():  # an escape sequence would reach the terminal
        raise ValueError("not printable")
    return label


Label = Annotated[str, Field(max_length=200), AfterValidator(_printable)]

_A_DESIGN = 'a table such as { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }'
_A_COUNT = "a whole number >= 1 (and below 2^63)"
_A_RULE = 'a table such as { kind = "SGD", step = 1e-3 }'
_AN_EXCHANGE = 'a table such as { kind = "Gossip" }'


class SpecTable(BaseModel):
    """A table of a spec: no other keys, and no implicit type conversion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Structure = TypeVar("Structure", bound=SpecTable)


# In the tables below, the description of a field is what errors say was expected.
class Run(SpecTable):
    """The arguments of `learn`: how long, how often and where; and how often a run is saved."""

    steps: Count = Field(description=_A_COUNT)
    walks: Count = Field(1, description=_A_COUNT)
    every: Count = Field(1, description=_A_COUNT)
    start: Whole | str | list[Whole] | list[str] | None = Field(
        None, description='a node, a list with one node per walk, "uniform" or "heaviest"'
    )
    seed: Whole = Field(0, ge=0, le=LAST_SEED, description="a whole number from 0 to 2^64 - 1")
    runtime: str | Part | None = Field(
        None, description='the name of a runtime, or a table such as { kind = "Torch", device = "cuda" }'
    )
    precision: str | None = Field(None, description='"float64" or "float32"')
    paths: Whole | list[Whole] = Field(0, description="the number of walks that keep their path, or a list of walks")
    goal: dict[str, float] | None = Field(None, description="a table such as { accuracy = 0.95 }")
    checkpoint: float = Field(60.0, ge=0, allow_inf_nan=False, description="the seconds between saves, or 0 for none")


class PhaseTable(SpecTable):
    """A part of a walk, up to the step `until`."""

    until: Count | None = Field(None, description=f"{_A_COUNT}, or nothing in the last phase")
    design: Part = Field(description=_A_DESIGN)
    rule: Part = Field(description=_A_RULE)
    exchange: Part | None = Field(None, description=_AN_EXCHANGE)


class Walk(SpecTable):
    """A design and a rule, or a method or phases instead."""

    label: Label | None = Field(None, description="a text of up to 200 letters, without control characters")
    design: Part | None = Field(None, description=_A_DESIGN)
    rule: Part | None = Field(None, description=_A_RULE)
    tokens: Count | Share | Literal["nodes"] | None = Field(
        None, description='a whole number >= 1, a share of the nodes such as 0.1, or "nodes": one on each node'
    )
    exchange: Part | None = Field(None, description=_AN_EXCHANGE)
    method: Part | None = Field(None, description='a table such as { kind = "fedavg", step = 0.01, local_steps = 5 }')
    phase: list[PhaseTable] = Field([], description="tables [[walk.phase]]")


class BudgetTable(SpecTable):
    """The budget of the search for a step, per method of a comparison; defaults are those of `Budget`."""

    runs: Count | None = Field(None, description=_A_COUNT)
    updates: Count | None = Field(None, description=_A_COUNT)
    walks: Count | None = Field(None, description=_A_COUNT)


class Compare(SpecTable):
    """The options of `freewalk compare` besides [run]; defaults are those of `fw.compare`."""

    goal: float | None = Field(None, description="a number > 1, as a multiple of the optimum")
    most: Count | None = Field(None, description=_A_COUNT)
    keep_steps: bool | None = Field(None, description="true or false")
    budget: BudgetTable | None = Field(
        None, description="a table such as { runs = 40, updates = 50_000_000, walks = 16 }"
    )

    @property
    def options(self) -> dict[str, Any]:
        """The options that are set."""
        return self.model_dump(exclude_none=True)


class Tables(SpecTable):
    """A whole spec."""

    name: str | None = Field(
        None, pattern=r"^\w[\w. -]*$", max_length=100, description="a plain name, such as demo: it names a folder"
    )
    graph: Part = Field(description='a table such as { kind = "ring", n = 1000 }')
    problem: Part = Field(description='a table such as { kind = "LeastSquares", dim = 10 }')
    run: Run = Field(description="a table [run]")
    walk: list[Walk] = Field(min_length=1, description="one or more tables [[walk]]")
    compare: Compare | None = Field(None, description="a table [compare]")
    sweep: Part | None = Field(None, description='a table [sweep] such as "graph.n" = [100, 1000]')


def read_tables(values: dict[str, Any], source: str) -> Tables:
    """Check the structure of a spec."""
    if "objective" in values and "problem" not in values:  # two names for the same table
        values = {"problem" if name == "objective" else name: value for name, value in values.items()}
    try:
        return validated(values, Tables, lambda path: place_of(path, values))
    except ValueError as error:
        raise SpecError(f"{source}: {error}") from None


def place_of(path: Sequence[str | int], values: dict[str, Any]) -> str:
    """The name of a table in an error: as it is written in the file."""
    if not path:
        return "the top of the file"
    if path[0] != "walk" or len(path) < 2:
        return f"[{path[0]}]"
    label = values["walk"][path[1]].get("label") if isinstance(values["walk"][path[1]], dict) else None
    words = f"[[walk]] {int(path[1]) + 1}" + (f" {show(label)}" if label else "")
    return words + (f", phase {int(path[3]) + 1}" if path[2:3] == ["phase"] and len(path) > 3 else "")


def validated(
    values: Mapping[str, Any], structure: type[Structure], place: Callable[[Sequence[str | int]], str]
) -> Structure:
    """Values as a table, or a ValueError in plain words; `place` names the table at a path."""
    try:
        return structure.model_validate(values)
    except ValidationError as error:
        worst = _worst(error)
    problem, path, got = worst["type"], worst["loc"], worst["input"]
    table: type[SpecTable] = structure
    depth = 0
    # Follow the path down to the field; levels below it (members of a union, items of a list) add nothing.
    while depth < len(path) - 1 and (inner := _table_of(table, path[depth])) is not None:
        next_depth = depth + 1 + isinstance(path[depth + 1], int)
        if next_depth >= len(path):
            break
        table, depth = inner, next_depth
    where, key = place(list(path[:depth])), str(path[depth]) if path else ""
    if problem == "extra_forbidden":
        raise ValueError(f"{where} has no key {show(key)}; {suggestion(key, table.model_fields, 'its keys are')}")
    expected = table.model_fields[key].description if key in table.model_fields else "a table"
    if problem == "missing":
        raise ValueError(f"{where} needs the key {key!r}: {expected}")
    if isinstance(got, (list, dict)):
        raise ValueError(f"{where}: {key} is a {'list' if isinstance(got, list) else 'table'}, expected {expected}")
    raise ValueError(f"{where}: {key} = {as_toml(got)}, expected {expected}")


def _worst(error: ValidationError) -> Any:
    """The problem to report: a mistyped key is reported as unknown and as missing, and the first says more."""
    problems = error.errors(include_url=False)
    return min(problems, key=lambda problem: (problem["type"] != "extra_forbidden", problem["type"] == "missing"))


def _table_of(table: type[SpecTable], key: str | int) -> type[SpecTable] | None:
    """The table, or the tables of a list, at a key."""
    field = table.model_fields.get(str(key))
    kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
    kinds += [inner for kind in kinds for inner in get_args(kind)]
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, SpecTable)), None)


def as_toml(value: Any) -> str:
    """A wrong value, formatted for a message."""
    return str(value).lower() if isinstance(value, bool) else show(value)


def names_in(values: Any) -> list[str]:
    """Every "module:Name" that tables name as a kind, in their order."""
    kind = values.get("kind") if isinstance(values, dict) else None
    found = [kind] if isinstance(kind, str) and ":" in kind else []
    for part in values.values() if isinstance(values, dict) else values if isinstance(values, list) else ():
        found += names_in(part)
    return list(dict.fromkeys(found))


# The keys of a kind.

#: Creates the object that a nested table describes; called with its family, the table and its location.
Nested = Callable[[str, Mapping[str, Any], str], Any]

# The tables that may be given for a parameter: what they create, their family, and an example.
_TABLES: dict[type, tuple[str, str]] = {
    Schedule: ("schedule", 'a schedule such as { kind = "Inverse", initial = 1e-2, scale = 1000 }'),
    Design: ("design", 'a design such as { kind = "MHLJ", jump = 0.1, stop = 0.5, hops = 3 }'),
    Dataset: ("dataset", 'a data set such as { kind = "digits" }'),
    Partitioner: ("partition", 'a partition such as { kind = "Dirichlet", alpha = 0.1 }'),
    Model: ("model", 'a model such as { kind = "perceptron", hidden = [32] }'),
}
_WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a text"}
_PLURALS = {float: "numbers", int: "whole numbers", bool: "true or false", str: "texts"}
_ARRAYS = frozenset(get_args(ArrayLike))
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameters_of(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that can be given by name; an annotation that cannot be evaluated counts as none."""
    owners = make.__mro__ if isinstance(make, type) else (getattr(make, "__func__", make),)
    scopes = [vars(sys.modules[owner.__module__]) for owner in owners if owner.__module__ in sys.modules]
    found = [one for one in inspect.signature(make).parameters.values() if one.kind in _NAMED]
    return {one.name: one.replace(annotation=_evaluated(one.annotation, scopes)) for one in found}


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
        pairs = ((name, parameter.default) for name, parameter in self.parameters.items())
        return ", ".join(name if value is inspect.Parameter.empty else f"{name}={value!r}" for name, value in pairs)

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
            context = nested, f"{where}: {self.who}"
            return cast("dict[str, Any]", self._adapter.validate_python(dict(values), context=context))
        except ValidationError as error:
            worst = _worst(error)
            inner = [problem.get("ctx", {}).get("error") for problem in error.errors(include_url=False)]
        for stated in inner if worst["type"] != "extra_forbidden" else ():
            if isinstance(stated, SpecError):
                raise stated  # it names a nested table
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
    annotation = members[0]
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
    family, _ = _table_for(annotation)
    return Annotated[Any, BeforeValidator(_within(family) if family else _plain)]


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
    """The members of a union, where arrays, which are unions themselves, count as one; a spec gives paths as texts."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return (annotation,)
    members = tuple(one for one in get_args(annotation) if get_origin(one) is not os.PathLike)
    return (*(one for one in members if one not in _ARRAYS), ArrayLike) if set(members) >= _ARRAYS else members


def _table_for(annotation: Any) -> tuple[str, str]:
    """The family of the nested table that a parameter takes, such as "schedule", and an example; "" if none."""
    bases = _TABLES if isinstance(annotation, type) else ()
    return next((_TABLES[base] for base in bases if issubclass(annotation, base)), ("", ""))


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
    return _WORDS.get(annotation) or _table_for(annotation)[1]


def explanations(documented: Any) -> dict[str, str]:
    """The description of each parameter in a numpydoc docstring; of a class also those of the classes it extends."""
    bases = documented.__bases__ if isinstance(documented, type) else ()
    inherited = {name: words for base in bases for name, words in explanations(base).items()}
    text = inspect.getdoc(documented) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+$|\Z)", text, re.DOTALL | re.MULTILINE)
    found: dict[str, str] = {}
    for entry in re.finditer(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)+)", section[1] if section else "", re.MULTILINE):
        words = " ".join(entry[2].split())
        found |= {name.strip(" *"): words for name in entry[1].partition(" : ")[0].split(",")}
    return inherited | found
