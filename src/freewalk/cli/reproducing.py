"""Reproduce the paper: its figures, its claims, and the search behind the fitted parameters."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from freewalk import terminal
from freewalk.cli.application import INTERRUPTED, app, examples
from freewalk.errors import SpecError

if TYPE_CHECKING:
    from rich.table import Table

    from freewalk.studies import Outcome

_MARKS = {"pass": ("pass", "green"), "fail": ("FAIL", "bold red"), "not testable": ("not testable", "yellow")}


class Parameters(StrEnum):
    """Whose parameters."""

    stated = "stated"
    published = "published"
    own = "own"


@app.command(
    epilog=examples(
        "freewalk reproduce                          all figures, both variants: two to three minutes",
        "freewalk reproduce --quick                  the same in half a minute, with few walks",
        "freewalk reproduce 3 6 --variant published",
        "freewalk reproduce 5a --search --seeds 20   look for the parameters that give the printed curves",
    )
)
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE",
            help="2, 3, 4a, 4b, 5a, 5b, 6, 6-shift, remark-1, theorem-1; if none is given, all of them.",
        ),
    ] = None,
    variant: Annotated[
        Parameters | None,
        typer.Option(
            help="The parameters the paper prints, those that give its printed curves, our own companions; else all."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few walks and no exact curves; in a folder of its own.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The folder; runs/reproduce if not given. What is there is used again.")
    ] = None,
    search: Annotated[
        bool,
        typer.Option("--search", help="Search for the fitted parameters instead: some 20 minutes a figure."),
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="For --search: how many draws of the data; 50.")] = None,
) -> None:
    """Reproduce the paper's figures, judge its claims, and write one HTML page about it all.

    A claim that fails is a result, not an error: the exit status is 0.
    """
    from freewalk.studies import reproduce as run

    folder = out or Path("runs/reproduce-quick" if quick else "runs/reproduce")
    if search:
        if quick or variant is not None:
            raise SpecError("reproduce: --search goes with figures, --seeds and --out alone")
        _search(figures or [], seeds or 50, out or Path("runs/search"))
        return
    if seeds is not None:
        raise SpecError("reproduce: --seeds goes with --search")
    with terminal.status_line("reproducing") as tell:
        try:
            made = run(figures or (), None if variant is None else variant.value, folder, quick=quick, tell=tell)
        except KeyboardInterrupt:
            _stop(folder)
    console = terminal.console()
    for outcome in made.outcomes:
        console.print(_table(outcome))
        for table in outcome.fit:
            console.print(_plain(table))
    counts = {name: sum(v.outcome == name for one in made.outcomes for v in one.verdicts) for name in _MARKS}
    console.print(", ".join(f"{count} {name}" for name, count in counts.items()), highlight=False)
    console.print(f"figures  {folder}\npage     {made.page}", markup=False, highlight=False, soft_wrap=True)


def _table(outcome: "Outcome") -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=f"{outcome.name}, {outcome.variant}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("claim", ratio=5)
    table.add_column("verdict", no_wrap=True)
    table.add_column("measured", ratio=3)
    table.add_column("printed", ratio=2)
    for verdict in outcome.verdicts:
        word, style = _MARKS[verdict.outcome]
        claim = Text(verdict.claim)
        if verdict.comment:
            claim.append(f"\n{verdict.comment}", style="dim")
        table.add_row(claim, Text(word, style=style), Text(verdict.measured), Text(verdict.published))
    return table


def _search(figures: list[str], seeds: int, folder: Path) -> None:
    """Search, print what was found, and write it beside the others."""
    from freewalk.studies import KEYS, search
    from freewalk.studies.files import key_of
    from freewalk.studies.published import FIGURES

    chosen = [key_of(name, KEYS) for name in figures] or list(FIGURES)
    for figure in chosen:
        if figure not in FIGURES:
            raise SpecError(f"search: figure = {figure!r}, expected one of {', '.join(FIGURES)}")
    console = terminal.console()
    with terminal.status_line("searching") as tell:
        for figure in chosen:

            def progress(what: str, done: int, total: int, figure: str = figure) -> None:
                if tell is not None:
                    tell(f"figure {figure}: {what}, {done} of {total}")

            try:
                found = search(figure, seeds, tell=progress)
            except KeyboardInterrupt:
                terminal.say("interrupted; a search begins anew", "yellow")
                raise typer.Exit(INTERRUPTED) from None
            path = folder / f"figure-{figure}.json"
            found.save(path)
            console.print(f"[bold]Figure {figure}[/bold]  {path}\n{found.setting}", highlight=False)
            for table in found.tables():
                console.print(_plain(table))


def _plain(table: Any) -> "Table":
    from rich import box
    from rich.table import Table

    shown = Table(caption=table.caption, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in table.head:
        shown.add_column(heading)
    for row in table.rows:
        shown.add_row(*row)
    return shown


def _stop(folder: Path) -> NoReturn:
    command = shlex.join(["freewalk", *sys.argv[1:]])
    terminal.say(f"interrupted; what is complete is in {folder}. Go on with: {command}", "yellow")
    raise typer.Exit(INTERRUPTED)
