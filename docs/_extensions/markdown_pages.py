"""The Markdown files of the repository as pages of the site.

They are written to be read on GitHub too, so the site adapts to them: files of the root appear as the pages named in
`SHOWN`, links to those files lead to these pages, and the title of a block of code becomes its caption.
"""

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
LOG = logging.getLogger(__name__)

#: Pages whose text is a file of the root.
SHOWN = {
    "reference/changelog": "CHANGELOG.md",
    "explanation/architecture": "ARCHITECTURE.md",
    "how-to/contribute": "CONTRIBUTING.md",
}
#: Where links to files of the root lead.
PAGES = {ROOT / file: DOCS / f"{page}.md" for page, file in SHOWN.items()} | {ROOT / "README.md": DOCS / "index.md"}

FENCE = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
TITLED = re.compile(r'\A```(\w+) title="(.+?)"\n')
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^()\s#]+)(#[^()\s]*)?(?=\))")


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn the text of a page into what the site shows."""
    base = DOCS / page
    if page in SHOWN:
        base = ROOT / SHOWN[page]
        app.env.note_dependency(str(base))
        source[0] = base.read_text(encoding="utf-8")
    pieces, start = [], 0
    for block in FENCE.finditer(source[0]):
        pieces += [_linked(source[0][start : block.start()], base.parent, page), _captioned(block[0])]
        start = block.end()
    source[0] = "".join([*pieces, _linked(source[0][start:], base.parent, page)])


def _captioned(block: str) -> str:
    """A block of code; the title that names its file becomes a caption."""
    return TITLED.sub(r"```{code-block} \1\n:caption: \2\n\n", block)


def _linked(text: str, folder: Path, page: str) -> str:
    """Text whose links, which are relative to `folder`, are relative to the page."""

    def replaced(link: re.Match[str]) -> str:
        path = (folder / link[1]).resolve()
        if not path.exists():
            LOG.warning("the link to %s leads nowhere", link[1], location=page)
        path = PAGES.get(path, path)
        return os.path.relpath(path, (DOCS / page).parent) + (link[2] or "")

    return LINK.sub(replaced, text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", read, priority=400)
    return {"parallel_read_safe": True}
