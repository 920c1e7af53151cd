"""Sweep over keys of a spec, report the progress of a sweep, and show its results."""

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freewalk.cli import terminal
from freewalk.cli.application import DEFAULT, Quiet, WithDefault, app, examples, group, interruptible

if TYPE_CHECKING:
    from freewalk.sweeps.folder import SweepFolder


On = StrEnum("On", ["threads", "processes", "ray"])  # where points are computed

sweeps = group(
    "freewalk sweep my.toml           compute all points; run it again to resume",
    "freewalk sweep my.toml --on ray  the same on a cluster",
    "freewalk sweep status my.toml    show how many points are done, and who is computing",
    "freewalk sweep show my.toml      write a table, figures and a page",
    cls=WithDefault,
)
app.add_typer(sweeps, name="sweep", help="Run a spec at every point of its table \\[sweep].")

SweepFile = Annotated[
    Path, typer.Argument(metavar="SWEEP", help="A spec with a table \\[sweep]; `freewalk example sweep` prints one.")
]
Place = Annotated[Path, typer.Argument(metavar="SWEEP", help="Spec or folder of a sweep.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the sweep. Default: runs/<name of the spec>.")]


@sweeps.command(DEFAULT, epilog=examples("freewalk sweep my.toml", "freewalk sweep my.toml --workers 4"))
def run(
    spec: SweepFile,
    out: Out = None,
    on: Annotated[
        On, typer.Option(help="Where to compute points; choose processes for runs in plain Python.")
    ] = On.threads,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of points computed at the same time. Default: one per core.")
    ] = None,
    address: Annotated[str | None, typer.Option(help="For --on ray: address of the Ray cluster.")] = None,
    quiet: Quiet = False,
) -> None:
    """Compute every point of a sweep once and draw the results. After an interruption, the same command resumes it.

    Several processes may work on one sweep at the same time. A spec can name classes of your own as "module:Name". They
    are imported, which executes their code: do not sweep a spec that you do not trust.
    """
    from freewalk.sweeps.crews import check_crew
    from freewalk.sweeps.folder import SweepFolder
    from freewalk.sweeps.points import sweep_of

    check_crew(on.value, workers, address)
    folder = SweepFolder.create(out, sweep_of(spec), None if quiet else terminal.say)
    there = len(folder.finished)
    given = {"--out": out, "--on": None if on is On.threads else on, "--workers": workers, "--address": address}
    options = [str(word) for option in given.items() if option[1] is not None for word in option]

    def left() -> str:
        done = f"{len(folder.finished)} of {len(folder.sweep)} points are in {folder.path}"
        return f"{done}. Resume with: {shlex.join(['freewalk', 'sweep', str(spec), *options])}"

    with interruptible(left):
        with terminal.progress_bar(quiet) as bar:

            def tell(there: int, total: int, done: int, whole: int) -> None:
                if bar is not None:
                    bar(f"{there} of {total} points", done, whole, 1)

            made = folder.run(on.value, workers, address, tell)
        words = f"{len(folder.sweep)} points: {there} already done, {len(made)} computed"
        others = len(folder.sweep) - there - len(made)
        terminal.out(words + (f", {others} by others" if others else ""), quiet)
        _show(folder, quiet, None, None)


@sweeps.command(epilog=examples("freewalk sweep status my.toml", "freewalk sweep status runs/my"))
def status(sweep: Place, out: Out = None) -> None:
    """Show how many points of a sweep are done, in progress and not started."""
    from freewalk.sweeps.folder import SweepFolder

    folder = SweepFolder.open(sweep, out)
    held, missing = folder.results.held(), folder.missing
    under_way = [point for point in missing if point.key in held]
    total = len(folder.sweep)
    words = f"{len(under_way)} in progress, {len(missing) - len(under_way)} not started"
    terminal.out(f"{folder.path}: {total - len(missing)} of {total} points are done, {words}")
    for point in under_way:
        terminal.out(f"  {held[point.key]}: {point.words}")


@sweeps.command(epilog=examples("freewalk sweep show my.toml", "freewalk sweep show runs/my --x graph.n"))
def show(
    sweep: Place,
    out: Out = None,
    measure: Annotated[
        str | None, typer.Option(metavar="NAME", help="Measure to show. Default: the primary measure of the spec.")
    ] = None,
    x: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Key on the horizontal axis. Default: that with the most values."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Print a table of the finished points, and write figures and a page; the sweep may be unfinished."""
    from freewalk.sweeps.folder import SweepFolder

    _show(SweepFolder.open(sweep, out), quiet, measure, x)


def _show(folder: "SweepFolder", quiet: bool, measure: str | None, x: str | None) -> None:
    from freewalk.sweeps.folder import show

    table, lines = show(folder, measure, x)
    terminal.console(quiet).print(table)
    terminal.out("\n".join(lines), quiet)
