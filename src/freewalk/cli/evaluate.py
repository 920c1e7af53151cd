"""Measure the final models of a run, and write one of them to a file."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freewalk.cli import terminal
from freewalk.cli.application import AllowCode, Quiet, command
from freewalk.errors import RecordError

if TYPE_CHECKING:
    from freewalk.run.record import Record
    from freewalk.specs import RunFolder
    from freewalk.specs.plan import Posed

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]


@command(
    "freewalk evaluate runs/digits",
    "freewalk evaluate runs/digits --nodes --figure nodes.png",
)
def evaluate(
    run: Run,
    nodes: Annotated[bool, typer.Option("--nodes", help="Also measure the loss at every node.")] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the loss at every node to this image; implies --nodes.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write all numbers to this file (.json).")] = None,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
) -> None:
    """Measure the final models of a run: all measures for each design, and how much the nodes differ.

    The data are rebuilt from the spec in the folder. If it holds out samples, linear models are measured on them here;
    PyTorch models were already measured on them during the run.
    """
    from freewalk.report import evaluation_table, node_losses
    from freewalk.report.figures import check_format
    from freewalk.run.evaluate import evaluate as measure
    from freewalk.storage.files import write

    if figure is not None:
        check_format(figure)
    if out is not None and out.suffix != ".json":
        raise RecordError(f"evaluate: --out {out}, expected a file name that ends in .json")
    record, posed, _ = _made("evaluate", run, allow_code, quiet)
    held = posed.origin.test if "test_loss" not in posed.problem.measures else None
    found = measure(record, posed.problem, per_node=nodes or figure is not None, dataset=held)
    terminal.console(quiet).print(evaluation_table(found))
    if figure is not None:
        terminal.out(f"figure  {node_losses(found, figure)}", quiet)
    if out is not None:
        write(out, json.dumps(found.to_dict(), indent=2, ensure_ascii=False) + "\n")
        terminal.out(f"numbers {out}", quiet)


@command(
    "freewalk export runs/digits --out model.safetensors",
    "freewalk export runs/digits --design MHLJ --walk 3 --out model.pt",
)
def export(
    run: Run,
    out: Annotated[
        Path,
        typer.Option(
            help="File to write. PyTorch models: a state_dict, .safetensors or .pt. Linear models: the vector x, "
            ".safetensors or .npz."
        ),
    ],
    design: Annotated[str | None, typer.Option(help="Label of a walk in the spec; not needed if there is one.")] = None,
    walk: Annotated[int, typer.Option(min=0, help="Number of the replica.")] = 0,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
) -> None:
    """Write a final model of a run to a file that other programs read."""
    from freewalk.specs.export import export_model

    record, posed, folder = _made("export", run, allow_code, quiet)
    file = export_model(record, posed.problem, out, design=design, walk=walk, name=folder.spec.name)
    terminal.out(file, quiet)


def _made(who: str, run: Path, allow_code: bool, quiet: bool) -> "tuple[Record, Posed, RunFolder]":
    """The record of a run, and its problem, rebuilt from its spec."""
    from freewalk.specs import RunFolder
    from freewalk.specs.folder import record_of

    record = record_of(run)
    folder = RunFolder.open(run, allow_code=True, tell=None if quiet else terminal.say)
    if folder.work != folder.path:
        what = "contains an unfinished run whose spec is not that of the record"
        raise RecordError(f"{run}: {what}; complete it first: {shlex.join(['freewalk', 'resume', str(run)])}")
    if folder.spec.code and not allow_code:
        again = shlex.join(["freewalk", who, str(run), "--allow-code"])
        code = f"names code ({', '.join(folder.spec.code)}), which is not imported without your consent"
        raise RecordError(f"{folder.spec.source}: {code}; if you trust it: {again}")
    return record, folder.pose_again(), folder
