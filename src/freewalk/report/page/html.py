"""A page as one file: markup that is readable without scripts, style, scripts and data, with nothing to fetch."""

import base64
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path

from freewalk.report.figures import COLOURS
from freewalk.report.measures import check, joined
from freewalk.report.page.model import OUTCOMES, Page, Section, Table, Verdict, media_type
from freewalk.report.page.payload import embedded
from freewalk.storage.files import write

_SCRIPTS = ("tools", "scales", "chart", "cursor", "places", "visits", "graph", "walk", "page")

_SIGNS = {"pass": "✓", "depends": "±", "fail": "✗", "not testable": "–"}
_COLUMNS = {"outcome": "Verdict", "share": "Holds in", "measured": "Measured", "published": "Printed"}
# The verb of a count of verdicts, for one and for several.
_VERBS = {
    "pass": ("passes", "pass"),
    "depends": ("depends on the setting", "depend on the setting"),
    "fail": ("fails", "fail"),
    "not testable": ("cannot be tested", "cannot be tested"),
}
# What is not broken across lines: short brackets, and numbers with their unit.
_WHOLE = re.compile(r"(\([^()]{1,26}\)[;,.]?|\d[\d.,e-]{0,20}(?: [×%])?)")
_LABEL = 120  # characters of the accessible name of a table
_MOUNT = '<div class="mount"></div>'  # a script draws here
_NO_PATHS = (
    "No animation, because the record has no paths. To store some, set <code>paths = 5</code> under "
    "<code>[run]</code> in the spec, or call <code>learn(..., paths=5)</code>."
)


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page to one HTML file that needs no network.

    The same page gives the same bytes. The file is complete or absent: it is written under a temporary name first.

    Parameters
    ----------
    page
        The content.
    path
        The file, ending in `.html` or `.htm`; an existing one is replaced.
    """
    target = check.path("write_page", "path", path)
    check.instance("write_page", "page", page, Page, "a Page, such as Page(title, [section])")
    if target.suffix.lower() not in (".html", ".htm"):
        raise check.fail("write_page", "path", str(target), "a name that ends in .html")
    write(target, render(page))
    return target


def render(page: Page) -> str:
    """The text of a page."""
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(f"{name}.js") for name in _SCRIPTS) + "\n})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    palette = "".join(f"--c{number}:{colour};" for number, colour in enumerate(COLOURS))
    parts = {
        # The browser runs only this script and fetches nothing, whatever a label contains.
        "policy": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'",
        "title": escape(page.title),
        "style": f":root{{{palette}}}\n{_asset('page.css')}",
        "navigation": _navigation(page),
        "body": _body(page),
        "data": embedded(page),
        "script": script,
    }
    return re.sub(r"@@(\w+)@@", lambda found: parts[found[1]], _asset("page.html"))


@cache
def _asset(name: str) -> str:
    text = resources.files("freewalk.report.page").joinpath(name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")  # browsers normalise line ends before they compute the digest


def _body(page: Page) -> str:
    """Everything between the header and the scripts."""
    sections, anchors, folded = page.sections, _anchors(page.sections), len(page.sections) > 1
    judged = folded and any(section.verdicts for section in sections)
    # The heading of a single section may only repeat that of the page.
    alone = not folded and sections[0].title == page.title
    parts = [
        f"<h1>{escape(page.title)}</h1>",
        _conclusion(sections) if judged else "",
        *(f"<p>{escape(words)}</p>" for words in page.intro),
        _overview(sections, anchors) if judged else "",
        *(_section(number, one, anchors[number], alone, folded) for number, one in enumerate(sections)),
    ]
    return "\n".join(filter(None, parts))


def _navigation(page: Page) -> str:
    """A bar of links, if there are several sections."""
    if len(page.sections) < 2:
        return ""
    pairs = zip(page.sections, _anchors(page.sections), strict=True)
    links = "".join(f'<li><a href="#{anchor}">{escape(one.short or one.title)}</a></li>' for one, anchor in pairs)
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>'


def _anchors(sections: Sequence[Section]) -> list[str]:
    """One distinct address per section, made of characters that need no escaping."""
    found: list[str] = []
    for section in sections:
        plain = re.sub(r"[^a-z0-9]+", "-", (section.anchor or section.title).lower()).strip("-") or "section"
        name, count = f"s-{plain}" if not plain[0].isalpha() else plain, 1
        while name in found or name.startswith("freewalk"):  # the scripts use that prefix
            count += 1
            name = f"s-{plain}-{count}"
        found.append(name)
    return found


def _section(number: int, section: Section, anchor: str, alone: bool, folded: bool) -> str:
    parts = [] if alone else [f"<h2>{escape(section.title)}</h2>"]
    if section.lead:
        parts.append(f'<p class="lead">{escape(section.lead)}</p>')
    parts += [f"<p>{escape(words)}</p>" for words in section.text]
    if section.verdicts:
        parts.append(_claims(section.verdicts))
    place = f'data-section="{number}"'
    for position, chart in enumerate(section.charts):
        below = f"{_MOUNT}{_note(chart.note)}"
        parts.append(_figure("chart", f'{place} data-chart="{position}"', chart.title, below))
    parts += map(_table, section.tables)
    if section.walks is not None:
        parts.append(_figure("visits", place, "Where the walks went"))
        kind, content = ("walk", _MOUNT) if section.walks.paths else ("still", f'<p class="note">{_NO_PATHS}</p>')
        parts.append(_figure(kind, place, "One walk per design", content))
        # Shown by the script if there is a drawing; collapsed among several sections, since it is large.
        tag, summary = ("details", "<summary>Drawing of the graph</summary>") if folded else ("div", "")
        parts.append(f"<{tag} hidden>{summary}{_figure('graph', place, 'The graph')}</{tag}>")
    parts += [_image(caption, content) for caption, content in section.images.items()]
    if section.details:
        rows = "".join(f"<tr>{_row([name, value])}</tr>" for name, value in section.details.items())
        parts.append(
            "<details><summary>Origin of these numbers: settings, seeds, versions, hashes</summary>"
            f'{_scroll("Origin of these numbers")}<table class="facts"><tbody>{rows}</tbody></table></div></details>'
        )
    return f'<section id="{anchor}">\n' + "\n".join(parts) + "\n</section>"


def _row(cells: Sequence[str]) -> str:
    """The cells of a row, whose first names it."""
    first, *others = (escape(str(cell)) for cell in cells)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)


def _note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>' if words else ""


def _figure(kind: str, place: str, title: str, content: str = _MOUNT) -> str:
    """A figure; `place` tells the script which data it is about."""
    return f'<figure class="{kind}" {place}><h3>{escape(title)}</h3>{content}</figure>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(str(cell))}</th>' for cell in table.head)
    rows = "".join(f"<tr>{_row(row)}</tr>" for row in table.rows)
    inner = f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="block">{_scroll(", ".join(map(str, table.head)))}{inner}</div>{_note(table.caption)}</div>'


def _scroll(content: str) -> str:
    """The start of a box that scrolls sideways by itself, also by keyboard."""
    name = content if len(content) <= _LABEL else f"{content[:_LABEL]}…"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Table: {escape(name)}">'


def _claims(verdicts: Sequence[Verdict]) -> str:
    """The table of claims, without its empty columns."""
    columns = [name for name in _COLUMNS if name == "measured" or any(getattr(one, name) for one in verdicts)]
    rows = [[_claim(one), *(_finding(one, name) for name in columns)] for one in verdicts]
    return f'<div class="block">{_cards("claims", ["Claim", *map(_COLUMNS.__getitem__, columns)], rows)}</div>'


def _cards(kind: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, given by its headings and the markup of its cells. On a narrow screen each row is a card."""
    head = "".join(f'<th scope="col" role="columnheader">{escape(one)}</th>' for one in heads)
    body = ""
    for name, *cells in rows:
        body += f'<tr role="row"><th scope="row" role="rowheader">{name}</th>'
        for heading, cell in zip(heads[1:], cells, strict=True):
            empty = "" if cell else ' class="empty"'
            body += f'<td role="cell" data-head="{escape(heading)}"{empty}>{cell}</td>'
        body += "</tr>"
    # The roles are explicit because screen readers do not recognise a table that is laid out as cards.
    return (
        f'<table class="{kind}" role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table>'
    )


