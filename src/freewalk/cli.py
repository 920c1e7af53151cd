"""The command line: run a spec, go on after an interruption, draw, list what there is.

`diagnose` says before a run whether its walks would be entrapped, and by its exit status so that scripts can ask.
"""

import json
import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from freewalk import terminal
from freewalk._version import __version__
from freewalk.errors import FreewalkError, SpecError

if TYPE_CHECKING:
    from freewalk.designs import Design
    from freewalk.experiment import RunFolder
    from freewalk.experiment.spec import Plan, Spec

ENTRAPPED, FAILED, INTERRUPTED = 1, 2, 130  # exit codes; the last is what shells give to a command that Ctrl-C ended


class _Group(TyperGroup):
    """Commands whose errors are one line each."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except FreewalkError as error:
            _fail(str(error))
        except BrokenPipeError:  # `freewalk list | head`: typer ends it quietly
            raise
        except OSError as error:
            _fail(f"{error.filename or 'freewalk'}: {error.strerror or error}")


def _examples(*lines: str) -> str:
    # An empty line is what keeps typer from joining them into a paragraph.
    return "\n\n".join(["[bold]Examples[/bold]", *lines])


app = typer.Typer(
    cls=_Group,
    name="freewalk",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_examples(
        "freewalk demo                  six walks on a ring, one of them entrapped",
        "freewalk example my.toml       write a commented spec to start from",
        "freewalk diagnose my.toml      say before a run whether importance sampling would be entrapped",
        "freewalk run my.toml           write record, table and figure to runs/<name>",
        "freewalk resume runs/example   go on after Ctrl-C, to the same result",
        "freewalk plot runs/example     draw its figure anew",
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"freewalk {__version__}")
        raise typer.Exit()


@app.callback()
def freewalk(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Decentralized learning by random walks: design a walk, run it, learn with it."""


@app.command(epilog=_examples("freewalk run my.toml", "freewalk run my.toml --seed 8 --out runs/again"))
def run(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="What to run, a TOML file; `freewalk example` prints one.")
    ],
    out: Annotated[Path | None, typer.Option(help="The folder to make; runs/<name of the spec> if not given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run that is in the folder.")] = False,
    runtime: Annotated[str | None, typer.Option(help="Run on this runtime instead of the spec's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Use this seed for the walks instead of the spec's.")] = None,
) -> None:
    """Run a spec and write its record, table and figure."""
    from freewalk.experiment import load

    options = {name: value for name, value in (("runtime", runtime), ("seed", seed)) if value is not None}
    loaded = load(spec)
    _run(loaded.replaced(**options) if options else loaded, out, force)


@app.command(epilog=_examples("freewalk resume runs/example"))
def resume(folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of an interrupted run.")]) -> None:
    """Go on with a run that Ctrl-C has stopped, to the same result as without."""
    from freewalk.experiment import RunFolder

    _go_on(RunFolder.open(folder))


@app.command(
    epilog=_examples(
        "freewalk diagnose my.toml",
        "freewalk diagnose my.toml --start uniform --out trap.pdf",
        "freewalk diagnose my.toml --json > diagnosis.json || echo 'do not use importance sampling by Metropolis'",
    )
)
def diagnose(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="What would be run, a TOML file; `freewalk example` prints one.")
    ],
    start: Annotated[
        str | None,
        typer.Option(help="heaviest, uniform, a node, or several as 0,5,7; if not given, the start of the spec."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The image to write; runs/<name of the spec>-diagnosis.png if not given.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all numbers as JSON and nothing else; no image without --out.")
    ] = False,
) -> None:
    """Say before any training whether importance sampling pays on a graph, or is entrapped, and what to use instead.

    Standard designs are compared, and those of the spec. Each gets its own best step: the spec's rules are not used.
    Walks with phases, Decaying ones and Centralized ones are left out.

    The exit status is 1 where importance sampling by Metropolis is slower than the uniform walk or, where that is not
    known, entrapped. It is 0 where it is not, and 2 after an error.
    """
    from freewalk.analysis.diagnosis import diagnose as find
    from freewalk.experiment import load
    from freewalk.report import diagnosis_figure, diagnosis_table
    from freewalk.report.figures import check_format

    loaded = load(spec)
    plan = loaded.plan()
    graph = next(iter(plan.walks.values()))[0].kernel.graph
    first = plan.options["start"] if start is None else _start(start)
    if out is None and not as_json:
        # Not in the folder of the run: `run` makes that, and wants it new.
        out = Path("runs") / f"{loaded.name}-diagnosis.png"
    if out is not None:
        check_format(out)
    with terminal.status_line() as tell:
        found = find(graph, plan.problem, start=first, designs=_designs(loaded, plan), progress=tell)
    if out is not None:
        diagnosis_figure(found, out)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    else:
        console = terminal.console()
        console.print(str(found), markup=False, highlight=False)
        console.print(diagnosis_table(found))
        console.print(f"figure  {out}", markup=False, highlight=False, soft_wrap=True)
    if found.advised_against:
        raise typer.Exit(ENTRAPPED)


