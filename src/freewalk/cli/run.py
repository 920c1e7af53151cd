"""Run a spec, resume after an interruption, run the demo."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freewalk.cli import terminal
from freewalk.cli.application import (
    AllowCode,
    Quiet,
    Runtime,
    Seed,
    SpecFile,
    app,
    command,
    interruptible,
    spec_of,
    stop,
)

if TYPE_CHECKING:
    from freewalk.specs import RunFolder
    from freewalk.specs.spec import Spec


@command("freewalk run my.toml", "freewalk run my.toml --seed 8 --out runs/again")
def run(
    spec: SpecFile,
    out: Annotated[Path | None, typer.Option(help="Folder to create. Default: runs/<name of the spec>.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the run in the folder once the new one is complete.")
    ] = False,
    runtime: Runtime = None,
    seed: Seed = None,
    quiet: Quiet = False,
) -> None:
    """Run a spec and write its record, a table and a figure.

    A spec can name classes of your own as "module:Name". They are imported, which executes their code: do not run a
    spec that you do not trust.
    """
    _run(spec_of(spec, runtime, seed), out, force, quiet)


@command("freewalk resume runs/my")
def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an interrupted run.")],
    allow_code: AllowCode = False,
    quiet: Quiet = False,
) -> None:
    """Resume an interrupted or killed run; the result is identical to that of an uninterrupted one."""
    from freewalk.specs import RunFolder

    _finish(RunFolder.open(folder, allow_code=allow_code, tell=None if quiet else terminal.say), quiet)


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="Folder to create or replace. Default: runs/demo.")] = None,
    quiet: Quiet = False,
) -> None:
    """Run the demo: six walks on a ring of 1000 nodes, all starting on a heavy node."""
    from freewalk.specs import load, shipped

    _run(load(shipped("demo.toml")), out, (out or Path("runs/demo")).exists(), quiet)


def _run(spec: "Spec", out: Path | None, force: bool, quiet: bool) -> None:
    from freewalk.specs import RunFolder

    place = out or Path("runs") / spec.name
    _finish(RunFolder.create(place, spec, force=force, tell=None if quiet else terminal.say), quiet)


def _finish(folder: "RunFolder", quiet: bool) -> None:
    """Run what is missing, then print the results."""
    with interruptible(lambda: _left(folder)):
        from freewalk.report import table
        from freewalk.specs.folder import CURVES, RECORD

        with terminal.progress_bar(quiet) as progress:
            record = folder.run(progress)
        terminal.console(quiet).print(table(record))
        terminal.out(f"record  {folder.work / RECORD}\nfigure  {folder.work / CURVES}", quiet)
    if "interrupted_by" in record.provenance:
        stop(record.provenance["interrupted_by"], _left(folder))


def _left(folder: "RunFolder") -> str:
    """What an interrupted run leaves, and how to resume it."""
    from freewalk.specs.folder import PARTS, RECORD

    if folder.complete:
        return f"the run is complete and is in {folder.path}"
    code = ["--allow-code"] if folder.spec.code else []
    command = shlex.join(["freewalk", "resume", str(folder.path), *code])
    begun = (folder.work / PARTS).exists() or (folder.work / RECORD).exists()
    done = f"what was done is in {folder.work}" if begun else "nothing was computed yet"
    kept = f"; {folder.path} keeps the earlier run until then" if folder.work != folder.path else ""
    return f"{done}. Resume with: {command}{kept}"