def _claim(verdict: Verdict) -> str:
    said = f'<q class="said">{escape(verdict.quote)}</q>' if verdict.quote else ""
    why = f'<span class="why">{escape(verdict.comment)}</span>' if verdict.comment else ""
    return f"{said}{escape(verdict.claim)}{why}"


def _finding(verdict: Verdict, name: str) -> str:
    if name == "outcome":
        words = " ".join(filter(None, (_badge(verdict.outcome), escape(verdict.terms))))
    else:
        words = _unbroken(getattr(verdict, name))
    return f"<span>{words}</span>" if words else ""  # one item beside its heading


def _unbroken(words: str) -> str:
    """Markup in which no line breaks inside a number, before its unit, or inside short brackets."""
    parts = enumerate(_WHOLE.split(words))
    return "".join(f'<span class="unbroken">{escape(one)}</span>' if place % 2 else escape(one) for place, one in parts)


def _badge(outcome: str, words: str = "") -> str:
    kind = outcome.replace(" ", "-")
    return f'<span class="badge {kind}"><span aria-hidden="true">{_SIGNS[outcome]}</span> {words or outcome}</span>'


def _conclusion(sections: Sequence[Section]) -> str:
    """The verdicts of all sections in two sentences, the second by variant."""
    total = _count(sections)
    clauses = [f"{count:,} {_VERBS[outcome][count != 1]}" for outcome, count in total.items()]
    sentences = [f"Of {sum(total.values()):,} claims, {joined(clauses)}."]
    variants = dict.fromkeys(section.variant for section in sections if section.variant and section.verdicts)
    if len(variants) > 1:
        counts = {one: _count(part for part in sections if part.variant == one) for one in variants}
        parts = [f"{one.get('pass', 0):,} of {sum(one.values()):,} ({name})" for name, one in counts.items()]
        sentences.append(f"Passed by variant: {', '.join(parts)}.")
    return f'<p class="lead">{escape(" ".join(sentences))}</p>'


