"""Compare the walks of a spec, each at a step chosen by the same rule."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freewalk.cli import terminal
from freewalk.cli.application import Quiet, Runtime, Seed, SpecFile, command, spec_of, stop
from freewalk.errors import FreewalkError, SpecError

if TYPE_CHECKING:
    from freewalk.comparison import Comparison
    from freewalk.specs.spec import Plan, Spec


@command("freewalk compare my.toml", "freewalk compare my.toml --goal 1.5 --out runs/closer")
def compare(
    spec: SpecFile,
    out: Annotated[
        Path | None, typer.Option(help="Folder to create. Default: runs/<name of the spec>-comparison.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the comparison in the folder.")] = False,
    goal: Annotated[
        float | None, typer.Option(help="Goal, as a multiple of the optimum. Default: that of the spec, else 2.")
    ] = None,
    runtime: Runtime = None,
    seed: Seed = None,
    quiet: Quiet = False,
) -> None:
    r"""Count what each walk of a spec needs to reach a goal, with steps chosen by one rule for all.

    Steps come from the exact steady state where it can be computed, else from pilot runs. The spec's own steps are used
    only if its table \[compare] has keep_steps = true. The keys steps, every and paths of \[run] are ignored: each run
    lasts until it reaches the goal. Walks in phases are left out.

    If the spec names classes of your own as "module:Name", they are imported, which executes their code: do not compare
    a spec that you do not trust.
    """
    loaded = spec_of(spec, runtime, seed)
    folder = out or Path("runs") / f"{loaded.name}-comparison"
    _check_folder(folder, force)
    plan = loaded.plan(None if quiet else terminal.say)
    for label in () if quiet else plan.in_phases:
        terminal.say(f"{label!r} has phases and is left out: one step is chosen for the whole run", "yellow")
    found = _compared(loaded, plan, goal, quiet)
    _write(found, loaded, folder)
    terminal.console(quiet).print(found.table())
    for what, name in (("record", "record.npz"), ("figure", "curves.png"), ("page", "page.html")):
        terminal.out(f"{what:<7} {folder / name}", quiet)
    if found.partial:
        stop(found.record.provenance["interrupted_by"], f"the methods that were finished are in {folder}")


def _compared(spec: "Spec", plan: "Plan", goal: float | None, quiet: bool) -> "Comparison":
    from freewalk.comparison import Budget
    from freewalk.comparison import compare as run

    given: dict[str, Any] = {} if spec.tables.compare is None else spec.tables.compare.options
    given |= {} if goal is None else {"goal": goal}
    if "budget" in given:
        given["budget"] = Budget(**given["budget"])
    options = {name: plan.options[name] for name in ("walks", "seed", "start", "runtime", "precision")}
    try:
        with terminal.parts_bar(quiet) as progress:
            return run(plan.problem, plan.graph, plan.contestants, **options, **given, progress=progress)
    except FreewalkError as error:
        raise SpecError(f"{spec.source}: {error}") from error


def _check_folder(folder: Path, force: bool) -> None:
    from freewalk.comparison.result import NUMBERS

    exists = folder.exists() or folder.is_symlink()
    if exists and not force:
        raise SpecError(f"{folder} exists already; choose another with --out, or replace it with --force")
    if exists and (folder.is_symlink() or not (folder / NUMBERS).is_file()):
        raise SpecError(f"{folder} is not the folder of a comparison, so it is not replaced; choose another with --out")


def _write(found: "Comparison", spec: "Spec", folder: Path) -> None:
    from freewalk.specs.spec import SPEC
    from freewalk.storage.files import unbroken, write

    found.record.data.attrs["name"] = spec.name
    found.record.provenance["spec"] = spec.text
    with unbroken():
        found.save(folder, spec.name)
        write(folder / SPEC, spec.text)
