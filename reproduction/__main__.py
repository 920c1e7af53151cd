"""`python -m reproduction search` and `python -m reproduction sweep`: find again what `freewalk.paper` stores."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from freewalk.cli import terminal
from freewalk.cli.application import Commands, Quiet, group, interruptible
from freewalk.cli.reproduce import Parameters, plain_table
from freewalk.errors import SpecError
from freewalk.paper import KEYS
from freewalk.paper.evidence import FIGURES
from freewalk.paper.files import key_of, sweep_path
from reproduction import search, sensitivity, sweep

POINTS = "points"  # subfolder for what a search or a sweep has computed
Figures = Annotated[list[str] | None, typer.Argument(metavar="FIGURE", help="3, 4a, 4b, 5a, 5b, 6. Default: all.")]
Out = Annotated[Path, typer.Option(help="Output folder; an interrupted command resumes from it.")]

app = group(
    "python -m reproduction search 5a --seeds 20   search for the parameters behind the printed curves",
    "python -m reproduction sweep 4b               test the claims in many other settings",
    cls=Commands,
    name="reproduction",
)


@app.command("search")
def search_command(
    figures: Figures = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of the data.")] = 50,
    out: Out = Path("runs/search"),
    quiet: Quiet = False,
) -> None:
    """Search for the parameters fitted to the printed curves; about 20 minutes per figure.

    Without figures: for each figure, then for all of them together.
    """
    chosen = [key_of(name, KEYS) for name in figures or ()] or list(FIGURES)
    for figure in chosen:
        if figure not in FIGURES:
            raise SpecError(f"search: figure = {figure!r}, expected one of {', '.join(FIGURES)}")
    console = terminal.console(quiet)
    for figure in chosen:
        with _progress("searching", f"figure {figure}: {{}}, {{}} of {{}}", out, quiet) as tell:
            found = search.search(figure, seeds, folder=out / POINTS, tell=tell)
        path = out / f"figure-{figure}.json"
        found.save(path)
        console.print(f"[bold]Figure {figure}[/bold]  {path}\n{found.setting}", highlight=False)
        for table in found.tables():
            console.print(plain_table(table))
    if not figures:
        with _progress("searching", "{}, {} of {}", out, quiet) as tell:
            together = sensitivity.explore(seeds=seeds, folder=out / POINTS, tell=tell)
        path = out / "sensitivity.json"
        together.save(path)
        console.print(f"[bold]All figures together[/bold]  {path}", highlight=False)
        for table in together.tables():
            console.print(plain_table(table))


@app.command("sweep")
def sweep_command(
    figures: Figures = None,
    variant: Annotated[Parameters | None, typer.Option(help="Only these parameters. Default: all.")] = None,
    out: Out = Path("runs/sweep"),
    quiet: Quiet = False,
) -> None:
    """Test the claims in other settings; about 15 minutes for all figures.

    stated: other steps, data and starts; published: fresh data.
    """
    chosen = [key_of(name, KEYS) for name in figures or ()]
    console = terminal.console(quiet)
    with _progress("sweeping", "{}: draw {} of {}", out, quiet) as tell:
        only = None if variant is None else variant.value
        for found in sweep.sweep(chosen, only, folder=out / POINTS, tell=tell):  # type: ignore[arg-type]
            path = out / found.variant / sweep_path(found.figure, found.variant).name
            found.save(path)
            console.print(f"[bold]Figure {found.figure}, {found.variant}[/bold]  {path}", highlight=False)
            for text, share in found.shares().items():
                console.print(f"  {share.words('')} [dim]{text}[/dim]", highlight=False)


@contextmanager
def _progress(what: str, form: str, folder: Path, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A line about the progress; after Ctrl-C, one that says what is kept and how to resume."""
    again = shlex.join(["python", "-m", "reproduction", *sys.argv[1:]])
    left = f"what is complete is in {folder}. Resume with: {again}"
    with terminal.status_line(what, quiet) as tell, interruptible(lambda: left):
        yield lambda name, done, total: tell(form.format(name, done, total)) if tell is not None else None


if __name__ == "__main__":
    app()
