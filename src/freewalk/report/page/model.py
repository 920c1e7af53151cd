"""What a page shows, before any markup: curves, claims, tables, walks, sections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freewalk.graphs import Graph
from freewalk.report.page.checks import (
    check_choice,
    check_colour,
    check_counts,
    check_finite,
    check_image,
    check_items,
    check_nodes,
    floats,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Kind = Literal["mean", "exact", "published", "other"]
Outcome = Literal["pass", "depends", "fail", "not testable"]

KINDS: tuple[Kind, ...] = ("mean", "exact", "published", "other")
OUTCOMES: tuple[Outcome, ...] = ("pass", "depends", "fail", "not testable")


@dataclass(frozen=True, eq=False)
class Series:
    """A curve. Those of one label are one design: they have its colour, and its button shows and hides them.

    Parameters
    ----------
    label
        The design.
    x
        The horizontal values by the name of their axis, such as "updates" and "messages", each ascending. On an axis
        that it does not have the curve is not shown, and a line below the chart says so.
    y
        The values; one that is not finite interrupts the line.
    low, high
        A band around it, both or neither.
    kind
        What the values are: the mean of simulated walks (a line with its band), an exact expectation (thin and dashed),
        a published curve (dots), or anything else.
    colour
        As "#0072B2"; None: by the place of the design in its section.
    note
        A remark in the legend, such as how many walks have diverged.

    Raises
    ------
    RecordError
        If the lengths differ, or an axis does not ascend.
    """

    label: str
    x: Mapping[str, ArrayLike]
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    kind: Kind = "mean"
    colour: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        owner = f"Series {self.label!r}"
        check_choice(owner, "kind", self.kind, KINDS)
        check_colour(owner, self.colour)
        y = floats(owner, "y", self.y)
        check_items(owner, "x", self.x, "a mapping with at least one axis, such as {'updates': [0, 100]}", empty=False)
        axes = {str(name): floats(owner, f"x[{name!r}]", values, y.size) for name, values in self.x.items()}
        for name, values in axes.items():
            check_finite(owner, f"x[{name!r}]", values, ascending=True)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "x", axes)
        if (self.low is None) != (self.high is None):
            check_choice(owner, "band", "one end", ("low and high", "neither"))
        for name in ("low", "high"):
            values = getattr(self, name)
            object.__setattr__(self, name, None if values is None else floats(owner, name, values, y.size))


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves in one frame.

    Parameters
    ----------
    title
        Above it.
    series
        The curves.
    y_label
        What is measured.
    x_log, y_log
        Whether an axis starts out logarithmic; the page has a button for each.
    lines
        Named horizontal lines, such as the optimum.
    note
        A line below it.
    """

    title: str
    series: Sequence[Series]
    y_label: str
    x_log: bool = False
    y_log: bool = True
    lines: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        owner = f"Chart {self.title!r}"
        check_items(owner, "series", self.series, "a list of at least one Series", Series, empty=False)
        for name, value in self.lines.items():
            check_finite(owner, f"lines[{name!r}]", floats(owner, f"lines[{name!r}]", [value]))


@dataclass(frozen=True)
class Verdict:
    """A row of the table of claims.

    Parameters
    ----------
    claim
        What is tested, as a sentence.
    outcome
        Whether it holds; "depends" where it does in some settings and not in others.
    measured
        The number that says so.
    comment
        Why, or under which conditions.
    published
        The same number, read off the published curve.
    quote
        Whose sentence is tested, in its author's words.
    share
        In how many settings it holds.
    """

    claim: str
    outcome: Outcome
    measured: str
    comment: str = ""
    published: str = ""
    quote: str = ""
    share: str = ""

    def __post_init__(self) -> None:
        check_choice(f"Verdict {self.claim!r}", "outcome", self.outcome, OUTCOMES)


@dataclass(frozen=True)
class Table:
    """Words and numbers in rows; the first column names the row.

    Parameters
    ----------
    head
        The names of the columns.
    rows
        As many cells each.
    caption
        Below it.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            check_counts("Table", "a row", len(row), len(self.head), "cells, one a column")


@dataclass(frozen=True, eq=False)
class Walks:
    """Where walks went: what the map of visits and the animation show.

    Parameters
    ----------
    graph
        The graph; None where it is not known: then nodes are placed without edges.
    heavy
        The nodes that are ringed, and of which the time spent on them is counted.
    importance
        A number a node.
    paths
        By design, the node at every update of one walk, the start first.
    visits
        By design, how often each node was visited, by all walks.

    Raises
    ------
    RecordError
        If a node does not exist, or there is not a number for each.
    """

    graph: Graph | None
    heavy: Sequence[int]
    importance: ArrayLike
    paths: Mapping[str, ArrayLike]
    visits: Mapping[str, ArrayLike]

    def __post_init__(self) -> None:
        importance = floats("Walks", "importance", self.importance, None if self.graph is None else self.graph.n)
        n = importance.size
        check_items("Walks", "visits", self.visits, "the visits of at least one design", empty=False)
        visits = {str(label): floats("Walks", f"visits[{label!r}]", one, n) for label, one in self.visits.items()}
        for label, one in visits.items():
            check_finite("Walks", f"visits[{label!r}]", one)
        paths = {str(label): check_nodes("Walks", f"paths[{label!r}]", one, n) for label, one in self.paths.items()}
        heavy = check_nodes("Walks", "heavy", self.heavy, n, empty=True)
        for name, value in (("importance", importance), ("visits", visits), ("paths", paths)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "heavy", [int(node) for node in heavy])


@dataclass(frozen=True, eq=False)
class Section:
    """One experiment.

    Parameters
    ----------
    title
        Its heading.
    text
        Paragraphs.
    charts, verdicts, tables, walks
        What it shows, in the order claims, charts, tables, walks; empty or None is left out.
    images
        The bytes of PNG or SVG images by their captions.
    details
        A small table at the end, folded: where the numbers come from.
    anchor
        The end of its address; by default made from the title.
    short
        What the bar of links calls it; by default the title.
    """

    title: str
    text: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    verdicts: Sequence[Verdict] = ()
    walks: Walks | None = None
    images: Mapping[str, bytes] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    anchor: str = ""
    tables: Sequence[Table] = ()
    short: str = ""

    def __post_init__(self) -> None:
        owner = f"Section {self.title!r}"
        check_items(owner, "text", self.text, "a list of paragraphs", str)
        check_items(owner, "charts", self.charts, "a list of Chart", Chart)
        check_items(owner, "verdicts", self.verdicts, "a list of Verdict", Verdict)
        check_items(owner, "tables", self.tables, "a list of Table", Table)
        for caption, content in self.images.items():
            check_image(f"{owner}: images[{caption!r}]", content)


@dataclass(frozen=True, eq=False)
class Page:
    """All that is on one page.

    Parameters
    ----------
    title
        Of the page.
    sections
        One an experiment. Several get a bar of links, and where they have claims a table that counts the verdicts.
    intro
        Paragraphs at the top.
    """

    title: str
    sections: Sequence[Section]
    intro: Sequence[str] = ()

    def __post_init__(self) -> None:
        owner = f"Page {self.title!r}"
        check_items(owner, "sections", self.sections, "a list of at least one Section", Section, empty=False)
        check_items(owner, "intro", self.intro, "a list of paragraphs", str)
