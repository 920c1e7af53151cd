"""The house: what a reader of the tree relies on. Names of modules and classes, and the size of functions."""

import ast
import inspect
import tomllib
from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path

import freewalk as fw

ROOT = Path(fw.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if not path.stem.endswith("_pb2")]  # those are generated
TERMS_OF_ART = {"gradient_tracking"}
#: Functions whose arguments are the options of a command, or the keys of a spec.
SAID_BY_USERS = ("cli/", "specs/datasets.py")
MOST_LINES, MOST_ARGUMENTS, MOST_AT_THE_TOP, MOST_LAYERS = 60, 10, 9, 18

Function = ast.FunctionDef | ast.AsyncFunctionDef


def nodes(kind: type) -> list[tuple[Path, ast.AST]]:
    return [(path, node) for path in FILES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kind)]


def public_functions() -> set[tuple[str, str]]:
    """What users call, by file and name: functions, classes with their methods, of the package and its families."""
    found = set()
    families = [getattr(fw, name) for name in fw.__all__ if inspect.ismodule(getattr(fw, name))]
    for module in (fw, *families):
        for name in module.__all__:
            thing = inspect.unwrap(getattr(module, name)) if callable(getattr(module, name)) else None
            if inspect.isfunction(thing):
                found.add((inspect.getfile(thing), thing.__name__))
            elif inspect.isclass(thing):
                found |= {(inspect.getfile(thing), method) for method in vars(thing) if not method.startswith("_")}
    return found | {(str(ROOT / "torch" / "objective.py"), "__init__")}  # of TorchObjective


def lines_of(function: Function) -> int:
    """The lines of a function without its docstring."""
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    return function.end_lineno - function.lineno + 1 - (first.end_lineno - first.lineno + 1 if documented else 0)


def test_modules_are_nouns():
    assert [path for path in FILES if path.stem.endswith("ing") and path.stem not in TERMS_OF_ART] == []


def test_few_modules_are_at_the_top():
    assert len(list(ROOT.glob("*.py"))) <= MOST_AT_THE_TOP


def test_a_class_name_occurs_once():
    places = defaultdict(list)
    for path, node in nodes(ast.ClassDef):
        if not node.name.startswith("_"):
            places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_functions_fit_on_a_screen():
    public = public_functions()
    long = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path, node in nodes(Function)
        if lines_of(node) > MOST_LINES and (str(path), node.name) not in public
    ]
    assert long == []


def test_functions_take_few_arguments():
    public = public_functions()
    many = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path, node in nodes(Function)
        if len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > MOST_ARGUMENTS
        and (str(path), node.name) not in public
        and not str(path.relative_to(ROOT)).startswith(SAID_BY_USERS)
    ]
    assert many == []


def test_there_are_few_layers():
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())
    (contract,) = project["tool"]["importlinter"]["contracts"]
    assert len(contract["layers"]) <= MOST_LAYERS


def test_a_file_of_tests_has_a_name_of_its_own():
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))  # pytest imports them by name
    assert [name for name, count in names.items() if count > 1] == []


def test_a_dependency_has_one_lower_bound():
    """Else `make test-minimum` tests the highest of them only; what is pinned for tests does not count."""
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]
    bounds = defaultdict(set)
    for requirement in chain(project["dependencies"], *project["optional-dependencies"].values()):
        name, bound, version = requirement.partition(">=")
        if bound:
            bounds[name].add(version)
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}
