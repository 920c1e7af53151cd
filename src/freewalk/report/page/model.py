"""The content of a page, before any markup: curves, claims, tables, walks, sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from freewalk.checks import Checks, set_fields, show
from freewalk.errors import RecordError
from freewalk.graphs import Graph
from freewalk.linear.arrays import Floats

Kind = Literal["mean", "exact", "published", "other"]
Outcome = Literal["pass", "depends", "fail", "not testable"]
Each = Callable[[str, Any], Any]

KINDS: tuple[Kind, ...] = ("mean", "exact", "published", "other")
OUTCOMES: tuple[Outcome, ...] = ("pass", "depends", "fail", "not testable")

_PNG = b"\x89PNG\r\n\x1a\n"
_check = Checks(RecordError)


def _text(owner: str, name: str, value: Any) -> None:
    """Check a text, which may be empty."""
    if not (isinstance(value, str) and not value):
        _check.text(owner, name, value)


def _texts(owner: Any) -> str:
    """Check the fields that hold texts; returns the owner's name for error messages, with the first of them."""
    texts = {one.name: getattr(owner, one.name) for one in fields(owner) if one.type == "str"}
    for name, value in texts.items():
        _text(type(owner).__name__, name, value)
    return f"{type(owner).__name__} {show(next(iter(texts.values())))}"


def _items(owner: str, name: str, items: Any, of: type, *, some: bool = False) -> None:
    """Check a list of items of one type; a single text is not a list of paragraphs."""
    expected = f"a list of {'at least one ' * some}{'text' if of is str else of.__name__}"
    is_list = issubclass(type(items), Collection) and not isinstance(items, (str, bytes, Mapping, np.ndarray))
    if not is_list or (some and not items):
        raise _check.fail(owner, name, items, expected)
    for item in items:
        if of is str:
            _text(owner, f"an item of {name}", item)
        else:
            _check.instance(owner, f"an item of {name}", item, of, expected)


def _mapping(owner: str, name: str, items: Any, expected: str, each: Each, *, some: bool = False) -> dict[str, Any]:
    """Check a mapping from texts, whose values `each` checks."""
    found: Mapping[str, Any] = _check.instance(owner, name, items, Mapping, expected)
    if some and not len(found):
        raise _check.fail(owner, name, items, expected)
    pairs = found.items()
    return {_check.text(owner, f"a key of {name}", key): each(f"{name}[{show(key)}]", value) for key, value in pairs}


def _floats(owner: str, name: str, values: Any, size: int | None = None, **options: Any) -> Floats:
    """At least one number, in one dimension."""
    array = _check.floats(owner, name, values, (size,), **options)
    if not array.size:
        raise _check.fail(owner, name, values, "at least one number")
    return array


@dataclass(frozen=True, eq=False)
class Series:
    """A curve. Curves with the same label belong to one design: they share its colour and its button."""

    label: str  # the design
    #: The horizontal values by the name of their axis, such as "updates" and "messages", each ascending. If the reader
    #: chooses an axis that the curve lacks, the curve is hidden and a note below the chart says so.
    x: Mapping[str, ArrayLike]
    y: ArrayLike  # a value that is not finite interrupts the line
    low: ArrayLike | None = None  # a band around the curve: both ends or neither
    high: ArrayLike | None = None
    #: The mean of simulated walks (a line with its band), an exact expectation (thin and dashed), a published curve
    #: (dots), or anything else.
    kind: Kind = "mean"
    colour: str | None = None  # such as "#0072B2"; None: chosen by the position of the design in its section
    note: str = ""  # a remark in the legend, such as the number of diverged walks

    def __post_init__(self) -> None:
        owner = _texts(self)
        _check.choice(owner, "kind", self.kind, KINDS)
        # A colour is inserted into a style unchanged.
        plain = isinstance(self.colour, str) and re.fullmatch(r"#[0-9a-fA-F]{6}", self.colour) is not None
        if self.colour is not None and not plain:
            raise _check.fail(owner, "colour", self.colour, "six hexadecimal digits such as '#0072B2', or None")
        y = _floats(owner, "y", self.y, finite=False)
        floats, expected = partial(_floats, owner, size=y.size), "at least one axis, such as {'updates': [0, 100]}"
        axes = _mapping(owner, "x", self.x, expected, floats, some=True)
        for name, values in axes.items():
            if (np.diff(values) < 0).any():
                raise _check.fail(owner, f"x[{show(name)}]", self.x[name], "ascending numbers", "sort the points")
        if (self.low is None) != (self.high is None):
            raise _check.fail(owner, "the band", "one end", "low and high, or neither")
        ends = ("low", "high") if self.low is not None else ()
        band = {name: floats(name, getattr(self, name), finite=False) for name in ends}
        set_fields(self, x=axes, y=y, **band)


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves in one frame."""

    title: str
    series: Sequence[Series]
    y_label: str  # the measured quantity
    x_log: bool = False  # whether an axis is logarithmic at first; the page has a button for each
    y_log: bool = True
    lines: Mapping[str, float] = field(default_factory=dict)  # named horizontal lines, such as the optimum
    note: str = ""  # below the chart

    def __post_init__(self) -> None:
        owner = _texts(self)
        _items(owner, "series", self.series, Series, some=True)
        for name in ("x_log", "y_log"):
            _check.flag(owner, name, getattr(self, name))
        real = partial(_check.real, owner)
        _mapping(owner, "lines", self.lines, "named numbers, such as {'optimum': 0.1}", real)


@dataclass(frozen=True)
class Verdict:
    """A row of the table of claims."""

    claim: str  # as a sentence
    outcome: Outcome  # "depends" if it holds in some settings and not in others
    measured: str  # the measurement behind the verdict
    comment: str = ""  # why, or under which conditions
    published: str = ""  # the same quantity, read off the published curve
    quote: str = ""  # the sentence that is tested, in its author's words
    share: str = ""  # the number of settings in which it holds
    terms: str = ""  # on what the verdict depends besides the numbers, such as a definition

    def __post_init__(self) -> None:
        _check.choice(_texts(self), "outcome", self.outcome, OUTCOMES)


@dataclass(frozen=True)
class Table:
    """Words and numbers in rows; the first column names the row."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]  # one cell per column each
    caption: str = ""  # below the table

    def __post_init__(self) -> None:
        _texts(self)
        _items("Table", "head", self.head, str, some=True)
        _items("Table", "rows", self.rows, Collection)
        for row in self.rows:
            _items("Table", "a row", row, str)
            if len(row) != len(self.head):
                raise _check.fail("Table", "a row", row, f"{len(self.head)} cells, one per column")