def _start(words: str) -> str | int | list[int]:
    """A start as it is written on the command line.

    Examples
    --------
    >>> _start("heaviest"), _start("3"), _start("0, 5")
    ('heaviest', 3, [0, 5])
    """
    if words in ("heaviest", "uniform"):
        return words
    try:
        nodes = [int(word) for word in words.split(",")]
    except ValueError as error:
        raise SpecError(f"--start {words}: expected heaviest, uniform, a node, or several as 0,5,7") from error
    return nodes if len(nodes) > 1 else nodes[0]


def _designs(spec: "Spec", plan: "Plan") -> "dict[str, Design]":
    """The standard designs, and those of a spec that can be diagnosed and are not among them, by label."""
    from freewalk.analysis.diagnosis import DESIGNS
    from freewalk.experiment.catalogue import build

    found = dict(DESIGNS)
    for walk, (name, phases) in zip(spec.tables.walk, plan.walks.items(), strict=True):
        if walk.design is None or phases[0].kernel.fade is not None or not phases[0].kernel.is_local:
            continue
        design = build("design", walk.design, f"{spec.source}: {name}")
        if not any(type(design) is type(other) and vars(design) == vars(other) for other in found.values()):
            found[f"{name} (spec)" if name in DESIGNS else name] = design
    return found


class Figure(StrEnum):
    """What to draw."""

    curves = "curves"
    escape = "escape"
    occupancy = "occupancy"


class Scale(StrEnum):
    """A horizontal axis."""

    auto = "auto"
    linear = "linear"
    log = "log"


@app.command(
    epilog=_examples(
        "freewalk plot runs/demo",
        "freewalk plot runs/demo --scale linear --out loss.pdf",
        "freewalk plot runs/demo --figure escape --design 'MH importance' --design 'MHLJ, jump 0.9' --updates 3000",
    )
)
def plot(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a record (.npz).")],
    out: Annotated[Path | None, typer.Option(help="The image to write; if not given, one beside the record.")] = None,
    figure: Annotated[
        Figure,
        typer.Option(help="The loss, the paths of walks (if kept), or the visits near the heavy nodes."),
    ] = Figure.curves,
    scale: Annotated[Scale, typer.Option(help="The horizontal axes of the loss.")] = Scale.auto,
    design: Annotated[list[str] | None, typer.Option(help="For escape: show this design; may be repeated.")] = None,
    updates: Annotated[int | None, typer.Option(min=1, help="For escape: show so many updates.")] = None,
) -> None:
    """Draw a run: the loss against updates and against messages, or another figure."""
    from freewalk.experiment.folder import record_of
    from freewalk.report import figures

    if figure is not Figure.escape and (design or updates):
        raise SpecError("plot: --design and --updates go with --figure escape")
    record = record_of(source)
    if out is None:
        name = f"{figure.value}.png"
        out = source / name if source.is_dir() else source.with_name(f"{source.stem}-{name}")
    if figure is Figure.curves:
        figures.curves(record, out, scale=scale.value)
    elif figure is Figure.escape:
        figures.escape(record, out, designs=design, updates=updates)
    else:
        figures.occupancy(record, out)
    typer.echo(str(out))


