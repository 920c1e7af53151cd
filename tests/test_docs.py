"""Every Python block in the documents runs, block after block, as a reader would paste them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def with_code(pages: list[Path]) -> list[Path]:
    return [page for page in pages if page.exists() and BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", with_code(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_code_in_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The blocks go to one file, since compiled functions are read from their source.
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(BLOCK.findall(page.read_text())))
    exec(compile(script.read_text(), str(script), "exec"), {"__name__": "page"})


def test_there_are_pages_with_code():
    assert len(with_code(PAGES)) >= 3
