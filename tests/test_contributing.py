"""CONTRIBUTING.md is followed by a machine: in a copy of the repository, its files are written and its lines added."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'^```(python|diff|console)(?: title="(.+?)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
BLOCKS = [block.groups(default="") for block in BLOCK.finditer(TEXT)]
FILES = {title: text for language, title, text in BLOCKS if language == "python" and title}
NAMES = re.findall(r"^class (\w+)", "\n".join(FILES.values()), re.MULTILINE)
LEFT = shutil.ignore_patterns(".*", "_build", "__pycache__", "build", "dist", "runs", "results", "*.egg-info")
BIN = f"{Path(sys.executable).parent}{os.sep}"


def added_to(text: str, difference: str) -> str:
    """A text with the lines that begin with a plus, next to those around them, which must be there, once."""
    for piece in difference.split("...\n"):
        before = "".join(line[1:] for line in piece.splitlines(keepends=True) if line[0] == " ")
        after = "".join(line[1:] for line in piece.splitlines(keepends=True))
        places = [found.start() for found in re.finditer(rf"^(?={re.escape(before)})", text, re.MULTILINE)]
        assert len(places) == 1, f"not there once:\n{before}"
        text = text[: places[0]] + after + text[places[0] + len(before) :]
    return text


def called(folder: Path, command: str) -> str:
    """What a command prints that a reader would give in the copy, where `.venv` is the environment of this process."""
    if command == "make lint":
        recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (folder / "Makefile").read_text(), re.MULTILINE)
        assert recipe is not None
        command = " && ".join(line.strip("\t@").replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines())
    path = os.pathsep.join([str(folder / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "FREEWALK_TEST_TORCH": "0"}
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        environment.pop(name, None)
    done = subprocess.run(
        command.replace(".venv/bin/", BIN), shell=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def commands() -> list[str]:
    """What the guide says to run, once for all that is new."""
    (block,) = [text for language, _, text in BLOCKS if language == "console"]
    return re.findall(r"^\$ (.+)$", block, re.MULTILINE)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository after the guide was followed."""
    folder = tmp_path_factory.mktemp("followed") / "freewalk"
    shutil.copytree(ROOT, folder, ignore=LEFT)
    for language, title, text in BLOCKS:
        file = folder / title
        if title and language == "python":
            assert not file.exists(), f"{title} is there already"
            file.write_text(text, encoding="utf-8")
        elif title:
            file.write_text(added_to(file.read_text(encoding="utf-8"), text), encoding="utf-8")
    return folder


def test_a_difference_is_applied_where_it_fits_once() -> None:
    assert added_to("a\nb\nc\n", " a\n+new\n b\n...\n c\n+last\n") == "a\nnew\nb\nc\nlast\n"
    for wrong in (" d\n+new\n", " a\n+new\n c\n"):
        with pytest.raises(AssertionError, match="not there once"):
            added_to("a\nb\nc\n", wrong)
    with pytest.raises(AssertionError, match="not there once"):
        added_to("a\na\n", "+new\n a\n")


def test_the_guide_has_code_for_four_kinds() -> None:
    assert NAMES == ["LazyWalk", "Huber", "Nesterov", "RandomPair"]
    assert [Path(file).parent.name for file in FILES] == ["designs", "objectives", "rules", "exchanges"]


def test_files_that_the_guide_names_exist() -> None:
    named = set(re.findall(r"`((?:src|tests|benchmarks|docs)/[\w/.-]+)`", TEXT)) | {title for _, title, _ in BLOCKS}
    assert len(named) > 20
    assert sorted(name for name in named - FILES.keys() if "_build" not in name and not (ROOT / name).exists()) == []


def test_what_was_added_is_formatted_and_known(copy: Path) -> None:
    called(copy, ".venv/bin/ruff check . && .venv/bin/ruff format --check .")
    told = called(copy, ".venv/bin/python -m pytest -p no:cacheprovider tests/contract/test_listed.py -vv")
    for name in NAMES:
        assert re.search(rf"\[{name}\] PASSED", told), name


@pytest.mark.long
def test_what_the_guide_says_to_run_is_green(copy: Path) -> None:
    lint, tests, calls = commands()
    assert lint == "make lint"
    called(copy, lint)
    told = called(copy, tests.replace("LazyWalk", " or ".join(NAMES)) + " -vv")
    for name in NAMES:
        assert len(re.findall(rf"{name}\S* PASSED|{name}.*\] PASSED", told)) >= 2, name
    for name in NAMES:
        assert "200 calls of" in called(copy, calls.replace("LazyWalk", name))


@pytest.mark.long
def test_the_code_in_the_guide_runs(copy: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("".join(text for language, title, text in BLOCKS if language == "python" and not title))
    called(copy, f".venv/bin/python {script}")
