"""The markup of a page: headings, paragraphs and tables, which can be read without any script."""

import base64
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from freewalk.report.page.model import OUTCOMES, Page, Section, Table, Verdict, media_type

_SIGNS = {"pass": "✓", "depends": "±", "fail": "✗", "not testable": "–"}
_COLUMNS = (
    ("claim", "Claim"),
    ("outcome", "Verdict"),
    ("share", "Holds in"),
    ("measured", "Measured"),
    ("published", "Printed"),
)
# What may be wider than a telephone scrolls by itself, also by keyboard.
_SCROLL = '<div class="scroll" tabindex="0" role="group" aria-label="Table">'
_NO_PATHS = (
    "There is no animation: the record has no paths. Keep some with <code>paths = 5</code> under <code>[run]</code> in "
    "the spec, or with <code>learn(..., paths=5)</code>."
)


def body(page: Page) -> str:
    """All that stands between the header and the scripts."""
    anchors = anchors_of(page.sections)
    parts = [f"<h1>{escape(page.title)}</h1>", *map(_paragraph, page.intro)]
    if len(page.sections) > 1:
        parts.append(_overview(page.sections, anchors))
    parts += [_section(number, one, anchors[number], _alone(page)) for number, one in enumerate(page.sections)]
    return "\n".join(part for part in parts if part)


def navigation(page: Page) -> str:
    """A bar of links, where there are several sections."""
    if len(page.sections) < 2:
        return ""
    pairs = zip(page.sections, anchors_of(page.sections), strict=True)
    links = "".join(f'<li><a href="#{anchor}">{escape(one.short or one.title)}</a></li>' for one, anchor in pairs)
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>'


def _alone(page: Page) -> bool:
    """Whether the heading of the page says all that the heading of its section would."""
    return len(page.sections) == 1 and page.sections[0].title == page.title


def anchors_of(sections: Sequence[Section]) -> list[str]:
    """An address a section, made of letters that need no escape, all different."""
    found: list[str] = []
    for section in sections:
        plain = re.sub(r"[^a-z0-9]+", "-", (section.anchor or section.title).lower()).strip("-") or "section"
        name, count = f"s-{plain}" if not plain[0].isalpha() else plain, 1
        while name in found or name.startswith("freewalk"):  # that prefix is for the scripts
            count += 1
            name = f"s-{plain}-{count}"
        found.append(name)
    return found


def _section(number: int, section: Section, anchor: str, alone: bool) -> str:
    parts = [] if alone else [f"<h2>{escape(section.title)}</h2>"]
    parts += map(_paragraph, section.text)
    if section.verdicts:
        parts.append(_claims(section.verdicts))
    for place, chart in enumerate(section.charts):
        note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
        parts.append(
            f'<figure class="chart" data-section="{number}" data-chart="{place}"><h3>{escape(chart.title)}</h3>'
            f'<div class="mount"></div>{note}</figure>'
        )
    parts += map(_table, section.tables)
    if section.walks is not None:
        mount, paths = '<div class="mount"></div>', bool(section.walks.paths)
        parts.append(f'<figure class="visits" data-section="{number}"><h3>Where the walks went</h3>{mount}</figure>')
        kind, content = ("walk", mount) if paths else ("still", f'<p class="note">{_NO_PATHS}</p>')
        heading = "<h3>One walk of each design</h3>"
        parts.append(f'<figure class="{kind}" data-section="{number}">{heading}{content}</figure>')
    parts += [_image(caption, content) for caption, content in section.images.items()]
    if section.details:
        rows = "".join(_row("th", name, value) for name, value in section.details.items())
        parts.append(
            "<details><summary>Where these numbers come from</summary>"
            f'<div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div></details>'
        )
    return f'<section id="{anchor}">\n' + "\n".join(parts) + "\n</section>"


def _row(kind: str, name: str, value: str) -> str:
    return f'<tr><{kind} scope="row">{escape(str(name))}</{kind}><td>{escape(str(value))}</td></tr>'


