"""Reproduce the paper: its figures, its claims, and the search behind the fitted parameters."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freewalk.cli import terminal
from freewalk.cli.application import Quiet, app, examples, stop
from freewalk.errors import SpecError

if TYPE_CHECKING:
    from rich.table import Table

    from freewalk.paper import Outcome

POINTS = "points"  # subfolder for what a search or a sweep has computed
_MARKS = {
    "pass": ("pass", "green"),
    "depends": ("depends", "yellow"),
    "fail": ("FAIL", "bold red"),
    "not testable": ("not testable", "dim"),
}


class Parameters(StrEnum):
    """Which parameters."""

    stated = "stated"
    published = "published"
    own = "own"


@app.command(
    epilog=examples(
        "freewalk reproduce                          everything, in about three minutes",
        "freewalk reproduce --quick                  the same without exact curves, in about a minute",
        "freewalk reproduce 3 6 --variant published",
        "freewalk reproduce 4b --sweep               test the claims in many other settings",
        "freewalk reproduce 5a --search --seeds 20   search for the parameters behind the printed curves",
    )
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
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Repeat the search for the fitted parameters instead; about 20 minutes per figure. Without figures: "
            "for each figure, then for all of them together.",
        ),
    ] = False,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="Test the claims in other settings instead (stated: other steps, data and starts; published: fresh "
            "data); about 15 minutes for all figures.",
        ),
    ] = False,
    runtime: Annotated[str | None, typer.Option(help="Run the walks on this runtime, such as ray.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="For --search: draws of the data. Default: 50.")] = None,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper's figures, judge its claims, and write one HTML page with all results.

    A claim that fails is a result, not an error: the exit status is 0.
    """
    from freewalk.paper import reproduce as run

    folder = out or Path("runs/reproduce-quick" if quick else "runs/reproduce")
    if search:
        if quick or sweep or variant is not None:
            raise SpecError("reproduce: --search can be combined only with figures, --seeds and --out")
        _search(figures or [], seeds or 50, out or Path("runs/search"), quiet)
        return
    if seeds is not None:
        raise SpecError("reproduce: --seeds needs --search")
    if sweep:
        if quick:
            raise SpecError("reproduce: --sweep can be combined only with figures, --variant and --out")
        _sweep(figures or [], None if variant is None else variant.value, out or Path("runs/sweep"), quiet)
        return
    with terminal.status_line("reproducing", quiet) as tell:
        try:
            chosen = None if variant is None else variant.value
            made = run(figures or (), chosen, folder, quick=quick, runtime=runtime, tell=tell)  # type: ignore[arg-type]
        except KeyboardInterrupt as interrupt:
            stop(str(interrupt), _kept(folder))
    console = terminal.console(quiet)
    for outcome in made.outcomes:
        console.print(_table(outcome))
        for table in outcome.tables:
            console.print(_plain(table))
    for one in dict.fromkeys(outcome.variant for outcome in made.outcomes):
        found = [v.outcome for outcome in made.outcomes if outcome.variant == one for v in outcome.verdicts]
        counts = {name: sum(outcome == name for outcome in found) for name in _MARKS}
        console.print(f"{one}: " + ", ".join(f"{count} {name}" for name, count in counts.items()), highlight=False)
    console.print(f"figures  {folder}\npage     {made.page}", markup=False, highlight=False, soft_wrap=True)


def _kept(folder: Path) -> str:
    """What an interruption leaves, and how to resume."""
    return f"what is complete is in {folder}. Resume with: {shlex.join(['freewalk', *sys.argv[1:]])}"


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
    columns = {"share": "holds in", "measured": "measured", "published": "printed"}
    shown = [name for name in columns if any(getattr(verdict, name) for verdict in outcome.verdicts)]
    table.add_column("test", ratio=5)
    table.add_column("verdict", no_wrap=True)
    for name in shown:
        table.add_column(columns[name], ratio=2)
    quote = ""
    for verdict in outcome.verdicts:
        if verdict.quote not in ("", quote):
            table.add_row(Text(f"the paper: {verdict.quote}", style="italic dim"))
        quote = verdict.quote
        word, style = _MARKS[verdict.outcome]
        claim = Text(verdict.claim)
        if verdict.comment:
            claim.append(f"\n→ {verdict.comment}", style="dim")
        table.add_row(claim, Text(word, style=style), *(Text(getattr(verdict, name)) for name in shown))
    return table


def _sweep(figures: list[str], variant: Any, folder: Path, quiet: bool) -> None:
    """Test the claims in all settings, print in how many each holds, and add the counts to the file."""
    from freewalk.paper import KEYS, sweep
    from freewalk.paper.files import key_of, sweep_name

    chosen = [key_of(name, KEYS) for name in figures]
    console = terminal.console(quiet)
    with terminal.status_line("sweeping", quiet) as tell:

        def progress(what: str, done: int, total: int) -> None:
            if tell is not None:
                tell(f"{what}: draw {done} of {total}")

        try:
            for found in sweep(chosen, variant, folder=folder / POINTS, tell=progress):
                path = folder / found.variant / sweep_name(found.figure)
                found.save(path)
                console.print(f"[bold]Figure {found.figure}, {found.variant}[/bold]  {path}", highlight=False)
                for text, share in found.shares().items():
                    console.print(f"  {share.words('')} [dim]{text}[/dim]", highlight=False)
        except KeyboardInterrupt as interrupt:
            stop(str(interrupt), _kept(folder))


def _search(figures: list[str], seeds: int, folder: Path, quiet: bool) -> None:
    """Search, print the parameters found and add them to the file; without figures, also for all figures together."""
    from freewalk.paper import KEYS, explore, search
    from freewalk.paper.files import key_of
    from freewalk.paper.published import FIGURES

    chosen = [key_of(name, KEYS) for name in figures] or list(FIGURES)
    for figure in chosen:
        if figure not in FIGURES:
            raise SpecError(f"search: figure = {figure!r}, expected one of {', '.join(FIGURES)}")
    console = terminal.console(quiet)
    with terminal.status_line("searching", quiet) as tell:
        for figure in chosen:

            def progress(what: str, done: int, total: int, figure: str = figure) -> None:
                if tell is not None:
                    tell(f"figure {figure}: {what}, {done} of {total}")

            try:
                found = search(figure, seeds, folder=folder / POINTS, tell=progress)
            except KeyboardInterrupt as interrupt:
                stop(str(interrupt), _kept(folder))
            path = folder / f"figure-{figure}.json"
            found.save(path)
            console.print(f"[bold]Figure {figure}[/bold]  {path}\n{found.setting}", highlight=False)
            for table in found.tables():
                console.print(_plain(table))
        if not figures:

            def together(what: str, done: int, total: int) -> None:
                if tell is not None:
                    tell(f"{what}, {done} of {total}")

            try:
                all_of_them = explore(seeds=seeds, folder=folder / POINTS, tell=together)
            except KeyboardInterrupt as interrupt:
                stop(str(interrupt), _kept(folder))
            path = folder / "sensitivity.json"
            all_of_them.save(path)
            console.print(f"[bold]All figures together[/bold]  {path}", highlight=False)
            for table in all_of_them.tables():
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