@app.command("list")
def list_() -> None:
    """List graphs, objectives, designs, rules, schedules and runtimes, with their parameters."""
    from rich.text import Text

    from freewalk.experiment.catalogue import families

    headings = {
        "design": 'Designs: design = { kind = "…", … }',
        "problem": "Objectives: [problem] kind = …, with the parameters of its synthetic data",
        "graph": "Graphs: [graph] kind = …",
        "rule": 'Rules: rule = { kind = "…", … }',
        "schedule": "Schedules: in place of a rule's step, or of a Decaying design's schedule",
        "runtime": "Runtimes: [run] runtime = …, in lower case",
    }
    kinds = families()
    console = terminal.console()
    for family, heading in headings.items():
        console.print(Text(heading, style="bold"))
        for kind in kinds[family].values():
            line = Text("  ").append(kind.name, style="cyan").append(f"({kind.signature()})")
            if not kind.in_specs:
                line.append("  from Python only", style="dim")
            console.print(line, soft_wrap=True)
            console.print(Text(f"      {kind.summary}", style="dim"), soft_wrap=True)
        console.print()


@app.command(epilog=_examples("freewalk example", "freewalk example my.toml"))
def example(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where to write it; printed if not given.")
    ] = None,
) -> None:
    """Print or write a commented spec to start from."""
    from freewalk.experiment import shipped

    text = shipped("example.toml").read_text(encoding="utf-8")
    if file is None:
        typer.echo(text, nl=False)
        return
    if file.exists():
        raise SpecError(f"{file} exists already; choose another name")
    file.parent.mkdir(parents=True, exist_ok=True)
    text = text.replace("freewalk run example.toml", f"freewalk run {file}")
    text = text.replace('name = "example"', f"name = {json.dumps(file.stem)}").replace(
        "runs/example/", f"runs/{file.stem}/"
    )
    file.write_text(text, encoding="utf-8")
    typer.echo(f"{file}: run it with: freewalk run {shlex.quote(str(file))}")


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="The folder to make or replace; runs/demo if not given.")] = None,
) -> None:
    """Run the shipped demo: six walks on a ring of 1000 nodes that start on a heavy node."""
    from freewalk.experiment import load, shipped

    _run(load(shipped("demo.toml")), out, force=(out or Path("runs/demo")).exists())


def _run(spec: "Spec", out: Path | None, force: bool) -> None:
    from freewalk.experiment import RunFolder

    _go_on(RunFolder.create(out or Path("runs") / spec.name, spec, force=force))


def _go_on(folder: "RunFolder") -> None:
    """Run what is missing, then show what came out."""
    from freewalk.experiment.folder import CURVES, RECORD
    from freewalk.report import table

    try:
        with terminal.progress_bar() as progress:
            record = folder.run(progress)
    except KeyboardInterrupt:
        _stop(folder)
    console = terminal.console()
    console.print(table(record))
    console.print(f"record  {folder.path / RECORD}\nfigure  {folder.path / CURVES}", markup=False, highlight=False)
    if record.partial:
        _stop(folder)


def _stop(folder: "RunFolder") -> NoReturn:
    command = shlex.join(["freewalk", "resume", str(folder.path)])
    terminal.say(f"interrupted; what was done is in {folder.path}. Go on with: {command}", "yellow")
    raise typer.Exit(INTERRUPTED)


def _fail(message: str) -> NoReturn:
    terminal.say(f"error: {message}", "red")
    raise typer.Exit(FAILED)


def main() -> None:
    """The entry point of the command `freewalk`."""
    app()


if __name__ == "__main__":
    main()
