"""Predict before a run whether its walks would be entrapped; the exit status tells scripts."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freewalk.checks import show
from freewalk.cli import terminal
from freewalk.cli.application import ENTRAPPED, Quiet, SpecFile, command
from freewalk.errors import FreewalkError, SpecError

if TYPE_CHECKING:
    from freewalk.designs import Design
    from freewalk.graphs import Graph
    from freewalk.specs.plan import Plan


@command(
    "freewalk diagnose my.toml",
    "freewalk diagnose my.toml --start uniform --out trap.pdf",
    "freewalk diagnose my.toml --json > diagnosis.json || echo 'do not use importance sampling by Metropolis'",
)
def diagnose(
    spec: SpecFile,
    start: Annotated[
        str | None,
        typer.Option(help="Start: heaviest, uniform, a node, or several as 0,5,7. Default: that of the spec."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Image to write. Default: runs/<name of the spec>-diagnosis.png.")
    ] = None,
    budget: Annotated[
        float, typer.Option(min=0.1, help="Time limit in seconds; what does not finish in time is left out.")
    ] = 60.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print only JSON, with all numbers; draw an image only with --out.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Predict before training whether importance sampling pays or is entrapped, and what to use instead.

    The standard designs and those of the spec are compared, each at its own best step; the spec's rules are not used.
    Walks in phases, parked walks, and the designs Decaying and Centralized are left out. If the problem is not least
    squares, only traps and messages are shown, and no design is recommended.

    The exit status is 1 if importance sampling by Metropolis is slower than the uniform walk (or, if that is not known,
    if it is entrapped), 0 if not, and 2 after an error.
    """
    from freewalk.analysis.diagnosis.diagnose import diagnose as find
    from freewalk.report import diagnosis_figure
    from freewalk.report.figures import check_format
    from freewalk.specs import load

    loaded = load(spec)
    plan = loaded.plan(None if quiet else terminal.say)
    given = "uniform" if plan.options["start"] is None else plan.options["start"]
    first = given if start is None else _start(start, plan.graph)
    if out is None and not as_json:
        # Not in the folder of the run: `run` creates that folder and refuses an existing one.
        out = Path("runs") / f"{loaded.name}-diagnosis.png"
    if out is not None:
        check_format(out)
    with terminal.parts_bar(quiet) as tell:
        found = find(plan.graph, plan.problem, start=first, designs=_designs(plan), budget=budget, progress=tell)
    if out is not None:
        diagnosis_figure(found, out)
    if as_json:
        terminal.out(json.dumps(found.as_dict(), indent=2, ensure_ascii=False), quiet)
    else:
        terminal.out(f"{found.text(terminal.console().width)}\nfigure  {out}", quiet)
    if found.advised_against:
        raise typer.Exit(ENTRAPPED)


def _start(words: str, graph: "Graph") -> str | int | list[int]:
    """The start that a command-line argument gives."""
    if words in ("heaviest", "uniform"):
        return words
    try:
        named = graph.node_names is not None
        nodes = [graph.node(word.strip() if named else int(word)) for word in words.split(",")]
    except ValueError as error:  # also what the graph says
        why = f"; {error}" if isinstance(error, FreewalkError) else ""
        expected = f"heaviest, uniform, a node, or several as 0,5,7{why}"
        raise SpecError(f"--start {show(words)}: expected {expected}") from error
    return nodes if len(nodes) > 1 else nodes[0]


def _designs(plan: "Plan") -> "dict[str, Design]":
    """The standard designs and the spec's other designs that can be diagnosed, by label."""
    from freewalk.analysis.diagnosis.diagnose import DESIGNS

    found = dict(DESIGNS)
    for name, phases in plan.walks.items():
        design = plan.methods[name][0].design
        kernel = phases[0].kernel
        if len(phases) > 1 or kernel.fade is not None or not kernel.is_local or kernel.is_parked:
            continue
        if not any(type(design) is type(other) and _same(vars(design), vars(other)) for other in found.values()):
            found[f"{name} (spec)" if name in DESIGNS else name] = design
    return found


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two designs have the same parameters; arrays may differ in shape."""
    import numpy as np

    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)
