"""The documents are run as a reader would: Python is pasted, files with a title are written, commands are typed."""

import contextlib
import io
import math
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]  # test_contributing.py follows CONTRIBUTING.md
BLOCK = re.compile(r'^```(python|toml|console|text)(?: title="(.+?)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def with_code(pages: list[Path]) -> list[Path]:
    return [page for page in pages if page.exists() and runs(page)]


def runs(page: Path) -> list[tuple[str, str, str, int]]:
    """The blocks that are run: language, title, text and the line where the text begins."""
    text = page.read_text()
    found = [(*block.groups(default=""), text[: block.start(3)].count("\n")) for block in BLOCK.finditer(text)]
    return [block for block in found if block[0] in ("python", "console") or block[1] or is_output(block[0], page)]


def is_output(language: str, page: Path) -> bool:
    """Tutorials and how-to pages show what the block before has printed, and are held to it."""
    return language == "text" and page.parent.name in ("tutorial", "how-to")


def check_output(shown: str, printed: str) -> None:
    """Every line that is shown has been printed: the same words, and numbers that differ by 5 % at most."""
    lines = [normal(line) for line in printed.splitlines()]
    for line in filter(None, map(str.strip, shown.splitlines())):
        words, numbers = normal(line)
        assert line == "..." or any(words == other and near(numbers, found) for other, found in lines), (
            f"{line!r} is not in what was printed:\n{printed}"
        )


def normal(line: str) -> tuple[list[str], list[float]]:
    ruled = re.sub("─+", "─", line)  # as long as the table, which depends on the version of rich
    return NUMBER.sub("#", ruled).split(), [float(number.replace(",", "")) for number in NUMBER.findall(line)]


def near(some: list[float], others: list[float]) -> bool:
    return all(math.isclose(one, other, rel_tol=0.05, abs_tol=0.03) for one, other in zip(some, others, strict=True))


LONG = (
    "afternoon.md",
    "cluster.md",
    "compare.md",
    "comparison.md",
    "data-and-topologies.md",
    "exact-analysis.md",
    "sweep.md",
    "theory.md",
    "train-a-torch-model.md",
)
WITHOUT = os.environ.get("FREEWALK_TEST_TORCH") == "0" or find_spec("torch") is None


def marks(page: Path) -> list[pytest.MarkDecorator]:
    needs_torch = any(word in page.read_text() for word in ("freewalk.torch import", "import torch"))
    found = [pytest.mark.long] if page.name in LONG else []
    return [*found, pytest.mark.skipif(WITHOUT, reason="its code needs PyTorch")] if needs_torch else found


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=marks(page)) for page in with_code(PAGES)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_code_in_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    known = set(sys.modules)
    # Compiled functions are read from their source: all blocks are pieces of one file, on the lines of the page.
    script = tmp_path / "page.py"
    lines = page.read_text().splitlines()
    code: list[str] = [""] * len(lines)
    for language, title, text, line in runs(page):
        if language == "python" and not title:
            code[line : line + text.count("\n")] = text.splitlines()
    script.write_text("\n".join(code) + "\n")
    names = {"__name__": "page"}
    printed = ""
    try:
        for language, title, text, line in runs(page):
            if title:
                (tmp_path / title).write_text(text)
            elif language == "python":
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    exec(compile("\n" * line + text, str(script), "exec"), names)
                printed = output.getvalue()
            elif language == "text":
                check_output(text, printed)
            else:
                printed = ""
                for command in COMMAND.findall(text):
                    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120, check=False)
                    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
                    printed += done.stdout
    finally:
        for left in tmp_path.glob("*/up.json"):  # nodes that a page which failed has not ended
            subprocess.run(["freewalk", "network", "down", str(left.parent)], check=False)
    for module in set(sys.modules) - known:
        if str(getattr(sys.modules[module], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[module]  # another page may have a module of that name


def test_there_are_pages_with_code():
    assert len(with_code(PAGES)) >= 3
