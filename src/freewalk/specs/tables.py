"""The structure of a spec, checked by pydantic, with errors in plain words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from freewalk.checks import LARGEST, LAST_SEED, show, suggestion
from freewalk.errors import SpecError

# TOML reads 1e5 as a float; a count of 1e5 means an integer.
_as_whole = BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
Whole = Annotated[int, _as_whole]
Count = Annotated[Whole, Field(ge=1, le=LARGEST)]
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
_A_METHOD = 'a table such as { kind = "fedavg", step = 0.01, local_steps = 5 }'


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
    tokens: Count | Literal["nodes"] | None = Field(
        None, description='a whole number >= 1, or "nodes": one on each node'
    )
    exchange: Part | None = Field(None, description=_AN_EXCHANGE)
    method: Part | None = Field(None, description=_A_METHOD)
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
        problems = error.errors(include_url=False)
    # A mistyped key is reported twice, as unknown and as missing; the first says more.
    worst = min(problems, key=lambda problem: (problem["type"] != "extra_forbidden", problem["type"] == "missing"))
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
    found: list[str] = []
    if isinstance(values, dict):
        found = [values["kind"]] if isinstance(values.get("kind"), str) and ":" in values["kind"] else []
    for part in values.values() if isinstance(values, dict) else values if isinstance(values, list) else ():
        found += names_in(part)
    return list(dict.fromkeys(found))
