"""Reproduce the paper: its figures and its claims."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from freewalk.cli import terminal
from freewalk.cli.application import Quiet, command, interruptible
from freewalk.errors import SpecError

if TYPE_CHECKING:
    from rich.table import Table

    from freewalk.paper import StudyOutcome

_MARKS = {
    "pass": ("pass", "green"),
    "depends": ("depends", "yellow"),
    "fail": ("FAIL", "bold red"),
    "not testable": ("not testable", "dim"),
}


Parameters = StrEnum("Parameters", ["stated", "published", "own"])


@command(
    "freewalk reproduce                          everything, in about three minutes",
    "freewalk reproduce --quick                  the same without exact curves, in about a minute",
    "freewalk reproduce 3 6 --variant published",
)
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE",
            help="2, centralized, centralized-noise, centralized-homogeneous, section-4, 3, 3-logistic, 4a, 4b, 5a, "
            "5b, 5b-logistic, 6, 6-shift, 6-decay, remark-1, theorem-1, theorem-1-rate. Default: all.",
        ),
    ] = None,
    variant: Annotated[
        Parameters | None,
        typer.Option(
            help="Only these parameters: those stated in the paper, those fitted to its printed curves (published), "
            "or our own companion studies. Default: all."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Skip the exact curves; uses a folder of its own.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Output folder; results already in it are reused. Default: runs/reproduce.")
    ] = None,
    runtime: Annotated[str | None, typer.Option(help="Run the walks on this runtime, such as ray.")] = None,
    quiet: Quiet = False,
    search: Annotated[bool, typer.Option("--search", hidden=True)] = False,
    sweep: Annotated[bool, typer.Option("--sweep", hidden=True)] = False,
    seeds: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Reproduce the paper's figures, judge its claims, and write one HTML page with all results.

    A claim that fails is a result, not an error: the exit status is 0.
    """
    from freewalk.paper import reproduce as run

    if search or sweep or seeds is not None:
        _refuse("sweep" if sweep else "search", figures or [], {"--seeds": seeds, "--variant": variant, "--out": out})
    folder = out or Path("runs/reproduce-quick" if quick else "runs/reproduce")
    left = f"what is complete is in {folder}. Resume with: {shlex.join(['freewalk', *sys.argv[1:]])}"
    with terminal.status_line("reproducing", quiet) as tell, interruptible(lambda: left):
        chosen = None if variant is None else variant.value
        made = run(figures or (), chosen, folder, quick=quick, runtime=runtime, tell=tell)  # type: ignore[arg-type]
    console = terminal.console(quiet)
    for outcome in made.outcomes:
        console.print(_table(outcome))
        for table in outcome.tables:
            console.print(plain_table(table))
    for one in dict.fromkeys(outcome.variant for outcome in made.outcomes):
        found = [v.outcome for outcome in made.outcomes if outcome.variant == one for v in outcome.verdicts]
        counts = {name: sum(outcome == name for outcome in found) for name in _MARKS}
        terminal.out(f"{one}: " + ", ".join(f"{count} {name}" for name, count in counts.items()), quiet)
    terminal.out(f"figures  {folder}\npage     {made.page}", quiet)


def _refuse(command: str, figures: list[str], options: dict[str, object]) -> NoReturn:
    """Say where the searches and sweeps are, which once were options of this command."""
    given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    words = shlex.join(["python", "-m", "reproduction", command, *figures, *given])
    raise SpecError(f"reproduce: --{command} is a command of its own, in a copy of the repository: {words}")


def _table(outcome: "StudyOutcome") -> "Table":
    from rich import box
    from rich.table import Column, Table
    from rich.text import Text

    names = {"share": "holds in", "measured": "measured", "published": "printed"}
    shown = [name for name in names if any(getattr(verdict, name) for verdict in outcome.verdicts)]
    numbers = (Column(names[one], ratio=2) for one in shown)
    columns = [Column("test", ratio=5), Column("verdict", no_wrap=True), *numbers]
    table = Table(*columns, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.title = f"{outcome.name}, {outcome.variant}"
    quote = ""
    for verdict in outcome.verdicts:
        if verdict.quote not in ("", quote):
            table.add_row(Text(f"the paper: {verdict.quote}", style="italic dim"))
        quote = verdict.quote
        word, style = _MARKS[verdict.outcome]
        claim = Text(verdict.claim)
        if verdict.comment:
            claim.append(f"\n→ {verdict.comment}", style="dim")
        judged = Text.assemble((word, style), verdict.terms and f"\n{verdict.terms}")
        table.add_row(claim, judged, *(Text(getattr(verdict, name)) for name in shown))
    return table


def plain_table(table: Any) -> "Table":
    """A table of a study, for the terminal."""
    from rich import box
    from rich.table import Table

    shown = Table(*table.head, caption=table.caption, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in table.rows:
        shown.add_row(*row)
    return shown
