"""Run a spec, go on after an interruption, run the demo."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from freewalk import terminal
from freewalk.cli.application import INTERRUPTED, app, examples

if TYPE_CHECKING:
    from freewalk.experiment import RunFolder
    from freewalk.experiment.spec import Spec


@app.command(epilog=examples("freewalk run my.toml", "freewalk run my.toml --seed 8 --out runs/again"))
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


@app.command(epilog=examples("freewalk resume runs/example"))
def resume(folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of an interrupted run.")]) -> None:
    """Go on with a run that Ctrl-C has stopped, to the same result as without."""
    from freewalk.experiment import RunFolder

    _go_on(RunFolder.open(folder))


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
