"""List what a spec may name, and write one to start from."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from freewalk import terminal
from freewalk.cli.application import app, examples
from freewalk.errors import SpecError


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


@app.command(epilog=examples("freewalk example", "freewalk example my.toml"))
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
