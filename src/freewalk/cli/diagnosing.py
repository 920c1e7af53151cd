"""Say before a run whether its walks would be entrapped, also by the exit status, so that scripts can ask."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freewalk import terminal
from freewalk.cli.application import ENTRAPPED, app, examples
from freewalk.errors import SpecError

if TYPE_CHECKING:
    from freewalk.designs import Design
    from freewalk.experiment.spec import Plan, Spec


@app.command(
    epilog=examples(
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
    budget: Annotated[
        float, typer.Option(min=0.1, help="Seconds that it may take; what was not reached by then is left out.")
    ] = 60.0,
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
    with terminal.parts_bar() as tell:
        found = find(graph, plan.problem, start=first, designs=_designs(loaded, plan), budget=budget, progress=tell)
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