def _paragraph(words: str) -> str:
    return f"<p>{escape(words)}</p>"


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(str(cell))}</th>' for cell in table.head)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{escape(str(cell))}</th>' if not place else f"<td>{escape(str(cell))}</td>"
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in table.rows
    )
    caption = f'<p class="note">{escape(table.caption)}</p>' if table.caption else ""
    inner = f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="block">{_SCROLL}{inner}</div>{caption}</div>'


def _claims(verdicts: Sequence[Verdict]) -> str:
    """The table of claims; columns that all rows leave empty are left out. On a narrow screen each row is a card."""
    always = ("claim", "outcome", "measured")
    columns = [
        (name, heading) for name, heading in _COLUMNS if name in always or any(getattr(v, name) for v in verdicts)
    ]
    head = "".join(f'<th scope="col" role="columnheader">{heading}</th>' for _, heading in columns)
    rows = "".join(
        '<tr role="row">' + "".join(_claim_cell(one, name, heading) for name, heading in columns) + "</tr>"
        for one in verdicts
    )
    # The roles are given again because a table that is laid out as cards is none to a screen reader.
    return (
        '<div class="block"><table class="claims" role="table"><thead role="rowgroup">'
        f'<tr role="row">{head}</tr></thead><tbody role="rowgroup">{rows}</tbody></table></div>'
    )


def _claim_cell(verdict: Verdict, name: str, heading: str) -> str:
    value = str(getattr(verdict, name))
    if name == "claim":
        said = f'<q class="said">{escape(verdict.quote)}</q>' if verdict.quote else ""
        why = f'<span class="why">{escape(verdict.comment)}</span>' if verdict.comment else ""
        return f'<th scope="row" role="rowheader">{said}{escape(value)}{why}</th>'
    words = _badge(value) if name == "outcome" else escape(value)
    empty = ' class="empty"' if not value else ""
    return f'<td role="cell" data-head="{heading}"{empty}>{words}</td>'


def _badge(outcome: str) -> str:
    kind = outcome.replace(" ", "-")
    return f'<span class="badge {kind}"><span aria-hidden="true">{_SIGNS[outcome]}</span> {outcome}</span>'


def _overview(sections: Sequence[Section], anchors: Sequence[str]) -> str:
    """How many claims hold, by section."""
    if not any(section.verdicts for section in sections):
        return ""
    head = "".join(f'<th scope="col">{outcome}</th>' for outcome in OUTCOMES)
    rows, totals = [], dict.fromkeys(OUTCOMES, 0)
    for section, anchor in zip(sections, anchors, strict=True):
        counts = {outcome: sum(one.outcome == outcome for one in section.verdicts) for outcome in OUTCOMES}
        totals = {outcome: totals[outcome] + counts[outcome] for outcome in OUTCOMES}
        rows.append(_counts(f'<a href="#{anchor}">{escape(section.title)}</a>', counts))
    return (
        f'<div class="block"><h2>Claims</h2>{_SCROLL}'
        f'<table class="numbers overview"><thead><tr><th scope="col">section</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody><tfoot>{_counts('all', totals)}</tfoot></table></div></div>"
    )


def _counts(name: str, counts: dict[Any, int]) -> str:
    kinds = {outcome: outcome.replace(" ", "-") if count else "none" for outcome, count in counts.items()}
    cells = "".join(f'<td class="{kinds[outcome]}">{count}</td>' for outcome, count in counts.items())
    return f'<tr><th scope="row">{name}</th>{cells}</tr>'


def _image(caption: str, content: bytes) -> str:
    words = escape(caption)
    source = f"data:{media_type(caption, content)};base64,{base64.b64encode(content).decode('ascii')}"
    below = f'<figcaption class="note">{words}</figcaption>'
    return f'<figure class="image"><img src="{source}" alt="{words}">{below}</figure>'