def _overview(sections: Sequence[Section], anchors: Sequence[str]) -> str:
    """The verdicts as a table: one row per group, one column per variant."""
    cells: dict[str, dict[str, str]] = {}
    for section, anchor in zip(sections, anchors, strict=True):
        row = cells.setdefault(section.group or section.title, {})
        row[section.variant] = row.get(section.variant, "") + _chips(section, anchor)
    # First the variants that share a row with another, so that they stand side by side.
    groups = Counter(section.group or section.title for section in sections)
    shared = {section.variant for section in sections if groups[section.group or section.title] > 1}
    variants = sorted(dict.fromkeys(section.variant for section in sections), key=lambda variant: variant not in shared)
    rows = [[escape(name), *(row.get(variant, "") for variant in variants)] for name, row in cells.items()]
    heads = ["section", *(variant or "verdicts" for variant in variants)]
    return f'<div class="block"><h2>Verdicts</h2>{_cards("claims overview", heads, rows)}</div>'


def _chips(section: Section, anchor: str) -> str:
    """The counts of verdicts of a section, as a link to it."""
    counts = _count([section])
    chips = " ".join(_badge(outcome, f"{count:,} {outcome}") for outcome, count in counts.items()) or "no claims"
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    name = f"{section.short or section.title}: {words}" if counts else section.title
    return f'<a class="chips" href="#{anchor}" aria-label="{escape(name)}">{chips}</a>'


def _count(sections: Iterable[Section]) -> dict[str, int]:
    """How many verdicts there are, by outcome, if any."""
    found = Counter(one.outcome for section in sections for one in section.verdicts)
    return {outcome: found[outcome] for outcome in OUTCOMES if found[outcome]}


def _image(caption: str, content: bytes) -> str:
    words = escape(caption)
    source = f"data:{media_type('page', caption, content)};base64,{base64.b64encode(content).decode('ascii')}"
    below = f'<figcaption class="note">{words}</figcaption>'
    return f'<figure class="image"><img src="{source}" alt="{words}">{below}</figure>'