@dataclass(frozen=True, eq=False)
class Walks:
    """Where walks went: the content of the map of visits, the drawing of the graph and the animation."""

    graph: Graph | None  # None if it is not known: then nodes are drawn without edges
    heavy: Sequence[int]  # the nodes that are ringed and whose visits are counted
    importance: ArrayLike  # one number per node
    paths: Mapping[str, ArrayLike]  # by design, the node at every update of one walk, beginning with the start
    visits: Mapping[str, ArrayLike]  # by design, the number of visits to each node, by all walks
    note: str = ""  # which walks the paths are, for the caption of the animation

    def __post_init__(self) -> None:
        _texts(self)
        if self.graph is not None:
            _check.instance("Walks", "graph", self.graph, Graph, "a Graph, or None")
        importance = _floats("Walks", "importance", self.importance, None if self.graph is None else self.graph.n)
        n = importance.size
        counts, nodes = partial(_floats, "Walks", size=n, low=0), partial(_check.integers, "Walks", low=0, high=n - 1)
        visits = _mapping("Walks", "visits", self.visits, "the visits of at least one design", counts, some=True)
        paths = _mapping("Walks", "paths", self.paths, "the nodes on a path, by design", nodes)
        for label, one in paths.items():
            if not one.size:
                raise _check.fail("Walks", f"paths[{show(label)}]", one, "at least one node")
        heavy = nodes("heavy", self.heavy).tolist()
        set_fields(self, importance=importance, visits=visits, paths=paths, heavy=heavy)


@dataclass(frozen=True, eq=False)
class Section:
    """One experiment: paragraphs, claims, charts, tables and walks, in this order; what is empty is left out."""

    title: str
    text: Sequence[str] = ()  # paragraphs
    charts: Sequence[Chart] = ()
    verdicts: Sequence[Verdict] = ()
    walks: Walks | None = None
    images: Mapping[str, bytes] = field(default_factory=dict)  # PNG or SVG, by their captions
    details: Mapping[str, str] = field(default_factory=dict)  # a collapsed table: seeds, versions and hashes
    anchor: str = ""  # the end of its address; by default made from the title
    tables: Sequence[Table] = ()
    short: str = ""  # its name in the navigation bar; by default the title
    lead: str = ""  # sentences in larger type above everything else: what was run, and the conclusion
    #: The row and the column of the section in the table of verdicts at the top of the page, such as "Figure 3: …" and
    #: "stated". Without them each section is a row of its own.
    group: str = ""
    variant: str = ""

    def __post_init__(self) -> None:
        owner = _texts(self)
        for name, kind in {"text": str, "charts": Chart, "verdicts": Verdict, "tables": Table}.items():
            _items(owner, name, getattr(self, name), kind)
        if self.walks is not None:
            _check.instance(owner, "walks", self.walks, Walks, "Walks, or None")
        _mapping(owner, "details", self.details, "texts by their names", partial(_text, owner))
        _mapping(owner, "images", self.images, "images by their captions", partial(media_type, owner))


def media_type(owner: str, name: str, content: bytes) -> str:
    """The media type of an image, which must be PNG or SVG."""
    if isinstance(content, bytes):
        if content.startswith(_PNG):
            return "image/png"
        start = content[:4000].lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith((b"<?xml", b"<svg", b"<!DOCTYPE svg")) and b"<svg" in start:
            return "image/svg+xml"
    raise RecordError(f"{owner}: {name} is no image that a page can hold, expected the bytes of a PNG or SVG file")


@dataclass(frozen=True, eq=False)
class Page:
    """The content of one page.

    Several sections get a navigation bar and, if they have claims, a conclusion and a table that counts the verdicts.
    """

    title: str
    sections: Sequence[Section]
    intro: Sequence[str] = ()  # paragraphs at the top

    def __post_init__(self) -> None:
        owner = _texts(self)
        _items(owner, "sections", self.sections, Section, some=True)
        _items(owner, "intro", self.intro, str)
