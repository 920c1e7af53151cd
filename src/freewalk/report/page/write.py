"""A page as one file: markup, style, scripts and data together, with nothing to fetch."""

import base64
import hashlib
import os
import re
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path

from freewalk.checks import Checks
from freewalk.errors import RecordError
from freewalk.report.figures import COLOURS
from freewalk.report.page.encode import embed
from freewalk.report.page.html import body, navigation
from freewalk.report.page.model import Page
from freewalk.report.page.payload import payload
from freewalk.storage.files import replacing

_check = Checks(RecordError)
_SCRIPTS = (
    "tools.js",
    "scales.js",
    "chart.js",
    "cursor.js",
    "places.js",
    "visits.js",
    "graph.js",
    "walk.js",
    "page.js",
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

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    RecordError
        If the name does not end in `.html` or `.htm`, the file cannot be written, or `page` is not a `Page`.
    """
    target = _check.path("write_page", "path", path)
    _check.instance("write_page", "page", page, Page, "a Page, such as Page(title, [section])")
    if target.suffix.lower() not in (".html", ".htm"):
        raise _check.fail("write_page", "path", str(target), "a name that ends in .html")
    text = render(page)
    with replacing(target) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
    return target


def render(page: Page) -> str:
    """The text of a page."""
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in _SCRIPTS) + "\n})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    palette = "".join(f"--c{number}:{colour};" for number, colour in enumerate(COLOURS))
    parts = {
        # The browser runs only this script and fetches nothing, whatever a label contains.
        "policy": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "title": escape(page.title),
        "style": f":root{{{palette}}}\n{_asset('page.css')}",
        "navigation": navigation(page),
        "body": body(page),
        "data": embed(payload(page)),
        "script": script,
    }
    return re.sub(r"@@(\w+)@@", lambda found: parts[found[1]], _asset("page.html"))


@cache
def _asset(name: str) -> str:
    text = resources.files("freewalk.report.page").joinpath(name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")  # browsers normalise line ends before they compute the digest
