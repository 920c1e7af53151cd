"""The hash under which a result is stored: of everything that it depends on, and nothing else."""

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from freewalk.checks import Checks
from freewalk.compiled.compiler import parsed
from freewalk.errors import SpecError
from freewalk.run.record import versions
from freewalk.specs.own import module_in
from freewalk.specs.plan import digest
from freewalk.specs.spec import Spec

_LENGTH = 32  # hexadecimal digits: 128 bits


def hash_of(**parts: Any) -> str:
    """The hash of values that JSON can hold, and of the versions that compute the result."""
    text = json.dumps({"versions": versions(), **parts}, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def key_of(spec: Spec, inputs: "Inputs") -> str:
    """The hash of a spec, of the files and modules that it names, and of the package versions.

    Its name, comments, layout and checkpoint interval do not count.
    """
    tables = spec.tables.model_dump(exclude={"name": True, "compare": True, "sweep": True, "run": {"checkpoint"}})
    modules: dict[str, str] = {}
    for name in spec.code:
        modules |= inputs.module(name.partition(":")[0])
    files = {name: inputs.file(name) for name in spec.files}
    return hash_of(spec=tables, files=files, modules=modules, extras=_extras(tables))


def _extras(tables: Mapping[str, Any]) -> dict[str, str]:
    """The versions of the optional packages that affect the results of a spec."""
    problem, found = tables["problem"], {}
    wanted = {
        "torch": problem.get("kind") == "torch",
        "scikit-learn": isinstance(problem.get("data"), Mapping),
        "topohub": tables["graph"].get("kind") == "topology",
    }
    for package in (name for name, needed in wanted.items() if needed):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # reported when it is run
            found[package] = ""
    return found


@dataclass(frozen=True)
class Inputs:
    """The user's files and modules that specs of one folder name, each read once."""

    folder: Path
    _known: dict[Path, str] = field(default_factory=dict, repr=False)

    def file(self, name: str | Path) -> str:
        """The SHA-256 of a file."""
        path = self.folder / Checks(SpecError).path("sweep", "path", name)
        if path not in self._known:
            try:
                self._known[path] = digest(path)
            except OSError as error:
                raise SpecError(f"{path}: cannot be read ({error.strerror}), and the sweep needs it") from error
        return self._known[path]

    def module(self, name: str) -> dict[str, str]:
        """The SHA-256 of a module and of the local modules that it imports; nothing is imported or executed."""
        found: dict[str, str] = {}
        waiting = [name]
        while waiting:
            module = waiting.pop()
            file = module_in(self.folder.resolve(), module)
            if file is not None and module not in found:
                waiting += _imports(file, module)
            elif file is None and module == name:
                file = _installed(name)
            if file is not None:
                found[module] = self.file(file)
        return found


def _installed(module: str) -> Path | None:
    """The file of an installed module, or of its package; it is not imported."""
    try:
        known = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return None
    file = Path(known.origin or "") if known is not None else Path()
    return file if file.is_file() else None


def _imports(file: Path, module: str) -> Iterator[str]:
    """The modules that the text of a file imports."""
    try:
        tree = parsed(file.read_bytes())
    except (SyntaxError, ValueError):  # reported when it is imported
        return
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # beyond the top: reported when it is imported
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
