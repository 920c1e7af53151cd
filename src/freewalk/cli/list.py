"""List and explain what a spec may name, and write an example spec."""

import json
import shlex
from enum import StrEnum
from inspect import Parameter
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from freewalk.checks import show, suggestion
from freewalk.cli import terminal
from freewalk.cli.application import app, command, examples
from freewalk.errors import SpecError

if TYPE_CHECKING:
    from rich.console import Console

    from freewalk.specs.catalogue import Kind

_HEADINGS = {
    "dataset": 'Data sets: data = { kind = "…" }',
    "partition": 'Partitions of data over the nodes: partition = { kind = "…", … }',
    "design": 'Designs: design = { kind = "…", … }',
    "problem": "Objectives: [problem] kind = …, with the parameters of its synthetic data, or with data = … (a file or "
    "a data set)",
    "model": 'PyTorch models, for the objective torch: model = { kind = "…", … }',
    "graph": "Graphs: [graph] kind = …",
    "rule": 'Rules: rule = { kind = "…", … }',
    "exchange": 'Exchanges between the tokens of a walk: exchange = { kind = "…", … }, together with tokens = …',
    "method": 'Methods, in place of design, rule, tokens and exchange: method = { kind = "…", … }',
    "schedule": "Schedules: for the step of a rule, or the schedule of a Decaying design",
    "runtime": "Runtimes: [run] runtime = …, in lower case, or a table with kind and parameters",
}


Example = StrEnum("Example", ["example", "digits", "sweep"])  # specs to start from
_ALIASES = {"objective": "problem", "data": "dataset", "partitioner": "partition"}


def _names(incomplete: str) -> list[str]:
    """What a shell may complete KIND to."""
    from freewalk.graphs.topohub import COLLECTIONS
    from freewalk.specs.catalogue import families

    names = [*_HEADINGS, *COLLECTIONS, *(name for kinds in families().values() for name in kinds)]
    return [name for name in names if name.lower().startswith(incomplete.lower())]


@app.command(
    "list", epilog=examples("freewalk list", "freewalk list MHLJ", "freewalk list design", "freewalk list topozoo")
)
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="A name such as MHLJ, or one of design, problem, model, dataset, partition, graph, rule, exchange, "
            "method, schedule, runtime: explain the parameters. A collection of topologies such as topozoo: list it.",
            autocompletion=_names,
        ),
    ] = None,
) -> None:
    """List all graphs, objectives, data sets, designs, rules and methods, or explain some of them."""
    from rich.text import Text

    from freewalk.graphs.topohub import COLLECTIONS
    from freewalk.specs.catalogue import families

    console, kinds = terminal.console(), families()
    if kind in COLLECTIONS:
        _collection(console, kind)
        return
    if kind is not None:
        for family, name in _chosen(kind):
            _explain(console, family, kinds[family][name])
        return
    for family, heading in _HEADINGS.items():
        console.print(Text(heading, style="bold"))
        for one in kinds[family].values():
            _head(console, one)
        console.print()


def _collection(console: "Console", name: str) -> None:
    """The topologies of a collection, with its source and licence terms."""
    from rich.text import Text

    from freewalk.graphs.topohub import COLLECTIONS, topologies

    found, about = topologies(name), COLLECTIONS[name]
    console.print(Text(f'{name}, {len(found)} graphs: [graph] kind = "topology", name = "…"', style="bold"))
    for key in ("about", "source", "licence"):
        words = f"{'terms' if key == 'licence' else key}: {getattr(about, key)}"
        console.print(Text(fill(words, console.width, initial_indent="  ", subsequent_indent="    ")), soft_wrap=True)
    names = fill(" ".join(found), console.width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    console.print(Text(names, style="cyan"), soft_wrap=True)


def _chosen(word: str) -> list[tuple[str, str]]:
    """The kinds that a word names, by family and name."""
    from freewalk.specs.catalogue import families

    kinds = families()
    known = {name: (family, name) for family in _HEADINGS for name in kinds[family]}
    lowered = {name.lower(): found for name, found in known.items()}
    family = _ALIASES.get(word.lower().rstrip("s"), word.lower().rstrip("s"))
    if word in known:
        return [known[word]]
    if family in kinds:
        return [(family, name) for name in kinds[family]]
    if word.lower() in lowered:
        return [lowered[word.lower()]]
    if ":" in word:
        raise SpecError(f"list: {show(word)} is a class of your own, which is not imported here; see its documentation")
    raise SpecError(f"list: there is no {show(word)}; {suggestion(word, [*known, *_HEADINGS], 'there are')}")


def _head(console: "Console", kind: "Kind") -> None:
    from rich.text import Text

    line = Text("  ").append(kind.name, style="cyan").append(f"({kind.signature})")
    console.print(line if kind.in_specs else line.append("  from Python only", style="dim"), soft_wrap=True)
    if kind.summary:
        console.print(Text(f"      {kind.summary}", style="dim"), soft_wrap=True)


def _explain(console: "Console", family: str, kind: "Kind") -> None:
    """A kind and its parameters."""
    from rich.text import Text

    from freewalk import objectives
    from freewalk.specs.catalogue import on_data, on_dataset

    linear = getattr(objectives, kind.name, None) if family == "problem" else None
    others = [] if linear is None else [make(kind.name, linear) for make in (on_data, on_dataset)]
    for one in [kind, *others]:
        _head(console, one)
        for name, parameter in one.signature.parameters.items():
            console.print(Text(f"      {name}", style="bold").append(_about(parameter), style="dim"), soft_wrap=True)
            indent = 10 * " "
            text = fill(one.explained.get(name, ""), console.width, initial_indent=indent, subsequent_indent=indent)
            console.print(Text(text), soft_wrap=True)
        console.print()


def _about(parameter: Parameter) -> str:
    """The type and the default of a parameter, in parentheses if there is anything to say."""
    from freewalk.specs.keys import in_words

    words, default = [in_words(parameter.annotation)], parameter.default
    if default is parameter.empty:
        words.append("required")
    elif default not in (None, ()):
        plain = isinstance(default, (bool, int, float, str, list, tuple))
        words.append(f"{json.dumps(default) if plain else default} if not given")
    return f" ({', '.join(filter(None, words))})" if any(words) else ""


@command("freewalk example", "freewalk example my.toml", "freewalk example --kind digits digits.toml")
def example(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="File to write; without it the spec is printed.")
    ] = None,
    kind: Annotated[
        Example,
        typer.Option(
            help="example: all parts of a spec; digits: a PyTorch model on handwritten digits; sweep: a sweep."
        ),
    ] = Example.example,
) -> None:
    """Print or write a commented spec; `freewalk example digits` prints one for PyTorch, `example sweep` a sweep."""
    from freewalk.specs import shipped
    from freewalk.storage.files import write

    if file is not None and str(file) in list(Example):  # without a suffix it names the example, not the file to write
        kind, file = Example(str(file)), None
    text, name = shipped(f"{kind.value}.toml").read_text(encoding="utf-8"), kind.value
    if file is None:
        typer.echo(text, nl=False)
        return
    if file.exists() or file.is_symlink():
        raise SpecError(f"{file} exists already; choose another name")
    command = "sweep" if kind is Example.sweep else "run"
    text = text.replace(f"freewalk {command} {name}.toml", f"freewalk {command} {file}")
    text = text.replace(f'name = "{name}"', f"name = {json.dumps(file.stem)}")
    text = text.replace(f"runs/{name}", f"runs/{file.stem}")
    write(file, text)
    typer.echo(f"{file}: run it with: freewalk {command} {shlex.quote(str(file))}")
