"""Draw a run, make a page of it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from freewalk.cli.application import app, examples
from freewalk.errors import SpecError


class Figure(StrEnum):
    """What to draw."""

    curves = "curves"
    escape = "escape"
    occupancy = "occupancy"


class Scale(StrEnum):
    """A horizontal axis."""

    auto = "auto"
    linear = "linear"
    log = "log"


@app.command(
    epilog=examples(
        "freewalk plot runs/demo",
        "freewalk plot runs/demo --scale linear --out loss.pdf",
        "freewalk plot runs/demo --figure escape --design 'MH importance' --design 'MHLJ, jump 0.9' --updates 3000",
    )
)
def plot(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a record (.npz).")],
    out: Annotated[Path | None, typer.Option(help="The image to write; if not given, one beside the record.")] = None,
    figure: Annotated[
        Figure,
        typer.Option(help="The loss, the paths of walks (if kept), or the visits near the heavy nodes."),
    ] = Figure.curves,
    scale: Annotated[Scale, typer.Option(help="The horizontal axes of the loss.")] = Scale.auto,
    design: Annotated[list[str] | None, typer.Option(help="For escape: show this design; may be repeated.")] = None,
    updates: Annotated[int | None, typer.Option(min=1, help="For escape: show so many updates.")] = None,
) -> None:
    """Draw a run: the loss against updates and against messages, or another figure."""
    from freewalk.experiment.folder import record_of
    from freewalk.report import figures

    if figure is not Figure.escape and (design or updates):
        raise SpecError("plot: --design and --updates go with --figure escape")
    record = record_of(source)
    if out is None:
        out = _beside(source, f"{figure.value}.png")
    if figure is Figure.curves:
        figures.curves(record, out, scale=scale.value)
    elif figure is Figure.escape:
        figures.escape(record, out, designs=design, updates=updates)
    else:
        figures.occupancy(record, out)
    typer.echo(str(out))


@app.command(
    epilog=examples("freewalk report runs/demo", "freewalk report runs/demo --out demo.html --title 'Six ways to walk'")
)
def report(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a record (.npz).")],
    out: Annotated[Path | None, typer.Option(help="The page to write; if not given, one beside the record.")] = None,
    title: Annotated[str | None, typer.Option(help="Its heading; the name of the run if not given.")] = None,
) -> None:
    """Make one HTML page of a run: curves to play with, where the walks went, and the walks themselves.

    The page needs no network and no other file.
    """
    from freewalk.experiment import parse
    from freewalk.experiment.catalogue import build
    from freewalk.experiment.folder import record_of
    from freewalk.report import Page, section_of, write_page
    from freewalk.report.summary import by_design, measure

    record = record_of(source)
    by_design(record), measure(record.data)  # what has no walks, or learned nothing, has no curves to show
    graph = None
    if "spec" in record.provenance:  # a record made from Python does not know its graph; the page then shows no edges
        spec = parse(record.provenance["spec"], f"{source}: spec")
        graph = build("graph", spec.tables.graph, f"{source}: [graph]")
    name = title or str(record.data.attrs.get("name", source.stem))
    section = section_of(record, graph=graph, title=name)
    page = write_page(Page(name, [section]), out or _beside(source, "page.html"))
    typer.echo(str(page))


def _beside(source: Path, name: str) -> Path:
    """A file in the folder of a run, or beside a record."""
    return source / name if source.is_dir() else source.with_name(f"{source.stem}-{name}")
