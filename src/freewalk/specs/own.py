"""User classes, named in a spec as "module:Name"; importing one executes its code."""

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from freewalk.checks import show, suggestion
from freewalk.data import Partitioner
from freewalk.designs import Design
from freewalk.errors import SpecError
from freewalk.exchanges import Exchange
from freewalk.objectives import Objective
from freewalk.rules import Rule
from freewalk.schedules import Schedule

BASES: dict[str, type] = {
    "design": Design,
    "exchange": Exchange,
    "partition": Partitioner,
    "problem": Objective,
    "rule": Rule,
    "schedule": Schedule,
}
#: What user functions that a spec names must return, by family.
MADE: dict[str, str] = {
    "dataset": "a fw.data.Dataset",
    "model": "a torch.nn.Module",
    "share": "the freewalk.objectives.objective.Share of a node",
}
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
Tell = Callable[[str], None]


def is_own(family: str, name: Any, where: str) -> bool:
    """Whether a kind names a class of the user."""
    if not isinstance(name, str) or ":" not in name:
        return False
    if family not in BASES and family not in MADE:
        words = f"expected a listed one; a {family} cannot be a class of your own"
        raise SpecError(f"{where}: kind = {show(name)}, {words}")
    if _NAME.fullmatch(name) is None:
        raise SpecError(f'{where}: kind = {show(name)}, expected a class as "module:Name", such as "mine:Lazy"')
    return True


@dataclass
class Importer:
    """Imports the classes that a spec names."""

    folder: Path  # searched first for modules: that of the spec
    source: str
    tell: Tell | None = None  # called before code is executed, once per module
    classes: dict[str, type] = field(default_factory=dict)  # imported so far

    def find(self, family: str, name: str, where: str) -> Any:
        """The class "module:Name" of a family in `BASES`, or the function or class that creates one in `MADE`."""
        if family in MADE:
            expected = f", expected one that returns {MADE[family]}"
            return self._member(name, where, "function or class", callable, expected)
        if name not in self.classes:
            self.classes[name] = self._member(name, where, "class", inspect.isclass)
        if not issubclass(self.classes[name], BASES[family]):
            room = {"partition": "data.", "schedule": "schedules."}.get(family, "")
            words = f"{'an' if family[0] in 'aeiou' else 'a'} {family}, expected a subclass of"
            raise SpecError(f"{where}: {name} is not {words} fw.{room}{BASES[family].__name__}")
        return self.classes[name]

    def _member(self, name: str, where: str, what: str, fits: Callable[[Any], bool], expected: str = "") -> Any:
        """What a module calls by this name, if it fits."""
        module, _, attribute = name.partition(":")
        members = vars(self._import(module, where))
        if not fits(members.get(attribute)):
            others = [key for key, value in members.items() if fits(value) and key[0] != "_"]
            hint = suggestion(attribute, others, "it has") if others else "it has none"
            raise SpecError(f"{where}: {module} has no {what} {attribute!r}{expected}; {hint}")
        return members[attribute]

    def _import(self, module: str, where: str) -> ModuleType:
        here = module_in(self.folder, module)
        loaded = sys.modules.get(module)
        if loaded is not None:
            origin = getattr(loaded, "__file__", None)
            if here is not None and (origin is None or not Path(origin).exists() or not here.samefile(origin)):
                words = f"{here} is not imported, since another module is named {module} ({origin or 'built in'})"
                raise SpecError(f"{where}: {words}; rename it")
            return loaded
        known = importlib.util.find_spec(module.partition(".")[0])  # does not import the package of a module
        place = here or (known and (known.origin or "a package without a file"))
        if place is None:
            expected = f"{self.folder.joinpath(*module.split('.'))}.py or a module that Python can import"
            raise SpecError(f"{where}: there is no module {module!r}, expected {expected}")
        if self.tell is not None:
            self.tell(f"importing {module} ({place}), named in {self.source}")
        folder = str(self.folder.resolve())
        sys.path.insert(0, folder)
        importlib.invalidate_caches()  # the file may be newer than Python's cache of its folder
        try:
            return importlib.import_module(module)
        except (Exception, SystemExit) as error:
            raise SpecError(f"{where}: {module} cannot be imported ({blame(error)})") from error
        finally:
            sys.path.remove(folder)
            if folder not in sys.path:
                sys.path.append(folder)  # last in the path, for imports that its functions make later


def module_in(folder: Path, module: str) -> Path | None:
    """The file of a module or package in a folder, if it is there."""
    place = folder.joinpath(*module.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def blame(error: BaseException) -> str:
    """One line on what failed in code that is not ours, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f", {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if words else ''}{words[:200]}{place}"
