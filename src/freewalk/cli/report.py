"""Draw a run, or write a page about it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from freewalk.cli import terminal
from freewalk.cli.application import Quiet, Source, command
from freewalk.errors import SpecError

Figure = StrEnum("Figure", ["curves", "escape", "occupancy"])


class Scale(StrEnum):
    """A horizontal axis."""

    auto = "auto"
    linear = "linear"
    log = "log"


class Band(StrEnum):
    """What surrounds a mean."""

    quantiles = "quantiles"
    confidence = "confidence"
    none = "none"


Shown = Annotated[
    str | None,
    typer.Option("--measure", metavar="NAME", help="Measure to draw. Default: the primary measure of the run."),
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="NAME",
        help="Horizontal axis: updates, rounds, or a measure that never decreases, such as messages or bytes; "
        "may be repeated.",
    ),
]
Around = Annotated[
    Band,
    typer.Option(
        help="Band around the mean: from the 10 % to the 90 % quantile of the walks, the 95 % confidence interval of "
        "the mean, or none."
    ),
]


@command(
    "freewalk plot runs/demo",
    "freewalk plot runs/demo --scale linear --out loss.pdf",
    "freewalk plot runs/demo --measure distance --against messages",
    "freewalk plot runs/demo --figure escape --design 'MH importance' --design 'MHLJ, jump 0.9' --updates 3000",
)
def plot(
    source: Source,
    out: Annotated[Path | None, typer.Option(help="Image to write. Default: next to the record.")] = None,
    figure: Annotated[
        Figure,
        typer.Option(help="Learning curves, paths of walks (if the run kept them), or visits near the heavy nodes."),
    ] = Figure.curves,
    measure: Shown = None,
    against: Against = None,
    scale: Annotated[Scale, typer.Option(help="For curves: scale of the horizontal axes.")] = Scale.auto,
    band: Around = Band.quantiles,
    design: Annotated[list[str] | None, typer.Option(help="For escape: design to show; may be repeated.")] = None,
    updates: Annotated[int | None, typer.Option(min=1, help="For escape: number of updates to show.")] = None,
    quiet: Quiet = False,
) -> None:
    """Draw a run: its learning curves against updates and messages, or another figure."""
    from freewalk.report import curves, escape, occupancy
    from freewalk.specs.folder import record_of

    if figure is not Figure.escape and (design or updates):
        raise SpecError("plot: --design and --updates need --figure escape")
    of_curves = measure or against or scale is not Scale.auto or band is not Band.quantiles
    if figure is not Figure.curves and of_curves:
        raise SpecError("plot: --measure, --against, --scale and --band need --figure curves")
    record = record_of(source)
    out = out or _beside(source, f"{figure.value}.png")
    if figure is Figure.curves:
        curves(record, out, measure=measure, axes=against or None, scale=scale.value, band=band.value)
    elif figure is Figure.escape:
        escape(record, out, designs=design, updates=updates)
    else:
        occupancy(record, out)
    terminal.out(out, quiet)


@command("freewalk report runs/demo", "freewalk report runs/demo --out demo.html --title 'Six ways to walk'")
def report(
    source: Source,
    out: Annotated[Path | None, typer.Option(help="Page to write. Default: next to the record.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page. Default: the name of the run.")] = None,
    measure: Shown = None,
    against: Against = None,
    band: Around = Band.quantiles,
    quiet: Quiet = False,
) -> None:
    """Write one interactive HTML page about a run: its curves, the visits to each node, and the walks themselves.

    The page is self-contained: it needs no network and no other file.
    """
    from freewalk.report import Page, section_of, write_page
    from freewalk.specs.folder import record_of

    record = record_of(source)
    name = title or str(record.data.attrs.get("name", source.stem))
    section = section_of(record, title=name, band=band.value, measure=measure, axes=against or None)
    page = write_page(Page(name, [section]), out or _beside(source, "page.html"))
    terminal.out(page, quiet)


def _beside(source: Path, name: str) -> Path:
    """A file in the folder of a run, or next to a record."""
    return source / name if source.is_dir() else source.with_name(f"{source.stem}-{name}")
