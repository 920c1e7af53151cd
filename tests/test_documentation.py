"""The pages hang together: each is reached from the index of the site, and no link leads nowhere. Without Sphinx."""

import ast
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "_build" not in page.parts]
FILES = [*sorted(ROOT.glob("*.md")), *PAGES]

FENCE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+).*?\1", re.DOTALL)
LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(<?([^()\s<>]*(?:\([^()]*\))?[^()\s<>]*)>?(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def links(page: Path) -> list[str]:
    """The targets of links and images, without those in code."""
    return LINK.findall(CODE.sub("`code`", FENCE.sub("", page.read_text(encoding="utf-8"))))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give to the headings of a page."""
    found: set[str] = set()
    for heading in headings(page):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).strip()
        name, count = words.replace(" ", "-"), 0
        unique = name
        while unique in found:
            count += 1
            unique = f"{name}-{count}"
        found.add(unique)
    return found


def headings(page: Path) -> list[str]:
    """The headings of a page; of one that shows a file of the root also those of the file, and those in directives."""
    text = page.read_text(encoding="utf-8")
    shown = SHOWN.get(page)
    if shown is not None:
        return headings(shown)
    below = re.findall(r"^(\S.*)\n-{3,}$", text, re.MULTILINE)  # in reStructuredText
    return HEADING.findall(FENCE.sub("", text)) + below


def _shown() -> dict[Path, Path]:
    """The pages that show a file of the root, as the site's own code has them."""
    tree = ast.parse((DOCS / "_extensions" / "markdown_pages.py").read_text(encoding="utf-8"))
    values = [node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets) == "SHOWN"]
    return {DOCS / f"{page}.md": ROOT / file for page, file in ast.literal_eval(values[0]).items()}


SHOWN = _shown()


def below(page: Path) -> list[Path]:
    """The pages that the toctrees of a page name."""
    names = [
        line.strip()
        for tree in TOCTREE.findall(page.read_text(encoding="utf-8"))
        for line in tree.splitlines()
        if line.strip() and not line.startswith(":")
    ]
    return [Path(os.path.normpath(page.parent / f"{name}.md")) for name in names]


def test_every_page_is_reached_once_from_the_index() -> None:
    reached, waiting = [DOCS / "index.md"], [DOCS / "index.md"]
    while waiting:
        found = below(waiting.pop())
        reached += found
        waiting += found
    assert sorted(reached) == PAGES


@pytest.mark.parametrize("page", FILES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r"\w+:", link):
            continue  # another site
        path, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / path)) if path else page
        assert target.exists(), f"{page.relative_to(ROOT)}: {link}: there is no such file"
        assert target.is_relative_to(ROOT), f"{page.relative_to(ROOT)}: {link} leads out of the repository"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.relative_to(ROOT)}: {link}: there is no such heading"


def test_links_and_anchors_are_recognised(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title: `code`, *more*\n\n[one](a.md#b) ![two](c.png) [`three`](d.md) `[no](e.md)`\n[four\nlines](f.md)\n\n"
        "```text\n# no heading\n[no](g.md)\n```\n\n## Twice\n\n## Twice\n"
    )
    assert links(page) == ["a.md#b", "c.png", "d.md", "f.md"]
    assert anchors(page) == {"a-title-code-more", "twice", "twice-1"}


MODULES = (
    "freewalk",
    *(f"freewalk.{name}" for name in ("graphs", "designs", "objectives", "rules", "exchanges", "schedules")),
    *(f"freewalk.{name}" for name in ("runtimes", "analysis", "analysis.theory", "data", "baselines", "errors")),
)


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference" / "api").glob("*.md"))
    if re.search(rf"automodule:: {re.escape(name)}\n   :members:", pages):
        return  # all of its names
    module = import_module(name)
    for public in module.__all__:
        thing = getattr(module, public)
        home = getattr(thing, "__module__", "")
        elsewhere = any(home.startswith(f"{other}.") or home == other for other in MODULES[1:] if other != name)
        if callable(thing) and not elsewhere:
            assert re.search(rf":: (?:[\w.]+\.)?{public}\b", pages), f"{name}.{public} is in no page of the reference"


def test_what_rules_and_moves_cannot_do_has_a_place() -> None:
    assert "What a rule cannot do" in headings(DOCS / "explanation" / "rules.md")
    assert "Designs with a memory" in headings(DOCS / "how-to" / "which-design.md")


TITLE = "the entrapment problem in random walk decentralized learning"
AUTHORS = "liu, el rouayheb, dwyer"
INTRODUCING = {"README.md", *(f"docs/explanation/{name}.md" for name in ("reproduction", "studies", "paper-map"))}


def plain(text: str) -> str:
    """A text in small letters, on one line."""
    return " ".join(text.lower().split())


def docstrings() -> Iterator[tuple[str, str]]:
    """Every docstring of the package, and its place."""
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield f"{file.stem}.{getattr(node, 'name', '')}", plain(ast.get_docstring(node) or "")


@pytest.mark.parametrize("page", FILES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_that_names_the_conference_paper_names_the_journal_version(page: Path) -> None:
    text = plain(page.read_text(encoding="utf-8"))
    assert TITLE in text or str(page.relative_to(ROOT)) not in INTRODUCING
    assert TITLE not in text or "journal version" in text or "#the-journal-version" in text


def test_docstrings_that_cite_the_conference_paper_lead_to_the_journal_version() -> None:
    found = {place: text for place, text in docstrings() if AUTHORS in text or TITLE in text}
    assert {"mhlj.MHLJ", "logistic.Logistic", "lemmas.lemma_1", "theorem.theorem_1", "race.matched_steps"} <= set(found)
    in_full = {place for place, text in found.items() if TITLE in text}
    assert in_full == {"mhlj.MHLJ"}  # one place, to which the others refer
    assert "arxiv 2604.12260" in found["mhlj.MHLJ"]
    for place, text in found.items():
        assert place in in_full or "journal version: `freewalk.designs.mhlj`" in text, place
