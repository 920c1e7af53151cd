"""Describe a data set, and how a partition distributes it over the nodes of a graph."""

from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from freewalk.cli import terminal
from freewalk.cli.application import Quiet, command
from freewalk.errors import SpecError


def _names(family: str, incomplete: str = "") -> list[str]:
    """The names of a family, as a shell may complete them."""
    from freewalk.specs.catalogue import families

    return [name for name in families()[family] if name.lower().startswith(incomplete.lower())]


@command(
    "freewalk data digits",
    "freewalk data digits --partition Dirichlet --alpha 0.1 --nodes 100",
    "freewalk data digits --partition Shards --classes 2 --nodes 20 --out shards.pdf",
)
def data(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="Name of the data set; `freewalk list dataset` lists all.",
            autocompletion=lambda incomplete: _names("dataset", incomplete),
        ),
    ],
    partition: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="How to distribute it over nodes; `freewalk list partition` lists all.",
            autocompletion=lambda incomplete: _names("partition", incomplete),
        ),
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Number of nodes.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the partition.")] = 0,
    alpha: Annotated[float | None, typer.Option(help="For Dirichlet and Quantity: smaller is less equal.")] = None,
    least: Annotated[int | None, typer.Option(help="For Dirichlet and Quantity: minimum samples per node.")] = None,
    classes: Annotated[int | None, typer.Option(help="For Shards: maximum classes per node.")] = None,
    strength: Annotated[float | None, typer.Option(help="For FeatureShift: from 0 (iid) to 1 (sorted).")] = None,
    out: Annotated[Path | None, typer.Option(help="Image to write. Default: runs/DATASET-KIND.png.")] = None,
    quiet: Quiet = False,
) -> None:
    """Describe a data set; with --partition, also show and draw how it is distributed over nodes."""
    from freewalk.specs.catalogue import build

    parameters = {"alpha": alpha, "least": least, "classes": classes, "strength": strength}
    given = {key: value for key, value in parameters.items() if value is not None}
    if partition is None and (given or out is not None):
        option = next(iter(given), "out")
        raise SpecError(f"data: --{option} needs --partition, expected one of {', '.join(_names('partition'))}")
    found = build("dataset", {"kind": dataset}, "data")
    if partition is None:
        for line in (repr(found), f"  source: {found.source}", f"  licence: {found.licence}"):
            terminal.out(fill(line, terminal.console().width, subsequent_indent="    "), quiet)
        return
    from freewalk.report import partition_figure
    from freewalk.report.figures import check_format

    out = out or Path("runs") / f"{dataset}-{partition}.png"
    check_format(out)
    made = build("partition", {"kind": partition, **given}, "--partition").partition(found, nodes, seed)
    partition_figure(made, out)
    terminal.out(f"{made}\nfigure  {out}", quiet)
