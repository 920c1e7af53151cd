"""Benchmarks are run by hand and seldom: what they take from the package must at least be there."""

import ast
import re
import symtable
from functools import cache
from pathlib import Path

import pytest

import freewalk as fw

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = {str(path.relative_to(BENCHMARKS)): path for path in sorted(BENCHMARKS.rglob("*.py"))}


@cache
def names_of(module: str) -> set[str] | None:
    """The names in a module of freewalk, by its source, since it may need Ray or PyTorch; None if there is none."""
    place = Path(fw.__file__).parents[1].joinpath(*module.split("."))
    kinds = (place / "__init__.py", place.with_suffix(".pyi"), place.with_suffix(".py"))  # .pyi: of generated modules
    files = [file for file in kinds if file.exists()]
    if not files:
        return None
    table = symtable.symtable(files[0].read_text(encoding="utf-8"), str(files[0]), "exec")
    beside = {path.stem for path in place.iterdir()} if place.is_dir() else set()
    return {one.get_name() for one in table.get_symbols() if one.is_local()} | beside


def lacking(path: str) -> str:
    """The part of a dotted path that does not exist; what follows a function or a class is not looked at."""
    parts = path.split(".")
    for end in range(1, len(parts)):
        known = names_of(".".join(parts[:end]))
        if known is not None and parts[end] not in known:
            return ".".join(parts[: end + 1])
    return ""


def paths_in(text: str) -> list[str]:
    """All dotted paths into freewalk: imports, and attributes of what was imported."""
    nodes, known = list(ast.walk(ast.parse(text))), {}
    for node in nodes:
        if isinstance(node, ast.Import):
            known |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    used = [ast.unparse(node).split(".") for node in nodes if isinstance(node, ast.Attribute)]
    found = [*known.values(), *(".".join([known[first], *rest]) for first, *rest in used if first in known)]
    return [path for path in found if re.fullmatch(r"freewalk[\w.]*", path)]


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_benchmark_uses_exists(name):
    gone = {lacking(path) for path in paths_in(SCRIPTS[name].read_text(encoding="utf-8"))}
    assert gone <= {""}


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("import freewalk.runtimes.ray.nowhere", "freewalk.runtimes.ray.nowhere"),
        ("from freewalk.runtimes.ray import nowhere", "freewalk.runtimes.ray.nowhere"),
        ("import freewalk as fw; fw.designs.Nothing(fw.designs.MHLJ)", "freewalk.designs.Nothing"),
        ("from freewalk.designs import decay as slow; slow.nothing", "freewalk.designs.decay.nothing"),
        ("import freewalk as fw; fw.graphs.ring(3).edges; from freewalk.torch import TorchObjective", ""),
    ],
)
def test_what_is_gone_is_found(text, gone):
    assert max(map(lacking, paths_in(text))) == gone
